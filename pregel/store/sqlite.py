"""A store in a file of SQLite; the checkpointer's tables may stand in the same one."""

from __future__ import annotations

from contextlib import closing, contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from pregel.checkpoint.files import Synchronous, open_file
from pregel.store.sql import Executor, SqlRows
from pregel.store.statements import MIGRATIONS, SQLITE
from pregel.store.transaction import Rows, RowStore

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Generator, Iterator, Sequence
    from os import PathLike

__all__ = ["SqliteStore"]

#: Seconds that a transaction waits for one of another connection or process.
BUSY_SECONDS: Final = 30.0


class SqliteStore(RowStore):
    """A store in a file.

    One connection serves all threads, one after the other; other processes may open the same file.

    Args:
        path: The file, which is made where there is none; ":memory:" for one that ends with the store.
        synchronous: "FULL", or "NORMAL", with which a power cut may take the last commits.

    Raises:
        DecodeError: The tables were written by a later release.
        InvalidConfigError: `synchronous` is neither.
        sqlite3.Error: The file can't be opened, or is no database.
    """

    def __init__(self, path: str | PathLike[str], *, synchronous: Synchronous = "FULL") -> None:
        self._lock = Lock()
        self._connection = open_file(
            path, synchronous=synchronous, busy_timeout=BUSY_SECONDS, part="items", migrations=MIGRATIONS
        )

    def close(self) -> None:
        """Close the file, when the transaction that is open has ended."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def transaction(self, *, writes: bool) -> Iterator[Rows]:
        """Begin a transaction: see `RowStore`."""
        with self._begun("BEGIN IMMEDIATE" if writes else "BEGIN") as executor:
            yield SqlRows(executor, SQLITE)

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
