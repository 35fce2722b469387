"""Loops over items: the position is state, so nothing is ever gone over twice."""

from functools import partial

import pytest

from pregel import interrupt
from pregel.errors import EncodeError, GraphRecursionError
from pregel.graph.flow import FlowContext, FlowDefinitionError, FlowError, FlowGraph
from tests.flow.running import both, nodes, resume, run


def note(ctx, item="x"):
    ctx["seen"] = [*ctx.get("seen", []), ctx[item]]


def looped(work=note, over="items", **options):
    graph = FlowGraph("g").add_loop("each", over=over, item="x", body="work", to="end")
    graph.add_activity("work", work, to="each", **options)
    return graph.add_activity("end", lambda ctx: ctx.update(ended=True))


@pytest.mark.parametrize("awaits", [False, True])
@pytest.mark.parametrize("items", [[], [1], [3, 1, 2], (4, 5), range(3)])
def test_a_loop_goes_over_all_items_and_then_on(door, items, awaits):
    ctx = FlowContext(items=items)
    run(door, looped(both(note, awaits=awaits)), ctx)
    assert ctx.get("seen", []) == list(items)
    assert ctx["ended"] is True
    assert nodes(ctx).count("end") == 1


def test_items_may_be_worked_out_and_are_settled_when_the_loop_is_entered(door):
    def grow(ctx):
        note(ctx)
        ctx["n"] += 1

    ctx = FlowContext(n=3)
    run(door, looped(grow, over=lambda ctx: list(range(ctx["n"]))), ctx)
    assert ctx["seen"] == [0, 1, 2]
    assert ctx["n"] == 6


@pytest.mark.parametrize("items", ["abc", 5, None, {1: 2}, iter([1])])
def test_what_is_no_sequence_is_an_error(door, items):
    with pytest.raises(FlowError, match="loop 'each' of graph 'g' goes over a list"):
        run(door, looped(over=lambda ctx: items), FlowContext())


def test_a_stopped_loop_goes_on_at_the_next_item(door):
    def work(ctx):
        note(ctx)
        if ctx["x"] == 3:
            ctx.stop("enough for today")

    ctx = FlowContext(items=[1, 2, 3, 4])
    graph = looped(work)
    outcome = run(door, graph, ctx)
    assert (outcome.status, outcome.reason) == ("stopped", "enough for today")
    assert ctx["seen"] == [1, 2, 3]
    ctx["items"] = ["others"]
    assert resume(door, graph, ctx).status == "finished"
    assert ctx["seen"] == [1, 2, 3, 4]


def test_a_loop_that_failed_goes_on_at_the_item(door):
    bad = [2]

    def work(ctx):
        if ctx["x"] in bad:
            raise ZeroDivisionError
        note(ctx)

    ctx, graph = FlowContext(items=[1, 2, 3]), looped(work)
    with pytest.raises(ZeroDivisionError):
        run(door, graph, ctx)
    assert ctx["seen"] == [1]
    assert ctx["x"] == 2
    bad.clear()
    resume(door, graph, ctx)
    assert ctx["seen"] == [1, 2, 3]


def test_each_item_may_ask(door):
    def work(ctx):
        answer = interrupt(f"{ctx['x']}?")
        ctx["seen"] = [*ctx.get("seen", []), (ctx["x"], answer)]

    ctx, graph = FlowContext(items=[1, 2]), looped(work)
    assert run(door, graph, ctx).pending[0].value == "1?"
    assert resume(door, graph, ctx, "a").pending[0].value == "2?"
    assert resume(door, graph, ctx, "b").status == "finished"
    assert ctx["seen"] == [(1, "a"), (2, "b")]


def test_loops_inside_loops(door):
    graph = FlowGraph("g").add_loop("rows", over="rows", item="row", body="cells", to="end")
    graph.add_loop("cells", over="row", item="x", body="work", to="rows")
    graph.add_activity("work", note, to="cells").add_activity("end", lambda ctx: None)
    ctx = FlowContext(rows=[[1, 2], [], [3]])
    run(door, graph, ctx)
    assert ctx["seen"] == [1, 2, 3]
    run(door, graph, ctx)
    assert ctx["seen"] == [1, 2, 3, 1, 2, 3]


def test_an_inner_loop_may_be_left_early_and_begins_anew_the_next_time(door):
    graph = FlowGraph("g").add_loop("rows", over="rows", item="row", body="cells")
    graph.add_loop("cells", over="row", item="x", body="gate", to="rows")
    graph.add_exclusive("gate", [(lambda ctx: ctx["x"] == 0, "rows")], default="work")
    graph.add_activity("work", note, to="cells")
    ctx = FlowContext(rows=[[1, 0, 9], [2, 3], [0], [4]])
    run(door, graph, ctx)
    assert ctx["seen"] == [1, 2, 3, 4]


def test_a_condition_may_end_a_pass(door):
    graph = FlowGraph("g").add_loop("each", over="items", item="x", body="gate", to="end")
    graph.add_exclusive("gate", [(lambda ctx: ctx["x"] % 2, "each")], default="work")
    graph.add_activity("work", note, to="each").add_activity("end", lambda ctx: None)
    ctx = FlowContext(items=[1, 2, 3, 4])
    run(door, graph, ctx)
    assert ctx["seen"] == [2, 4]
    assert nodes(ctx)[-1] == "end"


def test_branches_inside_a_pass_meet_before_the_next_item(door):
    graph = FlowGraph("g").add_loop("each", over="items", item="x", body="fork", to="end")
    graph.add_parallel("fork", ["a", "b"])
    graph.add_activity("a", lambda ctx: ctx.update(a=[*ctx.get("a", []), ctx["x"]]), to="each")
    graph.add_activity("b", lambda ctx: None, to="b2")
    graph.add_activity("b2", lambda ctx: ctx.update(b=[*ctx.get("b", []), ctx["x"]]), to="each")
    graph.add_activity("end", lambda ctx: None)
    ctx = FlowContext(items=[1, 2, 3])
    run(door, graph, ctx)
    assert ctx["a"] == ctx["b"] == [1, 2, 3]
    assert nodes(ctx).count("end") == 1


def test_a_long_loop_needs_no_stack(door):
    ctx = FlowContext(items=list(range(300)))
    graph = looped(lambda ctx: ctx.update(last=ctx["x"]))
    run(door, graph, ctx)
    assert ctx["last"] == 299
    assert len(ctx.trace) == 602


def test_too_many_steps_are_an_error_and_the_run_can_go_on(door):
    ctx, graph = FlowContext(items=[1, 2, 3, 4]), looped()
    with pytest.raises(GraphRecursionError):
        run(door, graph, ctx, max_steps=4)
    assert ctx["seen"] == [1, 2]
    assert ctx.cursor(graph).status == "unfinished"
    resume(door, graph, ctx)
    assert ctx["seen"] == [1, 2, 3, 4]


def test_a_loop_that_nothing_leads_back_to_is_found_at_build():
    graph = FlowGraph("g").add_loop("each", over="items", item="x", body="work").add_activity("work", note)
    with pytest.raises(FlowDefinitionError, match="nothing leads from the body 'work' of loop 'each'"):
        graph.compile()


async def one_and_two(ctx):
    return [1, 2]


def test_items_may_be_found_by_an_async_function(door):
    ctx = FlowContext()
    run(door, looping(one_and_two), ctx)
    assert ctx["seen"] == [1, 2]


def call(function, ctx):
    return function(ctx)


def looping(over):
    graph = FlowGraph("g").add_loop("each", over=over, item="item", body="see")
    return graph.add_activity("see", lambda ctx: ctx.update(seen=[*ctx.get("seen", ()), ctx["item"]]), to="each")


def test_items_that_must_be_awaited_and_are_found_by_no_async_function_are_an_error(door):
    with pytest.raises(FlowError, match=r"loop 'each' of graph 'g' goes over is to be awaited"):
        run(door, looping(partial(call, one_and_two)), FlowContext())


def test_items_that_can_not_be_stored_are_refused_before_the_first_pass(door):
    ctx = FlowContext()
    with pytest.raises(EncodeError, match=r"loop 'each' of graph 'g': the value of key 'item'\[1\]"):
        run(door, looping(lambda ctx: [1, object()]), ctx)
    assert "seen" not in ctx
