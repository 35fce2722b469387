"""Writes the files of this release: `python -m tests.golden.histories.make`. Those of others are never touched."""

import json
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import psycopg
from psycopg import sql

import pregel
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.postgres import PostgresSaver
from pregel.checkpoint.schema import MIGRATIONS, POSTGRES_TYPES, VERSIONS
from pregel.checkpoint.sqlite import SqliteSaver
from tests.golden.histories.rows import dumped, restore, rows_of
from tests.golden.histories.threads import THREADS, config_of, read
from tests.postgres import running_server

FOLDER = Path(__file__).parent / pregel.__version__
TABLES = "SELECT table_name::text FROM information_schema.tables WHERE table_name LIKE 'pregel%' ORDER BY table_name"
HEAD = "-- What PostgreSQL holds of the golden histories: made by tests.golden.histories.make, and never changed.\n"


def main():
    """Make each thread in memory, write it down with what it reads as, and fill a database of each kind with all."""
    if FOLDER.exists():
        raise SystemExit(f"{FOLDER} is there. Files of a release are never changed; of one to come, delete them first.")
    made = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "release"
        folder.mkdir()
        for name, thread in THREADS.items():
            saver = InMemorySaver()
            thread.make(saver, config_of(name))
            made[name] = rows_of(saver, name)
            write_document(folder, name, thread, saver, made[name])
        write_sqlite(folder, made)
        write_postgres(folder, made)
        shutil.copytree(folder, FOLDER)  # all of it or nothing


def write_document(folder, name, thread, saver, rows):
    """Write a thread's rows, what they read as, and what they come to when the thread goes on."""
    graph = thread.build().compile(saver)
    document = {"rows": dumped(rows), "reads": read(graph, saver, name)}
    thread.go_on(graph, config_of(name))
    document["goes_on"] = read(graph, saver, name)
    text = json.dumps(document, indent=1, ensure_ascii=False)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def write_sqlite(folder, made):
    """Write a database file."""
    path = folder / "histories.sqlite"
    with SqliteSaver(path) as saver:
        for name, rows in made.items():
            restore(saver, name, rows)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")  # one file, that says nothing of others beside it
        connection.execute("VACUUM")


def write_postgres(folder, made):
    """Write the statements that make a database."""
    lines = [VERSIONS.format(**POSTGRES_TYPES)]
    lines += [statement.format(**POSTGRES_TYPES) for statements in MIGRATIONS for statement in statements]
    with running_server() as dsn:
        with PostgresSaver(dsn) as saver:
            for name, rows in made.items():
                restore(saver, name, rows)
        with psycopg.connect(dsn) as connection:
            for (table,) in connection.execute(TABLES).fetchall():
                name = sql.Identifier(table)
                for row in connection.execute(sql.SQL("SELECT * FROM {}").format(name)).fetchall():
                    cells = sql.SQL(", ").join(map(sql.Literal, row))
                    lines.append(sql.SQL("INSERT INTO {} VALUES ({})").format(name, cells).as_string(connection))
            identities = "SELECT table_name::text FROM information_schema.columns WHERE is_identity = 'YES'"
            for (table,) in connection.execute(identities).fetchall():
                lines.append(
                    f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT MAX(id) FROM {table}))"  # noqa: S608 - our own tables
                )
    (folder / "histories.sql").write_text(HEAD + "".join(f"{line.strip()};\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
