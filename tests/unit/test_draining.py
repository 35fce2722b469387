"""Runs that are asked to stop: they do at the next barrier, say so, and go on from there."""

import operator
import threading
from typing import Annotated, TypedDict

import pytest

from pregel import START, Command, InMemorySaver, RunControl, Send, StateGraph, interrupt
from pregel.errors import InvalidConfigError
from pregel.types import Breakpoint

CONFIG = {"configurable": {"thread_id": "t"}}


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def logs(name, control=None):
    """Return a node that notes its name, and asks for the drain if it has the control."""

    def node(state: State) -> dict:
        if control is not None:
            control.request_drain(f"asked by {name}")
        return {"log": [name]}

    return node


def alogs(name, control=None):
    """The same as an async node."""
    node = logs(name, control)

    async def anode(state: State) -> dict:
        return node(state)

    return anode


def chain(nodes, **options):
    builder = StateGraph(State)
    builder.add_sequence(list(nodes.items()))
    builder.set_entry_point(next(iter(nodes)))
    return builder.compile(**options)


def test_a_control_says_what_was_asked_first():
    control = RunControl()
    assert (control.drain_requested, control.drain_reason) == (False, None)
    control.request_drain("deploy")
    control.request_drain("again")
    assert (control.drain_requested, control.drain_reason) == (True, "deploy")
    other = RunControl()
    other.request_drain()
    assert other.drain_reason == "shutdown"


@pytest.mark.parametrize("make", [logs, alogs])
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_run_that_drains_stops_at_the_barrier_says_so_and_goes_on(door, saver, make, durability):
    control = RunControl()
    graph = chain({"a": make("a"), "b": make("b", control), "c": make("c")}, checkpointer=saver, durability=durability)
    stopped = door.invoke(graph, {"log": []}, CONFIG, control=control)
    assert stopped == {"log": ["a", "b"], "__interrupt__": [Breakpoint("drain", ("c",))]}
    snapshot = graph.get_state(CONFIG)
    assert snapshot.next == ("c",)
    assert snapshot.metadata["pause"] == Breakpoint("drain", ("c",))
    assert door.invoke(graph, None, CONFIG) == {"log": ["a", "b", "c"]}
    assert graph.get_state(CONFIG).next == ()


def test_siblings_end_and_what_they_lead_to_waits(door, saver):
    control = RunControl()
    builder = StateGraph(State).add_node("fan", logs("fan")).add_node("one", logs("one", control))
    builder.add_node("two", logs("two")).add_node("last", logs("last"))
    builder.add_edge(START, "fan").add_edge("fan", "one").add_edge("fan", "two").add_edge(["one", "two"], "last")
    graph = builder.compile(checkpointer=saver)
    stopped = door.invoke(graph, {"log": []}, CONFIG, control=control)
    assert stopped == {"log": ["fan", "one", "two"], "__interrupt__": [Breakpoint("drain", ("last",))]}
    assert door.invoke(graph, None, CONFIG)["log"] == ["fan", "one", "two", "last"]


def test_another_thread_may_ask_while_a_node_runs(door, saver):
    control, running, asked = RunControl(), threading.Event(), threading.Event()

    def waits(state: State) -> dict:
        running.set()
        assert asked.wait(30)
        return {"log": ["waits"]}

    def asks():
        assert running.wait(30)
        control.request_drain()
        asked.set()

    thread = threading.Thread(target=asks)
    thread.start()
    stopped = door.invoke(
        chain({"waits": waits, "next": logs("next")}, checkpointer=saver), {"log": []}, CONFIG, control=control
    )
    thread.join()
    assert stopped == {"log": ["waits"], "__interrupt__": [Breakpoint("drain", ("next",))]}


def test_a_run_with_nothing_left_to_do_just_ends(door, saver):
    control = RunControl()
    graph = chain({"a": logs("a"), "b": logs("b", control)}, checkpointer=saver)
    assert door.invoke(graph, {"log": []}, CONFIG, control=control) == {"log": ["a", "b"]}
    assert control.drain_requested


def test_a_new_input_is_stored_and_nothing_of_it_is_run(door, saver):
    control = RunControl()
    control.request_drain()
    graph = chain({"a": logs("a")}, checkpointer=saver)
    stopped = door.invoke(graph, {"log": ["given"]}, CONFIG, control=control)
    assert stopped == {"log": ["given"], "__interrupt__": [Breakpoint("drain", ("a",))]}
    assert door.invoke(graph, None, CONFIG, control=control) == stopped  # nothing is begun, and nothing lost
    assert door.invoke(graph, None, CONFIG) == {"log": ["given", "a"]}


def test_an_answer_is_kept_by_a_run_that_drains(door, saver):
    control = RunControl()
    control.request_drain()

    def asks(state: State) -> dict:
        return {"log": [interrupt("what?")]}

    def start(state: State):
        return Command(goto=[Send("asks", state), Send("asks", state)])

    builder = StateGraph(State).add_node("start", start, destinations=["asks"]).add_node("asks", asks)
    graph = builder.add_edge(START, "start").compile(checkpointer=saver)
    first, second = door.invoke(graph, {"log": []}, CONFIG)["__interrupt__"]
    stopped = door.invoke(graph, Command(resume={first.id: "this"}), CONFIG, control=control)
    assert stopped["__interrupt__"] == [Breakpoint("drain", ("asks",)), second]
    assert door.invoke(graph, None, CONFIG)["__interrupt__"] == [second]
    assert door.invoke(graph, Command(resume="that"), CONFIG)["log"] == ["this", "that"]


@pytest.mark.parametrize("inner", [None, True])
def test_a_graph_inside_stops_at_its_own_barrier_and_goes_on_from_there(door, saver, inner):
    control = RunControl()
    child = chain({"x": logs("x", control), "y": logs("y")}, checkpointer=inner, name="child")
    graph = chain({"child": child, "after": logs("after")}, checkpointer=saver)
    stopped = door.invoke(graph, {"log": []}, CONFIG, control=control)
    assert stopped == {"log": [], "__interrupt__": [Breakpoint("drain", ("y",))]}
    assert graph.get_state(CONFIG).next == ("child",)
    assert door.invoke(graph, None, CONFIG) == {"log": ["x", "y", "after"]}  # x did not run again


def test_a_graph_inside_that_is_not_stored_runs_to_its_end(door, saver):
    control = RunControl()
    child = chain({"x": logs("x", control), "y": logs("y")}, checkpointer=False, name="child")
    graph = chain({"child": child, "after": logs("after")}, checkpointer=saver)
    stopped = door.invoke(graph, {"log": []}, CONFIG, control=control)
    assert stopped == {"log": ["x", "y"], "__interrupt__": [Breakpoint("drain", ("after",))]}


def test_a_run_on_a_thread_of_its_own_inside_a_node_is_not_asked(door, saver):
    control = RunControl()
    other = chain({"x": logs("x", control), "y": logs("y")}, checkpointer=InMemorySaver(), name="other")

    def calls(state: State) -> dict:
        return {"log": other.invoke({"log": []}, {"configurable": {"thread_id": "its own"}})["log"]}

    graph = chain({"calls": calls, "after": logs("after")}, checkpointer=saver)
    stopped = door.invoke(graph, {"log": []}, CONFIG, control=control)
    assert stopped == {"log": ["x", "y"], "__interrupt__": [Breakpoint("drain", ("after",))]}


def test_a_run_that_is_not_stored_gives_what_it_has(door):
    control = RunControl()
    child = chain({"x": logs("x", control), "y": logs("y")}, name="child")
    stopped = door.invoke(chain({"child": child, "z": logs("z")}), {"log": []}, control=control)
    assert stopped == {"log": ["x", "y"], "__interrupt__": [Breakpoint("drain", ("z",))]}


def test_streams_tell_of_the_drain_as_of_a_breakpoint(door, saver):
    control = RunControl()
    graph = chain({"a": logs("a", control), "b": logs("b")}, checkpointer=saver)
    parts = door.stream(graph, {"log": []}, CONFIG, stream_mode=["updates", "values"], control=control)
    drain = (Breakpoint("drain", ("b",)),)
    assert parts == [
        ("values", {"log": []}),
        ("updates", {"a": {"log": ["a"]}}),
        ("values", {"log": ["a"]}),
        ("updates", {"__interrupt__": drain}),
        ("values", {"log": ["a"], "__interrupt__": drain}),
    ]


def test_a_breakpoint_of_the_same_barrier_is_what_is_told(door, saver):
    control = RunControl()
    graph = chain({"a": logs("a", control), "b": logs("b")}, checkpointer=saver)
    stopped = door.invoke(graph, {"log": []}, CONFIG, control=control, interrupt_before="b")
    assert stopped["__interrupt__"] == [Breakpoint("before", ("b",))]


def test_one_control_drains_every_run_of_a_batch():
    control = RunControl()
    control.request_drain()
    results = chain({"a": logs("a")}).batch([{"log": ["1"]}, {"log": ["2"]}], control=control)
    drain = [Breakpoint("drain", ("a",))]
    assert results == [{"log": ["1"], "__interrupt__": drain}, {"log": ["2"], "__interrupt__": drain}]


def test_a_control_that_is_none_is_refused_at_the_call(door):
    with pytest.raises(InvalidConfigError, match="control takes a RunControl or None, not 'drain'"):
        door.invoke(chain({"a": logs("a")}), {"log": []}, control="drain")
