"""How an event loop waits for what would hold it up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["at_once", "off_loop"]


async def off_loop(call: Callable[[], Any]) -> Any:
    """Call something in a worker thread and wait for its end, whatever is cancelled meanwhile.

    A claim that went on behind a cancelled run would hold its thread for ever.
    """
    import anyio.to_thread  # noqa: PLC0415 - sync runs do not pay for it

    from pregel.drivers.loops import current_loop  # noqa: PLC0415 - as above

    result: list[Any] = []

    async def wait() -> None:
        result.append(await anyio.to_thread.run_sync(call))

    await current_loop().uncancelled(wait)
    return result.pop()


async def at_once(call: Callable[[], Any]) -> Any:
    """Call something that waits for nothing."""
    return call()
