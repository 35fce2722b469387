"""Traces are exact: whatever ends first, no record is lost, none is told twice, and every token is counted once."""

import pytest

from pregel.graph.agent import ScriptedModel
from pregel.graph.flow.agents import SimpleAgent
from pregel.graph.flow.compiling import build
from pregel.graph.flow.context import FlowContext
from pregel.graph.flow.flowgraph import FlowGraph
from pregel.graph.flow.session import HISTORY
from pregel.graph.flow.team import TeamAgent
from pregel.graph.flow.trace import AgentTrace, Metrics, TeamTrace, agent_field, summed, team_field, usage_of
from pregel.graph.messages import AIMessage, HumanMessage, ToolMessage
from pregel.testing import run_seeded
from tests.flow.flows import said, tokens

WIDTH = 6


def crowd():
    """Agents and teams side by side, all with one member in common, and a second round of them."""
    shared = SimpleAgent(ScriptedModel(lambda _: said("shared", 1, 1)), name="shared")
    graph = FlowGraph("g").add_parallel("fork")
    for number in range(WIDTH):
        model = ScriptedModel(lambda _, number=number: said(f"own {number}", 10**number, 0))
        own = SimpleAgent(model, name=f"own{number}", instruction="?", output_key=f"own.{number}")
        member = SimpleAgent(model, name=f"member{number}")
        team = TeamAgent([shared, member], name=f"team{number}", prompt="Go", output_key=f"team.{number}")
        graph.add_agent(own).add_agent(team, to=own.name)
        graph.link("fork", team.name)
    return graph


@pytest.fixture(scope="module")
def compiled():
    """The crowd, compiled once, as it runs on contexts: what they are handed is in the result."""
    return build(crowd(), stored=False, handed_over=True).compile()


@pytest.mark.parametrize("seed", range(100))
def test_traces_do_not_depend_on_which_task_ends_first(seed, compiled):
    ended = run_seeded(compiled, {"data": {}}, seed=seed, context=FlowContext("job").home)
    assert ended.error is None
    found = ended.result
    assert [call.prompt for call in found[agent_field("shared")]] == ["Go"] * WIDTH
    assert tokens(AgentTrace.of("shared", found[agent_field("shared")]).metrics) == (WIDTH, 0, WIDTH, WIDTH, 2 * WIDTH)
    for number in range(WIDTH):
        team = TeamTrace.of("t", found[team_field(f"team{number}")])
        assert [record.content for record in team.records] == ["shared", f"own {number}"]
        assert tokens(team.metrics) == (2, 0, 10**number + 1, 1, 10**number + 2)
        assert tokens(AgentTrace.of("a", found[agent_field(f"own{number}")]).metrics)[2] == 10**number
    assert [message.text for message in found[HISTORY]] == [
        *(text for number in range(WIDTH) for text in ("Go", f"own {number}")),
        *(text for number in range(WIDTH) for text in ("?", f"own {number}")),
    ]
    assert found["data"] == {f"{kind}.{number}": f"own {number}" for kind in ("team", "own") for number in range(WIDTH)}


def test_metrics_add_up_in_any_order():
    parts = [Metrics(1, 2, 3, 4, 5, 6, 7, 0.5), Metrics(input_tokens=10), Metrics(seconds=0.25)]
    total = Metrics(1, 2, 13, 4, 5, 6, 7, 0.75)
    assert summed(parts) == summed(reversed(parts)) == total
    assert summed([]) == Metrics()
    with pytest.raises(TypeError):
        Metrics() + 1


def test_usage_is_read_off_messages_and_what_is_no_count_is_none():
    messages = [
        HumanMessage("?"),
        AIMessage("a", usage_metadata={"input_tokens": 3, "output_tokens": 2}),
        ToolMessage("t", tool_call_id="1"),
        AIMessage("b", usage_metadata={"input_tokens": "many", "total_tokens": 4, "input_token_details": None}),
        AIMessage("c"),
    ]
    assert usage_of(messages) == Metrics(model_calls=3, tool_calls=1, input_tokens=3, output_tokens=2, total_tokens=9)


def test_no_calls_come_to_an_empty_trace():
    assert AgentTrace.of("a", ()) == AgentTrace("a")
    assert TeamTrace.of("t", ()) == TeamTrace("t")
