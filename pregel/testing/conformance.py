"""What every checkpointer does: checks to run against one, also against one of your own.

    from pregel.testing.conformance import check_checkpointer

    def test_my_checkpointer():
        check_checkpointer(lambda: MyCheckpointer(empty_database()))

Each check is a function of a factory, which returns a checkpointer with nothing in it each time it is called; the check
closes it. A check that fails raises an `AssertionError` that says what was expected. They need no test framework:
`CHECKS` lists them for one that wants to run each by itself.
"""

from __future__ import annotations

from functools import partial
from threading import Barrier, Thread
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pregel.checkpoint.base import (
    Advance,
    BranchRow,
    CheckpointRow,
    DropTasks,
    Lease,
    OpenBranch,
    PutCheckpoint,
    PutTask,
    PutValue,
    TaskRow,
    ThreadInfo,
    ValueRow,
)
from pregel.errors import CheckpointNotFoundError, ConcurrentRunError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pregel.checkpoint.base import Checkpointer, Namespace, Write

    Make: TypeAlias = "Callable[[], Checkpointer]"
    Check: TypeAlias = "Callable[[Make], None]"

__all__ = ["CHECKS", "check_checkpointer"]

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


def expect(actual: object, wanted: object, what: str) -> None:
    """Check that something is what it should be."""
    if actual != wanted:
        raise AssertionError(f"{what}: expected {wanted!r}, got {actual!r}")


def refuse(kind: type[Exception], action: Callable[[], object], what: str) -> None:
    """Check that something raises."""
    try:
        action()
    except kind:
        return
    raise AssertionError(f"{what}: expected {kind.__name__}, but it was done")


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
        expect(saver.claim(thread_id, lease(self.token), 60, gone), None, "the holder of a thread of the dead")

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


# -- leases ----------------------------------------------------------------------------------------------------------


def a_thread_is_claimed_once(make: Make) -> None:
    """The second who claims it learns who has it, all that a lease says."""
    with make() as saver:
        first = Lease("token", "a host", 12, "34")
        expect(saver.claim("t", first, 60, alive), None, "the holder of a free thread")
        expect(saver.claim("t", lease("other"), 60, alive), first, "the holder of a thread that was claimed")
        expect(saver.claim("u", lease("other"), 60, alive), None, "the holder of another thread")


def whether_the_holder_is_dead_is_asked_of_the_holder(make: Make) -> None:
    """The callable gets the recorded lease, and what it says counts."""
    with make() as saver:
        asked: list[Lease] = []

        def died(holder: Lease) -> bool:
            asked.append(holder)
            return True

        saver.claim("t", lease("first"), 60, alive)
        saver.claim("t", lease("second"), 60, died)
        expect(asked, [lease("first")], "the holders asked about")
        expect(saver.claim("t", lease("third"), 60, alive), lease("second"), "the holder after the first one's death")


def an_expired_lease_can_be_taken(make: Make) -> None:
    """Also of a holder that lives."""
    with make() as saver:
        saver.claim("t", lease("first"), -1, alive)
        expect(saver.claim("t", lease("second"), 60, alive), None, "the holder after the lease expired")
        refuse(ConcurrentRunError, lambda: saver.write("t", "first", []), "a write of the old holder")
        expect(saver.renew("t", "first", 60), NO, "whether the old holder can renew")


def an_expired_lease_that_nobody_took_is_still_held(make: Make) -> None:
    """Clocks decide who may take a thread, and never whether what was not taken is lost."""
    with make() as saver:
        saver.claim("t", lease("first"), -1, alive)
        saver.write("t", "first", [Advance(0, (), None, 0, 1)])
        expect(saver.renew("t", "first", 60), YES, "whether it can be renewed")
        expect(saver.claim("t", lease("second"), 60, alive), lease("first"), "the holder after it was renewed")


def a_token_is_of_one_thread(make: Make) -> None:
    """Also where a run shows the same one on several, each has rows and a lease of its own."""
    with make() as saver:
        runs = {name: Run(saver, name, holder="same") for name in ("t", "u")}
        for name, run in runs.items():
            run.step(0, a=(WHOLE, name.encode()))
        saver.release("u", "same")
        for name, run in runs.items():
            expect(saver.values(name, [(0, EVERYTHING)], ())[0].blob, name.encode(), f"the field of thread {name}")
            expect(run.seq, 1, "the greatest seq")
        refuse(ConcurrentRunError, lambda: runs["u"].step(1), "a barrier on the thread that was released")
        runs["t"].step(1)


def renewing_can_end_a_lease(make: Make) -> None:
    """The time counts from now, in place of the old one."""
    with make() as saver:
        saver.claim("t", lease("first"), 60, alive)
        expect(saver.renew("t", "first", -1), YES, "whether it was held")
        expect(saver.claim("t", lease("second"), 60, alive), None, "the holder after it was let expire")


def only_the_holder_releases(make: Make) -> None:
    """A token that is not the recorded one releases and renews nothing."""
    with make() as saver:
        saver.claim("t", lease("first"), 60, alive)
        saver.release("t", "other")
        saver.release("nowhere", "other")
        expect(saver.renew("t", "other", -1), NO, "whether another can renew")
        expect(saver.claim("t", lease("second"), 60, alive), lease("first"), "the holder after another released")
        saver.release("t", "first")
        expect(saver.claim("t", lease("second"), 60, alive), None, "the holder after it was released")


def a_released_lease_writes_nothing(make: Make) -> None:
    """Neither barriers nor task rows."""
    with make() as saver:
        run = Run(saver)
        run.step(0)
        before = everything(saver)
        saver.release("t", run.token)
        refuse(ConcurrentRunError, lambda: run.step(1), "a barrier after the release")
        task = PutTask(TaskRow(0, (), 1, "task", b""))
        refuse(ConcurrentRunError, lambda: run.write(task), "a task row after the release")
        refuse(ConcurrentRunError, lambda: run.write(DropTasks(0, (), 1)), "deleting task rows after the release")
        expect(everything(saver), before, "the thread after the refused writes")


def a_run_that_was_overtaken_commits_nothing(make: Make) -> None:
    """Whatever it writes, and although the head is where it believes it to be."""
    with make() as saver:
        old = Run(saver, holder="old")
        old.step(0, a=(WHOLE, b"1"))
        new = Run(saver, holder="new")
        before = everything(saver)
        refuse(ConcurrentRunError, lambda: old.step(1), "a barrier of the old run")
        task = PutTask(TaskRow(0, (), 1, "task", b"old"))
        refuse(ConcurrentRunError, lambda: old.write(task), "a task row of the old run")
        value = PutValue(ValueRow(0, (), "a", 1, 9, WHOLE, b"old"))
        refuse(ConcurrentRunError, lambda: old.write(value), "a field row of the old run")
        branch = OpenBranch(BranchRow(1, 0, 1))
        refuse(ConcurrentRunError, lambda: old.write(branch), "a branch of the old run")
        expect(everything(saver), before, "the thread after the refused writes")
        new.step(1, a=(WHOLE, b"2"))


def a_thread_where_nothing_was_written_goes_with_its_lease(make: Make) -> None:
    """Claiming leaves nothing behind."""
    with make() as saver:
        saver.claim("t", lease("first"), 60, alive)
        expect(saver.threads(), [ThreadInfo("t", 0.0, 0.0, 0, leased=True)], "the threads while it is claimed")
        saver.release("t", "first")
        expect(saver.threads(), [], "the threads after the release")


def one_of_many_claims_a_thread(make: Make) -> None:
    """Of several threads at once, exactly one."""
    with make() as saver:
        answers = at_once(8, lambda index: saver.claim("t", lease(f"token {index}"), 60, alive))
        expect(answers.count(None), 1, "how many claimed the thread")


# -- writing ---------------------------------------------------------------------------------------------------------


def a_head_moves_by_compare_and_set(make: Make) -> None:
    """Only from where the writer believes it to be."""
    with make() as saver:
        run = Run(saver)
        expect(saver.head("t", 0, ()), None, "the head before anything")
        refuse(ConcurrentRunError, lambda: run.write(Advance(0, (), 0, 1, 1)), "moving a head that is not there")
        run.write(Advance(0, (), None, 0, 1))
        refuse(ConcurrentRunError, lambda: run.write(Advance(0, (), None, 0, 2)), "beginning a head again")
        refuse(ConcurrentRunError, lambda: run.write(Advance(0, (), 1, 2, 2)), "moving a head from ahead of it")
        run.write(Advance(0, (), 0, 1, 2), Advance(0, (), 1, 2, 3))
        expect(saver.head("t", 0, ()), 2, "the head after two steps in one transaction")
        expect(saver.last_seq("t"), 3, "the greatest seq")


def one_of_many_moves_a_head(make: Make) -> None:
    """Of several at once that hold the token, exactly one, and its rows are the ones stored."""
    with make() as saver:
        run = Run(saver)
        run.step(0)

        def move(index: int) -> bool:
            blob = str(index).encode()
            writes = (Advance(0, (), 0, 1, 2 + index), PutValue(ValueRow(0, (), "a", 1, 2 + index, WHOLE, blob)))
            try:
                run.write(*writes)
            except ConcurrentRunError:
                return False
            return True

        moved = at_once(8, move)
        expect(sum(moved), 1, "how many moved the head")
        expect(seen(saver, [(0, EVERYTHING)]), [("a", str(moved.index(YES)).encode())], "the rows")


def a_transaction_is_stored_whole_or_not_at_all(make: Make) -> None:
    """A last write that is refused takes all before it along, whatever they are."""
    with make() as saver:
        run = Run(saver)
        run.step(0, a=(WHOLE, b"0"))
        run.write(PutTask(TaskRow(0, (), 1, "task", b"0")), PutTask(TaskRow(0, (), 1, "other", b"0")))
        before = everything(saver)
        refused: tuple[Write, ...] = (
            Advance(0, (), 7, 8, 9),
            PutTask(TaskRow(0, (), 5, "task", b""), replaces=True),
            OpenBranch(BranchRow(3, 0, 1)),
        )
        for last in refused:
            writes = (
                *run.barrier(1, a=(WHOLE, b"1"), b=(WHOLE, b"1")),
                *run.barrier(0, ("inner",), a=(WHOLE, b"1")),
                DropTasks(0, (), 1),
                PutTask(TaskRow(0, (), 1, "task", b"1")),
                PutTask(TaskRow(0, (), 1, "task", b"2"), replaces=True),
                OpenBranch(BranchRow(3, 0, 1)),
                last,
            )
            refuse(ConcurrentRunError, partial(run.write, *writes), f"a transaction that ends with {last}")
            expect(everything(saver), before, f"the thread after a transaction that ended with {last}")
        run.seq = saver.last_seq("t")
        run.step(1, a=(WHOLE, b"1"))
        expect(seen(saver, [(0, EVERYTHING)]), [("a", b"1")], "the fields after the next superstep")


def a_graph_inside_another_checks_the_outermost_head(make: Make) -> None:
    """It commits only while the superstep that it belongs to is open."""
    with make() as saver:
        run = Run(saver)
        inner: Namespace = ("inner",)
        run.write(Advance(0, inner, None, 0, 1, root_step=None, check_root=True))
        run.write(Advance(0, (), None, 0, 2))
        refuse(
            ConcurrentRunError,
            lambda: run.write(Advance(0, inner, 0, 1, 3, root_step=None, check_root=True)),
            "a barrier of an inner graph whose outermost one had no head",
        )
        run.write(Advance(0, inner, 0, 1, 3, root_step=0, check_root=True))
        run.write(Advance(0, ("other",), None, 0, 4, root_step=0, check_root=True))
        run.write(Advance(0, (), 0, 1, 5))
        refuse(
            ConcurrentRunError,
            lambda: run.write(Advance(0, inner, 1, 2, 6, root_step=0, check_root=True)),
            "a barrier of an inner graph whose outermost one has moved on",
        )
        refuse(
            ConcurrentRunError,
            lambda: run.write(Advance(0, ("third",), None, 0, 6, root_step=0, check_root=True)),
            "the first barrier of an inner graph whose outermost one has moved on",
        )
        run.write(Advance(0, inner, 1, 2, 6, root_step=0, check_root=False))
        expect(saver.head("t", 0, inner), 2, "the inner head")


def task_rows_are_written_once_replaced_and_deleted(make: Make) -> None:
    """A second row for a task is refused, so is replacing none; other supersteps keep theirs."""
    with make() as saver:
        run = Run(saver)
        rows = [TaskRow(0, (), 1, task, task.encode()) for task in ("b", "a", "B", "ä", "10", "9")]
        for row in rows:
            run.write(PutTask(row))
        expect(saver.tasks("t", 0, (), 1), sorted(rows), "the task rows, by task")
        refuse(ConcurrentRunError, lambda: run.write(PutTask(rows[0])), "a second row for a task")
        new = TaskRow(0, (), 1, "c", b"")
        refuse(ConcurrentRunError, lambda: run.write(PutTask(new, replaces=True)), "replacing a row that is not there")
        run.write(PutTask(TaskRow(0, (), 1, "a", b"again"), replaces=True), PutTask(TaskRow(0, (), 2, "a", b"next")))
        run.write(PutTask(TaskRow(0, ("inner",), 1, "a", b"inner")), PutTask(TaskRow(1, (), 1, "a", b"branch")))
        expect(saver.tasks("t", 0, (), 1)[3].blob, b"again", "the row that was replaced")
        run.write(DropTasks(0, (), 1), DropTasks(0, (), 7))
        expect(saver.tasks("t", 0, (), 1), [], "the rows after they were deleted")
        expect([row.blob for row in saver.tasks("t", 0, (), 2)], [b"next"], "the rows of the next superstep")
        expect([row.blob for row in saver.tasks("t", 0, ("inner",), 1)], [b"inner"], "the rows of another namespace")
        expect([row.blob for row in saver.tasks("t", 1, (), 1)], [b"branch"], "the rows of another branch")
        expect(saver.head("t", 0, ()), None, "the head, which task rows don't move")
        expect(saver.namespaces("t", 0, ()), [], "the namespaces with a head")


def a_seq_is_used_once(make: Make) -> None:
    """A second row with one in its place is refused, and the first stays."""
    with make() as saver:
        run = Run(saver)
        run.step(0, a=(WHOLE, b"first"))
        before = everything(saver)
        row = CheckpointRow(0, (), 1, 1, 0.0, b"second")
        refuse(ConcurrentRunError, lambda: run.write(PutCheckpoint(row)), "a second checkpoint with a seq")
        value = PutValue(ValueRow(0, (), "a", 1, 1, WHOLE, b"second"))
        refuse(ConcurrentRunError, lambda: run.write(value), "a second row of a field with a seq")
        other = PutValue(ValueRow(0, (), "b", 1, 2, WHOLE, b""))
        refuse(ConcurrentRunError, lambda: run.write(other, value), "the same after another row")
        expect(everything(saver), before, "the thread after the refused writes")


def a_branch_number_is_taken_once(make: Make) -> None:
    """Branch 0 is there from the beginning."""
    with make() as saver:
        run = Run(saver)
        run.write(OpenBranch(BranchRow(2, 0, 5)), OpenBranch(BranchRow(1, 0, 3)))
        for branch in (0, 1, 2):
            again = partial(run.write, OpenBranch(BranchRow(branch, 0, 9)))
            refuse(ConcurrentRunError, again, f"opening branch {branch} again")
        expect(saver.branches("t"), [BranchRow(1, 0, 3), BranchRow(2, 0, 5)], "the branches, by number")


def rows_come_back_as_they_were(make: Make) -> None:
    """Every column, the empty blob and every byte, and large blobs."""
    with make() as saver:
        run = Run(saver)
        inner: Namespace = ("inner", "deep")
        row = CheckpointRow(0, inner, 3, 7, 1234567890.123456, bytes(range(256)))
        values = [
            ValueRow(0, inner, "a", 3, 7, WHOLE, b""),
            ValueRow(0, inner, "b", 3, 7, PATCH, b"\0"),
            ValueRow(0, inner, "c", 3, 7, WHOLE, b"\xff" * 3_000_000),
        ]
        run.write(Advance(0, inner, None, 3, 7), PutCheckpoint(row), *map(PutValue, values))
        expect(saver.checkpoint("t", 0, inner, 3), row, "the checkpoint")
        expect(saver.values("t", [(0, EVERYTHING)], inner), values, "the fields")
        expect([type(value.whole) for value in saver.values("t", [(0, EVERYTHING)], inner)], [bool] * 3, "the flags")
        expect(saver.last_seq("t"), 7, "the greatest seq")


# -- reading ---------------------------------------------------------------------------------------------------------


def a_thread_that_is_not_there_reads_as_empty(make: Make) -> None:
    """Nothing raises."""
    with make() as saver:
        answers = (
            saver.latest("t"),
            saver.head("t", 0, ()),
            saver.last_seq("t"),
            saver.branches("t"),
            saver.checkpoint("t", 0, (), 0),
            saver.visible_checkpoint("t", [(0, EVERYTHING)], ()),
            saver.checkpoints("t", ()),
            saver.values("t", [(0, EVERYTHING)], ()),
            saver.tasks("t", 0, (), 0),
            saver.namespaces("t", 0, ()),
            saver.threads(),
            saver.prune(keep_last=1),
        )
        expect(answers, (None, None, 0, [], None, None, [], [], [], [], [], 0), "what is read of no thread")
        saver.delete_thread("t")


def the_latest_checkpoint_has_the_greatest_seq(make: Make) -> None:
    """On whatever branch, whatever its step and its clock say, of the outermost graph only."""
    with make() as saver:
        run = Run(saver)
        fork = run.step(0, created=50.0)
        run.step(1, created=40.0)
        run.step(2, created=30.0)
        run.fork(1, 0, fork, 1)
        run.step(0, ("inner",), 1)
        latest = saver.latest("t")
        expect(latest and latest[:4], (1, (), 1, 4), "the latest checkpoint")
        run.step(3, created=10.0)
        latest = saver.latest("t")
        expect(latest and latest[:4], (0, (), 3, 6), "the latest checkpoint after the first branch went on")


def checkpoints_are_found_by_branch_namespace_and_step(make: Make) -> None:
    """Also where seq has gaps and steps do."""
    with make() as saver:
        run = Run(saver)
        rows = {}
        for index, step in enumerate((0, 1, 2, 5, 6, 40, 41, 1000)):
            seq = 3 + 7 * index * index
            for namespace, blob in (((), b"outer"), (("inner",), b"inner")):
                row = CheckpointRow(0, namespace, step, seq + len(namespace), 0.0, blob)
                before = saver.head("t", 0, namespace)
                run.write(Advance(0, namespace, before, step, row.seq), PutCheckpoint(row))
                rows[namespace, step] = row
        for (namespace, step), row in rows.items():
            expect(saver.checkpoint("t", 0, namespace, step), row, f"the checkpoint {step} of {namespace}")
        for step in (3, 4, 7, 39, 42, 999, 1001):
            expect(saver.checkpoint("t", 0, (), step), None, f"the checkpoint {step}, which is not there")
        expect(saver.checkpoint("t", 1, (), 1), None, "a checkpoint of another branch")
        expect(saver.checkpoint("t", 0, ("in",), 1), None, "a checkpoint of another namespace")


def checkpoints_are_listed_newest_first(make: Make) -> None:
    """Over all branches by seq, with an end and a limit."""
    with make() as saver:
        run = Run(saver)
        for step in range(4):
            run.step(step)
        run.fork(1, 0, 2, 2)
        run.step(4)
        run.step(3, (), 1)
        run.step(0, ("inner",))

        def seqs(**options: int | None) -> list[int]:
            return [row.seq for row in saver.checkpoints("t", (), **options)]

        expect(seqs(), [7, 6, 5, 4, 3, 2, 1], "all checkpoints")
        expect(seqs(limit=3), [7, 6, 5], "the newest three")
        expect(seqs(before=6, limit=3), [5, 4, 3], "the three before seq 6")
        expect(seqs(before=2), [1], "those before seq 2")
        expect(seqs(before=1), [], "those before the first")
        expect(seqs(limit=0), [], "none of them")
        expect([row.branch for row in saver.checkpoints("t", ())], [1, 0, 1, 0, 0, 0, 0], "their branches")
        expect([row.seq for row in saver.checkpoints("t", ("inner",))], [8], "those of the namespace inside")


def a_lineage_sees_its_first_branch_in_bounds(make: Make) -> None:
    """The newest checkpoint there; the next branch only where the first has none."""
    with make() as saver:
        run = Run(saver)
        for step in range(4):
            run.step(step)
        run.step(0, ("inner",))
        run.fork(1, 0, 2, 2)
        run.step(3, (), 1)

        def visible(lineage: list[tuple[int, int]], namespace: Namespace = ()) -> int | None:
            row = saver.visible_checkpoint("t", lineage, namespace)
            return row and row.seq

        expect(visible([(0, EVERYTHING)]), 4, "the newest of branch 0")
        expect(visible([(0, 3)]), 3, "the newest of branch 0 up to seq 3")
        expect(visible([(1, EVERYTHING), (0, 2)]), 7, "the newest of branch 1")
        expect(visible([(1, 6), (0, 2)]), 6, "the newest of branch 1 up to seq 6")
        expect(visible([(1, 5), (0, 2)]), 2, "the newest before branch 1 began")
        expect(visible([(1, EVERYTHING), (0, 2)], ("inner",)), None, "an inner graph that began after the fork")
        expect(visible([(1, EVERYTHING), (0, 5)], ("inner",)), 5, "an inner graph that began before the fork")
        expect(visible([(0, 0)]), None, "the newest before the first")
        expect(visible([]), None, "what no branch sees")


def a_field_is_its_newest_whole_row_and_the_patches_after_it(make: Make) -> None:
    """By field and seq, up to the bound, however long ago it was written."""
    with make() as saver:
        run = Run(saver)
        run.step(0, once=(WHOLE, b"once"), log=(WHOLE, b"w0"))
        run.step(1, log=(PATCH, b"p1"))
        run.step(2, log=(PATCH, b"p2"), Z=(WHOLE, b"Z"))
        run.step(3, log=(WHOLE, b"w3"))
        run.step(4, log=(PATCH, b"p4"), patched=(PATCH, b"only"))
        now = [("Z", b"Z"), ("log", b"w3"), ("log", b"p4"), ("once", b"once"), ("patched", b"only")]
        expect(seen(saver, [(0, EVERYTHING)]), now, "the newest state")
        expect(seen(saver, [(0, 5)]), now, "the state at seq 5")
        expect(seen(saver, [(0, 4)]), [("Z", b"Z"), ("log", b"w3"), ("once", b"once")], "the state at seq 4")
        then = [("log", b"w0"), ("log", b"p1"), ("once", b"once")]
        expect(seen(saver, [(0, 2)]), then, "the state at seq 2")
        expect(seen(saver, [(0, 0)]), [], "the state before the first checkpoint")


def a_branch_reads_its_parent_up_to_where_it_begins(make: Make) -> None:
    """Field by field, through several generations, and never what the parent did later."""
    with make() as saver:
        run = Run(saver)
        run.step(0, log=(WHOLE, b"w0"), old=(WHOLE, b"old"), changed=(WHOLE, b"0"))
        fork = run.step(1, log=(PATCH, b"p1"))
        run.step(2, log=(PATCH, b"later"), old=(WHOLE, b"later"), new=(WHOLE, b"later"))
        first = run.fork(1, 0, fork, 2, log=(PATCH, b"p2"), changed=(WHOLE, b"1"))
        run.step(3, (), 1, log=(PATCH, b"later"), changed=(WHOLE, b"later"))
        run.fork(2, 1, first, 3, log=(PATCH, b"p3"))
        lineage = [(2, EVERYTHING), (1, first), (0, fork)]
        log = [("log", blob) for blob in (b"w0", b"p1", b"p2", b"p3")]
        expect(seen(saver, lineage), [("changed", b"1"), *log, ("old", b"old")], "what the grandchild sees")
        run.step(4, (), 2, log=(WHOLE, b"w4"))
        now = [("changed", b"1"), ("log", b"w4"), ("old", b"old")]
        expect(seen(saver, lineage), now, "what it sees after a whole row of its own")
        main = [("changed", b"0"), *log[:2], ("log", b"later"), ("new", b"later"), ("old", b"later")]
        expect(seen(saver, [(0, EVERYTHING)]), main, "what the first branch sees")


def many_fields_are_read(make: Make) -> None:
    """More than one would name in a statement, each with a history."""
    with make() as saver:
        run = Run(saver)
        names = [f"f{number:03}" for number in range(100)]
        fields: dict[str, Any]  # a type checker takes other types for all arguments that there are
        fields = dict.fromkeys(names, (WHOLE, b"old"))
        run.step(0, **fields)
        fields = {name: (WHOLE, name.encode()) for name in names}
        run.step(1, **fields)
        fields = dict.fromkeys(names[:50], (PATCH, b"patch"))
        run.step(2, **fields)
        wanted = [(name, blob) for name in names for blob in (name.encode(), b"patch")[: 1 + (name < "f050")]]
        expect(seen(saver, [(0, EVERYTHING)]), wanted, "a hundred fields")
        run.fork(1, 0, 2, 2, f000=(WHOLE, b"new"))
        wanted = [("f000", b"new"), *((name, name.encode()) for name in names[1:])]
        expect(seen(saver, [(1, EVERYTHING), (0, 2)]), wanted, "a hundred fields on a branch")


def namespaces_are_found_by_their_first_labels(make: Make) -> None:
    """A prefix is one of labels, not of letters."""
    with make() as saver:
        run = Run(saver)
        all_ = [
            (),
            ("a",),
            ("a", "b"),
            ("a", "b", "c"),
            ("a", "c"),
            ("a%",),
            ("ab",),
            ("a", "bb"),
            ("a b",),
            ("b", "a"),
        ]
        for number, namespace in enumerate(reversed(all_)):
            run.write(Advance(0, namespace, None, 0, number + 1))
        run.write(Advance(1, ("a", "branch"), None, 0, 99))
        for prefix in ((), ("a",), ("a", "b"), ("b",), ("a%",), ("_",), ("c",)):
            wanted = sorted(namespace for namespace in all_ if namespace[: len(prefix)] == prefix)
            expect(saver.namespaces("t", 0, prefix), wanted, f"the namespaces that begin with {prefix}")


def hostile_names_are_names_like_others(make: Make) -> None:
    """As thread, label, field and task; none is mistaken for another."""
    with make() as saver:
        for thread_id in HOSTILE:
            run = Run(saver, thread_id)
            run.write(
                Advance(0, (), None, 0, 1),
                PutCheckpoint(CheckpointRow(0, (), 0, 1, 0.0, thread_id.encode())),
            )
        expect([info.thread_id for info in saver.threads()], sorted(HOSTILE), "the threads, in order")
        for thread_id in HOSTILE:
            latest = saver.latest(thread_id)
            expect(latest and latest.blob, thread_id.encode(), f"the checkpoint of thread {thread_id!r}")
        run = Run(saver)
        for number, name in enumerate(HOSTILE):
            run.write(Advance(0, (name,), None, 0, number + 1))
        values = [ValueRow(0, (), name, 0, 99, WHOLE, name.encode()) for name in HOSTILE]
        tasks = [TaskRow(0, (), 1, name, name.encode()) for name in HOSTILE]
        run.write(*map(PutValue, values), *map(PutTask, tasks))
        expect(saver.values("t", [(0, 99)], ()), sorted(values), "the fields, in order")
        expect(saver.tasks("t", 0, (), 1), sorted(tasks), "the tasks, in order")
        expect(saver.namespaces("t", 0, ()), sorted((name,) for name in HOSTILE), "the namespaces, in order")
        for name in HOSTILE:
            expect(saver.namespaces("t", 0, (name,)), [(name,)], f"the namespaces that begin with {name!r}")
        for thread_id in HOSTILE[::2]:
            saver.delete_thread(thread_id)
        left = sorted({*HOSTILE[1::2], "t"})
        expect([info.thread_id for info in saver.threads()], left, "the threads after half were deleted")


def threads_branches_and_namespaces_are_apart(make: Make) -> None:
    """The same step in each of them is another row."""
    with make() as saver:
        runs = {name: Run(saver, name) for name in ("t", "u")}
        places = [(branch, namespace) for branch in (0, 1) for namespace in ((), ("a",), ("a", "a"))]
        for name, run in runs.items():
            for branch, namespace in places:
                run.step(0, namespace, branch, f=(WHOLE, f"{name} {branch} {namespace}".encode()))
        for name in runs:
            for branch, namespace in places:
                row = saver.values(name, [(branch, EVERYTHING)], namespace)[0]
                expect(row.blob, f"{name} {branch} {namespace}".encode(), "the field")
                found = saver.visible_checkpoint(name, [(branch, EVERYTHING)], namespace)
                expect(found and found[:3], (branch, namespace, 0), "the checkpoint")
        expect(saver.last_seq("t"), len(places), "the greatest seq of one thread")


# -- keeping ---------------------------------------------------------------------------------------------------------


def threads_are_listed_in_pages(make: Make) -> None:
    """In the order of code points, with what was written and whether it is held."""
    with make() as saver:
        for thread_id in ("b", "B", "ä", "a", "_"):
            run = Run(saver, thread_id)
            run.step(0, created=10.5)
            run.step(1, created=20.5)
            run.step(0, ("inner",), created=15.0)
        saver.release("a", "token of a")
        names = ["B", "_", "a", "b", "ä"]
        infos = [ThreadInfo(name, 10.5, 20.5, 3, name != "a") for name in names]
        expect(saver.threads(), infos, "the threads")
        expect(saver.threads(limit=2), infos[:2], "the first two")
        expect(saver.threads(limit=2, after="_"), infos[2:4], "the next two")
        expect(saver.threads(after="ä"), [], "those behind the last")
        expect(saver.threads(after="aa"), infos[3:], "those behind a name that is not there")


def a_deleted_thread_is_gone_with_its_lease(make: Make) -> None:
    """The run that had it commits nothing more, also when another has begun the thread anew."""
    with make() as saver:
        run, other = Run(saver), Run(saver, "u")
        for one in (run, other):
            one.step(0, a=(WHOLE, b""))
            one.write(PutTask(TaskRow(0, (), 1, "task", b"")), OpenBranch(BranchRow(1, 0, 1)))
        kept = everything(saver, "u")
        saver.delete_thread("t")
        expect(saver.latest("t"), None, "the latest checkpoint")
        expect(saver.tasks("t", 0, (), 1), [], "the task rows")
        expect(saver.branches("t"), [], "the branches")
        expect([info.thread_id for info in saver.threads()], ["u"], "the threads")
        refuse(ConcurrentRunError, lambda: run.step(1), "a barrier of the run that had it")
        expect(saver.renew("t", run.token, 60), NO, "whether its lease can be renewed")
        again = Run(saver, holder="new")
        refuse(ConcurrentRunError, lambda: run.step(1), "a barrier of the old run, in the new thread")
        again.step(0, a=(WHOLE, b"new"))
        expect(seen(saver, [(0, EVERYTHING)]), [("a", b"new")], "the fields of the new thread")
        expect(everything(saver, "u"), kept, "the other thread")


def a_copied_thread_is_equal_and_independent(make: Make) -> None:
    """With branches, history and task rows, without the lease."""
    with make() as saver:
        run = Run(saver)
        fork = run.step(0, a=(WHOLE, b"0"), log=(WHOLE, b"w"))
        run.step(1, a=(WHOLE, b"1"), log=(PATCH, b"p"))
        run.step(0, ("inner",), a=(WHOLE, b"inner"))
        run.fork(1, 0, fork, 1, a=(WHOLE, b"fork"))
        run.write(PutTask(TaskRow(0, (), 2, "task", b"blob")))
        before = everything(saver)
        saver.copy_thread("t", "copy")
        expect(everything(saver, "copy"), before, "the copy")
        expect([info.leased for info in saver.threads()], [False, True], "whether copy and original are held")
        saver.copy_thread("copy", "copy of the copy")
        origins = [saver.origin(thread_id) for thread_id in ("t", "copy", "copy of the copy", "none")]
        expect(origins, ["t", "t", "t", "none"], "under which ids the rows were sealed")
        saver.delete_thread("copy of the copy")
        copy = Run(saver, "copy")
        copy.step(2, a=(WHOLE, b"2"))
        expect(everything(saver), before, "the original after the copy went on")
        run.step(2, a=(WHOLE, b"other"))
        refuse(ConcurrentRunError, lambda: saver.copy_thread("t", "copy"), "copying onto a thread")
        refuse(ConcurrentRunError, lambda: saver.copy_thread("t", "t"), "copying onto itself")
        refuse(CheckpointNotFoundError, lambda: saver.copy_thread("none", "new"), "copying no thread")
        saver.delete_thread("t")
        expect(saver.values("copy", [(0, EVERYTHING)], ())[0].blob, b"2", "the copy after the original was deleted")
        expect([info.thread_id for info in saver.threads()], ["copy"], "the threads")


def pruning_keeps_the_newest_and_what_they_need(make: Make) -> None:
    """Old rows of fields stay where a checkpoint that stays needs them."""
    with make() as saver:
        run = Run(saver)
        run.step(0, once=(WHOLE, b"once"), log=(WHOLE, b"w0"), a=(WHOLE, b"0"))
        run.step(1, log=(PATCH, b"p1"), a=(WHOLE, b"1"))
        run.step(2, log=(WHOLE, b"w2"), a=(WHOLE, b"2"))
        run.step(3, log=(PATCH, b"p3"), a=(WHOLE, b"3"))
        run.step(4, log=(PATCH, b"p4"))
        run.write(PutTask(TaskRow(0, (), 5, "task", b"")))
        states = [seen(saver, [(0, seq)]) for seq in (4, 5)]
        expect(saver.prune(keep_last=2, thread_id="t"), 3, "how many were deleted")
        expect([row.seq for row in saver.checkpoints("t", ())], [5, 4], "those left")
        expect([seen(saver, [(0, seq)]) for seq in (4, 5)], states, "the states at those left")
        expect(seen(saver, [(0, 3)]), [("log", b"w2"), ("once", b"once")], "the rows that are still needed")
        expect(seen(saver, [(0, 2)]), [("once", b"once")], "the older rows that are still needed")
        expect(len(saver.tasks("t", 0, (), 5)), 1, "the task rows")
        expect(saver.prune(keep_last=2), 0, "how many are deleted by pruning again")
        run.step(5, log=(PATCH, b"p5"))
        state = [("a", b"3"), ("log", b"w2"), ("log", b"p3"), ("log", b"p4"), ("log", b"p5"), ("once", b"once")]
        expect(seen(saver, [(0, EVERYTHING)]), state, "the state after the run went on")


def pruning_by_age_keeps_what_is_young(make: Make) -> None:
    """What is both too many and too old is deleted, and the newest stays whatever its age."""
    with make() as saver:
        run = Run(saver)
        for step in range(4):
            run.step(step, created=float(step), a=(WHOLE, b""))
        run.step(4, created=1e12, a=(WHOLE, b""))
        run.step(5, created=6.0, a=(WHOLE, b""))
        expect(saver.prune(keep_last=3, older_than=60), 3, "how many are old and not among the newest three")
        expect([row.step for row in saver.checkpoints("t", ())], [5, 4, 3], "those left")
        expect(saver.prune(older_than=60), 1, "how many are old")
        expect([row.step for row in saver.checkpoints("t", ())], [5, 4], "those left by age")


def pruning_keeps_where_branches_begin(make: Make) -> None:
    """And each branch's newest checkpoint, with all that it reads of its parent."""
    with make() as saver:
        run = Run(saver)
        for step in range(3):
            run.step(step, log=(step == 0, b"%d" % step))
        fork = run.step(3, log=(PATCH, b"3"), a=(WHOLE, b"parent"))
        again = 6
        for step in range(4, 8):
            run.step(step, log=(step == again, b"%d" % step))
        run.fork(1, 0, fork, 4, log=(PATCH, b"fork"))
        run.step(5, (), 1, log=(PATCH, b"on"))
        lineages = [[(1, EVERYTHING), (0, fork)], [(0, EVERYTHING)], [(0, fork)]]
        states = [seen(saver, lineage) for lineage in lineages]
        expect(saver.prune(keep_last=1), 7, "how many were deleted")
        left = [(row.branch, row.step) for row in saver.checkpoints("t", ())]
        expect(left, [(1, 5), (0, 7), (0, 3)], "those left")
        expect([seen(saver, lineage) for lineage in lineages], states, "the states at those left")
        expect(saver.branches("t"), [BranchRow(1, 0, fork)], "the branches")


def pruning_keeps_what_is_inside_a_checkpoint_that_stays(make: Make) -> None:
    """The checkpoint of an inner graph that an outer one sees stays with it."""
    with make() as saver:
        run = Run(saver)
        inner: Namespace = ("inner",)
        for step in range(4):
            run.step(step, inner, a=(WHOLE, b"%d" % step))
            run.step(step)
        state = seen(saver, [(0, 6)], inner)
        expect(saver.prune(keep_last=2), 4, "how many were deleted")
        run.step(4, inner, a=(WHOLE, b"4"))
        run.step(5, inner, a=(WHOLE, b"5"))
        expect(saver.prune(keep_last=2), 0, "how many of the inner graph's four are deleted")
        expect([row.step for row in saver.checkpoints("t", inner)], [5, 4, 3, 2], "those of the inner graph")
        expect(seen(saver, [(0, 6)], inner), state, "the inner state at an outer checkpoint that stays")


def pruning_is_of_one_thread_or_of_all(make: Make) -> None:
    """A thread that is not there has nothing to prune; what makes no sense is refused."""
    with make() as saver:
        for thread_id in ("t", "u", "v"):
            run = Run(saver, thread_id)
            for step in range(3):
                run.step(step)
        expect(saver.prune(keep_last=1, thread_id="u"), 2, "how many of one thread")
        expect([info.checkpoints for info in saver.threads()], [3, 1, 3], "how many are left")
        expect(saver.prune(keep_last=1, thread_id="none"), 0, "how many of no thread")
        expect(saver.prune(keep_last=1), 4, "how many of all threads")
        refuse(ValueError, saver.prune, "pruning without a measure")
        refuse(ValueError, lambda: saver.prune(keep_last=0), "keeping none")
        refuse(ValueError, lambda: saver.prune(older_than=-1.0), "an age below 0")


def closing_twice_does_nothing(make: Make) -> None:
    """As context managers and callers both do it."""
    with make() as saver:
        saver.close()


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


#: Every check; its name says what it shows.
CHECKS: Final[tuple[Check, ...]] = (
    a_thread_is_claimed_once,
    whether_the_holder_is_dead_is_asked_of_the_holder,
    an_expired_lease_can_be_taken,
    an_expired_lease_that_nobody_took_is_still_held,
    a_token_is_of_one_thread,
    renewing_can_end_a_lease,
    only_the_holder_releases,
    a_released_lease_writes_nothing,
    a_run_that_was_overtaken_commits_nothing,
    a_thread_where_nothing_was_written_goes_with_its_lease,
    one_of_many_claims_a_thread,
    a_head_moves_by_compare_and_set,
    one_of_many_moves_a_head,
    a_transaction_is_stored_whole_or_not_at_all,
    a_graph_inside_another_checks_the_outermost_head,
    task_rows_are_written_once_replaced_and_deleted,
    a_seq_is_used_once,
    a_branch_number_is_taken_once,
    rows_come_back_as_they_were,
    a_thread_that_is_not_there_reads_as_empty,
    the_latest_checkpoint_has_the_greatest_seq,
    checkpoints_are_found_by_branch_namespace_and_step,
    checkpoints_are_listed_newest_first,
    a_lineage_sees_its_first_branch_in_bounds,
    a_field_is_its_newest_whole_row_and_the_patches_after_it,
    a_branch_reads_its_parent_up_to_where_it_begins,
    many_fields_are_read,
    namespaces_are_found_by_their_first_labels,
    hostile_names_are_names_like_others,
    threads_branches_and_namespaces_are_apart,
    threads_are_listed_in_pages,
    a_deleted_thread_is_gone_with_its_lease,
    a_copied_thread_is_equal_and_independent,
    pruning_keeps_the_newest_and_what_they_need,
    pruning_by_age_keeps_what_is_young,
    pruning_keeps_where_branches_begin,
    pruning_keeps_what_is_inside_a_checkpoint_that_stays,
    pruning_is_of_one_thread_or_of_all,
    closing_twice_does_nothing,
)


def check_checkpointer(make: Make) -> None:
    """Run every check against checkpointers of one kind.

    Args:
        make: Returns one with nothing in it, each time.

    Raises:
        ExceptionGroup: Of what the checks that failed raised, each with the name of its check as a note.
    """
    errors = []
    for check in CHECKS:
        try:
            check(make)
        except Exception as error:  # noqa: BLE001 - all are collected
            error.add_note(f"in the check {check.__name__}")
            errors.append(error)
    if errors:
        raise ExceptionGroup(f"{len(errors)} of {len(CHECKS)} checks failed", errors)
