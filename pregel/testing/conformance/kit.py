"""What the checks are written with: a run that holds a thread, names that break what is put together from texts."""

from __future__ import annotations

from threading import Barrier, Thread
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from pregel.checkpoint.base import (
    Advance,
    BranchRow,
    CheckpointRow,
    Held,
    Lease,
    OpenBranch,
    PutCheckpoint,
    PutValue,
    ValueRow,
)
from pregel.errors import PregelError
from pregel.text import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pregel.checkpoint.base import Checkpointer, Namespace, Write

    Make: TypeAlias = Callable[[], Checkpointer]
    Check: TypeAlias = Callable[[Make], None]

__all__ = [
    "EVERYTHING",
    "HOSTILE",
    "NO",
    "PATCH",
    "STEPS",
    "WHOLE",
    "YES",
    "ConformanceError",
    "Run",
    "alive",
    "at_once",
    "collect",
    "everything",
    "expect",
    "gone",
    "lease",
    "refuse",
    "seen",
]

T = TypeVar("T", bound="Callable[..., None]")
#: How many characters of a value a message has.
SHOWN: Final = 1_000
#: All rows of a branch.
EVERYTHING: Final = 1 << 40
#: Whether a field row holds the value or a patch.
WHOLE: Final = True
PATCH: Final = False
YES: Final = True
NO: Final = False
#: As many supersteps as a check looks through.
STEPS: Final = 10
#: Texts that break what is put together from texts.
HOSTILE: Final = (
    "%", "_", ".", ":", "'", '"', "\\", "a%", "a_", "ab", "a.b", "a:b", "a/b", "a|b", "a\nb", "a\tb", " ", " a", "a ",
    "'; DROP TABLE pregel_threads; --", "?", "%s", "$1", "{}", "NULL", "None", "-1", "ä", "a\u0308", "日本", "🙂",
    "A", "a",
    "\x01", "\x7f", "\u2028", "\U0010ffff", "x" * 512, "🙂" * 512,
)  # fmt: skip


class ConformanceError(PregelError, AssertionError):
    """A checkpointer or a store does something else than it has to do."""


def collect(checks: Sequence[T], run: Callable[[T], None]) -> None:
    """Run every check.

    Raises:
        ExceptionGroup: Of what the checks that failed raised, each with the name of its check as a note.
    """
    errors = []
    for check in checks:
        try:
            run(check)
        except Exception as error:  # noqa: BLE001 - all are collected
            error.add_note(f"in the check {check.__name__}")
            errors.append(error)
    if errors:
        raise ExceptionGroup(f"{len(errors)} of {len(checks)} checks failed", errors)


def expect(actual: object, wanted: object, what: str) -> None:
    """Check that something is what it should be."""
    if actual != wanted:
        raise ConformanceError(f"{what}: expected {shortened(wanted, SHOWN)}, got {shortened(actual, SHOWN)}")


def refuse(kind: type[Exception], action: Callable[[], object], what: str) -> None:
    """Check that something raises."""
    try:
        action()
    except kind:
        return
    raise ConformanceError(f"{what}: expected {kind.__name__}, but it was done")


def lease(token: str) -> Lease:
    """Return a lease of nobody in particular."""
    return Lease(token, "somewhere", 1, "0")


def alive(_: Lease) -> bool:
    """Say of every holder that it is alive."""
    return False


def gone(_: Lease) -> bool:
    """Say of every holder that it is dead."""
    return True


class Run:
    """A run that holds a thread and writes superstep after superstep, as the engine does."""

    def __init__(self, saver: Checkpointer, thread_id: str = "t", holder: str = "") -> None:
        self.saver = saver
        self.thread_id = thread_id
        self.token = holder or f"token of {thread_id}"
        self.seq = saver.last_seq(thread_id)
        held = saver.claim(thread_id, lease(self.token), 60, gone)
        expect(held, Held(saver.origin(thread_id), self.seq), "a thread of the dead that was claimed")

    def write(self, *writes: Write) -> None:
        """Write this in one transaction."""
        self.saver.write(self.thread_id, self.token, writes)

    def barrier(
        self, step: int, namespace: Namespace = (), branch: int = 0, created: float = 0.0, **fields: tuple[bool, bytes]
    ) -> list[Write]:
        """Return the writes of a barrier; a field is given as whether it is whole, and its bytes."""
        self.seq += 1
        seq = self.seq
        before = step - 1 if step else None
        row = CheckpointRow(branch, namespace, step, seq, created, f"checkpoint {step}".encode())
        values = [
            PutValue(ValueRow(branch, namespace, field, step, seq, whole, blob))
            for field, (whole, blob) in fields.items()
        ]
        return [Advance(branch, namespace, before, step, seq), PutCheckpoint(row), *values]

    def step(self, step: int, namespace: Namespace = (), branch: int = 0, **options: Any) -> int:
        """Write a barrier and return its seq."""
        self.write(*self.barrier(step, namespace, branch, **options))
        return self.seq

    def fork(self, branch: int, parent: int, fork_seq: int, step: int, **fields: tuple[bool, bytes]) -> int:
        """Begin a branch with a barrier, and return its seq."""
        _, *others = self.barrier(step, (), branch, 0.0, **fields)
        start = Advance(branch, (), None, step, self.seq)
        self.write(OpenBranch(BranchRow(branch, parent, fork_seq)), start, *others)
        return self.seq


def seen(saver: Checkpointer, lineage: list[tuple[int, int]], namespace: Namespace = ()) -> list[tuple[str, bytes]]:
    """Return the fields and bytes that a lineage sees in thread t."""
    return [(row.field, row.blob) for row in saver.values("t", lineage, namespace)]


def everything(saver: Checkpointer, thread_id: str = "t") -> object:
    """Return all that can be read of a thread, to compare before and after."""
    branches = [0, *(row.branch for row in saver.branches(thread_id))]
    namespaces = {branch: saver.namespaces(thread_id, branch, ()) for branch in branches}
    places = [(branch, namespace) for branch in branches for namespace in namespaces[branch]]
    return (
        saver.branches(thread_id),
        saver.last_seq(thread_id),
        [(place, saver.head(thread_id, *place)) for place in places],
        [saver.checkpoints(thread_id, namespace) for _, namespace in places],
        [saver.values(thread_id, [(branch, EVERYTHING)], namespace) for branch, namespace in places],
        [saver.tasks(thread_id, *place, step) for place in places for step in range(STEPS)],
    )


def at_once(count: int, action: Callable[[int], Any]) -> list[Any]:
    """Return what an action returns in each of so many threads that begin together."""
    answers: list[Any] = [None] * count
    together = Barrier(count)

    def call(index: int) -> None:
        together.wait()
        try:
            answers[index] = action(index)
        except Exception as error:  # noqa: BLE001 - shown by the comparison that follows
            answers[index] = error

    threads = [Thread(target=call, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers
