"""What is read back: checks of rows, lineages and names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pregel.checkpoint.base import Advance, CheckpointRow, PutCheckpoint, PutTask, PutValue, TaskRow, ValueRow
from pregel.testing.conformance.kit import EVERYTHING, HOSTILE, PATCH, WHOLE, Run, expect, seen

if TYPE_CHECKING:
    from pregel.checkpoint.base import Namespace
    from pregel.testing.conformance.kit import Check, Make

__all__ = ["CHECKS"]


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


#: Every check; its name says what it shows.
CHECKS: Final[tuple[Check, ...]] = (
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
)
