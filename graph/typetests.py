"""Tests of values against types: they look, and leave everything as it is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

from pregel.graph.annotations import TOWER, describe
from pregel.text import shortened

__all__ = [
    "ANYTHING",
    "Fault",
    "Find",
    "TypeTest",
    "any_of",
    "each_of",
    "entries",
    "instance",
    "items",
    "keyed",
    "literal",
    "shortened",
    "subclass",
]

#: What is wrong with a value: where inside it (`[1]['x']`, empty for the value itself), and what.
Fault = tuple[str, str]
Find = Callable[[Any], Fault | None]

TEXT_LIMIT: Final = 60


@dataclass(frozen=True, slots=True)
class TypeTest:
    """How values are held against one type."""

    #: Returns what is wrong with a value, or None.
    find: Find
    #: Values of exactly these types pass without being looked at.
    passes: tuple[type, ...] = ()


#: Lets everything pass.
ANYTHING: Final = TypeTest(lambda _: None)


def instance(kind: type) -> TypeTest:
    """Return the test for a class: its instances and those of subclasses; `int` counts as `float`."""
    kinds = TOWER.get(kind, (kind,))
    expected = describe(kind)
    return TypeTest(lambda value: None if isinstance(value, kinds) else wrong(value, expected), kinds)


def subclass(kind: type, expected: str) -> TypeTest:
    """Return the test for `type[X]`."""

    def find(value: Any) -> Fault | None:
        if not isinstance(value, type):
            return wrong(value, expected)
        return None if issubclass(value, kind) else ("", f"expected {expected}, got the class {describe(value)}")

    return TypeTest(find)


def literal(options: tuple[Any, ...], expected: str) -> TypeTest:
    """Return the test for a `Literal`. `True` is not the literal 1, nor is 1.0."""

    def find(value: Any) -> Fault | None:
        for option in options:
            alike = isinstance(value, type(option)) and isinstance(value, bool) == isinstance(option, bool)
            if alike and value == option:
                return None
        return "", f"expected {expected}, got {shortened(value)}"

    return TypeTest(find)


def any_of(tests: Sequence[TypeTest], expected: str) -> TypeTest:
    """Return the test for a union."""
    if ANYTHING in tests:
        return ANYTHING

    def find(value: Any) -> Fault | None:
        inner: list[Fault] = []
        for test in tests:
            fault = test.find(value)
            if fault is None:
                return None
            if fault[0]:
                inner.append(fault)
        # Where the value is of one member's kind and something inside it is wrong, that is what to say.
        return inner[0] if len(inner) == 1 else wrong(value, expected)

    return TypeTest(find, tuple(kind for test in tests for kind in test.passes))


def items(kind: Any, item: TypeTest, expected: str) -> TypeTest:
    """Return the test for a container of items of one type."""
    if item is ANYTHING:
        return TypeTest(lambda value: None if isinstance(value, kind) else wrong(value, expected), (kind,))
    passes = frozenset(item.passes)
    ordered = not issubclass(kind, AbstractSet)

    def find(value: Any) -> Fault | None:
        if not isinstance(value, kind):
            return wrong(value, expected)
        if passes and passes.issuperset(map(type, value)):
            return None
        for index, each in enumerate(value):
            fault = item.find(each)
            if fault is not None:
                return inside(f"[{index}]" if ordered else f"{{{shortened(each)}}}", fault)
        return None

    return TypeTest(find)


def entries(kind: Any, key: TypeTest, value: TypeTest, expected: str) -> TypeTest:
    """Return the test for a mapping with keys of one type and values of another."""
    keys, values = items(Collection, key, expected), items(Collection, value, expected)

    def find(mapping: Any) -> Fault | None:
        if not isinstance(mapping, kind):
            return wrong(mapping, expected)
        if keys.find(mapping.keys()) is None and values.find(mapping.values()) is None:
            return None
        return next(filter(None, (entry_fault(*entry) for entry in mapping.items())), None)

    def entry_fault(name: Any, each: Any) -> Fault | None:
        fault = key.find(name)
        if fault is not None:
            return "", f"key {shortened(name)}: {fault[1]}"
        fault = value.find(each)
        return None if fault is None else inside(f"[{shortened(name)}]", fault)

    return TypeTest(find)


def each_of(tests: Sequence[TypeTest], expected: str) -> TypeTest:
    """Return the test for a tuple of fixed length."""

    def find(value: Any) -> Fault | None:
        if not isinstance(value, tuple):
            return wrong(value, expected)
        if len(value) != len(tests):
            return "", f"expected {expected}, got a tuple of {len(value)}"
        for index, test in enumerate(tests):
            fault = test.find(value[index])
            if fault is not None:
                return inside(f"[{index}]", fault)
        return None

    return TypeTest(find)


def keyed(tests: Mapping[str, TypeTest], required: Collection[str], expected: str) -> TypeTest:
    """Return the test for a TypedDict; keys that it does not know are nobody's business."""

    def find(value: Any) -> Fault | None:
        if not isinstance(value, dict):
            return wrong(value, expected)
        for name, test in tests.items():
            if name not in value:
                if name in required:
                    return "", f"expected {expected}, and its key {name!r} is missing"
                continue
            fault = test.find(value[name])
            if fault is not None:
                return inside(f"[{name!r}]", fault)
        return None

    return TypeTest(find)


def wrong(value: Any, expected: str) -> Fault:
    """Return the fault of a value of the wrong type; one of the same name is told apart by its module."""
    kind = type(value)
    name = describe(kind)
    return "", f"expected {expected}, got {f'{kind.__module__}.{kind.__qualname__}' if name == expected else name}"


def inside(where: str, fault: Fault) -> Fault:
    """Return a fault as seen from the container."""
    return where + fault[0], fault[1]
