"""The stored run of one graph as a part of a snapshot, and back: where it stands, and all that is open there.

Theory of operation. What a run needs to go on are the rows of its newest checkpoint: what is due, what joins have
heard, how tasks of the open superstep ended (what they wrote, or what they ask), and the same of graphs that such a
task runs. They are carried as they are, sealed for the place where they will be written. The history before is left
behind, and so is the data, which a snapshot holds in a form of its own: who goes on with a run hands over what the
context holds.
"""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from pregel.checkpoint.base import Advance, CheckpointRow, PutCheckpoint, PutTask, PutValue, TaskRow, ValueRow
from pregel.checkpoint.claim import LATEST, Claim, lineage_of
from pregel.checkpoint.restore import pack_value, read_record, read_values, unsealed, unsealed_record
from pregel.clock import clock
from pregel.codec import seal, unseal
from pregel.errors import ConcurrentRunError, DecodeError
from pregel.graph.flow.standing import read, standing
from pregel.graph.flow.tagged import from_base64, to_base64, to_tree
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from pregel.checkpoint.base import Checkpointer, Namespace, Write
    from pregel.codec import Codec

__all__ = ["checked", "put_back", "rows_of", "taken_out"]

#: The label of a graph inside a task: what ends it is the task's id. One that remembers has no task in its label.
OF_TASK: Final = re.compile(r":\d+:\d+:")


# -- out of a store --------------------------------------------------------------------------------------------------


def taken_out(
    saver: Checkpointer, thread_id: str, codec: Codec, left_out: Callable[[str], bool]
) -> dict[str, Any] | None:
    """Return the stored run of a thread as a tree, or None where nothing is stored.

    Of a run that is over the last checkpoint is there, so that supersteps count on, and no task gets the id of one
    before.

    Args:
        saver: Where it is stored.
        thread_id: The thread.
        codec: Knows the types of its values.
        left_out: Returns whether a field of the outermost graph is handed over by who goes on, so that it can stay.

    Raises:
        DecodeError: What is stored is damaged.
    """
    found = read(saver, thread_id, codec)
    if found is None:
        return None
    stands = standing(found)
    reader = Reader(saver, thread_id, found.row.branch, codec)
    open_labels = [label for label in reader.namespaces() if is_open(label[0], found.tasks)]
    return {
        "fingerprint": stands.fingerprint,
        "step": stands.step,
        "due": list(stands.due),
        "questions": [
            {"id": asked.id, "value": to_tree(asked.value, codec, "the value of an interrupt")}
            for asked in stands.questions
        ],
        "finished": sorted(stands.written),
        "rows": [reader.part((), left_out), *(reader.part(label, lambda _: False) for label in open_labels)],
    }


def is_open(label: str, tasks: Collection[str]) -> bool:
    """Return whether a graph inside is run by a task that is due, or remembers what it did."""
    if not OF_TASK.search(label):
        return True
    return any(label.endswith(f":{task}") or f":{task}:" in label for task in tasks)


class Reader:
    """Reads the rows of a thread, and seals them for the same thread in another store.

    Args:
        saver: Where they are.
        thread_id: The thread.
        branch: The branch that the run is on; there it is branch 0.
        codec: Knows the types of its values.
    """

    def __init__(self, saver: Checkpointer, thread_id: str, branch: int, codec: Codec) -> None:
        self.saver = saver
        self.thread_id = thread_id
        self.branch = branch
        self.codec = codec
        self.origin = saver.origin(thread_id)
        self.lineage = lineage_of(branch, LATEST, saver.branches(thread_id))

    def namespaces(self) -> list[Namespace]:
        """Return the paths to the graphs inside, those around first."""
        found = self.saver.namespaces(self.thread_id, self.branch, ())
        return sorted((each for each in found if each), key=lambda each: (len(each), each))

    def sealed(self, payload: bytes, namespace: Namespace, step: int, *name: str) -> str:
        """Return a payload as a text, sealed for its new place."""
        return to_base64(seal(payload, self.thread_id, 0, namespace, step, *name))

    def part(self, namespace: Namespace, left_out: Callable[[str], bool]) -> dict[str, Any]:
        """Return the rows of one graph: its newest checkpoint, and what of it is open."""
        saver, thread_id, branch = self.saver, self.thread_id, self.branch
        head: int = saver.head(thread_id, branch, namespace)  # type: ignore[assignment]  # it has one
        values, kinds, _ = read_values(saver, thread_id, self.lineage, namespace, self.codec)
        return {
            "namespace": list(namespace),
            "checkpoints": {
                str(row.step): self.sealed(unsealed_record(row, self.origin), namespace, row.step)
                for row in self.checkpoints(namespace, head)
            },
            "values": {
                name: self.sealed(pack_value(value, kinds[name], name, self.codec), namespace, head, name)
                for name, value in values.items()
                if not left_out(name)
            },
            "tasks": {
                row.task: self.sealed(unsealed(row, self.origin), namespace, head + 1, row.task)
                for row in saver.tasks(thread_id, branch, namespace, head + 1)
            },
        }

    def checkpoints(self, namespace: Namespace, head: int) -> Iterator[CheckpointRow]:
        """Yield the checkpoints that a run looks at: the newest one, and of a graph inside those of its run so far."""
        newest = self.saver.checkpoint(self.thread_id, self.branch, namespace, head)
        begins = read_record(newest, self.origin, self.codec).origin if namespace and newest is not None else head
        for step in range(begins, head):
            row = self.saver.checkpoint(self.thread_id, self.branch, namespace, step)
            if row is not None:
                yield row
        if newest is not None:
            yield newest


# -- into a store ----------------------------------------------------------------------------------------------------


def rows_of(part: Any, thread_id: str) -> list[Write]:
    """Return what writes a run that was taken out, where the thread does not exist.

    Args:
        part: What `taken_out` returned.
        thread_id: The thread; the same as it was.

    Raises:
        DecodeError: The part is none, is damaged or lacks something, or belongs to another thread.
    """
    seqs, rows = count(1), checked(part, "rows", list)
    if not rows:
        raise DecodeError(f"the run {thread_id!r} of the snapshot has no rows")
    ended = {task.split(":", 2)[-1] for task in checked(rows[0], "tasks", dict)}
    for name in checked(part, "finished", list):
        if name not in ended:  # it would be run a second time
            raise DecodeError(f"node {show(name)} of the run {thread_id!r} has finished, and its row is missing")
    return [write for each in rows for write in writes_of(each, thread_id, seqs)]


def put_back(saver: Checkpointer, thread_id: str, writes: Sequence[Write]) -> None:
    """Write a run that was taken out, in one transaction.

    Raises:
        ConcurrentRunError: There is something on the thread, or another run has it.
    """
    claim = Claim(saver, thread_id, "sync")
    holder = claim.attempt()
    if holder is not None:
        raise claim.refused(holder)
    try:
        if not claim.is_new:
            raise ConcurrentRunError(
                f"thread {thread_id!r} is stored there already, and a snapshot takes the place of nothing: restore it "
                "into another store, or delete the thread"
            )
        claim.write(writes)
    finally:
        claim.close()


def writes_of(part: Any, thread_id: str, seqs: Iterator[int]) -> Iterator[Write]:
    """Yield what writes the rows of one graph.

    Raises:
        DecodeError: They are none.
    """
    namespace = tuple(checked(part, "namespace", list))
    if not all(type(label) is str for label in namespace):
        raise DecodeError(f"{show(part['namespace'])} is no path to a graph")
    before, seq, head = None, 0, 0

    def row(text: Any, what: str, step: int, *name: str) -> bytes:
        blob = from_base64(text, what)
        unseal(blob, thread_id, 0, namespace, step, *name)
        return blob

    for step, text in checked(part, "checkpoints", dict).items():
        head, seq = number(step), next(seqs)
        yield Advance(0, namespace, before, head, seq)
        yield PutCheckpoint(CheckpointRow(0, namespace, head, seq, clock().time(), row(text, "a checkpoint", head)))
        before = head
    if before is None:
        raise DecodeError(f"the graph {'/'.join(namespace)!r} of the snapshot has no checkpoint")
    for name, text in checked(part, "values", dict).items():
        blob = row(text, f"the field {name!r}", head, name)
        yield PutValue(ValueRow(0, namespace, name, head, seq, True, blob))  # noqa: FBT003 - a row
    for task, text in checked(part, "tasks", dict).items():
        yield PutTask(TaskRow(0, namespace, head + 1, task, row(text, f"the task {task!r}", head + 1, task)))


def checked(part: Any, key: str, kind: type) -> Any:
    """Return what a part of a snapshot has under a key.

    Raises:
        DecodeError: It has nothing there, or something else.
    """
    found = part.get(key) if type(part) is dict else None
    if type(found) is not kind:
        raise DecodeError(f"the part {key!r} of the snapshot is a {kind.__name__}, not {show(found)}")
    return found


def number(text: str) -> int:
    """Return the number of a superstep.

    Raises:
        DecodeError: It is none.
    """
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise DecodeError(f"{show(text)} is no number of a superstep")
    return int(text)
