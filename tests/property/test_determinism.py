"""Nothing depends on luck: not on what performs a run, and not on which of its parallel tasks is done first."""

import operator
from collections import Counter
from functools import partial
from typing import Annotated, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pregel import START, Command, Send, StateGraph
from pregel.testing import run_seeded, trace
from tests.random_graphs import act, built, digest, kind_of, limited, plans, sizes
from tests.stored_graphs import NotingSaver, compiled, on_thread, shown_state, stored_plans

# Random graphs have every shape that the analysis warns of.
pytestmark = pytest.mark.filterwarnings("ignore::pregel.errors.PregelWarning")

DRIVERS = ("sync", "asyncio", "trio")
MODES = ["values", "updates", "tasks"]
SEEDS = 100


class Log(TypedDict):
    log: Annotated[list, operator.add]


def prone(node, seen):
    """Do what a node does, but raise now and then."""
    number = digest(node.name, seen)
    if number % 4 == 0:
        raise LookupError(node.name, number)
    return act(node, seen)


def traces(graph, plan, **options):
    """Return the trace of a run by each driver."""
    return [trace(graph, plan.given(), driver=driver, config=limited(plan), **options) for driver in DRIVERS]


def supersteps(entries):
    """Return a trace cut before each superstep, without the order of what happened inside of it."""
    cut = []
    for entry in entries:
        if entry[0] == "run":
            cut.append([])
        cut[-1].append(repr(entry))
    return [Counter(step) for step in cut]


# ------------------------------------------------------------------------------------------------ what performs it


@sizes(2)
@given(plans(), st.sampled_from([None, MODES]), st.sampled_from([act, prone]))
def test_all_drivers_give_the_same_commands(plan, modes, acts):
    graph = built(plan, [], executor="inline", act=acts)
    sync, asyncio, trio = traces(graph, plan, stream_mode=modes)
    assert asyncio == sync
    assert trio == sync
    assert sync[-1][0] == "finish"


@sizes(0.5)
@given(plans(), st.sampled_from([None, MODES]), st.sampled_from([act, prone]), st.booleans())
def test_worker_threads_and_awaited_nodes_change_the_order_within_a_superstep_at_most(plan, modes, acts, awaited):
    inline = trace(built(plan, [], act=acts), plan.given(), config=limited(plan), stream_mode=modes)
    graph = built(plan, [], executor="thread", awaited=awaited, act=acts)
    want = supersteps(inline)
    for found in traces(graph, plan, stream_mode=modes):
        assert supersteps(found) == want
        assert [entry for entry in found if entry[0] == "run"] == [entry for entry in inline if entry[0] == "run"]


# ------------------------------------------------------------------------------------------------- what it stores


def noted(plan, driver, **options):
    """Return the trace of a stored run, and the saver on which it ran."""
    saver = NotingSaver()
    modes = options.pop("stream_mode", None)
    graph = compiled(plan, saver, **options)
    return trace(graph, plan.given(), driver=driver, config=on_thread(plan.recursion_limit), stream_mode=modes), saver


@sizes(2)
@given(stored_plans(), st.sampled_from([None, [*MODES, "checkpoints"]]), st.sampled_from([act, prone]))
def test_all_drivers_store_the_same_bytes(plan, modes, acts):
    want, saver = noted(plan, "sync", stream_mode=modes, act=acts)
    assert saver.transactions
    assert [entry[1] for entry in want if entry[0] == "commit"] == [
        row.step for row in saver.checkpoints("t", ())[::-1]
    ]
    for driver in DRIVERS[1:]:
        found, other = noted(plan, driver, stream_mode=modes, act=acts)
        assert found == want
        assert other.transactions == saver.transactions


@sizes(0.25)
@given(stored_plans(), st.sampled_from([act, prone]), st.booleans())
def test_worker_threads_and_awaited_nodes_leave_the_same_rows(plan, acts, awaited):
    want, saver = noted(plan, "sync", act=acts, awaited=awaited)
    for driver in DRIVERS:
        found, other = noted(plan, driver, act=acts, awaited=awaited, executor="thread")
        assert [entry for entry in found if entry[0] == "commit"] == [entry for entry in want if entry[0] == "commit"]
        assert other.rows() == saver.rows()


@sizes(0.25)
@given(stored_plans(), st.sampled_from([act, prone]), st.sampled_from(DRIVERS))
def test_whenever_it_is_stored_the_same_is_read_back(plan, acts, driver):
    want = None
    for durability in ("sync", "async", "exit"):
        saver = NotingSaver()
        graph = compiled(plan, saver, act=acts, durability=durability)
        entries = trace(graph, plan.given(), driver=driver, config=on_thread(plan.recursion_limit))
        found = entries, shown_state(graph)
        assert want is None or found == want
        want = found
        assert len(saver.checkpoints("t", ())) == (1 if durability == "exit" else count_of(entries, "commit"))


def count_of(entries, kind):
    """Return how often something happened."""
    return sum(entry[0] == kind for entry in entries)


@sizes(0.25)
@given(stored_plans(), st.sampled_from([act, prone]), st.booleans())
def test_the_order_of_completion_changes_nothing_that_is_left_stored(plan, acts, awaited):
    def rows(seed):
        saver = NotingSaver()
        graph = compiled(plan, saver, act=acts, awaited=awaited)
        run_seeded(graph, plan.given(), seed=seed, config=on_thread(plan.recursion_limit))
        return saver.rows()

    want = rows(0)
    for seed in range(1, 5):
        assert rows(seed) == want


# --------------------------------------------------------------------------------------------- which task is done first


def outcome(run):
    """Return what must not depend on the order of completion."""
    error = run.error
    if error is not None and not holds(error, LookupError):
        error = kind_of(error)
    return (
        run.result,
        repr(error),  # of a group its parts, in the order of their tasks
        [part for part in run.parts if part["type"] == "values"],
        [entry for entry in run.trace if entry[0] == "run"],
        supersteps(run.trace),
    )


def holds(error, kind):
    return isinstance(error, kind) or (isinstance(error, ExceptionGroup) and error.subgroup(kind) is not None)


def updates(run):
    """Return the parts about updates, without their order within a superstep."""
    return Counter(repr(part) for part in run.parts if part["type"] == "updates")


@sizes(1)
@given(plans(), st.sampled_from([act, prone]), st.booleans())
def test_the_order_of_completion_changes_nothing(plan, acts, awaited):
    graph = built(plan, [], awaited=awaited, act=acts)
    first = completed(graph, plan, 0)
    steps = [part["step"] for part in first.parts]
    assert steps == sorted(steps)
    if first.error is None:
        assert graph.invoke(plan.given(), limited(plan)) == first.result
    want = outcome(first)
    for seed in range(1, SEEDS if width(first.trace) > 1 else 2):  # where tasks are alone there is one order
        other = completed(graph, plan, seed)
        assert outcome(other) == want
        assert updates(other) == updates(first)
        assert [part["step"] for part in other.parts] == steps


def completed(graph, plan, seed):
    """Run a plan's graph with an order of completion."""
    return run_seeded(graph, plan.given(), seed=seed, config=limited(plan), stream_mode=["values", "updates"])


def width(entries):
    """Return how many tasks the widest superstep of a trace has."""
    return max(len(entry[1]) for entry in entries if entry[0] == "run")


@pytest.mark.parametrize("awaited", [False, True])
def test_packets_and_errors_keep_the_order_of_their_tasks(awaited):
    def send(name):
        return Command(update={"log": [name]}, goto=[Send("note", (name, number)) for number in range(2)])

    def note(packet):
        if packet[1]:
            raise ValueError(packet[0])
        return {"log": [packet]}

    async def note_later(packet):
        return note(packet)

    builder = StateGraph(Log)
    for name in "dbca":
        builder.add_node(name, partial(lambda name, state: send(name), name), destinations=("note",))
        builder.add_edge(START, name)
    builder.add_node("note", note_later if awaited else note)
    graph = builder.compile(name="fan")
    for seed in range(SEEDS):
        run = run_seeded(graph, {}, seed=seed, stream_mode="values")
        assert [part["data"] for part in run.parts] == [{"log": []}, {"log": list("dbca")}]
        assert list(map(str, run.error.exceptions)) == list("dbca")
    assert run.trace[-1] == trace(graph, {}, driver="asyncio")[-1] == trace(graph, {})[-1]


@sizes(0.5)
@given(plans(), st.integers(), st.sampled_from([act, prone]), st.booleans())
def test_the_same_seed_gives_the_same_run(plan, seed, acts, awaited):
    def run():
        graph = built(plan, [], executor="thread", awaited=awaited, act=acts)  # compiled anew: nothing is remembered
        return run_seeded(graph, plan.given(), seed=seed, config=limited(plan), stream_mode=MODES)

    one, two = run(), run()
    assert (one.trace, one.parts, one.result) == (two.trace, two.parts, two.result)


def test_seeds_try_every_order():
    """The tests above would show nothing if all seeds gave one order."""
    builder = StateGraph(Log)
    for name in "abc":
        builder.add_node(name, lambda state: {"log": ["."]}).add_edge(START, name)
    graph = builder.compile()
    traces = [run_seeded(graph, {}, seed=seed).trace for seed in range(SEEDS)]
    orders = {"".join(entry[1][-1] for entry in entries if entry[0] == "done" and entry[1] != "0:0:__start__")
              for entries in traces}  # fmt: skip
    assert orders == {"abc", "acb", "bac", "bca", "cab", "cba"}
