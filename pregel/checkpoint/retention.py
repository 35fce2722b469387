"""Which rows can go when old checkpoints are deleted.

What stays is decided from points: places on a branch from which somebody may read. For each field the rows that a
reader there sees are needed: from the newest whole row up to the point, on the parent too where the branch has none.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pregel.checkpoint.base import BranchRow, Namespace

__all__ = ["CheckpointMark", "ValueMark", "check_limits", "spare"]

#: Behind every row.
END_OF_BRANCH: Final = 1 << 62


class CheckpointMark(NamedTuple):
    """A checkpoint row without its content."""

    branch: int
    namespace: Namespace
    seq: int
    created: float


class ValueMark(NamedTuple):
    """A field row without its content."""

    branch: int
    namespace: Namespace
    field: str
    seq: int
    whole: bool


def check_limits(keep_last: int | None, older_than: float | None) -> None:
    """Check what `prune` is asked for.

    Raises:
        ValueError: Neither is given, or one makes no sense.
    """
    if keep_last is None and older_than is None:
        raise ValueError("prune needs keep_last or older_than: without either every checkpoint would stay")
    if keep_last is not None and (type(keep_last) is not int or keep_last < 1):
        raise ValueError(f"keep_last is a whole number of at least 1, not {keep_last!r}: delete_thread forgets all")
    if older_than is not None and not older_than >= 0:
        raise ValueError(f"older_than is a number of seconds of at least 0, not {older_than!r}")


def spare(
    branches: Iterable[BranchRow],
    checkpoints: Iterable[CheckpointMark],
    values: Iterable[ValueMark],
    *,
    keep_last: int | None,
    cutoff: float | None,
) -> tuple[list[CheckpointMark], list[ValueMark]]:
    """Return the rows of one thread that can go.

    Args:
        branches: Where its branches begin.
        checkpoints: All its checkpoints.
        values: All its field rows.
        keep_last: How many of the newest checkpoints of a namespace each branch keeps; None for one.
        cutoff: Only what was created before goes, in seconds since 1970; None for any time.
    """
    family = Family(branches)
    lines: dict[tuple[int, Namespace], list[CheckpointMark]] = defaultdict(list)
    for mark in sorted(checkpoints, key=lambda mark: mark.seq):
        lines[mark.branch, mark.namespace].append(mark)
    seqs = {key: [mark.seq for mark in line] for key, line in lines.items()}
    kept = {
        mark
        for line in lines.values()
        for index, mark in enumerate(reversed(line))
        if index < (keep_last or 1) or (cutoff is not None and mark.created >= cutoff)
    }
    # A checkpoint of the outermost graph that stays, or that a branch begins at, is of use only with what it sees
    # inside; the end of a branch is the newest checkpoint of each namespace, which stays anyway.
    outer = {(mark.branch, mark.seq) for mark in kept if not mark.namespace} | set(family.forks())
    namespaces = {namespace for _, namespace in lines}
    for branch, seq in outer:
        for namespace in namespaces:
            for ancestor, bound in family.lineage(branch, seq):
                if index := bisect_right(seqs.get((ancestor, namespace), ()), bound):
                    kept.add(lines[ancestor, namespace][index - 1])
                    break
    for (branch, namespace), line in lines.items():
        kept.update(line[bisect_right(seqs[branch, namespace], open_since(lines, branch, namespace)) :])
    gone = [mark for line in lines.values() for mark in line if mark not in kept]
    return gone, unneeded(family, kept, outer, values)


def open_since(lines: Mapping[tuple[int, Namespace], list[CheckpointMark]], branch: int, namespace: Namespace) -> int:
    """Return the `seq` after which checkpoints of a graph inside another one belong to a task that is still open there.

    They hold what the task will make for that graph when it goes on, and so they all stay.
    """
    if not namespace:
        return END_OF_BRANCH
    around = lines.get((branch, namespace[:-1]))
    return around[-1].seq if around else -1


class Family:
    """The branches of a thread."""

    def __init__(self, branches: Iterable[BranchRow]) -> None:
        self._parents = {row.branch: (row.parent, row.fork_seq) for row in branches}

    def forks(self) -> Iterable[tuple[int, int]]:
        """Return the places at which branches begin."""
        return self._parents.values()

    def lineage(self, branch: int, seq: int) -> Iterator[tuple[int, int]]:
        """Yield the branches that a reader at a place sees, its own first, each with the greatest `seq` that counts."""
        seen = set()  # damaged rows could lead in a circle
        while branch not in seen:
            yield branch, seq
            seen.add(branch)
            if branch not in self._parents:
                return
            branch, fork_seq = self._parents[branch]
            seq = min(seq, fork_seq)


def unneeded(
    family: Family,
    kept: Iterable[CheckpointMark],
    outer: Iterable[tuple[int, int]],
    values: Iterable[ValueMark],
) -> list[ValueMark]:
    """Return the field rows that nobody reads who reads from these checkpoints, places, and the ends of branches.

    A whole row of a graph inside another one may only say that it took the value over from that one, as it was when the
    row was written. So what stays of a field there is a place from which the field of that name around is read, and the
    innermost graphs come first.
    """
    fields: dict[tuple[Namespace, str], dict[int, list[ValueMark]]] = defaultdict(lambda: defaultdict(list))
    points: dict[Namespace, set[tuple[int, int]]] = defaultdict(set)
    for value in sorted(values, key=lambda value: value.seq):
        fields[value.namespace, value.field][value.branch].append(value)
        points[value.namespace].add((value.branch, END_OF_BRANCH))
    for mark in kept:
        points[mark.namespace].add((mark.branch, mark.seq))
    for wanted in points.values():
        wanted.update(outer)
    gone = []
    taken: dict[tuple[Namespace, str], set[tuple[int, int]]] = defaultdict(set)
    for (namespace, field), rows in sorted(fields.items(), key=lambda item: -len(item[0][0])):
        needed: set[ValueMark] = set()
        starts = {branch: newest_whole(line) for branch, line in rows.items()}
        seqs = {branch: [value.seq for value in line] for branch, line in rows.items()}
        for branch, seq in points[namespace] | taken[namespace, field]:
            for ancestor, bound in family.lineage(branch, seq):
                if index := bisect_right(seqs.get(ancestor, ()), bound):
                    start = starts[ancestor][index - 1]
                    needed.update(rows[ancestor][max(start, 0) : index])
                    if start >= 0:
                        break
        if namespace:
            taken[namespace[:-1], field].update((value.branch, value.seq - 1) for value in needed if value.whole)
        gone += [value for line in rows.values() for value in line if value not in needed]
    return gone


def newest_whole(line: Sequence[ValueMark]) -> list[int]:
    """Return for each row of a field on a branch the index of the newest whole row up to it, or -1."""
    starts = []
    newest = -1
    for index, value in enumerate(line):
        if value.whole:
            newest = index
        starts.append(newest)
    return starts
