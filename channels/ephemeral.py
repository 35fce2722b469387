"""A value that lives for one superstep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pregel.channels.base import MISSING
from pregel.channels.last_value import LastValue, checked_guard, last

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["EphemeralValue"]


class EphemeralValue(LastValue):
    """Holds what the last superstep wrote and is cleared by the next one that writes nothing.

    Args:
        guard: Whether two updates in one superstep are an error (else the last one in task order stays).
    """

    __slots__ = ("guard",)
    resets: ClassVar[bool] = True
    clears: ClassVar[bool] = True

    def __init__(self, guard: bool = True) -> None:  # noqa: FBT001, FBT002 - LangGraph's public shape
        self.guard = checked_guard(guard)

    def apply(self, value: Any, updates: Sequence[Any]) -> Any:
        """Return the update, or `MISSING` when the superstep brought none.

        Raises:
            ConcurrentUpdateError: Two updates, with `guard`.
        """
        if not updates:
            return MISSING
        return super().apply(value, updates) if self.guard else last(updates)

    def parameters(self) -> tuple[Any, ...]:
        """Return the guard."""
        return (self.guard,)
