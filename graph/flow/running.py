"""One run of a flow graph on a context: the data goes into the graph's thread, and comes back at the run's end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pregel.channels.base import MISSING, Overwrite
from pregel.control import RunControl
from pregel.graph.flow.context import FlowContext
from pregel.graph.flow.errors import FlowRunError, MissingResourceError, ResumeError
from pregel.graph.flow.home import Cursor, Visit
from pregel.graph.flow.parts import DATA, TRACE, again_of
from pregel.text import show
from pregel.types import Breakpoint, Command, Interrupt

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from pregel.errors import GraphChangedError
    from pregel.graph.compile import CompiledStateGraph
    from pregel.graph.flow.flowgraph import FlowGraph
    from pregel.types import StateSnapshot

__all__ = ["Outcome", "Turn"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    #: "finished"; "paused" where it waits for answers, "stopped" where it was asked to stop: `resume` goes on.
    status: Literal["finished", "paused", "stopped"]
    #: What is asked, for a paused run.
    pending: tuple[Interrupt, ...] = ()
    #: Why it was stopped.
    reason: str | None = None


class Turn:
    """A run's turn on a context: whoever runs a graph begins it, runs what it gives, and settles it.

    Args:
        graph: The flow graph.
        ctx: The context.
        resources: What the run is given that no snapshot holds.
        max_steps: How many supersteps may run; None for the engine's limit.

    Raises:
        FlowRunError: That is no context.
        FlowDefinitionError: The graph can't mean anything.
        ContextBusyError: Another run has the context.
    """

    def __init__(
        self, graph: FlowGraph, ctx: FlowContext, resources: Mapping[str, Any] | None, max_steps: int | None
    ) -> None:
        if not isinstance(ctx, FlowContext):
            raise FlowRunError(
                f"graph {graph.name!r} runs on a FlowContext, such as the .ctx of a session, not {show(ctx)}"
            )
        self.graph = graph
        self.ctx = ctx
        self.home = ctx.home
        self.resources = resources or {}
        self.compiled: CompiledStateGraph[Any, Any, Any, Any] = graph.stored_in(self.home.storage())
        self.thread: dict[str, Any] = {"configurable": {"thread_id": self.home.thread(graph.name)}}
        self.config = dict(self.thread)
        if max_steps is not None:
            self.config["recursion_limit"] = max_steps
        self.control = RunControl()
        #: The fields that hold what the graph keeps on the context, and its keys with reducers.
        self.kept = list(graph.private_fields())
        self.folded = graph.folded()
        #: How the thread stands before the run.
        self.found: StateSnapshot | None = None
        #: Whether the run came to its end.
        self.is_over = False
        self.home.take(graph.name, self.control)

    @property
    def options(self) -> dict[str, Any]:
        """The options of the run."""
        return {"config": self.config, "context": self.home, "control": self.control}

    def start(self, *, restart: bool) -> dict[str, Any]:
        """Return the input of a new run.

        Raises:
            FlowRunError: The graph has an unfinished run on the context.
            Exception: See `begun`.
        """
        found: StateSnapshot = self.found  # type: ignore[assignment]  # set before
        if found.next and not restart:
            raise FlowRunError(
                f"graph {self.graph.name!r} has an unfinished run on context {self.home.id!r}: due is "
                f"{', '.join(found.next)}. resume(ctx) goes on with it; run(ctx, restart=True) drops it and begins anew"
            )
        return self.begun()

    def begun(self) -> dict[str, Any]:
        """Return what a run begins with.

        Raises:
            MissingKeyError: A key that must be given is not there.
            MissingResourceError: Something is not given.
            KeyTypeError: A value is not of its key's type.
        """
        self.provide(None)
        self.graph.check_given(self.ctx, f"context {self.home.id!r}")
        return self.handed_over()

    def go_on(self, answer: Any) -> Command[Any]:
        """Return the input of a run that goes on.

        Raises:
            FlowRunError: Nothing is unfinished.
            MissingResourceError: Something that may still be needed is not given.
            KeyTypeError: A value is not of its key's type.
        """
        found: StateSnapshot = self.found  # type: ignore[assignment]  # set before
        if not found.next:
            raise FlowRunError(
                f"graph {self.graph.name!r} has nothing unfinished on context {self.home.id!r}, so there is nothing to "
                "resume: run(ctx) begins a run"
            )
        if answer is MISSING and all_ask(found):
            raise FlowRunError(
                f"graph {self.graph.name!r} waits on context {self.home.id!r} for "
                f"{', '.join(show(each.value) for each in asked(found.interrupts))}: resume(ctx, answer)"
            )
        self.provide(reachable(self.graph, found))
        self.home.questions.update((each.id, each) for each in asked(found.interrupts))
        return Command(update=self.handed_over(), resume=answer)

    def provide(self, names: Collection[str] | None) -> None:
        """Give the run its resources.

        Args:
            names: The nodes that may run; None for all.

        Raises:
            MissingResourceError: Something is missing or of another type; the message names all of it.
        """
        needs, given = self.graph.resources(names), self.resources
        check_resources(self.graph.name, needs, given)
        self.home.resources = {name: given[name] for name in needs}
        self.need(needs)

    def need(self, names: Iterable[str]) -> None:
        """Note what a run that goes on must be given: for snapshots, which tell it without the graph."""
        needs = tuple(names)
        if self.home.needs.get(self.graph.name, ()) != needs:
            self.home.needs = {**self.home.needs, self.graph.name: needs}

    def handed_over(self) -> dict[str, Any]:
        """Return the context's data as the graph's fields."""
        values = self.graph.checked_data(self.home.values)
        given: dict[str, Any] = {TRACE: Overwrite([])}
        for each in self.folded:
            given[each.field] = each.given(values)
            values.pop(each.key, None)
        given[DATA] = Overwrite(values)
        private = self.home.private
        given |= {name: Overwrite(private[name]) for name in self.kept if name in private}
        return given

    def ended(self, result: Mapping[str, Any], snapshot: StateSnapshot | None) -> Outcome:
        """Take back what the run made, and return how it ended.

        Args:
            result: What the compiled graph returned.
            snapshot: How the thread stands, for a run that is not over.
        """
        self.take_back(result)
        if snapshot is None:
            self.is_over = True
            self.home.forget_questions(self.graph.name)
            return Outcome("finished")
        self.need(self.graph.resources(reachable(self.graph, snapshot)))
        questions = asked(snapshot.interrupts)
        for task in snapshot.tasks:
            if asked(task.interrupts):
                self.tell(task.name, snapshot, "paused")
        if questions:
            return Outcome("paused", questions)
        return Outcome("stopped", reason=self.control.drain_reason)

    def gone(self, error: GraphChangedError) -> ResumeError:
        """Return the error of a run that the graph, as it is now, can't go on with."""
        return ResumeError(
            f"graph {self.graph.name!r} can't go on on context {self.home.id!r}: {error}. Or drop what is unfinished: "
            "run(ctx, restart=True)"
        )

    def forget(self) -> None:
        """Drop the stored run, if a new one can begin.

        Raises:
            Exception: See `begun`.
        """
        self.begun()
        self.home.storage().delete_thread(self.home.thread(self.graph.name))

    def failed(self, snapshot: StateSnapshot) -> None:
        """Take back what the run made before it failed."""
        began = self.found.metadata["step"] if self.found is not None and self.found.metadata else None
        if snapshot.metadata is None or snapshot.metadata["step"] == began:  # it committed nothing
            return
        self.take_back(snapshot.values)
        self.need(self.graph.resources(reachable(self.graph, snapshot)))
        for task in snapshot.tasks:
            if task.error is not None:
                self.tell(task.name, snapshot, "failed")

    def tell(self, node: str, snapshot: StateSnapshot, status: str) -> None:
        """Add a line to the trace for a node that did not end."""
        step = (snapshot.metadata or {}).get("step", 0) + 1
        self.home.trace.append(Visit(self.graph.name, node, step, status))

    def mark(self) -> None:
        """Store in a stored context that the run begins, so that what it commits is found if the process dies.

        Raises:
            FlowRunError: The context was closed.
            Exception: The storage failed; nothing was run.
        """
        ledger = self.home.ledger
        if ledger is not None:
            ledger.begin(self.home, self.graph.name, self.folded, self.kept)

    def store(self) -> None:
        """Store in a stored context what came of the run.

        Raises:
            Exception: The storage failed: what the run has committed is taken back when the context is opened again.
        """
        if self.home.ledger is not None:
            self.home.ledger.save(self.home)

    async def off_loop(self, call: Callable[[], None]) -> None:
        """Do one of both beside the event loop, where it waits for a disk or a network."""
        if self.home.ledger is None or not self.home.storage().blocking:
            call()
        else:
            from pregel.drivers.offloop import off_loop  # noqa: PLC0415 - contexts in memory do not wait

            await off_loop(call)

    def release(self) -> None:
        """End the turn. In a memory of the context's own only the last checkpoint of a run that is over is kept.

        One that is not over needs those of the graphs inside it: they hold what these have made for the one around.
        """
        if self.home.owns_saver and self.is_over:
            thread = self.home.thread(self.graph.name)
            if self.home.storage().latest(thread) is not None:
                self.home.storage().prune(keep_last=1, thread_id=thread)
        self.home.release()

    def take_back(self, values: Mapping[str, Any]) -> None:
        """Make the graph's fields the context's data."""
        data = dict(values.get(DATA, {}))
        held = ((each.key, each.value(values)) for each in self.folded)
        data.update((key, value) for key, value in held if value is not MISSING)
        self.home.values = data
        self.home.private.update((name, values[name]) for name in self.kept if name in values)
        self.home.trace.extend(values.get(TRACE, ()))


def asked(reasons: Iterable[Interrupt | Breakpoint]) -> tuple[Interrupt, ...]:
    """Return the questions among the reasons for a pause."""
    return tuple(each for each in reasons if isinstance(each, Interrupt))


def all_ask(snapshot: StateSnapshot) -> bool:
    """Return whether everything that is due waits for an answer."""
    due = [task for task in snapshot.tasks if task.result is None]
    return bool(due) and all(asked(task.interrupts) for task in due)


def cursor_of(graph: str, snapshot: StateSnapshot) -> Cursor:
    """Return where a graph stands."""
    step = (snapshot.metadata or {}).get("step", 0)
    if snapshot.metadata is None:
        return Cursor(graph, "new")
    return Cursor(graph, "unfinished" if snapshot.next else "finished", snapshot.next, snapshot.interrupts, step)


def reachable(graph: FlowGraph, snapshot: StateSnapshot) -> set[str]:
    """Return the nodes that may run when a run goes on: what is due, and all that links lead to from there."""
    loops = {again_of(name): name for name in graph.records}
    waiting = [loops.get(name, name) for name in snapshot.next]
    for task in snapshot.tasks:
        if task.result is not None:  # it has ended in a superstep that is not over: what follows it is not due yet
            waiting += graph.records[loops.get(task.name, task.name)].targets
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in graph.records and name not in found:  # END is no record
            found.add(name)
            waiting += graph.records[name].targets
    return found


def check_resources(graph: str, needs: Mapping[str, type], given: Mapping[str, Any]) -> None:
    """Check that a run has what it needs.

    Raises:
        MissingResourceError: Something is missing or of another type; the message names all of it.
    """
    wrong = [
        f"{name!r} ({kind.__name__})" if name not in given else f"{name!r} ({kind.__name__}, not {show(given[name])})"
        for name, kind in needs.items()
        if name not in given or not isinstance(given[name], kind)
    ]
    if wrong:
        raise MissingResourceError(
            f"graph {graph!r} needs {', '.join(wrong)}: give it as resources={{name: value}}. Nothing was run"
        )
