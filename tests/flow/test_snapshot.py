"""Snapshots: a context as a text, and a run that goes on from it exactly where it stood."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from pregel import SqliteSaver, interrupt
from pregel.codec import serializable
from pregel.errors import ConcurrentRunError, EncodeError, InvalidResumeError
from pregel.graph.agent import ScriptedModel
from pregel.graph.flow.agents import SimpleAgent
from pregel.graph.flow.context import FlowContext
from pregel.graph.flow.errors import ContextBusyError, FlowRunError, MissingResourceError, ResumeError
from pregel.graph.flow.flowgraph import FlowGraph
from pregel.graph.flow.keys import Key, KeySpace
from pregel.graph.flow.resources import Resource
from pregel.graph.flow.session import AgentSession
from pregel.graph.flow.tagged import to_tree
from pregel.graph.flow.team import TeamAgent
from tests.codec_values import CODEC, LOCAL, VALUES, same
from tests.flow.flows import Log, branches, said, tokens
from tests.flow.running import nodes, resume, run

#: Values whose types are registered for the whole process.
PLAIN_VALUES = {
    name: value
    for name, value in {**VALUES, **LOCAL}.items()
    if "tests." not in json.dumps(to_tree(value, CODEC, name))
}


@serializable
@dataclass
class Risk:
    """A registered type."""

    level: str
    score: float


@dataclass
class Declared:
    """A type that only a key names."""

    x: int


class Keys(KeySpace):
    declared = Key(Declared, "declared")


def again(ctx, **options):
    """Return a context that went through a text."""
    return FlowContext.from_json(ctx.to_json(), **options)


@pytest.mark.parametrize("name", PLAIN_VALUES)
def test_m3_every_value_of_the_data_comes_back_as_it_was(name):
    ctx = FlowContext("job")
    ctx["value.of"] = PLAIN_VALUES[name]
    restored = again(ctx)
    assert same(restored["value.of"], PLAIN_VALUES[name])
    assert restored.to_json() == ctx.to_json()


def test_m3_registered_types_come_back_and_those_that_keys_name():
    ctx = FlowContext("job")
    ctx.update({"risk": Risk("HIGH", 0.5), Keys.declared: Declared(1)})
    assert dict(again(ctx)) == {"risk": Risk("HIGH", 0.5), "declared": Declared(1)}


def test_the_text_can_be_read():
    ctx = FlowContext("job")
    ctx.update({"order.id": "SO-1001", "risk": Risk("HIGH", 0.5), "none": None})
    FlowGraph("g").add_activity("load", lambda ctx: ctx.update({"order.amount": 1.5})).run(ctx)
    told = json.loads(ctx.to_json())
    (visit,) = told["trace"]["visits"]
    assert visit.pop("duration") >= 0
    part = told["graphs"]["g"]
    assert len(part.pop("fingerprint")) == 16
    assert [row["namespace"] for row in part.pop("rows")] == [[]]
    assert told == {
        "format": 1,
        "id": "job",
        "data": {
            "order.id": "SO-1001",
            "risk": {"$type": "tests.flow.test_snapshot:Risk", "v": [{"level": "HIGH", "score": 0.5}]},
            "none": None,
            "order.amount": 1.5,
        },
        "trace": {"visits": [{"graph": "g", "node": "load", "step": 1, "status": "done"}], "private": {}},
        "graphs": {"g": {"step": 1, "due": [], "questions": [], "finished": [], "resources": []}},
        "resources": [],
    }


def test_m3_an_open_file_is_refused_at_the_write_and_the_key_is_named(door):
    ctx = FlowContext("job", a=1)
    with Path(__file__).open() as file:
        with pytest.raises(EncodeError, match=r"context 'job': the value of key 'log\.file'\['f'\]"):
            ctx.update({"a": 2, "log.file": {"f": file}})
        graph = FlowGraph("g").add_activity("bad", lambda ctx: ctx.update({"log.file": file}))
        with pytest.raises(EncodeError, match=r"node 'bad' .*'log\.file'"):
            run(door, graph, ctx)
    assert dict(ctx) == {"a": 1}


def test_a_context_is_not_told_while_a_run_has_it():
    told = []

    def tell(view):
        for ctx in (view, outer):
            with pytest.raises(ContextBusyError):
                ctx.to_json()
            told.append(1)

    outer = FlowContext("job")
    FlowGraph("g").add_activity("tell", tell).run(outer)
    assert told == [1, 1]


# -- unfinished runs ---------------------------------------------------------------------------------------------------


def test_a_paused_run_goes_on_from_the_text_and_what_has_ended_is_not_run_again(door):
    log, ctx = Log(), FlowContext("job")
    outcome = run(door, branches(log), ctx)
    told = json.loads(ctx.to_json())["graphs"]["branches"]
    assert (told["due"], told["finished"]) == (["a"], ["b"])
    assert [each["value"] for each in told["questions"]] == ["A?"]

    log.clear()
    restored = again(ctx)
    session = AgentSession(restored)
    assert session.pending_reason == "A?"
    assert session.questions == outcome.pending
    finished = resume(door, branches(log), restored, {outcome.pending[0].id: "yes"})
    assert finished.status == "finished"
    assert log == ["a", "x"]
    assert dict(restored) == {"start": "done", "a.answer": "yes", "a": "done", "b": "done", "x": "done"}
    assert nodes(restored) == ["start", "fork", "a", "b", "join", "x"]


def test_the_data_of_the_text_is_what_the_run_goes_on_with(door):
    seen = []
    ctx = FlowContext("job", rate=1)
    graph = (
        FlowGraph("g")
        .add_activity("ask", lambda ctx: ctx.update(answer=interrupt("?")), to="use")
        .add_activity("use", lambda ctx: seen.append(ctx["rate"]))
    )
    run(door, graph, ctx)
    told = json.loads(ctx.to_json())
    told["data"]["rate"] = 2  # by hand
    restored = FlowContext.from_json(json.dumps(told))
    resume(door, graph, restored, "!")
    assert seen == [2]
    assert dict(restored) == {"rate": 2, "answer": "!"}


def test_a_snapshot_of_a_snapshot_goes_on_as_well(door):
    log, ctx = Log(), FlowContext("job")
    run(door, branches(log), ctx)
    restored = again(again(again(ctx)))
    resume(door, branches(log), restored, "yes")
    assert sorted(log[1:3]) == ["a", "b"]
    assert log[3:] == ["a", "x"]
    assert restored.to_json() == again(restored).to_json()


def test_a_stopped_and_a_failed_run_go_on_from_the_text(door):
    def failing(ctx):
        ctx["tries"] = ctx.get("tries", 0) + 1
        if "fixed" not in ctx:
            raise ValueError("no")

    graph = (
        FlowGraph("g")
        .add_activity("stop", lambda ctx: ctx.stop("enough"), to="fail")
        .add_activity("fail", failing, to="end")
        .add_activity("end", lambda ctx: ctx.update(end=True))
    )
    ctx = FlowContext("job")
    assert run(door, graph, ctx).status == "stopped"
    ctx = again(ctx)
    with pytest.raises(ValueError, match="no"):
        resume(door, graph, ctx)
    assert "tries" not in ctx
    ctx = again(ctx)
    ctx["fixed"] = True
    assert resume(door, graph, ctx).status == "finished"
    assert (ctx["tries"], ctx["end"]) == (1, True)
    assert [(visit.node, visit.status) for visit in ctx.trace] == [
        ("stop", "done"),
        ("fail", "failed"),
        ("fail", "done"),
        ("end", "done"),
    ]


def test_two_unfinished_graphs_of_one_context_go_on_each_by_itself(door):
    def asking(name):
        return FlowGraph(name).add_activity("ask", lambda ctx: ctx.update({name: interrupt(f"{name}?")}))

    first, second, ctx = asking("first"), asking("second"), FlowContext("job")
    run(door, first, ctx)
    run(door, second, ctx)
    restored = again(ctx)
    assert [each.value for each in AgentSession(restored).questions] == ["first?", "second?"]
    resume(door, second, restored, 2)
    restored = again(restored)
    assert [each.value for each in AgentSession(restored).questions] == ["first?"]
    resume(door, first, restored, 1)
    assert dict(restored) == {"first": 1, "second": 2}


def approve():
    """Ask a human."""
    return interrupt("May I?")


def test_a_paused_agent_and_its_tokens_go_on_from_the_text_with_a_model_given_again(door):
    def graph():
        clerk = SimpleAgent(Resource("model"), name="clerk", instruction="#{order}", tools=[approve], output_key="out")
        return FlowGraph("g").add_agent(clerk), clerk

    ctx = FlowContext("job", order="SO-1001")
    paused, _ = graph()
    run(door, paused, ctx, resources={"model": ScriptedModel([said("", 10, 1, ["approve"])])})
    text = ctx.to_json()
    assert json.loads(text)["resources"] == ["model"]
    restored = FlowContext.from_json(text)
    going_on, clerk = graph()
    with pytest.raises(MissingResourceError, match="'model'"):
        resume(door, going_on, restored, "yes")
    model = ScriptedModel([said("approved", 20, 2)])
    resume(door, going_on, restored, "yes", resources={"model": model})
    assert restored["out"] == "approved"
    assert tokens(clerk.trace(restored).metrics) == (2, 1, 30, 3, 33)
    assert [message.text for message in model.calls[0].messages] == ["SO-1001", "", "yes"]
    assert [message.text for message in AgentSession(restored).messages] == ["SO-1001", "approved"]
    assert AgentSession(again(restored)).messages == AgentSession(restored).messages
    assert json.loads(restored.to_json())["resources"] == []
    assert clerk.trace(again(restored)) == clerk.trace(restored)


def test_a_paused_team_goes_on_from_the_text_with_the_member_that_it_was_at(door):
    def team(*answers):
        writer, clerk = answers
        return TeamAgent(
            [
                SimpleAgent(ScriptedModel(writer), name="writer"),
                SimpleAgent(ScriptedModel(clerk), name="clerk", tools=[approve]),
            ],
            name="team",
            prompt="Go",
            output_key="out",
        )

    ctx = FlowContext("job")
    run(door, FlowGraph("g").add_agent(team([said("draft", 1, 1)], [said("", 10, 1, ["approve"])])), ctx)
    restored = again(ctx)
    second = team([], [said("approved", 20, 2)])
    resume(door, FlowGraph("g").add_agent(second), restored, "yes")
    trace = second.trace(restored)
    assert restored["out"] == trace.final_answer == "approved"
    assert tokens(trace.metrics) == (3, 1, 31, 4, 35)
    assert [record.source for record in trace.records] == ["writer", "clerk", "clerk"]


def test_agents_side_by_side_in_a_team_that_wait_go_on_from_texts_one_after_the_other(door):
    async def look():
        """Look it up."""
        return "seen"

    def board(lead, a, b):
        members = [
            SimpleAgent(ScriptedModel(a), name="a", tools=[look, approve]),
            SimpleAgent(ScriptedModel(b), name="b", tools=[approve]),
        ]
        model = ScriptedModel(lead)
        return TeamAgent(members, name="board", protocol="supervisor", model=model, prompt="Decide", output_key="out")

    calls = said("", 1, 1, ["transfer_to_a", "transfer_to_b"])
    looking = [said("", 1, 1, [("1", "look")]), said("", 1, 1, [("2", "approve")])]
    before = board([calls], looking, [said("", 1, 1, ["approve"])])
    ctx = FlowContext("job")
    outcome = run(door, FlowGraph("g").add_agent(before), ctx)
    assert [each.value for each in outcome.pending] == ["May I?", "May I?"]
    after = board([said("fine", 1, 1)], [said("a did", 1, 1)], [said("b did", 1, 1)])
    graph, ctx = FlowGraph("g").add_agent(after), again(ctx)
    with pytest.raises(InvalidResumeError, match="asks 2 things"):
        resume(door, graph, ctx, "yes")
    assert resume(door, graph, ctx, {outcome.pending[0].id: "one"}).pending == outcome.pending[1:]
    ctx = again(ctx)
    assert dict(ctx) == {}
    assert resume(door, graph, ctx, "two").status == "finished"
    trace = after.trace(ctx)
    assert [(record.source, record.content) for record in trace.records] == [
        *(("board", ""), ("a", ""), ("a", ""), ("a", "a did"), ("b", ""), ("b", "b did"), ("board", "fine")),
    ]
    assert tokens(trace.metrics) == (7, 5, 7, 7, 14)
    assert [message.text for message in after.members[0].trace(ctx).working_memory] == ["", "seen", "", "one", "a did"]


def test_a_team_that_failed_goes_on_from_the_text_after_the_member_that_had_answered(door):
    def team(writer, editor):
        members = [SimpleAgent(ScriptedModel(writer), name="writer"), SimpleAgent(ScriptedModel(editor), name="editor")]
        return TeamAgent(members, name="team", prompt="Go", output_key="out")

    ctx = FlowContext("job")
    with pytest.raises(ConnectionError):
        run(door, FlowGraph("g").add_agent(team([said("draft", 1, 1)], [ConnectionError()])), ctx)
    restored = again(ctx)
    second = team([], [said("text", 2, 2)])
    resume(door, FlowGraph("g").add_agent(second), restored)
    assert [record.content for record in second.trace(restored).records] == ["draft", "text"]
    assert tokens(second.trace(restored).metrics) == (2, 0, 3, 3, 6)


def test_a_node_that_is_gone_is_a_resume_error_that_names_it_and_nothing_runs(door):
    log, ctx = Log(), FlowContext("job")
    run(door, branches(log), ctx)
    restored = again(ctx)
    log.clear()
    changed = (
        FlowGraph("branches")
        .add_activity("start", log.activity("start"), to="aa")
        .add_activity("aa", log.activity("aa"), to="b")
        .add_activity("b", log.activity("b"))
    )
    for each in (restored, ctx):
        with pytest.raises(ResumeError, match=r"'branches'.*'a'.*Did you mean 'aa'"):
            resume(door, changed, each, "yes")
        with pytest.raises(ResumeError, match="restart=True"):
            run(door, changed, each)
    assert log == []
    assert run(door, changed, restored, restart=True).status == "finished"
    assert log == ["start", "aa", "b"]


def test_a_finished_graph_leaves_nothing_to_go_on_with(door):
    ctx = FlowContext("job")
    graph = FlowGraph("g").add_activity("a", lambda ctx: ctx.update(n=ctx.get("n", 0) + 1))
    run(door, graph, ctx)
    restored = again(ctx)
    with pytest.raises(FlowRunError, match="nothing unfinished"):
        resume(door, graph, restored)
    run(door, graph, restored)
    assert restored["n"] == 2
    assert nodes(restored) == ["a", "a"]


def test_no_task_after_a_restore_has_the_key_of_one_before(door):
    keys = []
    graph = FlowGraph("g").add_activity("a", lambda _, node: keys.append(node.idempotency_key))
    ctx = FlowContext("job")
    for _ in range(4):
        run(door, graph, ctx)
        ctx = again(ctx)
    assert len(set(keys)) == 4


def test_a_snapshot_is_restored_into_a_store_once(tmp_path):
    log, ctx = Log(), FlowContext("job")
    outcome = branches(log).run(ctx)
    with SqliteSaver(tmp_path / "runs.sqlite") as saver:
        with again(ctx, checkpointer=saver) as restored:
            with pytest.raises(ContextBusyError, match="open already"):
                again(ctx, checkpointer=saver)
            assert branches(log).resume(restored, {outcome.pending[0].id: "yes"}).status == "finished"
        with pytest.raises(ConcurrentRunError, match="stored there already"):
            again(ctx, checkpointer=saver)
        with FlowContext.open("job", saver) as opened:
            assert dict(opened) == dict(restored)
            assert nodes(opened) == nodes(restored)


def test_an_answer_to_nothing_is_refused_after_a_restore_as_before():
    restored = again(paused_context())
    with pytest.raises(InvalidResumeError, match="does not ask"):
        branches(Log()).resume(restored, {"9:9:nobody#0": 1})


def paused_context():
    ctx = FlowContext("job")
    branches(Log()).run(ctx)
    return ctx


# -- another process ---------------------------------------------------------------------------------------------------


def in_another_process(answers, text=""):
    """Run the graph in a process of its own: from the beginning, or from a text."""
    found = subprocess.run(
        [sys.executable, "-m", "tests.flow.other_process", json.dumps(answers)],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=Path(__file__).parents[2],
    )
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def test_a_snapshot_of_one_process_is_gone_on_with_in_another_one():
    first = in_another_process([["", ["approve"]]])
    assert (first["ran"], first["tokens"]) == (["other"], 0)
    second = in_another_process([["approved", []]], first["text"])
    assert (second["ran"], second["tokens"]) == (["end"], 22)
    ctx = FlowContext.from_json(second["text"])
    assert dict(ctx) == {"order": "SO-1001", "other": 1, "out": "approved", "end": ("approved", 1)}
    assert nodes(ctx) == ["fork", "clerk", "other", "join", "end"]
    assert [message.text for message in AgentSession(ctx).messages] == ["SO-1001", "approved"]
