"""Three agents side by side, each with a key of its own, and a node that reads all of them.

    python -m examples.flow_parallel

No branch sees what another one writes before they meet. Two that write one key are found when the graph is built,
unless the key folds what they add.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from pregel.graph.agent import ScriptedModel
from pregel.graph.flow import FlowContext, FlowDefinitionError, FlowGraph, Key, KeySpace, SimpleAgent

if TYPE_CHECKING:
    from collections.abc import Iterator

VIEWS = {"tech": "It can be built.", "cost": "It costs 12,000 euro.", "risk": "The supplier is new."}


class Keys(KeySpace):
    """Each view has a key; what anybody wonders about is folded into one."""

    question = Key(str, "input.question", given=True)
    tech = Key(str, "analysis.tech")
    cost = Key(str, "analysis.cost")
    risk = Key(str, "analysis.risk")
    doubts = Key(list[str], "doubts", reducer=operator.add)
    final = Key(str, "output.final")


def summarize(ctx: FlowContext) -> None:
    """Read all views at once."""
    views = ctx.group("analysis")
    ctx[Keys.final] = " ".join(views[name] for name in VIEWS)
    ctx.add(Keys.doubts, [f"{name}?" for name in VIEWS if "new" in views[name]])


def build(keys: dict[str, str]) -> FlowGraph:
    """Return the graph.

    Args:
        keys: The key that each agent writes.
    """
    graph = FlowGraph("analysis", keys=Keys)
    graph.add_parallel("views", list(VIEWS))
    for name, answer in VIEWS.items():
        agent = SimpleAgent(
            ScriptedModel([answer]),
            name=name,
            instruction=f"Look at the {name} of this: #{{input.question}}",
            output_key=keys[name],
        )
        graph.add_agent(agent, to="meet")
    graph.add_join("meet", to="summarize")
    return graph.add_activity("summarize", summarize, writes=[Keys.final, Keys.doubts])


def main() -> Iterator[str]:
    """Run the graph, and yield what it finds."""
    ctx = FlowContext()
    ctx[Keys.question] = "a new pump"
    build({name: f"analysis.{name}" for name in VIEWS}).run(ctx)
    for key, value in ctx.items():
        yield f"{key} = {value}"
    yield "steps: " + " ".join(f"{visit.step}:{visit.node}" for visit in ctx.trace)
    try:
        build(dict.fromkeys(VIEWS, "analysis.risk")).compile()
    except FlowDefinitionError as error:
        yield f"found before it runs: {error}"


if __name__ == "__main__":
    for line in main():
        print(line)
