"""The state of graphs inside a graph: read with it or by their own configs, live and finished, and changed."""

import operator
from typing import Annotated, TypedDict

import pytest

from pregel import START, Command, StateGraph
from pregel.errors import CheckpointNotFoundError, InvalidConfigError, InvalidUpdateError
from pregel.runtime import interrupt
from pregel.types import Interrupt
from tests.state_api import THREAD, call, ids, rows


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    n: int


def prepare(state: State):
    return {"log": ["prepared"], "n": 1}


def ask(state: State):
    return {"log": [interrupt("what?")]}


def conclude(state: State):
    return {"log": [f"concluded {state['n']}"]}


def asking(checkpointer=None):
    return StateGraph(State).add_sequence([prepare, ask, conclude]).add_edge(START, "prepare").compile(checkpointer)


def around(node, checkpointer=None, name="inner"):
    return StateGraph(State).add_node(name, node).add_edge(START, name).compile(checkpointer)


NS = ("inner:1:0:inner",)


def test_a_paused_child_is_read_with_its_parent(door, saver):
    graph = around(asking(), saver)
    door.invoke(graph, {"n": 0}, THREAD)
    shallow = call(door, graph, "get_state", THREAD)
    assert shallow.values == {"log": [], "n": 0}
    (task,) = shallow.tasks
    assert task.interrupts == (Interrupt("what?", "inner:1:0:inner|2:0:ask#0"),)
    assert task.state == {"configurable": {"thread_id": "t", "checkpoint_id": "0.1", "checkpoint_ns": NS}}
    deep = call(door, graph, "get_state", THREAD, subgraphs=True)
    assert deep._replace(tasks=()) == shallow._replace(tasks=())
    child = deep.tasks[0].state
    assert (child.values, child.next, child.interrupts) == ({"log": ["prepared"], "n": 1}, ("ask",), task.interrupts)
    assert child.config == task.state
    for config in (task.state, {"configurable": {"thread_id": "t", "checkpoint_ns": NS}}):
        assert call(door, graph, "get_state", config) == child


def test_a_child_that_has_not_begun_has_no_state(door, saver):
    graph = around(asking(), saver)
    call(door, graph, "update_state", THREAD, {"n": 0}, START)
    assert call(door, graph, "get_state", THREAD, subgraphs=True).tasks[0].state is None
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": NS}}
    unknown = {"configurable": {"thread_id": "u", "checkpoint_ns": NS}}
    for each in (config, unknown):
        assert call(door, graph, "get_state", each) == ({}, (), each, None, None, None, (), ())
    with pytest.raises(CheckpointNotFoundError, match="has not begun"):
        call(door, graph, "update_state", config, {"n": 1})


def test_a_finished_child_is_read_where_it_was_due(door, saver):
    graph = around(asking(), saver)
    door.invoke(graph, {"n": 0}, THREAD)
    door.invoke(graph, Command(resume="yes"), THREAD)
    assert call(door, graph, "get_state", THREAD).tasks == ()
    old = {"configurable": {"thread_id": "t", "checkpoint_id": "0.0"}}
    child = call(door, graph, "get_state", old, subgraphs=True).tasks[0].state
    assert (child.values["log"], child.next) == (["prepared", "yes", "concluded 1"], ())
    told = call(door, graph, "get_state_history", {"configurable": {"thread_id": "t", "checkpoint_ns": NS}})
    assert [shown.next for shown in told] == [(), ("conclude",), ("ask",), ("prepare",)]
    newer = call(door, graph, "get_state_history", told[0].config, before=told[1].config)
    assert [shown.next for shown in newer] == [("ask",), ("prepare",)]
    assert told[0].parent_config == told[1].config


def test_two_levels_are_read_at_once(door, saver):
    graph = around(around(asking(), name="middle"), saver, name="outer")
    door.invoke(graph, {"n": 0}, THREAD)
    middle = call(door, graph, "get_state", THREAD, subgraphs=True).tasks[0].state
    inner = middle.tasks[0].state
    assert (middle.next, inner.next, inner.values["log"]) == (("middle",), ("ask",), ["prepared"])
    assert inner.config["configurable"]["checkpoint_ns"] == ("outer:1:0:outer", "middle:1:0:middle")
    assert call(door, graph, "get_state", inner.config) == inner
    assert call(door, graph, "get_state", middle.config).tasks[0].state == inner.config


def count(state: State):
    return {"n": state.get("n", 0) + 1}


class Remembered(TypedDict, total=False):
    count: int
    seen: int


def counting():
    """A graph that counts its runs in a field of its own."""

    def step(state: Remembered):
        return {"count": state.get("count", 0) + 1}

    def tell(state: Remembered):
        return {"seen": state["count"]}

    return StateGraph(Remembered).add_sequence([step, tell]).add_edge(START, "step").compile(checkpointer=True)


class Seen(TypedDict, total=False):
    seen: int
    ran: Annotated[int, operator.add]


def with_memory(saver, **options):
    builder = StateGraph(Seen).add_node("memory", counting()).add_node("after", lambda _: {"ran": 1})
    return builder.add_edge(START, "memory").add_edge("memory", "after").compile(saver, **options)


@pytest.mark.parametrize("durability", ["sync", "async"])
def test_a_child_with_a_history_shows_at_each_checkpoint_what_it_held_then(door, saver, durability):
    graph = with_memory(saver, durability=durability)
    for _ in range(3):
        door.invoke(graph, {}, THREAD)
    dues = [shown for shown in graph.get_state_history(THREAD) if shown.next == ("memory",)]
    counts = [
        call(door, graph, "get_state", shown.config, subgraphs=True).tasks[0].state.values["count"] for shown in dues
    ]
    assert counts == [3, 2, 1]
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": ("memory",)}}
    assert call(door, graph, "get_state", config).values == {"count": 3, "seen": 3}


def test_where_only_the_end_of_a_run_is_stored_its_child_is_found_all_the_same(door, saver):
    graph = with_memory(saver, durability="exit")
    door.invoke(graph, {}, THREAD, interrupt_before=["memory"])
    for given in (None, {}):
        door.invoke(graph, given, THREAD)
    assert ids(call(door, graph, "get_state_history", THREAD)) == ["0.5", "0.2", "0.0"]
    old = {"configurable": {"thread_id": "t", "checkpoint_id": "0.0"}}
    assert call(door, graph, "get_state", old, subgraphs=True).tasks[0].state.values == {"count": 1, "seen": 1}


def test_a_fork_reads_the_history_that_its_child_had(door, saver):
    graph = with_memory(saver)
    for _ in range(3):
        door.invoke(graph, {}, THREAD)
    second = next(each for each in graph.get_state_history(THREAD) if each.next == () and each.values["ran"] == 2)
    assert door.invoke(graph, {}, second.config) == {"seen": 3, "ran": 3}
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": ("memory",)}}
    assert call(door, graph, "get_state", config).config["configurable"]["checkpoint_id"].startswith("1.")
    first = next(each for each in graph.get_state_history(THREAD) if each.next == () and each.values["ran"] == 1)
    fork = call(door, graph, "update_state", first.config, {"ran": 10})
    assert call(door, graph, "get_state", config).values == {"count": 1, "seen": 1}  # as the newest branch sees it
    call(door, graph, "update_state", config, {"count": 100})
    assert door.invoke(graph, {}, fork) == {"seen": 101, "ran": 12}
    assert door.invoke(graph, {}, {"configurable": {"thread_id": "t", "checkpoint_id": "1.8"}})["seen"] == 4


def test_a_child_is_changed_and_goes_on_from_there(door, saver):
    graph = around(asking(), saver)
    door.invoke(graph, {"n": 0}, THREAD)
    child = call(door, graph, "get_state", THREAD).tasks[0].state
    config = call(door, graph, "update_state", child, {"log": ["by hand"], "n": 5})
    shown = call(door, graph, "get_state", config)
    assert (shown.values, shown.next) == ({"log": ["prepared", "by hand"], "n": 5}, ("ask",))
    assert shown.metadata["source"] == "update"
    assert door.invoke(graph, None, THREAD)["__interrupt__"] == list(shown.interrupts)  # it asks the same
    assert door.invoke(graph, Command(resume="yes"), THREAD) == {
        "log": ["prepared", "by hand", "yes", "concluded 5"],
        "n": 5,
    }


def test_a_child_whose_question_is_taken_from_it_goes_on_without_an_answer(door, saver):
    graph = around(asking(), saver)
    door.invoke(graph, {"n": 0}, THREAD)
    child = call(door, graph, "get_state", THREAD).tasks[0].state
    call(door, graph, "update_state", child, {"log": ["answered"]}, "ask")
    shown = call(door, graph, "get_state", THREAD, subgraphs=True)
    assert (shown.next, shown.interrupts, shown.tasks[0].state.next) == (("inner",), (), ("conclude",))
    assert door.invoke(graph, None, THREAD)["log"] == ["prepared", "answered", "concluded 1"]


def test_so_does_one_two_levels_down_and_its_sibling_is_not_run_again(door, saver):
    runs = []

    def beside(state: State):
        runs.append(1)
        return {"log": ["beside"]}

    builder = StateGraph(State).add_node("outer", around(asking(), name="middle")).add_node(beside)
    graph = builder.add_edge(START, "outer").add_edge(START, "beside").compile(saver)
    door.invoke(graph, {"n": 0}, THREAD)
    inner = call(door, graph, "get_state", THREAD, subgraphs=True).tasks[0].state.tasks[0].state
    call(door, graph, "update_state", inner.config, {"log": ["answered"]}, "ask")
    assert call(door, graph, "get_state", THREAD).tasks[1].result == {"log": ["beside"]}
    assert door.invoke(graph, None, THREAD)["log"] == ["prepared", "answered", "concluded 1", "beside"]
    assert runs == [1]


def test_a_finished_child_of_an_open_superstep_gives_what_it_was_changed_to(door, saver):
    failures = [LookupError("once")]

    def bad(state: State):
        if failures:
            raise failures.pop()
        return {}

    inner = StateGraph(State).add_node(prepare).add_edge(START, "prepare").compile()
    builder = StateGraph(State).add_node("inner", inner).add_node(bad).add_edge(START, "inner").add_edge(START, "bad")
    graph = builder.compile(saver)
    with pytest.raises(LookupError):
        door.invoke(graph, {"log": ["in"]}, THREAD)
    call(door, graph, "update_state", call(door, graph, "get_state", THREAD).tasks[0].state, {"log": ["more"]})
    assert door.invoke(graph, None, THREAD)["log"] == ["in", "prepared", "more"]


class Private(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    own: int


def test_a_field_that_only_the_child_has_stays_there(door, saver):
    def wait(state: Private):
        return {"log": [f"{interrupt('?')} {state['own']}"]}

    inner = StateGraph(Private).add_node(wait).add_edge(START, "wait").compile()
    graph = around(inner, saver)
    door.invoke(graph, {"log": []}, THREAD)
    call(door, graph, "update_state", call(door, graph, "get_state", THREAD).tasks[0].state, {"own": 3})
    assert door.invoke(graph, Command(resume="yes"), THREAD) == {"log": ["yes 3"]}


def test_bad_updates_and_bad_paths_change_nothing(door, saver):
    graph = around(asking(), saver)
    door.invoke(graph, {"n": 0}, THREAD)
    before = rows(saver)
    child = call(door, graph, "get_state", THREAD).tasks[0].state
    with pytest.raises(InvalidUpdateError):
        call(door, graph, "update_state", child, {"n": "x"})
    with pytest.raises(InvalidUpdateError, match="Did you mean 'ask'"):
        call(door, graph, "update_state", child, {"n": 1}, "asks")
    lost = {"configurable": {"thread_id": "t", "checkpoint_ns": ("iner:1:0:iner",)}}
    with pytest.raises(InvalidConfigError, match="Did you mean 'inner'"):
        call(door, graph, "get_state", lost)
    old = {"configurable": {**child["configurable"], "checkpoint_id": "0.0"}}
    with pytest.raises(CheckpointNotFoundError, match="not its newest one"):
        call(door, graph, "update_state", old, {"n": 1})
    none = {"configurable": {**child["configurable"], "checkpoint_id": "0.7"}}
    with pytest.raises(CheckpointNotFoundError, match=r"no checkpoint '0\.7' of the graph"):
        call(door, graph, "get_state", none)
    assert rows(saver) == before


def test_runs_begin_at_the_outermost_graph(door, saver):
    graph = around(asking(), saver)
    door.invoke(graph, {"n": 0}, THREAD)
    with pytest.raises(InvalidConfigError, match="outermost"):
        door.invoke(graph, None, call(door, graph, "get_state", THREAD).tasks[0].state)


def test_a_child_asked_on_another_branch_is_another_one(door, saver):
    graph = around(asking(), saver)
    door.invoke(graph, {"n": 0}, THREAD)
    call(door, graph, "update_state", THREAD, {"n": 0})
    door.invoke(graph, None, {"configurable": {"thread_id": "t", "checkpoint_id": "0.0"}})
    here, there = (
        call(door, graph, "get_state", {"configurable": {"thread_id": "t", "checkpoint_id": number}}).tasks[0].state
        for number in ("0.1", "1.0")
    )
    assert (here["configurable"]["checkpoint_id"], there["configurable"]["checkpoint_id"]) == ("0.1", "1.1")
    call(door, graph, "update_state", here, {"log": ["main"]})
    assert call(door, graph, "get_state", there).values["log"] == ["prepared"]
