r"""Templates: texts with `#{key}` in them.

`#{order.id}` is the value of the flat key "order.id"; where there is none, of "id" in the mapping at "order", and so
on: the longest flat key counts, and the rest is a path through mappings and sequences (`#{orders.0.id}`). `#{key?}` is
empty, and `#{key|text}` is the text, where the value is missing or None. `\#{` is a literal `#{`. Nothing else: no
attributes, no calls; and what a value holds is never read as a template again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from pregel.channels.base import MISSING
from pregel.errors import nearest
from pregel.graph.flow.errors import MissingKeyError, TemplateError
from pregel.text import shortened

__all__ = ["Template"]

#: A literal `#{`, or the beginning of a place.
OPENING: Final = re.compile(r"\\#\{|#\{")
#: Says why there is no value; asked only where that is an error.
Why = Callable[[], str]


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
            MissingKeyError: A value is not there; the message names the key, the reader and the nearest key.
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
    """Return what goes into a place."""
    value, why = looked_up(place.name, data)
    if place.instead is not None and (value is MISSING or value is None):
        return place.instead
    if value is MISSING:
        raise MissingKeyError(
            f"{where} reads {'#{' + place.name + '}'!r}, and {why()} Where it may be missing, write "
            f"{'#{' + place.name + '?}'!r} or {'#{' + place.name + '|default}'!r}"
        )
    return str(value)


def looked_up(name: str, data: Mapping[str, Any]) -> tuple[Any, Why]:
    """Return the value of a name, or MISSING, and what says why there is none."""
    value = data.get(name, MISSING)
    labels = name.split(".")
    if value is MISSING:
        for length in range(len(labels) - 1, 0, -1):
            root = ".".join(labels[:length])
            value = data.get(root, MISSING)
            if value is not MISSING:
                return followed(value, root, labels[length:])
    return value, lambda: f"the context has no key {name!r}.{nearest(name, data)}"


def followed(value: Any, way: str, labels: Sequence[str]) -> tuple[Any, Why]:
    """Return what a path leads to, or MISSING, and what says why it leads nowhere."""
    for label in labels:
        if isinstance(value, Mapping):
            inner = value.get(label, MISSING)
        elif isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray)):
            inner = value[int(label)] if label.isdecimal() and int(label) < len(value) else MISSING
        else:
            inner = MISSING
        if inner is MISSING:
            return MISSING, partial(dead_end, value, way, label)
        value, way = inner, f"{way}.{label}"
    return value, str


def dead_end(value: Any, way: str, label: str) -> str:
    """Return why a path leads nowhere from a value."""
    if isinstance(value, Mapping):
        return f"{way!r} has no {label!r}.{nearest(label, [key for key in value if isinstance(key, str)])}"
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray)):
        return f"{way!r} has {len(value)} items and no {label!r}."
    return f"{way!r} is of type {type(value).__name__}: templates go into mappings and sequences only."
