"""Four ways to share the state of a workflow: two that write it, two that read it.

python -m examples.workflow_state go
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from pregel import InMemorySaver
from pregel.graph.workflow import Context, Event, Workflow


def process_initial_input(ctx: Context, node_input: str) -> str:
    """Write by changing the mapping."""
    ctx.state["original_text"] = node_input
    return node_input


def update_state_via_event(node_input: str) -> Iterator[Event]:
    """Write by an event: the function needs no context for it."""
    yield Event(state={"uppercased_text": node_input.upper()})


def read_state_via_ctx(ctx: Context) -> str:
    """Read from the mapping."""
    original = ctx.state["original_text"]
    uppercased = ctx.state["uppercased_text"]
    result = f"{uppercased} (Original was: {original})"
    ctx.state["appended_text"] = result
    return result


def read_state_via_param(appended_text: str) -> str:
    """Read by a parameter that has the name of a key."""
    return f"Final Result: {appended_text}!"


root_agent = Workflow(
    name="state_sample",
    edges=[
        (
            "START",
            process_initial_input,
            update_state_via_event,
            read_state_via_ctx,
            read_state_via_param,
        ),
    ],
)


def main(text: str = "Hello ADK!") -> None:
    """Run the workflow, and print what each node changed and what came of it."""
    graph = root_agent.compile(InMemorySaver())
    thread = {"configurable": {"thread_id": "sample"}}
    result = graph.invoke({"node_input": text}, thread)
    for event in graph.get_state(thread).values["@events"]:
        print(f"{event.path or event.author}: {dict(event.delta)}")
    print(f"state: {result['state']}")
    print(result["output"])


if __name__ == "__main__":
    main(*sys.argv[1:2])
