"""A checkpointer on a database: one implementation, over what differs between SQLite and PostgreSQL."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from pregel.checkpoint import statements as sql
from pregel.checkpoint.base import (
    BranchRow,
    Checkpointer,
    CheckpointRow,
    Held,
    Lease,
    Release,
    TaskRow,
    ThreadInfo,
    ValueRow,
)
from pregel.checkpoint.labels import bounds, pack, unpack
from pregel.checkpoint.points import reached
from pregel.checkpoint.retention import CheckpointMark, ValueMark, check_limits, spare
from pregel.checkpoint.writing import Numbers, lost, taken, write_all
from pregel.errors import CheckpointNotFoundError
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pregel.checkpoint.base import Lineage, Namespace, Write
    from pregel.checkpoint.schema import Cursor

__all__ = ["SqlSaver"]

T = TypeVar("T")
#: How many runs' numbers are remembered; a run whose numbers are forgotten asks for them again.
RUNS: Final = 1024


class SqlSaver(Checkpointer):
    """A checkpointer on a database. A subclass gives transactions and the clock."""

    def __init__(self) -> None:
        #: By thread and the token of its lease.
        self._numbers: dict[tuple[str, str], Numbers] = {}

    @abstractmethod
    def _read(self, work: Callable[[Cursor], T]) -> T:
        """Return what `work` returns for one view of the database."""

    @abstractmethod
    def _change(self, work: Callable[[Cursor], T], point: str | None = None) -> T:
        """Return what `work` returns, in a transaction that is rolled back if it raises.

        Args:
            work: What to do.
            point: The crash point just before the commit.
        """

    def _change_lease(self, work: Callable[[Cursor], T]) -> T:
        """Do the same for a lease, which need not survive a loss of power: the process that holds it does not."""
        return self._change(work)

    @abstractmethod
    def _now(self, cursor: Cursor) -> float:
        """Return the time by which leases expire, in seconds since 1970."""

    # -- leases ------------------------------------------------------------------------------------------------------

    def claim(self, thread_id: str, lease: Lease, seconds: float, dead: Callable[[Lease], bool]) -> Held | Lease:
        """Take a thread that is free: see `Checkpointer`."""

        def work(cursor: Cursor) -> tuple[int, Held | Lease]:
            while True:
                expires = self._now(cursor) + seconds
                cursor.execute(sql.ADD_HELD_THREAD, (thread_id, thread_id, *lease, expires))
                added = cursor.fetchall()
                if added:
                    return added[0][0], Held(thread_id, 0)
                found = locked(cursor, thread_id)
                if found is not None:  # else it was deleted between the two statements
                    return self._take(cursor, found, lease, seconds, dead)

        reached("claim.before")
        number, held = self._change_lease(work)
        if isinstance(held, Held):
            self._remember(thread_id, lease.token, Numbers(number, is_new=held.last_seq == 0))
        reached("claim.after")
        return held

    def _take(
        self, cursor: Cursor, found: Sequence[Any], lease: Lease, seconds: float, dead: Callable[[Lease], bool]
    ) -> tuple[int, Held | Lease]:
        """Take a thread that is there; return its number, and what `claim` returns."""
        number, origin, token, host, pid, started, expires = found
        now = self._now(cursor)
        if token is not None and expires > now:
            holder = Lease(token, host, pid, started)
            if not dead(holder):
                return number, holder
        cursor.execute(sql.SET_LEASE, (*lease, now + seconds, number))
        cursor.execute(sql.LAST_SEQ_OF, (number,))
        return number, Held(origin, int(cursor.fetchone()[0]))

    def renew(self, thread_id: str, token: str, seconds: float) -> bool:
        """Let a lease end so many seconds from now: see `Checkpointer`."""

        def work(cursor: Cursor) -> bool:
            cursor.execute(sql.RENEW, (self._now(cursor) + seconds, thread_id, token))
            return cursor.rowcount == 1

        return self._change(work)

    def release(self, thread_id: str, token: str) -> None:
        """Give up a lease: see `Checkpointer`."""

        def work(cursor: Cursor) -> None:
            cursor.execute(sql.RELEASE, (thread_id, token))
            if cursor.rowcount == 1:
                cursor.execute(sql.DROP_EMPTY_THREAD, (thread_id,))

        reached("release.before")
        self._change_lease(work)
        self._numbers.pop((thread_id, token), None)
        reached("release.after")

    # -- writing -----------------------------------------------------------------------------------------------------

    def write(self, thread_id: str, token: str, writes: Sequence[Write]) -> None:
        """Make all these writes in one transaction: see `Checkpointer`."""

        def work(cursor: Cursor) -> Numbers:
            known = self._numbers.get((thread_id, token))
            if known is None:
                cursor.execute(sql.HELD, (thread_id, token))
                row = cursor.fetchone()
                if row is None:
                    raise lost(thread_id)
                known = self._remember(thread_id, token, Numbers(row[0]))
            numbers = known.start()
            write_all(cursor, numbers, thread_id, token, writes)
            return numbers

        reached("write.before")
        self._change(work, "write.inside").committed()
        if writes and type(writes[-1]) is Release:
            self._numbers.pop((thread_id, token), None)
        reached("write.after")

    def _remember(self, thread_id: str, token: str, numbers: Numbers) -> Numbers:
        if len(self._numbers) >= RUNS:
            self._numbers.clear()
        self._numbers[thread_id, token] = numbers
        return numbers

    # -- reading -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def _rows(self, statement: str, values: Sequence[Any]) -> list[Any]:
        """Return the rows of one statement, which is a view of its own."""

    def latest(self, thread_id: str) -> CheckpointRow | None:
        """Return the newest checkpoint of the outermost graph: see `Checkpointer`."""
        rows = self._rows(sql.LATEST, (thread_id, b""))
        return CheckpointRow(rows[0][0], (), *rows[0][1:]) if rows else None

    def head(self, thread_id: str, branch: int, namespace: Namespace) -> int | None:
        """Return the step of a head."""
        rows = self._rows(sql.HEAD, (thread_id, pack(namespace), branch))
        return rows[0][0] if rows else None

    def last_seq(self, thread_id: str) -> int:
        """Return the greatest `seq` that was used on a thread: see `Checkpointer`."""
        return int(self._rows(sql.LAST_SEQ, (thread_id,))[0][0])

    def origin(self, thread_id: str) -> str:
        """Return the id under which the rows of a thread were sealed: see `Checkpointer`."""
        rows = self._rows(sql.ORIGIN, (thread_id,))
        return rows[0][0] if rows else thread_id

    def branches(self, thread_id: str) -> list[BranchRow]:
        """Return where the branches begin, by number."""
        return [BranchRow(*row) for row in self._rows(sql.BRANCHES, (thread_id,))]

    def checkpoint(self, thread_id: str, branch: int, namespace: Namespace, step: int) -> CheckpointRow | None:
        """Return one checkpoint."""
        rows = self._rows(sql.CHECKPOINT, (thread_id, pack(namespace), branch, step, step, step))
        return CheckpointRow(branch, namespace, *rows[0]) if rows else None

    def visible_checkpoint(self, thread_id: str, lineage: Lineage, namespace: Namespace) -> CheckpointRow | None:
        """Return the newest checkpoint of a namespace that a lineage sees: see `Checkpointer`."""
        packed = pack(namespace)

        def work(cursor: Cursor) -> CheckpointRow | None:
            for branch, bound in lineage:
                cursor.execute(sql.VISIBLE_CHECKPOINT, (within(bound), thread_id, packed, branch))
                row = cursor.fetchone()
                if row is not None:
                    return CheckpointRow(row[0], namespace, *row[1:])
            return None

        return self._read(work)

    def checkpoints(
        self, thread_id: str, namespace: Namespace, *, before: int | None = None, limit: int | None = None
    ) -> list[CheckpointRow]:
        """Return the checkpoints of a namespace on all branches, newest first: see `Checkpointer`."""
        limit = sql.UNLIMITED if limit is None else limit
        bound = sql.SEQ_LIMIT if before is None else min(max(before, 0), sql.SEQ_LIMIT)

        def work(cursor: Cursor) -> list[CheckpointRow]:
            cursor.execute(sql.HEADS, (thread_id, pack(namespace)))
            found = []
            for head, branch in cursor.fetchall():
                low = head * sql.SEQ_LIMIT
                cursor.execute(sql.CHECKPOINTS, (low, low + bound, limit))
                found += [
                    CheckpointRow(branch, namespace, step, at - low, created, blob)
                    for at, step, created, blob in cursor.fetchall()
                ]
            return sorted(found, key=lambda row: row.seq, reverse=True)[:limit]

        return self._read(work)

    def values(self, thread_id: str, lineage: Lineage, namespace: Namespace) -> list[ValueRow]:
        """Return what a lineage sees of each field: see `Checkpointer`."""
        packed = pack(namespace)

        def work(cursor: Cursor) -> list[ValueRow]:
            found: list[ValueRow] = []
            complete: set[str] = set()
            for branch, bound in lineage:
                cursor.execute(sql.SERIES, (thread_id, packed, branch))
                fields = {number: field for number, field in cursor.fetchall() if field not in complete}
                numbers = list(fields)
                for start in range(0, len(numbers), sql.CHUNK):
                    some = numbers[start : start + sql.CHUNK]
                    some += [-1] * (sql.CHUNK - len(some))
                    cursor.execute(sql.VALUES, (within(bound), *some, within(bound)))
                    for number, step, seq, whole, blob in cursor.fetchall():
                        field = fields[number]
                        found.append(ValueRow(branch, namespace, field, step, seq, bool(whole), blob))
                        if whole:
                            complete.add(field)
            return sorted(found, key=lambda row: (row.field, row.seq))

        return self._read(work)

    def tasks(self, thread_id: str, branch: int, namespace: Namespace, step: int) -> list[TaskRow]:
        """Return the task rows of a superstep, by task."""
        rows = self._rows(sql.TASKS, (thread_id, pack(namespace), branch, step))
        return [TaskRow(branch, namespace, step, task, blob) for task, blob in rows]

    def namespaces(self, thread_id: str, branch: int, prefix: Namespace) -> list[Namespace]:
        """Return the namespaces with a head on a branch that begin with these labels: see `Checkpointer`."""
        return [unpack(row[0]) for row in self._rows(sql.NAMESPACES, (thread_id, branch, *bounds(prefix)))]

    # -- keeping -----------------------------------------------------------------------------------------------------

    def threads(self, *, limit: int | None = None, after: str | None = None) -> list[ThreadInfo]:
        """Return the threads in the order of their ids, those behind `after`."""
        rows = self._rows(sql.THREADS, (after or "", sql.UNLIMITED if limit is None else limit))
        return [
            ThreadInfo(name, created, updated, count, bool(leased)) for name, created, updated, count, leased in rows
        ]

    def delete_thread(self, thread_id: str) -> None:
        """Forget a thread: see `Checkpointer`."""

        def work(cursor: Cursor) -> None:
            found = locked(cursor, thread_id)
            if found is not None:
                for statement in sql.DELETE_THREAD:
                    cursor.execute(statement, (found[0],))

        self._change(work)

    def copy_thread(self, source: str, target: str) -> None:
        """Copy a thread under another id: see `Checkpointer`."""

        def work(cursor: Cursor) -> None:
            found = locked(cursor, source)
            if found is None:
                raise CheckpointNotFoundError(f"there is no thread {show(source)} to copy")
            cursor.execute(sql.ORIGIN, (source,))
            cursor.execute(sql.ADD_THREAD, (target, *cursor.fetchone()))
            if cursor.rowcount != 1:
                raise taken(target, "it is there already, and a copy needs a new id")
            new = locked(cursor, target)
            for statement in sql.COPY_THREAD:
                cursor.execute(statement, (new[0], found[0]))

        self._change(work)

    def prune(
        self, *, keep_last: int | None = None, older_than: float | None = None, thread_id: str | None = None
    ) -> int:
        """Delete old checkpoints: see `Checkpointer`. Each thread is a transaction of its own."""
        check_limits(keep_last, older_than)
        names = [name for (name,) in self._rows(sql.THREAD_NAMES, ())] if thread_id is None else [thread_id]
        deleted = 0
        for name in names:
            deleted += self._change(partial(self._prune, name, keep_last, older_than))
        return deleted

    def _prune(self, thread_id: str, keep_last: int | None, older_than: float | None, cursor: Cursor) -> int:
        found = locked(cursor, thread_id)
        if found is None:
            return 0
        cutoff = None if older_than is None else self._now(cursor) - older_than
        cursor.execute(sql.BRANCHES, (thread_id,))
        branches = [BranchRow(*row) for row in cursor.fetchall()]
        cursor.execute(sql.CHECKPOINT_MARKS, (found[0],))
        checkpoints = {
            CheckpointMark(branch, unpack(namespace), seq, created): at
            for at, branch, namespace, seq, created in cursor.fetchall()
        }
        cursor.execute(sql.VALUE_MARKS, (found[0],))
        values = {
            ValueMark(branch, unpack(namespace), field, seq, bool(whole)): at
            for at, branch, namespace, field, seq, whole in cursor.fetchall()
        }
        old, unneeded = spare(branches, checkpoints, values, keep_last=keep_last, cutoff=cutoff)
        if old:
            cursor.executemany(sql.DELETE_CHECKPOINT, [(checkpoints[mark],) for mark in old])
        if unneeded:
            cursor.executemany(sql.DELETE_VALUE, [(values[mark],) for mark in unneeded])
        return len(old)


def locked(cursor: Cursor, thread_id: str) -> Any:
    """Return a thread's row, which nobody else changes or writes to until the transaction ends, or None."""
    cursor.execute(sql.LOCK_THREAD, (thread_id,))
    return cursor.fetchone()


def within(seq: int) -> int:
    """Return a bound that stays among the rows of one number."""
    return min(max(seq, -1), sql.SEQ_LIMIT - 1)
