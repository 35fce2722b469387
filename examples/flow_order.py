"""A key contract, a deterministic activity and an agent that reads it through a template.

    python -m examples.flow_order

The keys of the order are declared once, with types and writers. An activity loads the order; the agent knows of it what
its instruction says with `#{...}`, and nothing else; its answer goes to one key, where an ordinary activity finds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pregel.graph.agent import ScriptedModel
from pregel.graph.flow import FlowContext, FlowDefinitionError, FlowGraph, Key, KeySpace, SimpleAgent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pregel.graph.flow import FlowNode


class Keys(KeySpace):
    """Everything that the graph reads and writes."""

    question = Key(str, "input.question", given=True)
    order = Key(str, "order.id", writers=["load_order"])
    amount = Key(float, "order.amount", writers=["load_order"])
    level = Key(Literal["HIGH", "LOW"], "route.level", writers=["load_order"])
    risk = Key(str, "analysis.risk", writers=["risk_agent"])
    final = Key(str, "output.final", writers=["approve", "report"])


#: Above this amount somebody has to look.
LIMIT = 10_000


def load_order(ctx: FlowContext, node: FlowNode) -> None:
    """Look the order up: what can be computed is never asked of a model."""
    ctx[Keys.order] = node.meta["order"]
    ctx[Keys.amount] = 15_000.0
    ctx[Keys.level] = "HIGH" if ctx[Keys.amount] > LIMIT else "LOW"


def report(ctx: FlowContext) -> None:
    """Put the answer of the agent where callers look for it."""
    ctx[Keys.final] = f"{ctx[Keys.order]}: {ctx[Keys.risk]}"


def approve(ctx: FlowContext) -> None:
    """Let a small order pass."""
    ctx[Keys.final] = f"{ctx[Keys.order]}: approved"


def risk_agent(model: ScriptedModel) -> SimpleAgent:
    """Return the agent. Its templates are all it gets to know of the context."""
    return SimpleAgent(
        model,
        name="risk_agent",
        role="You are a risk analyst.",
        instruction="Assess order #{order.id} of #{order.amount} euro, level #{route.level}: #{input.question}",
        output_key=Keys.risk,
    )


def build(model: ScriptedModel) -> FlowGraph:
    """Return the graph."""
    graph = FlowGraph("order", keys=Keys)
    graph.add_activity(
        "load_order",
        load_order,
        writes=[Keys.order, Keys.amount, Keys.level],
        meta={"order": "SO-1001"},
        to="by_level",
    )
    graph.add_exclusive("by_level", [(lambda ctx: ctx[Keys.level] == "HIGH", "risk_agent")], default="approve")
    graph.add_agent(risk_agent(model), to="report")
    graph.add_activity("report", report, reads=[Keys.order, Keys.risk], writes=[Keys.final])
    graph.add_activity("approve", approve, reads=[Keys.order], writes=[Keys.final])
    return graph


def main() -> Iterator[str]:
    """Run the graph, and yield what it does."""
    model = ScriptedModel(["High: the amount is half as much again as the limit."])
    ctx = FlowContext("risk-job-001")
    ctx[Keys.question] = "can it be shipped?"
    build(model).run(ctx)
    yield f"the model was asked: {model.calls[0].messages[-1].text}"
    yield f"{Keys.risk} = {ctx[Keys.risk]}"
    yield f"{Keys.final} = {ctx[Keys.final]}"
    misspelt = FlowGraph("misspelt", keys=Keys)
    misspelt.add_agent(SimpleAgent(model, name="risk_agent", instruction="#{order.amuont}", output_key=Keys.risk))
    try:
        misspelt.compile()
    except FlowDefinitionError as error:
        yield f"found before it runs: {error}"


if __name__ == "__main__":
    for line in main():
        print(line)
