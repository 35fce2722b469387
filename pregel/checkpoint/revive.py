"""What is stored, as a version of the graph that may be another one understands it, or an error that says why not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pregel.channels.base import Overwrite
from pregel.commands import Standing
from pregel.errors import GraphChangedError, nearest
from pregel.node import join_name
from pregel.plan import Due
from pregel.task import Task, Writes
from pregel.text import show
from pregel.types import Breakpoint, Migration, Send

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pregel.checkpoint.record import Record, TaskRecord
    from pregel.network import Network
    from pregel.node import Field

__all__ = ["migration_for", "revived_standing", "revived_task", "revived_values"]

NO_CHANGE = Migration()


def migration_for(record: Record, fingerprint: str, migrations: Sequence[Migration]) -> Migration | None:
    """Return the migration that a stored checkpoint needs and has, if it has one."""
    if record.fingerprint == fingerprint:
        return None
    return next((each for each in migrations if each.of in {None, record.fingerprint}), None)


def revived_values(
    values: dict[str, Any],
    kinds: Mapping[str, str],
    network: Network,
    migration: Migration | None,
    record: Record,
) -> dict[str, Any]:
    """Return stored values as values of this graph, in its order; fields that are new hold what a run starts with.

    Raises:
        GraphChangedError: A stored field is gone, or has another kind of channel, and no migration converts the state.
    """
    holder = "the thread holds"
    if migration is not None and migration.state is not None:
        values = migration.state(dict(values))
        if not isinstance(values, dict):
            raise GraphChangedError(
                f"the migration of graph {network.name!r} returned {type(values).__name__}, not the dict of its values"
            )
        kinds = {}
        holder = "the migration has made"
    for name in values:
        rule = network.fields.get(name)
        if rule is None:
            raise GraphChangedError(
                f"{holder} a value of the field {name!r}, which graph {network.name!r} does not have."
                f"{nearest(name, network.fields)} {remedy(record)}"
            )
        kind = type(rule.channel).__name__
        if kinds.get(name, kind) != kind:
            raise GraphChangedError(
                f"the field {name!r} of graph {network.name!r} was stored by a {kinds[name]} and is a {kind} now. "
                f"{remedy(record)}"
            )
    fresh = {name: value for name, value in network.initial_values().items() if name not in kinds}
    found = {**fresh, **values}
    return {name: found[name] for name in network.fields if name in found}


def revived_standing(record: Record, network: Network, step: int, migration: Migration | None) -> Standing:
    """Return where a stored run stands as tasks of this graph.

    Args:
        record: The checkpoint.
        network: The graph.
        step: The superstep that comes next.
        migration: How names changed.

    Raises:
        GraphChangedError: A node that is due, or a join that has heard something, is gone.
    """
    renamed = (migration or NO_CHANGE).nodes
    nodes = network.nodes

    def known(name: str) -> str:
        return renamed_node(name, network, renamed, record)

    # A task whose node has another name now keeps its id, by which its row, its questions and its graph are stored.
    tasks = tuple(
        Task(
            nodes[known(due.node)],
            step,
            place,
            due.arg,
            due.key or (f"{step}:{place}:{due.node}" if due.node in renamed else None),
        )
        for place, due in enumerate(record.tasks)
    )
    held = Due(map(known, record.held.nodes), [Send(known(send.node), send.arg) for send in record.held.sends])
    before = {new: old for old, new in renamed.items()}
    joins = {
        join_name([before.get(name, name) for name in join.sources], before.get(join.target, join.target)): join
        for node in nodes.values()
        for join in node.joins
    }
    heard = {}
    for label, names in record.heard.items():
        if label not in joins:
            raise GraphChangedError(
                f"the join {label!r} has heard from {', '.join(map(repr, sorted(names)))}, and graph {network.name!r} "
                f"does not have it. {remedy(record)}"
            )
        heard[joins[label]] = frozenset(renamed.get(each, each) for each in names)
    pause = record.pause
    if pause is not None:
        pause = Breakpoint(pause.when, tuple(renamed.get(each, each) for each in pause.nodes))
    kept = {name: value for name, value in record.kept.items() if name in network.fields}
    return Standing(tasks, held, heard, kept, pause)


def revived_task(ended: TaskRecord, network: Network, migration: Migration | None, record: Record) -> TaskRecord:
    """Return how a task of an open superstep ended as this graph understands it.

    Args:
        ended: What is stored.
        network: The graph.
        migration: How names changed.
        record: The checkpoint before the superstep.

    Raises:
        GraphChangedError: It updated a field that is gone or takes other values now, or leads to a node that is gone.
            A migration converts the state of a barrier, never the update that a task of an older version made.
    """
    outcome = ended.outcome
    if not isinstance(outcome, Writes):
        return ended
    renamed = (migration or NO_CHANGE).nodes
    for name, update in outcome.updates:
        rule = network.fields.get(name)
        if rule is None:
            raise GraphChangedError(
                f"a task of the superstep that is open on the thread has updated the field {name!r}, which graph "
                f"{network.name!r} does not have.{nearest(name, network.fields)} {remedy(record)}"
            )
        check_update(rule, update, network, record)
    goto = tuple(renamed_node(name, network, renamed, record) for name in outcome.goto)
    sends = tuple(Send(renamed_node(send.node, network, renamed, record), send.arg) for send in outcome.sends)
    return replace(ended, outcome=outcome._replace(goto=goto, sends=sends))


def check_update(rule: Field, update: Any, network: Network, record: Record) -> None:
    """Check that a field takes an update that another version of the graph made.

    Raises:
        GraphChangedError: It does not.
    """
    check = rule.check
    if type(update) is Overwrite:
        update, check = update.value, rule.check_whole or rule.check
    if check is None or type(update) is rule.exact:
        return
    try:
        check(update)
    except TypeError as error:
        raise GraphChangedError(
            f"a task of the superstep that is open on the thread has updated the field {rule.name!r} with "
            f"{show(update)}, which graph {network.name!r} does not take: {error}. {remedy(record)}"
        ) from error


def renamed_node(name: str, network: Network, renamed: Mapping[str, str], record: Record) -> str:
    """Return the name that a node has now.

    Raises:
        GraphChangedError: There is no such node.
    """
    found = renamed.get(name, name)
    if found not in network.nodes:
        raise GraphChangedError(
            f"node {found!r} is due on the thread, and graph {network.name!r} does not have it."
            f"{nearest(found, network.nodes)} {remedy(record)}"
        )
    return found


def remedy(record: Record) -> str:
    """Return what to do about a checkpoint of another version."""
    return (
        "It was stored by another version of the graph "
        f"(fingerprint {record.fingerprint!r}). Finish the thread with that version, or say what has become of it: "
        "compile(migrations=[Migration(nodes={old: new}, state=convert)])"
    )
