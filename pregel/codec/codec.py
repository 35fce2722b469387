"""`Codec`: the types that one graph may store, and the way from values to bytes and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from typing_extensions import is_typeddict

from pregel.codec.builtin import BUILTIN
from pregel.codec.decoding import decoded
from pregel.codec.encoding import Encoder, Thorough
from pregel.codec.optional import for_tag, for_type
from pregel.codec.registry import GLOBAL, SELF_EVIDENT, Registry, entry_of, tag_of, taken

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pregel.codec.wire import Entry

__all__ = ["Codec", "decode", "encode"]

#: Encoders that have grown beyond this are not kept.
KEPT_BYTES: Final = 1 << 20


class Codec:
    """Turns values into bytes and back. It never changes, and any number of threads may use it.

    It knows the standard types, what `register` has registered (also later), and the types it is given.

    Args:
        types: Dataclasses, pydantic models, Enums and NamedTuples. TypedDicts need no mention: their values are dicts.

    Raises:
        EncodeError: Two of the types have one tag, or one can't be stored without functions of its own.
    """

    __slots__ = ("_idle", "_own")

    def __init__(self, types: Iterable[type] = ()) -> None:
        self._own = Registry()
        #: Encoders that nobody is using.
        self._idle: list[Encoder] = []
        for cls in dict.fromkeys(types):
            if not is_typeddict(cls) and cls not in SELF_EVIDENT and self._type(cls) is None:
                self._add(entry_of(cls, None, None, None))

    def _add(self, entry: Entry) -> None:
        """Add a type of this codec's own."""
        other = self._own.tags.get(entry.tag)
        if other is not None:  # both are in use, so neither gives way
            raise taken(entry.tag, other.cls, entry.cls)
        other = GLOBAL.tags.get(entry.tag)
        if other is not None and tag_of(other.cls) != tag_of(entry.cls):
            raise taken(entry.tag, other.cls, entry.cls)
        self._own.add(entry)

    def encode(self, value: Any, path: str = "value") -> bytes:
        """Return the bytes of a value.

        Args:
            value: The value.
            path: How messages call it.

        Raises:
            EncodeError: A part of it can't be stored as it is; the message names the path to it.
        """
        try:
            encoder = self._idle.pop()
        except IndexError:
            encoder = Encoder(self._type)
        data = encoder.encode(value)
        if data is None:
            return Thorough(self._type, path).encode(value)
        if len(data) <= KEPT_BYTES:
            self._idle.append(encoder)
        return data

    def decode(self, data: bytes) -> Any:
        """Return the value that was encoded as these bytes: equal, and of the same types.

        Raises:
            DecodeError: The bytes are damaged, or hold a type that is not registered here.
        """
        return decoded(data, self._tag, self._tags)

    def _type(self, cls: type) -> Entry | None:
        """Return how a class is stored."""
        entry = BUILTIN.get(cls) or self._own.types.get(cls)
        if entry is None:
            entry = GLOBAL.types.get(cls) or for_type(cls)
            if entry is not None and entry.tag in self._own.tags:
                return None  # it would come back as another class, which has its tag here
        return entry

    def _tag(self, tag: str) -> Entry | None:
        """Return what a tag stands for."""
        return self._own.tags.get(tag) or GLOBAL.tags.get(tag) or for_tag(tag)

    def _tags(self) -> set[str]:
        """Return the tags that are registered."""
        return {*self._own.tags, *GLOBAL.tags}


DEFAULT: Final = Codec()


def encode(value: Any, path: str = "value") -> bytes:
    """Return the bytes of a value of standard and globally registered types.

    Raises:
        EncodeError: See `Codec.encode`.
    """
    return DEFAULT.encode(value, path)


def decode(data: bytes) -> Any:
    """Return the value that was encoded as these bytes.

    Raises:
        DecodeError: See `Codec.decode`.
    """
    return DEFAULT.decode(data)
