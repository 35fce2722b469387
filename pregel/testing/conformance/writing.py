"""What a transaction does, and what of it is refused: checks of `write`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from pregel.checkpoint.base import (
    Advance,
    BranchRow,
    CheckpointRow,
    DropTasks,
    Held,
    OpenBranch,
    PutCheckpoint,
    PutTask,
    PutValue,
    Release,
    TaskRow,
    ValueRow,
)
from pregel.errors import ConcurrentRunError
from pregel.testing.conformance.kit import (
    EVERYTHING,
    NO,
    PATCH,
    WHOLE,
    YES,
    Run,
    alive,
    at_once,
    everything,
    expect,
    lease,
    refuse,
    seen,
)

if TYPE_CHECKING:
    from pregel.checkpoint.base import Namespace, Write
    from pregel.testing.conformance.kit import Check, Make

__all__ = ["CHECKS"]


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


def a_release_is_committed_with_what_is_before_it(make: Make) -> None:
    """The transaction that gives the thread up is whole; then it is free at once."""
    with make() as saver:
        run = Run(saver)
        run.step(0, a=(WHOLE, b"0"))
        run.write(*run.barrier(1, a=(WHOLE, b"1")), PutTask(TaskRow(0, (), 2, "task", b"")), Release())
        expect(saver.head("t", 0, ()), 1, "the head")
        expect([row.step for row in saver.checkpoints("t", ())], [1, 0], "the checkpoints")
        expect(seen(saver, [(0, EVERYTHING)]), [("a", b"1")], "the fields")
        expect([row.task for row in saver.tasks("t", 0, (), 2)], ["task"], "the task rows")
        expect([info.leased for info in saver.threads()], [False], "whether a lease is recorded")
        expect(saver.renew("t", run.token, 60), NO, "whether it can be renewed")
        expect(saver.claim("t", lease("second"), 60, alive), Held("t", 2), "the thread after it was given up")


def a_release_in_a_transaction_that_is_refused_gives_nothing_up(make: Make) -> None:
    """The lease stays where it was, and its holder goes on."""
    with make() as saver:
        run = Run(saver)
        run.step(0)
        before = everything(saver)
        writes = (PutTask(TaskRow(0, (), 1, "task", b"")), Advance(0, (), 7, 8, 9), Release())
        refuse(ConcurrentRunError, lambda: run.write(*writes), "a head moved from where it is not, and a release")
        expect(everything(saver), before, "the thread after the refused transaction")
        holder = lease(run.token)
        expect(saver.claim("t", lease("second"), 60, alive), holder, "the holder after the refused transaction")
        run.step(1)


def a_release_is_the_last_write_of_its_token(make: Make) -> None:
    """What comes after it is refused, another release and an empty transaction too, also where nobody took it."""
    with make() as saver:
        run = Run(saver)
        run.write(*run.barrier(0), Release())
        before = everything(saver)
        refuse(ConcurrentRunError, lambda: run.write(*run.barrier(1)), "a barrier after the release")
        task = PutTask(TaskRow(0, (), 1, "task", b""))
        refuse(ConcurrentRunError, lambda: run.write(task), "a task row after the release")
        refuse(ConcurrentRunError, lambda: run.write(Release()), "a second release")
        refuse(ConcurrentRunError, run.write, "an empty transaction after the release")
        expect(everything(saver), before, "the thread after the refused writes")
        saver.release("t", run.token)
        Run(saver, holder="second").step(1)


def a_release_of_a_lease_that_was_lost_is_refused(make: Make) -> None:
    """With all before it, and the one who has the thread keeps it."""
    with make() as saver:
        old = Run(saver, holder="old")
        old.step(0)
        new = Run(saver, holder="new")
        before = everything(saver)
        refuse(ConcurrentRunError, lambda: old.write(Release()), "a release of the old run")
        refuse(ConcurrentRunError, lambda: old.write(*old.barrier(1), Release()), "its last barrier with a release")
        task = PutTask(TaskRow(0, (), 1, "task", b"old"))
        refuse(ConcurrentRunError, lambda: old.write(task, Release()), "a task row of it with a release")
        expect(everything(saver), before, "the thread after the refused writes")
        expect(saver.claim("t", lease("third"), 60, alive), lease("new"), "the holder after the refused releases")
        new.step(1)


def a_release_can_stand_alone(make: Make) -> None:
    """It changes nothing but the lease, and a thread where nothing was written goes with it."""
    with make() as saver:
        run = Run(saver)
        run.step(0, a=(WHOLE, b"0"))
        before = everything(saver)
        run.write(Release())
        expect(everything(saver), before, "the thread after it was given up")
        expect(saver.claim("t", lease("second"), 60, alive), Held("t", 1), "the thread claimed after it")
        Run(saver, "empty").write(Release())
        Run(saver, "branch").write(OpenBranch(BranchRow(1, 0, 1)), Release())
        expect([info.thread_id for info in saver.threads()], ["branch", "t"], "the threads")


#: Every check; its name says what it shows.
CHECKS: Final[tuple[Check, ...]] = (
    a_head_moves_by_compare_and_set,
    one_of_many_moves_a_head,
    a_transaction_is_stored_whole_or_not_at_all,
    a_graph_inside_another_checks_the_outermost_head,
    task_rows_are_written_once_replaced_and_deleted,
    a_seq_is_used_once,
    a_branch_number_is_taken_once,
    rows_come_back_as_they_were,
    a_release_is_committed_with_what_is_before_it,
    a_release_in_a_transaction_that_is_refused_gives_nothing_up,
    a_release_is_the_last_write_of_its_token,
    a_release_of_a_lease_that_was_lost_is_refused,
    a_release_can_stand_alone,
)
