"""Spans that are made in worker processes hang below the task that runs there."""

import operator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Annotated, Any, TypedDict

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pregel.graph import START, StateGraph
from pregel.observe import instrument, uninstrument


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


@pytest.fixture(scope="module")
def pool():
    with ProcessPoolExecutor(2, get_context("spawn")) as made:
        yield made


@pytest.fixture
def spans():
    """The spans of this process, while it is traced."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrument(provider)
    yield exporter
    uninstrument()
    provider.shutdown()


def ids(span):
    """Return what tells a span."""
    found = span.get_span_context()
    return found.trace_id, found.span_id


def traces(state):
    """Make a span as a worker does that has set up where its spans go."""
    with TracerProvider().get_tracer("worker").start_as_current_span("own") as span:
        return {"log": [(span.get_span_context().trace_id, span.parent.span_id)]}


async def atraces(state):
    return traces(state)


def inner_node(state):
    return {"log": [ids(trace.get_current_span())]}


def runs_a_graph(state):
    """Run a graph that is traced in the worker, and tell what its run is below."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrument(provider)
    try:
        StateGraph(State).add_node("i", inner_node).add_edge(START, "i").compile(name="inner").invoke({})
    finally:
        uninstrument()
    (run,) = [span for span in exporter.get_finished_spans() if span.name == "run inner"]
    return {"log": [(run.context.trace_id, run.parent.span_id)]}


def graph_of(pool, *nodes):
    builder = StateGraph(State)
    for node in nodes:
        builder.add_node(node, executor=pool).add_edge(START, node.__name__)
    return builder.compile(name="g")


def test_spans_of_workers_are_below_their_task(door, pool, spans):
    graph = graph_of(pool, traces, atraces, runs_a_graph)
    found = door.invoke(graph, {"log": []})["log"]
    tasks = {span.name: span.context for span in spans.get_finished_spans()}
    assert found == [
        (tasks[name].trace_id, tasks[name].span_id) for name in ("task traces", "task atraces", "task runs_a_graph")
    ]


def tells(state):
    """Tell what the program's own context carries."""
    return {"log": [ids(trace.get_current_span()), baggage.get_baggage("tenant")]}


def test_a_span_of_the_programs_own_crosses_as_well(door, pool):
    graph = graph_of(pool, tells)
    with TracerProvider().get_tracer("program").start_as_current_span("request") as span:
        token = context.attach(baggage.set_baggage("tenant", "acme"))
        try:
            assert door.invoke(graph, {"log": []})["log"] == [ids(span), "acme"]
        finally:
            context.detach(token)


def test_a_worker_is_below_nothing_when_nothing_is_traced(door, pool):
    nothing = (trace.INVALID_TRACE_ID, trace.INVALID_SPAN_ID)
    assert door.invoke(graph_of(pool, tells), {"log": []})["log"] == [nothing, None]
