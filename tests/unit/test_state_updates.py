"""What a node may return, what is checked when it does, and what is said when it is wrong."""

import operator
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Annotated, Any, Generic, Literal, NewType, Optional, Protocol, TypedDict, TypeVar, runtime_checkable
from uuid import UUID

import pytest
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pregel import START, Command, Overwrite, Send, StateGraph
from pregel.channels import EphemeralValue, Topic
from pregel.errors import (
    InvalidInputError,
    InvalidUpdateError,
    InvalidUpdateTypeError,
    NodeInputError,
    PregelError,
    PregelWarning,
    SchemaError,
)
from pregel.graph import Unchecked


class State(TypedDict, total=False):
    count: int
    label: str
    items: Annotated[list, operator.add]


@dataclass
class Record:
    count: int = 0
    label: str = "new"
    items: Annotated[list, operator.add] = field(default_factory=list)


class Model(BaseModel):
    count: int = 0
    label: str = "new"
    items: Annotated[list[int], operator.add] = []


class Line:
    """A graph of the node `work`, then `after`, which notes that it ran."""

    def __init__(self, schema, work, *, executor="thread", **options):
        self.ran = []
        self.seen = []
        builder = StateGraph(schema, **options)
        builder.add_node("work", work)
        builder.add_node("after", self.after)
        builder.add_edge(START, "work")
        builder.add_edge("work", "after")
        self.graph = builder.compile(name="demo", executor=executor)

    def after(self, state):
        self.ran.append("after")
        self.seen.append(state)
        return {}

    def invoke(self, given):
        return self.graph.invoke(given)

    def refuse(self, given, kind, *words):
        """Run into an error of this kind, read it, and see that the state of the last barrier is the input's."""
        states = []
        parts = self.graph.stream(given, stream_mode="values")
        with pytest.raises(kind) as caught:
            states.extend(parts)
        self.read(caught.value, words)
        assert len(states) == 1
        assert self.ran == []
        return caught.value, states[0]

    @staticmethod
    def read(error, words):
        message = str(error)
        assert isinstance(error, PregelError)
        for word in ("'work'", "'demo'", *words):
            assert word in message, message

    def warned(self, given, *words):
        """Run with a warning that holds the words, and return the result."""
        with pytest.warns(PregelWarning) as caught:
            result = self.graph.invoke(given)
        assert len(caught) == 1
        message = str(caught[0].message)
        for word in ("'work'", "'demo'", *words):
            assert word in message, message
        assert self.ran == ["after"]
        return result


def schema_of(**annotations):
    """Return a schema with these fields."""
    return TypedDict("Schema", annotations, total=False)


def returns(value):
    """Return a node that returns a value."""

    def work(state):
        return value

    return work


# --- Shapes that are accepted -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "result",
    [
        pytest.param({"count": 2, "items": [1]}, id="dict"),
        pytest.param(MappingProxyType({"count": 2, "items": [1]}), id="mapping"),
        pytest.param(Command(update={"count": 2, "items": [1]}), id="command"),
        pytest.param(Command(update=[("count", 2), ("items", [1])]), id="command with pairs"),
        pytest.param([{"count": 2}, {"items": [1]}], id="list of dicts"),
        pytest.param([Command(update={"count": 2}), {"items": [1]}], id="list of both"),
        pytest.param([Command(update={"count": 2}), Command(update={"items": [1]})], id="list of commands"),
    ],
)
def test_what_a_node_may_return(door, result):
    line = Line(State, returns(result))

    assert door.invoke(line.graph, {"label": "kept", "count": 1}) == {"count": 2, "label": "kept", "items": [1]}


def test_an_empty_dict_changes_nothing(door):
    line = Line(State, returns({}))

    assert door.invoke(line.graph, {"count": 1}) == {"count": 1, "items": []}
    assert line.ran == ["after"]


def test_a_command_without_update_changes_nothing():
    assert Line(State, returns(Command())).invoke({"count": 1}) == {"count": 1, "items": []}


def test_items_of_a_list_are_applied_in_order_to_a_reducer_field():
    work = returns([{"items": [1]}, Command(update={"items": [2]}), Command(update=[("items", [3]), ("items", [4])])])

    assert Line(State, work).invoke({}) == {"items": [1, 2, 3, 4]}


def test_a_plain_field_written_twice_by_one_node_is_a_conflict():
    line = Line(State, returns([{"count": 1}, {"count": 2}]))

    _, state = line.refuse({"count": 0}, InvalidUpdateError, "'count'", "1", "2", "reducer")
    assert state == {"count": 0, "items": []}


def test_an_async_node_returns_the_same_shapes(door):
    async def work(state):
        return [{"count": state["count"] + 1}, Command(update={"items": [1]})]

    assert door.invoke(Line(State, work).graph, {"count": 1}) == {"count": 2, "items": [1]}


class AsyncCallable:
    async def __call__(self, state):
        return {"count": 2}

    async def method(self, state):
        return {"count": 2}


class SyncRunnable:
    def invoke(self, state, config=None):
        return {"count": 2}


class AsyncRunnable:
    async def ainvoke(self, state, config=None):
        return {"count": 2}


async def two_later(number, state):
    return {"count": number}


@pytest.mark.parametrize(
    "action",
    [
        pytest.param(AsyncCallable(), id="object with async __call__"),
        pytest.param(AsyncCallable().method, id="async method"),
        pytest.param(partial(two_later, 2), id="partial of an async function"),
        pytest.param(SyncRunnable(), id="object with invoke"),
        pytest.param(AsyncRunnable(), id="object with ainvoke"),
        pytest.param(RunnableLambda(lambda state: {"count": 2}), id="LangChain runnable"),
        pytest.param(
            RunnableLambda(lambda state: state) | RunnableLambda(lambda state: {"count": 2}), id="LangChain chain"
        ),
    ],
)
def test_what_may_be_a_node(door, action):
    assert door.invoke(Line(State, action).graph, {"count": 1}) == {"count": 2, "items": []}


# --- Instances count for what was set ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrap", [lambda update: update, lambda update: Command(update=update), lambda update: [update]]
)
@pytest.mark.parametrize("schema", [Record, Model])
def test_an_instance_returned_counts_for_what_was_set(schema, wrap):
    line = Line(schema, returns(wrap(schema(count=5))))

    assert line.invoke({"count": 1, "label": "kept", "items": [7]}) == {"count": 5, "label": "kept", "items": [7]}


@pytest.mark.parametrize("schema", [Record, Model])
def test_an_instance_given_as_input_counts_for_what_was_set(schema):
    line = Line(schema, returns({}))

    assert line.invoke(schema(items=[1])) == {"count": 0, "label": "new", "items": [1]}


def test_a_field_of_a_model_set_to_its_default_was_set():
    assert Line(Model, returns(Model(count=0))).invoke({"count": 9})["count"] == 0


def test_a_field_of_a_dataclass_equal_to_its_default_was_not_set():
    assert Line(Record, returns(Record(count=0))).invoke({"count": 9})["count"] == 9


def test_a_declared_start_of_a_reducer_field_is_not_added_again_by_an_instance():
    @dataclass
    class Seeded:
        items: Annotated[list, operator.add] = field(default_factory=lambda: ["seed"])
        count: int = 0

    line = Line(Seeded, returns(Seeded(count=1)))

    assert line.invoke(Seeded(count=3)) == {"items": ["seed"], "count": 1}


def test_an_attribute_assigned_on_a_model_was_set():
    made = Model()
    made.label = "assigned"

    assert Line(Model, returns(made)).invoke({"count": 4}) == {"count": 4, "label": "assigned", "items": []}


def test_an_instance_of_a_subclass_of_the_schema_is_an_instance_of_it():
    class Special(Model):
        pass

    assert Line(Model, returns(Special(count=2))).invoke({})["count"] == 2


def test_a_field_that_only_a_subclass_declares_is_undeclared():
    class Special(Model):
        extra: int = 0

    Line(Model, returns(Special(extra=1))).refuse({}, InvalidUpdateError, "'extra'", "[undeclared-key]", "count")


def test_an_instance_of_a_nodes_own_schema_is_an_update():
    def work(state: Record):
        return Record(count=state.count + 1)

    assert Line(State, work).invoke({"count": 1, "label": "kept"}) == {"count": 2, "label": "kept", "items": []}


# --- Results that are no update ---------------------------------------------------------------------------------------


@dataclass
class Stranger:
    count: int = 1


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (1, "1 (int)"),
        ("text", "'text' (str)"),
        ({1, 2}, "(set)"),
        ([1], "[1] (list)"),
        ([{"count": 1}, "x"], "(list)"),
        ([("count", 1)], "(list)"),
        (Stranger(), "Stranger(count=1)"),
        (Send("after", {}), "Send"),
        ([Send("after", {})], "Send"),
        (True, "True (bool)"),
        (Overwrite(1), "Overwrite(1)"),
    ],
)
def test_a_result_that_is_no_update_is_named(result, shown):
    error, state = Line(State, returns(result)).refuse(
        {"count": 0}, InvalidUpdateTypeError, shown, "a mapping of updates, a Command, a list of these"
    )

    assert isinstance(error, InvalidUpdateError)
    assert isinstance(error, TypeError)
    assert state == {"count": 0, "items": []}


def test_a_send_as_result_is_told_where_it_belongs():
    Line(State, returns(Send("after", {}))).refuse({}, InvalidUpdateTypeError, "Command(goto=Send(...))")


def test_a_coroutine_returned_by_a_sync_node_is_told_apart():
    async def later():
        return {}

    Line(State, lambda state: later()).refuse({}, InvalidUpdateTypeError, "async def")


def test_a_generator_node_is_told_apart():
    def work(state):
        yield {"count": 1}

    Line(State, work).refuse({}, InvalidUpdateTypeError, "generator", "writer")


@pytest.mark.parametrize("update", [1, "count", {1}, [("count",)], ["count"], Stranger()])
def test_the_update_of_a_command_that_is_none_is_named(update):
    error, state = Line(State, returns(Command(update=update))).refuse(
        {}, InvalidUpdateTypeError, "Command(update=", "`update` is a mapping"
    )

    assert isinstance(error, TypeError)
    assert state == {"items": []}


def test_a_command_to_a_parent_graph_needs_one():
    Line(State, returns(Command(graph=Command.PARENT, update={"count": 1}))).refuse(
        {}, InvalidUpdateError, "'__parent__'", "is a node of another one"
    )


def test_a_command_to_a_graph_that_does_not_exist_is_an_error():
    Line(State, returns(Command(graph="elsewhere", update={"count": 1}))).refuse({}, InvalidUpdateError, "'elsewhere'")


def test_a_command_with_answers_is_no_result():
    Line(State, returns(Command(resume=1))).refuse({}, InvalidUpdateError, "`resume`", "input of invoke")


# --- None -------------------------------------------------------------------------------------------------------------


def unannotated(state):
    return None


def annotated_with_a_dict(state) -> dict:
    return None


async def awaited(state) -> dict:
    return None


@pytest.mark.parametrize("work", [unannotated, annotated_with_a_dict, awaited, lambda state: None])
def test_none_is_no_update_of_a_node_that_does_not_say_so(work):
    error, state = Line(State, work).refuse(
        {"count": 0}, InvalidUpdateTypeError, "None", "return {} to change nothing", "[none-return]"
    )

    assert isinstance(error, TypeError)
    assert state == {"count": 0, "items": []}


def says_none(state) -> None:
    return None


def says_optional(state) -> Optional[dict]:  # noqa: UP045 - both spellings count
    return None


def says_union(state) -> dict | None:
    return None


def says_any(state) -> Any:
    return None


async def says_none_later(state) -> None:
    return None


def says_it_as_text(state) -> "dict | None":
    return None


def says_command_or_none(state) -> Command[Literal["after"]] | None:
    return None


@pytest.mark.filterwarnings("ignore::pregel.errors.PregelWarning")
@pytest.mark.parametrize(
    "work",
    [says_none, says_optional, says_union, says_any, says_none_later, says_it_as_text, says_command_or_none],
)
def test_none_changes_nothing_where_the_annotation_admits_it(work):
    line = Line(State, work)

    assert line.invoke({"count": 1}) == {"count": 1, "items": []}
    assert line.ran == ["after"]


@pytest.mark.parametrize("options", [{"allow": {"none-return"}}, {"strict": False}])
def test_none_allowed_is_a_warning_and_changes_nothing(options):
    assert Line(State, unannotated, **options).warned({"count": 1}, "None", "[none-return]") == {
        "count": 1,
        "items": [],
    }


def test_allowing_one_check_allows_no_other():
    line = Line(State, returns({"nope": 1}), allow={"none-return", "wrong-type", "same-object"})

    line.refuse({}, InvalidUpdateError, "[undeclared-key]")


# --- Undeclared keys --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "result",
    [
        {"count": 1, "lable": "x"},
        Command(update={"count": 1, "lable": "x"}),
        [{"count": 1}, {"lable": "x"}],
        Command(update=[("lable", "x")]),
    ],
)
def test_an_undeclared_key_is_an_error_with_the_nearest_match(result):
    _, state = Line(State, returns(result)).refuse(
        {"count": 0},
        InvalidUpdateError,
        "'lable'",
        "Did you mean 'label'?",
        "Declared: count, items, label",
        "[undeclared-key]",
    )

    assert state == {"count": 0, "items": []}


@pytest.mark.parametrize("key", [1, None, ("count",), "Count!!"])
def test_a_key_of_any_kind_can_be_undeclared(key):
    Line(State, returns({key: 1})).refuse({}, InvalidUpdateError, repr(key), "[undeclared-key]")


@pytest.mark.parametrize("options", [{"allow": {"undeclared-key"}}, {"strict": False}])
def test_an_undeclared_key_allowed_is_a_warning_and_only_it_is_dropped(options):
    line = Line(State, returns({"count": 1, "lable": "x"}), **options)

    assert line.warned({}, "'lable'", "'label'", "[undeclared-key]") == {"count": 1, "items": []}


# --- Types ------------------------------------------------------------------------------------------------------------


class Colour(Enum):
    RED = "red"


class Point(BaseModel):
    x: int


@dataclass
class Pair:
    left: int


class Inner(TypedDict):
    a: int


class MyInt(int):
    pass


class MyList(list):
    pass


class MyDict(dict):
    pass


@runtime_checkable
class Sized(Protocol):
    def __len__(self) -> int: ...


UserId = NewType("UserId", int)
LOCAL = datetime(2024, 1, 2, tzinfo=UTC)

REFUSED = [
    (int, "1", "int"),
    (int, 1.0, "int"),
    (int, None, "int"),
    (float, "1.5", "float"),
    (str, 1, "str"),
    (str, b"x", "str"),
    (bytes, "x", "bytes"),
    (bool, 1, "bool"),
    (bool, "true", "bool"),
    (list, (1,), "list"),
    (list, "ab", "list"),
    (list[int], [1, "2"], "list[int]"),
    (list[int], {1}, "list[int]"),
    (list[list[int]], [[1], ["2"]], "list[list[int]]"),
    (set, [1], "set"),
    (set[int], frozenset({1}), "set[int]"),
    (tuple[int, str], [1, "a"], "tuple[int, str]"),
    (tuple[int, str], (1, 2), "tuple[int, str]"),
    (tuple[int, str], (1,), "tuple[int, str]"),
    (tuple[int, ...], (1, "2"), "tuple"),
    (dict, [("a", 1)], "dict"),
    (dict[str, int], {"a": "1"}, "dict[str, int]"),
    (dict[str, int], {1: 1}, "dict[str, int]"),
    (int | None, "1", "int | None"),
    (list[int] | None, ["1"], "list[int]"),
    (Literal["a", "b"], "c", "Literal"),
    (Literal[1], True, "Literal"),
    (Colour, "red", "Colour"),
    (Point, {"x": 1}, "Point"),
    (list[Point], [{"x": 1}], "list[Point]"),
    (Pair, {"left": 1}, "Pair"),
    (Inner, {"a": "1"}, "Inner"),
    (Inner, {}, "Inner"),
    (Inner, {"b": 1}, "Inner"),
    (datetime, "2024-01-02", "datetime"),
    (datetime, date(2024, 1, 2), "datetime"),
    (UUID, "12345678123456781234567812345678", "UUID"),
    (Decimal, "1.0", "Decimal"),
    (Decimal, 1, "Decimal"),
    (PurePosixPath, "a/b", "PurePosixPath"),
    (UserId, "1", "int"),
    (type[int], str, "type[int]"),
    (Callable[[int], int], 1, "Callable"),
    (Sequence[int], {1}, "Sequence[int]"),
    (Sequence[int], ("1",), "Sequence[int]"),
    (Mapping[str, int], [("a", 1)], "Mapping[str, int]"),
    (Sized, 1, "Sized"),
]


@pytest.mark.parametrize(("annotation", "value", "expected"), REFUSED)
def test_a_value_of_another_type_or_one_that_fits_only_by_conversion_is_refused(annotation, value, expected):
    schema = schema_of(x=annotation, kept=int)
    line = Line(schema, returns({"kept": 2, "x": value}))

    error, state = line.refuse({"kept": 1}, InvalidUpdateError, "'x'", expected, repr(value)[:70], "[wrong-type]")
    assert not isinstance(error, InvalidInputError)
    assert state == {"kept": 1}


@pytest.mark.parametrize(("annotation", "value", "expected"), REFUSED)
def test_the_same_value_is_refused_at_the_input(annotation, value, expected):
    schema = schema_of(x=annotation, kept=int)
    ran = []
    line = Line(schema, lambda state: ran.append(1) or {})

    with pytest.raises(InvalidInputError) as caught:
        line.invoke({"kept": 1, "x": value})

    for word in ("'demo'", "input", "'x'", expected, repr(value)[:70], "[wrong-type]"):
        assert word in str(caught.value)
    assert ran == line.ran == []


ACCEPTED = [
    (int, 1),
    (int, MyInt(3)),
    (int, True),
    (float, 1),
    (float, 1.5),
    (float | None, 1),
    (complex, 1),
    (str, "x"),
    (list, MyList([1])),
    (list, [1, "2"]),
    (list[int], [1, MyInt(2), True]),
    (list[int], MyList([1])),
    (list[float], [1, 2.0]),
    (dict, MyDict(a=1)),
    (dict[str, float], {"a": 1}),
    (tuple[int, ...], (1, 2)),
    (tuple[int, str], (1, "a")),
    (int | None, None),
    (Any, object()),
    (object, object()),
    (Literal["a", "b"], "a"),
    (Colour, Colour.RED),
    (Point, Point(x=1)),
    (Pair, Pair(1)),
    (Inner, {"a": 1}),
    (Inner, {"a": 1, "more": 2}),
    (date, LOCAL),
    (UserId, 1),
    (type[int], MyInt),
    (Callable[[int], int], abs),
    (Sequence[int], (1, 2)),
    (Sequence[int], [1]),
    (Mapping[str, int], MappingProxyType({"a": 1})),
    (Sized, "text"),
    (list["Pair"], [Pair(1)]),
]


@pytest.mark.parametrize(("annotation", "value"), ACCEPTED)
def test_a_value_that_fits_is_stored_as_the_object_it_is(annotation, value):
    schema = schema_of(x=annotation)

    assert Line(schema, returns({"x": value})).invoke({})["x"] is value


@pytest.mark.parametrize(("annotation", "value"), ACCEPTED)
def test_a_value_that_fits_is_stored_as_the_object_it_is_at_the_input(annotation, value):
    schema = schema_of(x=annotation)

    assert Line(schema, returns({})).invoke({"x": value})["x"] is value


def test_a_check_consumes_no_iterator():
    class Lazy(TypedDict, total=False):
        x: Iterator[int]

    numbers = iter([1, 2])

    assert list(Line(Lazy, returns({"x": numbers})).invoke({})["x"]) == [1, 2]


@pytest.mark.parametrize("schema", ["typeddict", "dataclass"])
def test_a_dataclass_schema_checks_as_a_typeddict_does(schema):
    @dataclass
    class Data:
        x: int = 0

    class Typed(TypedDict, total=False):
        x: int

    line = Line(Data if schema == "dataclass" else Typed, returns({"x": "1"}))

    line.refuse({"x": 1}, InvalidUpdateError, "'x'", "int", "'1'", "[wrong-type]")


@pytest.mark.parametrize("options", [{"allow": {"wrong-type"}}, {"strict": False}])
def test_a_wrong_type_allowed_is_a_warning_and_the_value_is_stored(options):
    line = Line(State, returns({"count": "1"}), **options)

    assert line.warned({}, "'count'", "int", "'1'", "[wrong-type]") == {"count": "1", "items": []}


@pytest.mark.parametrize("options", [{"allow": {"wrong-type"}}, {"strict": False}])
def test_a_wrong_type_of_the_input_allowed_is_a_warning_and_the_value_is_stored(options):
    graph = Line(State, returns({}), **options).graph

    with pytest.warns(PregelWarning) as caught:
        assert graph.invoke({"count": "1"}) == {"count": "1", "items": []}
    assert len(caught) == 1
    for word in ("'demo'", "input", "'count'", "int", "'1'", "[wrong-type]"):
        assert word in str(caught[0].message)


def test_a_wrong_type_in_a_command_is_refused():
    Line(State, returns(Command(update={"count": "1"}))).refuse({}, InvalidUpdateError, "'count'", "[wrong-type]")


def test_a_wrong_type_in_an_async_node_is_refused(door):
    async def work(state):
        return {"count": "1"}

    line = Line(State, work)
    *states, error = door.stream(line.graph, {"count": 0}, stream_mode="values")

    assert states == [{"count": 0, "items": []}]
    assert isinstance(error, InvalidUpdateError)
    line.read(error, ["'count'", "int", "'1'", "[wrong-type]"])
    assert line.ran == []


T = TypeVar("T")


class Box(TypedDict, Generic[T], total=False):
    x: T
    xs: list[T]


@pytest.mark.parametrize("update", [{"x": "1"}, {"xs": ["1"]}])
def test_type_variables_are_bound_by_the_alias(update):
    Line(Box[int], returns(update)).refuse({}, InvalidUpdateError, "int", "[wrong-type]")


@pytest.mark.parametrize("update", [{"x": "1"}, {"xs": ["1"]}])
def test_type_variables_that_are_not_bound_accept_everything(update):
    assert Line(Box, returns(update)).invoke({}) == update


def test_a_plain_protocol_accepts_everything_after_one_warning_at_compile():
    class Reader(Protocol):
        def read(self) -> str: ...

    class Holder(TypedDict, total=False):
        x: Reader

    with pytest.warns(PregelWarning) as caught:
        line = Line(Holder, returns({"x": 1}))

    assert len(caught) == 1
    assert "Reader" in str(caught[0].message)
    assert line.invoke({}) == {"x": 1}


@pytest.mark.parametrize("marker", [Unchecked, Unchecked()])
def test_unchecked_opts_a_field_out(marker):
    schema = schema_of(x=Annotated[int, marker], y=int)

    assert Line(schema, returns({"x": "any"})).invoke({"x": None}) == {"x": "any"}
    Line(schema, returns({"y": "any"})).refuse({}, InvalidUpdateError, "'y'", "[wrong-type]")


def test_unchecked_opts_a_reducer_field_out():
    class Loose(TypedDict, total=False):
        x: Annotated[list[int], operator.add, Unchecked]

    assert Line(Loose, returns({"x": ["text"]})).invoke({}) == {"x": ["text"]}


def test_a_check_costs_the_update_and_not_the_state():
    looks = []

    class Counting(type):
        def __instancecheck__(cls, instance):
            looks.append(1)
            return True

    class Item(metaclass=Counting):
        pass

    class Special(Item):
        pass

    class Log(TypedDict):
        items: Annotated[list[Item], operator.add]

    builder = StateGraph(Log)
    builder.add_node("work", lambda state: {"items": [Special()]})
    builder.add_edge(START, "work")
    builder.add_conditional_edges("work", lambda state: "__end__" if len(state["items"]) == 30 else "work")

    assert len(builder.compile().invoke({})["items"]) == 30
    assert 30 <= len(looks) <= 60


# --- Reducer fields ---------------------------------------------------------------------------------------------------


def append_one(left: list[int], right: int) -> list[int]:
    return [*left, right]


def extend_untyped(left, right):
    return [*left, *right]


class Reduced(TypedDict, total=False):
    one: Annotated[list[int], append_one]
    untyped: Annotated[list[int], extend_untyped]
    added: Annotated[list[int], operator.add]
    merged: Annotated[dict[str, int], operator.or_]


def test_a_reducer_field_checks_the_update_by_the_reducers_second_parameter():
    assert Line(Reduced, returns({"one": 1})).invoke({})["one"] == [1]
    Line(Reduced, returns({"one": [1]})).refuse({}, InvalidUpdateError, "'one'", "int", "[1]", "[wrong-type]")


def test_a_reducer_that_says_nothing_takes_everything():
    assert Line(Reduced, returns({"untyped": ("a",)})).invoke({})["untyped"] == ["a"]


@pytest.mark.parametrize("update", [{"added": ["x"]}, {"added": 1}, {"merged": {"a": "x"}}, {"merged": [("a", 1)]}])
def test_add_and_or_take_the_fields_own_type(update):
    Line(Reduced, returns(update)).refuse({}, InvalidUpdateError, repr(next(iter(update))), "[wrong-type]")


def test_overwrite_is_checked_as_its_value():
    assert Line(Reduced, returns({"added": Overwrite([7])})).invoke({"added": [1]})["added"] == [7]
    Line(Reduced, returns({"added": Overwrite(["x"])})).refuse({}, InvalidUpdateError, "'added'", "[wrong-type]")
    Line(State, returns({"count": Overwrite("x")})).refuse({}, InvalidUpdateError, "'count'", "'x'", "[wrong-type]")


def test_overwrite_takes_the_value_as_the_field_holds_it_and_not_an_update():
    assert Line(Reduced, returns({"one": Overwrite([7, 8])})).invoke({"one": 1})["one"] == [7, 8]
    Line(Reduced, returns({"one": Overwrite(7)})).refuse({}, InvalidUpdateError, "'one'", "[wrong-type]")


def test_overwrite_is_checked_at_the_input():
    with pytest.raises(InvalidInputError) as caught:
        Line(State, returns({})).invoke({"count": Overwrite("x")})

    for word in ("'demo'", "'count'", "'x'", "[wrong-type]"):
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, 5),
        (Annotated[list, operator.add], [5]),
        (Annotated[int, max], 5),
        (Annotated[list | None, operator.add], [5]),
        (Annotated[list[int], Topic], [5]),
        (Annotated[list[int], Topic(int, accumulate=True)], [5]),
    ],
)
@pytest.mark.parametrize("at_the_input", [False, True])
def test_overwrite_is_never_stored_also_as_a_first_write(annotation, value, at_the_input):
    schema = schema_of(x=annotation)
    given, result = ({"x": Overwrite(value)}, {}) if at_the_input else ({}, {"x": Overwrite(value)})
    line = Line(schema, returns(result))
    states = list(line.graph.stream(given, stream_mode="values"))
    written = states[0 if at_the_input else 1]["x"]

    assert written == value
    assert type(written) is type(value)


def test_overwrite_of_an_ephemeral_field_is_unwrapped():
    class Short(TypedDict, total=False):
        x: Annotated[int, EphemeralValue]

    line = Line(Short, returns({"x": Overwrite(5)}))
    line.invoke({})

    assert line.seen == [{"x": 5}]


@pytest.mark.parametrize(
    "data", [{"__overwrite__": [1]}, {"type": "__overwrite__", "value": [1]}, {"lc_type": "Overwrite", "value": [1]}]
)
def test_a_dict_that_looks_like_an_overwrite_is_data(data):
    class Store(TypedDict, total=False):
        x: Annotated[dict, operator.or_]
        y: dict

    line = Line(Store, returns({"x": data, "y": data}))

    assert line.invoke({"x": {"kept": 1}}) == {"x": {"kept": 1, **data}, "y": data}


# --- The very object --------------------------------------------------------------------------------------------------


def spread(state):
    return {**state}


def in_a_command(state):
    return Command(update={"items": state["items"]})


def in_a_list(state):
    return [{}, {"items": state["items"]}]


def grown_in_place(state):
    state["items"].append(2)
    return {"items": state["items"]}


async def spread_later(state):
    return {**state}


@pytest.mark.parametrize("work", [spread, in_a_command, in_a_list, grown_in_place, spread_later])
def test_a_reducer_field_given_back_is_an_error_with_the_remedy(work):
    line = Line(State, work)

    with pytest.raises(InvalidUpdateError) as caught:
        line.invoke({"items": [1], "count": 1})

    line.read(caught.value, ["'items'", "only what is new", "Overwrite", "[same-object]"])
    assert line.ran == []


@pytest.mark.parametrize("schema", [Record, Model])
@pytest.mark.parametrize("give_back", [lambda state: {"items": state.items}, lambda state: state])
def test_a_reducer_field_of_an_instance_given_back_is_an_error(schema, give_back):
    Line(schema, give_back).refuse({"items": [1]}, InvalidUpdateError, "'items'", "Overwrite", "[same-object]")


def test_a_copy_of_a_dataclass_with_one_change_gives_back_the_rest():
    Line(Record, lambda state: replace(state, count=2)).refuse({"items": [1]}, InvalidUpdateError, "[same-object]")


def test_the_very_object_is_recognised_in_what_a_send_carries():
    ran = []
    builder = StateGraph(State)
    builder.add_node("work", lambda state: Command(goto=Send("part", state)), destinations=["part"])
    builder.add_node("part", lambda arg: ran.append("part") or {"items": arg["items"]})
    builder.add_edge(START, "work")

    with pytest.raises(InvalidUpdateError) as caught:
        builder.compile(name="demo").invoke({"items": [1]})

    for word in ("'part'", "'demo'", "'items'", "[same-object]"):
        assert word in str(caught.value)
    assert ran == ["part"]


def test_a_topic_that_accumulates_given_back_is_an_error_too():
    class Box(TypedDict, total=False):
        box: Annotated[list[int], Topic(int, accumulate=True)]

    line = Line(Box, spread)

    line.refuse({"box": [1]}, InvalidUpdateError, "'box'", "[same-object]")


def test_the_value_given_back_in_an_overwrite_is_meant():
    def work(state):
        state["items"].append(2)
        return {"items": Overwrite(state["items"])}

    assert Line(State, work).invoke({"items": [1]})["items"] == [1, 2]


def test_an_equal_value_that_is_another_object_is_an_update():
    assert Line(State, lambda state: {"items": list(state["items"])}).invoke({"items": [1]})["items"] == [1, 1]


def test_a_plain_field_may_be_given_back():
    class Plain(TypedDict):
        values: list

    assert Line(Plain, lambda state: {**state}).invoke({"values": [1]}) == {"values": [1]}


@pytest.mark.parametrize("options", [{"allow": {"same-object"}}, {"strict": False}])
def test_a_reducer_field_given_back_and_allowed_is_a_warning_and_folded(options):
    line = Line(State, spread, **options)

    assert line.warned({"items": [1]}, "'items'", "Overwrite", "[same-object]") == {"items": [1, 1]}


# --- Pydantic states --------------------------------------------------------------------------------------------------


class Person(BaseModel):
    name: str = "nobody"
    age: int = Field(default=0, ge=0)
    tags: list[str] = []

    @field_validator("name")
    @classmethod
    def tidy(cls, value):
        if value == "bad":
            raise ValueError("that is no name")
        return value.strip()


def test_a_model_stores_the_coerced_value():
    line = Line(Person, returns({"age": "41"}))

    assert line.invoke({"name": " Ann "}) == {"name": "Ann", "age": 41, "tags": []}
    assert line.seen[0] == Person(name="Ann", age=41)


def test_field_validators_run_on_each_update():
    assert Line(Person, returns({"name": "  Bo "})).invoke({"name": "Ann"})["name"] == "Bo"


@pytest.mark.parametrize(
    ("update", "words"),
    [
        ({"name": "bad"}, ["'name'", "that is no name", "'bad'"]),
        ({"age": -1}, ["'age'", "greater than or equal to 0", "-1"]),
        ({"age": "old"}, ["'age'", "int", "'old'"]),
        ({"tags": "one"}, ["'tags'", "list[str]", "'one'"]),
        (Command(update={"tags": [1]}), ["'tags'", "list[str]", "[1]"]),
    ],
)
def test_what_a_validator_refuses_is_an_error_of_the_node(update, words):
    _, state = Line(Person, returns(update)).refuse({"name": "Ann"}, InvalidUpdateError, *words, "[wrong-type]")

    assert state == {"name": "Ann", "age": 0, "tags": []}


@pytest.mark.parametrize("given", [{"age": -1}, {"name": "bad"}, {"age": "old"}])
def test_what_a_validator_refuses_at_the_input_is_an_error_of_the_input(given):
    ran = []
    line = Line(Person, lambda state: ran.append(1) or {})

    with pytest.raises(InvalidInputError) as caught:
        line.invoke(given)

    for word in ("'demo'", "input", *given):
        assert word in str(caught.value)
    assert ran == line.ran == []


def test_what_a_validator_refuses_at_the_input_carries_the_code():
    with pytest.raises(InvalidInputError) as caught:
        Line(Person, returns({})).invoke({"age": "old"})

    for word in ("'demo'", "age", "[wrong-type]"):
        assert word in str(caught.value)


class Range(BaseModel):
    low: int = 0
    high: int = 10
    items: Annotated[list[int], operator.add] = []

    @model_validator(mode="after")
    def ordered(self):
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


def test_model_validators_run_on_the_input():
    ran = []
    line = Line(Range, lambda state: ran.append(1) or {})

    with pytest.raises(InvalidInputError) as caught:
        line.invoke({"low": 11})

    for word in ("'demo'", "low is above high"):
        assert word in str(caught.value)
    assert ran == []


def test_model_validators_run_where_a_nodes_instance_is_built():
    line = Line(Range, returns({"low": 11}))

    with pytest.raises(NodeInputError) as caught:
        line.invoke({})

    for word in ("'after'", "'demo'", "Range", "low is above high"):
        assert word in str(caught.value)
    assert line.ran == []


def test_model_validators_do_not_run_on_an_update():
    builder = StateGraph(Range)
    builder.add_node("work", lambda state: {"low": 11})
    builder.add_edge(START, "work")

    assert builder.compile().invoke({}) == {"low": 11, "high": 10, "items": []}


def test_field_validators_run_on_the_updates_of_a_reducer_field():
    class Words(BaseModel):
        words: Annotated[list[str], operator.add] = []

        @field_validator("words")
        @classmethod
        def lower(cls, value):
            return [word.lower() for word in value]

    assert Line(Words, returns({"words": ["B"]})).invoke({"words": ["A"]}) == {"words": ["a", "b"]}


def test_the_update_of_a_reducer_field_of_a_model_is_coerced_as_at_the_input():
    assert Line(Model, returns({"items": ["2"]})).invoke({"items": ["1"]})["items"] == [1, 2]


def test_a_strict_model_coerces_nothing():
    class Strict(BaseModel):
        model_config = ConfigDict(strict=True)
        count: int = 0

    Line(Strict, returns({"count": "1"})).refuse({}, InvalidUpdateError, "'count'", "'1'", "[wrong-type]")


def test_a_model_field_of_a_model_is_coerced():
    class Holder(BaseModel):
        point: Point = Point(x=0)

    assert Line(Holder, returns({"point": {"x": "3"}})).invoke({})["point"] == Point(x=3)


def test_validators_of_a_field_see_the_unwrapped_value_of_an_overwrite():
    assert Line(Person, returns({"name": Overwrite(" Bo ")})).invoke({})["name"] == "Bo"


def test_what_a_validator_refuses_and_is_allowed_is_stored_as_it_is():
    builder = StateGraph(Person, allow={"wrong-type"})
    builder.add_node("work", returns({"age": -1}))
    builder.add_edge(START, "work")

    with pytest.warns(PregelWarning, match="wrong-type"):
        assert builder.compile().invoke({})["age"] == -1


# --- Instances as a node's view ---------------------------------------------------------------------------------------


@dataclass
class Needs:
    count: int
    label: str = "new"


class NeedsModel(BaseModel):
    count: int
    label: str = "new"


@pytest.mark.parametrize("schema", [Needs, NeedsModel])
def test_a_node_is_given_an_instance_of_its_schema(schema):
    seen = []
    line = Line(schema, lambda state: seen.append(state) or {})
    line.invoke({"count": 1})

    assert seen == [schema(count=1)]


@pytest.mark.parametrize("schema", [Needs, NeedsModel])
def test_an_instance_that_lacks_a_required_field_is_a_named_error(schema):
    ran = []
    line = Line(schema, lambda state: ran.append(1) or {})

    with pytest.raises(PregelError) as caught:
        line.invoke({"label": "x"})

    assert isinstance(caught.value, (NodeInputError, InvalidInputError))
    for word in ("'demo'", "count"):
        assert word in str(caught.value)
    assert ran == []


@pytest.mark.parametrize("schema", [Needs, NeedsModel])
def test_a_node_whose_own_schema_requires_an_absent_field_is_named(schema):
    ran = []
    builder = StateGraph(State)
    builder.add_node("work", lambda state: ran.append(1) or {}, input_schema=schema)
    builder.add_edge(START, "work")

    with pytest.raises(NodeInputError) as caught:
        builder.compile(name="demo").invoke({"label": "x"})

    for word in ("'work'", "'demo'", schema.__name__, "'count'", "default"):
        assert word in str(caught.value)
    assert ran == []


def test_a_node_is_given_a_fresh_dict_of_the_fields_that_have_a_value():
    seen = []

    def work(state):
        seen.append(dict(state))
        state["count"] = 99
        del state["items"]
        return {}

    line = Line(State, work)
    given = {"count": 1}

    assert line.invoke(given) == {"count": 1, "items": []}
    assert seen == [{"count": 1, "items": []}]
    assert given == {"count": 1}


def test_a_schema_without_fields_is_an_error():
    class Nothing(TypedDict):
        pass

    with pytest.raises(SchemaError) as caught:
        Line(Nothing, returns({}))

    assert "Nothing" in str(caught.value)
    assert "no fields" in str(caught.value)


def test_strict_graphs_give_no_warning_for_what_is_right():
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        assert Line(State, returns({"count": 1})).invoke({}) == {"count": 1, "items": []}
