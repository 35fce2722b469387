"""What a process does that may be killed. Its jobs come from `tests.crash.nursery` as plain dicts."""

import json
import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

from pregel.checkpoint.sqlite import SqliteSaver
from pregel.testing.faults import crash_at, points_passed
from pregel.types import GroupCommit
from tests.crash.shapes import CONFIG, SHAPES, Ledger, run_to_the_end

try:
    from pregel.checkpoint.postgres import PostgresSaver
except ImportError:  # then no job names PostgreSQL
    PostgresSaver = None

#: How far an "async" run may be ahead of what is stored, in commits.
AHEAD = 3
DURABILITY = {"sync": "sync", "async": GroupCommit(steps=AHEAD, milliseconds=60_000.0), "exit": "exit"}


def opened(backend, place):
    """Return the checkpointer that a job names."""
    # NORMAL, as a killed process must lose nothing then either: what FULL waits for counts when the power goes.
    return SqliteSaver(place, synchronous="NORMAL") if backend == "sqlite" else PostgresSaver(place)


def application(job):
    """Run a graph to its end, and write down which crash points were passed; or die at one of them."""
    shape = SHAPES[job["shape"]]
    if job.get("point"):
        crash_at(job["point"], job["occurrence"])
        counting = nothing_counted()
    else:
        counting = points_passed()
    with counting as counts, opened(job["backend"], job["place"]) as saver:
        graph = shape.build(Ledger(job["ledger"]), job["size"]).compile(saver, durability=DURABILITY[job["mode"]])
        run_to_the_end(graph, shape, job["size"])
    if "counts" in job:
        Path(job["counts"]).write_text(json.dumps(counts), encoding="utf-8")


@contextmanager
def nothing_counted():
    """Let the hook that `crash_at` set be."""
    yield {}


def modules_of_a_run():
    """Return the names of the modules that are loaded when runs have been made."""
    for shape in SHAPES.values():
        graph = shape.build(Ledger(os.devnull), 2)
        with suppress(Exception):  # what does not work shows in the tests, which this is none of
            run_to_the_end(graph.compile(SqliteSaver(":memory:"), durability=DURABILITY["async"]), shape, 2)
    return sorted(sys.modules)


def add_one(job):
    """Make one run on a thread that others want as well; write down how it ended."""
    from tests.crash.counting import counter, outcome_of

    with opened(job["backend"], job["place"]) as saver:
        gate = Gate(job) if "inside" in job else lambda: None
        outcome = outcome_of(counter(saver, gate), CONFIG, job["on_busy"])
        if "inside" in job and not gate.passed:
            Path(job["inside"]).write_text(outcome, encoding="utf-8")  # who waits for the run is told that it is over
    Path(job["outcome"]).write_text(outcome, encoding="utf-8")


class Gate:
    """What the node of a run does while it has the thread: it says so, and waits until it may go on. Both by pipes."""

    def __init__(self, job):
        self.inside = Path(job["inside"])
        self.go_on = Path(job["go_on"])
        self.passed = False

    def __call__(self):
        self.inside.write_text("inside", encoding="utf-8")
        self.go_on.read_text(encoding="utf-8")
        self.passed = True


JOBS = {"application": application, "add_one": add_one}
