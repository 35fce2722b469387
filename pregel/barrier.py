"""The barrier of a superstep: from what its tasks asked for to what changes, or an error and nothing changed."""

from __future__ import annotations

from collections import ChainMap
from typing import TYPE_CHECKING, Any

from pregel.channels.base import MISSING, ConcurrentUpdateError, InvalidUpdateError, Overwrite
from pregel.errors import InvalidConcurrentUpdateError, ReducerError
from pregel.task import Handled
from pregel.text import show, told
from pregel.types import START

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pregel.network import Network
    from pregel.node import Field, Join
    from pregel.task import Task, Writes

__all__ = ["Changes", "barrier", "consuming", "fold", "grouped"]


#: What a superstep changes, swapped in whole or not at all: the new value of each field that was written or cleared
#: (`MISSING` where it holds none any more), what each join that was touched has heard now, and the joins that fired.
Changes = tuple[dict[str, Any], "dict[Join, frozenset[str]]", "tuple[Join, ...]"]


def barrier(
    network: Network,
    values: Mapping[str, Any],
    heard: Mapping[Join, frozenset[str]],
    fading: Collection[str],
    tasks: Sequence[Task],
    results: Sequence[Writes],
) -> Changes:
    """Compute what a superstep changes.

    Args:
        network: The graph.
        values: The state before; it is read only.
        heard: What each join has heard before.
        fading: The fields that hold a value which is cleared when nothing is written.
        tasks: The tasks of the step in the order of application.
        results: What each of them asked for.

    Returns:
        The changes, for the machine to swap in.

    Raises:
        InvalidUpdateError: Updates that can't be applied together, or a reducer that raised; names field and nodes.
    """
    fields = network.fields
    changed: dict[str, Any] = {}
    if len(tasks) != 1 or not single(results[0].updates, fields, values, changed):
        changed = {}
        for name, given in grouped(update for writes in results for update in writes.updates).items():
            value = values.get(name, MISSING)
            try:
                changed[name] = fields[name].channel.apply(value, given)
            except Exception:  # noqa: BLE001 - done again slowly, to say whose update it was
                writers = [
                    task
                    for task, writes in zip(tasks, results, strict=True)
                    for key, _ in writes.updates
                    if key == name
                ]
                changed[name] = fold(network, name, value, given, writers)
    for name in fading:
        if name not in changed:
            changed[name] = fold(network, name, values[name], (), tasks)
    if network.joins:
        return changed, *arrivals(heard, tasks, results)
    return changed, {}, ()


def consuming(
    network: Network,
    values: dict[str, Any],
    heard: Mapping[Join, frozenset[str]],
    fading: Collection[str],
    tasks: Sequence[Task],
    results: Sequence[Writes],
) -> Changes:
    """Compute what a superstep changes where fields make nodes due: what did so is used up before it is written again.

    Raises:
        InvalidUpdateError: See `barrier`.
    """
    fields = network.fields
    used: dict[str, Any] = {}
    for task in tasks:
        for name in task.node.consumes:
            if name in values and (left := fields[name].channel.consume(values[name])) is not values[name]:
                used[name] = left
    if not used:
        return barrier(network, values, heard, fading, tasks, results)
    changed, now, fired = barrier(network, ChainMap(used, values), heard, fading, tasks, results)
    return {**used, **changed}, now, fired


def single(
    updates: Sequence[tuple[str, Any]],
    fields: Mapping[str, Field],
    values: Mapping[str, Any],
    changed: dict[str, Any],
) -> bool:
    """Apply the updates of a lone task, each to a field of its own, as most are; return whether that was all."""
    try:
        for name, update in updates:
            if name in changed:
                return False
            changed[name] = fields[name].channel.apply(values.get(name, MISSING), (update,))
    except Exception:  # noqa: BLE001 - done again slowly, to say what went wrong
        return False
    return True


def grouped(updates: Iterable[tuple[str, Any]]) -> dict[str, list[Any]]:
    """Return the updates of each field, in order."""
    groups: dict[str, list[Any]] = {}
    for name, update in updates:
        if name in groups:
            groups[name].append(update)
        else:
            groups[name] = [update]
    return groups


def arrivals(
    heard: Mapping[Join, frozenset[str]], tasks: Sequence[Task], results: Sequence[Writes]
) -> tuple[dict[Join, frozenset[str]], tuple[Join, ...]]:
    """Return what the joins have heard after these tasks, and which of them are complete (those start anew)."""
    touched: dict[Join, list[str]] = {}
    for task, writes in zip(tasks, results, strict=True):
        for join in () if type(writes) is Handled else task.node.joins:
            touched.setdefault(join, []).append(task.node.name)
    if not touched:
        return {}, ()
    now = {join: join.channel.apply(heard.get(join, MISSING), names) for join, names in touched.items()}
    fired = tuple(join for join, names in now.items() if join.channel.is_available(names))
    return {join: join.channel.consume(names) for join, names in now.items()}, fired


def fold(network: Network, name: str, value: Any, updates: Sequence[Any], writers: Sequence[Task]) -> Any:
    """Apply a superstep's updates to one field, and say whose updates it was if that fails.

    Raises:
        InvalidConcurrentUpdateError: Several updates compete; names the field, the nodes and their values.
        InvalidUpdateError: An update that the channel does not take.
        ReducerError: The reducer raised; names the field, the node and the types of both operands.
    """
    channel = network.fields[name].channel
    try:
        return channel.apply(value, updates)
    except ConcurrentUpdateError as error:
        by = "; ".join(f"{writer(task)} wrote {show(update)}" for task, update in zip(writers, updates, strict=True))
        raise InvalidConcurrentUpdateError(
            f"the field {name!r} of graph {network.name!r} got conflicting updates in superstep "
            f"{writers[0].step}: {by}. {str(error)[:1].upper()}{str(error)[1:]}"
        ) from error
    except InvalidUpdateError as error:
        nodes = ", ".join(dict.fromkeys(map(writer, writers)))
        raise InvalidUpdateError(
            f"the field {name!r} of graph {network.name!r}, written by {nodes}: {error}"
        ) from error
    except Exception as error:
        raise blamed(network, name, value, updates, writers, error) from error


def writer(task: Task) -> str:
    """Return how messages name who wrote an update."""
    if task.node.order >= 0:
        return f"node {task.node.name!r} (task {task.id}{task.about})"
    return "the input" if task.node.name == START else "the update from outside"


def blamed(
    network: Network, name: str, value: Any, updates: Sequence[Any], writers: Sequence[Task], error: Exception
) -> ReducerError:
    """Return the error of a reducer that raised, with the update at which it does (a reducer is pure: ask it again)."""
    channel = network.fields[name].channel
    for task, update in zip(writers, updates, strict=bool(updates)):
        right = update.value if isinstance(update, Overwrite) else update
        try:
            value = channel.apply(value, (update,))
        except Exception as again:  # noqa: BLE001 - any error is the one looked for
            return ReducerError(
                f"the reducer of field {name!r} of graph {network.name!r} raised {told(again)}, "
                f"folding an update of {writer(task)} ({type(right).__name__}) into the value ({type(value).__name__})"
            )
    if not updates:
        return ReducerError(
            f"the channel of field {name!r} of graph {network.name!r} raised {told(error)} in superstep "
            f"{writers[0].step}, which brought it no update"
        )
    nodes = ", ".join(dict.fromkeys(map(writer, writers)))
    return ReducerError(
        f"the reducer of field {name!r} of graph {network.name!r} raised {told(error)}, folding the "
        f"updates of {nodes} at once (its `fold`); one by one they are accepted"
    )
