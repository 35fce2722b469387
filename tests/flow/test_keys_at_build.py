"""What is known of a graph's keys before it runs: who reads and writes which, and what never can be."""

import pytest

from pregel.graph.agent import ScriptedModel
from pregel.graph.flow import (
    ContextKeyError,
    FlowDefinitionError,
    FlowGraph,
    Key,
    KeySpace,
    SimpleAgent,
)
from tests.flow.keyspace import Keys


def one(function, **options):
    return FlowGraph("g", keys=Keys).add_activity("work", function, **options)


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


@pytest.mark.parametrize("place", ["#{order.id}", "#{order.id?}", "#{order.id|none}"])
def test_a_template_that_can_not_reach_into_its_keys_type_is_found_at_build(place):
    def told(text):
        agent = SimpleAgent(ScriptedModel([]), name="clerk", instruction=text)
        return FlowGraph("g", keys=Keys).add_activity("load", print, to="clerk").add_agent(agent)

    expected = (
        r"agent 'clerk' of graph 'g' reads '#\{order.id\}', and 'order' is of type Order.*ctx\['order.id'\] = .*dict"
    )
    with pytest.raises(FlowDefinitionError, match=expected):
        told(f"Look at {place}").compile()
    told("Look at #{order}").compile()


def test_a_node_that_writes_what_is_given_and_set_once_is_found_at_build():
    class Once(KeySpace):
        question = Key(str, "input.question", given=True, once=True)

    with pytest.raises(ContextKeyError, match=r"activity 'a' of graph 'g' writes 'input.question', which is given and"):
        FlowGraph("g", keys=Once).add_activity("a", print, writes=[Once.question]).compile()
