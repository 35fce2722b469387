"""Whether runs are watched, and by what: the logger `pregel`, and spans of OpenTelemetry.

Theory of operation. Both are off until somebody asks for them: logs by the logger's level (but of retries, which are
rare), spans by `instrument()`. Each run looks once, when it begins. While both are off no superstep and no task makes
a call for them, and nothing of OpenTelemetry is loaded. What watches a run is `pregel.watch`; what its spans hold is
said in `pregel.spans`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from pregel.runtime import FRAME
from pregel.text import told

if TYPE_CHECKING:
    from pregel.runtime import Run
    from pregel.session import Session
    from pregel.task import Task

__all__ = [
    "LOGGER",
    "TRACING",
    "TaskFields",
    "fields",
    "fields_of",
    "instrument",
    "tell_retry",
    "uninstrument",
    "watched",
]

#: At WARNING a record for each attempt that is followed by another one, at INFO also for each run that has ended, at
#: DEBUG also for each superstep and each task.
LOGGER: Final = logging.getLogger("pregel")
LOGGER.addHandler(logging.NullHandler())  # what is shown, and where, is for the program to say


class Tracing:
    """What makes spans, if anything does: a `Tracer` of OpenTelemetry."""

    __slots__ = ("tracer",)

    def __init__(self) -> None:
        self.tracer: Any = None


#: Looked at where a span would begin, without a call.
TRACING: Final = Tracing()


def instrument(tracer_provider: Any = None) -> None:
    """Make spans of OpenTelemetry for all runs that begin from now on: once per process, where tracing is set up.

    Args:
        tracer_provider: Where the spans go; None for the global provider, which may be set later.

    Raises:
        ImportError: OpenTelemetry's API is not installed.
    """
    try:
        from pregel.spans import tracer_of  # noqa: PLC0415 - nothing of OpenTelemetry is loaded before
    except ImportError as error:
        raise ImportError("instrument() needs OpenTelemetry's API: pip install 'pregel[otel]'") from error
    TRACING.tracer = tracer_of(tracer_provider)


def uninstrument() -> None:
    """Make no more spans; runs that have begun make theirs to the end, but none of the models and tools they call."""
    TRACING.tracer = None


def watched(plain: type[Session]) -> type[Session]:
    """Return the class of a run that begins now: the plain one, unless something watches it."""
    if TRACING.tracer is None and not LOGGER.isEnabledFor(logging.INFO):
        return plain
    from pregel.watch import WatchedSession  # noqa: PLC0415 - runs that nobody watches do not load it

    return WatchedSession


def task_id(task: Task, run: Run) -> str:
    """Return a task's id as `Runtime.task_id` has it."""
    inner = run.task_id(task)
    return inner if run.thread is None else f"{run.thread}|{inner}"


def fields(
    thread_id: str | None = None, step: int | None = None, node: str | None = None, task: str | None = None
) -> dict[str, Any]:
    """Return what a record of the logger `pregel` has beside its message, each None where it does not apply.

    Args:
        thread_id: The thread that the config names.
        step: The superstep.
        node: The node's name.
        task: The task's id, as `Runtime.task_id` has it.
    """
    return {"thread_id": thread_id, "step": step, "node": node, "task": task}


def fields_of(task: Task, run: Run) -> dict[str, Any]:
    """Return the fields of a record about a task, or made by its code."""
    return fields(run.config["configurable"].get("thread_id"), task.step, task.node.name, task_id(task, run))


def tell_retry(task: Task, run: Run, graph: str, error: Exception, wait: float) -> None:
    """Log that an attempt has failed and that another one follows.

    Args:
        task: The task.
        run: What the attempt's code has found.
        graph: The graph's name.
        error: What the attempt raised.
        wait: How many seconds are between the two.
    """
    LOGGER.warning(
        "attempt %d at task %s of graph %r failed, and the next one begins in %.3g s: %s",
        *(run.attempt, task.id, graph, wait, told(error)),
        extra=fields_of(task, run),
    )


class TaskFields(logging.Filter):
    """Gives each record that passes the `thread_id`, `step`, `node` and `task` whose code has made it.

    For a handler, `handler.addFilter(TaskFields())`, whose format may then name them for the records of all loggers:
    they are None where no task has made a record. A record that has one already keeps it.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Fill a record in, and let it pass."""
        frame = FRAME.get(None)
        found = fields() if frame is None else fields_of(*frame[:2])
        for name, value in found.items():
            if not hasattr(record, name):
                setattr(record, name, value)
        return True
