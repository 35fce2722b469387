"""How many tasks run at once: one number for a run and the runs inside it, and one for each node."""

import operator
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import Annotated, TypedDict

import anyio
import pytest

from pregel import END, START, Send, StateGraph
from pregel.drivers.limits import TURN, Limits
from pregel.errors import GraphDefinitionError
from pregel.network import Network
from pregel.node import Code, Node, View


class State(TypedDict):
    n: int
    log: Annotated[list[str], operator.add]


class Count:
    """How many are inside at once, and were at most."""

    def __init__(self):
        self.lock = threading.Lock()
        self.now = self.most = self.ever = 0

    @contextmanager
    def inside(self):
        with self.lock:
            self.now += 1
            self.ever += 1
            self.most = max(self.most, self.now)
        try:
            yield
        finally:
            with self.lock:
                self.now -= 1


def works(kind, count, rounds=20):
    """Return a sync or an async node that lets the others have a go while it is counted."""

    def work(state: State) -> dict:
        with count.inside():
            for _ in range(rounds):
                threading.Event().wait(0)
        return {"log": ["done"]}

    async def awork(state: State) -> dict:
        with count.inside():
            for _ in range(rounds):
                await anyio.lowlevel.checkpoint()
        return {"log": ["done"]}

    return work if kind == "sync" else awork


def fan(node, width, **options):
    """Return a graph that runs a node as so many tasks of one superstep."""
    builder = StateGraph(State).add_node("fan", lambda state: {}).add_node("work", node, **options)
    builder.add_edge(START, "fan")
    sends = [Send("work", {"n": number, "log": []}) for number in range(width)]
    return builder.add_conditional_edges("fan", lambda state: sends, ["work"])


GIVEN = {"n": 0, "log": []}


# -- the gates themselves ----------------------------------------------------------------------------------------------


def node(name="n", most=None):
    return Node(name, 0, Code(name), View(), max_concurrency=most)


def asked(limits, of=None, calls=None):
    """Return a turn, and whether it came at once."""
    turn = limits.turn(of or node())
    return turn, turn.ask(lambda: None if calls is None else calls.append(turn))


def test_turns_come_in_the_order_in_which_they_were_asked_for():
    limits, calls = Limits(1), []
    first, came = asked(limits, calls=calls)
    second, waits = asked(limits, calls=calls)
    third, _ = asked(limits, calls=calls)
    assert (came, waits, calls) == (True, False, [])
    first.end()
    assert calls == [second]
    first.end()  # a second time does nothing
    assert calls == [second]
    second.end()
    assert calls == [second, third]


def test_a_turn_that_is_given_up_while_it_waits_is_never_called():
    limits, calls = Limits(1), []
    first, _ = asked(limits, calls=calls)
    second, _ = asked(limits, calls=calls)
    third, _ = asked(limits, calls=calls)
    second.end()
    first.end()
    assert calls == [third]
    third.end()
    assert asked(limits)[1]


def test_a_task_lends_its_slot_to_the_tasks_inside_it_one_after_the_other():
    outer, calls = Limits(1), []
    turn, _ = asked(outer)
    inner = Limits(1, outer, turn)
    first, came = asked(inner, calls=calls)
    second, waits = asked(inner, calls=calls)
    asked(outer, calls=calls)
    assert (came, waits) == (True, False)
    first.end()
    assert calls == [second]  # not the outsider: the slot is only lent
    second.end()
    assert calls == [second]
    assert asked(inner)[1]
    turn.end()
    assert calls == [second]  # whoever has borrowed it keeps it to the end


def test_what_was_lent_by_a_task_that_is_over_goes_to_anybody():
    outer, calls = Limits(1), []
    turn, _ = asked(outer)
    inside, _ = asked(Limits(None, outer, turn))
    outsider, _ = asked(outer, calls=calls)
    turn.end()
    assert calls == []
    inside.end()
    assert calls == [outsider]
    late, came = asked(Limits(None, outer, turn), calls=calls)  # nothing is lent any more
    assert not came
    outsider.end()
    assert calls == [outsider, late]


def test_tasks_inside_take_free_slots_beside_the_one_that_is_lent():
    outer = Limits(3)
    turn, _ = asked(outer)
    inner = Limits(3, outer, turn)
    assert [asked(inner)[1] for _ in range(4)] == [True, True, True, False]


def test_a_smaller_number_inside_holds_for_that_run_and_a_larger_one_changes_nothing():
    outer = Limits(2)
    turn, _ = asked(outer)
    assert [asked(Limits(1, outer, turn))[1] for _ in range(1)] == [True]
    other = Limits(2)
    turn, _ = asked(other)
    smaller = Limits(1, other, turn)
    assert [asked(smaller)[1] for _ in range(2)] == [True, False]
    larger = Limits(9, other, turn)
    assert larger.slots is other.slots
    assert larger.own is None


def test_a_node_has_a_gate_of_its_own_in_all_runs_of_one():
    limits, calls, rare = Limits(None), [], node("rare", 1)
    first, came = asked(limits, rare, calls)
    inner = Limits(None, limits, asked(limits)[0])
    second, waits = asked(inner, rare, calls)
    assert (came, waits, asked(inner)[1]) == (True, False, True)
    first.end()
    assert calls == [second]
    assert asked(Limits(None), rare)[1]  # another run


def test_who_waits_for_a_node_holds_no_slot_meanwhile():
    limits, calls, rare = Limits(2), [], node("rare", 1)
    first, _ = asked(limits, rare)
    second, waits = asked(limits, rare, calls)
    assert (waits, asked(limits)[1]) == (False, True)
    first.end()
    assert calls == [second]


def test_who_has_come_past_its_node_waits_for_a_slot():
    limits, calls, rare = Limits(2), [], node("rare", 1)
    first, _ = asked(limits, rare)
    asked(limits)
    second, _ = asked(limits, rare, calls)
    third, _ = asked(limits, calls=calls)
    first.end()  # its slot goes to the third, which has waited for one, its node to the second
    assert calls == [third]
    third.end()
    assert calls == [third, second]


def test_a_node_inside_itself_does_not_wait_for_itself():
    limits, rare = Limits(None), node("rare", 1)
    turn, _ = asked(limits, rare)
    between, _ = asked(Limits(None, limits, turn))
    assert asked(Limits(None, limits, between), rare)[1]


def test_turns_of_a_run_that_is_closed_are_given_back_and_those_who_wait_may_go():
    limits, calls = Limits(1), []
    first, came = asked(limits, calls=calls)
    second, waits = asked(limits, calls=calls)
    limits.close()
    limits.close()  # a second time does nothing
    assert (came, waits, calls) == (True, False, [second])
    late, came = asked(limits, calls=calls)
    assert came
    for turn in (first, second, late):
        turn.end()
    assert limits.slots.free == 1


def test_a_thread_waits_until_it_is_its_turn():
    limits = Limits(1)
    first, _ = asked(limits)
    second = limits.turn(node())
    thread = threading.Thread(target=second.wait, daemon=True)
    thread.start()
    first.end()
    thread.join(30)
    assert not thread.is_alive()
    assert second.held


def test_a_thread_with_an_event_loop_does_not_wait(loop):
    limits = Limits(1)
    asked(limits)
    second = limits.turn(node())

    async def main():
        second.wait()

    loop.run(main)
    assert not second.held


# -- graphs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_one_number_holds_for_a_run_and_the_graphs_inside_it(door, kind, most):
    count = Count()
    child = fan(works(kind, count), 5).compile(name="child")
    graph = fan(child, 4).compile()
    result = door.invoke(graph, GIVEN, {"max_concurrency": most})
    assert len(result["log"]) == count.ever == 20
    assert count.most <= most


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_the_number_is_used_up(door, kind):
    met = threading.Barrier(2, timeout=30)
    waiting, both = [], None

    def meets(state: State) -> dict:
        met.wait()
        return {"log": ["met"]}

    async def ameets(state: State) -> dict:
        nonlocal both
        both = both or anyio.Event()
        waiting.append(None)
        if not len(waiting) % 2:
            both.set()
            both = None
        else:
            await both.wait()
        return {"log": ["met"]}

    child = fan(meets if kind == "sync" else ameets, 2).compile(name="child")
    result = door.invoke(fan(child, 3).compile(), GIVEN, {"max_concurrency": 2})
    assert result["log"] == ["met"] * 6


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_three_graphs_inside_each_other_go_on_with_one_slot(door, kind):
    count = Count()
    graph = fan(works(kind, count), 3)
    for name in ("inner", "middle"):
        graph = fan(graph.compile(name=name), 3)
    assert len(door.invoke(graph.compile(), GIVEN, {"max_concurrency": 1})["log"]) == 27
    assert count.most == 1


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_graphs_that_nodes_call_share_the_number(door, kind):
    count = Count()
    child = fan(works(kind, count), 3).compile(name="child")

    def calls(state: State) -> dict:
        results = child.batch([GIVEN, GIVEN])
        return {"log": [each for result in results for each in result["log"]]}

    async def acalls(state: State) -> dict:
        results = await child.abatch([GIVEN, GIVEN])
        return {"log": [each for result in results for each in result["log"]]}

    graph = fan(calls if kind == "sync" else acalls, 3).compile()
    assert len(door.invoke(graph, GIVEN, {"max_concurrency": 2})["log"]) == 18
    assert count.most <= 2


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_the_tasks_of_a_superstep_begin_in_their_order(door, kind):
    begun = []

    def note(state: State) -> dict:
        begun.append(state["n"])
        return {}

    async def anote(state: State) -> dict:
        return note(state)

    door.invoke(fan(note if kind == "sync" else anote, 20).compile(), GIVEN, {"max_concurrency": 1})
    assert begun == list(range(20))


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_node_may_limit_its_own_tasks(door, kind):
    count = Count()
    result = door.invoke(fan(works(kind, count), 10, max_concurrency=2).compile(), GIVEN)
    assert len(result["log"]) == 10
    assert count.most <= 2


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_the_limit_of_a_node_holds_for_all_runs_of_its_graph_in_one_run(door, kind):
    count = Count()
    child = fan(works(kind, count), 3, max_concurrency=2).compile(name="child")
    result = door.invoke(fan(child, 4).compile(), GIVEN)
    assert len(result["log"]) == 12
    assert count.most <= 2


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_defaults_limit_each_node(door, kind):
    count = Count()
    builder = fan(works(kind, count), 6).set_node_defaults(max_concurrency=1)
    assert len(door.invoke(builder.compile(), GIVEN)["log"]) == 6
    assert count.most == 1


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_tasks_of_other_nodes_go_past_those_that_wait_for_their_node(door, kind):
    came = threading.Event()

    def slow(state: State) -> dict:
        assert came.wait(30)
        return {"log": ["slow"]}

    async def aslow(state: State) -> dict:
        while not came.is_set():
            await anyio.lowlevel.checkpoint()
        return {"log": ["slow"]}

    def quick(state: State) -> dict:
        came.set()
        return {"log": ["quick"]}

    builder = StateGraph(State).add_node("fan", lambda state: {})
    builder.add_node("slow", slow if kind == "sync" else aslow, max_concurrency=1).add_node("quick", quick)
    builder.add_edge(START, "fan")
    sends = [*[Send("slow", GIVEN)] * 5, Send("quick", GIVEN)]
    builder.add_conditional_edges("fan", lambda state: sends, ["slow", "quick"])
    result = door.invoke(builder.compile(), GIVEN, {"max_concurrency": 2})
    assert result["log"] == ["slow"] * 5 + ["quick"]


def test_a_limited_node_that_runs_its_own_graph_ends(door):
    def deeper(state: State) -> dict:
        if state["n"] == 3:
            return {"log": ["bottom"]}
        return {"log": graph.invoke({"n": state["n"] + 1, "log": ["down"]})["log"]}

    graph = StateGraph(State).add_node("deeper", deeper, max_concurrency=1).add_edge(START, "deeper").compile()
    assert door.invoke(graph, GIVEN)["log"] == ["down", "down", "down", "bottom"]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_number_that_is_bound_to_a_graph_inside_holds_there(door, kind):
    count = Count()
    child = fan(works(kind, count), 6).compile(name="child").with_config({"max_concurrency": 1})
    graph = StateGraph(State).add_node("child", child).add_edge(START, "child").compile()
    assert len(door.invoke(graph, GIVEN, {"max_concurrency": 4})["log"]) == 6
    assert count.most == 1
    assert len(door.invoke(graph, GIVEN)["log"]) == 6
    assert count.most == 1


@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_inline_tasks_and_those_in_threads_share_the_number(door, executor):
    count = Count()
    builder = StateGraph(State).add_node("fan", lambda state: {}).add_edge(START, "fan").add_edge("last", END)
    for number in range(6):
        where = executor if number % 2 else "thread"
        builder.add_node(f"n{number}", works("sync", count), executor=where).add_edge("fan", f"n{number}")
    builder.add_node("last", lambda state: {}).add_edge([f"n{number}" for number in range(6)], "last")
    assert len(door.invoke(builder.compile(), GIVEN, {"max_concurrency": 2})["log"]) == 6
    assert count.most <= 2


def test_tasks_that_wait_for_their_turn_never_begin_where_a_sibling_fails(loop):
    begun = []

    async def fails(state: State) -> dict:
        begun.append(state["n"])
        raise ValueError("first")

    graph = fan(fails, 10).compile()
    with pytest.raises(ValueError, match="first"):
        loop.invoke(graph, GIVEN, {"max_concurrency": 1}, on_failure="cancel")
    assert begun == [0]


def test_a_cancelled_run_gives_its_turns_back(loop):
    seen = []

    async def main():
        with anyio.CancelScope() as scope:

            async def hangs(state: State) -> dict:
                seen.append(TURN.get().limits)
                if len(seen) == 2:
                    scope.cancel()
                await anyio.sleep_forever()

            await fan(hangs, 4).compile().ainvoke(GIVEN, {"max_concurrency": 2})
        return TURN.get()

    assert loop.run(main) is None
    assert [(limits.slots.free, [*limits.live]) for limits in seen] == [(2, [])] * 2


def test_a_run_without_limits_asks_for_no_turn(door, monkeypatch):
    def refused(limits, of):
        raise AssertionError("a turn was asked for")

    monkeypatch.setattr(Limits, "turn", refused)
    child = fan(works("sync", Count()), 3).compile(name="child")
    assert len(door.invoke(fan(child, 3).compile(), GIVEN)["log"]) == 9


def test_a_network_says_whether_a_node_limits_its_tasks():
    def limited(*nodes):
        start = Node(START, -1, Code(START), View())
        return Network("g", {}, {each.name: each for each in nodes}, start, ()).limited

    assert limited(node("a"), node("b", 1))
    assert not limited(node("a"), node("b"))


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "two"])
def test_a_limit_that_is_no_count_is_refused(wrong):
    with pytest.raises(GraphDefinitionError, match="max_concurrency of node 'work'"):
        fan(lambda state: {}, 1, max_concurrency=wrong)
    with pytest.raises(GraphDefinitionError, match="max_concurrency"):
        StateGraph(State).set_node_defaults(max_concurrency=wrong)


FEW_THREADS = """
import asyncio, operator, sys
from typing import Annotated, TypedDict
import anyio
from pregel import START, Send, StateGraph
from pregel.drivers import workers

workers.set_thread_limit({threads})

class State(TypedDict):
    log: Annotated[list[str], operator.add]

def fan(node, width, **options):
    builder = StateGraph(State).add_node("fan", lambda state: {{}}).add_node("work", node, **options)
    builder.add_edge(START, "fan")
    return builder.add_conditional_edges("fan", lambda state: [Send("work", {{"log": []}})] * width, ["work"])

graph = fan(lambda state: {{"log": ["done"]}}, 5, max_concurrency=2)
for _ in range(2):
    graph = fan(graph.compile(), 5)
graph = graph.compile()
for most in (None, 1, 3):
    config = {{"max_concurrency": most}}
    print(len(graph.invoke({{"log": []}}, config)["log"]))
    for backend in ("asyncio", "trio"):
        async def main():
            return await graph.ainvoke({{"log": []}}, config)
        print(len(anyio.run(main, backend=backend)["log"]))
"""


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_nested_limited_runs_end_however_few_threads_there_are(threads):
    script = FEW_THREADS.format(threads=threads)
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert (shown.stdout.split(), shown.stderr) == (["125"] * 9, "")
