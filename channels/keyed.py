"""A mapping whose keys are written, conflict and are deleted one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, final

from pregel.channels.base import MISSING, Channel, ConcurrentUpdateError, InvalidUpdateError, overwritten

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DELETE", "KeyedValue"]


@final
class Delete:
    """The type of `DELETE`, the update that removes a key (`None` is a value)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "DELETE"

    def __reduce__(self) -> str:
        return "DELETE"


DELETE: Final = Delete()


class KeyedValue(Channel):
    """A mapping in which every key is a cell of its own: the state of front doors that have no schema.

    An update is a mapping from key to new value, or to `DELETE`. Two updates of one superstep may touch the same
    channel, but not the same key, unless one of them says `Overwrite(new)` for that key.
    """

    __slots__ = ()
    clears: ClassVar[bool] = False

    def initial(self) -> dict[Any, Any]:
        """Return the empty mapping."""
        return {}

    def apply(self, value: Any, updates: Sequence[Any]) -> dict[Any, Any]:
        """Return the mapping with all updates made; the value given is left alone.

        Raises:
            ConcurrentUpdateError: Two updates touch one key, or overwrite it; the message names it.
            InvalidUpdateError: An update that is no mapping.
        """
        replaced = overwritten(updates)
        if replaced is not MISSING:
            value, updates = MISSING, (replaced,)
        written: dict[Any, list[Any]] = {}
        for update in updates:
            for key, new in checked(update).items():
                written.setdefault(key, []).append(new)
        result = {} if value is MISSING else dict(value)
        for key, candidates in written.items():
            new = settled(key, candidates)
            if new is DELETE:
                result.pop(key, None)
            else:
                result[key] = new
        return result


def settled(key: Any, candidates: Sequence[Any]) -> Any:
    """Return what one key gets from the updates that touch it.

    Raises:
        ConcurrentUpdateError: Two updates, and not exactly one `Overwrite` among them.
    """
    try:
        replaced = overwritten(candidates)
    except ConcurrentUpdateError as error:
        raise ConcurrentUpdateError(f"the key {key!r} got {error}") from None
    if replaced is not MISSING:
        return replaced
    if len(candidates) > 1:
        raise ConcurrentUpdateError(
            f"two updates of one superstep touch the key {key!r}. Let each write a key of its own, put them in "
            "different supersteps, or declare the key as a field with a reducer"
        )
    return candidates[0]


def checked(update: Any) -> Mapping[Any, Any]:
    """Return the update if it is a mapping.

    Raises:
        InvalidUpdateError: It is none.
    """
    if not isinstance(update, Mapping):
        raise InvalidUpdateError(f"a keyed field takes a mapping of keys to values, not {type(update).__name__}")
    return update
