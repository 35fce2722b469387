"""What runs inside a node: functions that it calls by `ctx.run_node`, and the items of a parallel worker."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pregel.codec import register
from pregel.errors import GraphInterrupt
from pregel.graph.functional.calling import begin_call, call_key
from pregel.graph.functional.tasks import task
from pregel.graph.workflow.asking import NO_REPLIES
from pregel.graph.workflow.errors import WorkflowConfigurationError, WorkflowDataError
from pregel.graph.workflow.event import NO_OUTPUT, StoredEvent
from pregel.graph.workflow.nodes import check_node_name
from pregel.runtime import current_frame
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from pregel.graph.functional.futures import TaskFuture
    from pregel.graph.functional.tasks import TaskFunction
    from pregel.graph.workflow.asking import Replies
    from pregel.graph.workflow.body import Body, GraphBody
    from pregel.graph.workflow.nested import WorkflowBody
    from pregel.graph.workflow.nodes import NodeSpec
    from pregel.graph.workflow.telling import Telling

__all__ = ["ParallelBody", "Part", "PartRunner", "part_task"]


class Done(NamedTuple):
    """What a part came to, as it is recorded."""

    events: list[StoredEvent]
    output: Any


register(Done, tag="pregel.workflow:Done")

#: How many parts of a node are kept read.
KEPT: Final = 64
#: What the task that begins is to run.
PART: Final[ContextVar[tuple[Any, Telling]]] = ContextVar("pregel_part")


def part_task(body: Body | GraphBody | WorkflowBody, name: str, options: Mapping[str, Any]) -> TaskFunction[..., Done]:
    """Return the task that runs a part.

    Args:
        body: The code of the parts.
        name: What they are called, in messages and in what is recorded.
        options: Of the task: `retry_policy`, `timeout`, `executor`.
    """

    def run(node_input: Any) -> Done:
        code, telling = PART.get()
        telling.forget()  # it may be another attempt
        check(code.run(telling, node_input, NO_REPLIES), telling)
        for part in telling.parts:
            part.settle()
        return done(telling)

    async def arun(node_input: Any) -> Done:
        code, telling = PART.get()
        telling.forget()  # it may be another attempt
        check(await code.arun(telling, node_input, NO_REPLIES), telling)
        for part in telling.parts:
            await part.asettle()
        return done(telling)

    function: Callable[..., Any] = arun if body.needs_loop or (body.uses_loop and body.any_loop) else run
    made: TaskFunction[..., Done] = task(name=name, **options)(function)
    return made


def check(question: Any, telling: Telling) -> None:
    """Check that a part has asked nothing by what it gave.

    Raises:
        WorkflowDataError: It has.
    """
    if question is not None:
        raise WorkflowDataError(
            f"{telling.place.where} runs inside another node, and gave a RequestInput: ask by pregel.interrupt(), "
            "or let a node of the workflow ask"
        )


def done(telling: Telling) -> Done:
    """Return what a part came to.

    Raises:
        WorkflowDataError: It set what can't be recorded, or took a route.
    """
    temp = [key for key, _ in telling.writes if key.startswith("temp:")]
    if temp:
        raise WorkflowDataError(
            f"{telling.place.where} runs inside another node and sets {temp[0]!r}. What it does is recorded, and temp: "
            "keys are not: return the value"
        )
    if telling.route is not None:
        raise WorkflowDataError(
            f"{telling.place.where} runs inside another node, and took a route: no edges lead from it. Return the value"
        )
    return Done(telling.told(), telling.output)


class Part:
    """A part that may still run: `await` it, or ask its `result()`.

    Args:
        future: Its task.
        owner: The telling of the node that it runs in.
        telling: Its own.
    """

    __slots__ = ("_done", "_future", "_owner", "_telling", "name", "seen")

    def __init__(self, future: TaskFuture[Done], owner: Telling, telling: Telling) -> None:
        #: The name of what runs.
        self.name = future.name
        self._future = future
        self._owner = owner
        self._telling = telling
        self._done: Done | None = None
        #: Whether somebody has asked how it ended.
        self.seen = False

    def result(self, timeout: float | None = None) -> Any:
        """Return the output, or None where there is none, waiting for it at most so many seconds.

        Raises:
            TimeoutError: It is not there yet.
            WorkflowDataError: It changed the state where that has been changed since it began.
            Exception: What it raised.
        """
        try:
            return self._take(self._future.result(timeout))
        finally:
            self.seen = self.seen or self._future.done()

    def __await__(self) -> Generator[Any, None, Any]:
        return self._wait().__await__()

    async def _wait(self) -> Any:
        self.seen = True
        return self._take(await self._future)

    def _take(self, made: Done) -> Any:
        if self._done is None:
            self._done = made
            self._owner.end_part(self._telling, made.events)
        return None if made.output is NO_OUTPUT else made.output

    def settle(self) -> None:
        """Take what it did if nobody has asked for it."""
        if not self.seen:
            self.result()

    async def asettle(self) -> None:
        """Do the same, awaited."""
        if not self.seen:
            await self._wait()


class PartRunner:
    """What `ctx.run_node` does in one node of a workflow.

    Args:
        make: Makes the body of what is to be run, by its name.
    """

    def __init__(self, make: Callable[[Any, str | None], tuple[NodeSpec, Any]]) -> None:
        self.make = make
        # By what is run and its name: to read a function anew for each call would cost more than the call.
        self.made: dict[tuple[int, int, str | None], tuple[Any, NodeSpec, Any, TaskFunction[..., Done]]] = {}

    def __call__(self, owner: Telling, node: Any, node_input: Any, name: str | None) -> Part:
        """Begin a part.

        Raises:
            WorkflowConfigurationError: It is nothing to run, or has no name.
        """
        key = (id(getattr(node, "__func__", node)), id(getattr(node, "__self__", None)), name)
        found = self.made.get(key)
        if found is None:
            if len(self.made) >= KEPT:  # functions that are made anew in each run
                self.made.clear()
            spec, body = self.make(node, name)
            check_node_name(spec.name, "what ctx.run_node runs")
            if not isinstance(spec.executor, str | None):
                raise WorkflowConfigurationError(
                    f"{spec.name!r}, which ctx.run_node runs, has the executor {show(spec.executor)}: what runs inside "
                    "a node runs in its process. Make it a node of the workflow, or give the executor to the node"
                )
            options = {"retry_policy": spec.retry, "timeout": spec.timeout, "executor": spec.executor}
            found = self.made[key] = (node, spec, body, part_task(body, str(spec.name), options))
        _, spec, body, runs = found
        part = begin(runs, body, owner, owner.begin_part(owner.numbered(str(spec.name))), node_input, str(spec.name))
        owner.parts.append(part)
        return part


def begin(
    runs: TaskFunction[..., Done], body: Any, owner: Telling, telling: Telling, node_input: Any, label: str
) -> Part:
    """Begin the task of a part.

    Args:
        runs: The task.
        body: What it runs.
        owner: The telling of the node.
        telling: That of the part.
        node_input: The part's input.
        label: What the part is recorded by, beside its input and how many there were with both before.
    """
    frame = current_frame()
    given: tuple[tuple[Any, ...], dict[str, Any]] = ((node_input,), {})
    key = f"{label}:{call_key(runs.graph, runs.name, given, frame)}"
    token = PART.set((body, telling))
    try:
        return Part(begin_call(runs.graph, runs.name, key, given, frame, body.code), owner, telling)
    finally:
        PART.reset(token)


class ParallelBody:
    """The code of a parallel worker: runs its function for each item of its input, and gives the list of outputs.

    Args:
        body: What is run for each item.
        name: The node's name.
        most: How many items may run at once; None for all.
    """

    def __init__(self, body: Body, name: str, most: int | None) -> None:
        self.body = body
        self.name = name
        self.most = most
        self.task = part_task(body, name, {})
        self.needs_loop = body.needs_loop
        self.uses_loop = body.uses_loop
        self.any_loop = body.any_loop

    @property
    def code(self) -> Any:
        """What its name stands for where it is recorded."""
        return self.body.code

    def begin(self, telling: Telling, node_input: Any) -> list[tuple[Telling, Any]]:
        """Return the items, each with its telling: all see the state as it is before the first one runs."""
        items = [] if node_input is NO_OUTPUT else node_input if isinstance(node_input, (list, tuple)) else [node_input]
        return [(telling.begin_part(f"{self.name}@{number}"), item) for number, item in enumerate(items, 1)]

    def run(self, telling: Telling, node_input: Any, _: Replies) -> None:
        """Run all items.

        Raises:
            Exception: What an item raised; of several an `ExceptionGroup`.
            WorkflowDataError: Two items set a key of the state to different values.
        """
        todo = self.begin(telling, node_input)
        parts: list[Part] = []
        most = self.most or len(todo)
        ends: list[Ended] = []
        for place, (own, item) in enumerate(todo):
            if place >= most:
                ends.append(ended(parts[place - most]))
            parts.append(begin(self.task, self.body, telling, own, item, str(place)))
        ends.extend(ended(part) for part in parts[len(ends) :])
        self.conclude(telling, ends)

    async def arun(self, telling: Telling, node_input: Any, _: Replies) -> None:
        """Do the same, awaited; see `run`."""
        todo = self.begin(telling, node_input)
        parts: list[Part] = []
        most = self.most or len(todo)
        ends: list[Ended] = []
        for place, (own, item) in enumerate(todo):
            if place >= most:
                ends.append(await aended(parts[place - most]))
            parts.append(begin(self.task, self.body, telling, own, item, str(place)))
        ends.extend([await aended(part) for part in parts[len(ends) :]])
        self.conclude(telling, ends)

    def conclude(self, telling: Telling, ends: list[Ended]) -> None:
        """Take what the items came to, in their order."""
        errors = []
        for number, end in enumerate(ends, 1):
            if isinstance(end.error, Exception):
                end.error.add_note(f"It was raised by item {number} of {len(ends)} of {telling.place.where}.")
                errors.append(end.error)
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise ExceptionGroup(f"{len(errors)} items of {telling.place.where} failed", errors)
        for end in ends:
            if end.error is not None:
                raise end.error
        telling.take([end.output for end in ends])


class Ended(NamedTuple):
    """How an item ended: with an output, or with an error or a question."""

    output: Any
    error: BaseException | None = None


def ended(part: Part) -> Ended:
    """Wait for an item."""
    try:
        return Ended(part.result())
    except (Exception, GraphInterrupt) as error:  # noqa: BLE001 - raised again when all have ended
        return Ended(None, error)


async def aended(part: Part) -> Ended:
    """Do the same, awaited."""
    try:
        return Ended(await part)
    except (Exception, GraphInterrupt) as error:  # noqa: BLE001 - raised again when all have ended
        return Ended(None, error)
