"""Worker threads for the tasks of a superstep, where not all of them may run at once."""

from __future__ import annotations

from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any

from pregel.drivers import workers
from pregel.drivers.crew import PATIENCE, Crew

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from queue import SimpleQueue

    from pregel.commands import Event
    from pregel.drivers.limits import Limits, Turn
    from pregel.task import Task

__all__ = ["LimitedCrew"]


class LimitedCrew(Crew):
    """A crew whose tasks begin when it is their turn. No thread waits for that: a worker gets tasks that may run.

    Args:
        tasks: What is to be done.
        attempt: Runs one task that has its turn, and returns its event.
        inbox: See `Crew`.
        limits: Gives the turns.
    """

    def __init__(
        self,
        tasks: Iterable[Task],
        attempt: Callable[[Task, Turn], Event],
        inbox: SimpleQueue[Any],
        limits: Limits,
    ) -> None:
        #: The tasks that have not begun.
        self.turns = {limits.turn(task.node): task for task in tasks}
        super().__init__(self.turns.values(), attempt, inbox)
        #: Those of them that may.
        self.jobs.clear()
        # Reentrant, as that of the limits is.
        self.lock = RLock()
        self.closed = False
        #: Workers that are called and have not gone, and how many of them are at a task.
        self.workers = 0
        self.busy = 0

    def start(self) -> None:
        """Ask for the turns, in order."""
        for turn in list(self.turns):
            ready = partial(self.ready, turn)
            if turn.ask(ready):
                ready()

    def ready(self, turn: Any) -> None:
        """Take a task that may run, and call a worker unless one will come by anyway."""
        with self.lock:
            if self.closed:
                return
            self.jobs.append(turn)
            calls = self.workers < min(self.busy + len(self.jobs), workers.thread_limit())
            if calls:
                self.workers += 1
        if calls:
            workers.submit(self.work)

    def work(self) -> None:
        """Do tasks until none is left that may run: what each worker does."""
        while (begun := self.begin(1)) is not None:
            self.do(*begun, 1)

    def work_once(self) -> bool:
        """Do a task, and return whether there was one: what the thread of the run does when it helps."""
        begun = self.begin(0)
        if begun is not None:
            self.do(*begun, 0)
        return begun is not None

    def begin(self, worker: int) -> tuple[Any, Task] | None:
        """Take the next task that may run, or let the worker go if there is none.

        Args:
            worker: How many workers this thread is: 1, or 0 where it is that of the run.
        """
        with self.lock:
            if not self.jobs:
                self.workers -= worker
                return None
            turn: Any = self.jobs.popleft()
            self.busy += worker
            return turn, self.turns.pop(turn)

    def do(self, turn: Turn, task: Task, worker: int) -> None:
        """Do a task, and let the next one have the turn; `worker` as for `begin`."""
        try:
            self.inbox.put(self.attempt(task, turn))
        except BaseException as error:  # noqa: BLE001 - an exit belongs to the thread of the run
            self.inbox.put(error)
        finally:
            with self.lock:
                self.busy -= worker
            turn.end()
            self.ended.put(None)

    def taken(self, patience: float | None = None) -> Any:
        """Return what came first; a thread that may help looks now and then for tasks that have become ready."""
        return super().taken(PATIENCE if self.may_help and self.turns else patience)

    def close(self) -> None:
        """Drop the tasks that have not begun, and wait for those that have."""
        with self.lock:
            self.closed = True
            dropped = list(self.turns)
            self.turns.clear()
            self.jobs.clear()
        self.begun -= len(dropped)
        for turn in dropped:
            turn.end()
        super().close()
