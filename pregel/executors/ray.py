"""Ray as an executor: each call is a Ray task."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["RayExecutor"]


class RayExecutor(Executor):
    """Runs each call as a task of the Ray cluster that `ray.init` has connected to.

    Ray runs a task whose worker died again, three times unless `max_retries` says otherwise.

    Args:
        options: Options of Ray's tasks, such as `num_cpus=1`, `resources={...}`, `max_retries=0`.

    Raises:
        ModuleNotFoundError: Ray is not installed; the message says how.
    """

    def __init__(self, **options: Any) -> None:
        try:
            import ray  # type: ignore[import-not-found]  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("RayExecutor needs Ray: pip install 'pregel[ray]'", name=error.name) from error
        task = ray.remote(called)
        self._task = task.options(**options) if options else task
        self._closed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call something in the cluster.

        Raises:
            RuntimeError: The executor was shut down.
        """
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future: Future[Any] = self._task.remote(fn, args, kwargs).future()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - its base's
        """Take no more calls. Those that were submitted go on: the cluster is not this executor's."""
        self._closed = True


def called(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Make a call, in a worker of Ray."""
    return fn(*args, **kwargs)
