"""What is stored of a thread, as its author reads it: `StateSnapshot`s."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from pregel.checkpoint.claim import LATEST, lineage_of
from pregel.checkpoint.record import unpack_task
from pregel.checkpoint.restore import read_record, read_values, unsealed
from pregel.checkpoint.revive import migration_for, revived_standing, revived_task, revived_values
from pregel.errors import InvalidConfigError, nearest
from pregel.opening import row_at
from pregel.reporter import shaped
from pregel.task import Writes
from pregel.types import PregelTask, StateSnapshot

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pregel.checkpoint.base import Checkpointer, CheckpointRow
    from pregel.checkpoint.record import Record, TaskRecord
    from pregel.main import Pregel
    from pregel.persistence import Address, Format
    from pregel.task import Task

__all__ = ["graphs_at", "history", "located", "snapshot"]

PAGE = 64  # checkpoints read at once


def graphs_at(graph: Pregel, address: Address) -> tuple[Pregel, ...]:
    """Return the graphs on the path that an address names: this one first, the one that is meant last.

    Raises:
        InvalidConfigError: A label of the path names no node that is a graph.
    """
    graphs = [graph]
    for label in address.namespace:
        stored = graphs[-1]._persistence  # noqa: SLF001 - the state of a graph
        node = label.partition(":")[0]
        # A graph whose node has another name now is stored where it was.
        names = (node, *(each.nodes[node] for each in stored.migrations if node in each.nodes))
        child = next((stored.children[name] for name in names if name in stored.children), None)
        if child is None:
            raise InvalidConfigError(
                f"config['configurable']['checkpoint_ns'] names {label!r}, and graph {graphs[-1].name!r} has no node "
                f"{node!r} that is a graph.{nearest(node, stored.children)}"
            )
        graphs.append(child)
    return tuple(graphs)


def located(saver: Checkpointer, address: Address) -> CheckpointRow | None:
    """Return the checkpoint that an address names.

    Where it names none it is the newest one; of a graph inside the outermost one the newest that can be seen from the
    newest of that one, for another branch may have one that is newer still. None where there is none at all.

    Raises:
        CheckpointNotFoundError: There is no such checkpoint.
    """
    if address.checkpoint is not None or not address.namespace:
        return row_at(saver, address)
    newest = saver.latest(address.thread_id)
    if newest is None:
        return None
    lineage = lineage_of(newest.branch, LATEST, saver.branches(address.thread_id))
    return saver.visible_checkpoint(address.thread_id, lineage, address.namespace)


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
        configurable: dict[str, Any] = {"thread_id": address.thread_id}
        if address.namespace:
            configurable["checkpoint_ns"] = address.namespace
        return StateSnapshot({}, (), {"configurable": configurable}, None, None, None, (), ())
    stored = graph._persistence  # noqa: SLF001 - the state of a graph
    form: Format = stored.format  # type: ignore[assignment]  # every graph that can be stored has one
    network, codec, thread_id = graph._network, form.codec, address.thread_id  # noqa: SLF001 - as above
    origin = saver.origin(address.thread_id)
    record = read_record(row, origin, codec)
    lineage = lineage_of(row.branch, row.seq, saver.branches(thread_id))
    migration = migration_for(record, form.fingerprint, stored.migrations)
    values = revived_values(
        *read_values(saver, thread_id, lineage, row.namespace, codec)[:2], network, migration, record
    )
    standing = revived_standing(record, network, row.step + 1, migration)
    ended = {
        each.task: revived_task(unpack_task(unsealed(each, origin), codec), network, migration, record)
        for each in saver.tasks(thread_id, row.branch, row.namespace, row.step + 1)
    }
    tasks = tuple(
        read_task(task, ended.get(task.id), child_state(graph, saver, address, row, task, subgraphs=subgraphs))
        for task in standing.tasks
    )
    return StateSnapshot(
        values,
        tuple(task.name for task in tasks if task.result is None),
        address.config(row.branch, row.step),
        metadata_of(row, record),
        datetime.fromtimestamp(row.created, UTC).isoformat(),
        None if record.parent is None else address.config(*record.parent),
        tasks,
        tuple(reason for task in tasks for reason in task.interrupts),
    )


def metadata_of(row: CheckpointRow, record: Record) -> dict[str, Any]:
    """Return what a snapshot has as metadata."""
    metadata = {**record.metadata, "source": record.source, "step": row.step}
    if record.dropped:
        metadata["dropped"] = list(record.dropped)
    if record.pause is not None:
        metadata["pause"] = record.pause
    return metadata


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
    # What stood beside this checkpoint is what was stored until the next one of the graph around.
    lineage = lineage_of(row.branch, seen_until(saver, address.thread_id, row), saver.branches(address.thread_id))
    found = saver.visible_checkpoint(address.thread_id, lineage, inner.namespace)
    if found is None:
        return None
    if not subgraphs:
        return inner.config(found.branch, found.step)
    return snapshot(child, saver, inner, found, subgraphs=True)


def seen_until(saver: Checkpointer, thread_id: str, row: CheckpointRow) -> int:
    """Return the `seq` up to which graphs inside one are as they were before its next checkpoint."""
    head = saver.head(thread_id, row.branch, row.namespace) or row.step
    for step in range(row.step + 1, head + 1):  # the next one, as a rule: a run may store its end only
        following = saver.checkpoint(thread_id, row.branch, row.namespace, step)
        if following is not None:
            return following.seq - 1
    return LATEST


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

    Raises:
        InvalidConfigError: `before` names another thread, or `limit` is no number of snapshots.
        CheckpointNotFoundError: There is no such checkpoint.
    """
    if limit is not None and (type(limit) is not int or limit < 0):
        raise InvalidConfigError(f"limit of get_state_history takes a number of snapshots or None, not {limit!r}")
    bound: int | None = None
    if address.checkpoint is not None:
        bound = row_at(saver, address).seq + 1  # type: ignore[union-attr]  # one that is named is there
    if before is not None:
        if before.thread_id != address.thread_id:
            raise InvalidConfigError(
                f"before names the thread {before.thread_id!r}, and the history is that of {address.thread_id!r}"
            )
        at = located(saver, before)
        if at is not None:
            bound = at.seq if bound is None else min(bound, at.seq)
    origin = saver.origin(address.thread_id)
    return islice(
        (
            snapshot(graph, saver, address, row, subgraphs=False)
            for row in rows_before(saver, address, bound)
            if holds(graph, row, filters, origin)
        ),
        limit,
    )


def rows_before(saver: Checkpointer, address: Address, bound: int | None) -> Iterator[CheckpointRow]:
    """Yield the checkpoints of a graph, newest first, those with a smaller `seq`."""
    while True:
        rows = saver.checkpoints(address.thread_id, address.namespace, before=bound, limit=PAGE)
        yield from rows
        if len(rows) < PAGE:
            return
        bound = rows[-1].seq


def holds(graph: Pregel, row: CheckpointRow, filters: Mapping[str, Any] | None, origin: str) -> bool:
    """Return whether the metadata of a checkpoint is what is looked for."""
    if not filters:
        return True
    form: Format = graph._persistence.format  # type: ignore[assignment]  # noqa: SLF001 - the state of a graph
    metadata = metadata_of(row, read_record(row, origin, form.codec))
    return all(key in metadata and metadata[key] == value for key, value in filters.items())
