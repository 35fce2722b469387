"""What the operations of a batch mean, written once: the stores differ only in how they keep rows."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from pregel.errors import ConcurrentPutError
from pregel.store.base import (
    BaseStore,
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    Namespace,
    Op,
    Result,
    SearchItem,
    SearchOp,
)
from pregel.store.checks import Change, CheckedOp, checked
from pregel.store.filters import matches
from pregel.store.rows import Row, decoded, item_of, microseconds, search_item_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

__all__ = ["RowStore", "Rows"]

Thing = TypeVar("Thing")

#: The label of a match condition that stands for any one label.
ANY_LABEL = "*"


class Rows(ABC):
    """The rows of a store within one transaction."""

    @abstractmethod
    def reserve(self, count: int) -> int:
        """Take so many versions, keep other writers out until the transaction ends, and return the first of them."""

    @abstractmethod
    def write(self, rows: Sequence[Row]) -> None:
        """Store rows in order; a row that replaces one keeps the `created` of that."""

    @abstractmethod
    def delete(self, namespace: Namespace, key: str) -> None:
        """Delete a row, if it is there."""

    @abstractmethod
    def version(self, namespace: Namespace, key: str) -> int:
        """Return the version of a row; 0 where there is none."""

    @abstractmethod
    def read(self, namespace: Namespace, key: str) -> Row | None:
        """Return a row."""

    @abstractmethod
    def scan(self, prefix: Namespace, most: int) -> Generator[Row, None, None]:
        """Yield the rows whose namespaces begin with these labels, the greatest version first, and so many at most."""

    @abstractmethod
    def namespaces(self, prefix: Namespace) -> Iterable[Namespace]:
        """Return the namespaces of rows that begin with these labels, each once, in any order."""


class RowStore(BaseStore):
    """A store that keeps rows."""

    @abstractmethod
    def transaction(self, *, writes: bool) -> AbstractContextManager[Rows]:
        """Begin a transaction, which ends with the block: stored whole, or not at all where it raises anything."""

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Perform operations in order, in one transaction: see `BaseStore.batch`."""
        todo = checked(ops)
        if not todo:
            return []
        changes = sum(isinstance(op, Change) for op in todo)
        with self.transaction(writes=changes > 0) as rows:
            # Reserved first: whoever has the versions is the only writer, so nothing it reads is overtaken.
            version = rows.reserve(changes) if changes else 0
            return perform(todo, rows, version)


def perform(ops: Sequence[CheckedOp], rows: Rows, version: int) -> list[Result]:
    """Perform operations on rows; the changes among them get the versions from this one on."""
    now = microseconds()
    results: list[Result] = []
    plain: list[Row] = []  # puts that nothing has to be read for are written together
    for op in ops:
        if isinstance(op, Change) and op.blob is not None and op.expected is None:
            plain.append(Row(op.namespace, op.key, version, now, now, op.blob))
            version += 1
            results.append(None)
            continue
        if plain:
            rows.write(plain)
            plain = []
        if isinstance(op, Change):
            change(op, rows, version, now)
            version += 1
            results.append(None)
        else:
            results.append(answer(op, rows))
    if plain:
        rows.write(plain)
    return results


def change(op: Change, rows: Rows, version: int, now: int) -> None:
    """Replace or delete a row, if it is in the version expected.

    Raises:
        ConcurrentPutError: It is not.
    """
    if op.expected is not None and (found := rows.version(op.namespace, op.key)) != op.expected:
        there = f"is in version {found}" if found else "is not there"
        expected = f"in version {op.expected}" if op.expected else "not to be there"
        raise ConcurrentPutError(
            f"the item {op.key!r} in namespace {op.namespace!r} {there}, and was expected {expected}: somebody changed "
            "it since. Nothing of this batch was stored; read the item again and repeat the change on what it holds now"
        )
    if op.blob is None:
        rows.delete(op.namespace, op.key)
    else:
        rows.write([Row(op.namespace, op.key, version, now, now, op.blob)])


def answer(op: GetOp | SearchOp | ListNamespacesOp, rows: Rows) -> Result:
    """Return what is asked of the rows."""
    if isinstance(op, GetOp):
        row = rows.read(op.namespace, op.key)
        return None if row is None else item_of(row)
    if isinstance(op, SearchOp):
        most = sys.maxsize if op.filter else min(op.offset + op.limit, sys.maxsize)
        with closing(rows.scan(op.namespace_prefix, most)) as found:
            return list(search(op, found))
    conditions = op.match_conditions or ()
    names = rows.namespaces(literal_prefix(conditions))
    kept = {name[: op.max_depth] for name in names if all(fits(name, condition) for condition in conditions)}
    return list(page(iter(sorted(kept)), op.limit, op.offset))


def search(op: SearchOp, rows: Iterator[Row]) -> Iterator[SearchItem]:
    """Yield the items of the rows that match a search; without filter only those that are returned are decoded."""
    if not op.filter:
        for row in page(rows, op.limit, op.offset):
            yield search_item_of(row, decoded(row))
        return
    given = op.filter
    both = ((row, decoded(row)) for row in rows)
    for row, value in page((pair for pair in both if matches(pair[1], given)), op.limit, op.offset):
        yield search_item_of(row, value)


def page(things: Iterator[Thing], limit: int, offset: int) -> Iterator[Thing]:
    """Yield at most `limit` things after the first `offset`."""
    return islice(things, min(offset, sys.maxsize), min(offset + limit, sys.maxsize))


def literal_prefix(conditions: Sequence[MatchCondition]) -> Namespace:
    """Return labels that every namespace asked for begins with: those of a prefix, up to the first wildcard."""
    for condition in conditions:
        if condition.match_type == "prefix":
            path = condition.path
            return path[: path.index(ANY_LABEL)] if ANY_LABEL in path else path
    return ()


def fits(namespace: Namespace, condition: MatchCondition) -> bool:
    """Return whether a namespace begins or ends with a path."""
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in {ANY_LABEL, label} for label, wanted in zip(part, path, strict=True))
