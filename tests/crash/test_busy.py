"""Many runs on one thread: one goes on, the others are refused or wait, and nothing that was committed is lost."""

import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from pregel.checkpoint.base import Held
from pregel.checkpoint.owner import new_lease
from pregel.errors import ConcurrentRunError
from tests.crash.conftest import NIGHTLY
from tests.crash.counting import counter, outcome_of
from tests.crash.shapes import CONFIG, THREAD
from tests.crash.worker import opened

MANY = [2, 3, 5, 8, 12, 16] if NIGHTLY else [2, 16]


@pytest.fixture(params=["sqlite", "postgres"])
def backend(request):
    return request.param


@pytest.fixture
def place(backend, tmp_path, request):
    """Where the runs are stored."""
    return str(tmp_path / "runs.db") if backend == "sqlite" else request.getfixturevalue("postgres")


def check_sum(backend, place, done):
    """Check that what is stored is the work of so many runs, one after the other."""
    with opened(backend, place) as saver:
        graph = counter(saver)
        values = graph.get_state(CONFIG).values
        assert values == {"count": done, "before": list(range(done))}
        steps = [(shown.metadata["step"], shown.metadata["source"]) for shown in graph.get_state_history(CONFIG)]
        assert steps[::-1] == list(enumerate(["input", "loop", "loop"] * done))
        assert [thread.leased for thread in saver.threads()] == [False]


class Pipes:
    """Two named pipes: on one the run that has the thread says so, on the other it is told to go on."""

    def __init__(self, folder):
        self.inside = folder / "inside"
        self.go_on = folder / "go_on"
        os.mkfifo(self.inside)
        os.mkfifo(self.go_on)

    def job(self):
        return {"inside": str(self.inside), "go_on": str(self.go_on)}


def start_all(nursery, folder, number, **job):
    """Start so many processes; return their numbers and where they write how they ended."""
    outcomes = [folder / f"outcome{index}" for index in range(number)]
    return [(nursery.start("add_one", outcome=str(path), **job), path) for path in outcomes]


def wait_for_all(nursery, started):
    """Wait for processes; return how their runs ended."""
    for pid, _ in started:
        assert nursery.wait(pid) == 0, nursery.printed(pid)
    return [path.read_text(encoding="utf-8") for _, path in started]


# -- refused -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", MANY)
def test_while_one_process_runs_the_runs_of_others_are_refused(nursery, backend, place, tmp_path, number):
    pipes = Pipes(tmp_path)
    job = {"backend": backend, "place": place, "on_busy": "reject"}
    first = nursery.start("add_one", outcome=str(tmp_path / "first"), **job, **pipes.job())
    assert pipes.inside.read_text(encoding="utf-8") == "inside"
    try:
        others = wait_for_all(nursery, start_all(nursery, tmp_path, number - 1, **job))
    finally:
        pipes.go_on.write_text("go on", encoding="utf-8")
    assert wait_for_all(nursery, [(first, tmp_path / "first")]) == ["done"]
    assert others == ["busy"] * (number - 1)
    check_sum(backend, place, 1)


@pytest.mark.parametrize("number", MANY)
def test_while_one_thread_runs_the_runs_of_others_are_refused(backend, place, number):
    inside, go_on = Event(), Event()

    def gate():
        inside.set()
        go_on.wait()

    with opened(backend, place) as saver, ThreadPoolExecutor(number) as pool:
        try:
            first = pool.submit(outcome_of, counter(saver, gate), CONFIG, "reject")
            inside.wait()
            others = list(pool.map(lambda _: outcome_of(counter(saver), CONFIG, "reject"), range(number - 1)))
        finally:
            go_on.set()
        assert first.result() == "done"
    assert others == ["busy"] * (number - 1)
    check_sum(backend, place, 1)


# -- taken away --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_run_whose_thread_is_taken_from_it_gets_an_error_and_commits_nothing_more(backend, place, durability):
    thief = new_lease()

    def gate():
        found = saver.claim(THREAD, thief, 60.0, lambda holder: True)  # as if the lease had expired
        assert isinstance(found, Held)

    with opened(backend, place) as saver:
        assert outcome_of(counter(saver), CONFIG, "reject") == "done"
        with pytest.raises(ConcurrentRunError, match=THREAD):
            counter(saver, gate).invoke({"count": 0}, CONFIG, durability=durability)
        before = counter(saver).get_state(CONFIG)
        assert before.values == {"count": 1, "before": [0]}
        if durability != "async":  # then it may have been stored already, or not
            assert before.metadata["source"] == ("input" if durability == "sync" else "loop")
        assert [thread.leased for thread in saver.threads()] == [True]  # the other one's
        saver.release(THREAD, thief.token)
        if before.tasks:
            counter(saver).invoke(None, CONFIG)
        else:
            counter(saver).invoke({"count": 0}, CONFIG)
    check_sum(backend, place, 2)


# -- all at once -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_busy", ["reject", "wait"])
@pytest.mark.parametrize("number", MANY)
def test_of_processes_that_race_each_one_counts_or_is_refused(nursery, backend, place, tmp_path, number, on_busy):
    opened(backend, place).close()  # the tables are there: making them is no part of the race
    started = start_all(nursery, tmp_path, number, backend=backend, place=place, on_busy=on_busy)
    outcomes = wait_for_all(nursery, started)
    check_race(outcomes, number, on_busy)
    check_sum(backend, place, outcomes.count("done"))


@pytest.mark.parametrize("on_busy", ["reject", "wait"])
@pytest.mark.parametrize("number", MANY)
def test_of_threads_that_race_each_one_counts_or_is_refused(backend, place, number, on_busy):
    barrier = Barrier(number)

    def race(_):
        barrier.wait()
        return outcome_of(graph, CONFIG, on_busy)

    with opened(backend, place) as saver, ThreadPoolExecutor(number) as pool:
        graph = counter(saver)
        outcomes = list(pool.map(race, range(number)))
    check_race(outcomes, number, on_busy)
    check_sum(backend, place, outcomes.count("done"))


def check_race(outcomes, number, on_busy):
    """Check how runs ended that raced."""
    assert len(outcomes) == number
    assert set(outcomes) <= {"done", "busy"}
    assert "done" in outcomes
    if on_busy == "wait":
        assert set(outcomes) == {"done"}
