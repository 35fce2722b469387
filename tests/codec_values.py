"""Values of every kind that the codec stores, and what it means that one came back as it was."""

import math
from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag, IntEnum, StrEnum, auto
from fractions import Fraction
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, PrivateAttr

from pregel.codec import Codec


class Colour(Enum):
    RED = 1
    GREEN = ("g",)
    ROUGE = 1  # noqa: PIE796 - an alias


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Word(StrEnum):
    A = "a"


class Rights(Flag):
    READ = auto()
    WRITE = auto()
    BOTH = READ | WRITE
    RUN = auto()


class Point(NamedTuple):
    x: int
    y: Any = None


@dataclass
class Plain:
    a: Any
    b: Any = 1
    c: Any = field(default_factory=list)
    d: Any = field(init=False, default="d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    key: Any
    more: Any = ()


@dataclass
class Heir(Plain):
    e: Any = None

    def __post_init__(self):
        if self.a == "explode":
            raise AssertionError("decoding runs no __post_init__")


@dataclass
class Empty:
    pass


class Model(BaseModel):
    n: int = 0
    items: list[Any] = []
    _hidden: Any = PrivateAttr(default=None)


class Open(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)

    name: str


TYPES = (Colour, Level, Word, Rights, Point, Plain, Frozen, Heir, Empty, Model, Open)
CODEC = Codec(TYPES)


def hidden(value, **fields):
    model = Model(**fields)
    model._hidden = value
    return model


def initless():
    value = Heir("a")
    value.d = "set later"
    return value


#: By name, so that a file can be called by it.
VALUES = {
    "none": None,
    "bools": [True, False],
    "ints": [0, 1, -1, 127, 128, 255, -32, -33, 2**63 - 1, 2**64 - 1, -(2**63)],
    "big_ints": [2**64, -(2**63) - 1, 10**100, -(10**100)],
    "floats": [0.0, -0.0, 1.5, math.inf, -math.inf, math.nan, 5e-324],
    "texts": ["", "a", "žluťoučký", "日本語", "\U0001f600", "\0", "x" * 300],
    "surrogates": ["\ud800", "a\udfffb", {"\udc80": "\udc81"}],
    "bytes": [b"", b"\xff\xd6\xd4", b"x" * 300],
    "bytearrays": [bytearray(), bytearray(b"ab")],
    "lists": [[], [[]], [1, [2, [3]]]],
    "tuples": [(), (1,), (1, (2, [3]))],
    "dict_keys": {"a": 1, 1: 2, None: 3, 2.5: 4, (1, "x"): 5, b"b": 6, frozenset({1}): 7, False: 8, Point(1, 2): 9},
    "dict_order": {"b": 1, "a": 2, "c": {}},
    "sets": [set(), {1, 2, 3}, {"b", "a"}, {1, "a", None, 2.5, (1, 2), b"c", frozenset({1, frozenset({2, 3})})}],
    "frozensets": [frozenset(), frozenset({1, "a"}), {frozenset({1}): 1}],
    "complexes": [1 + 2j, complex(-0.0, -0.0), complex(math.inf, 1.0)],
    "ranges": [range(3), range(0, 10**30, 7), range(5, 0, -1)],
    "datetimes": [
        datetime(2024, 2, 29, 12, 30, 1, 999999),  # noqa: DTZ001 - without zone
        datetime(1, 1, 1),  # noqa: DTZ001 - without zone
        datetime(2024, 10, 27, 2, 30, fold=1),  # noqa: DTZ001 - without zone
        datetime(2024, 1, 1, tzinfo=UTC),
        datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=30))),
        datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=-1), "home")),
        datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Prague")),
        datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Prague"), fold=1),
    ],
    "dates": [date(2024, 2, 29), date.min, date.max],
    "times": [time(1, 2, 3, 4), time(1, tzinfo=UTC), time(2, 30, fold=1)],
    "timedeltas": [timedelta(0), timedelta(days=-1, microseconds=1), timedelta.max],
    "zones": [UTC, timezone(timedelta(0), "Z"), timezone(timedelta(seconds=1)), ZoneInfo("America/New_York")],
    "uuids": [UUID(int=0), UUID("12345678-1234-5678-1234-567812345678")],
    "decimals": [Decimal(text) for text in ("0", "-0", "1.10", "1E+400", "NaN", "-sNaN12", "Infinity", "0.1")],
    "fractions": [Fraction(1, 3), Fraction(-(10**30), 7)],
    "paths": [PurePosixPath("a/b"), PureWindowsPath("c:\\a"), PurePosixPath("."), PurePosixPath("/\udc80")],
    "deques": [deque(), deque([1, [2]], maxlen=3), deque(maxlen=0)],
    "counters": [Counter("aab"), Counter({"x": -1})],
    "ordered_dicts": [OrderedDict(b=1, a=2)],
    "addresses": [
        *(IPv4Address("127.0.0.1"), IPv6Address("fe80::1%eth0"), IPv4Network("10.0.0.0/8"), IPv6Network("::/0")),
        *(IPv4Interface("10.1.2.3/8"), IPv6Interface("::1/64")),
    ],
    "enums": [Colour.RED, Colour.GREEN, Level.HIGH, Word.A, {Colour.RED: 1}],
    "flags": [Rights.READ, Rights.BOTH, Rights.READ | Rights.RUN, Rights(0)],
    "namedtuples": [Point(1), Point(1, Point(2, [3]))],
    "dataclasses": [Plain(1), Plain(Plain([2]), b={3}), Empty(), initless(), Heir("explode" * 2)],
    "frozen_dataclasses": [Frozen(key=(1, 2)), {Frozen(key=1)}, Frozen(key=Frozen(key=[1]))],
    "models": [
        Model(),
        Model(n=1),
        Model(items=[Model(), (1, 2)]),
        hidden({1}, n=2),
        Model.model_construct(n="no int"),
    ],
    "open_models": [Open(name="a"), Open(name="a", more=(1, 2))],
}
#: Exists on this kind of system only.
LOCAL = {"local_paths": [Path("a/b"), Path("/")]}


def state(value):
    """Return what a model holds, in full."""
    return (value.__dict__, value.__pydantic_fields_set__, value.__pydantic_extra__, value.__pydantic_private__)


def same(left, right):  # noqa: PLR0911 - one case each
    """Return whether two values are equal and of the same types, down to the last part."""
    if type(left) is not type(right):
        return False
    if isinstance(left, BaseModel):
        return same(state(left), state(right))
    if is_dataclass(left):
        return all(same(getattr(left, each.name), getattr(right, each.name)) for each in fields(left))
    if isinstance(left, dict):
        return len(left) == len(right) and all(map(same, left, right)) and all(map(same, left.values(), right.values()))
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, deque):
        return left.maxlen == right.maxlen and same(list(left), list(right))
    if isinstance(left, (set, frozenset)):
        return len(left) == len(right) and all(any(same(one, other) for other in right) for one in left)
    if isinstance(left, complex):
        return same([left.real, left.imag], [right.real, right.imag])
    if isinstance(left, float):
        return (math.isnan(left) and math.isnan(right)) or (left == right and str(left) == str(right))
    if isinstance(left, (Decimal, range)):
        return repr(left) == repr(right)
    if isinstance(left, (datetime, time)):
        return repr(left) == repr(right) and left.tzinfo == right.tzinfo
    return bool(left == right) and repr(left) == repr(right)
