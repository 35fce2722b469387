"""What a paused session asks, and what it takes as a reply."""

import pytest

from pregel import Command, interrupt
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import InvalidInputError, InvalidResumeError
from pregel.graph.workflow import JoinNode, RequestInput, Runner, Sessions, Workflow
from pregel.store.sqlite import SqliteStore


def ask(ctx):
    ctx.state["asked"] = ctx.state.get("asked", 0) + 1
    return RequestInput(interrupt_id="name", message="who?", response_schema=str)


def greet(ctx, node_input):
    return f"hello {node_input}"


ASKING = Workflow(name="wf", edges=[("START", ask, greet)])


@pytest.mark.parametrize(
    "reply",
    ["Ada", {"name": "Ada"}, Command(resume="Ada"), Command(resume={"name": "Ada"})],
    ids=["bare", "by interrupt_id", "command", "command by interrupt_id"],
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


def asks_for(name):
    def f():
        return RequestInput(interrupt_id=name, message=f"{name}?", response_schema=int)

    f.__name__ = name
    return f


def test_the_event_of_a_question_has_the_path_of_who_asks(way, sessions):
    def directly(node_input):
        return interrupt({"message": "directly?", "path": "of the user's own"})

    inner = Workflow("inner", [("START", asks_for("deep"))])
    runner = Runner(Workflow("wf", [("START", ask, (inner, directly), greet)]), sessions=sessions)
    (first,) = way.events(runner, "go", session_id="s")
    assert first.path == "wf@1/ask@1"
    assert "path" not in first.content
    *_, deep, direct = way.events(runner, "Ada", session_id="s")
    assert (deep.path, direct.path) == ("wf@1/inner@1/deep@1", "wf@1/directly@1")
    assert direct.content["path"] == "of the user's own"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("bare", "2 things are asked, and 'bare' (str) is no reply to one of them for certain. Give replies by "),
        ({"nmae": "x"}, "for certain. Did you mean 'name'? Give replies by interrupt_id, all or some of 'name', 'age'"),
        ({"name": 1, "aeg": 2}, "nothing is asked by the interrupt_id 'aeg'. Did you mean 'age'? Asked: 'name', 'age'"),
    ],
)
def test_a_reply_to_nothing_that_is_asked_names_what_is(way, sessions, reply, said):
    runner = Runner(Workflow("wf", [("START", (asks_for("name"), asks_for("age")))]), sessions=sessions)
    way.events(runner, "go", session_id="s")
    error = way.events(runner, reply, session_id="s")[-1]
    assert isinstance(error, InvalidResumeError)
    assert said in str(error)


def test_a_reply_that_does_not_fit_names_its_request(way, sessions):
    runner = Runner(Workflow("wf", [("START", asks_for("age"))]), sessions=sessions)
    way.events(runner, "go", session_id="s")
    error = way.events(runner, "old", session_id="s")[-1]
    assert error.__notes__[0] == "It was the reply to the request of the interrupt_id 'age'."
