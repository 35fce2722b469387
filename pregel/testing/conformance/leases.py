"""Who may write to a thread: checks of claims, renewals and releases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pregel.checkpoint.base import (
    Advance,
    BranchRow,
    DropTasks,
    Held,
    Lease,
    OpenBranch,
    PutTask,
    PutValue,
    TaskRow,
    ThreadInfo,
    ValueRow,
)
from pregel.errors import ConcurrentRunError
from pregel.testing.conformance.kit import (
    EVERYTHING,
    NO,
    WHOLE,
    YES,
    Run,
    alive,
    at_once,
    everything,
    expect,
    gone,
    lease,
    refuse,
)

if TYPE_CHECKING:
    from pregel.testing.conformance.kit import Check, Make

__all__ = ["CHECKS"]


def a_thread_is_claimed_once(make: Make) -> None:
    """The second who claims it learns who has it, all that a lease says."""
    with make() as saver:
        first = Lease("token", "a host", 12, "34")
        expect(saver.claim("t", first, 60, alive), Held("t", 0), "a free thread that was claimed")
        expect(saver.claim("t", lease("other"), 60, alive), first, "the holder of a thread that was claimed")
        expect(saver.claim("u", lease("other"), 60, alive), Held("u", 0), "another thread that was claimed")


def a_claim_says_what_is_stored_there(make: Make) -> None:
    """Under which id, and up to which seq, of all branches and namespaces, whoever wrote it."""
    with make() as saver:

        def claimed(thread_id: str) -> Held | Lease:
            return saver.claim(thread_id, lease("another"), 60, gone)

        run = Run(saver)
        run.write(PutTask(TaskRow(0, (), 1, "task", b"")))
        expect(claimed("t"), Held("t", 0), "a thread on which no head has moved")
        run = Run(saver)
        run.step(0)
        run.step(0, ("inner",))
        expect(claimed("t"), Held("t", 2), "a thread that an inner graph wrote to last")
        run = Run(saver)
        run.fork(1, 0, 1, 1)
        expect(claimed("t"), Held("t", 3), "a thread with a branch")
        Run(saver).step(1)
        saver.copy_thread("t", "copy")
        saver.copy_thread("copy", "copy of the copy")
        expect(claimed("copy of the copy"), Held("t", 4), "the copy of a copy")
        Run(saver, "copy").step(2)
        expect(claimed("copy"), Held("t", 5), "a copy that went on")
        expect(claimed("t"), Held("t", 4), "the thread that was copied")
        saver.delete_thread("copy")
        expect(claimed("copy"), Held("copy", 0), "a new thread under the id of a copy that was deleted")


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
        expect(saver.claim("t", lease("second"), 60, alive), Held("t", 0), "a thread whose lease expired")
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
        expect(saver.claim("t", lease("second"), 60, alive), Held("t", 0), "the thread after it was let expire")


def only_the_holder_releases(make: Make) -> None:
    """A token that is not the recorded one releases and renews nothing."""
    with make() as saver:
        saver.claim("t", lease("first"), 60, alive)
        saver.release("t", "other")
        saver.release("nowhere", "other")
        expect(saver.renew("t", "other", -1), NO, "whether another can renew")
        expect(saver.claim("t", lease("second"), 60, alive), lease("first"), "the holder after another released")
        saver.release("t", "first")
        expect(saver.claim("t", lease("second"), 60, alive), Held("t", 0), "the thread after it was released")


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
        expect(answers.count(Held("t", 0)), 1, "how many claimed the thread")


#: Every check; its name says what it shows.
CHECKS: Final[tuple[Check, ...]] = (
    a_thread_is_claimed_once,
    a_claim_says_what_is_stored_there,
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
)
