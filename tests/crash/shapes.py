"""The graphs that are killed, and the application that runs them: it goes on wherever it stands.

Each node that ends appends a line to the ledger, a file outside the database: the effect that a crash must not double.
"""

import operator
import os
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from pregel import START, Command, MessagesState, Runtime, Send, StateGraph, interrupt
from pregel.errors import GraphRecursionError
from pregel.graph.messages import AIMessage

THREAD = "victim"
CONFIG = {"configurable": {"thread_id": THREAD}, "run_id": "6f3c1d52-8a0e-4f4b-9b5e-0d7a5f1c2e33"}
TURNS = 2
#: More rounds than any application here needs.
ROUNDS = 50
#: The node that is a graph itself, and so writes no line of its own.
SILENT = "node"


class Ledger:
    """One line for each task that has ended: its id."""

    def __init__(self, path):
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, runtime):
        """Write a task down; one system call, so that a line is whole or not there."""
        os.write(self.file, f"{runtime.task_id}\n".encode())

    def close(self):
        os.close(self.file)


@dataclass(frozen=True)
class Shape:
    """A graph to kill."""

    #: (ledger, size) -> StateGraph
    build: Any
    #: What each turn gives the graph beside the turn's number.
    given: dict[str, Any]
    #: Whether 2 * size tasks run at once, and so may have ended without a commit; else it is one.
    wide: bool = False
    #: Whether a run may take fewer supersteps than a turn of that size, so that one fails before another ends the turn.
    short: bool = False

    def config(self, size):
        """Return the config of each run."""
        return CONFIG | {"recursion_limit": size - 1} if self.short else CONFIG


# -- a chain, with messages whose ids the library makes ----------------------------------------------------------------


class Chat(MessagesState):
    turn: int


def chain(ledger, size):
    graph = StateGraph(Chat)
    previous = START
    for number in range(size):

        def say(state: Chat, runtime: Runtime, number=number) -> dict:
            before = state["messages"][-1]
            news = [AIMessage(f"{number} after {before.id}")]
            if number == 1:  # one that changes a message instead of adding one
                news.append(AIMessage(f"{before.content}, and again", id=before.id))
            ledger.note(runtime)
            return {"messages": news}

        graph.add_node(f"say{number}", say).add_edge(previous, f"say{number}")
        previous = f"say{number}"
    return graph


# -- a fan-out by edges and by Send, into a join -----------------------------------------------------------------------


class Found(TypedDict, total=False):
    turn: int
    log: Annotated[list, operator.add]
    by_name: Annotated[dict, operator.or_]
    most: Annotated[int, max]
    total: int


def fan(ledger, size):
    def split(state: Found, runtime: Runtime) -> dict:
        ledger.note(runtime)
        return {"log": ["split"]}

    def packets(state: Found) -> list:
        return [Send("work", number) for number in range(size)]

    def work(number: int, runtime: Runtime) -> dict:
        ledger.note(runtime)
        return {"log": [("work", number)], "by_name": {f"work{number}": number}, "most": number}

    graph = StateGraph(Found).add_node("split", split).add_edge(START, "split")
    for number in range(size):

        def look(state: Found, runtime: Runtime, number=number) -> dict:
            ledger.note(runtime)
            return {"log": [f"look{number}"], "by_name": {f"look{number}": len(state["log"])}, "most": 10 + number}

        graph.add_node(f"look{number}", look).add_edge("split", f"look{number}")

    def join(state: Found, runtime: Runtime) -> dict:
        ledger.note(runtime)
        return {"log": ["join"], "total": sum(state["by_name"].values()) + state["most"]}

    graph.add_node("work", work).add_conditional_edges("split", packets, ["work"])
    looks = [f"look{number}" for number in range(size)]
    return graph.add_node("join", join).add_edge([*looks, "work"], "join", wait="live")


# -- a loop with a graph as a node, and one that a function calls ------------------------------------------------------


class Count(TypedDict, total=False):
    turn: int
    count: Annotated[int, operator.add]
    log: Annotated[list, operator.add]


class Inner(TypedDict, total=False):
    number: int
    seen: Annotated[list, operator.add]


def loop(ledger, size):
    def first(state: Count, runtime: Runtime) -> dict:
        ledger.note(runtime)
        return {"log": [("first", state["count"])]}

    def second(state: Count, runtime: Runtime) -> dict:
        ledger.note(runtime)
        return {"log": [("second", len(state["log"]))], "count": 1}

    def double(state: Inner, runtime: Runtime) -> dict:
        ledger.note(runtime)
        return {"number": state["number"] * 2, "seen": [state["number"]]}

    def less(state: Inner, runtime: Runtime) -> dict:
        ledger.note(runtime)
        return {"number": state["number"] - 1}

    node = StateGraph(Count).add_node(first).add_node(second).add_edge(START, "first").add_edge("first", "second")
    called = StateGraph(Inner).add_node(double).add_node(less).add_edge(START, "double").add_edge("double", "less")
    inner = called.compile()

    def calls(state: Count, runtime: Runtime) -> dict:
        result = inner.invoke({"number": state["count"]})
        ledger.note(runtime)
        return {"log": [("called", result["number"], result["seen"])]}

    def again(state: Count) -> str:
        return SILENT if state["count"] % size else "end"

    def end(state: Count, runtime: Runtime) -> dict:
        ledger.note(runtime)
        return {"log": ["end"]}

    graph = StateGraph(Count).add_node(SILENT, node.compile()).add_node("calls", calls).add_node("end", end)
    graph.add_edge(START, SILENT).add_edge(SILENT, "calls")
    return graph.add_conditional_edges("calls", again, [SILENT, "end"])


# -- parallel tasks, some of which ask ---------------------------------------------------------------------------------


class Asked(TypedDict, total=False):
    turn: int
    log: Annotated[list, operator.add]
    answers: Annotated[dict, operator.or_]


def asks(ledger, size):
    def begin(state: Asked, runtime: Runtime) -> dict:
        ledger.note(runtime)
        return {"log": ["begin"]}

    graph = StateGraph(Asked).add_node("begin", begin).add_edge(START, "begin")
    names = []
    for number in range(size):

        def ask(state: Asked, runtime: Runtime, number=number) -> dict:
            answers = [interrupt(f"question {number}.{place}") for place in range(1 + number % 2)]
            ledger.note(runtime)
            return {"answers": {(state["turn"], number): answers}}

        def act(state: Asked, runtime: Runtime, number=number) -> dict:
            ledger.note(runtime)
            return {"log": [f"act{number}"]}

        for name, action in ((f"ask{number}", ask), (f"act{number}", act)):
            graph.add_node(name, action).add_edge("begin", name)
            names.append(name)

    def end(state: Asked, runtime: Runtime) -> dict:
        ledger.note(runtime)
        return {"log": [("end", len(state["answers"]))]}

    return graph.add_node("end", end).add_edge(names, "end")


SHAPES = {
    "chain": Shape(chain, {"messages": "hello"}, short=True),
    "fan": Shape(fan, {"log": ["input"]}, wide=True),
    "loop": Shape(loop, {"log": ["input"]}),
    "asks": Shape(asks, {"log": ["input"]}, wide=True),
}


def run_to_the_end(graph, shape, size):
    """Be the application: give each turn's input once, answer what is asked, go on with what is due."""
    config = shape.config(size)
    for _ in range(ROUNDS):
        state = graph.get_state(CONFIG)
        turn = state.values.get("turn", 0) + 1
        if not state.tasks and turn > TURNS:
            return
        with suppress(GraphRecursionError) if shape.short else nullcontext():
            if not state.tasks:
                graph.invoke({"turn": turn, **shape.given}, config)
                continue
            result = graph.invoke(None, config)  # what was answered before a crash is not asked again
            if "__interrupt__" in result:
                answers = {asked.id: f"answer to {asked.value}" for asked in result["__interrupt__"]}
                graph.invoke(Command(resume=answers), config)
    raise RuntimeError(f"not done after {ROUNDS} rounds: {graph.get_state(CONFIG)}")
