"""Worker threads that share the tasks of one superstep."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from pregel.drivers import workers
from pregel.superstep import Emit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from queue import SimpleQueue

    from pregel.superstep import Event
    from pregel.task import Task

__all__ = ["Crew"]


class Crew:
    """Up to `limit` workers that take one task after the other, so that a thousand short ones wake few threads.

    Args:
        tasks: What is to be done.
        attempt: Runs one task and returns its event.
        inbox: Where events go, and what must not happen in a thread; others may put stream parts there.
        limit: How many workers at most.
    """

    def __init__(
        self,
        tasks: Iterable[Task],
        attempt: Callable[[Task], Event],
        inbox: SimpleQueue[Event | Emit | BaseException],
        limit: int,
    ) -> None:
        self.jobs = deque(tasks)
        self.attempt = attempt
        self.inbox = inbox
        self.limit = limit
        #: How many tasks are neither dropped nor accounted for.
        self.open = len(self.jobs)
        # A worker that waits for other workers could wait for ever, when all do: this thread then does its share.
        self.helps = workers.in_worker()

    def start(self) -> None:
        """Let the workers begin."""
        for _ in range(min(self.open, self.limit, workers.thread_limit()) - self.helps):
            workers.submit(self.work)

    def work(self) -> None:
        """Do tasks until there are none left: what each worker does."""
        while True:
            try:
                task = self.jobs.popleft()
            except IndexError:
                return
            try:
                self.inbox.put(self.attempt(task))
            except BaseException as error:  # noqa: BLE001 - an exit belongs to the thread of the run
                self.inbox.put(error)

    def items(self) -> Iterator[Event | Emit]:
        """Yield events and stream parts as they come, until every task has ended.

        Raises:
            BaseException: What a task raised that is no `Exception`, such as `SystemExit`.
        """
        if self.helps:
            self.work()
        while self.open:
            item = self.inbox.get()
            if type(item) is not Emit:
                self.open -= 1
            if isinstance(item, BaseException):
                raise item
            yield item

    def close(self) -> None:
        """Drop the tasks that have not begun, and wait for those that have."""
        while self.jobs:
            try:
                self.jobs.popleft()
            except IndexError:  # a worker was faster
                break
            self.open -= 1
        while self.open:
            self.open -= type(self.inbox.get()) is not Emit
