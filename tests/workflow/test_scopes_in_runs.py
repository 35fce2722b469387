"""Keys of the user, the app and one run, as runs of sessions read and write them."""

import operator
from typing import Annotated, TypedDict

import pytest

from pregel.errors import (
    InvalidInputError,
)
from pregel.graph.workflow import RequestInput, Runner, Workflow, node
from pregel.graph.workflow.errors import NotPersistedError, ScopeConflictError, StateSchemaError
from pregel.graph.workflow.scopes import Scope


class Scoped(TypedDict, total=False):
    visits: Annotated[int, operator.add, Scope("user")]
    name: Annotated[str, Scope("user")]
    total: Annotated[int, operator.add, Scope("app")]
    note: Annotated[str, Scope("temp")]
    n: int


def visit(ctx, node_input):
    ctx.state["visits"] = 1
    ctx.state["app:total"] = 1
    return ctx.state["user:visits"]


VISITING = Workflow(name="wf", edges=[("START", visit)], state_schema=Scoped)


def test_keys_of_the_user_and_of_the_app_outlive_the_session(way, sessions):
    runner = Runner(VISITING, sessions=sessions)
    outputs = [way.events(runner, "go", user, session)[0].output for user, session in
               (("ada", "1"), ("ada", "1"), ("ada", "2"), ("bob", "1"))]  # fmt: skip
    assert outputs == [1, 2, 3, 1]
    assert sessions.get("app", "ada", "1").state == {"user:visits": 3, "app:total": 4}


def test_a_parameter_reads_a_scoped_key(sessions):
    def read(visits):
        return visits

    runner = Runner(Workflow(name="wf", edges=[("START", visit, read)], state_schema=Scoped), sessions=sessions)
    assert [event.output for event in runner.run("go")] == [1, 1]


def test_without_a_schema_prefixes_do_the_same(way, sessions):
    def name(ctx, node_input):
        before = ctx.state.get("user:name", "nobody")
        ctx.state["user:name"] = node_input
        return before

    def forget(ctx):
        del ctx.state["user:name"]

    runner = Runner(Workflow(name="wf", edges=[("START", name)]), sessions=sessions)
    assert [way.events(runner, given, session_id=given)[0].output for given in ("Ada", "Bob")] == ["nobody", "Ada"]
    way.events(Runner(Workflow(name="forgets", edges=[("START", forget)]), sessions=sessions), "go", session_id="x")
    runner = Runner(Workflow(name="wf", edges=[("START", name)]), sessions=sessions)
    assert way.events(runner, "Eve", session_id="Ada")[0].output == "nobody"


def test_an_unknown_prefix_is_an_error_in_a_run(sessions):
    def f(ctx):
        ctx.state["usr:name"] = 1

    with pytest.raises(StateSchemaError, match=r"node 'f' of workflow 'wf'.*Did you mean 'user'\?"):
        list(Runner(Workflow(name="wf", edges=[("START", f)]), sessions=sessions).run("go"))


def test_temp_keys_live_for_one_run_and_are_in_no_event(way, sessions):
    def write(ctx, node_input):
        before = ctx.state.get("temp:note", "nothing")
        ctx.state["temp:note"] = node_input
        return before

    def read(ctx):
        return ctx.state["temp:note"]

    runner = Runner(Workflow(name="wf", edges=[("START", write, read)]), sessions=sessions)
    for given in ("a", "b"):
        events = way.events(runner, given, session_id="s")
        assert [event.output for event in events] == ["nothing", given]
        assert all(not event.actions.state_delta for event in events)
    session = sessions.get("app", "user", "s")
    assert session.state == {}


@pytest.mark.parametrize("schema", [None, Scoped])
def test_a_temp_key_is_not_there_any_more_after_a_reply_and_says_so(way, sessions, schema):
    def write(ctx):
        ctx.state["temp:note"] = "x"

    def read(ctx):
        return ctx.state.get("temp:note")

    edges = [("START", write, node(lambda: RequestInput(message="?"), name="asks"), read)]
    runner = Runner(Workflow(name="wf", edges=edges, state_schema=schema), sessions=sessions)
    way.events(runner, "go", session_id="s")
    error = way.events(runner, "yes", session_id="s")[-1]
    assert isinstance(error, NotPersistedError)
    assert "is not persisted" in str(error)


def test_a_conflict_of_sessions_is_an_event_and_an_error_and_the_next_run_reads_the_store(way, sessions):
    def name(ctx, node_input):
        before = ctx.state.get("name", "nobody")
        ctx.state["name"] = node_input
        if node_input == "outer":
            list(inner.run("inner", session_id="inner"))
        return before

    workflow = Workflow(name="wf", edges=[("START", node(name, name="name_it"))], state_schema=Scoped)
    inner = Runner(workflow, sessions=sessions)
    runner = Runner(workflow, sessions=sessions)
    told, failed, error = way.events(runner, "outer", session_id="outer")
    assert told.output == "nobody"
    assert failed.error_code == "ScopeConflictError"
    assert isinstance(error, ScopeConflictError)
    assert way.events(runner, "again", session_id="outer")[0].output == "inner"
    assert sessions.get("app", "user", "outer").state["user:name"] == "again"


def test_a_value_in_the_store_that_the_schema_does_not_take_is_an_error(sessions):
    sessions.store.put(("workflow", "app", "user", "user"), "visits", {"value": "many"})
    with pytest.raises(StateSchemaError, match=r"the store of app 'app'.*'user:visits'.*'many'"):
        list(Runner(VISITING, sessions=sessions).run("go"))


def test_what_another_program_has_put_into_the_store_is_seen(sessions):
    sessions.store.put(("workflow", "app", "user", "user"), "visits", {"value": 41})
    sessions.store.put(("workflow", "app", "app"), "undeclared", {"value": 1})
    (event,) = Runner(VISITING, sessions=sessions).run("go")
    assert event.output == 42


def test_a_state_that_cannot_be_set_is_refused(way, sessions):
    runner = Runner(Workflow("wf", [("START", visit)], state_schema=Scoped), sessions=sessions)
    shared, unknown, none = (
        way.events(runner, "go", session_id="s", state=state)[-1] for state in ({"total": 1}, {"totl": 1}, 5)
    )
    assert isinstance(shared, InvalidInputError)
    assert "state= can't set 'total', which sessions share: let a node set it" in str(shared)
    assert isinstance(unknown, InvalidInputError)
    assert "Did you mean 'total'?" in str(unknown)
    assert isinstance(none, InvalidInputError)
