"""Attempts at a task on an event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from pregel.clock import clock
from pregel.drivers.attempts import attempts, timed_out

if TYPE_CHECKING:
    from collections.abc import Callable

    from pregel.cancellation import AttemptToken
    from pregel.commands import Event
    from pregel.drivers.aio import AsyncDriver
    from pregel.drivers.attempts import Attempt

__all__ = ["OnLoop", "attempts"]

T = TypeVar("T")


class OnLoop:
    """Makes attempts in the current task of the loop. What is awaited is cancelled when its time is up.

    Args:
        driver: The driver of the run.
    """

    def __init__(self, driver: AsyncDriver) -> None:
        self.driver = driver
        self.network = driver.network
        self.run = driver.run

    async def once(self, attempt: Attempt) -> Event:
        """Make an attempt, and cancel it when its time is up; sync code of it is left alone in its thread."""
        deadline, token = attempt.deadline, attempt.token
        if deadline is None:
            return await self.driver.attempt(attempt.task, attempt.run)
        event: Event | None = None
        with anyio.CancelScope() as scope:

            def give_up() -> None:
                if event is None and not deadline.stopped:
                    token.revoke()
                    scope.cancel()

            deadline.start(lambda: self.driver.loop.call_soon(give_up))
            try:
                event = await self.driver.attempt(attempt.task, attempt.run)
            finally:
                deadline.stop()
        if event is None or token.revoked:
            return timed_out(attempt, deadline, self.network)
        return event

    async def pause(self, seconds: float) -> None:
        """Wait, until the run is cancelled."""
        await clock().asleep(seconds)

    async def settle(self, token: AttemptToken) -> None:
        """Settle a revoked attempt: in a thread, for it may have to wait for the store."""
        if self.run.recorder is None:
            token.settle()
        else:
            await self.driver.in_thread(token.settle)

    @property
    def values(self) -> dict[str, Any]:
        """The state of the last barrier."""
        return self.driver.machine.values

    async def aside(self, call: Callable[[], T], *, blocking: bool) -> T:
        """Call something, in a worker thread if it may wait for a disk or a network."""
        return await self.driver.in_thread(call) if blocking else call()
