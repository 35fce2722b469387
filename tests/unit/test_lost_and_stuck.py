"""Ways in which a run could end as if it were whole, or never: each ends by name, and in time."""

import asyncio
import operator
import subprocess
import sys
from types import ModuleType
from typing import Annotated, Any, TypedDict

import anyio
import anyio.lowlevel
import pytest

from pregel import START, Overwrite, Send, StateGraph
from pregel.channels import MISSING, BinaryOperatorAggregate
from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import (
    GraphDefinitionError,
    InvalidInputError,
    InvalidUpdateError,
    NodeCancelledError,
    ReducerError,
    SchemaError,
)
from pregel.graph.messages import AIMessage, MessagesState


class State(TypedDict, total=False):
    n: int
    log: Annotated[list, operator.add]
    x: Any


def flat(error):
    return [one for each in error.exceptions for one in flat(each)] if isinstance(error, ExceptionGroup) else [error]


def cancels_inside(state):
    async def inner():
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    asyncio.run(inner())


async def cancels_itself(state):
    asyncio.current_task().cancel()
    await asyncio.sleep(0)


async def other(state):
    await anyio.lowlevel.checkpoint()
    return {"log": ["other"]}


def beside_another(node):
    builder = StateGraph(State).add_node("node", node).add_node(other).add_node("end", lambda state: {"log": ["end"]})
    return builder.add_edge(START, "node").add_edge(START, "other").add_edge(["node", "other"], "end").compile()


def alone(node):
    return StateGraph(State).add_node("node", node).add_edge(START, "node").compile()


@pytest.mark.parametrize("build", [alone, beside_another])
@pytest.mark.parametrize("way", ["sync", "asyncio"])
def test_a_cancellation_that_leaves_sync_code_fails_the_task_by_name(build, way):
    graph = build(cancels_inside) if way == "sync" else None
    if way == "sync":
        with pytest.raises(NodeCancelledError, match="node 'node' of graph 'State' ended as cancelled"):
            graph.invoke({})
        return

    def in_a_thread(state):  # no loop runs in a worker thread, so the node may run one
        return cancels_inside(state)

    graph = build(in_a_thread)
    with pytest.raises(NodeCancelledError, match="node 'node' of graph 'State' ended as cancelled"):
        asyncio.run(graph.ainvoke({}))

    async def read():
        return [part async for part in graph.astream({}, stream_mode="values")]

    with pytest.raises(NodeCancelledError):
        asyncio.run(read())


def test_an_async_node_that_cancels_itself_does_not_end_the_run_well():
    with pytest.raises(NodeCancelledError):
        beside_another(cancels_itself).invoke({})
    with pytest.raises(NodeCancelledError, match="node 'node' of graph 'State' ended as cancelled"):
        asyncio.run(beside_another(cancels_itself).ainvoke({}))

    async def read(graph):
        return [part async for part in graph.astream({}, stream_mode="values")]

    for graph in (alone(cancels_itself), beside_another(cancels_itself)):
        with pytest.raises(NodeCancelledError):
            asyncio.run(read(graph))


def test_a_cancellation_that_a_node_swallows_still_ends_the_run():
    ran = []

    async def keeps(state, writer):
        writer("token")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ran.append("swallowed")
        return {"n": 1}

    builder = StateGraph(State).add_node(keeps).add_node("after", lambda state: ran.append("after") or {})
    graph = builder.add_edge(START, "keeps").add_edge("keeps", "after").compile()
    parts = graph.stream({}, stream_mode="custom")
    assert next(parts) == "token"
    parts.close()
    assert ran == ["swallowed"]

    async def main():
        task = asyncio.create_task(graph.ainvoke({}))
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ran == ["swallowed", "swallowed"]


CROWDED = """
import asyncio, operator, threading
from typing import Annotated, TypedDict
from pregel import START, Send, StateGraph
from pregel.drivers.workers import set_thread_limit

class State(TypedDict, total=False):
    log: Annotated[list, operator.add]

set_thread_limit(4)

async def awaits(state):
    return {"log": [1]}

def works(state):
    return {"log": [1]}

mixed = StateGraph(State).add_node(works).add_node(awaits).add_edge(START, "works").add_edge(START, "awaits").compile()
sync = StateGraph(State).add_node(works)
sync = sync.add_conditional_edges(START, lambda state: [Send("works", state)] * 3, ["works"]).compile()
together = threading.Barrier(4)

def meet():
    together.wait(20)  # all workers are taken before one of them asks for more

for name, inner in (
    ("mixed", lambda: mixed.invoke({})),
    ("batch", lambda: sync.batch([{}, {}])),
    ("stream", lambda: list(mixed.stream({}))),
    ("loop", lambda: asyncio.run(mixed.ainvoke({}))),
):
    def node(state, inner=inner):
        meet()
        inner()
        return {"log": ["done"]}

    graph = StateGraph(State).add_node("node", node)
    graph = graph.add_conditional_edges(START, lambda state: [Send("node", state)] * 4, ["node"]).compile()
    assert graph.invoke({}) == {"log": ["done"] * 4}, name
    assert asyncio.run(graph.ainvoke({})) == {"log": ["done"] * 4}, name
print("all done")
"""


def test_runs_inside_tasks_find_threads_when_every_worker_is_taken():
    shown = subprocess.run([sys.executable, "-c", CROWDED], capture_output=True, text=True, check=False, timeout=100)
    assert (shown.stdout, shown.stderr[-2000:]) == ("all done\n", "")


def test_graphs_that_a_node_reads_as_streams_have_ids_of_their_own(door):
    chat = StateGraph(MessagesState).add_node("say", lambda state: {"messages": [AIMessage("hi")]})
    chat = chat.add_edge(START, "say").compile()

    def twice(state):
        said = []
        for number in range(2):
            *_, last = chat.stream({"messages": [("user", f"q{number}")]}, stream_mode="values")
            said += last["messages"]
        return {"messages": said}

    graph = StateGraph(MessagesState).add_node(twice).add_edge(START, "twice").compile()
    config = {"run_id": "12345678-1234-5678-1234-567812345678"}
    found = [door.invoke(graph, {"messages": []}, config)["messages"] for _ in range(2)]
    assert [message.text for message in found[0]] == ["q0", "hi", "q1", "hi"]
    assert [message.id for message in found[0]] == [message.id for message in found[1]]


class NotelessError(Exception):
    __notes__ = "a text where a list of notes belongs"


def test_an_exception_that_takes_no_notes_leaves_as_it_is(door):
    def fails(state):
        raise NotelessError

    with pytest.raises(NotelessError):
        door.invoke(alone(fails), {})
    with pytest.raises(NotelessError):
        door.invoke(beside_another(fails), {})


# --- Markers are no values --------------------------------------------------------------------------------------------


def test_missing_is_no_update_no_input_and_nothing_to_send(door):
    with pytest.raises(InvalidUpdateError, match="the field 'x' was given MISSING"):
        door.invoke(alone(lambda state: {"x": MISSING}), {})
    with pytest.raises(InvalidInputError, match="the field 'x' was given MISSING"):
        door.invoke(alone(lambda state: {}), {"x": MISSING})
    builder = StateGraph(State).add_node("node", lambda state: {})
    builder.add_conditional_edges(START, lambda state: Send("node", MISSING), ["node"])
    with pytest.raises(InvalidUpdateError, match=r"sends MISSING.* to 'node': send None"):
        door.invoke(builder.compile(), {})


@pytest.mark.parametrize("marker", [MISSING, Overwrite(1)])
def test_a_reducer_returns_a_value_and_no_marker(door, marker):
    class Odd(TypedDict):
        x: Annotated[int, lambda left, right: marker]

    graph = StateGraph(Odd).add_node("node", lambda state: {"x": 1}).add_edge(START, "node").compile()
    with pytest.raises(InvalidUpdateError, match=r"the field 'x' .*the reducer returned .*, which is no value"):
        door.invoke(graph, {})


def test_an_async_reducer_and_a_generator_are_refused_when_the_schema_is_read():
    async def later(left, right):
        return left

    def yields(left, right):
        yield left

    for reducer in (later, yields):

        class Odd(TypedDict):
            x: Annotated[list, reducer]

        with pytest.raises(SchemaError, match=r"field 'x': .* is async or a generator"):
            StateGraph(Odd).add_node("a", lambda state: {}).add_edge(START, "a").compile()


# --- Errors keep their names ------------------------------------------------------------------------------------------


class ShapelessError(Exception):
    def __repr__(self):
        raise RuntimeError("no text")


def test_an_error_without_a_text_is_still_told():
    def fails(state):
        raise ShapelessError

    parts = alone(fails).stream({}, stream_mode="tasks")
    assert next(parts)["name"] == "node"
    assert next(parts)["error"] == "<no text: its repr raised RuntimeError>"
    with pytest.raises(ShapelessError):
        next(parts)


def test_a_channel_that_fails_when_it_is_cleared_is_named(door):
    class Fragile(BinaryOperatorAggregate):
        resets = True

        def apply(self, value, updates):
            return super().apply(value, updates) if updates else 1 // 0

    class Odd(TypedDict):
        n: int
        x: Annotated[int, Fragile(operator.add, initial=0)]

    graph = StateGraph(Odd).add_node("node", lambda state: {"n": 1}).add_edge(START, "node").compile()
    with pytest.raises(ReducerError, match=r"of field 'x' .* raised ZeroDivisionError.* brought it no update"):
        door.invoke(graph, {})


def test_odd_options_of_the_builder_are_refused_by_name():
    with pytest.raises(GraphDefinitionError, match="allow takes a set of codes, not 5"):
        StateGraph(State, allow=5)
    with pytest.raises(GraphDefinitionError, match="destinations of node 'a' takes a list of names"):
        StateGraph(State).add_node("a", len, destinations=5)


def test_a_module_that_another_thread_is_loading_breaks_nothing(monkeypatch):
    async def awaits(state):
        return {"messages": [AIMessage("hi")]}

    graph = StateGraph(MessagesState).add_node(awaits).add_edge(START, "awaits").compile(InMemorySaver())
    for name in ("sniffio", "trio", "langchain_core.messages.base", "langchain_core.tools.base"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    found = graph.invoke({"messages": ["hello"]}, {"configurable": {"thread_id": "1"}})
    assert [message.text for message in found["messages"]] == ["hello", "hi"]
