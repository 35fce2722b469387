"""What a reducer field starts with when nothing is declared."""

from __future__ import annotations

import collections.abc
import inspect
from enum import Enum
from typing import TYPE_CHECKING, Any, NewType, get_args, get_origin

from pregel.graph.annotations import is_typeddict, unwrap

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["empty_factory"]

#: Abstract containers, and the builtin one that stands for each.
CONCRETE: dict[Any, type] = {
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Set: set,
    collections.abc.MutableSet: set,
    collections.abc.Mapping: dict,
    collections.abc.MutableMapping: dict,
}


def empty_factory(annotation: Any) -> Callable[[], Any] | None:
    """Return what makes the empty value of a type: `list` for `Sequence[str]`, `int` (so 0) for `int`.

    As in LangGraph any class counts that can be made without arguments; it is tried here, once.

    Returns:
        A class, so that two fields of one type have equal channels; None for a type without an empty value: unions
        (`None` or empty?), `Any`, literals, enums, abstract classes and protocols, tuples of a fixed length, classes
        with required arguments.
    """
    bare, _ = unwrap(annotation)
    if isinstance(bare, NewType):
        return empty_factory(bare.__supertype__)
    arguments = get_args(bare)
    kind = get_origin(bare) or bare
    if is_typeddict(kind):
        return dict
    kind = CONCRETE.get(kind, kind)
    if not isinstance(kind, type) or kind is object or issubclass(kind, Enum) or inspect.isabstract(kind):
        return None
    if kind is tuple and arguments and arguments[-1] is not ...:
        return None
    try:
        kind()
    except Exception:  # noqa: BLE001 - whatever a constructor says about missing arguments
        return None
    return kind
