"""What can be known of a flow graph before it runs: where its links lead, what can't run, and what its keys say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import networkx as nx

from pregel.errors import nearest
from pregel.graph.flow.branches import check_branches
from pregel.graph.flow.errors import ContextKeyError, FlowDefinitionError
from pregel.graph.flow.keys import declared_instead
from pregel.graph.flow.templates import never_reached
from pregel.types import END

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pregel.graph.flow.flowgraph import FlowGraph
    from pregel.graph.flow.keys import Key, KeySpace

__all__ = ["check"]


def check(graph: FlowGraph) -> dict[str, frozenset[str]]:
    """Check a graph, and return for each loop the nodes whose links end a pass of it.

    Raises:
        FlowDefinitionError: It can't mean anything; the message says what to do.
    """
    where = f"graph {graph.name!r}"
    if not graph.records:
        raise FlowDefinitionError(f"{where} has no nodes: add_activity(name, function)")
    links = linked(graph)
    start = next(iter(graph.records))
    found = nx.descendants(links, start)
    lost = [name for name in graph.records if name != start and name not in found]
    if lost:
        raise FlowDefinitionError(
            f"nothing in {where} leads to {', '.join(map(repr, lost))} from {start!r}, where it begins because it was "
            "added first: link(source, target), or leave them out"
        )
    for record in graph.records.values():
        if record.kind == "agent" and record.prompt is None and not record.action.has_prompt:
            raise FlowDefinitionError(
                f"agent {record.name!r} of {where} has nothing to ask its model: add_agent(agent, prompt='...'). What "
                "is in the context does not reach it by itself"
            )
        if record.kind == "parallel" and not record.targets:
            raise FlowDefinitionError(f"parallel gateway {record.name!r} of {where} leads nowhere: link it")
    back = passes(graph, links, start)
    if graph.keys is not None:
        check_keys(graph, graph.keys)
    check_branches(graph, links, back)
    return back


def linked(graph: FlowGraph) -> nx.DiGraph[str]:
    """Return nodes and links; END is a node.

    Raises:
        FlowDefinitionError: A link leads to an unknown node.
    """
    links: nx.DiGraph[str] = nx.DiGraph()
    links.add_nodes_from((*graph.records, END))
    for record in graph.records.values():
        for target in record.targets:
            if target not in links:
                raise FlowDefinitionError(
                    f"{record.where(graph.name)} leads to {target!r}, which is no node.{nearest(target, graph.records)}"
                )
            links.add_edge(record.name, target)
        if not record.targets:
            links.add_edge(record.name, END)
    return links


def passes(graph: FlowGraph, links: nx.DiGraph[str], start: str) -> dict[str, frozenset[str]]:
    """Return for each loop the nodes whose links end a pass of it: those that only the loop leads to.

    Other links into a loop enter it anew, such as that of a loop around it.

    Raises:
        FlowDefinitionError: No pass of a loop ever ends.
    """
    loops = [record for record in graph.records.values() if record.kind == "loop"]
    if not loops:
        return {}
    dominator = nx.immediate_dominators(links, start)
    found = {}
    for loop in loops:
        back = frozenset(
            source for source in links.predecessors(loop.name) if loop.name in dominators(source, dominator, start)
        )
        if not back:
            raise FlowDefinitionError(
                f"nothing leads from the body {loop.targets[0]!r} of loop {loop.name!r} of graph {graph.name!r} back "
                f"to it, so it would end with the first item: link the last node of a pass to {loop.name!r}"
            )
        found[loop.name] = back
    return found


def check_keys(graph: FlowGraph, keys: type[KeySpace]) -> None:
    """Check what the nodes say of keys against the declared ones.

    Raises:
        FlowDefinitionError: A key is unknown, or read and never written, or a template can't reach into it.
        ContextKeyError: A node writes a key whose writers it is none of, or that is given and set once.
    """
    written = {name for name, key in keys.keys.items() if key.given or key.writers}
    for record in graph.records.values():
        where = record.where(graph.name)
        for name in record.writes or ():
            key = find(keys, name, f"{where} writes")
            if key.writers and record.name not in key.writers:
                raise ContextKeyError(
                    f"{where} writes {name!r}, whose writers are {', '.join(sorted(key.writers))}: add it there, or "
                    "let it write another key"
                )
            if key.given and key.once:
                raise ContextKeyError(
                    f"{where} writes {name!r}, which is given and set once, so no node may: let it write another key"
                )
            written.add(name)
    open_ended = any(record.kind == "activity" and record.writes is None for record in graph.records.values())
    for record in graph.records.values():
        where = record.where(graph.name)
        for name in record.reads or ():
            key = find(keys, rooted(name, keys), f"{where} reads")
            if record.kind == "agent":
                check_path(name, key, where)
            if str(key) not in written and not open_ended:
                raise FlowDefinitionError(
                    f"{where} reads {str(key)!r}, which nothing writes: declare Key(..., given=True) if the caller "
                    "sets it, its writers if they belong to another graph, or say writes=[...] where it is written"
                )


def check_path(name: str, key: Key[Any], where: str) -> None:
    """Check that a name in a template can lead anywhere from the key that it begins with.

    Raises:
        FlowDefinitionError: It can't, by the key's type.
    """
    rest = name[len(key) + 1 :]
    why = never_reached(key.kind, str(key), rest.split(".")) if rest else None
    if why is not None:
        raise FlowDefinitionError(f"{where} reads {'#{' + name + '}'!r}, and {why}")


def find(keys: type[KeySpace], name: str, where: str) -> Key[Any]:
    """Return a key's contract.

    Raises:
        FlowDefinitionError: There is none.
    """
    key = keys.keys.get(name)
    if key is None:
        raise FlowDefinitionError(
            f"{where} {name!r}, which {keys.__name__} does not declare.{declared_instead(keys, name)}"
        )
    return key


def rooted(name: str, keys: type[KeySpace]) -> str:
    """Return the key that a name in a template begins with: the longest that is declared, or the name itself."""
    labels = name.split(".")
    for length in range(len(labels), 0, -1):
        root = ".".join(labels[:length])
        if root in keys.keys:
            return root
    return name


def dominators(node: str, immediate: dict[str, str], start: str) -> Iterator[str]:
    """Yield the nodes that every way from the start to a node passes, itself among them."""
    while True:
        yield node
        if node == start or immediate.get(node, node) == node:
            return
        node = immediate[node]
