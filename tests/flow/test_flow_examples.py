"""The examples of flows do what they say."""

from examples import flow_order, flow_parallel, flow_shared, flow_snapshot, flow_trace
from pregel.graph.agent import ScriptedModel
from pregel.graph.flow import FlowContext


def test_an_order_is_loaded_and_assessed():
    *lines, error = flow_order.main()
    assert lines == [
        "the model was asked: Assess order SO-1001 of 15000.0 euro, level HIGH: can it be shipped?",
        "analysis.risk = High: the amount is half as much again as the limit.",
        "output.final = SO-1001: High: the amount is half as much again as the limit.",
    ]
    assert "reads 'order.amuont'" in error
    assert "Did you mean 'order.amount'?" in error


def test_a_small_order_is_approved_without_a_model(monkeypatch):
    monkeypatch.setattr(flow_order, "LIMIT", 20_000)
    model = ScriptedModel([])
    ctx = FlowContext()
    ctx[flow_order.Keys.question] = "?"
    flow_order.build(model).run(ctx)
    assert ctx["output.final"] == "SO-1001: approved"
    assert model.calls == []


def test_a_session_and_graphs_share_one_context():
    assert list(flow_shared.main()) == [
        "the session's context is the context: True",
        "the agent wrote 'Medium risk.'",
        "approval is paused: Medium risk. Ship it?",
        "count is finished meanwhile: 2 keys",
        "approval is still at approve",
        "approved: yes",
        "another context of the same id has 0 keys",
        "a second writer of a stored context is refused",
        "opened again it has {'input.question': 'analyse the risk of order SO-1001'}",
    ]


def test_agents_side_by_side_have_keys_of_their_own():
    *lines, error = flow_parallel.main()
    assert lines == [
        "input.question = a new pump",
        "analysis.tech = It can be built.",
        "analysis.cost = It costs 12,000 euro.",
        "analysis.risk = The supplier is new.",
        "output.final = It can be built. It costs 12,000 euro. The supplier is new.",
        "doubts = ['risk?']",
        "steps: 1:views 2:tech 2:cost 2:risk 3:meet 4:summarize",
    ]
    assert "nodes 'tech' and 'cost' of graph 'analysis' both write 'analysis.risk'" in error


def test_traces_are_no_data():
    assert list(flow_trace.main()) == [
        "the result: Ship it in two parts.",
        "the team: analyst said 'The order is large.'",
        "the team: planner said 'Ship it in two parts.'",
        "the model calls: 2",
        "the graph: load -> team, last team",
        "the conversation: 2 messages",
        "the data: {'order.id': 'SO-1001', 'output.final': 'Ship it in two parts.'}",
    ]


def test_a_paused_run_goes_on_from_a_text():
    here, has, data, needs, missing, there = flow_snapshot.main()
    assert here == "here: paused"
    assert has == "the text has: format, id, data, trace, graphs, resources"
    assert data == "its data: {'order.id': 'SO-1001'}"
    assert needs == "it needs: ['chat_model']"
    assert "'chat_model' (ScriptedModel)" in missing
    assert there == ("there: finished, {'order.id': 'SO-1001', 'approval': 'yes', 'analysis.risk': 'Low risk.'}")
