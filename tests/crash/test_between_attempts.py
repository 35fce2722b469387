"""A process is killed while a task waits for its second attempt, or is at it: the next one begins the task anew."""

import operator
import os
import signal
from contextlib import contextmanager
from multiprocessing import get_context
from threading import Event, Lock
from typing import Annotated, TypedDict

import anyio
import pytest

from pregel import START, Runtime, StateGraph
from pregel.checkpoint.points import listen
from pregel.clock import SystemClock, use
from pregel.testing.clock import FakeClock
from pregel.types import RetryPolicy
from tests.crash.conftest import NIGHTLY
from tests.crash.shapes import CONFIG, THREAD
from tests.crash.worker import opened

#: Databases and ways to run, and those of the long run.
SOME = [("sqlite", "sync"), ("sqlite", "asyncio"), ("postgres", "sync")]
ALL = [(backend, way) for backend in ("sqlite", "postgres") for way in ("sync", "asyncio", "trio")]
#: Seconds after which a process that says nothing stands still.
PATIENCE = 120
SIBLINGS = ["first", "second"]


class State(TypedDict, total=False):
    log: Annotated[list, operator.add]


class Diary:
    """A line for each attempt that begins, in a file outside the database; a line is whole or not there."""

    def __init__(self, path):
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, *words):
        os.write(self.file, (" ".join(map(str, words)) + "\n").encode())


class Held(SystemClock):
    """A clock on which no wait between two attempts ever ends."""

    def __init__(self, tell):
        self.tell = tell

    def sleep(self, seconds, woken):
        self.tell("waits")
        Event().wait()

    async def asleep(self, seconds):
        self.tell("waits")
        await anyio.sleep_forever()


def graph_of(saver, diary, hold):
    """Return a graph of three tasks at once, of which one fails in its first attempt, and one after them."""

    def node(name):
        def ends(state: State, runtime: Runtime) -> dict:
            diary.note(name, runtime.idempotency_key, runtime.attempt)
            return {"log": [name]}

        return ends

    def flaky(state: State, runtime: Runtime) -> dict:
        diary.note("flaky", runtime.idempotency_key, runtime.attempt)
        if runtime.attempt == 1:
            raise ConnectionError("the service is away")
        hold()
        return {"log": ["flaky"]}

    builder = StateGraph(State).add_node("first", node("first")).add_node("last", node("last"))
    builder.add_node("flaky", flaky, retry_policy=RetryPolicy(max_attempts=2)).add_node("second", node("second"))
    for name in ("first", "flaky", "second"):
        builder.add_edge(START, name)
    return builder.add_edge(["first", "flaky", "second"], "last").compile(saver)


def run(graph, given, way):
    if way == "sync":
        return graph.invoke(given, CONFIG)
    return anyio.run(graph.ainvoke, given, CONFIG, backend=way)


def victim(job, pipe):
    """Be a process that is killed: tell what is reached, by a pipe, and stay there."""
    turn = Lock()

    def tell(what):
        with turn:
            pipe.send(what)

    def stay():
        tell("inside")
        Event().wait()

    listen(lambda point: tell("stored") if point == "write.after" else None)
    use(Held(tell) if job["moment"] == "waits" else FakeClock())
    with opened(job["backend"], job["place"]) as saver:
        run(graph_of(saver, Diary(job["diary"]), stay), {"log": ["input"]}, job["way"])


def heir(job, pipe):
    """Be the process that goes on; its clock makes no one wait. It tells the result."""
    use(FakeClock())
    with opened(job["backend"], job["place"]) as saver:
        pipe.send(run(graph_of(saver, Diary(job["diary"]), bool), None, job["way"]))


@contextmanager
def process(target, job):
    """Start a process; give it, and the pipe by which it tells what happens. It does not outlive the block."""
    context = get_context("spawn")
    receives, sends = context.Pipe(duplex=False)
    started = context.Process(target=target, args=(job, sends))
    started.start()
    sends.close()  # its end is the end of the pipe
    try:
        yield started, receives
    finally:
        started.kill()
        started.join()
        receives.close()


def heard(pipe):
    """Return what a process tells next; one that has died or stands still fails the test."""
    assert pipe.poll(PATIENCE), "nothing happens"
    return pipe.recv()


def ended(saver):
    """Return the tasks of the first superstep whose end is stored."""
    state = graph_of(saver, Diary(os.devnull), bool).get_state(CONFIG)
    return [task.name for task in state.tasks if task.result is not None]


@pytest.mark.parametrize("moment", ["waits", "inside"])
@pytest.mark.parametrize(("backend", "way"), ALL if NIGHTLY else SOME)
def test_siblings_do_not_run_again_and_the_failed_task_begins_anew(backend, way, moment, tmp_path, request):
    place = str(tmp_path / "runs.db") if backend == "sqlite" else request.getfixturevalue("postgres")
    diary = tmp_path / "diary"
    job = {"backend": backend, "place": place, "way": way, "moment": moment, "diary": str(diary)}
    with opened(backend, place) as saver:
        with process(victim, job) as (killed, told):
            seen = set()
            while not (moment in seen and ended(saver) == SIBLINGS):
                seen.add(heard(told))
            os.kill(killed.pid, signal.SIGKILL)
            killed.join()
            assert killed.exitcode == -signal.SIGKILL
        before = diary.read_text(encoding="utf-8").splitlines()
        begun = [1] if moment == "waits" else [1, 2]
        key = f"{THREAD}|1:1:flaky"
        assert sorted(before) == [
            f"first {THREAD}|1:0:first 1",
            *(f"flaky {key} {attempt}" for attempt in begun),
            f"second {THREAD}|1:2:second 1",
        ]

        with process(heir, job) as (_, told):
            assert heard(told) == {"log": ["input", "first", "flaky", "second", "last"]}
        after = diary.read_text(encoding="utf-8").splitlines()[len(before) :]
        # All its attempts again: what came before the crash has used none of them up.
        assert after == [f"flaky {key} 1", f"flaky {key} 2", f"last {THREAD}|2:0:last 1"]
        assert ended(saver) == []
