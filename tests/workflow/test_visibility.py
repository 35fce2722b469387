"""Who sees which write, and what becomes of writes that compete: every row, in any order of completion."""

import operator
from typing import Annotated, TypedDict

import anyio
import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import InvalidConcurrentUpdateError, ThreadBusyError
from pregel.graph.workflow import (
    Event,
    JoinNode,
    Runner,
    Scope,
    ScopeConflictError,
    Sessions,
    Workflow,
    WorkflowDataError,
    node,
)
from pregel.graph.workflow.folding import fold_events
from pregel.graph.workflow.running import EVENTS
from pregel.graph.workflow.schema import fields_of
from pregel.store.memory import InMemoryStore
from pregel.testing import fake_clock, run_seeded
from pregel.types import RetryPolicy

SEEDS = range(100)
CONFIG = {"configurable": {"thread_id": "t"}}


class Counted(TypedDict, total=False):
    n: Annotated[int, operator.add]
    log: Annotated[list[str], operator.add]
    seen: dict


def outcomes(edges, schema=None):
    """Run a workflow in 100 orders of completion; return what it came to if that is always the same."""
    graph = Workflow(name="wf", edges=edges, state_schema=schema).compile(InMemorySaver())
    found = []
    for seed in SEEDS:
        config = {"configurable": {"thread_id": f"t{seed}"}}
        run = run_seeded(graph, {"node_input": "go"}, seed=seed, config=config)
        values = graph.get_state(config).values
        keys = [] if schema is None else [key for key in fields_of(schema) if key in values]
        state = values.get("state") if schema is None else {key: values[key] for key in keys}
        events = values.get(EVENTS) or []
        if values:
            assert fold_events(events, schema) == (state or {})
        found.append((run.result, None if run.error is None else (type(run.error), str(run.error)), state, events))
    assert all(each == found[0] for each in found)
    return found[0]


def collect(ctx, node_input):
    return node_input


def collect_all(run, events):
    """Read a run to its end, also to one that is an error."""
    for event in run:
        events.append(event)


# -- what siblings see -------------------------------------------------------------------------------------------------


def test_a_sibling_does_not_see_what_another_one_has_written():
    def writer(ctx):
        ctx.state["k"] = "uncommitted"

    def reader(ctx):
        return ctx.state.get("k")

    result, error, state, _ = outcomes([("START", (writer, reader), JoinNode("join"), collect)])
    assert error is None
    assert result["output"] == {"writer": None, "reader": None}
    assert state == {"k": "uncommitted"}


def test_a_value_of_a_node_that_fails_is_copied_by_nobody():
    def writer(ctx):
        ctx.state["k"] = "never-valid"
        raise ValueError("no")

    def reader(ctx):
        ctx.state["copied"] = ctx.state.get("k", "nothing")

    _, error, state, events = outcomes([("START", (writer, reader), JoinNode("join"), collect)])
    assert error == (ValueError, "no")
    assert not state
    assert all(not event.delta for event in events or [])


def test_a_plain_counter_that_two_branches_raise_is_a_conflict_that_names_both():
    def one(ctx):
        ctx.state["n"] = ctx.state.get("n", 0) + 1

    def two(ctx):
        ctx.state["n"] = ctx.state.get("n", 0) + 1

    _, (kind, text), state, _ = outcomes([("START", (one, two), JoinNode("join"))])
    assert kind is InvalidConcurrentUpdateError
    assert "'n'" in text
    assert "node 'one'" in text
    assert "node 'two'" in text
    assert not state


def test_a_counter_with_a_reducer_counts_both_branches():
    def one(ctx):
        ctx.state["n"] = 1

    def two(ctx):
        yield Event(state={"n": 1})

    result, error, state, _ = outcomes([("START", (one, two), JoinNode("join"))], Counted)
    assert error is None
    assert state["n"] == 2
    assert result["output"] == {"one": None, "two": None}


def test_two_branches_that_set_one_key_are_a_conflict_even_with_equal_values():
    def one(ctx):
        ctx.state["k"] = "same"

    def two(ctx):
        yield Event(state={"k": "same"})

    _, (kind, text), _, _ = outcomes([("START", (one, two), JoinNode("join"))])
    assert kind is InvalidConcurrentUpdateError
    assert "'k'" in text


def test_two_branches_that_append_to_one_list_both_count_in_declaration_order():
    def one(ctx):
        ctx.state["log"] = ["one"]

    def two(ctx):
        ctx.state["log"] = ["two"]
        ctx.state["log"] = ["two again"]

    _, error, state, _ = outcomes([("START", (one, two), JoinNode("join"))], Counted)
    assert error is None
    assert state["log"] == ["one", "two", "two again"]


def test_other_keys_of_one_state_do_not_conflict():
    def one(ctx):
        ctx.state["a"] = 1

    def two(ctx):
        ctx.state["b"] = 2

    _, error, state, _ = outcomes([("START", (one, two), JoinNode("join"))])
    assert error is None
    assert state == {"a": 1, "b": 2}


def test_items_of_a_parallel_worker_accumulate_in_item_order():
    def split():
        return ["a", "b", "c"]

    def work(ctx, node_input):
        ctx.state["log"] = [node_input]
        return node_input.upper()

    result, error, state, _ = outcomes([("START", split, node(work, parallel_worker=True))], Counted)
    assert error is None
    assert state["log"] == ["a", "b", "c"]
    assert result["output"] == ["A", "B", "C"]


# -- what fails --------------------------------------------------------------------------------------------------------


def test_a_branch_that_raises_lets_its_sibling_end_and_nothing_is_committed_twice():
    ran = []
    fails = [True]

    def one(ctx):
        ran.append("one")
        ctx.state["a"] = 1

    def two(ctx):
        ran.append("two")
        ctx.state["b"] = 2
        if fails:
            raise ValueError("no")

    for seed in SEEDS:
        ran.clear()
        fails[:] = [True]
        graph = Workflow(name="wf", edges=[("START", (one, two), JoinNode("join"))]).compile(InMemorySaver())
        run = run_seeded(graph, {"node_input": "go"}, seed=seed, config=CONFIG)
        assert isinstance(run.error, ValueError)
        assert not graph.get_state(CONFIG).values.get("state")
        fails.clear()
        graph.invoke(None, CONFIG)
        assert graph.get_state(CONFIG).values["state"] == {"a": 1, "b": 2}
        assert sorted(ran) == ["one", "two", "two"]


def test_the_error_of_a_node_is_told_without_state_and_nothing_of_it_is_kept():
    def f(ctx):
        ctx.state["dirty"] = 1
        raise ValueError("no")

    runner = Runner(Workflow(name="wf", edges=[("START", f)]))
    events = []
    with pytest.raises(ValueError, match="no"):
        collect_all(runner.run("go", session_id="s"), events)
    failed = [event for event in events if event.error_code]
    assert [(event.error_code, event.error_message) for event in failed] == [("ValueError", "no")]
    assert failed[0].actions.state_delta == {}
    assert dict(runner.sessions.get("app", "user", "s").state) == {}


def test_each_attempt_begins_with_the_same_state():
    seen = []

    def f(ctx):
        seen.append(ctx.state.get("n", 0))
        ctx.state["n"] = ctx.state.get("n", 0) + 1
        if ctx.attempt_count < 3:
            raise ConnectionError

    retry = RetryPolicy(initial_interval=0.0, jitter=False)
    graph = Workflow(name="wf", edges=[("START", node(f, retry=retry))]).compile(InMemorySaver())
    graph.invoke({"node_input": "go"}, CONFIG)
    assert seen == [0, 0, 0]
    assert graph.get_state(CONFIG).values["state"] == {"n": 1}


def test_writes_before_a_timeout_are_rolled_back():
    async def f(ctx):
        ctx.state["k"] = 1
        clock.advance(6)
        await anyio.sleep_forever()

    graph = Workflow(name="wf", edges=[("START", node(f, timeout=5.0))]).compile(InMemorySaver())
    with fake_clock() as clock, pytest.raises(TimeoutError, match="'f'"):
        graph.invoke({"node_input": "go"}, CONFIG)
    assert not graph.get_state(CONFIG).values.get("state")


# -- the order of writes -----------------------------------------------------------------------------------------------


def by_context_first(ctx):
    ctx.state["k"] = "context"
    yield Event(state={"k": "event"})


def by_event_first(ctx):
    yield Event(state={"k": "event"})
    ctx.state["k"] = "context"


@pytest.mark.parametrize(("f", "last"), [(by_context_first, "event"), (by_event_first, "context")])
def test_the_later_write_wins_whichever_way_it_was_made(f, last):
    _, error, state, _ = outcomes([("START", f)])
    assert error is None
    assert state == {"k": last}


def test_a_node_sees_its_own_writes_at_once():
    def f(ctx):
        seen = [ctx.state.get("k")]
        yield Event(state={"k": "v"})
        seen.append(ctx.state.get("k"))
        yield seen

    result, _, _, _ = outcomes([("START", f)])
    assert result["output"] == [None, "v"]


def test_a_partial_event_with_state_is_an_error():
    def f():
        yield Event(partial=True, content="...", state={"k": 1})

    _, (kind, text), state, _ = outcomes([("START", f)])
    assert kind is WorkflowDataError
    assert "partial" in text
    assert not state


# -- sessions ----------------------------------------------------------------------------------------------------------


def test_a_second_invocation_on_one_session_is_refused_before_anything_runs():
    sessions = Sessions()
    ran = []
    inner = []

    def f(ctx):
        ran.append("f")
        ctx.state["n"] = ctx.state.get("n", 0) + 1
        if not inner:
            inner.append("called")
            with pytest.raises(ThreadBusyError):
                list(other.run("go", session_id="s"))

    other = Runner(Workflow(name="wf", edges=[("START", f)]), sessions=sessions)
    list(other.run("go", session_id="s"))
    assert ran == ["f"]
    assert sessions.get("app", "user", "s").state == {"n": 1}


class Shared(TypedDict, total=False):
    visits: Annotated[int, operator.add, Scope("app")]
    last: Annotated[str, Scope("user")]


def test_counters_of_the_app_count_every_session():
    sessions = Sessions(store=InMemoryStore())

    def f(ctx, node_input):
        ctx.state["visits"] = 1
        if node_input == "nested":
            list(runner.run("plain", session_id="inner"))  # another session, begun and ended meanwhile

    runner = Runner(Workflow(name="wf", edges=[("START", f)], state_schema=Shared), sessions=sessions)
    list(runner.run("nested", session_id="outer"))
    list(runner.run("plain", session_id="inner"))
    assert sessions.get("app", "user", "inner").state["app:visits"] == 3


def test_a_plain_key_of_the_user_that_two_sessions_set_at_once_is_a_conflict():
    sessions = Sessions()

    def f(ctx, node_input):
        ctx.state["last"] = node_input
        if node_input == "outer":
            list(runner.run("inner", session_id="inner"))

    runner = Runner(Workflow(name="wf", edges=[("START", f)], state_schema=Shared), sessions=sessions)
    with pytest.raises(ScopeConflictError, match=r"'user:last', to which it wrote 'outer' .*holds 'inner'"):
        list(runner.run("outer", session_id="outer"))
    assert sessions.get("app", "user", "outer").state["user:last"] == "inner"


# -- the order of events -----------------------------------------------------------------------------------------------


def test_events_of_a_superstep_come_in_declaration_order():
    def say(name):
        def f():
            yield Event(content=f"{name}1")
            yield Event(content=f"{name}2")
            yield name

        f.__name__ = name
        return f

    a, b, c, d = map(say, "abcd")
    _, error, _, events = outcomes([("START", (c, a, b), JoinNode("join"), d)])
    assert error is None
    told = [event.content or event.output for event in events if event.path and "join" not in event.path]
    assert told == ["c1", "c2", "c", "a1", "a2", "a", "b1", "b2", "b", "d1", "d2", "d"]
