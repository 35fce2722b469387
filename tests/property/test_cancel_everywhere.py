"""A run is cancelled at every single point where it can be, and nothing of it is left.

The points are the suspensions of all tasks of the event loop that belong to the run. They are counted, so that a run is
cancelled at the first one, at the second one, and so on, until it is over before it could be cancelled.
"""

import asyncio
import gc
import operator
import threading
from collections import Counter
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from itertools import count
from time import monotonic, sleep
from typing import Annotated, TypedDict

import anyio
import pytest
import trio

from pregel import START, Command, Send, StateGraph
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.drivers import workers
from pregel.testing.faults import FaultySaver

GIVEN = {"n": 3}
#: The supersteps of the graph below: what each adds to its log, in the order of application.
STEPS = (["a"], ["w", "k1", "k2", "k3", "x", "x"], ["s", "t"], ["last"], ["late"])
LOG = [name for names in STEPS for name in names]
ENDED = {"n": 3, "log": LOG}
VALUES = [{"n": 3, "log": [name for names in STEPS[:step] for name in names]} for step in range(len(STEPS) + 1)]
#: The nodes whose code can't be stopped.
IN_THREADS = ("w", "k2", "k3", "s", "t", "last")
MODES = ["values", "updates", "custom"]


class State(TypedDict):
    n: int
    log: Annotated[list, operator.add]


class Mix:
    """A graph of everything that can be cancelled: awaited nodes, worker threads, packets, a child graph, streams."""

    def __init__(self, checkpointer=None, **options):
        self.forget()
        self.lock = threading.Lock()
        child = StateGraph(State)
        child.add_node("k1", self.awaited("k1")).add_node("k2", self.sync("k2")).add_node("k3", self.sync("k3"))
        child.add_edge(START, "k1").add_edge("k1", "k2").add_edge("k1", "k3")
        builder = StateGraph(State)
        builder.add_node("a", self.awaited("a"), destinations=("w", "k", "x"))
        builder.add_node("w", self.sync("w"))
        builder.add_node("k", child.compile(name="child"))
        builder.add_node("x", self.packet)
        for name in ("s", "t", "last"):  # a stretch of sync code between awaited code
            builder.add_node(name, self.sync(name))
        builder.add_node("late", self.awaited("late"))
        builder.add_edge(START, "a").add_edge("w", "s").add_edge("w", "t").add_edge("s", "last")
        builder.add_edge("last", "late")
        self.graph = builder.compile(checkpointer, name="mix", **options)

    def forget(self):
        """Be as new."""
        self.begun = Counter()
        self.ended = Counter()
        #: Nodes that began before what comes before them was done.
        self.early = []
        #: What a node raises, by its name.
        self.trouble = {}
        #: Where code in worker threads waits until it is let through.
        self.gate = None

    def sync(self, name):
        def node(state, writer):
            self.begin(name)
            if self.gate is not None:
                self.gate.wait()
            return {"log": [self.end(name, writer)]}

        return node

    def awaited(self, name):
        async def node(state, writer):
            self.begin(name)
            await anyio.lowlevel.checkpoint()
            made = {"log": [self.end(name, writer)]}
            await anyio.lowlevel.checkpoint()
            return Command(update=made, goto=["w", "k", Send("x", 1), Send("x", 2)]) if name == "a" else made

        return node

    async def packet(self, number, writer):
        self.begin("x")
        for _ in range(number):
            await anyio.lowlevel.checkpoint()
        return {"log": [self.end("x", writer)]}

    def begin(self, name):
        with self.lock:
            self.begun[name] += 1
            step = next(step for step, names in enumerate(STEPS) if name in names)
            before = Counter(name for names in STEPS[:step] for name in names)
            if name in {"k2", "k3"}:
                before["k1"] = 1
            if not before <= self.ended:
                self.early.append(name)

    def end(self, name, writer):
        if name in self.trouble:
            raise self.trouble[name]
        writer(name)
        with self.lock:
            self.ended[name] += 1
        return name

    async def run(self, way, parts, given=GIVEN, config=None, **options):
        """Run the graph; return its result, which a reader of the stream finds in the last values."""
        if way == "ainvoke":
            return await self.graph.ainvoke(given, config, **options)
        async for part in self.graph.astream(given, config, stream_mode=MODES, subgraphs=True, **options):
            parts.append(part)
        return values_in(parts)[-1]

    def check(self, parts):
        """Check that what is visible of a run is whole supersteps, in their order."""
        assert self.early == []
        assert self.ended <= self.begun <= Counter(LOG)
        for name in IN_THREADS:
            assert self.begun[name] == self.ended[name] or name in self.trouble
        assert values_in(parts) == VALUES[: len(values_in(parts))]
        assert not Counter(part[2] for part in parts if part[1] == "custom") - self.ended


def values_in(parts):
    """Return the values of the outermost graph among the parts of a stream."""
    return [part for namespace, mode, part in parts if mode == "values" and not namespace]


@pytest.fixture(scope="module")
def mix():
    return Mix()


class Jobs:
    """Counts the jobs that worker threads have not done yet."""

    def __init__(self, submit):
        self.real = submit
        self.lock = threading.Lock()
        self.open = 0

    def submit(self, job, **options):
        with self.lock:
            self.open += 1

        def counted():
            try:
                job()
            finally:
                with self.lock:
                    self.open -= 1

        self.real(counted, **options)

    def done(self):
        """Return whether all workers become idle, soon: they end a job just after they have told of it."""
        deadline = monotonic() + 10
        while self.open and monotonic() < deadline:
            sleep(0)
        return not self.open


@pytest.fixture
def jobs(monkeypatch):
    made = Jobs(workers.submit)
    monkeypatch.setattr(workers, "submit", made.submit)
    return made


class Clock:
    """Counts the suspensions of a run, and cancels it at one of them."""

    def __init__(self, at):
        self.at = at
        self.now = 0
        self.cancel = None

    def tick(self):
        self.now += 1
        if self.now == self.at:
            self.cancel()

    @property
    def fired(self):
        return self.now >= self.at


class Gate:
    """Lets code in worker threads go on, one call at a time, when the run has nothing to do but wait for it.

    So a run that is cancelled while it waits for a thread has been told long before the thread is done.
    """

    QUIET = 5

    def __init__(self, clock):
        self.clock = clock
        self.waiting = []

    def wait(self):
        """Wait to be let through; in a worker thread."""
        passed = threading.Event()
        self.waiting.append(passed)
        assert passed.wait(10)

    async def open(self):
        """Let through what waits; in a task of its own, for ever."""
        quiet, last = 0, self.clock.now
        while True:
            await anyio.lowlevel.checkpoint()
            quiet, last = (quiet + 1, last) if self.clock.now == last else (0, self.clock.now)
            if quiet >= self.QUIET and self.waiting:
                self.waiting.pop(0).set()
                quiet = 0


class Ticking:
    """Awaits a coroutine, and lets a clock tick whenever it suspends."""

    def __init__(self, coroutine, clock):
        self.coroutine = coroutine
        self.clock = clock

    def __await__(self):
        step, argument = self.coroutine.send, None
        while True:
            try:
                waited = step(argument)
            except StopIteration as end:
                return end.value
            self.clock.tick()
            try:
                step, argument = self.coroutine.send, (yield waited)
            except BaseException as error:
                step, argument = self.coroutine.throw, error


async def on_asyncio(run, clock):
    """Await a coroutine function in a task, and cancel it when the clock says so; return its result, if it has one."""
    loop = asyncio.get_running_loop()
    before = asyncio.all_tasks()

    async def ticking(coroutine):
        return await Ticking(coroutine, clock)

    loop.set_task_factory(lambda loop, coroutine, **options: asyncio.Task(ticking(coroutine), loop=loop, **options))
    task = loop.create_task(run())
    clock.cancel = task.cancel
    try:
        return await task
    except asyncio.CancelledError:
        assert clock.fired
        return None
    finally:
        loop.set_task_factory(None)
        assert asyncio.all_tasks() == before


class Instrument(trio.abc.Instrument):
    """Lets a clock tick whenever a task suspends that did not exist before."""

    def __init__(self, clock):
        self.clock = clock
        self.tasks = set()

    def task_spawned(self, task):
        self.tasks.add(task)

    def after_task_step(self, task):
        if task in self.tasks:
            self.clock.tick()


async def on_trio(run, clock):
    """Await a coroutine function in a task, and cancel it when the clock says so; return its result, if it has one."""
    results = []

    async def keep():
        results.append(await run())

    before = trio.lowlevel.current_statistics().tasks_living
    instrument = Instrument(clock)
    trio.lowlevel.add_instrument(instrument)
    try:
        async with trio.open_nursery() as nursery:
            clock.cancel = nursery.cancel_scope.cancel
            nursery.start_soon(keep)
    finally:
        trio.lowlevel.remove_instrument(instrument)  # an instrument that raised is gone already, and this says so
        assert trio.lowlevel.current_statistics().tasks_living == before
    return results[0] if results else None


@pytest.mark.parametrize("way", ["ainvoke", "astream"])
def test_a_run_can_be_cancelled_at_every_suspension(loop, way, mix, jobs):
    on_loop = on_asyncio if loop.way == "asyncio" else on_trio

    async def cancelled(clock):
        mix.forget()
        parts = []
        gate = mix.gate = Gate(clock)
        async with anyio.create_task_group() as group:
            group.start_soon(gate.open)
            await anyio.lowlevel.checkpoint()
            result = await on_loop(lambda: mix.run(way, parts), clock)
            begun, ended = mix.begun.copy(), mix.ended.copy()
            assert not gate.waiting
            group.cancel_scope.cancel()
        for name in IN_THREADS:
            assert begun[name] == ended[name], "code in a worker thread was not waited for"
        assert jobs.done()
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        assert mix.begun == begun, "a node began after the run was over"
        mix.check(parts)
        assert result is None or result == ENDED
        if not clock.fired:
            assert result == ENDED
            assert way == "ainvoke" or values_in(parts) == VALUES
        mix.forget()
        assert await mix.run(way, []) == ENDED
        return result

    outcomes = []
    for at in count(1):
        clock = Clock(at)
        outcomes.append(loop.run(lambda clock=clock: cancelled(clock)))
        if not clock.fired:
            break
    assert len(outcomes) > 10
    assert outcomes[0] is None


@pytest.mark.parametrize("name", list(dict.fromkeys(LOG)))
@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_an_interrupt_from_the_keyboard_in_any_node_leaves_nothing(door, way, name, mix, jobs):
    def run(parts):
        if door.way != "sync":
            return door.run(lambda: mix.run(f"a{way}", parts))
        if way == "invoke":
            return mix.graph.invoke(GIVEN)
        parts.extend(mix.graph.stream(GIVEN, stream_mode=MODES, subgraphs=True))
        return values_in(parts)[-1]

    mix.forget()
    mix.trouble[name] = KeyboardInterrupt
    parts = []
    kinds = raised_by(lambda: run(parts))
    gc.collect()  # asyncio says of a task that such an error left that nobody asked for it
    assert kinds == {KeyboardInterrupt}
    begun = mix.begun.copy()
    assert jobs.done()
    assert mix.begun == begun
    mix.check(parts)
    mix.forget()
    assert run([]) == ENDED


def raised_by(run):
    """Return the types of what a function raises, those in a group for the group."""
    try:
        run()
    except BaseException as error:
        return set(flat(error))
    return set()


def flat(error):
    if not isinstance(error, BaseExceptionGroup):
        yield type(error)
        return
    for inner in error.exceptions:
        yield from flat(inner)


# ------------------------------------------------------------------------------------------------- runs that are stored

SAVERS = {
    "memory": lambda path: InMemorySaver(),
    "sqlite": lambda path: SqliteSaver(path / "runs.sqlite", synchronous="NORMAL"),
}


@pytest.fixture(params=[("memory", "sync"), ("sqlite", "sync"), ("sqlite", "async"), ("sqlite", "exit")], ids="-".join)
def stored(request, tmp_path):
    """The graph, stored in each way that differs in who writes, and when."""
    kind, durability = request.param
    with SAVERS[kind](tmp_path) as saver:
        mix = Mix(saver, durability=durability)
        mix.saver, mix.durability = saver, durability
        yield mix


def on_thread(name):
    return {"configurable": {"thread_id": str(name)}}


def held_by_runs(mix):
    """Return what stored runs hold: their threads, and their writers, who outlive the last commit by a moment."""
    threads = [info.thread_id for info in mix.saver.threads() if info.leased]
    return threads + [thread.name for thread in threading.enumerate() if thread.name == "pregel-group-commit"]


def check_stored(mix, config):
    """Check that a run left a whole superstep, and nothing that holds its thread; return how many are stored."""
    assert held_by_runs(mix) == []
    state = mix.graph.get_state(config)
    if state.metadata is None:
        return None
    return VALUES.index(state.values)


async def check_goes_on(mix, config):
    """Check what a run left, and that another one begins at once where that one was, and repeats nothing."""
    steps = check_stored(mix, config)
    mix.forget()
    given = GIVEN if steps is None else None
    assert await mix.graph.ainvoke(given, config) == ENDED
    again = Counter(name for names in STEPS[steps or 0 :] for name in names)
    assert mix.begun <= again
    return steps


@pytest.mark.parametrize("way", ["ainvoke", "astream"])
def test_a_stored_run_can_be_cancelled_at_every_suspension(loop, way, stored, jobs):
    on_loop = on_asyncio if loop.way == "asyncio" else on_trio
    mix = stored

    async def cancelled(clock):
        mix.forget()
        parts = []
        config = on_thread(clock.at)
        result = await on_loop(lambda: mix.run(way, parts, config=config), clock)
        begun = mix.begun.copy()
        assert jobs.done()
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        assert mix.begun == begun, "a node began after the run was over"
        mix.check(parts)
        assert result is None or result == ENDED
        steps = await check_goes_on(mix, config)
        shown = len(values_in(parts)) - 1
        if mix.durability != "async" and steps is not None:
            assert shown <= steps, "a reader was told of what is not stored"
        return steps

    found = []
    for at in count(1):
        clock = Clock(at)
        found.append(loop.run(lambda clock=clock: cancelled(clock)))
        if not clock.fired:
            break
    assert found[-1] == len(STEPS)
    assert len(set(found)) > 2, "too few supersteps were hit"


@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")  # trio says so of a stream that is not closed
@pytest.mark.parametrize("how", ["close", "forget"])
def test_leaving_a_stored_stream_early_lets_the_thread_go(loop, how, stored, jobs):
    mix = stored

    async def left(at):
        mix.forget()
        config = on_thread(at)
        parts = []
        stream = mix.graph.astream(GIVEN, config, stream_mode=MODES, subgraphs=True)
        async for part in stream:
            parts.append(part)
            if len(parts) == at:
                break
        if how == "close":
            await stream.aclose()
        else:
            del stream
            deadline = monotonic() + 10
            while held_by_runs(mix) and monotonic() < deadline:
                await anyio.lowlevel.checkpoint()
        mix.check(parts)
        await check_goes_on(mix, config)
        return len(parts) < at

    for at in count(1, 2):
        if loop.run(lambda at=at: left(at)):
            break
    assert at > len(VALUES)


def test_a_run_that_waits_for_its_thread_can_be_cancelled_at_every_suspension(loop, stored, jobs, monkeypatch):
    monkeypatch.setattr("pregel.holding.PATIENCE", 0)
    on_loop = on_asyncio if loop.way == "asyncio" else on_trio
    mix = stored
    config = on_thread("taken")

    async def cancelled(at):
        clock = Clock(at)
        stream = mix.graph.astream(GIVEN, config, stream_mode="values")
        await anext(stream)  # has the thread
        mix.forget()
        assert await on_loop(lambda: mix.run("ainvoke", [], config=config, on_busy="wait"), clock) is None
        assert clock.fired
        assert not mix.begun["late"]
        assert [thread.leased for thread in mix.saver.threads()] == [True]
        await stream.aclose()
        assert not any(thread.leased for thread in mix.saver.threads())

    for at in range(1, 8):
        loop.run(lambda at=at: cancelled(at))


class HaltingSaver(FaultySaver):
    """A checkpointer whose n-th operation, before or after its work, takes until it is told to go on."""

    def __init__(self, saver, at, *, after):
        super().__init__(saver, at, after=after)
        self.halted = threading.Event()
        self.told = threading.Event()
        self.done = threading.Event()

    def _operate(self, operation, *args, **options):
        self.operations.append(operation.__name__)
        halts = len(self.operations) == self.fail_at
        if halts and not self.after:
            self.halt()
        try:
            return operation(*args, **options)
        finally:
            if halts and self.after:
                self.halt()
            if halts:
                self.done.set()

    def halt(self):
        self.halted.set()
        assert self.told.wait(10)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("durability", ["sync", "exit"])
def test_a_run_that_is_cancelled_while_it_stores_waits_for_that(loop, durability, after, tmp_path, jobs):
    mix = Mix(durability=durability)
    mix.durability = durability

    async def cancelled(at, saver):
        halting = HaltingSaver(saver, at, after=after)
        mix.saver = saver
        mix.graph._persistence = replace(mix.graph._persistence, checkpointer=halting)
        mix.forget()
        config = on_thread(at)
        result = []

        async def main():
            result.append(await mix.run("ainvoke", [], config=config))

        async with running(loop, main) as task:
            while not (halting.halted.is_set() or task.done()):
                await anyio.lowlevel.checkpoint()
            task.cancel()
            for _ in range(10):
                await anyio.lowlevel.checkpoint()
            halting.told.set()
        if halting.halted.is_set():
            assert halting.done.is_set(), "the run was over before its storage was"
        else:
            assert result == [ENDED]
        mix.graph._persistence = replace(mix.graph._persistence, checkpointer=saver)
        await check_goes_on(mix, config)
        return not halting.halted.is_set()

    with SqliteSaver(tmp_path / "runs.sqlite", synchronous="NORMAL") as saver:
        for at in count(1):
            if loop.run(lambda at=at: cancelled(at, saver)):
                break
    assert at > (5 if durability == "sync" else 3)  # that one claims, looks for a graph inside, and writes at its end


class Running:
    """A task that can be cancelled, of asyncio or of trio."""

    def __init__(self, cancel):
        self.cancel = cancel
        self.over = False

    def done(self):
        return self.over


@asynccontextmanager
async def running(loop, main):
    """Run a coroutine function beside the block, and let it end; it is cancelled in the loop's own way."""

    async def noted():
        try:
            await main()
        finally:
            handle.over = True

    if loop.way == "trio":
        async with trio.open_nursery() as nursery:
            scope = trio.CancelScope()
            handle = Running(scope.cancel)

            async def scoped():
                with scope:
                    await noted()

            nursery.start_soon(scoped)
            yield handle
        return
    task = asyncio.get_running_loop().create_task(noted())
    handle = Running(task.cancel)
    yield handle
    with suppress(asyncio.CancelledError):
        await task
