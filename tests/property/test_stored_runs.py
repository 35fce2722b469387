"""A stored run that is broken off, gone on with, gone back to or asked comes to what an undisturbed one comes to."""

import operator
from random import Random
from typing import Annotated, TypedDict

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pregel import START, Command, StateGraph
from pregel.channels import BinaryOperatorAggregate, KeyedValue
from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import EncodeError, InvalidUpdateError
from pregel.runtime import interrupt
from pregel.testing import run_seeded
from pregel.testing.faults import FaultySaver, StorageFault
from tests.random_graphs import act, digest, kind_of, sizes
from tests.stored_graphs import THREAD, NotingSaver, compiled, ended, on_thread, shown_state, stored, stored_plans

# Random graphs have every shape that the analysis warns of.
pytestmark = pytest.mark.filterwarnings("ignore::pregel.errors.PregelWarning")

#: How many supersteps a run may take whose limit is not what is looked at.
ENOUGH = 40


# ------------------------------------------------------------------------------------------- faults, crashes, and luck


class Log(TypedDict):
    log: Annotated[list, operator.add]


class MortalSaver(FaultySaver):
    """A checkpointer of a process that is dead from the n-th operation on: that fails, and so do all after it."""

    def _operate(self, operation, *args, **options):
        if self.fail_at is not None and len(self.operations) >= self.fail_at:
            raise self.error
        return super()._operate(operation, *args, **options)


class Simulation:
    """Runs a graph with a luck that a seed chooses: the order of completion, and what fails when.

    Args:
        graph: The graph, stored wherever.
        given: Its input.
        operations: How many storage operations an undisturbed run needs.
        seed: The seed.
    """

    def __init__(self, graph, given, operations, seed):
        self.graph = graph
        self.given = given
        self.operations = operations
        self.luck = Random(seed)  # noqa: S311 - an order is no secret
        self.saver = NotingSaver()
        self.traces = []
        self.faults = 0

    def run(self):
        """Run until nothing fails any more; return what the run came to."""
        for _ in range(self.luck.randint(1, 3)):
            kind = self.luck.choice([FaultySaver, MortalSaver])
            fault = kind(self.saver, self.luck.randint(1, self.operations), after=self.luck.random() < 0.5)
            run = self.attempt(fault)
            if not isinstance(run.error, StorageFault):
                break
            self.faults += 1
            self.saver.bury()
        return outcome(self.attempt(self.saver))

    def attempt(self, saver):
        """Run the graph, or go on with it, and check that it repeats nothing that is stored."""
        newest = self.saver.latest(THREAD)
        step = -1 if newest is None else newest.step
        done = {row.task for row in self.saver.tasks(THREAD, 0, (), step + 1)}
        given = self.given if newest is None else None
        run = run_seeded(stored(self.graph, saver), given, seed=self.luck.getrandbits(32), config=on_thread(ENOUGH))
        again = [entry[1] for entry in run.trace if entry[0] == "done"]
        assert not done & set(again), "a task ran again whose end was stored"
        assert all(int(task.split(":")[0]) > step for task in again), "a superstep ran again that was stored"
        self.traces.append(run.trace)
        return run


def outcome(run):
    """Return the result of a run, or the kind of its error."""
    return run.result if run.error is None else kind_of(run.error)


@sizes(1)
@given(stored_plans(), st.integers(0, 2**32), st.booleans())
def test_whatever_fails_the_run_comes_to_the_same(plan, seed, awaited):
    counting = FaultySaver(NotingSaver())
    calm = compiled(plan, counting, awaited=awaited)
    want = ended(lambda: calm.invoke(plan.given(), on_thread(ENOUGH)))
    assume(want != "recursion")  # its limit counts from where it goes on
    operations, state = len(counting.operations), shown_state(calm)

    def simulated(number):
        made = Simulation(calm, plan.given(), operations, seed + number)
        assert made.run() == want
        assert shown_state(stored(calm, made.saver)) == state
        steps = [row.step for row in made.saver.checkpoints(THREAD, ())]
        assert steps == list(range(len(steps)))[::-1]
        return made

    ones = [simulated(number) for number in range(4)]
    again = simulated(0)
    assert (again.traces, again.saver.transactions) == (ones[0].traces, ones[0].saver.transactions)


def test_simulations_fail_often_enough():
    """The test above would show nothing if faults came too late, or always at one place."""
    builder = StateGraph(Log)
    for name in "abc":
        builder.add_node(name, lambda state, name=name: {"log": [name]}).add_edge(START, name)
    builder.add_node("d", lambda state: {"log": ["d"]}).add_edge(["a", "b", "c"], "d")
    counting = FaultySaver(NotingSaver())
    graph = builder.compile(counting)
    graph.invoke({}, on_thread())
    simulations = [Simulation(graph, {}, len(counting.operations), seed) for seed in range(200)]
    assert all(each.run() == {"log": ["a", "b", "c", "d"]} for each in simulations)
    assert sum(each.faults for each in simulations) > len(simulations)
    assert len({repr(each.traces) for each in simulations}) > len(simulations) / 2


# ----------------------------------------------------------------------------------------------- from every checkpoint


@sizes(0.25)
@given(stored_plans(), st.booleans())
def test_a_run_can_be_repeated_from_every_checkpoint(plan, oldest_first):
    saver = NotingSaver()
    graph = compiled(plan, saver)
    want = ended(lambda: graph.invoke(plan.given(), on_thread(plan.recursion_limit)))
    history = list(graph.get_state_history(on_thread()))
    state = graph.get_state(on_thread())
    rows = saver.rows()
    for snapshot in history[::-1] if oldest_first else history:
        left = plan.recursion_limit - snapshot.metadata["step"]
        if left < 1:
            continue
        config = {**snapshot.config, "recursion_limit": left}
        found = ended(lambda config=config: graph.invoke(None, config))
        assert found == want
        again = graph.get_state(on_thread())
        assert repr((again.values, again.next)) == repr((state.values, state.next))
        assert again.metadata["step"] == state.metadata["step"]
    assert {key: row for key, row in saver.rows().items() if key in rows} == rows
    assert [shown.values for shown in graph.get_state_history(on_thread()) if shown.config in configs(history)] == [
        shown.values for shown in history
    ]


def configs(history):
    return [snapshot.config for snapshot in history]


@sizes(0.25)
@given(stored_plans(), st.sampled_from(["sync", "async", "exit"]))
def test_a_run_in_single_supersteps_stores_what_a_run_in_one_go_does(plan, durability):
    whole, single = NotingSaver(), NotingSaver()
    log, other = [], []
    graph = compiled(plan, whole, log)
    want = ended(lambda: graph.invoke(plan.given(), on_thread(plan.recursion_limit)))
    found, given = "recursion", plan.given()
    for _ in range(plan.recursion_limit):
        if found != "recursion":
            break
        process = compiled(plan, single, other, durability=durability)
        found = ended(lambda given=given, process=process: process.invoke(given, on_thread(1)))
        given = None
    assert found == want
    assert other == log
    assert shown_state(process) == shown_state(graph)
    if durability != "exit":  # that stores where each single run ends, and no input by itself
        assert single.rows() == whole.rows()


# ----------------------------------------------------------------------------------------------------- random answers


def reply(question):
    """Return the answer to a question."""
    return digest("reply", question)


def asking(node, seen):
    """Do what a node does, some of it after asking, once or twice."""
    number = digest(node.name, seen)
    for count in range((0, 1, 0, 2)[number % 4]):
        answer = interrupt([node.name, number, count])
        assert answer == reply([node.name, number, count])
        seen = {**seen, "count": seen.get("count", 0) + answer} if isinstance(seen, dict) else seen
    return act(node, seen)


def answered(plan, luck=None, **options):
    """Run a plan's graph whose nodes ask: all are answered at once, or one after the other, as luck will have it."""
    saver = NotingSaver()
    given = plan.given()
    graph = compiled(plan, saver, act=asking, **options)
    for _ in range(12 if luck is None else 200):  # a loop that asks begins a new limit with each answer
        made = given
        result = ended(lambda graph=graph, made=made: graph.invoke(made, on_thread(ENOUGH)))
        if not isinstance(result, dict) or "__interrupt__" not in result:
            return result, shown_state(graph)
        asked = {each.id: reply(each.value) for each in result["__interrupt__"]}
        assert len(asked) == len(result["__interrupt__"])
        if luck is not None:
            graph = compiled(plan, saver, act=asking, **options)  # a new process
            assert ended(lambda graph=graph: graph.invoke(None, on_thread(ENOUGH))) == result
            asked = dict(luck.sample(sorted(asked.items()), luck.randint(1, len(asked))))
        given = Command(resume=asked)
    return "recursion", None


@sizes(0.25)
@given(stored_plans(), st.integers(0, 2**32), st.booleans(), st.sampled_from(["sync", "async", "exit"]))
def test_answers_may_come_one_by_one_and_to_another_process(plan, seed, awaited, durability):
    want, state = answered(plan)
    assume(want != "recursion")
    luck = Random(seed)  # noqa: S311 - an order is no secret
    found, other = answered(plan, luck, awaited=awaited, durability=durability)
    assert (found, other) == (want, state)


# ------------------------------------------------------------------------------------ errors in the middle of a barrier

TASKS = ("a", "b", "c")
#: What is wrong with an update, by the channel that gets it.
TROUBLES = {"last": object(), "sum": "no number", "folded": "no number", "keyed": "no mapping", "raising": 13}
GOOD = {"sum": 1, "folded": 1, "keyed": {"k": 1}, "raising": 1}


def raising(left, right):
    if right == 13:
        raise LookupError("the reducer does not like this update")
    return left + right


def folded(left, right):
    return left + right


folded.fold = lambda left, updates: left + sum(updates)


class Torn(TypedDict, total=False):
    last: object
    sum: Annotated[int, operator.add]
    folded: Annotated[int, folded]
    keyed: Annotated[dict, KeyedValue]
    raising: Annotated[int, BinaryOperatorAggregate(raising, initial=0)]
    steps: Annotated[list, operator.add]


def torn_graph(saver, durability, trouble=(None, None)):
    """Return a graph whose second superstep has three tasks that write every channel; one update may be bad."""

    def node(name):
        update = {**GOOD, "keyed": {name: 1}, "steps": [name]}
        if trouble[0] == name:
            update[trouble[1]] = TROUBLES[trouble[1]]
        return update

    builder = StateGraph(Torn)
    builder.add_node("first", lambda state: node("first") | {"last": 1}).add_edge(START, "first")
    for name in TASKS:
        builder.add_node(name, lambda state, name=name: node(name)).add_edge("first", name)
    return builder.compile(saver, name="torn", durability=durability)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("channel", TROUBLES)
@pytest.mark.parametrize("task", TASKS)
def test_an_error_anywhere_in_a_barrier_leaves_the_state_whole(door, task, channel, durability):
    saver = InMemorySaver()
    want = door.invoke(torn_graph(InMemorySaver(), durability), {}, on_thread())
    bad = torn_graph(saver, durability, (task, channel))
    door.invoke(bad, {}, on_thread(), interrupt_after="first")
    before = bad.get_state(on_thread())
    for _ in range(2):
        with pytest.raises(Exception) as failure:
            door.invoke(bad, None, on_thread())
        assert isinstance(failure.value, (EncodeError, InvalidUpdateError, LookupError)), failure.value
        after = bad.get_state(on_thread())
        assert (after.values, after.config) == (before.values, before.config)
        assert after.values == {**GOOD, "keyed": {"first": 1}, "last": 1, "steps": ["first"]}
        assert set(after.next) <= set(TASKS)
        assert task in after.next
    good = torn_graph(saver, durability)
    assert door.invoke(good, None, on_thread()) == want
    assert want == {
        "last": 1, "sum": 4, "folded": 4, "keyed": dict.fromkeys(("first", *TASKS), 1), "raising": 4,
        "steps": ["first", *TASKS],
    }  # fmt: skip
