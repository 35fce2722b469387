"""What stores keep of an item, and the way from an item to that and back."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from pregel import codec
from pregel.errors import DecodeError, EncodeError
from pregel.store.base import Item, Namespace, SearchItem
from pregel.text import show

__all__ = ["Row", "decoded", "encoded", "item_of", "microseconds", "search_item_of"]

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Row(NamedTuple):
    """An item as it is stored."""

    namespace: Namespace
    key: str
    version: int
    #: Microseconds since 1970.
    created: int
    updated: int
    #: The value, encoded and sealed for its namespace and key.
    blob: bytes


def microseconds() -> int:
    """Return the time, in microseconds since 1970."""
    return time.time_ns() // 1_000


def encoded(namespace: Namespace, key: str, value: object) -> bytes:
    """Return a value as bytes that only this namespace and key can read back.

    Raises:
        EncodeError: It is no mapping with texts as keys, or can't be stored; names the path to what can't.
    """
    where = f"namespace {namespace!r}, key {key!r}: value"
    if not isinstance(value, Mapping):
        raise EncodeError(f"{where} has to be a mapping, and {show(value)} is none: wrap it, as {{'value': ...}}")
    for name in value:
        if not isinstance(name, str):
            raise EncodeError(f"{where} has the key {show(name)}, and keys at its top level are texts")
    return codec.seal(codec.encode(dict(value), where), "store", namespace, key)


def decoded(row: Row) -> dict[str, Any]:
    """Return the value of a row, a new one each time.

    Raises:
        DecodeError: The bytes are damaged, of another row, or of a type that is not registered here.
    """
    value = codec.decode(codec.unseal(row.blob, "store", row.namespace, row.key))
    if not isinstance(value, dict):
        raise DecodeError(
            f"the item {row.key!r} in namespace {row.namespace!r} holds {show(value)}, and a store holds mappings"
        )
    return value


def item_of(row: Row) -> Item:
    """Return the item of a row."""
    return Item(row.namespace, row.key, decoded(row), moment(row.created), moment(row.updated), row.version)


def search_item_of(row: Row, value: dict[str, Any]) -> SearchItem:
    """Return the item of a row whose value is decoded already."""
    return SearchItem(row.namespace, row.key, value, moment(row.created), moment(row.updated), row.version)


def moment(microsecond: int) -> datetime:
    """Return a time with zone; whole microseconds, so that every store gives the same."""
    return EPOCH + timedelta(microseconds=microsecond)
