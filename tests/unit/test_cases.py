"""What users of graph runtimes trip over: the smallest input that shows each case, and the right behaviour."""

import asyncio
import contextvars
import gc
import operator
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Literal, Optional, TypedDict

import anyio
import pytest
from pydantic import BaseModel, Field, field_validator

from pregel import END, START, Command, InMemorySaver, Overwrite, Send, StateGraph
from pregel.errors import (
    InvalidConcurrentUpdateError,
    InvalidUpdateError,
    PregelError,
    PregelWarning,
    SchemaError,
    StarvedJoinError,
    UnknownTargetError,
    UnreachableNodeError,
)
from pregel.graph import Unchecked


class State(TypedDict, total=False):
    log: Annotated[list, operator.add]
    value: int
    way: str


may_warn = pytest.mark.filterwarnings("ignore::pregel.errors.PregelWarning")


def writes(update):
    """Return a node that returns an update."""
    return lambda state: update


def logging(*names, schema=State):
    """Return a builder with nodes that log their names."""
    builder = StateGraph(schema)
    for name in names:
        builder.add_node(name, writes({"log": [name]}))
    return builder


def says(error, *words):
    """See that a message holds the words."""
    assert isinstance(error, PregelError)
    for word in words:
        assert word in str(error), str(error)


# --- Parallel branches, reducers, barriers ----------------------------------------------------------------------------


@may_warn
def test_case_01_plain_edges_of_unequal_branches_run_their_target_twice_and_a_join_once(door):
    plain, joined = logging(*"abcd"), logging(*"abcd")
    for builder in (plain, joined):
        builder.add_edge(START, "a").add_edge(START, "b").add_edge("b", "c")
    plain.add_edge("a", "d").add_edge("c", "d")
    joined.add_edge(["a", "c"], "d")

    assert door.invoke(plain.compile(), {})["log"] == ["a", "b", "c", "d", "d"]
    assert door.invoke(joined.compile(), {})["log"] == ["a", "b", "c", "d"]


def test_case_01_unequal_branches_are_a_warning_at_compile():
    builder = logging(*"abcd").add_edge(START, "a").add_edge(START, "b").add_edge("b", "c")
    builder.add_edge("a", "d").add_edge("c", "d")

    with pytest.warns(PregelWarning, match="'d'"):
        builder.compile()


@may_warn
def test_case_02_a_join_whose_source_a_router_skipped_says_that_it_starved(door):
    builder = logging(*"rabcd").add_edge(START, "r").add_edge(["a", "b"], "c").add_edge("c", "d")
    builder.add_conditional_edges("r", lambda state: state["way"], ["a", "b"])
    *_, last, error = door.stream(builder.compile(name="demo"), {"way": "a"}, stream_mode="values")

    assert isinstance(error, StarvedJoinError)
    says(error, "'demo'", "'a'", "'b'", "'c'", "starved-join")
    assert error.state == last == {"log": ["r", "a"], "way": "a"}


@may_warn
def test_case_03_two_deferred_nodes_in_series_run_once_each_beside_an_unrelated_branch():
    builder = StateGraph(State)
    for name in ("a", "b", "first", "second", "s1", "s2", "s3"):
        builder.add_node(name, writes({"log": [name]}), defer=name in {"first", "second"})
    for edge in [("a", "first"), ("b", "first"), ("first", "second"), ("s1", "s2"), ("s2", "s3"), ("s3", "second")]:
        builder.add_edge(*edge)
    for name in ("a", "b", "s1"):
        builder.add_edge(START, name)

    assert builder.compile().invoke({})["log"] == ["a", "b", "s1", "s2", "s3", "first", "second"]


def test_case_05_a_conflict_names_nodes_and_values(door):
    builder = StateGraph(State).add_node("a", writes({"value": 17})).add_node("b", writes({"value": 23}))
    builder.add_edge(START, "a").add_edge(START, "b")
    *states, error = door.stream(builder.compile(name="demo"), {}, stream_mode="values")

    assert isinstance(error, InvalidConcurrentUpdateError)
    says(error, "'a'", "'b'", "17", "23", "'value'", "'demo'", "reducer")
    assert states == [{"log": []}]


def test_case_06_order_is_declaration_order(door):
    builder = logging("z", "b", "a")
    for name in ("a", "b", "z"):
        builder.add_edge(START, name)

    assert door.invoke(builder.compile(), {})["log"] == ["z", "b", "a"]


def test_case_06_a_renamed_node_changes_no_result():
    for names in (["z", "b", "a"], ["a", "b", "z"], ["Node10", "Node2", "node1"]):
        builder = StateGraph(State)
        for number, name in enumerate(names):
            builder.add_node(name, writes({"log": [number]})).add_edge(START, name)
        assert builder.compile().invoke({})["log"] == [0, 1, 2]


def test_case_07_overwrite_among_other_updates_is_the_value():
    class Items(TypedDict, total=False):
        items: Annotated[list[int], operator.add]

    builder = StateGraph(Items)
    for name, update in {"a": [5], "b": Overwrite([10]), "c": [3]}.items():
        builder.add_node(name, writes({"items": update})).add_edge(START, name)

    assert builder.compile().invoke({"items": [1]}) == {"items": [10]}


def test_case_07_overwrite_as_a_first_write_is_unwrapped():
    class Items(TypedDict, total=False):
        items: Annotated[Optional[list], operator.add]  # noqa: UP045 - both spellings count
        plain: int

    builder = StateGraph(Items)
    builder.add_node("a", writes({"items": Overwrite([10]), "plain": Overwrite(4)})).add_edge(START, "a")

    assert builder.compile().invoke({}) == {"items": [10], "plain": 4}


def test_case_09_a_node_can_not_change_its_callers_input():
    def spoil(state):
        state["value"] = 99
        state["log"].append("spoilt")
        return {}

    given = {"value": 1, "log": ["in"]}
    logging("a").add_node("spoil", spoil).add_edge(START, "spoil").add_edge("spoil", "a").compile().invoke(given)

    assert given == {"value": 1, "log": ["in"]}


class AddObject:
    def __call__(self, left, right):
        return left + right


@pytest.mark.parametrize("reducer", [partial(lambda left, right, times: left + right * times, times=1), AddObject()])
def test_case_10_a_shared_reducer_may_be_a_partial_or_an_object(reducer):
    first = TypedDict("first", {"x": Annotated[int, reducer]}, total=False)  # noqa: UP013 - of a parameter
    second = TypedDict("second", {"x": Annotated[int, reducer], "y": int}, total=False)  # noqa: UP013 - as above
    builder = StateGraph(first).add_node("a", writes({"x": 2}), input_schema=second).add_edge(START, "a")

    assert builder.compile().invoke({"x": 1}) == {"x": 3}


def test_case_10_two_different_lambdas_are_two_reducers():
    class Added(TypedDict):
        x: Annotated[int, lambda left, right: left + right]

    class Multiplied(TypedDict):
        x: Annotated[int, lambda left, right: left * right]

    builder = StateGraph(Added).add_node("a", writes({}), input_schema=Multiplied).add_edge(START, "a")

    with pytest.raises(SchemaError) as caught:
        builder.compile()
    says(caught.value, "'x'", "Added", "Multiplied")


def test_case_11_a_declared_default_is_where_a_reducer_field_starts():
    @dataclass
    class Data:
        n: Annotated[int, operator.add] = 10
        items: Annotated[list, operator.add] = field(default_factory=lambda: ["seed"])

    class Model(BaseModel):
        n: Annotated[int, operator.add] = 10
        items: Annotated[list, operator.add] = Field(default_factory=lambda: ["seed"])

    class Nullable(BaseModel):
        n: Annotated[int | None, operator.add] = 10
        items: Annotated[list | None, operator.add] = ["seed"]

    for schema in (Data, Model, Nullable):
        builder = StateGraph(schema).add_node("a", writes({"n": 5, "items": [1]})).add_edge(START, "a")
        for _ in range(2):
            assert builder.compile().invoke({}) == {"n": 15, "items": ["seed", 1]}


@may_warn
def test_case_12_a_map_and_two_joins_in_series_lose_nothing(door):
    builder = logging("split", "plain", "join1", "join2")
    builder.add_node("map", lambda arg: {"log": [arg]})
    builder.add_edge(START, "split").add_edge(START, "plain")
    builder.add_conditional_edges("split", lambda state: [Send("map", n) for n in range(3)], ["map"])
    builder.add_edge(["map"], "join1").add_edge(["join1", "plain"], "join2")

    assert door.invoke(builder.compile(), {})["log"] == ["split", "plain", 0, 1, 2, "join1", "join2"]


def test_case_12_a_join_in_a_loop_fires_in_every_round(door):
    builder = logging("a", "b", "c", "join").add_edge(START, "a").add_edge("a", "b").add_edge("a", "c")
    builder.add_edge(["b", "c"], "join")
    builder.add_conditional_edges("join", lambda state: END if state["log"].count("join") == 3 else "a", ["a", END])

    assert door.invoke(builder.compile(), {})["log"] == ["a", "b", "c", "join"] * 3


# --- Send and Command -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "result", [Command(goto="nope"), Command(goto=["note", "nope"]), Command(goto=Send("nope", 1))]
)
def test_case_14_a_goto_to_no_node_is_an_error(door, result):
    builder = logging("note").add_node("a", writes(result), destinations=["note"]).add_edge(START, "a")
    *states, error = door.stream(builder.compile(name="demo"), {}, stream_mode="values")

    assert isinstance(error, UnknownTargetError)
    says(error, "'a'", "'demo'", "'nope'", "Did you mean 'note'?")
    assert states == [{"log": []}]


@pytest.mark.parametrize("answer", ["nope", ["note", "nope"], Send("nope", 1)])
def test_case_14_a_path_to_no_node_is_an_error(door, answer):
    builder = logging("a", "note").add_edge(START, "a")
    builder.add_conditional_edges("a", lambda state: answer)
    *states, error = door.stream(builder.compile(name="demo"), {}, stream_mode="values")

    assert isinstance(error, UnknownTargetError)
    says(error, "'a'", "'demo'", "'nope'", "Did you mean 'note'?")
    assert states == [{"log": []}]


# --- Cancellation ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 3])
def test_case_42_a_run_is_cancelled_in_its_second_superstep_as_in_its_first(loop, width):
    begun, cancelled = [], []

    def first(state):
        return {"log": ["first"]}

    async def second(arg):
        begun.append(arg)
        scope.cancel()
        try:
            await anyio.sleep_forever()
        except BaseException:
            cancelled.append(arg)
            raise

    def third(state):
        begun.append("third")
        return {}

    builder = StateGraph(State).add_node("first", first).add_node("second", second).add_node("third", third)
    builder.add_edge(START, "first").add_edge("second", "third")
    builder.add_conditional_edges("first", lambda state: [Send("second", n) for n in range(width)], ["second"])
    graph = builder.compile(InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    scope = None

    async def main():
        nonlocal scope
        with anyio.CancelScope() as scope:
            await graph.ainvoke({}, config)
        return scope.cancelled_caught

    assert loop.run(main)
    assert sorted(begun) == sorted(cancelled)
    assert "third" not in begun
    snapshot = graph.get_state(config)
    assert (snapshot.values, snapshot.next) == ({"log": ["first"]}, ("second",) * width)


# --- Sync and async, threads, context variables -----------------------------------------------------------------------


def test_case_44_twenty_four_packets_run_at_once(door):
    together = threading.Barrier(24)

    def part(arg):
        together.wait(20)
        return {"log": [arg]}

    builder = StateGraph(State).add_node("part", part)
    builder.add_conditional_edges(START, lambda state: [Send("part", n) for n in range(24)], ["part"])

    assert door.invoke(builder.compile(), {})["log"] == list(range(24))


def test_case_44_max_concurrency_limits_sync_nodes(door):
    lock, pair = threading.Lock(), threading.Barrier(2)
    running, most = [], []

    def part(arg):
        with lock:
            running.append(arg)
            most.append(len(running))
        pair.wait(20)
        with lock:
            running.remove(arg)
        return {"log": [arg]}

    builder = StateGraph(State).add_node("part", part)
    builder.add_conditional_edges(START, lambda state: [Send("part", n) for n in range(24)], ["part"])
    result = door.invoke(builder.compile(), {}, {"max_concurrency": 2})

    assert result["log"] == list(range(24))
    assert max(most) == 2


def test_case_44_max_concurrency_limits_async_nodes(door):
    running, most = [], []

    async def part(arg):
        running.append(arg)
        for _ in range(5):
            most.append(len(running))
            await anyio.lowlevel.checkpoint()
        running.remove(arg)
        return {"log": [arg]}

    builder = StateGraph(State).add_node("part", part)
    builder.add_conditional_edges(START, lambda state: [Send("part", n) for n in range(24)], ["part"])
    result = door.invoke(builder.compile(), {}, {"max_concurrency": 2})

    assert result["log"] == list(range(24))
    assert max(most) == 2


async def later(state):
    return {"log": ["later"]}


def now(state):
    return {"log": ["now"]}


@pytest.mark.parametrize("actions", [[now, now], [later, later], [now, later], [later, now, later, now]])
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_case_48_every_mix_of_sync_and_async_nodes_runs_in_every_way(door, actions, parallel, executor):
    builder = StateGraph(State)
    names = [f"n{number}" for number in range(len(actions))]
    for name, action in zip(names, actions, strict=True):
        builder.add_node(name, action)
    for source, target in zip([START] * len(names) if parallel else [START, *names], names, strict=False):
        builder.add_edge(source, target)
    graph = builder.compile(executor=executor)
    expected = [action.__name__ for action in actions]

    assert door.invoke(graph, {})["log"] == expected
    assert door.stream(graph, {}, stream_mode="values")[-1]["log"] == expected


def counter():
    builder = StateGraph(State)
    builder.add_node("up", lambda state: {"value": state["value"] + 1, "log": [state["value"]]})
    builder.add_edge(START, "up")
    builder.add_conditional_edges("up", lambda state: END if state["value"] % 10 == 0 else "up", ["up", END])
    return builder.compile()


def expected_of(number):
    return {"value": 10 * number + 10, "log": list(range(10 * number, 10 * number + 10))}


def test_case_48_twenty_runs_at_once_in_threads_share_nothing():
    graph = counter()

    with ThreadPoolExecutor(20) as pool:
        results = list(pool.map(lambda number: graph.invoke({"value": 10 * number}), range(20)))
    assert results == [expected_of(number) for number in range(20)]


def test_case_48_twenty_runs_at_once_on_one_loop_share_nothing():
    graph = counter()

    async def main():
        return await asyncio.gather(*(graph.ainvoke({"value": 10 * number}) for number in range(20)))

    assert asyncio.run(main()) == [expected_of(number) for number in range(20)]


def test_case_48_a_run_leaves_nothing_behind_for_the_next():
    graph = counter()

    assert [graph.invoke({"value": 0}) for _ in range(3)] == [expected_of(0)] * 3


def test_case_48_async_nodes_of_a_sync_run_share_one_loop():
    loops = []

    async def note(state):
        loops.append(asyncio.get_running_loop())
        return {}

    builder = StateGraph(State).add_node("a", note).add_node("b", now).add_node("c", note)
    builder.add_edge(START, "a").add_edge("a", "b").add_edge("b", "c")
    builder.compile().invoke({})

    assert len(loops) == 2
    assert loops[0] is loops[1]


variable = contextvars.ContextVar("variable", default="default")


def test_case_48_context_variables_reach_nodes_and_do_not_leave_them(door):
    seen = []

    def sync_node(state):
        seen.append(variable.get())
        variable.set("spoilt")
        return {}

    async def async_node(state):
        return sync_node(state)

    builder = StateGraph(State)
    for name, action in {"a": sync_node, "b": async_node, "c": async_node, "d": sync_node, "e": sync_node}.items():
        builder.add_node(name, action)
    builder.add_edge(START, "a").add_edge("a", "b").add_edge("b", "c").add_edge("b", "d").add_edge("c", "e")
    token = variable.set("caller")
    try:
        door.invoke(builder.compile(), {})
        assert variable.get() == "caller"
    finally:
        variable.reset(token)
    assert seen == ["caller"] * 5


# --- Typing, schemas, pydantic state ----------------------------------------------------------------------------------


def test_case_51_an_undeclared_key_is_an_error(door):
    class Typo(TypedDict, total=False):
        x: int
        topic: int

    builder = StateGraph(Typo).add_node("a", writes({"x": 1, "topik": 2})).add_edge(START, "a")
    *states, error = door.stream(builder.compile(name="demo"), {"x": 0}, stream_mode="values")

    assert isinstance(error, InvalidUpdateError)
    says(error, "'a'", "'demo'", "'topik'", "Did you mean 'topic'?", "undeclared-key")
    assert states == [{"x": 0}]


class Model(BaseModel):
    a: float = 0.0
    name: str = ""

    @field_validator("name")
    @classmethod
    def upper(cls, value):
        return value.upper()


def test_case_52_a_wrong_output_of_the_last_node_fails_at_that_node(door):
    builder = StateGraph(Model).add_node("first", writes({"a": 2})).add_node("last", writes({"a": "foo"}))
    builder.add_edge(START, "first").add_edge("first", "last")
    *states, error = door.stream(builder.compile(name="demo"), {"a": 1.0}, stream_mode="values")

    assert isinstance(error, InvalidUpdateError)
    says(error, "'last'", "'demo'", "'a'", "float", "'foo'", "wrong-type")
    assert states == [{"a": 1.0, "name": ""}, {"a": 2.0, "name": ""}]


def test_case_52_what_a_validator_changes_is_kept(door):
    seen = []
    builder = StateGraph(Model).add_node("first", writes({"name": "ann"}))
    builder.add_node("last", lambda state: seen.append(state.name) or {})
    builder.add_edge(START, "first").add_edge("first", "last")

    assert door.invoke(builder.compile(), {"name": "bo"}) == {"a": 0.0, "name": "ANN"}
    assert seen == ["ANN"]


def test_case_53_the_first_parameter_may_have_any_name_and_kind():
    def positional(everything, /):
        return {"log": ["positional"]}

    def starred(*args):
        return {"log": ["starred"]}

    def defaulted(data=None):
        return {"log": ["defaulted"]}

    builder = StateGraph(State).add_sequence([positional, starred, defaulted]).add_edge(START, "positional")

    assert builder.compile().invoke({})["log"] == ["positional", "starred", "defaulted"]


def test_case_53_only_the_first_parameter_says_what_a_node_reads():
    class Narrow(TypedDict, total=False):
        value: int

    seen = []

    def node(state, extra: Narrow = None):
        seen.append(state)
        return {}

    StateGraph(State).add_node(node).add_edge(START, "node").compile().invoke({"value": 1, "way": "w"})

    assert seen == [{"log": [], "value": 1, "way": "w"}]


def test_case_53_the_first_router_sees_the_state_and_not_the_input_schema():
    class Given(TypedDict):
        value: int

    @dataclass
    class Full:
        value: int = 0
        way: str = "a"

    seen = []
    builder = StateGraph(Full, input_schema=Given).add_node("a", writes({}))
    builder.add_conditional_edges(START, lambda state: seen.append(state) or state.way, ["a"])
    builder.compile().invoke({"value": 3})

    assert seen == [Full(value=3, way="a")]


# --- Nodes that nothing reaches ---------------------------------------------------------------------------------------


def test_case_56_an_orphan_is_an_error_at_compile():
    with pytest.raises(UnreachableNodeError) as caught:
        logging("a", "orphan").add_edge(START, "a").compile(name="demo")

    says(caught.value, "'demo'", "'orphan'", "unreachable-node", "destinations=")


def test_case_56_what_a_declared_command_reaches_is_no_orphan():
    def go(state) -> Command[Literal["a"]]:
        return Command(goto="a")

    builder = logging("a").add_node(go).add_edge(START, "go")

    assert builder.compile().invoke({})["log"] == ["a"]


# --- Control by type alone --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [{"__overwrite__": {"x": 1}}, {"type": "__overwrite__", "value": {"x": 1}}])
def test_case_59_a_dict_that_looks_like_control_is_data(data):
    class Store(TypedDict, total=False):
        x: Annotated[dict, operator.or_]

    builder = StateGraph(Store).add_node("a", writes({"x": data})).add_edge(START, "a")

    assert builder.compile().invoke({"x": {"kept": 1}}) == {"x": {"kept": 1, **data}}


# --- (h) leaks, (i) cost ----------------------------------------------------------------------------------------------


def test_case_47_a_snapshot_of_an_early_step_is_not_kept_alive(door):
    class Snapshot(list):
        pass

    class Loose(TypedDict):
        log: Annotated[list, operator.add]
        way: Annotated[Any, Unchecked]

    born, alive = [], []

    def first(state):
        made = Snapshot()
        born.append(weakref.ref(made))
        return {"log": ["first"], "way": made}

    def step(state):
        gc.collect()
        alive.append(born[0]() is not None)
        return {"log": ["step"], "way": None}

    builder = StateGraph(Loose).add_node(first).add_node(step).add_edge(START, "first").add_edge("first", "step")
    builder.add_conditional_edges("step", lambda state: END if len(state["log"]) > 4 else "step", ["step", END])
    door.invoke(builder.compile(), {})

    assert alive == [True, False, False, False]


def calls_of_a_step(width):
    """Return how many Python calls a superstep takes beside so many fields and nodes that have nothing to do."""
    fields = {f"f{number}": int for number in range(width)}
    wide = TypedDict("wide", {"n": int, **fields})
    builder = StateGraph(wide).add_node("loop", lambda state: {"n": state["n"] + 1}).add_edge(START, "loop")
    for name in fields:
        builder.add_node(name, lambda state: {})
    builder.add_conditional_edges("loop", lambda state: END if state["n"] >= 20 else "loop", ["loop", END, *fields])
    graph = builder.compile()
    given = {"n": 0, **dict.fromkeys(fields, 0)}
    graph.invoke(given)
    counted = 0

    def count(frame, event, argument):
        nonlocal counted
        counted += event in {"call", "c_call"}

    totals = []
    for start in (0, 10):  # the cost of the input goes with its width: take it off
        counted = 0
        sys.setprofile(count)
        try:
            graph.invoke({**given, "n": start})
        finally:
            sys.setprofile(None)
        totals.append(counted)
    return totals[0] - totals[1]


def test_case_49_a_superstep_takes_the_same_calls_beside_ten_and_beside_a_thousand_idle_fields_and_nodes():
    assert calls_of_a_step(10) == calls_of_a_step(1_000)


def test_case_49_compiling_takes_calls_in_proportion_to_the_graph():
    def calls(size):
        builder = StateGraph(State)
        for number in range(size):
            builder.add_node(f"n{number}", lambda state: {})
            builder.add_edge(f"n{number - 1}" if number else START, f"n{number}")
        counted = 0

        def count(frame, event, argument):
            nonlocal counted
            counted += event in {"call", "c_call"}

        sys.setprofile(count)
        try:
            builder.compile()
        finally:
            sys.setprofile(None)
        return counted

    calls(10)
    small, large = calls(200), calls(2_000)
    assert large < small * 11
