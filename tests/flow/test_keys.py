"""Keys with types and writers: checked when a graph is built, and at each write."""

import copy
import operator
import pickle

import pytest

from pregel import interrupt
from pregel.errors import EncodeError
from pregel.graph.flow import (
    ContextKeyError,
    FlowContext,
    FlowDefinitionError,
    FlowGraph,
    Key,
    KeySpace,
    KeyTypeError,
    MissingKeyError,
)
from tests.flow.keyspace import Keys, Order
from tests.flow.running import resume, run


def asked():
    """A context with what the graphs of `Keys` must be given."""
    return FlowContext(None, {Keys.question: "why"})


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

    ctx = asked()
    with pytest.raises(KeyTypeError, match=r"node 'work' of graph 'g': key 'route.level' takes .*'MEDIUM'"):
        run(door, one(work), ctx)
    assert dict(ctx) == {"input.question": "why", "notes": []}


def test_a_value_is_stored_as_it_is_and_never_converted(door):
    def work(ctx):
        with pytest.raises(KeyTypeError):
            ctx[Keys.order] = {"id": "SO-1"}
        ctx[Keys.order] = Order("SO-1")

    ctx = asked()
    run(door, one(work), ctx)
    assert ctx[Keys.order] == Order("SO-1")


def test_an_undeclared_key_is_refused_with_the_nearest(door):
    def work(ctx):
        ctx["route.levl"] = "HIGH"

    with pytest.raises(ContextKeyError, match=r"Keys has no key 'route.levl'. Did you mean 'route.level'"):
        run(door, one(work), asked())


def test_only_its_writers_write_a_key(door):
    def work(ctx):
        ctx.update({Keys.level: "HIGH", Keys.risk: "low"})

    ctx = asked()
    with pytest.raises(ContextKeyError, match=r"node 'work' of graph 'g' may not write 'analysis.risk'.*risk"):
        run(door, one(work), ctx)
    assert dict(ctx) == {"input.question": "why", "notes": []}


def test_who_may_not_write_a_key_may_not_delete_it(door):
    def work(ctx):
        del ctx[Keys.risk]

    ctx = asked()
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

    with pytest.raises(EncodeError, match=r"node 'work' of graph 'g': the value of key 'file'\[0\]") as caught:
        run(door, FlowGraph("g").add_activity("work", work), FlowContext())
    assert "Resource" in str(caught.value)
    assert "Key(type, 'file')" in str(caught.value)
    assert "Untracked" not in str(caught.value)  # a flow has no fields that could be annotated so


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
    ctx = asked()
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


ran = []


def given(*names):
    """A graph that must be given keys of such names, and writes a word."""
    ran.clear()
    keys = {f"key{number}": Key(str, name, given=True) for number, name in enumerate(names)}
    space = type("Given", (KeySpace,), {**keys, "word": Key(str, "word")})
    return FlowGraph("g", keys=space).add_activity("a", lambda ctx: ran.append(ctx["word"]))


def test_a_key_that_must_be_given_is_missed_before_anything_runs(door):
    ctx = FlowContext("job", {"input.qestion": "why", "b": 1})
    expected = (
        r"graph 'g' must be given 'input.question', 'input.id', .* context 'job' .*Did you mean 'input.qestion'\?"
    )
    with pytest.raises(MissingKeyError, match=expected):
        run(door, given("input.question", "input.id", "b"), ctx)
    assert ran == []
    assert ctx.cursor(given("input.question")).status == "new"


def test_a_key_that_is_given_for_a_while_is_given(door):
    ctx, graph = FlowContext(word="w"), given("user")
    with ctx.scoped(user="ann"):
        run(door, graph, ctx)
    assert ran == ["w"]


def test_what_was_given_may_be_used_up_before_a_run_goes_on(door):
    class Given(KeySpace):
        ticket = Key(str, "ticket", given=True)
        answer = Key(str, "answer")

    graph = FlowGraph("g", keys=Given).add_activity("use", lambda ctx: ctx.pop("ticket") and None, to="ask")
    graph.add_activity("ask", lambda ctx: ctx.update(answer=interrupt("well?")))
    ctx = FlowContext(ticket="t")
    run(door, graph, ctx)
    assert resume(door, graph, ctx, "yes").status == "finished"
    assert dict(ctx) == {"answer": "yes"}


def test_a_run_that_can_not_begin_drops_no_unfinished_one(door):
    graph = FlowGraph("g", keys=given("ticket").keys).add_activity("old", lambda ctx: ctx.update(word=interrupt("?")))
    ctx = FlowContext(ticket="t")
    run(door, graph, ctx)
    del ctx["ticket"]
    with pytest.raises(MissingKeyError):
        run(door, given("ticket"), ctx, restart=True)  # the node that is due is not in this one
    assert ctx.cursor(graph).next == ("old",)


@pytest.mark.parametrize("read", [lambda ctx: ctx["b"], lambda ctx: ctx.pop("b"), lambda ctx: ctx.__delitem__("b")])
def test_reading_what_is_not_there_names_node_graph_and_keys(read, door):
    with pytest.raises(
        MissingKeyError, match=r"^node 'work' of graph 'g' reads 'b', which the context does not have\. It has"
    ):
        run(door, FlowGraph("g").add_activity("work", read), FlowContext(order=1))


def test_reading_a_declared_key_that_has_no_value_says_so(door):
    expected = (
        r"^node 'work' of graph 'g' reads 'route.level', which is declared and has no value\. It has input.question"
    )
    with pytest.raises(MissingKeyError, match=expected):
        run(door, one(lambda ctx: ctx[Keys.level]), asked())
    run(door, one(lambda ctx: ctx.get(Keys.level) and None), asked())


@pytest.mark.parametrize(
    "read",
    [
        lambda ctx: ctx.get("route.levl"),
        lambda ctx: ctx["route.levl"],
        lambda ctx: ctx.pop("route.levl", None),
        lambda ctx: ctx.group("route").get("levl"),
        lambda ctx: ctx.setdefault("route.levl", "HIGH"),
    ],
)
def test_reading_an_undeclared_key_is_an_error_with_the_nearest(read, door):
    with pytest.raises(ContextKeyError, match=r"node 'work' of graph 'g': Keys has no key 'route.levl'.*'route.level'"):
        run(door, one(read), asked())


def test_a_condition_reads_declared_keys_only(door):
    graph = FlowGraph("g", keys=Keys)
    graph.add_exclusive("gate", [(lambda ctx: ctx.get("route.levl"), "a")], default="a").add_activity("a", print)
    with pytest.raises(ContextKeyError, match=r"node 'gate' of graph 'g': Keys has no key 'route.levl'"):
        run(door, graph, asked())


def test_keys_of_other_graphs_are_seen_where_they_are(door):
    seen = []
    ctx = asked()
    ctx["of.another"] = 1
    run(door, one(lambda c: seen.append((c["of.another"], dict(c)["of.another"], "nobodys" in c))), ctx)
    assert seen == [(1, 1, False)]


class Once(KeySpace):
    question = Key(str, "input.question", given=True, once=True)
    final = Key(str, "output.final", once=True)


@pytest.mark.parametrize("key", ["input.question", "output.final"])
@pytest.mark.parametrize(
    "write",
    [
        lambda ctx, key: ctx.__setitem__(key, "other"),
        lambda ctx, key: ctx.update({key: "other"}),
        lambda ctx, key: ctx.__delitem__(key),
        lambda ctx, _: ctx.clear(),
    ],
)
def test_what_is_set_once_no_node_changes(write, key, door):
    graph = FlowGraph("g", keys=Once).add_activity("first", lambda ctx: ctx.update({Once.final: "done"}), to="second")
    graph.add_activity("second", lambda ctx: write(ctx, key))
    ctx = FlowContext(None, {Once.question: "why"})
    with pytest.raises(ContextKeyError, match=r"node 'second' of graph 'g': '.*' is set once and has a value"):
        run(door, graph, ctx)
    assert dict(ctx) == {"input.question": "why", "output.final": "done"}
    ctx["output.final"] = "mine"  # between runs the owner may


def test_who_sets_once_sets_it_once(door):
    def twice(ctx):
        ctx[Once.final] = "one"
        ctx[Once.final] = "two"

    with pytest.raises(ContextKeyError, match=r"'output.final' is set once"):
        run(door, FlowGraph("g", keys=Once).add_activity("a", twice), FlowContext(None, {Once.question: "why"}))
    with pytest.raises(FlowDefinitionError, match=r"key 'k' is set once, and its reducer adds to it"):
        Key(int, "k", once=True, reducer=operator.add)
