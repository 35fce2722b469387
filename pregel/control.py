"""`RunControl`: how whoever started a run asks it to stop, from any thread."""

from __future__ import annotations

from typing import Final

__all__ = ["RunControl"]

#: The reason that is kept where none is given: most processes drain because they are about to end.
SHUTDOWN: Final = "shutdown"


class RunControl:
    """Asks runs to drain: to end the superstep that is running, to store it, and to begin no other.

    Give it to a run as `control=`; one may be given to any number of runs, and what it asks can't be taken back. A run
    that drains stops at its next barrier if something is due then, with `Breakpoint("drain", nodes)` under
    `__interrupt__`. Where it is stored, `invoke(None, config)` goes on from there.
    """

    __slots__ = ("_reason",)

    def __init__(self) -> None:
        self._reason: str | None = None

    def request_drain(self, reason: str = SHUTDOWN) -> None:
        """Ask the runs that have this control to drain. The first reason stays.

        Args:
            reason: For people; `drain_reason` gives it back.
        """
        if self._reason is None:
            self._reason = str(reason)

    @property
    def drain_requested(self) -> bool:
        """Whether runs are asked to drain."""
        return self._reason is not None

    @property
    def drain_reason(self) -> str | None:
        """Why, or None where they are not asked."""
        return self._reason
