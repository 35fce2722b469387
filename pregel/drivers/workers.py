"""The worker threads of the process: daemons that run node code for every run."""

from __future__ import annotations

import os
from queue import SimpleQueue
from threading import Lock, Thread, local
from typing import TYPE_CHECKING, Final

from pregel.errors import InvalidConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DEFAULT_THREAD_LIMIT", "has_room", "in_worker", "set_thread_limit", "submit", "thread_limit"]

#: Enough for a fan-out of calls that wait for a network; threads are started only when none is idle.
DEFAULT_THREAD_LIMIT: Final = 128


class Workers:
    """A pool of daemon threads that grows while jobs wait, up to a limit, and never shrinks.

    `concurrent.futures.ThreadPoolExecutor` is not used because the interpreter waits for its threads at exit, so a
    node that hangs would keep the process alive, and because a future a job costs more than a job.
    """

    def __init__(self) -> None:
        self.limit = DEFAULT_THREAD_LIMIT
        self.reset()

    def reset(self) -> None:
        """Forget all threads: after a fork the child has none of them."""
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock = Lock()
        self._threads = 0
        # Each job in the queue is counted once: by a thread that no longer counts as idle, by a thread that starts for
        # it, or here, for the next thread that is done.
        self._idle = 0
        self._backlog = 0

    def submit(self, job: Callable[[], None], *, inside: bool = False) -> None:
        """Run a job in some thread, soon.

        Args:
            job: What to run; it must not raise.
            inside: Whether it is part of a task, which may hold a thread until the job is done. It then gets a thread
                beyond the limit if it must, for all others could be waiting in the same way.
        """
        starts = False
        with self._lock:
            if self._idle:
                self._idle -= 1
            elif self._threads < self.limit or inside:
                self._threads += 1
                starts = True
            else:
                self._backlog += 1
            name = f"pregel-worker-{self._threads}"
        if starts:  # with the job in hand, or it could take an older one from the queue and leave this one to wait
            Thread(target=self._work, args=([job],), name=name, daemon=True).start()
        else:
            self._jobs.put(job)

    def has_room(self) -> bool:
        """Return whether a job that is submitted now finds a thread."""
        return self._idle > 0 or self._threads < self.limit

    def _work(self, first: list[Callable[[], None]]) -> None:
        here.is_worker = True
        jobs, lock = self._jobs, self._lock
        job = first.pop()  # a thread keeps its arguments as long as it lives, and with this one a whole run
        while True:
            job()
            del job  # or an idle thread would keep the last run alive
            with lock:
                if self._backlog:
                    self._backlog -= 1
                else:
                    self._idle += 1
            job = jobs.get()


here = local()
workers: Final = Workers()
submit = workers.submit
has_room = workers.has_room
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=workers.reset)


def in_worker() -> bool:
    """Return whether the current thread is a worker, which must not wait for a job that has no thread yet."""
    return getattr(here, "is_worker", False)


def thread_limit() -> int:
    """Return how many worker threads there may be."""
    return workers.limit


def set_thread_limit(limit: int) -> None:
    """Set how many worker threads the process may start. Threads that run already stay.

    Raises:
        InvalidConfigError: The limit is not at least 1.
    """
    if type(limit) is not int or limit < 1:
        raise InvalidConfigError(f"the thread limit is a whole number of at least 1, not {limit!r}")
    workers.limit = limit
