"""One job, written once in the vocabulary of each front door.

"first" doubles a number; "left" and "right", side by side, add to that; then somebody is asked; "last" concludes.
"""

import operator
from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any

from typing_extensions import TypedDict

from pregel import START, Pregel, StateGraph, interrupt
from pregel.channels import BinaryOperatorAggregate, LastValue
from pregel.graph.agent import ScriptedModel, create_agent
from pregel.graph.flow import FlowGraph
from pregel.graph.functional import entrypoint, task
from pregel.graph.messages import AIMessage
from pregel.graph.workflow import JoinNode, RequestInput, Workflow
from pregel.lowlevel import NodeBuilder

__all__ = ["DOORS", "Effects", "FrontDoor"]


class FailedOnceError(Exception):
    """What a step raises that is told to fail."""


class Effects:
    """Counts what steps do outside of the graph, and lets one fail."""

    def __init__(self):
        self.counts = Counter()
        self.fails = set()

    def did(self, name):
        self.counts[name] += 1
        if name in self.fails:
            self.fails.discard(name)
            raise FailedOnceError(name)


@dataclass(frozen=True)
class FrontDoor:
    """A front door: how the job is written with it, what it is given, and what of its result is the answer."""

    name: str
    build: Any
    given: Any
    answer: Any
    #: Whether its steps are supersteps of the graph; those of a function are calls inside one.
    steps: bool = True
    #: Gives the names of the steps that a part of the stream of updates tells.
    told: Any = list


def state_graph(effects, saver):
    class State(TypedDict, total=False):
        n: int
        total: Annotated[int, operator.add]
        said: str
        answer: str

    def first(state: State) -> dict:
        effects.did("first")
        return {"n": 2 * state["n"]}

    def left(state: State) -> dict:
        effects.did("left")
        return {"total": state["n"] + 1}

    def right(state: State) -> dict:
        effects.did("right")
        return {"total": state["n"] + 2}

    def ask(state: State) -> dict:
        return {"said": interrupt("sure?")}

    def last(state: State) -> dict:
        effects.did("last")
        return {"answer": f"{state['total']} {state['said']}"}

    builder = StateGraph(State)
    for step in (first, left, right, ask, last):
        builder.add_node(step)
    builder.add_edge(START, "first").add_edge("first", "left").add_edge("first", "right")
    builder.add_edge(["left", "right"], "ask").add_edge("ask", "last")
    return builder.compile(saver)


def low_level(effects, saver):
    def first(n):
        effects.did("first")
        return 2 * n

    def left(n):
        effects.did("left")
        return n + 1

    def right(n):
        effects.did("right")
        return n + 2

    def ask(_):
        return interrupt("sure?")

    def last(seen):
        effects.did("last")
        return f"{seen['total']} {seen['said']}"

    return Pregel(
        nodes={
            "first": NodeBuilder().subscribe_only("n").do(first).write_to("doubled"),
            "left": NodeBuilder().subscribe_only("doubled").do(left).write_to("total"),
            "right": NodeBuilder().subscribe_only("doubled").do(right).write_to("total"),
            "ask": NodeBuilder().subscribe_only("total").do(ask).write_to("said"),
            "last": NodeBuilder().subscribe_to("said").read_from("total").do(last).write_to("answer"),
        },
        channels={
            "n": LastValue,
            "doubled": LastValue,
            "total": BinaryOperatorAggregate(operator.add, initial=0),
            "said": LastValue,
            "answer": LastValue,
        },
        input_channels="n",
        output_channels="answer",
        checkpointer=saver,
    )


def agent(effects, saver):
    def first(n: int) -> int:
        """Double a number."""
        effects.did("first")
        return 2 * n

    def left(n: int) -> int:
        """Add one."""
        effects.did("left")
        return n + 1

    def right(n: int) -> int:
        """Add two."""
        effects.did("right")
        return n + 2

    def ask() -> str:
        """Ask."""
        return interrupt("sure?")

    def last(total: int) -> str:
        """Conclude."""
        effects.did("last")
        return f"{total}"

    def calls(*wanted):
        return AIMessage(tool_calls=[{"name": name, "args": args, "id": name} for name, args in wanted])

    script = [
        calls(("first", {"n": 1})),
        calls(("left", {"n": 2}), ("right", {"n": 2})),
        calls(("ask", {})),
        calls(("last", {"total": 7})),
        "done",
    ]

    def answer(messages):
        return script[sum(message.type == "ai" for message in messages)]

    model = ScriptedModel(answer)
    return create_agent(model, [first, left, right, ask, last], checkpointer=saver, handle_tool_errors=False)


def said_by_tools(result):
    contents = {message.tool_call_id: message.content for message in result["messages"] if message.type == "tool"}
    return f"{contents['last']} {contents['ask']}"  # the model, which adds up, is a script


def told_by_tools(part):
    """Return which tools an update is of: they are calls of one node."""
    return [message.name for message in part.get("tools", {}).get("messages", ())]


def workflow(effects, saver):
    def first(node_input: int):
        effects.did("first")
        return 2 * node_input

    def left(ctx, node_input: int):
        effects.did("left")
        ctx.state["left"] = node_input + 1

    def right(ctx, node_input: int):
        effects.did("right")
        ctx.state["right"] = node_input + 2

    def ask():
        return RequestInput("sure?")

    def last(left: int, right: int, node_input: str):
        effects.did("last")
        return f"{left + right} {node_input}"

    edges = [("START", first, (left, right), JoinNode("both"), ask, last)]
    return Workflow("job", edges).compile(saver)


def flow(effects, saver):
    graph = FlowGraph("job")

    def first(ctx, node):
        effects.did("first")
        ctx["n"] = 2 * ctx["n"]

    def left(ctx, node):
        effects.did("left")
        ctx["left"] = ctx["n"] + 1

    def right(ctx, node):
        effects.did("right")
        ctx["right"] = ctx["n"] + 2

    def ask(ctx, node):
        ctx["said"] = interrupt("sure?")

    def last(ctx, node):
        effects.did("last")
        ctx["answer"] = f"{ctx['left'] + ctx['right']} {ctx['said']}"

    graph.add_activity("first", first)
    graph.add_parallel("fork")
    graph.add_activity("left", left)
    graph.add_activity("right", right)
    graph.add_join("both")
    graph.add_activity("ask", ask)
    graph.add_activity("last", last)
    for link in ("first fork", "fork left", "fork right", "left both", "right both", "both ask", "ask last"):
        graph.link(*link.split())
    return graph.compile(saver)


def functional(effects, saver):
    @task
    def first(n: int) -> int:
        effects.did("first")
        return 2 * n

    @task
    def left(n: int) -> int:
        effects.did("left")
        return n + 1

    @task
    def right(n: int) -> int:
        effects.did("right")
        return n + 2

    @task
    def last(total: int, said: str) -> str:
        effects.did("last")
        return f"{total} {said}"

    @entrypoint(checkpointer=saver)
    def job(n: int) -> str:
        doubled = first(n).result()
        parts = [left(doubled), right(doubled)]
        said = interrupt("sure?")
        return last(sum(part.result() for part in parts), said).result()

    return job


DOORS = [
    FrontDoor("state graph", state_graph, {"n": 1}, operator.itemgetter("answer")),
    FrontDoor("low level", low_level, 1, str),
    FrontDoor("agent", agent, {"messages": "go"}, said_by_tools, told=told_by_tools),
    FrontDoor("workflow", workflow, {"node_input": 1}, operator.itemgetter("output")),
    FrontDoor("flow", flow, {"data": {"n": 1}}, lambda result: result["data"]["answer"]),
    FrontDoor("functional", functional, 1, str, steps=False),
]
