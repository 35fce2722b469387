"""Every checkpoint of a thread is a place to go on from: replay, fork, and branches that leave each other alone."""

import operator
from typing import Annotated, TypedDict

import pytest

from pregel import START, Command, StateGraph
from pregel.errors import InvalidInputError, InvalidResumeError, InvalidUpdateError
from pregel.runtime import interrupt
from pregel.types import Interrupt
from tests.state_api import THREAD, call, ids, rows
from tests.unit.test_state_of_children import with_memory


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    n: int


def at(number, thread="t"):
    return {"configurable": {"thread_id": thread, "checkpoint_id": number}}


class Traveller:
    """first -> ask -> last, and how often each ran."""

    def __init__(self, saver):
        self.runs = []
        builder = StateGraph(State).add_sequence([self.first, self.ask, self.last]).add_edge(START, "first")
        self.graph = builder.compile(saver)

    def first(self, state: State):
        self.runs.append("first")
        return {"log": [f"first {state.get('n')}"]}

    def ask(self, state: State):
        self.runs.append("ask")
        return {"log": [interrupt("what?")]}

    def last(self, state: State):
        self.runs.append("last")
        return {"log": ["last"]}


@pytest.fixture
def traveller(saver, door):
    made = Traveller(saver)
    door.invoke(made.graph, {"n": 0}, THREAD)
    door.invoke(made.graph, Command(resume="yes"), THREAD)
    made.runs.clear()
    return made


def test_replay_runs_what_was_due_again_on_a_new_branch(door, traveller):
    graph = traveller.graph
    main = call(door, graph, "get_state_history", THREAD)
    assert door.invoke(graph, None, at("0.2")) == {"log": ["first 0", "yes", "last"], "n": 0}
    assert traveller.runs == ["last"]
    told = call(door, graph, "get_state_history", THREAD)
    assert ids(told) == ["1.3", "1.2", "0.3", "0.2", "0.1", "0.0"]
    assert told[1].metadata == {"source": "fork", "step": 2}
    assert told[1].parent_config == at("0.2")
    assert (told[1].values, told[1].next) == (main[1].values, ("last",))
    assert told[2:] == main


def test_a_replay_asks_again_for_old_answers_are_not_its_own(door, traveller):
    graph = traveller.graph
    result = door.invoke(graph, None, at("0.1"))
    assert result["__interrupt__"] == [Interrupt("what?", "branch-1|2:0:ask#0")]
    assert traveller.runs == ["ask"]
    assert door.invoke(graph, Command(resume={"branch-1|2:0:ask#0": "no"}), THREAD)["log"] == ["first 0", "no", "last"]
    assert call(door, graph, "get_state", at("0.3")).values["log"] == ["first 0", "yes", "last"]


def test_a_replay_does_not_take_what_siblings_had_done(door, saver):
    runs = []

    def good(state: State):
        runs.append("good")
        return {"log": ["good"]}

    def waits(state: State):
        return {"log": [interrupt("?")]}

    builder = StateGraph(State).add_node(good).add_node(waits).add_edge(START, "good").add_edge(START, "waits")
    graph = builder.compile(saver)
    door.invoke(graph, {"n": 0}, THREAD)
    call(door, graph, "update_state", THREAD, {"n": 1})  # the head is 0.1 now, with the row of `good`
    door.invoke(graph, None, at("0.0"))
    assert runs == ["good", "good"]
    assert call(door, graph, "get_state", at("0.1")).tasks[0].result == {"log": ["good"]}


def test_a_fork_with_new_input_begins_with_the_old_values(door, traveller):
    graph = traveller.graph
    result = door.invoke(graph, {"n": 5}, at("0.1"))
    assert result["log"] == ["first 0", "first 5"]
    shown = call(door, graph, "get_state", THREAD)
    assert shown.config == at("1.3")
    told = call(door, graph, "get_state_history", THREAD)
    assert [(each.metadata["source"], each.metadata.get("dropped")) for each in told[:3]] == [
        ("loop", None),
        ("input", ["ask"]),
        ("fork", None),
    ]


def test_two_forks_of_one_parent_leave_each_other_alone(door, traveller):
    graph = traveller.graph
    left = call(door, graph, "update_state", at("0.1"), {"log": ["left"]}, "ask")
    right = call(door, graph, "update_state", at("0.1"), {"log": ["right"]}, "ask")
    assert (left, right) == (at("1.2"), at("2.2"))
    assert door.invoke(graph, None, left)["log"] == ["first 0", "left", "last"]
    assert door.invoke(graph, None, right)["log"] == ["first 0", "right", "last"]
    assert call(door, graph, "get_state", at("0.3")).values["log"] == ["first 0", "yes", "last"]
    assert call(door, graph, "get_state", at("1.3")).values["log"] == ["first 0", "left", "last"]


def test_long_lists_of_forks_do_not_leak_into_each_other(door, saver):
    def grow(state: State):
        return {"log": [f"{state['n']}:{len(state['log'])}"]}

    graph = StateGraph(State).add_node(grow).add_edge(START, "grow").compile(saver)
    for n in range(30):
        door.invoke(graph, {"n": n}, THREAD)
    base = [f"{n}:{n}" for n in range(30)]
    for n in range(100, 105):
        door.invoke(graph, {"n": n}, at("0.19"))
        for _ in range(10):
            door.invoke(graph, {"n": n}, THREAD)
    for branch, n in enumerate(range(100, 105), 1):
        shown = call(door, graph, "get_state", at(f"{branch}.41"))
        assert shown.values["log"] == [*base[:10], *(f"{n}:{place}" for place in range(10, 21))]
    assert call(door, graph, "get_state", at("0.59")).values["log"] == base


def test_a_fork_of_a_fork(door, traveller):
    graph = traveller.graph
    call(door, graph, "update_state", at("0.1"), {"log": ["one"]}, "ask")
    door.invoke(graph, None, THREAD)
    call(door, graph, "update_state", at("1.2"), {"log": ["two"]})
    shown = call(door, graph, "get_state", THREAD)
    assert (shown.config, shown.next) == (at("2.3"), ("last",))
    assert door.invoke(graph, None, THREAD)["log"] == ["first 0", "one", "two", "last"]
    parents = []
    config = at("2.4")
    while config is not None:
        parents.append(config["configurable"]["checkpoint_id"])
        config = call(door, graph, "get_state", config).parent_config
    assert parents == ["2.4", "2.3", "2.2", "1.2", "1.1", "0.1", "0.0"]


def test_the_head_of_a_branch_is_gone_on_from_in_place(door, traveller):
    graph = traveller.graph
    door.invoke(graph, {"n": 5}, at("0.1"))  # branch 1 pauses at 1.3
    assert door.invoke(graph, {"n": 6}, at("0.3"))["log"] == ["first 0", "yes", "last", "first 6"]
    assert call(door, graph, "get_state", THREAD).config == at("0.5")
    assert door.invoke(graph, Command(resume="b"), at("1.3"))["log"] == ["first 0", "first 5", "b", "last"]
    assert call(door, graph, "get_state", THREAD).config == at("1.5")
    assert saver_branches(graph) == [1]


def saver_branches(graph):
    return [row.branch for row in graph._persistence.checkpointer.branches("t")]


def test_the_newest_is_what_was_written_last(door, traveller):
    graph = traveller.graph
    call(door, graph, "update_state", at("0.1"), {"n": 1})
    assert call(door, graph, "get_state", THREAD).config == at("1.2")
    call(door, graph, "update_state", at("0.3"), {"n": 2})
    assert call(door, graph, "get_state", THREAD).config == at("0.4")
    assert ids(call(door, graph, "get_state_history", THREAD))[:3] == ["0.4", "1.2", "1.1"]


def test_snapshot_configs_are_accepted_by_everything(door, traveller):
    graph = traveller.graph
    for shown in call(door, graph, "get_state_history", THREAD):
        assert call(door, graph, "get_state", shown.config) == shown
        config = call(door, graph, "update_state", shown.config, {"n": 8})
        assert call(door, graph, "get_state", config).values["n"] == 8
        assert door.invoke(graph, {"n": 9}, shown.config)["n"] == 9


def test_a_finished_checkpoint_is_replayed_by_doing_nothing(door, traveller):
    assert door.invoke(traveller.graph, None, at("0.3")) == {"log": ["first 0", "yes", "last"], "n": 0}
    assert traveller.runs == []
    assert call(door, traveller.graph, "get_state", THREAD).config == at("0.3")


def test_a_fork_that_comes_to_nothing_leaves_nothing_behind(door, saver, traveller):
    graph = traveller.graph
    before = rows(saver)
    with pytest.raises(InvalidResumeError, match="asks nothing"):
        door.invoke(graph, Command(resume="yes"), at("0.1"))
    with pytest.raises(InvalidUpdateError):
        door.invoke(graph, Command(update={"n": "x"}), at("0.1"))
    with pytest.raises(InvalidInputError):
        door.invoke(graph, {"n": "x"}, at("0.1"))
    assert rows(saver) == before


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_fork_works_with_every_durability(door, saver, durability):
    made = Traveller(saver)
    for given in ({"n": 0}, Command(resume="yes")):
        door.invoke(made.graph, given, THREAD, durability=durability)
    first = call(door, made.graph, "get_state_history", THREAD)[-1]
    door.invoke(made.graph, {"n": 1}, first.config, durability=durability)
    result = door.invoke(made.graph, Command(resume="no"), THREAD, durability=durability)
    assert result["log"][-3:] == ["first 1", "no", "last"]
    newest = call(door, made.graph, "get_state_history", THREAD)
    assert newest[0].values == result
    assert call(door, made.graph, "get_state", first.config) == first._replace(tasks=newest[-1].tasks, interrupts=())


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_fork_sees_what_a_graph_inside_remembered_then(door, saver, durability):
    graph = with_memory(saver, durability=durability)
    for _ in range(3):
        door.invoke(graph, {}, THREAD)
    second = next(each for each in graph.get_state_history(THREAD) if each.next == () and each.values["ran"] == 2)
    assert door.invoke(graph, {}, second.config) == {"seen": 3, "ran": 3}


def test_a_stream_tells_the_checkpoints_by_which_it_can_be_gone_back_to(door, saver):
    made = Traveller(saver)
    parts = door.stream(made.graph, {"n": 0}, THREAD, stream_mode="checkpoints")
    told = call(door, made.graph, "get_state_history", THREAD)[::-1]
    assert [part["config"] for part in parts] == [shown.config for shown in told]
    assert [part["values"] for part in parts] == [shown.values for shown in told]
    assert [part["metadata"] for part in parts] == [shown.metadata for shown in told]
    assert [tuple(part["next"]) for part in parts] == [shown.next for shown in told]
    assert [part["parent_config"] for part in parts] == [shown.parent_config for shown in told]
    assert [[task["id"] for task in part["tasks"]] for part in parts] == [["1:0:first"], ["2:0:ask"]]


def test_a_stream_on_a_fork_tells_the_checkpoints_of_its_branch(door, traveller):
    parts = door.stream(traveller.graph, {"n": 4}, at("0.0"), stream_mode="checkpoints")
    told = call(door, traveller.graph, "get_state_history", THREAD)[1::-1]
    assert [part["config"] for part in parts] == [at("1.1"), at("1.2")]
    assert (
        [part["parent_config"] for part in parts] == [shown.parent_config for shown in told] == [at("1.0"), at("1.1")]
    )
