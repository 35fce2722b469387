"""What pruning leaves is what readers need, no more and no less; and all checkpointers agree on random histories."""

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from pregel.checkpoint.labels import bounds, pack, unpack
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.retention import CheckpointMark, ValueMark, spare
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import ConcurrentRunError
from pregel.testing.conformance.kit import EVERYTHING, everything, lease

NAMESPACES = [(), ("a",), ("a", "b"), ("ab",)]
FIELDS = ["x", "y"]

#: One commit: on which branch (of those there are), in which namespace, which fields it changes and which are whole,
#: and when; or a fork at one of the commits before.
commits = st.lists(
    st.one_of(
        st.tuples(
            st.integers(0, 3),
            st.sampled_from(NAMESPACES),
            st.dictionaries(st.sampled_from(FIELDS), st.booleans()),
            st.integers(0, 9),
        ),
        st.integers(0, 30),
    ),
    max_size=30,
)


def history(given_commits):
    """Return branches, checkpoints and values as a thread could have them."""
    branches, checkpoints, values = [], [], []
    for seq, commit in enumerate(given_commits, 1):
        if isinstance(commit, int):
            outer = [mark for mark in checkpoints if not mark.namespace]
            if outer:
                start = outer[commit % len(outer)]
                branches.append(BranchRow(len(branches) + 1, start.branch, start.seq))
                checkpoints.append(CheckpointMark(len(branches), (), seq, 5.0))
            continue
        branch, namespace, fields, created = commit
        branch %= len(branches) + 1
        checkpoints.append(CheckpointMark(branch, namespace, seq, float(created)))
        values += [ValueMark(branch, namespace, field, seq, whole) for field, whole in sorted(fields.items())]
    return branches, checkpoints, values


def lineage_of(branches, branch, seq):
    """Return what a reader at a place sees."""
    places = [(branch, seq)]
    parents = {row.branch: row for row in branches}
    while branch in parents:
        seq = min(seq, parents[branch].fork_seq)
        branch = parents[branch].parent
        places.append((branch, seq))
    return places


def read(values, lineage, namespace, fields=FIELDS):
    """Return the field rows that a lineage sees, the slow and simple way."""
    found = set()
    for field in fields:
        for branch, bound in lineage:
            rows = [row for row in values if (row.branch, row.namespace, row.field) == (branch, namespace, field)]
            rows = sorted((row for row in rows if row.seq <= bound), key=lambda row: row.seq)
            whole = [row.seq for row in rows if row.whole]
            found |= {row for row in rows if not whole or row.seq >= whole[-1]}
            if whole:
                break
    return found


def visible(checkpoints, lineage, namespace):
    """Return the newest checkpoint of a namespace that a lineage sees."""
    for branch, bound in lineage:
        rows = [mark for mark in checkpoints if mark[:2] == (branch, namespace) and mark.seq <= bound]
        if rows:
            return max(rows, key=lambda mark: mark.seq)
    return None


@given(commits, st.one_of(st.none(), st.integers(1, 4)), st.one_of(st.none(), st.integers(0, 9)))
def test_what_goes_is_what_no_reader_of_what_stays_sees(given_commits, keep_last, cutoff):
    branches, checkpoints, values = history(given_commits)
    old, unneeded = spare(branches, checkpoints, values, keep_last=keep_last, cutoff=cutoff)
    left = set(checkpoints) - set(old)
    rows = set(values) - set(unneeded)
    assert len(left) + len(old) == len(checkpoints)
    assert len(rows) + len(unneeded) == len(values)

    stays = set()
    lines = defaultdict(list)
    for mark in checkpoints:
        lines[mark.branch, mark.namespace].append(mark)
    for line in lines.values():
        line.sort(key=lambda mark: mark.seq)
        stays |= set(line[-(keep_last or 1) :])
        stays |= {mark for mark in line if cutoff is not None and mark.created >= cutoff}
    places = [(mark.branch, mark.seq) for mark in stays if not mark.namespace]
    places += [(row.parent, row.fork_seq) for row in branches]
    for place in places:
        stays |= {visible(checkpoints, lineage_of(branches, *place), namespace) for namespace in NAMESPACES} - {None}
    for mark in checkpoints:  # of a task that has not ended since the last superstep around it
        around = [each.seq for each in checkpoints if each[:2] == (mark.branch, mark.namespace[:-1])]
        if mark.namespace and mark.seq > max(around, default=-1):
            stays.add(mark)
    assert left == stays

    needed = set()
    for mark in stays:
        needed |= read(values, lineage_of(branches, mark.branch, mark.seq), mark.namespace)
    for namespace in NAMESPACES:
        ends = {(row.branch, EVERYTHING) for row in values if row.namespace == namespace}
        for place in [*places, *ends]:
            needed |= read(values, lineage_of(branches, *place), namespace)
    # A whole row of a graph inside another one may say no more than that it has the value of that one's field then.
    open_rows = list(needed)
    for row in open_rows:  # grows
        if row.whole and row.namespace:
            lineage = lineage_of(branches, row.branch, row.seq - 1)
            more = read(values, lineage, row.namespace[:-1], [row.field]) - needed
            needed |= more
            open_rows += more
    assert rows == needed


def writes_of(row_source):
    """Return random transactions as drawn numbers tell, also such that must be refused."""
    branch, namespace, step, kind, field, flag = row_source
    return {
        0: lambda seq: [
            Advance(branch, namespace, step - 1 if step else None, step, seq, 1 if flag else None, check_root=step > 3),
            PutCheckpoint(CheckpointRow(branch, namespace, step, seq, float(step), b"%d" % seq)),
            PutValue(ValueRow(branch, namespace, field, step, seq, flag, b"%d" % seq)),
        ],
        1: lambda seq: [PutTask(TaskRow(branch, namespace, step, field, b"%d" % seq), replaces=flag)],
        2: lambda seq: [DropTasks(branch, namespace, step)],
        3: lambda seq: [OpenBranch(BranchRow(branch, 0, seq - 1))],
    }[kind]


operations = st.lists(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.sampled_from(NAMESPACES),
            st.integers(0, 4),
            st.sampled_from([0, 0, 0, 0, 1, 2, 3]),
            st.sampled_from(FIELDS),
            st.booleans(),
        ).map(writes_of),
        min_size=1,
        max_size=3,
    ),
    max_size=25,
)


def played(saver, transactions):
    """Return which transactions were made, and all that can be read in the end."""
    saver.claim("t", lease("token"), 60, lambda _: False)
    made = []
    for transaction in transactions:
        seq = saver.last_seq("t")
        try:
            writes = [write for index, one in enumerate(transaction, 1) for write in one(seq + index)]
            saver.write("t", "token", writes)
        except ConcurrentRunError as error:
            made.append(str(error))
        else:
            made.append("made")
    reads = [
        (saver.visible_checkpoint("t", lineage, namespace), saver.values("t", lineage, namespace))
        for namespace in NAMESPACES
        for lineage in ([(0, 5)], [(1, 9), (0, 4)], [(2, EVERYTHING), (1, 6), (0, 2)])
    ]
    steps = [saver.checkpoint("t", 0, namespace, step) for namespace in NAMESPACES for step in range(6)]
    pages = [saver.checkpoints("t", namespace, before=6, limit=2) for namespace in NAMESPACES]
    found = [made, everything(saver), reads, steps, pages, saver.threads(), saver.prune(keep_last=2), everything(saver)]
    saver.copy_thread("t", "copy")
    return [*found, everything(saver, "copy"), saver.threads()]


@given(operations)
def test_sqlite_and_memory_agree_on_random_transactions(transactions):
    with SqliteSaver(":memory:") as sqlite, InMemorySaver() as memory:
        assert played(sqlite, transactions) == played(memory, transactions)


@pytest.fixture(scope="module")
def postgres_saver(postgres_server):
    """A checkpointer on PostgreSQL, in a schema of its own."""
    import psycopg

    from pregel.checkpoint.postgres import PostgresSaver

    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA random_transactions")
    with PostgresSaver(f"{postgres_server} options='-c search_path=random_transactions'") as saver:
        yield saver


@settings(max_examples=settings.default.max_examples // 4)  # it is slower
@given(transactions=operations)
def test_postgres_and_memory_agree_on_random_transactions(postgres_saver, transactions):
    for name in ("t", "copy"):
        postgres_saver.delete_thread(name)
    with InMemorySaver() as memory:
        assert played(postgres_saver, transactions) == played(memory, transactions)


labels = st.lists(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4), max_size=4
).map(tuple)


@given(labels, labels)
def test_packed_labels_begin_and_sort_as_the_tuples_do(first, second):
    assert unpack(pack(first)) == first
    assert (pack(first) < pack(second)) == (first < second)
    assert pack(first + second).startswith(pack(first))
    assert pack(first).startswith(pack(second)) == (first[: len(second)] == second)
    low, high = bounds(second)
    assert (low <= pack(first) < high) == (first[: len(second)] == second)
