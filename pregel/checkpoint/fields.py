"""What of a field a superstep has changed: what its next row is made of."""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from typing import TYPE_CHECKING, Any

from pregel.barrier import grouped
from pregel.channels.base import MISSING, Overwrite
from pregel.checkpoint.patch import CONSTANT, Patch, appended, difference

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pregel.checkpoint.restore import Sizes
    from pregel.commands import CommitBarrier
    from pregel.node import Field

__all__ = ["alike", "change", "given_back", "given_by", "is_log"]


def is_log(rule: Field) -> bool:
    """Return whether a field's value only grows at its end, unless an `Overwrite` says otherwise."""
    return bool(getattr(rule.channel, "appends", False))


def change(
    sizes: Sizes,
    rule: Field,
    old: Any,
    new: Any,
    command: CommitBarrier,
    given: Mapping[str, Mapping[int, Any]] | None,
) -> Patch | None:
    """Return what has changed of a field that holds a list or dict, or None where its whole value is to be stored.

    Args:
        sizes: What is stored of the field.
        rule: The field.
        old: Its value before.
        new: Its value after.
        command: The barrier, with the updates and the fields that an `Overwrite` gave a value.
        given: The objects that updates have held since the value was stored, by field and id; None for those of the
            barrier.
    """
    name = rule.name
    if old is MISSING:
        return None
    if is_log(rule):
        if name in command.overwritten or type(old) is not list or type(new) is not list or len(new) < len(old):
            return None
        return appended(sizes.length, old, new)
    held: Collection[int]
    if given is None:
        held = {id(part) for part in given_back(update for field, update in command.updates if field == name)}
    else:
        held = given.get(name, ())
    return difference(sizes.copy, new, held)


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


def given_by(command: CommitBarrier) -> dict[str, dict[int, Any]]:
    """Return the objects that the updates of a superstep hold, by field and id."""
    return {name: {id(part): part for part in given_back(made)} for name, made in grouped(command.updates).items()}


def alike(one: Any, other: Any) -> bool:
    """Return whether two values are one object, or lists of the same ones."""
    if one is other:
        return True
    return type(one) is type(other) is list and len(one) == len(other) and all(map(is_, one, other))
