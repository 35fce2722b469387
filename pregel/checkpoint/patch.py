"""How a value that changed a little is stored as what changed, and put together again.

A patch is made of the two values alone, by the identity of their parts, so it holds whatever reducer made them: what
was appended to a list, what was replaced in it, which keys of a dict are new. Applying the patches of a field in order
to its last whole value gives the value, with no reducer involved; so code that changes later can't change history.
"""

from __future__ import annotations

from itertools import compress
from operator import is_not, or_
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pregel.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["CONSTANT", "Patch", "appended", "apply", "difference"]

APPEND: Final = 0
SPLICE: Final = 1
KEYS: Final = 2
# How many numbers a patch of a list has.
LENGTHS: Final = {APPEND: 1, SPLICE: 3}
# Below that size a whole value costs no more than a patch.
SMALL: Final = 4
#: Types whose values nobody can change.
CONSTANT: Final = frozenset({type(None), bool, int, float, complex, str, bytes})


class Patch(NamedTuple):
    """What changed."""

    kind: int
    #: Lengths: for APPEND of the old list; for SPLICE also of what stays at its beginning and its end.
    numbers: tuple[int, ...]
    #: The items that are new, or for KEYS a pair: the new and changed items of the dict, and the keys that are gone.
    news: Any


def appended(length: int, old: list[Any], new: list[Any]) -> Patch:
    """Return what a log has got at its end.

    Args:
        length: How many items are stored of it. The old list may hold more or fewer: somebody changed it in place.
        old: The list before.
        new: The list after.
    """
    return Patch(APPEND, (length,), new[len(old) :])


def difference(old: Any, new: Any, given: Collection[int] = ()) -> Patch | None:
    """Return what turns one value into another, or None where the whole value is as good.

    What stands in both is taken to be as it was. So `old` is a copy that nobody changes in place, made when the value
    was stored, and `given` tells of the parts that may have been changed.

    Args:
        old: The value before.
        new: The value after.
        given: The ids of objects that are stored anew although they stand in both, for a node gave them back.
    """
    if type(old) is not type(new):
        return None
    if type(new) is list:
        return list_difference(old, new, given)
    if type(new) is dict and len(new) >= SMALL:
        return dict_difference(old, new, given)
    return None


def list_difference(old: list[Any], new: list[Any], given: Collection[int]) -> Patch | None:
    """Return what turns one list into another."""
    shorter = min(len(old), len(new))
    first = same(old, new, shorter, given)
    if first == len(old):
        return Patch(APPEND, (first,), new[first:])
    if shorter < SMALL:
        return None
    last = same(old[::-1], new[::-1], shorter - first, given)
    if 2 * (first + last) < len(new):
        return None
    return Patch(SPLICE, (len(old), first, last), new[first : len(new) - last])


def same(old: list[Any], new: list[Any], limit: int, given: Collection[int]) -> int:
    """Return how many items two lists have in common from here, at most so many."""
    # Not one item is looked at by code that is not C's: a list of thousands is compared in each superstep.
    unlike = map(is_not, old, new)
    if given:
        unlike = map(or_, unlike, map(given.__contains__, map(id, new)))
    return next(compress(range(limit), unlike), limit)


def dict_difference(old: dict[Any, Any], new: dict[Any, Any], given: Collection[int]) -> Patch | None:
    """Return what turns one dict into another, its order included."""
    missing = object()
    in_place = list(old) == list(new)  # the same keys in one order, as where values were set: nothing is looked up
    before = old.values() if in_place else [old.get(key, missing) for key in new]
    unlike = map(is_not, before, new.values())
    if given:
        unlike = map(or_, unlike, map(given.__contains__, map(id, new.values())))
    changed = dict(compress(new.items(), unlike))
    if 2 * len(changed) > len(new):
        return None
    gone = [] if in_place else [key for key in old if key not in new]
    patch = Patch(KEYS, (), (changed, gone))
    return patch if in_place or list(apply(old, patch)) == list(new) else None


def apply(old: Any, patch: Patch) -> Any:
    """Return the value that a patch makes of the one before.

    Raises:
        DecodeError: The patch is for another value.
    """
    kind, numbers, news = patch
    if kind == KEYS and type(old) is dict and type(news) is tuple and list(map(type, news)) == [dict, list]:
        changed, gone = news
        left = frozenset(gone)
        result = {key: value for key, value in old.items() if key not in left} if gone else dict(old)
        result.update(changed)
        return result
    if type(old) is not list or type(news) is not list or LENGTHS.get(kind) != len(numbers) or numbers[0] != len(old):
        raise DecodeError(
            f"a stored patch is for a list of {numbers[0] if numbers else '?'} items, and the value before is a "
            f"{type(old).__name__}{f' of {len(old)}' if isinstance(old, list) else ''}: rows are missing or out of "
            "order"
        )
    if kind == APPEND:
        return [*old, *news]
    _, first, last = numbers
    return [*old[:first], *news, *old[len(old) - last :]]
