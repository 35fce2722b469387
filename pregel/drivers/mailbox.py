"""How stream parts get from a run in its own task to the generator that gives them to the reader."""

from __future__ import annotations

from collections import deque
from threading import Event as ThreadEvent
from threading import get_ident
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from pregel.cancellation import Token
    from pregel.drivers.loops import EventLoop
    from pregel.reporter import Emit

__all__ = ["Mailbox"]

PATIENCE = 0.05  # seconds between two looks at whether the run was cancelled


class Mailbox:
    """A queue of parts that tells the writer when the reader has taken everything and asks for more.

    A run waits for that between supersteps, so it is never more than one superstep ahead of its reader, and leaving
    the loop stops it where a sync stream would stop.
    """

    def __init__(self, loop: EventLoop) -> None:
        self.loop = loop
        self.parts: deque[Emit | None] = deque()
        #: Whether the reader waits for a part.
        self.hungry = False
        self.arrived = anyio.Event()
        self.asked = anyio.Event()
        self.waiting: list[ThreadEvent] = []

    def put(self, part: Emit | None) -> None:
        """Add a part, or None for the end, from any thread; it does not wait to be read.

        It is in the queue at once, so parts are read in the order in which they were made, whoever made them.
        """
        self.parts.append(part)
        if get_ident() == self.loop.thread:
            self.wake()
        else:
            self.loop.call_soon(self.wake)

    def wake(self) -> None:
        """Tell the reader that there is a part."""
        self.hungry = False
        self.arrived.set()

    def put_and_wait(self, part: Emit, token: Token) -> None:
        """Add a part from a worker thread and wait until it was read, or until the run was cancelled."""
        taken = ThreadEvent()

        def tell() -> None:
            self.wake()
            self.waiting.append(taken)

        self.parts.append(part)
        self.loop.call_soon(tell)
        while not taken.wait(PATIENCE):
            if token.cancelled():
                return

    async def get(self) -> Emit | None:
        """Take the next part, waiting for it; None is the end."""
        while not self.parts:
            self.arrived = anyio.Event()
            self.hungry = True
            self.release()
            await self.arrived.wait()
        return self.parts.popleft()

    async def emptied(self) -> None:
        """Wait until the reader has taken everything and asks for more."""
        while self.parts or not self.hungry:
            self.asked = anyio.Event()
            await self.asked.wait()

    def release(self) -> None:
        """Let go of everybody who waits for the reader."""
        self.asked.set()
        for taken in self.waiting:
            taken.set()
        self.waiting.clear()
