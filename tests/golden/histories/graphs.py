"""The graphs whose runs are kept. They are never changed: what was stored by them must go on with them."""

import operator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, TypedDict
from uuid import UUID

from pregel import START, Command, MessagesState, Overwrite, Send, StateGraph, interrupt
from pregel.graph.messages import AIMessage


class Mood(Enum):
    CALM = "calm"
    HASTY = "hasty"


@dataclass(frozen=True)
class Note:
    text: str
    mood: Mood
    at: datetime


class Talk(MessagesState):
    turn: int
    notes: Annotated[list[Note], operator.add]
    kinds: Annotated[dict[str, Any], operator.or_]


KINDS = {
    "price": Decimal("12.50"),
    "id": UUID(int=7),
    "pair": (1, b"\x00\xff"),
    "set": {3},
    "deep": {1: [None, True, 2**70, 0.5]},
}


def talk():
    """Messages, and values of many types; long enough that fields are stored as patches."""

    def answer(state: Talk) -> dict:
        said = state["messages"][-1]
        at = datetime(2024, 2, 29, 12, state["turn"], tzinfo=UTC)
        return {
            "messages": [AIMessage(f"you said: {said.content}")],
            "notes": [Note(f"turn {state['turn']}", Mood.CALM if state["turn"] % 2 else Mood.HASTY, at)],
            "kinds": {**KINDS, f"turn {state['turn']}": state["turn"]},
        }

    def close(state: Talk) -> dict:
        last = state["messages"][-1]
        return {"messages": [AIMessage(f"{last.content}.", id=last.id)]}

    graph = StateGraph(Talk).add_node(answer).add_node(close)
    return graph.add_edge(START, "answer").add_edge("answer", "close")


class Work(TypedDict, total=False):
    log: Annotated[list, operator.add]
    total: Annotated[int, operator.add]
    answer: str


def ask(changed=False):
    """A task that waits for an answer, beside one that is done. Changed, it lacks the one that waits."""

    def asks(state: Work) -> dict:
        return {"answer": interrupt({"question": "go on?", "so far": state["log"]}), "log": ["asks"]}

    def does(state: Work) -> dict:
        return {"log": ["does"], "total": 1}

    def ends(state: Work) -> dict:
        return {"log": ["ends"]}

    graph = StateGraph(Work).add_node("does", does).add_node("ends", ends).add_edge(START, "does")
    if changed:
        return graph.add_edge("does", "ends")
    return graph.add_node("asks", asks).add_edge(START, "asks").add_edge(["asks", "does"], "ends")


def fail(works=True):
    """Tasks of packets, one of which fails where it does not work; the others' results wait."""

    def splits(state: Work) -> dict:
        return {"log": ["splits"], "total": 5}

    def packets(state: Work) -> list:
        return [Send("part", number) for number in range(3)]

    def part(number: int) -> dict:
        if number == 1 and not works:
            raise ValueError(f"number {number} does not work")
        return {"log": [("part", number)], "total": Overwrite(100) if number == 2 else number}

    def steers(state: Work) -> Command:
        return Command(update={"log": ["steers"]}, goto="ends")

    def ends(state: Work) -> dict:
        return {"log": ["ends"]}

    graph = StateGraph(Work).add_node("splits", splits).add_node("part", part)
    graph.add_node("steers", steers, destinations=["ends"]).add_node("ends", ends)
    graph.add_edge(START, "splits").add_conditional_edges("splits", packets, ["part"])
    return graph.add_edge(START, "steers")


def loop():
    """Three steps round, to fork from the middle of."""

    def adds(state: Work) -> dict:
        return {"log": [state["total"]], "total": 1}

    def again(state: Work) -> str:
        return "adds" if state["total"] % 3 else "ends"

    def ends(state: Work) -> dict:
        return {"log": ["ends"]}

    graph = StateGraph(Work).add_node("adds", adds).add_node("ends", ends).add_edge(START, "adds")
    return graph.add_conditional_edges("adds", again, ["adds", "ends"])


def children():
    """A graph that asks as a node, one with a history of its own, and one that a function calls."""

    def adds(state: Work) -> dict:
        return {"log": ["adds"], "total": 1}

    def asks(state: Work) -> dict:
        return {"log": [f"the child was told {interrupt('child?')}"]}

    def simple():
        return StateGraph(Work).add_node("adds", adds).add_edge(START, "adds")

    called = simple().compile(name="called")
    inner = simple().add_node("asks", asks).add_edge("adds", "asks").compile(name="inner")
    remembers = simple().compile(True, name="remembers")

    def calls(state: Work) -> dict:
        return {"log": [("called", called.invoke({"total": 10})["total"])]}

    graph = StateGraph(Work).add_node("remembers", remembers).add_node("calls", calls).add_node("inner", inner)
    return graph.add_edge(START, "remembers").add_edge("remembers", "calls").add_edge("calls", "inner")
