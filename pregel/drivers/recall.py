"""How the result of an earlier run stands for a task: it is looked up before the first attempt, and kept after one.

What is kept is what the node returned, not what followed from it: where a result is used again, ids are given anew and
conditional edges look at the state as it is now.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pregel.attempt import explained
from pregel.channels.base import MISSING
from pregel.commands import TaskDone, TaskFailed
from pregel.managed import managed_values
from pregel.routing import named
from pregel.task import Cached, make
from pregel.writes import storable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pregel.cache.results import Results
    from pregel.commands import Event
    from pregel.drivers.attempts import Performer
    from pregel.network import Network
    from pregel.runtime import Run
    from pregel.task import Task
    from pregel.types import CachePolicy, Command

__all__ = ["as_cached", "kept", "recalled", "stand_in"]


async def recalled(task: Task, performer: Performer) -> tuple[str | None, Sequence[Command[Any]] | TaskFailed | None]:
    """Look up an earlier result.

    Args:
        task: The task; its node has a cache policy, and the run a cache.
        performer: The driver.

    Returns:
        The key under which a result is to be kept, or None where none may be: what was answered is part of it. And the
        result as commands that make the same, None if there is none, or the event of a task whose input makes no key.
    """
    run, node = performer.run, task.node
    if answered(task, run):
        return None, None
    results: Results = run.cache
    try:
        given, built = told_by(task, performer.values, performer.network, run)
        key = results.key(node, given, built=built)
        return key, await performer.aside(partial(results.get, node, key), blocking=results.blocking)
    except Exception as error:  # noqa: BLE001 - the policy's function may raise anything
        return None, TaskFailed(task, explained(error, task, performer.network, MISSING))


async def kept(task: Task, key: str, returned: Sequence[Any], event: Event, performer: Performer) -> Event:
    """Keep the result of a task that ended well.

    Args:
        task: The task.
        key: What `recalled` gave.
        returned: What the node returned; empty where it asked something.
        event: How the task ended.
        performer: The driver.

    Returns:
        How the task ended now: a result that can't be kept is an error.
    """
    results: Results = performer.run.cache
    policy: CachePolicy = task.node.policy.cache  # type: ignore[union-attr, assignment]  # see `recalled`
    if not isinstance(event, TaskDone) or not returned:
        return event
    try:
        commands = storable(returned[0], performer.network, task.node)
        if commands is not None:
            put = partial(results.put, task.node, key, commands, policy.ttl)
            await performer.aside(put, blocking=results.blocking)
    except Exception as error:  # noqa: BLE001 - such as an encoder's of the user
        return TaskFailed(task, explained(error, task, performer.network, MISSING))
    return event


def stand_in(task: Task, commands: Sequence[Command[Any]]) -> Task:
    """Return a task that returns an earlier result in place of running its node, and goes on from there as it would.

    Its conditional edges run where they do after the node's own code: not on the event loop if that does not.
    """
    node = task.node
    result: Any = [*commands] or {}

    async def again(_given: Any) -> Any:
        return result

    call = None if node.code.call is None else lambda _given: result
    code = replace(node.code, call=call, acall=None if node.code.acall is None else again, inject={})
    executor = node.executor if node.branches else "inline"
    return task._replace(node=replace(node, code=code, policy=None, executor=executor))


def as_cached(task: Task, event: Event) -> Event:
    """Return how a task ended, from how its stand-in did."""
    if isinstance(event, TaskDone):
        return TaskDone(task, make(Cached, event.writes))
    return event._replace(task=task)


def told_by(task: Task, values: dict[str, Any], network: Network, run: Run) -> tuple[Any, bool]:
    """Return what tells what a task is given from what others are: that itself, or what its policy says of it.

    Returns:
        That, and whether the task is given an instance that is built from it.
    """
    node = task.node
    ask = node.policy.cache.key_func  # type: ignore[union-attr]  # see `recalled`
    if task.arg is not MISSING:
        return task.arg if ask is None else ask(task.arg), False
    seen = node.view.read(values)
    if node.view.managed:
        seen.update(managed_values(node.view.managed, task.step, run.last_step))
    built = node.view.build is not None
    if ask is None:
        return seen, built
    return ask(node.view.present(seen, named(node.name, network)) if built else seen), False


def answered(task: Task, run: Run) -> bool:
    """Return whether a task, or a graph inside it, has been answered something, on which its result may depend."""
    own = f"{run.task_id(task)}#"
    inside = "|".join((*run.path, f"{task.id.rpartition(':')[2]}:{task.id}"))
    return any(question.startswith((own, inside)) for question in run.answers or ())
