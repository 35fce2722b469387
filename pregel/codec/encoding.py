"""From values to bytes: fast for what is plain, thoroughly for what is not.

The packer runs over a value in C and asks `Encoder.form` for each value that is no plain one. Four types it takes
without asking, although they would come back as others: bytearray, memoryview, msgpack's own ExtType and Timestamp.
They leave traces in the bytes (a header of bytes or of an extension). Where there is one that the forms do not explain,
which text and numbers contain by chance too, the containers are looked through.

If anything is amiss, `Thorough` goes through the value once more, in Python. It knows the path to where it is, so it is
what finds the error and names it; and it stores what the packer can't (a text with lone surrogates, a bytearray).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgpack import ExtType, Packer, Timestamp  # type: ignore[import-untyped]  # it has no stubs

from pregel.codec.builtin import FROZENSET, SET, text_form
from pregel.codec.registry import CONTROL, GLOBAL, tag_of
from pregel.codec.wire import FIELD, INDEX, KEY, NONE, Entry, Form, UnstorableError
from pregel.errors import EncodeError
from pregel.text import shortened, show, told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pregel.codec.wire import Labels

__all__ = ["Encoder", "Thorough"]

#: What the packer takes for something else.
IMPOSTORS: Final = frozenset({bytearray, memoryview, ExtType, Timestamp})
SETS: Final[dict[type, Any]] = {set: SET, frozenset: FROZENSET}
#: What is packed as it is and has no parts.
PLAIN: Final = frozenset({type(None), bool, float, bytes})
#: The headers of msgpack's bytes and extensions. A mark is a FIXEXT1.
BIN8, BIN16, BIN32, EXT8, EXT16, EXT32 = 0xC4, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9
FIXEXT1, FIXEXT2, FIXEXT4, FIXEXT8, FIXEXT16 = 0xD4, 0xD5, 0xD6, 0xD7, 0xD8
LEAST: Final = -(2**63)
GREATEST: Final = 2**64 - 1


class Lowered:
    """A form that is finished, all its parts included. It can be a key, which a list can't."""

    __slots__ = ("form",)

    def __init__(self, form: Form) -> None:
        self.form = form


def finished(value: Any) -> Form:
    """Give the packer a finished form."""
    form: Form = value.form
    return form


class Encoder:
    """A packer, and what it asks for. One thread at a time may use it.

    Args:
        find: From a class to how it is stored.
    """

    __slots__ = ("find", "made", "pack")

    def __init__(self, find: Callable[[type], Entry | None]) -> None:
        self.find = find
        #: The forms of the value that is packed.
        self.made: list[Form] = []
        self.pack: Callable[[Any], bytes] = Packer(strict_types=True, default=self.form).pack

    def encode(self, value: Any) -> bytes | None:
        """Return the bytes of a value, or None if it has to be looked at thoroughly; then this encoder is spent."""
        made = self.made
        try:
            data = self.pack(value)
        except Exception:  # noqa: BLE001 - whatever it is, the other way says it better
            return None
        if (
            BIN8 in data or BIN16 in data or BIN32 in data or EXT8 in data or EXT16 in data or EXT32 in data
            or FIXEXT2 in data or FIXEXT4 in data or FIXEXT8 in data or FIXEXT16 in data
            or data.count(FIXEXT1) != len(made)
        ) and disguised(value, made):  # fmt: skip
            return None
        if made:
            made.clear()
        return data

    def form(self, value: Any) -> Form:
        """Give the packer the form of a value."""
        kind = type(value)
        if kind is Lowered:
            form = finished(value)
        elif kind in SETS:
            form = [SETS[kind], *Thorough(self.find).elements(value, None)]
        else:
            entry = self.find(kind)
            if entry is None:
                raise UnstorableError("not registered")
            form = entry.form(value)
        self.made.append(form)
        return form


def disguised(value: Any, made: Iterable[Form]) -> bool:
    """Return whether a container in a value, or in its forms, holds something that was packed as something else."""
    waiting: list[Any] = [[value], *(form[1:] for form in made)]
    while waiting:
        items = waiting.pop()
        kinds = set(map(type, items))
        if not kinds.isdisjoint(IMPOSTORS):
            return True
        if list in kinds:
            waiting += [item for item in items if type(item) is list]
        if dict in kinds:
            for item in items:
                if type(item) is dict:
                    waiting += (list(item), list(item.values()))
    return False


#: How one came from the value to a part of it: how one came to the container, how the part is called, its index or key.
Way: TypeAlias = "tuple[Way, str, Any] | None"


class Thorough:
    """Goes through a value in Python, and says where it can't be stored."""

    __slots__ = ("active", "find", "root")

    def __init__(self, find: Callable[[type], Entry | None], root: str = "value") -> None:
        self.find = find
        self.root = root
        #: The ids of the values around the one that is looked at.
        self.active: set[int] = set()

    def encode(self, value: Any) -> bytes:
        """Return the bytes of a value, the same that the fast way gives where it gives any.

        Raises:
            EncodeError: It can't be stored; names the path to the part that can't.
        """
        try:
            return packed(self.lowered(value, None))
        except EncodeError:
            raise
        except RecursionError:
            raise EncodeError(f"{self.root}: can't store {show(value)}: it is nested too deeply") from None
        except ValueError as error:
            deep = "recursion" in str(error)
            what = "it is nested too deeply" if deep else f"it is too big: {error}"
            raise EncodeError(f"{self.root}: can't store {show(value)}: {what}") from error

    def lowered(self, value: Any, way: Way) -> Any:  # noqa: PLR0911 - one case each
        """Return a value with a finished form in place of everything that is not plain.

        Raises:
            EncodeError: It can't be stored.
        """
        kind = type(value)
        if kind in PLAIN or kind is Lowered or (kind is int and LEAST <= value <= GREATEST):
            return value
        if kind is str:
            try:
                value.encode()
            except UnicodeEncodeError:
                return Lowered(text_form(value))
            return value
        if id(value) in self.active:
            raise EncodeError(f"{self.path(way)}: can't store {show(value)}: it contains itself")
        self.active.add(id(value))
        try:
            if kind is list:
                return self.parts(value, way, INDEX)
            if kind is dict:
                return self.mapping(value, way, KEY)
            if kind in SETS:
                return Lowered([SETS[kind], *self.elements(value, way)])
            form, labels = self.formed(value, kind, way)
            if labels == INDEX:
                return Lowered([form[0], *self.parts(form[1:], way, INDEX)])
            return Lowered([form[0], *(self.part(item, way, labels) for item in form[1:])])
        finally:
            self.active.discard(id(value))

    def part(self, item: Any, way: Way, labels: Labels) -> Any:
        """Return a part of a form, finished; a record in it gives its parts their names."""
        if type(item) is dict and labels != NONE:
            return self.mapping(item, way, labels)
        return self.lowered(item, way)

    def parts(self, items: list[Any], way: Way, labels: Labels) -> list[Any]:
        """Return the items of a list, finished."""
        return [self.lowered(item, (way, labels, index)) for index, item in enumerate(items)]

    def mapping(self, items: dict[Any, Any], way: Way, labels: Labels) -> dict[Any, Any]:
        """Return a dict, finished."""
        return {
            self.lowered(key, (way, "of the key", key)): self.lowered(item, (way, labels, key))
            for key, item in items.items()
        }

    def elements(self, items: Iterable[Any], way: Way) -> list[Any]:
        """Return the elements of a set, finished, in the order of their bytes."""
        return sorted((self.lowered(item, (way, "of the element", item)) for item in items), key=packed)

    def formed(self, value: Any, kind: type, way: Way) -> tuple[Form, Labels]:
        """Return the form of a value, with parts that are not finished.

        Raises:
            EncodeError: It has none.
        """
        entry = self.find(kind)
        if entry is None:
            raise EncodeError(f"{self.path(way)}: can't store {show(value)}{reason(kind)}")
        try:
            return entry.form(value), entry.labels
        except UnstorableError as error:
            raise EncodeError(f"{self.path(way)}: can't store {show(value)}: {error}") from None
        except Exception as error:
            raise EncodeError(
                f"{self.path(way)}: can't store {show(value)}: its encoder raised {told(error)}"
            ) from error

    def path(self, way: Way) -> str:
        """Return a way as a text: messages[3].content['x']."""
        labels = []
        while way is not None:
            way, kind, key = way
            if kind == FIELD:
                labels.append(f".{key}")
            else:
                labels.append(f"[{shortened(key)}]" if kind in {INDEX, KEY} else f" ({kind} {shortened(key)})")
        return self.root + "".join(reversed(labels))


def packed(value: Any) -> bytes:
    """Return the bytes of a value that is finished."""
    data: bytes = Packer(strict_types=True, default=finished).pack(value)
    return data


def reason(kind: type) -> str:
    """Return why a type can't be stored, and what to do."""
    if kind in CONTROL:
        return ": it is control, no value. Return it from a node; the state holds data"
    if kind is defaultdict:
        return ": its factory is code. Store a dict"
    if tag_of(kind) in GLOBAL.tags:
        return ": its class was defined once more since, and this is a value of the older one. Make it anew"
    return ". Register its type with pregel.codec.register, or annotate the field with UntrackedValue"
