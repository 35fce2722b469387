"""A clock that a test moves by hand: waits between attempts take no time, and timeouts are over when it says so."""

from __future__ import annotations

from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import count
from threading import RLock
from typing import TYPE_CHECKING

import anyio.lowlevel

from pregel.clock import use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from threading import Event

__all__ = ["FakeClock", "fake_clock"]


class FakeClock:
    """Stands still until `advance` moves it, or somebody waits between two attempts: then it jumps to the end of that.

    Every method may be called from any thread, also from nodes.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._now = 0.0
        self._alarms: list[tuple[float, int, list[Callable[[], None]]]] = []
        self._numbers = count()
        #: The waits between attempts so far, in seconds.
        self.slept: list[float] = []

    def now(self) -> float:
        """Return how many seconds have passed on it."""
        return self._now

    def time(self) -> float:
        """Return the same."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass: what is due on the way happens, in order, in this thread."""
        with self._lock:
            end = self._now + seconds
            while self._alarms and self._alarms[0][0] <= end:
                when, _, calls = heappop(self._alarms)
                self._now = max(self._now, when)
                for call in tuple(calls):
                    call()
            self._now = max(self._now, end)

    def sleep(self, seconds: float, woken: Event) -> None:
        """Jump to the end of a wait, if nobody has ended it before."""
        if not woken.is_set():
            self.slept.append(seconds)
            self.advance(seconds)

    async def asleep(self, seconds: float) -> None:
        """Jump to the end of a wait on an event loop, unless it is cancelled."""
        await anyio.lowlevel.checkpoint()
        self.slept.append(seconds)
        self.advance(seconds)

    def call_at(self, when: float, call: Callable[[], None]) -> Callable[[], None]:
        """Call something when time has come there; return what takes it back."""
        calls = [call]
        with self._lock:
            heappush(self._alarms, (when, next(self._numbers), calls))
            self.advance(0)
        return calls.clear


@contextmanager
def fake_clock() -> Iterator[FakeClock]:
    """Let all runs of the process go by a clock that stands still until the test moves it.

    Yields:
        The clock.
    """
    made = FakeClock()
    before = use(made)
    try:
        yield made
    finally:
        use(before)
