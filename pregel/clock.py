"""What time it is, and waiting for it to pass: policies and caches ask here for either, so tests can take it over.

Leases of threads and the times in logs are of the machine's clock whatever happens here.
"""

from __future__ import annotations

import os
import time
from heapq import heapify, heappop, heappush
from itertools import count
from threading import TIMEOUT_MAX, Condition, Thread
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

__all__ = ["Clock", "SystemClock", "clock", "use"]

#: So many alarms that were taken back are not worth a tidying up.
MOST_DEAD: Final = 64


class Clock(Protocol):
    """Tells the time and lets it pass."""

    def now(self) -> float:
        """Return seconds since some moment; they never go back."""

    def time(self) -> float:
        """Return seconds since 1970, which other processes and machines agree on."""

    def sleep(self, seconds: float, woken: Event) -> None:
        """Wait in this thread for a time, or until somebody sets the event."""

    async def asleep(self, seconds: float) -> None:
        """Wait for a time on the event loop at hand."""

    def call_at(self, when: float, call: Callable[[], None]) -> Callable[[], None]:
        """Call something soon after `now()` has reached a time, in some thread; return what takes that back.

        Args:
            when: The time.
            call: What to call. It must be quick, and not raise.
        """


class SystemClock:
    """The clock of the machine."""

    def now(self) -> float:
        """Return the seconds of a clock that never goes back."""
        return time.monotonic()

    def time(self) -> float:
        """Return seconds since 1970."""
        return time.time()

    def sleep(self, seconds: float, woken: Event) -> None:
        """Wait in this thread for a time, or until somebody sets the event."""
        woken.wait(min(seconds, TIMEOUT_MAX))

    async def asleep(self, seconds: float) -> None:
        """Wait for a time on the event loop at hand."""
        import anyio  # noqa: PLC0415 - sync runs do not pay for it

        await anyio.sleep(seconds)

    def call_at(self, when: float, call: Callable[[], None]) -> Callable[[], None]:
        """Call something soon after a time, in the thread of the alarms."""
        return alarms.add(when, call)


class Alarms:
    """Calls what is due; a daemon thread that starts with the first alarm."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all alarms: they are the parent's, after a fork."""
        self.changed = Condition()
        self.numbers = count()
        #: By time; an alarm that was taken back has nothing to call any more.
        self.heap: list[tuple[float, int, list[Callable[[], None]]]] = []
        #: How many of them were taken back: most are, long before their time.
        self.dead = 0
        self.running = False

    def add(self, when: float, call: Callable[[], None]) -> Callable[[], None]:
        """Set an alarm, and return what takes it back."""
        calls = [call]
        with self.changed:
            heappush(self.heap, (when, next(self.numbers), calls))
            if not self.running:
                self.running = True
                Thread(target=self.work, name="pregel-alarms", daemon=True).start()
            elif self.heap[0][2] is calls:
                self.changed.notify()

        def undo() -> None:
            with self.changed:
                if calls:
                    calls.clear()
                    self.dead += 1
                    if self.dead > max(MOST_DEAD, len(self.heap) // 2):
                        self.heap = [alarm for alarm in self.heap if alarm[2]]
                        heapify(self.heap)
                        self.dead = 0

        return undo

    def work(self) -> None:
        """Call what is due, and sleep until the next alarm."""
        while True:
            for call in self.due():
                call()
                del call  # or an idle thread would keep the last run alive

    def due(self) -> list[Callable[[], None]]:
        """Return what the next alarm calls, when it is time."""
        with self.changed:
            while not self.heap or self.heap[0][0] > time.monotonic():
                self.changed.wait(min(self.heap[0][0] - time.monotonic(), TIMEOUT_MAX) if self.heap else None)
            _, _, calls = heappop(self.heap)
            found = calls.copy()
            if calls:
                calls.clear()
            else:
                self.dead -= 1
            return found


alarms: Final = Alarms()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=alarms.reset)

#: One for all runs of the process, which a test may change.
current: Final[list[Clock]] = [SystemClock()]


def clock() -> Clock:
    """Return the clock of the process."""
    return current[0]


def use(new: Clock) -> Clock:
    """Let the policies and caches of the process go by another clock, and return the one before."""
    before = clock()
    current[0] = new
    return before
