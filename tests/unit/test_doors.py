"""One compiled graph, three ways to run it: the same results, whatever mixture of sync and async its nodes are."""

import asyncio
import operator
import subprocess
import sys
import threading
from contextvars import ContextVar
from functools import partial
from typing import Annotated, TypedDict

import anyio
import anyio.lowlevel
import pytest

from pregel import END, START, Command, Send, StateGraph
from pregel.errors import NodeCancelledError
from pregel.types import StreamWriter


class State(TypedDict):
    n: int
    log: Annotated[list, operator.add]


def sync_node(name):
    def run(state):
        return {"log": [(name, list(state["log"]))]}

    return run


def async_node(name):
    async def run(state):
        await anyio.lowlevel.checkpoint()
        return {"log": [(name, list(state["log"]))]}

    return run


def diamond(kinds, **options):
    """Return a -> (b, c) -> d (join) -> e with nodes of the given kinds."""
    builder = StateGraph(State)
    for name, kind in zip("abcde", kinds, strict=True):
        builder.add_node(name, sync_node(name) if kind == "s" else async_node(name))
    builder.add_edge(START, "a").add_edge("a", "b").add_edge("a", "c").add_edge(["b", "c"], "d").add_edge("d", "e")
    return builder.compile(**options)


EXPECTED = [
    ("a", []),
    ("b", [("a", [])]),
    ("c", [("a", [])]),
]


@pytest.mark.parametrize("executor", ["inline", "thread"])
@pytest.mark.parametrize("kinds", ["sssss", "aaaaa", "ssass", "asasa", "saasa"])
def test_every_mixture_runs_in_every_way(door, kinds, executor):
    log = door.invoke(diamond(kinds, executor=executor), {"n": 0})["log"]
    assert log[:3] == EXPECTED
    assert [name for name, _ in log] == list("abcde")
    assert log[4][1] == log[:4]


@pytest.mark.parametrize("kinds", ["sssss", "aaaaa", "ssass"])
def test_streams_have_the_same_parts_in_every_way(door, kinds):
    parts = door.stream(diamond(kinds, executor="inline"), {"n": 0}, stream_mode=["values", "updates"])
    values = [part for mode, part in parts if mode == "values"]
    assert [len(value["log"]) for value in values] == [0, 1, 3, 4, 5]
    updates = [part for mode, part in parts if mode == "updates"]
    assert sorted(next(iter(update)) for update in updates) == list("abcde")
    assert [mode for mode, _ in parts] == [
        "values",
        "updates",
        "values",
        "updates",
        "updates",
        *["values", "updates"] * 2,
        "values",
    ]


def test_a_single_mode_gives_parts_without_a_tag_and_a_list_of_one_tags_them(door):
    graph = StateGraph(State).add_node("a", lambda state: {"n": 1}).add_edge(START, "a").compile()
    assert door.stream(graph, {}) == [{"a": {"n": 1}}]
    assert door.stream(graph, {}, stream_mode=("updates",)) == [("updates", {"a": {"n": 1}})]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_custom_parts_come_between_the_others_in_every_way(door, kind):
    def talk(state, writer):
        writer("begun")
        writer({"n": state["n"]})
        return {"n": 2}

    async def atalk(state, writer: StreamWriter):
        return talk(state, writer)

    builder = StateGraph(State).add_node("a", talk if kind == "sync" else atalk).add_edge(START, "a")
    graph = builder.add_node("b", lambda state: {}).add_edge("a", "b").compile()
    parts = door.stream(graph, {"n": 1}, stream_mode=["custom", "updates"])
    assert parts == [("custom", "begun"), ("custom", {"n": 1}), ("updates", {"a": {"n": 2}}), ("updates", {"b": None})]
    assert door.invoke(graph, {"n": 1}) == {"n": 2, "log": []}


def test_custom_parts_of_parallel_nodes_are_all_there(door):
    def talk(state, writer):
        writer(state)
        return {}

    builder = StateGraph(State).add_node("a", talk)
    builder.add_conditional_edges(START, lambda state: [Send("a", number) for number in range(20)], ["a"])
    for executor in ("inline", "thread"):
        parts = door.stream(builder.compile(executor=executor), {}, stream_mode="custom")
        assert sorted(parts) == list(range(20))


def test_a_part_is_there_while_its_node_still_runs():
    release = threading.Event()

    def talk(state, writer):
        writer("working")
        assert release.wait(10)
        return {}

    graph = StateGraph(State).add_node("a", talk).add_edge(START, "a").compile()
    parts = graph.stream({}, stream_mode="custom")
    assert next(parts) == "working"
    release.set()
    assert list(parts) == []


var = ContextVar("var", default="unset")


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("executor", ["inline", "thread"])
@pytest.mark.parametrize("width", [1, 3])
def test_context_variables_reach_nodes_and_stay_in_them(door, kind, executor, width):
    seen = []

    def look(state):
        seen.append(var.get())
        var.set("leaked")
        return {}

    async def alook(state):
        await anyio.lowlevel.checkpoint()
        return look(state)

    def route(state):
        seen.append(var.get())
        var.set("leaked")
        return "b"

    builder = StateGraph(State).add_node("a", look if kind == "sync" else alook).add_node("b", look)
    builder.add_conditional_edges(START, lambda state: [Send("a", state)] * width, ["a"])
    builder.add_conditional_edges("a", route, ["b"])
    graph = builder.compile(executor=executor)
    var.set("caller")
    door.invoke(graph, {"n": 1})
    # A router runs in its node's task, and so sees what the node set; nobody else does.
    assert sorted(seen) == ["caller"] * (width + 1) + ["leaked"] * width
    assert var.get() == "caller"


def test_one_compiled_graph_serves_many_runs_at_once(door):
    graph = diamond("sasas")
    if door.way == "sync":
        results = []
        threads = [threading.Thread(target=lambda: results.append(graph.invoke({"n": 1}))) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    else:

        async def main():
            results = []

            async def one():
                results.append(await graph.ainvoke({"n": 1}))

            async with anyio.create_task_group() as group:
                for _ in range(20):
                    group.start_soon(one)
            return results

        results = door.run(main)
    assert len(results) == 20
    assert all([name for name, _ in result["log"]] == list("abcde") for result in results)


@pytest.mark.parametrize("limit", [1, 3])
@pytest.mark.parametrize("kinds", ["s", "a", "sa"])
def test_max_concurrency_holds(door, limit, kinds):
    lock = threading.Lock()
    counts = {"now": 0, "most": 0}

    def enter(step):
        with lock:
            counts["now"] += step
            counts["most"] = max(counts["most"], counts["now"])

    def work(state):
        enter(1)
        threading.Event().wait(0.001)
        enter(-1)
        return {"log": [state]}

    async def awork(state):
        enter(1)
        for _ in range(5):  # long enough for a task too many to be seen
            await anyio.lowlevel.checkpoint()
        enter(-1)
        return {"log": [state]}

    builder = StateGraph(State)
    for kind in kinds:
        builder.add_node(kind, work if kind == "s" else awork)
    builder.add_conditional_edges(START, lambda state: [Send(kinds[i % len(kinds)], i) for i in range(12)], list(kinds))
    result = door.invoke(builder.compile(), {}, {"max_concurrency": limit})
    assert result["log"] == list(range(12))
    assert counts["most"] <= limit


def test_tasks_of_a_superstep_really_run_side_by_side(door):
    width = 8
    barrier = threading.Barrier(width, timeout=10)

    def meet(state):
        barrier.wait()
        return {"log": [state]}

    builder = StateGraph(State).add_node("a", meet)
    builder.add_conditional_edges(START, lambda state: [Send("a", number) for number in range(width)], ["a"])
    assert door.invoke(builder.compile(), {})["log"] == list(range(width))


def test_inline_code_runs_in_the_thread_of_the_run(door):
    threads = {}

    def note(state):
        threads.setdefault(state, []).append(threading.get_ident())
        return {}

    builder = StateGraph(State).add_node("here", note, executor="inline").add_node("there", note)
    builder.add_conditional_edges(
        START, lambda state: [Send("here", "here"), Send("there", "there"), Send("here", "here")], ["here", "there"]
    )
    door.invoke(builder.compile(), {})
    assert set(threads["here"]) == {threading.get_ident()}
    assert set(threads["there"]) != {threading.get_ident()}


NESTED = """
from typing import TypedDict
from pregel import START, Send, StateGraph
from pregel.drivers.workers import set_thread_limit
import asyncio

class State(TypedDict):
    n: int

set_thread_limit(2)
graph = StateGraph(State).add_node("leaf", lambda state: {"n": 1}).add_edge(START, "leaf").compile()
for _ in range(4):
    def work(arg, inner=graph):
        assert inner.invoke({"n": 0}) == {"n": 1}
        return {}

    builder = StateGraph(State).add_node("work", work).add_node("last", lambda state: {"n": 1}, defer=True)
    builder.add_conditional_edges(START, lambda state: [*(Send("work", i) for i in range(4)), "last"], ["work", "last"])
    graph = builder.compile()
print(graph.invoke({"n": 0}), asyncio.run(graph.ainvoke({"n": 0})))
"""


def test_nested_runs_end_however_few_threads_there_are():
    """Workers that wait for workers that all wait would stop for ever; a process of its own has few threads."""
    shown = subprocess.run([sys.executable, "-c", NESTED], capture_output=True, text=True, check=True, timeout=60)
    assert shown.stdout == "{'n': 1} {'n': 1}\n"


def test_invoke_runs_async_nodes_on_one_loop_also_inside_a_running_loop(door):
    loops = []

    async def note(state):
        loops.append(asyncio.get_running_loop())
        return {"n": state["n"] + 1}

    graph = (
        StateGraph(State)
        .add_sequence([("a", note), ("b", lambda state: {"n": state["n"] + 1}), ("c", note)])
        .add_edge(START, "a")
        .compile()
    )

    def both():
        assert graph.invoke({"n": 0}) == {"n": 3, "log": []}
        assert list(graph.stream({"n": 0})) == [{"a": {"n": 1}}, {"b": {"n": 2}}, {"c": {"n": 3}}]

    if door.way == "sync":
        both()
    else:

        async def main():
            both()

        door.run(main)
    assert len(loops) == 4
    assert loops[0] is loops[1]
    assert loops[2] is loops[3]


def test_a_sync_function_that_returns_a_coroutine_is_told_to_be_async(door):
    async def later(state):
        return {"n": 1}

    graph = StateGraph(State).add_node("a", lambda state: later(dict(state))).add_edge(START, "a").compile()
    with pytest.raises(TypeError, match="declare the node with `async def`"):
        door.invoke(graph, {})


def test_partials_and_callable_objects_are_awaited_where_they_are_async(door):
    class Node:
        async def __call__(self, state):
            return {"n": state["n"] + 1}

    async def add(amount, state):
        return {"n": state["n"] + amount}

    builder = StateGraph(State).add_node("a", Node()).add_node("b", partial(add, 5))
    graph = builder.add_edge(START, "a").add_edge("a", "b").compile()
    assert door.invoke(graph, {"n": 1})["n"] == 7


def test_an_async_path_works_with_sync_and_async_nodes(door):
    async def path(state):
        await anyio.lowlevel.checkpoint()
        return "b" if state["n"] == 1 else END

    for first in (lambda state: {"n": 1}, async_node("a")):
        builder = StateGraph(State).add_node("a", first).add_node("b", lambda state: {"log": ["b"]})
        graph = builder.add_edge(START, "a").add_conditional_edges("a", path, ["b", END]).compile()
        assert door.invoke(graph, {"n": 1})["log"][-1] == "b"


def test_runnable_like_objects_use_the_form_that_fits_the_driver(door):
    class Runnable:
        def invoke(self, given, config=None):
            return {"log": [("invoke", config["metadata"])]}

        async def ainvoke(self, given, config=None):
            return {"log": [("ainvoke", config["metadata"])]}

    class AsyncOnly:
        async def ainvoke(self, given):
            return {"log": ["async only"]}

    builder = StateGraph(State).add_node("a", Runnable()).add_node("b", AsyncOnly())
    graph = builder.add_edge(START, "a").add_edge("a", "b").compile()
    # An async-only node brings a loop, and with asyncio's loop the async form is used everywhere.
    form = "invoke" if door.way == "trio" else "ainvoke"
    assert door.invoke(graph, {}, {"metadata": {"k": 1}})["log"] == [(form, {"k": 1}), "async only"]
    alone = StateGraph(State).add_node("a", Runnable()).add_edge(START, "a").compile()
    form = "ainvoke" if door.way == "asyncio" else "invoke"
    assert door.invoke(alone, {}, {"metadata": {}})["log"] == [(form, {})]


def test_langchain_runnables_are_nodes_as_they_are(door):
    from langchain_core.runnables import RunnableLambda

    def add(given):
        return {"n": given["n"] + 1}

    chain = RunnableLambda(lambda given: {"n": given["n"] * 2}) | RunnableLambda(add)
    graph = StateGraph(State).add_node("chain", chain).add_edge(START, "chain").compile()
    assert door.invoke(graph, {"n": 4})["n"] == 9


def test_a_node_that_cancels_itself_fails_by_name():
    async def cancel(state):
        raise asyncio.CancelledError

    for width in (1, 2):
        builder = StateGraph(State).add_node("a", cancel)
        builder.add_conditional_edges(START, lambda state, width=width: [Send("a", state)] * width, ["a"])
        with pytest.raises((NodeCancelledError, ExceptionGroup)) as caught:
            asyncio.run(builder.compile().ainvoke({}))
        error = caught.value if width == 1 else caught.value.exceptions[1]
        assert type(error) is NodeCancelledError
        assert "node 'a' of graph 'State' ended as cancelled" in str(error)


def test_commands_from_async_nodes_go_on_in_every_way(door):
    async def choose(state) -> Command:
        return Command(update={"n": 5}, goto=[Send("b", 1), "c"])

    builder = StateGraph(State).add_node("a", choose).add_node("b", lambda arg: {"log": [arg]})
    graph = builder.add_node("c", lambda state: {"log": [state["n"]]}).add_edge(START, "a").compile()
    assert door.invoke(graph, {}) == {"n": 5, "log": [5, 1]}
