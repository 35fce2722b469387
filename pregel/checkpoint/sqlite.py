"""The checkpointer on a file: SQLite, of the standard library."""

from __future__ import annotations

import os
import time
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pregel.checkpoint import statements as sql
from pregel.checkpoint.files import PRAGMAS, Synchronous, open_file
from pregel.checkpoint.points import reached
from pregel.checkpoint.schema import MIGRATIONS
from pregel.checkpoint.sql import SqlSaver
from pregel.errors import InvalidConfigError
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pregel.checkpoint.schema import Cursor

__all__ = ["SqliteSaver", "Synchronous"]

T = TypeVar("T")
#: Seconds; SQLite counts milliseconds in 32 bits.
TOO_LONG: Final = 2_000_000


class SqliteSaver(SqlSaver):
    """Keeps runs in a SQLite file, which several processes may use at once.

    Args:
        path: The file; it is made where there is none, with two beside it while it is open. ":memory:" keeps runs in
            the memory of this object.
        synchronous: "FULL" waits for the disk at every commit, "NORMAL" does not: see `Synchronous`.
        busy_timeout: How many seconds an operation waits for another process's transaction.

    Raises:
        InvalidConfigError: An option has a value it can't have.
        sqlite3.Error: The file can't be opened, or is no database.
        DecodeError: A newer release of the library wrote it.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, synchronous: Synchronous = "FULL", busy_timeout: float = 10.0
    ) -> None:
        super().__init__()
        if not 0 <= busy_timeout < TOO_LONG:
            raise InvalidConfigError(
                f"busy_timeout is a number of seconds from 0 to {TOO_LONG}, not {show(busy_timeout)}"
            )
        self.path: Final = os.fspath(path)
        self.synchronous: Final = synchronous
        self.busy_timeout: Final = busy_timeout
        # One connection, and one thread at a time on it: SQLite has one writer at a time anyway.
        self._lock = Lock()
        self._connection = open_file(
            self.path, synchronous=synchronous, busy_timeout=busy_timeout, part="checkpoints", migrations=MIGRATIONS
        )
        self._cursor = self._connection.cursor()

    def close(self) -> None:
        """Close the file; a second time it does nothing."""
        with self._lock:
            self._connection.close()

    def _now(self, _: Cursor) -> float:
        return time.time()

    def _read(self, work: Callable[[Cursor], T]) -> T:
        with self._lock:
            return self._transact(sql.BEGIN_READ, work, None)

    def _rows(self, statement: str, values: Sequence[Any]) -> list[Any]:
        with self._lock:
            return self._cursor.execute(statement, values).fetchall()

    def _change_lease(self, work: Callable[[Cursor], T]) -> T:
        if self.synchronous == "NORMAL":
            return self._change(work)
        with self._lock:
            self._cursor.execute(PRAGMAS["NORMAL"])
            try:
                return self._transact(sql.BEGIN_WRITE, work, None)
            finally:
                self._cursor.execute(PRAGMAS[self.synchronous])

    def _change(self, work: Callable[[Cursor], T], point: str | None = None) -> T:
        with self._lock:
            return self._transact(sql.BEGIN_WRITE, work, point)

    def _transact(self, begin: str, work: Callable[[Cursor], T], point: str | None) -> T:
        cursor = self._cursor
        try:
            cursor.execute(begin)
            result = work(cursor)
            if point is not None:
                reached(point)
            cursor.execute(sql.COMMIT)
        except BaseException:
            if self._connection.in_transaction:
                self._connection.rollback()
            raise
        return result
