"""One attempt at one task, from the view of the state to the writes it asks for.

Theory of operation. The attempt is written once, as a coroutine, for both kinds of driver. Where all user code has a
sync form and async forms are not preferred, it never suspends: `send(None)` runs it to its end, and the sync driver
needs no event loop. It raises nothing that is an `Exception`: how a task ended is a value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pregel.barrier import fold, grouped
from pregel.channels.base import MISSING, Overwrite
from pregel.channels.last_value import LastValue
from pregel.errors import UnknownTargetError, nearest
from pregel.runtime import FRAME, Run, runtime_of
from pregel.superstep import TaskDone, TaskFailed
from pregel.task import Task, Writes
from pregel.types import Send
from pregel.writes import destinations, interpret, show

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pregel.network import Network
    from pregel.node import Branch, Code, Node

    Offload = Callable[..., Awaitable[Any]]

__all__ = ["attempt"]

NAMED_WRITERS = 5


async def attempt(
    task: Task,
    values: dict[str, Any],
    network: Network,
    run: Run,
    prefer_async: bool,  # noqa: FBT001 - an internal call on the hot path
    offload: Offload | None = None,
) -> TaskDone | TaskFailed:
    """Run a task's node and its conditional edges.

    Args:
        task: The task.
        values: The state of the last barrier; it is read, never changed.
        network: The graph.
        run: What all tasks of the run share.
        prefer_async: Whether code that has both forms is awaited.
        offload: Calls a sync function in a worker thread: for the sync code of a node whose other code is awaited.

    Returns:
        How the task ended.
    """
    node = task.node
    given: Any = MISSING
    seen: dict[str, Any] | None = None
    FRAME.set((task, run))
    try:
        if task.step == 0:
            writes = Writes(task.arg, node.targets)
        else:
            code = node.code
            if task.arg is MISSING:
                seen = node.view.read(values)
                given = seen if node.view.build is None else node.view.present(seen, named(node.name, network))
            else:
                given = task.arg
            if code.acall is not None and (prefer_async or code.call is None):
                acall = code.acall
                result = await (acall(given, **filled(code, task, run)) if code.inject else acall(given))
            elif offload is not None:
                result = await offload(code.call, given, filled(code, task, run))
            else:  # nothing to await: the common case of the sync driver
                call: Callable[..., Any] = code.call  # type: ignore[assignment]
                result = call(given, **filled(code, task, run)) if code.inject else call(given)
            plain = plain_writes(result, network, node, given)
            writes = interpret(result, network, task, given, run) if plain is None else plain
        if node.branches:
            writes = await routed(task, seen, writes, values, network, run, prefer_async)
    except Exception as raised:  # noqa: BLE001 - whatever user code raises is how the task ended
        return TaskFailed(task, explained(raised, task, network, given))
    return TaskDone(task, writes)


def named(node: str, network: Network) -> str:
    """Return how messages name a node."""
    return f"node {node!r} of graph {network.name!r}"


def edge_named(branch: Branch, task: Task, network: Network) -> str:
    """Return how messages name a conditional edge."""
    return f"the conditional edge {branch.code.name!r} of {named(task.node.name, network)}"


def filled(code: Code, task: Task, run: Run) -> dict[str, Any]:
    """Return the parameters that a piece of user code asked for."""
    made: dict[str, Any] = {}
    for name, kind in code.inject.items():
        if kind == "config":
            made[name] = dict(run.config)
        elif kind == "writer":
            made[name] = run.writer
        else:
            made[name] = runtime_of((task, run))
    return made


def plain_writes(result: Any, network: Network, node: Node, given: Any) -> Writes | None:
    """Return the writes of a result that needs no further look, or None.

    Most results are small dicts whose values have exactly the declared types, and are done with here.
    """
    if type(result) is not dict:
        return None
    fields = network.fields
    for name, value in result.items():
        field = fields.get(name)
        if field is None or type(value) is not field.exact:
            return None
        if field.folds and (given.get(name) is value if type(given) is dict else node.view.build is not None):
            return None
    return Writes(tuple(result.items()), node.targets)


async def routed(
    task: Task,
    seen: dict[str, Any] | None,
    writes: Writes,
    values: dict[str, Any],
    network: Network,
    run: Run,
    prefer_async: bool,  # noqa: FBT001 - an internal call on the hot path
) -> Writes:
    """Return a task's writes with the targets of its conditional edges.

    A path sees the task's view of the state with the task's own writes applied: nothing of its siblings.

    Raises:
        UnknownTargetError: A path answered with something that is no target.
    """
    goto, sends = list(writes.goto), list(writes.sends)
    nodes = network.nodes
    for branch in task.node.branches:
        # The node is done with its dict: no second copy for the paths that read the same fields.
        base = seen if seen is not None and branch.view is task.node.view else branch.view.read(values)
        overlay(base, branch, writes, values, network, task)
        shown = base if branch.view.build is None else branch.view.present(base, edge_named(branch, task, network))
        code = branch.code
        if code.acall is not None and (prefer_async or code.call is None):
            choice = await code.acall(shown, **filled(code, task, run))
        else:
            call: Callable[..., Any] = code.call  # type: ignore[assignment]
            choice = call(shown, **filled(code, task, run)) if code.inject else call(shown)
        path_map = branch.path_map
        if path_map is not None:
            target = path_map.get(choice) if type(choice) is str else None
        else:
            target = choice if branch.targets is None else None
        if type(target) is str and target in nodes:
            goto.append(target)  # the common case: nothing to explain
        else:
            where = edge_named(branch, task, network)
            destinations(mapped(choice, branch, where), network, where, branch.targets, goto, sends)
    return Writes(writes.updates, tuple(goto), tuple(sends), writes.escapes)


def overlay(
    base: dict[str, Any], branch: Branch, writes: Writes, values: dict[str, Any], network: Network, task: Task
) -> None:
    """Apply a task's own writes to the view that its path will see."""
    wanted, fields = branch.view.fields, network.fields
    folded: list[tuple[str, Any]] = []
    for name, update in writes.updates:
        if wanted is not None and name not in wanted:
            continue
        if type(fields[name].channel) is LastValue and type(update) is not Overwrite:
            base[name] = update  # two of them conflict at the barrier
        else:
            folded.append((name, update))
    for name, updates in grouped(folded).items():
        base[name] = fold(network, name, values.get(name, MISSING), updates, [task] * len(updates))
    for field in branch.view.guarded:
        if field.name in base and not field.channel.is_available(base[field.name]):
            del base[field.name]


def mapped(choice: Any, branch: Branch, where: str) -> Any:
    """Return a path's answer with its names translated by the path map.

    Raises:
        UnknownTargetError: The map does not have an answer.
    """
    path_map = branch.path_map
    if path_map is None:
        if branch.targets is None:
            return choice
        path_map = {target: target for target in branch.targets}  # a Literal means what it says
    translated: list[Any] = []
    for answer in choice if isinstance(choice, (list, tuple)) else (choice,):
        if isinstance(answer, Send):
            translated.append(answer)
        elif hashes(answer) and answer in path_map:
            translated.append(path_map[answer])
        else:
            raise UnknownTargetError(
                f"{where} answered {show(answer)}, which it does not declare."
                f"{nearest(answer, map(str, path_map))} It declares: {', '.join(map(repr, path_map))}"
            )
    return translated


def hashes(answer: Any) -> bool:
    """Return whether an answer can be looked up; a frozen dataclass of lists says so and can't."""
    try:
        hash(answer)
    except TypeError:
        return False
    return True


def explained(raised: Exception, task: Task, network: Network, given: Any) -> Exception:
    """Return an error with notes that say where it happened."""
    error = raised
    if isinstance(raised, (StopIteration, StopAsyncIteration)):  # as PEP 479 has it: no iteration of ours ends by it
        error = RuntimeError(f"{named(task.node.name, network)} raised {type(raised).__name__}")
        error.__cause__ = raised
    notes = [f"In graph {network.name!r}, node {task.node.name!r}, superstep {task.step}, task {task.id}."]
    name = error.args[0] if isinstance(error, KeyError) and error.args else None
    reads_state = task.arg is MISSING and isinstance(given, dict)
    if reads_state and isinstance(name, str) and name in network.fields and name not in given:
        writers = [node.name for node in network.nodes.values() if node.may_write is None or name in node.may_write]
        notes.append(
            f"Node {task.node.name!r} reads the field {name!r}, which is declared but has no value yet. It can be "
            f"written by the input or by the nodes {', '.join(map(repr, writers[:NAMED_WRITERS]))}."
        )
    for note in notes:
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
    return error
