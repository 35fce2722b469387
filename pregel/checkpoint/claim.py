"""One run's hold on a thread: its lease, its branch, and the one way by which all graphs of the run write."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Final

from pregel.checkpoint.base import Advance, BranchRow, CheckpointRow, Lease, OpenBranch, PutCheckpoint, Release
from pregel.checkpoint.group import GroupWriter
from pregel.checkpoint.keeper import keeper
from pregel.checkpoint.owner import is_dead, new_lease
from pregel.errors import ThreadBusyError
from pregel.types import GroupCommit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pregel.checkpoint.base import Checkpointer, Lineage, Write
    from pregel.checkpoint.recorder import Recorder
    from pregel.types import Durability

__all__ = ["LATEST", "Claim", "lineage_of"]

#: Above every `seq`.
LATEST: Final = 2**62


class Claim:
    """A thread that a run holds.

    Args:
        saver: The checkpointer.
        thread_id: The thread.
        durability: When what is committed is written: at once, by a thread behind the run, or by `close`.
    """

    def __init__(self, saver: Checkpointer, thread_id: str, durability: Durability | GroupCommit) -> None:
        self.saver = saver
        self.thread_id = thread_id
        self.lease: Lease = new_lease()
        self.held = False
        #: Whether nothing was stored on the thread when it was taken.
        self.is_new = False
        #: Whether the last commit has given the thread up, or will when it is written.
        self.released = False
        #: What the seals of the thread's rows name it by.
        self.origin = thread_id
        self.branch = 0
        self.lineage: Lineage = ((0, LATEST),)
        self.seqs: Iterator[int] = count(1)
        #: The graphs inside the run that have a history of their own and are running.
        self.busy: set[tuple[str, ...]] = set()
        self.keeps_until_end = durability == "exit"
        bounds = GroupCommit() if durability == "async" else durability
        self.group = GroupWriter(self.write_now, bounds) if isinstance(bounds, GroupCommit) else None
        #: Whether a commit may wait for a disk or a network.
        self.blocking = saver.blocking and self.group is None
        # What a run that writes at its end has to write then, by graph.
        self.pending: dict[Recorder, None] = {}
        # What such a run goes on from where a graph inside it has a history of its own, by namespace.
        self.remembered: dict[tuple[str, ...], Recorder] = {}
        # The same of the calls that the tasks of open supersteps have made, by the namespace of the graph that those
        # are of: an attempt that follows one that failed finds what was done.
        self.calls: dict[tuple[str, ...], dict[tuple[str, ...], Recorder]] = {}
        # What opens the branch of a run that begins at an old checkpoint, until that is written.
        self.opening: list[Write] = []
        self.opens = Lock()
        #: Where several supersteps are one transaction: their writes so far.
        self.together: list[Write] | None = None

    def attempt(self) -> Lease | None:
        """Take the thread, or return who holds it."""
        try:
            found = self.saver.claim(self.thread_id, self.lease, self.saver.lease_seconds, is_dead)
        except Exception:  # the storage's answer may have been lost after it had done its work
            with suppress(Exception):
                self.saver.release(self.thread_id, self.lease.token)
            raise
        if isinstance(found, Lease):
            return found
        self.held = True
        self.origin, last_seq = found
        self.is_new = last_seq == 0
        self.seqs = count(last_seq + 1)
        keeper.keep(self.saver, self.thread_id, self.lease.token, self.saver.lease_seconds)
        return None

    def take_call(self, namespace: tuple[str, ...], recorder: Recorder) -> Recorder | None:
        """Keep the recorder of a call that a task makes, or return that of the same call if it has ended before."""
        made = self.calls.setdefault(namespace[:-1], {})
        earlier = made.get(namespace)
        if earlier is not None and earlier.ended:
            return earlier
        made[namespace] = recorder
        return None

    def forget_calls(self, namespace: tuple[str, ...]) -> None:
        """Forget the calls of a superstep that is over: what they came to is in what it changed."""
        for recorder in self.calls.pop(namespace, {}).values():
            self.pending.pop(recorder, None)

    def refused(self, holder: Lease) -> ThreadBusyError:
        """Return the error of a thread that another run holds."""
        return ThreadBusyError(
            f"thread {self.thread_id!r} is taken by another run (process {holder.pid} on {holder.host}), and two runs "
            'on one thread would undo each other. Wait for it (on_busy="wait"), or give this run a thread of its own'
        )

    def take_branch(self, branch: int, branches: Sequence[BranchRow]) -> None:
        """Go on on a branch."""
        self.branch = branch
        self.lineage = lineage_of(branch, LATEST, branches)

    def fork(self, source: CheckpointRow, branches: Sequence[BranchRow], blob: bytes) -> CheckpointRow:
        """Go on on a new branch, which the first commit opens: a run that comes to nothing leaves none behind.

        Args:
            source: The checkpoint.
            branches: The branches that there are.
            blob: What the first checkpoint of the new branch holds: that of `source`, as a fork.

        Returns:
            The first checkpoint of the new branch.
        """
        number = max((row.branch for row in branches), default=0) + 1
        opened = BranchRow(number, source.branch, source.seq)
        seq = next(self.seqs)
        row = CheckpointRow(number, (), source.step, seq, source.created, blob)
        self.opening = [OpenBranch(opened), Advance(number, (), None, source.step, seq), PutCheckpoint(row)]
        self.take_branch(number, [*branches, opened])
        return row

    def write_last(self, writes: list[Write]) -> None:
        """Commit the last writes of the run, and let the thread go in the same transaction; else like `write`."""
        if self.together is None:
            writes.append(Release())
            self.write(writes)
            self.released = True
        else:
            self.write(writes)

    def write(self, writes: Sequence[Write]) -> None:
        """Commit writes: durable now, or soon.

        Raises:
            ConcurrentRunError: Another run has the thread.
            Exception: The storage failed.
        """
        if self.together is not None:
            self.together.extend(writes)
        elif self.group is None:
            self.write_now(writes)
        else:
            self.group.put(writes)

    def write_now(self, writes: Sequence[Write]) -> None:
        """Write one transaction."""
        if self.opening:
            with self.opens:  # graphs that run side by side commit in threads, and one of them opens the branch
                if self.opening:
                    self.saver.write(self.thread_id, self.lease.token, [*self.opening, *writes])
                    self.opening = []
                    return
        self.saver.write(self.thread_id, self.lease.token, writes)

    @property
    def has_to_write(self) -> bool:
        """Whether `close` calls the storage."""
        return self.held and (not self.released or self.group is not None)

    def flush(self) -> None:
        """Wait until everything that was committed is written."""
        if self.group is not None:
            self.group.flush()

    def close(self) -> None:
        """Write what is still to be written, and let the thread go.

        Raises:
            Exception: The storage failed.
        """
        if not self.held:
            return
        self.held = False
        try:
            if self.group is not None:
                self.group.close()
            elif self.together:
                self.write_now(self.together)
            elif self.pending:
                writes = [write for recorder in in_order(list(self.pending)) for write in recorder.remaining()]
                self.pending.clear()
                if writes:
                    self.write_last(writes)
        except BaseException:
            self.released = False
            raise
        finally:
            keeper.drop(self.lease.token)
            if not self.released:
                self.saver.release(self.thread_id, self.lease.token)


def in_order(recorders: Sequence[Recorder]) -> list[Recorder]:
    """Return the graphs of a run that writes at its end in the order in which they are written.

    What a checkpoint sees of the graphs inside is what was written before it. So a graph stands before the one around
    it, unless it has gone on in a superstep that is still open there.
    """
    known = set(recorders)
    inner: dict[Recorder | None, list[Recorder]] = {}
    for recorder in recorders:
        around = recorder.around
        inner.setdefault(around if around in known else None, []).append(recorder)

    def walk(recorder: Recorder) -> Iterator[Recorder]:
        children = inner.get(recorder, [])
        for child in children:
            if child.written_at != recorder.step:
                yield from walk(child)
        yield recorder
        for child in children:
            if child.written_at == recorder.step:
                yield from walk(child)

    return [each for top in inner.get(None, ()) for each in walk(top)]


def lineage_of(branch: int, seq: int, branches: Sequence[BranchRow]) -> tuple[tuple[int, int], ...]:
    """Return the branches that a reader on one sees up to a `seq`, each with the greatest one that counts."""
    known = {row.branch: row for row in branches}
    found = [(branch, seq)]
    while branch in known:
        row = known[branch]
        seq = min(seq, row.fork_seq)
        branch = row.parent
        found.append((branch, seq))
    return tuple(found)
