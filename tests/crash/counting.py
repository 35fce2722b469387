"""The graph that many runs want at once, and how one of them ends."""

import operator
from typing import Annotated, TypedDict

from pregel import START, StateGraph
from pregel.errors import ThreadBusyError


class Sum(TypedDict, total=False):
    count: Annotated[int, operator.add]
    before: Annotated[list, operator.add]


def counter(saver, gate=lambda: None):
    """Return a graph of two supersteps that adds one; what it read stands in `before`."""

    def read(state: Sum) -> dict:
        gate()
        return {"before": [state["count"]]}

    def write(state: Sum) -> dict:
        return {"count": state["before"][-1] + 1 - state["count"]}  # lost updates show: it sets what it read, plus one

    graph = StateGraph(Sum).add_node(read).add_node(write).add_edge(START, "read").add_edge("read", "write")
    return graph.compile(saver)


def outcome_of(graph, config, on_busy):
    """Run it once; return "done", "busy", or what else came."""
    try:
        graph.invoke({"count": 0}, config, on_busy=on_busy)
    except ThreadBusyError:
        return "busy"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "done"
