"""Data here, traces there: what a team found out, how it worked together, and where the graph was.

python -m examples.flow_trace
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pregel.graph.agent import ScriptedModel
from pregel.graph.flow import AgentSession, FlowContext, FlowGraph, SimpleAgent, TeamAgent

if TYPE_CHECKING:
    from collections.abc import Iterator


def main() -> Iterator[str]:
    """Let a team work in a graph, and yield what is known of it afterwards."""
    team = TeamAgent(
        [
            SimpleAgent(ScriptedModel(["The order is large."]), name="analyst", instruction="Say what stands out."),
            SimpleAgent(ScriptedModel(["Ship it in two parts."]), name="planner", instruction="Say what to do."),
        ],
        name="team",
        prompt="Order #{order.id}",
        output_key="output.final",
    )
    graph = FlowGraph("order").add_activity("load", lambda ctx: ctx.update({"order.id": "SO-1001"}), to="team")
    graph.add_agent(team)
    ctx = FlowContext("risk-job-001")
    session = AgentSession(ctx)
    graph.run(ctx)

    yield f"the result: {session.ctx['output.final']}"
    for record in team.trace(session).records:
        yield f"the team: {record.source} said {record.content!r}"
    yield f"the model calls: {team.trace(session).metrics.model_calls}"
    yield f"the graph: {' -> '.join(visit.node for visit in ctx.trace)}, last {ctx.last_node}"
    yield f"the conversation: {len(session.messages)} messages"
    yield f"the data: {dict(ctx)}"


if __name__ == "__main__":
    for line in main():
        print(line)
