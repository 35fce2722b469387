"""A cache in a file of SQLite; tables of checkpointers and stores may stand in the same one."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from pregel.cache import statements as sql
from pregel.cache.base import BaseCache
from pregel.checkpoint.files import open_file
from pregel.checkpoint.labels import bounds, pack
from pregel.clock import clock

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from pregel.cache.base import Namespace

__all__ = ["SqliteCache"]

#: Seconds that an operation waits for a transaction of another connection or process.
BUSY_SECONDS: Final = 30.0


class SqliteCache(BaseCache):
    """A cache in a file, which several processes may use at once. What has expired goes when something is put.

    A power cut may take what was put last, and never more.

    Args:
        path: The file, which is made where there is none; ":memory:" for one that ends with the cache.

    Raises:
        DecodeError: The tables were written by a later release.
        sqlite3.Error: The file can't be opened, or is no database.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._lock = Lock()
        self._connection = open_file(
            path, synchronous="NORMAL", busy_timeout=BUSY_SECONDS, part="cache", migrations=sql.MIGRATIONS
        )

    def close(self) -> None:
        """Close the file; a second time it does nothing."""
        with self._lock:
            self._connection.close()

    def get(self, namespace: Namespace, key: str) -> bytes | None:
        """Return what is kept; see `BaseCache`."""
        with self._lock:
            found = self._connection.execute(sql.GET, (pack(namespace), key, clock().time())).fetchone()
        return None if found is None else found[0]

    def put(self, namespace: Namespace, key: str, value: bytes, ttl: float | None = None) -> None:
        """Keep bytes; see `BaseCache`."""
        now = clock().time()
        expires = None if ttl is None else now + ttl
        self._write((sql.EXPIRE, (now,)), (sql.PUT, (pack(namespace), key, expires, value)))

    def clear(self, namespace: Namespace = ()) -> None:
        """Forget what is kept; see `BaseCache`."""
        self._write((sql.CLEAR, bounds(namespace)))

    def _write(self, *changes: tuple[str, Sequence[Any]]) -> None:
        """Make changes in one transaction."""
        with self._lock:
            connection = self._connection
            try:
                connection.execute("BEGIN IMMEDIATE")
                for text, values in changes:
                    connection.execute(text, values)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
