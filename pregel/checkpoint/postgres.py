"""The checkpointer on a server: PostgreSQL, through psycopg 3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from pregel.checkpoint import statements as sql
from pregel.checkpoint.points import reached
from pregel.checkpoint.schema import MIGRATIONS, POSTGRES_TYPES, READ_VERSION, SET_VERSION, migrate
from pregel.checkpoint.sql import SqlSaver

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
    from psycopg_pool import ConnectionPool
except ImportError as error:
    raise ImportError("PostgresSaver needs psycopg 3 and its pool: pip install 'pregel[postgres]'") from error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pregel.checkpoint.schema import Cursor

__all__ = ["PostgresSaver", "make_tables"]

T = TypeVar("T")
NOW: Final = "SELECT EXTRACT(EPOCH FROM clock_timestamp())::float8"
#: Held while tables are made; the number stands for this library and nothing else.
ONE_AT_A_TIME: Final = "SELECT pg_advisory_xact_lock(5786215004124407)"
#: Compiling a statement takes the server a hundred times as long as running one of these. And a plan that it made while
#: a table was small, and keeps, must not read all of the table when that has grown.
SETTINGS: Final = ("SET jit = off", "SET enable_seqscan = off", "SET enable_bitmapscan = off")
TRANSLATED: Final = {text: sql.postgres(text).encode() for text in (*sql.STATEMENTS, READ_VERSION, SET_VERSION)}


class PostgresSaver(SqlSaver):
    """Keeps runs in a PostgreSQL database, which many processes and machines may use at once.

    The tables are made in the first schema of the connection's `search_path`. Leases expire by the server's clock.

    Args:
        dsn: The connection string.
        min_size: How many connections are kept open.
        max_size: How many there may be; an operation waits half a minute at most for one that is free.

    Raises:
        psycopg.OperationalError: No connection can be made.
        DecodeError: A newer release of the library wrote the tables.
    """

    def __init__(self, dsn: str, *, min_size: int = 1, max_size: int = 10) -> None:
        super().__init__()
        make_tables(dsn, "checkpoints", MIGRATIONS)
        self._pool = ConnectionPool(
            dsn,
            min_size=min_size,
            max_size=max_size,
            kwargs={"autocommit": True},
            configure=configure,
            name="pregel",
            open=True,
        )

    def close(self) -> None:
        """Close the connections; a second time it does nothing."""
        self._pool.close()

    def _now(self, cursor: Cursor) -> float:
        cursor.execute(NOW)
        return float(cursor.fetchone()[0])

    def _read(self, work: Callable[[Cursor], T]) -> T:
        with self._pool.connection() as connection:
            return transact(connection, sql.BEGIN_READ, work, None)

    def _rows(self, statement: str, values: Sequence[Any]) -> list[Any]:
        with self._pool.connection() as connection, connection.cursor() as raw:
            cursor = Translator(raw)
            cursor.execute(statement, values)
            return cursor.fetchall()

    def _change(self, work: Callable[[Cursor], T], point: str | None = None) -> T:
        with self._pool.connection() as connection:
            return transact(connection, sql.BEGIN_WRITE, work, point)


class Translator:
    """A cursor that takes the statements of `pregel.checkpoint.statements`."""

    def __init__(self, cursor: psycopg.Cursor[Any]) -> None:
        self._cursor = cursor
        self.fetchone = cursor.fetchone
        self.fetchall = cursor.fetchall

    @property
    def rowcount(self) -> int:
        """How many rows the last statement changed."""
        return self._cursor.rowcount

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> None:
        """Run a statement."""
        self._cursor.execute(TRANSLATED.get(statement) or statement.encode(), parameters)

    def executemany(self, statement: str, parameters: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each of several rows of values, with one wait for all."""
        self._cursor.executemany(TRANSLATED[statement], parameters)


def transact(connection: psycopg.Connection[Any], begin: str, work: Callable[[Cursor], T], point: str | None) -> T:
    """Return what `work` returns, in a transaction that is rolled back if it raises.

    A connection that can't even roll back is closed: the server then does, and the pool makes another.
    """
    with connection.cursor() as raw:
        cursor = Translator(raw)
        try:
            cursor.execute(begin)
            result = work(cursor)
            if point is not None:
                reached(point)
            cursor.execute(sql.COMMIT)
        except BaseException:
            try:
                cursor.execute(sql.ROLLBACK)
            except psycopg.Error:
                connection.close()
            raise
    return result


def configure(connection: psycopg.Connection[Any]) -> None:
    """Set a new connection of the pool up."""
    for setting in SETTINGS:
        connection.execute(setting)


def make_tables(dsn: str, part: str, migrations: Sequence[Sequence[str]]) -> None:
    """Bring the tables of a part of the library to the newest version, one connection at a time.

    Raises:
        psycopg.OperationalError: No connection can be made; at once, where a pool would try for half a minute.
        DecodeError: A newer release of the library wrote the tables.
    """

    def work(cursor: Cursor) -> None:
        cursor.execute(ONE_AT_A_TIME)
        migrate(cursor, POSTGRES_TYPES, part, migrations, place)

    place = f"the database {conninfo_to_dict(dsn).get('dbname', '')!r}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        transact(connection, sql.BEGIN_WRITE, work, None)
