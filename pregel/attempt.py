"""One attempt at one task, from the view of the state to the writes it asks for.

Theory of operation. The attempt is written once, as a coroutine, for both kinds of driver. Where all user code has a
sync form and async forms are not preferred, it never suspends: `send(None)` runs it to its end, and the sync driver
needs no event loop. It raises nothing that is an `Exception`: how a task ended is a value.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from pregel.channels.base import MISSING
from pregel.commands import TaskDone, TaskFailed, TaskPaused
from pregel.errors import GraphInterrupt, InterruptSwallowedError
from pregel.interrupting import unanswered
from pregel.managed import managed_values
from pregel.mutation import check_untouched, copied
from pregel.routing import named, path_view, routed
from pregel.runtime import FRAME, Calls, Run, runtime_of, store_of
from pregel.task import Task, Writes, make
from pregel.text import shortened
from pregel.writes import interpret

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from pregel.network import Network
    from pregel.node import Code, Node

    Offload = Callable[..., Awaitable[Any]]
    Away = Callable[[Code, Any, dict[str, Any]], Awaitable[Any]]

__all__ = ["attempt", "explained"]

NAMED_WRITERS = 5


async def attempt(  # noqa: C901, PLR0912, PLR0915 - one hot path: each branch would cost a call
    task: Task,
    values: dict[str, Any],
    network: Network,
    run: Run,
    prefer_async: bool,  # noqa: FBT001 - an internal call on the hot path
    offload: Offload | None = None,
    away: Away | None = None,
) -> TaskDone | TaskFailed | TaskPaused:
    """Run a task's node and its conditional edges.

    Args:
        task: The task.
        values: The state of the last barrier; it is read, never changed.
        network: The graph.
        run: What all tasks of the run share.
        prefer_async: Whether code that has both forms is awaited.
        offload: Calls a sync function in a worker thread: for the sync code of a node whose other code is awaited.
        away: Lets an executor run the node's own code, in the task of the current context.

    Returns:
        How the task ended.
    """
    node = task.node
    given: Any = MISSING
    seen: dict[str, Any] | None = None
    copies: dict[str, Any] = {}
    asked: list[Any] = []
    calls: list[Calls] = []
    failure: Exception | None = None
    FRAME.set((task, run, count(), asked, values, calls, prefer_async or offload is not None or node.needs_loop))
    is_input = node is network.start
    try:
        try:
            if is_input:
                writes = Writes(task.arg, node.targets)
            else:
                code = node.code
                if task.arg is MISSING:
                    seen = node.view.read(values)
                    if node.view.managed:
                        seen.update(managed_values(node.view.managed, task.step, run.last_step))
                    if network.debug:
                        copies = {name: copied(value) for name, value in seen.items()}
                        seen = dict(copies)
                    given = seen if node.view.build is None else node.view.present(seen, named(node.name, network))
                else:
                    given = task.arg
                if away is not None:
                    result = await away(code, given, filled(code, task, run, values))
                elif code.acall is not None and (prefer_async or code.call is None):
                    acall = code.acall
                    result = await (acall(given, **filled(code, task, run, values)) if code.inject else acall(given))
                elif offload is not None:
                    result = await offload(code.call, given, filled(code, task, run, values))
                else:  # nothing to await: the common case of the sync driver
                    call: Callable[..., Any] = code.call  # type: ignore[assignment]
                    result = call(given, **filled(code, task, run, values)) if code.inject else call(given)
                if calls:
                    await calls[0].settled(asked)
                plain = plain_writes(result, network, node, given)
                writes = interpret(result, network, task, given, run) if plain is None else plain
                if run.keeps is not None and not asked:
                    run.keeps.append(result)
                if network.debug and seen is not None:
                    real = {**values, **{name: seen[name] for name, _ in node.view.managed if name in seen}}
                    check_untouched(real, copies, seen, dict(writes.updates), named(node.name, network))
            for branch in node.branches:
                shown = path_view(task, seen, branch, writes, values, network, run.last_step)
                code = branch.code
                if code.acall is not None and (prefer_async or code.call is None):
                    choice = await code.acall(shown, **filled(code, task, run, values))
                else:
                    path: Callable[..., Any] = code.call  # type: ignore[assignment]
                    choice = path(shown, **filled(code, task, run, values)) if code.inject else path(shown)
                writes = routed(choice, branch, writes, task, network)
            if calls:  # of conditional edges
                await calls[0].settled(asked)
        except BaseException as error:
            failure = await calls[0].close(error, asked) if calls else None
            if failure is None:
                raise
        if failure is not None:
            raise failure  # noqa: TRY301 - handled below as what the code raises is
    except GraphInterrupt as pause:
        return paused(task, network, asked, [pause])
    except BaseExceptionGroup as group:  # what a task group of the node's own makes of several
        pauses, rest = group.split(GraphInterrupt)
        if rest is None:
            return paused(task, network, asked, list(leaves(group)))
        if not isinstance(rest, Exception):
            raise
        return TaskFailed(task, explained(rest if pauses else group, task, network, given))  # type: ignore[arg-type]  # an Exception: see above
    except Exception as raised:  # noqa: BLE001 - whatever user code raises is how the task ended
        return TaskFailed(task, explained(raised, task, network, {**values, **dict(task.arg)} if is_input else given))
    if asked and (open_questions := unanswered(asked)):
        return TaskFailed(task, explained(swallowed(task, network, open_questions), task, network, given))
    return make(TaskDone, (task, writes))


def paused(task: Task, network: Network, asked: Sequence[Any], pauses: Sequence[Any]) -> TaskPaused | TaskFailed:
    """Return the event of a task that waits for answers: to all that it asks, in the order in which it asked."""
    reasons = unanswered(asked)
    if not reasons:
        error = InterruptSwallowedError(
            f"{named(task.node.name, network)} raised GraphInterrupt and asks nothing, so no answer could let it go "
            "on. Call interrupt(value): it raises by itself"
        )
        return TaskFailed(task, explained(error, task, network, MISSING))
    return TaskPaused(task, reasons, next((pause.error for pause in pauses if pause.error is not None), None))


def leaves(group: BaseExceptionGroup[Any]) -> Iterator[BaseException]:
    """Yield the exceptions of a group and of the groups in it."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(error)
        else:
            yield error


def swallowed(task: Task, network: Network, questions: Sequence[Any]) -> InterruptSwallowedError:
    """Return the error of a node that went on although it waits for an answer."""
    return InterruptSwallowedError(
        f"{named(task.node.name, network)} ended although {', '.join(map(shortened, questions))} is not answered: "
        "it has caught the pause. Let GraphInterrupt through: catch `Exception`, not `BaseException`, and no bare "
        "`except:`"
    )


def filled(code: Code, task: Task, run: Run, values: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that a piece of user code asked for."""
    made: dict[str, Any] = {}
    for name, kind in code.inject.items():
        if kind == "config":
            made[name] = dict(run.config)
        elif kind == "writer":
            made[name] = run.writer
        elif kind == "store":
            made[name] = store_of(task, run)
        elif kind == "error":
            made[name] = run.failure
        elif kind == "optional_store":
            if run.store is not None:
                made[name] = run.store
        else:
            made[name] = runtime_of(task, run, values)
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
    return make(Writes, (tuple(result.items()), node.targets, (), ()))


def explained(raised: Exception, task: Task, network: Network, given: Any) -> Exception:
    """Return an error with notes that say where it happened."""
    error = raised
    if isinstance(raised, (StopIteration, StopAsyncIteration)):  # as PEP 479 has it: no iteration of ours ends by it
        error = RuntimeError(f"{named(task.node.name, network)} raised {type(raised).__name__}")
        error.__cause__ = raised
    notes = [f"In graph {network.name!r}, node {task.node.name!r}, superstep {task.step}, task {task.id}{task.about}."]
    name = error.args[0] if isinstance(error, KeyError) and error.args else None
    reads_state = (task.arg is MISSING or task.node is network.start) and isinstance(given, dict)
    if reads_state and isinstance(name, str) and name in network.fields and name not in given:
        writers = [node.name for node in network.nodes.values() if node.may_write is None or name in node.may_write]
        notes.append(
            f"Node {task.node.name!r} reads the field {name!r}, which is declared but has no value yet. It can be "
            f"written by the input or by the nodes {', '.join(map(repr, writers[:NAMED_WRITERS]))}."
        )
    for note in notes:
        with suppress(Exception):  # one that takes no notes, such as a frozen dataclass, goes without
            if note not in getattr(error, "__notes__", ()):
                error.add_note(note)
    return error
