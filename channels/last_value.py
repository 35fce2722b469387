"""Channels that hold the last value written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pregel.channels.base import MISSING, Channel, ConcurrentUpdateError, Overwrite, overwritten

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["AnyValue", "LastValue", "UntrackedValue"]


class LastValue(Channel):
    """Holds the value written last; a superstep may bring one. The channel of a field without a marker."""

    __slots__ = ()
    clears: ClassVar[bool] = False

    def apply(self, value: Any, updates: Sequence[Any]) -> Any:  # noqa: ARG002 - the old value plays no part
        """Return the one update (one `Overwrite` replaces any others).

        Raises:
            ConcurrentUpdateError: Two updates, and no `Overwrite` among them.
        """
        if len(updates) == 1:
            update = updates[0]
            return update.value if type(update) is Overwrite else update
        replaced = overwritten(updates)
        if replaced is MISSING:
            raise ConcurrentUpdateError(
                f"a plain field takes one update in a superstep and got {len(updates)}: "
                "annotate the field with a reducer (Annotated[list, operator.add]), "
                "or put the nodes in different supersteps"
            )
        return replaced


class UntrackedValue(LastValue):
    """A `LastValue` that is never stored in a checkpoint, for what can't be: connections, clients, locks.

    Args:
        guard: Whether two updates in one superstep are an error (else the last one in task order stays).
    """

    __slots__ = ("guard",)
    tracked: ClassVar[bool] = False

    def __init__(self, guard: bool = True) -> None:  # noqa: FBT001, FBT002 - LangGraph's public shape
        self.guard = checked_guard(guard)

    def apply(self, value: Any, updates: Sequence[Any]) -> Any:
        """Return the one update, or without `guard` the last one.

        Raises:
            ConcurrentUpdateError: Two updates, with `guard`.
        """
        if self.guard:
            return super().apply(value, updates)
        return last(updates)

    def parameters(self) -> tuple[Any, ...]:
        """Return the guard."""
        return (self.guard,)


class AnyValue(Channel):
    """Holds the last update in task order and assumes that all of a superstep are equal; forgets it one step later."""

    __slots__ = ()
    resets: ClassVar[bool] = True

    def apply(self, value: Any, updates: Sequence[Any]) -> Any:  # noqa: ARG002 - the old value plays no part
        """Return the last update, or `MISSING` when there is none."""
        return last(updates) if updates else MISSING


def checked_guard(guard: object) -> bool:
    """Return a guard that is a bool.

    Raises:
        TypeError: It is something else: the type of a field stands in its annotation, not in its channel.
    """
    if not isinstance(guard, bool):
        raise TypeError(f"guard is True or False, not {guard!r}; a field's type stands in its annotation alone")
    return guard


def last(updates: Sequence[Any]) -> Any:
    """Return the `Overwrite`d value if there is one, else the last update.

    Raises:
        ConcurrentUpdateError: There are two `Overwrite`s.
    """
    replaced = overwritten(updates)
    return updates[-1] if replaced is MISSING else replaced
