"""What a run tells the readers of its stream: parts in the shape of each mode, and nothing that nobody asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pregel.channels.base import MISSING
from pregel.task import Writes, make
from pregel.text import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pregel.network import Network
    from pregel.node import Join
    from pregel.task import Task
    from pregel.types import Breakpoint, Interrupt

__all__ = ["INTERRUPT", "Emit", "Reporter", "shaped"]

#: The key under which a result or a part says why the run stopped.
INTERRUPT = "__interrupt__"

ERROR_LIMIT = 2_000  # characters of an error in a part


class Emit(NamedTuple):
    """Command: hand a part to whoever reads the stream."""

    mode: str
    payload: Any
    #: The path to the graph; empty for the outermost.
    namespace: tuple[str, ...] = ()
    step: int = 0
    #: The task that the part is about, if it is about one.
    task: Task | None = None


class Reporter:
    """Makes the parts of one run.

    Args:
        network: The graph.
        modes: What to emit, of "values", "updates", "tasks", "checkpoints" and "debug".
        namespace: The path to this graph.
        config_of: Gives the config that names the checkpoint of a superstep; None where nothing is stored.
    """

    __slots__ = ("_causes", "_namespace", "_network", "config_of", "follows", "stored", "updates", "values")

    def __init__(
        self,
        network: Network,
        modes: Collection[str],
        namespace: tuple[str, ...],
        config_of: Callable[[int], Mapping[str, Any]] | None,
    ) -> None:
        self._network = network
        self._namespace = namespace
        self.config_of = config_of
        self.values = "values" in modes
        self.updates = "updates" in modes
        #: The modes asked for that follow single tasks.
        self.follows = tuple(mode for mode in ("tasks", "debug") if mode in modes)
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
        self, task: Task, outcome: Writes | Exception | tuple[Interrupt | Breakpoint, ...], step: int
    ) -> tuple[Emit, ...]:
        """Return the parts that say how a task ended."""
        name = task.node.name
        emitted: tuple[Emit, ...] = ()
        ended: dict[str, Any] = {"error": None, "result": None, "interrupts": []}
        if isinstance(outcome, Writes):
            if self.updates:
                visible = self._network.visible
                seen = shaped([pair for pair in outcome.updates if pair[0] in visible])
                emitted = (make(Emit, ("updates", {name: seen}, self._namespace, step, task)),)
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
