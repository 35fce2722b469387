"""What certainly runs once a node has run, and how many supersteps later.

Edges always lead on, and a join does once all its sources have run; what a conditional edge or a command will choose is
not known. So certainty begins anew at each node that one of them may enter, a root, and spreads from there along edges
and joins. A node has the depth of the first edge that arrives. When a deferred node runs depends on everything else
that is due: it is certain, but it and what follows it have no depth. What follows it has one counted from it: it is a
root as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pregel.node import Join, Node

__all__ = ["Aftermath", "Chaining"]

#: Nodes and edges that may be visited, over all roots together: so many for each of the graph's, and some for free.
VISITS_EACH = 25
VISITS_FREE = 100_000


@dataclass(slots=True)
class Aftermath:
    """What certainly runs once `root` has run."""

    root: str
    #: By node: in how many supersteps after the root it runs first, where that is certain.
    depths: dict[str, int]
    #: Nodes that run at some time.
    later: dict[str, None] = field(default_factory=dict)
    #: Nodes that an edge leads to in another superstep than the first one; the root is none of them.
    again: dict[str, None] = field(default_factory=dict)


class Chaining:
    """Forward chaining from every root of a graph. Iterating yields the aftermath of one root after the other.

    A root that certainly runs at a known depth after another one is left out, for what it leads to is in the other
    one's aftermath. The work is bounded by a budget linear in nodes and edges: when it is used up, the roots that are
    left are not looked at, and `complete` is False.

    Args:
        nodes: The nodes of the graph, in the order they were added.
        start: Its virtual start.
    """

    def __init__(self, nodes: Mapping[str, Node], start: Node) -> None:
        self.nodes = {start.name: start, **nodes}
        joins = {join for node in nodes.values() for join in node.joins}
        #: In the order they were added.
        self.joins = sorted(joins, key=lambda join: join.order)
        #: The joins that certainly fire once some root has run.
        self.settled: set[Join] = set()
        #: Whether every root was looked at.
        self.complete = True
        self._roots = dict.fromkeys((start.name, *entered(self.nodes)))
        edges = len(self._roots) + sum(len(node.targets) + len(node.joins) for node in self.nodes.values())
        self._visits = VISITS_EACH * (len(self.nodes) + edges) + VISITS_FREE

    def __iter__(self) -> Iterator[Aftermath]:
        covered: set[str] = set()
        yield from self._aftermaths(self._roots, covered)
        # What follows a join that may starve runs if it does not.
        yield from self._aftermaths({join.target: None for join in self.joins if join not in self.settled}, covered)

    def charge(self, visits: int) -> None:
        """Count work that was done for an aftermath."""
        self._visits -= visits

    def _aftermaths(self, roots: Mapping[str, None], covered: set[str]) -> Iterator[Aftermath]:
        waiting = list(roots)
        for root in waiting:
            if root in covered:
                continue
            if self._visits <= 0:
                self.complete = False
                return
            aftermath = self._follow(root)
            covered.update(aftermath.depths)
            waiting.extend(aftermath.later)
            yield aftermath

    def _follow(self, root: str) -> Aftermath:
        """Return what certainly runs once a node has run: level by level, then what has no depth."""
        nodes, depths = self.nodes, {root: 0}
        aftermath = Aftermath(root, depths)
        later, again = aftermath.later, aftermath.again
        heard: dict[Join, int] = {}
        level, depth, visits = [root], 0, 0
        while level:
            depth += 1
            following: list[str] = []
            for name in level:
                node = nodes[name]
                leads = [*node.targets, *self._fired(node, heard)] if node.joins else node.targets
                visits += 1 + len(leads) + len(node.joins)
                for target in leads:
                    first = depths.get(target)
                    if first is not None:
                        if first != depth and target != root:
                            again[target] = None
                    elif nodes[target].defer:
                        later[target] = None
                    else:
                        depths[target] = depth
                        following.append(target)
            level = following
        later.update((join.target, None) for join in heard if join.leads is not None and join.target not in depths)
        waiting = list(later)
        for name in waiting:
            node = nodes[name]
            fired = self._fired(node, heard)
            live = (join.target for join in node.joins if join.leads is not None)
            visits += 1 + len(node.targets) + len(node.joins)
            for target in (*node.targets, *fired, *live):
                if target not in depths and target not in later:
                    later[target] = None
                    waiting.append(target)
        self._visits -= visits
        return aftermath

    def _fired(self, node: Node, heard: dict[Join, int]) -> list[str]:
        """Let the joins hear a node, which they do once; return the targets of those that have heard all sources."""
        fired = []
        for join in node.joins:
            heard[join] = count = heard.get(join, 0) + 1
            if count == len(join.channel.names):
                self.settled.add(join)
                fired.append(join.target)
        return fired


def entered(nodes: Mapping[str, Node]) -> Iterable[str]:
    """Return the nodes that a conditional edge or a command may enter; all, if one of these does not say where to."""
    found: dict[str, None] = {}
    for node in nodes.values():
        for choice in node.choices:
            if choice is None:
                return nodes
            found.update(dict.fromkeys(choice))
    return [name for name in found if name in nodes]
