"""The bytes of a value: msgpack, and one extension for what msgpack has no type for.

Theory of operation. None, booleans, integers of 64 bits, floats, texts, bytes, lists and dicts are plain msgpack. All
else is a *form*: a msgpack list whose first item is a *mark*, the extension type 1 with one byte that says which form
it is. Mark 0 stands before a tag and what belongs to a registered type; the others are types of the standard library.

So the packer walks a whole value by itself, forms included, and asks Python once for each value it does not know. And
the unpacker, which hands over each list when it is complete, rebuilds from the inside out without any recursion.

A mark is no value: nothing that is stored can be one, and decoding refuses a mark that does not begin a list.
"""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003 - the annotations of a NamedTuple can be read
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from msgpack import ExtType  # type: ignore[import-untyped]  # it has no stubs

__all__ = [
    "INT_LIMIT",
    "MARK_CODE",
    "NAMED",
    "Entry",
    "Form",
    "Labels",
    "UnstorableError",
    "mark",
    "unmarked",
]

#: The msgpack extension type of marks; there is no other.
MARK_CODE: Final = 1
#: Bytes of one integer.
INT_LIMIT: Final = 8192

#: A value as the packer takes it: a mark, then what belongs to it.
Form: TypeAlias = list[Any]
#: How the parts of a form are called in a path: "[0]", "['key']", ".field", or not at all.
Labels: TypeAlias = Literal["index", "key", "field", "none"]

INDEX: Final[Labels] = "index"
KEY: Final[Labels] = "key"
FIELD: Final[Labels] = "field"
NONE: Final[Labels] = "none"


def mark(number: int) -> Any:
    """Return the mark of a form."""
    return ExtType(MARK_CODE, bytes([number]))


#: The mark of a registered type; its tag comes next.
NAMED: Final = mark(0)


class Entry(NamedTuple):
    """How one type is stored."""

    cls: type
    #: How the type is called: in the bytes for a registered one, else in messages only.
    tag: str
    #: From a value to its form; raises `UnstorableError`.
    form: Callable[[Any], Form]
    #: From a form, as it was decoded, to the value; what it raises makes a `DecodeError`.
    build: Callable[[Form], Any]
    labels: Labels = NONE


class UnstorableError(Exception):
    """A value that has no form; says why. The encoder says where."""


def unmarked(number: int) -> str:
    """Return what to say about a mark of another version of the format."""
    return (
        f"the bytes hold a form of number {number}, which this version of pregel does not know: they are damaged, or a "
        "newer version wrote them"
    )
