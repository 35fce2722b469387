"""Stored contexts: what was written is there again, also after a crash, and there is one writer."""

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from pregel import InMemorySaver, SqliteSaver, interrupt
from pregel.checkpoint.postgres import PostgresSaver
from pregel.errors import EncodeError, InvalidIdError
from pregel.graph.agent import ScriptedModel
from pregel.graph.flow.agents import SimpleAgent
from pregel.graph.flow.context import FlowContext
from pregel.graph.flow.errors import ContextBusyError, FlowRunError
from pregel.graph.flow.flowgraph import FlowGraph
from pregel.graph.flow.resources import Resource
from pregel.graph.flow.session import AgentSession
from tests.flow.dying import graph as dying
from tests.flow.flows import said, tokens
from tests.flow.running import nodes, resume, run

ROOT = Path(__file__).parents[2]


def test_a_write_is_stored_when_it_returns_and_a_delete_too(saver):
    with FlowContext.open("job", saver) as ctx:
        ctx.update({"order.id": "SO-1001", "none": None, "gone": 1})
        del ctx["gone"]
        ctx["order.id"] = "SO-1002"
    with FlowContext.open("job", saver) as ctx:
        assert dict(ctx) == {"order.id": "SO-1002", "none": None}
        assert ctx.id == "job"


def test_postgres_keeps_a_context_as_well(postgres):
    with PostgresSaver(postgres) as saver:
        with FlowContext.open("job", saver) as ctx:
            ctx["n"] = 1
            FlowGraph("g").add_activity("a", lambda ctx: ctx.update(n=ctx["n"] + 1)).run(ctx)
        with FlowContext.open("job", saver) as ctx:
            assert dict(ctx) == {"n": 2}
            assert nodes(ctx) == ["a"]


def test_the_values_that_an_open_context_has_been_given_are_stored_one_by_one(saver):
    with FlowContext.open("job", saver) as ctx:
        for number in range(5):
            ctx[f"k{number}"] = number
        with pytest.raises(EncodeError, match="'bad'"):
            ctx.update({"k0": 9, "bad": object()})
    with FlowContext.open("job", saver) as ctx:
        assert dict(ctx) == {f"k{number}": number for number in range(5)}


def test_m1_a_second_writer_on_one_stored_id_is_refused(saver):
    with FlowContext.open("job", saver) as ctx:
        with pytest.raises(ContextBusyError, match="'job' is open already"):
            FlowContext.open("job", saver)
        with FlowContext.open("other", saver) as other:
            other["x"] = 1
        ctx["x"] = 2
    with FlowContext.open("job", saver) as ctx:
        assert ctx["x"] == 2


def test_two_contexts_of_one_id_that_are_not_stored_are_two_contexts():
    first, second = FlowContext("job"), FlowContext("job")
    first["x"] = 1
    assert "x" not in second


def test_a_closed_context_can_be_read_and_not_written(saver):
    ctx = FlowContext.open("job", saver)
    ctx["x"] = 1
    ctx.close()
    ctx.close()
    assert ctx["x"] == 1
    for write in (
        lambda: ctx.update(x=2),
        lambda: ctx.pop("x"),
        lambda: AgentSession(ctx).add("Hello"),
        lambda: FlowGraph("g").add_activity("a", lambda ctx: ctx.update(x=3)).run(ctx),
    ):
        with pytest.raises(FlowRunError, match="was closed"):
            write()
    assert dict(ctx) == {"x": 1}
    assert AgentSession(ctx).messages == ()


def test_a_context_in_memory_has_nothing_to_close():
    with FlowContext("job", x=1) as ctx:
        pass
    ctx["x"] = 2
    assert dict(ctx) == {"x": 2}


def test_a_context_is_not_closed_under_a_run(saver):
    with FlowContext.open("job", saver) as ctx:
        graph = FlowGraph("g").add_activity("a", lambda view: view.close())
        with pytest.raises(ContextBusyError, match="can't be closed while graph 'g' runs"):
            graph.run(ctx)


def test_an_id_that_can_not_be_one_is_refused(saver):
    with pytest.raises(InvalidIdError):
        FlowContext.open("", saver)
    assert saver.threads() == []


def test_a_context_that_was_never_closed_says_so():
    left = [FlowContext.open("job", InMemorySaver())]

    def leave():
        left.clear()
        gc.collect()

    with pytest.warns(ResourceWarning, match="'job/@context' was never closed"):
        leave()


# -- runs --------------------------------------------------------------------------------------------------------------


def test_a_run_of_a_stored_context_goes_on_after_it_was_closed(door, saver):
    graph = (
        FlowGraph("g")
        .add_activity("ask", lambda ctx: ctx.update(answer=interrupt("?")), to="end")
        .add_activity("end", lambda ctx: ctx.update(end=ctx["rate"]))
    )
    with FlowContext.open("job", saver) as ctx:
        ctx["rate"] = 1
        assert run(door, graph, ctx).status == "paused"
    with FlowContext.open("job", saver) as ctx:
        ctx["rate"] = 2
        assert AgentSession(ctx).pending_reason == "?"
        assert resume(door, graph, ctx, "yes").status == "finished"
    with FlowContext.open("job", saver) as ctx:
        assert dict(ctx) == {"rate": 2, "answer": "yes", "end": 2}
        assert [(visit.node, visit.status) for visit in ctx.trace] == [
            ("ask", "paused"),
            ("ask", "done"),
            ("end", "done"),
        ]
        assert ctx.cursor(graph).status == "finished"


def test_a_failed_run_of_a_stored_context_keeps_what_was_committed(door, saver):
    def fail(ctx):
        ctx["second"] = 1
        raise ValueError("no")

    graph = FlowGraph("g").add_activity("a", lambda ctx: ctx.update(first=1), to="b").add_activity("b", fail)
    with FlowContext.open("job", saver) as ctx, pytest.raises(ValueError, match="no"):
        run(door, graph, ctx)
    with FlowContext.open("job", saver) as ctx:
        assert dict(ctx) == {"first": 1}
        assert [(visit.node, visit.status) for visit in ctx.trace] == [("a", "done"), ("b", "failed")]
        assert ctx.cursor(graph).next == ("b",)


def test_conversation_and_traces_are_stored_with_the_context(door, saver):
    agent = SimpleAgent(Resource("m"), name="a", instruction="?", output_key="out")
    graph = FlowGraph("g").add_agent(agent)
    for number in range(6):
        with FlowContext.open("job", saver) as ctx:
            AgentSession(ctx).add(f"hello {number}")
            run(door, graph, ctx, resources={"m": ScriptedModel([said(f"answer {number}", 1, 1)])})
    with FlowContext.open("job", saver) as ctx:
        assert [message.text for message in AgentSession(ctx).messages] == [
            text for number in range(6) for text in (f"hello {number}", "?", f"answer {number}")
        ]
        assert tokens(agent.trace(ctx).metrics) == (6, 0, 6, 6, 12)
        assert nodes(ctx) == ["a"] * 6


def test_a_stored_context_tells_in_its_snapshot_what_is_needed(saver):
    def approve():
        """Ask a human."""
        return interrupt("?")

    agent = SimpleAgent(Resource("model"), name="a", instruction="?", tools=[approve])
    with FlowContext.open("job", saver) as ctx:
        FlowGraph("g").add_agent(agent).run(ctx, resources={"model": ScriptedModel([said("", calls=["approve"])])})
    with FlowContext.open("job", saver) as ctx:
        assert '"resources": [\n  "model"\n ]' in ctx.to_json()


def test_what_is_stored_grows_with_the_logs_and_not_with_their_square():
    saver = InMemorySaver()
    graph = FlowGraph("g").add_activity("a", lambda _: None)

    def stored_bytes():
        return sum(
            len(row.blob)
            for (_, namespace), line in saver._threads["job/@context"].lines.items()
            for name, rows in line.values.items()
            for row in rows
            if name == "@trace" and namespace == ()
        )

    sizes = []
    with FlowContext.open("job", saver) as ctx:
        for number in range(1, 257):
            graph.run(ctx)
            if number in {64, 256}:
                sizes.append(stored_bytes())
        seen = ctx.trace
    assert sizes[1] < 6 * sizes[0]  # 4 times the runs; the square would be 16
    with FlowContext.open("job", saver) as ctx:
        assert ctx.trace == seen


def test_a_store_that_was_pruned_still_has_the_context(saver):
    graph = FlowGraph("g").add_activity("a", lambda ctx: ctx.update(n=ctx.get("n", 0) + 1))
    with FlowContext.open("job", saver) as ctx:
        for number in range(20):
            ctx[f"k{number % 3}"] = number
            graph.run(ctx)
        del ctx["k0"]
        before = dict(ctx), ctx.trace
        saver.prune(keep_last=1)
        ctx["after"] = 1
        del ctx["after"]
    saver.prune(keep_last=1)
    with FlowContext.open("job", saver) as ctx:
        assert (dict(ctx), ctx.trace) == before
        graph.run(ctx)
        assert ctx["n"] == 21


# -- what goes wrong ---------------------------------------------------------------------------------------------------


#: How many writes a run of the graph below makes at least; where tasks end apart there are more.
FEWEST = 10


class Failing(InMemorySaver):
    """Fails after a number of writes: to the context's own thread, or to any."""

    def __init__(self, end="/@context"):
        super().__init__()
        self.left = None
        self.end = end

    def write(self, thread_id, token, writes):
        if self.left is not None and thread_id.endswith(self.end):
            self.left -= 1
            if self.left < 0:
                raise OSError("the disk is full")
        super().write(thread_id, token, writes)


def test_a_write_that_the_storage_refuses_changes_nothing():
    saver = Failing()
    with FlowContext.open("job", saver) as ctx:
        ctx["x"] = 1
        saver.left = 0
        for write in (lambda: ctx.update(x=2, y=3), lambda: ctx.pop("x"), lambda: AgentSession(ctx).add("Hello")):
            with pytest.raises(OSError, match="disk is full"):
                write()
        assert dict(ctx) == {"x": 1}
        assert AgentSession(ctx).messages == ()
        saver.left = None
        ctx["y"] = 2
    with FlowContext.open("job", saver) as ctx:
        assert dict(ctx) == {"x": 1, "y": 2}


@pytest.mark.parametrize("writes", [0, 1])
def test_a_run_that_can_not_be_noted_begins_not_and_one_whose_end_can_not_is_found_again(writes, door):
    saver, ran = Failing(), []

    def count(ctx):
        ran.append(1)
        ctx["x"] += 1

    graph = FlowGraph("g").add_activity("a", count)
    ctx = FlowContext.open("job", saver)
    ctx["x"] = 1
    saver.left = writes
    with pytest.raises(OSError, match="disk is full"):
        run(door, graph, ctx)
    assert ran == [1] * writes
    saver.left = None
    ctx.close()
    with FlowContext.open("job", saver) as ctx:
        assert dict(ctx) == {"x": 1 + writes}
        assert nodes(ctx) == ["a"] * writes


def test_a_run_that_died_before_it_began_takes_nothing_back_from_the_one_before(door):
    saver = Failing("")
    graph = FlowGraph("g").add_activity("a", lambda ctx: ctx.update(n=ctx["n"] + 1))
    ctx = FlowContext.open("job", saver)
    ctx["n"] = 1
    run(door, graph, ctx)
    ctx["n"] = 10
    saver.left = 1  # the mark is stored, and the input is not
    with pytest.raises(OSError, match="disk is full"):
        run(door, graph, ctx)
    saver.left = None
    ctx.close()
    with FlowContext.open("job", saver) as ctx:
        assert dict(ctx) == {"n": 10}
        assert nodes(ctx) == ["a"]


@pytest.mark.parametrize("way", ["opened again", "from a text"])
@pytest.mark.parametrize("writes", range(16))
def test_a_storage_that_fails_at_any_write_of_a_run_loses_and_doubles_nothing(writes, way, door):
    saver = Failing("")
    agent = SimpleAgent(ScriptedModel(lambda _: said("a", 1, 1)), name="agent", instruction="?", output_key="out")
    graph = (
        FlowGraph("g")
        .add_activity("first", lambda ctx: ctx.update(n=ctx["n"] + 1), to="fork")
        .add_parallel("fork", ["agent", "other"])
        .add_agent(agent, to="join")
        .add_activity("other", lambda ctx: ctx.update(other=ctx["n"]), to="join")
        .add_join("join", to="last")
        .add_activity("last", lambda ctx: ctx.update(n=ctx["n"] + 1))
    )
    ctx = FlowContext.open("job", saver)
    ctx["n"] = 1
    saver.left = writes
    disturbed = None
    try:
        run(door, graph, ctx)
    except OSError as error:
        disturbed = error
    saver.left = None
    ctx.close()
    with FlowContext.open("job", saver) if way == "opened again" else FlowContext.from_json(ctx.to_json()) as ctx:
        cursor = graph.cursor(ctx)
        done = set(nodes(ctx))
        assert ctx["n"] == 1 + ("first" in done) + ("last" in done)
        assert ("out" in ctx, "other" in ctx) == ("agent" in done, "other" in done)
        if cursor.status == "unfinished":
            resume(door, graph, ctx)
        elif not done:
            run(door, graph, ctx)
        assert dict(ctx) == {"n": 3, "out": "a", "other": 2}
        assert nodes(ctx) == ["first", "fork", "agent", "other", "join", "last"]
        assert tokens(agent.trace(ctx).metrics) == (1, 0, 1, 1, 2)
        assert disturbed is None if writes > FEWEST + 2 else writes >= FEWEST or disturbed is not None


def test_who_has_lost_its_lease_writes_nothing_more():
    saver = InMemorySaver()
    late = FlowContext.open("job", saver)
    late["x"] = 1
    saver._threads["job/@context"].expires = 0.0  # as if its machine had slept
    with FlowContext.open("job", saver) as ctx:
        ctx["x"] = 2
        with pytest.raises(ContextBusyError, match="opened by somebody else"):
            late["x"] = 3
        assert late["x"] == 1
        with pytest.raises(ContextBusyError, match="opened by somebody else"):
            FlowGraph("g").add_activity("a", lambda ctx: ctx.update(x=4)).run(late)
    late.close()
    with FlowContext.open("job", saver) as ctx:
        assert dict(ctx) == {"x": 2}


def other_process(path, what):
    """Start a process that opens the context."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.flow.dying", str(path), what],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )


def test_m1_another_process_that_has_a_context_open_is_the_one_writer(tmp_path):
    path = tmp_path / "jobs.sqlite"
    with other_process(path, "hold") as holder, SqliteSaver(path) as saver:
        assert holder.stdout.readline() == b"open\n"
        with pytest.raises(ContextBusyError, match=rf"process {holder.pid} "):
            FlowContext.open("job", saver)
        holder.communicate()
        with FlowContext.open("job", saver) as ctx:  # it is dead, so its lease counts no more
            assert dict(ctx) == {"given": 1}


def test_what_a_run_had_committed_when_its_process_died_is_there_and_the_run_goes_on(tmp_path):
    path = tmp_path / "jobs.sqlite"
    with other_process(path, "die") as dead:
        dead.communicate()
    assert dead.returncode == 9
    ran = []
    with SqliteSaver(path) as saver:
        with FlowContext.open("job", saver) as ctx:
            assert dict(ctx) == {"given": 1, "first": 2, "total": 10, "highest": 5}
            assert nodes(ctx) == ["first"]
        with FlowContext.open("job", saver) as ctx:  # what was taken back is not taken back again
            assert nodes(ctx) == ["first"]
            graph = dying(lambda _: ran.append("second"))
            assert graph.cursor(ctx).next == ("second",)
            assert graph.resume(ctx).status == "finished"
            assert ctx["last"] == 15
            assert nodes(ctx) == ["first", "second", "third"]
    assert ran == ["second"]
