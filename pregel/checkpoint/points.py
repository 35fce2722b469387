"""Named points of a storage operation, at which a test can end the process.

Outside of tests nothing listens, and reaching a point costs a call and a comparison.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["POINTS", "listen", "reached"]

#: "inside" is where all statements of a transaction are done and it is not committed yet.
POINTS: Final = (
    "claim.before",
    "claim.after",
    "write.before",
    "write.inside",
    "write.after",
    "release.before",
    "release.after",
)

#: One for the process, for it is the process that ends.
listener: Callable[[str], object] | None = None


def listen(hook: Callable[[str], object] | None) -> Callable[[str], object] | None:
    """Call this at every point from now on, or nothing; return what was called so far."""
    global listener
    previous, listener = listener, hook
    return previous


def reached(name: str) -> None:
    """Say that a point is reached."""
    if listener is not None:
        listener(name)
