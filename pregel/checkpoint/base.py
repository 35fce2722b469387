"""What a checkpointer stores, and the one protocol that all of them keep.

Theory of operation. A checkpointer knows rows of bytes and transactions, nothing of graphs. A thread has branches: 0 is
where it begins, a fork opens the next. On a branch every graph of the run has a namespace (empty for the outermost),
and in it a head: the superstep that was committed last. `Advance` moves a head by compare-and-set, and the rest of the
transaction is written only if that succeeds. So whoever was overtaken commits nothing.

A field is stored where a superstep changed it: whole, or as a patch to the row before. Its value at a checkpoint is the
newest whole row up to there with the patches after it. Rows are ordered by `seq`, a number that grows with each commit
of the thread, over all its branches and namespaces; no clock is involved.

A run holds a lease on its thread. Every write checks its token, in the transaction itself. A lease that has expired can
be taken; until somebody does, its holder still has it, so that no clock decides whether a commit counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import TracebackType  # noqa: TC003 - read by who asks for the hints of the protocol
from typing import ClassVar, NamedTuple, Self, TypeAlias

__all__ = [
    "Advance",
    "BranchRow",
    "CheckpointRow",
    "Checkpointer",
    "DropTasks",
    "Held",
    "Lease",
    "Lineage",
    "Namespace",
    "OpenBranch",
    "PutCheckpoint",
    "PutTask",
    "PutValue",
    "Release",
    "TaskRow",
    "ThreadInfo",
    "ValueRow",
    "Write",
]

#: The path to a graph inside the outermost one; empty for that one. Labels, never a joined text.
Namespace: TypeAlias = tuple[str, ...]
#: The branches whose rows a reader sees, its own first, each with the greatest `seq` that counts.
Lineage: TypeAlias = Sequence[tuple[int, int]]


class Lease(NamedTuple):
    """Who holds a thread."""

    #: Random; what every write of the holder shows.
    token: str
    #: The machine, as far as it can be told apart: see `pregel.checkpoint.owner`.
    host: str
    pid: int
    #: When the process began, in the words of its operating system; a number may be used by another process later.
    started: str


class Held(NamedTuple):
    """A thread that was taken, as its holder finds it."""

    #: See `Checkpointer.origin`.
    origin: str
    #: See `Checkpointer.last_seq`: 0 says that nothing is stored yet.
    last_seq: int


class CheckpointRow(NamedTuple):
    """A barrier that was committed."""

    branch: int
    namespace: Namespace
    step: int
    seq: int
    #: Seconds since 1970, for people and for retention; nothing is ordered by it.
    created: float
    blob: bytes


class ValueRow(NamedTuple):
    """A field as a superstep left it."""

    branch: int
    namespace: Namespace
    field: str
    step: int
    seq: int
    #: Whether `blob` is the value; else it is a patch to the row before.
    whole: bool
    blob: bytes


class TaskRow(NamedTuple):
    """How a task of the open superstep ended, while that can't be committed yet."""

    branch: int
    namespace: Namespace
    step: int
    task: str
    blob: bytes


class BranchRow(NamedTuple):
    """Where a branch begins: it sees the rows of its parent up to `fork_seq`. Branch 0 has none, and is taken."""

    branch: int
    parent: int
    fork_seq: int


class ThreadInfo(NamedTuple):
    """What a list of threads says."""

    thread_id: str
    #: When its oldest and its newest checkpoint were written, in seconds since 1970; 0.0 where there is none yet.
    created: float
    updated: float
    #: How many checkpoints there are, those of graphs inside it included.
    checkpoints: int
    #: Whether a lease is recorded, dead or alive.
    leased: bool


class Advance(NamedTuple):
    """Move a head, if it is where the writer believes it to be; else `ConcurrentRunError` and nothing is written.

    Along a head `step` and `seq` grow together; a `step` is at least 0, a `seq` at least 1 and less
    than 2**32, and it is used once in a thread.
    """

    branch: int
    namespace: Namespace
    #: The step of the head; None where there must be none yet.
    before: int | None
    step: int
    seq: int
    #: For a graph inside another one: the step at which the head of the outermost one (namespace empty, same branch)
    #: must stand. None where that must have no head yet, or is not to be checked: see `check_root`.
    root_step: int | None = None
    check_root: bool = False


class PutCheckpoint(NamedTuple):
    """Write a checkpoint row."""

    row: CheckpointRow


class PutValue(NamedTuple):
    """Write a field row."""

    row: ValueRow


class PutTask(NamedTuple):
    """Write a task row: a new one, where one that is there is a `ConcurrentRunError`, or in place of one."""

    row: TaskRow
    replaces: bool = False


class DropTasks(NamedTuple):
    """Delete the task rows of a superstep."""

    branch: int
    namespace: Namespace
    step: int


class OpenBranch(NamedTuple):
    """Record where a branch begins; a number that is taken is a `ConcurrentRunError`."""

    row: BranchRow


class Release(NamedTuple):
    """Give up the lease with this transaction, the last one of its holder; in a transaction it stands last.

    A run says so where its last superstep is committed, and is spared a transaction of its own. As with
    `Checkpointer.release` a thread to which nothing was written goes with it, but a lease that is not held is a
    `ConcurrentRunError`.
    """


Write: TypeAlias = Advance | PutCheckpoint | PutValue | PutTask | DropTasks | OpenBranch | Release


class Checkpointer(ABC):
    """A store of runs. Every method may be called from any thread, and by several at once.

    What it raises for a storage that fails is the storage's own error (`sqlite3.Error`, `psycopg.Error`): the run ends
    with it, and nothing of the transaction is stored.
    """

    #: Whether calls wait for a disk or a network, so that they do not belong on an event loop.
    blocking: ClassVar[bool] = True
    #: How long a thread stays taken whose run has died on another machine, in seconds; assign another number to change
    #: it. A run that lives renews its lease three times in that time.
    lease_seconds: float = 10.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Give back connections and files; a second time it does nothing."""

    # -- leases ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def claim(self, thread_id: str, lease: Lease, seconds: float, dead: Callable[[Lease], bool]) -> Held | Lease:
        """Take a thread that is free: without lease, with one that has expired, or whose holder is dead.

        Returns:
            The thread as it stands, seen by the transaction that took it; or the lease of who holds it.
        """

    @abstractmethod
    def renew(self, thread_id: str, token: str, seconds: float) -> bool:
        """Let a lease end so many seconds from now; return whether it is still held, also where it had expired."""

    @abstractmethod
    def release(self, thread_id: str, token: str) -> None:
        """Give up a lease; one that is not held is left alone. A thread to which nothing was written goes with it."""

    # -- writing -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def write(self, thread_id: str, token: str, writes: Sequence[Write]) -> None:
        """Make all these writes in one transaction, in order, or none of them.

        Raises:
            ConcurrentRunError: The lease is not held any more (an expired one that nobody took is), a head is
                elsewhere, a row or a branch is there already, or one that is to be replaced is not.
        """

    # -- reading -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def latest(self, thread_id: str) -> CheckpointRow | None:
        """Return the newest checkpoint of the outermost graph, on whatever branch."""

    @abstractmethod
    def head(self, thread_id: str, branch: int, namespace: Namespace) -> int | None:
        """Return the step of a head."""

    @abstractmethod
    def last_seq(self, thread_id: str) -> int:
        """Return the greatest `seq` of an `Advance` on a thread; 0 for a thread that is not there."""

    @abstractmethod
    def origin(self, thread_id: str) -> str:
        """Return the id under which the rows of a thread were sealed: its own, and for a copy that of its source."""

    @abstractmethod
    def branches(self, thread_id: str) -> list[BranchRow]:
        """Return where the branches begin, by number."""

    @abstractmethod
    def checkpoint(self, thread_id: str, branch: int, namespace: Namespace, step: int) -> CheckpointRow | None:
        """Return one checkpoint."""

    @abstractmethod
    def visible_checkpoint(self, thread_id: str, lineage: Lineage, namespace: Namespace) -> CheckpointRow | None:
        """Return the newest checkpoint of a namespace, of the first branch of a lineage that has one in bounds."""

    @abstractmethod
    def checkpoints(
        self, thread_id: str, namespace: Namespace, *, before: int | None = None, limit: int | None = None
    ) -> list[CheckpointRow]:
        """Return the checkpoints of a namespace on all branches, newest first, those with `seq < before`."""

    @abstractmethod
    def values(self, thread_id: str, lineage: Lineage, namespace: Namespace) -> list[ValueRow]:
        """Return what a lineage sees of each field: the newest whole row and the patches after it, by field and seq.

        A field's rows are read along the lineage: those of its first branch in bounds, before them those of the next
        one, until there is a whole row. Reading costs what is returned, not the length of the history.
        """

    @abstractmethod
    def tasks(self, thread_id: str, branch: int, namespace: Namespace, step: int) -> list[TaskRow]:
        """Return the task rows of a superstep, by task."""

    @abstractmethod
    def namespaces(self, thread_id: str, branch: int, prefix: Namespace) -> list[Namespace]:
        """Return the namespaces with a head on a branch that begin with these labels, sorted; `prefix` itself too."""

    # -- keeping -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def threads(self, *, limit: int | None = None, after: str | None = None) -> list[ThreadInfo]:
        """Return the threads in the order of their ids, those behind `after`."""

    @abstractmethod
    def delete_thread(self, thread_id: str) -> None:
        """Forget a thread. A run that has it commits nothing more; a thread that is not there is left so."""

    @abstractmethod
    def copy_thread(self, source: str, target: str) -> None:
        """Copy a thread with its branches and history under another id.

        Raises:
            CheckpointNotFoundError: There is no thread `source`.
            ConcurrentRunError: There is a thread `target`.
        """

    @abstractmethod
    def prune(
        self, *, keep_last: int | None = None, older_than: float | None = None, thread_id: str | None = None
    ) -> int:
        """Delete old checkpoints, and of the rows of fields those that no checkpoint left needs.

        Each branch keeps its newest checkpoint of every namespace, with its task rows, so that what is open can go on,
        and those that other branches begin at. With a checkpoint of the outermost graph stay those of graphs inside it
        that one sees from there.

        Args:
            keep_last: How many of the newest checkpoints of a namespace each branch keeps, at least 1; None for 1.
            older_than: Seconds; only what is older is deleted.
            thread_id: One thread; None for all.

        Returns:
            How many checkpoints were deleted.

        Raises:
            ValueError: Neither `keep_last` nor `older_than` is given, or one makes no sense.
        """
