"""The checkpointer on a file: SQLite, of the standard library."""

from __future__ import annotations

import os
import sqlite3
import time
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, get_args

from pregel.checkpoint import statements as sql
from pregel.checkpoint.points import reached
from pregel.checkpoint.schema import MIGRATIONS, SQLITE_TYPES, migrate
from pregel.checkpoint.sql import SqlSaver
from pregel.errors import InvalidConfigError
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pregel.checkpoint.schema import Cursor

__all__ = ["SqliteSaver", "Synchronous"]

T = TypeVar("T")
#: FULL: what is committed survives a loss of power. NORMAL: it survives the death of the process, and a loss of power
#: can take the last commits, whole ones only.
Synchronous = Literal["FULL", "NORMAL"]

#: Seconds; SQLite counts milliseconds in 32 bits.
TOO_LONG: Final = 2_000_000

PRAGMAS: Final = {"FULL": sql.SYNCHRONOUS_FULL, "NORMAL": sql.SYNCHRONOUS_NORMAL}
JOURNAL: Final = "PRAGMA journal_mode = WAL"
# Bytes, of a new file: a superstep writes some hundred bytes to a handful of places, and each costs a page of the log.
PAGE_SIZE: Final = "PRAGMA page_size = 2048"


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
        if synchronous not in get_args(Synchronous):
            raise InvalidConfigError(f"synchronous is 'FULL' or 'NORMAL', not {show(synchronous)}")
        if not 0 <= busy_timeout < TOO_LONG:
            raise InvalidConfigError(
                f"busy_timeout is a number of seconds from 0 to {TOO_LONG}, not {show(busy_timeout)}"
            )
        self.path: Final = os.fspath(path)
        self.synchronous: Final = synchronous
        self.busy_timeout: Final = busy_timeout
        # One connection, and one thread at a time on it: SQLite has one writer at a time anyway.
        self._lock = Lock()
        try:
            self._connection = sqlite3.connect(
                self.path, timeout=busy_timeout, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise said_of(self.path, error) from error
        try:
            self._cursor = self._connection.cursor()
            self._prepare()
        except BaseException as error:
            self._connection.close()
            if isinstance(error, sqlite3.Error):
                raise said_of(self.path, error) from error
            raise

    def close(self) -> None:
        """Close the file; a second time it does nothing."""
        with self._lock:
            self._connection.close()

    def _prepare(self) -> None:
        deadline = time.monotonic() + self.busy_timeout
        while True:  # two that open a new file at once: SQLite does not wait for the other by itself here
            try:
                self._cursor.execute(PRAGMAS[self.synchronous])
                self._cursor.execute(PAGE_SIZE)
                self._cursor.execute(JOURNAL)
                break
            except sqlite3.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.005)
        self._change(lambda cursor: migrate(cursor, SQLITE_TYPES, "checkpoints", MIGRATIONS, repr(self.path)))

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


def said_of(path: str, error: sqlite3.Error) -> sqlite3.Error:
    """Return an error that says which file it is about."""
    return type(error)(f"{path!r} can't be opened as a SQLite database of checkpoints: {error}")
