"""Whichever operation of the storage fails: it is told, the thread is before or after it, and the run can go on."""

import operator
from collections import Counter
from itertools import count
from typing import Annotated

import pytest
from typing_extensions import TypedDict

from pregel import START, Command, StateGraph, interrupt
from pregel.checkpoint.base import Held
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.owner import new_lease
from pregel.checkpoint.postgres import PostgresSaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.testing.faults import FaultySaver, StorageFault

CONFIG = {"configurable": {"thread_id": "t"}}
DURABILITIES = ["sync", "async", "exit"]


class State(TypedDict, total=False):
    log: Annotated[list, operator.add]


def graph_in(saver, durability, runs):
    """Return a graph with parallel tasks, a question, and a graph inside it that has a question too."""

    def node(name):
        def run(state):
            runs[name] += 1
            return {"log": [name]}

        return run

    def ask(state):
        return {"log": [interrupt("what?")]}

    inner = (
        StateGraph(State)
        .add_sequence([("first", node("first")), ("inner_ask", ask), ("last", node("last"))])
        .add_edge(START, "first")
        .compile()
    )
    builder = StateGraph(State).add_node("a", node("a")).add_node("ask", ask).add_node("inner", inner)
    builder.add_node("b", node("b")).add_node("end", node("end"))
    for name in ("ask", "inner", "b"):
        builder.add_edge("a", name)
    builder.add_edge(START, "a").add_edge(["ask", "inner", "b"], "end")
    return builder.compile(saver, durability=durability)


def two_runs(graph):
    """Run to the questions, and answer them."""
    paused = graph.invoke({"log": []}, CONFIG)
    return graph.invoke(Command(resume={each.id: "so" for each in paused["__interrupt__"]}), CONFIG)


def to_the_end(graph):
    """Go on from whatever is stored, as a program would that found its process dead."""
    state = graph.get_state(CONFIG)
    if state.created_at is None:
        result = graph.invoke({"log": []}, CONFIG)
    else:
        result = graph.invoke(None, CONFIG) if state.next else state.values
    while "__interrupt__" in result:
        result = graph.invoke(Command(resume={each.id: "so" for each in result["__interrupt__"]}), CONFIG)
    return result


def set_free(saver):
    """Take the lease of a run that could not give it back, as is done once it has expired."""
    lease = new_lease()
    assert isinstance(saver.claim("t", lease, 10.0, lambda other: True), Held)
    saver.release("t", lease.token)


def values_of(graph):
    return [state.values for state in graph.get_state_history(CONFIG)][::-1]


class FaultyAt(FaultySaver):
    """A checkpointer whose n-th operation of one name fails: what else comes before it depends on the moment."""

    def __init__(self, saver, name, number, *, after):
        super().__init__(saver, after=after)
        self.name, self.left = name, number

    def _operate(self, operation, *args, **options):
        with self._lock:
            counts = operation.__name__ == self.name
            self.left -= counts
            fails = counts and self.left == 0
        if fails and not self.after:
            raise self.error
        result = operation(*args, **options)
        if fails:
            raise self.error
        return result


def every_fault(make, durability, after):
    """Let each operation fail in turn; yield its name, and what is stored then."""
    counted = FaultySaver(make())
    expected = two_runs(graph_in(counted, durability, Counter()))
    reference = values_of(graph_in(counted.saver, durability, Counter()))
    assert expected == {"log": ["a", "so", "first", "so", "last", "b", "end"]}
    for name in sorted(set(counted.operations)):
        for number in count(1):  # how many there are depends on which commits come together
            faulty = FaultyAt(make(), name, number, after=after)
            try:
                two_runs(graph_in(faulty, durability, Counter()))
            except StorageFault:
                set_free(faulty.saver)
                yield name, faulty.saver, reference, expected
            else:
                assert faulty.left > 0, f"the error of {name} {number} was swallowed"
                break


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("durability", DURABILITIES)
def test_every_operation_in_turn(durability, after):
    seen = Counter()
    for operation, saver, reference, expected in every_fault(InMemorySaver, durability, after):
        seen[operation] += 1
        runs = Counter()
        graph = graph_in(saver, durability, runs)
        state = graph.get_state(CONFIG)
        assert state.values in [{}, *reference]
        told = values_of(graph)
        assert told == reference[: len(told)]
        assert to_the_end(graph) == expected, operation
        if durability != "exit":
            assert values_of(graph) == reference
        assert max(runs.values(), default=0) <= 1
        assert saver._threads["t"].lease is None
    assert seen["write"] > (1 if durability != "sync" else 5)
    # The first run, which pauses, lets the thread go in a transaction of its own, where it has not just written all.
    assert (seen["claim"], seen["release"]) == (2, 0 if durability == "exit" else 1)


def test_every_operation_in_turn_on_a_file(tmp_path):
    made = []

    def make():
        made.append(SqliteSaver(tmp_path / f"{len(made)}.db", synchronous="NORMAL"))
        return made[-1]

    for operation, saver, reference, expected in every_fault(make, "sync", after=True):
        graph = graph_in(saver, "sync", Counter())
        assert to_the_end(graph) == expected, operation
        assert values_of(graph) == reference
    for saver in made:
        saver.close()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_every_operation_in_turn_on_a_server(postgres, after):
    with PostgresSaver(postgres) as saver:

        def make():
            saver.delete_thread("t")
            return saver

        for operation, _, reference, expected in every_fault(make, "sync", after=after):
            graph = graph_in(saver, "sync", Counter())
            assert to_the_end(graph) == expected, operation
            assert values_of(graph) == reference


def test_a_claim_of_which_the_answer_was_lost_holds_nothing():
    saver = InMemorySaver()
    faulty = FaultySaver(saver, 1, after=True)
    with pytest.raises(StorageFault):
        graph_in(faulty, "sync", Counter()).invoke({"log": []}, CONFIG)
    assert faulty.operations == ["claim", "release"]
    assert saver.threads() == []
