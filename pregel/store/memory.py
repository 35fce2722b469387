"""A store in the memory of one process."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, ClassVar

from pregel.store.transaction import Rows, RowStore

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from pregel.store.base import Namespace
    from pregel.store.rows import Row

__all__ = ["InMemoryStore"]


class InMemoryStore(RowStore):
    """A store that ends with its process. Values are kept encoded, as in a database, so it refuses and copies the same.

    The `a...` methods run at once, without a thread.
    """

    blocking: ClassVar[bool] = False

    def __init__(self) -> None:
        self._lock = Lock()
        self._rows = MemoryRows()

    @contextmanager
    def transaction(self, *, writes: bool) -> Iterator[Rows]:  # noqa: ARG002 - readers wait for the lock as well
        """Begin a transaction: see `RowStore`."""
        with self._lock:
            rows = self._rows
            try:
                yield rows
            except BaseException:
                rows.undo()
                raise
            else:
                rows.keep()


class MemoryRows(Rows):
    """Rows in dicts, with what it takes to undo the changes of the transaction that is open."""

    def __init__(self) -> None:
        self._last = 0
        self._kept_last = 0
        self._items: dict[Namespace, dict[str, Row]] = {}
        #: Prefix -> the namespaces with rows that begin with it, the prefix itself included, in the order of arrival.
        self._below: dict[Namespace, dict[Namespace, None]] = {}
        #: What stood at each place that was changed, in order.
        self._before: list[tuple[Namespace, str, Row | None]] = []

    def keep(self) -> None:
        """Make the changes last."""
        self._before.clear()
        self._kept_last = self._last

    def undo(self) -> None:
        """Take the changes back."""
        for namespace, key, row in reversed(self._before):
            self._set(namespace, key, row)
        self._before.clear()
        self._last = self._kept_last

    def reserve(self, count: int) -> int:
        """Take versions: see `Rows`."""
        first = self._last + 1
        self._last += count
        return first

    def write(self, rows: Sequence[Row]) -> None:
        """Store rows."""
        for row in rows:
            old = self.read(row.namespace, row.key)
            self._before.append((row.namespace, row.key, old))
            self._set(row.namespace, row.key, row if old is None else row._replace(created=old.created))

    def delete(self, namespace: Namespace, key: str) -> None:
        """Delete a row, if it is there."""
        old = self.read(namespace, key)
        if old is not None:
            self._before.append((namespace, key, old))
            self._set(namespace, key, None)

    def version(self, namespace: Namespace, key: str) -> int:
        """Return the version of a row; 0 where there is none."""
        row = self.read(namespace, key)
        return 0 if row is None else row.version

    def read(self, namespace: Namespace, key: str) -> Row | None:
        """Return a row."""
        return self._items.get(namespace, {}).get(key)

    def scan(self, prefix: Namespace, most: int) -> Generator[Row, None, None]:
        """Yield rows, the greatest version first."""
        found = [row for namespace in self.namespaces(prefix) for row in self._items[namespace].values()]
        found.sort(key=lambda row: row.version, reverse=True)
        yield from found[:most]

    def namespaces(self, prefix: Namespace) -> Iterable[Namespace]:
        """Return the namespaces that begin with these labels."""
        return self._below.get(prefix, {})

    def _set(self, namespace: Namespace, key: str, row: Row | None) -> None:
        if row is not None:
            if namespace not in self._items:
                self._items[namespace] = {}
                for depth in range(len(namespace) + 1):
                    self._below.setdefault(namespace[:depth], {})[namespace] = None
            self._items[namespace][key] = row
        elif key in self._items.get(namespace, {}):
            del self._items[namespace][key]
            if not self._items[namespace]:
                del self._items[namespace]
                for depth in range(len(namespace) + 1):
                    below = self._below[namespace[:depth]]
                    del below[namespace]
                    if not below:
                        del self._below[namespace[:depth]]
