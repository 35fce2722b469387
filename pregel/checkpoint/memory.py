"""The checkpointer in memory: for tests, and for runs that need not outlive the process."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections import defaultdict
from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pregel.checkpoint.base import (
    Advance,
    BranchRow,
    Checkpointer,
    DropTasks,
    Held,
    OpenBranch,
    PutCheckpoint,
    PutTask,
    PutValue,
    ThreadInfo,
    ValueRow,
)
from pregel.checkpoint.labels import pack
from pregel.checkpoint.points import reached
from pregel.checkpoint.retention import CheckpointMark, ValueMark, check_limits, spare
from pregel.checkpoint.writing import lost, moved, taken
from pregel.errors import CheckpointNotFoundError
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pregel.checkpoint.base import CheckpointRow, Lease, Lineage, Namespace, TaskRow, Write

__all__ = ["InMemorySaver"]

Row = TypeVar("Row", "CheckpointRow", "ValueRow")
#: What takes back the writes of a transaction: functions with their arguments, to be called in reverse.
Undo = list[tuple[Any, ...]]
by_seq = attrgetter("seq")


class Line:
    """What a namespace has on a branch."""

    def __init__(self) -> None:
        #: The step of the head.
        self.step: int | None = None
        #: The greatest `seq` of an advance.
        self.seq = 0
        #: By seq.
        self.checkpoints: list[CheckpointRow] = []
        #: By field, each by seq.
        self.values: dict[str, list[ValueRow]] = defaultdict(list)
        #: By step, then by task.
        self.tasks: dict[int, dict[str, TaskRow]] = {}

    def copy(self) -> Line:
        """Return the same rows in containers of their own."""
        other = Line()
        other.step, other.seq = self.step, self.seq
        other.checkpoints = self.checkpoints.copy()
        other.values.update((field, rows.copy()) for field, rows in self.values.items())
        other.tasks = {step: rows.copy() for step, rows in self.tasks.items()}
        return other


class Thread:
    """All rows of a thread, and its lease."""

    def __init__(self, origin: str = "") -> None:
        self.origin = origin
        self.lease: Lease | None = None
        self.expires = 0.0
        self.branches: dict[int, BranchRow] = {}
        self.lines: dict[tuple[int, Namespace], Line] = {}

    def last_seq(self) -> int:
        """Return the greatest `seq` of an advance."""
        return max((line.seq for line in self.lines.values()), default=0)

    def on_branches(self, namespace: Namespace) -> list[Line]:
        """Return what a namespace has on each branch."""
        return [line for (_, own), line in self.lines.items() if own == namespace]


NO_THREAD = Thread()
NO_LINE = Line()


class InMemorySaver(Checkpointer):
    """Keeps runs in the memory of this process, as the bytes that other checkpointers keep."""

    blocking: ClassVar[bool] = False

    def __init__(self) -> None:
        self._lock = Lock()
        self._threads: dict[str, Thread] = {}

    def close(self) -> None:
        """Do nothing: what is stored goes with this object."""

    # -- leases ------------------------------------------------------------------------------------------------------

    def claim(self, thread_id: str, lease: Lease, seconds: float, dead: Callable[[Lease], bool]) -> Held | Lease:
        """Take a thread that is free: see `Checkpointer`."""
        reached("claim.before")
        with self._lock:
            thread = self._threads.get(thread_id, NO_THREAD)
            now = time.time()
            if thread.lease is not None and thread.expires > now and not dead(thread.lease):
                return thread.lease
            thread = self._threads.setdefault(thread_id, Thread(thread_id) if thread is NO_THREAD else thread)
            thread.lease, thread.expires = lease, now + seconds
            held = Held(thread.origin, thread.last_seq())
        reached("claim.after")
        return held

    def renew(self, thread_id: str, token: str, seconds: float) -> bool:
        """Let a lease end so many seconds from now: see `Checkpointer`."""
        with self._lock:
            thread = self._held(thread_id, token)
            if thread is None:
                return False
            thread.expires = time.time() + seconds
            return True

    def release(self, thread_id: str, token: str) -> None:
        """Give up a lease: see `Checkpointer`."""
        reached("release.before")
        with self._lock:
            thread = self._held(thread_id, token)
            if thread is not None:
                thread.lease = None
                self._drop_empty(thread_id, thread)
        reached("release.after")

    def _drop_empty(self, thread_id: str, thread: Thread) -> None:
        """Forget a thread to which nothing was written."""
        if not thread.lines and not thread.branches:
            del self._threads[thread_id]

    def _held(self, thread_id: str, token: str) -> Thread | None:
        thread = self._threads.get(thread_id)
        return thread if thread is not None and thread.lease is not None and thread.lease.token == token else None

    # -- writing -----------------------------------------------------------------------------------------------------

    def write(self, thread_id: str, token: str, writes: Sequence[Write]) -> None:
        """Make all these writes in one transaction: see `Checkpointer`."""
        reached("write.before")
        with self._lock:
            thread = self._held(thread_id, token)
            if thread is None:
                raise lost(thread_id)
            undo: Undo = []
            try:
                for write in writes:
                    make(thread, thread_id, write, undo)
                reached("write.inside")
            except BaseException:
                for take_back, *values in reversed(undo):
                    take_back(*values)
                raise
            if thread.lease is None:
                self._drop_empty(thread_id, thread)
        reached("write.after")

    # -- reading -----------------------------------------------------------------------------------------------------

    def _thread(self, thread_id: str) -> Thread:
        return self._threads.get(thread_id, NO_THREAD)

    def _line(self, thread_id: str, branch: int, namespace: Namespace) -> Line:
        return self._thread(thread_id).lines.get((branch, namespace), NO_LINE)

    def latest(self, thread_id: str) -> CheckpointRow | None:
        """Return the newest checkpoint of the outermost graph, on whatever branch."""
        with self._lock:
            newest = [line.checkpoints[-1] for line in self._thread(thread_id).on_branches(()) if line.checkpoints]
            return max(newest, key=by_seq, default=None)

    def head(self, thread_id: str, branch: int, namespace: Namespace) -> int | None:
        """Return the step of a head."""
        with self._lock:
            return self._line(thread_id, branch, namespace).step

    def origin(self, thread_id: str) -> str:
        """Return the id under which the rows of a thread were sealed: see `Checkpointer`."""
        with self._lock:
            return self._threads[thread_id].origin if thread_id in self._threads else thread_id

    def last_seq(self, thread_id: str) -> int:
        """Return the greatest `seq` that was used on a thread: see `Checkpointer`."""
        with self._lock:
            return self._thread(thread_id).last_seq()

    def branches(self, thread_id: str) -> list[BranchRow]:
        """Return where the branches begin, by number."""
        with self._lock:
            return sorted(self._thread(thread_id).branches.values())

    def checkpoint(self, thread_id: str, branch: int, namespace: Namespace, step: int) -> CheckpointRow | None:
        """Return one checkpoint."""
        with self._lock:
            rows = self._line(thread_id, branch, namespace).checkpoints
            index = bisect_left(rows, step, key=attrgetter("step"))
            return rows[index] if index < len(rows) and rows[index].step == step else None

    def visible_checkpoint(self, thread_id: str, lineage: Lineage, namespace: Namespace) -> CheckpointRow | None:
        """Return the newest checkpoint of a namespace that a lineage sees: see `Checkpointer`."""
        with self._lock:
            for branch, bound in lineage:
                rows = self._line(thread_id, branch, namespace).checkpoints
                if index := bisect_right(rows, bound, key=by_seq):
                    return rows[index - 1]
            return None

    def checkpoints(
        self, thread_id: str, namespace: Namespace, *, before: int | None = None, limit: int | None = None
    ) -> list[CheckpointRow]:
        """Return the checkpoints of a namespace on all branches, newest first: see `Checkpointer`."""
        with self._lock:
            found = []
            for line in self._thread(thread_id).on_branches(namespace):
                rows = line.checkpoints
                end = len(rows) if before is None else bisect_left(rows, before, key=by_seq)
                found += rows[0 if limit is None else max(end - limit, 0) : end]
        return sorted(found, key=by_seq, reverse=True)[:limit]

    def values(self, thread_id: str, lineage: Lineage, namespace: Namespace) -> list[ValueRow]:
        """Return what a lineage sees of each field: see `Checkpointer`."""
        found: list[ValueRow] = []
        complete: set[str] = set()
        with self._lock:
            for branch, bound in lineage:
                for field, rows in self._line(thread_id, branch, namespace).values.items():
                    if field in complete:
                        continue
                    for index in range(bisect_right(rows, bound, key=by_seq) - 1, -1, -1):
                        found.append(rows[index])
                        if rows[index].whole:
                            complete.add(field)
                            break
        return sorted(found, key=attrgetter("field", "seq"))

    def tasks(self, thread_id: str, branch: int, namespace: Namespace, step: int) -> list[TaskRow]:
        """Return the task rows of a superstep, by task."""
        with self._lock:
            rows = self._line(thread_id, branch, namespace).tasks.get(step, {})
            return sorted(rows.values(), key=attrgetter("task"))

    def namespaces(self, thread_id: str, branch: int, prefix: Namespace) -> list[Namespace]:
        """Return the namespaces with a head on a branch that begin with these labels: see `Checkpointer`."""
        with self._lock:
            return sorted(
                namespace
                for (own, namespace), line in self._thread(thread_id).lines.items()
                if own == branch and line.step is not None and namespace[: len(prefix)] == prefix
            )

    # -- keeping -----------------------------------------------------------------------------------------------------

    def threads(self, *, limit: int | None = None, after: str | None = None) -> list[ThreadInfo]:
        """Return the threads in the order of their ids, those behind `after`."""
        with self._lock:
            names = sorted(name for name in self._threads if after is None or name > after)[:limit]
            found = []
            for name in names:
                thread = self._threads[name]
                times = [row.created for line in thread.lines.values() for row in line.checkpoints]
                leased = thread.lease is not None
                found.append(ThreadInfo(name, min(times, default=0.0), max(times, default=0.0), len(times), leased))
            return found

    def delete_thread(self, thread_id: str) -> None:
        """Forget a thread: see `Checkpointer`."""
        with self._lock:
            self._threads.pop(thread_id, None)

    def copy_thread(self, source: str, target: str) -> None:
        """Copy a thread under another id: see `Checkpointer`."""
        with self._lock:
            if source not in self._threads:
                raise CheckpointNotFoundError(f"there is no thread {show(source)} to copy")
            if target in self._threads:
                raise taken(target, "it is there already, and a copy needs a new id")
            copy = Thread(self._threads[source].origin)
            copy.branches = self._threads[source].branches.copy()
            copy.lines = {key: line.copy() for key, line in self._threads[source].lines.items()}
            self._threads[target] = copy

    def prune(
        self, *, keep_last: int | None = None, older_than: float | None = None, thread_id: str | None = None
    ) -> int:
        """Delete old checkpoints: see `Checkpointer`."""
        check_limits(keep_last, older_than)
        cutoff = None if older_than is None else time.time() - older_than
        with self._lock:
            threads = list(self._threads.values()) if thread_id is None else [self._thread(thread_id)]
            return sum(prune(thread, keep_last, cutoff) for thread in threads)


def prune(thread: Thread, keep_last: int | None, cutoff: float | None) -> int:
    """Delete the old checkpoints of a thread, and return how many."""
    lines = thread.lines
    checkpoints = [
        CheckpointMark(branch, namespace, row.seq, row.created)
        for (branch, namespace), line in lines.items()
        for row in line.checkpoints
    ]
    values = [
        ValueMark(branch, namespace, field, row.seq, row.whole)
        for (branch, namespace), line in lines.items()
        for field, rows in line.values.items()
        for row in rows
    ]
    old, unneeded = spare(thread.branches.values(), checkpoints, values, keep_last=keep_last, cutoff=cutoff)
    gone = {(mark.branch, mark.namespace, mark.seq) for mark in old}
    spared = {(mark.branch, mark.namespace, mark.field, mark.seq) for mark in unneeded}
    for key, line in lines.items():
        line.checkpoints = [row for row in line.checkpoints if (*key, row.seq) not in gone]
        for field, rows in line.values.items():
            line.values[field] = [row for row in rows if (*key, field, row.seq) not in spared]
    return len(old)


def make(thread: Thread, thread_id: str, write: Write, undo: Undo) -> None:
    """Make one write, and note before how it is taken back.

    Raises:
        ConcurrentRunError: It can't be made.
    """
    kind = type(write)
    if kind is Advance:
        branch, namespace, before, step, seq, root_step, check_root = write  # type: ignore[misc]  # an Advance
        line = line_of(thread, branch, namespace, undo)
        root = thread.lines.get((branch, ()), NO_LINE).step if check_root else None
        if line.step != before or root != (root_step if check_root else None):
            raise moved(thread_id, namespace, write, line.step, root)  # type: ignore[arg-type]  # an Advance
        undo.append((put_head, line, line.step, line.seq))
        line.step, line.seq = step, seq
    elif kind is PutCheckpoint or kind is PutValue:
        row: CheckpointRow | ValueRow = write.row  # type: ignore[union-attr, assignment]  # of one of these two writes
        line = line_of(thread, row.branch, row.namespace, undo)
        rows: list[Any] = line.checkpoints if kind is PutCheckpoint else line.values[row.field]  # type: ignore[union-attr]  # a value
        if not rows or rows[-1].seq < row.seq:
            undo.append((take_out, rows, row))
            rows.append(row)
        elif not insert(rows, row, undo):
            raise taken(thread_id, f"{show_place(row)} is there already")
    else:
        make_seldom(thread, thread_id, write, undo)


def make_seldom(thread: Thread, thread_id: str, write: Write, undo: Undo) -> None:
    """Make a write that not every superstep makes; see `make`."""
    if isinstance(write, PutTask):
        row = write.row
        rows = line_of(thread, row.branch, row.namespace, undo).tasks.setdefault(row.step, {})
        if (row.task in rows) != write.replaces:
            there = "not there to be replaced" if write.replaces else "there already: another run has done it"
            raise taken(thread_id, f"the row of task {row.task!r} of superstep {row.step} is {there}")
        undo.append((put_back, rows, row.task, rows.get(row.task)))
        rows[row.task] = row
    elif isinstance(write, DropTasks):
        tasks = line_of(thread, write.branch, write.namespace, undo).tasks
        undo.append((put_back, tasks, write.step, tasks.get(write.step)))
        tasks.pop(write.step, None)
    elif isinstance(write, OpenBranch):
        branch = write.row.branch
        if branch == 0 or branch in thread.branches:
            raise taken(thread_id, f"there is a branch {branch} already")
        undo.append((put_back, thread.branches, branch, None))
        thread.branches[branch] = write.row
    else:  # a Release
        undo.append((put_lease, thread, thread.lease))
        thread.lease = None


def show_place(row: CheckpointRow | ValueRow) -> str:
    """Return how messages name a row."""
    if isinstance(row, ValueRow):
        return f"a row with seq {row.seq} of field {row.field!r}"
    return f"a checkpoint with seq {row.seq} of namespace {row.namespace!r}"


def line_of(thread: Thread, branch: int, namespace: Namespace, undo: Undo) -> Line:
    """Return what a namespace has on a branch, which is made where there is nothing."""
    key = (branch, namespace)
    line = thread.lines.get(key)
    if line is None:
        pack(namespace)  # what no database takes is refused here too
        undo.append((put_back, thread.lines, key, None))
        line = thread.lines[key] = Line()
    return line


def insert(rows: list[Row], row: Row, undo: Undo) -> bool:
    """Put a row where its `seq` belongs; return whether that was free."""
    index = bisect_left(rows, row.seq, key=by_seq)
    if index < len(rows) and rows[index].seq == row.seq:
        return False
    undo.append((take_out, rows, row))
    rows.insert(index, row)
    return True


def take_out(rows: list[Row], row: Row) -> None:
    """Remove a row, if it got there."""
    index = bisect_left(rows, row.seq, key=by_seq)
    if rows[index : index + 1] == [row]:
        del rows[index]


def put_lease(thread: Thread, lease: Lease | None) -> None:
    """Give a lease back."""
    thread.lease = lease


def put_head(line: Line, step: int | None, seq: int) -> None:
    """Move a head back."""
    line.step, line.seq = step, seq


def put_back(rows: dict[Any, Any], key: Any, old: Any) -> None:
    """Give a key the value it had; None for none."""
    if old is None:
        rows.pop(key, None)
    else:
        rows[key] = old
