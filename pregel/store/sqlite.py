"""A store in a file of SQLite; the checkpointer's tables may stand in the same one."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing, contextmanager
from os import PathLike, fspath
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from pregel.errors import InvalidConfigError, nearest
from pregel.store.sql import Executor, SqlRows, migrate
from pregel.store.statements import SQLITE
from pregel.store.transaction import Rows, RowStore
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

__all__ = ["SqliteStore"]

#: Seconds that a transaction waits for one of another connection or process.
BUSY_SECONDS: Final = 30.0
#: Seconds until the write-ahead log is asked for again.
RETRY_SECONDS: Final = 0.005
JOURNAL: Final = "PRAGMA journal_mode=WAL"
#: How much of a commit reaches the disk before it counts: FULL outlives a power cut, NORMAL a killed process.
SYNCHRONOUS: Final = {"FULL": "PRAGMA synchronous=FULL", "NORMAL": "PRAGMA synchronous=NORMAL"}


class SqliteStore(RowStore):
    """A store in a file.

    One connection serves all threads, one after the other; other processes may open the same file.

    Args:
        path: The file, which is made where there is none; ":memory:" for one that ends with the store.
        synchronous: "FULL", or "NORMAL", with which a power cut may take the last commits.

    Raises:
        DecodeError: The tables were written by a later release.
        InvalidConfigError: `synchronous` is neither.
        sqlite3.Error: The file can't be opened.
    """

    def __init__(self, path: str | PathLike[str], *, synchronous: str = "FULL") -> None:
        if synchronous not in SYNCHRONOUS:
            raise InvalidConfigError(
                f"synchronous is one of {', '.join(SYNCHRONOUS)}, not {show(synchronous)}."
                f"{nearest(synchronous, SYNCHRONOUS)}"
            )
        self._lock = Lock()
        self._connection = sqlite3.connect(
            fspath(path), timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            self._connection.execute(SYNCHRONOUS[synchronous]).close()
            self._write_ahead()
            with self._begun("BEGIN IMMEDIATE") as executor:
                migrate(executor, SQLITE)
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the file, when the transaction that is open has ended."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def transaction(self, *, writes: bool) -> Iterator[Rows]:
        """Begin a transaction: see `RowStore`."""
        with self._begun("BEGIN IMMEDIATE" if writes else "BEGIN") as executor:
            yield SqlRows(executor, SQLITE)

    def _write_ahead(self) -> None:
        """Switch to the write-ahead log. SQLite does not wait by itself for another that does so at the same time."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self._connection.execute(JOURNAL).close()
            except sqlite3.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(RETRY_SECONDS)
            else:
                return

    @contextmanager
    def _begun(self, begin: str) -> Iterator[Executor]:
        with self._lock:
            connection = self._connection
            try:
                connection.execute(begin)
                yield SqliteExecutor(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise


class SqliteExecutor(Executor):
    """Executes statements on a connection of SQLite."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def one(self, text: str, values: tuple[Any, ...] = ()) -> tuple[Any, ...] | None:
        """Execute a statement and return its first row."""
        with closing(self._connection.execute(text, values)) as cursor:
            row: tuple[Any, ...] | None = cursor.fetchone()
            return row

    def many(self, text: str, values: Sequence[tuple[Any, ...]]) -> None:
        """Execute a statement for each of these values."""
        self._connection.executemany(text, values).close()

    def stream(self, text: str, values: tuple[Any, ...], most: int) -> Generator[tuple[Any, ...], None, None]:  # noqa: ARG002 - SQLite never holds a result
        """Yield the rows of a result."""
        with closing(self._connection.execute(text, values)) as cursor:
            yield from cursor
