"""How sync code is called from async code, and comes back to it."""

from __future__ import annotations

from contextvars import ContextVar, copy_context
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from pregel.cancellation import Token
from pregel.drivers.workers import thread_limit
from pregel.runtime import FRAME

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from anyio import CapacityLimiter
    from anyio.lowlevel import RunVar

    from pregel.runtime import Frame

__all__ = ["back_on_loop", "in_worker"]

T = TypeVar("T")

#: How many calls around this code hold a thread until they end.
DEPTH: ContextVar[int] = ContextVar("pregel_calls_in_threads", default=0)


async def in_worker(call: Callable[[], T]) -> T:
    """Call something in a worker thread, in a copy of the context, and wait for its end even if cancelled.

    Runs that it begins then end, and `back_on_loop` raises in it. Each event loop has as many threads for such calls as
    the engine has for nodes, and as many again for those that are made inside them: a call waits for a thread only
    while all threads are held by calls that do not wait for it.

    Raises:
        BaseException: Whatever the call raises.
    """
    from pregel.drivers.loops import current_loop  # noqa: PLC0415 - sync runs do not pay for anyio

    frame, depth = FRAME.get(None), DEPTH.get()
    token = Token(None if frame is None else frame[1].token)
    job = partial(inside, call, frame, token, depth + 1)
    result: T = await current_loop().in_thread(job, limiter_of(depth), token.cancel)
    return result


def inside(call: Callable[[], T], frame: Frame | None, token: Token, depth: int) -> T:
    """Call something in a thread that it holds, with a run that is left when the call is cancelled."""
    DEPTH.set(depth)
    if frame is not None:
        task, run, *rest = frame
        FRAME.set((task, replace(run, token=token), *rest))  # type: ignore[arg-type]  # one of each
    return call()


def back_on_loop(function: Callable[..., Coroutine[Any, Any, T]], *given: Any) -> T:
    """Await something on the loop from a call of `in_worker`, in a copy of the call's context.

    Where the call is cancelled it raises the loop's cancellation, which no `except Exception` catches.

    Raises:
        BaseException: Whatever the awaited code raises.
    """
    from anyio import from_thread  # noqa: PLC0415 - sync runs do not pay for it

    from pregel.drivers.aio import InContext  # noqa: PLC0415 - as above

    context = copy_context()

    async def awaited() -> T:
        # On trio it runs in the task that made the call, whose own context may be one that a driver has given it.
        result: T = await InContext(function(*given), context)
        return result

    from_thread.check_cancelled()
    return from_thread.run(awaited)


def limiter_of(depth: int) -> CapacityLimiter:
    """Return what limits, on the event loop at hand, the calls that are made inside so many others."""
    from anyio import CapacityLimiter  # noqa: PLC0415 - sync runs do not pay for it

    variable = limiters()
    found = variable.get(None)
    if found is None:
        found = {}
        variable.set(found)
    limiter = found.get(depth)
    if limiter is None:
        limiter = found[depth] = CapacityLimiter(thread_limit())
    limiter.total_tokens = thread_limit()
    return limiter


@cache
def limiters() -> RunVar[dict[int, CapacityLimiter] | None]:
    """Return where each event loop has its limiters, by depth."""
    from anyio.lowlevel import RunVar  # noqa: PLC0415 - sync runs do not pay for it

    return RunVar("pregel_limiters")
