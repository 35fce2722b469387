"""The forms of standard types.

Their numbers are a part of the format: one that was given is never given to another type.
"""

from __future__ import annotations

import decimal
from collections import Counter, OrderedDict, deque
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from pregel.codec.wire import INDEX, INT_LIMIT, KEY, NONE, Entry, Form, Labels, UnstorableError, mark
from pregel.codec.zones import zone

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BUILTIN", "FROZENSET", "NUMBERED", "SET", "distinct", "text_form"]

#: By type and by number. The sets are left to the encoder, which has to sort them.
BUILTIN: Final[dict[type, Entry]] = {}
NUMBERED: Final[dict[int, Entry]] = {}

SET: Final = mark(2)
FROZENSET: Final = mark(3)
TEXT: Final = mark(5)

#: Says no to texts that are no number, instead of making a NaN of them as the current context might.
STRICT: Final = decimal.Context(traps=[decimal.InvalidOperation])


def add(
    number: int,
    cls: type,
    form: Callable[[Any, Any], Form],
    build: Callable[[Form], Any],
    labels: Labels = NONE,
) -> None:
    """Add a type; `form` is given the mark and the value."""
    own = mark(number)
    entry = Entry(cls, cls.__name__, lambda value: form(own, value), build, labels)
    BUILTIN[cls] = NUMBERED[number] = entry


def only(value: Any, *kinds: type) -> Any:
    """Return a decoded value of one of these very types.

    Raises:
        TypeError: It is of another one.
    """
    if type(value) not in kinds:
        raise TypeError(f"{' or '.join(kind.__name__ for kind in kinds)} expected, not {type(value).__name__}")
    return value


def distinct(items: list[Any], collection: Any) -> Any:
    """Return a set that was made of these items.

    Raises:
        ValueError: Some of them are equal, so that one is lost.
    """
    if len(collection) != len(items):
        raise ValueError("two of its elements are equal")
    return collection


# -- containers ------------------------------------------------------------------------------------------------------


def unsorted(_own: Any, _value: Any) -> Form:
    """Stand in for the form of a set, which the encoder makes."""
    raise UnstorableError("a set can't be stored by itself")  # pragma: no cover - the encoder never asks


def build_set(form: Form) -> Any:
    """Rebuild a set."""
    return distinct(form[1:], set(form[1:]))


def build_frozenset(form: Form) -> Any:
    """Rebuild a frozenset."""
    return distinct(form[1:], frozenset(form[1:]))


def build_deque(form: Form) -> Any:
    """Rebuild a deque with its limit."""
    _, limit, items = form
    if only(limit, int, type(None)) is not None and len(only(items, list)) > limit:
        raise ValueError(f"{len(items)} items in a deque of at most {limit}")
    return deque(only(items, list), limit)


def build_counter(form: Form) -> Any:
    """Rebuild a counter, with whatever its counts are."""
    _, counts = form
    counter: Counter[Any] = Counter()
    dict.update(counter, only(counts, dict))
    return counter


def build_ordered(form: Form) -> Any:
    """Rebuild an ordered dict."""
    _, items = form
    return OrderedDict(only(items, dict))


# -- numbers and texts -----------------------------------------------------------------------------------------------


def int_form(own: Any, value: int) -> Form:
    """Return the form of an integer of more than 64 bits."""
    size = value.bit_length() // 8 + 1
    if size > INT_LIMIT:
        raise UnstorableError(f"an integer of {size} bytes is longer than the {INT_LIMIT} that are taken")
    return [own, value.to_bytes(size, "big", signed=True)]


def build_int(form: Form) -> int:
    """Rebuild a big integer."""
    _, data = form
    if len(only(data, bytes)) > INT_LIMIT:
        raise ValueError(f"an integer of {len(data)} bytes is longer than the {INT_LIMIT} that are taken")
    return int.from_bytes(data, "big", signed=True)


def text_form(value: str) -> Form:
    """Return the form of a text with lone surrogates, which UTF-8 has no bytes for."""
    return [TEXT, value.encode("utf-8", "surrogatepass")]


def build_text(form: Form) -> str:
    """Rebuild a text with lone surrogates."""
    _, data = form
    text: str = only(data, bytes).decode("utf-8", "surrogatepass")
    return text


def build_bytearray(form: Form) -> bytearray:
    """Rebuild a bytearray."""
    _, data = form
    return bytearray(only(data, bytes))


def build_complex(form: Form) -> complex:
    """Rebuild a complex number."""
    _, real, imaginary = form
    return complex(only(real, float), only(imaginary, float))


def build_range(form: Form) -> range:
    """Rebuild a range."""
    _, start, stop, step = form
    return range(only(start, int), only(stop, int), only(step, int))


def build_decimal(form: Form) -> Decimal:
    """Rebuild a decimal with all its digits and signs."""
    _, text = form
    value = Decimal(only(text, str), STRICT)
    if str(value) != text:
        raise ValueError(f"{text!r} is not how a Decimal is written")
    return value


def build_fraction(form: Form) -> Fraction:
    """Rebuild a fraction."""
    _, over, under = form
    value = Fraction(only(over, int), only(under, int))
    if value.denominator != under:
        raise ValueError("a fraction that is not in lowest terms")
    return value


# -- times -----------------------------------------------------------------------------------------------------------


def datetime_form(own: Any, value: datetime) -> Form:
    """Return the form of a date and time; the zone is a value of its own."""
    parts = [
        *(own, value.year, value.month, value.day),
        *(value.hour, value.minute, value.second, value.microsecond),
    ]
    if value.tzinfo is not None or value.fold:
        parts += (value.fold, value.tzinfo)
    return parts


def build_datetime(form: Form) -> datetime:
    """Rebuild a date and time."""
    _, year, month, day, hour, minute, second, micro, *rest = form
    fold, zoned = rest or (0, None)
    return datetime(year, month, day, hour, minute, second, micro, zoned, fold=fold)


def time_form(own: Any, value: time) -> Form:
    """Return the form of a time of day."""
    return [own, value.hour, value.minute, value.second, value.microsecond, value.fold, value.tzinfo]


def build_time(form: Form) -> time:
    """Rebuild a time of day."""
    _, hour, minute, second, micro, fold, zoned = form
    return time(hour, minute, second, micro, zoned, fold=fold)


def build_date(form: Form) -> date:
    """Rebuild a date."""
    _, year, month, day = form
    return date(year, month, day)


def build_timedelta(form: Form) -> timedelta:
    """Rebuild a length of time."""
    _, days, seconds, micros = form
    return timedelta(only(days, int), only(seconds, int), only(micros, int))


def timezone_form(own: Any, value: timezone) -> Form:
    """Return the form of a fixed offset, with its name where it was given one; UTC has nothing to say."""
    if value is UTC:
        return [own]
    return [own, *value.__getinitargs__()]  # type: ignore[attr-defined]  # what copying and pickling use


def build_timezone(form: Form) -> timezone:
    """Rebuild a fixed offset."""
    return timezone(*form[1:]) if form[1:] else UTC


def zone_form(own: Any, value: ZoneInfo) -> Form:
    """Return the form of a time zone that has a name."""
    if value.key is None:
        raise UnstorableError("a ZoneInfo without a key can't be found again")
    return [own, value.key]


def build_zone(form: Form) -> ZoneInfo:
    """Find a time zone again."""
    _, key = form
    return zone(only(key, str))


# -- the table -------------------------------------------------------------------------------------------------------


def as_text(own: Any, value: Any) -> Form:
    """Return the form of a value that its text says all about."""
    return [own, str(value)]


def from_text(cls: type) -> Callable[[Form], Any]:
    """Return the builder of a type that is made of its text."""

    def build(form: Form) -> Any:
        _, text = form
        return cls(only(text, str))

    return build


def build_uuid(form: Form) -> UUID:
    """Rebuild a UUID."""
    _, data = form
    return UUID(bytes=only(data, bytes))


add(1, tuple, lambda own, value: [own, *value], lambda form: tuple(form[1:]), INDEX)
add(2, set, unsorted, build_set)
add(3, frozenset, unsorted, build_frozenset)
add(4, int, int_form, build_int)
add(5, str, lambda _, value: text_form(value), build_text)
add(6, bytearray, lambda own, value: [own, bytes(value)], build_bytearray)
add(7, complex, lambda own, value: [own, value.real, value.imag], build_complex)
add(8, range, lambda own, value: [own, int(value.start), int(value.stop), int(value.step)], build_range)
add(9, datetime, datetime_form, build_datetime)
add(10, date, lambda own, value: [own, value.year, value.month, value.day], build_date)
add(11, time, time_form, build_time)
add(12, timedelta, lambda own, value: [own, value.days, value.seconds, value.microseconds], build_timedelta)
add(13, timezone, timezone_form, build_timezone)
add(14, ZoneInfo, zone_form, build_zone)
add(15, UUID, lambda own, value: [own, value.bytes], build_uuid)
add(16, Decimal, as_text, build_decimal)
add(17, Fraction, lambda own, value: [own, value.numerator, value.denominator], build_fraction)
add(18, PurePosixPath, as_text, from_text(PurePosixPath))
add(19, PureWindowsPath, as_text, from_text(PureWindowsPath))
add(20, PosixPath, as_text, from_text(PosixPath))
add(21, WindowsPath, as_text, from_text(WindowsPath))
add(22, deque, lambda own, value: [own, value.maxlen, list(value)], build_deque)
add(23, Counter, lambda own, value: [own, dict(value)], build_counter, KEY)
add(24, OrderedDict, lambda own, value: [own, dict(value)], build_ordered, KEY)
for number, kind in enumerate((IPv4Address, IPv6Address, IPv4Network, IPv6Network, IPv4Interface, IPv6Interface), 25):
    add(number, kind, as_text, from_text(kind))
