"""What compile warns of, what `check` lists, and the graphs of which nothing is said."""

import operator
import warnings
from collections import Counter
from dataclasses import FrozenInstanceError
from inspect import currentframe
from itertools import pairwise
from typing import Annotated, Literal, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pregel import END, START, Command, Send, StateGraph
from pregel.channels import EphemeralValue, LastValue, UntrackedValue
from pregel.errors import PregelWarning, StarvedJoinError, UnreachableNodeError


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    count: int
    way: str


class Count(TypedDict):
    count: int


class Way(TypedDict):
    way: str


class Both(TypedDict):
    way: str
    count: int


class Log(TypedDict):
    log: list[str]


def step(name):
    def node(state):
        return {"log": [name]}

    return node


def returning(annotation):
    def node(state):
        return {}

    node.__annotations__["return"] = annotation
    return node


def build(nodes, *edges, deferred="", returns=None, schema=State, **options):
    """Return a builder: a node for each letter; edges, joins (a list), conditional edges (a set of targets)."""
    builder = StateGraph(schema, **options)
    for name in nodes:
        action = returning(returns[name]) if name in (returns or {}) else step(name)
        builder.add_node(name, action, defer=name in deferred)
    for source, target in edges:
        if isinstance(target, set):
            builder.add_conditional_edges(source, lambda state: END, [*sorted(target), END])
        else:
            builder.add_edge(source, target)
    return builder


def found(builder):
    """Return what the compiled graph's check finds, and see that compile warned of the same."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = builder.compile(name="demo")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = graph.check()
    given = [str(warning.message) for warning in caught if "[unreachable-node]" not in str(warning.message)]
    assert given == [finding.message for finding in result if finding.severity == "warning"]
    assert {warning.category for warning in caught} <= {PregelWarning}
    for finding in result:
        assert finding.message.endswith(f" [{finding.code}]")
        assert "'demo'" in finding.message
    return [(finding.code, finding.nodes, finding.fields) for finding in result]


def silent(builder):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert builder.compile().check() == []


# --- The findings -----------------------------------------------------------------------------------------------------


def test_a_warning_points_at_the_line_that_compiles():
    builder = build("ac", (START, "a"), (START, "c"), ("a", "c"))

    with pytest.warns(PregelWarning, match=r"'c'.*\[depths-differ\]$") as caught:
        builder.compile()
    (warning,) = caught
    assert (warning.filename, warning.lineno) == (__file__, currentframe().f_lineno - 2)


def test_a_finding_can_be_compared_and_not_be_changed():
    with pytest.warns(PregelWarning, match="'c'"):
        graph = build("ac", (START, "a"), (START, "c"), ("a", "c")).compile()
    first, again = graph.check(), graph.check()

    assert first == again
    assert len(set(first + again)) == 1
    with pytest.raises(FrozenInstanceError):
        first[0].code = "other"


def test_a_warning_can_be_ignored_by_its_code():
    builder = build("ac", (START, "a"), (START, "c"), ("a", "c"))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", r".*\[depths-differ\]$", PregelWarning)
        builder.compile()


def test_findings_come_by_code_and_in_the_order_of_the_nodes():
    builder = build(
        "rabcdx",
        (START, "r"),
        ("r", {"a", "b"}),
        (["a", "b"], "c"),
        (START, "d"),
        ("r", "d"),
        returns={"r": Count, "x": Count},
        allow={"unreachable-node"},
    )
    builder.add_node("left", returning(Command[Literal["d"]])).add_edge(START, "left").add_edge("left", "c")
    builder.add_node("right", returning(Count)).add_edge(START, "right")

    assert found(builder) == [
        ("unreachable-node", ("x",), ()),
        ("goto-and-edges", ("left",), ()),
        ("depths-differ", ("d", START, "r"), ()),
        ("may-starve", ("c", "a", "b"), ()),
        ("may-conflict", ("r", "right"), ("count",)),
    ]


# --- Unreachable nodes ------------------------------------------------------------------------------------------------


def test_an_unreachable_node_that_was_allowed_is_an_error_that_check_lists():
    builder = build("abc", (START, "a"), ("b", "c"), allow={"unreachable-node"})

    with pytest.warns(PregelWarning, match=r"'b', 'c'.*\[unreachable-node\]$") as caught:
        graph = builder.compile()
    (finding,) = graph.check()
    assert (finding.code, finding.severity, finding.nodes) == ("unreachable-node", "error", ("b", "c"))
    assert finding.message == str(caught[0].message)


def test_an_unreachable_node_that_was_not_allowed_is_raised():
    with pytest.raises(UnreachableNodeError, match=r"'b'.*\[unreachable-node\]$"):
        build("ab", (START, "a")).compile()


# --- Depths that differ -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edges", "nodes"),
    [
        pytest.param([(START, "a"), ("a", "c"), ("a", "b"), ("b", "c")], ("c", "a", "b"), id="a way round"),
        pytest.param([(START, "a"), (START, "c"), ("a", "b"), ("b", "c")], ("c", START, "b"), id="also from START"),
        pytest.param(
            [
                (START, "a"),
                (START, "b"),
                (["a", "b"], "d"),
                (START, "c"),
                ("c", "e"),
                ("e", "f"),
                ("d", "g"),
                ("f", "g"),
            ],
            ("g", "d", "f"),
            id="behind a join",
        ),
        pytest.param(
            [(START, "a"), (START, "b"), ("b", "c"), (["a", "c"], "d"), ("a", "d")], ("d", "a", "c"), id="edge and join"
        ),
        pytest.param(
            [(START, "r"), ("r", {"a", "b"}), ("a", "c"), ("a", "d"), ("d", "c")], ("c", "a", "d"), id="behind a router"
        ),
        pytest.param(
            [(START, "a"), ("a", "b"), ("b", "e"), ("a", "e"), ("e", {"a"})], None, id="but not in a loop of its own"
        ),
        pytest.param(
            [(START, "r"), ("r", "a"), ("a", {"r"}), ("a", "b"), ("r", "b")], ("b", "r", "a"), id="out of a loop"
        ),
        pytest.param(
            [(START, "a"), (START, "b"), ("b", "c"), ("a", "d"), ("c", "d"), ("d", "e"), ("a", "e")], ..., id="two"
        ),
    ],
)
def test_edges_that_arrive_in_different_supersteps(edges, nodes):
    ends = {
        end for source, target in edges for part in (source, target) for end in ([part] if type(part) is str else part)
    }
    names = sorted(ends - {START})
    expected = [("depths-differ", nodes, ())]
    if nodes is ...:
        expected = [("depths-differ", ("d", "a", "c"), ()), ("depths-differ", ("e", "a", "d"), ())]

    assert found(build(names, *edges)) == ([] if nodes is None else expected)


def test_the_warning_says_when_the_edges_arrive_and_what_to_do():
    builder = build("rabc", (START, "r"), ("r", {"a"}), ("a", "b"), ("b", "c"), ("a", "c"))

    with pytest.warns(PregelWarning) as caught:
        builder.compile(name="demo")
    assert str(caught[0].message) == (
        "node 'c' of graph 'demo' runs more than once: 'a' leads to it 1 superstep after 'a' and 'b' 2 supersteps "
        "after 'a', and a node runs in each superstep in which an edge arrives. To run it once, make the edges one "
        "join of 'a', 'b', or add 'c' with defer=True [depths-differ]"
    )


def test_a_long_list_of_names_is_cut_in_the_message():
    names = [f"n{number}" for number in range(9)]
    builder = build([*names, "last"], *((START, name) for name in names), *pairwise(names), ("n8", "last"))
    (first, *_) = [finding for finding in compiled(builder).check() if finding.nodes[0] == "n8"]
    assert first.nodes == ("n8", START, "n7")

    builder = build([*names, "r", "last"], (START, "r"), ("r", set(names)), (names, "last"))
    (finding,) = compiled(builder).check()
    assert finding.nodes == ("last", *names)
    assert "'n5' and 3 more into 'last'" in finding.message


def compiled(builder):
    with pytest.warns(PregelWarning):
        return builder.compile()


@pytest.mark.parametrize(
    ("nodes", "edges"),
    [
        pytest.param("abcd", [(START, "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")], id="equal depths"),
        pytest.param("rabc", [(START, "r"), ("r", {"a", "c"}), ("a", "b"), ("b", "c")], id="a router to the end"),
        pytest.param(
            "rabcd",
            [(START, "r"), ("r", {"a", "b"}), ("a", "d"), ("b", "c"), ("c", "d")],
            id="a router to branches of two lengths",
        ),
        pytest.param("rab", [(START, "r"), ("r", "b"), ("r", {"a"}), ("a", "b")], id="an edge beside a router"),
        pytest.param("ab", [(START, "a"), ("a", "b"), ("b", {"a"})], id="a loop"),
        pytest.param("ab", [(START, "a"), ("a", {"b"}), ("b", "a")], id="a tool loop"),
        pytest.param("abc", [(START, "a"), ("a", "b"), ("b", "c"), ("c", "a")], id="an endless loop"),
        pytest.param("abc", [(START, "a"), (START, "b"), ("b", "c")], id="two chains"),
        pytest.param("ab", [(START, "a"), ("a", "a"), ("a", "b")], id="a loop of one node"),
        pytest.param("abcd", [(START, "a"), (START, "b"), ("b", "c"), (["a", "c"], "d")], id="a join instead"),
        pytest.param(
            "abcdef",
            [(START, "a"), (START, "b"), (["a", "b"], "c"), ("c", "d"), (START, "e"), (["d", "e"], "f")],
            id="joins in series",
        ),
    ],
)
def test_nothing_is_said_of_edges_that_arrive_once_or_may_not_arrive(nodes, edges):
    silent(build(nodes, *edges))


def test_a_deferred_node_runs_once_wherever_its_edges_come_from():
    edges = [(START, "a"), (START, "b"), ("a", "d"), ("b", "c"), ("c", "d")]

    silent(build("abcd", *edges, deferred="d"))
    silent(build("abcdef", *edges, ("d", "e"), (START, "f"), ("f", "e"), deferred="d"))


def test_a_node_that_several_choices_lead_to_is_one_finding():
    edges = [("r", {"a", "b"}), ("a", "c"), ("b", "c"), ("c", "d"), ("d", "e"), ("c", "e")]

    assert found(build("rabcde", (START, "r"), *edges)) == [("depths-differ", ("e", "c", "d"), ())]


def test_what_follows_a_deferred_node_is_counted_from_it():
    builder = build("abdc", (START, "a"), ("a", "d"), ("d", "b"), ("b", "c"), ("d", "c"), deferred="d")

    assert found(builder) == [("depths-differ", ("c", "d", "b"), ())]


# --- Joins that may starve --------------------------------------------------------------------------------------------


def test_a_join_of_two_branches_of_a_router_may_starve():
    builder = build("rabcd", (START, "r"), ("r", {"a", "b"}), (["a", "b"], "c"), ("c", "d"))

    assert found(builder) == [("may-starve", ("c", "a", "b"), ())]
    message = compiled(builder).check()[0].message
    for word in ("'a', 'b' into 'c'", "StarvedJoinError", 'wait="live"'):
        assert word in message


def test_a_join_of_a_sure_and_a_chosen_source_may_starve():
    assert found(build("rac", (START, "r"), ("r", {"a"}), (["r", "a"], "c"))) == [("may-starve", ("c", "r", "a"), ())]


def test_a_join_of_packets_to_two_nodes_may_starve():
    builder = build("ac", (START, "a"))
    builder.add_node("work", lambda arg: {}).add_node("other", lambda arg: {}).add_edge(["work", "other"], "c")
    builder.add_conditional_edges("a", lambda state: [Send("work", 1), Send("other", 2)], ["work", "other"])

    assert found(builder) == [("may-starve", ("c", "work", "other"), ())]


def test_a_join_of_sources_that_commands_choose_may_starve():
    builder = build("abc", (["a", "b"], "c"))
    builder.add_node("r", lambda state: Command(goto=["a", "b"]), destinations=["a", "b"]).add_edge(START, "r")

    assert found(builder) == [("may-starve", ("c", "a", "b"), ())]


def test_a_join_behind_one_that_may_starve_is_judged_by_itself():
    edges = [(START, "r"), ("r", {"a", "b"}), (["a", "b"], "c"), ("c", "d"), ("c", "e"), (["d", "e"], "f")]
    builder = build("rabcdefg", *edges, (["f", "r"], "g"))

    assert found(builder) == [("may-starve", ("c", "a", "b"), ()), ("may-starve", ("g", "r", "f"), ())]


def test_a_join_that_a_node_that_goes_anywhere_may_feed_is_no_better_off():
    builder = build("rabc", (START, "r"), (["a", "b"], "c"))
    builder.add_conditional_edges("r", lambda state: ["a", "b"])

    assert found(builder) == [("may-starve", ("c", "a", "b"), ())]


def test_a_join_with_an_unreachable_source_may_starve():
    builder = build("abc", (START, "a"), (["a", "b"], "c"), allow={"unreachable-node"})

    assert [code for code, *_ in found(builder)] == ["unreachable-node", "may-starve"]


@pytest.mark.parametrize(
    ("nodes", "edges"),
    [
        pytest.param("abc", [(START, "a"), (START, "b"), (["a", "b"], "c")], id="both from START"),
        pytest.param("rabcd", [(START, "r"), ("r", {"d"}), ("d", "a"), ("d", "b"), (["a", "b"], "c")], id="one choice"),
        pytest.param("rac", [(START, "r"), ("r", {"a"}), (["a"], "c")], id="one source"),
        pytest.param("abc", [(START, "a"), ("a", "b"), (["a", "b"], "c"), ("c", {"a"})], id="in a loop"),
        pytest.param("rab", [(START, "r"), ("r", {"a", "b"}), (["a", "b"], END)], id="into END"),
    ],
)
def test_nothing_is_said_of_joins_whose_sources_run_together(nodes, edges):
    silent(build(nodes, *edges))


def test_a_join_whose_sources_follow_a_deferred_node_is_sure():
    silent(build("dabc", (START, "d"), ("d", "a"), ("d", "b"), (["a", "b"], "c"), deferred="d"))
    silent(build("dabc", (START, "d"), ("d", "a"), (START, "b"), (["a", "b"], "c"), deferred="d"))


def live(*edges, nodes="rabcde"):
    builder = build(nodes, (START, "r"), ("r", {"a", "b"}), *edges)
    builder.add_edge(["a", "b"], "c", wait="live")
    return builder


def test_a_live_join_does_not_starve_and_what_follows_it_is_sure():
    silent(live(("c", "d"), ("c", "e"), nodes="rabcde").add_edge(["d", "e"], "r"))
    silent(live((["a", "c"], "d"), nodes="rabcd"))


def test_a_live_join_behind_a_deferred_node_is_sure():
    builder = build("rdabc", (START, "r"), ("r", "d"), ("r", {"b"}), ("d", "a"), (["r", "c"], "e"), deferred="d")
    builder.add_node("e", step("e")).add_edge(["a", "b"], "c", wait="live")

    silent(builder)


def test_a_graph_too_large_to_look_at_wholly_is_not_accused():
    def graph(size):
        chain = [f"n{number}" for number in range(size)]
        backwards = [*reversed(chain), "x"]
        builder = build(["r", "c", *chain, "x"], (START, "r"), *pairwise(chain), (["n0", "x"], "c"))
        builder.add_conditional_edges("r", lambda state: END, [*backwards, END])
        return builder

    assert found(graph(30)) == [("may-starve", ("c", "n0", "x"), ())]
    silent(graph(2_000))


# --- Fields in conflict -----------------------------------------------------------------------------------------------


def parallel(left, right, schema=State, **options):
    returns = {"a": left, "b": right}
    return build("ab", (START, "a"), (START, "b"), returns=returns, schema=schema, **options)


def test_two_nodes_of_one_superstep_that_may_update_one_plain_field():
    assert found(parallel(Count, Count)) == [("may-conflict", ("a", "b"), ("count",))]
    assert found(parallel(Both, Both)) == [("may-conflict", ("a", "b"), ("count", "way"))]
    assert found(parallel(Both, Way)) == [("may-conflict", ("a", "b"), ("way",))]

    message = compiled(parallel(Count, Count)).check()[0].message
    for word in ("'a', 'b'", "'count'", "1 superstep after START", "reducer"):
        assert word in message


def test_three_nodes_in_conflict_are_one_finding():
    builder = build("abcd", *((START, name) for name in "abc"), ("a", "d"), returns=dict.fromkeys("abcd", Count))

    assert found(builder) == [("may-conflict", ("a", "b", "c"), ("count",))]


def test_nodes_of_a_branch_that_is_chosen_may_conflict():
    edges = [(START, "r"), ("r", {"c"}), ("c", "a"), ("c", "b")]

    assert found(build("rabc", *edges, returns=dict.fromkeys("ab", Count))) == [
        ("may-conflict", ("a", "b"), ("count",))
    ]


class Mine(LastValue):
    """A channel with a rule that only its author knows."""


@pytest.mark.parametrize(
    ("kind", "conflict"),
    [
        (LastValue, True),
        (EphemeralValue, True),
        (EphemeralValue(guard=True), True),
        (EphemeralValue(guard=False), False),
        (UntrackedValue, True),
        (UntrackedValue(guard=False), False),
        (Mine, False),
        (operator.add, False),
    ],
)
def test_the_channel_decides_whether_two_updates_conflict(kind, conflict):
    class Kinds(TypedDict, total=False):
        count: Annotated[int, kind]
        other: int

    assert found(parallel(Count, Count, Kinds)) == ([("may-conflict", ("a", "b"), ("count",))] if conflict else [])


def test_nothing_is_said_of_nodes_that_do_not_say_what_they_update():
    silent(parallel(Count, dict))
    silent(parallel(Count, Command[Literal["__end__"]]))
    silent(parallel(Count, None))
    silent(parallel(Log, Log))
    silent(parallel(Count, Way))
    silent(parallel(State, State))
    silent(parallel(Count, State))


def test_a_state_of_one_field_says_what_is_updated():
    assert found(build("ab", (START, "a"), (START, "b"), returns=dict.fromkeys("ab", Count), schema=Count)) == [
        ("may-conflict", ("a", "b"), ("count",))
    ]


@pytest.mark.parametrize(
    "edges",
    [
        pytest.param([(START, "a"), ("a", "b")], id="in series"),
        pytest.param([(START, "r"), ("r", {"a", "b"})], id="one of two"),
        pytest.param([(START, "a"), ("a", {"b"}), (START, "r")], id="one is chosen"),
    ],
)
def test_nothing_is_said_of_nodes_that_are_not_sure_to_run_in_one_superstep(edges):
    nodes = "rab" if any("r" in edge for edge in edges) else "ab"

    silent(build(nodes, *edges, returns=dict.fromkeys("ab", Count)))


# --- Commands beside edges --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("annotation", [Command, Command[Literal["b"]], Command[Literal["b", "__end__"]] | Count])
@pytest.mark.parametrize("source", ["r", ["r"], ["r", "a"]])
def test_a_node_with_commands_and_edges(annotation, source):
    builder = build("abc", (START, "a"), ("a", "b")).add_node("r", returning(annotation)).add_edge(START, "r")
    builder.add_edge(source, "c")
    codes = [finding for finding in found(builder) if finding[0] == "goto-and-edges"]

    assert codes == [("goto-and-edges", ("r",), ())]


def test_the_warning_names_where_the_edges_lead():
    builder = build("abc", (["r", "a"], "b"), ("r", "a"))
    builder.add_node("r", step("r"), destinations=["c"]).add_edge(START, "r")
    message = compiled(builder).check()[0].message

    assert "node 'r' of graph 'State' has edges to 'a', 'b'" in message


def test_nothing_is_said_of_commands_beside_conditional_edges_or_an_edge_to_end():
    builder = build("ab").add_node("r", step("r"), destinations=["a"]).add_edge(START, "r").add_edge("r", END)

    silent(builder.add_conditional_edges("r", lambda state: "b", ["b"]))


# --- Random graphs ----------------------------------------------------------------------------------------------------


@st.composite
def acyclic(draw):
    """Draw a graph of edges and joins in which every node is sure to run: nodes, edges."""
    nodes = [f"n{number}" for number in range(draw(st.integers(1, 9)))]
    edges = []
    for number, name in enumerate(nodes):
        earlier = st.sampled_from([START, *nodes[:number]])
        for _ in range(draw(st.sampled_from([1, 1, 1, 2, 2, 3]))):
            sources = draw(st.lists(earlier, min_size=1, max_size=3, unique=True))
            joined = len(sources) > 1 and START not in sources
            edges.append((sources if joined else sources[0], name))
    return nodes, edges


def simulate(nodes, edges):
    """Return in which supersteps each node runs, and how often each of its sources did before."""
    ran, due, superstep = {name: [] for name in nodes}, {START}, 0
    heard = [set() for _ in edges]
    while due:
        following = set()
        for index, (sources, target) in enumerate(edges):
            wanted = {sources} if isinstance(sources, str) else set(sources)
            heard[index] |= wanted & due
            if heard[index] == wanted:
                following.add(target)
                heard[index] = set()
        superstep += 1
        due = following
        for name in due:
            ran[name].append(superstep)
    return ran


@given(acyclic())
def test_depths_differ_exactly_where_a_node_starts_to_run_twice(plan):
    nodes, edges = plan
    builder = build(nodes, *edges)
    results = found(builder)
    ran = simulate(nodes, edges)

    assert {code for code, *_ in results} <= {"depths-differ"}
    accused = {names[0] for _, names, _ in results}
    into = {name: set() for name in nodes}
    for sources, target in edges:
        into[target].update({sources} if isinstance(sources, str) else sources)
    twice = {name for name in nodes if len(ran[name]) > 1}
    first = {name for name in twice if not into[name] & twice}
    assert first <= accused <= twice

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = builder.compile()
    try:
        log = graph.invoke({})["log"]
    except StarvedJoinError as error:  # a join that hears a node twice, and its other sources once
        log = error.state["log"]
        assert accused
    assert Counter(log) == {name: len(steps) for name, steps in ran.items() if steps}
