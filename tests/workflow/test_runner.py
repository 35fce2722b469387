"""`Runner`: events as supersteps are committed, replies, going on after a failure, rewinding."""

import json
import operator
from contextlib import aclosing
from threading import Thread
from typing import Annotated, TypedDict

import pytest

from pregel import Command
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import (
    CheckpointNotFoundError,
    InvalidIdError,
    InvalidInputError,
    InvalidResumeError,
    ThreadBusyError,
)
from pregel.graph.workflow import Event, JoinNode, RequestInput, Runner, Sessions, Workflow, node
from pregel.graph.workflow.errors import NotPersistedError, ScopeConflictError, SessionNotFoundError, StateSchemaError
from pregel.graph.workflow.scopes import Scope
from pregel.store.sqlite import SqliteStore


@pytest.fixture(params=["memory", "sqlite"])
def sessions(request):
    if request.param == "memory":
        yield Sessions()
    else:
        with SqliteSaver(":memory:") as saver, SqliteStore(":memory:") as store:
            yield Sessions(saver, store)


class Way:
    """Runs a workflow in one of the three ways."""

    def __init__(self, door):
        self.door = door

    def events(self, runner, *args, **options):
        """Return the events of a run, with the error that ended it, if one did, as the last item."""
        found = []
        try:
            if self.door.way == "sync":
                for event in runner.run(*args, **options):
                    found.append(event)
            else:

                async def main():
                    async for event in runner.arun(*args, **options):
                        found.append(event)

                self.door.run(main)
        except Exception as error:
            found.append(error)
        return found


@pytest.fixture
def way(door):
    return Way(door)


def process_initial_input(ctx, node_input: str):
    ctx.state["original_text"] = node_input
    return node_input


def update_state_via_event(node_input: str):
    yield Event(state={"uppercased_text": node_input.upper()})


async def read_state_via_ctx(ctx):
    result = f"{ctx.state['uppercased_text']} (Original was: {ctx.state['original_text']})"
    ctx.state["appended_text"] = result
    return result


def read_state_via_param(appended_text: str):
    return f"Final Result: {appended_text}!"


SAMPLE = Workflow(
    name="state_sample",
    edges=[("START", process_initial_input, update_state_via_event, read_state_via_ctx, read_state_via_param)],
)


def test_the_sample_gives_its_four_events_its_state_and_its_result(way, sessions):
    events = way.events(Runner(SAMPLE, sessions=sessions), "go", session_id="s")
    text = "GO (Original was: go)"
    assert [(event.author, event.path, event.actions.state_delta) for event in events] == [
        ("state_sample", "state_sample@1/process_initial_input@1", {"original_text": "go"}),
        ("state_sample", "state_sample@1/update_state_via_event@1", {"uppercased_text": "GO"}),
        ("state_sample", "state_sample@1/read_state_via_ctx@1", {"appended_text": text}),
        ("state_sample", "state_sample@1/read_state_via_param@1", {}),
    ]
    assert [event.output for event in events if event.has_output] == ["go", text, f"Final Result: {text}!"]
    assert [event.step for event in events] == [1, 2, 3, 4]
    assert [event.sequence for event in events] == [2, 3, 4, 5]
    session = sessions.get("app", "user", "s")
    assert session.state == {"original_text": "go", "uppercased_text": "GO", "appended_text": text}
    assert (session.events[0].author, session.events[0].content) == ("user", "go")
    assert [event.sequence for event in session.events] == [1, 2, 3, 4, 5]


def test_events_are_json_in_camel_case(sessions):
    (event, *_) = Runner(SAMPLE, sessions=sessions).run("go")
    told = json.loads(event.model_dump_json(by_alias=True))
    assert told["actions"]["stateDelta"] == {"original_text": "go"}


def test_events_come_when_their_superstep_is_committed(sessions):
    seen = []

    def one():
        return "one"

    def two():
        seen.append(list(told))
        return "two"

    told = []
    for event in Runner(Workflow(name="wf", edges=[("START", one, two)]), sessions=sessions).run("go"):
        told.append(event.output)
    assert seen == [["one"]]
    assert told == ["one", "two"]


def test_partial_events_are_told_and_not_kept(way, sessions):
    def speak():
        yield Event(partial=True, content="hel")
        yield Event(partial=True, content="hello")
        yield Event(content="hello")

    events = way.events(Runner(Workflow(name="wf", edges=[("START", speak)]), sessions=sessions), "go", session_id="s")
    assert [(event.content, event.partial) for event in events] == [("hel", True), ("hello", True), ("hello", False)]
    assert [event.content for event in sessions.get("app", "user", "s").events] == ["go", "hello"]


def test_a_run_without_a_session_gets_a_new_one(sessions):
    runner = Runner(SAMPLE, sessions=sessions)
    first, second = runner.run("go"), runner.run("go")
    assert first.session_id != second.session_id
    list(first)
    assert [each.id for each in sessions.list("app")] == [first.session_id]


def count(ctx):
    ctx.state["n"] = ctx.state.get("n", 0) + 1
    return ctx.state["n"]


def test_runs_of_one_session_go_on_with_its_state(way, sessions):
    runner = Runner(Workflow(name="wf", edges=[("START", count)]), sessions=sessions)
    outputs = [way.events(runner, "go", session_id=name)[0].output for name in ("a", "a", "b", "a")]
    assert outputs == [1, 2, 1, 3]


# -- failures ----------------------------------------------------------------------------------------------------------


def test_a_failing_run_ends_with_an_event_without_state_and_the_error(way, sessions):
    def fine(ctx):
        ctx.state["k"] = 1

    def fails(ctx):
        ctx.state["k"] = 2
        raise ValueError("no")

    runner = Runner(Workflow(name="wf", edges=[("START", fine, fails)]), sessions=sessions)
    told, failed, error = way.events(runner, "go", session_id="s")
    assert told.actions.state_delta == {"k": 1}
    assert (failed.author, failed.error_code, failed.error_message) == ("wf", "ValueError", "no")
    assert failed.actions.state_delta == {}
    assert isinstance(error, ValueError)
    assert sessions.get("app", "user", "s").state == {"k": 1}


def test_a_failure_of_the_barrier_is_told_once_too(way, sessions):
    def one(ctx):
        ctx.state["k"] = 1

    def two(ctx):
        ctx.state["k"] = 2

    runner = Runner(Workflow(name="wf", edges=[("START", (one, two))]), sessions=sessions)
    failed, error = way.events(runner, "go")
    assert failed.error_code == type(error).__name__ == "InvalidConcurrentUpdateError"
    assert failed.error_message == str(error)


def test_each_of_two_that_fail_side_by_side_has_an_event(way, sessions):
    def one():
        raise ValueError("one")

    async def two():
        raise TypeError("two")

    runner = Runner(Workflow(name="wf", edges=[("START", (one, two))]), sessions=sessions)
    *failed, error = way.events(runner, "go")
    assert sorted((event.error_code, event.error_message) for event in failed) == [
        ("TypeError", "two"),
        ("ValueError", "one"),
    ]
    assert sorted(map(str, error.exceptions)) == ["one", "two"]


def test_a_failed_run_goes_on_where_it_stood(way, sessions):
    ran = []

    def first():
        ran.append("first")

    def second(ctx):
        ran.append("second")
        if len(ran) < 3:
            raise ConnectionError
        return "done"

    runner = Runner(Workflow(name="wf", edges=[("START", first, second)]), sessions=sessions)
    assert isinstance(way.events(runner, "go", session_id="s")[-1], ConnectionError)
    assert sessions.get("app", "user", "s").next == ("second",)
    assert [event.output for event in way.events(runner, None, session_id="s")] == ["done"]
    assert ran == ["first", "second", "second"]


def test_none_has_nothing_to_go_on_with_where_nothing_is_due(sessions):
    runner = Runner(Workflow(name="wf", edges=[("START", count)]), sessions=sessions)
    text = "session 's' of user 'user' of app 'app' has nothing to go on with"
    for _ in range(2):
        with pytest.raises(InvalidInputError, match=text):
            list(runner.run(None, session_id="s"))
        list(runner.run("go", session_id="s"))


@pytest.mark.parametrize(("user", "session"), [("a/b", "s"), ("u", "a/b"), ("", "s"), (None, "s"), ("u", "x" * 600)])
def test_names_that_can_be_none_are_refused_at_once(user, session):
    with pytest.raises(InvalidIdError):
        Runner(SAMPLE).run("go", user, session)


def test_a_run_that_is_left_keeps_what_it_committed(sessions):
    def shared(ctx):
        ctx.state["user:k"] = 1

    runner = Runner(Workflow(name="wf", edges=[("START", shared, count)]), sessions=sessions)
    run = runner.run("go", session_id="s")
    next(run)
    run.close()
    assert sessions.get("app", "user", "s").state == {"user:k": 1}
    assert [event.output for event in runner.run(None, session_id="s")] == [1]


def test_a_run_that_is_left_on_a_loop_keeps_what_it_committed(loop, sessions):
    async def shared(ctx):
        ctx.state["user:k"] = 1

    runner = Runner(Workflow(name="wf", edges=[("START", shared, count)]), sessions=sessions)

    async def main():
        async with aclosing(runner.arun("go", session_id="s")) as run:
            await anext(run)

    loop.run(main)
    assert sessions.get("app", "user", "s").state["user:k"] == 1


# -- replies -----------------------------------------------------------------------------------------------------------


def ask(ctx):
    ctx.state["asked"] = ctx.state.get("asked", 0) + 1
    return RequestInput(interrupt_id="name", message="who?", response_schema=str)


def greet(ctx, node_input):
    return f"hello {node_input}"


ASKING = Workflow(name="wf", edges=[("START", ask, greet)])


@pytest.mark.parametrize(
    "reply", ["Ada", {"name": "Ada"}, Command(resume="Ada")], ids=["bare", "by interrupt_id", "command"]
)
def test_a_paused_run_asks_and_a_reply_resumes_it(way, sessions, reply):
    runner = Runner(ASKING, sessions=sessions)
    (asked,) = way.events(runner, "go", session_id="s")
    assert (asked.content["interrupt_id"], asked.content["message"]) == ("name", "who?")
    assert [request.value["message"] for request in sessions.get("app", "user", "s").requests] == ["who?"]
    events = way.events(runner, reply, session_id="s")
    assert [event.output for event in events if event.has_output] == ["Ada", "hello Ada"]
    session = sessions.get("app", "user", "s")
    assert session.state == {"asked": 1}
    assert session.requests == ()


def test_a_paused_run_that_gets_no_reply_asks_again(way, sessions):
    runner = Runner(ASKING, sessions=sessions)
    (first,) = way.events(runner, "go", session_id="s")
    (second,) = way.events(runner, None, session_id="s")
    sessions.store.put(("workflow", "app", "user", "user"), "name", {"value": "changed"})
    (third,) = way.events(runner, None, session_id="s")  # it sees what is shared, and that is no reply
    assert first == second == third
    assert sessions.thread("app", "user", "s").head().state["user:name"] == "changed"


def test_a_reply_that_does_not_fit_is_refused_and_the_run_stays_paused(way, sessions):
    runner = Runner(ASKING, sessions=sessions)
    way.events(runner, "go", session_id="s")
    assert isinstance(way.events(runner, 7, session_id="s")[-1], InvalidResumeError)
    assert [event.output for event in way.events(runner, "Ada", session_id="s") if event.has_output][-1] == "hello Ada"


def test_two_questions_are_replied_to_by_their_names(way, sessions):
    def ask_for(name):
        def f():
            return RequestInput(interrupt_id=name, message=f"{name}?")

        f.__name__ = name
        return f

    a, b = ask_for("a"), ask_for("b")
    workflow = Workflow(name="wf", edges=[("START", (a, b), JoinNode("join"))])
    runner = Runner(workflow, sessions=sessions)
    assert [event.content["message"] for event in way.events(runner, "go", session_id="s")] == ["a?", "b?"]
    assert isinstance(way.events(runner, "bare", session_id="s")[-1], InvalidResumeError)
    (still,) = way.events(runner, {"b": 2}, session_id="s")
    assert still.content["message"] == "a?"
    events = way.events(runner, {"a": 1}, session_id="s")
    assert events[-1].output == {"a": 1, "b": 2}


def test_two_questions_of_one_name_are_told_apart_by_their_ids(sessions):
    def one():
        return RequestInput(message="1?")

    def two():
        return RequestInput(message="2?")

    runner = Runner(Workflow(name="wf", edges=[("START", (one, two), JoinNode("join"))]), sessions=sessions)
    first, second = runner.run("go", session_id="s")
    with pytest.raises(InvalidResumeError, match="2 questions have the interrupt_id 'input'"):
        list(runner.run({"input": 1}, session_id="s"))
    events = list(runner.run({first.content["id"]: 1, second.content["id"]: 2}, session_id="s"))
    assert events[-1].output == {"one": 1, "two": 2}


def test_a_command_that_does_more_than_to_reply_is_refused(sessions):
    runner = Runner(ASKING, sessions=sessions)
    list(runner.run("go", session_id="s"))
    for command in (Command(update={}), Command(resume=1, goto="greet"), Command(resume=1, update={"x": 1})):
        with pytest.raises(InvalidInputError, match=r"Command\(resume=...\)"):
            list(runner.run(command, session_id="s"))


def test_the_session_of_a_paused_run_lives_in_another_process(tmp_path):
    with SqliteSaver(tmp_path / "runs.db") as saver, SqliteStore(tmp_path / "store.db") as store:
        list(Runner(ASKING, sessions=Sessions(saver, store)).run("go", session_id="s"))
    with SqliteSaver(tmp_path / "runs.db") as saver, SqliteStore(tmp_path / "store.db") as store:
        events = list(Runner(ASKING, sessions=Sessions(saver, store)).run("Ada", session_id="s"))
    assert events[-1].output == "hello Ada"


# -- scopes in runs ----------------------------------------------------------------------------------------------------


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


# -- one at a time -----------------------------------------------------------------------------------------------------


def test_a_session_that_has_a_run_refuses_another_one(way, sessions):
    ran, refused = [], []

    def run_again():
        with pytest.raises(ThreadBusyError) as caught:
            list(runner.run("inner", session_id="s"))
        refused.append(str(caught.value))

    def f(node_input):
        ran.append(node_input)
        run_again()
        other = Thread(target=run_again)
        other.start()
        other.join()

    runner = Runner(Workflow(name="wf", edges=[("START", f)]), sessions=sessions)
    way.events(runner, "outer", session_id="s")
    assert ran == ["outer"]
    own, others = refused
    assert "session 's' of user 'user' of app 'app' is taken by the run that this very code is a part of" in own
    assert "thread 'app/user/s' is taken by another run" in others


# -- rewinding ---------------------------------------------------------------------------------------------------------


def test_a_session_is_rewound_to_an_event(way, sessions):
    def f(ctx, node_input):
        ctx.state["said"] = [*ctx.state.get("said", []), node_input]
        ctx.state["user:said"] = ctx.state.get("user:said", 0) + 1

    runner = Runner(Workflow(name="wf", edges=[("START", f)]), sessions=sessions)
    for given in ("a", "b", "c"):
        way.events(runner, given, session_id="s")
    runner.rewind("s", 2)
    session = sessions.get("app", "user", "s")
    assert session.state == {"said": ["a"], "user:said": 3}  # what was published stays
    assert len(session.events) == 2
    way.events(runner, "d", session_id="s")
    assert sessions.get("app", "user", "s").state == {"said": ["a", "d"], "user:said": 4}


def test_to_rewind_to_where_it_stands_does_nothing(sessions):
    runner = Runner(SAMPLE, sessions=sessions)
    list(runner.run("go", session_id="s"))
    before = sessions.get("app", "user", "s")
    runner.rewind("s", 5)
    assert sessions.get("app", "user", "s") == before


def test_a_run_that_is_rewound_to_its_middle_goes_on_from_there(loop, sessions):
    runner = Runner(SAMPLE, sessions=sessions)
    list(runner.run("go", session_id="s"))

    async def main():
        await runner.arewind("s", 3)
        return [event.sequence async for event in runner.arun(None, session_id="s")]

    assert loop.run(main) == [4, 5]


def test_what_is_not_there_can_not_be_rewound(sessions):
    runner = Runner(SAMPLE, sessions=sessions)
    with pytest.raises(SessionNotFoundError, match="no session 's' to rewind"):
        runner.rewind("s", 1)
    list(runner.run("go", session_id="s"))
    with pytest.raises(CheckpointNotFoundError, match="never stood where event 0 was the last one"):
        runner.rewind("s", 0)
