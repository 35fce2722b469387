"""What the checkpointers on databases owe beyond the protocol: their SQL, their failures, their files."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from pregel.checkpoint import points
from pregel.checkpoint import sqlite as module
from pregel.checkpoint import statements as sql
from pregel.checkpoint.base import BranchRow, DropTasks, OpenBranch, PutTask, Release, TaskRow
from pregel.checkpoint.owner import new_lease
from pregel.checkpoint.schema import (
    MIGRATIONS,
    POSTGRES_TYPES,
    READ_VERSION,
    SET_VERSION,
    SQLITE_TYPES,
    VERSIONS,
    migrate,
)
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.checkpoint.writing import REMEMBERED, key
from pregel.errors import ConcurrentRunError, DecodeError, InvalidConfigError, InvalidIdError
from pregel.testing.conformance import CHECKS, check_checkpointer
from pregel.testing.conformance.kit import EVERYTHING, HOSTILE, Run, everything


def postgres_saver(dsn, **options):
    from pregel.checkpoint.postgres import PostgresSaver

    return PostgresSaver(dsn, **options)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """A place for runs, and what opens it."""
    if request.param == "sqlite":
        return str(tmp_path / "runs.db"), SqliteSaver
    return request.getfixturevalue("postgres"), postgres_saver


# -- R1: the SQL is a finite set of constants ------------------------------------------------------------------------


def run_all(saver, name):
    """Do everything that can be done, with this name wherever there is one."""
    run = Run(saver, name)
    fork = run.step(0, **{name: (True, name.encode())})
    run.step(0, (name, "b"), **{name: (True, b"")})
    run.write(PutTask(TaskRow(0, (), 1, name, b"")), PutTask(TaskRow(0, (), 1, name, b""), replaces=True))
    run.write(DropTasks(0, (), 1))
    run.step(1, **{name: (False, b""), "other": (True, b"")})
    run.fork(1, 0, fork, 1, **{name: (False, b"")})
    saver.claim(name, new_lease(), 60, lambda _: False)
    saver.renew(name, run.token, 60)
    saver.latest(name)
    saver.checkpoint(name, 0, (name, "b"), 0)
    saver.visible_checkpoint(name, [(1, EVERYTHING), (0, fork)], ())
    saver.checkpoints(name, (), before=5, limit=2)
    saver.values(name, [(1, EVERYTHING), (0, fork)], ())
    saver.namespaces(name, 0, (name,))
    everything(saver, name)
    saver.threads(after=name, limit=1)
    saver.prune(keep_last=1, thread_id=name)
    saver.prune(older_than=1.0)
    saver.copy_thread(name, f"{name}2"[-512:])
    with pytest.raises(ConcurrentRunError):
        saver.write(name, "no token", [])
    saver.release(name, run.token)
    Run(saver, name, holder="new").write(Release())
    saver.delete_thread(name)
    Run(saver, name).write(Release())


def test_all_sql_that_reaches_sqlite_is_constant():
    texts = set()

    class Recorder:
        """A cursor that notes the texts, before any value is put in."""

        def __init__(self, cursor):
            self.cursor = cursor

        def __getattr__(self, name):
            return getattr(self.cursor, name)

        def execute(self, statement, *values):
            texts.add(statement)
            return self.cursor.execute(statement, *values)

        def executemany(self, statement, values):
            texts.add(statement)
            return self.cursor.executemany(statement, values)

    with SqliteSaver(":memory:") as saver:  # the set-up: see the next test
        saver._cursor = Recorder(saver._cursor)
        for name in HOSTILE:
            run_all(saver, name)
    assert texts <= set(sql.STATEMENTS)
    assert len(texts) > 40


@pytest.mark.parametrize("types", [SQLITE_TYPES, POSTGRES_TYPES])
def test_the_set_up_runs_the_statements_of_the_migrations_only(types):
    ran = []

    class Recorder:
        def execute(self, statement, values=()):
            ran.append(statement)

        def fetchone(self):
            return None

    migrate(Recorder(), types, "checkpoints", MIGRATIONS, "here")
    tables = [statement.format(**types) for version in MIGRATIONS for statement in version]
    assert ran == [VERSIONS.format(**types), READ_VERSION, *tables, SET_VERSION]


def test_all_sql_that_reaches_postgres_is_constant(postgres, monkeypatch):
    import psycopg

    from pregel.checkpoint import postgres as its

    texts = set()
    execute, executemany = psycopg.Cursor.execute, psycopg.Cursor.executemany

    def noted(method):
        def call(cursor, statement, *args, **options):
            texts.add(statement)
            return method(cursor, statement, *args, **options)

        return call

    with postgres_saver(postgres) as saver:
        monkeypatch.setattr(psycopg.Cursor, "execute", noted(execute))
        monkeypatch.setattr(psycopg.Cursor, "executemany", noted(executemany))
        for name in HOSTILE[:8]:
            run_all(saver, name)
    assert texts <= {*its.TRANSLATED.values(), its.NOW.encode(), *its.SETTINGS}
    assert len(texts) > 40


def test_no_constant_is_out_of_use():
    used = set()
    for part in ("sql", "writing", "files", "sqlite", "postgres"):
        text = Path(module.__file__).with_name(f"{part}.py").read_text(encoding="utf-8")
        used |= {name for name in vars(sql) if f"sql.{name}" in text}
    own = {name for name, value in vars(sql).items() if name.isupper() and not name.startswith("_")}
    assert own - used == set()


def test_names_too_long_to_be_indexed_are_refused_before_they_reach_a_database(place):
    where, opened = place
    with opened(where) as saver:
        run = Run(saver)
        run.step(0)
        with pytest.raises(InvalidIdError, match="longer than 2600 bytes"):
            run.step(0, ("🙂" * 512, "🙂" * 512))
        assert saver.namespaces("t", 0, ()) == [()]
        assert run.step(0, ("🙂" * 512, "x" * 512)) > 1


# -- G8: the n-th statement fails ------------------------------------------------------------------------------------


class Failing:
    """A cursor whose n-th statement raises, before it is done or after."""

    def __init__(self, cursor, fail_at, error, *, after):
        self.cursor, self.fail_at, self.error, self.after, self.count = cursor, fail_at, error, after, 0

    def __getattr__(self, name):
        return getattr(self.cursor, name)

    def _run(self, method, *args):
        self.count += 1
        if self.count == self.fail_at and not self.after:
            raise self.error
        method(*args)
        if self.count == self.fail_at:
            raise self.error

    def execute(self, *args):
        self._run(self.cursor.execute, *args)

    def executemany(self, *args):
        self._run(self.cursor.executemany, *args)


def big_write(run):
    """Return writes of every type; some need several statements."""
    return [
        *run.barrier(1, a=(True, b"1"), b=(True, b"1"), log=(False, b"1")),
        DropTasks(0, (), 1),
        *run.barrier(0, ("inner",), a=(True, b"1"), new=(True, b"1")),
        PutTask(TaskRow(0, (), 2, "task", b"")),
        PutTask(TaskRow(0, (), 2, "task", b"again"), replaces=True),
        OpenBranch(BranchRow(1, 0, 1)),
        Release(),
    ]


@pytest.mark.parametrize("error", [sqlite3.OperationalError("disk I/O error"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("after", [False, True])
def test_whichever_statement_of_a_write_fails_nothing_of_it_is_stored(error, after):
    with SqliteSaver(":memory:") as saver:
        run = Run(saver)
        run.step(0, a=(True, b"0"), log=(True, b"0"))
        run.write(PutTask(TaskRow(0, (), 1, "task", b"0")))
        before = everything(saver)
        tables = dump(saver)
        cursor = saver._cursor
        count = 0
        while True:
            count += 1
            run.seq = 1
            saver._cursor = failing = Failing(cursor, count, error, after=after)
            caught = outcome(run, type(error))
            saver._cursor = cursor
            if caught is None:
                break
            assert caught is error
            if after and failing.count == statements_of_the_write:
                break  # the commit was done, and its answer lost: the state is the one after it
            assert not saver._connection.in_transaction
            assert everything(saver) == before
            assert dump(saver) == tables
        assert count > 15
        assert saver.head("t", 0, ()) == 1
        assert [thread.leased for thread in saver.threads()] == [False]
        assert [row.field for row in saver.values("t", [(0, EVERYTHING)], ())] == ["a", "b", "log", "log"]


def outcome(run, kind):
    """Return what the big write raised."""
    try:
        run.write(*big_write(run))
    except kind as error:
        return error
    return None


def dump(saver):
    """Return all rows of all tables."""
    return list(saver._connection.iterdump())


def count_statements():
    """Return how many statements the write of the test above takes."""
    with SqliteSaver(":memory:") as saver:
        run = Run(saver)
        run.step(0, a=(True, b"0"), log=(True, b"0"))
        run.write(PutTask(TaskRow(0, (), 1, "task", b"0")))
        cursor = saver._cursor
        saver._cursor = counting = Failing(cursor, None, None, after=False)
        run.write(*big_write(run))
        saver._cursor = cursor
        return counting.count


statements_of_the_write = count_statements()


def test_a_failed_write_leaves_no_number_behind_that_is_not_there():
    with SqliteSaver(":memory:") as saver:
        run = Run(saver)
        run.step(0)
        for attempt in range(3):
            with pytest.raises(ConcurrentRunError):
                run.write(*run.barrier(0, (f"inner {attempt}",), new=(True, b"")), *run.barrier(7))
            run.step(0, (f"inner {attempt}",), new=(True, b"%d" % attempt))
            assert saver.values("t", [(0, EVERYTHING)], (f"inner {attempt}",))[0].blob == b"%d" % attempt


@pytest.mark.parametrize("fail_at", range(1, 30))
def test_whichever_statement_fails_on_postgres_nothing_is_stored(fail_at, postgres_fault):
    saver, fail = postgres_fault
    run = Run(saver, f"t{fail_at}")
    run.step(0, a=(True, b"0"), log=(True, b"0"))
    run.write(PutTask(TaskRow(0, (), 1, "task", b"0")))
    before = everything(saver, run.thread_id)
    run.seq = 1
    with fail(fail_at) as raises:
        if raises(run, big_write(run)):
            assert everything(saver, run.thread_id) == before
        else:
            assert saver.head(run.thread_id, 0, ()) == 1
            assert [thread.leased for thread in saver.threads() if thread.thread_id == run.thread_id] == [False]
            assert fail_at > 15


@pytest.fixture(scope="module")
def postgres_fault(postgres_server):
    """A checkpointer on PostgreSQL, and what makes its n-th statement fail."""
    from contextlib import contextmanager

    import psycopg

    from pregel.checkpoint import postgres as its

    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA faults")

    @contextmanager
    def fail(fail_at):
        translator = its.Translator

        def raises(run, writes):
            its.Translator = lambda raw: Failing(
                translator(raw), fail_at, psycopg.OperationalError("lost"), after=False
            )
            try:
                run.write(*writes)
            except psycopg.OperationalError:
                return True
            finally:
                its.Translator = translator
            return False

        yield raises

    with postgres_saver(f"{postgres_server} options='-c search_path=faults'") as saver:
        yield saver, fail


# -- what reading costs ----------------------------------------------------------------------------------------------


def work_of(saver, action):
    """Return how many instructions SQLite needs for something."""
    count = 0

    def tick():
        nonlocal count
        count += 1

    saver._connection.set_progress_handler(tick, 1)
    action()
    saver._connection.set_progress_handler(None, 1)
    return count


READS = {
    "values": lambda saver: saver.values("t", [(0, EVERYTHING)], ()),
    "values before": lambda saver: saver.values("t", [(0, 150)], ()),
    "values of a branch": lambda saver: saver.values("t", [(1, EVERYTHING), (0, 150)], ()),
    "latest": lambda saver: saver.latest("t"),
    "visible": lambda saver: saver.visible_checkpoint("t", [(0, EVERYTHING)], ()),
    "visible before": lambda saver: saver.visible_checkpoint("t", [(1, 3), (0, 150)], ()),
    "checkpoint": lambda saver: saver.checkpoint("t", 0, (), 150),
    "checkpoints": lambda saver: saver.checkpoints("t", (), before=150, limit=5),
    "head": lambda saver: saver.head("t", 0, ()),
    "last_seq": lambda saver: saver.last_seq("t"),
}


@pytest.mark.parametrize("read", READS)
def test_reading_costs_what_it_returns_and_not_the_history(read):
    costs = []
    for length in (200, 2000):
        with SqliteSaver(":memory:") as saver:
            run = Run(saver)
            writes = []
            for step in range(length):
                fields = {"a": (True, b"x"), "log": (step % 50 == 0, b"x")} | (
                    {"once": (True, b"x")} if step == 3 else {}
                )
                writes += run.barrier(step, **fields)
            run.write(*writes)
            run.fork(1, 0, 150, 150, a=(True, b"y"))
            costs.append(work_of(saver, lambda saver=saver: READS[read](saver)))
    assert costs[1] <= costs[0] * 1.2


def test_the_measure_of_costs_can_tell():
    with SqliteSaver(":memory:") as saver:
        run = Run(saver)
        few = work_of(saver, lambda: saver.checkpoints("t", ()))
        for step in range(200):
            run.step(step)
        assert work_of(saver, lambda: saver.checkpoints("t", ())) > 10 * few


def test_two_thousand_steps_take_little_more_than_their_bytes(tmp_path):
    path = tmp_path / "runs.db"
    with SqliteSaver(path, synchronous="NORMAL") as saver:
        run = Run(saver)
        for step in range(2000):
            run.step(step, created=1.7e9 + step, log=(step == 0, b"x" * 215))
    assert path.stat().st_size < 720_000  # 2,000 * (215 + 12) bytes are 454,000


# -- files, versions, processes --------------------------------------------------------------------------------------


def test_what_was_written_is_there_when_it_is_opened_again(place):
    where, opened = place
    with opened(where) as saver:
        run = Run(saver)
        run.step(0, a=(True, b"0"))
        before = everything(saver)
    with opened(where) as saver:
        assert everything(saver) == before
        run.saver = saver
        run.step(1)  # the lease is still held, though this object has never heard of it
        assert saver.head("t", 0, ()) == 1


def test_options_of_sqlite_are_stated_and_checked(tmp_path):
    with SqliteSaver(tmp_path / "runs.db", synchronous="NORMAL", busy_timeout=2.5) as saver:
        assert (saver.synchronous, saver.busy_timeout, saver.blocking) == ("NORMAL", 2.5, True)
        pragmas = {
            name: saver._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("synchronous", "journal_mode", "busy_timeout")
        }
        assert pragmas == {"synchronous": 1, "journal_mode": "wal", "busy_timeout": 2500}
    with SqliteSaver(tmp_path / "runs.db") as saver:
        assert saver._connection.execute("PRAGMA synchronous").fetchone() == (2,)
    with pytest.raises(InvalidConfigError, match="synchronous is 'FULL' or 'NORMAL'"):
        SqliteSaver(tmp_path / "runs.db", synchronous="OFF")
    with pytest.raises(InvalidConfigError, match="busy_timeout is a number of seconds"):
        SqliteSaver(tmp_path / "runs.db", busy_timeout=-1)


def test_a_file_that_is_no_database_is_named(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database at all, but long enough to look at" * 100)
    with pytest.raises(sqlite3.DatabaseError, match=r"notes\.txt.* can't be opened .*not a database"):
        SqliteSaver(path)
    with pytest.raises(sqlite3.OperationalError, match=r"nowhere.*runs\.db.* can't be opened"):
        SqliteSaver(tmp_path / "nowhere" / "runs.db")
    assert path.read_text().startswith("not a database")


def set_version(place, version):
    where, opened = place
    with opened(where) as saver:
        saver._change(lambda cursor: cursor.execute(SET_VERSION, ("checkpoints", version)))


def test_tables_of_a_newer_release_are_refused(place):
    where, opened = place
    set_version(place, 7)
    with pytest.raises(DecodeError, match=r"have version 7, and this release of pregel knows them up to version 1"):
        opened(where)


def test_older_tables_are_brought_up_to_date_in_one_transaction(place, monkeypatch):
    where, opened = place
    with opened(where) as saver:
        Run(saver).step(0, a=(True, b"0"))
        before = everything(saver)
    target = sys.modules[f"pregel.checkpoint.{'sqlite' if opened is SqliteSaver else 'postgres'}"]
    broken = ("ALTER TABLE pregel_threads ADD COLUMN note {text}", "ALTER TABLE nothing ADD COLUMN x {int}")
    monkeypatch.setattr(target, "MIGRATIONS", (*MIGRATIONS, broken))
    with pytest.raises(Exception, match="nothing"):
        opened(where)
    monkeypatch.setattr(target, "MIGRATIONS", (*MIGRATIONS, broken[:1], ("UPDATE pregel_threads SET note = 'third'",)))
    for _ in range(2):
        with opened(where) as saver:
            assert saver._rows(READ_VERSION, ("checkpoints",))[0][0] == 3
            assert saver._read(
                lambda cursor: (cursor.execute("SELECT note FROM pregel_threads"), cursor.fetchall())[1]
            ) == [("third",)]
            assert everything(saver) == before


WRITING = """
import sys
from pregel.checkpoint.base import Held, Release
from pregel.errors import ConcurrentRunError
from pregel.testing.conformance.kit import Run, alive, lease
if sys.argv[1] == "sqlite":
    from pregel.checkpoint.sqlite import SqliteSaver
    saver = SqliteSaver(sys.argv[2], synchronous="NORMAL", busy_timeout=30)
else:
    from pregel.checkpoint.postgres import PostgresSaver
    saver = PostgresSaver(sys.argv[2])
name = sys.argv[3]
own = Run(saver, f"own of {name}")
moved = 0
for step in range(100):
    own.step(step, a=(True, name.encode()))
    found = saver.claim("shared", lease(name), 60, alive)
    if isinstance(found, Held):
        head = saver.head("shared", 0, ())
        shared = Run.__new__(Run)
        shared.saver, shared.thread_id, shared.token, shared.seq = saver, "shared", name, found.last_seq
        last = shared.barrier(0 if head is None else head + 1, a=(True, name.encode()))
        moved += 1
        if moved % 2:
            shared.write(*last, Release())
        else:
            shared.write(*last)
            saver.release("shared", name)
saver.close()
print(moved)
"""


def test_processes_write_at_once_and_lose_nothing(place):
    where, opened = place
    kind = "sqlite" if opened is SqliteSaver else "postgres"
    names = ["one", "two", "three"]  # they also make the tables at once
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITING, kind, where, name], stdout=subprocess.PIPE, text=True)
        for name in names
    ]
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    with opened(where) as saver:
        for name in names:
            assert len(saver.checkpoints(f"own of {name}", ())) == 100
        shared = saver.checkpoints("shared", ())
        assert [row.step for row in shared] == list(range(len(shared)))[::-1]
        assert sum(map(int, outputs)) == len(shared) > 0


def test_a_busy_database_is_an_error_after_the_timeout(tmp_path):
    with SqliteSaver(tmp_path / "runs.db", busy_timeout=0) as saver:
        run = Run(saver)
        with closing(sqlite3.connect(tmp_path / "runs.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                run.step(0)
            other.execute("ROLLBACK")
        run.seq = 0
        run.step(0)


def held_alone(path):
    """Return a connection that has a new file to itself."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    return other


def test_opening_a_file_waits_for_whoever_has_it(tmp_path, monkeypatch):
    waits = []
    with closing(held_alone(tmp_path / "runs.db")) as other:

        def waited(seconds):
            waits.append(seconds)
            if len(waits) == 3:
                other.execute("COMMIT")

        monkeypatch.setattr(module.time, "sleep", waited)
        connect = sqlite3.connect

        def impatient(*args, **options):
            return connect(*args, **options | {"timeout": 0})  # as where SQLite does not wait by itself

        monkeypatch.setattr(sqlite3, "connect", impatient)
        with SqliteSaver(tmp_path / "runs.db") as saver:
            assert saver.threads() == []
    assert len(waits) == 3


def test_opening_a_file_that_stays_busy_names_it(tmp_path):
    with closing(held_alone(tmp_path / "runs.db")):
        with pytest.raises(sqlite3.OperationalError, match=r"runs\.db.* can't be opened .*locked"):
            SqliteSaver(tmp_path / "runs.db", busy_timeout=0)


def test_a_connection_that_breaks_before_the_commit_stores_nothing_and_is_replaced(postgres):
    import psycopg

    with postgres_saver(postgres, min_size=1, max_size=1) as saver:
        run = Run(saver)
        run.step(0)
        before = everything(saver)

        def cut(name):
            if name == "write.inside":
                with psycopg.connect(postgres, autocommit=True) as other:
                    other.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE pid <> pg_backend_pid() AND state = 'idle in transaction'"
                    )

        previous = points.listen(cut)
        try:
            with pytest.raises(psycopg.OperationalError):
                run.step(1)
        finally:
            points.listen(previous)
        assert everything(saver) == before
        run.seq = 1
        run.step(1)
        assert saver.head("t", 0, ()) == 1


def test_a_closed_checkpointer_refuses_work(place):
    where, opened = place
    saver = opened(where)
    saver.close()
    with pytest.raises(Exception, match="closed"):
        saver.latest("t")


def test_a_seq_that_would_reach_into_other_rows_is_refused():
    assert key(3, 7) == 3 * 2**32 + 7
    for seq in (-1, 2**32):
        with pytest.raises(OverflowError, match="seq is a number from 0"):
            key(3, seq)


def test_what_a_run_remembers_is_bounded():
    with SqliteSaver(":memory:", synchronous="NORMAL") as saver:
        run = Run(saver)
        for number in range(REMEMBERED + 10):
            run.step(0, (f"child {number}",), a=(True, b""))
        assert len(saver._numbers["t", run.token].known) < REMEMBERED + 10
        for number in range(1100):
            saver.claim(f"t{number}", new_lease(), 60, lambda _: False)
        assert len(saver._numbers) <= 1024
        run.step(0)  # forgotten, and asked for again
        assert ("t", run.token) in saver._numbers
        run.write(*run.barrier(1), Release())
        assert ("t", run.token) not in saver._numbers


def test_without_psycopg_the_error_says_what_to_install():
    code = "import sys; sys.modules['psycopg'] = None\nimport pregel.checkpoint.postgres"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ImportError: PostgresSaver needs psycopg 3 and its pool: pip install 'pregel[postgres]'" in done.stderr


def test_a_server_that_is_not_there_is_an_error_at_once(tmp_path):
    import psycopg

    with pytest.raises(psycopg.OperationalError):
        postgres_saver(f"host={tmp_path} dbname=nothing")


def test_one_connection_serves_many_threads(postgres):
    with postgres_saver(postgres, min_size=1, max_size=1) as saver:
        [check] = [check for check in CHECKS if check.__name__ == "one_of_many_moves_a_head"]
        check(lambda: saver)


def test_the_whole_suite_passes_in_one_call(tmp_path):
    files = iter(range(1000))
    check_checkpointer(lambda: SqliteSaver(tmp_path / f"{next(files)}.db", synchronous="NORMAL"))
