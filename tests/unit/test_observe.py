"""The spans of runs, supersteps and tasks, and that nothing happens where nobody asks for them."""

import gc
import logging
import subprocess
import sys
import weakref
from contextlib import closing
from pathlib import Path
from threading import Barrier, Event

import anyio
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.trace import StatusCode

from pregel import END, START, Command, InMemorySaver, MessagesState, Send, StateGraph, interrupt
from pregel.errors import GraphRecursionError, NodeTimeoutError
from pregel.observe import TRACING, instrument, uninstrument
from pregel.runtime import get_runtime
from pregel.testing import fake_clock
from pregel.types import NodeError
from tests.spans import HOMES, Spans, State, calls_of, fails, graph_of, retried, speaking, traced, waiting

ROOT = Path(__file__).parents[2]


@pytest.fixture
def spans():
    """What is traced, while it is."""
    with traced() as made:
        yield made


# -- the tree --------------------------------------------------------------------------------------------------------


def test_there_is_a_span_for_the_run_each_superstep_and_each_task_and_own_spans_are_below_their_task(door, spans):
    graph = graph_of(("a", speaking(spans, "a")), ("b", waiting(spans, "b")), ("c", speaking(spans, "c")))

    assert door.invoke(graph, {"log": []}, {"configurable": {"thread_id": "t"}}) == {"log": ["a", "b", "c"]}

    assert spans.paths() == sorted(
        [["run g"], *(["run g", "superstep"] for _ in "abc")]
        + [["run g", "superstep", f"task {name}"] for name in "abc"]
        + [["run g", "superstep", f"task {name}", f"own {name}"] for name in "abc"]
    )
    shared = {"pregel.graph": "g", "pregel.thread_id": "t"}
    assert dict(spans["run g"].attributes) == {**shared, "pregel.outcome": "done"}
    assert [dict(span.attributes) for span in spans.named("superstep")] == [
        {**shared, "pregel.step": 1, "pregel.nodes": ("a",), "pregel.tasks": 1},
        {**shared, "pregel.step": 2, "pregel.nodes": ("b",), "pregel.tasks": 1},
        {**shared, "pregel.step": 3, "pregel.nodes": ("c",), "pregel.tasks": 1},
    ]
    about = {
        "pregel.node": "b",
        "pregel.step": 2,
        "pregel.task": "2:0:b",
        "pregel.attempt": 1,
        "pregel.outcome": "done",
    }
    assert dict(spans["task b"].attributes) == {**shared, **about}
    assert all(span.status.status_code is StatusCode.UNSET for span in spans.ended)


def test_each_superstep_has_one_span_and_the_next_one_begins_after_its_end(door, spans):
    nodes = [(name, (waiting if name in "bd" else speaking)(spans, name)) for name in "abcde"]

    door.invoke(graph_of(*nodes), {"log": []})

    steps = spans.named("superstep")
    assert [step.attributes["pregel.step"] for step in steps] == [1, 2, 3, 4, 5]
    ids = [step.context.span_id for step in steps]
    assert [event for event in spans.events if event[1] in ids] == [
        (what, each) for each in ids for what in ("begin", "end")
    ]
    assert spans.events[-1] == ("end", spans["run g"].context.span_id)


@pytest.mark.parametrize("kinds", [(speaking, speaking), (waiting, waiting), (speaking, waiting)])
def test_tasks_side_by_side_have_their_own_spans_as_the_current_ones(door, spans, kinds):
    builder = StateGraph(State)
    for name, kind in zip("ab", kinds, strict=True):
        builder.add_node(name, kind(spans, name)).add_edge(START, name)

    door.invoke(builder.compile(name="g"), {"log": []})

    assert [spans.path(spans[f"own {name}"]) for name in "ab"] == [
        ["run g", "superstep", f"task {name}", f"own {name}"] for name in "ab"
    ]


def test_tasks_that_meet_in_worker_threads_are_below_one_superstep(door, spans):
    meeting = Barrier(3, timeout=60)

    def node(state):
        with spans.tracer.start_as_current_span(f"own {get_runtime().task_id}"):
            meeting.wait()
        return {"log": []}

    builder = StateGraph(State).add_node("n", node)
    builder.add_conditional_edges(START, lambda state: [Send("n", {"log": []}) for _ in range(3)], ["n"])

    door.invoke(builder.compile(name="g"), {"log": []})

    for place, task in enumerate(spans.named("task n")):
        assert spans.above(task) == spans["superstep"]
        name = task.attributes["pregel.task"]
        assert spans.above(spans[f"own {name}"]) == task, place
    assert len(spans.named("task n")) == spans["superstep"].attributes["pregel.tasks"] == 3


@pytest.mark.parametrize("kind", [speaking, waiting])
def test_a_graph_inside_a_graph_is_below_the_task_that_runs_it(door, spans, kind):
    inner = graph_of(("deep", kind(spans, "deep")), name="inner")
    middle = graph_of(("inner", inner), name="middle")
    builder = StateGraph(State).add_node("middle", middle).add_node("beside", speaking(spans, "beside"))

    door.invoke(builder.add_edge(START, "middle").add_edge(START, "beside").compile(name="outer"), {"log": []})

    assert spans.path(spans["own deep"]) == [
        *("run outer", "superstep", "task middle", "run middle", "superstep", "task inner"),
        *("run inner", "superstep", "task deep", "own deep"),
    ]
    assert spans.path(spans["own beside"]) == ["run outer", "superstep", "task beside", "own beside"]


def test_a_graph_that_a_node_invokes_is_below_its_task(door, spans):
    inner = graph_of(("deep", speaking(spans, "deep")), name="inner")

    door.invoke(graph_of(("a", lambda state: inner.invoke({"log": []}))), {"log": []})

    assert spans.path(spans["own deep"])[:4] == ["run g", "superstep", "task a", "run inner"]


def test_conditional_edges_of_the_start_run_below_the_run_and_those_of_a_node_below_its_task(door, spans):
    def path(state):
        with spans.tracer.start_as_current_span("own path"):
            return "a"

    builder = StateGraph(State).add_node("a", lambda state: {"log": ["a"]})
    builder.add_conditional_edges(START, path, ["a"])
    builder.add_conditional_edges("a", lambda state: path(state) and END, [END])

    door.invoke(builder.compile(name="g"), {"log": []})

    first, second = spans.named("own path")
    assert spans.path(first) == ["run g", "own path"]
    assert spans.path(second) == ["run g", "superstep", "task a", "own path"]


def test_a_run_is_below_the_span_of_its_caller_and_leaves_that_one_current(door, spans):
    graph = graph_of(("a", lambda state: {"log": ["a"]}), ("b", waiting(spans, "b")))

    with spans.tracer.start_as_current_span("caller") as caller:
        door.invoke(graph, {"log": []})
        assert trace.get_current_span() is caller
    assert spans.path(spans["run g"]) == ["caller", "run g"]


def test_a_new_input_on_a_thread_that_has_run_is_no_superstep_either(door, spans):
    graph = graph_of(("a", speaking(spans, "a")), checkpointer=InMemorySaver())
    for _ in range(2):
        door.invoke(graph, {"log": []}, {"configurable": {"thread_id": "t"}})
    assert [span.attributes["pregel.nodes"] for span in spans.named("superstep")] == [("a",), ("a",)]
    assert [span.attributes["pregel.step"] for span in spans.named("superstep")] == [1, 3]


# -- streams ---------------------------------------------------------------------------------------------------------


def test_the_reader_of_a_stream_keeps_his_own_span_between_the_parts(spans):
    graph = graph_of(("a", speaking(spans, "a")), ("b", speaking(spans, "b")))

    with spans.tracer.start_as_current_span("reader") as reader, closing(graph.stream({"log": []})) as parts:
        for _ in parts:
            assert trace.get_current_span() is reader
            with spans.tracer.start_as_current_span("reads"):
                pass
    assert [spans.path(span) for span in spans.named("reads")] == [["reader", "reads"]] * 2
    assert spans.path(spans["own b"]) == ["reader", "run g", "superstep", "task b", "own b"]


def test_the_reader_of_an_async_stream_keeps_his_own_span_between_the_parts(loop, spans):
    graph = graph_of(("a", waiting(spans, "a")), ("b", speaking(spans, "b")))

    async def main():
        with spans.tracer.start_as_current_span("reader") as reader:
            async for _ in graph.astream({"log": []}):
                assert trace.get_current_span() is reader

    loop.run(main)
    assert spans.path(spans["own a"]) == ["reader", "run g", "superstep", "task a", "own a"]
    assert spans.path(spans["own b"]) == ["reader", "run g", "superstep", "task b", "own b"]


def test_runs_that_are_read_in_turns_do_not_mix_their_spans(spans):
    graphs = [graph_of(("a", speaking(spans, name)), ("b", speaking(spans, name)), name=name) for name in "xy"]

    with closing(graphs[0].stream({"log": []})) as first, closing(graphs[1].stream({"log": []})) as second:
        assert len(list(zip(first, second, strict=True))) == 2

    assert [spans.path(span)[0] for span in spans.named("own x")] == ["run x"] * 2
    assert [spans.path(span)[0] for span in spans.named("own y")] == ["run y"] * 2


def test_a_run_whose_reader_leaves_is_cancelled_and_no_error(spans):
    graph = graph_of(("a", speaking(spans, "a")), ("b", speaking(spans, "b")))

    with closing(graph.stream({"log": []})) as parts:
        next(parts)

    assert spans["run g"].attributes["pregel.outcome"] == "cancelled"
    assert spans["run g"].status.status_code is StatusCode.UNSET
    assert not spans.named("task b")


def test_a_run_whose_reader_leaves_on_an_event_loop_is_cancelled_with_its_task(loop, spans):
    async def endless(state):
        await anyio.sleep_forever()

    builder = StateGraph(State).add_node("quick", lambda state: {"log": []}).add_node("endless", endless)

    async def main():
        parts = builder.add_edge(START, "quick").add_edge(START, "endless").compile(name="g").astream({"log": []})
        await anext(parts)
        await parts.aclose()

    loop.run(main)
    assert spans["task endless"].attributes["pregel.outcome"] == "cancelled"
    assert spans["run g"].attributes["pregel.outcome"] == "cancelled"
    assert [span.status.status_code for span in spans.ended] == [StatusCode.UNSET] * 4


# -- how things end --------------------------------------------------------------------------------------------------


def test_an_error_is_recorded_where_it_was_raised_and_marks_what_is_around_it(door, spans):
    graph = graph_of(("a", lambda state: {"log": ["a"]}), ("b", fails))

    with pytest.raises(LookupError):
        door.invoke(graph, {"log": []})

    task = spans["task b"]
    assert task.attributes["pregel.outcome"] == spans["run g"].attributes["pregel.outcome"] == "failed"
    assert task.attributes["error.type"] == spans["run g"].attributes["error.type"] == "LookupError"
    assert task.status.description == "LookupError: nothing there"
    assert [event.attributes["exception.message"] for event in task.events] == ["nothing there"]
    assert spans["run g"].status.status_code is StatusCode.ERROR
    assert spans["run g"].events == ()
    assert [step.status.status_code for step in spans.named("superstep")] == [StatusCode.UNSET, StatusCode.ERROR]


def test_an_error_of_the_run_itself_is_recorded_at_the_run(door, spans):
    graph = graph_of(("a", lambda state: Command(goto="a", update={"log": []})))

    with pytest.raises(GraphRecursionError):
        door.invoke(graph, {"log": []}, {"recursion_limit": 3})

    assert spans["run g"].attributes["error.type"] == "pregel.errors.GraphRecursionError"
    assert len(spans["run g"].events) == 1
    assert [span.attributes["pregel.outcome"] for span in spans.named("task a")] == ["done"] * 3


def test_an_error_that_passes_through_tasks_and_graphs_is_recorded_once(door, spans):
    inner = graph_of(("b", fails), name="inner")
    outer = graph_of(("a", lambda state: inner.invoke({"log": []})), name="outer")

    with pytest.raises(LookupError):
        door.invoke(outer, {"log": []})

    assert [span.name for span in spans.ended if span.events] == ["task b"]
    failed = [span.name for span in spans.ended if span.status.status_code is StatusCode.ERROR]
    assert sorted(failed) == ["run inner", "run outer", "superstep", "superstep", "task a", "task b"]


class UnspeakableError(Exception):
    def __str__(self):
        raise RuntimeError("not even this")


def test_an_error_that_can_not_be_shown_is_what_the_run_raises(door, spans):
    def raises(state):
        raise UnspeakableError

    with pytest.raises(UnspeakableError):
        door.invoke(graph_of(("a", raises)), {"log": []})

    assert spans["task a"].status.description == spans["run g"].status.description == "UnspeakableError"


def test_a_run_inside_an_error_handler_of_the_caller_is_no_failure(door, spans):
    graph = graph_of(("a", lambda state: {"log": ["a"]}))
    try:
        raise RuntimeError("before")
    except RuntimeError:
        door.invoke(graph, {"log": []})
    assert spans["run g"].attributes["pregel.outcome"] == "done"


def test_the_siblings_of_a_failed_task_that_are_cancelled_say_so(loop, spans):
    async def endless(state):
        await anyio.sleep_forever()

    async def breaks(state):
        await anyio.lowlevel.checkpoint()
        fails(state)

    builder = StateGraph(State).add_node("endless", endless).add_node("breaks", breaks)
    graph = builder.add_edge(START, "endless").add_edge(START, "breaks").compile(name="g", on_failure="cancel")

    with pytest.raises(LookupError):
        loop.invoke(graph, {"log": []})

    assert spans["task endless"].attributes["pregel.outcome"] == "cancelled"
    assert spans["task endless"].status.status_code is StatusCode.UNSET
    assert spans["task breaks"].attributes["pregel.outcome"] == "failed"


def test_a_question_is_no_failure_and_the_run_that_goes_on_has_spans_of_its_own(door, spans):
    inner = graph_of(("asks", lambda state: {"log": [interrupt("well?")]}), name="inner")
    graph = graph_of(("a", lambda state: {"log": ["a"]}), ("inner", inner), checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "t"}}

    door.invoke(graph, {"log": []}, thread)
    outcomes = {span.name: span.attributes.get("pregel.outcome") for span in spans.ended}
    assert {name for name, outcome in outcomes.items() if outcome == "paused"} == {
        *("run g", "task inner", "run inner", "task asks")
    }
    assert outcomes["task a"] == "done"
    spans.exporter.clear()
    assert door.invoke(graph, Command(resume="yes"), thread)["log"] == ["a", "yes"]

    assert spans.path(spans["task asks"]) == ["run g", "superstep", "task inner", "run inner", "superstep", "task asks"]
    assert spans.named("superstep")[0].attributes["pregel.step"] == 2
    assert spans["task asks"].attributes["pregel.task"].startswith("t|inner:2:0:inner|")
    assert all(span.status.status_code is StatusCode.UNSET for span in spans.ended)


def test_each_attempt_is_a_span_and_one_that_is_followed_by_another_marks_nothing_around_it(door, spans):
    with fake_clock():
        door.invoke(retried(2), {"log": []})

    attempts = spans.named("task a")
    assert [(span.attributes["pregel.attempt"], span.attributes["pregel.outcome"]) for span in attempts] == [
        (1, "failed"),
        (2, "failed"),
        (3, "done"),
    ]
    assert all(spans.above(span) == spans["superstep"] for span in attempts)
    assert spans["superstep"].status.status_code is spans["run g"].status.status_code is StatusCode.UNSET


def test_an_attempt_that_was_given_up_is_cancelled_whatever_its_code_does_later(door, spans):
    hangs, ended = Event(), Event()

    class Listener(SpanProcessor):
        def on_end(self, span):
            if span.name == "task slow":
                ended.set()

    def slow(state):
        clock.advance(30)
        hangs.wait(60)
        return {"log": ["late"]}

    spans.provider.add_span_processor(Listener())
    graph = StateGraph(State).add_node(slow, timeout=10).add_edge(START, "slow").compile(name="g")
    with fake_clock() as clock, pytest.raises(NodeTimeoutError):
        door.invoke(graph, {"log": []})
    assert not spans.named("task slow")
    assert spans["run g"].attributes["error.type"] == "pregel.errors.NodeTimeoutError"
    hangs.set()
    assert ended.wait(60)
    assert spans["task slow"].attributes["pregel.outcome"] == "cancelled"


def test_an_error_handler_is_a_task_of_its_own(door, spans):
    def handler(state, error: NodeError):
        with spans.tracer.start_as_current_span("own handler"):
            return {"log": [error.attempts]}

    with fake_clock():
        assert door.invoke(retried(9, error_handler=handler), {"log": []}) == {"log": [3]}

    handled = spans.named("task a")[-1]
    assert handled.attributes["pregel.task"] == "1:0:__error__a"
    assert spans.above(spans["own handler"]) == handled
    assert spans.above(handled) == spans["superstep"]
    assert spans["run g"].attributes["pregel.outcome"] == "done"


def test_several_errors_of_a_superstep_are_recorded_at_their_tasks_only(door, spans):
    builder = StateGraph(State).add_node("a", fails).add_node("b", fails).add_edge(START, "a").add_edge(START, "b")

    with pytest.raises(ExceptionGroup):
        door.invoke(builder.compile(name="g"), {"log": []})

    assert [len(spans[name].events) for name in ("task a", "task b", "run g")] == [1, 1, 0]
    assert spans["run g"].attributes["error.type"] == "ExceptionGroup"


# -- off -------------------------------------------------------------------------------------------------------------


def looping(times):
    """Return a graph that runs a node so many times."""
    builder = StateGraph(State).add_node("a", lambda state: {"log": ["a"]}).add_edge(START, "a")
    builder.add_conditional_edges("a", lambda state: END if len(state["log"]) >= times else "a", ["a", END])
    return builder.compile(name="g")


def test_a_run_that_nobody_watches_calls_nothing_for_it_but_one_look_at_the_level():
    for times in (1, 20):
        calls = calls_of(looping(times), {"log": []})
        assert {key: n for key, n in calls.items() if key[0].startswith(HOMES)} == {
            ("pregel.observe", "watched"): 1,
            ("logging", "isEnabledFor"): 1,
        }


def test_what_is_counted_are_the_calls_of_watching(spans):
    calls = calls_of(looping(20), {"log": []})
    assert calls["pregel.watch", "task"] == 21  # the input is one
    assert calls["pregel.spans", "begin_superstep"] == 20


def test_uninstrument_ends_it(door, spans):
    uninstrument()
    door.invoke(graph_of(("a", lambda state: {"log": ["a"]})), {"log": []})
    assert spans.ended == []


def test_a_run_that_has_begun_is_traced_to_its_end(spans):
    with closing(graph_of(("a", speaking(spans, "a")), ("b", speaking(spans, "b"))).stream({"log": []})) as parts:
        next(parts)
        uninstrument()
        list(parts)
    assert spans.path(spans["own b"]) == ["run g", "superstep", "task b", "own b"]


PROGRAM = """
import logging, sys
from pregel import START, MessagesState, StateGraph
from pregel.graph.agent import create_agent
from pregel.graph.agent.models import ScriptedModel

logging.getLogger("pregel").setLevel(sys.argv[1])
agent = create_agent(ScriptedModel(["hi"]))
StateGraph(MessagesState).add_node("a", agent).add_edge(START, "a").compile().invoke({"messages": "?"})
print(*(name for name in sys.modules if name.partition(".")[0] == "opentelemetry" or name == "pregel.watch"))
"""


@pytest.mark.parametrize(("level", "loaded"), [("WARNING", []), ("DEBUG", ["pregel.watch"])])
def test_what_is_off_is_not_loaded(level, loaded):
    listing = subprocess.run(
        [sys.executable, "-c", PROGRAM, level], capture_output=True, text=True, check=True, cwd=ROOT,
    ).stdout.split()  # fmt: skip
    assert listing == loaded


def test_without_opentelemetry_to_instrument_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, "pregel.spans", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'pregel\[otel\]'"):
        instrument()
    assert TRACING.tracer is None


def test_without_a_provider_spans_go_to_the_global_one(monkeypatch):
    exported = Spans()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", exported.provider)
    try:
        instrument()
        looping(1).invoke({"log": []})
    finally:
        uninstrument()
    (scope,) = {span.instrumentation_scope.name for span in exported.ended}
    assert scope == "pregel"


def test_a_run_that_is_over_is_gone_without_a_search_for_cycles(door, spans, caplog):
    caplog.set_level(logging.DEBUG, "pregel")
    graph = graph_of(("a", lambda state: {"log": ["a"]}))

    class Given(list):
        pass

    given = Given()
    alive = weakref.ref(given)
    gc.collect()
    gc.disable()
    try:
        door.invoke(graph, {"log": given})
        del given
        assert alive() is None
    finally:
        gc.enable()


def test_a_messages_graph_with_a_node_named_model_is_no_agent(spans):
    graph_of(("model", lambda state: {"messages": []}), state=MessagesState).invoke({"messages": []})
    assert spans.named("run g")
