"""How the writes of a transaction become statements: few of them, for this is what every superstep waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pregel.checkpoint import statements as sql
from pregel.checkpoint.base import Advance, DropTasks, OpenBranch, PutCheckpoint, PutTask, PutValue, Release
from pregel.checkpoint.labels import pack
from pregel.errors import ConcurrentRunError
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pregel.checkpoint.base import Namespace, Write
    from pregel.checkpoint.schema import Cursor

__all__ = ["Numbers", "lost", "taken", "write_all"]

#: How many numbers of heads and series a run remembers.
REMEMBERED: Final = 4096


def lost(thread_id: str) -> ConcurrentRunError:
    """Return the error of a run whose lease is gone."""
    return ConcurrentRunError(
        f"the run does not hold thread {show(thread_id)} any more: its lease was released, another run took it after "
        "it had expired, or the thread was deleted. Nothing of this transaction is stored."
    )


def moved(
    thread_id: str, namespace: Namespace, write: Advance, step: int | None, root: int | None
) -> ConcurrentRunError:
    """Return the error of a head that is elsewhere."""
    where = f"thread {show(thread_id)}, branch {write.branch}, namespace {namespace!r}"
    if write.check_root and step == write.before:
        return ConcurrentRunError(
            f"the outermost graph of {where} is at superstep {root}, and this inner graph began at {write.root_step}. "
            "Nothing of this transaction is stored."
        )
    return ConcurrentRunError(
        f"{where} is at superstep {step}, and this run believed it at {write.before}: another run has moved it on. "
        "Nothing of this transaction is stored."
    )


def taken(thread_id: str, what: str) -> ConcurrentRunError:
    """Return the error of a row that is there already, or is not."""
    return ConcurrentRunError(f"thread {show(thread_id)}: {what}. Nothing of this transaction is stored.")


def key(number: int, seq: int) -> int:
    """Return the key of a row: see `pregel.checkpoint.statements`.

    Raises:
        OverflowError: The `seq` would lie among the rows of the next number.
    """
    if not 0 <= seq < sql.SEQ_LIMIT:
        raise OverflowError(f"seq is a number from 0 to {sql.SEQ_LIMIT - 1}, not {seq}")
    return number * sql.SEQ_LIMIT + seq


class Numbers:
    """The numbers of a thread, its heads and its series, as the holder of one lease knows them.

    They hold as long as the lease does, which every transaction checks: only deleting the thread removes them, and that
    removes the lease. What a transaction adds is new until it is committed.
    """

    def __init__(self, thread: int, *, is_new: bool = False) -> None:
        self.thread = thread
        #: Whether the holder has made the thread, so that there is little to find.
        self.is_new = is_new
        #: By branch and namespace the number of a head; by that and a field the number of a series.
        self.known: dict[tuple[int, Namespace | str], int] = {}
        self.new: dict[tuple[int, Namespace | str], int] = {}

    def start(self) -> Numbers:
        """Return the numbers for one transaction: transactions of one run may run at once."""
        again = Numbers(self.thread, is_new=self.is_new)
        again.known = self.known
        return again

    def committed(self) -> None:
        """Remember what the transaction added."""
        if self.new:
            if len(self.known) > REMEMBERED:
                self.known.clear()
            self.known.update(self.new)

    def head(self, cursor: Cursor, branch: int, namespace: Namespace) -> int:
        """Return the number of a head, which is made where there is none."""
        at = (branch, namespace)
        found = self.known.get(at) or self.new.get(at)
        if found is None:
            place = (self.thread, pack(namespace), branch)
            found = self.new[at] = self.find_or_add(cursor, sql.FIND_HEAD, sql.ADD_HEAD, place)
        return found

    def series(self, cursor: Cursor, head: int, field: str) -> int:
        """Return the number of a series, which is made where there is none."""
        at = (head, field)
        found = self.known.get(at) or self.new.get(at)
        if found is None:
            found = self.new[at] = self.find_or_add(cursor, sql.FIND_SERIES, sql.ADD_SERIES, at)
        return found

    def find_or_add(self, cursor: Cursor, find: str, add: str, values: tuple[object, ...]) -> int:
        """Return the number of a row, which is made where there is none: on a new thread most often at once."""
        rows: list[Any] = []
        if not self.is_new:
            cursor.execute(find, values)
            rows = cursor.fetchall()
        if not rows:
            cursor.execute(add, values)
            rows = cursor.fetchall()
        if not rows:
            cursor.execute(find, values)
            rows = cursor.fetchall()
        return int(rows[0][0])


def write_all(cursor: Cursor, numbers: Numbers, thread_id: str, token: str, writes: Sequence[Write]) -> None:
    """Make all writes, in order.

    Raises:
        ConcurrentRunError: One of them can't be made; the transaction must be rolled back.
    """
    checked = False
    rows: list[tuple[object, ...]] = []  # of one kind, that follow each other
    of: type[Write] | None = None
    for write in writes:
        kind = type(write)
        if rows and kind is not of:
            put_rows(cursor, thread_id, of, rows)
            rows = []
        if kind is PutValue:
            of = kind
            rows.append(value_row(cursor, numbers, write))  # type: ignore[arg-type]  # a PutValue
        elif kind is PutCheckpoint:
            of = kind
            rows.append(checkpoint_row(cursor, numbers, write))  # type: ignore[arg-type]  # a PutCheckpoint
        else:
            checked = checked or kind is Advance or kind is Release
            WRITERS[kind](cursor, numbers, thread_id, token, write)
    if rows:
        put_rows(cursor, thread_id, of, rows)
    if not checked:
        cursor.execute(sql.HELD, (thread_id, token))
        if cursor.fetchone() is None:
            raise lost(thread_id)


def advance(cursor: Cursor, numbers: Numbers, thread_id: str, token: str, write: Advance) -> None:
    """Move a head by compare-and-set, and check the lease in the same statement."""
    branch, namespace, before, step, seq, root_step, check_root = write
    head = numbers.head(cursor, branch, namespace)
    values: tuple[object, ...]
    if before is None:
        statement = sql.START_CHILD if check_root else sql.START
        values = (step, seq, head, numbers.thread, token)
    else:
        statement = sql.ADVANCE_CHILD if check_root else sql.ADVANCE
        values = (step, seq, head, before, numbers.thread, token)
    if check_root:
        values += (numbers.head(cursor, branch, ()), -1 if root_step is None else root_step)
    cursor.execute(statement, values)
    if cursor.rowcount != 1:
        cursor.execute(sql.HELD, (thread_id, token))
        if cursor.fetchone() is None:
            raise lost(thread_id)
        steps = []
        for inner in (namespace, ()):
            cursor.execute(sql.HEAD, (thread_id, pack(inner), branch))
            row = cursor.fetchone()
            steps.append(row[0] if row else None)
        raise moved(thread_id, namespace, write, *steps)


def checkpoint_row(cursor: Cursor, numbers: Numbers, write: PutCheckpoint) -> tuple[object, ...]:
    """Return a checkpoint as a database has it."""
    branch, namespace, step, seq, created, blob = write.row
    return key(numbers.head(cursor, branch, namespace), seq), step, created, blob


def value_row(cursor: Cursor, numbers: Numbers, write: PutValue) -> tuple[object, ...]:
    """Return a field row as a database has it."""
    branch, namespace, field, step, seq, whole, blob = write.row
    series = numbers.series(cursor, numbers.head(cursor, branch, namespace), field)
    return key(series, seq), step, int(whole), blob


def put_rows(cursor: Cursor, thread_id: str, kind: type[Write] | None, rows: Sequence[tuple[object, ...]]) -> None:
    """Write rows of checkpoints or of fields."""
    statement = sql.PUT_VALUE if kind is PutValue else sql.PUT_CHECKPOINT
    if len(rows) == 1:
        cursor.execute(statement, rows[0])
    else:
        cursor.executemany(statement, rows)
    if cursor.rowcount != len(rows):
        what = "the row of a field that changed in" if kind is PutValue else "a checkpoint of"
        raise taken(thread_id, f"{what} superstep {rows[0][1]} is there already")


def put_task(cursor: Cursor, numbers: Numbers, thread_id: str, _: str, write: PutTask) -> None:
    """Write a task row."""
    (branch, namespace, step, task, blob), replaces = write
    head = numbers.head(cursor, branch, namespace)
    if replaces:
        cursor.execute(sql.REPLACE_TASK, (blob, head, step, task))
    else:
        cursor.execute(sql.PUT_TASK, (head, step, task, blob))
    if cursor.rowcount != 1:
        there = "not there to be replaced" if replaces else "there already: another run has done it"
        raise taken(thread_id, f"the row of task {task!r} of superstep {step} is {there}")


def drop_tasks(cursor: Cursor, numbers: Numbers, _: str, __: str, write: DropTasks) -> None:
    """Delete the task rows of a superstep."""
    cursor.execute(sql.DROP_TASKS, (numbers.head(cursor, write.branch, write.namespace), write.step))


def open_branch(cursor: Cursor, numbers: Numbers, thread_id: str, _: str, write: OpenBranch) -> None:
    """Record where a branch begins."""
    branch, parent, fork_seq = write.row
    if branch:
        cursor.execute(sql.OPEN_BRANCH, (numbers.thread, branch, parent, fork_seq))
    if not branch or cursor.rowcount != 1:
        raise taken(thread_id, f"there is a branch {branch} already")


def release(cursor: Cursor, numbers: Numbers, thread_id: str, token: str, _: Release) -> None:
    """Give up the lease; a thread to which nothing was written goes with it."""
    cursor.execute(sql.RELEASE_WRITTEN, (numbers.thread, token))
    if cursor.rowcount != 1:
        raise lost(thread_id)
    if not numbers.known and not numbers.new:  # it has written nothing
        cursor.execute(sql.DROP_EMPTY_THREAD, (thread_id,))


#: By the type of a write, what makes it.
WRITERS: Final[dict[type[Write], Callable[[Cursor, Numbers, str, str, Any], None]]] = {
    Advance: advance,
    PutTask: put_task,
    DropTasks: drop_tasks,
    OpenBranch: open_branch,
    Release: release,
}
