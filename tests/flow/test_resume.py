"""The five defects of resuming by walking a graph again, each with the right outcome, in place and from a snapshot.

A run that goes on does not start at the beginning and look for the node where it stopped: what is due is stored, with
what has ended and what joins wait for. So no condition is asked again, no branch is lost and none is run twice.
"""

import pytest

from pregel import interrupt
from pregel.graph.flow.context import FlowContext
from pregel.graph.flow.flowgraph import FlowGraph
from tests.flow.running import nodes, resume, run


@pytest.fixture(params=["in place", "from a snapshot"])
def carried(request):
    """Return how a context comes from one run to the next."""
    if request.param == "in place":
        return lambda ctx: ctx
    return lambda ctx: FlowContext.from_json(ctx.to_json())


class Ledger(list):
    """What was done, outside of all state: nothing rolls it back."""

    def step(self, name, then=None):
        """Return an activity that is entered here, and then does something else."""

        def act(ctx):
            self.append(name)
            ctx[name] = ctx.get(name, 0) + 1
            if then is not None:
                then(ctx)

        return act


def forked(ledger, a):
    """Two branches, a join, and what follows it."""
    return (
        FlowGraph("g")
        .add_parallel("fork", ["a", "b"])
        .add_activity("a", a, to="join")
        .add_activity("b", ledger.step("b"), to="join")
        .add_join("join", to="x")
        .add_activity("x", ledger.step("x"))
    )


@pytest.mark.parametrize("way", ["it asks", "it fails"])
def test_m2_a_branch_that_did_not_end_is_not_lost(way, door, carried):
    ledger = Ledger()

    def unfinished(ctx):
        if way == "it asks":
            ctx["answer"] = interrupt("?")
        elif "fixed" not in ctx:
            raise ConnectionError

    graph, ctx = forked(ledger, ledger.step("a", unfinished)), FlowContext("job")
    if way == "it asks":
        assert run(door, graph, ctx).status == "paused"
    else:
        with pytest.raises(ConnectionError):
            run(door, graph, ctx)
    assert sorted(ledger) == ["a", "b"]  # no join, and no x: the work of a was never done
    ctx = carried(ctx)
    assert graph.cursor(ctx).next == ("a",)
    ctx["fixed"] = True
    resume(door, graph, ctx, *(["yes"] if way == "it asks" else []))
    assert ledger[2:] == ["a", "x"]
    assert (ctx["a"], ctx["b"], ctx["x"]) == (1, 1, 1)


def test_m2_a_branch_that_ended_is_not_run_twice(door, carried):
    ledger = Ledger()
    graph = forked(ledger, ledger.step("a", lambda ctx: ctx.update(answer=interrupt("?"))))
    ctx = FlowContext("job")
    run(door, graph, ctx)
    for _ in range(3):  # however often it is carried
        ctx = carried(ctx)
    resume(door, graph, ctx, "yes")
    assert ledger.count("b") == 1
    assert nodes(ctx).count("b") == 1


@pytest.mark.parametrize("way", ["it stops", "it asks"])
def test_m2_a_condition_that_the_node_itself_has_changed_is_not_asked_again(way, door, carried):
    ledger = Ledger()

    def asked(ctx):
        ledger.append("condition")
        return ctx["level"] == "HIGH"

    def lower(ctx):
        ctx["level"] = "LOW"  # a walk from the beginning would take the other way now
        if way == "it stops":
            ctx.stop("enough")
        else:
            ctx["answer"] = interrupt("?")

    graph = (
        FlowGraph("g")
        .add_exclusive("route", [(asked, "high")], default="low")
        .add_activity("high", ledger.step("high", lower), to="after")
        .add_activity("low", ledger.step("low"))
        .add_activity("after", ledger.step("after"))
    )
    ctx = FlowContext("job", level="HIGH")
    run(door, graph, ctx)
    ctx = carried(ctx)
    ctx["level"] = "LOW"
    outcome = resume(door, graph, ctx, *(["yes"] if way == "it asks" else []))
    assert outcome.status == "finished"
    assert ledger == ["condition", "high", *(["high"] if way == "it asks" else []), "after"]
    assert "low" not in ctx


@pytest.mark.parametrize("way", ["it stops", "it asks", "it fails"])
def test_m2_a_loop_goes_on_at_its_item_and_repeats_none(way, door, carried):
    ledger = Ledger()

    def at_three(ctx):
        ledger.append(ctx["item"])
        ctx["done"] = [*ctx.get("done", ()), ctx["item"]]
        if ctx["item"] != 3 or ctx.get("fixed"):
            return
        if way == "it stops":
            ctx.stop("enough")
        elif way == "it asks":
            interrupt("?")
        else:
            raise ConnectionError

    graph = (
        FlowGraph("g")
        .add_loop("each", over="items", item="item", body="body", to="end")
        .add_activity("body", at_three, to="each")
        .add_activity("end", ledger.step("end"))
    )
    ctx = FlowContext("job", items=[1, 2, 3, 4])
    if way == "it fails":
        with pytest.raises(ConnectionError):
            run(door, graph, ctx)
    else:
        run(door, graph, ctx)
    assert ledger == [1, 2, 3]
    ctx = carried(ctx)
    ctx["items"], ctx["fixed"] = ["other"], True  # what it goes over was settled when it was entered
    resume(door, graph, ctx, *(["yes"] if way == "it asks" else []))
    assert ledger[3:] == [*([] if way == "it stops" else [3]), 4, "end"]
    assert ctx["done"] == [1, 2, 3, 4]


@pytest.mark.parametrize("ways", [["a"], ["b"], ["a", "b"]])
def test_m2_a_join_whose_other_branch_was_routed_away_fires_once(ways, door, carried):
    ledger = Ledger()
    graph = (
        FlowGraph("g")
        .add_inclusive("route", [(lambda ctx: "a" in ctx["ways"], "a"), (lambda ctx: "b" in ctx["ways"], "b")])
        .add_activity("a", ledger.step("a", lambda ctx: ctx.stop("enough")), to="join")
        .add_activity("b", ledger.step("b", lambda ctx: ctx.stop("enough")), to="b2")
        .add_activity("b2", ledger.step("b2"), to="join")
        .add_join("join", to="z")
        .add_activity("z", ledger.step("z"))
    )
    ctx = FlowContext("job", ways=ways)
    assert run(door, graph, ctx).status == "stopped"
    ctx = carried(ctx)
    assert resume(door, graph, ctx).status == "finished"
    assert ctx["z"] == 1
    assert ledger[len(ways) :] == [*(["b2"] if "b" in ways else []), "z"]
    assert nodes(ctx).count("join") == 1


def test_a_join_that_has_heard_one_branch_waits_for_the_other_over_a_pause(door, carried):
    ledger = Ledger()
    graph = (
        FlowGraph("g")
        .add_parallel("fork", ["a", "b"])
        .add_activity("a", ledger.step("a"), to="join")
        .add_activity("b", ledger.step("b"), to="b2")
        .add_activity("b2", ledger.step("b2", lambda ctx: ctx.update(answer=interrupt("?"))), to="join")
        .add_join("join", to="z")
        .add_activity("z", ledger.step("z"))
    )
    ctx = FlowContext("job")
    assert run(door, graph, ctx).status == "paused"
    assert sorted(ledger) == ["a", "b", "b2"]
    ctx = carried(ctx)
    assert resume(door, graph, ctx, "yes").status == "finished"
    assert ledger[3:] == ["b2", "z"]
    assert ctx["z"] == 1
