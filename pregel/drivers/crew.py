"""Worker threads that share the tasks of one superstep."""

from __future__ import annotations

from collections import deque
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from pregel.commands import TaskDone
from pregel.drivers import workers
from pregel.reporter import Emit
from pregel.runtime import FRAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pregel.commands import Event
    from pregel.task import Task

__all__ = ["Crew"]

#: Seconds after which a worker that waits for others does a task itself.
PATIENCE: Final = 0.05


class Crew:
    """Workers that take one task after the other, so that a thousand short ones wake few threads.

    Args:
        tasks: What is to be done.
        attempt: Runs one task and returns its event; where tasks need turns it is given that too.
        inbox: Where events go, and what must not happen in a thread; others may put stream parts there.
    """

    def __init__(
        self,
        tasks: Iterable[Task],
        attempt: Callable[..., Event],
        inbox: SimpleQueue[Event | Emit | BaseException],
    ) -> None:
        self.jobs = deque(tasks)
        self.attempt = attempt
        self.inbox = inbox
        #: Events that came while somebody looked for stream parts only.
        self.early: deque[Event | BaseException] = deque()
        #: How many tasks are neither dropped nor accounted for.
        self.open = len(self.jobs)
        # One mark for each task that has ended. An exit of this thread, such as Ctrl-C, may come between taking an
        # event and counting it, so events can't say how many tasks still run.
        self.begun = len(self.jobs)
        self.ended: SimpleQueue[None] = SimpleQueue()
        # A task that waits for workers could wait for ever, when all of them do: this thread then does a share.
        self.may_help = workers.in_worker() or FRAME.get(None) is not None

    def start(self) -> None:
        """Let the workers begin."""
        for _ in range(min(self.open, workers.thread_limit())):
            workers.submit(self.work)

    def work(self) -> None:
        """Do tasks until there are none left: what each worker does."""
        while self.work_once():
            pass

    def work_once(self) -> bool:
        """Do a task, and return whether there was one."""
        try:
            task = self.jobs.popleft()
        except IndexError:
            return False
        try:
            self.inbox.put(self.attempt(task))
        except BaseException as error:  # noqa: BLE001 - an exit belongs to the thread of the run
            self.inbox.put(error)
        finally:
            self.ended.put(None)
        return True

    def has_come(self) -> bool:
        """Return whether an event or a part is there already, so that the next one need not be waited for."""
        return bool(self.early) or not self.inbox.empty()

    def written(self) -> Iterator[Emit]:
        """Yield the stream parts that are there already, and keep the events for later."""
        while not self.inbox.empty():
            item = self.inbox.get()
            if isinstance(item, Emit):
                yield item
            else:
                self.early.append(item)

    def taken(self, patience: float | None = None) -> Event | Emit | BaseException | None:
        """Return what came first, or None if nothing came in so many seconds."""
        if self.early:
            return self.early.popleft()
        try:
            return self.inbox.get(timeout=patience)
        except Empty:
            return None

    def items(self) -> Iterator[Event | Emit]:
        """Yield events and stream parts as they come, until every task has ended.

        Raises:
            BaseException: What a task raised that is no `Exception`, such as `SystemExit`.
        """
        while self.open:
            item = self.taken(PATIENCE if self.may_help and self.jobs else None) if self.waits() else None
            if item is None:
                self.work_once()
                continue
            if type(item) is not Emit:
                self.open -= 1
            if isinstance(item, BaseException):
                raise item
            yield item

    def waits(self) -> bool:
        """Return whether this thread may wait for others: not while tasks are left that find no thread."""
        if not self.may_help or not self.jobs or not self.inbox.empty():
            return True
        return workers.has_room()

    def rest(self) -> Iterator[TaskDone]:
        """Yield the tasks that have ended well and that nobody has heard of, once all have ended: see `close`."""
        while self.has_come():
            item = self.taken()
            if isinstance(item, TaskDone):
                yield item

    def close(self) -> None:
        """Drop the tasks that have not begun, and wait for those that have."""
        while self.jobs:
            try:
                self.jobs.popleft()
            except IndexError:  # a worker was faster
                break
            self.begun -= 1
        for _ in range(self.begun):
            self.ended.get()
