"""A list of what was published."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pregel.channels.base import MISSING, Channel, InvalidUpdateError, overwritten

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Topic"]


class Topic(Channel):
    """Collects the values of a superstep in task order; an update that is a list adds each of its items.

    Args:
        item: The type of one value, for readers and schemas; values are not converted.
        accumulate: Keep what was published before; else a superstep's values replace the last one's.
    """

    __slots__ = ("accumulate", "item")
    clears: ClassVar[bool] = False

    def __init__(self, item: Any = Any, accumulate: bool = False) -> None:  # noqa: FBT001, FBT002 - LangGraph's shape
        self.item = item
        self.accumulate = accumulate

    @property
    def resets(self) -> bool:  # type: ignore[override]
        """Whether a superstep without updates empties the topic."""
        return not self.accumulate

    @property
    def appends(self) -> bool:
        """Whether the value is a log: each superstep only adds to its end."""
        return self.accumulate

    def initial(self) -> list[Any]:
        """Return the empty list: a topic can always be read."""
        return []

    def apply(self, value: Any, updates: Sequence[Any]) -> list[Any]:
        """Return the list after this superstep; the value given is left alone.

        Raises:
            InvalidUpdateError: An `Overwrite` whose value is no list, or two `Overwrite`s.
        """
        replaced = overwritten(updates)
        if replaced is not MISSING:
            if not isinstance(replaced, list):
                raise InvalidUpdateError(f"Overwrite of a topic takes a list, not {type(replaced).__name__}")
            return list(replaced)
        result = list(value) if self.accumulate and value is not MISSING else []
        for update in updates:
            if isinstance(update, list):
                result.extend(update)
            else:
                result.append(update)
        return result

    def parameters(self) -> tuple[Any, ...]:
        """Return item type and mode."""
        return (self.item, self.accumulate)
