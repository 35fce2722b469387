"""The examples of agents do what they say: offline, over two processes, and against a server that speaks HTTP."""

import os
import subprocess
import sys
from pathlib import Path
from threading import Barrier, Event

import pytest

from examples import desk, panel, visibility
from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import InvalidResumeError
from pregel.graph.agent import ScriptedModel
from pregel.graph.agent.structured import StructuredOutputValidationError
from tests.chat_server import DONE, ChatServer, call, completion, delta, streamed

ROOT = Path(__file__).parents[2]
PATIENCE = 10  # seconds after which something that should come is taken for lost
QUESTION = {"question": "database or files?"}


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.delenv("PREGEL_MODEL", raising=False)


@pytest.fixture
def endpoint(monkeypatch):
    """Return what starts a server that every model of the examples speaks to."""

    def start(*replies):
        server = ChatServer(*replies)
        server.__enter__()
        servers.append(server)
        monkeypatch.setenv("PREGEL_MODEL", "openai:any")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        return server

    servers = []
    yield start
    for server in servers:
        server.__exit__()


# --- The panel --------------------------------------------------------------------------------------------------------


def test_the_panel_hears_three_experts_and_then_decides(door):
    result = door.invoke(panel.panel(), QUESTION)

    assert [finding.partition(":")[0] for finding in result["findings"]] == ["historian", "accountant", "engineer"]
    assert "40,000 files" in result["findings"][0]
    assert '"files":11.5' in result["findings"][1]
    assert result["structured_response"] == panel.DECIDED
    assert set(result) == {"question", "findings", "structured_response"}


def test_the_experts_speak_at_the_same_time(door):
    together = Barrier(3)

    def meet(messages):
        together.wait(PATIENCE)
        return "I was here."

    models = {expert.name: Meeting(meet) for expert in panel.EXPERTS}

    result = door.invoke(panel.panel(models), QUESTION)

    assert result["findings"] == [f"{expert.name}: I was here." for expert in panel.EXPERTS]


class Meeting:
    """A model without an async form: on a loop each call has a thread."""

    def __init__(self, answer):
        self.model = ScriptedModel(answer)

    def invoke(self, messages, **options):
        return self.model.invoke(messages, **options)


def test_the_judge_reads_the_question_and_what_was_found():
    judge = ScriptedModel([panel.asks("Verdict", **panel.DECIDED)])

    result = panel.panel({"judge": judge}).invoke(QUESTION)

    (asked,) = judge.calls
    system, brief = asked.messages
    assert system.text == panel.JUDGE
    assert brief.text.splitlines() == [QUESTION["question"], *result["findings"]]
    assert [tool["name"] for tool in asked.tools] == ["Verdict"]


def test_a_judge_whose_verdict_is_none_is_asked_again_and_not_for_ever():
    wrong = ScriptedModel([panel.asks("Verdict", choice="files")], on_exhausted="repeat")

    with pytest.raises(StructuredOutputValidationError, match="because"):
        panel.panel({"judge": wrong}).invoke(QUESTION)
    mended = ScriptedModel([panel.asks("Verdict", choice="files"), panel.asks("Verdict", **panel.DECIDED)])
    assert panel.panel({"judge": mended}).invoke(QUESTION)["structured_response"] == panel.DECIDED


def test_what_an_expert_says_is_shown_while_it_says_it():
    heard = Event()
    alone = Slow(heard)
    models = {"historian": alone, "accountant": ScriptedModel(["So."]), "engineer": ScriptedModel(["So."])}
    parts = panel.panel(models).stream(QUESTION, stream_mode=["messages", "updates"], subgraphs=True)
    lines = []

    for line in panel.told(parts):
        lines.append(line)
        if line == "historian: First.":
            heard.set()

    assert alone.waited
    assert "historian: Second." in lines
    assert lines[-4] == "verdict: files"


class Slow(ScriptedModel):
    """A model that says its second word when the first was heard."""

    def __init__(self, heard):
        super().__init__(["First. Second."])
        self.heard = heard
        self.waited = False

    def stream(self, messages, **options):
        first, *rest = super().stream(messages, **options)
        yield first
        self.waited = self.heard.wait(PATIENCE)
        yield from rest


def test_the_panel_prints_what_each_says_and_the_verdict(capsys):
    panel.main("database", "or", "files?")

    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("engineer")] == [
        "engineer has looked up measured_reads",
        'engineer: Large reads favour files: {"database":14.0,"files":6.5} ms.',
    ]
    assert lines[-4:] == [
        "verdict: files",
        "  because a tenth of the cost",
        "  because large reads take half the time",
        "  but they need a backup and a clean-up of their own",
    ]


def test_a_real_model_is_asked_where_the_environment_names_one(endpoint, capsys):
    said = streamed(delta(content="I know"), delta(content=" nothing."), delta("stop"), DONE)
    verdict = call("Verdict", panel.DECIDED, "v1", index=0)
    server = endpoint(said, said, said, streamed(delta(tool_calls=[verdict]), delta("tool_calls"), DONE))

    panel.main()

    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines[:3]) == [f"{expert}: I know nothing." for expert in ("accountant", "engineer", "historian")]
    assert lines[3] == "verdict: files"
    assert {body["messages"][0]["content"] for body in server.asked[:3]} == {expert.role for expert in panel.EXPERTS}
    assert {body["model"] for body in server.asked} == {"any"}


# --- The desk ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def says(tmp_path):
    """Return what a process of its own prints that the desk runs in, line by line."""

    def run(*words):
        shown = subprocess.run(
            [sys.executable, "-m", "examples.desk", tmp_path / "desk.sqlite", *words],
            capture_output=True, text=True, check=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        return shown.stdout.splitlines()

    return run


WANTS_MONEY = "my lamp is broken, I want my money back"
ASKED = "approval needed: refund 49.0 euro for order A17?"


def test_a_refund_waits_for_a_person_and_another_process_goes_on(says):
    assert says(WANTS_MONEY) == [
        "reception calls transfer_to_repairs()",
        "repairs calls transfer_to_billing()",
        "billing calls find_order(lamp)",
        'billing is told: {"order":"A17","what":"lamp","euro":49.0,"days_ago":12}',
        "billing calls refund(A17, 49.0)",
        ASKED,
    ]
    assert says("hello?") == ["answer first:", ASKED]
    assert says("--answer", "approve") == [
        "billing is told: refunded 49.00 euro for A17",
        "billing: It is done: refunded 49.00 euro for A17.",
    ]


@pytest.fixture
def at_desk(tmp_path, capsys):
    """Return what a call in this process prints, with the file alone to go on from."""

    def run(*words):
        desk.main(str(tmp_path / "desk.sqlite"), *words)
        return capsys.readouterr().out.splitlines()

    return run


def test_a_refund_is_made_as_it_was_edited(at_desk):
    at_desk(WANTS_MONEY)
    assert at_desk("--answer", "edit", "20")[-1] == "billing: It is done: refunded 20.00 euro for A17."


def test_a_refund_that_is_rejected_is_not_made(at_desk):
    at_desk(WANTS_MONEY)
    assert at_desk("--answer", "reject", "no receipt") == [
        "billing is told: no receipt",
        "billing: I am sorry: no receipt",
    ]


def test_a_decision_that_is_none_is_refused_and_the_question_stays(at_desk):
    at_desk(WANTS_MONEY)
    with pytest.raises(InvalidResumeError, match="aprove"):
        at_desk("--answer", "aprove")
    assert at_desk("--answer", "approve")[-1] == "billing: It is done: refunded 49.00 euro for A17."


def test_an_answer_to_no_question_is_refused(at_desk):
    with pytest.raises(InvalidResumeError):
        at_desk("--answer", "approve")


def test_a_customer_who_comes_again_is_asked_about_again(at_desk):
    at_desk(WANTS_MONEY)
    at_desk("--answer", "reject")
    assert at_desk(WANTS_MONEY)[-1] == ASKED
    assert at_desk("--answer", "approve")[-1] == "billing: It is done: refunded 49.00 euro for A17."


@pytest.mark.parametrize(
    ("words", "last"),
    [
        ("the kettle is broken", "repairs: Good news: a part for B03 is on its way."),
        ("money back for the kettle please", "approval needed: refund 35.0 euro for order B03?"),
        ("money back for my car", "billing: I am sorry: nobody bought a thing."),
        ("good morning", "reception: What is broken, or what do you want your money back for?"),
    ],
)
def test_a_customer_reaches_who_can_help(at_desk, words, last):
    assert at_desk(words)[-1] == last


def test_the_conversation_of_the_desk_has_an_answer_to_every_call(door):
    support = desk.support_desk(InMemorySaver())
    door.invoke(support, {"messages": WANTS_MONEY}, desk.CONFIG)
    approval = desk.Command(resume={"decisions": [{"type": "approve"}]})

    result = door.invoke(support, approval, desk.CONFIG)

    asked = [called["id"] for message in result["messages"] if message.type == "ai" for called in message.tool_calls]
    answered = [message.tool_call_id for message in result["messages"] if message.type == "tool"]
    assert len(asked) == 4
    assert answered == asked
    assert result["refunds"] == ["49.00 euro for A17"]
    assert [message.name for message in result["messages"] if message.type == "ai"] == [
        "reception", "repairs", "billing", "billing", "billing",
    ]  # fmt: skip


def test_a_real_model_goes_on_from_the_file_where_the_environment_names_one(endpoint, at_desk):
    server = endpoint(
        completion({"content": None, "tool_calls": [call("transfer_to_billing", {}, "c1")]}),
        completion({"content": None, "tool_calls": [call("refund", {"order": "A17", "euro": 49}, "c2")]}),
        completion({"content": "You have it back."}),
    )

    assert at_desk(WANTS_MONEY)[-1] == "approval needed: refund 49 euro for order A17?"
    assert at_desk("--answer", "approve")[-1] == "billing: You have it back."
    roles = [message["role"] for message in server.asked[2]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool"]


# --- The state of its own ---------------------------------------------------------------------------------------------


def test_what_goes_in_and_what_comes_out(door):
    result = door.invoke(visibility.agent, {"foo": "Hello", "bar": "World"})

    assert (result["baz"], result["qux"]) == ("Hello", "World")
    assert set(result) == {"messages", "baz", "qux"}
    assert [message.type for message in result["messages"]] == ["ai", "tool", "ai"]
    assert list(visibility.agent.get_input_jsonschema()["properties"]) == ["messages", "foo", "bar"]
    assert list(visibility.agent.get_output_jsonschema()["properties"]) == [
        "messages",
        "structured_response",
        "baz",
        "qux",
    ]


def test_the_example_of_visibility_prints_its_channels(capsys):
    visibility.main()

    assert capsys.readouterr().out.splitlines() == [
        "baz: Hello, qux: World",
        "in:   messages, foo, bar",
        "out:  messages, structured_response, baz, qux",
        "messages: BinaryOperatorAggregate",
        "jump_to: EphemeralValue",
        "structured_response: LastValue",
        "foo: LastValue",
        "bar: LastValue",
        "baz: LastValue",
        "qux: LastValue",
    ]
