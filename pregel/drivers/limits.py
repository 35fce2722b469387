"""How many tasks may run at once: of one outermost run with the runs inside it, and of each node.

Theory of operation. A task runs when it has its turn. A turn takes gates, one after the other: that of its node, that
of its run where its graph was given a smaller number than the run around it, and last a slot, of which the outermost
run has `max_concurrency`. A task that runs a graph lends its slot to that graph's tasks, one after the other. So every
run has a slot to go on with. Where tasks would wait for each other for ever (`pregel.drivers.circles`), one of them
goes past the gate of its node: those that it would wait for do nothing themselves, but for what is inside them.

Who waits is called back, in whatever thread the turn comes: drivers block no thread for it, but where a single task
runs in the thread of its run.
"""

from __future__ import annotations

from collections import deque
from contextvars import ContextVar
from threading import Lock, RLock
from typing import TYPE_CHECKING, Final

from pregel.drivers.circles import closes_none, in_circles, is_served_soon

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pregel.node import Node

__all__ = ["TURN", "Limits", "Turn"]

#: The turn of the task that runs the current code, or of a task around it.
TURN: Final[ContextVar[Turn | None]] = ContextVar("pregel_turn", default=None)


class Gate:
    """Lets so many turns pass at once, in the order in which they come. It is used under the lock of its run only."""

    __slots__ = ("free", "held", "most", "queue")

    def __init__(self, most: int) -> None:
        self.most = most
        self.free = most
        #: The turns that have passed, those with a slot that is lent to them among them.
        self.held: set[Turn] = set()
        #: Turns that wait; one that has passed on another way, or has ended, is taken for gone.
        self.queue: deque[Turn] = deque()


class Limits:
    """The gates of one run.

    Args:
        most: The `max_concurrency` of its config.
        outer: The gates of the run inside whose task it takes place.
        around: That task's turn, or that of a task around it.
    """

    __slots__ = ("around", "live", "lock", "nodes", "own", "slots", "waiting")

    def __init__(self, most: int | None, outer: Limits | None = None, around: Turn | None = None) -> None:
        # Reentrant: the garbage collector may close a run that was left, and so end turns, at any moment.
        self.lock: RLock = RLock() if outer is None else outer.lock
        self.nodes: dict[Node, Gate] = {} if outer is None else outer.nodes
        self.slots: Gate | None = None if outer is None else outer.slots
        #: All turns that wait, in the outermost run and those inside it, in the order in which they began to.
        self.waiting: dict[Turn, None] = {} if outer is None else outer.waiting
        #: The gate of a run whose graph was given a smaller number than the run around it.
        self.own: Gate | None = None
        self.around = around
        #: The turns that were asked for and have not ended, in that order; None when there are to be no more.
        self.live: dict[Turn, None] | None = {}
        if most is not None:
            if self.slots is None:
                self.slots = Gate(most)
            elif most < self.slots.most:
                self.own = Gate(most)

    def turn(self, node: Node) -> Turn:
        """Return the turn of a task of this node, which is still to be asked for."""
        gates = [gate for gate in (self.slots, self.own) if gate is not None]
        if node.max_concurrency is not None and not self.is_inside(node):
            with self.lock:
                gates.append(self.nodes.setdefault(node, Gate(node.max_concurrency)))
        return Turn(self, node, gates)

    def close(self) -> None:
        """End all turns of the run, for its tasks do not count any more, although code of them may never end.

        Those that wait may go, to find that out.
        """
        with self.lock:
            turns, self.live = [*(self.live or ())], None
            for turn in sorted(turns, key=lambda turn: not turn.left):  # who waits is no heir of those that have gates
                waits = bool(turn.left)
                turn.end()
                if waits:
                    turn.go()

    def is_inside(self, node: Node) -> bool:
        """Return whether the run takes place inside a task of this node, which would wait for itself."""
        turn = self.around
        while turn is not None:
            if turn.node is node:
                return True
            turn = turn.around
        return False


class Turn:
    """The permission of one task to run. Ask for it once, and end it in any case.

    Args:
        limits: The gates of its run.
        node: The task's node.
        gates: Those it has to pass, the last one first.
    """

    __slots__ = (
        "around",
        "borrows",
        "go",
        "held",
        "inside",
        "left",
        "lender",
        "lends",
        "limits",
        "lock",
        "node",
        "over",
        "queue",
        "slots",
    )

    def __init__(self, limits: Limits, node: Node, gates: list[Gate]) -> None:
        self.limits = limits
        self.lock = limits.lock
        self.node = node
        self.slots = limits.slots
        self.around = around = limits.around
        #: The gates it has passed, and those that are left.
        self.held: list[Gate] = []
        self.left = gates
        self.go: Callable[[], None] | None = None
        self.over = False
        #: How many turns wait in the runs inside the task.
        self.inside = 0
        #: The turn whose slot it may borrow, and whether it has. None where that one's run has no such slots.
        self.lender = around if around is not None and around.slots is self.slots else None
        self.borrows = False
        #: Whether its slot is lent to a task inside, and who waits for it there.
        self.lends = False
        self.queue: deque[Turn] = deque()

    def ask(self, go: Callable[[], None]) -> bool:
        """Return whether the task may run now.

        Args:
            go: If not, this is called when it may, in any thread and under a lock: it must do next to nothing, and not
                raise. It is not called once `end` was.
        """
        with self.lock:
            self.go = go
            if self.limits.live is None:
                return True
            self.limits.live[self] = None
            return self.advance()

    def wait(self) -> None:
        """Ask, and hold up this thread until the task may run.

        A thread that has an event loop is not held up, since those that are waited for may need the loop.
        """
        came = Lock()
        came.acquire()
        if self.ask(came.release):
            return
        from pregel.drivers.loops import loop_is_running  # noqa: PLC0415 - most runs never wait

        if not loop_is_running():
            came.acquire()

    def end(self) -> None:
        """Give back what it holds, and wait for nothing more. A second time does nothing."""
        with self.lock:
            if self.over:
                return
            self.over = True
            self.mark(waits=False)
            if self.limits.live is not None:
                self.limits.live.pop(self, None)
            for gate in self.held:
                gate.held.discard(self)
            heirs = [self.pass_on(gate) for gate in self.held if not (gate is self.slots and self.lends)]
            for heir in heirs:
                if heir is not None and heir.advance():
                    heir.go()  # type: ignore[misc]  # who waits has said what to call

    def advance(self) -> bool:
        """Pass the gates that are left, as far as they let it; return whether it has passed all."""
        while self.left:
            gate, lender = self.left[-1], self.lender
            if gate is self.slots and lender is not None and not (lender.lends or lender.over):
                lender.lends = self.borrows = True
            elif gate.free:
                gate.free -= 1
            else:
                free_of_circles = closes_none(self, gate.queue)
                gate.queue.append(self)
                if gate is self.slots and lender is not None:
                    lender.queue.append(self)
                self.mark(waits=True)
                return not free_of_circles and self.break_circle()
            self.pass_gate()
        self.mark(waits=False)
        return True

    def pass_gate(self) -> None:
        """Take the place at the next gate that is there for it."""
        gate = self.left.pop()
        self.held.append(gate)
        gate.held.add(self)

    def mark(self, *, waits: bool) -> None:
        """Write down whether it waits."""
        waiting = self.limits.waiting
        if waits == (self in waiting):
            return
        if waits:
            waiting[self] = None
        else:
            del waiting[self]
        for turn in self.outwards():
            turn.inside += 1 if waits else -1

    def outwards(self) -> Iterator[Turn]:
        """Yield the turns of the tasks around, the innermost first."""
        turn = self.around
        while turn is not None:
            yield turn
            turn = turn.around

    def break_circle(self) -> bool:
        """Let a task go past the gate of its node if this one has closed a circle; return whether it may run now."""
        nodes = self.limits.nodes
        if not nodes or is_served_soon(self):
            return False
        stuck = in_circles(self.limits.waiting)
        for turn in (self, *self.limits.waiting):
            if turn in stuck and nodes.get(turn.node) is turn.left[-1]:
                turn.left.pop()  # and takes no place there
                if turn.advance() and turn is not self:
                    turn.go()  # type: ignore[misc]  # who waits has said what to call
                break
        return not self.left

    def pass_on(self, gate: Gate) -> Turn | None:
        """Let the next turn through a gate that this one has passed, and return it.

        A borrowed slot goes to the siblings of the borrower and then back, or to anybody if its lender is over.
        """
        lender = self.lender if self.borrows and gate is self.slots else None
        if lender is not None and lender.over:
            lender = None
        queue = gate.queue if lender is None else lender.queue
        while queue:
            heir = queue.popleft()
            if not heir.over and heir.left and heir.left[-1] is gate:
                heir.borrows = lender is not None
                heir.pass_gate()
                return heir
        if lender is None:
            gate.free += 1
        else:
            lender.lends = False
        return None
