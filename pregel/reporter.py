"""What a run tells the readers of its stream: parts in the shape of each mode, and nothing that nobody asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pregel.channels.base import MISSING, Overwrite
from pregel.task import Cached, Writes, make
from pregel.text import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from pregel.network import Network
    from pregel.node import Join
    from pregel.task import Task
    from pregel.types import Breakpoint, Interrupt

__all__ = [
    "INTERRUPT",
    "Audience",
    "Brought",
    "Emit",
    "Heard",
    "Reporter",
    "Speech",
    "Told",
    "is_quiet",
    "shaped",
]

#: The key under which a result or a part says why the run stopped.
INTERRUPT = "__interrupt__"
#: The key under which a part of the updates says more about a task.
METADATA = "__metadata__"

ERROR_LIMIT = 2_000  # characters of an error in a part

#: Tags of models, or of whole runs, whose tokens are not told; LangGraph's, the second from its early days.
NOSTREAM: Final = frozenset({"nostream", "langsmith:nostream"})


class Emit(NamedTuple):
    """Command: hand a part to whoever reads the stream."""

    mode: str
    payload: Any
    #: The path to the graph; empty for the outermost.
    namespace: tuple[str, ...] = ()
    step: int = 0
    #: The task that the part is about, if it is about one.
    task: Task | None = None


class Told(NamedTuple):
    """Part of the mode "messages": a piece of a message, or a whole one, that a task tells while it runs."""

    message: Any
    metadata: dict[str, Any]


class Heard(Told):
    """The same from a callback of LangChain."""

    __slots__ = ()


class Brought(Told):
    """A message that a task's update brings: for readers who were not told it before."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Speech:
    """How a run tells its messages.

    Args:
        metadata: The metadata of the run.
        tags: Its tags.
        namespace: The path to its graph.
        is_message: Tells messages from other values.
    """

    metadata: Mapping[str, Any]
    tags: tuple[str, ...]
    namespace: tuple[str, ...]
    is_message: Callable[[Any], bool]

    def part(
        self,
        kind: type[Told],
        message: Any,
        task: Task | None,
        metadata: Mapping[str, Any] | None = None,
        tags: Sequence[str] | None = None,
    ) -> Emit:
        """Return the part that tells a message or a piece of one.

        Args:
            kind: Who tells it.
            message: It.
            task: Who says it; None for code in a thread that a node started by itself.
            metadata: What is known of who says it, the run's metadata included; None for that alone.
            tags: The same for tags.
        """
        name = None if task is None else task.node.name
        step = 0 if task is None else task.step
        about = {
            **(self.metadata if metadata is None else metadata),
            "node": name,
            "step": step,
            "task": None if task is None else task.id,
            "tags": list(self.tags if tags is None else tags),
            # What LangGraph's names become when its name in a script is replaced by ours.
            "pregel_node": name,
            "pregel_step": step,
        }
        return Emit("messages", kind(message, about), self.namespace, step, task)

    def brought(self, task: Task, updates: Sequence[Any], values: Mapping[str, Any]) -> list[Emit]:
        """Return the parts for the messages in a task's updates, without those that it found in its state or input."""
        found = [message for update in updates for message in self.messages(update)]
        if not found:
            return []
        given = task.arg.values() if isinstance(task.arg, Mapping) else (task.arg,)
        known = {message.id for value in (*values.values(), *given) for message in self.messages(value) if message.id}
        return [self.part(Brought, message, task) for message in found if message.id not in known]

    def messages(self, value: Any) -> Iterator[Any]:
        """Yield the messages that a value is or holds."""
        if isinstance(value, Overwrite):
            value = value.value
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if self.is_message(item):
                yield item


class Audience:
    """Says what one reader is still to be told, so that a message whose tokens he has is not told again."""

    __slots__ = ("_heard", "_told")

    def __init__(self) -> None:
        # Messages that were told, in whole or in part, by id. One without an id by its identity: it is kept, so that
        # no other one gets that.
        self._told: dict[str | int, Any] = {}
        # What LangChain told, by task: its pieces also pass through the code that called the model.
        self._heard: set[tuple[tuple[str, ...], str | None, str]] = set()

    def takes(self, part: Emit) -> bool:
        """Take notice of a part, the next in order, and return whether it is to be told."""
        if part.mode != "messages":
            return True
        kind = type(part.payload)
        message = part.payload.message
        name = getattr(message, "id", None)
        if kind is Brought:
            key = name or id(message)
            new = key not in self._told
            self._told[key] = None if name else message
            return new
        if name:
            place = (part.namespace, part.task and part.task.id, name)
            if kind is Heard:
                self._heard.add(place)
            elif place in self._heard:
                return False
            self._told[name] = None
        return True


def is_quiet(tags: Collection[str]) -> bool:
    """Return whether tags ask that tokens are not told."""
    return not NOSTREAM.isdisjoint(tags)


class Reporter:
    """Makes the parts of one run.

    Args:
        network: The graph.
        modes: What to emit, of "values", "updates", "tasks", "checkpoints" and "debug".
        namespace: The path to this graph.
        config_of: Gives the config that names the checkpoint of a superstep; None where nothing is stored.
        speech: How messages are told; None where nobody reads them.
    """

    __slots__ = (
        "_causes", "_namespace", "_network", "config_of", "ends", "follows", "speech", "stored", "updates", "values",
    )  # fmt: skip

    def __init__(
        self,
        network: Network,
        modes: Collection[str],
        namespace: tuple[str, ...],
        config_of: Callable[[int], Mapping[str, Any]] | None,
        speech: Speech | None = None,
    ) -> None:
        self._network = network
        self._namespace = namespace
        self.config_of = config_of
        self.values = "values" in modes
        self.updates = "updates" in modes
        #: The modes asked for that follow single tasks.
        self.follows = tuple(mode for mode in ("tasks", "debug") if mode in modes)
        self.speech = speech
        #: Whether anything is told when a task ends.
        self.ends = bool(self.updates or self.follows or speech)
        #: The modes asked for that tell of checkpoints.
        self.stored = tuple(mode for mode in ("checkpoints", "debug") if mode in modes and config_of is not None)
        # Who made a node due, noted where somebody follows the tasks.
        self._causes: dict[str, list[str]] = {}

    def state(self, values: dict[str, Any], step: int, paused: Sequence[Interrupt | Breakpoint] = ()) -> Emit:
        """Return the visible state."""
        shown: dict[str, Any] = self._network.project(values)
        if paused:
            shown[INTERRUPT] = tuple(paused)
        return make(Emit, ("values", shown, self._namespace, step, None))

    def paused(self, why: Sequence[Interrupt | Breakpoint], step: int, task: Task | None) -> tuple[Emit, ...]:
        """Return the part of the updates that says that a task, or the run, is paused."""
        if not self.updates:
            return ()
        return (Emit("updates", {INTERRUPT: tuple(why)}, self._namespace, step, task),)

    def ended(
        self,
        task: Task,
        outcome: Writes | Exception | tuple[Interrupt | Breakpoint, ...],
        step: int,
        values: dict[str, Any],
    ) -> tuple[Emit, ...]:
        """Return the parts that say how a task ended; its updates are not in the values yet."""
        name = task.node.name
        emitted: tuple[Emit, ...] = ()
        ended: dict[str, Any] = {"error": None, "result": None, "interrupts": []}
        if isinstance(outcome, Writes):
            visible = self._network.visible
            if self.speech is not None:
                brought = [update for name, update in outcome.updates if name in visible]
                emitted = tuple(self.speech.brought(task, brought, values))
            if self.updates:
                seen = shaped([pair for pair in outcome.updates if pair[0] in visible])
                told = {name: seen, METADATA: {"cached": True}} if type(outcome) is Cached else {name: seen}
                emitted += (make(Emit, ("updates", told, self._namespace, step, task)),)
            if self.follows:
                ended["result"] = shaped(outcome.updates)
        elif isinstance(outcome, tuple):
            emitted = self.paused(outcome, step, task)  # type: ignore[arg-type]  # mypy takes it for writes
            ended["interrupts"] = list(outcome)
        else:
            ended["error"] = shortened(outcome, ERROR_LIMIT)
        if self.follows:
            payload = {"id": task.id, "name": name, **ended}
            emitted += self._followed("task_result", payload, step, task)
        return emitted

    def begun(self, tasks: Sequence[Task], values: dict[str, Any], step: int) -> list[Emit]:
        """Return the parts that say that tasks begin."""
        emitted: list[Emit] = []
        for task in tasks:
            payload: dict[str, Any] = {
                "id": task.id,
                "name": task.node.name,
                "input": task.node.view.read(values) if task.arg is MISSING else task.arg,
                "triggers": list(dict.fromkeys(self._causes.get(task.node.name, ()))),
            }
            emitted.extend(self._followed("task", payload, step, task))
        for task in tasks:
            self._causes.pop(task.node.name, None)
        return emitted

    def committed(
        self, values: dict[str, Any], step: int, before: int | None, source: str, due: Sequence[Task]
    ) -> tuple[Emit, ...]:
        """Return the parts that tell of a checkpoint."""
        config_of = self.config_of
        if config_of is None or not self.stored:
            return ()
        payload = {
            "config": config_of(step),
            "parent_config": None if before is None else config_of(before),
            "values": dict(values),
            "metadata": {"source": source, "step": step},
            "next": [task.node.name for task in due],
            "tasks": [{"id": task.id, "name": task.node.name} for task in due],
        }
        bodies = {"checkpoints": payload, "debug": {"step": step, "type": "checkpoint", "payload": payload}}
        return tuple(Emit(mode, bodies[mode], self._namespace, step) for mode in self.stored)

    def blame(self, name: str, cause: str) -> None:
        """Write down who made a node due."""
        self._causes.setdefault(name, []).append(cause)

    def blame_all(self, tasks: Sequence[Task], results: Sequence[Writes], joins: Sequence[Join]) -> None:
        """Write down who made which node due: tasks by what they asked for, and joins."""
        for task, writes in zip(tasks, results, strict=True):
            for name in (*writes.goto, *(send.node for send in writes.sends)):
                self.blame(name, task.node.name)
        for join in joins:
            self.blame(join.target, join.name)

    def _followed(self, kind: str, payload: dict[str, Any], step: int, task: Task) -> tuple[Emit, ...]:
        """Return a part about a task for each of the modes that follow tasks."""
        bodies = {"tasks": payload, "debug": {"step": step, "type": kind, "payload": payload}}
        return tuple(Emit(mode, bodies[mode], self._namespace, step, task) for mode in self.follows)


def shaped(pairs: Sequence[tuple[str, Any]]) -> Any:
    """Return updates in the shape of streams: a mapping, a list of mappings if a field comes twice, None for none."""
    if not pairs:
        return None
    merged = dict(pairs)
    return merged if len(merged) == len(pairs) else [{name: update} for name, update in pairs]
