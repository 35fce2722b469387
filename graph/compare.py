"""Whether two annotations of one field can't both be right."""

from __future__ import annotations

import collections.abc
import types
from typing import Any, Literal, NewType, get_args, get_origin

from pregel.graph.annotations import ITEMS, MAPPINGS, TOWER, UNIONS, is_typeddict, unwrap

__all__ = ["mismatch"]


def mismatch(first: Any, second: Any) -> bool:
    """Return whether two annotations are certainly incompatible; in doubt they are not.

    Unions are compatible if any of their members are, classes if one is a subclass of the other, generics if their
    arguments are or one has none. `Any`, type variables, protocols and forms that say little match everything.
    """
    return all(apart(one, other) for one in members(first) for other in members(second))


def members(annotation: Any) -> list[Any]:
    """Return the alternatives that an annotation allows, as literals and classes."""
    bare, _ = unwrap(annotation)
    if isinstance(bare, NewType):
        return members(bare.__supertype__)
    if get_origin(bare) in UNIONS:
        return [alternative for member in get_args(bare) for alternative in members(member)]
    return [types.NoneType if bare is None else bare]


def apart(first: Any, second: Any) -> bool:
    """Return whether no value is both, as far as can be told."""
    if get_origin(second) is Literal:
        first, second = second, first
    if get_origin(first) is Literal:
        return all(outside(value, second) for value in get_args(first))
    one, other = kind_of(first), kind_of(second)
    if one is None or other is None:
        return False
    if not related(one, other):
        return True
    return arguments_apart(one, get_args(first), other, get_args(second))


def kind_of(annotation: Any) -> type | None:
    """Return the class behind an annotation, or None where it has none or one that says little."""
    kind = get_origin(annotation) or annotation
    if is_typeddict(kind):
        return dict
    if not isinstance(kind, type) or kind is Any or kind is object or getattr(kind, "_is_protocol", False):
        return None
    return kind


def outside(value: Any, annotation: Any) -> bool:
    """Return whether a literal value is certainly none of an annotation's."""
    if get_origin(annotation) is Literal:
        return all(type(value) is not type(option) or value != option for option in get_args(annotation))
    kind = kind_of(annotation)
    return kind is not None and not isinstance(value, TOWER.get(kind, (kind,)))


def related(one: type, other: type) -> bool:
    """Return whether one class is a subclass of the other, or counts as one."""
    return issubclass(one, TOWER.get(other, (other,))) or issubclass(other, TOWER.get(one, (one,)))


def arguments_apart(one: Any, first: tuple[Any, ...], other: Any, second: tuple[Any, ...]) -> bool:
    """Return whether the type arguments of two related classes are certainly incompatible."""
    if not first or not second or one is collections.abc.Callable:
        return False
    if one is other is tuple:
        return tuples_apart(first, second)
    alike = one is other or {one, other} <= ITEMS or {one, other} <= MAPPINGS
    return alike and len(first) == len(second) and any(map(mismatch, first, second))


def tuples_apart(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    """Return whether two tuples differ in length, or in the type of an item."""
    if len(first) == len(second) and (first[-1] is ...) == (second[-1] is ...):
        return any(map(mismatch, first, second))
    if second[-1] is ...:
        first, second = second, first
    if first[-1] is ...:
        return any(mismatch(first[0], each) for each in second)
    return True
