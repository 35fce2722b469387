"""The conformance suite finds broken checkpointers, and the tools that break things on purpose do."""

import os
import signal
import subprocess
import sys
from operator import attrgetter

import pytest

from pregel.checkpoint import points
from pregel.checkpoint.base import Advance, Held, PutTask, PutValue, Release
from pregel.checkpoint.memory import InMemorySaver, Thread, make
from pregel.checkpoint.owner import is_dead, new_lease
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.testing.conformance import CHECKS, check_checkpointer, keeping, leases, reading, writing
from pregel.testing.conformance.kit import Run
from pregel.testing.faults import FaultySaver, StorageFault, crash_at, points_passed


class ForgetsToCompare(InMemorySaver):
    def write(self, thread_id, token, writes):
        def blind(write):
            if not isinstance(write, Advance):
                return write
            return write._replace(before=self.head(thread_id, write.branch, write.namespace))

        for write in writes:
            super().write(thread_id, token, [blind(write)])


class IsNotAtomic(InMemorySaver):
    def write(self, thread_id, token, writes):
        super().write(thread_id, token, [])
        for write in writes:
            super().write(thread_id, token, [write])


class IgnoresTheToken(InMemorySaver):
    def write(self, thread_id, token, writes):
        for write in writes:
            make(self._threads.setdefault(thread_id, Thread()), thread_id, write, [])


class IgnoresTheTokenOfTasks(InMemorySaver):
    def write(self, thread_id, token, writes):
        if all(isinstance(write, PutTask) for write in writes) and self._thread(thread_id).lease:
            token = self._thread(thread_id).lease.token
        super().write(thread_id, token, writes)


class FencesByTheClock(InMemorySaver):
    def write(self, thread_id, token, writes):
        if self._thread(thread_id).expires < 1e9:
            token = "expired"  # noqa: S105 - a word
        super().write(thread_id, token, writes)

    def claim(self, thread_id, lease, seconds, dead):
        return super().claim(thread_id, lease, seconds if seconds > 0 else -1e12, dead)


class IgnoresTheRoot(InMemorySaver):
    def write(self, thread_id, token, writes):
        writes = [write._replace(check_root=False) if isinstance(write, Advance) else write for write in writes]
        super().write(thread_id, token, writes)


class GivesAThreadToAll(InMemorySaver):
    def claim(self, thread_id, lease, seconds, dead):
        return super().claim(thread_id, lease, seconds, lambda _: True)


class NeverLetsGo(InMemorySaver):
    def claim(self, thread_id, lease, seconds, dead):
        return super().claim(thread_id, lease, 1e9, lambda _: False)


class ReleasesWhatIsNotHeld(InMemorySaver):
    def release(self, thread_id, token):
        self._thread(thread_id).lease = None


class KeepsTheLeaseOfADeletedThread(InMemorySaver):
    def delete_thread(self, thread_id):
        if thread_id in self._threads:
            lease, expires = self._threads[thread_id].lease, self._threads[thread_id].expires
            self._threads[thread_id] = Thread()
            self._threads[thread_id].lease, self._threads[thread_id].expires = lease, expires


class SortsByTime(InMemorySaver):
    def latest(self, thread_id):
        return max(self.checkpoints(thread_id, ()), key=attrgetter("created"), default=None)


class ListsOldestFirst(InMemorySaver):
    def checkpoints(self, thread_id, namespace, *, before=None, limit=None):
        return super().checkpoints(thread_id, namespace, before=before, limit=limit)[::-1]


class LimitsBeforeItFilters(InMemorySaver):
    def checkpoints(self, thread_id, namespace, *, before=None, limit=None):
        return [row for row in super().checkpoints(thread_id, namespace)[:limit] if before is None or row.seq < before]


class ReturnsOldValues(InMemorySaver):
    def values(self, thread_id, lineage, namespace):
        return super().values(thread_id, [(branch, 1) for branch, _ in lineage], namespace)


class IgnoresBounds(InMemorySaver):
    def values(self, thread_id, lineage, namespace):
        return super().values(thread_id, [(branch, 1 << 40) for branch, _ in lineage], namespace)


class ForgetsTheParent(InMemorySaver):
    def values(self, thread_id, lineage, namespace):
        return super().values(thread_id, lineage[:1], namespace)


class ReadsWholeHistories(InMemorySaver):
    def values(self, thread_id, lineage, namespace):
        with self._lock:
            lines = [self._line(thread_id, branch, namespace) for branch, _ in lineage]
        rows = [row for line in lines for values in line.values.values() for row in values]
        return sorted(rows, key=attrgetter("field", "seq"))


class MatchesPrefixesOfText(InMemorySaver):
    def namespaces(self, thread_id, branch, prefix):
        return [
            name for name in super().namespaces(thread_id, branch, ()) if "/".join(name).startswith("/".join(prefix))
        ]


class JoinsLabels(InMemorySaver):
    def write(self, thread_id, token, writes):
        def joined(write):
            if isinstance(write, PutValue):
                return PutValue(write.row._replace(field=write.row.field.lower()))
            return write

        super().write(thread_id, token, list(map(joined, writes)))


class OverwritesTasks(InMemorySaver):
    def write(self, thread_id, token, writes):
        def forced(write):
            if isinstance(write, PutTask):
                there = {
                    row.task for row in self.tasks(thread_id, write.row.branch, write.row.namespace, write.row.step)
                }
                return write._replace(replaces=write.row.task in there)
            return write

        super().write(thread_id, token, list(map(forced, writes)))


class PrunesTooMuch(InMemorySaver):
    def prune(self, *, keep_last=None, older_than=None, thread_id=None):
        deleted = super().prune(keep_last=keep_last, older_than=older_than, thread_id=thread_id)
        for name in [thread_id] if thread_id else list(self._threads):
            for line in self._thread(name).lines.values():
                for field, rows in line.values.items():
                    line.values[field] = rows[-(keep_last or 1) :]
        return deleted


class PrunesTooLittle(InMemorySaver):
    def prune(self, *, keep_last=None, older_than=None, thread_id=None):
        return super().prune(keep_last=keep_last and keep_last + 1, older_than=older_than, thread_id=thread_id)


class ForgetsForksWhenPruning(InMemorySaver):
    def prune(self, *, keep_last=None, older_than=None, thread_id=None):
        branches = {name: thread.branches for name, thread in self._threads.items()}
        for thread in self._threads.values():
            thread.branches = {}
        deleted = super().prune(keep_last=keep_last, older_than=older_than, thread_id=thread_id)
        for name, thread in self._threads.items():
            thread.branches = branches[name]
        return deleted


class KeepsOrphansWhenPruning(InMemorySaver):
    def prune(self, *, keep_last=None, older_than=None, thread_id=None):
        values = {
            (name, key): {field: rows.copy() for field, rows in line.values.items()}
            for name, thread in self._threads.items()
            for key, line in thread.lines.items()
        }
        deleted = super().prune(keep_last=keep_last, older_than=older_than, thread_id=thread_id)
        for (name, key), kept in values.items():
            self._threads[name].lines[key].values.update(kept)
        return deleted


class SharesCopies(InMemorySaver):
    def copy_thread(self, source, target):
        super().copy_thread(source, target)
        self._threads[target].lines = self._threads[source].lines


class ForgetsTheOrigin(InMemorySaver):
    def origin(self, thread_id):
        return thread_id


class CopiesTheLease(InMemorySaver):
    def copy_thread(self, source, target):
        super().copy_thread(source, target)
        self._threads[target].lease = self._threads[source].lease


class LeavesClaimsBehind(InMemorySaver):
    def release(self, thread_id, token):
        if self._held(thread_id, token):
            self._threads[thread_id].lease = None


class TakesEveryThreadForNew(InMemorySaver):
    def claim(self, thread_id, lease, seconds, dead):
        found = super().claim(thread_id, lease, seconds, dead)
        return Held(thread_id, 0) if isinstance(found, Held) else found


class ClaimsUnderItsOwnName(InMemorySaver):
    def claim(self, thread_id, lease, seconds, dead):
        found = super().claim(thread_id, lease, seconds, dead)
        return found._replace(origin=thread_id) if isinstance(found, Held) else found


class CountsTheOutermostGraphOnly(InMemorySaver):
    def claim(self, thread_id, lease, seconds, dead):
        found = super().claim(thread_id, lease, seconds, dead)
        latest = self.latest(thread_id)
        return found._replace(last_seq=latest.seq if latest else 0) if isinstance(found, Held) else found


class IgnoresReleases(InMemorySaver):
    def write(self, thread_id, token, writes):
        super().write(thread_id, token, [write for write in writes if not isinstance(write, Release)])


class IgnoresAReleaseAlone(InMemorySaver):
    def write(self, thread_id, token, writes):
        super().write(thread_id, token, [] if list(writes) == [Release()] else writes)


class ReleasesBeforeItWrites(InMemorySaver):
    def write(self, thread_id, token, writes):
        held = self._held(thread_id, token)
        try:
            super().write(thread_id, token, writes)
        finally:
            if held is not None and Release() in writes:
                held.lease = None


class ReleasesAndWritesNothingElse(InMemorySaver):
    def write(self, thread_id, token, writes):
        super().write(thread_id, token, [Release()] if Release() in writes else writes)


class ReleasesWhoeverHolds(InMemorySaver):
    def write(self, thread_id, token, writes):
        try:
            super().write(thread_id, token, writes)
        finally:
            if Release() in writes:
                self._thread(thread_id).lease = None


class ReleasesInSilence(InMemorySaver):
    def write(self, thread_id, token, writes):
        if list(writes) != [Release()] or self._held(thread_id, token):
            super().write(thread_id, token, writes)


class LetsAReleaseExpire(InMemorySaver):
    def write(self, thread_id, token, writes):
        super().write(thread_id, token, [write for write in writes if not isinstance(write, Release)])
        if Release() in writes:
            self.renew(thread_id, token, -1)


class LeavesReleasesBehind(InMemorySaver):
    def write(self, thread_id, token, writes):
        thread = self._thread(thread_id)
        super().write(thread_id, token, writes)
        if Release() in writes:
            self._threads[thread_id] = thread


BROKEN = [
    ForgetsToCompare, IsNotAtomic, IgnoresTheToken, IgnoresTheTokenOfTasks, FencesByTheClock, IgnoresTheRoot,
    GivesAThreadToAll, NeverLetsGo, ReleasesWhatIsNotHeld, KeepsTheLeaseOfADeletedThread, SortsByTime, ListsOldestFirst,
    LimitsBeforeItFilters, ReturnsOldValues, IgnoresBounds, ForgetsTheParent, ReadsWholeHistories,
    MatchesPrefixesOfText, JoinsLabels, OverwritesTasks, PrunesTooMuch, PrunesTooLittle, ForgetsForksWhenPruning,
    KeepsOrphansWhenPruning, SharesCopies, ForgetsTheOrigin, CopiesTheLease, LeavesClaimsBehind,
    TakesEveryThreadForNew, ClaimsUnderItsOwnName, CountsTheOutermostGraphOnly, IgnoresReleases, IgnoresAReleaseAlone,
    ReleasesBeforeItWrites, ReleasesAndWritesNothingElse, ReleasesWhoeverHolds, ReleasesInSilence, LetsAReleaseExpire,
    LeavesReleasesBehind,
]  # fmt: skip


@pytest.mark.parametrize("broken", BROKEN)
def test_the_suite_finds_a_broken_checkpointer(broken):
    with pytest.raises(ExceptionGroup, match=r"of \d+ checks failed") as caught:
        check_checkpointer(broken)
    for error in caught.value.exceptions:
        assert any(note.startswith("in the check ") for note in error.__notes__)


def test_the_suite_passes_a_checkpointer_that_is_right():
    check_checkpointer(InMemorySaver)


def test_every_check_is_listed_once():
    defined = [
        value
        for module in (leases, writing, reading, keeping)
        for value in vars(module).values()
        if getattr(value, "__annotations__", {}).get("make") == "Make"
    ]
    assert list(CHECKS) == defined


# -- faults ----------------------------------------------------------------------------------------------------------


def test_the_faulty_saver_does_what_its_saver_does():
    check_checkpointer(lambda: FaultySaver(InMemorySaver()))
    patient = InMemorySaver()
    patient.lease_seconds = 99.5
    assert FaultySaver(patient).lease_seconds == 99.5
    assert FaultySaver(InMemorySaver()).blocking is False
    assert FaultySaver(SqliteSaver(":memory:")).blocking is True


@pytest.mark.parametrize("after", [False, True])
def test_the_faulty_saver_fails_once_before_or_after_the_work(after):
    saver = FaultySaver(InMemorySaver(), 4, after=after)
    run = Run(saver)  # last_seq, claim, origin
    with pytest.raises(StorageFault, match="on purpose"):
        run.step(0)
    assert (saver.head("t", 0, ()) is not None) is after
    assert saver.operations == ["last_seq", "claim", "origin", "write", "head"]


def test_the_faulty_saver_raises_what_it_is_told_to():
    with pytest.raises(OSError, match="disk full"):
        FaultySaver(InMemorySaver(), 1, error=OSError("disk full")).threads()


def test_points_are_counted_and_the_listener_before_is_back():
    heard = []
    previous = points.listen(heard.append)
    try:
        with points_passed() as passed:
            saver = InMemorySaver()
            run = Run(saver)
            run.step(0)
            run.step(1)
            saver.release("t", run.token)
        assert passed == {"claim.before": 1, "claim.after": 1, "write.before": 2, "write.inside": 2, "write.after": 2,
                          "release.before": 1, "release.after": 1}  # fmt: skip
        assert set(passed) == set(points.POINTS)
        assert heard == []
        saver.release("t", run.token)
        assert heard == ["release.before", "release.after"]
    finally:
        assert points.listen(previous) == heard.append


def test_a_point_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"no point 'write\.befor'.*Did you mean 'write\.before'"):
        crash_at("write.befor")
    with pytest.raises(ValueError, match="counted from 1"):
        crash_at("write.before", 0)


CRASHING = """
import sys
from pregel.checkpoint.base import Held, Release
from pregel.checkpoint.owner import is_dead, new_lease
from pregel.testing.conformance.kit import Run
from pregel.testing.faults import crash_at
if sys.argv[1] == "sqlite":
    from pregel.checkpoint.sqlite import SqliteSaver
    saver = SqliteSaver(sys.argv[2])
else:
    from pregel.checkpoint.postgres import PostgresSaver
    saver = PostgresSaver(sys.argv[2])
lease = new_lease()
crash_at(sys.argv[3], int(sys.argv[4]))
run = Run.__new__(Run)
run.saver, run.thread_id, run.token, run.seq = saver, "t", lease.token, 0
assert saver.claim("t", lease, 600, is_dead) == Held("t", 0)
for step in range(3):
    run.step(step, a=(True, b"%d" % step), log=(step == 0, b"%d" % step))
if sys.argv[5] == "release":
    saver.release("t", lease.token)
else:
    run.write(*run.barrier(3, a=(True, b"3"), log=(False, b"3")), Release())
"""
#: What is committed when a process dies at a point for the n-th time, and whether a lease is left, by the way in which
#: it would have given up the thread: in a transaction of its own, or in the fourth barrier's.
CRASHES = [
    ("release", "claim.before", 1, None, False),
    ("release", "claim.after", 1, None, True),
    ("release", "write.before", 2, 0, True),
    ("release", "write.inside", 2, 0, True),
    ("release", "write.after", 2, 1, True),
    ("release", "release.before", 1, 2, True),
    ("release", "release.after", 1, 2, False),
    ("write", "write.before", 4, 2, True),
    ("write", "write.inside", 4, 2, True),
    ("write", "write.after", 4, 3, False),
]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize(("gives_up", "point", "occurrence", "step", "leased"), CRASHES)
def test_a_killed_process_leaves_whole_transactions_and_a_lease_that_can_be_taken(
    kind, gives_up, point, occurrence, step, leased, tmp_path, request
):
    if kind == "sqlite":
        place, open_saver = str(tmp_path / "runs.db"), SqliteSaver
    else:
        from pregel.checkpoint.postgres import PostgresSaver

        place, open_saver = request.getfixturevalue("postgres"), PostgresSaver
    words = [kind, place, point, str(occurrence), gives_up]
    done = subprocess.run([sys.executable, "-c", CRASHING, *words], check=False)
    assert done.returncode == -signal.SIGKILL
    with open_saver(place) as saver:
        assert saver.head("t", 0, ()) == step
        assert [info.leased for info in saver.threads()] == ([] if step is None and not leased else [leased])
        rows = saver.values("t", [(0, 1 << 40)], ())
        steps = [] if step is None else list(range(step + 1))
        assert [(row.field, row.step) for row in rows] == [("a", step)] * bool(steps) + [("log", n) for n in steps]
        assert [row.step for row in saver.checkpoints("t", ())] == steps[::-1]
        lease = new_lease()
        assert saver.claim("t", lease, 600, is_dead) == Held("t", len(steps))
        again = Run.__new__(Run)
        again.saver, again.thread_id, again.token, again.seq = saver, "t", lease.token, saver.last_seq("t")
        again.step(len(steps))
    assert os.getpid() == lease.pid
