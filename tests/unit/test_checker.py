"""Whether values have their field's type: what passes, what does not and what is said, with and without conversion."""
# ruff: noqa: UP006, UP007, UP035, UP045 - how older code writes types is a part of what is tested

import asyncio
import collections
import datetime as dt
import enum
import functools
import operator
import subprocess
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    List,
    Literal,
    LiteralString,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    Protocol,
    Required,
    Self,
    Tuple,
    TypedDict,
    TypeVar,
    Union,
    runtime_checkable,
)

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator
from typing_extensions import TypeAliasType
from typing_extensions import TypedDict as NewTypedDict

from pregel.errors import PregelWarning
from pregel.graph.checker import checker, field_checker, mismatch, reducer_update_annotation
from pregel.graph.schema import Unchecked

if TYPE_CHECKING:
    from fractions import Fraction

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Word(str):
    __slots__ = ()


class Dict(dict):
    pass


class Plain:
    pass


class Child(Plain):
    pass


@dataclass
class Data:
    n: int


class Model(BaseModel):
    n: int


class ChildModel(Model):
    m: int = 0


class Point(NamedTuple):
    x: int
    y: int


class Item(TypedDict):
    name: str
    count: NotRequired[int]


class Partial(TypedDict, total=False):
    name: Required[str]
    count: int


class Tree(TypedDict):
    name: str
    children: "list[Tree]"


class Holder(TypedDict, Generic[T]):
    held: list[T]


class Hidden(TypedDict):
    odd: "Fraction"


class Duck(Protocol):
    def quack(self): ...


@runtime_checkable
class Sized(Protocol):
    def __len__(self): ...


class Box(Generic[T]):
    pass


Count = NewType("Count", int)
Log = TypeAliasType("Log", list[T], type_params=(T,))

PASSES = [
    (int, 1),
    (int, True),
    (int, Level.LOW),
    (float, 1.5),
    (float, 1),
    (float, True),
    (complex, 1),
    (str, Word("a")),
    (bytes, b""),
    (bool, False),
    (None, None),
    (type(None), None),
    (Any, object()),
    (object, object()),
    (T, object()),
    (list, ["a", 1]),
    (List, ["a", 1]),
    (Tuple, (1, "a")),
    (tuple, ()),
    (dict, Dict()),
    (list[int], []),
    (list[int], [1, True, Level.LOW]),
    (list[float], [1, 2.5, False]),
    (list[str], ["a", Word("b")]),
    (list[Any], [object()]),
    (list[object], [object()]),
    (list[T], [object()]),
    (List[int], [1]),
    (Sequence[int], (1, 2)),
    (Sequence[int], range(3)),
    (Sequence[str], "text"),
    (set[int], {1}),
    (frozenset[int], frozenset({1})),
    (collections.abc.Set[int], frozenset({1})),
    (collections.deque[int], collections.deque([1])),
    (dict[str, int], {"a": 1}),
    (dict[str, int], collections.OrderedDict(a=1)),
    (dict[str, int], collections.defaultdict(int, a=1)),
    (dict[str, Any], {"a": object()}),
    (Mapping[str, int], types.MappingProxyType({"a": 1})),
    (collections.Counter[str], collections.Counter("aab")),
    (tuple[int, str], (1, "a")),
    (tuple[int, ...], (1, 2, 3)),
    (tuple[int, ...], ()),
    (tuple[int, int], Point(1, 2)),
    (tuple[int, *tuple[str, ...]], (1, "a", "b")),
    (Point, Point(1, 2)),
    (Optional[int], None),
    (Optional[int], 1),
    (int | str, "a"),
    (Union[list[int], dict[str, int]], {"a": 1}),
    (int | Any, object()),
    (Literal["a", 1] | None, "a"),
    (Literal["a", 1] | None, None),
    (Literal["a"], Word("a")),
    (Literal[Color.RED], Color.RED),
    (LiteralString, "a"),
    (Color, Color.RED),
    (Plain, Child()),
    (Data, Data(1)),
    (Model, ChildModel(n=1)),
    (list[Model], [ChildModel(n=1)]),
    (Item, {"name": "a"}),
    (Item, {"name": "a", "count": 1, "more": object()}),
    (Partial, {"name": "a"}),
    (list[Item], [{"name": "a"}]),
    (Tree, {"name": "a", "children": [{"name": "b", "children": []}]}),
    (Holder[int], {"held": [1]}),
    (Holder, {"held": [object()]}),
    (Count, 1),
    (Log[int], [1]),
    (Log, [object()]),
    (type[Plain], Child),
    (type[Any], int),
    (type, int),
    (Callable[[int], str], len),
    (Callable, len),
    (Sized, [1]),
    (Box[int], Box()),
    (dt.datetime, dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
    (Annotated[int, "doc"], 1),
    (Annotated[int, Unchecked], "a"),
    (list[Annotated[int, Unchecked]], ["a"]),
    (list[Annotated[int, "doc"]], [1]),
    (NotRequired[Annotated[int, "doc"]], 1),
    (pydantic.SecretStr, pydantic.SecretStr("a")),
    (pydantic.AwareDatetime, dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
    (Annotated[str, AfterValidator(str.upper)], "A"),
    (list[pydantic.SkipValidation[int]], ["a"]),
]


@pytest.mark.parametrize(("annotation", "value"), PASSES)
def test_what_passes_is_the_very_object(annotation, value):
    assert checker(annotation)(value) is value


FAILS = [
    (int, "a", "expected int, got str"),
    (int, 1.0, "expected int, got float"),
    (int, None, "expected int, got None"),
    (float, "1", "expected float, got str"),
    (float, 1j, "expected float, got complex"),
    (str, 1, "expected str, got int"),
    (str, b"a", "expected str, got bytes"),
    (bool, 1, "expected bool, got int"),
    (None, 0, "expected None, got int"),
    (list, (1,), "expected list, got tuple"),
    (List, {1}, "expected list, got set"),
    (list[int], (1,), "expected list[int], got tuple"),
    (list[int], [1, "2"], "at [1]: expected int, got str"),
    (list[list[int]], [[1], [2, "3"]], "at [1][1]: expected int, got str"),
    (Sequence[int], iter([1]), "expected Sequence[int], got list_iterator"),
    (set[int], {"a"}, "at {'a'}: expected int, got str"),
    (collections.deque[int], collections.deque(["a"]), "at [0]: expected int, got str"),
    (dict[str, int], [("a", 1)], "expected dict[str, int], got list"),
    (dict[str, int], {"a": "b"}, "at ['a']: expected int, got str"),
    (dict[str, int], {1: 1}, "key 1: expected str, got int"),
    (dict[str, int], {"a": 1, "b": 2, "c": "3"}, "at ['c']: expected int, got str"),
    (dict[str, list[int]], {"a": [1], "b": ["x"]}, "at ['b'][0]: expected int, got str"),
    (collections.Counter[str], collections.Counter([1]), "key 1: expected str, got int"),
    (tuple[int, str], [1, "a"], "expected tuple[int, str], got list"),
    (tuple[int, str], (1,), "expected tuple[int, str], got a tuple of 1"),
    (tuple[int, str], (1, 2), "at [1]: expected str, got int"),
    (tuple[int, ...], (1, "a"), "at [1]: expected int, got str"),
    (tuple[int, *tuple[str, ...]], [1], "expected tuple, got list"),
    (Optional[int], "a", "expected int | None, got str"),
    (int | str, 1.5, "expected int | str, got float"),
    (list[int] | None, ["a"], "at [0]: expected int, got str"),
    (list[int] | list[str], [1.5], "expected list[int] | list[str], got list"),
    (Literal["a", "b"], "c", "expected Literal['a', 'b'], got 'c'"),
    (Literal[1], True, "expected Literal[1], got True"),
    (Literal[1], 1.0, "expected Literal[1], got 1.0"),
    (Literal[True], 1, "expected Literal[True], got 1"),
    (Color, "red", "expected Color, got str"),
    (Plain, object(), "expected Plain, got object"),
    (Child, Plain(), "expected Child, got Plain"),
    (Data, {"n": 1}, "expected Data, got dict"),
    (Model, {"n": 1}, "expected Model, got dict"),
    (list[Model], [{"n": 1}], "at [0]: expected Model, got dict"),
    (Item, {}, "expected Item, and its key 'name' is missing"),
    (Item, [], "expected Item, got list"),
    (Item, {"name": 1}, "at ['name']: expected str, got int"),
    (Item, {"name": "a", "count": "b"}, "at ['count']: expected int, got str"),
    (Partial, {"count": 1}, "expected Partial, and its key 'name' is missing"),
    (
        Tree,
        {"name": "a", "children": [{"name": 1, "children": []}]},
        "at ['children'][0]['name']: expected str, got int",
    ),
    (Holder[int], {"held": ["a"]}, "at ['held'][0]: expected int, got str"),
    (Count, "a", "expected int, got str"),
    (Log[int], ["a"], "at [0]: expected int, got str"),
    (type[Plain], int, "expected type[Plain], got the class int"),
    (type[Plain], Plain(), "expected type[Plain], got Plain"),
    (type[Any], 1, "expected type, got int"),
    (Callable[[int], str], 1, "expected Callable, got int"),
    (Sized, 1, "expected Sized, got int"),
    (Box[int], 1, "expected Box, got int"),
    (dt.datetime, dt.date(2024, 1, 1), "expected datetime, got date"),
    (Annotated[int, "doc"], "a", "expected int, got str"),
    (pydantic.SecretStr, "a", "expected SecretStr, and 'a' is one only when converted"),
    (Annotated[str, AfterValidator(str.upper)], "a", "expected str, and 'a' is one only when converted"),
    (Annotated[int, BeforeValidator(int)], "1", "expected int, and '1' is one only when converted"),
    (Annotated[int, AfterValidator(int)], "a", "input should be a valid integer, got 'a'"),
]


@pytest.mark.parametrize(("annotation", "value", "message"), FAILS)
def test_what_fails_and_what_is_said(annotation, value, message):
    with pytest.raises(TypeError) as caught:
        checker(annotation)(value)
    assert str(caught.value) == message


def test_classes_of_one_name_are_told_apart():
    other = type("Plain", (), {"__module__": "elsewhere"})
    with pytest.raises(TypeError, match=r"expected Plain, got elsewhere\.Plain"):
        checker(Plain)(other())


def test_long_values_are_shortened():
    with pytest.raises(TypeError) as caught:
        checker(Literal["a"])("x" * 1000)
    assert len(str(caught.value)) < 120


@pytest.mark.parametrize(
    ("annotation", "exact"),
    [
        (int, int),
        (str, str),
        (bool, bool),
        (float, float),
        (list, list),
        (dict, dict),
        (list[Any], list),
        (Plain, Plain),
        (Optional[int], int),
        (Annotated[int, "doc"], int),
        (list[int], None),
        (Literal[1], None),
        (Any, None),
    ],
)
def test_exact_type(annotation, exact):
    assert checker(annotation).exact is exact


@given(st.sampled_from(PASSES + [(annotation, value) for annotation, value, _ in FAILS]), st.sampled_from(PASSES))
def test_a_value_of_the_exact_type_always_passes(one, other):
    check = checker(one[0])
    for value in (one[1], other[1]):
        if type(value) is check.exact:
            assert check(value) is value


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (int, "int"),
        (Optional[list[int]], "list[int] | None"),
        (dict[str, Any], "dict[str, Any]"),
        (Literal["a", 1], "Literal['a', 1]"),
        (tuple[int, ...], "tuple[int, ...]"),
        (Callable[[int], str], "Callable[[int], str]"),
        (Annotated[int, "doc"], "int"),
        (NotRequired[int], "int"),
        (None, "None"),
        (Model, "Model"),
        (T, "T"),
    ],
)
def test_expected_is_readable(annotation, text):
    assert checker(annotation).expected == text
    assert repr(checker(annotation)) == f"Check({text})"


def numbers():
    yield 1
    yield "two"


async def later():
    yield 1


@pytest.mark.parametrize(
    "annotation",
    [Iterable[int], Iterator[int], Iterable[int] | None, list[int] | Iterator[int], Any, collections.abc.Generator[int]]
    if sys.version_info >= (3, 13)
    else [Iterable[int], Iterator[int], Iterable[int] | None, list[int] | Iterator[int], Any],
)
def test_one_shot_iterators_are_not_consumed(annotation):
    generator = numbers()
    assert checker(annotation)(generator) is generator
    assert list(generator) == [1, "two"]


def test_coroutines_and_async_iterators_are_left_alone():
    generator = later()
    assert checker(collections.abc.AsyncIterator[int])(generator) is generator

    async def main():
        return [each async for each in generator]

    assert asyncio.run(main()) == [1]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


def fits(value, annotation):
    """Say slowly what the checks mean, for the types of JSON."""
    origin, arguments = getattr(annotation, "__origin__", annotation), getattr(annotation, "__args__", ())
    if isinstance(annotation, types.UnionType):
        return any(fits(value, member) for member in arguments)
    if not isinstance(value, (float, int) if origin is float else origin):
        return False
    if origin is list and arguments:
        return all(fits(each, arguments[0]) for each in value)
    if origin is dict and arguments:
        return all(fits(k, arguments[0]) and fits(v, arguments[1]) for k, v in value.items())
    return True


LEAVES = st.sampled_from([int, float, str, bool, type(None), list, dict])
ANNOTATIONS = st.recursive(
    LEAVES,
    lambda inner: (
        inner.map(lambda item: list[item])
        | inner.map(lambda item: dict[str, item])
        | st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1])
    ),
    max_leaves=5,
)


@given(ANNOTATIONS, JSON)
def test_checks_agree_with_their_meaning(annotation, value):
    try:
        assert checker(annotation)(value) is value
    except TypeError:
        assert not fits(value, annotation)
    else:
        assert fits(value, annotation)


# What can't be tested.


def test_a_plain_protocol_lets_everything_pass_with_one_warning():
    with pytest.warns(PregelWarning, match=r"Duck.*runtime_checkable.*Unchecked") as caught:
        check = checker(list[Duck] | dict[str, Duck])
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in ([1], {"a": 1}):
            assert check(value) is value
    with pytest.raises(TypeError):
        check(1)


def test_several_untestable_types_make_one_warning():
    with pytest.warns(PregelWarning, match="Duck, 'Nowhere'") as caught:
        checker(tuple[Duck, "Nowhere"])  # noqa: F821 - that is the point
    assert len(caught) == 1


def test_a_nested_typeddict_that_hides_its_types_is_any_dict():
    with pytest.warns(PregelWarning, match="Hidden"):
        check = checker(list[Hidden])
    assert check([{"odd": 1}]) == [{"odd": 1}]
    with pytest.raises(TypeError, match=r"at \[0\]: expected dict, got int"):
        check([1])


# Conversion.


@pytest.mark.parametrize(
    ("annotation", "value", "stored"),
    [
        (int, "3", 3),
        (list[int], ["3", 4], [3, 4]),
        (Color, "red", Color.RED),
        (Model, {"n": "1"}, Model(n=1)),
        (Optional[Model], {"n": 1}, Model(n=1)),
        (list[Item], [{"name": "a", "count": "1"}], [{"name": "a", "count": 1}]),
        (Item, {"name": "a", "count": "1"}, {"name": "a", "count": 1}),
        (Partial, {"name": "a"}, {"name": "a"}),
        (Holder[int], {"held": ["1"]}, {"held": [1]}),
        (NewTypedDict("New", {"x": int}), {"x": "1"}, {"x": 1}),
        (dict[str, tuple[int, ...]], {"a": ["1"]}, {"a": (1,)}),
        (Union[int, list[Item]], [{"name": "a"}], [{"name": "a"}]),
        (Literal["a"], "a", "a"),
        (Annotated[int, Field(ge=0)], "1", 1),
    ],
)
def test_coerced_values_are_returned(annotation, value, stored):
    result = checker(annotation, coerce=True)(value)
    assert result == stored
    assert type(result) is type(stored)


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        (int, "a", "input should be a valid integer, unable to parse string as an integer, got 'a'"),
        (list[int], [1, "a"], "at [1]: input should be a valid integer, unable to parse string as an integer, got 'a'"),
        (Model, {}, "at ['n']: field required, got {}"),
        (
            list[int],
            ["a", "b"],
            "at [0]: input should be a valid integer, unable to parse string as an integer, got 'a' (and 1 more)",
        ),
        (Annotated[int, Field(ge=0)], -1, "input should be greater than or equal to 0, got -1"),
    ],
)
def test_what_cannot_be_converted(annotation, value, message):
    with pytest.raises(TypeError) as caught:
        checker(annotation, coerce=True)(value)
    assert str(caught.value) == message


def test_arbitrary_classes_are_instances_also_where_values_are_converted():
    value = [Plain()]
    assert checker(list[Plain], coerce=True)(value) == value
    with pytest.raises(TypeError, match="Plain"):
        checker(list[Plain], coerce=True)([1])


def test_exact_types_under_conversion():
    assert checker(int, coerce=True).exact is int
    assert checker(Model, coerce=True).exact is None
    assert checker(Annotated[int, Field(ge=0)], coerce=True).exact is None


def test_a_recursive_typeddict_is_converted_to_its_second_level():
    value = {"name": "a", "children": [{"name": "b", "children": []}]}
    assert checker(Tree, coerce=True)(value) == value
    with pytest.raises(TypeError, match=r"at \['children'\]\[0\]"):
        checker(Tree, coerce=True)({"name": "a", "children": [1]})


@pytest.mark.parametrize(
    ("item", "name"), [(Duck, "Duck"), (Hidden, "Hidden"), ("Nowhere", "Nowhere"), (Self, "Self"), (7, "7")]
)
def test_what_pydantic_does_not_know_is_checked_without_conversion(item, name):
    with pytest.warns(PregelWarning, match=name):
        check = checker(list[item], coerce=True)
    value = [{}]
    assert check(value) is value
    with pytest.raises(TypeError):
        check(1)


def test_what_pydantic_forbids_is_checked_without_conversion():
    value = [1]
    assert checker(list[NotRequired[int]], coerce=True)(value) is value


def test_metadata_for_pydantic_on_a_type_that_it_does_not_know_lets_everything_pass():
    value = object()
    assert checker(Annotated[Duck, AfterValidator(str)])(value) is value


def test_a_check_that_asks_pydantic_may_be_asked_again():
    check = checker(list[pydantic.AwareDatetime])
    for value in ([dt.datetime(2024, 1, 1, tzinfo=dt.UTC)], []):
        assert check(value) is value
    for _ in range(2):
        with pytest.raises(TypeError, match="at \\[0\\]: input should have timezone info"):
            check([dt.datetime(2024, 1, 1)])  # noqa: DTZ001 - a naive one is the point


# Fields of pydantic models.


class Rules(BaseModel):
    plain: int = 0
    least: int = Field(0, ge=0)
    even: int = 0
    before: list[str] = []
    wrapped: int = 0
    own: "Rules | None" = None
    given: str = Field("", alias="givenName")
    plain_class: Any = None

    @field_validator("even")
    @classmethod
    def must_be_even(cls, value, info):
        assert info.field_name == "even"
        assert info.data == {}
        if value % 2:
            raise ValueError("odd")
        return value

    @field_validator("before", mode="before")
    @classmethod
    def split(cls, value):
        return value.split() if isinstance(value, str) else value

    @field_validator("wrapped", mode="wrap")
    @classmethod
    def wrap(cls, value, handler):
        return handler(value) + 1

    @model_validator(mode="before")
    @classmethod
    def before_all(cls, values):
        raise ValueError("the model's own validators must not run")

    @model_validator(mode="after")
    def after_all(self):
        raise ValueError("the model's own validators must not run")


class Inherited(Rules):
    more: int = 0


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, validate_default=True)
    n: int = 0


class Stripped(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True, arbitrary_types_allowed=True, defer_build=True)
    text: str = ""
    thing: Plain | None = None


class Of(BaseModel, Generic[T]):
    held: list[T]


@pytest.mark.parametrize("model", [Rules, Inherited])
@pytest.mark.parametrize(
    ("field", "value", "stored"),
    [
        ("plain", "3", 3),
        ("least", "4", 4),
        ("even", 4, 4),
        ("before", "a b", ["a", "b"]),
        ("before", ["a"], ["a"]),
        ("wrapped", "1", 2),
        ("own", None, None),
        ("given", "a", "a"),
    ],
)
def test_field_validators_run(model, field, value, stored):
    assert field_checker(model, field)(value) == stored


@pytest.mark.parametrize("model", [Rules, Inherited])
@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("plain", "x", "input should be a valid integer, unable to parse string as an integer, got 'x'"),
        ("least", -1, "input should be greater than or equal to 0, got -1"),
        ("even", 3, "value error, odd, got 3"),
        ("before", [1], "at [0]: input should be a valid string, got 1"),
    ],
)
def test_field_validators_refuse(model, field, value, message):
    with pytest.raises(TypeError) as caught:
        field_checker(model, field)(value)
    assert str(caught.value) == message


def test_the_configuration_of_the_model_counts():
    with pytest.raises(TypeError, match="valid integer"):
        field_checker(Strict, "n")("1")
    assert field_checker(Strict, "n")(1) == 1
    assert field_checker(Stripped, "text")(" a ") == "a"
    thing = Plain()
    assert field_checker(Stripped, "thing")(thing) is thing


def test_fields_of_generic_models():
    assert field_checker(Of[int], "held")(["1"]) == [1]
    with pytest.raises(TypeError, match=r"at \[0\]"):
        field_checker(Of[int], "held")(["a"])


def test_a_field_check_describes_itself():
    assert field_checker(Rules, "before").expected == "list[str]"
    assert field_checker(Rules, "plain").exact is None


@given(st.integers())
def test_a_constraint_holds_for_updates_as_for_instances(value):
    class Bounded(BaseModel):
        n: int = Field(0, ge=-5, multiple_of=3)

    try:
        expected = Bounded(n=value).n
    except pydantic.ValidationError:
        with pytest.raises(TypeError):
            field_checker(Bounded, "n")(value)
    else:
        assert field_checker(Bounded, "n")(value) == expected


# Updates of reducers.


def typed(left: list[int], right: int) -> list[int]:
    return [*left, right]


def untyped(left, right):
    return left


def starred(left: list, *updates: str):
    return left


def all_starred(*values: int):
    return values


def textual(left: "list[int]", right: "int | None"):
    return left


def unresolved(left: "list[int]", right: "Fraction"):
    return left


def three(base: str, left: list, right: int):
    return left


def as_field(left: Any, right: int):
    return left


as_field.checks_as_field = True


class Typed:
    def __call__(self, left: list, right: str):
        return left

    def method(self, left: list, right: bytes):
        return left


@pytest.mark.parametrize(
    ("reducer", "annotation"),
    [
        (typed, int),
        (untyped, Any),
        (starred, str),
        (all_starred, int),
        (textual, int | None),
        (unresolved, Any),
        (functools.partial(three, "base"), int),
        (Typed(), str),
        (Typed().method, bytes),
        (as_field, list[float]),
        (operator.add, list[float]),
        (operator.or_, list[float]),
        (operator.iadd, list[float]),
        (operator.ior, list[float]),
        (max, Any),
        (set.union, Any),
        (operator.mul, Any),
        (lambda left, right: left, Any),
    ],
)
def test_type_of_a_reducer_update(reducer, annotation):
    assert reducer_update_annotation(reducer, list[float]) == annotation


# Comparing annotations.

MATCHES = [
    (int, int),
    (int, Any),
    (object, int),
    (T, int),
    (int, bool),
    (int, float),
    (float, Level),
    (Plain, Child),
    (list, list[int]),
    (list[int], list[Any]),
    (list[int], Sequence[int]),
    (list[Child], Sequence[Plain]),
    (list[int], List[int]),
    (dict[str, int], Mapping[str, float]),
    (dict, Item),
    (Item, Partial),
    (Optional[int], int),
    (Optional[int], None),
    (int | str, str | bytes),
    (list[int | str], list[int]),
    (Literal["a"], str),
    (Literal["a"], Literal["a", "b"]),
    (Literal[1], float),
    (Literal["a", 1], int),
    (Literal["a"], Duck),
    (tuple[int, str], tuple),
    (tuple[int, ...], tuple[int, int]),
    (tuple[int, ...], tuple[float, ...]),
    (tuple[int, str], Sequence[bytes]),
    (Count, int),
    (Annotated[int, "doc"], int),
    (NotRequired[int], int),
    (Duck, int),
    (Sized, int),
    ("Later", int),
    (Callable[[int], str], Callable[[str], int]),
    (type[Plain], type[Child]),
    (Box[int], Box),
    (Log[int], list[int]),
    (Model, ChildModel),
]
MISMATCHES = [
    (int, str),
    (bool, str),
    (int, None),
    (int, list),
    (list, dict),
    (list[int], list[str]),
    (list[int], Sequence[str]),
    (list[list[int]], list[list[str]]),
    (dict[str, int], dict[str, str]),
    (dict[str, int], Mapping[int, int]),
    (Item, list),
    (Model, Data),
    (Model, dict),
    (int | str, bytes | None),
    (Optional[list[int]], list[str]),
    (Literal["a"], int),
    (Literal["a"], Literal["b"]),
    (Literal[1], Literal[True]),
    (tuple[int, str], tuple[int]),
    (tuple[int, str], tuple[str, int]),
    (tuple[int, ...], tuple[int, str]),
    (tuple[int, ...], tuple[str, ...]),
    (Count, str),
    (type[int], type[str]),
    (Box[int], Box[str]),
    (Log[int], list[str]),
    (Color, str),
]


@pytest.mark.parametrize(("first", "second"), MATCHES)
def test_annotations_that_may_both_be_right(first, second):
    assert not mismatch(first, second)
    assert not mismatch(second, first)


@pytest.mark.parametrize(("first", "second"), MISMATCHES)
def test_annotations_that_cannot_both_be_right(first, second):
    assert mismatch(first, second)
    assert mismatch(second, first)


def full(value):
    """Return whether nothing in a value is empty: an empty list is of every type."""
    if isinstance(value, list | dict):
        return len(value) > 0 and all(full(each) for each in (value.values() if isinstance(value, dict) else value))
    return True


@given(st.data(), ANNOTATIONS, ANNOTATIONS)
def test_annotations_with_a_value_in_common_never_mismatch(data, first, second):
    value = data.draw(st.from_type(first).filter(full))
    assert checker(first)(value) is value
    if fits(value, second):
        assert not mismatch(first, second)


@given(ANNOTATIONS)
def test_an_annotation_never_mismatches_itself(annotation):
    assert not mismatch(annotation, annotation)
    assert not mismatch(annotation, Any)


# Imports.


def test_checks_of_common_types_do_not_import_pydantic():
    program = (
        "import sys\n"
        "from typing import Any, Literal, Optional, TypedDict\n"
        "from pregel.graph.checker import checker, mismatch\n"
        "class Item(TypedDict):\n"
        "    name: str\n"
        "for t in (int, str, Any, None, list, dict[str, list[int]], Optional[int], int | str, Literal['a'], Item):\n"
        "    check = checker(t)\n"
        "    try:\n"
        "        check(object())\n"
        "    except TypeError:\n"
        "        pass\n"
        "assert mismatch(int, str)\n"
        "assert 'pydantic' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
