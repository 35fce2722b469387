"""Which tasks are due after a barrier. The cost follows what was asked for, never the size of the graph."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from pregel.channels.base import MISSING
from pregel.task import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pregel.network import Network
    from pregel.node import Join, Node
    from pregel.task import Writes
    from pregel.types import Send

__all__ = ["Due", "plan"]

ORDER = attrgetter("order")


class Due:
    """What is due and not yet run: nodes that read the state, and packets. Grows until a plan empties it."""

    __slots__ = ("nodes", "sends")

    def __init__(self, nodes: Iterable[str] = (), sends: Iterable[Send] = ()) -> None:
        #: Names, each once however often it was asked for; a dict for its order.
        self.nodes: dict[str, None] = dict.fromkeys(nodes)
        self.sends: list[Send] = list(sends)

    def __bool__(self) -> bool:
        return bool(self.nodes or self.sends)


def plan(
    network: Network, step: int, results: Sequence[Writes], fired: Sequence[Join], held: Due
) -> tuple[tuple[Task, ...], Due]:
    """Return the tasks of the next superstep and the deferred ones that are still held back.

    Args:
        network: The graph.
        step: The number of the next superstep.
        results: What the tasks of the last one asked for, in task order.
        fired: The joins that were completed.
        held: The deferred nodes and packets that wait.

    Returns:
        The tasks in order: nodes as they were added, then packets by sender and index. Deferred nodes come when
        nothing else is due, those first that can lead to others.
    """
    nodes: dict[str, None] = {}
    sends: list[Send] = []
    for writes in results:
        for name in writes.goto:
            nodes[name] = None
        if writes.sends:
            sends.extend(writes.sends)
    for join in fired:
        nodes[join.target] = None
    known = network.nodes
    if len(nodes) == 1 and not sends and not held:  # a chain: nothing to sort, nothing to hold
        node = known[next(iter(nodes))]
        if not node.defer:
            return (Task(node, step, 0),), held
    ready = [known[name] for name in nodes if not known[name].defer]
    packets = [send for send in sends if not known[send.node].defer]
    if len(ready) < len(nodes) or len(packets) < len(sends) or held:
        held = Due(
            [*held.nodes, *(name for name in nodes if known[name].defer)],
            [*held.sends, *(send for send in sends if known[send.node].defer)],
        )
        if not ready and not packets:
            ready, packets, held = released(network, held)
    return tasks_of(network, step, ready, packets), held


def released(network: Network, held: Due) -> tuple[list[Node], list[Send], Due]:
    """Return the deferred nodes and packets whose turn it is, and the rest.

    A deferred node waits for the other deferred nodes that can lead to it. In a cycle all wait for each other; then
    the one that was added first goes.
    """
    known = network.nodes
    waiting = {*held.nodes, *(send.node for send in held.sends)}
    free = {name for name in waiting if not known[name].defer_after & waiting}
    if not free and waiting:
        free = {min(waiting, key=lambda name: known[name].order)}
    return (
        [known[name] for name in held.nodes if name in free],
        [send for send in held.sends if send.node in free],
        Due((name for name in held.nodes if name not in free), (send for send in held.sends if send.node not in free)),
    )


def tasks_of(network: Network, step: int, ready: list[Node], packets: Sequence[Send]) -> tuple[Task, ...]:
    """Return the tasks of a step in their order of application."""
    ready.sort(key=ORDER)
    first = len(ready)
    known = network.nodes
    pulled = [Task(node, step, index, MISSING) for index, node in enumerate(ready)]
    pushed = [Task(known[send.node], step, first + index, send.arg) for index, send in enumerate(packets)]
    return (*pulled, *pushed)
