"""The types that a graph's annotations name are found, however deep they stand."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import ModuleType
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, Optional, TypedDict, TypeVar, Union

import pytest
from pydantic import BaseModel
from typing_extensions import TypeAliasType

from pregel.codec import Codec
from pregel.graph.storable import fields, storable_types
from pregel.types import Command, Send

T = TypeVar("T")


class Colour(Enum):
    RED = 1


class Nothing(Enum):
    pass


@dataclass
class Leaf:
    colour: Colour = Colour.RED


class Node(BaseModel):
    leaf: Leaf
    next: "Node | None" = None


class Pair(NamedTuple):
    left: Node
    right: "Leaf"


@dataclass
class Box(Generic[T]):
    inside: T


class Movie(TypedDict):
    cast: NotRequired[list["Pair"]]


class Unresolvable(TypedDict):
    bad: "Missing"  # noqa: F821 - that is the point
    good: Leaf


class UnresolvableTuple(NamedTuple):
    bad: "Missing"  # noqa: F821 - that is the point


Alias = TypeAliasType("Alias", list[Leaf])
Broken = TypeAliasType("Broken", "Missing")  # noqa: F821 - that is the point
Bound = TypeVar("Bound", bound=Leaf)


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (int, []),
        (Any, []),
        (None, []),
        ("Leaf", []),
        (Colour, [Colour]),
        (Nothing, []),
        (Leaf, [Leaf, Colour]),
        (list[Leaf], [Leaf, Colour]),
        (Optional[Leaf], [Leaf, Colour]),  # noqa: UP045 - the older form
        (Union[int, dict[str, Leaf]], [Leaf, Colour]),  # noqa: UP007 - the older form
        (Leaf | None, [Leaf, Colour]),
        (Annotated[list[Leaf], Node], [Leaf, Colour]),
        (list[Annotated[Leaf, ["metadata that has no hash"]]], [Leaf, Colour]),
        (tuple[Leaf, ...], [Leaf, Colour]),
        (Mapping[Colour, int], [Colour]),
        (Callable[[Colour], int], [Colour]),
        (Literal[Colour.RED, "x"], [Colour]),
        (Node, [Node, Leaf, Colour]),
        (Pair, [Pair, Node, Leaf, Colour]),
        (Movie, [Pair, Node, Leaf, Colour]),
        (Box[Leaf], [Box, Leaf, Colour]),
        (Alias, [Leaf, Colour]),
        (Broken, []),
        (Bound, [Leaf, Colour]),
        (Unresolvable, [Leaf, Colour]),
        (UnresolvableTuple, [UnresolvableTuple]),
        (list[Send] | Command, []),
        (BaseModel, []),
    ],
    ids=str,
)
def test_the_types_that_an_annotation_names_are_found(annotation, expected):
    assert storable_types([annotation]) == expected


def test_what_is_found_makes_a_codec():
    codec = Codec(storable_types([Movie, Box[int]]))
    value = {"cast": [Pair(Node(leaf=Leaf()), Leaf())], "box": Box(Box(Colour.RED))}
    assert codec.decode(codec.encode(value)) == value


def test_what_needs_functions_of_its_own_is_left_to_the_user():
    @dataclass
    class TroubleError(Exception):
        leaf: Leaf = field(default_factory=Leaf)

    class Bare:
        pass

    found = storable_types([TroubleError, Bare])
    assert found == [Leaf, Colour]
    Codec(found)


def test_a_type_is_named_once_and_read_once():
    fields.cache_clear()
    assert storable_types([Leaf, list[Leaf], Leaf] * 1_000) == [Leaf, Colour]
    assert fields.cache_info().misses <= 3


def test_pydantic_is_not_loaded_for_it(monkeypatch):
    fields.cache_clear()
    monkeypatch.setitem(sys.modules, "pydantic.main", None)
    assert storable_types([Leaf, Movie]) != []
    assert isinstance(sys, ModuleType)
    fields.cache_clear()
