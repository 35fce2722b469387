"""A store in a PostgreSQL database; the checkpointer's tables may stand in the same one. Needs the extra `postgres`."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Final

from pregel.store.sql import Executor, SqlRows
from pregel.store.statements import MIGRATIONS, POSTGRES
from pregel.store.transaction import Rows, RowStore

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from psycopg import Connection

__all__ = ["PostgresStore"]

#: Connections that are kept open, and how many there are at most.
FEWEST: Final = 1
MOST: Final = 8
#: How many rows of a long result are fetched at a time.
PAGE: Final = 500


class PostgresStore(RowStore):
    """A store in a database that many processes share.

    Its tables are made in the first schema of the connection's search path. Writers take turns: each holds the one row
    that counts versions until its transaction ends. Readers wait for nobody.

    Args:
        dsn: A connection string, as `psycopg.connect` takes it.

    Raises:
        DecodeError: The tables were written by a later release.
        ImportError: psycopg or psycopg_pool is not installed.
        psycopg.Error: The database can't be reached.
    """

    def __init__(self, dsn: str) -> None:
        try:
            import psycopg  # noqa: PLC0415 - an extra
            from psycopg_pool import ConnectionPool  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise ImportError(
                f"PostgresStore needs psycopg and psycopg_pool ({error}): pip install 'pregel[postgres]'"
            ) from error
        from pregel.checkpoint.postgres import make_tables  # noqa: PLC0415 - needs the extra

        make_tables(dsn, "items", MIGRATIONS)
        self._levels = psycopg.IsolationLevel
        self._pool: ConnectionPool[Connection[tuple[Any, ...]]] = ConnectionPool(
            dsn, min_size=FEWEST, max_size=MOST, open=True, name="pregel-store"
        )

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    @contextmanager
    def transaction(self, *, writes: bool) -> Iterator[Rows]:
        """Begin a transaction: see `RowStore`."""
        with self._pool.connection() as connection:
            # A reader sees one moment of the store. A writer sees what is committed when it gets its turn: at the
            # stricter level it would fail instead, for somebody else had one while it waited.
            levels = self._levels
            connection.isolation_level = levels.READ_COMMITTED if writes else levels.REPEATABLE_READ
            yield SqlRows(PostgresExecutor(connection), POSTGRES)


class PostgresExecutor(Executor):
    """Executes statements on a connection of PostgreSQL."""

    def __init__(self, connection: Connection[tuple[Any, ...]]) -> None:
        self._connection = connection

    def one(self, text: str, values: tuple[Any, ...] = ()) -> tuple[Any, ...] | None:
        """Execute a statement and return its first row."""
        with self._connection.execute(text, values) as cursor:
            return cursor.fetchone() if cursor.description else None

    def many(self, text: str, values: Sequence[tuple[Any, ...]]) -> None:
        """Execute a statement for each of these values."""
        with self._connection.cursor() as cursor:
            cursor.executemany(text, values)

    def stream(self, text: str, values: tuple[Any, ...], most: int) -> Generator[tuple[Any, ...], None, None]:
        """Yield the rows of a result, through a cursor of the server if it may be long."""
        if most <= PAGE:
            with self._connection.execute(text, values) as cursor:
                yield from cursor
            return
        with closing(self._connection.cursor(name="store_rows")) as long:
            long.itersize = PAGE
            yield from long.execute(text, values)
