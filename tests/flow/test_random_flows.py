"""Flows of any shape run each activity as often as their shape says, however often they stop or fail meanwhile."""

from collections import Counter
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from pregel.graph.flow import FlowContext, FlowGraph

#: A flow as a tree: what stands in its place says how it is linked.
BLOCKS = st.recursive(
    st.just("act"),
    lambda inner: st.one_of(
        st.tuples(st.just("sequence"), st.lists(inner, min_size=1, max_size=3)),
        st.tuples(st.just("parallel"), st.lists(inner, min_size=2, max_size=3)),
        st.tuples(st.just("inclusive"), st.lists(st.tuples(st.booleans(), inner), min_size=2, max_size=3)),
        st.tuples(st.just("exclusive"), st.integers(0, 1), st.lists(inner, min_size=2, max_size=2)),
        st.tuples(st.just("loop"), st.integers(0, 3), inner),
        st.tuples(st.just("scatter"), st.integers(0, 2), st.lists(inner, min_size=2, max_size=3)),
        st.tuples(st.just("repeat"), st.integers(1, 3), inner),
    ),
    max_leaves=8,
)


class Shape:
    """Builds a graph of a tree, and says how often each activity shall run."""

    def __init__(self, work):
        self.graph = FlowGraph("g")
        self.work = work
        self.numbers = count()
        self.expected = Counter()
        self.graph.add_activity("begin", lambda ctx: None)

    def name(self, kind):
        return f"{kind}{next(self.numbers)}"

    def add(self, block, then, times):
        """Add a block that leads to a node, and return its first node."""
        if block == "act":
            name = self.name("act")
            self.graph.add_activity(name, self.work, to=then)
            self.expected[name] = times
            return name
        kind, *rest = block
        return getattr(self, kind)(*rest, then, times)

    def sequence(self, blocks, then, times):
        for block in reversed(blocks):
            then = self.add(block, then, times)
        return then

    def parallel(self, blocks, then, times):
        join, fork = self.name("join"), self.name("fork")
        self.graph.add_join(join, to=then)
        self.graph.add_parallel(fork, [self.add(block, join, times) for block in blocks])
        return fork

    def inclusive(self, choices, then, times):
        join, gate = self.name("join"), self.name("gate")
        self.graph.add_join(join, to=then)
        routes = [
            (lambda ctx, taken=taken: taken, self.add(block, join, times if taken else 0)) for taken, block in choices
        ]
        self.graph.add_inclusive(gate, routes, default=join)
        return gate

    def exclusive(self, chosen, blocks, then, times):
        gate = self.name("gate")
        first, second = (self.add(block, then, times * (place == chosen)) for place, block in enumerate(blocks))
        self.graph.add_exclusive(gate, [(lambda ctx: chosen == 0, first)], default=second)
        return gate

    def loop(self, length, block, then, times):
        loop, body = self.name("loop"), self.name("body")
        self.graph.add_loop(loop, over=lambda ctx: range(length), item=f"item.{loop}", body=body, to=then)
        self.graph.add_activity(body, self.work, to=self.add(block, loop, times * length))
        self.expected[body] = times * length
        return loop

    def scatter(self, length, blocks, then, times):
        """A loop whose branches end its pass without a join."""
        loop, fork = self.name("loop"), self.name("fork")
        self.graph.add_loop(loop, over=lambda ctx: range(length), item=f"item.{loop}", body=fork, to=then)
        self.graph.add_parallel(fork, [self.add(block, loop, times * length) for block in blocks])
        return loop

    def repeat(self, most, block, then, times):
        """A cycle that a gateway closes, as often as `most` says each time it is entered."""
        first, gate = self.name("first"), self.name("gate")
        self.graph.add_exclusive(gate, [(lambda ctx: ctx[f"ran.{first}"] % most, first)], default=then)
        self.graph.add_activity(first, self.work, to=self.add(block, gate, times * most))
        self.expected[first] = times * most
        return first


def built(block, work):
    shape = Shape(work)
    shape.graph.add_activity("end", work)
    shape.expected["end"] = 1
    shape.graph.link("begin", shape.add(block, "end", 1))
    return shape.graph, {name: times for name, times in shape.expected.items() if times}


def counted(ctx):
    return dict(ctx.group("ran"))


def count_one(ctx, node):
    ctx[f"ran.{node.name}"] = ctx.get(f"ran.{node.name}", 0) + 1


@given(BLOCKS)
@settings(max_examples=60)
def test_each_activity_runs_as_often_as_the_shape_says(block):
    graph, expected = built(block, count_one)
    ctx = FlowContext()
    assert graph.run(ctx).status == "finished"
    assert counted(ctx) == expected


@given(BLOCKS)
@settings(max_examples=40)
def test_a_flow_that_stops_after_every_superstep_does_the_same(block):
    def work(ctx, node):
        count_one(ctx, node)
        ctx.stop()

    graph, expected = built(block, work)
    ctx = FlowContext()
    outcome = graph.run(ctx)
    while outcome.status == "stopped":
        outcome = graph.resume(ctx)
    assert counted(ctx) == expected
    whole = FlowContext()
    built(block, count_one)[0].run(whole)
    assert [visit.node for visit in ctx.trace] == [visit.node for visit in whole.trace]


@given(BLOCKS)
@settings(max_examples=40)
def test_a_flow_in_which_every_activity_fails_at_first_does_the_same(block):
    failed = set()

    def work(ctx, node):
        count_one(ctx, node)
        mark = (node.name, ctx[f"ran.{node.name}"])
        if mark not in failed:
            failed.add(mark)
            raise ValueError(mark)

    graph, expected = built(block, work)
    ctx = FlowContext()
    run, times = graph.run, 0
    while True:
        try:
            run(ctx)
        except (ValueError, ExceptionGroup):
            run, times = graph.resume, times + 1
        else:
            break
    assert counted(ctx) == expected
    assert times > 0
    assert len(failed) == sum(expected.values())
