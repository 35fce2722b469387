"""Reducers that people write by hand: `Annotated[list[str], merge_unique]` and the like.

All are pure, and all are checked by `pregel.testing.check_reducer`. For messages there is `add_messages`, and for plain
sums and joined lists `operator.add`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pregel.errors import InvalidUpdateError
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["append", "keep_last", "merge_dicts", "merge_unique"]


def append(left: list[Any] | None, right: Any) -> list[Any]:
    """Add one item to a list, whatever it is: an update of a list is one item that is a list.

    In a field without an initial value the list must be declared as one: `Annotated[list[int], append]` is.

    Raises:
        InvalidUpdateError: The value is no list.
    """
    return append_all(left, (right,))


def append_all(left: list[Any] | None, updates: Sequence[Any]) -> list[Any]:
    """Add one item after the other: the `fold` of `append`.

    Raises:
        InvalidUpdateError: The value is no list.
    """
    if not isinstance(left, list | None):
        raise InvalidUpdateError(f"append adds to lists, and the field holds {show(left)}: declare it as a list")
    return [*(left or ()), *updates]


append.fold = append_all  # type: ignore[attr-defined]  # read by the channel
append.appends = True  # type: ignore[attr-defined]  # as above


def merge_unique(left: list[Any] | None, right: list[Any]) -> list[Any]:
    """Add to a list those items of another that it does not have yet, in their order.

    Items are the same if they are equal, as 1 and 1.0 are. Items that can't be hashed are looked for one by one.

    Raises:
        InvalidUpdateError: A value or an update that is no list (or tuple).
    """
    return merge_all(left, (right,))


def merge_all(left: list[Any] | None, updates: Iterable[Any]) -> list[Any]:
    """Merge one update after the other: the `fold` of `merge_unique`.

    Raises:
        InvalidUpdateError: See `merge_unique`.
    """
    result = list(items(left, "merge_unique"))
    hashed: set[Any] = set()
    unhashed: list[Any] = []
    for item in result:
        remember(item, hashed, unhashed)
    for update in updates:
        result += [item for item in items(update, "merge_unique") if remember(item, hashed, unhashed)]
    return result


def remember(item: Any, hashed: set[Any], unhashed: list[Any]) -> bool:
    """Note an item, and return whether it is new."""
    try:
        if item in hashed:
            return False
        # One that can be hashed may equal one that can't, as a frozenset equals a set.
        if item in unhashed:
            return False
        hashed.add(item)
    except TypeError:
        if item in unhashed or any(item == other for other in hashed):
            return False
        unhashed.append(item)
    return True


def unique(update: Any, new_id: Callable[[], str]) -> list[Any]:  # noqa: ARG001 - the engine gives it
    """Return an update of `merge_unique` without what it has twice: it may become a field's first value.

    Raises:
        InvalidUpdateError: See `merge_unique`.
    """
    return merge_all([], (update,))


merge_unique.fold = merge_all  # type: ignore[attr-defined]  # read by the channel
merge_unique.prepare = unique  # type: ignore[attr-defined]  # as above
merge_unique.appends = True  # type: ignore[attr-defined]  # as above


def merge_dicts(left: dict[Any, Any] | None, right: dict[Any, Any]) -> dict[Any, Any]:
    """Set the keys of one dict in another; of a key that both have the later value stays, as a whole.

    Raises:
        InvalidUpdateError: A value or an update that is no dict.
    """
    return merge_all_dicts(left, (right,))


def merge_all_dicts(left: dict[Any, Any] | None, updates: Iterable[Any]) -> dict[Any, Any]:
    """Merge one update after the other: the `fold` of `merge_dicts`.

    Raises:
        InvalidUpdateError: See `merge_dicts`.
    """
    result: dict[Any, Any] = {}
    for part in ({} if left is None else left, *updates):
        if not isinstance(part, dict):
            raise InvalidUpdateError(f"merge_dicts takes dicts, not {show(part)}: return {{key: value}}")
        result.update(part)
    return result


merge_dicts.fold = merge_all_dicts  # type: ignore[attr-defined]  # read by the channel


@dataclass(frozen=True, slots=True)
class KeepLast:
    """The reducer that `keep_last` returns. Two with one number are the same reducer."""

    n: int

    def __call__(self, left: list[Any] | None, right: list[Any]) -> list[Any]:
        """Add the items of a list and keep the last ones.

        Raises:
            InvalidUpdateError: A value or an update that is no list (or tuple).
        """
        return self.fold(left, (right,))

    def fold(self, left: list[Any] | None, updates: Iterable[Any]) -> list[Any]:
        """Add one update after the other.

        Raises:
            InvalidUpdateError: See `__call__`.
        """
        name = f"keep_last({self.n})"
        result = list(items(left, name))
        for update in updates:
            result += items(update, name)
        return result[-self.n :]

    def prepare(self, update: Any, new_id: Callable[[], str]) -> list[Any]:  # noqa: ARG002 - the engine gives it
        """Return the last items of an update: it may become a field's first value, and more need not be stored.

        Raises:
            InvalidUpdateError: See `__call__`.
        """
        return self.fold([], (update,))


def keep_last(n: int) -> KeepLast:
    """Return a reducer that adds the items of a list and keeps the last `n` of all.

    Args:
        n: How many are kept, at least 1.

    Raises:
        ValueError: `n` is no such number.
    """
    if type(n) is not int or n < 1:
        raise ValueError(f"keep_last({n!r}): how many items are kept is an int of at least 1")
    return KeepLast(n)


def items(value: Any, reducer: str) -> list[Any] | tuple[Any, ...]:
    """Return the items of an operand; None is an empty list.

    Raises:
        InvalidUpdateError: It is neither list nor tuple.
    """
    if isinstance(value, (list, tuple)):
        return value
    if value is None:
        return []
    raise InvalidUpdateError(f"{reducer} takes lists, not {show(value)}: for one item, return [item]")
