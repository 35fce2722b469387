"""A mapping that a task reads and writes: what it was given, and over it what the task itself has changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from pregel.channels.base import MISSING
from pregel.channels.keyed import DELETE
from pregel.errors import nearest

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Buffered"]


class Buffered(MutableMapping[str, Any]):
    """A snapshot, and the writes and deletes of one task over it. The snapshot is never changed.

    Values are handed out as they are. To change one in place is an error of whoever does: it is no write. Set the key.

    Args:
        snapshot: What all tasks of the superstep see.
        check: Returns the value to keep for a key that is set, or raises; None keeps what is given.
    """

    __slots__ = ("_changed", "_check", "_snapshot")

    def __init__(self, snapshot: Mapping[str, Any], check: Callable[[str, Any], Any] | None = None) -> None:
        self._snapshot = snapshot
        self._changed: dict[str, Any] = {}
        self._check = check

    def __getitem__(self, key: str) -> Any:
        """Return a value.

        Raises:
            KeyError: There is none; it says which keys are near.
        """
        value = self._find(key)
        if value is MISSING:
            raise KeyError(f"{key!r}{nearest(key, self)}")
        return value

    def _find(self, key: str) -> Any:
        """Return a value, or `MISSING` where there is none."""
        value = self._changed.get(key, MISSING) if self._changed else MISSING
        if value is MISSING:
            value = self._snapshot.get(key, MISSING)
        return MISSING if value is DELETE else value

    # What the mixin does by `__getitem__` would look for near keys each time there is none.

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value, or the default."""
        value = self._find(key)
        return default if value is MISSING else value

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return a value, after setting it to the default where there is none."""
        if self._find(key) is MISSING:
            self[key] = default
        return self[key]

    def pop(self, key: str, *default: Any) -> Any:
        """Delete a key and return its value, or the default where there is none.

        Raises:
            KeyError: There is none, and no default.
        """
        if default and self._find(key) is MISSING:
            return default[0]
        value = self[key]
        del self[key]
        return value

    def __setitem__(self, key: str, value: Any) -> None:
        self._changed[key] = value if self._check is None else self._check(key, value)

    def __delitem__(self, key: str) -> None:
        self[key]  # raises as reading does
        if key in self._snapshot:
            self._changed[key] = DELETE
        else:
            del self._changed[key]

    def __iter__(self) -> Iterator[str]:
        changed = self._changed
        yield from (key for key in self._snapshot if changed.get(key, MISSING) is not DELETE)
        yield from (key for key in changed if key not in self._snapshot)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, key: object) -> bool:
        changed = self._changed.get(key, MISSING)  # type: ignore[call-overload]  # any object may be asked for
        return key in self._snapshot if changed is MISSING else changed is not DELETE

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.to_dict()!r})"

    def update(self, *others: Any, **values: Any) -> None:
        """Set several keys: all, or where one is refused, none."""
        given = dict(*others, **values)
        check = self._check
        self._changed.update(given if check is None else {key: check(key, value) for key, value in given.items()})

    def has_delta(self) -> bool:
        """Return whether the task has changed anything."""
        return bool(self._changed)

    def delta(self) -> dict[str, Any]:
        """Return what the task has changed, as an update of a `KeyedValue`: `DELETE` for a key that is gone."""
        return dict(self._changed)

    def to_dict(self) -> dict[str, Any]:
        """Return what the task sees, as a dict of its own."""
        return {key: self[key] for key in self}
