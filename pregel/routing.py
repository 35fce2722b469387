"""Where a task leads: what a path sees, and what its answer means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pregel.barrier import fold, grouped
from pregel.channels.base import MISSING, Overwrite
from pregel.channels.last_value import LastValue
from pregel.errors import UnknownTargetError, nearest
from pregel.managed import managed_values
from pregel.task import Writes, make
from pregel.text import show
from pregel.types import Send
from pregel.writes import destinations

if TYPE_CHECKING:
    from pregel.network import Network
    from pregel.node import Branch
    from pregel.task import Task

__all__ = ["named", "path_view", "routed"]


def named(node: str, network: Network) -> str:
    """Return how messages name a node."""
    return f"node {node!r} of graph {network.name!r}"


def edge_named(branch: Branch, task: Task, network: Network) -> str:
    """Return how messages name a conditional edge."""
    return f"the conditional edge {branch.code.name!r} of {named(task.node.name, network)}"


def path_view(
    task: Task,
    seen: dict[str, Any] | None,
    branch: Branch,
    writes: Writes,
    values: dict[str, Any],
    network: Network,
    limit: int,
) -> Any:
    """Return what a path is given: the task's view of the state with the task's own writes applied.

    Args:
        task: The task that has run.
        seen: The values that its node was given, where it read the state.
        branch: The conditional edge.
        writes: What the task asked for.
        values: The state of the last barrier.
        network: The graph.
        limit: How many supersteps may run, for managed values.

    Raises:
        NodeInputError: The path takes an instance that the state does not make.
    """
    view, fields = branch.view, network.fields
    # The node is done with its dict: no second copy for the paths that read the same fields.
    base = seen if seen is not None and view is task.node.view else view.read(values)
    if view.managed:
        base.update(managed_values(view.managed, task.step, limit))
    wanted = view.fields
    folded: list[tuple[str, Any]] = []
    for name, update in writes.updates:
        if wanted is not None and name not in wanted:
            continue
        if type(fields[name].channel) is LastValue and type(update) is not Overwrite:
            base[name] = update  # two of them conflict at the barrier, unless a sibling overwrites them
        else:
            folded.append((name, update))
    if folded:
        for name, updates in grouped(folded).items():
            base[name] = fold(network, name, values.get(name, MISSING), updates, [task] * len(updates))
    for field in view.guarded:
        if field.name in base and not field.channel.is_available(base[field.name]):
            del base[field.name]
    return base if view.build is None else view.present(base, edge_named(branch, task, network))


def routed(choice: Any, branch: Branch, writes: Writes, task: Task, network: Network) -> Writes:
    """Return a task's writes with the targets that a path answered.

    Raises:
        UnknownTargetError: The answer is no target.
    """
    path_map = branch.path_map
    if path_map is not None:
        target = path_map.get(choice) if type(choice) is str else None
    else:
        target = choice if branch.targets is None else None
    if type(target) is str and target in network.nodes:  # the common case: nothing to explain
        return make(Writes, (writes.updates, (*writes.goto, target), writes.sends, writes.escapes))
    where = edge_named(branch, task, network)
    goto, sends = list(writes.goto), list(writes.sends)
    destinations(mapped(choice, branch, where), network, where, branch.targets, goto, sends)
    return make(Writes, (writes.updates, tuple(goto), tuple(sends), writes.escapes))


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
