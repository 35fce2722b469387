"""What can be said about a graph before it runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import networkx as nx

from pregel.graph.passing import pass_order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pregel.node import Node

__all__ = ["Reach", "deferred_order", "unreachable"]


@dataclass(frozen=True, slots=True)
class Reach:
    """The nodes of a graph and its virtual start."""

    nodes: Mapping[str, Node]
    start: Node

    def digraph(self) -> tuple[nx.DiGraph[str], frozenset[str]]:
        """Return the declared edges, and the nodes that may go anywhere because they do not say where they go."""
        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from((self.start.name, *self.nodes))
        anywhere = set()
        for node in (self.start, *self.nodes.values()):
            graph.add_edges_from((node.name, target) for target in node.targets)
            graph.add_edges_from((node.name, join.target) for join in node.joins)
            for choice in node.choices:
                graph.add_edges_from((node.name, target) for target in choice or () if target in self.nodes)
            if None in node.choices:
                anywhere.add(node.name)
        return graph, frozenset(anywhere)


def unreachable(reach: Reach) -> list[str]:
    """Return the nodes that no path from START leads to, in the order they were added."""
    graph, anywhere = reach.digraph()
    reached = {reach.start.name, *nx.descendants(graph, reach.start.name)}
    if reached & anywhere:
        return []
    return [name for name in reach.nodes if name not in reached]


def deferred_order(nodes: Mapping[str, Node], start: Node) -> Mapping[str, Node]:
    """Return the nodes with each deferred one told what runs first: other deferred nodes that can lead to it.

    One that is deferred "live" is told of all nodes that can, and so of those that may go anywhere.

    Args:
        nodes: The nodes, in the order they were added.
        start: The virtual start.
    """
    deferred = [node for node in nodes.values() if node.defer]
    if len(deferred) < 2 and not any(node.defer == "live" for node in deferred):  # noqa: PLR2004 - a pair, to have order
        return nodes
    graph, anywhere = Reach(nodes, start).digraph()
    names = {node.name for node in deferred}
    everywhere = anywhere.union(*(nx.ancestors(graph, name) for name in anywhere))
    places = {name: place for place, name in enumerate(pass_order(graph))}
    ordered = dict(nodes)
    for node in deferred:
        before = frozenset(nx.ancestors(graph, node.name))
        before = before | everywhere if node.defer == "live" else before & names
        ordered[node.name] = replace(node, defer_after=before - {node.name}, place_in_pass=places[node.name])
    return ordered
