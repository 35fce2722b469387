"""Which tasks wait for each other for ever, so that no turn would come to them.

Theory of operation. Slots alone never make tasks wait in a circle: one is held by a task that does something, or lent
by one that waits for such a task. Gates of nodes can, where tasks of two limited nodes have each other inside, or a
graph runs itself beside a limited node. Who closes such a circle is the last to wait, and finds it here by what waits
for what: a turn for those that hold what it needs, and its task for those inside it. All of it is asked under the lock
of the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Collection, Iterator

    from pregel.drivers.limits import Turn

__all__ = ["closes_none", "in_circles", "is_served_soon"]


def givers(turn: Turn) -> Iterator[Turn]:
    """Yield the turns that may give a turn what it waits for, when they end."""
    gate = turn.left[-1]
    for other in gate.held:
        lender = other.lender if other.borrows and gate is turn.slots else None
        if lender is None or lender is turn.lender or lender.over:  # else it gives the slot back to another one
            yield other


def closes_none(turn: Turn, queue: deque[Turn]) -> bool:
    """Return whether a turn that is about to wait closes no circle that was not closed before: a quick look.

    Others wait for what a turn holds, or for the task around it. So one that holds nothing closes none in the outermost
    run, and none either where the last one in the queue waits for the same from the same run, which has closed it then.
    """
    if turn.held:
        return False
    if not queue:
        return turn.around is None
    last = queue[-1]
    return last.around is turn.around and not last.over and bool(last.left) and last.left[-1] is turn.left[-1]


def is_served_soon(turn: Turn) -> bool:
    """Return whether a turn waits for a task that waits for nothing inside it, which is so for most: a quick look."""
    return any(not giver.inside and (not giver.left or is_served_soon(giver)) for giver in givers(turn))


def in_circles(waiting: Collection[Turn]) -> set[Turn]:
    """Return the turns that wait for ever, since they wait for each other or for tasks around these.

    Args:
        waiting: All turns that wait.
    """
    left = {turn for turn in waiting if turn.left}
    while True:
        held_up = left.union(*(turn.outwards() for turn in left))
        served = {turn for turn in left if any(giver not in held_up for giver in givers(turn))}
        if not served:
            return left
        left -= served
