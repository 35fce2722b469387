"""How a SQLite file is opened, once for all parts of the library that keep tables in one."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Final, Literal, get_args

from pregel.checkpoint import statements as sql
from pregel.checkpoint.schema import SQLITE_TYPES, migrate
from pregel.errors import InvalidConfigError, nearest
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PRAGMAS", "Synchronous", "open_file"]

#: FULL: what is committed survives a loss of power. NORMAL: it survives the death of the process, and a loss of power
#: can take the last commits, whole ones only.
Synchronous = Literal["FULL", "NORMAL"]

PRAGMAS: Final = {"FULL": sql.SYNCHRONOUS_FULL, "NORMAL": sql.SYNCHRONOUS_NORMAL}
JOURNAL: Final = "PRAGMA journal_mode = WAL"
# Bytes, of a new file: a superstep writes some hundred bytes to a handful of places, and each costs a page of the log.
PAGE_SIZE: Final = "PRAGMA page_size = 2048"
#: Seconds until the write-ahead log is asked for again.
RETRY_SECONDS: Final = 0.005


def open_file(
    path: str | os.PathLike[str],
    *,
    synchronous: Synchronous,
    busy_timeout: float,
    part: str,
    migrations: Sequence[Sequence[str]],
) -> sqlite3.Connection:
    """Return a connection to a file whose tables are of the newest version. It begins no transaction by itself.

    Args:
        path: The file, which is made where there is none; or ":memory:".
        synchronous: How much of a commit reaches the disk before it counts.
        busy_timeout: How many seconds an operation waits for another connection's transaction.
        part: Whose tables they are.
        migrations: The statements that make each version of them of the one before.

    Raises:
        InvalidConfigError: `synchronous` has a value it can't have.
        sqlite3.Error: The file can't be opened, or is no database; names the file.
        DecodeError: A newer release of the library wrote it.
    """
    if synchronous not in get_args(Synchronous):
        raise InvalidConfigError(
            f"synchronous is 'FULL' or 'NORMAL', not {show(synchronous)}.{nearest(synchronous, get_args(Synchronous))}"
        )
    path = os.fspath(path)
    try:
        connection = sqlite3.connect(path, timeout=busy_timeout, isolation_level=None, check_same_thread=False)
        try:
            with closing(connection.cursor()) as cursor:
                write_ahead(cursor, synchronous, busy_timeout)
                cursor.execute(sql.BEGIN_WRITE)
                migrate(cursor, SQLITE_TYPES, part, migrations, repr(path))
                cursor.execute(sql.COMMIT)
        except BaseException:
            connection.close()  # and so takes back what was not committed
            raise
    except sqlite3.Error as error:
        raise type(error)(f"{path!r} can't be opened as a SQLite database of {part}: {error}") from error
    return connection


def write_ahead(cursor: sqlite3.Cursor, synchronous: Synchronous, busy_timeout: float) -> None:
    """Switch to the write-ahead log. SQLite does not wait by itself for another that does so at the same time."""
    deadline = time.monotonic() + busy_timeout
    while True:
        try:
            cursor.execute(PRAGMAS[synchronous])
            cursor.execute(PAGE_SIZE)
            cursor.execute(JOURNAL)
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(RETRY_SECONDS)
        else:
            return
