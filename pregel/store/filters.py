"""Which values a filter matches: one pure function, so that every store answers alike.

A filter is a mapping from fields of the value, at its top level, to conditions: a value to equal, or a mapping of
operators, all of which must hold. Values of different kinds are never equal and stand in no order; a comparison that
Python refuses does not match. `$ne` and `$nin` are the negations of `$eq` and `$in`, so they also match where the field
is absent or of another kind.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from pregel.channels.base import MISSING
from pregel.errors import InvalidOpError, nearest
from pregel.text import show

__all__ = ["OPERATORS", "Filter", "check_filter", "matches"]

#: Field -> a value or a mapping of operators.
Filter = Mapping[str, Any]


def same(left: Any, right: Any) -> bool:
    """Return whether two values of one kind are equal, looking into dicts, lists and tuples. Never raises."""
    if is_number(left) and is_number(right):
        return bool(left == right)
    if type(left) is not type(right):
        return False
    try:
        if isinstance(left, dict):
            return len(left) == len(right) and all(key in right and same(left[key], right[key]) for key in left)
        if isinstance(left, (list, tuple)):
            return len(left) == len(right) and all(map(same, left, right))
        return bool(left == right)
    except Exception:  # noqa: BLE001 - values that can't be compared are not equal
        return False


def ordered(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], bool]:
    """Return a comparison that is false for values that stand in no order."""

    def holds(left: Any, right: Any) -> bool:
        if type(left) is not type(right) and not (is_number(left) and is_number(right)):
            return False
        try:
            return bool(compare(left, right))
        except Exception:  # noqa: BLE001 - such as two dicts, or a date with and one without a zone
            return False

    return holds


def is_number(value: Any) -> bool:
    """Return whether a value is an int or a float; a bool is neither."""
    return type(value) in {int, float}


def among(value: Any, choices: Collection[Any]) -> bool:
    """Return whether a value equals one of some."""
    return any(same(value, choice) for choice in choices)


#: Operator -> whether it holds for a field's value (`MISSING` where it is absent) and the operand.
OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "$eq": same,
    "$ne": lambda value, operand: not same(value, operand),
    "$gt": ordered(operator.gt),
    "$gte": ordered(operator.ge),
    "$lt": ordered(operator.lt),
    "$lte": ordered(operator.le),
    "$in": among,
    "$nin": lambda value, operand: not among(value, operand),
    "$exists": lambda value, operand: (value is not MISSING) is operand,
}


def operators_of(condition: Any) -> Mapping[str, Any] | None:
    """Return a condition that is a mapping of operators, or None for one that is a value to equal."""
    if isinstance(condition, Mapping) and any(isinstance(key, str) and key.startswith("$") for key in condition):
        return condition
    return None


def check_filter(given: object) -> None:
    """Check that a filter can be one.

    Raises:
        InvalidOpError: It is no mapping of fields, names an operator that is not there, or an operand is none.
    """
    if not isinstance(given, Mapping):
        raise InvalidOpError(f"a filter is a mapping of fields to conditions, not {show(given)}")
    for field, condition in given.items():
        if not isinstance(field, str):
            raise InvalidOpError(f"a filter names fields, which are texts, and {show(field)} is none")
        for name, operand in (operators_of(condition) or {}).items():
            where = f"the filter on field {field!r}"
            if name not in OPERATORS:
                raise InvalidOpError(
                    f"{where} has the operator {show(name)}, and there are {', '.join(OPERATORS)} only."
                    f"{nearest(name, OPERATORS)} A mapping to be equal to is written {{'$eq': {{...}}}}"
                )
            if name in {"$in", "$nin"} and not isinstance(operand, (list, tuple, set, frozenset)):
                raise InvalidOpError(f"{where}: {name} takes a list, tuple or set of values, not {show(operand)}")
            if name == "$exists" and not isinstance(operand, bool):
                raise InvalidOpError(f"{where}: {name} takes True or False, not {show(operand)}")


def matches(value: Mapping[str, Any], given: Filter) -> bool:
    """Return whether a stored value matches a filter that `check_filter` has passed. Never raises."""
    for field, condition in given.items():
        found = value.get(field, MISSING)
        operators = operators_of(condition)
        if operators is None:
            if not same(found, condition):
                return False
        elif not all(OPERATORS[name](found, operand) for name, operand in operators.items()):
            return False
    return True
