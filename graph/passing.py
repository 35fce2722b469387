"""In which order a pass through a graph comes by its nodes, cycles or not.

The idea is that of natural loops (Aho, Lam, Sethi, Ullman, "Compilers", 9.6): a cycle is entered at its head, and what
leads back there begins the next round. So the head comes first, and of the rest what leads to others before those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

__all__ = ["pass_order"]


def pass_order(graph: nx.DiGraph[str]) -> Iterator[str]:
    """Yield the nodes of a graph in the order in which a pass comes by.

    Where neither of two comes before the other, the one that was added first does; a cycle that is entered at several
    places begins with the one of these that was added first.
    """
    added = {name: place for place, name in enumerate(graph)}
    waiting = [components(graph, graph, added)]
    while waiting:
        part = next(waiting[-1], None)
        if part is None:
            waiting.pop()
            continue
        entries = [name for name in part if any(source not in part for source in graph.predecessors(name))]
        head = min(entries or part, key=added.__getitem__)
        yield head
        if len(part) > 1:
            waiting.append(components(graph, part - {head}, added))


def components(graph: nx.DiGraph[str], names: Collection[str], added: dict[str, int]) -> Iterator[set[str]]:
    """Yield the strongly connected components of a part of a graph, each before those that it leads to."""
    parts = nx.condensation(graph.subgraph(names))
    first = {part: min(added[name] for name in members) for part, members in parts.nodes(data="members")}
    for part in nx.lexicographical_topological_sort(parts, key=first.__getitem__):
        yield parts.nodes[part]["members"]
