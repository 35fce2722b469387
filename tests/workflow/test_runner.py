"""`Runner`: events as supersteps are committed, replies, going on after a failure, rewinding."""

import json
from contextlib import aclosing
from threading import Thread

import pytest

from pregel import Command
from pregel.config import get_config
from pregel.errors import (
    CheckpointNotFoundError,
    InvalidIdError,
    InvalidInputError,
    MutatedStateError,
    ThreadBusyError,
)
from pregel.graph.workflow import Event, RequestInput, Runner, Workflow
from pregel.graph.workflow.errors import SessionNotFoundError
from pregel.graph.workflow.folding import fold_events
from tests.workflow.kit import run


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


# -- scopes in runs ----------------------------------------------------------------------------------------------------


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


# -- what a run is begun with ------------------------------------------------------------------------------------------


def counts(ctx, n: int):
    ctx.state["n"] = n + 1
    return [n, ctx.state.get("temp:t")]


def test_a_run_is_begun_with_a_state(way, sessions):
    runner = Runner(Workflow("wf", [("START", counts)]), sessions=sessions)
    *_, last = way.events(runner, "go", session_id="s", state={"n": 5, "temp:t": "t"})
    assert last.output == [5, "t"]
    *_, last = way.events(runner, "go", session_id="s")
    assert last.output == [6, None]
    *_, last = way.events(runner, "go", session_id="s", state={"n": 0})
    assert last.output == [0, None]
    session = sessions.get("app", "user", "s")
    assert session.state == {"n": 1} == fold_events(session.events)


def test_a_state_goes_with_an_input_only(way, sessions):
    def asks():
        return RequestInput("?")

    runner = Runner(Workflow("wf", [("START", asks)]), sessions=sessions)
    way.events(runner, "go", session_id="s")
    for given in ("reply", None, Command(resume=1)):
        error = way.events(runner, given, session_id="s", state={"n": 1})[-1]
        assert isinstance(error, InvalidInputError)
        assert "state= goes with a new input" in str(error)


def test_a_function_knows_whom_it_runs_for(way, sessions):
    def who(ctx):
        return [ctx.user_id, ctx.session_id, get_config()["configurable"]["user_id"]]

    def outer(ctx, node_input):
        return [*node_input, ctx.run_node(who, name="part").result()[:2]]

    inner = Workflow("inner", [("START", who)])
    runner = Runner(Workflow("wf", [("START", inner, outer)]), sessions=sessions)
    *_, last = way.events(runner, "go", user_id="u", session_id="s")
    assert last.output == ["u", "s", "u", ["u", "s"]]


def test_a_graph_knows_no_user(door):
    def who(ctx):
        return [ctx.user_id, ctx.session_id]

    assert run(door, Workflow("wf", [("START", who)]))["output"] == [None, None]


def test_a_runner_finds_what_is_changed_in_place(way, sessions):
    def changes(ctx):
        ctx.state["list"].append(1)

    runner = Runner(Workflow("wf", [("START", changes)]), sessions=sessions, debug=True)
    error = way.events(runner, "go", session_id="s", state={"list": []})[-1]
    assert isinstance(error, MutatedStateError)
