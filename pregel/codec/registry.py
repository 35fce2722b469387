"""Which types can be stored, and under which tags."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from pregel.channels.base import Missing, Overwrite
from pregel.codec.builtin import BUILTIN
from pregel.codec.kinds import understood
from pregel.codec.wire import NAMED, Entry
from pregel.errors import EncodeError
from pregel.types import Command, Send

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CONTROL", "GLOBAL", "SELF_EVIDENT", "Registry", "entry_of", "register", "serializable", "tag_of", "taken"]

T = TypeVar("T")

#: What asks the engine to do something. No stored bytes can become one of these.
CONTROL: Final[frozenset[type]] = frozenset({Command, Missing, Overwrite, Send})
#: What is stored without being registered.
SELF_EVIDENT: Final[frozenset[type]] = frozenset({*BUILTIN, type(None), bool, float, bytes, list, dict})
#: What can't be registered.
FIXED: Final[frozenset[type]] = CONTROL | SELF_EVIDENT | {object, type, defaultdict}


def tag_of(cls: type) -> str:
    """Return the tag of a class that was given none."""
    return f"{cls.__module__}:{cls.__qualname__}"


class Registry:
    """Types by class and by tag. Adding replaces single entries of two dicts, so readers need no lock."""

    __slots__ = ("tags", "types")

    def __init__(self) -> None:
        self.types: dict[type, Entry] = {}
        self.tags: dict[str, Entry] = {}

    def add(self, entry: Entry) -> None:
        """Add a type; one of the same module and name gives way to it, since its definition was run again.

        Raises:
            EncodeError: Another class has the tag.
        """
        other = self.tags.get(entry.tag)
        if other is not None and other.cls is not entry.cls:
            if tag_of(other.cls) != tag_of(entry.cls):
                raise taken(entry.tag, other.cls, entry.cls)
            self.types.pop(other.cls, None)
        before = self.types.get(entry.cls)
        if before is not None and before.tag != entry.tag:
            self.tags.pop(before.tag, None)
        self.tags[entry.tag] = entry
        self.types[entry.cls] = entry


#: What `register` has registered; every codec knows it.
GLOBAL: Final = Registry()


def taken(tag: str, first: type, second: type) -> EncodeError:
    """Return the error for two classes that want one tag."""
    return EncodeError(
        f"the tag {tag!r} stands for {first!r} already, and {second!r} wants it: give one of them another tag, with "
        "pregel.codec.register(cls, tag=...)"
    )


def entry_of(
    cls: type, tag: str | None, encode: Callable[[Any], Any] | None, decode: Callable[[Any], Any] | None
) -> Entry:
    """Return how a class is stored.

    Raises:
        EncodeError: It can't be stored like that.
    """
    if not isinstance(cls, type):
        raise EncodeError(f"a class is registered, and {cls!r} is none")
    if cls in FIXED:
        what = "is control, and never stored" if cls in CONTROL else "can't be registered: its way is fixed"
        raise EncodeError(f"{cls.__name__} {what}")
    tag = tag_of(cls) if tag is None else tag
    if encode is not None and decode is not None:
        return Entry(cls, tag, lambda value: [NAMED, tag, encode(value)], lambda form: decode(sole(form)))
    if encode is not None or decode is not None:
        raise EncodeError(f"{cls!r} needs both functions, encode and decode, or neither")
    entry = understood(cls, tag)
    if entry is None:
        raise EncodeError(
            f"{cls!r} is no dataclass, pydantic model, Enum or NamedTuple (if it is to be a dataclass, write "
            "@serializable above @dataclass): register it with two functions, encode=... and decode=..."
        )
    return entry


def sole(form: list[Any]) -> Any:
    """Return what a function made of a value of a registered type."""
    _, _, value = form
    return value


def register(
    cls: type[T],
    *,
    tag: str | None = None,
    encode: Callable[[T], Any] | None = None,
    decode: Callable[[Any], T] | None = None,
) -> type[T]:
    """Let values of a class be stored. Subclasses are classes of their own.

    Args:
        cls: The class.
        tag: The name of the class in stored bytes; by default its module and its qualified name. With a tag, a class
            can be moved or renamed and stored values be read all the same.
        encode: From a value to one that can be stored. A dataclass, pydantic model, Enum or NamedTuple needs none.
        decode: From what `encode` returned to the value. It is run on whatever bytes are read, so it only builds.

    Returns:
        The class.

    Raises:
        EncodeError: The tag stands for another class, a function is missing, or the class is never stored.
    """
    GLOBAL.add(entry_of(cls, tag, encode, decode))
    return cls


@overload
def serializable(cls: type[T], /) -> type[T]: ...
@overload
def serializable(
    *, tag: str | None = None, encode: Callable[[Any], Any] | None = None, decode: Callable[[Any], Any] | None = None
) -> Callable[[type[T]], type[T]]: ...
def serializable(
    cls: type[T] | None = None,
    /,
    *,
    tag: str | None = None,
    encode: Callable[[Any], Any] | None = None,
    decode: Callable[[Any], Any] | None = None,
) -> type[T] | Callable[[type[T]], type[T]]:
    """Let values of the decorated class be stored: `register` as a decorator, with or without arguments.

    Raises:
        EncodeError: See `register`.
    """
    if cls is not None:
        return register(cls)
    return lambda decorated: register(decorated, tag=tag, encode=encode, decode=decode)
