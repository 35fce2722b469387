"""What a live join must know: from where each of its sources can still be reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pregel.graph.analysis import Reach

__all__ = ["leads_to"]


def leads_to(reach: Reach, sources: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return for each source the nodes whose run can lead to it, itself among them.

    A node that may go anywhere leads to every source, and so does whatever leads to such a node.
    """
    graph, anywhere = reach.digraph()
    everywhere = set(anywhere)
    for node in anywhere:
        everywhere |= nx.ancestors(graph, node)
    return {source: frozenset({source, *nx.ancestors(graph, source), *everywhere}) for source in sources}
