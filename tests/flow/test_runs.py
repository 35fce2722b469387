"""Runs of flow graphs on a context: what is handed over, taken back, refused, and gone on with."""

import asyncio

import pytest

from pregel import END, interrupt
from pregel.errors import InvalidConcurrentUpdateError, InvalidResumeError, MutatedStateError
from pregel.graph.flow import (
    AgentSession,
    ContextBusyError,
    ContextKeyError,
    FlowContext,
    FlowDefinitionError,
    FlowError,
    FlowGraph,
    FlowNode,
    FlowRunError,
    Outcome,
    Visit,
)
from pregel.types import RetryPolicy
from tests.flow.running import both, chain, nodes, resume, run


@pytest.mark.parametrize("awaits", [False, True])
def test_a_chain_reads_and_writes_the_context_it_is_run_on(door, awaits):
    def load(ctx, node):
        ctx.update({"order.id": "SO-1001", "order.amount": 15000.0})
        del ctx["old"]
        ctx["none"] = None

    def check(ctx, node):
        assert "old" not in ctx
        ctx["route.level"] = "HIGH" if ctx["order.amount"] > 10_000 else "LOW"

    ctx = FlowContext(old=1)
    graph = chain(both(load, awaits=awaits), check)
    assert run(door, graph, ctx) == Outcome("finished")
    assert dict(ctx) == {"order.id": "SO-1001", "order.amount": 15000.0, "none": None, "route.level": "HIGH"}


def test_an_activity_is_told_of_itself(door):
    told = []
    graph = FlowGraph("g").add_activity("a", lambda ctx, node: told.append(node), meta={"owner": "ann"})
    run(door, graph, FlowContext("job"))
    assert told == [FlowNode("g", "a", "activity", {"owner": "ann"}, 1, 1, "job/g|1:0:a")]


def test_what_an_activity_returns_would_be_lost_and_is_an_error(door):
    with pytest.raises(FlowError, match=r"activity 'n1' of graph 'g' returned 5"):
        run(door, chain(lambda ctx: 5), FlowContext())

    async def later():
        return 5

    with pytest.raises(FlowError, match=r"async def"):
        run(door, chain(lambda ctx: later()), FlowContext())


def test_a_failed_activity_leaves_nothing_and_runs_again_alone(door):
    fails = [True]

    def second(ctx):
        ctx["half"] = True
        if fails:
            raise ValueError("no")
        ctx["second"] = ctx["first"] + 1

    ctx, graph = FlowContext(), chain(lambda ctx: ctx.update(first=1), second)
    with pytest.raises(ValueError, match=r"no"):
        run(door, graph, ctx)
    assert dict(ctx) == {"first": 1}
    assert ctx.cursor(graph)[:3] == ("g", "unfinished", ("n2",))
    fails.clear()
    resume(door, graph, ctx)
    assert dict(ctx) == {"first": 1, "half": True, "second": 2}
    assert [visit[1:4] for visit in ctx.trace] == [("n1", 1, "done"), ("n2", 2, "failed"), ("n2", 3, "done")]


def test_a_branch_that_ended_beside_one_that_failed_is_not_run_again(door):
    ran, fails = [], [True]

    def bad(ctx):
        if fails:
            raise ValueError
        ctx["bad"] = 1

    graph = FlowGraph("g").add_parallel("fork", ["good", "bad"])
    graph.add_activity("good", lambda ctx: ran.append(1) or ctx.update(good=1), to="join")
    graph.add_activity("bad", bad, to="join")
    graph.add_join("join", to="end").add_activity("end", lambda ctx: ctx.update(end=1))
    ctx = FlowContext()
    with pytest.raises(ValueError):
        run(door, graph, ctx)
    assert dict(ctx) == {}
    fails.clear()
    resume(door, graph, ctx)
    assert ran == [1]
    assert dict(ctx) == {"good": 1, "bad": 1, "end": 1}
    assert sorted(nodes(ctx)) == ["bad", "end", "fork", "good", "join"]


def test_an_activity_may_be_tried_again_and_only_the_last_attempt_counts(door):
    attempts = []

    def work(ctx, node):
        attempts.append(node.attempt)
        ctx[f"attempt.{node.attempt}"] = True
        if node.attempt == 1:
            ctx.stop("never said")
            raise ConnectionError

    graph = FlowGraph("g").add_activity("a", work, retry_policy=RetryPolicy(initial_interval=0), to="b")
    graph.add_activity("b", lambda ctx: None)
    ctx = FlowContext()
    assert run(door, graph, ctx).status == "finished"
    assert attempts == [1, 2]
    assert dict(ctx) == {"attempt.2": True}


# --- pauses and stops -------------------------------------------------------------------------------------------------


def asking(ctx):
    answer = interrupt({"question": "ok?"})
    ctx["answer"] = answer


def test_a_paused_run_gives_back_the_data_and_goes_on_with_the_answer(door):
    ctx, graph = FlowContext(), chain(lambda ctx: ctx.update(a=1), asking, lambda ctx: ctx.update(c=ctx["extra"]))
    outcome = run(door, graph, ctx)
    assert outcome.status == "paused"
    assert [each.value for each in outcome.pending] == [{"question": "ok?"}]
    assert dict(ctx) == {"a": 1}
    assert ctx.cursor(graph).pending == outcome.pending
    assert (nodes(ctx, "paused"), ctx.last_node) == (["n2"], "n2")
    ctx["extra"] = "given meanwhile"
    assert resume(door, graph, ctx, None) == Outcome("finished")
    assert dict(ctx) == {"a": 1, "extra": "given meanwhile", "answer": None, "c": "given meanwhile"}


def test_questions_of_branches_are_answered_by_id_or_one_by_one(door):
    graph = FlowGraph("g").add_parallel("fork", ["a", "b", "c"])
    for name in ("a", "b"):
        graph.add_activity(name, lambda ctx, node: ctx.update({node.name: interrupt(node.name)}), to="join")
    graph.add_activity("c", lambda ctx: ctx.update(c=ctx.get("c", 0) + 1), to="join")
    graph.add_join("join", to="end").add_activity("end", lambda ctx: ctx.update(end=sorted(ctx)))
    ctx = FlowContext()
    first, second = run(door, graph, ctx).pending
    with pytest.raises(InvalidResumeError):
        resume(door, graph, ctx, "bare")
    outcome = resume(door, graph, ctx, {second.id: 2})
    assert outcome.pending == (first,)
    assert resume(door, graph, ctx, 1).status == "finished"
    assert dict(ctx) == {"a": 1, "b": 2, "c": 1, "end": ["a", "b", "c"]}


def test_run_and_resume_are_two_things(door):
    ctx, graph = FlowContext(), chain(lambda ctx: ctx.update(n=ctx.get("n", 0) + 1), asking)
    with pytest.raises(FlowRunError, match=r"nothing unfinished on context"):
        resume(door, graph, ctx)
    run(door, graph, ctx)
    with pytest.raises(FlowRunError, match=r"unfinished run.*due is n2.*restart=True"):
        run(door, graph, ctx)
    with pytest.raises(FlowRunError, match=r"waits .* for .*ok.*resume"):
        resume(door, graph, ctx)
    assert ctx["n"] == 1
    run(door, graph, ctx, restart=True)
    assert ctx["n"] == 2
    resume(door, graph, ctx, "yes")
    with pytest.raises(FlowRunError, match=r"nothing unfinished"):
        resume(door, graph, ctx, "yes")
    run(door, graph, ctx)
    assert (ctx["n"], ctx["answer"]) == (3, "yes")


def test_an_activity_stops_the_run_after_its_superstep(door):
    graph = FlowGraph("g").add_parallel("fork", ["a", "b"])
    graph.add_activity("a", lambda ctx: ctx.stop("lunch"), to="join")
    graph.add_activity("b", lambda ctx: ctx.update(b=1), to="join")
    graph.add_join("join", to="end").add_activity("end", lambda ctx: ctx.update(end=1))
    ctx = FlowContext()
    assert run(door, graph, ctx) == Outcome("stopped", reason="lunch")
    assert dict(ctx) == {"b": 1}
    assert resume(door, graph, ctx) == Outcome("finished")
    assert nodes(ctx) == ["fork", "a", "b", "join", "end"]


def test_a_run_is_stopped_from_outside(door):
    ctx = FlowContext()
    graph = chain(lambda c: ctx.stop("shutdown"), lambda c: c.update(a=1))
    assert run(door, graph, ctx) == Outcome("stopped", reason="shutdown")
    assert ctx.cursor(graph).next == ("n2",)


def test_a_stop_of_the_last_node_stops_nothing(door):
    assert run(door, chain(lambda ctx: ctx.stop()), FlowContext()) == Outcome("finished")


# --- one context ------------------------------------------------------------------------------------------------------


def test_graphs_share_a_context_and_none_moves_the_others_cursor(door):
    first = chain(lambda ctx: ctx.update(a=1), asking, name="first")
    second = chain(lambda ctx: ctx.update(b=ctx["a"] + 1), asking, name="second")
    ctx = FlowContext("risk-job-001")
    run(door, first, ctx)
    run(door, second, ctx)
    assert dict(ctx) == {"a": 1, "b": 2}
    assert (ctx.cursor(first).next, ctx.cursor(second).next) == (("n2",), ("n2",))
    resume(door, first, ctx, "one")
    assert (ctx.cursor(first).status, ctx.cursor(second).status) == ("finished", "unfinished")
    resume(door, second, ctx, "two")
    assert dict(ctx) == {"a": 1, "b": 2, "answer": "two"}
    assert [(visit.graph, visit.node) for visit in ctx.trace if visit.status == "done"] == [
        ("first", "n1"), ("second", "n1"), ("first", "n2"), ("second", "n2")
    ]  # fmt: skip


def test_a_graph_runs_on_any_number_of_contexts(door):
    graph = chain(lambda ctx: ctx.update(double=ctx["n"] * 2), asking)
    contexts = [FlowContext(n=n) for n in range(3)]
    for ctx in contexts:
        run(door, graph, ctx)
    resume(door, graph, contexts[1], "y")
    assert [ctx["double"] for ctx in contexts] == [0, 2, 4]
    assert [ctx.cursor(graph).status for ctx in contexts] == ["unfinished", "finished", "unfinished"]


def test_a_context_takes_one_run_at_a_time_and_no_writes_from_outside(door):
    ctx = FlowContext(a=1)
    other = chain(lambda c: None, name="other")
    errors = []

    def work(c):
        for change in (lambda: ctx.update(a=2), lambda: ctx.pop("a"), lambda: other.run(ctx)):
            with pytest.raises(ContextBusyError) as caught:
                change()
            errors.append(str(caught.value))
        c["a"] = ctx["a"] + 2

    run(door, chain(work), ctx)
    assert dict(ctx) == {"a": 3}
    assert all("graph 'g'" in error for error in errors)
    run(door, other, ctx)
    ctx["a"] = 4


def test_a_context_is_free_again_after_an_error(door):
    ctx = FlowContext()
    with pytest.raises(ZeroDivisionError):
        run(door, chain(lambda c: 1 / 0), ctx)
    with pytest.raises(FlowRunError):
        run(door, chain(lambda c: None), ctx)
    ctx["a"] = 1
    run(door, chain(lambda c: None), ctx, restart=True)


def test_scoped_values_reach_the_nodes_and_are_not_stored(door):
    seen = []
    ctx = FlowContext(user="ann")
    graph = chain(lambda c: seen.append((c["user"], c["order.id"])))
    with ctx.scoped({"order.id": 7}, user="bob"):
        run(door, graph, ctx)
    assert seen == [("bob", 7)]
    assert dict(ctx) == {"user": "ann"}


def test_an_overlay_of_a_branch_is_its_own(door):
    seen = {}
    graph = FlowGraph("g").add_parallel("fork", ["a", "b"])

    def work(ctx, node):
        with ctx.scoped(who=node.name):
            seen[node.name] = ctx["who"]

    graph.add_activity("a", work).add_activity("b", work)
    run(door, graph, FlowContext(who="all"))
    assert seen == {"a": "a", "b": "b"}


def test_the_trace_tells_what_ran_and_is_no_data(door):
    seen = []
    ctx, graph = FlowContext(), chain(lambda c: None, lambda c: seen.append((c.trace, c.last_node)))
    run(door, graph, ctx)
    assert [visit[:4] for visit in ctx.trace] == [("g", "n1", 1, "done"), ("g", "n2", 2, "done")]
    assert all(type(visit) is Visit and visit.duration >= 0 for visit in ctx.trace)
    assert seen == [(ctx.trace[:1], "n1")]
    assert ctx.last_node == "n2"
    assert dict(ctx) == {}


# --- ended early, refused, pruned -------------------------------------------------------------------------------------


def test_a_cancelled_run_gives_back_what_it_committed(loop):
    import anyio

    async def main():
        async def hang(ctx):
            entered.set()
            await anyio.sleep_forever()

        entered = anyio.Event()
        graph = chain(lambda ctx: ctx.update(a=1), hang)
        async with anyio.create_task_group() as group:
            group.start_soon(graph.arun, ctx)
            await entered.wait()
            group.cancel_scope.cancel()
        assert dict(ctx) == {"a": 1}
        assert ctx.cursor(graph).next == ("n2",)
        ctx["b"] = 2

    ctx = FlowContext()
    loop.run(main)


def test_two_runs_on_one_context_at_once_are_refused_on_a_loop():
    async def main():
        async def wait(ctx):
            entered.set()
            await free.wait()

        entered, free = asyncio.Event(), asyncio.Event()
        ctx, graph = FlowContext(), chain(wait)
        first = asyncio.create_task(graph.arun(ctx))
        await entered.wait()
        with pytest.raises(ContextBusyError, match=r"one run at a time"):
            await graph.arun(ctx)
        free.set()
        assert await first == Outcome("finished")

    asyncio.run(main())


def test_a_definition_error_frees_the_context(door):
    ctx = FlowContext()
    with pytest.raises(FlowDefinitionError):
        run(door, FlowGraph("g"), ctx)
    ctx["a"] = 1


def test_a_context_in_memory_does_not_grow_with_its_runs(door):
    def rows():
        lines = ctx.home.saver._threads["job/g"].lines.values()
        values = [found for line in lines for rows in line.values.values() for found in rows]
        return sum(len(line.checkpoints) for line in lines), len(values)

    ctx = FlowContext("job", n=0)
    graph = chain(*[lambda c: c.update(n=c["n"] + 1)] * 5)
    run(door, graph, ctx)
    before = rows()
    for _ in range(5):
        run(door, graph, ctx)
    assert ctx["n"] == 30
    assert rows() == before
    assert before[0] == 1


def test_nothing_of_a_paused_run_is_lost_with_the_history(door):
    ctx = FlowContext()
    graph = FlowGraph("g").add_parallel("fork", ["a", "b"])
    graph.add_activity("a", lambda c: c.update(a=c.get("a", 0) + 1), to="join").add_activity("b", asking, to="join")
    graph.add_join("join", to="end").add_activity("end", lambda c: c.update(end=1))
    assert run(door, graph, ctx).status == "paused"
    assert resume(door, graph, ctx, "x").status == "finished"
    assert dict(ctx) == {"a": 1, "answer": "x", "end": 1}


def test_what_is_no_context_is_refused():
    with pytest.raises(FlowRunError, match=r"graph 'g' runs on a FlowContext, such as the .ctx of a session, not "):
        chain(lambda ctx: None).run(AgentSession())


def test_a_view_whose_task_has_ended_takes_no_writes(door):
    views = []
    ctx = FlowContext(a=1)
    run(door, chain(views.append), ctx)
    with pytest.raises(ContextKeyError, match=r"'a' can't be changed here: its task has ended, and the write would be"):
        views[0]["a"] = 2
    assert views[0]["a"] == 1


CHANGES = {
    "an activity": lambda graph: graph.add_activity("n1", lambda ctx: ctx["l"].append(1)),
    "a condition": lambda graph: graph.add_exclusive("n1", [(lambda ctx: ctx["l"].append(1) or True, END)]),
    "a loop": lambda graph: graph.add_loop(
        "n1", over=lambda ctx: ctx["l"].append(1) or [], item="i", body="n2"
    ).add_activity("n2", print, to="n1"),
    "what it sets": lambda graph: graph.add_activity("n1", lambda ctx: ctx.update(l=ctx["l"].append(1) or ctx["l"])),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_value_that_is_changed_in_place_is_found_with_debug_and_the_key_is_named(name, door):
    expected = r"node 'n1' of graph 'g' changed the value of 'l' in place.* set ctx\['l'\] = \.\.\.\n"
    ctx = FlowContext(l=[], other=[1])
    with pytest.raises(MutatedStateError, match=expected):
        run(door, CHANGES[name](FlowGraph("g", debug=True)), ctx)
    assert ctx["l"] == []
    with pytest.raises(MutatedStateError, match=expected):
        door.invoke(CHANGES[name](FlowGraph("g")).compile(debug=True), {"data": {"l": []}})


def test_with_debug_what_only_reads_and_sets_runs_as_without(door):
    ctx = FlowContext(l=[])
    graph = chain(lambda c: c.update(l=[*c["l"], 1]), lambda c: c.update(n=c["l"][0]), debug=True)
    run(door, graph, ctx)
    assert dict(ctx) == {"l": [1], "n": 1}


def test_two_branches_that_write_one_key_are_named_with_the_remedy(door):
    graph = FlowGraph("g").add_parallel("fork", ["a", "b"])
    graph.add_activity("a", lambda c: c.update(level=1)).add_activity("b", lambda c: c.update(level=2))
    ctx = FlowContext()
    with pytest.raises(InvalidConcurrentUpdateError, match=r"node 'a' .*node 'b' ") as caught:
        run(door, graph, ctx)
    assert (
        "Branches side by side write the key 'level', and neither counts more than the other: give each a key"
        in str(caught.value)
    )
    assert "Key(type, 'level', reducer=...)" in str(caught.value)
    assert dict(ctx) == {}
