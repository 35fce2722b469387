"""Keys with types and writers: checked when a graph is built, and at each write."""

import copy
import operator
import pickle
from dataclasses import dataclass
from typing import Literal

import pytest

from pregel.errors import EncodeError
from pregel.graph.flow import (
    ContextKeyError,
    FlowContext,
    FlowDefinitionError,
    FlowGraph,
    Key,
    KeySpace,
    KeyTypeError,
)
from tests.flow.running import run


@dataclass
class Order:
    id: str


class Keys(KeySpace):
    question = Key(str, "input.question", given=True)
    order = Key(Order, "order")
    risk = Key(str, "analysis.risk", writers=["risk"])
    level = Key(Literal["HIGH", "LOW"], "route.level")
    notes = Key(list[str], "notes", reducer=operator.add)


def one(function, **options):
    return FlowGraph("g", keys=Keys).add_activity("work", function, **options)


def test_a_key_is_its_name():
    assert Keys.risk == "analysis.risk"
    assert {Keys.risk: 1} == {"analysis.risk": 1}
    assert list(Keys.keys) == ["input.question", "order", "analysis.risk", "route.level", "notes"]
    ctx = FlowContext()
    ctx[Keys.risk] = "low"
    assert type(next(iter(ctx))) is str
    assert ctx[Keys.risk] == ctx["analysis.risk"] == "low"


def test_a_copy_of_a_key_is_its_name():
    assert copy.deepcopy(Keys.risk) == "analysis.risk"
    assert type(pickle.loads(pickle.dumps(Keys.risk))) is str  # noqa: S301 - our own bytes


def test_a_key_space_inherits_and_declares_a_key_once():
    class More(Keys):
        extra = Key(int, "extra")

    assert list(More.keys) == [*Keys.keys, "extra"]
    with pytest.raises(FlowDefinitionError, match=r"declared twice"):

        class Twice(KeySpace):
            one = Key(int, "a")
            other = Key(int, "a")

    with pytest.raises(FlowDefinitionError, match=r"writers"):
        Key(int, "a", writers="node")
    with pytest.raises(ContextKeyError):
        Key(int, "@a")


def test_a_value_of_another_type_is_refused_at_the_write_naming_node_and_key(door):
    def work(ctx):
        ctx[Keys.level] = "MEDIUM"

    ctx = FlowContext()
    with pytest.raises(KeyTypeError, match=r"node 'work' of graph 'g': key 'route.level' takes .*'MEDIUM'"):
        run(door, one(work), ctx)
    assert dict(ctx) == {"notes": []}


def test_a_value_is_stored_as_it_is_and_never_converted(door):
    def work(ctx):
        with pytest.raises(KeyTypeError):
            ctx[Keys.order] = {"id": "SO-1"}
        ctx[Keys.order] = Order("SO-1")

    ctx = FlowContext()
    run(door, one(work), ctx)
    assert ctx[Keys.order] == Order("SO-1")


def test_an_undeclared_key_is_refused_with_the_nearest(door):
    def work(ctx):
        ctx["route.levl"] = "HIGH"

    with pytest.raises(ContextKeyError, match=r"Keys has no key 'route.levl'. Did you mean 'route.level'"):
        run(door, one(work), FlowContext())


def test_only_its_writers_write_a_key(door):
    def work(ctx):
        ctx.update({Keys.level: "HIGH", Keys.risk: "low"})

    ctx = FlowContext()
    with pytest.raises(ContextKeyError, match=r"node 'work' of graph 'g' may not write 'analysis.risk'.*risk"):
        run(door, one(work), ctx)
    assert dict(ctx) == {"notes": []}


def test_who_may_not_write_a_key_may_not_delete_it(door):
    def work(ctx):
        del ctx[Keys.risk]

    ctx = FlowContext()
    ctx[Keys.risk] = "low"
    with pytest.raises(ContextKeyError, match=r"may not write 'analysis.risk'"):
        run(door, one(work), ctx)
    assert ctx[Keys.risk] == "low"


def test_the_callers_data_is_checked_before_anything_runs(door):
    ran = []
    ctx = FlowContext()
    ctx[Keys.question] = 5
    with pytest.raises(KeyTypeError, match=r"the data for graph 'g': key 'input.question'"):
        run(door, one(lambda c: ran.append(1)), ctx)
    assert ran == []
    ctx.update({Keys.question: "why", "of.another.graph": 1})
    run(door, one(lambda c: ran.append(1)), ctx)
    assert ran == [1]
    assert ctx["of.another.graph"] == 1


def test_what_no_checkpoint_can_hold_is_refused_at_the_write_naming_the_key(door, tmp_path):
    (tmp_path / "a").write_text("x")

    def work(ctx):
        with (tmp_path / "a").open() as file:
            ctx["file"] = [file]

    with pytest.raises(EncodeError, match=r"node 'work' of graph 'g': the value of key 'file'\[0\]"):
        run(door, FlowGraph("g").add_activity("work", work), FlowContext())


def notes(door, keys=Keys):
    graph = FlowGraph("g", keys=keys)
    graph.add_parallel("fork", ["a", "b"])
    graph.add_activity("a", lambda ctx: ctx.add("notes", ["a"]), to="join", writes=["notes"])

    def twice(ctx):
        ctx.add(Keys.notes, ["b1"])
        ctx.add(Keys.notes, ["b2"])
        assert ctx["notes"][-2:] == ["b1", "b2"]
        assert "notes" in ctx
        with pytest.raises(ContextKeyError, match=r"ctx.add"):
            ctx["notes"] = []
        with pytest.raises(KeyTypeError):
            ctx.add("notes", [1])

    graph.add_activity("b", twice, to="join", writes=["notes"])
    graph.add_join("join")
    ctx = FlowContext()
    run(door, graph, ctx)
    assert ctx["notes"] == ["a", "b1", "b2"]
    run(door, graph, ctx)
    return ctx


def test_a_key_with_a_reducer_takes_what_nodes_side_by_side_add(door):
    ctx = notes(door)
    assert ctx["notes"] == ["a", "b1", "b2", "a", "b1", "b2"]
    ctx["notes"] = ["mine"]  # between runs the context's owner sets what he likes
    run(door, FlowGraph("h", keys=Keys).add_activity("a", lambda c: c.add("notes", ["x"])), ctx)
    assert ctx["notes"] == ["mine", "x"]


def test_what_is_deleted_between_runs_does_not_come_back(door):
    class Best(KeySpace):
        best = Key(int, "best", reducer=max)
        sum = Key(int, "sum", reducer=operator.add)

    def add(ctx, n):
        ctx.add("best", n)
        ctx.add("sum", n)

    seen = []
    graph = FlowGraph("g", keys=Best)
    graph.add_parallel("fork", ["a", "b"])
    graph.add_activity("a", lambda ctx: add(ctx, 3), to="join")
    graph.add_activity("b", lambda ctx: add(ctx, 2), to="join")
    graph.add_join("join", to="see")
    graph.add_activity("see", lambda ctx: seen.append(dict(ctx)))
    ctx = FlowContext()
    run(door, graph, ctx)
    run(door, graph, ctx)
    assert seen == [{"best": 3, "sum": 5}, {"best": 3, "sum": 10}]
    ctx.clear()
    ctx["best"] = 1
    run(door, graph, ctx)
    ctx.clear()
    run(door, FlowGraph("g", keys=Best).add_activity("see", lambda ctx: seen.append(dict(ctx))), ctx)
    assert seen[2:] == [{"best": 3, "sum": 5}, {"sum": 0}]


# --- what is found at build -------------------------------------------------------------------------------------------


def test_an_unknown_key_is_found_at_build():
    with pytest.raises(FlowDefinitionError, match=r"activity 'work' of graph 'g' writes 'route.levl'.*'route.level'"):
        one(print, writes=["route.levl"]).compile()
    with pytest.raises(FlowDefinitionError, match=r"reads 'x'"):
        one(print, reads=["x"]).compile()


def test_a_key_that_is_read_and_never_written_is_found_at_build():
    graph = one(print, reads=[Keys.level], writes=[])
    with pytest.raises(FlowDefinitionError, match=r"reads 'route.level', which nothing writes"):
        graph.compile()
    one(print, reads=[Keys.question, Keys.risk], writes=[]).compile()  # given, and written by another graph
    one(print, reads=[Keys.level]).compile()  # a node that does not say may write it
    one(print, reads=[Keys.level], writes=[Keys.level]).compile()


def test_a_writer_that_is_none_is_found_at_build():
    with pytest.raises(ContextKeyError, match=r"writes 'analysis.risk', whose writers are risk"):
        one(print, writes=[Keys.risk]).compile()


def forked(first, second, *, join=True):
    graph = FlowGraph("g")
    graph.add_parallel("fork", ["a", "b"])
    graph.add_activity("a", print, to="join", writes=first)
    graph.add_activity("b", print, to="join", writes=second)
    graph.add_join("join", to="after")
    graph.add_activity("after", print, writes=["x"])
    return graph


def test_two_parallel_writers_of_one_key_are_found_at_build():
    with pytest.raises(FlowDefinitionError, match=r"nodes 'a' and 'b' of graph 'g' both write 'x', and 'fork'"):
        forked(["x"], ["y", "x"]).compile()
    forked(["x"], ["y"]).compile()  # and the node after the join writes x again


def test_writers_of_one_branch_or_of_ways_that_exclude_each_other_are_none():
    graph = FlowGraph("g")
    graph.add_parallel("fork", ["a", "pick"])
    graph.add_activity("a", print, to="a2", writes=["x"])
    graph.add_activity("a2", print, to="join", writes=["x"])
    graph.add_exclusive("pick", [(bool, "b")], default="c")
    graph.add_activity("b", print, to="join", writes=["y"])
    graph.add_activity("c", print, to="join", writes=["y"])
    graph.add_join("join")
    graph.compile()
    graph = forked(["x"], ["y"])
    graph.link("after", "late")
    graph.add_activity("late", print, writes=["x"])
    graph.compile()


def test_branches_that_never_meet_are_compared_to_their_ends():
    graph = FlowGraph("g")
    graph.add_parallel("fork", ["a", "b"])
    graph.add_activity("a", print, to="deep")
    graph.add_activity("deep", print, writes=["x"])
    graph.add_activity("b", print, writes=["x"])
    with pytest.raises(FlowDefinitionError, match=r"'deep' and 'b'"):
        graph.compile()


def test_what_an_inclusive_gateway_takes_may_run_side_by_side():
    graph = FlowGraph("g").add_inclusive("gate", [(bool, "a"), (bool, "b")])
    graph.add_activity("a", print, writes=["x"]).add_activity("b", print, writes=["x"])
    with pytest.raises(FlowDefinitionError, match=r"'a' and 'b' of graph 'g' both write 'x', and 'gate'"):
        graph.compile()
    graph = FlowGraph("g").add_exclusive("gate", [(bool, "a"), (bool, "b")])
    graph.add_activity("a", print, writes=["x"]).add_activity("b", print, writes=["x"])
    graph.compile()


def test_the_keys_of_a_loop_are_checked_at_build():
    def looped(over, item):
        graph = FlowGraph("g", keys=Keys).add_loop("each", over=over, item=item, body="work")
        return graph.add_activity("work", print, to="each", writes=[])

    with pytest.raises(FlowDefinitionError, match=r"loop 'each' of graph 'g' reads 'orders'.*'order'"):
        looped("orders", Keys.order).compile()
    with pytest.raises(FlowDefinitionError, match=r"loop 'each' of graph 'g' writes 'ordre'.*'order'"):
        looped(Keys.question, "ordre").compile()
    looped(Keys.question, Keys.order).compile()


def test_keys_with_a_reducer_may_have_parallel_writers():
    graph = FlowGraph("g", keys=Keys)
    graph.add_parallel("fork", ["a", "b"])
    graph.add_activity("a", print, writes=[Keys.notes])
    graph.add_activity("b", print, writes=[Keys.notes])
    graph.compile()


@pytest.mark.parametrize("attribute", ["keys", "find"])
def test_an_attribute_of_the_key_space_itself_is_no_key(attribute):
    with pytest.raises(FlowDefinitionError, match=rf"Keys.{attribute}: keys and find are what a KeySpace itself has"):
        type("Keys", (KeySpace,), {attribute: Key(int, "k")})


def test_a_graph_takes_a_key_space_and_nothing_else():
    with pytest.raises(FlowDefinitionError, match=r"keys of graph 'g' is a class of keys, a KeySpace, not \{'a'"):
        FlowGraph("g", keys={"a": int})


def test_the_compiled_graph_by_itself_takes_a_key_with_a_reducer_as_its_field(door):
    class Keys(KeySpace):
        notes = Key(list[int], "notes", reducer=operator.add)

    compiled = FlowGraph("g", Keys).add_activity("a", lambda ctx: ctx.add("notes", [2])).compile()
    assert door.invoke(compiled, {"@key/notes": [1]})["@key/notes"] == [1, 2]
    with pytest.raises(ContextKeyError, match=r"'notes', which is folded by its reducer: give it as the field '@key/n"):
        door.invoke(compiled, {"data": {"notes": [1]}})
