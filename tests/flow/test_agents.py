"""Agents in flow graphs: what they see, what they write, and what is told of them."""

import operator
from dataclasses import dataclass
from enum import Enum
from typing import Literal

import pytest

from pregel import interrupt
from pregel.errors import GraphDefinitionError
from pregel.graph.agent import ScriptedModel
from pregel.graph.flow.agents import SimpleAgent
from pregel.graph.flow.context import FlowContext
from pregel.graph.flow.errors import (
    AgentOutputError,
    ContextKeyError,
    FlowDefinitionError,
    FlowRunError,
    MissingKeyError,
    MissingResourceError,
)
from pregel.graph.flow.flowgraph import FlowGraph
from pregel.graph.flow.keys import Key, KeySpace
from pregel.graph.flow.output import parsed_output
from pregel.graph.flow.resources import Resource
from pregel.graph.flow.session import AgentSession
from pregel.graph.flow.team import TeamAgent
from tests.flow.flows import said, tokens
from tests.flow.running import resume, run


def told(model, call=0):
    """What a model was told in a call, as (type, text)."""
    return [(message.type, message.text) for message in model.calls[call].messages]


def order():
    ctx = FlowContext("job")
    ctx.update({"order.id": "SO-1001", "order.amount": 15000.0, "secret": "s3cret"})
    return ctx


def test_m1_an_agent_sees_what_its_templates_say_and_nothing_else(door):
    model = ScriptedModel(["risky"])
    agent = SimpleAgent(
        model, name="risk", role="You judge risks.", instruction="Order #{order.id}: #{order.amount}", prompt="Judge."
    )
    run(door, FlowGraph("g").add_agent(agent), order())
    assert told(model) == [("system", "You judge risks.\n\nOrder SO-1001: 15000.0"), ("human", "Judge.")]


def test_an_agent_in_a_graph_does_not_see_the_conversation_that_it_adds_to(door):
    model = ScriptedModel(["one", "two"])
    graph, ctx = FlowGraph("g").add_agent(SimpleAgent(model, name="a", instruction="Go")), FlowContext()
    AgentSession(ctx).add("Hello")
    for call in range(2):
        run(door, graph, ctx)
        assert told(model, call) == [("human", "Go")]
    assert [message.text for message in AgentSession(ctx).messages] == ["Hello", "Go", "one", "Go", "two"]


def test_without_a_prompt_the_instruction_is_what_is_asked():
    model = ScriptedModel(["risky"])
    agent = SimpleAgent(model, name="risk", role="Judge.", instruction="Order #{order.id}")
    FlowGraph("g").add_agent(agent).run(order())
    assert told(model) == [("system", "Judge."), ("human", "Order SO-1001")]


def test_the_prompt_of_the_node_takes_the_place_of_the_agents_own():
    model = ScriptedModel(["risky"])
    agent = SimpleAgent(model, name="risk", prompt="Mine.")
    FlowGraph("g").add_agent(agent, prompt="Is #{order.id} risky?").run(order())
    assert told(model) == [("human", "Is SO-1001 risky?")]


def test_m4_a_value_that_looks_like_a_template_reaches_the_model_as_it_is():
    model = ScriptedModel(["ok"])
    ctx = order()
    ctx["order.id"] = "#{secret}"
    FlowGraph("g").add_agent(SimpleAgent(model, name="a", instruction="#{order.id}")).run(ctx)
    assert told(model) == [("human", "#{secret}")]


def test_m4_a_missing_key_names_reader_and_near_key_and_no_model_is_asked():
    model = ScriptedModel(["never"])
    graph = FlowGraph("g").add_agent(SimpleAgent(model, name="a", instruction="#{order.ids}", output_key="out"))
    ctx = order()
    with pytest.raises(MissingKeyError, match=r"agent 'a'.*order\.ids.*Did you mean 'order\.id'"):
        graph.run(ctx)
    assert model.calls == []
    assert "out" not in ctx


def test_m1_the_output_key_gets_the_final_text_and_the_next_activity_reads_it(door):
    seen = []
    graph = (
        FlowGraph("g")
        .add_agent(
            SimpleAgent(ScriptedModel(["high"]), name="risk", instruction="?", output_key="analysis.risk"), to="use"
        )
        .add_activity("use", lambda ctx: seen.append(ctx["analysis.risk"]))
    )
    ctx = order()
    run(door, graph, ctx)
    assert (ctx["analysis.risk"], seen) == ("high", ["high"])


def test_an_agent_without_an_output_key_writes_nothing():
    ctx = order()
    before = dict(ctx)
    FlowGraph("g").add_agent(SimpleAgent(ScriptedModel(["x"]), name="a", instruction="?")).run(ctx)
    assert dict(ctx) == before


class Level(Enum):
    HIGH = "HIGH"


@dataclass
class Risk:
    score: float
    why: str


class Keys(KeySpace):
    score = Key(float, "analysis.score")
    level = Key(Literal["HIGH", "LOW"], "route.level")


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("plain", str, "plain"),
        ("42", str, "42"),
        (" 42\n", int, 42),
        ("0.5", float, 0.5),
        ("true", bool, True),
        ("HIGH\n", Literal["HIGH", "LOW"], "HIGH"),
        ("HIGH", Level, Level.HIGH),
        ('{"score": 0.5, "why": "new"}', Risk, Risk(0.5, "new")),
        ('["a", "b"]', list[str], ["a", "b"]),
        ("null", int | None, None),
    ],
)
def test_a_final_text_is_parsed_to_the_keys_type(text, kind, value):
    found = parsed_output(text, "k", kind, "a")
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("key", [Keys.score, "analysis.score"])
def test_the_type_is_that_of_the_key_wherever_it_is_declared(key, door):
    ctx = FlowContext()
    agent = SimpleAgent(ScriptedModel(["0.5"]), name="a", instruction="?", output_key=key)
    run(door, FlowGraph("g", Keys).add_agent(agent), ctx)
    assert dict(ctx) == {"analysis.score": 0.5}


def test_an_answer_that_does_not_fit_fails_the_node_and_nothing_is_written(door):
    agent = SimpleAgent(ScriptedModel(["a lot", "0.9"]), name="a", instruction="?", output_key="analysis.score")
    graph, ctx = FlowGraph("g", Keys).add_agent(agent), FlowContext()
    with pytest.raises(AgentOutputError, match=r"agent 'a' answered 'a lot'.*'analysis\.score' takes float"):
        run(door, graph, ctx)
    assert dict(ctx) == {}
    assert AgentSession(ctx).messages == ()
    assert tokens(agent.trace(ctx).metrics) == (0, 0, 0, 0, 0)


def approve():
    """Ask a human."""
    return interrupt("May I?")


def asking(**options):
    answers = [said("let me ask", 10, 1, ["approve"]), said("approved", 20, 2)]
    return SimpleAgent(ScriptedModel(answers), name="clerk", instruction="?", tools=[approve], **options)


def test_nothing_is_written_while_an_agent_is_paused_and_tokens_count_over_the_pause(door):
    agent = asking(output_key="out")
    graph, ctx = FlowGraph("g").add_agent(agent), FlowContext()
    session = AgentSession(ctx)
    outcome = run(door, graph, ctx)
    assert (outcome.status, [each.value for each in outcome.pending]) == ("paused", ["May I?"])
    assert dict(ctx) == {}
    assert (session.pending, session.pending_reason, session.messages) == (True, "May I?", ())
    assert agent.trace(session).steps == ()

    assert resume(door, graph, ctx, "yes").status == "finished"
    assert dict(ctx) == {"out": "approved"}
    assert (session.pending, session.pending_reason) == (False, None)
    trace = agent.trace(session)
    assert tokens(trace.metrics) == (2, 1, 30, 3, 33)
    assert [(step.kind, step.name, step.content, step.calls) for step in trace.steps] == [
        ("model", "clerk", "let me ask", ("approve",)),
        ("tool", "approve", "yes", ()),
        ("model", "clerk", "approved", ()),
    ]
    assert [message.type for message in trace.working_memory] == ["human", "ai", "tool", "ai"]
    assert trace.final_answer == "approved"


def test_an_agent_goes_on_with_what_it_was_asked_although_the_context_has_changed():
    model = ScriptedModel([said("", calls=["approve"]), "done"])
    agent = SimpleAgent(model, name="a", instruction="Order #{order.id}", tools=[approve])
    graph, ctx = FlowGraph("g").add_agent(agent), order()
    graph.run(ctx)
    ctx["order.id"] = "other"
    graph.resume(ctx, "yes")
    assert told(model, 1)[0] == ("human", "Order SO-1001")
    assert [message.text for message in AgentSession(ctx).messages] == ["Order SO-1001", "done"]


def test_parallel_agents_write_their_own_keys_and_the_join_reads_all(door):
    graph = FlowGraph("g").add_parallel("fork", ["tech", "cost", "risk"])
    for name, cost in (("tech", 1), ("cost", 10), ("risk", 100)):
        model = ScriptedModel([said(f"{name} ok", cost, cost)])
        graph.add_agent(SimpleAgent(model, name=name, instruction="?", output_key=f"analysis.{name}"), to="join")
    graph.add_join("join", to="sum")
    graph.add_activity("sum", lambda ctx: ctx.update({"output.final": ", ".join(ctx.group("analysis").values())}))
    ctx = FlowContext()
    run(door, graph, ctx)
    assert ctx["output.final"] == "tech ok, cost ok, risk ok"
    history = [message.text for message in AgentSession(ctx).messages]
    assert history == ["?", "tech ok", "?", "cost ok", "?", "risk ok"]


def test_the_calls_of_one_agent_add_up_exactly_over_runs_and_graphs(door):
    model = ScriptedModel([said("a", 1, 2), said("b", 10, 20), said("c", 100, 200)])
    agent = SimpleAgent(model, name="a", instruction="?")
    ctx = FlowContext()
    first, second = FlowGraph("first").add_agent(agent), FlowGraph("second").add_agent(agent)
    for graph in (first, second, first):
        run(door, graph, ctx)
    assert tokens(agent.trace(ctx).metrics) == (3, 0, 111, 222, 333)
    assert [step.content for step in agent.trace(ctx).steps] == ["a", "b", "c"]


def test_an_agent_in_a_loop_leaves_a_line_for_each_item(door):
    agent = SimpleAgent(ScriptedModel(lambda asked: said(asked[-1].text, 1, 1)), name="a", instruction="#{item}")
    graph = FlowGraph("g").add_loop("each", over="items", item="item", body="a").add_agent(agent, to="each")
    ctx = FlowContext(items=["x", "y", "z"])
    run(door, graph, ctx)
    assert [step.content for step in agent.trace(ctx).steps] == ["x", "y", "z"]
    assert tokens(agent.trace(ctx).metrics) == (3, 0, 3, 3, 6)


def test_what_a_provider_reports_beside_is_counted_and_silence_is_nothing():
    more = {"input_token_details": {"cache_read": 7}, "output_token_details": {"reasoning": 3}}
    agent = SimpleAgent(ScriptedModel([said("a", 9, 4, **more), "no report"]), name="a", instruction="?")
    ctx = FlowContext()
    for _ in range(2):
        FlowGraph("g").add_agent(agent).run(ctx)
    metrics = agent.trace(ctx).metrics
    assert (metrics.cached_tokens, metrics.reasoning_tokens, metrics.total_tokens, metrics.model_calls) == (7, 3, 13, 2)


# -- models as resources -----------------------------------------------------------------------------------------------


def test_a_model_may_be_given_to_each_run(door):
    agent = SimpleAgent(Resource("chat_model", ScriptedModel), name="a", instruction="?", output_key="out")
    graph, ctx = FlowGraph("g").add_agent(agent), FlowContext()
    for text in ("one", "two"):
        run(door, graph, ctx, resources={"chat_model": ScriptedModel([text])})
        assert ctx["out"] == text


def test_all_that_is_missing_is_told_at_once_and_nothing_is_run():
    ran = []
    graph = FlowGraph("g").add_activity("first", lambda _: ran.append(1), to="a")
    graph.add_agent(SimpleAgent(Resource("m", ScriptedModel), name="a", instruction="?"), to="b")
    graph.add_agent(SimpleAgent(Resource("n"), name="b", instruction="?"))
    with pytest.raises(MissingResourceError, match=r"'m' \(ScriptedModel\), 'n' \(object\)"):
        graph.run(FlowContext())
    assert ran == []


# -- by itself ---------------------------------------------------------------------------------------------------------


def ask(door, agent, session, prompt):
    """Run an agent by itself, by a door."""
    if door.way == "sync":
        return agent.run(session, prompt)

    async def main():
        return await agent.arun(session, prompt)

    return door.run(main)


def test_an_agent_by_itself_takes_part_in_the_sessions_conversation(door):
    model = ScriptedModel(["I am fine", "#{x} is nothing to me"])
    agent = SimpleAgent(model, name="a", role="Be kind.")
    session = AgentSession()
    session.add("Hello")
    ask(door, agent, session, "How are you?")
    ask(door, agent, session, "And #{x}?")
    assert told(model, 1) == [
        ("system", "Be kind."),
        ("human", "Hello"),
        ("human", "How are you?"),
        ("ai", "I am fine"),
        ("human", "And #{x}?"),
    ]
    assert session.messages[-1].text == "#{x} is nothing to me"
    assert session.messages[-1].name == "a"
    assert dict(session.ctx) == {}


def test_an_agent_by_itself_that_is_paused_goes_on_by_resume_only(door):
    agent, session = asking(output_key="out"), AgentSession()
    assert ask(door, agent, session, "Go").status == "paused"
    with pytest.raises(FlowRunError, match="unfinished"):
        ask(door, agent, session, "Once more")
    session.add("by the way")

    def go_on():
        if door.way == "sync":
            return agent.resume(session, "yes")

        async def main():
            return await agent.aresume(session, "yes")

        return door.run(main)

    assert go_on().status == "finished"
    assert session.ctx["out"] == "approved"
    assert [message.text for message in session.messages] == ["by the way", "Go", "approved"]
    assert tokens(agent.trace(session).metrics) == (2, 1, 30, 3, 33)
    with pytest.raises(FlowRunError, match="nothing unfinished"):
        go_on()


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "why"),
    [
        (lambda: SimpleAgent(ScriptedModel([]), name="a:b"), GraphDefinitionError, "can't be named 'a:b'"),
        (lambda: SimpleAgent(ScriptedModel([]), name="a", role=5), FlowDefinitionError, "role is a text"),
        (lambda: SimpleAgent(ScriptedModel([]), name="a", prompt="#{x"), FlowDefinitionError, "prompt of agent 'a'"),
        (lambda: SimpleAgent(ScriptedModel([]), name="a", tools=[5]), GraphDefinitionError, "5"),
    ],
)
def test_what_can_not_be_an_agent_is_refused_when_it_is_made(make, error, why):
    with pytest.raises(error, match=why):
        make()


def test_an_agent_that_is_asked_nothing_is_refused_before_anything_runs():
    graph = FlowGraph("g").add_agent(SimpleAgent(ScriptedModel([]), name="a", role="Judge."))
    with pytest.raises(FlowDefinitionError, match="'a'"):
        graph.run(FlowContext())


@pytest.mark.parametrize("key", ["@risk", "", 5])
def test_an_output_key_that_can_not_be_one_is_refused_when_the_agent_is_made(key):
    with pytest.raises(ContextKeyError):
        SimpleAgent(ScriptedModel([]), name="a", instruction="?", output_key=key)


def test_an_answer_is_added_to_an_output_key_with_a_reducer(door):
    class Keys(KeySpace):
        notes = Key(list[str], "notes", reducer=operator.add)

    graph = FlowGraph("g", Keys).add_parallel("both", ["a", "b"])
    for name in ("a", "b"):
        graph.add_agent(SimpleAgent(ScriptedModel([f'["{name}"]']), name=name, instruction="?", output_key="notes"))
    ctx = FlowContext()
    run(door, graph, ctx)
    assert ctx["notes"] == ["a", "b"]


def test_an_agent_may_not_be_named_as_what_a_context_keeps_beside():
    with pytest.raises(FlowDefinitionError, match=r"an agent can't be named '@a'"):
        SimpleAgent(ScriptedModel([]), name="@a", instruction="?")


def test_an_agent_by_itself_is_asked_a_text():
    session = AgentSession()
    with pytest.raises(FlowRunError, match=r"agent 'a' is asked a text, not 5"):
        SimpleAgent(ScriptedModel([]), name="a").run(session, 5)
    assert not session.ctx.home.private


def test_a_model_that_the_compiled_graph_by_itself_lacks_is_named(door):
    compiled = FlowGraph("g").add_agent(SimpleAgent(Resource("llm"), name="a", instruction="?")).compile()
    with pytest.raises(MissingResourceError, match=r"the resource 'llm' was not given: FlowGraph.run\(ctx, resources="):
        door.invoke(compiled, {"data": {}})


@pytest.mark.parametrize("carried", [False, True], ids=["in place", "from a snapshot"])
@pytest.mark.parametrize("team", [False, True], ids=["agent", "team"])
def test_after_an_answer_that_does_not_fit_the_model_is_asked_anew_and_every_token_counts(door, team, carried):
    model = ScriptedModel([said("a lot", 1, 0), said("much", 10, 0), said("0.9", 100, 0)])
    agent = SimpleAgent(
        model, name="a", instruction=None if team else "?", output_key=None if team else "analysis.score"
    )
    part = TeamAgent([agent], name="t", prompt="?", output_key="analysis.score") if team else agent
    graph, ctx = FlowGraph("g", Keys).add_agent(part), FlowContext()
    with pytest.raises(AgentOutputError, match="a lot"):
        run(door, graph, ctx)
    with pytest.raises(AgentOutputError, match="much"):
        resume(door, graph, ctx)
    assert dict(ctx) == {}
    if carried:
        ctx = FlowContext.from_json(ctx.to_json())
    resume(door, graph, ctx)
    assert dict(ctx) == {"analysis.score": 0.9}
    assert [message.text for message in AgentSession(ctx).messages] == ["?", "0.9"]
    for trace in (part.trace(ctx), agent.trace(ctx)):
        assert tokens(trace.metrics) == (3, 0, 111, 0, 111)
    assert len(model.calls) == 3
