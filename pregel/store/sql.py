"""Rows in the tables of a database: which statement does what. How it is executed is the database's own."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pregel.checkpoint.labels import bounds, pack, unpack
from pregel.errors import DecodeError
from pregel.store.rows import Row
from pregel.store.transaction import Rows

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from pregel.store.base import Namespace
    from pregel.store.statements import Statements

__all__ = ["Executor", "SqlRows"]


class Executor(ABC):
    """What executes statements on a connection that is in a transaction."""

    @abstractmethod
    def one(self, text: str, values: tuple[Any, ...] = ()) -> tuple[Any, ...] | None:
        """Execute a statement and return the first row of its result, or None where it has none."""

    @abstractmethod
    def many(self, text: str, values: Sequence[tuple[Any, ...]]) -> None:
        """Execute a statement once for each of these values, in order."""

    @abstractmethod
    def stream(self, text: str, values: tuple[Any, ...], most: int) -> Generator[tuple[Any, ...], None, None]:
        """Yield the rows of a result, of which there are so many at most, without holding all of a long one."""


class SqlRows(Rows):
    """The rows of a store within one transaction of a database."""

    def __init__(self, executor: Executor, statements: Statements) -> None:
        self._run = executor
        self._sql = statements

    def reserve(self, count: int) -> int:
        """Take versions. The row they are counted in is locked until the transaction ends.

        Raises:
            DecodeError: That row is gone.
        """
        row = self._run.one(self._sql.reserve, (count,))
        if row is None:
            raise DecodeError("the table pregel_item_counter is empty: somebody deleted the row that counts versions")
        return int(row[0]) - count + 1

    def write(self, rows: Sequence[Row]) -> None:
        """Store rows."""
        self._run.many(self._sql.put, [(pack(row.namespace), *row[1:]) for row in rows])

    def delete(self, namespace: Namespace, key: str) -> None:
        """Delete a row, if it is there."""
        self._run.many(self._sql.delete, [(pack(namespace), key)])

    def version(self, namespace: Namespace, key: str) -> int:
        """Return the version of a row; 0 where there is none."""
        found = self._run.one(self._sql.version, (pack(namespace), key))
        return 0 if found is None else int(found[0])

    def read(self, namespace: Namespace, key: str) -> Row | None:
        """Return a row."""
        found = self._run.one(self._sql.read, (pack(namespace), key))
        return None if found is None else row_of(found)

    def scan(self, prefix: Namespace, most: int) -> Generator[Row, None, None]:
        """Yield rows, the greatest version first."""
        with closing(self._run.stream(self._sql.scan, (*bounds(prefix), most), most)) as found:
            yield from map(row_of, found)

    def namespaces(self, prefix: Namespace) -> Iterator[Namespace]:
        """Return the namespaces that begin with these labels."""
        with closing(self._run.stream(self._sql.namespaces, bounds(prefix), sys.maxsize)) as found:
            for (packed,) in found:
                yield unpack(packed)


def row_of(found: tuple[Any, ...]) -> Row:
    """Return a row of the table `pregel_items`."""
    return Row(unpack(found[0]), *found[1:])
