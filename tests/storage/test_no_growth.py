"""A run costs the same after a thousand supersteps as after a hundred, and many runs leave nothing behind."""

import gc
import os
import threading
import tracemalloc
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Annotated, TypedDict

import pytest

from pregel import START, StateGraph
from pregel.channels import Topic
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.sqlite import SqliteSaver

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
STEPS = 100_000 if NIGHTLY else 2_400
WARM = STEPS // 3
RUNS = 100 if NIGHTLY else 3
THREADS = 64
#: What may stay on the process: it is made once, and is the same for one run and for a thousand.
KEPT = ("pregel-worker", "pregel-lease-keeper")
DURABILITIES = ("sync", "async", "exit")


class Loop(TypedDict, total=False):
    n: int
    text: str
    noted: Annotated[list, Topic(int)]


def on_thread(name, limit=25):
    return {"configurable": {"thread_id": str(name)}, "recursion_limit": limit}


def looping(saver, look, **options):
    """Return a graph that counts to `STEPS`, and has something look at it at each superstep."""

    def count(state):
        look(state["n"])
        return {"n": state["n"] + 1, "text": str(state["n"]) * 20, "noted": [state["n"]]}

    builder = StateGraph(Loop).add_node("count", count).add_edge(START, "count")
    builder.add_conditional_edges(
        "count", lambda state: "count" if state["n"] < STEPS else "__end__", ["count", "__end__"]
    )
    return builder.compile(saver, **options)


def handles():
    """Return how many files are open, on systems that tell."""
    listed = Path("/proc/self/fd")
    return len(list(listed.iterdir())) if listed.exists() else 0


def own_threads():
    """Return the threads that are not kept for all runs."""
    return [thread.name for thread in threading.enumerate() if not thread.name.startswith(KEPT)]


@pytest.mark.parametrize("durability", DURABILITIES)
def test_supersteps_leave_nothing_in_memory(durability, tmp_path):
    seen = {}

    def look(step):
        if step in (WARM, STEPS - 2):
            gc.collect()
            memory = tracemalloc.get_traced_memory()[0]
            seen[step] = memory, len(gc.get_objects()), len(own_threads()), handles()
        elif step == 1:
            tracemalloc.start()

    try:
        with SqliteSaver(tmp_path / "runs.sqlite", synchronous="NORMAL") as saver:
            graph = looping(saver, look, durability=durability)
            assert graph.invoke({"n": 0}, on_thread("t", STEPS + 1))["n"] == STEPS
            stored = saver.threads()[0].checkpoints
    finally:
        tracemalloc.stop()
    assert stored == (1 if durability == "exit" else STEPS + 1)
    (memory, objects, threads, files), (later, more, *rest) = seen[WARM], seen[STEPS - 2]
    # Fewer there may be: an event loop of an earlier test gives up its idle threads when it likes.
    assert rest[0] <= threads
    assert rest[1] <= files
    # A run that is ahead of its writer holds what waits, a bounded number of commits: less than an object a superstep.
    assert more - objects < (STEPS - WARM) / 2
    assert later - memory < (STEPS - WARM) * 64


def test_growth_would_be_found(tmp_path):
    """The test above would show nothing if it could not see a few bytes that every superstep leaves."""
    kept, seen = [], {}

    def look(step):
        kept.append([step])
        if step in (WARM, STEPS - 2):
            gc.collect()
            seen[step] = len(gc.get_objects())

    looping(InMemorySaver(), look, durability="exit").invoke({"n": 0}, on_thread("t", STEPS + 1))
    assert seen[STEPS - 2] - seen[WARM] > (STEPS - WARM) / 2


@dataclass
class Made:
    step: int


class Holder(TypedDict, total=False):
    n: int
    made: Made


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_value_that_was_replaced_is_let_go(door, kind, durability, tmp_path):
    born, alive = [], {}

    def step(state):
        alive[state["n"]] = [ref() is not None for ref in born]
        made = Made(state["n"])
        born.append(weakref.ref(made))
        return {"n": state["n"] + 1, "made": made}

    builder = StateGraph(Holder).add_node("step", step).add_edge(START, "step")
    builder.add_conditional_edges("step", lambda state: "step" if state["n"] < 12 else "__end__", ["step", "__end__"])
    with InMemorySaver() if kind == "memory" else SqliteSaver(tmp_path / "runs.sqlite") as saver:
        graph = builder.compile(saver, durability=durability)
        gc.collect()
        door.invoke(graph, {"n": 0}, on_thread("t"))
    assert not any(flags[0] for step, flags in alive.items() if step >= 5)
    assert alive[11][-1]  # the value that is there now is held: the test sees what lives


def many_runs(saver, durability):
    """Run a graph many times on many threads at once, and check what it comes to; return what was stored."""
    builder = StateGraph(Loop).add_node("a", lambda state: {"n": state["n"] + 1})
    builder.add_node("b", lambda state: {"noted": [state["n"]]}).add_node("c", lambda state: {"text": "c"})
    builder.add_edge(START, "a").add_edge("a", "b").add_edge("a", "c")
    graph = builder.compile(saver, durability=durability)

    def runs(number):
        for _ in range(RUNS):
            state = graph.get_state(on_thread(number))
            graph.invoke({"n": state.values.get("n", 0)}, on_thread(number))
        return graph.get_state(on_thread(number)).values["n"]

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(runs, range(THREADS))) == [RUNS] * THREADS
    return saver.threads()


@pytest.mark.parametrize("durability", DURABILITIES)
def test_many_threads_with_many_runs_leave_no_thread_handle_or_lease(durability, tmp_path):
    before, files = Counter(own_threads()), handles()
    with SqliteSaver(tmp_path / "runs.sqlite", synchronous="NORMAL", busy_timeout=60) as saver:
        threads = many_runs(saver, durability)
    assert len(threads) == THREADS
    assert not [thread for thread in threads if thread.leased]
    assert not Counter(own_threads()) - before  # an event loop of an earlier test may have given up idle ones
    assert handles() <= files
    # What lives on, the worker threads and the keeper of leases, holds nothing of the runs.
    gone = weakref.ref(saver)
    del saver
    deadline = monotonic() + 10
    while gone() is not None and monotonic() < deadline:  # workers end a job just after they have told of it
        gc.collect()
    assert gone() is None
