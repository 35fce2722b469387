"""What a thread holds can be read and changed: get_state, get_state_history, update_state and bulk_update_state."""

import operator
import re
import threading
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, TypedDict

import pytest

from pregel import END, START, Command, Overwrite, Send, StateGraph
from pregel.channels import UntrackedValue
from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import (
    CheckpointNotFoundError,
    EncodeError,
    InvalidConcurrentUpdateError,
    InvalidConfigError,
    InvalidInputError,
    InvalidUpdateError,
    MissingCheckpointerError,
    ThreadBusyError,
    UnknownTargetError,
)
from pregel.graph import PrivateStateAttr
from pregel.runtime import interrupt
from pregel.types import Interrupt, StateUpdate
from tests.conftest import Door
from tests.state_api import THREAD, call, ids, rows


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    n: int
    secret: Annotated[str, PrivateStateAttr]
    open: Annotated[Any, UntrackedValue]


def first(state: State):
    return {"log": ["first"], "n": 1, "secret": "s", "open": object()}


def ask(state: State):
    return {"log": [interrupt("what?")]}


def last(state: State):
    return {"log": ["last"]}


def asking(saver):
    """first -> ask -> last."""
    return StateGraph(State).add_sequence([first, ask, last]).add_edge(START, "first").compile(saver)


# -- get_state -------------------------------------------------------------------------------------------------------


def test_an_unknown_thread_is_empty_and_reading_it_leaves_nothing(door, saver):
    graph = asking(saver)
    assert call(door, graph, "get_state", THREAD) == ({}, (), THREAD, None, None, None, (), ())
    assert call(door, graph, "get_state_history", THREAD) == []
    assert call(door, graph, "get_state_history", THREAD, before=THREAD) == []
    assert saver.threads() == []


def test_a_fresh_thread_shows_what_its_input_makes_due(door, saver):
    graph = asking(saver)
    call(door, graph, "update_state", THREAD, {"n": 0}, START)
    shown = call(door, graph, "get_state", THREAD)
    assert (shown.values, shown.next) == ({"log": [], "n": 0}, ("first",))
    assert [(task.id, task.name, task.error, task.interrupts, task.result) for task in shown.tasks] == [
        ("1:0:first", "first", None, (), None)
    ]
    assert shown.metadata == {"source": "input", "step": 0}
    assert shown.parent_config is None
    made = datetime.fromisoformat(shown.created_at)
    assert made.utcoffset() == timedelta(0)


def test_a_paused_thread_shows_its_question_and_private_fields(door, saver):
    graph = asking(saver)
    result = door.invoke(graph, {"n": 0}, THREAD)
    assert "secret" not in result
    shown = call(door, graph, "get_state", THREAD)
    assert shown.values == {"log": ["first"], "n": 1, "secret": "s"}  # and `open`, which is not stored
    assert shown.next == ("ask",)
    assert shown.interrupts == shown.tasks[0].interrupts == (Interrupt("what?", "2:0:ask#0"),)
    assert shown.metadata == {"source": "loop", "step": 1}


def test_a_finished_thread_has_nothing_due(door, saver):
    graph = asking(saver)
    door.invoke(graph, {"n": 0}, THREAD)
    door.invoke(graph, Command(resume="answer"), THREAD)
    shown = call(door, graph, "get_state", THREAD)
    assert shown.values["log"] == ["first", "answer", "last"]
    assert (shown.next, shown.tasks, shown.interrupts) == ((), (), ())


def test_half_a_superstep_shows_what_is_done_what_failed_and_what_waits(door, saver):
    class Broken(TypedDict, total=False):
        log: Annotated[list[str], operator.add]

    def good(state):
        return {"log": ["good"]}

    def quiet(state):
        return {}

    def bad(state):
        raise LookupError("no such thing")

    def waits(state):
        return {"log": [interrupt("?")]}

    builder = StateGraph(Broken)
    for node in (good, quiet, bad, waits):
        builder.add_node(node).add_edge(START, node.__name__)
    graph = builder.compile(saver)
    with pytest.raises(LookupError):
        door.invoke(graph, {"log": ["in"]}, THREAD)
    shown = call(door, graph, "get_state", THREAD)
    assert shown.values == {"log": ["in"]}  # of the last barrier
    assert shown.next == ("bad", "waits")
    assert {task.name: (task.result, task.error, task.interrupts) for task in shown.tasks} == {
        "good": ({"log": ["good"]}, None, ()),
        "quiet": ({}, None, ()),
        "bad": (None, "LookupError: no such thing", ()),
        "waits": (None, None, (Interrupt("?", "1:3:waits#0"),)),
    }


def test_checkpoints_are_read_by_their_ids(door, saver):
    graph = asking(saver)
    door.invoke(graph, {"n": 0}, THREAD)
    old = call(door, graph, "get_state", {"configurable": {"thread_id": "t", "checkpoint_id": "0.0"}})
    assert (old.values, old.next) == ({"log": [], "n": 0}, ("first",))
    assert old.config == {"configurable": {"thread_id": "t", "checkpoint_id": "0.0"}}


@pytest.mark.parametrize("method", ["get_state", "get_state_history"])
def test_a_checkpoint_that_is_not_there_is_an_error(door, saver, method):
    graph = asking(saver)
    door.invoke(graph, {"n": 0}, THREAD)
    for thread, number in (("t", "0.9"), ("t", "1.0"), ("other", "0.0")):
        config = {"configurable": {"thread_id": thread, "checkpoint_id": number}}
        with pytest.raises(CheckpointNotFoundError, match=re.escape(f"no checkpoint '{number}'")):
            call(door, graph, method, config)
    with pytest.raises(InvalidConfigError, match="branch and step"):
        call(door, graph, method, {"configurable": {"thread_id": "t", "checkpoint_id": "last"}})


def test_a_graph_that_stores_nothing_says_so(door):
    graph = asking(None)
    for method, args in (("get_state", ()), ("get_state_history", ()), ("update_state", ({},))):
        with pytest.raises(MissingCheckpointerError, match="without a checkpointer"):
            call(door, graph, method, THREAD, *args)


def test_a_config_without_a_thread_is_an_error(door, saver):
    with pytest.raises(InvalidConfigError, match="thread_id"):
        call(door, asking(saver), "get_state", {})


def test_a_node_reads_the_state_of_its_own_thread(saver):
    seen = []

    def look(state):
        seen.append(graph.get_state())
        return {}

    graph = StateGraph(State).add_node(look).add_edge(START, "look").compile(saver)
    graph.invoke({"n": 3}, THREAD)
    assert [(shown.values["n"], shown.next) for shown in seen] == [(3, ("look",))]


# -- history ---------------------------------------------------------------------------------------------------------


def test_history_is_newest_first_and_each_entry_is_what_get_state_said(door, saver):
    graph = asking(saver)
    door.invoke(graph, {"n": 0}, THREAD)
    paused = call(door, graph, "get_state", THREAD)
    door.invoke(graph, Command(resume="yes"), THREAD)
    told = call(door, graph, "get_state_history", THREAD)
    assert ids(told) == ["0.3", "0.2", "0.1", "0.0"]
    assert [shown.next for shown in told] == [(), ("last",), ("ask",), ("first",)]
    for shown, parent in zip(told, [*told[1:], None], strict=True):
        assert shown == call(door, graph, "get_state", shown.config)
        assert shown.parent_config == (None if parent is None else parent.config)
    # What was asked went with the superstep's rows; the barrier before it is as it was.
    assert told[2]._replace(tasks=(), interrupts=()) == paused._replace(tasks=(), interrupts=())


def test_history_is_chosen_by_metadata(door, saver):
    graph = asking(saver)
    for user in ("ada", "bob"):
        door.invoke(graph, {"n": 0}, {**THREAD, "metadata": {"user": user, "tags": ["x", 1]}})
    found = {
        name: ids(call(door, graph, "get_state_history", THREAD, filter=wanted))
        for name, wanted in {
            "input": {"source": "input"},
            "bob": {"user": "bob"},
            "both": {"user": "ada", "source": "loop"},
            "deep": {"tags": ["x", 1], "step": 3},
            "none": {"user": "eve"},
            "absent": {"mood": None},
            "empty": {},
        }.items()
    }
    assert found == {
        "input": ["0.2", "0.0"],
        "bob": ["0.3", "0.2"],
        "both": ["0.1"],
        "deep": ["0.3"],
        "none": [],
        "absent": [],
        "empty": ["0.3", "0.2", "0.1", "0.0"],
    }
    shown = call(door, graph, "get_state", THREAD)
    assert shown.metadata == {"user": "bob", "tags": ["x", 1], "source": "loop", "step": 3}
    assert call(door, graph, "get_state_history", THREAD, filter={"source": "input"})[0].metadata["dropped"] == ["ask"]


def test_history_before_a_checkpoint_and_at_most_so_much(door, saver):
    graph = asking(saver)
    door.invoke(graph, {"n": 0}, THREAD)
    door.invoke(graph, Command(resume="yes"), THREAD)
    at = {"configurable": {"thread_id": "t", "checkpoint_id": "0.2"}}
    assert ids(call(door, graph, "get_state_history", THREAD, before=at)) == ["0.1", "0.0"]
    assert ids(call(door, graph, "get_state_history", at)) == ["0.2", "0.1", "0.0"]
    assert ids(call(door, graph, "get_state_history", THREAD, before=THREAD)) == ["0.2", "0.1", "0.0"]
    assert ids(call(door, graph, "get_state_history", THREAD, limit=2)) == ["0.3", "0.2"]
    assert ids(call(door, graph, "get_state_history", THREAD, limit=0)) == []
    assert ids(call(door, graph, "get_state_history", at, before=at, limit=1)) == ["0.1"]
    assert ids(call(door, graph, "get_state_history", THREAD, filter={"source": "loop"}, before=at, limit=1)) == ["0.1"]
    with pytest.raises(InvalidConfigError, match="limit of get_state_history"):
        call(door, graph, "get_state_history", THREAD, limit=-1)
    with pytest.raises(InvalidConfigError, match="before names the thread 'u'"):
        call(door, graph, "get_state_history", THREAD, before={"configurable": {"thread_id": "u"}})


def test_history_is_longer_than_a_page(saver):
    def count(state):
        return {"n": state["n"] + 1}

    graph = (
        StateGraph(State)
        .add_node(count)
        .add_edge(START, "count")
        .add_conditional_edges("count", lambda state: "count" if state["n"] < 150 else END, ["count", END])
        .compile(saver)
    )
    graph.invoke({"n": 0}, THREAD)
    assert [shown.values["n"] for shown in graph.get_state_history(THREAD)] == [*range(150, -1, -1)]
    assert next(graph.get_state_history(THREAD, filter={"step": 7})).values["n"] == 7
    at = {"configurable": {"thread_id": "t", "checkpoint_id": "0.64"}}
    assert [shown.values["n"] for shown in graph.get_state_history(THREAD, before=at)] == [*range(63, -1, -1)]


# -- update_state ----------------------------------------------------------------------------------------------------


def test_an_update_goes_through_the_reducers_and_names_its_checkpoint(door, saver):
    graph = asking(saver)
    door.invoke(graph, {"n": 0}, THREAD)
    config = call(door, graph, "update_state", THREAD, {"log": ["by hand"], "n": 5, "secret": "t"})
    shown = call(door, graph, "get_state", THREAD)
    assert shown.config == config
    assert shown.values == {"log": ["first", "by hand"], "n": 5, "secret": "t"}
    assert shown.metadata == {"source": "update", "step": 2}
    assert shown.parent_config["configurable"]["checkpoint_id"] == "0.1"
    assert call(door, graph, "get_state", config) == shown


def test_without_as_node_the_same_is_due_with_its_question_and_its_answer_still_fits(door, saver):
    graph = asking(saver)
    door.invoke(graph, {"n": 0}, THREAD)
    call(door, graph, "update_state", THREAD, {"log": ["by hand"]})
    shown = call(door, graph, "get_state", THREAD)
    assert shown.next == ("ask",)
    assert shown.interrupts == (Interrupt("what?", "2:0:ask#0"),)
    assert door.invoke(graph, Command(resume={"2:0:ask#0": "yes"}), THREAD)["log"] == [
        "first",
        "by hand",
        "yes",
        "last",
    ]


def test_without_as_node_finished_siblings_are_not_run_again(door, saver):
    runs = []

    def good(state):
        runs.append("good")
        return {"log": ["good"]}

    def waits(state):
        runs.append("waits")
        return {"log": [interrupt("?")]}

    builder = StateGraph(State).add_node(good).add_node(waits).add_edge(START, "good").add_edge(START, "waits")
    graph = builder.compile(saver)
    door.invoke(graph, {"n": 0}, THREAD)
    call(door, graph, "bulk_update_state", THREAD, [[StateUpdate({"n": 1})], [StateUpdate({"n": 2})]])
    shown = call(door, graph, "get_state", THREAD)
    assert [(task.name, task.result) for task in shown.tasks] == [("good", {"log": ["good"]}), ("waits", None)]
    assert door.invoke(graph, Command(resume="yes"), THREAD) == {"log": ["good", "yes"], "n": 2}
    assert runs == ["good", "waits", "waits"]


def test_as_a_node_its_successors_are_due_and_nothing_else(door, saver):
    graph = asking(saver)
    door.invoke(graph, {"n": 0}, THREAD)
    config = call(door, graph, "update_state", THREAD, {"log": ["instead"]}, "ask")
    shown = call(door, graph, "get_state", config)
    assert (shown.next, shown.interrupts) == (("last",), ())
    assert shown.metadata["dropped"] == ["ask"]
    assert door.invoke(graph, None, config)["log"] == ["first", "instead", "last"]


def test_as_start_the_values_are_an_input(door, saver):
    graph = asking(saver)
    door.invoke(graph, {"n": 0}, THREAD)
    call(door, graph, "update_state", THREAD, {"n": 7}, START)
    shown = call(door, graph, "get_state", THREAD)
    assert (shown.values["n"], shown.next, shown.interrupts) == (7, ("first",), ())
    assert shown.metadata == {"source": "input", "step": 2, "dropped": ["ask"]}
    with pytest.raises(InvalidInputError, match="secret"):
        call(door, graph, "update_state", THREAD, {"secret": "x"}, START)


def test_as_end_nothing_is_due_any_more(door, saver):
    graph = asking(saver)
    door.invoke(graph, {"n": 0}, THREAD)
    call(door, graph, "update_state", THREAD, None, END)
    shown = call(door, graph, "get_state", THREAD)
    assert (shown.next, shown.tasks, shown.metadata["dropped"]) == ((), (), ["ask"])
    assert door.invoke(graph, None, THREAD) == {"log": ["first"], "n": 1}
    with pytest.raises(InvalidUpdateError, match="None in place of values"):
        call(door, graph, "update_state", THREAD, {"n": 1}, END)


def test_as_end_joins_wait_for_nothing_any_more(door, saver):
    builder = StateGraph(State).add_node(first).add_node(ask).add_node(last)
    builder.add_edge(START, "first").add_edge("first", "ask").add_edge(["first", "ask"], "last")
    graph = builder.compile(saver)
    door.invoke(graph, {"n": 0}, THREAD)
    call(door, graph, "update_state", THREAD, None, END)
    assert door.invoke(graph, None, THREAD) == {"log": ["first"], "n": 1}  # no StarvedJoinError


def test_none_changes_nothing(door, saver):
    graph = asking(saver)
    door.invoke(graph, {"n": 0}, THREAD)
    before = call(door, graph, "get_state", THREAD)
    call(door, graph, "update_state", THREAD, None)
    after = call(door, graph, "get_state", THREAD)
    assert (after.values, after.next, after.interrupts) == (before.values, before.next, before.interrupts)


def test_overwrite_replaces_and_is_not_stored(door, saver):
    graph = asking(saver)
    door.invoke(graph, {"n": 0}, THREAD)
    call(door, graph, "update_state", THREAD, {"log": Overwrite(["new"])})
    assert call(door, graph, "get_state", THREAD).values["log"] == ["new"]
    assert door.invoke(graph, Command(resume="yes"), THREAD)["log"] == ["new", "yes", "last"]


@pytest.mark.parametrize("as_node", [None, "first"])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"n": "three"}, "'n'"),
        ({"log": "text"}, "'log'"),
        ({"logs": ["x"]}, "Did you mean 'log'"),
        (5, "int"),
        ({"n": Overwrite("x")}, "'n'"),
        (Command(goto="lost"), "Did you mean 'last'"),
    ],
)
def test_what_is_no_update_is_an_error_and_changes_nothing(door, saver, as_node, values, message):
    graph = asking(saver)
    door.invoke(graph, {"n": 0}, THREAD)
    before = rows(saver)
    with pytest.raises(InvalidUpdateError, match=message):
        call(door, graph, "update_state", THREAD, values, as_node)
    assert rows(saver) == before
    with pytest.raises(InvalidUpdateError, match=message):
        call(door, graph, "update_state", {"configurable": {"thread_id": "new"}}, values, as_node)
    assert [thread.thread_id for thread in saver.threads()] == ["t"]


def test_an_unknown_node_is_an_error_with_the_nearest_match(door, saver):
    graph = asking(saver)
    with pytest.raises(InvalidUpdateError, match=r"names no node .* Did you mean 'first'\? Nodes: first, ask, last"):
        call(door, graph, "update_state", THREAD, {"n": 1}, "frist")


def test_on_a_fresh_thread_an_update_is_an_input_of_any_field(door, saver):
    graph = asking(saver)
    call(door, graph, "update_state", THREAD, {"n": 1, "secret": "known", "log": ["a"]})
    shown = call(door, graph, "get_state", THREAD)
    assert (shown.values, shown.next) == ({"n": 1, "secret": "known", "log": ["a"]}, ("first",))
    assert shown.metadata == {"source": "input", "step": 0}


def test_on_a_fresh_thread_an_update_as_a_node_makes_its_successors_due(door, saver):
    graph = asking(saver)
    call(door, graph, "update_state", THREAD, {"log": ["a"]}, "ask")
    shown = call(door, graph, "get_state", THREAD)
    assert (shown.values, shown.next) == ({"log": ["a"]}, ("last",))
    assert door.invoke(graph, None, THREAD) == {"log": ["a", "last"]}


async def apath(state: State) -> Literal["ask", "last"]:
    return "last" if state["n"] > 3 else "ask"


def path(state: State) -> Literal["ask", "last"]:
    return "last" if state["n"] > 3 else "ask"


@pytest.mark.parametrize("route", [path, apath], ids=["sync", "async"])
def test_conditional_edges_of_the_node_see_the_update(door, saver, route):
    builder = StateGraph(State).add_node(first).add_node(ask).add_node(last)
    graph = builder.add_edge(START, "first").add_conditional_edges("first", route).compile(saver)
    for n, due in ((1, "ask"), (4, "last")):
        call(door, graph, "update_state", THREAD, {"n": n}, "first")
        assert call(door, graph, "get_state", THREAD).next == (due,)


def test_the_sync_form_works_beside_a_running_loop_too(loop):
    builder = StateGraph(State).add_node(first).add_node(ask).add_node(last)
    graph = builder.add_edge(START, "first").add_conditional_edges("first", apath).compile(InMemorySaver())

    async def main():
        graph.update_state(THREAD, {"n": 4}, "first")

    loop.run(main)
    assert graph.get_state(THREAD).next == ("last",)


def test_a_path_may_send(door, saver):
    def work(item):
        return {"log": [item]}

    builder = StateGraph(State).add_node(first).add_node(work).add_edge(START, "first")
    graph = builder.add_conditional_edges("first", lambda s: [Send("work", x) for x in s["log"]], ["work"]).compile(
        saver
    )
    call(door, graph, "update_state", THREAD, {"log": ["a", "b"]}, "first")
    assert call(door, graph, "get_state", THREAD).next == ("work", "work")
    assert door.invoke(graph, None, THREAD)["log"] == ["a", "b", "a", "b"]


def test_a_path_that_leads_nowhere_is_an_error(door, saver):
    builder = StateGraph(State).add_node(first).add_node(last).add_edge(START, "first").add_edge("first", "last")
    graph = builder.add_conditional_edges("first", lambda _: "lost").compile(saver)
    with pytest.raises(UnknownTargetError, match="Did you mean 'last'"):
        call(door, graph, "update_state", THREAD, {"n": 1}, "first")
    assert saver.threads() == []


def test_joins_hear_the_node(door, saver):
    builder = StateGraph(State).add_node(first).add_node(ask).add_node(last)
    builder.add_edge(START, "first").add_edge(START, "ask").add_edge(["first", "ask"], "last")
    graph = builder.compile(saver)
    call(door, graph, "update_state", THREAD, {"log": ["f"]}, "first")
    assert call(door, graph, "get_state", THREAD).next == ()
    call(door, graph, "update_state", THREAD, {"log": ["a"]}, "ask")
    assert call(door, graph, "get_state", THREAD).next == ("last",)
    assert door.invoke(graph, None, THREAD)["log"] == ["f", "a", "last"]


def test_a_command_without_as_node_adds_to_what_is_due(door, saver):
    graph = asking(saver)
    door.invoke(graph, {"n": 0}, THREAD)
    call(door, graph, "update_state", THREAD, Command(update={"n": 9}, goto="last"))
    shown = call(door, graph, "get_state", THREAD)
    assert (shown.values["n"], shown.next) == (9, ("ask", "last"))
    assert shown.interrupts == (Interrupt("what?", "2:0:ask#0"),)


def test_the_thread_of_a_run_is_taken(door, saver):
    graph = asking(saver)
    parts = graph.stream({"n": 0}, THREAD)
    next(parts)
    before = call(door, graph, "get_state", THREAD)  # reading is free
    with pytest.raises(ThreadBusyError, match="thread 't' is taken"):
        call(door, graph, "update_state", THREAD, {"n": 1})
    parts.close()
    assert before.metadata["step"] in {0, 1}
    call(door, graph, "update_state", THREAD, {"n": 1})


def test_a_graph_that_was_told_to_wait_waits_with_an_update(saver):
    builder = StateGraph(State).add_sequence([first, ask, last]).add_edge(START, "first")
    graph = builder.compile(saver, on_busy="wait")
    parts = graph.stream({"n": 0}, THREAD)
    next(parts)
    editor = threading.Thread(target=graph.update_state, args=(THREAD, {"n": 8}))
    editor.start()
    parts.close()
    editor.join()
    assert graph.get_state(THREAD).values["n"] == 8


def test_an_update_at_an_old_checkpoint_opens_a_branch(door, saver):
    graph = asking(saver)
    door.invoke(graph, {"n": 0}, THREAD)
    door.invoke(graph, Command(resume="yes"), THREAD)
    main = call(door, graph, "get_state_history", THREAD)
    config = call(door, graph, "update_state", main[2].config, {"n": 42})
    assert config["configurable"]["checkpoint_id"] == "1.2"
    shown = call(door, graph, "get_state", THREAD)
    assert (shown.config, shown.next, shown.interrupts) == (config, ("ask",), ())
    assert shown.values == {"log": ["first"], "n": 42, "secret": "s"}
    told = call(door, graph, "get_state_history", THREAD)
    assert ids(told) == ["1.2", "1.1", "0.3", "0.2", "0.1", "0.0"]
    assert [shown.metadata["source"] for shown in told[:2]] == ["update", "fork"]
    assert told[1].parent_config == main[2].config
    assert told[2:] == main


# -- bulk_update_state -----------------------------------------------------------------------------------------------


def test_several_supersteps_of_several_updates(door, saver):
    graph = asking(saver)
    config = call(
        door,
        graph,
        "bulk_update_state",
        THREAD,
        [
            [StateUpdate({"n": 1}, START)],
            [StateUpdate({"log": ["f"], "n": 2}, "first"), StateUpdate({"log": ["a"]}, "ask")],
            [({"log": ["more"]}, None)],
        ],
    )
    told = call(door, graph, "get_state_history", THREAD)
    assert told[0].config == config
    assert [(shown.next, shown.values.get("log"), shown.values["n"]) for shown in told] == [
        (("ask", "last"), ["f", "a", "more"], 2),
        (("ask", "last"), ["f", "a"], 2),
        (("first",), [], 1),
    ]
    assert [shown.metadata["source"] for shown in told] == ["update", "update", "input"]


def test_an_input_may_follow_updates(door, saver):
    graph = asking(saver)
    door.invoke(graph, {"n": 0}, THREAD)
    call(door, graph, "bulk_update_state", THREAD, [[StateUpdate({"n": 1})], [StateUpdate({"n": 2}, START)]])
    shown = call(door, graph, "get_state", THREAD)
    assert (shown.values["n"], shown.next, shown.metadata["dropped"]) == (2, ("first",), ["ask"])


@pytest.mark.parametrize(
    "bad",
    [
        [StateUpdate({"n": "x"}, "first")],
        [StateUpdate({"nn": 1})],
        [StateUpdate({"n": 1}, "nowhere")],
        [StateUpdate({"n": 1}, "first"), StateUpdate({"n": 2}, "ask")],
        [StateUpdate({"n": 1}, "first"), StateUpdate({"log": ["b"]})],
        [StateUpdate({"n": 1}, START), StateUpdate({"log": ["b"]}, "first")],
        [StateUpdate({"open": 1, "n": 2**70, "secret": 5}, "last")],
    ],
    ids=["type", "key", "node", "conflict", "no-node", "start", "private"],
)
@pytest.mark.parametrize("at", ["head", "old", "new"])
def test_all_or_nothing(door, saver, bad, at):
    graph = asking(saver)
    door.invoke(graph, {"n": 0}, THREAD)
    config = {
        "head": THREAD,
        "old": {"configurable": {"thread_id": "t", "checkpoint_id": "0.0"}},
        "new": {"configurable": {"thread_id": "new"}},
    }[at]
    before = rows(saver)
    good = [StateUpdate({"n": 1, "log": ["good"]}, "first")]
    with pytest.raises(InvalidUpdateError):
        call(door, graph, "bulk_update_state", config, [good, good, bad])
    assert rows(saver) == before
    assert [thread.thread_id for thread in saver.threads()] == ["t"]
    call(door, graph, "bulk_update_state", config, [good, good])  # and the thread is free


def test_a_value_that_cannot_be_stored_changes_nothing(door, saver):
    class Loose(TypedDict, total=False):
        n: int
        any: Any

    graph = StateGraph(Loose).add_node("a", lambda _: {}).add_edge(START, "a").compile(saver)
    door.invoke(graph, {"n": 0}, THREAD)
    before = rows(saver)
    with pytest.raises(EncodeError, match="any"):
        call(door, graph, "bulk_update_state", THREAD, [[StateUpdate({"n": 1})], [StateUpdate({"any": object()})]])
    assert rows(saver) == before


def test_conflicting_updates_of_one_superstep_name_both(door, saver):
    graph = asking(saver)
    with pytest.raises(InvalidConcurrentUpdateError, match=r"'first'.*'ask'"):
        call(
            door,
            graph,
            "bulk_update_state",
            THREAD,
            [[StateUpdate({"n": 1}, "first"), StateUpdate({"n": 2}, "ask")]],
        )


@pytest.mark.parametrize("supersteps", [[], [[]], [[StateUpdate({"n": 1})], []]])
def test_an_empty_bulk_update_is_an_error(door, saver, supersteps):
    with pytest.raises(InvalidUpdateError, match="list of supersteps"):
        call(door, asking(saver), "bulk_update_state", THREAD, supersteps)


def test_bytes_stored_by_all_doors_are_alike():
    def stored(way):
        saver = InMemorySaver()
        graph = asking(saver)
        call(Door(way), graph, "bulk_update_state", THREAD, [[StateUpdate({"n": 1}, "first")], [StateUpdate({"n": 2})]])
        return [row.blob for row in saver.checkpoints("t", ())], saver.values("t", ((0, 9),), ())

    assert stored("sync") == stored("asyncio") == stored("trio")
