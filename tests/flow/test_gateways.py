"""Gateways and joins: where a flow goes, and what runs side by side."""

import pytest

from pregel.errors import InvalidConcurrentUpdateError
from pregel.graph.flow import (
    ContextKeyError,
    FlowContext,
    FlowDefinitionError,
    FlowError,
    FlowGraph,
    NoRouteError,
)
from pregel.testing import run_seeded
from tests.flow.running import both, nodes, run


def mark(name):
    return lambda ctx: ctx.update({f"ran.{name}": True})


def routed(kind, *conditions, default=None, awaits=False):
    graph = FlowGraph("g")
    routes = [(both(condition, awaits=awaits), f"n{number}") for number, condition in enumerate(conditions)]
    getattr(graph, f"add_{kind}")("gate", routes, default=default)
    for number in range(len(conditions)):
        graph.add_activity(f"n{number}", mark(number), to="join")
    if default is not None:
        graph.add_activity(default, mark(default), to="join")
    return graph.add_join("join")


@pytest.mark.parametrize("awaits", [False, True])
def test_an_exclusive_gateway_takes_the_first_that_holds(door, awaits):
    graph = routed(
        "exclusive", lambda ctx: ctx["n"] > 5, lambda ctx: ctx["n"] > 1, lambda ctx: True, default="d", awaits=awaits
    )
    for n, node in ((9, "n0"), (3, "n1"), (0, "n2")):
        ctx = FlowContext(n=n)
        run(door, graph, ctx)
        assert nodes(ctx) == ["gate", node, "join"]


@pytest.mark.parametrize("kind", ["exclusive", "inclusive"])
def test_without_a_condition_that_holds_the_default_is_taken_and_without_default_it_is_an_error(door, kind):
    ctx = FlowContext(n=0)
    run(door, routed(kind, lambda ctx: ctx["n"], default="d"), ctx)
    assert nodes(ctx) == ["gate", "d", "join"]
    ctx = FlowContext(n=0)
    with pytest.raises(NoRouteError, match=rf"no condition of {kind} gateway 'gate' of graph 'g' holds for .*'n': 0"):
        run(door, routed(kind, lambda ctx: ctx["n"]), ctx)
    assert nodes(ctx, "failed") == ["gate"]


@pytest.mark.parametrize("awaits", [False, True])
def test_an_inclusive_gateway_takes_all_that_hold_and_the_join_waits_for_these_only(door, awaits):
    graph = routed("inclusive", lambda ctx: True, lambda ctx: False, lambda ctx: True, default="d", awaits=awaits)
    ctx = FlowContext()
    run(door, graph, ctx)
    assert nodes(ctx) == ["gate", "n0", "n2", "join"]


def test_a_condition_only_reads(door):
    def condition(ctx):
        ctx["n"] = 1
        return True

    with pytest.raises(
        ContextKeyError, match=r"'gate' of graph 'g': 'n' can't be changed here: a condition only reads"
    ):
        run(door, routed("exclusive", condition), FlowContext())


def test_a_condition_that_must_be_awaited_and_is_no_async_function_is_an_error(door):
    async def answer():
        return False

    with pytest.raises(FlowError, match="async def"):
        run(door, routed("exclusive", lambda ctx: answer()), FlowContext())


def test_a_route_may_end_the_run(door):
    from pregel.types import END

    graph = FlowGraph("g").add_exclusive("gate", [(lambda ctx: ctx["end"], END)], default="more")
    graph.add_activity("more", mark("more"), to=END)
    for end, ran in ((True, ["gate"]), (False, ["gate", "more"])):
        ctx = FlowContext(end=end)
        assert run(door, graph, ctx).status == "finished"
        assert nodes(ctx) == ran


def analysis(join=True):
    graph = FlowGraph("analysis")
    graph.add_parallel("fork", ["tech", "cost", "risk"])
    for name in ("tech", "cost", "risk"):
        graph.add_activity(name, lambda ctx, node: ctx.update({f"analysis.{node.name}": node.name}), to="join")
    graph.add_join("join", to="sum")
    return graph.add_activity("sum", lambda ctx: ctx.update({"output.final": sorted(ctx.group("analysis"))}))


def test_a_parallel_gateway_takes_all_links_and_a_join_runs_once(door):
    ctx = FlowContext()
    run(door, analysis(), ctx)
    assert ctx["output.final"] == ["cost", "risk", "tech"]
    assert nodes(ctx) == ["fork", "tech", "cost", "risk", "join", "sum"]
    assert [visit.step for visit in ctx.trace] == [1, 2, 2, 2, 3, 4]


@pytest.mark.parametrize("seed", range(20))
def test_what_branches_do_depends_on_no_order_of_completion(seed):
    compiled = analysis().compile()
    result = run_seeded(compiled, {"data": {}}, seed=seed).result
    assert result["data"] == {
        **{f"analysis.{name}": name for name in ("tech", "cost", "risk")},
        "output.final": ["cost", "risk", "tech"],
    }


def test_branches_see_the_data_of_the_fork_and_not_each_others(door):
    seen = {}
    graph = FlowGraph("g").add_parallel("fork", ["a", "b"])

    def work(ctx, node):
        seen[node.name] = dict(ctx)
        ctx[node.name] = ctx["n"] + 1

    graph.add_activity("a", work).add_activity("b", work)
    ctx = FlowContext(n=1)
    run(door, graph, ctx)
    assert seen == {"a": {"n": 1}, "b": {"n": 1}}
    assert dict(ctx) == {"n": 1, "a": 2, "b": 2}


def test_two_branches_that_write_one_key_are_an_error_that_names_them(door):
    graph = FlowGraph("g").add_parallel("fork", ["a", "b"])
    graph.add_activity("a", lambda ctx: ctx.update(n=ctx["n"] + 1)).add_activity("b", lambda ctx: ctx.update(n=0))
    ctx = FlowContext(n=1)
    with pytest.raises(InvalidConcurrentUpdateError) as caught:
        run(door, graph, ctx)
    for part in ("'a'", "'b'", "'n'"):
        assert part in str(caught.value)
    assert ctx["n"] == 1


def test_a_join_waits_for_the_longest_branch_and_runs_once(door):
    graph = FlowGraph("g").add_parallel("fork", ["a", "b1", "c"])
    graph.add_activity("a", mark("a"), to="join")
    graph.add_activity("b1", mark("b1"), to="b2").add_activity("b2", mark("b2"), to="join")
    graph.add_activity("c", mark("c"))
    graph.add_join("join", to="after").add_activity("after", mark("after"))
    ctx = FlowContext()
    run(door, graph, ctx)
    assert nodes(ctx) == ["fork", "a", "b1", "c", "b2", "join", "after"]


def test_a_join_does_not_wait_for_a_branch_that_went_elsewhere(door):
    graph = FlowGraph("g").add_parallel("fork", ["a", "pick"])
    graph.add_activity("a", mark("a"), to="join")
    graph.add_exclusive("pick", [(lambda ctx: ctx["away"], "away")], default="b")
    graph.add_activity("b", mark("b"), to="join").add_activity("away", mark("away"))
    graph.add_join("join", to="z").add_activity("z", mark("z"))
    for away, node in ((True, "away"), (False, "b")):
        ctx = FlowContext(away=away)
        run(door, graph, ctx)
        assert nodes(ctx).count("join") == nodes(ctx).count("z") == 1
        assert node in nodes(ctx)


def test_branches_that_meet_without_a_join_are_found_at_build():
    def fork(*links):
        graph = FlowGraph("g").add_parallel("fork", ["a", "b"])
        for name, to in links:
            graph.add_activity(name, print, to=to)
        return graph

    where = r"branches of 'fork' of graph 'g' meet at activity 'z'.*add_join\('...', to='z'\)"
    for graph in (
        fork(("a", "z"), ("b", "z"), ("z", None)),  # of one length
        fork(("a", "z"), ("b", "b2"), ("b2", "z"), ("z", "after"), ("after", None)),
        FlowGraph("g").add_parallel("fork", ["z", "a"]).add_activity("a", print, to="z").add_activity("z", print),
        FlowGraph("g")
        .add_parallel("fork", ["a", "b", "c"])
        .add_activity("a", print, to="join")
        .add_activity("b", print, to="join")
        .add_join("join", to="z")
        .add_activity("c", print, to="z")
        .add_activity("z", print),
    ):
        with pytest.raises(FlowDefinitionError, match=where):
            graph.compile()
    graph = fork(("a", "join"), ("b", "b2"), ("b2", "join"), ("z", None)).add_join("join", to="z")
    graph.compile()


def test_ways_that_exclude_each_other_need_no_join():
    graph = FlowGraph("g").add_parallel("fork", ["pick", "c"])
    graph.add_exclusive("pick", [(bool, "a")], default="b")
    graph.add_activity("a", print, to="both").add_activity("b", print, to="both").add_activity("both", print, to="join")
    graph.add_activity("c", print, to="join").add_join("join")
    graph.compile()


def test_forks_inside_forks_meet_at_their_own_joins(door):
    graph = FlowGraph("g").add_parallel("fork", ["inner", "c"])
    graph.add_parallel("inner", ["a", "b"])
    for name, to in (("a", "one"), ("b", "one"), ("c", "all")):
        graph.add_activity(name, mark(name), to=to)
    graph.add_join("one", to="all").add_join("all", to="end").add_activity("end", mark("end"))
    ctx = FlowContext()
    run(door, graph, ctx)
    assert nodes(ctx) == ["fork", "inner", "c", "a", "b", "one", "all", "end"]


@pytest.mark.parametrize("routes", ["n", ["n"], [("n", "n")], [(bool, 1)], [(bool, "n", 1)]])
def test_routes_are_pairs_of_a_condition_and_a_node(routes):
    with pytest.raises(FlowDefinitionError, match="pairs of a condition and a node"):
        FlowGraph("g").add_exclusive("gate", routes)
