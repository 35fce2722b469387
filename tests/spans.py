"""What tests of spans and logs share: the spans that have ended, and graphs whose nodes make some."""

import operator
import sys
from contextlib import contextmanager
from typing import Annotated, TypedDict

import anyio
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pregel import START, Runtime, StateGraph
from pregel.observe import instrument, uninstrument
from pregel.types import RetryPolicy

#: Modules whose code runs only where somebody watches.
HOMES = ("pregel.observe", "pregel.watch", "pregel.spans", "pregel.graph.agent.traced", "opentelemetry", "logging")


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


@contextmanager
def traced():
    """Give what is traced, while it is."""
    made = Spans()
    instrument(made.provider)
    try:
        yield made
    finally:
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


def fails(state):
    raise LookupError("nothing there")


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
