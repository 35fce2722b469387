"""What happens to whole threads: checks of listing, deleting, copying, pruning and closing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pregel.checkpoint.base import BranchRow, OpenBranch, PutTask, TaskRow, ThreadInfo
from pregel.errors import CheckpointNotFoundError, ConcurrentRunError
from pregel.testing.conformance.kit import EVERYTHING, NO, PATCH, WHOLE, Run, everything, expect, refuse, seen

if TYPE_CHECKING:
    from pregel.checkpoint.base import Namespace
    from pregel.testing.conformance.kit import Check, Make

__all__ = ["CHECKS"]


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


#: Every check; its name says what it shows.
CHECKS: Final[tuple[Check, ...]] = (
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
