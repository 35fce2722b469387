"""What a release stored, today's code reads as that release did, and goes on with: see README.md here."""

import json
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from pregel import Command
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import GraphChangedError
from tests.golden.histories.graphs import ask
from tests.golden.histories.rows import dumped, restore, rows_of, undumped
from tests.golden.histories.threads import THREADS, config_of, read

FOLDER = Path(__file__).parent
RELEASES = sorted(path.parent for path in FOLDER.glob("*/histories.sqlite"))
DOCUMENTS = {release: sorted(release.glob("*.json")) for release in RELEASES}
ALL = [path for paths in DOCUMENTS.values() for path in paths]
#: What the first release has, and each one since.
FIRST = {"finished", "paused", "failed", "forked", "children"}


def document_of(path):
    return json.loads(path.read_text(encoding="utf-8"))


def name_of(path):
    return f"{path.parent.name}-{path.stem}"


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def saver(request, tmp_path):
    """An empty checkpointer of each kind."""
    if request.param == "memory":
        opened = InMemorySaver()
    elif request.param == "sqlite":
        opened = SqliteSaver(tmp_path / "runs.db")
    else:
        dsn = request.getfixturevalue("postgres")
        from pregel.checkpoint.postgres import PostgresSaver

        opened = PostgresSaver(dsn)
    with closing(opened):
        yield opened


def check(saver, path):
    """Check that a thread reads as it did, and goes on to what it came to."""
    name, document = path.stem, document_of(path)
    thread = THREADS[name]
    graph = thread.build().compile(saver)
    assert dumped(rows_of(saver, name)) == document["rows"]
    assert read(graph, saver, name) == document["reads"]
    thread.go_on(graph, config_of(name))
    assert read(graph, saver, name) == document["goes_on"]


def test_there_are_files_of_a_release():
    assert RELEASES
    for paths in DOCUMENTS.values():
        assert FIRST <= {path.stem for path in paths} <= THREADS.keys()


@pytest.mark.parametrize("path", ALL, ids=name_of)
def test_stored_rows_are_read_and_gone_on_with_in_every_checkpointer(saver, path):
    restore(saver, path.stem, undumped(document_of(path)["rows"]))
    check(saver, path)


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
def test_a_sqlite_file_of_a_release_is_opened_and_gone_on_with(release, tmp_path):
    shutil.copy(release / "histories.sqlite", tmp_path)
    with SqliteSaver(tmp_path / "histories.sqlite") as saver:
        for path in DOCUMENTS[release]:
            check(saver, path)


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
def test_a_postgresql_database_of_a_release_is_opened_and_gone_on_with(release, postgres):
    import psycopg

    from pregel.checkpoint.postgres import PostgresSaver

    with psycopg.connect(postgres) as connection:
        connection.execute((release / "histories.sql").read_bytes())
    with PostgresSaver(postgres) as saver:
        for path in DOCUMENTS[release]:
            check(saver, path)


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
def test_a_graph_that_lacks_a_node_which_is_due_is_told_so_and_changes_nothing(saver, release):
    path = release / "paused.json"
    rows = document_of(path)["rows"]
    restore(saver, "paused", undumped(rows))
    graph = ask(changed=True).compile(saver)
    for use in (
        lambda: graph.get_state(config_of("paused")),
        lambda: graph.invoke(None, config_of("paused")),
        lambda: graph.invoke(Command(resume="yes"), config_of("paused")),
        lambda: graph.invoke({"log": ["new"]}, config_of("paused")),
    ):
        with pytest.raises(GraphChangedError, match="'asks'"):
            use()
    assert dumped(rows_of(saver, "paused")) == rows
    check(saver, path)
