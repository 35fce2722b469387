"""Payments that a person approves: a run that waits for answers, in this process or the next one.

    python -m examples.approval FILE "paint=80" "desk=900" "lamp=1200"   # submits a claim, and says what it asks
    python -m examples.approval FILE --answer yes no                     # answers, in the order of the questions

Small amounts are paid at once. Each larger one asks, all at the same time; whatever is answered is never asked again.
"""

from __future__ import annotations

import operator
import sys
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypedDict

from pregel import START, Command, Interrupt, Send, SqliteSaver, StateGraph, interrupt

if TYPE_CHECKING:
    from pregel import Pregel
    from pregel.checkpoint.base import Checkpointer

#: Up to this much nobody is asked.
SMALL: Final = 100
CONFIG: Final = {"configurable": {"thread_id": "claim"}}


class Item(TypedDict):
    """One thing that was bought."""

    what: str
    price: int


class State(TypedDict):
    """A claim, and what became of it."""

    items: list[Item]
    paid: Annotated[list[str], operator.add]
    refused: Annotated[list[str], operator.add]


def split(state: State) -> Command[Literal["decide"]]:
    """Look at each item by itself."""
    return Command(goto=[Send("decide", item) for item in state["items"]])


def decide(item: Item) -> dict[str, list[str]]:
    """Pay an item, or ask before: this runs again from its top when there is an answer."""
    if item["price"] > SMALL:
        question = f"pay {item['price']} for {item['what']}?"
        if interrupt(question, response_schema=Literal["yes", "no"]) == "no":
            return {"refused": [item["what"]]}
    return {"paid": [item["what"]]}


def claims(saver: Checkpointer) -> Pregel:
    """Return the graph, stored there."""
    builder = StateGraph(State).add_node(split).add_node(decide).add_edge(START, "split")
    return builder.compile(saver, name="claims")


def told(result: dict[str, Any]) -> list[str]:
    """Return what a run came to, or what it asks."""
    questions = [f"{number}. {each.value}" for number, each in enumerate(result.get("__interrupt__", ()), 1)]
    return questions or [f"paid: {', '.join(result['paid'])}", f"refused: {', '.join(result['refused'])}"]


def main(path: str, *words: str) -> None:
    """Submit a claim, or answer what it asks."""
    with SqliteSaver(path) as saver:
        graph = claims(saver)
        if words[:1] == ("--answer",):
            asked = [each.id for each in graph.get_state(CONFIG).interrupts if isinstance(each, Interrupt)]
            answers = dict(zip(asked, words[1:], strict=False))
            result = graph.invoke(Command(resume=answers), CONFIG)
        else:
            items = [Item(what=what, price=int(price)) for what, _, price in (word.partition("=") for word in words)]
            result = graph.invoke({"items": items}, CONFIG)
    for line in told(result):
        print(line)


if __name__ == "__main__":
    main(*sys.argv[1:])
