"""What is stored of graphs inside a graph: fresh ones, those with a history of their own, those that store nothing."""

import operator
import threading
from collections import Counter
from dataclasses import dataclass
from typing import Annotated

import pytest
from typing_extensions import TypedDict

from pregel import START, Command, Overwrite, Send, StateGraph, add_messages, interrupt
from pregel.checkpoint.base import Advance, PutValue, ValueRow
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.owner import new_lease
from pregel.checkpoint.restore import pack_inherited, read_values
from pregel.codec import Codec, seal
from pregel.errors import (
    ConcurrentRunError,
    DecodeError,
    EncodeError,
    InvalidUpdateError,
    MissingCheckpointerError,
)
from pregel.graph.messages import REMOVE_ALL_MESSAGES, HumanMessage, RemoveMessage

CONFIG = {"configurable": {"thread_id": "t"}}
DURABILITIES = ["sync", "async", "exit"]


class State(TypedDict, total=False):
    log: Annotated[list, operator.add]
    turn: int


class Inner(TypedDict, total=False):
    log: Annotated[list, operator.add]
    count: Annotated[int, operator.add]


def counting(checkpointer=None, node=None):
    """Return a graph that counts its runs in a field of its own."""

    def count(state):
        return {"count": 1, "log": [f"run {state.get('count', 0)}"]}

    return StateGraph(Inner).add_node("count", node or count).add_edge(START, "count").compile(checkpointer)


def chain(**nodes):
    """Return a builder of nodes that run one after the other."""
    return StateGraph(State).add_sequence(list(nodes.items())).add_edge(START, next(iter(nodes)))


def fan(**nodes):
    """Return a builder of nodes that run in one superstep."""
    builder = StateGraph(State)
    for name, node in nodes.items():
        builder.add_node(name, node).add_edge(START, name)
    return builder


# -- the three kinds ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize(
    ("checkpointer", "runs", "names"),
    [(None, [0, 0, 0], 4), (True, [0, 1, 2], 2), (False, [0, 0, 0], 1)],
    ids=["fresh", "own", "none"],
)
def test_what_a_child_finds_of_its_earlier_runs(checkpointer, runs, names, durability, door):
    saver = InMemorySaver()
    graph = chain(child=counting(checkpointer)).compile(saver, durability=durability)
    for _ in runs:
        result = door.invoke(graph, {"log": []}, CONFIG)
    assert result["log"] == [f"run {number}" for number in runs]
    assert len(saver.namespaces("t", 0, ())) == (1 if durability == "exit" and not checkpointer else names)


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_child_with_a_history_goes_on_within_a_run_too(durability, door):
    builder = (
        StateGraph(State).add_node("child", counting(True)).add_node("step", lambda state: {"turn": state["turn"] + 1})
    )
    builder.add_edge(START, "child").add_edge("child", "step")
    builder.add_conditional_edges(
        "step", lambda state: "child" if state["turn"] % 3 else "__end__", ["child", "__end__"]
    )
    saver = InMemorySaver()
    graph = builder.compile(saver, durability=durability)
    for turn in (0, 3):
        result = door.invoke(graph, {"turn": turn, "log": []}, CONFIG)
    assert result["log"] == [f"run {number}" for number in range(6)]
    inner = graph.get_state({"configurable": {"thread_id": "t", "checkpoint_ns": ("child",)}})
    assert inner.values["count"] == 6


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_child_called_twice_in_a_function_has_two_histories(durability):
    child = counting(True)

    def call(state):
        results = [child.invoke({"log": []}), child.invoke({"log": []})]
        return {"log": [result["count"] for result in results]}

    graph = chain(call=call).compile(InMemorySaver(), durability=durability)
    assert graph.invoke({"log": []}, CONFIG) == {"log": [1, 1]}
    assert graph.invoke({"log": []}, CONFIG) == {"log": [1, 1, 2, 2]}


def test_a_child_in_two_nodes_at_once_has_a_history_in_each(door):
    child = counting(True)
    saver = InMemorySaver()
    graph = fan(one=child, two=child).compile(saver)
    door.invoke(graph, {"log": []}, CONFIG)
    assert door.invoke(graph, {"log": []}, CONFIG)["log"] == ["run 0", "run 0", "run 1", "run 1"]
    assert saver.namespaces("t", 0, ()) == [(), ("one",), ("two",)]


def test_a_child_with_a_history_sent_twice_is_refused_before_anything_runs(door):
    ran = []
    child = counting(True, lambda state: ran.append(1) or {"count": 1})
    packets = [Send("child", {"log": []}), Send("child", {"log": []})]
    builder = StateGraph(State).add_node("first", lambda state: {"log": ["first"]}).add_node("child", child)
    builder.add_edge(START, "first").add_conditional_edges("first", lambda state: packets, ["child"])
    graph = builder.compile(InMemorySaver())
    with pytest.raises(InvalidUpdateError, match="would run twice in superstep 2"):
        door.invoke(graph, {"log": []}, CONFIG)
    assert ran == []
    assert graph.get_state(CONFIG).next == ("first",)
    del packets[1]
    assert door.invoke(graph, None, CONFIG)["log"] == ["first"]
    assert ran == [1]


def test_two_tasks_of_one_name_that_call_one_history_at_once_are_refused():
    inside, leave = threading.Event(), threading.Event()

    def hold(state):
        inside.set()
        assert leave.wait(30)
        return {"count": 1}

    child = counting(True, hold)

    def call(number):
        if number:
            assert inside.wait(30)
            try:
                child.invoke({"log": []})
            finally:
                leave.set()
        return {"log": [str(child.invoke({"log": []})["count"])]}

    builder = StateGraph(State).add_node("call", call)
    builder.add_conditional_edges(START, lambda state: [Send("call", 0), Send("call", 1)], ["call"])
    graph = builder.compile(InMemorySaver())
    with pytest.raises(ConcurrentRunError, match="another task of this superstep is running it as 'call'"):
        graph.invoke({"log": []}, CONFIG)
    assert graph.get_state(CONFIG).values == {"log": []}


def test_a_child_with_a_history_needs_a_graph_around_that_is_stored():
    with pytest.raises(MissingCheckpointerError, match="has a history of its own"):
        chain(child=counting(True)).compile().invoke({"log": []})
    with pytest.raises(MissingCheckpointerError, match="has a history of its own"):
        counting(True).invoke({"log": []})


def test_a_saver_of_the_childs_own_is_used_for_a_thread_of_its_own_alone():
    own, outer = InMemorySaver(), InMemorySaver()
    child = counting(own)

    def call(state):
        child.invoke({"log": []}, CONFIG)
        child.invoke({"log": []}, {"configurable": {"thread_id": "other"}})
        return {"log": ["called"]}

    graph = chain(call=call).compile(outer)
    graph.invoke({"log": []}, CONFIG)
    assert [thread.thread_id for thread in own.threads()] == ["other"]
    assert [thread.thread_id for thread in outer.threads()] == ["t"]


# -- children that stop half-way ---------------------------------------------------------------------------------------


def counted(runs, name, fails=0):
    """Return a node that logs its name, counts its runs, and fails in the first of them."""

    def node(state):
        runs[name] += 1
        if runs[name] <= fails:
            raise ValueError(name)
        return {"log": [name]}

    return node


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("checkpointer", [None, True])
def test_a_child_that_failed_half_way_runs_only_what_is_left(checkpointer, durability, door):
    runs = Counter()
    child = chain(a=counted(runs, "a"), b=counted(runs, "b", fails=1), c=counted(runs, "c")).compile(checkpointer)
    graph = chain(first=counted(runs, "first"), child=child).compile(InMemorySaver(), durability=durability)
    with pytest.raises(ValueError, match="b"):
        door.invoke(graph, {"log": []}, CONFIG)
    assert door.invoke(graph, None, CONFIG) == {"log": ["first", "a", "b", "c"]}
    assert runs == {"first": 1, "a": 1, "b": 2, "c": 1}


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("checkpointer", [None, True])
def test_a_child_that_was_done_when_its_sibling_failed_is_not_run_again(checkpointer, durability, door):
    runs = Counter()
    child = chain(a=counted(runs, "a"), b=counted(runs, "b")).compile(checkpointer)
    graph = fan(child=child, sibling=counted(runs, "sibling", fails=1)).compile(InMemorySaver(), durability=durability)
    with pytest.raises(ValueError, match="sibling"):
        door.invoke(graph, {"log": []}, CONFIG)
    assert door.invoke(graph, None, CONFIG) == {"log": ["a", "b", "sibling"]}
    assert runs == {"a": 1, "b": 1, "sibling": 2}


@pytest.mark.parametrize("durability", DURABILITIES)
def test_children_in_two_nodes_of_which_one_fails(durability, door):
    runs = Counter()
    good = chain(a=counted(runs, "a"), b=counted(runs, "b")).compile()
    bad = chain(c=counted(runs, "c"), d=counted(runs, "d", fails=1)).compile()
    graph = fan(good=good, bad=bad).compile(InMemorySaver(), durability=durability)
    with pytest.raises(ValueError, match="d"):
        door.invoke(graph, {"log": []}, CONFIG)
    assert door.invoke(graph, None, CONFIG) == {"log": ["a", "b", "c", "d"]}
    assert runs == {"a": 1, "b": 1, "c": 1, "d": 2}


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_command_to_the_graph_around_after_a_pause(durability, door):
    def ask(state):
        return {"log": [interrupt("what?")]}

    def leave(state):
        return Command(graph=Command.PARENT, update={"log": ["up"]}, goto="after")

    child = chain(ask=ask, leave=leave, never=lambda state: {"log": ["never"]}).compile()
    builder = StateGraph(State).add_node("child", child, destinations=("after",))
    builder.add_node("after", lambda state: {"log": ["after"]}).add_edge(START, "child")
    graph = builder.compile(InMemorySaver(), durability=durability)
    door.invoke(graph, {"log": ["0"]}, CONFIG)
    result = door.invoke(graph, Command(resume="so"), CONFIG)
    assert result == {"log": ["0", "so", "up", "after"]}


# -- what a child takes over from the graph around ---------------------------------------------------------------------


class Talk(TypedDict, total=False):
    messages: Annotated[list, add_messages]
    note: str


def message(text):
    return HumanMessage(text.ljust(400, "."), id=text)


def talking(name, checkpointer=None, fails=0, inside=None):
    """Return a graph that adds a message, one half-way through that may fail, and another one."""
    runs = Counter()

    def first(state):
        return {"messages": [message(f"{name} first {len(state['messages'])}")]}

    def second(state):
        runs["second"] += 1
        if runs["second"] <= fails:
            raise ValueError(name)
        return {"messages": [message(f"{name} second {len(state['messages'])}")]}

    builder = StateGraph(Talk).add_node("first", first)
    nodes = [("second", inside or second)]
    return builder.add_sequence(nodes).add_edge(START, "first").add_edge("first", "second").compile(checkpointer)


def takes_over(saver, namespace):
    """Return the number of rows that only say that the graph around has the value."""
    rows = saver.values("t", [(0, 2**62)], namespace)
    return sum(b"BinaryOperatorAggregate" in row.blob and len(row.blob) < 60 for row in rows)


def texts(values):
    return [each.id for each in values["messages"]]


def a_talk(turns, child, saver):
    graph = StateGraph(Talk).add_node("child", child).add_edge(START, "child").compile(saver)
    results = []
    for turn in range(turns):
        given = {"messages": [message(f"{turn}")]}
        while given is None or not graph.get_state(CONFIG).next:
            try:
                results.append(graph.invoke(given, CONFIG))
                break
            except ValueError:
                given = None
    return graph, results


@pytest.mark.parametrize("checkpointer", [None, True])
@pytest.mark.parametrize("fails", [0, 3])
def test_shared_values_are_not_stored_again_and_read_as_they_were(checkpointer, fails):
    saver = InMemorySaver()
    graph, results = a_talk(8, talking("in", checkpointer, fails=fails), saver)
    plain, _ = a_talk(8, talking("in"), InMemorySaver())
    assert texts(results[-1]) == texts(plain.get_state(CONFIG).values)
    inner = [namespace for namespace in saver.namespaces("t", 0, ()) if namespace]
    assert any(takes_over(saver, namespace) for namespace in inner)
    for namespace in inner:
        config = {"configurable": {"thread_id": "t", "checkpoint_ns": namespace}}
        for state in graph.get_state_history(config):
            known = texts(state.values)
            assert known == texts(results[-1])[: len(known)]
            assert state.metadata["source"] != "input" or known[-1].isdigit()


def test_graphs_inside_graphs_inside_graphs_take_over_from_each_other():
    saver = InMemorySaver()
    deep = talking("middle", inside=talking("deep", fails=1))
    graph, results = a_talk(6, deep, saver)
    plain, _ = a_talk(6, talking("middle", inside=talking("deep")), InMemorySaver())
    assert texts(results[-1]) == texts(plain.get_state(CONFIG).values)
    innermost = [namespace for namespace in saver.namespaces("t", 0, ()) if len(namespace) == 2]
    assert len(innermost) == 6
    last = max(innermost, key=lambda namespace: saver.visible_checkpoint("t", [(0, 2**62)], namespace).seq)
    assert takes_over(saver, last)
    state = graph.get_state({"configurable": {"thread_id": "t", "checkpoint_ns": last}})
    assert texts(state.values) == texts(results[-1])


def test_a_fork_reads_what_a_child_took_over_before_it():
    saver = InMemorySaver()
    graph, _ = a_talk(6, talking("in", True), saver)
    middle = list(graph.get_state_history(CONFIG, filter={"source": "input"}))[2]
    before = texts(middle.values)
    forked = graph.invoke(None, middle.config)
    assert texts(forked)[: len(before)] == before
    again = graph.invoke({"messages": [message("again")]}, CONFIG)
    assert texts(again)[: len(before)] == before
    inner = graph.get_state({"configurable": {"thread_id": "t", "checkpoint_ns": ("child",)}})
    assert texts(inner.values) == texts(again)


@pytest.mark.parametrize("checkpointer", [None, True])
def test_pruning_keeps_what_a_child_took_over(checkpointer):
    saver = InMemorySaver()
    graph, results = a_talk(5, talking("in", checkpointer), saver)
    inner = [namespace for namespace in saver.namespaces("t", 0, ()) if namespace]
    before = {namespace: texts(graph.get_state(at(namespace)).values) for namespace in inner}
    assert texts(results[-1]) in before.values()
    # From here nothing that was stored of the outer messages is needed by the outer graph itself.
    everything = RemoveMessage(id=REMOVE_ALL_MESSAGES)
    graph.update_state(CONFIG, {"messages": [everything, message("all new")]}, as_node="child")
    assert saver.prune(keep_last=1)
    assert {namespace: texts(graph.get_state(at(namespace)).values) for namespace in inner} == before


def at(namespace):
    return {"configurable": {"thread_id": "t", "checkpoint_ns": namespace}}


@pytest.mark.parametrize("checkpointer", [None, True])
@pytest.mark.parametrize("depth", [1, 2])
def test_pruning_keeps_what_a_child_that_waits_owes_the_graph_around_it(checkpointer, depth, saver, door):
    """Its updates stand in its own checkpoints until it ends: those of its open run are none that may go."""

    def asks(state):
        return {"log": [interrupt("go on?")]}

    graph = chain(a=lambda _: {"log": ["a"]}, b=lambda _: {"log": ["b"]}, c=asks).compile(checkpointer)
    for _ in range(depth - 1):
        graph = chain(x=lambda _: {"log": ["x"]}, inner=graph).compile(checkpointer)
    outer = chain(first=lambda _: {"log": ["first"]}, child=graph).compile(saver)
    door.invoke(outer, {"log": []}, CONFIG)

    saver.prune(keep_last=1)

    result = door.invoke(outer, Command(resume="yes"), CONFIG)
    assert result["log"] == ["first", *["x"] * (depth - 1), "a", "b", "yes"]
    assert saver.prune(keep_last=1)


@pytest.mark.parametrize("namespace", [(), ("a",)])
def test_a_value_taken_over_from_nobody_is_an_error(namespace):
    saver, lease = InMemorySaver(), new_lease()
    saver.claim("t", lease, 10.0, lambda other: False)
    row = ValueRow(0, namespace, "field", 1, 1, True, seal(pack_inherited("Kind"), "t", 0, namespace, 1, "field"))
    saver.write("t", lease.token, [Advance(0, namespace, None, 1, 1), PutValue(row)])
    with pytest.raises(DecodeError, match="'field'"):
        read_values(saver, "t", [(0, 2**62)], namespace, Codec())


@dataclass
class Note:
    text: str


class Known(TypedDict, total=False):
    items: Annotated[list, operator.add]
    note: Note


class Unknown(TypedDict, total=False):
    items: Annotated[list, operator.add]


def test_a_value_that_the_child_could_not_read_is_refused_at_its_input():
    child = StateGraph(Unknown).add_node("add", lambda state: {"items": ["child"]}).add_edge(START, "add").compile()
    saver = InMemorySaver()
    graph = StateGraph(Known).add_node("child", child).add_edge(START, "child").compile(saver)
    assert graph.invoke({"items": ["x" * 2_000]}, CONFIG)["items"][-1] == "child"
    (namespace,) = [each for each in saver.namespaces("t", 0, ()) if each]
    assert takes_over(saver, namespace) == 1  # although the graph around knows a type that the child does not
    with pytest.raises(EncodeError, match=r"items\[0\]"):
        graph.invoke({"items": Overwrite([Note("x" * 2_000)])}, CONFIG)


def test_a_child_does_not_take_over_what_was_changed_in_place(door):
    child = StateGraph(Unknown).add_node("add", lambda state: {"items": ["child"]}).add_edge(START, "add").compile()

    def spoil(state):
        state["items"].append("in place")
        return {}

    builder = StateGraph(Unknown).add_node("spoil", spoil).add_node("child", child)
    saver = InMemorySaver()
    graph = builder.add_edge(START, "spoil").add_edge("spoil", "child").compile(saver)
    for _ in range(3):
        door.invoke(graph, {"items": ["x" * 2_000]}, CONFIG)
    assert graph.get_state(CONFIG).values["items"] == ["x" * 2_000, "child"] * 3
    for namespace in saver.namespaces("t", 0, ()):
        assert graph.get_state(at(namespace)).values["items"][-1] == "child"
