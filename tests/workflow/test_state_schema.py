"""What a `state_schema` declares, and the check that each write to the state passes."""

import operator
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict as AnyTypedDict

from pregel import START, StateGraph
from pregel.channels.aggregate import Overwrite
from pregel.channels.base import MISSING
from pregel.channels.keyed import DELETE
from pregel.channels.topic import Topic
from pregel.errors import EncodeError, SchemaError
from pregel.graph.schema import Unchecked
from pregel.graph.workflow.errors import StateSchemaError
from pregel.graph.workflow.schema import channel_of, check_parameters, checker, fields_of, keys_of
from pregel.graph.workflow.scopes import Scope
from pregel.managed import RemainingSteps


class Typed(TypedDict, total=False):
    n: int
    log: Annotated[list[str], operator.add]
    visits: Annotated[int, operator.add, Scope("user")]
    note: Annotated[str, Scope("temp")]


@dataclass
class Data:
    n: int = 3
    tags: list[str] = field(default_factory=list)
    limit: Annotated[int, Scope("app")] = 10


class Model(BaseModel):
    n: Annotated[int, Field(gt=0)] = 5
    names: Annotated[list[str], operator.add] = Field(default_factory=lambda: ["first"])
    seen: Annotated[int | None, Scope("user")] = None


Prefixed = AnyTypedDict("Prefixed", {"user:visits": int, "app:limit": Annotated[int, operator.add], "plain": Any})

SCHEMAS = [Typed, Data, Model]


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        (Typed, ["n", "log", "user:visits"]),
        (Data, ["n", "tags", "app:limit"]),
        (Model, ["n", "names", "user:seen"]),
        (Prefixed, ["user:visits", "app:limit", "plain"]),
    ],
)
def test_each_stored_key_is_a_field_under_its_whole_name(schema, names):
    assert list(fields_of(schema)) == names


def test_declared_names_of_scoped_keys_lead_to_whole_ones():
    assert keys_of(Typed) == {"visits": "user:visits", "note": "temp:note"}
    assert keys_of(Prefixed) == {}
    assert keys_of(None) == {}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_converted_value_is_stored(schema):
    check = checker(schema, "node 'f'")
    assert check("n", "12") == 12
    assert type(check("n", 7)) is int


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_value_of_the_wrong_type_names_who_key_and_value(schema):
    with pytest.raises(StateSchemaError, match=r"node 'f': the key 'n' of state schema \w+ takes int .*'x' \(str\)"):
        checker(schema, "node 'f'")("n", "x")


def test_constraints_of_a_model_hold():
    with pytest.raises(StateSchemaError, match="greater than 0"):
        checker(Model, "node 'f'")("n", 0)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_an_undeclared_key_names_the_nearest_one(schema):
    with pytest.raises(StateSchemaError, match=r"the key 'nn' is not declared by state schema .*Did you mean 'n'\?"):
        checker(schema, "node 'f'")("nn", 1)


def test_an_undeclared_scoped_key_is_an_error_too():
    with pytest.raises(StateSchemaError, match=r"'user:vist' is not declared .*Did you mean 'user:visits'\?"):
        checker(Typed, "node 'f'")("user:vist", 1)


def test_a_reducer_s_key_is_checked_as_an_update_and_overwritten_as_a_whole():
    check = checker(Typed, "node 'f'")
    assert check("log", ("a",)) == ["a"]
    assert check("log", Overwrite(("a",))) == Overwrite(["a"])
    with pytest.raises(StateSchemaError, match="'log'"):
        check("log", "text")
    with pytest.raises(StateSchemaError, match="'log'"):
        check("log", Overwrite([1.5]))


def test_a_delete_passes():
    assert checker(Typed, "node 'f'")("n", DELETE) is DELETE


def test_an_unchecked_key_takes_anything():
    class Loose(TypedDict):
        frame: Annotated[int, Unchecked]

    assert checker(Loose, "node 'f'")("frame", "text") == "text"


def test_a_topic_is_a_key_too():
    class Told(TypedDict):
        said: Annotated[list[str], Topic(str, accumulate=True)]

    assert checker(Told, "node 'f'")("said", "text") == "text"
    assert channel_of(Told, "said") == Topic(str, accumulate=True)


@pytest.mark.parametrize("key", ["", "@x", "__x", "usr:x", "user:", "a:b", 3, None])
def test_without_a_schema_only_what_can_be_no_key_is_refused(key):
    with pytest.raises(StateSchemaError, match="node 'f'"):
        checker(None, "node 'f'")(key, 1)


def test_without_a_schema_values_pass_as_they_are():
    check = checker(None, "node 'f'")
    value = [1]
    assert check("anything", value) is value
    assert check("user:x", value) is value
    assert check("_private", value) is value


@pytest.mark.parametrize("schema", [None, Prefixed])
def test_what_the_store_can_t_keep_is_found_at_the_write(schema):
    class Loose(TypedDict):
        x: Annotated[Any, Scope("user")]

    with pytest.raises(EncodeError, match=r"node 'f': the key 'user:x'.*\['a'\]"):
        checker(None if schema is None else Loose, "node 'f'")("user:x", {"a": lambda: 1})


def test_defaults_seed_the_graph_s_channels():
    merged = {**fields_of(Data), **{name: kind for name, kind in fields_of(Model).items() if name != "n"}}
    schema = AnyTypedDict("State", merged)
    graph = StateGraph(schema).add_node("f", lambda state: {"tags": ["x"]}).add_edge(START, "f").compile()
    expected = {"n": 3, "tags": ["x"], "app:limit": 10, "names": ["first"], "user:seen": None}
    assert graph.invoke({}) == expected
    assert graph.invoke({}) == expected  # made anew for each run


def test_deleted_plain_keys_are_absent_and_folded_ones_begin_anew():
    plain, folded = channel_of(Data, "n"), channel_of(Model, "names")
    assert plain.apply(3, (DELETE,)) is MISSING
    assert folded.apply(["first", "b"], (["c"], DELETE, ["d"])) == ["first", "d"]
    assert folded.apply(["first", "b"], (DELETE,)) == ["first"]
    assert channel_of(Typed, "user:visits").apply(4, (1, 2)) == 7


def test_parameters_must_be_declared():
    check_parameters(Typed, "node 'f' of workflow 'w'", ["n", "visits", "user:visits", "note"])
    check_parameters(None, "node 'f' of workflow 'w'", ["whatever"])
    with pytest.raises(StateSchemaError, match=r"node 'f' of workflow 'w' has the parameter 'lgo'.*mean 'log'\?"):
        check_parameters(Typed, "node 'f' of workflow 'w'", ["lgo"])


def with_field(name, annotation):
    return AnyTypedDict("Bad", {name: annotation})


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (with_field("@x", int), "'@x' can't be one"),
        (with_field("usr:x", int), r"'usr:'.*Did you mean 'user'\?"),
        (with_field("user:x", Annotated[int, Scope("user")]), "keep one of them"),
        (with_field("x", Annotated[int, Scope]), r"Scope\('user'\)"),
        (with_field("x", Annotated[int, Scope("user"), Scope("app")]), "keep one of them"),
        (with_field("x", Annotated[int, operator.add, Scope("temp")]), "'temp:x' has a reducer"),
        (with_field("steps", RemainingSteps), "computed by the engine"),
        (AnyTypedDict("Bad", {"x": Annotated[int, Scope("user")], "user:x": int}), "'user:x'"),
    ],
)
def test_what_a_schema_can_t_declare_is_found_at_once(schema, text):
    with pytest.raises(StateSchemaError, match=text):
        fields_of(schema)


def test_what_is_no_schema_is_an_error_of_its_own():
    with pytest.raises(SchemaError, match="no schema"):
        fields_of(int)


def test_there_is_no_other_scope():
    with pytest.raises(StateSchemaError, match=r"no scope 'usr'.*Did you mean 'user'\?"):
        Scope("usr")
