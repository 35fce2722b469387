"""The worker threads of the process: daemons that run node code for every run."""

from __future__ import annotations

import os
from queue import Empty, SimpleQueue
from threading import Lock, Semaphore, Thread, local
from typing import TYPE_CHECKING, Final

from pregel.errors import InvalidConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DEFAULT_THREAD_LIMIT", "in_worker", "set_thread_limit", "submit", "thread_limit"]

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
        self._idle = Semaphore(0)
        self._lock = Lock()
        self._threads = 0

    def submit(self, job: Callable[[], None]) -> None:
        """Run a job in some thread, soon. The job must not raise."""
        self._jobs.put(job)
        if self._idle.acquire(blocking=False):
            return
        with self._lock:
            if self._threads >= self.limit:
                return
            self._threads += 1
            name = f"pregel-worker-{self._threads}"
        Thread(target=self._work, name=name, daemon=True).start()

    def _work(self) -> None:
        here.is_worker = True
        jobs, idle = self._jobs, self._idle
        while True:
            try:
                job = jobs.get_nowait()
            except Empty:
                idle.release()
                job = jobs.get()
            job()
            del job  # or an idle thread would keep the last run alive


here = local()
workers: Final = Workers()
submit = workers.submit
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
    if limit < 1:
        raise InvalidConfigError(f"the thread limit is at least 1, not {limit}")
    workers.limit = limit
