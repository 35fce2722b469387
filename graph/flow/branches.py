"""What of a flow may run side by side: the branches of its gateways, where they meet, and what they write."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import TYPE_CHECKING, Final

import networkx as nx

from pregel.graph.flow.errors import FlowDefinitionError
from pregel.types import END

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pregel.graph.flow.flowgraph import FlowGraph
    from pregel.graph.flow.parts import Record

__all__ = ["check_branches"]

#: The kinds of gateways that take several links.
FORKS: Final = frozenset({"parallel", "inclusive"})


def check_branches(graph: FlowGraph, links: nx.DiGraph[str], back: Mapping[str, frozenset[str]]) -> None:
    """Check that branches meet where something waits for all of them, and that no two of them write one key.

    Args:
        graph: The flow graph.
        links: Its nodes and links, with END.
        back: The nodes whose links end a pass, by loop.

    Raises:
        FlowDefinitionError: They do not; the message names the nodes and what to do.
    """
    forks = [record for record in graph.records.values() if record.kind in FORKS]
    if not forks:
        return
    shared = shared_keys(graph)
    meeting = nx.immediate_dominators(links.reverse(copy=False), END)
    for fork in forks:
        region = Region(fork, links, meeting.get(fork.name, END))
        for name in region.meetings(graph.records, back):
            raise FlowDefinitionError(
                f"branches of {fork.name!r} of graph {graph.name!r} meet at {graph.records[name].kind} {name!r}, which "
                "would run once or more often by the lengths of the branches: let them meet at a join, "
                f"add_join('...', to={name!r})"
            )
        for key, names in shared.items():
            for one, other in combinations(names, 2):
                if region.side_by_side(one, other):
                    raise FlowDefinitionError(
                        f"nodes {one!r} and {other!r} of graph {graph.name!r} both write {key!r}, and {fork.name!r} "
                        f"lets them run side by side: give each a key of its own and read both after the join, or "
                        f"declare Key(..., {key!r}, reducer=...) and ctx.add"
                    )


def shared_keys(graph: FlowGraph) -> dict[str, list[str]]:
    """Return the keys without a reducer that several nodes say they write, with the nodes."""
    folded = {each.key for each in graph.folded()}
    writers: dict[str, list[str]] = defaultdict(list)
    for record in graph.records.values():
        for name in record.writes or ():
            if name not in folded:
                writers[name].append(record.name)
    return {key: names for key, names in writers.items() if len(names) > 1}


class Region:
    """What the branches of a gateway lead through, up to where all ways from it meet.

    Args:
        fork: The gateway.
        links: The nodes and links of the flow.
        limit: Where all ways from it meet; END if they never do.
    """

    def __init__(self, fork: Record, links: nx.DiGraph[str], limit: str) -> None:
        self.links = links
        self.limit = limit
        self.inside: nx.DiGraph[str] = links.subgraph(node for node in links if node not in {fork.name, limit, END})
        #: The branches that lead to a node, as bits; and the branches that begin with it.
        self.branches: dict[str, int] = defaultdict(int)
        self.begun: dict[str, int] = {}
        for place, target in enumerate(dict.fromkeys(fork.targets)):
            self.begun[target] = 1 << place
            if target in self.inside:
                for node in (target, *nx.descendants(self.inside, target)):
                    self.branches[node] |= 1 << place

    def meetings(self, records: Mapping[str, Record], back: Mapping[str, frozenset[str]]) -> Iterator[str]:
        """Yield the nodes where branches meet, and nothing waits for them."""
        for name in (*self.branches, self.limit):
            if name == END or records[name].kind == "join":
                continue
            sources = [each for each in self.links.predecessors(name) if each not in back.get(name, ())]
            entering = [self.branches[each] for each in sources if each in self.branches]
            entering += [self.begun[name]] if name in self.begun else []
            together = 0
            for branches in entering:
                together |= branches
            if together and together not in entering:  # none of the ways there has them all behind it
                yield name

    def side_by_side(self, one: str, other: str) -> bool:
        """Return whether two nodes are in different branches, and neither comes after the other."""
        first, second = self.branches.get(one, 0), self.branches.get(other, 0)
        if not first or not second or (first == second and first.bit_count() == 1):
            return False
        return not nx.has_path(self.inside, one, other) and not nx.has_path(self.inside, other, one)
