"""A run that is watched: what is logged of it and of its supersteps and tasks, and where their spans begin and end."""

from __future__ import annotations

import logging
from contextlib import aclosing, nullcontext
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, Self

from pregel.commands import TaskDone, TaskFailed
from pregel.errors import GraphInterrupt
from pregel.observe import LOGGER, TRACING, fields, fields_of
from pregel.session import Session
from pregel.text import told

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Generator
    from contextlib import AbstractContextManager
    from types import TracebackType

    from pregel.commands import Event
    from pregel.config import RunOptions
    from pregel.network import Network
    from pregel.reporter import Emit
    from pregel.runtime import Run
    from pregel.spans import RunSpans
    from pregel.superstep import Superstep
    from pregel.task import Task

__all__ = ["Outcome", "Watch", "WatchedSession"]

#: How a run or a task ended. "cancelled" is also a run whose reader has left, and an attempt that was given up.
Outcome = Literal["done", "failed", "paused", "cancelled"]


class WatchedSession(Session):
    """A run that is watched; see `Session`."""

    def __init__(self, network: Network, options: RunOptions, **given: Any) -> None:
        super().__init__(network, options, **given)
        self.watch = Watch(network, self.machine, options.config["configurable"].get("thread_id"))
        self.run = replace(self.run, watch=self.watch)

    def parts(self) -> Generator[Emit, None, None]:
        """Run without an event loop, for a reader."""
        with self.watch:
            yield from super().parts()

    def complete(self) -> None:
        """Run without an event loop to the end."""
        with self.watch:
            super().complete()

    async def acomplete(self) -> None:
        """Run on the event loop at hand to the end, in the task of the caller."""
        with self.watch:
            await super().acomplete()

    async def aparts(self) -> AsyncGenerator[Emit, None]:
        """Run on the event loop at hand, in a task of its own, for a reader."""
        with self.watch:
            async with aclosing(super().aparts()) as parts:
                async for part in parts:
                    yield part


class Watch:
    """What watches one run. To enter it begins the run, to leave it ends it; nothing of it stands in a context.

    Drivers call `superstep` and `task`; the latter in any thread.

    Args:
        network: The graph.
        machine: The run. It does not know of its watch, nor does this one of the session: a run that is over goes at
            once, without a search for cycles.
        thread_id: The thread that the config names.
    """

    def __init__(self, network: Network, machine: Superstep, thread_id: str | None) -> None:
        self.network = network
        self.machine = machine
        self.thread_id = thread_id
        self.logs = LOGGER.isEnabledFor(logging.DEBUG)
        self.spans: RunSpans | None = None
        self.begun = 0.0
        #: The superstep that runs, from 1.
        self.step = 0

    def __enter__(self) -> Self:
        self.begun = perf_counter()
        if TRACING.tracer is not None:
            from pregel.spans import RunSpans  # noqa: PLC0415 - without a tracer nothing of OpenTelemetry is loaded

            name, attributes = described(self.network, self.thread_id)
            shared = {"pregel.graph": self.network.name}
            if self.thread_id is not None:
                shared["pregel.thread_id"] = self.thread_id
            self.spans = RunSpans(TRACING.tracer, name, attributes, shared)
        if self.logs:
            LOGGER.debug("run of graph %r begins", self.network.name, extra=self.fields())
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        outcome: Outcome = "cancelled"
        if isinstance(error, GraphInterrupt) or (error is None and self.machine.pauses):
            outcome = "paused"
        elif error is None:
            outcome = "done"
        elif isinstance(error, Exception):
            outcome = "failed"
        failure = error if outcome == "failed" else None
        if self.spans is not None:
            self.spans.end(outcome, failure)
        LOGGER.info(
            "run of graph %r %s in superstep %d after %s%s",
            *(self.network.name, ended(outcome), self.step, milliseconds(self.begun), said(failure)),
            extra=self.fields(self.step),
        )

    def superstep(self, tasks: tuple[Task, ...]) -> None:
        """Take that tasks are due. One driver may hand a superstep to another, so it may be told twice.

        Args:
            tasks: The tasks, at least one.
        """
        step = tasks[0].step
        if step == self.step or tasks[0].node is self.network.start:
            return
        self.step = step
        nodes = list(dict.fromkeys(task.node.name for task in tasks))
        if self.spans is not None:
            self.spans.begin_superstep(step, nodes, len(tasks))
        if self.logs:
            LOGGER.debug(
                "superstep %d of graph %r begins: %s",
                *(step, self.network.name, ", ".join(map(repr, nodes))),
                extra=self.fields(step),
            )

    async def task(self, task: Task, run: Run, body: Coroutine[Any, Any, Event]) -> Event:
        """Await an attempt at a task inside a span of its own. It suspends only where the attempt does.

        Args:
            task: The task.
            run: What the tasks of the run share.
            body: The attempt.

        Returns:
            How the task ended.
        """
        node = task.node.name
        if task.node is self.network.start:  # the input is no task for who reads logs, but its edges run code
            with self.inside(None):
                return await body
        begun = perf_counter()
        about = fields_of(task, run)
        span = None
        if self.spans is not None:
            where = {"pregel.node": node, "pregel.step": task.step, "pregel.task": about["task"]}
            span = self.spans.task(node, {**where, "pregel.attempt": run.attempt})
        outcome: Outcome = "cancelled"
        error: Exception | None = None
        with self.inside(span):
            if self.logs:
                LOGGER.debug("task %s of graph %r begins", task.id, self.network.name, extra=about)
            try:
                event = await body
                kind = type(event)
                if not any(token.revoked for token in run.token.attempts()):  # else nobody hears how its code ended
                    outcome = "done" if kind is TaskDone else "failed" if kind is TaskFailed else "paused"
                    error = event.error if isinstance(event, TaskFailed) else None
            finally:
                if self.logs:
                    LOGGER.debug(
                        "task %s of graph %r %s after %s%s",
                        *(task.id, self.network.name, ended(outcome), milliseconds(begun), said(error)),
                        extra=about,
                    )
                if self.spans is not None:
                    self.spans.end_task(span, outcome, error)  # type: ignore[arg-type]  # there are spans, so it has one
        return event

    def inside(self, span: Any) -> AbstractContextManager[None]:
        """Return what lets code run inside a span, or where there is none inside what is around it."""
        if self.spans is None:
            return nullcontext()
        from pregel.spans import inside  # noqa: PLC0415 - without a tracer nothing of OpenTelemetry is loaded

        return inside(span, self.spans.around)

    def fields(self, step: int | None = None) -> dict[str, Any]:
        """Return what a record about the run, or one of its supersteps, has beside its message."""
        return fields(self.thread_id, step)


def described(network: Network, thread_id: str | None) -> tuple[str, dict[str, Any]]:
    """Return the name and the attributes of a run's span: as the conventions have it where the graph is an agent."""
    model = network.nodes.get("model")
    code = None if model is None else model.code.call or model.code.acall
    if not getattr(getattr(code, "__self__", None), "is_of_agent", False):
        return f"run {network.name}", {}
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": network.name}
    if thread_id is not None:
        attributes["gen_ai.conversation.id"] = thread_id
    return f"invoke_agent {network.name}", attributes


def ended(outcome: Outcome) -> str:
    """Return how a run or a task ended, as a verb."""
    return {"done": "ended", "failed": "failed", "paused": "paused", "cancelled": "was cancelled"}[outcome]


def milliseconds(begun: float) -> str:
    """Return the time since some moment, for people."""
    return f"{(perf_counter() - begun) * 1000:.1f} ms"


def said(error: BaseException | None) -> str:
    """Return what an error says, for the end of a message."""
    return "" if error is None else f": {told(error)}"
