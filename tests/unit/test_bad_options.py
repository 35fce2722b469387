"""What a caller can get wrong: a named error at the call, and nothing has run."""

import asyncio
import operator
from dataclasses import dataclass
from typing import Annotated, TypedDict
from uuid import UUID

import pytest
from pydantic import BaseModel

from pregel import START, Command, Runtime, StateGraph
from pregel.errors import GraphDefinitionError, InvalidConfigError, InvalidInputError, PregelError


class State(TypedDict, total=False):
    count: int
    log: Annotated[list[str], operator.add]


class Context(TypedDict, total=False):
    user: str
    limit: int


@dataclass
class DataContext:
    user: str
    limit: int = 3


class ModelContext(BaseModel):
    user: str
    limit: int = 3


class Ran:
    """A graph of one node, and how often that ran."""

    def __init__(self, *, schema=State, context_schema=None, **options):
        self.times = 0
        self.contexts = []
        builder = StateGraph(schema, context_schema, **options)
        builder.add_node("work", self.work)
        builder.add_edge(START, "work")
        self.graph = builder.compile(name="demo")

    def work(self, state, runtime: Runtime):
        self.times += 1
        self.contexts.append(runtime.context)
        return {}

    def calls(self, *args, **options):
        """Return the ways to start a run, each of which must refuse at once what is wrong."""
        ways = {
            "invoke": lambda: self.graph.invoke(*args, **options),
            "stream": lambda: self.graph.stream(*args, **options),
            "astream": lambda: self.graph.astream(*args, **options),
            "ainvoke": lambda: asyncio.run(self.graph.ainvoke(*args, **options)),
        }
        if "stream_mode" in options:
            del ways["invoke"], ways["ainvoke"]
        return ways

    def refuse(self, kind, words, *args, **options):
        """Call in every way, read the error, and see that nothing ran."""
        for name, call in self.calls(*args, **options).items():
            with pytest.raises(kind) as caught:
                call()
            assert isinstance(caught.value, PregelError)
            assert isinstance(caught.value, ValueError)
            for word in words:
                assert word in str(caught.value), (name, str(caught.value))
        assert self.times == 0


# --- stream_mode ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("value", ["'value'", "Did you mean 'values'?", "updates"]),
        ("update", ["'update'", "Did you mean 'updates'?", "values"]),
        ("", ["''", "values", "updates", "custom"]),
        (["values", "udpates"], ["'udpates'", "Did you mean 'updates'?"]),
        (("values", "costum"), ["'costum'", "Did you mean 'custom'?"]),
        ([], ["no mode", "values"]),
        ((), ["no mode", "values"]),
        (None, ["None", "list of modes"]),
        (5, ["5", "list of modes"]),
        ({"values"}, ["{'values'}", "list of modes"]),
        ([5], ["5"]),
        ([["values"]], ["['values']"]),
        ([None], ["None"]),
    ],
)
def test_an_unknown_stream_mode_is_an_error_at_the_call(mode, words):
    Ran().refuse(InvalidConfigError, ["stream_mode", *words], {"count": 1}, stream_mode=mode)


@pytest.mark.parametrize("modes", [["values", "updates"], ("values", "updates")])
def test_several_modes_tag_their_parts(modes):
    parts = list(Ran().graph.stream({"count": 1}, stream_mode=modes))

    assert parts == [("values", {"count": 1, "log": []}), ("updates", {"work": None})]


def test_a_list_of_one_mode_tags_its_parts():
    assert list(Ran().graph.stream({"count": 1}, stream_mode=["updates"])) == [("updates", {"work": None})]


# --- config -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"recursion_limt": 5}, ["'recursion_limt'", "Did you mean 'recursion_limit'?", "configurable"]),
        ({"configurabel": {}}, ["'configurabel'", "Did you mean 'configurable'?"]),
        ({"thread_id": "1"}, ["'thread_id'", "configurable"]),
        ({5: 1}, ["5", "configurable"]),
        ({None: 1}, ["None", "configurable"]),
        ("text", ["mapping", "str"]),
        (5, ["mapping", "int"]),
        ([("tags", [])], ["mapping", "list"]),
        ({"configurable": 5}, ["'configurable'", "mapping", "int"]),
        ({"configurable": None}, ["'configurable'", "mapping", "NoneType"]),
        ({"metadata": [1]}, ["'metadata'", "mapping", "list"]),
        ({"recursion_limit": 0}, ["'recursion_limit'", "at least 1", "0"]),
        ({"recursion_limit": -3}, ["'recursion_limit'", "at least 1", "-3"]),
        ({"recursion_limit": "5"}, ["'recursion_limit'", "whole number", "'5'"]),
        ({"recursion_limit": 2.0}, ["'recursion_limit'", "whole number", "2.0"]),
        ({"recursion_limit": True}, ["'recursion_limit'", "whole number", "True"]),
        ({"recursion_limit": None}, ["'recursion_limit'", "whole number", "None"]),
        ({"max_concurrency": 0}, ["'max_concurrency'", "at least 1", "0"]),
        ({"max_concurrency": "two"}, ["'max_concurrency'", "whole number", "'two'"]),
        ({"max_concurrency": 1.5}, ["'max_concurrency'", "whole number", "1.5"]),
        ({"run_id": "not one"}, ["'run_id'", "UUID", "'not one'"]),
        ({"run_id": 5}, ["'run_id'", "UUID", "5"]),
        ({"tags": "one"}, ["'tags'", "'one'"]),
        ({"tags": 5}, ["'tags'", "5"]),
        ({"run_name": 5}, ["'run_name'", "5"]),
    ],
)
def test_a_bad_config_is_an_error_at_the_call(config, words):
    Ran().refuse(InvalidConfigError, ["config", *words], {"count": 1}, config)


@pytest.mark.parametrize(
    "config",
    [
        None,
        {},
        {"max_concurrency": None},
        {"tags": ["a"], "metadata": {"k": 1}, "callbacks": None, "run_name": "r", "configurable": {"mine": 1}},
        {"run_id": UUID(int=1)},
        {"run_id": str(UUID(int=1))},
        {"recursion_limit": 1, "max_concurrency": 1},
    ],
)
def test_a_good_config_runs(door, config):
    ran = Ran()

    assert door.invoke(ran.graph, {"count": 1}, config) == {"count": 1, "log": []}
    assert ran.times == 1


# --- context ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", [Context, DataContext, ModelContext])
@pytest.mark.parametrize(
    ("context", "words"),
    [
        ({"usr": "ann"}, ["'usr'", "Did you mean 'user'?"]),
        ("ann", ["str", "mapping"]),
        (5, ["int", "mapping"]),
        ([("user", "ann")], ["list", "mapping"]),
    ],
)
def test_a_bad_context_is_an_error_at_the_call(schema, context, words):
    words = ["context", "'demo'", schema.__name__, *words]

    Ran(context_schema=schema).refuse(InvalidConfigError, words, {"count": 1}, context=context)


@pytest.mark.parametrize("schema", [DataContext, ModelContext])
def test_a_context_that_lacks_what_is_required_is_an_error_at_the_call(schema):
    words = ["context", "'demo'", schema.__name__, "user"]

    Ran(context_schema=schema).refuse(InvalidConfigError, words, {"count": 1}, context={"limit": 1})


@pytest.mark.parametrize("schema", [Context, DataContext, ModelContext])
def test_a_context_value_of_a_wrong_type_is_an_error_at_the_call(schema):
    words = ["context", "'demo'", schema.__name__, "limit"]

    Ran(context_schema=schema).refuse(InvalidConfigError, words, {"count": 1}, context={"user": "ann", "limit": "many"})


@pytest.mark.parametrize(
    ("schema", "context", "expected"),
    [
        (Context, {"user": "ann"}, {"user": "ann"}),
        (DataContext, {"user": "ann"}, DataContext("ann")),
        (DataContext, DataContext("bo"), DataContext("bo")),
        (ModelContext, {"user": "ann"}, ModelContext(user="ann")),
        (ModelContext, ModelContext(user="bo"), ModelContext(user="bo")),
        (None, 5, 5),
        (None, None, None),
    ],
)
def test_a_good_context_reaches_the_nodes(door, schema, context, expected):
    ran = Ran(context_schema=schema)
    door.invoke(ran.graph, {}, context=context)

    assert ran.contexts == [expected]


# --- input ------------------------------------------------------------------------------------------------------------


class Stranger:
    def __repr__(self):
        return "Stranger()"


@dataclass
class OtherData:
    count: int = 1


class OtherModel(BaseModel):
    count: int = 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (None, ["None", "mapping"]),
        (Command(resume=1), ["Command", "mapping"]),
        (Command(update={"count": 1}), ["Command", "mapping"]),
        (Command(goto="work"), ["Command", "mapping"]),
        ([{"count": 1}], ["list", "mapping"]),
        ([("count", 1)], ["list", "mapping"]),
        ([], ["[]", "mapping"]),
        (5, ["5 (int)", "mapping"]),
        ("count", ["'count' (str)", "mapping"]),
        (Stranger(), ["Stranger()", "mapping"]),
        (OtherData(), ["OtherData", "instance of its schema"]),
        (OtherModel(), ["OtherModel", "instance of its schema"]),
        (State, ["State", "mapping"]),
        ({"cuont": 1}, ["'cuont'", "Did you mean 'count'?", "[undeclared-input]"]),
        ({5: 1}, ["5", "[undeclared-input]"]),
        ({"count": "one"}, ["'count'", "int", "'one'", "[wrong-type]"]),
        ({"log": [1]}, ["'log'", "list[str]", "[1]", "[wrong-type]"]),
    ],
)
def test_a_bad_input_is_an_error_at_the_call(given, words):
    Ran().refuse(InvalidInputError, ["input", "'demo'", *words], given)


def test_the_state_is_checked_before_anything_is_streamed():
    ran = Ran()

    with pytest.raises(InvalidInputError):
        ran.graph.stream({"count": "one"}, stream_mode="values")
    assert ran.times == 0


# --- executor ---------------------------------------------------------------------------------------------------------


def work(state):
    return {}


@pytest.mark.parametrize("executor", ["threads", "Inline", "", 5])
def test_an_unknown_executor_of_a_node_is_an_error(executor):
    with pytest.raises(GraphDefinitionError) as caught:
        StateGraph(State).add_node("work", work, executor=executor)

    for word in ("executor", "'work'", repr(executor), "'inline'", "'thread'"):
        assert word in str(caught.value)


@pytest.mark.parametrize("executor", ["threads", "Inline", "", 5, None])
def test_an_unknown_executor_of_a_graph_is_an_error(executor):
    builder = StateGraph(State).add_node(work).add_edge(START, "work")

    with pytest.raises(GraphDefinitionError) as caught:
        builder.compile(executor=executor)
    for word in ("executor", repr(executor), "'inline'", "'thread'"):
        assert word in str(caught.value)


@pytest.mark.parametrize("wrong", ["threads", "thred"])
def test_the_nearest_executor_is_named(wrong):
    with pytest.raises(GraphDefinitionError, match=r"Did you mean 'thread'\?"):
        StateGraph(State).add_node("work", work, executor=wrong)


# --- on_failure -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on_failure", "words"),
    [
        ("finsh", ["'finsh'", "Did you mean 'finish'?", "'cancel'"]),
        ("cancle", ["'cancle'", "Did you mean 'cancel'?", "'finish'"]),
        ("", ["''", "'finish'", "'cancel'"]),
        (True, ["True", "'finish'"]),
        (["cancel"], ["['cancel']", "'finish'"]),
    ],
)
def test_an_unknown_on_failure_is_an_error_at_the_call(on_failure, words):
    Ran().refuse(InvalidConfigError, ["on_failure", *words], {"count": 1}, on_failure=on_failure)


@pytest.mark.parametrize("on_failure", ["finsh", "", 5, None])
def test_an_unknown_on_failure_of_a_graph_is_an_error(on_failure):
    builder = StateGraph(State).add_node(work).add_edge(START, "work")

    with pytest.raises(PregelError) as caught:
        builder.compile(on_failure=on_failure)
    for word in ("on_failure", repr(on_failure), "'finish'", "'cancel'"):
        assert word in str(caught.value)


# --- Schemas ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", [dict, int, "State", 5, None, Stranger])
def test_a_state_schema_that_is_none_is_an_error_of_the_library(schema):
    with pytest.raises(PregelError) as caught:
        StateGraph(schema).add_node(work).add_edge(START, "work").compile()

    for word in ("schema", "TypedDict"):
        assert word in str(caught.value)


@pytest.mark.parametrize("option", ["input_schema", "output_schema"])
def test_a_schema_option_that_is_none_is_an_error_of_the_library(option):
    with pytest.raises(PregelError) as caught:
        StateGraph(State, **{option: dict}).add_node(work).add_edge(START, "work").compile()

    assert "schema" in str(caught.value)


def test_an_input_schema_of_a_node_that_is_none_is_an_error_of_the_library():
    with pytest.raises(PregelError) as caught:
        StateGraph(State).add_node("work", work, input_schema=dict).add_edge(START, "work").compile()

    assert "schema" in str(caught.value)


@pytest.mark.parametrize("schema", [int, "Context", 5])
def test_a_context_schema_that_is_none_is_an_error_of_the_library(schema):
    with pytest.raises(PregelError) as caught:
        StateGraph(State, schema).add_node(work).add_edge(START, "work").compile()

    assert "schema" in str(caught.value)


@pytest.mark.parametrize("allow", ["none-return", ["none-return", "nothing"]])
def test_allow_takes_a_collection_of_known_codes(allow):
    with pytest.raises(GraphDefinitionError) as caught:
        StateGraph(State, allow=allow)

    for word in ("allow", "none-return"):
        assert word in str(caught.value)
