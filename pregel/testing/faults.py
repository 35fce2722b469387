"""Faults made on purpose: the process that dies at a named point, and the storage operation that fails.

A run must survive both. Count first what a run passes, then let it fail at every place in turn::

    with points_passed() as passed:
        run()
    for point, times in passed.items():
        for occurrence in range(1, times + 1):
            ...  # in a process of its own: crash_at(point, occurrence), then run; here: resume, and compare
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from pregel.checkpoint.base import Checkpointer
from pregel.checkpoint.points import POINTS, listen
from pregel.errors import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pregel.checkpoint.base import (
        BranchRow,
        CheckpointRow,
        Held,
        Lease,
        Lineage,
        Namespace,
        TaskRow,
        ThreadInfo,
        ValueRow,
        Write,
    )

__all__ = ["FaultySaver", "StorageFault", "crash_at", "points_passed"]

T = TypeVar("T")


class StorageFault(Exception):  # noqa: N818 - it is a fault, made on purpose
    """The failure of a storage operation that a test asked for."""


def crash_at(point: str, occurrence: int = 1) -> None:
    """Kill this process, as `kill -9` does, when it reaches a point for the n-th time from now on.

    Nothing is cleaned up, no `finally` runs. Call it in a process that a test started for this.

    Args:
        point: One of `pregel.checkpoint.points.POINTS`.
        occurrence: Which time, from 1.

    Raises:
        ValueError: There is no such point, or `occurrence` is less than 1.
    """
    if point not in POINTS:
        raise ValueError(f"there is no point {point!r}, only {', '.join(POINTS)}.{nearest(point, POINTS)}")
    if occurrence < 1:
        raise ValueError(f"occurrences are counted from 1, and {occurrence} is none")
    passed = Counting()

    def hook(name: str) -> None:
        if name == point and passed.add(name) == occurrence:
            os.kill(os.getpid(), signal.SIGKILL)

    listen(hook)


@contextmanager
def points_passed() -> Iterator[Counter[str]]:
    """Count how often each point is reached in the block, by all threads of the process.

    Yields:
        The counts so far, by point.
    """
    passed = Counting()
    previous = listen(passed.add)
    try:
        yield passed.counts
    finally:
        listen(previous)


class Counting:
    """Counts by name, from several threads."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._lock = Lock()

    def add(self, name: str) -> int:
        """Count one more, and return how many there are now."""
        with self._lock:
            self.counts[name] += 1
            return self.counts[name]


class FaultySaver(Checkpointer):
    """A checkpointer whose n-th operation fails; every method but `close` is one. All others do what they should.

    Args:
        saver: What does the work. Closing this closes it.
        fail_at: Which operation fails, from 1; None for none, to count them.
        error: What it raises.
        after: Whether it fails after the work is done, as when a server's answer is lost, and not before.
    """

    def __init__(
        self, saver: Checkpointer, fail_at: int | None = None, *, error: Exception | None = None, after: bool = False
    ) -> None:
        self.saver = saver
        self.fail_at = fail_at
        self.error = StorageFault("a storage operation that fails on purpose") if error is None else error
        self.after = after
        #: The names of the operations so far, in the order in which they began.
        self.operations: list[str] = []
        self._lock = Lock()
        self.lease_seconds = saver.lease_seconds
        self.blocking = saver.blocking  # type: ignore[misc]  # a class says it, but this one is as its saver is

    def _operate(self, operation: Callable[..., T], *args: Any, **options: Any) -> T:
        with self._lock:
            self.operations.append(operation.__name__)
            fails = len(self.operations) == self.fail_at
        if fails and not self.after:
            raise self.error
        result = operation(*args, **options)
        if fails:
            raise self.error
        return result

    def close(self) -> None:
        """Close the checkpointer that does the work."""
        self.saver.close()

    def claim(self, thread_id: str, lease: Lease, seconds: float, dead: Callable[[Lease], bool]) -> Held | Lease:
        """See `Checkpointer`."""
        return self._operate(self.saver.claim, thread_id, lease, seconds, dead)

    def renew(self, thread_id: str, token: str, seconds: float) -> bool:
        """See `Checkpointer`."""
        return self._operate(self.saver.renew, thread_id, token, seconds)

    def release(self, thread_id: str, token: str) -> None:
        """See `Checkpointer`."""
        self._operate(self.saver.release, thread_id, token)

    def write(self, thread_id: str, token: str, writes: Sequence[Write]) -> None:
        """See `Checkpointer`."""
        self._operate(self.saver.write, thread_id, token, writes)

    def latest(self, thread_id: str) -> CheckpointRow | None:
        """See `Checkpointer`."""
        return self._operate(self.saver.latest, thread_id)

    def head(self, thread_id: str, branch: int, namespace: Namespace) -> int | None:
        """See `Checkpointer`."""
        return self._operate(self.saver.head, thread_id, branch, namespace)

    def origin(self, thread_id: str) -> str:
        """See `Checkpointer`."""
        return self._operate(self.saver.origin, thread_id)

    def last_seq(self, thread_id: str) -> int:
        """See `Checkpointer`."""
        return self._operate(self.saver.last_seq, thread_id)

    def branches(self, thread_id: str) -> list[BranchRow]:
        """See `Checkpointer`."""
        return self._operate(self.saver.branches, thread_id)

    def checkpoint(self, thread_id: str, branch: int, namespace: Namespace, step: int) -> CheckpointRow | None:
        """See `Checkpointer`."""
        return self._operate(self.saver.checkpoint, thread_id, branch, namespace, step)

    def visible_checkpoint(self, thread_id: str, lineage: Lineage, namespace: Namespace) -> CheckpointRow | None:
        """See `Checkpointer`."""
        return self._operate(self.saver.visible_checkpoint, thread_id, lineage, namespace)

    def checkpoints(
        self, thread_id: str, namespace: Namespace, *, before: int | None = None, limit: int | None = None
    ) -> list[CheckpointRow]:
        """See `Checkpointer`."""
        return self._operate(self.saver.checkpoints, thread_id, namespace, before=before, limit=limit)

    def values(self, thread_id: str, lineage: Lineage, namespace: Namespace) -> list[ValueRow]:
        """See `Checkpointer`."""
        return self._operate(self.saver.values, thread_id, lineage, namespace)

    def tasks(self, thread_id: str, branch: int, namespace: Namespace, step: int) -> list[TaskRow]:
        """See `Checkpointer`."""
        return self._operate(self.saver.tasks, thread_id, branch, namespace, step)

    def namespaces(self, thread_id: str, branch: int, prefix: Namespace) -> list[Namespace]:
        """See `Checkpointer`."""
        return self._operate(self.saver.namespaces, thread_id, branch, prefix)

    def threads(self, *, limit: int | None = None, after: str | None = None) -> list[ThreadInfo]:
        """See `Checkpointer`."""
        return self._operate(self.saver.threads, limit=limit, after=after)

    def delete_thread(self, thread_id: str) -> None:
        """See `Checkpointer`."""
        self._operate(self.saver.delete_thread, thread_id)

    def copy_thread(self, source: str, target: str) -> None:
        """See `Checkpointer`."""
        self._operate(self.saver.copy_thread, source, target)

    def prune(
        self, *, keep_last: int | None = None, older_than: float | None = None, thread_id: str | None = None
    ) -> int:
        """See `Checkpointer`."""
        return self._operate(self.saver.prune, keep_last=keep_last, older_than=older_than, thread_id=thread_id)
