"""What one graph of a run stores: the machine's commits as rows."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Any, Final

from pregel.channels.base import MISSING
from pregel.checkpoint.atend import AtEnd
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
from pregel.checkpoint.fields import alike, change, is_log
from pregel.checkpoint.patch import apply
from pregel.checkpoint.record import pack_barrier, pack_task
from pregel.checkpoint.restore import (
    COPIED,
    Sizes,
    pack_inherited,
    pack_patch,
    pack_value,
    patch_of,
    read_field,
)
from pregel.codec import seal
from pregel.commands import CommitBarrier, CommitTask, DropTasks
from pregel.errors import EncodeError
from pregel.task import make

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pregel.checkpoint.base import Namespace, Write
    from pregel.checkpoint.claim import Claim
    from pregel.checkpoint.patch import Patch
    from pregel.codec import Codec
    from pregel.network import Network
    from pregel.node import Field

__all__ = ["Recorder"]

# What reading a field costs beyond its value may grow to so many times that before the whole value is written again.
GROWTH: Final = 2
# Below that many bytes a field is not worth a second look.
WORTHWHILE: Final = 1_024


class Recorder(AtEnd):
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
        live: Gives the values of the run.
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
        live: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        super().__init__()
        self.claim = claim
        self.namespace = namespace
        self.network = network
        self.codec = codec
        self.fingerprint = fingerprint
        self.mark = bytes.fromhex(fingerprint)
        self.metadata = metadata
        self.packed_metadata: bytes | None = None
        self.around = around
        self.owner = owner
        self.live = live
        self.blocking = claim.blocking
        #: The head on this branch, and the checkpoint before the next one.
        self.head: int | None = None
        self.parent: tuple[int, int] | None = None
        self.origin = 0
        #: What is stored of each field that has a row.
        self.sizes: dict[str, Sizes] = {}
        #: Whether the values are not what is stored, for a migration has converted them.
        self.converted = False
        #: The fields that have rows and no value.
        self.left_out: Collection[str] = ()
        #: The rows of the open superstep, by task: what an edit of the state carries over.
        self.rows: dict[str, bytes] = {}
        #: The answers that open tasks have got, by task.
        self.answers: dict[str, dict[str, Any]] = {}

    def commit(self, command: CommitBarrier | CommitTask | DropTasks) -> None:
        """Store what the machine says; durable at once or later, as the run wants it.

        Raises:
            EncodeError: A value can't be stored; nothing of the command is.
            ConcurrentRunError: Another run has the thread.
            Exception: The storage failed.
        """
        if self.claim.keeps_until_end:
            self.keep(command)
            return
        writes = self.writes(command)
        if self.around is None and type(command) is CommitBarrier and command.ends:
            self.claim.write_last(writes)
        else:
            self.claim.write(writes)

    def commit_all(self, commands: Sequence[CommitTask | DropTasks]) -> None:
        """Store what the machine says while tasks of a superstep run, in one transaction.

        Raises:
            EncodeError: A value can't be stored; nothing of its command is, nor of those after it.
            ConcurrentRunError: Another run has the thread.
            Exception: The storage failed.
        """
        if self.claim.keeps_until_end:
            for command in commands:
                self.keep(command)
            return
        writes: list[Write] = []
        try:
            for command in commands:
                writes += self.writes(command)
        finally:
            if writes:
                self.claim.write(writes)

    def placed(self, error: EncodeError, command: CommitBarrier | CommitTask) -> EncodeError:
        """Return the error of a value that can't be stored with a note that says where it comes from."""
        place = f"superstep {command.step}" if isinstance(command, CommitBarrier) else ""
        if isinstance(command, CommitTask):
            task = command.task
            place = f"node {task.node.name!r}, superstep {task.step}, task {task.id}"
        error.add_note(f"In graph {self.network.name!r}, {place}. Nothing of it is stored; the thread can go on.")
        return error

    def writes(
        self,
        command: CommitBarrier | CommitTask | DropTasks,
        given: Mapping[str, Mapping[int, Any]] | None = None,
    ) -> list[Write]:
        """Return what a command writes; for `given` see `barrier`."""
        if isinstance(command, DropTasks):
            self.rows.clear()
            return [DropRows(self.claim.branch, self.namespace, command.step)]
        try:
            if type(command) is CommitBarrier:
                return self.barrier(command, given)
            return [self.task(command)]  # type: ignore[arg-type]  # the third of three
        except EncodeError as error:
            raise self.placed(error, command) from None

    def barrier(
        self,
        command: CommitBarrier,
        given: Mapping[str, Mapping[int, Any]] | None = None,
    ) -> list[Write]:
        """Return the transaction of a barrier.

        Args:
            command: The barrier.
            given: The objects that updates have held since, by field and id; None for those of the barrier alone.
        """
        claim, namespace, step, around = self.claim, self.namespace, command.step, self.around
        branch = claim.branch
        seq = next(claim.seqs)
        if command.source == "input":
            self.origin = step
        if self.metadata and self.packed_metadata is None:
            self.packed_metadata = self.codec.encode(dict(self.metadata), "config['metadata']")
        blob = pack_barrier(
            command,
            self.parent,
            self.origin,
            fingerprint=self.mark,
            metadata=self.packed_metadata,
            owner=self.owner,
            codec=self.codec,
        )
        head, root = self.head, None if around is None else around.root().head
        blob = seal(blob, claim.origin, branch, namespace, step)
        writes: list[Write] = [
            make(Advance, (branch, namespace, head, step, seq, root, around is not None)),
            make(PutCheckpoint, (make(CheckpointRow, (branch, namespace, step, seq, time(), blob)),)),
        ]
        changed = command.changed
        if self.parent is None:
            changed = {**self.seeds(), **changed}
        elif self.converted:  # what is stored is of another version of the graph, and this checkpoint is of this one
            changed = {**dict.fromkeys(self.left_out, MISSING), **self.live(), **changed}
        self.converted = False
        fields = self.network.fields
        for name, value in changed.items():
            rule = fields.get(name)
            if rule is None:  # a field of that version, which this one does not have
                absent = pack_value(MISSING, "", name, self.codec)
                writes.append(PutValue(self.row(name, step, seq, absent, whole=True)))
            elif not rule.channel.tracked:
                continue
            elif around is not None and command.source == "input" and self.takes(name, value):
                writes.append(PutValue(self.inherited(rule, value, step, seq)))
            else:
                patch = None
                if type(value) in COPIED and name in self.sizes:  # all else is stored whole
                    patch = change(self.sizes[name], rule, command.before.get(name, MISSING), value, command, given)
                writes.append(PutValue(self.value(rule, value, patch, step, seq)))
        if self.rows:  # of the superstep after the head, also where a run writes at its end and has gone on from there
            writes.append(DropRows(branch, namespace, (head or 0) + 1))
            stays = [task for task in command.carried if task in self.rows]
            writes += [PutTask(self.task_row(step + 1, task, self.rows[task])) for task in stays]
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

    def takes(self, name: str, value: Any) -> bool:
        """Return whether a value is that of the graph around, so that the row need only say so.

        Else each call of a graph inside another one would store all that they share, and a long conversation would be
        stored again in every turn.

        Raises:
            EncodeError: This graph could not store the value.
        """
        around = self.around
        if around is None or self.claim.keeps_until_end:  # then the graph around may be stored after this one
            return False
        sizes = around.sizes.get(name)
        if (
            sizes is None
            or sizes.value < WORTHWHILE
            or (type(value) is list and len(value) != sizes.length)  # changed in place: not what is stored
            or around.converted
            or not alike(value, around.live().get(name, MISSING))
        ):
            return False
        if not covers(self.codec, around.codec):
            self.codec.encode(value, name)  # so that what can't be read here is refused now
        return True

    def inherited(self, rule: Field, value: Any, step: int, seq: int) -> ValueRow:
        """Return the row of a field whose value is that of the graph around."""
        outer: Sizes = self.around.sizes[rule.name]  # type: ignore[union-attr]  # there is one: see `takes`
        self.sizes[rule.name] = Sizes(outer.value, outer.waste).holding(value, value, log=is_log(rule))
        return self.row(rule.name, step, seq, pack_inherited(type(rule.channel).__name__), whole=True)

    def value(self, rule: Field, value: Any, patch: Patch | None, step: int, seq: int) -> ValueRow:
        """Return the row of a field that changed: a patch where that is less, else the whole value."""
        name, codec = rule.name, self.codec
        stored = value
        if patch is not None:
            sizes = self.sizes[name]
            payload = pack_patch(patch, name, codec)
            sizes.follow(patch, len(payload), value)
            if sizes.waste <= GROWTH * max(sizes.value, WORTHWHILE):
                return self.row(name, step, seq, payload, whole=False)
            if self.claim.together is None:
                stored = self.grown_value(name, payload)
        payload = pack_value(stored, type(rule.channel).__name__, name, codec)
        if type(value) in COPIED or len(payload) >= WORTHWHILE:
            self.sizes[name] = Sizes(len(payload)).holding(stored, value, log=is_log(rule))
        else:
            self.sizes.pop(name, None)
        return self.row(name, step, seq, payload, whole=True)

    def row(self, name: str, step: int, seq: int, payload: bytes, *, whole: bool) -> ValueRow:
        """Return a row of a field."""
        claim, namespace = self.claim, self.namespace
        branch = claim.branch
        blob = seal(payload, claim.origin, branch, namespace, step, name)
        return make(ValueRow, (branch, namespace, name, step, seq, whole, blob))

    def grown_value(self, name: str, patch: bytes) -> Any:
        """Return the whole value of a field, from what is stored of it and the newest patch.

        The live value would carry what nodes changed in place, which no update ever said.
        """
        claim = self.claim
        claim.flush()
        value = read_field(claim.saver, claim.thread_id, claim.lineage, self.namespace, name, self.codec)
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
        return TaskRow(*place, seal(payload, self.claim.origin, *place))

    @property
    def recorder(self) -> Recorder:
        """Itself: what stands behind a `RevocableRecorder`."""
        return self

    def root(self) -> Recorder:
        """Return the recorder of the outermost graph."""
        return self if self.around is None else self.around.root()


def covers(inner: Codec, outer: Codec) -> bool:
    """Return whether one codec reads whatever another one has written."""
    return outer._own.tags.keys() <= inner._own.tags.keys()  # noqa: SLF001 - two codecs compare what they know


def is_empty(value: Any) -> bool:
    """Return whether a value is the empty one of its type, which every version of a graph would begin with."""
    return type(value) in EMPTY_KINDS and not value


EMPTY_KINDS: Final = {bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset}
