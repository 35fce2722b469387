"""Worker processes that die alone: what `ProcessPoolExecutor` does, but a dead worker does not end the pool."""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context, parent_process
from threading import Condition, Thread
from typing import TYPE_CHECKING, Any, Literal

from pregel.errors import InvalidConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ProcessExecutor"]


class Job(Future[Any]):
    """A call that waits for a process, or is made in one.

    Args:
        call: The call.
        stop: Ends it where it is made.
    """

    def __init__(self, call: Callable[[], Any], stop: Callable[[Job], None]) -> None:
        super().__init__()
        self.call = call
        self._stop = stop
        #: Where it is made, while it is.
        self.pool: ProcessPoolExecutor | None = None
        self.killed = False

    def cancel(self) -> bool:
        """Take the call back: if it has begun, its process is killed, and another one takes that one's place."""
        if not super().cancel():
            return False
        self._stop(self)
        return True


class ProcessExecutor(Executor):
    """Runs each call in one of several processes, which are started when they are needed.

    A process that dies fails the call that it was at, with `BrokenProcessPool`, and is replaced. In a
    `concurrent.futures.ProcessPoolExecutor` it fails every other call as well, and the pool takes no more. So a call
    that runs can be cancelled too, by the death of its process, and one that never ends keeps no process from others.
    Processes end with the one that started them, in whatever way that ends.

    Args:
        max_workers: How many processes; as many as there are processors if it is not said.
        start_method: How they are started. "fork" copies the locks that other threads hold: programs with threads, such
            as any that runs graphs, can hang in it.

    Raises:
        InvalidConfigError: `max_workers` is not at least 1.
    """

    def __init__(
        self, max_workers: int | None = None, *, start_method: Literal["spawn", "forkserver", "fork"] = "spawn"
    ) -> None:
        workers = max_workers if max_workers is not None else os.cpu_count() or 1
        if type(workers) is not int or workers < 1:
            raise InvalidConfigError(f"max_workers is a whole number of at least 1, not {max_workers!r}")
        self._processes = get_context(start_method)
        self._waiting: deque[Job] = deque()
        # Each process is a pool of one, which is over when the process is; None for one that is not started.
        self._idle: list[ProcessPoolExecutor | None] = [None] * workers
        self._workers = workers
        # Those that take no more calls, since no more come.
        self._ended: list[ProcessPoolExecutor | None] = []
        self._closed = False
        # Whether somebody waits in `shutdown`, and ends them there.
        self._joins = False
        self._changed = Condition()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call something in a process, as soon as one is free.

        Raises:
            RuntimeError: The executor was shut down.
        """
        job = Job(partial(fn, *args, **kwargs), self._stop)
        with self._changed:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._waiting.append(job)
        self._hand_out()
        return job

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - its base's
        """Take no more calls, and end the processes when the last one is done."""
        dropped: list[Job] = []
        with self._changed:
            self._closed = True
            self._joins = self._joins or wait
            if cancel_futures:
                dropped.extend(self._waiting)
                self._waiting.clear()
        for job in dropped:
            job.cancel()
            job.set_running_or_notify_cancel()
        self._release()
        if wait:
            with self._changed:
                self._changed.wait_for(lambda: len(self._ended) == self._workers)
            for pool in self._ended:
                if pool is not None:
                    pool.shutdown()

    def _hand_out(self) -> None:
        """Give calls that wait to processes that do not."""
        while True:
            with self._changed:
                if not (self._waiting and self._idle):
                    return
                job, pool = self._waiting.popleft(), self._idle.pop()
            if job.cancelled():
                job.set_running_or_notify_cancel()
                self._take_back(pool)
                continue
            try:
                pool, running = self._begun(pool, job)
            except Exception as error:  # noqa: BLE001 - no process could be started; whoever waits must hear of it
                self._take_back(None)
                if job.set_running_or_notify_cancel():
                    job.set_exception(error)
                continue
            with self._changed:
                job.pool = pool
            if job.cancelled():  # while it began
                self._stop(job)
            running.add_done_callback(partial(self._landed, pool, job))

    def _begun(self, pool: ProcessPoolExecutor | None, job: Job) -> tuple[ProcessPoolExecutor, Future[Any]]:
        """Begin a call; a process that died while it had nothing to do is replaced at once."""
        if pool is not None:
            try:
                return pool, pool.submit(job.call)
            except BrokenProcessPool:
                pool.shutdown(wait=False)
        fresh = ProcessPoolExecutor(1, self._processes, initializer=end_with_parent)
        return fresh, fresh.submit(job.call)

    def _stop(self, job: Job) -> None:
        """Kill the process that makes a call, if one does."""
        with self._changed:  # it makes no other call meanwhile
            if job.pool is None or job.killed:
                return
            job.killed = True
            for process in tuple((job.pool._processes or {}).values()):  # noqa: SLF001 - public from Python 3.14 on
                process.kill()

    def _landed(self, pool: ProcessPoolExecutor, job: Job, done: Future[Any]) -> None:
        """Take how a call ended, in a thread of the pool's."""
        error = done.exception()
        with self._changed:
            job.pool = None
        if job.killed or isinstance(error, BrokenProcessPool):
            pool.shutdown(wait=False)
            self._take_back(None)
        else:
            self._take_back(pool)
        if job.set_running_or_notify_cancel():
            if error is not None:
                job.set_exception(error)
            else:
                job.set_result(done.result())
        self._hand_out()
        self._release()

    def _take_back(self, pool: ProcessPoolExecutor | None) -> None:
        with self._changed:  # the one that ran last is taken first: others need not be started
            self._idle.append(pool)

    def _release(self) -> None:
        """Let processes end that have nothing left to do, once no more calls come."""
        with self._changed:
            if not self._closed or self._waiting:
                return
            ended, self._idle = self._idle, []
            self._ended.extend(ended)
            joins = self._joins
            self._changed.notify_all()
        for pool in ended:
            if pool is not None and not joins:  # else whoever waits ends it, and waits until it has ended
                pool.shutdown(wait=False)


def end_with_parent() -> None:
    """Let this process end when the one that started it has: a node must not go on that somebody else begins anew."""
    parent = parent_process()

    def wait() -> None:
        parent.join()  # type: ignore[union-attr]  # a worker has one
        os._exit(1)

    Thread(target=wait, name="pregel-parent", daemon=True).start()
