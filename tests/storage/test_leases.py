"""One run at a time on a thread: who is refused, who waits, and what a run does that has lost its thread."""

import asyncio
import operator
import subprocess
import sys
import threading
from typing import Annotated

import anyio
import pytest
from typing_extensions import TypedDict

from pregel import START, StateGraph, interrupt
from pregel.checkpoint import keeper as keeping
from pregel.checkpoint import points
from pregel.checkpoint.base import Advance, Held, Lease, Release
from pregel.checkpoint.keeper import Keeper
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.owner import new_lease
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import ConcurrentRunError, InvalidConfigError, InvalidInputError, ThreadBusyError
from pregel.testing.faults import FaultySaver
from tests.leftovers import nothing_left

CONFIG = {"configurable": {"thread_id": "t"}}


class State(TypedDict, total=False):
    log: Annotated[list, operator.add]


def chain(**nodes):
    """Return a builder of nodes that run one after the other."""
    return StateGraph(State).add_sequence(list(nodes.items())).add_edge(START, next(iter(nodes)))


def says(name):
    """Return a node that logs a name."""
    return lambda state: {"log": [name]}


@pytest.fixture(params=["memory", "sqlite"])
def saver(request, tmp_path):
    """An empty checkpointer that does not wait for a disk, and one that does."""
    if request.param == "memory":
        yield InMemorySaver()
    else:
        with SqliteSaver(tmp_path / "runs.db", synchronous="NORMAL") as made:
            yield made


def log_of(graph):
    return graph.get_state(CONFIG).values.get("log")


def is_free(saver):
    """Return whether a thread can be taken at once, by a living run that takes nothing from others."""
    lease = new_lease()
    found = saver.claim("t", lease, 10.0, lambda other: False)
    saver.release("t", lease.token)
    return isinstance(found, Held)


# -- refused -----------------------------------------------------------------------------------------------------------


def test_a_second_run_is_refused_before_any_node_runs(saver, door):
    inside, leave = threading.Event(), threading.Event()
    ran = []

    def hold(state):
        inside.set()
        assert leave.wait(30)
        return {"log": ["held"]}

    graph = chain(hold=hold).compile(saver)
    other = chain(node=lambda state: ran.append(1) or {"log": ["other"]}).compile(saver)
    first = threading.Thread(target=graph.invoke, args=({"log": []}, CONFIG))
    first.start()
    assert inside.wait(30)
    with pytest.raises(ThreadBusyError, match=r"thread 't' is taken by another run \(process \d+ on ") as caught:
        door.invoke(other, {"log": []}, CONFIG)
    assert isinstance(caught.value, ConcurrentRunError)
    with pytest.raises(ThreadBusyError):
        graph.update_state(CONFIG, {"log": ["edit"]})
    leave.set()
    first.join()
    assert ran == []
    assert log_of(graph) == ["held"]


def test_a_run_on_the_same_thread_from_inside_a_node_is_refused(saver):
    graphs = []

    def nested(state):
        failure = []

        def call():
            try:
                graphs[0].invoke({"log": []}, CONFIG)
            except ThreadBusyError as error:
                failure.append(error)

        thread = threading.Thread(target=call)  # a thread of the node's own, that knows nothing of the run
        thread.start()
        thread.join()
        return {"log": [type(failure[0]).__name__]}

    graphs.append(chain(nested=nested).compile(saver))
    assert graphs[0].invoke({"log": []}, CONFIG) == {"log": ["ThreadBusyError"]}


def test_runs_on_different_threads_do_not_meet():
    saver = InMemorySaver()
    barrier = threading.Barrier(64)

    def meet(state):
        barrier.wait(30)
        return {"log": ["met"]}

    graph = chain(meet=meet, then=says("then")).compile(saver)
    results = [None] * 64

    def run(number):
        results[number] = graph.invoke({"log": []}, {"configurable": {"thread_id": f"{number}"}})

    threads = [threading.Thread(target=run, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [{"log": ["met", "then"]}] * 64


def test_an_unknown_way_to_be_busy_is_named():
    with pytest.raises(InvalidConfigError, match=r"not 'wiat'. Did you mean 'wait'\?"):
        chain(a=says("a")).compile(InMemorySaver(), on_busy="wiat")


# -- waiting -----------------------------------------------------------------------------------------------------------


class Noticing(InMemorySaver):
    """Says when a claim was refused."""

    def __init__(self):
        super().__init__()
        self.refused = threading.Event()

    def claim(self, *args):
        found = super().claim(*args)
        if isinstance(found, Lease):
            self.refused.set()
        return found


def test_a_run_that_waits_begins_when_the_other_one_has_ended(door):
    saver = Noticing()
    inside = threading.Event()

    def hold(state):
        inside.set()
        assert saver.refused.wait(30)
        return {"log": ["first"]}

    graph = chain(hold=hold).compile(saver)
    first = threading.Thread(target=graph.invoke, args=({"log": []}, CONFIG))
    first.start()
    assert inside.wait(30)
    second = chain(hold=says("second")).compile(saver, on_busy="wait")
    assert door.invoke(second, {"log": []}, CONFIG) == {"log": ["first", "second"]}
    first.join()


def test_waiting_can_be_cancelled(loop, saver):
    lease = new_lease()
    assert saver.claim("t", lease, 60.0, lambda other: False) == Held("t", 0)
    graph = chain(a=says("a")).compile(saver, on_busy="wait")

    async def main():
        async with nothing_left(loop):
            with anyio.move_on_after(0.05) as scope:
                await graph.ainvoke({"log": []}, CONFIG)
            assert scope.cancelled_caught

    loop.run(main)
    saver.release("t", lease.token)
    assert is_free(saver)


def test_a_claim_that_was_cancelled_half_way_holds_nothing(tmp_path):
    began, go = threading.Event(), threading.Event()

    class Slow(SqliteSaver):
        def claim(self, *args):
            began.set()
            assert go.wait(30)
            return super().claim(*args)

    with Slow(tmp_path / "runs.db") as saver:
        graph = chain(a=says("a")).compile(saver)

        async def main():
            task = asyncio.ensure_future(graph.ainvoke({"log": []}, CONFIG))
            await asyncio.to_thread(began.wait, 30)
            task.cancel()
            await asyncio.sleep(0)
            go.set()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        assert is_free(saver)


# -- letting go --------------------------------------------------------------------------------------------------------


def boom(state):
    raise ValueError("boom")


def ask(state):
    return {"log": [interrupt("what?")]}


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_thread_is_free_after_success_failure_and_pause(saver, door, durability):
    for last in (says("c"), boom, ask):
        graph = chain(a=says("a"), last=last).compile(saver, durability=durability)
        door.stream(graph, {"log": []}, CONFIG)
        assert is_free(saver)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize(("last", "stops"), [(says("c"), False), (boom, True), (ask, True)])
def test_what_is_committed_last_lets_the_thread_go_where_a_run_knows_that_it_is_the_last(
    saver, door, durability, last, stops
):
    counted = FaultySaver(saver)
    graph = chain(a=says("a"), last=last).compile(counted, durability=durability)
    door.stream(graph, {"log": []}, CONFIG)
    assert counted.operations.count("release") == (stops and durability != "exit")  # that one writes when it is over
    assert is_free(saver)
    graph = chain(a=says("a"), last=says("c")).compile(counted, durability=durability)
    counted.operations.clear()
    door.stream(graph, {"log": []}, CONFIG)  # the second time on the thread
    assert "release" not in counted.operations
    assert is_free(saver)


def test_a_run_that_begins_nothing_lets_the_thread_go_by_itself(saver, door):
    counted = FaultySaver(saver)
    graph = chain(a=says("a")).compile(counted, durability="exit")
    with pytest.raises(InvalidInputError, match="nothing to go on with"):
        door.invoke(graph, None, CONFIG)
    assert counted.operations.count("release") == 1
    assert saver.threads() == []


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_thread_is_free_after_a_last_commit_that_failed_before_or_after_its_work(saver, door, durability, after):
    write = saver.write

    def failing(thread_id, token, writes):
        last = isinstance(writes[-1], Release)
        if not last or after:
            write(thread_id, token, writes)
        if last:
            raise OSError("away")

    saver.write = failing
    graph = chain(a=says("a"), b=says("b")).compile(saver, durability=durability)
    *_, error = door.stream(graph, {"log": []}, CONFIG)
    assert isinstance(error, OSError)
    assert is_free(saver)
    saver.write = write
    kept = {"sync": [["a"]], "async": [None, [], ["a"]], "exit": [None]}[durability]
    assert log_of(graph) in ([["a", "b"]] if after else kept)


def test_a_thread_is_kept_where_the_commit_that_lets_it_go_does_not_come_to_its_end(saver):
    lease = new_lease()
    saver.claim("t", lease, 60.0, lambda other: False)

    def stop(point):
        if point == "write.inside":
            raise KeyboardInterrupt

    previous = points.listen(stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            saver.write("t", lease.token, [Advance(0, (), None, 0, 1), Release()])
    finally:
        points.listen(previous)
    assert saver.claim("t", new_lease(), 60.0, lambda other: False) == lease
    saver.write("t", lease.token, [Advance(0, (), None, 0, 1), Release()])
    assert saver.claim("t", new_lease(), 60.0, lambda other: False) == Held("t", 1)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_run_that_lost_its_thread_before_its_last_commit_leaves_it_to_the_other_one(saver, door, durability):
    thief = new_lease()

    def steal(state):
        assert isinstance(saver.claim("t", thief, 3_600.0, lambda other: True), Held)
        return {"log": ["stolen"]}

    graph = chain(a=says("a"), steal=steal).compile(saver, durability=durability)
    *_, error = door.stream(graph, {"log": []}, CONFIG)
    assert isinstance(error, ConcurrentRunError)
    assert saver.renew("t", thief.token, 3_600.0)
    assert "stolen" not in (log_of(graph) or [])


def test_a_thread_is_free_after_a_stream_that_was_left(saver):
    graph = chain(a=says("a"), b=says("b")).compile(saver)
    stream = graph.stream({"log": []}, CONFIG)
    next(stream)
    assert not is_free(saver)
    stream.close()
    assert is_free(saver)
    abandoned = graph.stream({"log": []}, CONFIG)
    next(abandoned)
    del abandoned
    assert is_free(saver)


def test_a_thread_is_free_after_an_async_stream_that_was_left(loop, saver):
    graph = chain(a=says("a"), b=says("b")).compile(saver)

    async def main():
        stream = graph.astream({"log": []}, CONFIG)
        await anext(stream)
        await stream.aclose()

    loop.run(main)
    assert is_free(saver)


def test_a_thread_is_free_after_a_cancelled_run(loop, saver):
    started = anyio.Event

    async def main():
        begun = started()

        async def wait(state):
            begun.set()
            await anyio.sleep_forever()

        graph = chain(a=says("a"), wait=wait).compile(saver)
        async with anyio.create_task_group() as group:
            group.start_soon(graph.ainvoke, {"log": []}, CONFIG)
            await begun.wait()
            group.cancel_scope.cancel()
        assert is_free(saver)
        assert graph.get_state(CONFIG).next == ("wait",)

    loop.run(main)


def test_reading_unknown_threads_leaves_nothing():
    saver = InMemorySaver()
    graph = chain(a=says("a")).compile(saver)
    for number in range(1_000):
        config = {"configurable": {"thread_id": f"{number}"}}
        assert graph.get_state(config).values == {}
        assert list(graph.get_state_history(config)) == []
        with pytest.raises(Exception, match="nothing stored"):
            graph.invoke(None, config)
    assert saver._threads == {}
    assert saver.threads() == []


# -- taking over -------------------------------------------------------------------------------------------------------


def dead_lease():
    """Return the lease of a process of this machine that has ended."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return new_lease()._replace(pid=ended.pid, started="1")


def test_the_thread_of_a_dead_process_is_taken_at_once(saver, door):
    assert saver.claim("t", dead_lease(), 3_600.0, lambda other: False) == Held("t", 0)
    graph = chain(a=says("a")).compile(saver)
    assert door.invoke(graph, {"log": []}, CONFIG) == {"log": ["a"]}


def test_a_thread_of_another_machine_is_taken_once_its_lease_has_expired(saver):
    elsewhere = Lease("token", "another machine", 1, "1")
    graph = chain(a=says("a")).compile(saver)
    assert saver.claim("t", elsewhere, 3_600.0, lambda other: False) == Held("t", 0)
    with pytest.raises(ThreadBusyError, match="process 1 on another machine"):
        graph.invoke({"log": []}, CONFIG)
    saver.renew("t", "token", -1.0)
    assert graph.invoke({"log": []}, CONFIG) == {"log": ["a"]}


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_run_that_lost_its_thread_commits_nothing_more(saver, door, durability):
    def steal(state):
        assert isinstance(saver.claim("t", new_lease(), 3_600.0, lambda other: True), Held)
        return {"log": ["stolen"]}

    graph = chain(a=says("a"), steal=steal, c=says("c")).compile(saver, durability=durability)
    *_, error = door.stream(graph, {"log": []}, CONFIG)
    assert isinstance(error, ConcurrentRunError)
    assert not isinstance(error, ThreadBusyError)
    assert log_of(graph) in ({"sync": [["a"]], "async": [None, [], ["a"]], "exit": [None]}[durability])
    assert not is_free(saver)  # it belongs to the thief still


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_thread_that_was_deleted_during_a_run_stays_deleted(saver, durability):
    def delete(state):
        saver.delete_thread("t")
        return {"log": ["deleted"]}

    graph = chain(a=says("a"), delete=delete, c=says("c")).compile(saver, durability=durability)
    with pytest.raises(ConcurrentRunError):
        graph.invoke({"log": []}, CONFIG)
    assert saver.threads() == []
    assert graph.get_state(CONFIG).values == {}


# -- many at once ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_of_many_runs_at_once_those_that_won_are_all_there(saver, durability):
    graph = chain(a=lambda state: {"log": []}).compile(saver, durability=durability)
    start = threading.Barrier(16)
    won, lost = [], []

    def run(number):
        start.wait(30)
        try:
            graph.invoke({"log": [number]}, CONFIG)
        except ThreadBusyError:
            lost.append(number)
        else:
            won.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) + len(lost) == 16
    assert won
    assert sorted(log_of(graph)) == sorted(won)
    inputs = list(graph.get_state_history(CONFIG, filter={"source": "input"}))
    assert len(inputs) == (len(won) if durability != "exit" else 0)


PROCESS = """
import operator, sys
from typing import Annotated
from typing_extensions import TypedDict
from pregel import START, StateGraph
from pregel.checkpoint.sqlite import SqliteSaver

class State(TypedDict, total=False):
    log: Annotated[list, operator.add]

with SqliteSaver(sys.argv[1], synchronous="NORMAL") as saver:
    graph = StateGraph(State).add_node("a", lambda state: {"log": ["node"]}).add_edge(START, "a")
    run = graph.compile(saver, on_busy="wait").invoke
    for turn in range(5):
        run({"log": [f"{sys.argv[2]}.{turn}"]}, {"configurable": {"thread_id": "t"}})
"""


def test_processes_take_turns_on_one_file(tmp_path):
    path = tmp_path / "runs.db"
    processes = [subprocess.Popen([sys.executable, "-c", PROCESS, str(path), f"{number}"]) for number in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    with SqliteSaver(path) as saver:
        log = log_of(chain(a=says("a")).compile(saver))
    assert log[1::2] == ["node"] * 20
    assert sorted(log[::2]) == [f"{number}.{turn}" for number in range(4) for turn in range(5)]


# -- renewing ----------------------------------------------------------------------------------------------------------


class Counting(InMemorySaver):
    """Says how often a lease was renewed; what it answers can be chosen."""

    lease_seconds = 0.03

    def __init__(self, answer=None):
        super().__init__()
        self.renewed = threading.Semaphore(0)
        self.answer = answer

    def renew(self, thread_id, token, seconds):
        held = super().renew(thread_id, token, seconds)
        self.renewed.release()
        if isinstance(self.answer, Exception):
            raise self.answer
        return held if self.answer is None else self.answer


def test_the_lease_of_a_run_that_takes_long_is_renewed_again_and_again():
    saver = Counting()

    def slow(state):
        assert all(saver.renewed.acquire(timeout=30) for _ in range(5))
        return {"log": ["done"]}

    graph = chain(slow=slow).compile(saver)
    for turn in range(1, 4):  # also after the keeper had nothing to do
        assert graph.invoke({"log": []}, CONFIG) == {"log": ["done"] * turn}


def test_a_storage_that_fails_to_renew_is_asked_again():
    saver = Counting(OSError("away"))

    def slow(state):
        assert all(saver.renewed.acquire(timeout=30) for _ in range(3))
        return {"log": ["done"]}

    assert chain(slow=slow).compile(saver).invoke({"log": []}, CONFIG) == {"log": ["done"]}


class Clock:
    """A clock, and a condition that does not wait."""

    def __init__(self):
        self.now = 100.0
        self.woken = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def notify(self):
        self.woken += 1


@pytest.fixture
def quiet(monkeypatch):
    """A keeper whose thread is not started, and its clock."""
    clock = Clock()
    monkeypatch.setattr(keeping, "monotonic", lambda: clock.now)
    keeper = Keeper()
    keeper.changed = clock
    keeper.running = True
    return keeper, clock


def test_the_keeper_is_woken_by_the_first_lease_and_by_none_that_is_due_later(quiet):
    keeper, clock = quiet
    keeper.keep(None, "a", "1", 9.0)
    assert clock.woken == 1
    keeper.alarm = 103.0  # it has looked, and sleeps until then
    clock.now = 101.0
    keeper.keep(None, "b", "2", 9.0)
    assert clock.woken == 1
    keeper.keep(None, "c", "3", 3.0)
    assert clock.woken == 2


def test_a_lease_that_is_lost_is_not_renewed_again(quiet):
    keeper, _ = quiet

    class Lost:
        def renew(self, *asked):
            assert asked == ("a", "1", 9.0)
            return False

    keeper.keep(Lost(), "a", "1", 9.0)
    keeper.renew(Lost(), "a", "1", 3.0)
    assert keeper.held == {}


def test_a_lease_that_is_held_is_due_again_after_a_third_of_its_time(quiet):
    keeper, clock = quiet

    class Held:
        def renew(self, *asked):
            return True

    saver = Held()
    keeper.keep(saver, "a", "1", 9.0)
    clock.now = 103.0
    keeper.renew(saver, "a", "1", 3.0)
    assert keeper.held == {"1": (106.0, 3.0, "a", saver)}
    keeper.drop("1")
    keeper.renew(saver, "a", "1", 3.0)  # its run ended meanwhile
    assert keeper.held == {}
