"""Sessions: found, listed, forgotten; and their events fold to their state, in every scope."""

import enum
import math
import operator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, TypedDict

import pytest
from pydantic import BaseModel

from pregel.channels.aggregate import Overwrite
from pregel.checkpoint.claim import Claim
from pregel.checkpoint.postgres import PostgresSaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import EncodeError, InvalidIdError, InvalidInputError, ThreadBusyError
from pregel.graph.workflow import (
    Event,
    Runner,
    Scope,
    ScopeConflictError,
    SessionNotFoundError,
    Sessions,
    Workflow,
    WorkflowConfigurationError,
)
from pregel.graph.workflow.folding import fold_events
from pregel.store.base import PutOp
from pregel.store.memory import InMemoryStore
from pregel.store.postgres import PostgresStore
from pregel.store.sqlite import SqliteStore
from tests.workflow.kit import Way


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def sessions(request):
    if request.param == "memory":
        yield Sessions()
    elif request.param == "postgres":
        dsn = request.getfixturevalue("postgres")
        with PostgresSaver(dsn) as saver, PostgresStore(dsn) as store:
            yield Sessions(saver, store)
    else:
        with SqliteSaver(":memory:") as saver, SqliteStore(":memory:") as store:
            yield Sessions(saver, store)


def note(ctx, node_input):
    ctx.state["note"] = node_input


NOTING = Workflow(name="wf", edges=[("START", note)])


def test_sessions_are_listed_by_app_and_by_user(sessions):
    for app in ("a", "ab"):
        runner = Runner(NOTING, app, sessions)
        for user, session in (("u", "2"), ("u", "1"), ("uv", "1")):
            list(runner.run("x", user, session))
    assert [each[:3] for each in sessions.list("a")] == [("a", "u", "1"), ("a", "u", "2"), ("a", "uv", "1")]
    assert [each[:3] for each in sessions.list("ab", "u")] == [("ab", "u", "1"), ("ab", "u", "2")]
    assert sessions.list("nobody") == []
    (first, *_) = sessions.list("a")
    assert first.created <= first.updated


def test_a_long_list_comes_whole(sessions, monkeypatch):
    monkeypatch.setattr("pregel.graph.workflow.sessions.PAGE", 2)
    runner = Runner(NOTING, sessions=sessions)
    for number in range(5):
        list(runner.run("x", session_id=str(number)))
    sessions.checkpointer.copy_thread("app/user/1", "app/user")  # another one's thread
    sessions.checkpointer.copy_thread("app/user/1", "app/user/1/x")
    assert [each.id for each in sessions.list("app")] == ["0", "1", "2", "3", "4"]


def test_a_session_that_is_not_there_names_the_nearest(sessions):
    list(Runner(NOTING, sessions=sessions).run("x", session_id="monday"))
    with pytest.raises(SessionNotFoundError, match=r"no session 'munday'\. Did you mean 'monday'\?"):
        sessions.get("app", "user", "munday")


def test_an_app_that_nobody_named_can_not_be_read(sessions):
    Runner(NOTING, "shop", sessions)
    with pytest.raises(WorkflowConfigurationError, match=r"'shpo'.*Did you mean 'shop'\?"):
        sessions.get("shpo", "user", "s")


def test_a_name_with_a_slash_is_refused(sessions):
    with pytest.raises(InvalidIdError, match="has no slash"):
        Runner(NOTING, "a/b", sessions)
    with pytest.raises(InvalidIdError, match="has no slash"):
        sessions.list("app", "a/b")


def test_a_session_is_forgotten_and_what_it_shared_stays(sessions):
    def share(ctx):
        ctx.state["user:k"] = 1
        ctx.state["own"] = 2

    runner = Runner(Workflow(name="wf", edges=[("START", share)]), sessions=sessions)
    list(runner.run("x", session_id="s"))
    sessions.delete("app", "user", "s")
    sessions.delete("app", "user", "s")
    assert sessions.list("app") == []
    list(runner.run("x", session_id="other"))
    assert sessions.get("app", "user", "other").state["user:k"] == 1
    list(runner.run("x", session_id="s"))  # begins anew, and publishes again
    assert len(sessions.get("app", "user", "s").events) == 2


def test_a_deleted_thread_leaves_nothing_that_a_new_session_of_its_name_stumbles_over(sessions):
    def raise_it(ctx):
        ctx.state["user:n"] = ctx.state.get("user:n", 0) + 1

    runner = Runner(Workflow(name="wf", edges=[("START", raise_it)]), sessions=sessions)
    for _ in range(3):
        list(runner.run("x", session_id="s"))
    sessions.checkpointer.delete_thread("app/user/s")  # and the process died before the rest was done
    list(runner.run("x", session_id="s"))
    assert sessions.get("app", "user", "s").state["user:n"] == 4


# -- what is published when --------------------------------------------------------------------------------------------


class Own(TypedDict):
    n: int


def test_a_workflow_that_shares_nothing_needs_no_store(door):
    class Down(InMemoryStore):
        def batch(self, ops):
            raise ConnectionError("the store is down")

    def put(ctx):
        ctx.state["n"] = 1

    sessions = Sessions(store=Down())
    runner = Runner(Workflow(name="wf", edges=[("START", put)], state_schema=Own), sessions=sessions)

    async def main():
        async for _ in runner.arun("x", session_id="s"):
            pass

    _ = list(runner.run("x", session_id="s")) if door.way == "sync" else door.run(main)
    assert sessions.get("app", "user", "s").state == {"n": 1}


class Flaky(InMemoryStore):
    """Takes nothing while it is down."""

    is_down = False

    def batch(self, ops):
        ops = list(ops)
        if self.is_down and any(isinstance(op, PutOp) for op in ops):
            raise ConnectionError("the store is down")
        return super().batch(ops)


def raise_it(ctx, node_input):
    ctx.state["user:n"] = ctx.state.get("user:n", 0) + 1
    return ctx.state["user:n"]


RAISING = Workflow(name="wf", edges=[("START", raise_it)])


def test_what_could_not_be_published_is_when_the_session_is_next_run(door):
    store = Flaky()
    sessions = Sessions(store=store)
    runner = Runner(RAISING, sessions=sessions)

    def run(given):
        return [event.output for event in runner.run(given, session_id="s")]

    async def arun(given):
        return [event.output async for event in runner.arun(given, session_id="s")]

    def go(given="x"):
        return run(given) if door.way == "sync" else door.run(lambda: arun(given))

    store.is_down = True
    with pytest.raises(ConnectionError):
        go()
    assert store.search(()) == []
    store.is_down = False
    with pytest.raises(InvalidInputError, match="nothing to go on with"):
        go(None)  # the run itself had come to its end
    assert sessions.get("app", "user", "s").state == {"user:n": 1}
    assert go() == [2]
    assert sessions.get("app", "user", "s").state == {"user:n": 2}


def test_what_is_left_to_publish_is_told_of_when_it_conflicts(sessions):
    store = Flaky()
    sessions = Sessions(sessions.checkpointer, store)
    runner = Runner(RAISING, sessions=sessions)
    store.is_down = True
    with pytest.raises(ConnectionError):
        list(runner.run("x", session_id="late"))
    store.is_down = False
    list(runner.run("x", session_id="other"))
    with pytest.raises(ScopeConflictError, match="session 'late'"):
        list(runner.run("x", session_id="late"))
    assert [event.output for event in runner.run("x", session_id="late")] == [2]


def test_nothing_is_published_of_a_session_that_another_run_has():
    store = Flaky()
    sessions = Sessions(store=store)
    runner = Runner(RAISING, sessions=sessions)
    store.is_down = True
    with pytest.raises(ConnectionError):
        list(runner.run("x", session_id="s"))
    store.is_down = False
    claim = Claim(sessions.checkpointer, "app/user/s", "sync")
    assert claim.attempt() is None
    with pytest.raises(ThreadBusyError):
        list(runner.run("x", session_id="s"))
    assert store.search(()) == []
    claim.close()
    assert [event.output for event in runner.run("x", session_id="s")] == [2]


class Counted(TypedDict, total=False):
    n: Annotated[int, operator.add, Scope("app")]
    names: Annotated[list[str], operator.add, Scope("user")]


def test_sessions_that_run_at_once_lose_no_update(sessions):
    def count(ctx, node_input):
        ctx.state["n"] = 1
        ctx.state["names"] = [node_input]

    runner = Runner(Workflow(name="wf", edges=[("START", count)], state_schema=Counted), sessions=sessions)

    def run(name):
        for number in range(5):
            list(runner.run(f"{name}{number}", session_id=name))

    with ThreadPoolExecutor() as pool:
        list(pool.map(run, "abcd"))
    state = sessions.get("app", "user", "a").state
    assert state["app:n"] == 20
    assert sorted(state["user:names"]) == [f"{name}{number}" for name in "abcd" for number in range(5)]


def test_an_error_of_publishing_does_not_hide_that_of_the_run():
    def fail():
        raise ValueError("no")

    store = Flaky()
    store.is_down = True
    runner = Runner(Workflow(name="wf", edges=[("START", raise_it, fail)]), sessions=Sessions(store=store))
    with pytest.raises(ValueError, match="no") as caught:
        list(runner.run("x", session_id="s"))
    assert any("ConnectionError: the store is down" in note for note in caught.value.__notes__)


def test_a_branch_that_was_opened_by_hand_publishes_what_is_its_own(sessions):
    runner = Runner(RAISING, sessions=sessions)
    for _ in range(3):
        list(runner.run("x", session_id="s"))
    thread = {"configurable": {"thread_id": "app/user/s"}}
    first = next(each for each in runner.graph.get_state_history(thread) if len(each.values["@events"]) == 2)
    runner.graph.update_state(first.config, None)
    assert [event.output for event in runner.run("x", session_id="s")] == [4]
    session = sessions.get("app", "user", "s")
    assert session.state == {"user:n": 4}
    assert len(session.events) == 4


def test_all_of_it_on_a_loop(loop, sessions):
    runner = Runner(NOTING, sessions=sessions)

    async def main():
        async for _ in runner.arun("x", session_id="s"):
            pass
        session = await sessions.aget("app", "user", "s")
        listed = await sessions.alist("app", "user")
        await sessions.adelete("app", "user", "s")
        return session.state, [each.id for each in listed], await sessions.alist("app")

    assert loop.run(main) == ({"note": "x"}, ["s"], [])


# -- fold(events) == state ---------------------------------------------------------------------------------------------


class Kept(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    plain: str
    visits: Annotated[int, operator.add, Scope("user")]
    name: Annotated[str, Scope("user")]
    limit: Annotated[int, Scope("app")]
    note: Annotated[str, Scope("temp")]


def work(ctx, node_input):
    state = ctx.state
    state["log"] = [node_input]
    state["visits"] = 2
    state["note"] = "never stored"
    yield Event(state={"visits": 1, "log": ["twice"]})
    if node_input == "delete":
        del state["plain"], state["log"]
        state.pop("name", None)  # the other session may have done so
    elif node_input == "replace":
        state["log"] = Overwrite(["all"])
        state["visits"] = Overwrite(100)
    else:
        state["plain"] = state["name"] = node_input
        state["limit"] = len(node_input)
    yield "done"


@pytest.mark.parametrize("schema", [None, Kept])
def test_the_events_of_a_session_fold_to_its_state_in_every_scope(sessions, schema):
    def free(ctx, node_input):
        ctx.state["user:name"] = node_input
        ctx.state["app:limit"] = len(node_input)
        ctx.state["temp:note"] = "never stored"
        ctx.state["plain"] = node_input
        if node_input == "delete":
            del ctx.state["user:name"]
            del ctx.state["plain"]

    edges = [("START", free if schema is None else work)]
    runner = Runner(Workflow(name="wf", edges=edges, state_schema=schema), sessions=sessions)
    for number, given in enumerate(["one", "delete", "two", "replace", "delete", "three", "one"]):
        for session in ("a", "b"):  # each sees what the other one has shared
            list(runner.run(given, session_id=session))
            head = sessions.thread("app", "user", session).head()
            assert fold_events(head.events, schema) == dict(head.state), (number, session)
            shown = sessions.get("app", "user", session).events
            assert fold_events(shown, schema) == dict(head.state)
            texts = [event.model_dump_json(by_alias=True) for event in shown]
            assert fold_events(map(Event.model_validate_json, texts), schema) == dict(head.state)
            assert {key: value for key, value in head.state.items() if ":" in key} == {
                key: value for key, value in sessions.get("app", "user", session).state.items() if ":" in key
            }
            assert all(not key.startswith("temp:") for event in head.events for key in event.delta)


# -- what is stored comes back -----------------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: int


class Person(BaseModel):
    name: str


class Rich(TypedDict, total=False):
    value: datetime | set | tuple | bytes | dict | float | Colour | Point | Person


VALUES = [
    datetime(2024, 2, 29, 12, tzinfo=UTC),
    {1, 2},
    (1, (2, "x")),
    b"\x00\xff",
    {1: "one", 2: {"deep": (3,)}},
    Colour.RED,
    Point(1, 2),
    Person(name="Ada"),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_come_back_from_a_file_as_they_were(tmp_path, value):
    def put(ctx):
        ctx.state["value"] = value

    workflow = Workflow(name="wf", edges=[("START", put)], state_schema=Rich)
    with SqliteSaver(tmp_path / "runs.db") as saver, SqliteStore(tmp_path / "store.db") as store:
        list(Runner(workflow, sessions=Sessions(saver, store)).run("x", session_id="s"))
    with SqliteSaver(tmp_path / "runs.db") as saver, SqliteStore(tmp_path / "store.db") as store:
        sessions = Sessions(saver, store)
        Runner(workflow, sessions=sessions)
        session = sessions.get("app", "user", "s")
    for found in (session.state["value"], session.events[1].actions.state_delta["value"]):
        assert found == value
        assert type(found) is type(value)


@pytest.mark.parametrize("key", ["value", "user:value", "app:value"])
def test_nan_and_int_keys_come_back_in_every_scope(tmp_path, key):
    def put(ctx):
        ctx.state[key] = {1: math.nan, 2: -0.0}

    workflow = Workflow(name="wf", edges=[("START", put)])
    with SqliteSaver(tmp_path / "runs.db") as saver, SqliteStore(tmp_path / "store.db") as store:
        list(Runner(workflow, sessions=Sessions(saver, store)).run("x", session_id="s"))
    with SqliteSaver(tmp_path / "runs.db") as saver, SqliteStore(tmp_path / "store.db") as store:
        sessions = Sessions(saver, store)
        Runner(workflow, sessions=sessions)
        value = sessions.get("app", "user", "s").state[key]
    assert math.isnan(value[1])
    assert math.copysign(1, value[2]) == -1


@pytest.mark.parametrize("key", ["own", "user:k", "app:k"])
def test_what_can_not_be_stored_is_refused_when_it_is_written_and_named(sessions, key):
    def put(ctx):
        ctx.state[key] = {"a": [lambda: 1]}

    runner = Runner(Workflow(name="wf", edges=[("START", put)]), sessions=sessions)
    with pytest.raises(EncodeError, match=rf"{key}.*\['a'\]\[0\].*can't store"):
        list(runner.run("x", session_id="s"))
    assert sessions.get("app", "user", "s").state == {}


def test_a_value_that_changed_in_the_store_to_an_equal_one_of_another_type_is_seen(sessions):
    seen = []

    def look(ctx):
        seen.append(ctx.state.get("user:flag"))

    runner = Runner(Workflow(name="wf", edges=[("START", look)]), sessions=sessions)
    for value in (1, True, 1.0, [1], [True]):
        sessions.store.put(("workflow", "app", "user", "user"), "flag", {"value": value})
        list(runner.run("x", session_id="s"))
    assert list(map(repr, seen)) == ["1", "True", "1.0", "[1]", "[True]"]


def test_shared_keys_that_would_be_lost_at_the_end_of_the_process_are_an_error(door):
    def shares(ctx):
        ctx.state["own"] = 1
        ctx.state["user:shared"] = 1

    runner = Workflow("w", [("START", shares)])
    with SqliteSaver(":memory:") as saver:
        sessions = Sessions(saver)
        *_, told, error = Way(door).events(Runner(runner, sessions=sessions), "go", session_id="s")
        assert isinstance(error, WorkflowConfigurationError)
        assert "session 's' has written 'user:shared'" in str(error)
        assert told.error_code == "WorkflowConfigurationError"
        kept = Sessions(saver, InMemoryStore())  # what was written is published once there is a store
        Way(door).events(Runner(runner, sessions=kept), "go", session_id="s")
        assert kept.store.get(("workflow", "app", "user", "user"), "shared").value == {"value": 1}


def test_without_shared_keys_no_store_is_needed(door):
    def own(ctx):
        ctx.state["own"] = 1

    with SqliteSaver(":memory:") as saver:
        sessions = Sessions(saver)
        Way(door).events(Runner(Workflow("w", [("START", own)]), sessions=sessions), "go", session_id="s")
        assert sessions.get("app", "user", "s").state == {"own": 1}
