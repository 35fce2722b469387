"""Many runs of one graph side by side."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

from pregel.drivers.workers import thread_limit
from pregel.errors import GraphInterrupt

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

__all__ = ["run_all", "run_all_async"]


def run_all(calls: Sequence[Callable[[], Any]], limit: int | None, *, keep_errors: bool) -> list[Any]:
    """Call all of these in threads, each in a copy of the current context; return their results in order.

    Args:
        calls: What to call.
        limit: How many at once; as many as there may be worker threads if None.
        keep_errors: Whether an `Exception` stands in the place of its result; else the first one in order is raised
            when all have ended.
    """
    if not calls:
        return []
    most = min(len(calls), limit or thread_limit())
    with ThreadPoolExecutor(most, thread_name_prefix="pregel-batch") as threads:
        outcomes = list(
            threads.map(lambda call: call(), [partial(copy_context().run, outcome, each) for each in calls])
        )
    return [kept(each, keep_errors=keep_errors) for each in outcomes]


async def run_all_async(
    calls: Sequence[Callable[[], Awaitable[Any]]], limit: int | None, *, keep_errors: bool
) -> list[Any]:
    """Await all of these side by side on the event loop at hand; return their results in order. See `run_all`."""
    import anyio  # noqa: PLC0415 - sync runs do not pay for it

    outcomes: list[Any] = [None] * len(calls)
    slots = anyio.Semaphore(limit or max(len(calls), 1))

    async def one(place: int, call: Callable[[], Awaitable[Any]]) -> None:
        async with slots:
            try:
                outcomes[place] = (await call(), None)
            except (Exception, GraphInterrupt) as error:  # noqa: BLE001 - raised or kept when all have ended
                outcomes[place] = (None, error)

    async with anyio.create_task_group() as group:
        for place, call in enumerate(calls):
            group.start_soon(one, place, call)
    return [kept(each, keep_errors=keep_errors) for each in outcomes]


def outcome(call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """Return a call's result, or its error as a value."""
    try:
        return call(), None
    except (Exception, GraphInterrupt) as error:  # noqa: BLE001 - raised or kept when all have ended
        return None, error


def kept(ended: tuple[Any, BaseException | None], *, keep_errors: bool) -> Any:
    """Return a result, or the error in its place.

    Raises:
        Exception: The error, if errors are not kept.
        GraphInterrupt: The run is paused inside a task, which waits with it.
    """
    result, error = ended
    if error is None:
        return result
    if keep_errors and not isinstance(error, GraphInterrupt):
        return error
    raise error
