"""Attempts at a task in the current thread."""

from __future__ import annotations

from threading import Event as Flag
from typing import TYPE_CHECKING, Any, TypeVar

from pregel.clock import clock
from pregel.drivers import workers
from pregel.drivers.attempts import attempts, timed_out

if TYPE_CHECKING:
    from collections.abc import Callable

    from pregel.cancellation import AttemptToken
    from pregel.commands import Event
    from pregel.drivers.attempts import Attempt
    from pregel.drivers.limits import Turn
    from pregel.drivers.sync import SyncDriver

__all__ = ["InThread", "attempts"]

T = TypeVar("T")


class InThread:
    """Makes attempts in the current thread, and those that have a deadline in a worker thread that it waits for.

    Args:
        driver: The driver of the run.
        turn: The turn that the task has, where tasks need one.
    """

    def __init__(self, driver: SyncDriver, turn: Turn | None) -> None:
        self.driver = driver
        self.network = driver.network
        self.run = driver.run
        self.turn = turn

    async def once(self, attempt: Attempt) -> Event:
        """Make an attempt, and leave it alone in its thread when its time is up.

        Raises:
            BaseException: What its code raised that is no `Exception`.
        """
        make_it, deadline = self.driver.attempt, attempt.deadline
        if deadline is None:
            return make_it(attempt.task, self.turn, attempt.run)
        over = Flag()
        ended: list[Event | BaseException] = []

        def job() -> None:
            try:
                ended.append(make_it(attempt.task, self.turn, attempt.run))
            except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits, if one does
                ended.append(error)
            over.set()

        deadline.start(over.set)
        try:
            workers.submit(job, inside=True)
            over.wait()
        except BaseException:  # such as Ctrl-C
            attempt.token.revoke()
            raise
        finally:
            deadline.stop()
        if not ended:
            attempt.token.revoke()
            return timed_out(attempt, deadline, self.network)
        event = ended[0]
        if isinstance(event, BaseException):
            raise event
        return event

    async def pause(self, seconds: float) -> None:
        """Wait, until the run is left: the next attempt does not begin then."""
        woken = Flag()
        undo = self.run.token.watch(woken.set)
        try:
            clock().sleep(seconds, woken)
        finally:
            undo()

    async def settle(self, token: AttemptToken) -> None:
        """Settle a revoked attempt."""
        token.settle()

    @property
    def values(self) -> dict[str, Any]:
        """The state of the last barrier."""
        return self.driver.machine.values

    async def aside(self, call: Callable[[], T], *, blocking: bool) -> T:  # noqa: ARG002 - this thread may wait
        """Call something."""
        return call()
