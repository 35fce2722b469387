"""What of a field a superstep has changed: what its next row is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pregel.channels.base import MISSING, Overwrite
from pregel.checkpoint.patch import CONSTANT, EVERYTHING, Patch, appended, difference

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from pregel.checkpoint.restore import Sizes
    from pregel.node import Field

__all__ = ["alike", "change", "given_back", "is_log"]


def is_log(rule: Field) -> bool:
    """Return whether a field's value only grows at its end, unless an `Overwrite` says otherwise."""
    return bool(getattr(rule.channel, "appends", False))


def change(
    sizes: Sizes | None, rule: Field, old: Any, new: Any, *, overwritten: bool, given: Container[int] | None
) -> Patch | None:
    """Return what a superstep has changed of a field, or None where its whole value is to be stored.

    Args:
        sizes: What is stored of the field, if anything is.
        rule: The field.
        old: Its value before.
        new: Its value after.
        overwritten: Whether an `Overwrite` gave the new value.
        given: The ids of the objects that the updates of the field hold; None where they are not known.
    """
    if sizes is None or old is MISSING or new is MISSING:
        return None
    if is_log(rule):
        if overwritten or type(old) is not list or type(new) is not list or len(new) < len(old):
            return None
        return appended(sizes.length, old, new)
    if given is None:
        given = () if rule.folds and not overwritten else EVERYTHING
    return difference(sizes.copy, new, given)


def given_back(updates: Iterable[Any]) -> Iterable[Any]:
    """Yield the objects that a field's updates hold and that their node may have changed in place before."""
    for update in updates:
        value = update.value if type(update) is Overwrite else update
        parts: Iterable[Any] = (value,)
        if isinstance(value, Mapping):
            parts = [part.value if type(part) is Overwrite else part for part in value.values()]
        elif isinstance(value, (list, tuple)):
            parts = value
        for part in parts:
            if type(part) not in CONSTANT:
                yield part


def alike(one: Any, other: Any) -> bool:
    """Return whether two values are one object, or lists of the same ones."""
    if one is other:
        return True
    if type(one) is not list or type(other) is not list or len(one) != len(other):
        return False
    return same_items(one, other)


def same_items(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Return whether two lists of one length hold the same objects."""
    return all(mine is theirs for mine, theirs in zip(one, other, strict=True))
