"""What the spans of a run hold, and how they hang together. The one module that needs OpenTelemetry.

Theory of operation. The span of a task is the current one while its code runs, in whatever thread or event loop: it is
attached in the context that each task has of its own. So what runs inside a task is below it: graphs, models, tools,
and whatever else the program traces. The spans of a run and of its supersteps are never attached, since a run that is
read as a stream would leave them behind in the context of its reader: what they hold is told where they stand.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import context, propagate, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

import pregel
from pregel.text import told

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opentelemetry.context import Context
    from opentelemetry.trace import Tracer, TracerProvider

__all__ = ["RunSpans", "carried", "current", "enter", "error_type", "inside", "tracer_of"]

#: The attribute of an error that says so.
RECORDED: Final = "_pregel_recorded"


def tracer_of(provider: TracerProvider | None) -> Tracer:
    """Return what makes the spans of this library."""
    return trace.get_tracer("pregel", pregel.__version__, provider)


class RunSpans:
    """The spans of one run.

    Args:
        tracer: What makes them.
        name: The name of the run's span.
        attributes: What it holds.
        shared: What each span of the run holds.
    """

    def __init__(self, tracer: Tracer, name: str, attributes: Mapping[str, Any], shared: Mapping[str, Any]) -> None:
        self.tracer = tracer
        self.shared = shared
        self.base: Context = context.get_current()
        self.run: Span = tracer.start_span(name, self.base, attributes={**shared, **attributes})
        #: Where the code of START's conditional edges stands, before the first superstep.
        self.around: Context = trace.set_span_in_context(self.run, self.base)
        self.superstep: Span | None = None

    def begin_superstep(self, step: int, nodes: list[str], tasks: int) -> None:
        """End the superstep before, with what was stored of it, and begin one."""
        self.end_superstep()
        attributes = {**self.shared, "pregel.step": step, "pregel.nodes": nodes, "pregel.tasks": tasks}
        below = trace.set_span_in_context(self.run, self.base)
        self.superstep = self.tracer.start_span("superstep", below, attributes=attributes)
        self.around = trace.set_span_in_context(self.superstep, self.base)

    def end_superstep(self) -> None:
        """End the superstep that runs, if one does."""
        if self.superstep is not None:
            self.superstep.end()
            self.superstep = None

    def task(self, node: str, attributes: Mapping[str, Any]) -> Span:
        """Begin the span of a task."""
        return self.tracer.start_span(f"task {node}", self.around, attributes={**self.shared, **attributes})

    def end_task(self, span: Span, outcome: str, error: BaseException | None) -> None:
        """End the span of a task."""
        span.set_attribute("pregel.outcome", outcome)
        if error is not None:
            failed(span, error)
        span.end()

    def end(self, outcome: str, error: BaseException | None) -> None:
        """End the run."""
        if error is not None:
            failed(self.run, error)
            if self.superstep is not None:
                self.superstep.set_status(Status(StatusCode.ERROR))
        self.end_superstep()
        self.run.set_attribute("pregel.outcome", outcome)
        self.run.end()


@contextmanager
def inside(span: Span | None, around: Context) -> Iterator[None]:
    """Let code run inside a span, if there is one; it neither ends it nor marks it."""
    token = context.attach(around if span is None else trace.set_span_in_context(span, around))
    try:
        yield
    except GeneratorExit:  # the code is dropped, in whatever context, and its own goes with it
        raise
    except BaseException:
        context.detach(token)
        raise
    context.detach(token)


@contextmanager
def current(tracer: Tracer, name: str, attributes: Mapping[str, Any], *, remote: bool = False) -> Iterator[Span]:
    """Let code run inside a new span, which says so if it fails; to pause or to be cancelled is no failure.

    Args:
        tracer: What makes the span.
        name: Its name.
        attributes: What it holds.
        remote: Whether the work is done by somebody else.
    """
    span = tracer.start_span(name, kind=SpanKind.CLIENT if remote else SpanKind.INTERNAL, attributes=attributes)
    try:
        with inside(span, context.get_current()):
            yield span
    except Exception as error:
        failed(span, error)
        raise
    finally:
        span.end()


def carried() -> dict[str, str]:
    """Return what lets another process go on below the current span, as the program's propagators have it.

    By default that is W3C's `traceparent` and `baggage`; empty where there is no span, and nothing else to carry.
    """
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return carrier


def enter(carrier: Mapping[str, str]) -> None:
    """Let the rest of the current context be below the span that another process has carried here."""
    context.attach(propagate.extract(carrier))


def failed(span: Span, error: BaseException) -> None:
    """Mark a span as failed. An error is told in full where it was raised, and not again in the spans around that."""
    if not is_recorded(error):
        with suppress(Exception):  # one that can't be shown, or takes no mark, must not hide itself
            span.record_exception(error)
            setattr(error, RECORDED, True)
    span.set_attribute("error.type", error_type(error))
    span.set_status(Status(StatusCode.ERROR, told(error)))


def is_recorded(error: BaseException) -> bool:
    """Return whether some span tells an error in full, or of a group each of its errors."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_recorded, error.exceptions))
    return getattr(error, RECORDED, False)


def error_type(error: BaseException) -> str:
    """Return the name of an error's class, with its module if it is no builtin one."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
