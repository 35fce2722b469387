"""What operations may be: checked before the transaction begins, so that a bad one stores nothing and costs no lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from pregel.checkpoint.labels import pack
from pregel.errors import InvalidIdError, InvalidOpError, SemanticSearchError, nearest
from pregel.ids import check_id, check_labels
from pregel.store.base import (
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    Namespace,
    Op,
    PutOp,
    SearchOp,
)
from pregel.store.filters import check_filter
from pregel.store.rows import encoded
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Change", "CheckedOp", "checked"]

MATCH_TYPES: Final = ("prefix", "suffix")


class Change(NamedTuple):
    """A `PutOp` that was checked: what to store, or None to delete."""

    namespace: Namespace
    key: str
    blob: bytes | None
    expected: int | None


CheckedOp: TypeAlias = GetOp | Change | SearchOp | ListNamespacesOp


def checked(ops: Iterable[Op]) -> list[CheckedOp]:
    """Return operations whose parts are what they should be, with values encoded.

    Raises:
        InvalidIdError: A namespace or a key can't be one.
        InvalidOpError: An operation can't mean anything.
        EncodeError: A value can't be stored.
        SemanticSearchError: A search has a `query`.
    """
    return [checked_one(op) for op in ops]


def checked_one(op: object) -> CheckedOp:
    """Check one operation: see `checked`."""
    match op:
        case PutOp():
            namespace, key = place(op.namespace, op.key)
            if op.expected is not None:
                check_number(op.expected, "expected, a version of an item or 0,", 0)
            blob = None if op.value is None else encoded(namespace, key, op.value)
            return Change(namespace, key, blob, op.expected)
        case GetOp():
            return GetOp(*place(op.namespace, op.key))
        case SearchOp():
            check_page(op.limit, op.offset)
            if op.filter is not None:
                check_filter(op.filter)
            if op.query is not None:
                raise SemanticSearchError(
                    f"a search by meaning (query={show(op.query)}) needs an index of vectors, and this store has none: "
                    "leave `query` out, and find items by namespace and `filter`"
                )
            return op._replace(namespace_prefix=part(op.namespace_prefix, "a namespace prefix"))
        case ListNamespacesOp():
            check_page(op.limit, op.offset)
            if op.max_depth is not None:
                check_number(op.max_depth, "max_depth", 1)
            return op._replace(match_conditions=checked_conditions(op.match_conditions))
    known = "GetOp, PutOp, SearchOp and ListNamespacesOp"
    raise InvalidOpError(f"a batch consists of {known} of pregel.store.base, and {show(op)} is none of them")


def place(namespace: object, key: object) -> tuple[Namespace, str]:
    """Return where an item may live.

    Raises:
        InvalidIdError: The namespace has no label, a name can't be one, or both together are too long.
    """
    labels = check_labels(namespace, "a namespace")
    if not labels:
        raise InvalidIdError("a namespace has at least one label: items have no place outside of all of them")
    name = check_id(key, "a key")
    pack((*labels, name))  # raises where both together are longer than an index takes
    return labels, name


def part(labels: object, what: str) -> Namespace:
    """Return labels that namespaces may begin or end with; none are allowed.

    Raises:
        InvalidIdError: A label can't be one, or all together are too long.
    """
    checked_labels = check_labels(labels, what)
    pack(checked_labels)
    return checked_labels


def checked_conditions(given: object) -> tuple[MatchCondition, ...]:
    """Check what namespaces must begin and end with.

    Raises:
        InvalidIdError: A label can't be one.
        InvalidOpError: There is something else than conditions, or one that is neither.
    """
    if given is None:
        return ()
    if not isinstance(given, (tuple, list)):
        raise InvalidOpError(f"match_conditions is a tuple of MatchConditions, not {show(given)}")
    return tuple(map(checked_condition, given))


def checked_condition(condition: MatchCondition) -> MatchCondition:
    """Check what namespaces must begin or end with."""
    if not isinstance(condition, MatchCondition):
        raise InvalidOpError(f"namespaces are matched by MatchConditions, and {show(condition)} is none")
    if condition.match_type not in MATCH_TYPES:
        raise InvalidOpError(
            f"a namespace is matched by its prefix or its suffix, not by {show(condition.match_type)}."
            f"{nearest(condition.match_type, MATCH_TYPES)}"
        )
    return condition._replace(path=part(condition.path, f"a namespace {condition.match_type}"))


def check_page(limit: object, offset: object) -> None:
    """Check how many results are wanted, and how many are left out before them."""
    check_number(limit, "limit", 0)
    check_number(offset, "offset", 0)


def check_number(value: object, what: str, least: int) -> None:
    """Check that a number is one.

    Raises:
        InvalidOpError: It is no whole number, or less than it may be.
    """
    if type(value) is not int or value < least:
        raise InvalidOpError(f"{what} is a whole number of at least {least}, not {show(value)}")
