"""What a transaction does, and what of it is refused: checks of `write`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from pregel.checkpoint.base import (
    Advance,
    BranchRow,
    CheckpointRow,
    DropTasks,
    OpenBranch,
    PutCheckpoint,
    PutTask,
    PutValue,
    TaskRow,
    ValueRow,
)
from pregel.errors import ConcurrentRunError
from pregel.testing.conformance.kit import EVERYTHING, PATCH, WHOLE, YES, Run, at_once, everything, expect, refuse, seen

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
)
