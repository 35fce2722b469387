"""A thread as a document: its rows, as JSON with bytes in hexadecimal, read from a checkpointer and written to one."""

import dataclasses
from enum import Enum
from itertools import groupby

from pydantic import BaseModel

from pregel import Overwrite
from pregel.checkpoint.base import (
    Advance,
    BranchRow,
    CheckpointRow,
    Held,
    OpenBranch,
    PutCheckpoint,
    PutTask,
    PutValue,
    TaskRow,
    ValueRow,
)
from pregel.checkpoint.claim import lineage_of
from pregel.checkpoint.owner import is_dead, new_lease
from pregel.types import StateSnapshot

KINDS = {"branches": BranchRow, "checkpoints": CheckpointRow, "values": ValueRow, "tasks": TaskRow}


def rows_of(saver, thread_id):
    """Return all rows of a thread, by kind."""
    opened = saver.branches(thread_id)
    branches = [0, *(row.branch for row in opened)]
    namespaces = sorted({name for branch in branches for name in saver.namespaces(thread_id, branch, ())})
    checkpoints = sorted(
        (row for name in namespaces for row in saver.checkpoints(thread_id, name)), key=lambda row: row.seq
    )
    values = {
        value
        for row in checkpoints
        for value in saver.values(thread_id, lineage_of(row.branch, row.seq, opened), row.namespace)
    }
    tasks = [
        task
        for branch in branches
        for name in namespaces
        if (head := saver.head(thread_id, branch, name)) is not None
        for task in saver.tasks(thread_id, branch, name, head + 1)
    ]
    return {
        "branches": opened,
        "checkpoints": checkpoints,
        "values": sorted(values, key=lambda row: (row.seq, row.field)),
        "tasks": tasks,
    }


def dumped(rows):
    """Return rows as a JSON document."""
    return {kind: [list(map(cell_of, row)) for row in found] for kind, found in rows.items()}


def cell_of(value):
    """Return a value of a row in the words of JSON."""
    if isinstance(value, bytes):
        return value.hex()
    return list(value) if isinstance(value, tuple) else value


def undumped(document):
    """Return the rows of a JSON document."""
    rows = {}
    for kind, row_type in KINDS.items():
        rows[kind] = []
        for cells in document[kind]:
            row = row_type(*cells)
            changes = {"blob": bytes.fromhex(row.blob)} if "blob" in row._fields else {}
            if "namespace" in row._fields:
                changes["namespace"] = tuple(row.namespace)
            rows[kind].append(row._replace(**changes))
    return rows


def restore(saver, thread_id, rows):
    """Write rows to a checkpointer, commit by commit, as the runs did that made them."""
    lease = new_lease()
    assert saver.claim(thread_id, lease, 60.0, is_dead) == Held(thread_id, 0)
    heads = {}
    opened = {row.branch: row for row in rows["branches"]}
    values = {key: list(found) for key, found in groupby(rows["values"], key=lambda row: row.seq)}
    for row in rows["checkpoints"]:
        place = (row.branch, row.namespace)
        branch = opened.pop(row.branch, None)
        writes = [] if branch is None else [OpenBranch(branch)]
        writes += [Advance(*place, heads.get(place), row.step, row.seq), PutCheckpoint(row)]
        writes += map(PutValue, values.get(row.seq, ()))
        saver.write(thread_id, lease.token, writes)
        heads[place] = row.step
    saver.write(thread_id, lease.token, [PutTask(row) for row in rows["tasks"]])
    saver.release(thread_id, lease.token)


# -- what it reads as --------------------------------------------------------------------------------------------------


def told(snapshot):
    """Return a snapshot as a JSON document, without times."""
    return {
        "config": plain(snapshot.config),
        "parent": plain(snapshot.parent_config),
        "metadata": plain(snapshot.metadata),
        "values": plain(snapshot.values),
        "next": list(snapshot.next),
        "tasks": [
            {
                "id": task.id,
                "name": task.name,
                "error": task.error,
                "interrupts": plain(task.interrupts),
                "state": told(task.state) if isinstance(task.state, StateSnapshot) else plain(task.state),
                "result": plain(task.result),
            }
            for task in snapshot.tasks
        ],
    }  # fmt: skip


def plain(value):
    """Return a value in the words of JSON, with the names of types that JSON does not have."""
    if value is None or type(value) in {bool, int, float, str}:
        return value
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, dict) and all(type(key) is str for key in value):
        return {key: plain(inner) for key, inner in value.items()}
    return {type(value).__name__: inside(value)}


#: Fields that models have got since the first release: shown where they are set, so that what was stored before reads
#: as it did.
SINCE = {"invalid_tool_calls", "response_metadata"}


def dumped_model(value):
    """Return the fields of a pydantic model."""
    return {name: held for name, held in value.model_dump().items() if held or name not in SINCE}


def inside(value):
    """Return what a value of a type that JSON does not have holds."""
    held = str(value)
    if isinstance(value, dict):
        held = plain(list(value.items()))
    elif isinstance(value, (tuple, set, frozenset)):
        held = [plain(inner) for inner in (value if isinstance(value, tuple) else sorted(value))]
    elif isinstance(value, BaseModel):
        held = plain(dumped_model(value))
    elif isinstance(value, Overwrite):
        held = plain(value.value)
    elif dataclasses.is_dataclass(value):
        held = {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    elif isinstance(value, Enum):
        held = value.value
    elif isinstance(value, bytes):
        held = value.hex()
    return held
