r"""Templates: texts with `#{key}` in them.

`#{order.id}` is the value of the flat key "order.id"; where there is none, of "id" in the mapping at "order", and so
on: the longest flat key counts, and the rest is a path through mappings and sequences (`#{orders.0.id}`). `#{key?}` is
empty, and `#{key|text}` is the text, where the value is missing or None. `\#{` is a literal `#{`. Nothing else: no
attributes, no calls; and what a value holds is never read as a template again. So the parts of a dataclass can't be
reached, and to say so is an error with `?` and `|` too: what they cover is not there, and this is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from types import NoneType, UnionType
from typing import Annotated, Any, Final, NamedTuple, Union, get_args, get_origin

from pregel.channels.base import MISSING
from pregel.errors import nearest
from pregel.graph.flow.errors import MissingKeyError, TemplateError
from pregel.text import shortened

__all__ = ["Template", "never_reached"]

#: A literal `#{`, or the beginning of a place.
OPENING: Final = re.compile(r"\\#\{|#\{")
#: Says why there is no value; asked only where that is an error.
Why = Callable[[], str]
#: Sequences that are not gone into.
TEXTS: Final = (str, bytes, bytearray)
#: Types whose values have no parts at all, so that a path into one names a flat key that is not there.
WITHOUT_PARTS: Final = frozenset({str, bytes, bytearray, int, float, bool, NoneType})


class Place(NamedTuple):
    """Where a value goes."""

    name: str
    #: What stands for a value that is missing or None; None where there must be one.
    instead: str | None


class Template:
    """A text with places for values, read once.

    Args:
        text: The text.
        what: How messages name it, such as "the instruction of agent 'risk'".

    Raises:
        TemplateError: A place has no end or no name.
    """

    __slots__ = ("parts", "text")

    def __init__(self, text: str, what: str = "a template") -> None:
        self.text = text
        self.parts: tuple[str | Place, ...] = tuple(parts_of(text, what))

    @property
    def reads(self) -> tuple[str, ...]:
        """The names it must find, and those it may, in order."""
        return tuple(dict.fromkeys(part.name for part in self.parts if isinstance(part, Place)))

    def render(self, data: Mapping[str, Any], where: str) -> str:
        """Return the text with the values of a mapping in their places.

        Args:
            data: The values, by flat key.
            where: How messages name the reader, such as "node 'risk'".

        Raises:
            MissingKeyError: A value is not there, or can't be reached; the message names the key, the reader and the
                nearest key.
        """
        return "".join(part if isinstance(part, str) else rendered(part, data, where) for part in self.parts)

    def __repr__(self) -> str:
        return f"Template({self.text!r})"


def parts_of(text: str, what: str) -> list[str | Place]:
    """Return the literal texts and the places of a template, in order.

    Raises:
        TemplateError: A place has no end or no name.
    """
    parts: list[str | Place] = []
    start = 0
    for found in OPENING.finditer(text):
        if found.start() < start:  # inside the place before: in its default
            continue
        parts.append(text[start : found.start()])
        start = found.end()
        if found[0].startswith("\\"):
            parts.append("#{")
            continue
        end = text.find("}", start)
        if end < 0:
            raise TemplateError(f"{what} has a '#{{' without '}}': {shortened(text[found.start() :])}. Write '\\#{{'")
        parts.append(place_of(text[start:end], what))
        start = end + 1
    parts.append(text[start:])
    return [part for part in parts if part != ""]


def place_of(inner: str, what: str) -> Place:
    """Return what stands between the braces.

    Raises:
        TemplateError: There is no name.
    """
    name, bar, default = inner.partition("|")
    instead = default if bar else None
    name = name.strip()
    if not bar and name.endswith("?"):
        name, instead = name[:-1].rstrip(), ""
    if not name:
        raise TemplateError(f"{what} has a place without a key: {'#{' + inner + '}'!r}. Write '#{{key}}'")
    return Place(name, instead)


def rendered(place: Place, data: Mapping[str, Any], where: str) -> str:
    """Return what goes into a place.

    Raises:
        MissingKeyError: The value is not there, and must be; or it can't be reached.
    """
    value, why = looked_up(place.name, data)
    if isinstance(value, OutOfReach):
        raise MissingKeyError(f"{where} reads {'#{' + place.name + '}'!r}, and {value.why}")
    if place.instead is not None and (value is MISSING or value is None):
        return place.instead
    if value is MISSING:
        raise MissingKeyError(
            f"{where} reads {'#{' + place.name + '}'!r}, and {why()} Where it may be missing, write "
            f"{'#{' + place.name + '?}'!r} or {'#{' + place.name + '|default}'!r}"
        )
    return str(value)


class OutOfReach(NamedTuple):
    """Stands for the value of a path that leads into something that templates do not go into."""

    why: str


def looked_up(name: str, data: Mapping[str, Any]) -> tuple[Any, Why]:
    """Return the value of a name, MISSING or `OutOfReach`, and what says why there is none."""
    if name in data:
        return data[name], str
    labels = name.split(".")
    for length in range(len(labels) - 1, 0, -1):
        root = ".".join(labels[:length])
        if root in data:
            return followed(data[root], root, labels[length:])
    return MISSING, lambda: f"the context has no key {name!r}.{nearest(name, data)}"


def followed(value: Any, root: str, labels: Sequence[str]) -> tuple[Any, Why]:
    """Return what a path leads to, MISSING or `OutOfReach`, and what says why it leads nowhere."""
    way = root
    for place, label in enumerate(labels):
        inner = MISSING
        if isinstance(value, Mapping):
            inner = value.get(label, MISSING)
        elif has_own_parts(type(value), label):
            return OutOfReach(out_of_reach(way, type(value), ".".join([root, *labels]))), str
        elif isinstance(value, Sequence) and not isinstance(value, TEXTS):
            inner = value[int(label)] if label.isdecimal() and int(label) < len(value) else MISSING
        if inner is MISSING:
            return MISSING, partial(dead_end, value, way, label, ".".join([root, *labels[: place + 1]]))
        value, way = inner, f"{way}.{label}"
    return value, str


def has_own_parts(kind: type, label: str) -> bool:
    """Return whether values of a type, which is no mapping, may well have a part that templates can't reach."""
    if issubclass(kind, Enum) or (issubclass(kind, tuple) and label in getattr(kind, "_fields", ())):
        return True
    return kind not in WITHOUT_PARTS and not issubclass(kind, (*TEXTS, Sequence))


def out_of_reach(way: str, kind: type, name: str) -> str:
    """Return why a path can't be followed, and what to do."""
    return (
        f"{way!r} is of type {kind.__name__}: templates go into mappings and sequences only, and read no attributes. "
        f"Write what the template needs to a flat key, ctx[{name!r}] = ..., or let {way!r} be a dict"
    )


def dead_end(value: Any, way: str, label: str, name: str) -> str:
    """Return why a path leads nowhere from a value."""
    if isinstance(value, Mapping):
        return f"{way!r} has no {label!r}.{nearest(label, [key for key in value if isinstance(key, str)])}"
    if isinstance(value, Sequence) and not isinstance(value, TEXTS):
        return f"{way!r} has {len(value)} items and no {label!r}."
    return f"the context has no key {name!r}, and {way!r} is of type {type(value).__name__}, which has no parts."


def never_reached(kind: Any, way: str, labels: Sequence[str]) -> str | None:
    """Return why a path can never lead anywhere from values of a type; None where it may, or where that is not known.

    Args:
        kind: The type, as an annotation.
        way: What leads to the value.
        labels: The rest of the path.
    """
    arguments = get_args(kind)
    if get_origin(kind) is Annotated:
        return never_reached(arguments[0], way, labels)
    if get_origin(kind) in {Union, UnionType}:
        found = [never_reached(each, way, labels) for each in arguments if each is not NoneType]
        return None if None in found else found[0]
    kind = get_origin(kind) or kind
    if not labels or not is_telling(kind):
        return None
    if not issubclass(kind, Mapping):
        name = ".".join([way, *labels])
        if has_own_parts(kind, labels[0]):
            return out_of_reach(way, kind, name)
        if kind in WITHOUT_PARTS:
            return f"{way!r} is of type {kind.__name__}, which has no parts: declare the key {name!r}, or read {way!r}"
    inner = arguments[-1] if kind in {dict, list} and arguments else Any  # of a dict the type of its values
    return never_reached(inner, f"{way}.{labels[0]}", labels[1:])


def is_telling(kind: Any) -> bool:
    """Return whether an annotation is a class whose values are no more than it says: not `Any`, `Iterable` and such."""
    if kind is Any or not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return False
    return issubclass(kind, (dict, list)) or not (issubclass(dict, kind) or issubclass(list, kind))
