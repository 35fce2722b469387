"""What the workloads that store share: a checkpointer that is new for every measurement, a thread for every run.

The files lie in the folder for temporary ones. Where that is in memory, a commit waits for no disk: set TMPDIR to a
folder on one.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import graphs
from benchmarks.model import equals

#: What LangGraph needs to store in SQLite.
LANGGRAPH_SQLITE = "langgraph.checkpoint.sqlite"

Opener = Callable[[Path], AbstractContextManager[Any]]


class Runs:
    """Runs of one graph with a checkpointer, both made anew by `around`.

    Args:
        build: Compiles the graph with a checkpointer.
        opener: Opens the checkpointer, given a path at which there is no file yet.
        given: The input of a run.
        steps: How many supersteps a run may take.
        options: What `invoke` is told beside its config.
    """

    def __init__(
        self, build: Callable[[Any], Any], opener: Opener, given: dict[str, Any], steps: int, **options: Any
    ) -> None:
        self.build = build
        self.opener = opener
        self.given = given
        self.steps = steps
        self.options = options
        #: The runs since the checkpointer was opened.
        self.count = 0

    @contextmanager
    def around(self) -> Iterator[None]:
        """Keep a checkpointer open, on a file of its own."""
        with new_file() as path, self.opener(path) as saver:
            self.path = path
            self.graph = self.build(saver)
            self.count = 0
            try:
                yield
            finally:
                # With all that it has stored: the collector must not walk it while another engine has its turn.
                del self.graph

    def call(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Run on a thread of its own; return its config, and the answer."""
        self.count += 1
        config = {**graphs.limit(self.steps), "configurable": {"thread_id": f"run-{self.count}"}}
        return config, self.graph.invoke(self.given, config, **self.options)

    def check_stored(self, answer: tuple[dict[str, Any], dict[str, Any]]) -> None:
        """See whether what a run gave is also what is stored of it."""
        config, values = answer
        equals(values)(self.graph.get_state(config).values)


@contextmanager
def new_file() -> Iterator[Path]:
    """Give a path in a new folder, which goes afterwards with all that is in it."""
    with TemporaryDirectory(prefix="pregel-benchmark-") as folder:
        yield Path(folder) / "runs.sqlite"


@contextmanager
def ours_memory(_: Path) -> Iterator[Any]:
    yield import_module("pregel.checkpoint.memory").InMemorySaver()


@contextmanager
def langgraph_memory(_: Path) -> Iterator[Any]:
    yield import_module("langgraph.checkpoint.memory").InMemorySaver()


def ours_sqlite(path: Path, synchronous: str) -> AbstractContextManager[Any]:
    return import_module("pregel.checkpoint.sqlite").SqliteSaver(path, synchronous=synchronous)


@contextmanager
def langgraph_sqlite(path: Path, synchronous: str = "") -> Iterator[Any]:
    """LangGraph's: by itself it is at FULL, with a log that is written ahead."""
    # The connection that `SqliteSaver.from_conn_string` makes.
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        if synchronous:
            connection.execute(f"PRAGMA synchronous = {synchronous}")
        saver = import_module(LANGGRAPH_SQLITE).SqliteSaver(connection)
        saver.setup()
        yield saver


@contextmanager
def bare_sqlite(path: Path, synchronous: str) -> Iterator[sqlite3.Connection]:
    """A table and nothing else; each statement is a commit."""
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("CREATE TABLE change (id INTEGER PRIMARY KEY, content BLOB NOT NULL)")
        yield connection


INSERT = "INSERT INTO change (content) VALUES (?)"


def bytes_on_disk(path: Path) -> int:
    """The size of a database, all that it has written ahead brought in."""
    with closing(sqlite3.connect(path)) as connection:
        busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise RuntimeError(f"{path.name} is in use: its log can't be brought in")
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*") if not file.name.endswith("-shm"))
