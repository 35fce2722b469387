"""Which tasks are due after a barrier. The cost follows what was asked for, never the size of the graph."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pregel.channels.base import MISSING
from pregel.task import Task, make

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pregel.network import Network
    from pregel.node import Join, Node
    from pregel.task import Writes
    from pregel.types import Send

__all__ = ["Due", "plan", "tasks_of", "waking"]

ORDER = attrgetter("order")


class Due:
    """What is due and not yet run: nodes that read the state, and packets. Grows until a plan empties it."""

    __slots__ = ("nodes", "sends")

    def __init__(self, nodes: Iterable[str] = (), sends: Iterable[Send] = ()) -> None:
        #: Names, each once however often it was asked for; a dict for its order.
        self.nodes: dict[str, None] = dict.fromkeys(nodes)
        self.sends: list[Send] = list(sends)

    def names(self) -> set[str]:
        """Return the names of all nodes that are due."""
        return {*self.nodes, *(send.node for send in self.sends)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Due) and (list(self.nodes), self.sends) == (list(other.nodes), other.sends)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return bool(self.nodes or self.sends)


def plan(
    network: Network,
    step: int,
    results: Sequence[Writes],
    fired: Sequence[Join],
    heard: Mapping[Join, frozenset[str]],
    held: Due,
) -> tuple[tuple[Task, ...], Due, tuple[Join, ...]]:
    """Return the tasks of the next superstep, the deferred ones still held back, and the live joins that fire.

    Args:
        network: The graph.
        step: The number of the next superstep.
        results: What the tasks of the last one asked for, in task order.
        fired: The joins that were completed.
        heard: What the other joins have heard.
        held: The deferred nodes and packets that wait.

    Returns:
        The tasks in order: nodes as they were added, then packets by sender and index. Deferred nodes come when
        nothing else is due, those first that can lead to others.
    """
    known = network.nodes
    if len(results) == 1 and not fired and not held and not (network.live and heard):
        goto, sends_of_one = results[0].goto, results[0].sends
        if not sends_of_one:  # a chain: nothing to sort, nothing to hold
            if not goto:
                return (), held, ()
            node = known[goto[0]]
            if len(goto) == 1 and not node.defer:
                return (make(Task, (node, step, 0, MISSING, None)),), held, ()
    nodes: dict[str, None] = {}
    sends: list[Send] = []
    for writes in results:
        for name in writes.goto:
            nodes[name] = None
        if writes.sends:
            sends.extend(writes.sends)
    for join in fired:
        nodes[join.target] = None
    settled: tuple[Join, ...] = ()
    if network.live and heard:
        settled = decided(heard, {*nodes, *(send.node for send in sends), *held.names()})
        nodes.update((join.target, None) for join in settled)
    ready = [known[name] for name in nodes if not known[name].defer]
    packets = [send for send in sends if not known[send.node].defer]
    if len(ready) < len(nodes) or len(packets) < len(sends) or held:
        held = Due(
            [*held.nodes, *(name for name in nodes if known[name].defer)],
            [*held.sends, *(send for send in sends if known[send.node].defer)],
        )
        busy = {*(node.name for node in ready), *(send.node for send in packets)}
        free = released(network, held, busy)
        ready.extend(known[name] for name in held.nodes if name in free)
        packets.extend(send for send in held.sends if send.node in free)
        held = Due(
            (name for name in held.nodes if name not in free), (send for send in held.sends if send.node not in free)
        )
    return tasks_of(network, step, ready, packets), held, settled


def waking(network: Network, results: Sequence[Writes], values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the fields that make nodes due: those that were written, hold a value, and are subscribed to.

    Args:
        network: The graph.
        results: What the tasks of the superstep asked for.
        values: The state after its barrier.
    """
    written = dict.fromkeys(name for writes in results for name, _ in writes.updates if name in network.triggers)
    return tuple(name for name in written if network.fields[name].channel.is_available(values.get(name, MISSING)))


def decided(heard: Mapping[Join, frozenset[str]], due: set[str]) -> tuple[Join, ...]:
    """Return the live joins that fire because nothing due can lead to a source they still miss.

    They are decided one at a time, those first whose target can lead to others; where they lead to each other, in a
    cycle with nothing before it, the one that was added first. What fires is due when the next one is decided.
    """
    pending = sorted((join for join in heard if join.leads is not None), key=ORDER)
    fired: list[Join] = []
    while pending:
        join = next(each for each in pending if foremost(each, heard, pending))
        pending.remove(join)
        if not any(join.leads[name] & due for name in missing(join, heard)):  # type: ignore[index]
            fired.append(join)
            due.add(join.target)
    return tuple(fired)


def foremost(join: Join, heard: Mapping[Join, frozenset[str]], pending: Sequence[Join]) -> bool:
    """Return whether every undecided join that can lead to this one can also be led to by it."""
    return all(awaits(other, join, heard) for other in pending if other is not join and awaits(join, other, heard))


def awaits(join: Join, other: Join, heard: Mapping[Join, frozenset[str]]) -> bool:
    """Return whether another join can lead to a source that this one misses."""
    return any(other.target in join.leads[name] for name in missing(join, heard))  # type: ignore[index]


def missing(join: Join, heard: Mapping[Join, frozenset[str]]) -> frozenset[str]:
    """Return the sources that a join has not heard from."""
    return join.channel.names - heard[join]


def released(network: Network, held: Due, busy: set[str]) -> set[str]:
    """Return the deferred nodes whose turn it is.

    One that is deferred "live" waits for what can lead to it; of those that lead to each other the one goes by which a
    pass through the cycle comes first. Any other waits until nothing else is due, and then for the other deferred nodes
    that can lead to it. Where all wait for each other, in a cycle with nothing before it, the one that was added first
    goes.

    Args:
        network: The graph.
        held: What waits.
        busy: The nodes that are due and do not wait.
    """
    known = network.nodes
    waiting = held.names()
    free = {name for name in waiting if known[name].defer == "live" and is_free(name, network, waiting, busy)}
    if free or busy:
        return free
    free = {name for name in waiting if not known[name].defer_after & waiting}
    if not free and waiting:
        heads = [
            name
            for name in waiting
            if all(name in known[other].defer_after for other in known[name].defer_after & waiting)
        ]
        free = {min(heads, key=lambda name: known[name].order)}
    return free


def is_free(name: str, network: Network, waiting: set[str], busy: set[str]) -> bool:
    """Return whether nothing can lead to a node that is deferred "live" before it has run itself."""
    node = network.nodes[name]
    if node.defer_after & busy:
        return False
    others = (network.nodes[other] for other in node.defer_after & waiting)
    return all(
        name in each.defer_after and (each.defer is True or node.place_in_pass < each.place_in_pass) for each in others
    )


def tasks_of(network: Network, step: int, ready: list[Node], packets: Sequence[Send]) -> tuple[Task, ...]:
    """Return the tasks of a step in their order of application."""
    ready.sort(key=ORDER)
    first = len(ready)
    known = network.nodes
    pulled = [make(Task, (node, step, index, MISSING, None)) for index, node in enumerate(ready)]
    pushed = [make(Task, (known[send.node], step, first + index, send.arg, None)) for index, send in enumerate(packets)]
    return (*pulled, *pushed)
