"""When an attempt at a task is given up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from pregel.clock import clock
from pregel.errors import NodeTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pregel.policy import Policy

__all__ = ["Deadline"]

Kind = Literal["run", "idle"]
#: What an attempt has done whose time is up.
DONE: Final[dict[Kind, str]] = {"run": "ran longer than", "idle": "gave no sign of life for"}


class Deadline:
    """When an attempt is given up: some time after its beginning, or after its last sign of life.

    Args:
        policy: Of the node; it has a timeout.
    """

    #: What is called when time is up, from `start` on.
    expire: Callable[[], None]
    #: Which time is up, once one is.
    passed: Kind

    def __init__(self, policy: Policy) -> None:
        given: dict[Kind, float | None] = {"run": policy.run_timeout, "idle": policy.idle_timeout}
        #: How many seconds there are of each kind of time.
        self.seconds: dict[Kind, float] = {kind: most for kind, most in given.items() if most is not None}
        self.stopped = False
        self.clock = clock()
        self.begun = self.last = 0.0
        #: Takes the alarm back that is set.
        self.undo: Callable[[], None] | None = None

    def start(self, expire: Callable[[], None]) -> None:
        """Begin, and call something on some thread when time is up."""
        self.begun = self.last = self.clock.now()
        self.expire = expire
        self.arm()

    def arm(self) -> None:
        """Look again when time may be up."""
        self.undo = self.clock.call_at(min(self.ends().values()), self.look)
        if self.stopped:
            self.undo()

    def ends(self) -> dict[Kind, float]:
        """Return when which time is up, as far as is known."""
        since: dict[Kind, float] = {"run": self.begun, "idle": self.last}
        return {kind: since[kind] + most for kind, most in self.seconds.items()}

    def look(self) -> None:
        """Say that time is up if it is; signs of life may have come."""
        now = self.clock.now()
        passed = [kind for kind, end in self.ends().items() if end <= now]
        if self.stopped:
            return
        if passed:
            self.passed = passed[0]
            self.expire()
        else:
            self.arm()

    def beat(self) -> None:
        """Take a sign of life."""
        self.last = self.clock.now()

    def stop(self) -> None:
        """Forget about it."""
        self.stopped = True
        if self.undo is not None:
            self.undo()

    def error(self, what: str, number: int) -> NodeTimeoutError:
        """Return the error of an attempt whose time is up.

        Args:
            what: How messages name the node.
            number: The attempt's, from 1.
        """
        return NodeTimeoutError(
            f"{what} {DONE[self.passed]} {self.seconds[self.passed]:g} s in attempt {number}, and was given up. Sync "
            "code of it that still runs has no effect any more"
        )
