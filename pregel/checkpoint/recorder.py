"""What one graph of a run stores: the machine's commits as rows."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Any, Final

from pregel.channels.base import MISSING
from pregel.checkpoint.base import (
    Advance,
    CheckpointRow,
    PutCheckpoint,
    PutTask,
    PutValue,
    TaskRow,
    ValueRow,
)
from pregel.checkpoint.base import DropTasks as DropRows
from pregel.checkpoint.patch import apply, difference
from pregel.checkpoint.record import DueTask, Record, pack_record, pack_task
from pregel.checkpoint.restore import Sizes, folded, pack_patch, pack_value, patch_of, sealed
from pregel.superstep import CommitBarrier, CommitTask, DropTasks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pregel.checkpoint.base import Namespace, Write
    from pregel.checkpoint.claim import Claim
    from pregel.codec import Codec
    from pregel.network import Network
    from pregel.node import Field
    from pregel.superstep import Standing

__all__ = ["Recorder"]

# Patches may grow to so many times the last whole value before a whole one is written: the whole ones add up to half of
# what the patches take, and reading a field costs at most what it holds, twice.
GROWTH: Final = 2
# Below that many bytes a field is not worth a second look.
WORTHWHILE: Final = 1_024


class Recorder:
    """Stores what one graph commits.

    Args:
        claim: The run's hold on its thread.
        namespace: The path to the graph.
        network: The graph.
        codec: Encodes values.
        fingerprint: Of the graph.
        metadata: What the run's config has as metadata.
        around: The recorder of the graph whose node this one is.
        owner: The task that runs this graph.
    """

    def __init__(
        self,
        claim: Claim,
        namespace: Namespace,
        network: Network,
        codec: Codec,
        *,
        fingerprint: str,
        metadata: Mapping[str, Any],
        around: Recorder | None = None,
        owner: str | None = None,
    ) -> None:
        self.claim = claim
        self.namespace = namespace
        self.network = network
        self.codec = codec
        self.fingerprint = fingerprint
        self.metadata = metadata
        self.around = around
        self.owner = owner
        self.blocking = claim.blocking
        #: The head on this branch, and the checkpoint before the next one.
        self.head: int | None = None
        self.parent: tuple[int, int] | None = None
        self.origin = 0
        #: What is stored of each field that has a row.
        self.sizes: dict[str, Sizes] = {}
        #: The rows of the open superstep, by task: what an edit of the state carries over.
        self.rows: dict[str, bytes] = {}
        #: The answers that open tasks have got, by task.
        self.answers: dict[str, dict[str, Any]] = {}
        # For a run that writes at its end: the last barrier, and the values that the changed fields have in the store.
        self.latest: CommitBarrier | None = None
        self.stored_values: dict[str, Any] = {}
        self.final_values: dict[str, Any] = {}
        self.overwritten: set[str] = set()
        self.open_tasks: dict[str, CommitTask] = {}
        self.dropped = False

    def commit(self, command: CommitBarrier | CommitTask | DropTasks) -> None:
        """Store what the machine says; durable at once or later, as the run wants it.

        Raises:
            EncodeError: A value can't be stored; nothing of the command is.
            ConcurrentRunError: Another run has the thread.
            Exception: The storage failed.
        """
        if self.claim.keeps_until_end:
            self.keep(command)
        else:
            self.claim.write(self.writes(command))

    def writes(self, command: CommitBarrier | CommitTask | DropTasks) -> list[Write]:
        """Return what a command writes."""
        if type(command) is CommitBarrier:
            return self.barrier(command, command.before, command.overwritten)
        if type(command) is CommitTask:
            return [self.task(command)]
        self.rows.clear()
        return [DropRows(self.claim.branch, self.namespace, command.step)]

    def barrier(self, command: CommitBarrier, before: Mapping[str, Any], overwritten: Iterable[str]) -> list[Write]:
        """Return the transaction of a barrier."""
        claim, namespace, step = self.claim, self.namespace, command.step
        branch = claim.branch
        seq = next(claim.seqs)
        if command.source == "input":
            self.origin = step
        record = Record(
            command.source,
            self.parent,
            self.origin,
            **standing_fields(command.standing),
            fingerprint=self.fingerprint,
            metadata=self.metadata,
            dropped=command.dropped,
            journal=command.journal,
            escapes=command.escapes,
            owner=self.owner,
        )
        blob = sealed(pack_record(record, self.codec), (branch, namespace, step))
        changed = command.changed
        if self.parent is None:
            changed = {**self.seeds(), **changed}
        around = self.around
        writes: list[Write] = [
            Advance(branch, namespace, self.head, step, seq)
            if around is None
            else Advance(branch, namespace, self.head, step, seq, around.root().head, check_root=True),
            PutCheckpoint(CheckpointRow(branch, namespace, step, seq, time(), blob)),
        ]
        for name, value in changed.items():
            rule = self.network.fields[name]
            if rule.channel.tracked:
                old = before.get(name, MISSING)
                writes.append(PutValue(self.value(rule, old, value, step, seq, grown=name not in overwritten)))
        if self.rows:  # of the superstep after the head, also where a run writes at its end and has gone on from there
            writes.append(DropRows(branch, namespace, (self.head or 0) + 1))
            for task in command.carried:
                if task in self.rows:
                    row = self.task_row(step + 1, task, self.rows[task])
                    writes.append(PutTask(row))
            self.rows = {task: blob for task, blob in self.rows.items() if task in command.carried}
            self.answers = {task: kept for task, kept in self.answers.items() if task in self.rows}
        self.head = step
        self.parent = (branch, step)
        return writes

    def seeds(self) -> dict[str, Any]:
        """Return the values that the run began with and that a later version of the graph might begin without."""
        return {
            name: value
            for name, value in self.network.initial_values().items()
            if self.network.fields[name].channel.tracked and not is_empty(value)
        }

    def value(self, rule: Field, old: Any, value: Any, step: int, seq: int, *, grown: bool) -> ValueRow:
        """Return the row of a field that changed: a patch where that is less, else the whole value."""
        name = rule.name
        claim, codec = self.claim, self.codec
        place = (claim.branch, self.namespace, step, name)
        sizes = self.sizes.get(name)
        if sizes is not None and old is not MISSING and value is not MISSING:
            patch = difference(old, value, grown=grown and bool(getattr(rule.channel, "appends", False)))
            if patch is not None:
                payload = pack_patch(patch, name, codec)
                if sizes.patches + len(payload) <= GROWTH * max(sizes.whole, WORTHWHILE):
                    sizes.patches += len(payload)
                    return ValueRow(*place[:2], name, step, seq, False, sealed(payload, place))  # noqa: FBT003 - a row
                if claim.together is None:
                    value = self.grown_value(name, payload)
        payload = pack_value(value, type(rule.channel).__name__, name, codec)
        self.sizes[name] = Sizes(len(payload))
        return ValueRow(*place[:2], name, step, seq, True, sealed(payload, place))  # noqa: FBT003 - a row

    def grown_value(self, name: str, patch: bytes) -> Any:
        """Return the whole value of a field, from what is stored of it and the newest patch.

        The live value would carry what nodes changed in place, which no update ever said.
        """
        self.claim.flush()
        rows = [
            row
            for row in self.claim.saver.values(self.claim.thread_id, self.claim.lineage, self.namespace)
            if row.field == name
        ]
        value, _, _ = folded(rows, self.codec)
        return apply(value, patch_of(patch, self.codec))

    def task(self, command: CommitTask) -> Write:
        """Return the row of a task."""
        name = command.task.id
        payload = pack_task(command.outcome, self.answers.get(name, {}), self.codec)
        self.rows[name] = payload
        return PutTask(self.task_row(command.task.step, name, payload), command.replaces)

    def task_row(self, step: int, name: str, payload: bytes) -> TaskRow:
        """Return a row of a superstep's task."""
        place = (self.claim.branch, self.namespace, step, name)
        return TaskRow(*place, sealed(payload, place))

    def root(self) -> Recorder:
        """Return the recorder of the outermost graph."""
        return self if self.around is None else self.around.root()

    def keep(self, command: CommitBarrier | CommitTask | DropTasks) -> None:
        """Take what a run commits that writes at its end: only what it leaves behind is kept."""
        self.claim.pending[self] = None
        if type(command) is CommitTask:
            self.open_tasks[command.task.id] = command
            return
        self.open_tasks.clear()
        if type(command) is DropTasks:
            self.dropped = self.latest is None
            return
        if self.latest is not None:
            command = command._replace(journal=(*self.latest.journal, *command.journal), dropped=self.latest.dropped)
        if command.source == "input":
            self.origin = command.step
        for name, value in command.changed.items():
            self.stored_values.setdefault(name, command.before.get(name, MISSING))
            self.final_values[name] = value
        self.overwritten |= command.overwritten
        self.latest = command

    def remaining(self) -> list[Write]:
        """Return what a run that writes at its end has to write."""
        writes: list[Write] = []
        if self.latest is not None:
            command = self.latest._replace(changed=self.final_values)
            writes += self.barrier(command, self.stored_values, self.overwritten)
        elif self.dropped:
            writes += self.writes(DropTasks((self.head or 0) + 1))
        for command in self.open_tasks.values():
            writes.append(self.task(command._replace(replaces=command.task.id in self.rows)))
        return writes

    def discard(self) -> None:
        """Forget what a run that writes at its end would write: what it came to is in the hands of the graph around."""
        self.claim.pending.pop(self, None)


def standing_fields(standing: Standing) -> dict[str, Any]:
    """Return where a run stands as fields of a record."""
    return {
        "tasks": tuple(DueTask(task.node.name, task.arg, task.key) for task in standing.tasks),
        "held": standing.held,
        "heard": {join.name: names for join, names in standing.heard.items()},
        "kept": standing.kept,
        "pause": standing.pause,
    }


def is_empty(value: Any) -> bool:
    """Return whether a value is the empty one of its type, which every version of a graph would begin with."""
    return type(value) in EMPTY_KINDS and not value


EMPTY_KINDS: Final = {bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset}
