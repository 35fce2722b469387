"""The thread that renews the leases of all runs of the process while they live."""

from __future__ import annotations

import os
from threading import Condition, Thread
from time import monotonic
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pregel.checkpoint.base import Checkpointer

__all__ = ["keeper"]

#: Renewals in the time that a lease lasts: two may fail.
RENEWALS: Final = 3


class Keeper:
    """Renews what it was given until it is told to stop; a daemon thread that starts with the first lease."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all leases: they are the parent's, after a fork."""
        self.changed = Condition()
        self.held: dict[str, tuple[float, float, str, Checkpointer]] = {}
        self.running = False
        #: When the thread looks again by itself; None while it is awake, and while it waits to be woken.
        self.alarm: float | None = None

    def keep(self, saver: Checkpointer, thread_id: str, token: str, seconds: float) -> None:
        """Renew a lease from now on."""
        every = seconds / RENEWALS
        with self.changed:
            due = monotonic() + every
            self.held[token] = (due, every, thread_id, saver)
            if not self.running:
                self.running = True
                Thread(target=self.work, name="pregel-lease-keeper", daemon=True).start()
            elif self.alarm is None or due < self.alarm:  # most runs end before it would look again
                self.changed.notify()

    def drop(self, token: str) -> None:
        """Renew a lease no longer."""
        with self.changed:
            self.held.pop(token, None)

    def work(self) -> None:
        """Renew what is due, and sleep until the next one is."""
        while True:
            with self.changed:
                now = monotonic()
                due = [(token, held) for token, held in self.held.items() if held[0] <= now]
                if not due:
                    self.alarm = min((held[0] for held in self.held.values()), default=None)
                    self.changed.wait(None if self.alarm is None else self.alarm - now)
                    self.alarm = None
                    continue
            for token, (_, every, thread_id, saver) in due:
                self.renew(saver, thread_id, token, every)

    def renew(self, saver: Checkpointer, thread_id: str, token: str, every: float) -> None:
        """Renew one lease. A storage that fails is asked again: the writes of the run say if the lease is lost."""
        try:
            alive = saver.renew(thread_id, token, every * RENEWALS)
        except Exception:  # noqa: BLE001 - see above; nobody waits for an answer here
            alive = True
        with self.changed:
            if token in self.held:
                if alive:
                    self.held[token] = (monotonic() + every, every, thread_id, saver)
                else:
                    del self.held[token]


keeper: Final = Keeper()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=keeper.reset)
