"""Values as JSON and back: the codec's own forms, written so that people can read them.

Theory of operation. A value goes through the codec first, and what the codec made of it is told again as JSON: None,
booleans, numbers, texts, lists and dicts with texts for keys as they are, all else as an object with a tag. `{"$":
"datetime", "v": [...]}` is a type of the standard library, `{"$type": "app:Risk", "v": [...]}` a registered one.
Reading goes the same way back: the tree becomes the codec's bytes, and the codec decodes them. So there is one registry
and one set of rules. A text can name a registered type, and nothing else: nothing is imported or looked up by name.
"""

from __future__ import annotations

import binascii
import json
from base64 import b64decode, b64encode
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from msgpack import Packer, unpackb  # type: ignore[import-untyped]  # it has no stubs

from pregel.codec.builtin import NUMBERED
from pregel.codec.wire import NAMED, mark
from pregel.errors import DecodeError, nearest
from pregel.text import shortened, show

if TYPE_CHECKING:
    from pregel.codec import Codec

__all__ = ["from_base64", "from_tree", "parsed", "to_base64", "to_tree"]

#: Standard types by number and by name.
NAMES: Final = {number: entry.tag for number, entry in NUMBERED.items()}
MARKS: Final = {entry.tag: mark(number) for number, entry in NUMBERED.items()}
#: What JSON has no numbers for.
FLOATS: Final = ("nan", "inf", "-inf")
TAG, TYPE, PARTS = "$", "$type", "v"
TAGS: Final = (*MARKS, "bytes", "dict", "float")


class Mark(int):
    """The number of a mark that the codec has set."""

    __slots__ = ()


def to_tree(value: Any, codec: Codec, path: str) -> Any:
    """Return a value as a tree that `json.dumps` takes.

    Args:
        value: The value.
        codec: Knows the types.
        path: How messages call the value.

    Raises:
        EncodeError: A part of it can't be stored; names the path to it.
    """
    data = codec.encode(value, path)
    told = unpackb(
        data,
        strict_map_key=False,
        list_hook=listed,
        object_pairs_hook=mapped,
        ext_hook=lambda _, number: Mark(number[0]),
    )
    return leaf(told)


def leaf(value: Any) -> Any:
    """Return a part without parts as JSON has it."""
    if type(value) is bytes:
        return {TAG: "bytes", PARTS: to_base64(value)}
    if type(value) is float and not isfinite(value):
        return {TAG: "float", PARTS: str(value)}
    return value


def listed(items: list[Any]) -> Any:
    """Return a list as JSON, or what a form stands for."""
    if not items or type(items[0]) is not Mark:
        return [leaf(item) for item in items]
    number, *parts = items
    if number:
        return {TAG: NAMES[number], PARTS: [leaf(part) for part in parts]}
    return {TYPE: parts[0], PARTS: [leaf(part) for part in parts[1:]]}


def mapped(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    """Return a dict as JSON: an object, or where its keys are no texts or look like tags, a list of pairs."""
    if all(type(key) is str and not key.startswith(TAG) for key, _ in pairs):
        return {key: leaf(value) for key, value in pairs}
    return {TAG: "dict", PARTS: [[leaf(key), leaf(value)] for key, value in pairs]}


class Key:
    """A form that is the key of a dict, which a list can't be."""

    __slots__ = ("form",)

    def __init__(self, form: Any) -> None:
        self.form = form


def key_form(key: Any) -> Any:
    """Give the packer the form of a key.

    Raises:
        OverflowError: It is an integer of more than 64 bits, for which the codec has a form.
    """
    if type(key) is not Key:
        raise OverflowError(f"the integer {shortened(key)}")
    return key.form


def from_tree(tree: Any, codec: Codec, path: str) -> Any:
    """Return the value that a tree tells of.

    Args:
        tree: What `parsed` has read.
        codec: Knows the types.
        path: How messages call the value.

    Raises:
        DecodeError: It tells of none: a tag is unknown, a type is not registered, or its parts make no value.
    """
    try:
        data: bytes = Packer(strict_types=True, default=key_form).pack(form_of(tree))
    except DecodeError as error:
        raise DecodeError(f"{path}: {error}") from None
    except RecursionError:
        raise DecodeError(f"{path} is nested too deeply") from None
    except (ValueError, OverflowError, UnicodeError) as error:
        raise DecodeError(f"{path} holds something that is never stored: {error}") from error
    try:
        return codec.decode(data)
    except DecodeError as error:
        raise DecodeError(f"{path}: {error}") from error


def form_of(tree: Any) -> Any:
    """Return a tree as the codec's bytes have it.

    Raises:
        DecodeError: A tag is unknown, or what belongs to it is missing.
    """
    if type(tree) is list:
        return [form_of(item) for item in tree]
    if type(tree) is not dict:
        return tree
    if not any(key.startswith(TAG) for key in tree):
        return {key: form_of(item) for key, item in tree.items()}
    parts = tree.get(PARTS)
    if tree.keys() == {TYPE, PARTS} and type(parts) is list and type(tree[TYPE]) is str:
        return [NAMED, tree[TYPE], *map(form_of, parts)]
    if tree.keys() != {TAG, PARTS} or type(tree[TAG]) is not str:
        raise DecodeError(f"{shortened(tree)} is no tagged value: that is an object of '$' or '$type', and 'v'")
    return tagged(tree[TAG], parts)


def tagged(name: str, parts: Any) -> Any:
    """Return what a tag of ours stands for.

    Raises:
        DecodeError: It is none, or what belongs to it is missing.
    """
    if name == "bytes":
        return from_base64(parts, "a value of bytes")
    if name == "float" and parts in FLOATS:
        return float(parts)
    if type(parts) is not list or name == "float":
        raise DecodeError(f"{shortened(parts)} makes no value of the type {name!r}")
    if name == "dict":
        return pairs_of(parts)
    if name not in MARKS:
        raise DecodeError(f"there is no tag {shortened(name)}.{nearest(name[:200], TAGS)}")
    return [MARKS[name], *map(form_of, parts)]


def pairs_of(parts: list[Any]) -> dict[Any, Any]:
    """Return a dict that is told as a list of pairs.

    Raises:
        DecodeError: It is none, or has a key twice.
    """
    found: dict[Any, Any] = {}
    for pair in parts:
        if type(pair) is not list or len(pair) != 2:  # noqa: PLR2004 - a key and a value
            raise DecodeError(f"{shortened(pair)} is no pair of a key and a value")
        key = form_of(pair[0])
        found[Key(key) if type(key) in {list, dict} else key] = form_of(pair[1])
    if len(found) != len(parts):
        raise DecodeError(f"a dict has a key twice; its pairs: {shortened(parts)}")
    return found


def to_base64(data: bytes) -> str:
    """Return bytes as a text."""
    return b64encode(data).decode()


def from_base64(text: Any, what: str) -> bytes:
    """Return the bytes of a text.

    Raises:
        DecodeError: It tells of none.
    """
    if type(text) is str:
        try:
            return b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            pass
    raise DecodeError(f"{what} is told in base64, not as {show(text)}")


def parsed(text: str) -> Any:
    """Return the tree that a JSON text tells of.

    Raises:
        DecodeError: It is no JSON, has a key twice, or a number that JSON does not have.
    """
    if not isinstance(text, str):
        raise DecodeError(f"a snapshot is a JSON text, not {show(text)}")
    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=no_constant)
    except DecodeError:
        raise
    except RecursionError:
        raise DecodeError("the text is nested too deeply") from None
    except ValueError as error:
        raise DecodeError(f"the text is no JSON: {error}") from error


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object none of whose keys stands twice.

    Raises:
        DecodeError: One does: readers would differ in what they see.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        raise DecodeError(f"an object of the text has a key twice; its keys: {shortened([key for key, _ in pairs])}")
    return found


def no_constant(name: str) -> Any:
    """Refuse a number that JSON does not have.

    Raises:
        DecodeError: Always.
    """
    raise DecodeError(f"the text holds {name}, which is no JSON")
