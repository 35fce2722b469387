"""What is stored of a thread, as its author reads it: `StateSnapshot`s."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from pregel.checkpoint.claim import LATEST, lineage_of
from pregel.checkpoint.record import unpack_task
from pregel.checkpoint.restore import read_record, read_values, unsealed
from pregel.checkpoint.revive import migration_for, revived_standing, revived_values
from pregel.errors import InvalidConfigError, nearest
from pregel.opening import row_at
from pregel.persistence import Address
from pregel.reporter import shaped
from pregel.task import Writes
from pregel.types import PregelTask, StateSnapshot

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pregel.checkpoint.base import Checkpointer, CheckpointRow
    from pregel.checkpoint.record import TaskRecord
    from pregel.main import Pregel
    from pregel.task import Task

__all__ = ["graph_at", "history", "snapshot"]

PAGE = 64  # checkpoints read at once


def graph_at(graph: Pregel, address: Address) -> Pregel:
    """Return the graph that an address names: this one, or one inside it.

    Raises:
        InvalidConfigError: A label of the path names no node that is a graph.
    """
    for label in address.namespace:
        node = label.partition(":")[0]
        children: Mapping[str, Pregel] = graph._persistence.children  # noqa: SLF001 - the state of a graph
        if node not in children:
            raise InvalidConfigError(
                f"config['configurable']['checkpoint_ns'] names {label!r}, and graph {graph.name!r} has no node {node!r} "
                f"that is a graph.{nearest(node, children)}"
            )
        graph = children[node]
    return graph


def snapshot(
    graph: Pregel, saver: Checkpointer, address: Address, row: CheckpointRow | None, *, subgraphs: bool
) -> StateSnapshot:
    """Return where a graph stands at a checkpoint.

    Args:
        graph: The graph that the address names.
        saver: Where it is stored.
        address: The thread, and the path to the graph.
        row: The checkpoint; None where there is none.
        subgraphs: Whether the graphs that its tasks run are read as well.

    Raises:
        DecodeError: What is stored is damaged.
        GraphChangedError: It belongs to another version of the graph.
    """
    if row is None:
        config = {"configurable": {"thread_id": address.thread_id}}
        return StateSnapshot({}, (), config, None, None, None, (), ())
    form, migrations = graph._persistence.format, graph._persistence.migrations  # noqa: SLF001 - the state of a graph
    codec = form.codec  # type: ignore[union-attr]  # every graph that can be stored has one
    network = graph._network  # noqa: SLF001 - the state of a graph
    record = read_record(row, codec)
    branches = saver.branches(address.thread_id)
    stored, kinds, _ = read_values(
        saver, address.thread_id, lineage_of(row.branch, row.seq, branches), row.namespace, codec
    )
    migration = migration_for(record, form.fingerprint, migrations)  # type: ignore[union-attr]
    values = revived_values(stored, kinds, network, migration, record)
    standing = revived_standing(record, network, row.step + 1, migration)
    rows = saver.tasks(address.thread_id, row.branch, row.namespace, row.step + 1)
    ended = {each.task: unpack_task(unsealed(each), codec) for each in rows}
    tasks = tuple(
        read_task(task, ended.get(task.id), child_state(graph, saver, address, row, task, subgraphs=subgraphs))
        for task in standing.tasks
    )
    parent = record.parent
    return StateSnapshot(
        values,
        tuple(task.name for task in tasks if task.result is None),
        address.config(row.branch, row.step),
        {
            **record.metadata,
            "source": record.source,
            "step": row.step,
            **({"dropped": list(record.dropped)} if record.dropped else {}),
            **({"pause": record.pause} if record.pause is not None else {}),
        },
        datetime.fromtimestamp(row.created, UTC).isoformat(),
        None if parent is None else address.config(*parent),
        tasks,
        tuple(reason for task in tasks for reason in task.interrupts),
    )


def read_task(task: Task, ended: TaskRecord | None, state: Any) -> PregelTask:
    """Return a due task with how it ended, if it did."""
    shown = PregelTask(task.id, task.node.name, state=state)
    if ended is None:
        return shown
    outcome = ended.outcome
    if isinstance(outcome, Writes):
        return shown._replace(result=shaped(outcome.updates) or {})
    return shown._replace(error=outcome) if isinstance(outcome, str) else shown._replace(interrupts=outcome)


def child_state(
    graph: Pregel, saver: Checkpointer, address: Address, row: CheckpointRow, task: Task, *, subgraphs: bool
) -> Any:
    """Return the state of the graph that a task runs, or the config to read it; None where it has not begun."""
    child = graph._persistence.children.get(task.node.name)  # noqa: SLF001 - the state of a graph
    if child is None:
        return None
    name = task.id.rpartition(":")[2]
    label = name if child.remembers else f"{name}:{task.id}"
    inner = replace(address, checkpoint=None, namespace=(*address.namespace, label))
    branches = saver.branches(address.thread_id)
    found = saver.visible_checkpoint(
        address.thread_id, lineage_of(row.branch, LATEST, branches), inner.namespace
    )
    if found is None:
        return None
    if not subgraphs:
        return {"configurable": {"thread_id": address.thread_id, "checkpoint_ns": inner.namespace}}
    return snapshot(child, saver, inner, found, subgraphs=True)


def history(
    graph: Pregel,
    saver: Checkpointer,
    address: Address,
    *,
    filters: Mapping[str, Any] | None,
    before: Address | None,
    limit: int | None,
) -> Iterator[StateSnapshot]:
    """Yield where a graph stood, newest first, on all branches.

    Args:
        graph: The graph that the address names.
        saver: Where it is stored.
        address: The thread, and the path to the graph; with a checkpoint, nothing newer is told.
        filters: What the metadata must hold.
        before: A checkpoint; only older ones are told.
        limit: How many are told at most.
    """

    def told() -> Iterator[StateSnapshot]:
        bound: int | None = None
        if address.checkpoint is not None:
            at = row_at(saver, address)
            bound = None if at is None else at.seq + 1
        if before is not None:
            at = row_at(saver, replace(before, namespace=address.namespace))
            bound = None if at is None else at.seq
        while True:
            rows = saver.checkpoints(address.thread_id, address.namespace, before=bound, limit=PAGE)
            for row in rows:
                shown = snapshot(graph, saver, address, row, subgraphs=False)
                if all((shown.metadata or {}).get(key) == value for key, value in (filters or {}).items()):
                    yield shown
            if len(rows) < PAGE:
                return
            bound = rows[-1].seq

    return islice(told(), limit)
