"""Commits in groups: a thread writes what a run has committed, in order, while the run goes on.

A group is what came while the last one was written, so a slow disk makes large groups and a fast one small ones, and
nothing waits for company. What the run may be ahead is bounded: in commits, and by the age of the oldest one.
"""

from __future__ import annotations

from threading import Condition, Thread
from time import monotonic
from typing import TYPE_CHECKING

from pregel.checkpoint.base import Advance, DropTasks, PutCheckpoint, PutTask, PutValue, Release

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pregel.checkpoint.base import Write
    from pregel.types import GroupCommit

__all__ = ["GroupWriter", "merged"]


class GroupWriter:
    """Writes behind a run.

    Args:
        write: Writes one transaction.
        bounds: How far the run may be ahead.
    """

    def __init__(self, write: Callable[[Sequence[Write]], None], bounds: GroupCommit) -> None:
        self.write = write
        self.bounds = bounds
        self.changed = Condition()
        #: Commits that are not written yet, those that are being written among them.
        self.waiting = 0
        self.queue: list[Write] = []
        #: When the oldest commit of the queue, and that of the group which is being written, came.
        self.oldest: float | None = None
        self.writing: float | None = None
        self.error: BaseException | None = None
        self.ended = False
        self.thread: Thread | None = None

    def put(self, writes: Sequence[Write]) -> None:
        """Add a commit, and wait while the run is too far ahead.

        Raises:
            Exception: A commit before this one could not be written.
        """
        with self.changed:
            self.raise_error()
            self.queue.extend(writes)
            self.waiting += 1
            if self.oldest is None:
                self.oldest = monotonic()
            if self.thread is None:
                self.thread = Thread(target=self.work, name="pregel-group-commit", daemon=True)
                self.thread.start()
            elif self.waiting == 1:  # else the writer is at work and looks again by itself
                self.changed.notify_all()
            while self.error is None and self.is_behind():
                self.changed.wait()
            self.raise_error()

    def is_behind(self) -> bool:
        """Return whether more waits than may be lost."""
        since = self.oldest if self.writing is None else self.writing
        late = since is not None and (monotonic() - since) * 1_000 > self.bounds.milliseconds
        return self.waiting > self.bounds.steps or late

    def flush(self) -> None:
        """Wait until everything is written.

        Raises:
            Exception: Something could not be written.
        """
        with self.changed:
            while self.waiting and self.error is None:
                self.changed.wait()
            self.raise_error()

    def close(self) -> None:
        """Write what waits, and end the thread.

        Raises:
            Exception: Something could not be written, and nobody was told yet.
        """
        with self.changed:
            self.ended = True
            self.changed.notify_all()
        if self.thread is not None:
            self.thread.join()
        self.raise_error()

    def raise_error(self) -> None:
        """Raise what the writer ran into, if it did."""
        if self.error is not None:
            raise self.error

    def work(self) -> None:
        """Write group after group: what the thread does."""
        while True:
            with self.changed:
                while not self.queue and not self.ended:
                    self.changed.wait()
                if not self.queue:
                    return
                group, count = self.queue, self.waiting
                self.writing, self.oldest = self.oldest, None
                self.queue = []
            try:
                self.write(merged(group))
            except BaseException as error:  # noqa: BLE001 - raised again where the run commits
                with self.changed:
                    self.error = error
                    self.changed.notify_all()
                return
            with self.changed:
                self.waiting -= count
                self.writing = None
                self.changed.notify_all()


def merged(writes: Sequence[Write]) -> list[Write]:
    """Return one transaction that leaves what these leave one after the other.

    Heads move once and rows of one kind stand together, which is what a database is quick at. Task rows that are
    dropped in the same group are not written at all.
    """
    advances: dict[tuple[int, tuple[str, ...]], Advance] = {}
    others: list[Write] = []
    checkpoints: list[Write] = []
    values: list[Write] = []
    last: list[Write] = []
    tasks: dict[tuple[int, tuple[str, ...], int], list[Write]] = {}
    for write in writes:
        if type(write) is Advance:
            key = (write.branch, write.namespace)
            first = advances.get(key)
            advances[key] = write if first is None else first._replace(step=write.step, seq=write.seq)
        elif type(write) is PutValue:
            values.append(write)
        elif type(write) is PutCheckpoint:
            checkpoints.append(write)
        elif type(write) is PutTask:
            row = write.row
            tasks.setdefault((row.branch, row.namespace, row.step), []).append(write)
        elif type(write) is DropTasks:
            tasks[write.branch, write.namespace, write.step] = [write]
        elif type(write) is Release:
            last = [write]
        else:
            others.append(write)
    rows = [each for group in tasks.values() for each in group]
    # Where the outermost head moves as well, it is not where the others saw it; the lease alone is their fence then.
    moved = {branch for branch, namespace in advances if not namespace}
    heads = [each._replace(check_root=False) if each.branch in moved else each for each in advances.values()]
    return [*others, *heads, *checkpoints, *values, *rows, *last]
