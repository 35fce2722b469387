"""Ray as an executor: each call is a Ray task."""

from __future__ import annotations

import concurrent.futures
import re
from concurrent.futures import Executor, Future
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["RayExecutor"]

#: What makes text coloured, which Ray does to its errors.
COLOURS: Final = re.compile(r"\x1b\[\d*m")


class RayExecutor(Executor):
    """Runs each call as a task of the Ray cluster that `ray.init` has connected to.

    How many run at once is Ray's to say, from what each task needs and the cluster has. A call whose worker died has
    failed: a `retry_policy` begins it again. With `max_retries=3` Ray does so before, and says nothing of it.

    Args:
        options: Options of Ray's tasks, such as `num_cpus=1`, `resources={...}`, `max_retries=3`.

    Raises:
        ModuleNotFoundError: Ray is not installed; the message says how.
    """

    def __init__(self, **options: Any) -> None:
        try:
            import ray  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("RayExecutor needs Ray: pip install 'pregel[ray]'", name=error.name) from error
        self._ray = ray
        self._task = ray.remote(called).options(**{"max_retries": 0, **options})
        self._open: set[RayFuture] = set()
        self._closed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call something in the cluster.

        Raises:
            RuntimeError: The executor was shut down; or there is no cluster, where Ray would start one by itself.
        """
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        if not self._ray.is_initialized():
            raise RuntimeError("Ray is connected to no cluster: call ray.init() first")
        reference = self._task.remote(fn, args, kwargs)
        future = RayFuture(partial(self._ray.cancel, reference))
        self._open.add(future)
        reference.future().add_done_callback(partial(self._landed, future))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - its base's
        """Take no more calls; those that were submitted go on. The cluster goes on too: it is not this executor's."""
        self._closed = True
        left = list(self._open)
        if cancel_futures:
            for future in left:
                future.cancel()
        if wait and self._ray.is_initialized():  # else they were lost with the cluster
            concurrent.futures.wait(left)

    def _landed(self, future: RayFuture, done: Future[Any]) -> None:
        """Take how a task ended, in a thread of Ray's."""
        self._open.discard(future)
        error = done.exception()
        if isinstance(error, self._ray.exceptions.RayTaskError):  # it wraps what the call raised
            trace = COLOURS.sub("", str(error))
            error = error.cause
            with suppress(Exception):  # one that takes no notes goes without
                error.add_note(trace)
        if isinstance(error, self._ray.exceptions.TaskCancelledError):
            Future.cancel(future)
        if not future.set_running_or_notify_cancel():
            return
        if error is None:
            future.set_result(done.result())
        else:
            future.set_exception(error)


class RayFuture(Future[Any]):
    """A call that is a task of Ray.

    Args:
        take_back: Lets Ray cancel the task.
    """

    def __init__(self, take_back: Callable[[], Any]) -> None:
        super().__init__()
        self._take_back = take_back

    def cancel(self) -> bool:
        """Take the call back: if it has begun, it is interrupted where its Python code next goes on."""
        if not super().cancel():
            return False
        with suppress(Exception):  # the cluster is gone, and the task with it
            self._take_back()
        return True


def called(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Make a call, in a worker of Ray."""
    return fn(*args, **kwargs)
