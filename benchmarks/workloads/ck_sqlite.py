"""What it costs to keep every superstep on disk: the chain under `invoke` with SQLite, one commit a superstep.

A commit at FULL waits for the disk; at NORMAL it survives the process but not a loss of power. LangGraph makes two
commits a superstep, at FULL by its own settings.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from threading import Thread

import msgpack

from benchmarks import graphs
from benchmarks.engines import api
from benchmarks.model import Case, Contender, EngineName, Prepared, Target, Workload, equals
from benchmarks.workloads import stores

SIZES = (10, 100, 1000)


def _engine(name: EngineName, n: int, opener: stores.Opener, durability: str) -> Prepared:
    def build(saver: object) -> object:
        return graphs.chain(api(name), [graphs.add_one] * n, checkpointer=saver)

    runs = stores.Runs(build, opener, {"n": 0}, n, durability=durability)

    def check(answer: tuple[dict, dict]) -> None:
        equals({"n": n})(answer[1])
        runs.check_stored(answer)

    return Prepared(call=runs.call, units=n, check=check, around=runs.around)


def ours(n: int, durability: str, synchronous: str) -> Prepared:
    return _engine("ours", n, partial(stores.ours_sqlite, synchronous=synchronous), durability)


def langgraph(n: int, durability: str, synchronous: str = "") -> Prepared:
    return _engine("langgraph", n, partial(stores.langgraph_sqlite, synchronous=synchronous), durability)


def floor(n: int, synchronous: str) -> Prepared:
    nodes = [graphs.add_one] * n
    pack = msgpack.Packer().pack

    def run(connection: sqlite3.Connection) -> None:
        state = {"n": 0}
        for node in nodes:
            change = node(state)
            state.update(change)
            connection.execute(stores.INSERT, (pack(change),))

    return _bare(n, synchronous, run)


def floor_grouped(n: int, synchronous: str) -> Prepared:
    """A thread that commits what has come while it was at the last commit."""
    nodes = [graphs.add_one] * n
    pack = msgpack.Packer().pack

    def write(connection: sqlite3.Connection, queue: SimpleQueue[bytes | None]) -> None:
        more = True
        while more:
            group = [queue.get()]
            while not queue.empty():
                group.append(queue.get())
            if group[-1] is None:
                group.pop()
                more = False
            connection.execute("BEGIN")
            connection.executemany(stores.INSERT, ((content,) for content in group))
            connection.execute("COMMIT")

    def run(connection: sqlite3.Connection) -> None:
        queue: SimpleQueue[bytes | None] = SimpleQueue()
        writer = Thread(target=write, args=(connection, queue))
        writer.start()
        state = {"n": 0}
        for node in nodes:
            change = node(state)
            state.update(change)
            queue.put(pack(change))
        queue.put(None)
        writer.join()

    return _bare(n, synchronous, run)


def _bare(n: int, synchronous: str, run: Callable[[sqlite3.Connection], None]) -> Prepared:
    opened: list[sqlite3.Connection] = []

    @contextmanager
    def around() -> Iterator[None]:
        with stores.new_file() as path, stores.bare_sqlite(path, synchronous) as connection:
            opened[:] = [connection]
            yield

    def call() -> None:
        run(opened[0])

    def check(_: None) -> None:
        rows = opened[0].execute("SELECT content FROM change ORDER BY id DESC LIMIT ?", (n,))
        equals([{"n": step} for step in range(n, 0, -1)])([msgpack.unpackb(content) for (content,) in rows])

    return Prepared(call=call, units=n, check=check, around=around)


def _case(n: int) -> Case:
    needs = stores.LANGGRAPH_SQLITE
    return Case(
        f"N = {n}",
        (
            Contender("ours", partial(ours, n, "sync", "NORMAL"), "sync NORMAL", floor="floor NORMAL"),
            Contender("ours", partial(ours, n, "sync", "FULL"), "sync FULL", floor="floor FULL"),
            Contender("ours", partial(ours, n, "async", "FULL"), "async FULL", rival="langgraph async"),
            Contender("langgraph", partial(langgraph, n, "sync"), "sync", needs=needs),
            Contender("langgraph", partial(langgraph, n, "async"), "async", needs=needs),
            Contender("langgraph", partial(langgraph, n, "sync", "NORMAL"), "sync NORMAL", needs=needs),
            Contender("floor", partial(floor, n, "NORMAL"), "NORMAL"),
            Contender("floor", partial(floor, n, "FULL"), "FULL"),
            Contender("floor", partial(floor_grouped, n, "FULL"), "grouped FULL"),
        ),
        targets={
            "ours sync NORMAL": (Target(40),),
            "ours sync FULL": (Target(1.2, "times-floor"),),
            "ours async FULL": (Target(100),),
        },
        quick=n == SIZES[0],
        size=n,
    )


WORKLOAD = Workload(
    name="ck-sqlite",
    about="The chain with SQLite, one commit a superstep, a new file a measurement and a new thread a run; `invoke`. "
    "LangGraph with its own settings, which are FULL and `async`; ours `sync` is compared with its `sync`, `async` "
    "with `async`. `langgraph sync NORMAL` is what it takes with the weaker promise. Floors: one row and one commit a "
    "superstep; a thread that commits in groups.",
    unit="superstep",
    cases=tuple(map(_case, SIZES)),
)
