"""The test kit: one node alone, an order of completion by seed, traces of runs."""

import operator
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypedDict

import anyio
import pytest
from pydantic import BaseModel

import pregel.testing
from pregel import START, Command, MessagesState, Overwrite, PrivateStateAttr, Runtime, Send, StateGraph
from pregel.errors import InvalidConfigError, InvalidInputError, InvalidUpdateError, PregelWarning, UnknownTargetError
from pregel.testing import UnknownNodeError, run_node, run_seeded, trace

ROOT = Path(__file__).parents[2]


class State(TypedDict):
    n: int
    log: Annotated[list, operator.add]
    secret: Annotated[int, PrivateStateAttr]


def later(function):
    """Return the async form of a node."""

    async def node(state):
        await anyio.lowlevel.checkpoint()
        return function(state)

    return node


def one_node(function, **options):
    """Return a graph of one node, which can lead to two others."""
    builder = StateGraph(State, **options).add_node("work", function, destinations=("left", "right"))
    builder.add_node("left", lambda state: {}).add_node("right", lambda state: {})
    return builder.add_edge(START, "work").compile(name="one")


def wide(*names, awaited=False):
    """Return a graph of nodes that run side by side and log their names."""
    builder = StateGraph(State)
    for name in names:
        node = lambda state, name=name: {"log": [name]}  # noqa: E731 - one for each name
        builder.add_node(name, later(node) if awaited else node).add_edge(START, name)
    return builder.compile(name="wide")


# ---------------------------------------------------------------------------------------------------------- the package


def test_every_name_can_be_imported_and_is_explained():
    page = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    for name in pregel.testing.__all__:
        assert getattr(pregel.testing, name).__doc__
        assert name in page
        assert name in dir(pregel.testing)
    with pytest.raises(AttributeError, match="run_nodes"):
        _ = pregel.testing.run_nodes


def test_the_kit_loads_hypothesis_only_to_look_for_operands():
    code = (
        "import sys, pregel.testing as kit\n"
        "[getattr(kit, name) for name in kit.__all__]\n"
        "assert 'hypothesis' not in sys.modules and 'trio' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


# ------------------------------------------------------------------------------------------------------------- run_node


@pytest.mark.parametrize("form", [lambda node: node, later])
def test_a_node_is_run_alone_on_a_state(form):
    def work(state):
        return {"n": state["n"] + 1, "log": ["x"]}

    ran = run_node(one_node(form(work)), "work", {"n": 1})
    assert ran.updates == [("n", 2), ("log", ["x"])]
    assert (ran.goto, ran.sends, ran.custom) == ([], [], [])


@pytest.mark.parametrize("awaited", [False, True])
def test_its_edges_are_followed_and_nothing_is_run(awaited):
    def path(state):
        return ["right", Send("left", (state["n"], state["log"]))]

    def work(state):
        return Command(update=[("log", ["new"]), ("n", 5)], goto=["left", "left"])

    builder = StateGraph(State).add_node("work", work, destinations=("left",))
    builder.add_node("left", lambda state: pytest.fail("ran")).add_node("right", lambda state: pytest.fail("ran"))
    builder.add_edge(START, "work").add_conditional_edges("work", later(path) if awaited else path, ["left", "right"])
    ran = run_node(builder.compile(), "work", {"log": ["old"]})
    assert ran.updates == [("log", ["new"]), ("n", 5)]
    assert ran.goto == ["left", "right"]
    assert ran.sends == [Send("left", (5, ["old", "new"]))]


def test_a_state_holds_what_a_run_starts_with_and_may_hold_private_fields():
    seen = []

    def work(state):
        seen.append(state)
        return {}

    graph = one_node(work)
    run_node(graph, "work", {"secret": 7})
    run_node(graph, "work", {})
    assert seen == [{"log": [], "secret": 7}, {"log": []}]


def test_a_node_can_be_given_what_a_send_carries():
    graph = one_node(lambda packet: {"log": [packet]})
    assert run_node(graph, "work", {}, arg=None).updates == [("log", [None])]


def test_a_node_finds_its_config_context_and_writer():
    def work(state, config, runtime: Runtime, writer):
        writer("part")
        return {"log": [config["configurable"]["who"], runtime.context, runtime.node, runtime.step]}

    ran = run_node(one_node(work), "work", {}, config={"configurable": {"who": "me"}}, context="context")
    assert ran.updates == [("log", ["me", "context", "work", 1])]
    assert ran.custom == ["part"]
    bound = one_node(work).with_config({"configurable": {"who": "you"}})
    assert run_node(bound, "work", {}).updates == [("log", ["you", None, "work", 1])]


def test_a_graph_as_a_node_is_run_as_one():
    child = wide("a", "b")
    graph = StateGraph(State).add_node("child", child).add_edge(START, "child").compile()
    assert run_node(graph, "child", {"log": ["before"]}).updates == [("log", ["a"]), ("log", ["b"])]


def test_a_state_may_be_an_instance():
    @dataclass
    class Data:
        n: int = 3

    class Model(BaseModel):
        n: int = 3

    for schema in (Data, Model):
        graph = StateGraph(schema).add_node("work", lambda state: {"n": state.n + 1}).add_edge(START, "work").compile()
        assert run_node(graph, "work", schema(n=5)).updates == [("n", 6)]
        assert run_node(graph, "work", {}).updates == [("n", 4)]


def test_messages_get_ids_as_in_a_run():
    def work(state):
        return {"messages": [("ai", state["messages"][0].content)]}

    graph = StateGraph(MessagesState).add_node("work", work).add_edge(START, "work").compile()
    ((name, (message,)),) = run_node(graph, "work", {"messages": [("user", "hello")]}).updates
    assert (name, message.content, bool(message.id)) == ("messages", "hello", True)


def test_an_unknown_node_is_named_with_its_nearest_match():
    with pytest.raises(UnknownNodeError, match=r"graph 'one' has no node 'wrok'\. Did you mean 'work'\? It has 'work'"):
        run_node(one_node(lambda state: {}), "wrok", {})
    with pytest.raises(LookupError):
        run_node(one_node(lambda state: {}), START, {})


def test_a_state_is_checked():
    graph = one_node(lambda state: {})
    with pytest.raises(InvalidInputError, match=r"run_node for graph 'one' sets 'lgo'.*Did you mean 'log'\?"):
        run_node(graph, "work", {"lgo": []})
    with pytest.raises(InvalidInputError, match="'n' takes int and was given 'x'"):
        run_node(graph, "work", {"n": "x"})
    with pytest.raises(InvalidInputError, match="None"):
        run_node(graph, "work", None)
    lax = one_node(lambda state: {}, strict=False)
    with pytest.warns(PregelWarning, match="undeclared-input"):
        assert run_node(lax, "work", {"lgo": []}).updates == []
    with pytest.raises(InvalidConfigError):
        run_node(graph, "work", {}, config={"recursion_limt": 1})


@pytest.mark.parametrize("form", [lambda node: node, later])
def test_errors_are_those_of_a_run(form):
    def error_of(function, kind):
        graph = one_node(form(function))
        with pytest.raises(kind) as alone:
            run_node(graph, "work", {"n": 1})
        with pytest.raises(kind) as run:
            graph.invoke({"n": 1})
        assert str(alone.value) == str(run.value)
        assert getattr(alone.value, "__notes__", []) == getattr(run.value, "__notes__", [])

    def broken(state):
        raise ValueError("broken")

    error_of(broken, ValueError)
    error_of(lambda state: {"m": 1}, InvalidUpdateError)
    error_of(lambda state: {"n": "x"}, InvalidUpdateError)
    error_of(lambda state: Command(goto="lfet"), UnknownTargetError)
    error_of(lambda state: state["secret"], KeyError)


# ----------------------------------------------------------------------------------------------------------- run_seeded


@pytest.mark.parametrize("awaited", [False, True])
def test_a_seed_chooses_the_order_of_completion_and_nothing_else(awaited):
    graph = wide("a", "b", "c", awaited=awaited)
    runs = [run_seeded(graph, {"n": 1}, seed=seed, stream_mode=["updates", "values"]) for seed in range(30)]
    assert {"".join(*part["data"]) for run in runs for part in run.parts[1:2]} == set("abc")
    for run in runs:
        assert run.result == {"n": 1, "log": ["a", "b", "c"]}
        assert run.error is None
        assert run.parts[-1] == {"type": "values", "ns": (), "data": run.result, "step": 1, "task": None}
    assert runs[7] == run_seeded(graph, {"n": 1}, seed=7, stream_mode=["updates", "values"])


def test_sync_and_async_nodes_end_in_the_same_order():
    def ends(graph):
        return [entry[1] for entry in run_seeded(graph, {}, seed=11).trace if entry[0] == "done"]

    assert ends(wide(*"abcdef")) == ends(wide(*"abcdef", awaited=True))


def test_nodes_that_write_and_graphs_inside_are_part_of_it():
    def work(state, writer):
        writer("part")
        return {"log": ["x"]}

    child = StateGraph(State).add_node("c", work).add_node("d", work).add_edge(START, "c").add_edge(START, "d")
    builder = StateGraph(State).add_node("child", child.compile()).add_node("work", work).add_edge(START, "child")
    graph = builder.add_edge(START, "work").compile()
    run = run_seeded(graph, {}, seed=1, stream_mode=["custom", "updates"], subgraphs=True)
    assert run.result == {"log": ["x"] * 3}
    customs = [part["ns"] for part in run.parts if part["type"] == "custom"]
    assert sorted(customs) == [(), ("child:1:0:child",), ("child:1:0:child",)]
    assert sorted("".join(part["data"]) for part in run.parts if part["type"] == "updates") == [
        "c",
        "child",
        "d",
        "work",
    ]
    silent = run_seeded(graph, {}, seed=1)
    assert silent.parts == []
    assert silent.result == run.result


@pytest.mark.parametrize("awaited", [False, True])
def test_what_a_run_fails_with_is_a_value(awaited):
    def fail(state):
        raise ValueError("no")

    builder = StateGraph(State).add_node("ok", lambda state: {"log": ["ok"]}).add_edge(START, "ok")
    builder.add_node("fail", later(fail) if awaited else fail).add_edge(START, "fail")
    graph = builder.compile()
    for seed in range(4):
        run = run_seeded(graph, {}, seed=seed)
        assert run.result is None
        assert isinstance(run.error, ValueError)
        assert run.trace[-1] == ("finish", "ValueError: no")
    endings = {tuple(entry[0] for entry in run_seeded(graph, {}, seed=seed, on_failure="cancel").trace[3:-1])
               for seed in range(9)}  # fmt: skip
    assert endings == {("failed",), ("done", "failed")}
    with pytest.raises(InvalidInputError):
        run_seeded(graph, {"m": 1}, seed=0)


def test_only_what_the_run_failed_with_is_a_value():
    builder = StateGraph(State, strict=False).add_node("work", lambda state: None).add_edge(START, "work")
    graph = builder.compile()
    for run in (lambda: run_seeded(graph, {}, seed=0), lambda: trace(graph, {})):
        with pytest.warns(PregelWarning, match="none-return"):
            run()
    starving = StateGraph(State, allow={"starved-join"})
    starving.add_node("a", lambda state: {}).add_node("b", lambda state: {}).add_node("c", lambda state: {})
    starving.add_conditional_edges(START, lambda state: "a", ["a", "b"]).add_edge(["a", "b"], "c")
    with pytest.warns(PregelWarning, match="starve"):
        graph = starving.compile()
    with pytest.warns(PregelWarning, match="starved-join"):
        entries = trace(graph, {})
    assert [entry[0] for entry in entries[-2:]] == ["warn", "finish"]
    # Here warnings are errors, and such a one is no error of the run.
    for run in (lambda: run_seeded(graph, {}, seed=0), lambda: trace(graph, {})):
        with pytest.raises(PregelWarning, match="starved-join"):
            run()


def test_ids_do_not_depend_on_the_run_unless_it_says_so():
    graph = (
        StateGraph(MessagesState)
        .add_node("work", lambda state: {"messages": [("ai", "x")]})
        .add_edge(START, "work")
        .compile()
    )
    assert run_seeded(graph, {}, seed=1).result == run_seeded(graph, {}, seed=2).result
    named = {"run_id": "12345678-1234-5678-1234-567812345678"}
    assert run_seeded(graph, {}, seed=1, config=named).result != run_seeded(graph, {}, seed=1).result
    assert run_seeded(graph.with_config(named), {}, seed=1).result == run_seeded(graph, {}, seed=1, config=named).result
    with pytest.raises(InvalidConfigError):
        run_seeded(graph, {}, seed=1, config="config")


# ---------------------------------------------------------------------------------------------------------------- trace


@pytest.mark.parametrize("driver", ["sync", "asyncio", "trio"])
@pytest.mark.parametrize("awaited", [False, True])
def test_a_trace_tells_what_happened(driver, awaited):
    graph = wide("a", awaited=awaited)
    want = [
        ("run", ("0:0:__start__",)),
        ("done", "0:0:__start__", (("n", 1),)),
        ("run", ("1:0:a",)),
        ("done", "1:0:a", (("log", ["a"]),)),
        ("finish", None),
    ]
    assert trace(graph, {"n": 1}, driver=driver) == want
    parts = [
        ("emit", "values", {"n": 1, "log": []}, (), 0, None),
        ("emit", "updates", {"a": {"log": ["a"]}}, (), 1, "1:0:a"),
        ("emit", "values", {"n": 1, "log": ["a"]}, (), 1, None),
    ]
    want[2:2], want[-1:-1] = parts[:1], parts[1:]
    assert trace(graph, {"n": 1}, driver=driver, stream_mode=["values", "updates"]) == want


def test_an_error_is_told_as_text_with_the_parts_of_a_group(door):
    def fail(number):
        raise ValueError(number)

    builder = StateGraph(State).add_node("fail", fail)
    graph = builder.add_conditional_edges(START, lambda state: [Send("fail", 1), Send("fail", 2)], ["fail"]).compile()
    for modes in (None, "values"):
        entries = trace(graph, {}, driver=door.way, stream_mode=modes)
        assert sorted(entry for entry in entries if entry[0] == "failed") == [
            ("failed", "1:0:fail", "ValueError: 1"),
            ("failed", "1:1:fail", "ValueError: 2"),
        ]
        assert entries[-1][0] == "finish"
        assert entries[-1][1].endswith("(2 sub-exceptions) [ValueError: 1; ValueError: 2]")


def test_a_trace_can_be_taken_where_an_event_loop_runs():
    graph = wide("a", "b", awaited=True)

    async def main():
        return trace(graph, {}, driver="asyncio"), run_seeded(graph, {}, seed=1).result

    entries, result = anyio.run(main)
    assert entries[-1] == ("finish", None)
    assert result == {"log": ["a", "b"]}


def test_an_unknown_driver_is_named_with_its_nearest_match():
    with pytest.raises(InvalidConfigError, match=r"no driver 'asynco'\. Did you mean 'asyncio'"):
        trace(wide("a"), {}, driver="asynco")


def test_overwrites_are_compared_by_value():
    graph = StateGraph(State).add_node("a", lambda state: {"log": Overwrite([1])}).add_edge(START, "a").compile()
    assert trace(graph, {}) == trace(graph, {}, driver="trio")
