"""How the annotations of a schema become fields: the channel, its start, who sees it, and what is refused."""
# ruff: noqa: UP006, UP007, UP035, UP045 - how older code writes types is a part of what is tested

import collections
import dataclasses
import datetime as dt
import enum
import functools
import operator
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, MutableSequence, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    List,
    Literal,
    NewType,
    NotRequired,
    Optional,
    Protocol,
    Required,
    TypedDict,
    TypeVar,
    Union,
)

import pydantic
import pytest
import typing_extensions
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import ReadOnly, TypeAliasType

from pregel.channels import (
    MISSING,
    AnyValue,
    BinaryOperatorAggregate,
    EphemeralValue,
    LastValue,
    NamedBarrierValue,
    Topic,
    UntrackedValue,
)
from pregel.errors import SchemaError
from pregel.graph.schema import (
    OmitFromInput,
    OmitFromOutput,
    OmitFromSchema,
    PrivateStateAttr,
    Unchecked,
    is_schema,
    merge_fields,
    read_schema,
)

if TYPE_CHECKING:
    from fractions import Fraction

T = TypeVar("T")
K = TypeVar("K")
add = operator.add
ADDS = BinaryOperatorAggregate(add, initial_factory=list)


class Joiner:
    def __call__(self, left, right):
        return left + right


class Tag:
    """A class that stands in metadata as a note."""


class Module(TypedDict):
    later: "Later"
    mark: "Annotated[list[Later], add]"


class Later:
    pass


class Early(BaseModel):
    x: "list[Part]"


class Part(BaseModel):
    n: int


class Tree(TypedDict):
    children: "list[Tree]"


class Broken(TypedDict):
    fine: int
    odd: "Fraction | None"


def two(left, right):
    return left + right


def schema_of(annotation):
    return TypedDict("State", {"x": annotation})


def read(annotation):
    return read_schema(schema_of(annotation)).fields["x"]


def refused(annotation):
    """Return the message of the error that an annotation makes; it names schema and field."""
    with pytest.raises(SchemaError) as caught:
        read(annotation)
    message = str(caught.value)
    assert "schema State, field 'x'" in message
    return message


# Markers.


@pytest.mark.parametrize(
    ("annotation", "channel"),
    [
        (int, LastValue()),
        (Annotated[int, "doc"], LastValue()),
        (Annotated[int, Field(ge=0)], LastValue()),
        (Annotated[list, add], ADDS),
        (Annotated[list, "doc", add], ADDS),
        (Annotated[list, add, "doc"], ADDS),
        (Annotated[list, add, str, int, Tag, Tag(), 3, None], ADDS),
        (Annotated[int, max], BinaryOperatorAggregate(max)),
        (Annotated[set, set.union], BinaryOperatorAggregate(set.union, initial_factory=set)),
        (Annotated[int, str], LastValue()),
        (Annotated[int, Tag], LastValue()),
        (Annotated[int, list[int]], LastValue()),
        (Annotated[int, Optional[int]], LastValue()),
        (Annotated[int, NewType("Id", int)], LastValue()),
        (Annotated[int, BaseModel], LastValue()),
        (Annotated[set, operator.or_], BinaryOperatorAggregate(operator.or_, initial_factory=set)),
        (Annotated[list, list.__add__], BinaryOperatorAggregate(list.__add__, initial_factory=list)),
        (Annotated[set, set.__or__], BinaryOperatorAggregate(set.__or__, initial_factory=set)),
        (NotRequired[Annotated[list, add]], ADDS),
        (Annotated[NotRequired[list], add], ADDS),
        (Required[Annotated[list, add]], ADDS),
        (ReadOnly[Annotated[list, add]], ADDS),
        (NotRequired[ReadOnly[Annotated[list, add]]], ADDS),
        (Annotated[Annotated[list, add], "outer"], ADDS),
        (Annotated[Annotated[list, "inner"], add], ADDS),
        (TypeAliasType("Log", Annotated[list, add]), ADDS),
        (TypeAliasType("Of", Annotated[list[T], add], type_params=(T,))[int], ADDS),
        (Optional[Annotated[list, add]], BinaryOperatorAggregate(add)),
        (Annotated[list, add] | None, BinaryOperatorAggregate(add)),
        (NotRequired[Optional[Annotated[list, add]]], BinaryOperatorAggregate(add)),
        (Union[Annotated[list, add], Annotated[tuple, add], None], BinaryOperatorAggregate(add)),
        (Annotated[Annotated[list, add], add], ADDS),
        (list[Annotated[int, add]], LastValue()),
        (Annotated[list, BinaryOperatorAggregate(add)], ADDS),
        (Annotated[int, BinaryOperatorAggregate(add, initial=5)], BinaryOperatorAggregate(add, initial=5)),
        (Annotated[int, EphemeralValue], EphemeralValue()),
        (Annotated[int, EphemeralValue(guard=False)], EphemeralValue(guard=False)),
        (Annotated[int, "doc", UntrackedValue, "doc"], UntrackedValue()),
        (Annotated[int, AnyValue], AnyValue()),
        (Annotated[int, LastValue], LastValue()),
        (Annotated[set, NamedBarrierValue({"a"})], NamedBarrierValue({"a"})),
        (Annotated[list[str], Topic], Topic(str)),
        (Annotated[Sequence[str], Topic], Topic(str)),
        (Annotated[list, Topic], Topic(Any)),
        (Annotated[str, Topic], Topic(str)),
        (Annotated[dict[str, int], Topic], Topic(dict[str, int])),
        (Annotated[int | None, Topic], Topic(int | None)),
        (Annotated[list[str], Topic(str, accumulate=True)], Topic(str, accumulate=True)),
    ],
)
def test_channel_of_an_annotation(annotation, channel):
    assert read(annotation).channel == channel


@pytest.mark.parametrize(
    "reducer", [two, functools.partial(two), Joiner(), lambda a, b: a + b, Joiner().__call__, sys.intern.__class__, max]
)
def test_callables_of_two_arguments_are_reducers(reducer):
    spec = read(Annotated[Any, reducer])
    if isinstance(reducer, type):
        assert not spec.explicit
    else:
        assert spec.channel == BinaryOperatorAggregate(reducer)
        assert spec.explicit


def test_extra_parameters_that_need_nothing_do_no_harm():
    def with_defaults(left, right, third=None, *, key=None):
        return left + right

    def starred(*values):
        return sum(values)

    for reducer in (with_defaults, starred):
        assert read(Annotated[Any, reducer]).channel == BinaryOperatorAggregate(reducer)


def one(left):
    return left


def three(left, right, third):
    return left


def keyword_only(left, right, *, key):
    return left


@pytest.mark.parametrize("function", [one, three, keyword_only, len])
def test_a_function_that_cannot_take_two_arguments(function):
    message = refused(Annotated[list, function])
    assert function.__name__ in message
    assert "the value and one update" in message


@pytest.mark.parametrize(
    ("annotation", "names"),
    [
        (Annotated[list, EphemeralValue, add], ("EphemeralValue", "add")),
        (Annotated[list, two, add], ("two", "add")),
        (Annotated[Optional[Annotated[list, two]], add], ("two", "add")),
        (Annotated[list, Topic, Topic(str)], ("Topic", "Topic(<class 'str'>")),
        (Annotated[list, BinaryOperatorAggregate(two), EphemeralValue(guard=False)], ("two", "EphemeralValue(False)")),
    ],
)
def test_two_candidates_are_named(annotation, names):
    message = refused(annotation)
    assert all(name in message for name in names)
    assert "keep one" in message


def test_two_lambdas_are_told_apart_by_their_lines():
    message = refused(Annotated[int, lambda a, b: a, lambda a, b: b])
    assert message.count(f"{__file__}:") == 2


@pytest.mark.parametrize("channel", [BinaryOperatorAggregate, NamedBarrierValue])
def test_a_channel_class_that_needs_arguments(channel):
    message = refused(Annotated[list, channel])
    assert f"{channel.__name__}(...)" in message
    assert "instance" in message


@pytest.mark.parametrize(
    ("annotation", "bare"),
    [
        (int, int),
        (Annotated[list[int], add, "doc"], list[int]),
        (NotRequired[ReadOnly[Annotated[int, "doc"]]], int),
        (Optional[Annotated[list, add]], list | None),
        (Annotated[int | str, "doc"], int | str),
        (list[Annotated[int, "doc"]], list[Annotated[int, "doc"]]),
        (None, type(None)),
        (T, Any),
        (dict[str, T], dict[str, Any]),
        (TypeAliasType("Alias", dict[str, int]), dict[str, int]),
    ],
)
def test_bare_annotation(annotation, bare):
    assert read(annotation).annotation == bare


def test_what_tells_pydantic_how_to_validate_stays_with_the_type():
    upper = pydantic.AfterValidator(str.upper)
    assert read(Annotated[str, "doc", upper]).annotation == Annotated[str, upper]
    assert read(Annotated[str, upper] | None).annotation == Annotated[str, upper] | None


@given(st.permutations([add, "doc", Tag, OmitFromInput, Unchecked, 7]))
def test_markers_count_in_any_position(metadata):
    spec = read(Annotated[(list, *metadata)])
    assert (spec.channel, spec.omit_input, spec.omit_output, spec.unchecked) == (ADDS, True, False, True)


@given(st.lists(st.sampled_from(["annotated", "required", "readonly", "optional"]), max_size=5))
def test_markers_count_at_every_level(wraps):
    annotation = Annotated[list, add]
    for wrap in wraps:
        annotation = {
            "annotated": lambda inner: Annotated[inner, "doc"],
            "required": lambda inner: inner if "equired" in str(inner)[:24] else NotRequired[inner],
            "readonly": lambda inner: ReadOnly[inner],
            "optional": lambda inner: Optional[inner],
        }[wrap](annotation)
    assert read(annotation).channel.operator is add


# Visibility.


@pytest.mark.parametrize(
    ("annotation", "omits"),
    [
        (int, (False, False)),
        (Annotated[int, OmitFromInput], (True, False)),
        (Annotated[int, OmitFromOutput], (False, True)),
        (Annotated[int, PrivateStateAttr], (True, True)),
        (Annotated[int, OmitFromInput, OmitFromOutput], (True, True)),
        (Annotated[int, OmitFromSchema], (True, True)),
        (Annotated[int, OmitFromSchema()], (True, True)),
        (Annotated[int, OmitFromSchema(output=False)], (True, False)),
        (Annotated[int, OmitFromSchema(input=False, output=False)], (False, False)),
        (NotRequired[Annotated[Annotated[int, OmitFromInput], "doc"]], (True, False)),
        (Optional[Annotated[int, OmitFromOutput]], (False, True)),
    ],
)
def test_visibility(annotation, omits):
    spec = read(annotation)
    assert (spec.omit_input, spec.omit_output) == omits


@pytest.mark.parametrize(
    ("annotation", "unchecked"),
    [(int, False), (Annotated[int, Unchecked], True), (Annotated[int, Unchecked()], True), (list[Unchecked], False)],
)
def test_unchecked(annotation, unchecked):
    assert read(annotation).unchecked is unchecked


# What a run starts with.


class Color(enum.Enum):
    RED = "red"


class Abstract(ABC):
    @abstractmethod
    def method(self):
        """Stay abstract."""


class Duck(Protocol):
    def quack(self): ...


class Item(TypedDict):
    name: str


@dataclass
class Full:
    n: int = 0


@dataclass
class Lacking:
    n: int


class FullModel(BaseModel):
    n: int = 0


class LackingModel(BaseModel):
    n: int


class Stack(list):
    pass


@pytest.mark.parametrize(
    ("annotation", "start"),
    [
        (int, 0),
        (float, 0.0),
        (complex, 0j),
        (Decimal, Decimal(0)),
        (bool, False),
        (str, ""),
        (bytes, b""),
        (list, []),
        (list[int], []),
        (List[int], []),
        (Sequence[str], []),
        (MutableSequence[str], []),
        (dict, {}),
        (dict[str, int], {}),
        (Mapping[str, int], {}),
        (set[int], set()),
        (collections.abc.Set, set()),
        (frozenset[int], frozenset()),
        (tuple, ()),
        (tuple[int, ...], ()),
        (Item, {}),
        (collections.deque[int], collections.deque()),
        (collections.Counter[str], collections.Counter()),
        (Stack, Stack()),
        (Full, Full()),
        (FullModel, FullModel()),
        (NewType("Count", int), 0),
        (None, None),
        (list | None, MISSING),
        (Optional[int], MISSING),
        (int | str, MISSING),
        (Any, MISSING),
        (object, MISSING),
        (Iterable[int], MISSING),
        (tuple[int, str], MISSING),
        (Literal["a"], MISSING),
        (Color, MISSING),
        (dt.datetime, MISSING),
        (Abstract, MISSING),
        (Duck, MISSING),
        (T, MISSING),
        (type[int], MISSING),
        (Lacking, MISSING),
        (LackingModel, MISSING),
    ],
)
def test_start_of_a_reducer_field(annotation, start):
    spec = read(Annotated[annotation, two])
    for value in (spec.initial(), spec.channel.initial()):
        assert value == start
        assert type(value) is type(start)


@pytest.mark.parametrize(
    "reducer", [min, max, operator.mul, operator.and_, operator.imul, operator.iand, set.intersection]
)
def test_no_hidden_zero_where_it_is_not_neutral(reducer):
    for annotation in (int, set):
        assert read(Annotated[annotation, reducer]).initial() is MISSING


@pytest.mark.parametrize("annotation", [list, dict, set, Full, collections.deque, Item])
def test_runs_never_share_a_start(annotation):
    spec = read(Annotated[annotation, two])
    assert spec.initial() is not spec.initial()


@given(st.sampled_from([list, list[int], dict, set[str], int, Sequence[str], Item, Full, dt.date]))
def test_equal_declarations_have_equal_channels(annotation):
    assert read(Annotated[annotation, two]).channel == read(Annotated[annotation, two]).channel


def test_a_plain_field_is_absent_until_written():
    assert read(int).initial() is MISSING
    assert read(list).initial() is MISSING


@dataclass
class Declared:
    bare: int
    plain: int = 3
    made: list = field(default_factory=list)
    total: Annotated[int, add] = 10
    log: Annotated[list, add] = field(default_factory=lambda: ["start"])
    low: Annotated[int, min] = 99
    passing: Annotated[int | None, EphemeralValue] = None
    topic: Annotated[list[str], Topic(str, accumulate=True)] = field(default_factory=lambda: ["t"])
    shared: ClassVar[int] = 5


class DeclaredModel(BaseModel):
    bare: int
    plain: int = 3
    made: list = Field(default_factory=list)
    total: Annotated[int, add] = 10
    log: Annotated[list, add] = ["start"]
    low: Annotated[int, min] = Field(99, description="the least")
    passing: Annotated[int | None, EphemeralValue] = None
    topic: Annotated[list[str], Topic(str, accumulate=True)] = Field(default_factory=lambda: ["t"])
    shared: ClassVar[int] = 5
    _hidden: int = 5


@pydantic.dataclasses.dataclass
class DeclaredMixed:
    bare: int
    plain: int = Field(3, ge=0)
    made: list = Field(default_factory=list)
    total: Annotated[int, add] = Field(default=10)
    log: Annotated[list, add] = field(default_factory=lambda: ["start"])
    low: Annotated[int, min] = 99
    passing: Annotated[int | None, EphemeralValue] = None
    topic: Annotated[list[str], Topic(str, accumulate=True)] = field(default_factory=lambda: ["t"])
    shared: ClassVar[int] = 5


@pytest.mark.parametrize("schema", [Declared, DeclaredModel, DeclaredMixed])
def test_declared_defaults_are_starts(schema):
    fields = read_schema(schema).fields
    assert {name: spec.initial() for name, spec in fields.items()} == {
        "bare": MISSING,
        "plain": 3,
        "made": [],
        "total": 10,
        "log": ["start"],
        "low": 99,
        "passing": MISSING,
        "topic": ["t"],
    }
    assert all(fields[name].initial() is not fields[name].initial() for name in ("made", "log", "topic"))
    assert fields["log"].channel.initial() == ["start"]
    assert read_schema(schema).required == ("bare",)


def test_a_default_that_follows_from_other_fields_is_no_start():
    class Model(BaseModel):
        first: int = 1
        second: int = Field(default_factory=lambda data: data["first"] + 1)

    schema = read_schema(Model)
    assert schema.fields["second"].initial() is MISSING
    assert schema.required == ()
    assert schema.build({"first": 4}).second == 5


def test_two_different_starts_are_refused():
    @dataclass
    class State:
        x: Annotated[int, BinaryOperatorAggregate(add, initial=5)] = 0

    with pytest.raises(SchemaError, match=r"schema State, field 'x'.*5.*0.*one of them"):
        read_schema(State)


def test_one_start_given_twice_is_one_start():
    @dataclass
    class State:
        x: Annotated[list, BinaryOperatorAggregate(add, initial_factory=list)] = field(default_factory=list)

    assert read_schema(State).fields["x"].initial() == []


# Schemas.


class Plain:
    x: int


@pytest.mark.parametrize(
    "annotation",
    [
        Item,
        Tree,
        typing_extensions.TypedDict("Ext", {"x": int}),
        Full,
        FullModel,
        DeclaredMixed,
        typing_extensions.TypedDict("Of", {"x": int}),
    ],
)
def test_is_schema(annotation):
    assert is_schema(annotation)


@pytest.mark.parametrize(
    "annotation", [Plain, dict, dict[str, int], Any, None, int | None, list, "Item", TypedDict, Full(), BaseModel]
)
def test_is_no_schema(annotation):
    assert not is_schema(annotation)
    with pytest.raises(SchemaError, match="TypedDict, a dataclass or a pydantic model"):
        read_schema(annotation)


class EmptyModel(BaseModel):
    pass


@pytest.mark.parametrize("empty", [TypedDict("Empty", {}), dataclasses.make_dataclass("Empty", []), EmptyModel])
def test_a_schema_without_fields(empty):
    with pytest.raises(SchemaError, match=rf"schema {empty.__name__} has no fields"):
        read_schema(empty)


@pytest.mark.parametrize("name", ["__start__", "__x"])
def test_reserved_names(name):
    with pytest.raises(SchemaError, match=rf"schema State, field '{name}'.*belong to the engine"):
        read_schema(TypedDict("State", {"fine": int, name: int}))


def test_what_is_read():
    schema = read_schema(Declared)
    assert (schema.name, schema.source, schema.kind) == ("Declared", Declared, "dataclass")
    assert read_schema(FullModel).kind == "pydantic"
    assert read_schema(Item).kind == "typeddict"
    assert [spec.name for spec in schema.fields.values()] == list(schema.fields)
    assert {spec.declared_by for spec in schema.fields.values()} == {"Declared"}
    assert read_schema(Declared) is schema


def test_required_items_of_a_typeddict_are_not_enforced():
    assert read_schema(Item).required == ()


# Generics, inheritance, forward references.


class Box(TypedDict, Generic[T]):
    item: T
    log: Annotated[list[T], add]


class IntBox(Box[int]):
    extra: str


class PairBox(Box[dict[str, K]], Generic[K]):
    key: K


@dataclass
class DataBox(Generic[T]):
    item: T
    log: Annotated[list[T], add] = field(default_factory=list)


@dataclass
class StrDataBox(DataBox[str]):
    pass


@dataclass
class Narrow(DataBox[Any]):
    item: int


class ModelBox(BaseModel, Generic[T]):
    item: T
    log: Annotated[list[T], add] = []


class StrModelBox(ModelBox[str]):
    pass


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        (Box[int], {"item": int, "log": list[int]}),
        (Box, {"item": Any, "log": list[Any]}),
        (IntBox, {"item": int, "log": list[int], "extra": str}),
        (PairBox[bool], {"item": dict[str, bool], "log": list[dict[str, bool]], "key": bool}),
        (DataBox[int], {"item": int, "log": list[int]}),
        (DataBox, {"item": Any, "log": list[Any]}),
        (StrDataBox, {"item": str, "log": list[str]}),
        (Narrow, {"item": int, "log": list[Any]}),
        (ModelBox[int], {"item": int, "log": list[int]}),
        (ModelBox, {"item": Any, "log": list[Any]}),
        (StrModelBox, {"item": str, "log": list[str]}),
    ],
)
def test_generic_schemas(schema, types):
    assert is_schema(schema)
    fields = read_schema(schema).fields
    assert {name: spec.annotation for name, spec in fields.items()} == types
    assert fields["log"].channel.operator is add


def test_a_generic_alias_is_read_as_its_class():
    assert read_schema(DataBox[int]).source is DataBox
    assert read_schema(DataBox[int]).build({"item": 1}) == DataBox(1)


class Root(TypedDict):
    log: Annotated[list, add]


class Override(Root):
    log: list


def test_a_subclass_that_declares_anew_declares_all():
    assert read_schema(Override).fields["log"].channel == LastValue()


def test_a_diamond_follows_the_method_resolution_order():
    @dataclass
    class Base:
        x: int = 0

    @dataclass
    class Left(Base):
        pass

    @dataclass
    class Right(Base):
        x: str = ""

    @dataclass
    class Both(Left, Right):
        pass

    assert read_schema(Both).fields["x"].annotation is str


def test_forward_references():
    assert read_schema(Module).fields["later"].annotation is Later
    assert read_schema(Module).fields["mark"].channel == ADDS
    assert read_schema(Tree).fields["children"].annotation == list[Tree]


def test_a_schema_inside_a_function_may_name_itself():
    class Node(TypedDict):
        children: "list[Node]"

    assert read_schema(Node).fields["children"].annotation == list[Node]


def local_typeddict():
    class Hidden:
        pass

    class State(TypedDict):
        fine: int
        x: "list[Hidden]"

    return State


def local_dataclass():
    class Hidden:
        pass

    @dataclass
    class State:
        fine: int
        x: "list[Hidden]"

    return State


def local_model():
    class State(BaseModel):
        fine: int
        x: "list[Hidden]"  # noqa: F821 - that is the point

    return State


@pytest.mark.parametrize("make", [local_typeddict, local_dataclass, local_model])
def test_a_name_that_cannot_be_found(make):
    with pytest.raises(SchemaError) as caught:
        read_schema(make())
    message = str(caught.value)
    assert "schema State, field 'x'" in message
    assert "'Hidden'" in message
    assert "module level" in message


def test_an_import_for_type_checkers_only():
    with pytest.raises(SchemaError, match=r"schema Broken, field 'odd'.*'Fraction'.*TYPE_CHECKING"):
        read_schema(Broken)


@pytest.mark.parametrize("text", ["list[", "sys.nothing", "list(3)"])
def test_an_annotation_that_is_no_type(text):
    @dataclass
    class State:
        x: text

    with pytest.raises(SchemaError) as caught:
        read_schema(State)
    assert "schema State, field 'x'" in str(caught.value)
    assert text in str(caught.value)


def test_a_model_that_is_completed_later():
    assert read_schema(Early).fields["x"].annotation == list[Part]


# Instances.


def test_updates_of_a_mapping():
    given_ = {"name": "a", "other": 1}
    updates = read_schema(Item).updates_of(given_)
    assert updates == given_
    assert updates is not given_
    assert read_schema(FullModel).updates_of({"n": 0}) == {"n": 0}


def test_updates_of_a_model_are_what_was_set():
    schema = read_schema(DeclaredModel)
    assert schema.updates_of(DeclaredModel(bare=1)) == {"bare": 1}
    assert schema.updates_of(DeclaredModel(plain=3, bare=1)) == {"bare": 1, "plain": 3}
    instance = DeclaredModel(bare=1)
    instance.total = 10
    assert schema.updates_of(instance) == {"bare": 1, "total": 10}


def test_what_a_model_takes_beside_its_fields_is_set_too():
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")
        x: int = 0

    assert read_schema(Open).updates_of(Open(y=1, x=2)) == {"x": 2, "y": 1}


def test_updates_of_a_dataclass_differ_from_its_defaults():
    schema = read_schema(Declared)
    assert schema.updates_of(Declared(1)) == {"bare": 1}
    assert schema.updates_of(Declared(1, plain=4, made=[], log=["start"], total=11)) == {
        "bare": 1,
        "plain": 4,
        "total": 11,
    }
    assert schema.updates_of(Declared(1, plain=3.0)) == {"bare": 1, "plain": 3.0}
    assert read_schema(DeclaredMixed).updates_of(DeclaredMixed(1, plain=4)) == {"bare": 1, "plain": 4}


def test_fields_of_a_subclass_count():
    @dataclass
    class More(Full):
        m: int = 0

    assert read_schema(Full).updates_of(More(n=0, m=0)) == {"m": 0}


def test_a_value_that_compares_to_no_truth_counts_as_set():
    class Array:
        def __eq__(self, other):
            raise ValueError("ambiguous")

        __hash__ = None

    @dataclass
    class State:
        x: Any = field(default_factory=Array)

    value = Array()
    assert read_schema(State).updates_of(State(value))["x"] is value


def test_build():
    assert read_schema(Item).build({"name": "a"}) == {"name": "a"}
    assert read_schema(Declared).build({"bare": 1, "total": 4}) == Declared(1, total=4)
    assert read_schema(DeclaredModel).build({"bare": 1, "total": 4}) == DeclaredModel(bare=1, total=4)


def test_build_makes_a_dict_of_its_own():
    values = {"name": "a"}
    assert read_schema(Item).build(values) is not values


def test_build_by_field_names_where_the_model_has_aliases():
    class Model(BaseModel):
        user_name: str = Field(alias="userName")
        either: int = Field(0, validation_alias="other")

    built = read_schema(Model).build({"user_name": "a", "either": 2})
    assert (built.user_name, built.either) == ("a", 2)


def test_build_sets_what_the_class_computes_at_first():
    @dataclass(frozen=True)
    class State:
        x: int
        double: int = field(init=False)

        def __post_init__(self):
            object.__setattr__(self, "double", self.x * 2)

    schema = read_schema(State)
    assert schema.required == ("x",)
    assert schema.build({"x": 2}).double == 4
    assert schema.build({"x": 2, "double": 7}).double == 7


@given(st.dictionaries(st.sampled_from(["bare", "plain", "total", "low"]), st.integers()).filter(lambda d: "bare" in d))
def test_what_was_set_makes_the_same_instance(values):
    for schema, cls in ((read_schema(Declared), Declared), (read_schema(DeclaredModel), DeclaredModel)):
        instance = cls(**values)
        assert schema.build(schema.updates_of(instance)) == instance


# Several schemas.


def merged(*annotations):
    schemas = [read_schema(TypedDict(f"S{n}", {"x": annotation})) for n, annotation in enumerate(annotations)]
    return merge_fields(schemas)["x"]


@pytest.mark.parametrize(
    "annotations",
    [
        (Annotated[list, add], list),
        (list, Annotated[list, add]),
        (list, list, Annotated[list, add], list),
        (Annotated[list, add], Annotated[list, add, "doc"]),
        (Annotated[list, add], Annotated[list, BinaryOperatorAggregate(add)]),
        (Annotated[list, add], Annotated[list | None, add]),
    ],
)
def test_a_declaration_without_marker_makes_no_claim(annotations):
    spec = merged(*annotations)
    assert spec.channel == ADDS
    assert spec.explicit
    assert spec.declared_by == "S0"


@pytest.mark.parametrize(
    ("one", "other", "names"),
    [
        (add, two, ("add", "two")),
        (add, EphemeralValue, ("add", "EphemeralValue")),
        (EphemeralValue(), EphemeralValue(guard=False), ("EphemeralValue(True)", "EphemeralValue(False)")),
        (Topic(int), Topic(str), ("int", "str")),
        (lambda a, b: a + b, lambda a, b: a + b, ("<lambda>", __file__)),
        (LastValue, add, ("LastValue", "add")),
        (BinaryOperatorAggregate(add, initial=1), BinaryOperatorAggregate(add, initial=2), ("1", "2")),
    ],
)
def test_two_different_claims_are_refused(one, other, names):
    for plain in ((), (list,)):
        with pytest.raises(SchemaError) as caught:
            merged(*plain, Annotated[list, one], list, Annotated[list, other])
        message = str(caught.value)
        assert "field 'x'" in message
        assert f"schema S{len(plain)}" in message
        assert f"schema S{len(plain) + 2}" in message
        assert all(name in message for name in names)


def test_equal_channels_are_one_claim():
    assert merged(Annotated[list[str], Topic], Annotated[list, Topic]).channel == Topic(str)
    assert merged(Annotated[list, Topic(str)], Annotated[list[str], Topic]).channel == Topic(str)
    assert merged(Annotated[int, EphemeralValue], Annotated[int, EphemeralValue()]).channel == EphemeralValue()


def test_one_reducer_may_say_once_where_it_starts():
    start = BinaryOperatorAggregate(add, initial=5)
    assert merged(Annotated[int, start], Annotated[int, add]).initial() == 5
    assert merged(Annotated[int, add], Annotated[int, start]).channel.operator is add


def test_the_first_type_and_the_first_default_stand():
    @dataclass
    class Defaults:
        x: float = 3
        y: int = 4

    class Reduced(TypedDict):
        y: Annotated[int, add]
        x: int

    fields = merge_fields([read_schema(Reduced), read_schema(Defaults)])
    assert list(fields) == ["y", "x"]
    assert (fields["x"].annotation, fields["x"].initial(), fields["x"].declared_by) == (int, 3, "Reduced")
    assert (fields["y"].channel.initial(), fields["y"].initial()) == (4, 4)


def test_a_later_default_does_not_replace_one():
    schemas = [
        dataclasses.make_dataclass(f"S{start}", [("x", int, start), ("y", list, field(default_factory=list))])
        for start in (1, 2)
    ]
    fields = merge_fields([read_schema(schema) for schema in schemas])
    assert (fields["x"].initial(), fields["y"].initial()) == (1, [])


@given(
    st.lists(st.sampled_from([int, OmitFromInput, OmitFromOutput, PrivateStateAttr, Unchecked]), min_size=1, max_size=4)
)
def test_omissions_add_up(markers):
    spec = merged(*[Annotated[int, marker] for marker in markers])
    assert spec.omit_input == any(marker in (OmitFromInput, PrivateStateAttr) for marker in markers)
    assert spec.omit_output == any(marker in (OmitFromOutput, PrivateStateAttr) for marker in markers)
    assert spec.unchecked == (Unchecked in markers)


# Imports.


def test_reading_a_schema_does_not_import_pydantic():
    program = (
        "import sys\n"
        "from dataclasses import dataclass\n"
        "from pregel.graph.schema import read_schema, is_schema\n"
        "@dataclass\n"
        "class State:\n"
        "    x: list[int]\n"
        "assert read_schema(State).fields['x'].annotation == list[int]\n"
        "assert not is_schema(int)\n"
        "assert 'pydantic' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
