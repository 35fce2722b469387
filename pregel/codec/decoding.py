"""From bytes to values: only what is registered is built, and the one error, whatever the bytes, is `DecodeError`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgpack import ExtraData, StackError, Timestamp, Unpacker, unpackb  # type: ignore[import-untyped]  # it has no stubs

from pregel.codec.builtin import NUMBERED
from pregel.codec.wire import MARK_CODE, unmarked
from pregel.errors import DecodeError, nearest
from pregel.text import shortened, show, told

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pregel.codec.wire import Entry, Form

__all__ = ["decoded"]

#: The headers of lists that claim more than a few items: memory is taken for these before they come.
ARRAY16, ARRAY32 = 0xDC, 0xDD
#: The headers of msgpack's own timestamps, and their type, as bytes.
EXT8, FIXEXT4, FIXEXT8, TIMESTAMP = 0xC7, 0xD6, 0xD7, 0xFF


class Mark:
    """A mark, as it was decoded. It never becomes a part of a value."""

    __slots__ = ("build", "name")

    def __init__(self, name: str, build: Callable[[Form], Any] | None) -> None:
        self.name = name
        self.build = build


MARKS: Final = {
    0: Mark("", None),
    **{number: Mark(entry.tag, entry.build) for number, entry in NUMBERED.items()},
}


class Decoder:
    """What the unpacker asks for, for one value.

    Args:
        find: From a tag to the type; None for one that is not registered.
        tags: The tags that are registered, for messages.
    """

    __slots__ = ("find", "loose", "tags")

    def __init__(self, find: Callable[[str], Entry | None], tags: Callable[[], Collection[str]]) -> None:
        self.find = find
        self.tags = tags
        #: How many marks have been met that did not begin a list so far.
        self.loose = 0

    def extension(self, code: int, data: bytes) -> Mark:
        """Return the mark that an extension type is.

        Raises:
            DecodeError: It is none.
        """
        if code != MARK_CODE or len(data) != 1:
            raise DecodeError(f"the bytes hold msgpack's extension type {code}, which pregel never writes")
        mark = MARKS.get(data[0])
        if mark is None:
            raise DecodeError(unmarked(data[0]))
        self.loose += 1
        return mark

    def listed(self, items: list[Any]) -> Any:
        """Return the value that a list is: what its mark says, or the list itself.

        Raises:
            DecodeError: Its parts make no value.
        """
        if not items or type(items[0]) is not Mark:
            return items
        self.loose -= 1
        mark: Mark = items[0]
        name, build = mark.name, mark.build
        if build is None:
            entry = self.named(items)
            name, build = entry.tag, entry.build
        try:
            return build(items)
        except DecodeError:
            raise
        except Exception as error:
            raise DecodeError(f"the stored value of type {name!r} can't be rebuilt: {told(error)}") from error

    def named(self, items: list[Any]) -> Entry:
        """Return the registered type that a form names.

        Raises:
            DecodeError: There is none.
        """
        tag = items[1] if len(items) > 1 else None
        if type(tag) is not str:
            raise DecodeError("the bytes are damaged: a form of a registered type names no type")
        entry = self.find(tag)
        if entry is None:
            raise DecodeError(
                f"the bytes hold a value of type {shortened(tag)}, which is not registered here. Name the class in the "
                f"graph's schema or register it: pregel.codec.register(cls, tag={shortened(tag)})."
                f"{nearest(tag[:200], self.tags())}"
            )
        return entry


def decoded(data: Any, find: Callable[[str], Entry | None], tags: Callable[[], Collection[str]]) -> Any:
    """Return the value that was encoded as these bytes.

    Args:
        data: The bytes.
        find: From a tag to the type.
        tags: The tags that are registered, for messages.

    Raises:
        DecodeError: They are damaged, or hold a type that is not registered here.
    """
    if type(data) is not bytes:
        raise DecodeError(f"bytes are decoded, not {show(data)}")
    decoder = Decoder(find, tags)
    try:
        check(data)
        value = unpackb(data, raw=False, strict_map_key=False, list_hook=decoder.listed, ext_hook=decoder.extension)
    except DecodeError:
        raise
    except ExtraData:
        raise DecodeError(f"the bytes go on after the value: {len(data)} of them are no single value") from None
    except (StackError, RecursionError):
        raise DecodeError("the bytes hold a value that is nested too deeply") from None
    except Exception as error:
        raise DecodeError(
            f"the {len(data)} bytes are damaged or truncated, or no value of pregel's: {told(error)}"
        ) from error
    if decoder.loose:
        raise DecodeError("the bytes are damaged: a mark stands where a value should")
    return value


def check(data: bytes) -> None:
    """Refuse what the unpacker would do before it asks anybody.

    Raises:
        DecodeError: There is a timestamp of msgpack's own.
        Exception: What msgpack raises for lists that claim more items than come.
    """
    if ARRAY16 in data or ARRAY32 in data:  # each could take 8 times the whole, and there may be many
        unpacker = Unpacker(max_buffer_size=max(len(data), 1))
        unpacker.feed(data)
        unpacker.skip()
    # The unpacker builds msgpack's own timestamps, extension type -1, without asking. UTF-8 has no such byte.
    if TIMESTAMP in data and (FIXEXT4 in data or FIXEXT8 in data or EXT8 in data) and timestamped(data):
        raise DecodeError("the bytes hold a timestamp of msgpack's, which pregel never writes")


def timestamped(data: bytes) -> bool:
    """Return whether msgpack's own timestamp is among the values that the bytes hold."""
    waiting = [unpackb(data, raw=True, strict_map_key=False, object_pairs_hook=list, ext_hook=lambda code, _: code)]
    while waiting:
        value = waiting.pop()
        if type(value) is Timestamp:
            return True
        if type(value) in {list, tuple}:
            waiting += value
    return False
