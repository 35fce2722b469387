"""What only databases do: files and servers, tables and their versions, SQL, damage, several openers at once."""

import sqlite3
import sys
from itertools import pairwise
from threading import Barrier, Thread

import pytest

from pregel.errors import ConcurrentPutError, DecodeError, InvalidConfigError
from pregel.store import postgres as postgres_module
from pregel.store import sqlite as sqlite_module
from pregel.store.base import ListNamespacesOp, MatchCondition, PutOp, SearchOp
from pregel.store.postgres import PostgresStore
from pregel.store.sqlite import SqliteStore
from pregel.store.statements import MIGRATIONS, POSTGRES, SQLITE
from pregel.testing.conformance.kit import Run
from pregel.testing.store_conformance import HOSTILE


class Database:
    """A database of one kind: stores on it, and a connection that goes past them."""

    def __init__(self, kind, where):
        self.kind, self.where = kind, where

    def open(self):
        return SqliteStore(self.where) if self.kind == "sqlite" else PostgresStore(self.where)

    def execute(self, text, values=()):
        """Execute SQL, with `?` for values, past the stores."""
        if self.kind == "sqlite":
            connection = sqlite3.connect(self.where)
        else:
            import psycopg

            connection = psycopg.connect(self.where)
            text = text.replace("?", "%s")
        try:
            cursor = connection.execute(text, values)
            rows = cursor.fetchall() if cursor.description else []
            connection.commit()
            return rows
        finally:
            connection.close()


@pytest.fixture(params=["sqlite", "postgres"])
def database(request, tmp_path):
    """An empty database of each kind, in turn."""
    where = tmp_path / "store.db" if request.param == "sqlite" else request.getfixturevalue("postgres")
    return Database(request.param, where)


# -- opening -----------------------------------------------------------------------------------------------------------


def test_items_outlive_the_store_that_put_them(database):
    with database.open() as store:
        store.put(("a",), "k", {"x": 1})
        item = store.get(("a",), "k")
    with database.open() as store:
        assert store.get(("a",), "k") == item
        store.put(("a",), "l", {})
        assert [found.version for found in store.search(())] == [2, 1]


def test_closing_twice_is_closing_once_and_a_closed_store_says_so(database):
    store = database.open()
    store.close()
    store.close()
    with pytest.raises(Exception, match="closed"):
        store.get(("a",), "k")


def test_other_tables_of_the_database_are_left_alone(database):
    database.execute("CREATE TABLE checkpoints (id INTEGER)")
    database.execute("INSERT INTO checkpoints VALUES (7)")
    with database.open() as store:
        store.put(("a",), "k", {})
    assert database.execute("SELECT id FROM checkpoints") == [(7,)]


def test_runs_and_items_share_a_database(database):
    from pregel.checkpoint.postgres import PostgresSaver
    from pregel.checkpoint.sqlite import SqliteSaver

    with (
        (SqliteSaver if database.kind == "sqlite" else PostgresSaver)(database.where) as saver,
        database.open() as store,
    ):
        Run(saver).step(0)
        store.put(("a",), "k", {})
        assert (len(saver.threads()), len(store.search(()))) == (1, 1)
    versions = database.execute("SELECT part, version FROM pregel_versions ORDER BY part")
    assert versions == [("checkpoints", 1), ("items", 1)]


def test_two_stores_on_one_database_see_each_other(database):
    with database.open() as one, database.open() as other:
        one.put(("a",), "k", {"x": 1})
        version = other.get(("a",), "k").version
        other.put(("a",), "k", {"x": 2}, expected=version)
        with pytest.raises(ConcurrentPutError):
            one.put(("a",), "k", {"x": 3}, expected=version)
        assert one.get(("a",), "k").value == {"x": 2}


def test_stores_that_race_for_a_version_have_one_winner(database):
    barrier = Barrier(3, timeout=60)
    won, failed = [], []

    def race(name):
        try:
            barrier.wait()  # the tables are made by whoever comes first
            with database.open() as store:
                for number in range(5):
                    barrier.wait()
                    try:
                        store.put(("a",), f"k{number}", {"by": name}, expected=0)
                        won.append(number)
                    except ConcurrentPutError:
                        pass
        except BaseException as error:
            failed.append(error)
            barrier.abort()

    threads = [Thread(target=race, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sorted(won) == [0, 1, 2, 3, 4]


def test_a_batch_of_reads_sees_one_moment(database, monkeypatch):
    with database.open() as reader, database.open() as writer:
        writer.put(("a",), "k", {"x": 1})
        with reader.transaction(writes=False) as rows:
            assert rows.version(("a",), "k") == 1
            writer.put(("a",), "k", {"x": 2})
            assert rows.version(("a",), "k") == 1
        assert reader.get(("a",), "k").version == 2


# -- versions of the tables --------------------------------------------------------------------------------------------


def test_tables_of_a_later_release_are_refused_and_left_as_they_are(database):
    database.open().close()
    database.execute("UPDATE pregel_versions SET version = 7")
    with pytest.raises(DecodeError, match=r"tables of the items .* version 7, and this release of pregel knows .* 1"):
        database.open()
    assert database.execute("SELECT part, version FROM pregel_versions") == [("items", 7)]


@pytest.fixture
def migrations(database, monkeypatch):
    """Return what gives the releases from here on one more migration."""

    def add(*texts):
        module = sqlite_module if database.kind == "sqlite" else postgres_module
        monkeypatch.setattr(module, "MIGRATIONS", (*MIGRATIONS, texts))

    return add


def test_tables_of_an_earlier_release_are_brought_up_to_date_once(database, migrations):
    with database.open() as store:
        store.put(("a",), "k", {"x": 1})
    migrations("ALTER TABLE pregel_items ADD COLUMN note INTEGER")
    for _ in range(2):
        with database.open() as store:
            assert store.get(("a",), "k").value == {"x": 1}
    assert database.execute("SELECT version FROM pregel_versions") == [(2,)]
    assert database.execute("SELECT note FROM pregel_items") == [(None,)]


def test_a_migration_that_fails_leaves_the_tables_as_they_were(database, migrations):
    database.open().close()
    migrations("ALTER TABLE pregel_items ADD COLUMN note INTEGER", "DROP TABLE not_there")
    with pytest.raises(Exception, match="not_there"):
        database.open()
    assert database.execute("SELECT version FROM pregel_versions") == [(1,)]
    with pytest.raises(Exception, match="note"):
        database.execute("SELECT note FROM pregel_items")


def test_a_store_without_its_counter_says_so(database):
    with database.open() as store:
        database.execute("DELETE FROM pregel_item_counter")
        with pytest.raises(DecodeError, match="pregel_item_counter"):
            store.put(("a",), "k", {})


# -- SQL ---------------------------------------------------------------------------------------------------------------


class Recording(sqlite3.Connection):
    """A connection that writes down what it is given to execute."""

    texts: list

    def execute(self, text, *values):
        self.texts.append(text)
        return super().execute(text, *values)

    def executemany(self, text, *values):
        self.texts.append(text)
        return super().executemany(text, *values)


@pytest.fixture
def texts(database, monkeypatch):
    """What is executed from here on, text by text."""
    found = []
    if database.kind == "sqlite":
        factory = type("Recorder", (Recording,), {"texts": found})
        connect = sqlite3.connect
        monkeypatch.setattr(sqlite3, "connect", lambda *given, **options: connect(*given, factory=factory, **options))
    else:
        import psycopg

        for kind in (psycopg.Cursor, psycopg.ServerCursor):
            for name in ("execute", "executemany"):
                original = getattr(kind, name)

                def recorded(self, text, *given, original=original, **options):
                    found.append(text)
                    return original(self, text, *given, **options)

                monkeypatch.setattr(kind, name, recorded)
    return found


def test_every_text_that_is_executed_is_a_constant(database, texts):
    with database.open() as store:  # the set-up is checked with the checkpointers'
        statements = set(SQLITE if database.kind == "sqlite" else POSTGRES)
        texts.clear()
        for name in HOSTILE:
            store.batch([PutOp((name, name), name, {name: name}), PutOp((name,), f"{name}2", {})])
            assert store.get((name, name), name).value == {name: name}
            assert [item.key for item in store.search((name,), filter={name: {"$gte": name}})] == [name]
            assert store.search((name,), filter={f"{name}; --": name}, limit=10_000) == []
            assert (name, name) in store.list_namespaces(prefix=(name,), suffix=(name, name))
            assert store.batch([SearchOp((name,), limit=1_000), ListNamespacesOp((MatchCondition("prefix", (name,)),))])
            with pytest.raises(ConcurrentPutError):
                store.delete((name,), f"{name}2", expected=10**12)
            store.delete((name,), f"{name}2")
    assert set(texts) - {"BEGIN", "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"} == statements


def test_no_statement_has_a_place_for_a_name():
    for text in (*SQLITE, *POSTGRES):
        assert "LIKE" not in text.upper()
        assert not set(text) & set("{}'\"")


# -- damage ------------------------------------------------------------------------------------------------------------


def test_every_flipped_bit_is_found(database):
    with database.open() as store:
        store.put(("a",), "k", {"x": "some text", "y": [1, 2.5]})
        ((blob,),) = database.execute("SELECT value FROM pregel_items")
        assert len(blob) > 20
        for bit in range(len(blob) * 8):
            damaged = bytearray(blob)
            damaged[bit // 8] ^= 1 << bit % 8
            database.execute("UPDATE pregel_items SET value = ?", (bytes(damaged),))
            with pytest.raises(DecodeError):
                store.get(("a",), "k")
        with pytest.raises(DecodeError):
            store.search(())
        database.execute("UPDATE pregel_items SET value = ?", (blob,))
        assert store.get(("a",), "k").value == {"x": "some text", "y": [1, 2.5]}


def test_a_value_in_another_items_row_is_found(database):
    places = [(("a",), "b"), (("a", "b"), "b"), (("a",), "a"), (("ab",), "b")]
    with database.open() as store:
        store.batch([PutOp(namespace, key, {}) for namespace, key in places])
        rows = database.execute("SELECT version, value FROM pregel_items ORDER BY version")
        for (one, _), (_, blob) in pairwise([*rows, rows[0]]):
            database.execute("UPDATE pregel_items SET value = ? WHERE version = ?", (blob, one))
        for namespace, key in places:
            with pytest.raises(DecodeError):
                store.get(namespace, key)


def test_a_row_that_holds_no_mapping_is_refused(database):
    from pregel import codec

    with database.open() as store:
        store.put(("a",), "k", {})
        blob = codec.seal(codec.encode([1], "value"), "store", ("a",), "k")
        database.execute("UPDATE pregel_items SET value = ?", (blob,))
        with pytest.raises(DecodeError, match="a store holds mappings"):
            store.get(("a",), "k")


# -- SQLite ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("synchronous", "number"), [("FULL", 2), ("NORMAL", 1)])
def test_a_file_is_written_ahead_and_as_durably_as_asked(tmp_path, synchronous, number):
    with SqliteStore(tmp_path / "store.db", synchronous=synchronous) as store:
        with store._begun("BEGIN") as executor:
            assert executor.one("PRAGMA synchronous") == (number,)
            assert executor.one("PRAGMA journal_mode") == ("wal",)
            assert executor.one("PRAGMA busy_timeout") == (30_000,)


def test_synchronous_is_one_of_two(tmp_path):
    with pytest.raises(InvalidConfigError, match="'FULL' or 'NORMAL', not 'NORMAL; DROP"):
        SqliteStore(tmp_path / "store.db", synchronous="NORMAL; DROP TABLE x")
    assert list(tmp_path.iterdir()) == []


def test_a_misspelt_synchronous_is_answered_with_the_nearest(tmp_path):
    with pytest.raises(InvalidConfigError, match="Did you mean 'NORMAL'"):
        SqliteStore(tmp_path / "store.db", synchronous="NORML")


def test_a_file_that_stays_locked_is_an_error_in_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_module, "BUSY_SECONDS", 0)
    blocker = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    try:
        blocker.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError, match=r"store\.db.* of items: .*locked"):
            SqliteStore(tmp_path / "store.db")
    finally:
        blocker.close()


def test_a_file_that_is_no_database_is_named(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("no database, but long enough to be looked at " * 50)
    with pytest.raises(sqlite3.DatabaseError, match=r"notes\.txt.* can't be opened .*not a database"):
        SqliteStore(path)


def test_a_store_may_live_in_memory():
    with SqliteStore(":memory:") as store:
        store.put(("a",), "k", {})
        assert len(store.search(())) == 1


# -- PostgreSQL --------------------------------------------------------------------------------------------------------


def test_a_server_that_is_not_there_is_told_at_once(tmp_path):
    import psycopg

    with pytest.raises(psycopg.OperationalError):
        PostgresStore(f"host={tmp_path}")


def test_without_psycopg_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg_pool", None)
    with pytest.raises(ImportError, match=r"pip install 'pregel\[postgres\]'"):
        PostgresStore("")


def test_a_long_result_is_read_through_a_cursor_and_may_be_left_early(postgres):
    with PostgresStore(postgres) as store:
        store.batch([PutOp(("a", f"n{number}"), "k", {"n": number}) for number in range(1_200)])
        assert [item.value["n"] for item in store.search((), limit=1_100, offset=50)] == list(range(1_149, 49, -1))
        assert [item.value["n"] for item in store.search((), filter={"n": {"$lt": 3}})] == [2, 1, 0]
        both = store.batch([SearchOp((), filter={"n": {"$lt": 1_000}}, limit=1), SearchOp((), filter={"n": 0})])
        assert [[item.value["n"] for item in found] for found in both] == [[999], [0]]
