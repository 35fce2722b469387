"""How sync code is called from async code."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["in_worker"]

T = TypeVar("T")


async def in_worker(call: Callable[[], T]) -> T:
    """Call something in a worker thread, in a copy of the context, and wait for its end even if cancelled.

    Raises:
        Exception: Whatever the call raises.
    """
    import anyio.lowlevel  # noqa: PLC0415 - sync runs do not pay for it
    import anyio.to_thread  # noqa: PLC0415 - as above

    try:
        # A limit of its own: where all threads of a shared one wait for a call inside a call, nothing would go on.
        return await anyio.to_thread.run_sync(call, limiter=anyio.CapacityLimiter(1))
    finally:  # a cancelled handler that it came back to looks like one that failed
        await anyio.lowlevel.checkpoint_if_cancelled()
