"""What code inside a task can find out about its run: by parameters, and by asking from anywhere below."""

import contextvars
import operator
import threading
from dataclasses import dataclass, field
from typing import Annotated, Any, Optional, TypedDict

import anyio
import anyio.lowlevel
import pytest
from pydantic import BaseModel

from pregel import END, START, Runtime, Send, StateGraph
from pregel.config import RunConfig, get_config, get_stream_writer
from pregel.errors import GraphDefinitionError, InvalidConfigError, OutsideTaskError, PregelError
from pregel.runtime import get_runtime
from pregel.types import StreamWriter


class State(TypedDict, total=False):
    log: Annotated[list, operator.add]
    n: int


@dataclass
class Settings:
    unit: str
    factor: int = 1


CONFIG = {"configurable": {"user": "ada"}, "tags": ["t"], "metadata": {"m": 1}}
WHOLE = {"tags": ["t"], "metadata": {"m": 1}, "callbacks": None, "configurable": {"user": "ada"}}


def single(action, **options):
    """Return a graph of one node."""
    return StateGraph(State, Settings).add_node("a", action).add_edge(START, "a").compile(**options)


def look():
    """Return what code anywhere below a task sees, and write to its stream."""
    runtime = get_runtime()
    get_stream_writer()(("wrote", runtime.node))
    return (get_config(), runtime.context, runtime.node, runtime.step, runtime.task_id, runtime.config)


SEEN = (WHOLE, Settings("km"), "a", 1, "1:0:a", WHOLE)


# --- Asking from anywhere ---------------------------------------------------------------------------------------------


def looking(how, seen):
    """Return a node that looks in a given way."""

    def record():
        seen.append(look())

    def directly(state):
        record()
        return {}

    async def awaited(state):
        record()
        await anyio.lowlevel.checkpoint()
        record()
        return {}

    def nested(state):
        def below():
            return [inner() for inner in [record]]

        below()
        return {}

    def thread(state):
        context = contextvars.copy_context()
        worker = threading.Thread(target=context.run, args=(record,))
        worker.start()
        worker.join(20)
        return {}

    async def to_thread(state):
        await anyio.to_thread.run_sync(record)
        return {}

    async def tasks(state):
        async def one():
            await anyio.lowlevel.checkpoint()
            record()

        async with anyio.create_task_group() as group:
            group.start_soon(one)
            group.start_soon(one)
        return {}

    class Both:
        def invoke(self, state):
            record()
            return {}

        async def ainvoke(self, state):
            return self.invoke(state)

    ways = {
        "directly": directly,
        "awaited": awaited,
        "nested": nested,
        "thread": thread,
        "to_thread": to_thread,
        "tasks": tasks,
        "object": Both(),
    }
    return ways[how]


WAYS = ["directly", "awaited", "nested", "thread", "to_thread", "tasks", "object"]


@pytest.mark.parametrize("executor", ["inline", "thread"])
@pytest.mark.parametrize("how", WAYS)
def test_code_below_a_task_finds_its_config_runtime_and_writer(door, how, executor):
    seen = []
    graph = single(looking(how, seen), executor=executor)
    parts = door.stream(graph, {}, CONFIG, context=Settings("km"), stream_mode="custom")
    assert seen
    assert seen == [SEEN] * len(seen)
    assert parts == [("wrote", "a")] * len(seen)


@pytest.mark.parametrize("how", WAYS)
def test_each_of_many_tasks_finds_its_own(door, how):
    seen = []
    builder = StateGraph(State, Settings).add_node("a", looking(how, seen)).add_node("b", looking(how, seen))
    builder.add_conditional_edges(START, lambda state: ["b", Send("a", {}), Send("a", {})], ["a", "b"])
    door.invoke(builder.compile(), {}, CONFIG, context=Settings("km"))
    assert {(node, ident) for _, _, node, _, ident, _ in seen} == {("a", "1:1:a"), ("a", "1:2:a"), ("b", "1:0:b")}


def test_a_path_finds_the_task_it_belongs_to(door):
    seen = []

    def path(state):
        seen.append(look())
        return END

    async def apath(state):
        return path(state)

    builder = StateGraph(State, Settings).add_node("a", lambda state: {}).add_edge(START, "a")
    builder.add_conditional_edges("a", path, [END]).add_conditional_edges("a", apath, [END])
    parts = door.stream(builder.compile(), {}, CONFIG, context=Settings("km"), stream_mode="custom")
    assert seen == [SEEN, SEEN]
    assert parts == [("wrote", "a")] * 2


def test_a_path_from_start_finds_the_run(door):
    seen = []
    builder = StateGraph(State, Settings).add_node("a", lambda state: {})
    builder.add_conditional_edges(START, lambda state: seen.append(look()) or "a", ["a"])
    parts = door.stream(builder.compile(), {}, CONFIG, context=Settings("km"), stream_mode="custom")
    assert [(config, context, step) for config, context, _, step, _, _ in seen] == [(WHOLE, Settings("km"), 0)]
    assert parts == [("wrote", START)]


def test_what_a_reducer_does_is_part_of_no_task(door):
    def add(left, right):
        with pytest.raises(OutsideTaskError):
            get_runtime()
        return left + right

    class Adding(TypedDict):
        n: Annotated[int, add]

    builder = StateGraph(Adding).add_node("a", lambda state: {"n": 2}).add_node("b", lambda state: {"n": 3})
    graph = builder.add_edge(START, "a").add_edge(START, "b").compile()
    assert door.invoke(graph, {"n": 1}) == {"n": 6}


def test_the_config_is_a_mapping_of_the_readers_own(door):
    def spoil(state, config):
        config["tags"] = ["spoilt"]
        get_config()["tags"] = ["spoilt"]
        return {"log": [get_config()["tags"], get_runtime().config["tags"]]}

    assert door.invoke(single(spoil), {}, CONFIG) == {"log": [["t"], ["t"]]}
    assert CONFIG["tags"] == ["t"]


def test_without_a_config_the_keys_of_langchain_are_there(door):
    found = []
    door.invoke(single(lambda state: found.append(get_config()) or {}), {})
    assert found == [{"tags": [], "metadata": {}, "callbacks": None, "configurable": {}}]


def test_a_writer_that_nobody_reads_is_there_all_the_same(door):
    graph = single(lambda state: get_stream_writer()("unread") or {"n": 1})
    assert door.invoke(graph, {}) == {"log": [], "n": 1}
    assert door.stream(graph, {}, stream_mode="updates") == [{"a": {"n": 1}}]


# --- Outside ----------------------------------------------------------------------------------------------------------

ASKING = [get_config, get_stream_writer, get_runtime]


@pytest.mark.parametrize("ask", ASKING)
def test_outside_of_a_task_asking_is_an_error_that_names_the_remedy(ask):
    with pytest.raises(OutsideTaskError) as caught:
        ask()
    assert isinstance(caught.value, (PregelError, RuntimeError))
    assert isinstance(caught.value, RuntimeError)
    for word in ("get_config", "get_stream_writer", "get_runtime", "contextvars.copy_context()"):
        assert word in str(caught.value)


@pytest.mark.parametrize("ask", ASKING)
def test_a_thread_without_the_tasks_context_is_outside(door, ask):
    found = []

    def outside():
        try:
            ask()
        except OutsideTaskError as error:
            found.append(error)

    def node(state):
        worker = threading.Thread(target=outside)
        worker.start()
        worker.join(20)
        return {}

    door.invoke(single(node), {})
    assert len(found) == 1


def test_after_and_between_runs_the_caller_is_outside(door):
    async def arun(state):
        return {}

    for action in (lambda state: {}, arun):
        graph = single(action)
        if door.way == "sync":
            graph.invoke({})
            with pytest.raises(OutsideTaskError):
                get_runtime()
            for _ in graph.stream({}):
                with pytest.raises(OutsideTaskError):
                    get_runtime()
        else:

            async def main(graph=graph):
                await graph.ainvoke({})
                with pytest.raises(OutsideTaskError):
                    get_runtime()
                async for _ in graph.astream({}):
                    with pytest.raises(OutsideTaskError):
                        get_runtime()

            door.run(main)


def test_a_node_that_reads_a_graph_part_by_part_stays_inside_its_own_task(door):
    inner = StateGraph(State).add_node("b", lambda state: {"n": 1}).add_edge(START, "b").compile()

    def read(state):
        return {"log": [get_runtime().node for _ in inner.stream({})] + [get_runtime().node]}

    assert door.invoke(single(read), {})["log"] == ["a", "a"]


# --- Injection --------------------------------------------------------------------------------------------------------


def by_name(state, config, writer, runtime):
    writer("written")
    return {"log": [config, runtime]}


def by_annotation(state, conf: RunConfig, say: StreamWriter, run: Runtime[Settings]):
    return by_name(state, conf, say, run)


def by_optional_annotation(
    state,
    *,
    conf: Optional[RunConfig] = None,  # noqa: UP045 - both spellings count
    say: StreamWriter | None = None,
    run: Optional[Runtime] = None,  # noqa: UP045 - as above
):
    return by_name(state, conf, say, run)


def by_text(state: "State", conf: "RunConfig", say: "StreamWriter", run: "Runtime[Settings]"):
    return by_name(state, conf, say, run)


def crosswise(state, config: StreamWriter, say: "Runtime[Settings]", other: RunConfig):
    """Names that the engine knows are filled by name, whatever they are annotated with."""
    return {"log": [other, say]}


async def awaited(state, conf: RunConfig, say: StreamWriter, run: Runtime[Settings]):
    return by_name(state, conf, say, run)


class Callable:
    def __call__(self, state, conf: RunConfig, say: StreamWriter, run: Runtime[Settings]):
        return by_name(state, conf, say, run)

    def method(self, state, conf: RunConfig, say: StreamWriter, run: Runtime[Settings]):
        return by_name(state, conf, say, run)


INJECTED = [by_name, by_annotation, by_optional_annotation, by_text, awaited, Callable(), Callable().method]


@pytest.mark.parametrize("action", INJECTED)
def test_parameters_are_filled_by_name_and_by_annotation_under_any_name(door, action):
    graph = single(action)
    *parts, last = door.stream(graph, {}, CONFIG, context=Settings("km"), stream_mode=["custom", "values"])
    config, runtime = last[1]["log"]
    assert [part for mode, part in parts if mode == "custom"] == ["written"]
    assert config == WHOLE
    assert isinstance(runtime, Runtime)
    assert (runtime.context, runtime.node, runtime.step, runtime.task_id) == (Settings("km"), "a", 1, "1:0:a")
    assert runtime.config == WHOLE


def test_paths_are_filled_as_nodes_are(door):
    seen = []

    def path(state, conf: RunConfig, run: Runtime[Settings], writer):
        writer("written")
        seen.append((conf, run.context, run.node))
        return END

    builder = StateGraph(State, Settings).add_node("a", lambda state: {}).add_edge(START, "a")
    graph = builder.add_conditional_edges("a", path, [END]).compile()
    parts = door.stream(graph, {}, CONFIG, context=Settings("km"), stream_mode="custom")
    assert seen == [(WHOLE, Settings("km"), "a")]
    assert parts == ["written"]


def test_the_writer_of_the_runtime_is_that_of_the_stream(door):
    def node(state, runtime):
        runtime.stream_writer("written")
        return {}

    assert door.stream(single(node), {}, stream_mode="custom") == ["written"]


@pytest.mark.parametrize("annotation", [int, Any, Settings, dict[str, Any], None])
def test_a_parameter_that_nothing_fills_is_an_error_at_compile(annotation):
    def node(state, extra):
        return {}

    node.__annotations__ = {"extra": annotation}
    with pytest.raises(GraphDefinitionError, match="'extra'"):
        single(node)


# --- Task ids ---------------------------------------------------------------------------------------------------------


def test_task_ids_are_unique_in_a_run_and_the_same_in_each(door):
    lock = threading.Lock()

    def graph_that_records(seen):
        def record(state):
            with lock:
                seen.append((get_runtime().task_id, get_runtime().step))
            return {}

        inner = StateGraph(State).add_node("x", record).add_node("y", record)
        child = inner.add_edge(START, "x").add_edge("x", "y").compile()
        builder = StateGraph(State).add_node("a", record).add_node("c", child).add_node("d", child)
        builder.add_edge(START, "a").add_edge(START, "c").add_edge("a", "d")
        builder.add_conditional_edges("a", lambda state: [Send("c", {}), Send("c", {})], ["c"])
        return builder.compile()

    runs = []
    for _ in range(2):
        seen = []
        door.invoke(graph_that_records(seen), {})
        runs.append(sorted(seen))
    assert runs[0] == runs[1]
    assert runs[0] == [
        ("1:0:a", 1),
        *(
            (f"{name}:{task}:{name}|{step}:0:{inner}", step)
            for name, task in (("c", "1:1"), ("c", "2:1"), ("c", "2:2"), ("d", "2:0"))
            for step, inner in ((1, "x"), (2, "y"))
        ),
    ]


def test_the_task_id_of_a_part_with_its_path_is_that_of_the_runtime(door):
    seen = []
    child = StateGraph(State).add_node("x", lambda state: seen.append(get_runtime().task_id) or {}).add_edge(START, "x")
    parts = door.stream(single(child.compile()), {}, stream_mode="tasks", subgraphs=True, version="v2")
    assert {"|".join((*part["ns"], part["task"])) for part in parts if part["ns"]} == set(seen)


# --- Context schemas --------------------------------------------------------------------------------------------------


class Model(BaseModel):
    unit: str
    factor: int = 1


class Loose(TypedDict, total=False):
    unit: str
    factor: int


def contextual(schema, seen):
    builder = StateGraph(State, context_schema=schema).add_node(
        "a", lambda state, runtime: seen.append(runtime.context) or {}, input_schema=State
    )
    return builder.add_edge(START, "a").compile(name="demo")


@pytest.mark.parametrize(
    ("schema", "given", "found"),
    [
        (Settings, Settings("km", 2), Settings("km", 2)),
        (Settings, {"unit": "km"}, Settings("km")),
        (Model, Model(unit="km"), Model(unit="km")),
        (Model, {"unit": "km", "factor": "3"}, Model(unit="km", factor=3)),
        (Loose, {"unit": "km"}, {"unit": "km"}),
        (Settings, None, None),
        (None, {"any": "thing"}, {"any": "thing"}),
        (None, 5, 5),
    ],
)
def test_nodes_find_the_context_as_its_schema_has_it(door, schema, given, found):
    seen = []
    door.invoke(contextual(schema, seen), {}, context=given)
    door.stream(contextual(schema, seen), {}, context=given)
    assert seen == [found, found]
    assert [type(context) for context in seen] == [type(found)] * 2


@pytest.mark.parametrize(
    ("schema", "given", "words"),
    [
        (Settings, {"units": "km"}, ["'units'", "Did you mean 'unit'?", "Settings"]),
        (Settings, {"unit": 5}, ["'unit'", "5", "str"]),
        (Settings, {}, ["Settings", "unit"]),
        (Settings, "km", ["Settings", "str"]),
        (Model, {"unit": "km", "factor": "x"}, ["Model", "factor"]),
        (Loose, {"unit": 5}, ["'unit'", "5", "str"]),
        (Loose, ["unit"], ["Loose", "list"]),
    ],
)
def test_a_context_that_does_not_fit_is_an_error_and_nothing_runs(door, schema, given, words):
    seen = []
    with pytest.raises(InvalidConfigError) as caught:
        door.invoke(contextual(schema, seen), {}, context=given)
    for word in ("context", "'demo'", *words):
        assert word in str(caught.value)
    assert seen == []


def test_a_falsy_context_is_a_context(door):
    @dataclass
    class Empty:
        items: list = field(default_factory=list)

        def __bool__(self):
            return False

    seen = []
    inner = contextual(Empty, seen)
    graph = StateGraph(State, context_schema=Empty).add_node("child", inner).add_edge(START, "child").compile()
    door.invoke(graph, {}, context=Empty())
    assert seen == [Empty()]


def test_a_context_that_the_schema_of_a_child_refuses_is_an_error_that_names_the_child(door):
    @dataclass
    class Other:
        colour: str

    seen = []
    graph = StateGraph(State, context_schema=Other).add_node("child", contextual(Settings, seen))
    with pytest.raises(InvalidConfigError, match="'demo'") as caught:
        door.invoke(graph.add_edge(START, "child").compile(), {}, context=Other("red"))
    assert any("node 'child'" in note for note in caught.value.__notes__)
    assert seen == []


def test_a_runtime_that_a_test_makes_by_hand_belongs_to_no_run_that_could_be_left():
    made = Runtime(None, print, {}, "node", 1, "1:0:node")
    made.heartbeat()
    assert made.cancelled() is False
