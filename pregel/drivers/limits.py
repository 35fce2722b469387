"""How many tasks may run at once: of one outermost run with the runs inside it, and of each node.

Theory of operation. A task runs when it has its turn. A turn takes gates, one after the other: that of its node, that
of its run where its graph was given a smaller number than the run around it, and last a slot, of which the outermost
run has `max_concurrency`. A task that runs a graph lends its slot to that graph's tasks, one after the other. So every
run has a slot to go on with, and runs inside each other never wait in a circle: a slot is held by a task that does
something, or lent by one that waits for such a task.

Who waits is called back, in whatever thread the turn comes: drivers block no thread for it, but where a single task
runs in the thread of its run.
"""

from __future__ import annotations

from collections import deque
from contextvars import ContextVar
from threading import Lock, RLock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from pregel.node import Node

__all__ = ["TURN", "Limits", "Turn"]

#: The turn of the task that runs the current code, or of a task around it.
TURN: Final[ContextVar[Turn | None]] = ContextVar("pregel_turn", default=None)


class Gate:
    """Lets so many turns pass at once, in the order in which they come. It is used under the lock of its run only."""

    __slots__ = ("free", "most", "queue")

    def __init__(self, most: int) -> None:
        self.most = most
        self.free = most
        #: Turns that wait; one that has passed on another way, or has ended, is taken for gone.
        self.queue: deque[Turn] = deque()


class Limits:
    """The gates of one run.

    Args:
        most: The `max_concurrency` of its config.
        outer: The gates of the run inside whose task it takes place.
        around: That task's turn, or that of a task around it.
    """

    __slots__ = ("around", "lock", "nodes", "own", "slots")

    def __init__(self, most: int | None, outer: Limits | None = None, around: Turn | None = None) -> None:
        # Reentrant: the garbage collector may close a run that was left, and so end turns, at any moment.
        self.lock: RLock = RLock() if outer is None else outer.lock
        self.nodes: dict[Node, Gate] = {} if outer is None else outer.nodes
        self.slots: Gate | None = None if outer is None else outer.slots
        #: The gate of a run whose graph was given a smaller number than the run around it.
        self.own: Gate | None = None
        self.around = around
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

    __slots__ = ("around", "borrows", "go", "held", "left", "lender", "lends", "lock", "node", "over", "queue", "slots")

    def __init__(self, limits: Limits, node: Node, gates: list[Gate]) -> None:
        self.lock = limits.lock
        self.node = node
        self.slots = limits.slots
        self.around = around = limits.around
        #: The gates it has passed, and those that are left.
        self.held: list[Gate] = []
        self.left = gates
        self.go: Callable[[], None] | None = None
        self.over = False
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
                gate.queue.append(self)
                if gate is self.slots and lender is not None:
                    lender.queue.append(self)
                return False
            self.held.append(self.left.pop())
        return True

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
                heir.held.append(heir.left.pop())
                return heir
        if lender is None:
            gate.free += 1
        else:
            lender.lends = False
        return None
