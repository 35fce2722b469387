"""What is watched of runs: spans of OpenTelemetry and logs, and that nothing happens where nobody asks for them."""

import gc
import logging
import operator
import subprocess
import sys
import weakref
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import Annotated, TypedDict

import anyio
import pytest
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage as LangChainMessage
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.trace import SpanKind, StatusCode

from pregel import END, START, Command, InMemorySaver, MessagesState, Runtime, Send, StateGraph, interrupt
from pregel.errors import GraphRecursionError
from pregel.graph.agent import create_agent
from pregel.graph.agent.middleware import wrap_model_call
from pregel.graph.agent.models import ScriptedModel
from pregel.graph.agent.models.base import BaseChatModel, ChatGeneration, ChatResult
from pregel.graph.messages import AIMessage
from pregel.observe import TRACING, TaskFields, instrument, uninstrument
from pregel.runtime import get_runtime
from pregel.testing import fake_clock
from pregel.types import NodeError, RetryPolicy

ROOT = Path(__file__).parents[2]


class State(TypedDict):
    log: Annotated[list, operator.add]


class Spans(SpanProcessor):
    """The spans that have ended, and how they hang together."""

    def __init__(self):
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.provider.add_span_processor(self)
        self.tracer = self.provider.get_tracer("test")
        #: What has begun and ended, in order; spans by their ids.
        self.events = []

    def on_start(self, span, parent_context=None):
        self.events.append(("begin", span.context.span_id))

    def on_end(self, span):
        self.events.append(("end", span.context.span_id))

    @property
    def ended(self):
        """The spans in the order in which they have begun."""
        order = [span for what, span in self.events if what == "begin"]
        return sorted(self.exporter.get_finished_spans(), key=lambda span: order.index(span.context.span_id))

    def __getitem__(self, name):
        """Return the one span of a name."""
        (found,) = self.named(name)
        return found

    def named(self, name):
        return [span for span in self.ended if span.name == name]

    def above(self, span):
        """Return the span that a span is directly below, if it is one of these."""
        parent = span.parent and span.parent.span_id
        return next((other for other in self.ended if other.context.span_id == parent), None)

    def path(self, span):
        """Return the names from the root to a span."""
        above = self.above(span)
        return [*([] if above is None else self.path(above)), span.name]

    def paths(self):
        return sorted(self.path(span) for span in self.ended)


@pytest.fixture
def spans():
    """What is traced, while it is."""
    made = Spans()
    instrument(made.provider)
    yield made
    uninstrument()
    made.provider.shutdown()


def graph_of(*nodes, name="g", state=State, **options):
    """Return a graph that runs nodes one after the other."""
    builder = StateGraph(state).add_sequence(nodes).add_edge(START, nodes[0][0])
    return builder.compile(name=name, **options)


def speaking(spans, name):
    """Return a sync node with a span of its own."""

    def node(state):
        with spans.tracer.start_as_current_span(f"own {name}"):
            return {"log": [name]}

    return node


def waiting(spans, name):
    """Return an async node with a span of its own, which is left and entered again by the event loop."""

    async def node(state):
        with spans.tracer.start_as_current_span(f"own {name}"):
            await anyio.lowlevel.checkpoint()
            return {"log": [name]}

    return node


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


def fails(state):
    raise LookupError("nothing there")


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


def refused(times):
    """Return a node that fails so many times."""

    def node(state, runtime: Runtime):
        if runtime.attempt <= times:
            raise ConnectionError("refused")
        return {"log": ["a"]}

    return node


def retried(times, **options):
    """Return a graph of a node that fails so many times and is tried three times."""
    policy = RetryPolicy(max_attempts=3, jitter=False)
    builder = StateGraph(State).add_node("a", refused(times), retry_policy=policy, **options)
    return builder.add_edge(START, "a").compile(name="g")


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


def test_an_attempt_that_is_followed_by_another_is_a_warning(door, caplog):
    with fake_clock():
        door.invoke(retried(2), {"log": []}, {"configurable": {"thread_id": "t"}})

    assert [record.getMessage() for record in caplog.records] == [
        "attempt 1 at task 1:0:a of graph 'g' failed, and the next one begins in 0.5 s: ConnectionError: refused",
        "attempt 2 at task 1:0:a of graph 'g' failed, and the next one begins in 1 s: ConnectionError: refused",
    ]
    assert [row[0] for row in told(caplog)] == ["WARNING", "WARNING"]
    assert told(caplog)[0][2:] == ("t", 1, "a", "1:0:a")


def test_several_errors_of_a_superstep_are_recorded_at_their_tasks_only(door, spans):
    builder = StateGraph(State).add_node("a", fails).add_node("b", fails).add_edge(START, "a").add_edge(START, "b")

    with pytest.raises(ExceptionGroup):
        door.invoke(builder.compile(name="g"), {"log": []})

    assert [len(spans[name].events) for name in ("task a", "task b", "run g")] == [1, 1, 0]
    assert spans["run g"].attributes["error.type"] == "ExceptionGroup"


# -- agents ----------------------------------------------------------------------------------------------------------


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def aadd(a: int, b: int) -> int:
    """Add two numbers, later."""
    await anyio.lowlevel.checkpoint()
    return a + b


class Known(BaseChatModel):
    """A model with a name, that tells what it cost."""

    model: str = "known-1"
    temperature: float = 0.5
    answers: list

    @property
    def _llm_type(self):
        return "known"

    def _generate(self, messages, stop=None, run_manager=None, **options):
        return ChatResult(generations=[ChatGeneration(message=self.answers.pop(0))])


def asks_for(*calls):
    """Return a model's message that asks for calls of a tool, with what it cost."""
    return AIMessage(
        "",
        tool_calls=[{"name": name, "args": args, "id": f"call-{place}"} for place, (name, args) in enumerate(calls)],
        usage_metadata={
            "input_tokens": 7,
            "output_tokens": 5,
            "total_tokens": 12,
            "input_token_details": {"cache_read": 3},
            "output_token_details": {"reasoning": 2},
        },
        response_metadata={"finish_reason": "tool_calls", "model_name": "known-1-0613"},
    )


@pytest.mark.parametrize("tool", [add, aadd], ids=["sync", "async"])
def test_agents_models_and_tools_have_the_spans_of_the_conventions(door, spans, tool):
    model = Known(answers=[asks_for((tool.__name__, {"a": 1, "b": 2})), AIMessage("3")])
    agent = create_agent(model, [tool], name="sums")

    given = {"messages": "what is 1 + 2?"}
    assert door.invoke(agent, given, {"configurable": {"thread_id": "t"}})["messages"][-1].content == "3"

    run = spans["invoke_agent sums"]
    assert run.kind is SpanKind.INTERNAL
    assert {name: value for name, value in run.attributes.items() if name.startswith("gen_ai.")} == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "sums",
        "gen_ai.conversation.id": "t",
    }
    first, second = spans.named("chat known-1")
    assert spans.path(first) == ["invoke_agent sums", "superstep", "task model", "chat known-1"]
    assert first.kind is SpanKind.CLIENT
    assert dict(first.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "known",
        "gen_ai.conversation.id": "t",
        "gen_ai.request.model": "known-1",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.response.model": "known-1-0613",
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 3,
        "gen_ai.usage.reasoning.output_tokens": 2,
    }
    assert "gen_ai.usage.input_tokens" not in second.attributes
    call = spans[f"execute_tool {tool.__name__}"]
    assert spans.path(call)[:3] == ["invoke_agent sums", "superstep", "task tools"]
    assert call.kind is SpanKind.INTERNAL
    assert dict(call.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.conversation.id": "t",
        "gen_ai.tool.name": tool.__name__,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": tool.__doc__,
        "gen_ai.tool.call.id": "call-0",
    }


def test_every_attribute_of_agents_is_one_of_the_conventions(spans):
    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
    agent = create_agent(Known(answers=[asks_for(("add", {"a": 1, "b": 2})), AIMessage("3")]), [add])

    list(agent.stream({"messages": "?"}, stream_mode="messages"))

    used = {name for span in spans.ended for name in span.attributes if name.startswith("gen_ai.")}
    assert "gen_ai.request.stream" in used
    assert used <= known


def test_what_is_said_is_in_no_span(spans):
    agent = create_agent(Known(answers=[asks_for(("add", {"a": 1111, "b": 2222})), AIMessage("secret")]), [add])

    agent.invoke({"messages": "private"})

    told = " ".join(span.to_json() for span in spans.ended)
    assert [text for text in ("1111", "3333", "secret", "private") if text in told] == []


def test_calls_of_one_turn_are_side_by_side_and_one_that_fails_says_so_though_the_model_is_told(door, spans):
    model = Known(answers=[asks_for(("add", {"a": 1, "b": 2}), ("add", {"a": 1})), AIMessage("3")])

    door.invoke(create_agent(model, [add]), {"messages": "?"})

    calls = {span.attributes["gen_ai.tool.call.id"]: span for span in spans.named("execute_tool add")}
    assert len({spans.above(call).context.span_id for call in calls.values()}) == 2
    assert calls["call-0"].status.status_code is StatusCode.UNSET
    assert calls["call-1"].status.status_code is StatusCode.ERROR
    assert calls["call-1"].attributes["error.type"].endswith(".ToolArgumentsError")
    assert [span.attributes["pregel.outcome"] for span in spans.named("task tools")] == ["done", "done"]


def test_a_tool_that_asks_something_has_not_failed(door, spans):
    def ask(a: int) -> str:
        """Ask somebody."""
        return str(interrupt(a))

    agent = create_agent(ScriptedModel([asks_for(("ask", {"a": 1}))]), [ask], checkpointer=InMemorySaver())

    door.invoke(agent, {"messages": "?"}, {"configurable": {"thread_id": "t"}})

    assert spans["execute_tool ask"].status.status_code is StatusCode.UNSET
    assert spans["invoke_agent agent"].attributes["pregel.outcome"] == "paused"


def test_a_model_that_fails_says_so(door, spans):
    with pytest.raises(TimeoutError):
        door.invoke(create_agent(ScriptedModel([TimeoutError("late")])), {"messages": "?"})

    assert spans["chat"].attributes["error.type"] == "TimeoutError"
    assert spans["chat"].attributes["gen_ai.provider.name"] == "scriptedmodel"


def test_an_agent_inside_an_agents_tool_is_below_the_call(door, spans):
    inner = create_agent(ScriptedModel(["inner answer"]), name="inner")

    def ask(a: int) -> str:
        """Ask the other agent."""
        return inner.invoke({"messages": str(a)})["messages"][-1].content

    door.invoke(create_agent(ScriptedModel([asks_for(("ask", {"a": 1})), "done"]), [ask]), {"messages": "?"})

    assert spans.path(spans["invoke_agent inner"]) == [
        *("invoke_agent agent", "superstep", "task tools", "execute_tool ask", "invoke_agent inner")
    ]


def test_code_after_the_call_of_a_model_is_below_its_task_again(door, spans):
    @wrap_model_call
    def after(request, handler):
        response = handler(request)
        with spans.tracer.start_as_current_span("own after"):
            return response

    door.invoke(create_agent(ScriptedModel(["hi"]), middleware=[after]), {"messages": "?"})

    assert spans.path(spans["own after"]) == ["invoke_agent agent", "superstep", "task model", "own after"]
    assert spans.path(spans["chat"]) == ["invoke_agent agent", "superstep", "task model", "chat"]


class Foreign(FakeMessagesListChatModel):
    """A chat model of LangChain, that says of itself what theirs say."""

    def _get_ls_params(self, stop=None, **options):
        return {"ls_provider": "azure", "ls_model_name": "gpt", "ls_temperature": 0.5, "ls_stop": ["end"]}

    def bind_tools(self, tools, **options):
        return self.bind(tools=tools, **options)


def test_a_model_of_langchain_says_what_langchain_knows_of_it(door, spans):
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    about = {"stop_reason": "end_turn", "model": "gpt-6", "id": "chatcmpl-1"}
    model = Foreign(responses=[LangChainMessage("hi", usage_metadata=usage, response_metadata=about)])

    door.invoke(create_agent(model, [add]), {"messages": "?"})

    assert dict(spans["chat gpt"].attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "azure.ai.openai",
        "gen_ai.request.model": "gpt",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.stop_sequences": ("end",),
        "gen_ai.response.id": "chatcmpl-1",
        "gen_ai.response.model": "gpt-6",
        "gen_ai.response.finish_reasons": ("end_turn",),
        "gen_ai.usage.input_tokens": 1,
        "gen_ai.usage.output_tokens": 2,
    }


# -- logs ------------------------------------------------------------------------------------------------------------


def told(caplog):
    """Return what was logged: level, message without its time, and fields."""
    names = ("thread_id", "step", "node", "task")
    return [
        (
            record.levelname,
            record.getMessage().partition(" after ")[0],
            *(getattr(record, name) for name in names),
        )
        for record in caplog.records
        if record.name == "pregel"
    ]


def test_at_debug_runs_supersteps_and_tasks_are_logged_with_their_fields(door, caplog):
    caplog.set_level(logging.DEBUG, "pregel")

    door.invoke(graph_of(("a", lambda state: {"log": ["a"]})), {"log": []}, {"configurable": {"thread_id": "t"}})

    assert told(caplog) == [
        ("DEBUG", "run of graph 'g' begins", "t", None, None, None),
        ("DEBUG", "superstep 1 of graph 'g' begins: 'a'", "t", 1, None, None),
        ("DEBUG", "task 1:0:a of graph 'g' begins", "t", 1, "a", "1:0:a"),
        ("DEBUG", "task 1:0:a of graph 'g' ended", "t", 1, "a", "1:0:a"),
        ("INFO", "run of graph 'g' ended in superstep 1", "t", 1, None, None),
    ]


def test_at_info_there_is_one_record_for_each_run_and_at_warning_none(door, caplog):
    inner = graph_of(("deep", lambda state: {"log": ["deep"]}), name="inner")
    graph = graph_of(("a", lambda state: {"log": ["a"]}), ("inner", inner))
    caplog.set_level(logging.INFO, "pregel")
    door.invoke(graph, {"log": []})
    assert told(caplog) == [
        ("INFO", "run of graph 'inner' ended in superstep 1", None, 1, None, None),
        ("INFO", "run of graph 'g' ended in superstep 2", None, 2, None, None),
    ]
    caplog.clear()
    caplog.set_level(logging.WARNING, "pregel")
    door.invoke(graph, {"log": []})
    assert told(caplog) == []


def test_a_failure_is_told_with_its_error_and_no_louder_than_any_end(door, caplog):
    caplog.set_level(logging.DEBUG, "pregel")

    with pytest.raises(LookupError):
        door.invoke(graph_of(("a", fails)), {"log": []})

    ends = [record for record in caplog.records if "failed" in record.getMessage()]
    assert [record.levelname for record in ends] == ["DEBUG", "INFO"]
    assert all(record.getMessage().endswith(" ms: LookupError: nothing there") for record in ends)


def test_records_are_made_inside_the_span_that_they_are_of(door, spans, caplog):
    caplog.set_level(logging.DEBUG, "pregel")
    current = {}

    class Listener(logging.Handler):
        def emit(self, record):
            current[record.getMessage().partition(" after ")[0]] = trace.get_current_span().get_span_context().span_id

    listener = Listener()
    logging.getLogger("pregel").addHandler(listener)
    try:
        door.invoke(graph_of(("a", lambda state: {"log": ["a"]})), {"log": []})
    finally:
        logging.getLogger("pregel").removeHandler(listener)

    task = spans["task a"].context.span_id
    assert (current["task 1:0:a of graph 'g' begins"], current["task 1:0:a of graph 'g' ended"]) == (task, task)


def test_a_filter_gives_records_of_a_nodes_own_loggers_the_fields_of_its_task(door, caplog):
    caplog.set_level(logging.INFO, "mine")
    mine = logging.getLogger("mine")

    def node(state):
        mine.info("inside", extra={"node": "kept"} if state["log"] else None)
        return {"log": ["a"]}

    graph = graph_of(("a", node), ("b", node), checkpointer=InMemorySaver())
    caplog.handler.addFilter(fields := TaskFields())
    try:
        mine.info("outside")
        door.invoke(graph, {"log": []}, {"configurable": {"thread_id": "t"}})
    finally:
        caplog.handler.removeFilter(fields)

    found = [(each.thread_id, each.step, each.node, each.task) for each in caplog.records]
    assert found == [(None,) * 4, ("t", 1, "a", "t|1:0:a"), ("t", 2, "kept", "t|2:0:b")]


# -- off -------------------------------------------------------------------------------------------------------------


def calls_of(graph, given, *args):
    """Return the code that a run calls, by module and name, with how often it does."""
    graph.invoke(given, *args)
    counted = {}

    def count(frame, event, argument):
        if event == "call":
            key = (frame.f_globals.get("__name__", ""), frame.f_code.co_name)
            counted[key] = counted.get(key, 0) + 1

    sys.setprofile(count)
    try:
        graph.invoke(given, *args)
    finally:
        sys.setprofile(None)
    return counted


def looping(times):
    """Return a graph that runs a node so many times."""
    builder = StateGraph(State).add_node("a", lambda state: {"log": ["a"]}).add_edge(START, "a")
    builder.add_conditional_edges("a", lambda state: END if len(state["log"]) >= times else "a", ["a", END])
    return builder.compile(name="g")


HOMES = ("pregel.observe", "pregel.watch", "pregel.spans", "pregel.graph.agent.traced", "opentelemetry", "logging")


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


def test_an_agent_that_nobody_watches_calls_nothing_for_it():
    agent = create_agent(ScriptedModel([asks_for(("add", {"a": 1, "b": 2})), "3"], on_exhausted="cycle"), [add])
    calls = calls_of(agent, {"messages": "?"})
    assert ("pregel.graph.agent.toolnode", "tool_of") in calls
    assert {key for key in calls if key[0].startswith(HOMES)} == {
        ("pregel.observe", "watched"),
        ("logging", "isEnabledFor"),
    }


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


def test_logs_alone_make_no_spans(door, caplog):
    caplog.set_level(logging.DEBUG, "pregel")
    assert TRACING.tracer is None
    seen = []

    def node(state):
        seen.append(trace.get_current_span())
        return {"log": []}

    door.invoke(graph_of(("a", node)), {"log": []})
    assert seen == [trace.INVALID_SPAN]


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
