"""One graph with its database, its ledger and its processes: run, killed, read, started again."""

import json
import os
import shutil
import signal
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from time import monotonic

from pregel.checkpoint.sqlite import SqliteSaver
from tests.crash.shapes import SHAPES, THREAD, TURNS, Ledger
from tests.crash.survey import history, read_ledger, survey
from tests.crash.worker import AHEAD

#: How the connections of processes that are killed are told from the test's own.
NAME = "victim"
#: How often the server is asked whether it has noticed that they are gone.
LOOKS = 100_000


@dataclass(frozen=True)
class Case:
    """What is killed."""

    backend: str
    shape: str
    size: int
    mode: str

    def __str__(self):
        return f"{self.backend}-{self.shape}-{self.size}-{self.mode}"


class Scene:
    """One case with its files, its database and its processes."""

    def __init__(self, case, nursery, folder, place, server=None):
        self.case = case
        self.server = server
        self.nursery = nursery
        self.folder = folder
        self.place = place
        self.ledger = folder / "ledger"
        self.shape = SHAPES[case.shape]

    def job(self, **more):
        case = self.case
        return {
            "backend": case.backend, "shape": case.shape, "size": case.size, "mode": case.mode,
            "place": f"{self.place} application_name={NAME}" if self.server else str(self.place),
            "ledger": str(self.ledger), **more,
        }  # fmt: skip

    @contextmanager
    def reading(self):
        """Give a graph that reads what is stored: of SQLite a copy, so that the restart finds all as it was left."""
        if self.case.backend == "sqlite":
            for ending in ("", "-wal"):  # the third file is made anew from these two
                self.folder.joinpath(f"copy.db{ending}").unlink(missing_ok=True)
                with suppress(FileNotFoundError):
                    shutil.copy(f"{self.place}{ending}", self.folder / f"copy.db{ending}")
            reader = closing(SqliteSaver(self.folder / "copy.db"))
        else:
            reader = nullcontext(self.server)
        with reader as saver, closing(Ledger(os.devnull)) as ledger:
            yield self.shape.build(ledger, self.case.size).compile(saver), saver

    def read(self):
        """Return what is stored, row by row and as the library tells it."""
        with self.reading() as (graph, saver):
            return survey(saver, graph._persistence.format.codec), history(graph)

    def survey(self):
        """Return what is stored, row by row."""
        with self.reading() as (graph, saver):
            return survey(saver, graph._persistence.format.codec)

    def clear(self):
        """Forget the thread and the ledger."""
        self.ledger.unlink(missing_ok=True)
        if self.case.backend == "sqlite":
            for found in self.folder.glob("runs.db*"):
                found.unlink()
        else:
            self.server.delete_thread(THREAD)

    def undisturbed(self):
        """Run without a kill: keep what that comes to, and return how often it passes each point."""
        counts = self.folder / "counts.json"
        began = monotonic()
        self.nursery.run("application", **self.job(counts=str(counts)))
        self.seconds = monotonic() - began
        self.stored, self.told = self.read()
        self.ran = read_ledger(self.ledger)
        assert set(self.ran.values()) == {1}
        assert self.committed(self.stored) == self.ran.keys()  # so the two name tasks alike
        assert self.stored.open_tasks == {}
        return json.loads(counts.read_text(encoding="utf-8"))

    def killed_at(self, point, occurrence):
        """Start anew and kill the process at a point; return whether it died there."""
        self.clear()
        return self.goes_on_until(point, occurrence)

    def goes_on_until(self, point, occurrence):
        """Start a process that goes on until a point kills it; return whether that did, or it came to the end."""
        return self.ended(self.nursery.start("application", **self.job(point=point, occurrence=occurrence)))

    def killed_after(self, seconds):
        """Start anew and kill the process from outside; return whether that came before its end."""
        self.clear()
        pid = self.nursery.start("application", **self.job())
        status = self.nursery.wait(pid, seconds)
        if status is None:
            self.nursery.kill(pid)
            died = self.ended(pid)
            self.wait_for_server()
            return died
        assert status == 0, self.nursery.printed(pid)
        return False

    def wait_for_server(self):
        """Wait until a server has done what a killed process had asked for last, and has noticed its end."""
        if self.server:
            import psycopg

            with psycopg.connect(str(self.place), autocommit=True) as connection:
                count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
                for _ in range(LOOKS):
                    if connection.execute(count, [NAME]).fetchone() == (0,):
                        return
            raise AssertionError("the server still has connections of a process that is gone")

    def ended(self, pid):
        status = self.nursery.wait(pid)
        assert status in {-signal.SIGKILL, 0}, f"ended with {status}:\n{self.nursery.printed(pid)}"
        return status == -signal.SIGKILL

    def check_resume(self):
        """Look at what a killed process left, start another one, and compare what that comes to."""
        left = self.survey()
        before = read_ledger(self.ledger)
        left.is_prefix_of(self.stored)
        committed = self.committed(left)
        assert committed <= before.keys(), "the store holds the end of a task that did not end"
        assert set(before.values()) <= {1}
        assert len(before.keys() - committed) <= self.loss_bound()

        self.nursery.run("application", **self.job())  # on_busy="reject": the dead process's lease must not hold it up

        stored, told = self.read()
        after = read_ledger(self.ledger)
        assert told == self.told
        assert stored == self.stored
        assert {task: after[task] for task in committed} == dict.fromkeys(committed, 1)
        assert after.keys() == self.ran.keys()

    def check_lives(self, point, occurrence):
        """Kill each process that goes on at the same point, until one comes to the end; return how many died."""
        self.clear()
        deaths = 0
        ran = {}
        while self.goes_on_until(point, occurrence):
            deaths += 1
            left = self.survey()
            left.is_prefix_of(self.stored)
            times = read_ledger(self.ledger)
            committed = self.committed(left)
            assert committed >= ran.keys(), "what was committed is gone"
            ran.update({task: times[task] for task in committed - ran.keys()})
            assert {task: times[task] for task in ran} == ran, "what was committed has run again"
        stored, told = self.read()
        assert (told, stored) == (self.told, self.stored)
        assert read_ledger(self.ledger).keys() == self.ran.keys()
        return deaths

    def committed(self, stored):
        """Return the tasks that what is stored counts as done."""
        if self.case.mode != "exit":
            return stored.committed
        # One checkpoint stands for all before it.
        head = max((step for namespace, step in stored.checkpoints if namespace == ()), default=0)
        return stored.committed | {task for task in self.ran if outermost_step(task) <= head}

    @contextmanager
    def about(self, story):
        """Add to an error of the block what it is about."""
        try:
            yield
        except AssertionError as error:
            error.add_note(story)
            raise

    def loss_bound(self):
        """Return how many tasks may have ended whose end is not stored."""
        at_once = 2 * self.case.size if self.shape.wide else 1
        if self.case.mode == "sync":
            return at_once
        return AHEAD + at_once if self.case.mode == "async" else len(self.ran) // TURNS


def outermost_step(task):
    """Return in which superstep of the outermost graph a task ran, by its id: `thread|step:place:node`, or for one
    inside another one `thread|node:step:place:node|...`.
    """
    return next(int(part) for part in task.split("|")[1].split(":") if part.isdigit())
