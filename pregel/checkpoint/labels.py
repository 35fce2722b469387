"""Tuples of labels as bytes, so that a database can order them and find all that begin alike.

Each label is its UTF-8 and a zero byte. No label holds one, so the bytes are unambiguous, a tuple begins with another
exactly if its bytes do, and bytes sort as the tuples do.
"""

from __future__ import annotations

from typing import Final

from pregel.errors import InvalidIdError
from pregel.text import show

__all__ = ["bounds", "pack", "unpack"]

#: Bytes of one packed tuple: what every database can index (a B-tree page of PostgreSQL takes 2,704 at most).
PACKED_LIMIT: Final = 2_600


def pack(labels: tuple[str, ...]) -> bytes:
    """Return labels as bytes.

    Raises:
        InvalidIdError: A label holds a NUL character or half a character, or all together are too long.
    """
    try:
        packed = "".join([f"{label}\0" for label in labels]).encode()
    except UnicodeEncodeError as error:
        raise InvalidIdError(f"labels are Unicode text, and {show(labels)} holds half a character: {error}") from None
    if packed.count(0) != len(labels):
        raise InvalidIdError(f"a label has no NUL character, and one of {show(labels)} has")
    if len(packed) > PACKED_LIMIT:
        raise InvalidIdError(
            f"{len(labels)} labels of {len(packed)} bytes are longer than {PACKED_LIMIT} bytes, which is what a "
            f"database can index: {show(labels)}. Use shorter names or nest less deeply."
        )
    return packed


def unpack(packed: bytes) -> tuple[str, ...]:
    """Return the labels of bytes that `pack` made."""
    return tuple(packed.decode().split("\0")[:-1])


def bounds(labels: tuple[str, ...]) -> tuple[bytes, bytes]:
    """Return low and high such that `low <= pack(t) < high` holds for exactly the tuples `t` that begin with labels."""
    low = pack(labels)
    return low, low + b"\xff"  # greater than all UTF-8
