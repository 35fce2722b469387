"""A flow graph in a process of its own: from the beginning, or from a snapshot on its standard input.

What it prints: what ran, what the agent's tokens come to, and the snapshot after it.
"""

import json
import sys

from pregel import interrupt
from pregel.graph.agent import ScriptedModel
from pregel.graph.flow.agents import SimpleAgent
from pregel.graph.flow.context import FlowContext
from pregel.graph.flow.flowgraph import FlowGraph
from pregel.graph.flow.resources import Resource
from tests.flow.flows import said


def approve():
    """Ask a human."""
    return interrupt("May I?")


def main(answers, text):
    """Run the graph."""
    ran = []

    def other(ctx):
        ran.append("other")
        ctx["other"] = 1

    def end(ctx):
        ran.append("end")
        ctx["end"] = (ctx["out"], ctx["other"])

    clerk = SimpleAgent(Resource("model"), name="clerk", instruction="#{order}", tools=[approve], output_key="out")
    graph = (
        FlowGraph("g")
        .add_parallel("fork", ["clerk", "other"])
        .add_agent(clerk, to="join")
        .add_activity("other", other, to="join")
        .add_join("join", to="end")
        .add_activity("end", end)
    )
    given = {"model": ScriptedModel([said(text, 10, 1, calls) for text, calls in answers])}
    if text:
        ctx = FlowContext.from_json(text)
        graph.resume(ctx, "yes", resources=given)
    else:
        ctx = FlowContext("job", order="SO-1001")
        graph.run(ctx, resources=given)
    tokens = clerk.trace(ctx).metrics.total_tokens
    sys.stdout.write(json.dumps({"ran": ran, "tokens": tokens, "text": ctx.to_json()}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.stdin.read())
