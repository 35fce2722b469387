"""What in a graph is wrong, or may be, as far as its declarations tell."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import networkx as nx

from pregel.channels.ephemeral import EphemeralValue
from pregel.channels.last_value import LastValue, UntrackedValue
from pregel.graph.analysis import Reach, unreachable
from pregel.graph.certain import Chaining
from pregel.types import START

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pregel.channels.base import Channel
    from pregel.graph.certain import Aftermath
    from pregel.network import Network

__all__ = ["Finding", "findings", "lost_text", "warnings_of"]

#: How many names a message lists.
NAMES_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong with a graph, or may be, as far as its declarations tell.

    Attributes:
        code: `unreachable-node`, `goto-and-edges`, `depths-differ`, `may-starve` or `may-conflict`.
        severity: Whether it keeps the graph from working, or may be what its author wants.
        nodes: The nodes concerned. For `depths-differ` and `may-starve` the target, then its sources.
        fields: The fields concerned, for `may-conflict`.
        message: What, where, and what to do; it ends with the code in brackets.
    """

    code: str
    severity: Literal["error", "warning"]
    nodes: tuple[str, ...]
    fields: tuple[str, ...]
    message: str


def findings(network: Network, whole: Collection[str]) -> list[Finding]:
    """Return everything there is to say about a graph: errors first, then warnings.

    Args:
        network: The compiled graph.
        whole: The fields of its state schema; see `warnings_of`.
    """
    lost = tuple(unreachable(Reach(network.nodes, network.start)))
    message = f"{lost_text(network.name, lost)} [unreachable-node]"
    errors = [Finding("unreachable-node", "error", lost, (), message)] if lost else []
    return [*errors, *warnings_of(network, whole)]


def lost_text(graph: str, lost: Sequence[str]) -> str:
    """Return what is to be said about unreachable nodes."""
    return (
        f"nothing in graph {graph!r} leads to {', '.join(map(repr, lost))}. Add an edge; or, if a node goes there by a "
        "Command, annotate it with `-> Command[Literal[...]]` or add it with destinations=[...]; or, if a conditional "
        "edge goes there, give its path_map or annotate its path with Literal"
    )


def warnings_of(network: Network, whole: Collection[str]) -> list[Finding]:
    """Return what in a graph may be a mistake, as far as it is certain from the declarations alone.

    `depths-differ` and `may-conflict` follow from what certainly runs together once START, or a node that a conditional
    edge or a command may enter, has run. `may-starve` is claimed of joins that wait for all their sources and whose
    sources are never certain to run together. In graphs so large that not all these beginnings can be looked at in
    linear time (see `Chaining`) less is found, and nothing is claimed of joins.

    Args:
        network: The compiled graph.
        whole: The fields of its state schema. A result annotated with all of several fields, as with the state schema
            itself, does not say which of them it updates, and warns of no conflict.
    """
    edges = [target for node in (network.start, *network.nodes.values()) for target in node.targets]
    joins = any(node.joins for node in network.nodes.values())
    writers = writers_of(network, whole)
    found = list(gotos_and_edges(network))
    if joins or len(writers) > 1 or len(set(edges)) < len(edges):
        found += Outlook(network, writers).warnings()
    return found


def gotos_and_edges(network: Network) -> Iterator[Finding]:
    """Find the nodes whose commands may be meant to replace their edges."""
    for node in network.nodes.values():
        if node.destinations == () or not (node.targets or node.joins):
            continue
        leads = dict.fromkeys((*node.targets, *(join.target for join in node.joins)))
        yield Finding(
            "goto-and-edges",
            "warning",
            (node.name,),
            (),
            f"node {node.name!r} of graph {network.name!r} has edges to {named(leads)} and also returns Commands: "
            "what their goto names runs beside what the edges lead to, not instead of it. Leave the edges out and let "
            "each Command name all that runs next, or leave the goto out [goto-and-edges]",
        )


def writers_of(network: Network, whole: Collection[str]) -> dict[str, frozenset[str]]:
    """Return, for the nodes that say what they update, which fields of these take one update in a superstep."""
    told = {
        node.name: node.may_write
        for node in network.nodes.values()
        if node.may_write and not (len(whole) > 1 and node.may_write.issuperset(whole))
    }
    single = {name for name, field in network.fields.items() if told and takes_one(field.channel)}
    return {name: fields & single for name, fields in told.items() if fields & single}


def takes_one(channel: Channel) -> bool:
    """Return whether two updates in one superstep are an error."""
    if type(channel) is EphemeralValue or type(channel) is UntrackedValue:
        return channel.guard
    return type(channel) is LastValue  # a class of someone's own has a rule of its own


class Outlook:
    """The warnings that follow from what certainly runs.

    Args:
        network: The compiled graph.
        writers: By node, the fields it may update that take one update in a superstep.
    """

    def __init__(self, network: Network, writers: Mapping[str, frozenset[str]]) -> None:
        self.network = network
        self.writers = writers
        self.chaining = Chaining(network.nodes, network.start)
        #: By target.
        self.differing: dict[str, Finding] = {}
        #: By the nodes in conflict: the fields, and when the nodes run together.
        self.conflicts: dict[tuple[str, ...], tuple[dict[str, None], str]] = {}

    @cached_property
    def arrivals(self) -> dict[str, list[tuple[str, ...]]]:
        """What lets each node run: the sources of its edges and of its joins."""
        found: dict[str, list[tuple[str, ...]]] = {}
        for node in self.chaining.nodes.values():
            for target in node.targets:
                found.setdefault(target, []).append((node.name,))
        for join in self.chaining.joins:
            found.setdefault(join.target, []).append(self.sources(join.channel.names))
        return found

    @cached_property
    def loops(self) -> dict[str, int]:
        """The strongly connected component of each node: those of one component lie on one loop."""
        declared, _ = Reach(self.network.nodes, self.network.start).digraph()
        components = enumerate(nx.strongly_connected_components(declared))
        return {name: number for number, component in components for name in component}

    def sources(self, names: Collection[str]) -> tuple[str, ...]:
        """Return nodes in the order they were added."""
        return tuple(sorted(names, key=lambda name: self.chaining.nodes[name].order))

    def warnings(self) -> list[Finding]:
        """Return all warnings, by code and in the order in which the nodes and joins were added."""
        for aftermath in self.chaining:
            for target in aftermath.again:
                self.look_at_depths(target, aftermath)
            if len(self.writers) > 1:
                self.look_at_writers(aftermath)
        differing = [self.differing[name] for name in self.network.nodes if name in self.differing]
        return [*differing, *self.starving(), *self.conflicting()]

    def look_at_depths(self, target: str, aftermath: Aftermath) -> None:
        """Look whether a node is led to in different supersteps by edges that are not its own loop's."""
        if target in self.differing:
            return
        depths, loop = aftermath.depths, self.loops[target]
        self.chaining.charge(len(self.arrivals[target]))
        arriving = [
            (max(depths[name] for name in sources), sources)
            for sources in self.arrivals[target]
            if all(name in depths and self.loops[name] != loop for name in sources)
        ]
        arriving.sort(key=lambda arrival: arrival[0])
        if not arriving or arriving[0][0] == arriving[-1][0]:
            return
        (first, early), (last, late) = arriving[0], arriving[-1]
        names = tuple(dict.fromkeys(name for _, sources in arriving for name in sources))
        remedy = "leave the edge from START out" if START in names else f"make the edges one join of {named(names)}"
        self.differing[target] = Finding(
            "depths-differ",
            "warning",
            (target, *names),
            (),
            f"node {target!r} of graph {self.network.name!r} runs more than once: {led(early)} leads to it "
            f"{when(first + 1, aftermath.root)} and {led(late)} {when(last + 1, aftermath.root)}, and a node runs in "
            f"each superstep in which an edge arrives. To run it once, {remedy}, or add {target!r} with defer=True "
            "[depths-differ]",
        )

    def look_at_writers(self, aftermath: Aftermath) -> None:
        """Look which nodes that run in one superstep may update the same field."""
        self.chaining.charge(len(aftermath.depths))
        together: dict[tuple[int, str], list[str]] = {}
        for name, depth in aftermath.depths.items():
            for written in self.writers.get(name, ()):
                together.setdefault((depth, written), []).append(name)
        for (depth, written), names in together.items():
            if len(names) > 1:
                fields, _ = self.conflicts.setdefault(self.sources(names), ({}, when(depth, aftermath.root)))
                fields[written] = None

    def starving(self) -> Iterator[Finding]:
        """Find the joins whose sources are never certain to run together."""
        if not self.chaining.complete:
            return
        for join in self.chaining.joins:
            if join in self.chaining.settled or join.leads is not None or len(join.channel.names) == 1:
                continue
            sources = self.sources(join.channel.names)
            yield Finding(
                "may-starve",
                "warning",
                (join.target, *sources),
                (),
                f"the join of {named(sources)} into {join.target!r} of graph {self.network.name!r} may starve: it "
                "waits for all of them, and no edges let all of them run together. Where a conditional edge or a "
                "Command chooses only some, the run ends with a StarvedJoinError. Let the join wait only for those "
                f'that run, add_edge([...], {join.target!r}, wait="live"), or lead to all of them by edges '
                "[may-starve]",
            )

    def conflicting(self) -> Iterator[Finding]:
        """Find the nodes that may update one field in one superstep."""
        for names, (fields, moment) in self.conflicts.items():
            written = tuple(name for name in self.network.fields if name in fields)
            yield Finding(
                "may-conflict",
                "warning",
                names,
                written,
                f"nodes {named(names)} of graph {self.network.name!r} may conflict: they run in one superstep, "
                f"{moment}, and by their annotated results each may update {named(written)}, which takes one update "
                "in a superstep. Give the field a reducer, let one node run after the other, or annotate what each "
                "node really returns [may-conflict]",
            )


def named(names: Collection[str]) -> str:
    """Return names for a message, the first few of many."""
    shown = ", ".join(map(repr, list(names)[:NAMES_SHOWN]))
    return f"{shown} and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else shown


def led(sources: Sequence[str]) -> str:
    """Return a name for what leads to a node."""
    if len(sources) > 1:
        return f"the join of {named(sources)}"
    return "START" if sources[0] == START else repr(sources[0])


def when(depth: int, root: str) -> str:
    """Return a time for a message."""
    return f"{depth} superstep{'s' if depth > 1 else ''} after {'START' if root == START else repr(root)}"
