"""Finds nodes that change what they were given in place of returning an update: what `compile(debug=True)` does.

A node is given deep copies, which are compared afterwards with what they were copied from. So the state is never
touched, and the node that did it is named even where others run beside it. It costs as much as the state is large.
"""

from __future__ import annotations

from collections import deque
from copy import deepcopy
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any

from pregel.channels.base import MISSING
from pregel.errors import MutatedStateError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["check_untouched", "copied", "differs"]

IDENTITY: Any = object.__eq__


def copied(value: Any) -> Any:
    """Return a deep copy, or the value itself where it can't be copied (a lock, a connection)."""
    try:
        return deepcopy(value)
    except Exception:  # noqa: BLE001 - such a value is watched no further
        return value


def check_untouched(
    values: Mapping[str, Any],
    copies: Mapping[str, Any],
    after: Mapping[str, Any],
    written: Collection[str],
    where: str,
) -> None:
    """Check that a node has left alone what it was given.

    Args:
        values: The values in the state.
        copies: The copies of them that the node was given, in a mapping of its own.
        after: That mapping when the node has ended.
        written: The fields that it returned an update of; it may have put that into its mapping as well.
        where: How messages name the node.

    Raises:
        MutatedStateError: It changed one.
    """
    for name in dict.fromkeys((*copies, *after)):
        replaced = after.get(name, MISSING) is not copies.get(name, MISSING) and name not in written
        if replaced or differs(values.get(name, MISSING), copies.get(name, MISSING)):
            raise MutatedStateError(
                f"{where} changed the field {name!r} in place. What a node is given belongs to the state: return the "
                f"change as an update, {{{name!r}: ...}}, made of a copy"
            )


def comparable(values: Collection[Any]) -> set[Any]:
    """Return the values that equal a copy of themselves."""
    return {value for value in values if type(value).__eq__ is not IDENTITY}


def attributes(value: object) -> dict[str, Any]:
    """Return what an object holds, in its `__dict__` and in its slots."""
    slots = [name for kind in type(value).__mro__ for name in kind.__dict__.get("__slots__", ())]
    held = {name: getattr(value, name) for name in slots if hasattr(value, name) and name != "__dict__"}
    return {**held, **getattr(value, "__dict__", {})}


def differs(one: Any, other: Any, seen: frozenset[tuple[int, int]] = frozenset()) -> bool:
    """Return whether two values certainly differ in what they hold; objects without equality by their attributes."""
    if one is other or (id(one), id(other)) in seen:
        return False
    if type(one) is not type(other):
        return True
    inner = seen | {(id(one), id(other))}
    if isinstance(one, dict):  # a copy has its items in the same order
        unlike = differs(list(one.items()), list(other.items()), inner)
    elif isinstance(one, (list, tuple, deque)):
        unlike = len(one) != len(other) or any(differs(*pair, inner) for pair in zip(one, other, strict=True))
    elif isinstance(one, (set, frozenset)):
        unlike = len(one) != len(other) or comparable(one) != comparable(other)
    elif type(one).__eq__ is IDENTITY or is_dataclass(one):
        unlike = differs(attributes(one), attributes(other), inner)
    else:
        try:
            unlike = not bool(one == other)
        except Exception:  # noqa: BLE001 - an array has no single truth: it is compared by its bytes, if it has some
            unlike = bool(getattr(one, "tobytes", bytes)() != getattr(other, "tobytes", bytes)())
    return unlike
