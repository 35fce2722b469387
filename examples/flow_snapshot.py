"""A paused run as a JSON text, and the same run going on elsewhere.

    python -m examples.flow_snapshot

The text holds the data, the traces and what is due. It holds no model: that is a `Resource`, asked for by name before
anything runs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pregel import interrupt
from pregel.graph.agent import ScriptedModel
from pregel.graph.flow import FlowContext, FlowGraph, MissingResourceError, Resource, SimpleAgent

if TYPE_CHECKING:
    from collections.abc import Iterator


def approve(ctx: FlowContext) -> None:
    """Ask somebody."""
    ctx["approval"] = interrupt("Shall the analyst look at it?")


def build() -> FlowGraph:
    """Return the graph. It is code, so every process makes it anew."""
    graph = FlowGraph("order").add_activity("load", lambda ctx: ctx.update({"order.id": "SO-1001"}), to="approve")
    graph.add_activity("approve", approve, to="risk")
    return graph.add_agent(
        SimpleAgent(
            Resource("chat_model", ScriptedModel),
            name="risk",
            instruction="Assess order #{order.id} (#{approval})",
            output_key="analysis.risk",
        )
    )


def main() -> Iterator[str]:
    """Pause a run, tell it as a text, and go on from the text; yield what happens."""
    model = ScriptedModel(["Low risk."])
    ctx = FlowContext("risk-job-001")
    yield f"here: {build().run(ctx, resources={'chat_model': model}).status}"
    text = ctx.to_json()

    told = json.loads(text)
    yield f"the text has: {', '.join(told)}"
    yield f"its data: {told['data']}"
    yield f"it needs: {told['resources']}"

    restored = FlowContext.from_json(text)
    graph = build()
    try:
        graph.resume(restored, "yes")
    except MissingResourceError as error:
        yield f"there: {error}"
    outcome = graph.resume(restored, "yes", resources={"chat_model": ScriptedModel(["Low risk."])})
    yield f"there: {outcome.status}, {dict(restored)}"


if __name__ == "__main__":
    for line in main():
        print(line)
