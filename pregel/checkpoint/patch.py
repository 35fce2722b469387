"""How a value that changed a little is stored as what changed, and put together again.

A patch is made of the two values alone, by the identity of their parts, so it holds whatever reducer made them: what was
appended to a list, what was replaced in it, which keys of a dict are new. Applying the patches of a field in order to its
last whole value gives the value, with no reducer involved; so code that changes later can't change history.
"""

from __future__ import annotations

from functools import partial
from operator import is_
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pregel.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

__all__ = ["CONSTANT", "EVERYTHING", "Patch", "appended", "apply", "difference"]

APPEND: Final = 0
SPLICE: Final = 1
KEYS: Final = 2
# Below that size a whole value costs no more than a patch.
SMALL: Final = 4
#: Types whose values nobody can change.
CONSTANT: Final = frozenset({type(None), bool, int, float, complex, str, bytes})


class Everything:
    """The ids of all objects."""

    def __contains__(self, item: object) -> bool:
        return True


#: For `difference`: every part may have been changed.
EVERYTHING: Final = Everything()


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


def difference(old: Any, new: Any, given: Container[int] = ()) -> Patch | None:
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


def list_difference(old: list[Any], new: list[Any], given: Container[int]) -> Patch | None:
    """Return what turns one list into another."""
    shorter = min(len(old), len(new))
    if shorter < SMALL:
        return None
    first = same(old, new, shorter, given)
    if first == len(old):
        return Patch(APPEND, (first,), new[first:])
    last = same(reversed(old), reversed(new), shorter - first, given)
    if 2 * (first + last) < len(new):
        return None
    return Patch(SPLICE, (len(old), first, last), new[first : len(new) - last])


def same(old: Iterable[Any], new: Iterable[Any], limit: int, given: Container[int]) -> int:
    """Return how many items two lists have in common from here, at most so many."""
    alike = map(is_, old, new) if not given else map(partial(kept, given), old, new)
    return next((place for place, equal in enumerate(alike) if not equal or place >= limit), limit)


def kept(given: Container[int], old: Any, new: Any) -> bool:
    """Return whether a part is what it was: the same object, and one that can't change or that nobody gave back."""
    return old is new and (type(old) in CONSTANT or id(old) not in given)


def dict_difference(old: dict[Any, Any], new: dict[Any, Any], given: Container[int]) -> Patch | None:
    """Return what turns one dict into another, its order included."""
    missing = object()
    changed = {key: value for key, value in new.items() if not kept(given, old.get(key, missing), value)}
    if 2 * len(changed) > len(new):
        return None
    gone = [key for key in old if key not in new]
    patch = Patch(KEYS, (), (changed, gone))
    return patch if list(apply(old, patch)) == list(new) else None


def apply(old: Any, patch: Patch) -> Any:
    """Return the value that a patch makes of the one before.

    Raises:
        DecodeError: The patch is for another value.
    """
    kind, numbers, news = patch
    if kind == KEYS and type(old) is dict:
        changed, gone = news
        left = frozenset(gone)
        result = {key: value for key, value in old.items() if key not in left} if gone else dict(old)
        result.update(changed)
        return result
    if type(old) is not list or type(news) is not list or not numbers or numbers[0] != len(old):
        raise DecodeError(
            f"a stored patch is for a list of {numbers[0] if numbers else '?'} items, and the value before is a "
            f"{type(old).__name__}{f' of {len(old)}' if isinstance(old, list) else ''}: rows are missing or out of order"
        )
    if kind == APPEND:
        return [*old, *news]
    _, first, last = numbers
    return [*old[:first], *news, *old[len(old) - last :]]

