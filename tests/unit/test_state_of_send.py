"""`Runtime.state`: what a task that a `Send` started can see of the state."""

import operator
from typing import Annotated, TypedDict

import pytest

from pregel import START, Runtime, Send, StateGraph
from pregel.runtime import get_runtime


class State(TypedDict):
    n: int
    seen: Annotated[list, operator.add]


def graph(work):
    builder = StateGraph(State)
    builder.add_node("begin", lambda state: {"n": state["n"] + 1})
    builder.add_node("work", work)
    builder.add_edge(START, "begin")
    builder.add_conditional_edges("begin", lambda state: [Send("work", each) for each in "ab"], ["work"])
    return builder.compile()


def test_a_task_of_a_send_reads_the_state_of_the_last_barrier():
    def work(arg, runtime: Runtime):
        return {"seen": [(arg, runtime.state["n"])]}

    assert graph(work).invoke({"n": 1})["seen"] == [("a", 2), ("b", 2)]


def test_get_runtime_gives_the_same_state():
    def work(arg):
        return {"seen": [(arg, dict(get_runtime().state))]}

    assert graph(work).invoke({"n": 1})["seen"] == [("a", {"n": 2, "seen": []}), ("b", {"n": 2, "seen": []})]


def test_the_state_can_only_be_read():
    def work(arg, runtime: Runtime):
        runtime.state["n"] = 0

    with pytest.raises(ExceptionGroup) as caught:
        graph(work).invoke({"n": 1})
    assert caught.group_contains(TypeError, match="does not support item assignment")
