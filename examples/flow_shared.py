"""One context for an agent's session and for graphs of one's own.

    python -m examples.flow_shared

A session owns a context, and graphs are run on that very context: each sees what the others wrote. An id that is equal
is not enough, until the context is stored: then it has one writer. What graphs share is the data; where each of them
stands is its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pregel import InMemorySaver, interrupt
from pregel.graph.agent import ScriptedModel
from pregel.graph.flow import AgentSession, ContextBusyError, FlowContext, FlowGraph, SimpleAgent

if TYPE_CHECKING:
    from collections.abc import Iterator


def approve(ctx: FlowContext) -> None:
    """Ask somebody."""
    ctx["approval"] = interrupt(f"{ctx['analysis.risk']} Ship it?")


def main() -> Iterator[str]:
    """Run an agent and two graphs on one context, and yield what each finds there."""
    ctx = FlowContext("risk-job-001")
    session = AgentSession(ctx)
    ctx["input.question"] = "analyse the risk of order SO-1001"
    agent = SimpleAgent(ScriptedModel(["Medium risk."]), name="risk", output_key="analysis.risk", role="An analyst.")
    agent.run(session, ctx["input.question"])
    yield f"the session's context is the context: {session.ctx is ctx}"
    yield f"the agent wrote {ctx['analysis.risk']!r}"

    approval = FlowGraph("approval").add_activity("approve", approve)
    outcome = approval.run(ctx)
    yield f"approval is {outcome.status}: {outcome.pending[0].value}"

    count = FlowGraph("count").add_activity("count", lambda c: c.update({"report.keys": len(c)}))
    yield f"count is {count.run(ctx).status} meanwhile: {ctx['report.keys']} keys"
    yield f"approval is still at {', '.join(ctx.cursor(approval).next)}"

    approval.resume(ctx, "yes")
    yield f"approved: {ctx['approval']}"
    yield f"another context of the same id has {len(FlowContext('risk-job-001'))} keys"

    saver = InMemorySaver()
    with FlowContext.open("risk-job-001", saver) as stored:
        stored["input.question"] = ctx["input.question"]
        try:
            FlowContext.open("risk-job-001", saver)
        except ContextBusyError:
            yield "a second writer of a stored context is refused"
    with FlowContext.open("risk-job-001", saver) as stored:
        yield f"opened again it has {dict(stored)}"


if __name__ == "__main__":
    for line in main():
        print(line)
