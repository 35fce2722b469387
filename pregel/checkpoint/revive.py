"""What is stored, as a version of the graph that may be another one understands it, or an error that says why not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pregel.channels.base import MISSING
from pregel.errors import GraphChangedError, nearest
from pregel.plan import Due
from pregel.superstep import Standing
from pregel.task import Task
from pregel.types import Breakpoint, Migration, Send

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pregel.checkpoint.record import Record
    from pregel.network import Network

__all__ = ["migration_for", "revived_standing", "revived_values"]

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
    """Return stored values as values of this graph; fields that are new hold what a run starts with.

    Raises:
        GraphChangedError: A stored field is gone, or has another kind of channel, and no migration converts the state.
    """
    if migration is not None and migration.state is not None:
        values = migration.state(dict(values))
        if not isinstance(values, dict):
            raise GraphChangedError(
                f"the migration of graph {network.name!r} returned {type(values).__name__}, not the dict of its values"
            )
        kinds = {}
    for name in values:
        rule = network.fields.get(name)
        if rule is None:
            raise GraphChangedError(
                f"the thread holds a value of the field {name!r}, which graph {network.name!r} does not have."
                f"{nearest(name, network.fields)} {remedy(record)}"
            )
        kind = type(rule.channel).__name__
        if kinds.get(name, kind) != kind:
            raise GraphChangedError(
                f"the field {name!r} of graph {network.name!r} was stored by a {kinds[name]} and is a {kind} now. "
                f"{remedy(record)}"
            )
    fresh = {name: value for name, value in network.initial_values().items() if name not in kinds}
    return {**fresh, **values}


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
        found = renamed.get(name, name)
        if found not in nodes:
            raise GraphChangedError(
                f"node {found!r} is due on the thread, and graph {network.name!r} does not have it."
                f"{nearest(found, nodes)} {remedy(record)}"
            )
        return found

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
    joins = {join.name: join for node in nodes.values() for join in node.joins}
    heard = {}
    for name, names in record.heard.items():
        label = join_label(name, renamed)
        if label not in joins:
            raise GraphChangedError(
                f"the join {label!r} has heard from {', '.join(map(repr, sorted(names)))}, and graph {network.name!r} "
                f"does not have it. {remedy(record)}"
            )
        heard[joins[label]] = frozenset(renamed.get(each, each) for each in names)
    pause = record.pause
    if pause is not None:
        pause = Breakpoint(pause.when, tuple(renamed.get(each, each) for each in pause.nodes))
    kept = {name: value for name, value in record.kept.items() if value is not MISSING}
    return Standing(tasks, held, heard, kept, pause)


def join_label(name: str, renamed: Mapping[str, str]) -> str:
    """Return the name of a join, "a+b->c", with its nodes renamed."""
    sources, _, target = name.partition("->")
    return f"{'+'.join(each(sources.split('+'), renamed))}->{renamed.get(target, target)}"


def each(names: Iterable[str], renamed: Mapping[str, str]) -> list[str]:
    """Return names as they are now."""
    return [renamed.get(name, name) for name in names]


def remedy(record: Record) -> str:
    """Return what to do about a checkpoint of another version."""
    return (
        "It was stored by another version of the graph "
        f"(fingerprint {record.fingerprint!r}). Finish the thread with that version, or say what has become of it: "
        "compile(migrations=[Migration(nodes={old: new}, state=convert)])"
    )
