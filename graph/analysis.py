"""What can be said about a graph before it runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import networkx as nx

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


def deferred_order(nodes: Mapping[str, Node]) -> Mapping[str, Node]:
    """Return the nodes with each deferred one told which other deferred ones can lead to it, and so run first."""
    deferred = [node for node in nodes.values() if node.defer]
    if len(deferred) < 2:  # noqa: PLR2004 - a pair is needed for one to come before the other
        return nodes
    graph, _ = Reach(nodes, deferred[0]).digraph()
    after = {node.name: nx.descendants(graph, node.name) for node in deferred}
    ordered = dict(nodes)
    for node in deferred:
        before = frozenset(other.name for other in deferred if other is not node and node.name in after[other.name])
        ordered[node.name] = replace(node, defer_after=before)
    return ordered
