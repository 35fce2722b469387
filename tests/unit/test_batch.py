"""Bound configs, and many runs of one graph side by side."""

import threading
from contextvars import ContextVar
from typing import TypedDict

import anyio
import anyio.lowlevel
import pytest

from pregel import START, StateGraph
from pregel.errors import InvalidConfigError, InvalidInputError


class State(TypedDict):
    n: int
    config: dict


def square(state):
    if state["n"] < 0:
        raise ValueError(f"{state['n']} is negative")
    return {"n": state["n"] ** 2}


async def asquare(state):
    await anyio.lowlevel.checkpoint()
    return square(state)


def note(state, config):
    return {"config": config}


def compiled(node):
    return StateGraph(State).add_node("node", node).add_edge(START, "node").compile()


def batch(door, graph, *args, **options):
    if door.way == "sync":
        return graph.batch(*args, **options)

    async def main():
        return await graph.abatch(*args, **options)

    return door.run(main)


@pytest.mark.parametrize("node", [square, asquare])
def test_results_come_in_the_order_of_the_inputs(door, node):
    assert batch(door, compiled(node), [{"n": number} for number in range(5)]) == [{"n": n**2} for n in range(5)]
    assert batch(door, compiled(node), []) == []


@pytest.mark.parametrize("node", [square, asquare])
def test_the_first_error_in_order_is_raised_or_each_stands_in_its_place(door, node):
    inputs = [{"n": 1}, {"n": -1}, {"n": -2}, {"m": 1}]
    with pytest.raises(ValueError, match="-1 is negative"):
        batch(door, compiled(node), inputs)
    first, *errors = batch(door, compiled(node), inputs, return_exceptions=True)
    assert first == {"n": 1}
    assert [type(error) for error in errors] == [ValueError, ValueError, InvalidInputError]


def test_max_concurrency_limits_the_runs(door):
    lock, counts = threading.Lock(), {"now": 0, "most": 0}

    def work(state):
        with lock:
            counts["now"] += 1
            counts["most"] = max(counts["most"], counts["now"])
        threading.Event().wait(0.001)
        with lock:
            counts["now"] -= 1
        return {}

    batch(door, compiled(work), [{"n": number} for number in range(10)], {"max_concurrency": 2})
    assert 1 <= counts["most"] <= 2


def test_each_run_sees_the_callers_context(door):
    var = ContextVar("var", default="unset")
    seen = []
    var.set("caller")
    batch(door, compiled(lambda state: seen.append(var.get()) or {}), [{"n": 1}, {"n": 2}])
    assert seen == ["caller", "caller"]


def test_a_bound_config_is_laid_under_that_of_a_run(door):
    graph = compiled(note).with_config({"tags": ["a"], "metadata": {"x": 1, "y": 1}, "configurable": {"k": 1}})
    bound = graph.with_config({"tags": ["b"], "metadata": {"y": 2}})
    found = door.invoke(bound, {}, {"tags": ["c", "a"], "configurable": {"l": 2}, "run_name": "r"})["config"]
    assert found == {
        "tags": ["a", "b", "c"],
        "metadata": {"x": 1, "y": 2},
        "configurable": {"k": 1, "l": 2},
        "run_name": "r",
        "callbacks": None,
    }
    assert door.invoke(graph, {})["config"]["tags"] == ["a"]
    assert door.stream(graph, {}, stream_mode="values")[-1]["config"]["metadata"] == {"x": 1, "y": 1}
    assert door.invoke(compiled(note), {})["config"]["tags"] == []


def test_a_bad_config_is_refused_when_it_is_bound():
    with pytest.raises(InvalidConfigError, match=r"'recursion_limt'.* Did you mean 'recursion_limit'\?"):
        compiled(square).with_config({"recursion_limt": 5})
    with pytest.raises(InvalidConfigError, match="mapping"):
        compiled(square).with_config({"tags": []}).invoke({"n": 1}, 5)


def test_a_bound_limit_holds(door):
    graph = StateGraph(State).add_node("node", square).add_edge(START, "node").add_edge("node", "node").compile()
    with pytest.raises(RecursionError, match="has run 3 supersteps"):
        door.invoke(graph.with_config({"recursion_limit": 3}), {"n": 1})


def test_runs_of_a_batch_inside_a_node_are_named_by_their_inputs_and_not_by_luck(door):
    seen = {}

    def inner(state, runtime):
        seen[state["n"]] = runtime.task_id
        return {}

    graph = compiled(inner)

    async def abatched(state):
        await graph.abatch([{"n": number} for number in range(8)])
        return {}

    def batched(state):
        graph.batch([{"n": number} for number in range(8)])
        return {}

    door.invoke(compiled(batched if door.way == "sync" else abatched), {"n": 1})
    names = ["node:1:0:node", *(f"node:1:0:node:{number}" for number in range(1, 8))]
    assert [seen[number] for number in range(8)] == [f"{name}|1:0:node" for name in names]
