"""What a superstep is: one snapshot, one order, whole or not at all."""

import operator
import threading
from dataclasses import dataclass
from typing import Annotated, TypedDict

import anyio
import pytest
from pydantic import BaseModel

from pregel import END, START, Command, OmitFromOutput, Overwrite, PrivateStateAttr, Send, StateGraph
from pregel.channels import (
    AnyValue,
    BinaryOperatorAggregate,
    EphemeralValue,
    KeyedValue,
    LastValue,
    Topic,
    UntrackedValue,
)
from pregel.errors import (
    ConcurrentUpdateError,
    GraphRecursionError,
    InvalidConcurrentUpdateError,
    InvalidUpdateError,
    NodeInputError,
    PregelError,
    ReducerError,
)


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    value: int
    other: int
    secret: Annotated[int, PrivateStateAttr]


executors = pytest.mark.parametrize("executor", ["inline", "thread"])


def parallel(nodes, *, schema=State, after=True, executor="thread", **options):
    """Return a compiled graph that runs all nodes in superstep 1, then `after`, and the list of what `after` saw."""
    seen = []
    builder = StateGraph(schema, **options)
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(START, name)
    if after:
        builder.add_node("after", lambda state: seen.append(state) or {})
        for name in nodes:
            builder.add_edge(name, "after")
    return builder.compile(name="demo", executor=executor), seen


def writes(update):
    """Return a node that returns an update."""
    return lambda state: update


def raises(error):
    """Return a node that raises."""

    def node(state):
        raise error

    return node


def read(error, *words):
    """See that a message, notes included, holds the words."""
    text = "\n".join((str(error), *getattr(error, "__notes__", ())))
    for word in words:
        assert word in text, text


def fails(door, graph, seen, *, given=None, kind=InvalidUpdateError):
    """Run into an error at the first barrier, and see that the barrier changed nothing."""
    given = {"log": ["in"], "value": 0} if given is None else given
    *states, error = door.stream(graph, given, stream_mode="values")
    assert isinstance(error, kind), error
    assert states == [given]
    assert seen == []
    return error


# --- One snapshot -----------------------------------------------------------------------------------------------------


@executors
def test_all_tasks_see_the_state_of_the_last_barrier(door, executor):
    seen = {}

    def node(name):
        def body(state):
            seen[name] = dict(state)
            return {"log": [name], **({"value": 5} if name == "a" else {})}

        return body

    graph, after = parallel({name: node(name) for name in "abc"}, executor=executor)
    result = door.invoke(graph, {"log": ["in"], "value": 0})

    assert seen == {name: {"log": ["in"], "value": 0} for name in "abc"}
    assert after == [result] == [{"log": ["in", "a", "b", "c"], "value": 5}]


def test_a_dict_that_a_node_was_given_is_its_own(door):
    def spoil(state):
        state["value"] = 99
        state.pop("other", None)
        return {}

    seen = []
    graph, after = parallel({"a": spoil, "b": lambda state: seen.append(dict(state)) or {}}, executor="inline")
    given = {"value": 0, "other": 1}

    assert door.invoke(graph, given) == {"log": [], "value": 0, "other": 1}
    assert seen == after == [{"log": [], "value": 0, "other": 1}]
    assert given == {"value": 0, "other": 1}


# --- The order of application -----------------------------------------------------------------------------------------

NAMES = ["z", "Node10", "b", "Node2", "node1", "a", "Z"]


@executors
def test_updates_are_applied_in_the_order_in_which_nodes_were_added(door, executor):
    graph, _ = parallel({name: writes({"log": [name]}) for name in NAMES}, executor=executor)

    assert door.invoke(graph, {})["log"] == NAMES


def test_the_order_of_edges_plays_no_part():
    builder = StateGraph(State)
    for name in NAMES:
        builder.add_node(name, writes({"log": [name]}))
    for name in sorted(NAMES):
        builder.add_edge(START, name)

    assert builder.compile().invoke({})["log"] == NAMES


def test_the_order_in_which_a_path_names_them_plays_no_part():
    builder = StateGraph(State)
    for name in NAMES:
        builder.add_node(name, writes({"log": [name]}))
    builder.add_conditional_edges(START, lambda state: sorted(NAMES))

    assert builder.compile().invoke({})["log"] == NAMES


def test_the_order_of_completion_plays_no_part():
    done = {name: threading.Event() for name in ("first", "second")}

    def first(state):
        assert done["second"].wait(10)
        return {"log": ["first"]}

    def second(state):
        done["second"].set()
        return {"log": ["second"]}

    graph, _ = parallel({"first": first, "second": second})
    parts = list(graph.stream({}, stream_mode=["updates", "values"]))

    assert parts[1:3] == [("updates", {"second": {"log": ["second"]}}), ("updates", {"first": {"log": ["first"]}})]
    assert parts[3] == ("values", {"log": ["first", "second"]})


def test_the_order_of_completion_of_async_nodes_plays_no_part(door):
    class Gate:
        event = None

    async def first(state):
        await Gate.event.wait()
        return {"log": ["first"]}

    async def second(state):
        Gate.event.set()
        return {"log": ["second"]}

    async def begin(state):
        Gate.event = anyio.Event()
        return {}

    builder = StateGraph(State).add_node(begin).add_node(first).add_node(second)
    builder.add_edge(START, "begin").add_edge("begin", "first").add_edge("begin", "second")

    assert door.invoke(builder.compile(), {})["log"] == ["first", "second"]


@executors
def test_packets_come_after_nodes_by_sender_and_index(door, executor):
    def sender(name):
        return lambda state: Command(goto=[Send("part", f"{name}1"), "plain", Send("part", f"{name}0")])

    builder = StateGraph(State)
    builder.add_node("part", lambda arg: {"log": [arg]})
    for name in ("s10", "s9"):
        builder.add_node(name, sender(name), destinations=["part", "plain"])
        builder.add_edge(START, name)
    builder.add_node("plain", writes({"log": ["plain"]}))

    graph = builder.compile(executor=executor)
    assert door.invoke(graph, {})["log"] == ["plain", "s101", "s100", "s91", "s90"]


def test_packets_of_a_command_come_before_those_of_the_tasks_paths_in_order():
    builder = StateGraph(State)
    builder.add_node("go", lambda state: Command(goto=[Send("part", "c0"), Send("part", "c1")]), destinations=["part"])
    builder.add_node("part", lambda arg: {"log": [arg]})
    builder.add_edge(START, "go")
    builder.add_conditional_edges("go", lambda state: [Send("part", "p0")], ["part"])
    builder.add_conditional_edges("go", lambda state: [Send("part", "q0"), Send("part", "q1")], ["part"])

    assert builder.compile().invoke({})["log"] == ["c0", "c1", "p0", "q0", "q1"]


def test_packets_sent_by_packets_keep_the_order_of_their_senders():
    builder = StateGraph(State)
    builder.add_node("split", lambda arg: {})
    builder.add_node("leaf", lambda arg: {"log": [arg]})
    builder.add_node(
        "spread", lambda arg: Command(goto=[Send("leaf", f"{arg}{n}") for n in (1, 0)]), destinations=["leaf"]
    )
    builder.add_edge(START, "split")
    builder.add_conditional_edges("split", lambda state: [Send("spread", name) for name in "zay"], ["spread"])

    assert builder.compile().invoke({})["log"] == ["z1", "z0", "a1", "a0", "y1", "y0"]


def test_many_packets_are_applied_by_number_and_not_by_text():
    builder = StateGraph(State)
    builder.add_node("part", lambda arg: {"log": [str(arg)]})
    builder.add_conditional_edges(START, lambda state: [Send("part", n) for n in range(120)], ["part"])

    assert builder.compile().invoke({})["log"] == [str(n) for n in range(120)]


# --- Conflicts --------------------------------------------------------------------------------------------------------


@executors
def test_a_plain_field_written_by_two_nodes_names_everything_and_changes_nothing(door, executor):
    graph, seen = parallel(
        {"left": writes({"log": ["l"], "value": 111}), "right": writes({"value": 222})}, executor=executor
    )
    error = fails(door, graph, seen, kind=InvalidConcurrentUpdateError)

    assert isinstance(error, InvalidUpdateError)
    assert isinstance(error, ConcurrentUpdateError)
    assert isinstance(error, PregelError)
    read(error, "'demo'", "'value'", "'left'", "'right'", "111", "222", "reducer", "superstep 1")


def test_a_conflict_of_equal_values_is_a_conflict(door):
    graph, seen = parallel({"left": writes({"value": 1}), "right": writes({"value": 1})})

    read(fails(door, graph, seen, kind=InvalidConcurrentUpdateError), "'left'", "'right'")


def test_a_conflict_of_three_names_all():
    graph, seen = parallel({name: writes({"value": n}) for n, name in enumerate(["one", "two", "three"])})

    with pytest.raises(InvalidConcurrentUpdateError) as caught:
        graph.invoke({})
    read(caught.value, "'one'", "'two'", "'three'")
    assert seen == []


def test_a_conflict_of_two_packets_tells_them_apart():
    builder = StateGraph(State).add_node("part", lambda arg: {"value": arg})
    builder.add_conditional_edges(START, lambda state: [Send("part", 111), Send("part", 222)], ["part"])

    with pytest.raises(InvalidConcurrentUpdateError) as caught:
        builder.compile(name="demo").invoke({})
    read(caught.value, "'demo'", "'part'", "111", "222", "1:0:part", "1:1:part")


def test_one_writer_a_superstep_is_no_conflict(door):
    builder = StateGraph(State)
    builder.add_node("a", writes({"value": 1})).add_node("b", writes({"value": 2}))
    builder.add_edge(START, "a").add_edge("a", "b")

    assert door.invoke(builder.compile(), {"value": 0}) == {"log": [], "value": 2}


def test_a_long_value_is_shortened_in_the_message():
    class Text(TypedDict, total=False):
        text: str

    graph, _ = parallel({name: writes({"text": name * 10_000}) for name in ("x", "y")}, schema=Text)

    with pytest.raises(InvalidConcurrentUpdateError) as caught:
        graph.invoke({})
    assert len(str(caught.value)) < 1_000


def test_a_graph_that_failed_can_be_run_again():
    graph, seen = parallel({"left": lambda state: {"value": 1}, "right": lambda state: state["other"] and {"value": 2}})

    with pytest.raises(InvalidConcurrentUpdateError):
        graph.invoke({"other": 1})
    with pytest.raises(PregelError):
        graph.invoke({"other": 0})
    assert seen == []


# --- Overwrite --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 1, 2])
@executors
def test_overwrite_replaces_the_value_and_every_other_write_of_the_step(door, place, executor):
    updates = [["x"], ["y"]]
    updates.insert(place, Overwrite(["only"]))
    nodes = {f"n{index}": writes({"log": update}) for index, update in enumerate(updates)}
    graph, _ = parallel(nodes, executor=executor)

    assert door.invoke(graph, {"log": ["in"]})["log"] == ["only"]


@pytest.mark.parametrize("place", [0, 1])
def test_overwrite_decides_a_conflict_on_a_plain_field(place):
    updates = [5]
    updates.insert(place, Overwrite(7))
    graph, _ = parallel({f"n{index}": writes({"value": update}) for index, update in enumerate(updates)})

    assert graph.invoke({"value": 0})["value"] == 7


def test_updates_of_the_next_step_are_folded_into_what_was_overwritten():
    builder = StateGraph(State)
    builder.add_node("a", writes({"log": Overwrite(["new"])})).add_node("b", writes({"log": ["more"]}))
    builder.add_edge(START, "a").add_edge("a", "b")

    assert builder.compile().invoke({"log": ["in"]})["log"] == ["new", "more"]


@pytest.mark.parametrize(
    ("update", "shown"), [({"log": Overwrite(["x"])}, ["'log'", "['x']"]), ({"value": Overwrite(9)}, ["'value'", "9"])]
)
def test_two_overwrites_of_one_field_are_an_error_that_names_both_nodes(door, update, shown):
    graph, seen = parallel({"left": writes(update), "middle": writes({"other": 1}), "right": writes(dict(update))})

    read(fails(door, graph, seen), "'demo'", "'left'", "'right'", "Overwrite", *shown)


CHANNELS = {
    "plain": (int, 5),
    "last value": (Annotated[int, LastValue], 5),
    "any value": (Annotated[int, AnyValue], 5),
    "untracked": (Annotated[int, UntrackedValue], 5),
    "ephemeral": (Annotated[int, EphemeralValue], 5),
    "sum": (Annotated[int, operator.add], 5),
    "list": (Annotated[list, operator.add], [5]),
    "no neutral value": (Annotated[int, max], 5),
    "optional": (Annotated[list | None, operator.add], [5]),
    "initial": (Annotated[int, BinaryOperatorAggregate(operator.add, initial=1)], 5),
    "topic": (Annotated[list, Topic], [5]),
    "keyed": (Annotated[dict, KeyedValue], {"k": 5}),
}


@pytest.mark.parametrize(("annotation", "value"), [pytest.param(*case, id=name) for name, case in CHANNELS.items()])
@pytest.mark.parametrize("before", [False, True])
def test_the_wrapper_is_never_stored_on_any_channel(annotation, value, before):
    schema = TypedDict("schema", {"x": annotation}, total=False)  # noqa: UP013 - of a parameter
    graph, seen = parallel({"work": writes({"x": Overwrite(value)})}, schema=schema)
    graph.invoke({"x": value} if before else {})

    assert seen == [{"x": value}]
    assert type(seen[0]["x"]) is type(value)


# --- Reducers that raise ----------------------------------------------------------------------------------------------


def test_a_reducer_that_raises_names_field_node_and_both_types(door):
    def strict_join(left: list, right: object) -> list:
        if right == ["bad"]:
            raise RuntimeError("no such item")
        return left + right

    class Joined(TypedDict, total=False):
        log: Annotated[list, strict_join]
        value: int

    nodes = {
        "left": writes({"log": ["ok"], "value": 1}),
        "right": writes({"log": ["bad"]}),
        "x": writes({"log": ["x"]}),
    }
    graph, seen = parallel(nodes, schema=Joined)
    error = fails(door, graph, seen, kind=ReducerError)

    assert isinstance(error, InvalidUpdateError)
    assert isinstance(error.__cause__, RuntimeError)
    read(error, "'demo'", "'log'", "'right'", "list", "RuntimeError", "no such item")
    assert "'left'" not in str(error)


def test_a_reducer_of_operands_that_do_not_add_names_both_types(door):
    def add(left, right):
        return left + right

    class Loose(TypedDict, total=False):
        log: Annotated[list, add]
        value: int

    graph, seen = parallel({"left": writes({"log": ["a"]}), "right": writes({"log": 5})}, schema=Loose)
    error = fails(door, graph, seen, kind=ReducerError)

    assert isinstance(error.__cause__, TypeError)
    read(error, "'demo'", "'log'", "'right'", "int", "list", "TypeError")


def test_a_reducer_that_raises_at_the_input_names_the_input():
    def never(left, right):
        raise ValueError("never")

    class Never(TypedDict, total=False):
        log: Annotated[list, never]

    ran = []
    graph, _ = parallel({"work": lambda state: ran.append(1) or {}}, schema=Never)

    with pytest.raises(ReducerError) as caught:
        graph.invoke({"log": [1]})
    read(caught.value, "'demo'", "'log'", "the input", "ValueError", "never")
    assert ran == []


def test_a_reducer_that_raises_for_a_path_names_field_and_node(door):
    def never(left, right):
        if right == ["bad"]:
            raise ValueError("never")
        return left + right

    class Never(TypedDict, total=False):
        log: Annotated[list, never]
        value: int

    builder = StateGraph(Never).add_node("work", writes({"log": ["bad"]}))
    builder.add_edge(START, "work")
    builder.add_conditional_edges("work", lambda state: END)
    error = fails(door, builder.compile(name="demo"), [], kind=ReducerError)

    read(error, "'demo'", "'log'", "'work'", "ValueError", "superstep 1")


# --- Values that live for one superstep -------------------------------------------------------------------------------


def test_an_ephemeral_field_is_seen_in_the_next_superstep_and_then_gone(door):
    class Spark(TypedDict, total=False):
        spark: Annotated[int, EphemeralValue]
        value: int

    seen = []
    builder = StateGraph(Spark)
    builder.add_node("write", lambda state: seen.append(dict(state)) or {"spark": 2})
    builder.add_node("one", lambda state: seen.append(dict(state)) or {"value": 1})
    builder.add_node("two", lambda state: seen.append(dict(state)) or {})
    builder.add_edge(START, "write").add_edge("write", "one").add_edge("one", "two")

    assert door.invoke(builder.compile(), {"spark": 1}) == {"value": 1}
    assert seen == [{"spark": 1}, {"spark": 2}, {"value": 1}]


def test_an_ephemeral_field_is_cleared_though_nothing_else_changed():
    class Spark(TypedDict, total=False):
        spark: Annotated[int, EphemeralValue]

    builder = StateGraph(Spark).add_node("a", writes({})).add_node("b", writes({}))
    builder.add_edge(START, "a").add_edge("a", "b")

    assert list(builder.compile().stream({"spark": 1}, stream_mode="values")) == [{"spark": 1}, {}]


def test_two_writes_of_an_ephemeral_field_conflict():
    class Spark(TypedDict, total=False):
        spark: Annotated[int, EphemeralValue]

    graph, _ = parallel({"left": writes({"spark": 111}), "right": writes({"spark": 222})}, schema=Spark)

    with pytest.raises(InvalidConcurrentUpdateError) as caught:
        graph.invoke({})
    read(caught.value, "'spark'", "'left'", "'right'", "111", "222")


def test_a_topic_holds_what_the_last_superstep_published():
    class Box(TypedDict, total=False):
        box: Annotated[list[int], Topic]

    graph, seen = parallel({"a": writes({"box": 1}), "b": writes({"box": [2, 3]})}, schema=Box)

    assert graph.invoke({"box": 0}) == {"box": []}
    assert seen == [{"box": [1, 2, 3]}]


# --- Tasks that fail --------------------------------------------------------------------------------------------------


@executors
def test_one_failure_raises_the_bare_exception_with_notes(door, executor):
    error = LookupError("lost")
    graph, seen = parallel({"good": writes({"log": ["x"]}), "bad": raises(error)}, executor=executor)

    assert fails(door, graph, seen, kind=LookupError) is error
    read(error, "lost", "'demo'", "'bad'", "superstep 1", "1:1:bad")


def test_a_failure_of_an_async_node_carries_the_same_notes(door):
    async def bad(state):
        raise LookupError("lost")

    graph, seen = parallel({"good": writes({"log": ["x"]}), "bad": bad})

    read(fails(door, graph, seen, kind=LookupError), "'demo'", "'bad'", "superstep 1", "1:1:bad")


def test_a_task_that_is_alone_fails_with_the_same_notes(door):
    graph, seen = parallel({"bad": raises(LookupError("lost"))})

    read(fails(door, graph, seen, kind=LookupError), "'demo'", "'bad'", "superstep 1", "1:0:bad")


@executors
def test_siblings_of_a_failed_task_run_to_their_end(door, executor):
    ended = []
    nodes = {
        "bad": raises(LookupError("lost")),
        "one": lambda state: ended.append("one") or {"log": ["one"]},
        "two": lambda state: ended.append("two") or {"log": ["two"]},
    }
    graph, seen = parallel(nodes, executor=executor)

    fails(door, graph, seen, kind=LookupError)
    assert sorted(ended) == ["one", "two"]


def test_a_sibling_that_runs_when_another_fails_runs_to_its_end():
    failed = threading.Event()
    ended = []

    def bad(state):
        failed.set()
        raise LookupError("lost")

    def slow(state):
        assert failed.wait(10)
        ended.append("slow")
        return {}

    graph, _ = parallel({"bad": bad, "slow": slow})

    with pytest.raises(LookupError, match="lost"):
        graph.invoke({})
    assert ended == ["slow"]


def test_an_async_sibling_that_runs_when_another_fails_runs_to_its_end(door):
    ended = []

    async def bad(state):
        raise LookupError("lost")

    async def slow(state):
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        ended.append("slow")
        return {}

    graph, seen = parallel({"bad": bad, "slow": slow})

    fails(door, graph, seen, kind=LookupError)
    assert ended == ["slow"]


@executors
def test_several_failures_are_a_group_in_task_order_each_with_notes(door, executor):
    nodes = {"z": raises(LookupError("first")), "good": writes({"log": ["x"]}), "a": raises(OSError("second"))}
    graph, seen = parallel(nodes, executor=executor)
    group = fails(door, graph, seen, kind=ExceptionGroup)

    assert [(type(error), str(error)) for error in group.exceptions] == [(LookupError, "first"), (OSError, "second")]
    read(group, "2", "'demo'", "superstep 1")
    read(group.exceptions[0], "'demo'", "'z'", "superstep 1", "1:0:z")
    read(group.exceptions[1], "'demo'", "'a'", "superstep 1", "1:2:a")


def test_errors_of_the_library_beside_errors_of_nodes_are_in_the_group_too(door):
    graph, seen = parallel({"a": writes({"nope": 1}), "b": raises(OSError("second"))})
    group = fails(door, graph, seen, kind=ExceptionGroup)

    assert [type(error) for error in group.exceptions] == [InvalidUpdateError, OSError]
    read(group.exceptions[0], "'nope'", "'a'", "[undeclared-key]")


@pytest.mark.parametrize("kind", [StopIteration, StopAsyncIteration])
@pytest.mark.parametrize("form", ["sync", "async"])
def test_an_exception_that_generators_may_not_raise_still_says_where_it_came_from(door, kind, form):
    async def later(state):
        raise kind("over")

    graph, seen = parallel({"bad": raises(kind("over")) if form == "sync" else later})
    error = fails(door, graph, seen, kind=Exception)

    read(error, "'demo'", "'bad'", "superstep 1")


def test_a_value_without_a_text_can_be_in_conflict(door):
    class Shy:
        def __repr__(self):
            raise ValueError("no text")

    class Loose(TypedDict, total=False):
        value: object

    graph, seen = parallel({"left": lambda state: {"value": Shy()}, "right": writes({"value": 222})}, schema=Loose)
    error = fails(door, graph, seen, given={"value": 0}, kind=InvalidConcurrentUpdateError)

    read(error, "'value'", "'left'", "'right'", "Shy", "222")


def test_packets_of_one_node_that_fail_are_told_apart_by_their_tasks():
    def part(arg):
        raise ValueError(f"part {arg}")

    builder = StateGraph(State).add_node(part)
    builder.add_conditional_edges(START, lambda state: [Send("part", n) for n in range(3)], ["part"])

    with pytest.raises(ExceptionGroup) as caught:
        builder.compile(name="demo").invoke({})
    for number, error in enumerate(caught.value.exceptions):
        read(error, f"part {number}", "'part'", f"1:{number}:part")


def test_the_same_exception_object_raised_in_two_runs_is_noted_once_a_task():
    error = LookupError("lost")
    graph, _ = parallel({"bad": raises(error)})
    for _ in range(2):
        with pytest.raises(LookupError):
            graph.invoke({})

    assert len(error.__notes__) == 1


@pytest.mark.parametrize("where", ["compile", "call"])
def test_on_failure_cancel_starts_no_further_task(door, where):
    ran = []
    builder = StateGraph(State)
    builder.add_node("bad", raises(LookupError("lost")))
    builder.add_node("good", lambda state: ran.append("good") or {})
    builder.add_edge(START, "bad").add_edge(START, "good")
    graph = builder.compile(name="demo", executor="inline", on_failure="cancel" if where == "compile" else "finish")
    options = {"on_failure": "cancel"} if where == "call" else {}

    with pytest.raises(LookupError) as caught:
        door.invoke(graph, {}, **options)
    read(caught.value, "lost", "'demo'", "'bad'")
    assert ran == []


def test_on_failure_finish_at_the_call_takes_back_cancel():
    ran = []
    builder = StateGraph(State)
    builder.add_node("bad", raises(LookupError("lost")))
    builder.add_node("good", lambda state: ran.append("good") or {})
    builder.add_edge(START, "bad").add_edge(START, "good")

    with pytest.raises(LookupError):
        builder.compile(executor="inline", on_failure="cancel").invoke({}, on_failure="finish")
    assert ran == ["good"]


def test_on_failure_cancel_cancels_async_siblings_that_wait(door):
    ended = []

    async def bad(state):
        await anyio.lowlevel.checkpoint()
        raise LookupError("lost")

    async def waits(state):
        try:
            with anyio.fail_after(20):  # a run that waits for it fails the test instead of hanging it
                await anyio.Event().wait()
        except anyio.get_cancelled_exc_class():
            ended.append("cancelled")
            raise
        return {}

    graph, _ = parallel({"bad": bad, "waits": waits})

    with pytest.raises(LookupError) as caught:
        door.invoke(graph, {}, on_failure="cancel")
    read(caught.value, "lost", "'demo'", "'bad'", "superstep 1")
    assert ended == ["cancelled"]


def test_parts_made_before_a_failure_are_streamed(door):
    graph, _ = parallel({"good": writes({"log": ["x"]}), "bad": raises(LookupError("lost"))}, executor="inline")
    *parts, error = door.stream(graph, {}, stream_mode="updates")

    assert parts == [{"good": {"log": ["x"]}}]
    assert isinstance(error, LookupError)


# --- A barrier that fails ---------------------------------------------------------------------------------------------


def test_a_barrier_that_fails_in_a_later_step_leaves_the_state_of_the_last_one(door):
    builder = StateGraph(State)
    builder.add_node("first", writes({"log": ["first"], "other": 1, "secret": 5}))
    builder.add_node("left", writes({"log": ["left"], "value": 1, "other": 2}))
    builder.add_node("right", writes({"log": ["right"], "value": 2}))
    builder.add_edge(START, "first").add_edge("first", "left").add_edge("first", "right")
    *states, error = door.stream(builder.compile(name="demo"), {}, stream_mode="values")

    assert states == [{"log": []}, {"log": ["first"], "other": 1}]
    assert isinstance(error, InvalidConcurrentUpdateError)
    read(error, "'left'", "'right'", "'value'", "superstep 2")


def test_a_list_folded_before_the_barrier_failed_is_not_changed():
    held = []
    nodes = {"left": writes({"log": ["x"], "value": 1}), "right": writes({"log": ["y"], "value": 2})}
    builder = StateGraph(State)
    builder.add_node("hold", lambda state: held.append(state["log"]) or {})
    builder.add_edge(START, "hold")
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge("hold", name)

    with pytest.raises(InvalidConcurrentUpdateError):
        builder.compile().invoke({"log": ["in"]})
    assert held == [["in"]]


# --- The recursion limit ----------------------------------------------------------------------------------------------


def counting(end):
    """Return a graph that runs one node `end` times, and the list that it counts in."""
    ran = []

    def tick(state):
        ran.append(1)
        return {"value": state.get("value", 0) + 1, "secret": len(ran)}

    builder = StateGraph(State).add_node(tick).add_edge(START, "tick")
    builder.add_conditional_edges("tick", lambda state: END if state["value"] >= end else "tick", ["tick", END])
    return builder.compile(name="demo"), ran


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_a_limit_of_n_allows_n_supersteps(door, limit):
    graph, ran = counting(limit)

    assert door.invoke(graph, {}, {"recursion_limit": limit}) == {"log": [], "value": limit}
    assert len(ran) == limit


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_a_limit_of_n_allows_no_more_and_the_error_carries_the_state(door, limit):
    graph, ran = counting(limit + 1)
    *states, error = door.stream(graph, {}, {"recursion_limit": limit}, stream_mode="values")

    assert isinstance(error, GraphRecursionError)
    assert isinstance(error, RecursionError)
    assert isinstance(error, PregelError)
    read(error, "'demo'", "'tick'", str(limit), "recursion_limit")
    assert error.state == {"log": [], "value": limit, "secret": limit}
    assert states[-1] == {"log": [], "value": limit}
    assert len(ran) == limit


def test_the_default_limit_is_ten_thousand():
    graph, ran = counting(10_001)

    with pytest.raises(GraphRecursionError, match="10000"):
        graph.invoke({})
    assert len(ran) == 10_000


def test_a_deferred_node_that_is_held_counts_as_due():
    builder = StateGraph(State).add_node("a", writes({"log": ["a"]})).add_node("b", writes({"log": ["b"]}), defer=True)
    builder.add_edge(START, "a").add_edge(START, "b")
    graph = builder.compile(name="demo")

    assert graph.invoke({}, {"recursion_limit": 2})["log"] == ["a", "b"]
    with pytest.raises(GraphRecursionError) as caught:
        graph.invoke({}, {"recursion_limit": 1})
    read(caught.value, "'b'")
    assert caught.value.state == {"log": ["a"]}


# --- Fields without a value -------------------------------------------------------------------------------------------


def test_a_node_that_reads_an_absent_field_is_told_who_could_have_written_it(door):
    class Value(TypedDict, total=False):
        value: int

    class Log(TypedDict, total=False):
        log: list[str]

    def makes(state) -> Value:
        return {}

    def unrelated(state) -> Log:
        return {}

    def reads(state) -> Log:
        return {"log": [str(state["value"])]}

    builder = StateGraph(State).add_node(makes).add_node(unrelated).add_node(reads)
    builder.add_edge(START, "unrelated").add_edge("unrelated", "reads").add_edge("reads", "makes")
    *states, error = door.stream(builder.compile(name="demo"), {}, stream_mode="values")

    assert isinstance(error, KeyError)
    read(error, "'demo'", "'reads'", "'value'", "'makes'", "superstep 2")
    (note,) = [note for note in error.__notes__ if "'value'" in note]
    assert "'unrelated'" not in note
    assert states == [{"log": []}]


def test_a_node_that_reads_an_absent_private_field_is_told_too():
    graph, _ = parallel({"reads": lambda state: {"value": state["secret"]}})

    with pytest.raises(KeyError) as caught:
        graph.invoke({})
    read(caught.value, "'secret'", "'reads'")


def test_a_path_that_reads_an_absent_field_is_told_who_could_have_written_it():
    builder = StateGraph(State).add_node("work", writes({}))
    builder.add_edge(START, "work")
    builder.add_conditional_edges("work", lambda state: END if state["value"] else "work", ["work", END])

    with pytest.raises(KeyError) as caught:
        builder.compile(name="demo").invoke({})
    (note,) = [note for note in caught.value.__notes__ if "'value'" in note]
    for word in ("'work'", "value"):
        assert word in note


@pytest.mark.parametrize("key", ["nothing", 5])
def test_another_key_error_gets_no_such_note(key):
    graph, _ = parallel({"reads": lambda state: {"value": {}[key]}})

    with pytest.raises(KeyError) as caught:
        graph.invoke({})
    assert len(caught.value.__notes__) == 1


def test_a_key_error_of_a_mapping_of_the_nodes_own_gets_no_such_note_where_the_field_is_there():
    graph, _ = parallel({"reads": lambda state: {"value": {}["value"]}})

    with pytest.raises(KeyError) as caught:
        graph.invoke({"value": 1})
    assert len(caught.value.__notes__) == 1


def test_a_key_that_a_packets_argument_lacks_is_not_said_to_be_absent_from_the_state():
    builder = StateGraph(State).add_node("part", lambda arg: {"other": arg["value"]})
    builder.add_conditional_edges(START, lambda state: Send("part", {"other": 1}), ["part"])

    with pytest.raises(KeyError) as caught:
        builder.compile(name="demo").invoke({"value": 5})
    assert not [note for note in caught.value.__notes__ if "no value yet" in note]


@dataclass
class Needs:
    value: int


class NeedsModel(BaseModel):
    value: int


@pytest.mark.parametrize("schema", [Needs, NeedsModel])
def test_an_instance_that_can_not_be_built_is_a_named_error_and_siblings_finish(door, schema):
    ran = []
    builder = StateGraph(State)
    builder.add_node("needs", lambda state: ran.append("needs") or {}, input_schema=schema)
    builder.add_node("sibling", lambda state: ran.append("sibling") or {})
    builder.add_edge(START, "needs").add_edge(START, "sibling")
    error = fails(door, builder.compile(name="demo"), [], given={"log": ["in"]}, kind=NodeInputError)

    read(error, "'demo'", "'needs'", schema.__name__, "'value'", "superstep 1")
    assert ran == ["sibling"]


# --- What a reducer field starts with ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotation", "update", "expected"),
    [
        (Annotated[int, operator.add], 5, 5),
        (Annotated[int, max], -5, -5),
        (Annotated[int, min], 5, 5),
        (Annotated[int, operator.mul], 5, 5),
        (Annotated[set, set.intersection], {1, 2}, {1, 2}),
        (Annotated[set, set.union], {1, 2}, {1, 2}),
        (Annotated[int, BinaryOperatorAggregate(operator.add, initial=10)], 5, 15),
        (Annotated[str, operator.add], "x", "x"),
    ],
)
def test_a_first_write_meets_a_neutral_value_or_is_stored_as_it_is(annotation, update, expected):
    schema = TypedDict("schema", {"x": annotation}, total=False)  # noqa: UP013 - of a parameter
    graph, seen = parallel({"work": writes({"x": update})}, schema=schema)

    assert graph.invoke({}) == {"x": expected}
    assert seen == [{"x": expected}]


def test_a_declared_start_is_each_runs_own():
    class Seeded(TypedDict, total=False):
        items: Annotated[list, BinaryOperatorAggregate(operator.add, initial=["seed"])]

    def spoil(state):
        state["items"].append("spoilt")
        return {}

    graph, seen = parallel({"spoil": spoil}, schema=Seeded)
    graph.invoke({})
    seen.clear()
    clean = StateGraph(Seeded).add_node("clean", writes({"items": ["x"]})).add_edge(START, "clean").compile()

    assert clean.invoke({}) == {"items": ["seed", "x"]}


def test_a_hidden_field_counts_in_a_conflict():
    class Hidden(TypedDict, total=False):
        hidden: Annotated[int, OmitFromOutput]

    graph, seen = parallel({"left": writes({"hidden": 111}), "right": writes({"hidden": 222})}, schema=Hidden)

    with pytest.raises(InvalidConcurrentUpdateError) as caught:
        graph.invoke({"hidden": 1})
    read(caught.value, "'hidden'", "'left'", "'right'", "111", "222")
    assert seen == []
