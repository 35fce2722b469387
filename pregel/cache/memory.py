"""A cache in the memory of one process."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from pregel.cache.base import BaseCache
from pregel.clock import clock

if TYPE_CHECKING:
    from pregel.cache.base import Namespace

__all__ = ["InMemoryCache"]


class Kept(NamedTuple):
    """What is kept, and until when."""

    value: bytes
    #: By the clock that never goes back; None for ever.
    expires: float | None


class InMemoryCache(BaseCache):
    """A cache that ends with its process, and grows until then: what has expired goes when something is put."""

    blocking: ClassVar[bool] = False

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: dict[Namespace, dict[str, Kept]] = {}
        #: When the first of them expires that do.
        self._first: float | None = None

    def get(self, namespace: Namespace, key: str) -> bytes | None:
        """Return what is kept; see `BaseCache`."""
        with self._lock:
            kept = self._kept.get(namespace, {}).get(key)
        return None if kept is None or is_over(kept.expires, clock().now()) else kept.value

    def put(self, namespace: Namespace, key: str, value: bytes, ttl: float | None = None) -> None:
        """Keep bytes; see `BaseCache`."""
        now = clock().now()
        expires = None if ttl is None else now + ttl
        with self._lock:
            if is_over(self._first, now):
                self._tidy(now)
            self._kept.setdefault(namespace, {})[key] = Kept(value, expires)
            if expires is not None:
                self._first = expires if self._first is None else min(self._first, expires)

    def clear(self, namespace: Namespace = ()) -> None:
        """Forget what is kept; see `BaseCache`."""
        with self._lock:
            for each in [each for each in self._kept if each[: len(namespace)] == namespace]:
                del self._kept[each]

    def _tidy(self, now: float) -> None:
        """Let go of what has expired."""
        left = {
            namespace: {key: kept for key, kept in rows.items() if not is_over(kept.expires, now)}
            for namespace, rows in self._kept.items()
        }
        self._kept = {namespace: rows for namespace, rows in left.items() if rows}
        ends = [kept.expires for rows in self._kept.values() for kept in rows.values() if kept.expires is not None]
        self._first = min(ends, default=None)


def is_over(expires: float | None, now: float) -> bool:
    """Return whether a time has come."""
    return expires is not None and expires <= now
