"""What a store is: items that outlive threads, in the shape of LangGraph's `BaseStore`.

An item has a namespace (a tuple of labels, as `("users", "ada", "likes")`), a key in it and a value, a mapping. Every
method is one operation given to `batch`, the only method a store has to have; the `a...` forms are the same in a worker
thread. The operations of a batch happen in order and in one transaction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping  # noqa: TC003 - pydantic reads the annotations of items and operations
from dataclasses import dataclass, field
from datetime import datetime  # noqa: TC003 - as above
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias, cast

from pregel.errors import EncodeError
from pregel.store.filters import Filter  # noqa: TC001 - looked up where an operation is a field of a state
from pregel.text import show

if TYPE_CHECKING:
    from types import TracebackType

__all__ = [
    "BaseStore",
    "GetOp",
    "Item",
    "ListNamespacesOp",
    "MatchCondition",
    "Namespace",
    "Op",
    "PutOp",
    "Result",
    "SearchItem",
    "SearchOp",
]

#: Where an item lives. Labels, never a joined text.
Namespace: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """What a store holds under a key, as it was when it was read. Its value is the reader's own copy."""

    namespace: Namespace
    key: str
    value: dict[str, Any] = field(hash=False)
    #: When the key was first put since it was last deleted, with zone UTC. Nothing is ordered by a clock.
    created_at: datetime
    #: When it was last put, with zone UTC.
    updated_at: datetime
    #: The number of its last put, which grows with every put of the store; what `expected` is compared with.
    version: int


@dataclass(frozen=True, slots=True)
class SearchItem(Item):
    """An item that a search found."""

    #: How near it is to the query; None, as long as no store searches by meaning.
    score: float | None = None


class GetOp(NamedTuple):
    """Read an item; the result is an `Item` or None."""

    namespace: Namespace
    key: str


class PutOp(NamedTuple):
    """Create an item, replace it or, with the value None, delete it; the result is None."""

    namespace: Namespace
    key: str
    value: Mapping[str, Any] | None
    #: The version the item must have, 0 where it must not be there; None for any.
    expected: int | None = None


class SearchOp(NamedTuple):
    """Find items at and below a namespace; the result is a list of `SearchItem`s, the one put last first."""

    namespace_prefix: Namespace
    filter: Filter | None = None
    limit: int = 10
    offset: int = 0
    query: str | None = None


class MatchCondition(NamedTuple):
    """What a namespace begins or ends with; the label "*" stands for any one label."""

    match_type: Literal["prefix", "suffix"]
    path: Namespace


class ListNamespacesOp(NamedTuple):
    """Name the namespaces that hold items; the result is a sorted list of distinct tuples."""

    match_conditions: tuple[MatchCondition, ...] | None = None
    #: Longer namespaces are cut to so many labels; after that what is equal counts once.
    max_depth: int | None = None
    limit: int = 100
    offset: int = 0


Op: TypeAlias = GetOp | PutOp | SearchOp | ListNamespacesOp
Result: TypeAlias = Item | list[SearchItem] | list[Namespace] | None


def listing(
    prefix: Namespace | None, suffix: Namespace | None, max_depth: int | None, limit: int, offset: int
) -> ListNamespacesOp:
    """Return the operation that `list_namespaces` stands for."""
    conditions: list[MatchCondition] = []
    if prefix is not None:
        conditions.append(MatchCondition("prefix", prefix))
    if suffix is not None:
        conditions.append(MatchCondition("suffix", suffix))
    return ListNamespacesOp(tuple(conditions), max_depth, limit, offset)


def putting(namespace: Namespace, key: str, value: Mapping[str, Any], expected: int | None) -> PutOp:
    """Return the operation that `put` stands for.

    Raises:
        EncodeError: There is no value: only a `PutOp` deletes by None, so that no item is lost by a slip.
    """
    if value is None:
        raise EncodeError(f"put takes a mapping, and None is none (key {show(key)}); `delete` deletes an item")
    return PutOp(namespace, key, value, expected)


class BaseStore(ABC):
    """A store of items. Every method may be called from any thread, and by several at once.

    What a method raises for a storage that fails is the storage's own error (`sqlite3.Error`, `psycopg.Error`), and
    nothing of the batch is stored.
    """

    #: Whether calls wait for a disk or a network, so that they do not belong on an event loop.
    blocking: ClassVar[bool] = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:  # noqa: B027 - a store without connections has nothing to give back
        """Give back connections and files; a second time it does nothing."""

    @abstractmethod
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Perform operations in order, in one transaction: a get sees the puts before it, and all is stored or nothing.

        Returns:
            The result of each operation, as its class says.

        Raises:
            InvalidIdError: A namespace or a key can't be one.
            InvalidOpError: An operation can't mean anything.
            EncodeError: A value can't be stored; names the path to it.
            ConcurrentPutError: An item is not in the version expected.
            SemanticSearchError: A search has a `query`.
            DecodeError: What is stored is damaged, or of a type that is not registered here.
        """

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Perform operations as `batch` does, on asyncio or trio. Cancelled, it has stored all of them or none."""
        if not self.blocking:
            return self.batch(ops)
        from anyio import to_thread  # noqa: PLC0415 - sync use does not pay for it

        return await to_thread.run_sync(self.batch, list(ops))

    def get(self, namespace: Namespace, key: str) -> Item | None:
        """Return an item, or None where there is none."""
        return cast("Item | None", self.batch([GetOp(namespace, key)])[0])

    def put(self, namespace: Namespace, key: str, value: Mapping[str, Any], *, expected: int | None = None) -> None:
        """Create an item or replace its value.

        Args:
            namespace: Labels, at least one, each a text of 1 to 512 characters; with the key at most 2,600 bytes.
            key: The name in the namespace, a text of 1 to 512 characters.
            value: A mapping with texts as keys, and of whatever the codec stores.
            expected: The version that the item must have, 0 where it must not be there; None for any.

        Raises:
            ConcurrentPutError: The item is not in the version expected.
            EncodeError: The value can't be stored; names the path to what can't.
            InvalidIdError: The namespace or the key can't be one.
        """
        self.batch([putting(namespace, key, value, expected)])

    def delete(self, namespace: Namespace, key: str, *, expected: int | None = None) -> None:
        """Delete an item; one that is not there is left so.

        Raises:
            ConcurrentPutError: The item is not in the version expected.
        """
        self.batch([PutOp(namespace, key, None, expected)])

    def search(
        self,
        namespace_prefix: Namespace,
        /,
        *,
        filter: Filter | None = None,  # noqa: A002 - LangGraph's word
        query: str | None = None,
        limit: int = 10,
        offset: int = 0,
    ) -> list[SearchItem]:
        """Return the items at and below a namespace, the one put last first.

        Args:
            namespace_prefix: The labels that namespaces begin with; empty for all items.
            filter: What values must match: see `pregel.store.filters`.
            query: A text to search by meaning; no store can do that yet.
            limit: At most so many items.
            offset: How many items to leave out first, of those that match.

        Raises:
            InvalidOpError: The filter has an operator that is not there, or a number is none.
            SemanticSearchError: There is a `query`.
        """
        return cast("list[SearchItem]", self.batch([SearchOp(namespace_prefix, filter, limit, offset, query)])[0])

    def list_namespaces(
        self,
        *,
        prefix: Namespace | None = None,
        suffix: Namespace | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Namespace]:
        """Return the namespaces that hold items, sorted, each once.

        Args:
            prefix: What they begin with; the label "*" stands for any one label.
            suffix: What they end with, in the same way.
            max_depth: Longer ones are cut to so many labels.
            limit: At most so many.
            offset: How many to leave out first.
        """
        return cast("list[Namespace]", self.batch([listing(prefix, suffix, max_depth, limit, offset)])[0])

    async def aget(self, namespace: Namespace, key: str) -> Item | None:
        """Do as `get`."""
        return cast("Item | None", (await self.abatch([GetOp(namespace, key)]))[0])

    async def aput(
        self, namespace: Namespace, key: str, value: Mapping[str, Any], *, expected: int | None = None
    ) -> None:
        """Do as `put`."""
        await self.abatch([putting(namespace, key, value, expected)])

    async def adelete(self, namespace: Namespace, key: str, *, expected: int | None = None) -> None:
        """Do as `delete`."""
        await self.abatch([PutOp(namespace, key, None, expected)])

    async def asearch(
        self,
        namespace_prefix: Namespace,
        /,
        *,
        filter: Filter | None = None,  # noqa: A002 - LangGraph's word
        query: str | None = None,
        limit: int = 10,
        offset: int = 0,
    ) -> list[SearchItem]:
        """Do as `search`."""
        found = await self.abatch([SearchOp(namespace_prefix, filter, limit, offset, query)])
        return cast("list[SearchItem]", found[0])

    async def alist_namespaces(
        self,
        *,
        prefix: Namespace | None = None,
        suffix: Namespace | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Namespace]:
        """Do as `list_namespaces`."""
        found = await self.abatch([listing(prefix, suffix, max_depth, limit, offset)])
        return cast("list[Namespace]", found[0])
