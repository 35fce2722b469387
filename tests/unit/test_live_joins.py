"""Joins that wait only for what can still come: they fire when nothing due leads to a source they miss."""

import operator
from typing import Annotated, Literal, TypedDict
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pregel import END, START, Command, Send, StateGraph
from pregel.errors import GraphRecursionError, StarvedJoinError, UnknownTargetError
from pregel.testing import reference

# Most of these graphs have routers beside edges, of which the analysis warns; see test_a_live_join_is_not_warned_of.
may_warn = pytest.mark.filterwarnings("ignore::pregel.errors.PregelWarning")


class State(TypedDict, total=False):
    log: Annotated[list, operator.add]
    way: list


def writes(update):
    """Return a node that returns an update."""
    return lambda state: update


def logging(names, *edges, defer=()):
    """Return a builder of nodes that log their names, with edges written as "ab" or as ("ab", "c") for a live join."""
    builder = StateGraph(State)
    for name in names:
        builder.add_node(name, writes({"log": [name]}), defer=name in defer)
    for edge in edges:
        if isinstance(edge, tuple):
            builder.add_edge(list(edge[0]), edge[1], wait="live")
        else:
            builder.add_edge(START if edge[0] == ">" else edge[0], edge[1])
    return builder


def choosing(builder, source, targets, path=lambda state: state["way"]):
    """Add a router that takes the way that the input names."""
    return builder.add_conditional_edges(source, path, [*targets, END])


def log(door, builder, **given):
    """Run a graph and return what its nodes logged, as one text."""
    return "".join(door.invoke(builder.compile(), given)["log"])


def begun(door, builder, limit):
    """Run the first supersteps of a graph and return the nodes of each, as a text."""
    steps = {}
    for part in door.stream(builder.compile(), {}, {"recursion_limit": limit}, stream_mode="tasks", version="v2"):
        if isinstance(part, Exception):
            assert isinstance(part, GraphRecursionError)
        elif "input" in part["data"]:
            steps[part["step"]] = steps.get(part["step"], "") + part["data"]["name"]
    return list(steps.values())


# --- Routers that skip sources ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "expected"),
    [(["a"], "racd"), (["b"], "rbcd"), (["a", "b"], "rabcd"), (["b", "a"], "rabcd"), ([], "r"), ([END], "r")],
)
def test_case_02_a_router_may_skip_one_source_or_none_or_all(door, way, expected):
    builder = choosing(logging("rabcd", ">r", ("ab", "c"), "cd"), "r", "ab")
    assert log(door, builder, way=way) == expected


@pytest.mark.parametrize(("way", "expected"), [(["a"], "ac"), (["b"], "bc"), (["a", "b"], "abc"), ([], "")])
def test_the_router_may_be_that_of_start(door, way, expected):
    assert log(door, choosing(logging("abc", ("ab", "c")), START, "ab"), way=way) == expected


def test_where_all_sources_run_a_live_join_is_a_join(door):
    for wait in ("all", "live"):
        builder = logging("abcd", ">a", ">b", "bc").add_edge(["a", "c"], "d", wait=wait)
        assert log(door, builder) == "abcd"


def test_a_join_that_waits_for_all_starves_where_a_live_one_fires(door):
    builder = choosing(logging("rabc", ">r"), "r", "ab").add_edge(["a", "b"], "c")
    with pytest.warns(match="may-starve"):
        graph = builder.compile()
    with pytest.raises(StarvedJoinError):
        door.invoke(graph, {"way": ["a"]})


def test_a_live_join_is_not_warned_of():
    choosing(logging("rabc", ">r", ("ab", "c")), "r", "ab").compile()  # a warning would be an error


def test_a_join_of_one_source_fires_after_each_run_of_it(door):
    builder = choosing(logging("ab", ">a", ("a", "b")), "b", "a", lambda s: "a" if len(s["log"]) < 4 else END)
    assert log(door, builder) == "abab"


# --- Sources at different depths --------------------------------------------------------------------------------------


def test_sources_of_unequal_depth_are_waited_for(door):
    assert log(door, logging("abcdj", ">a", ">b", "bc", "cd", ("ad", "j"))) == "abcdj"


@pytest.mark.parametrize(("way", "expected"), [(["x"], "amxj"), ([END], "amj")])
def test_a_source_that_is_skipped_late_is_waited_for_until_then(door, way, expected):
    builder = choosing(logging("amxj", ">a", ">m", ("ax", "j")), "m", "x")
    assert log(door, builder, way=way) == expected


def test_what_can_not_lead_to_a_missing_source_is_not_waited_for(door):
    """`s`, `t`, `u` are a long branch beside the join; it fires while they run."""
    builder = choosing(logging("rastujb", ">r", ">s", "st", "tu", ("ab", "j")), "r", "ab")
    assert log(door, builder, way=["a"]) == "rsatuj"


@may_warn
def test_a_source_that_runs_again_before_the_join_fires_counts_once(door):
    builder = logging("abcj", ">a", ">b", "bc", "ca", ("ab", "j"))  # here `j` fires twice, the second time for `a`
    assert log(door, builder) == "abcjaj"
    builder = logging("abcdj", ">a", ">b", "ba", "ac", ("acd", "j"))
    choosing(builder, "c", "d", lambda state: END)
    # `a` runs in the first two supersteps, `c` in the two after them; what leads to `d` is over with the last `c`.
    assert log(door, builder) == "abaccj"


# --- In series --------------------------------------------------------------------------------------------------------

SERIES = [("ab", "c"), ("cd", "e")]


@pytest.mark.parametrize("joins", [SERIES, SERIES[::-1]])
@pytest.mark.parametrize(
    ("way", "expected"),
    [
        (["a", "b", "d"], "rabdce"),
        (["a", "d"], "radce"),
        (["d"], "rde"),
        (["b"], "rbce"),
        ([], "r"),
    ],
)
def test_joins_in_series_are_decided_upstream_first(door, joins, way, expected):
    builder = choosing(logging("rabdce", ">r", *joins), "r", "abd")
    assert log(door, builder, way=way) == expected


@pytest.mark.parametrize("joins", [[("ab", "c"), ("dx", "e")], [("dx", "e"), ("ab", "c")]])
def test_a_join_waits_for_what_another_join_that_has_not_fired_leads_to(door, joins):
    """`c` leads to `x` over `y`."""
    builder = choosing(logging("rabdcyxe", ">r", "cy", "yx", *joins), "r", "abd")
    assert log(door, builder, way=["a", "d"]) == "radcyxe"
    assert log(door, builder, way=["d"]) == "rde"


def test_a_live_join_after_one_that_waits_for_all(door):
    builder = logging("abcde", ">a", ">b", ">d", ("cd", "e")).add_edge(["a", "b"], "c")
    assert log(door, builder) == "abdce"


@may_warn
def test_a_join_that_waits_for_all_leads_nowhere_until_it_fires(door):
    """It has heard from one source and never will from the other: a live join after it does not wait for it."""
    builder = choosing(logging("rabcde", ">r", ("cd", "e")), "r", "abd").add_edge(["a", "b"], "c")
    *_, last, error = door.stream(builder.compile(), {"way": ["a", "d"]}, stream_mode="values")
    assert "".join(last["log"]) == "rade"
    assert isinstance(error, StarvedJoinError)
    assert "'c'" in str(error)
    assert "'e'" not in str(error)


# --- In cycles --------------------------------------------------------------------------------------------------------


def test_case_12_a_live_join_in_a_loop_fires_in_every_round(door):
    """Round by round the router takes both sources, then the one, then the other."""
    rounds = [["a", "b"], ["a"], ["b"], []]
    builder = logging("rabj", ">r", "jr", ("ab", "j"))
    choosing(builder, "r", "ab", lambda state: rounds[state["log"].count("j")])
    assert log(door, builder) == "rabj" + "raj" + "rbj" + "r"


def test_case_12_two_live_joins_in_a_loop_lose_nothing(door):
    builder = logging("xabjkc", ">x", "xa", "xb", "xc", ("ab", "j"), ("jc", "k"))
    choosing(builder, "k", "x", lambda state: "x" if state["log"].count("k") < 3 else END)
    assert log(door, builder) == "xabcjk" * 3


def test_case_12_a_map_and_two_live_joins_in_series_lose_nothing(door):
    builder = logging("sp12", ">s", ">p", ("m", "1"), ("1p", "2")).add_node("m", lambda arg: {"log": [arg]})
    builder.add_conditional_edges("s", lambda state: [Send("m", n) for n in "xyz"], ["m"])
    assert log(door, builder) == "spxyz12"


def test_two_joins_that_lead_to_each_other_are_decided_in_the_order_they_were_added(door):
    """`j` misses `p`, to which only `k` leads, and `k` misses `q`, to which only `j` leads: the first one fires."""
    first, second = ("ap", "j"), ("bq", "k")
    edges = (">a", ">b", "jq", "kp")
    assert begun(door, logging("abjkpq", *edges, first, second), 4) == ["ab", "j", "q", "k"]
    assert begun(door, logging("abjkpq", *edges, second, first), 4) == ["ab", "k", "p", "j"]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_join_downstream_of_such_a_cycle_is_decided_after_it(door, place):
    """`t` misses `z`, to which `j` leads: it is decided after `j` even if it was added before."""
    joins = [("ap", "j"), ("bq", "k")]
    joins.insert(place, ("bz", "t"))
    builder = logging("abjktpqz", ">a", ">b", "jq", "jz", "kp", *joins)
    assert begun(door, builder, 4) == ["ab", "j", "qz", "kt"]


# --- Send, commands ---------------------------------------------------------------------------------------------------


def test_packets_to_sources_are_waited_for(door):
    builder = logging("abcj", ">a", ("ac", "j"))
    builder.add_conditional_edges("a", lambda state: [Send("b", {}), Send("b", {})], ["b"])
    choosing(builder, "b", "c", lambda state: "c")
    assert log(door, builder) == "abbcj"


def test_several_runs_of_one_source_are_one(door):
    builder = logging("abj", ("ab", "j"))
    builder.add_conditional_edges(START, lambda state: [Send("a", {}), Send("a", {}), Send("a", {})], ["a", "b"])
    assert log(door, builder) == "aaaj"


def test_a_goto_that_is_declared_is_waited_for(door):
    def go(state) -> Command[Literal["b", "x"]]:
        return Command(goto=state["way"])

    builder = logging("abxj", ">a", ("ab", "j")).add_node("go", go).add_edge(START, "go").add_edge("x", "b")
    assert log(door, builder, way=["b"]) == "abj"
    assert log(door, builder, way=["x"]) == "axbj"
    assert log(door, builder, way=[]) == "aj"


@pytest.mark.parametrize("goto", ["b", ["b"], Send("b", {})])
@pytest.mark.parametrize("destinations", [(), ("a",)])
def test_a_goto_that_is_not_declared_is_an_error_that_names_the_remedy(door, goto, destinations):
    builder = choosing(logging("abj", ("ab", "j")), START, "ab", lambda state: "a")
    builder.add_node("go", writes(Command(goto=goto)), destinations=destinations).add_edge(START, "go")
    with pytest.raises(UnknownTargetError) as caught:
        door.invoke(builder.compile(name="demo"), {})
    for word in ("'go'", "'demo'", "'b'", "live join", "destinations=[...]", "Command[Literal[...]]"):
        assert word in str(caught.value)


def test_a_packet_that_a_path_does_not_declare_is_an_error(door):
    builder = choosing(logging("abj", ("ab", "j")), START, "ab", lambda state: "a")
    builder.add_conditional_edges("a", lambda state: Send("b", {}), ["j"])
    with pytest.raises(UnknownTargetError, match="path_map"):
        door.invoke(builder.compile(), {})


def test_a_goto_that_is_not_declared_is_none_of_a_graphs_business_without_a_live_join(door):
    builder = choosing(logging("ab"), START, "ab", lambda state: END)
    builder.add_node("go", writes(Command(goto="b"))).add_edge(START, "go")
    assert log(door, builder) == "b"


def test_a_goto_to_end_needs_no_declaration(door):
    builder = logging("abj", ("ab", "j")).add_node("go", writes(Command(goto=END)))
    choosing(builder, START, ["a", "b", "go"], lambda state: ["a", "go"])
    assert log(door, builder) == "aj"


def test_a_node_that_may_go_anywhere_is_waited_for(door):
    def go(state) -> Command:
        return Command(update={"log": ["g"]}, goto=state["way"])

    builder = logging("axbj", ">a", ">x", ("ab", "j")).add_node("g", go).add_edge("x", "g")
    assert log(door, builder, way=["b"]) == "axgbj"
    assert log(door, builder, way=[]) == "axgj"


def test_a_router_that_does_not_say_where_it_leads_is_waited_for(door):
    builder = logging("axbj", ">a", ">x", ("ab", "j")).add_conditional_edges("x", lambda state: state["way"])
    assert log(door, builder, way=["b"]) == "axbj"
    assert log(door, builder, way=[]) == "axj"


def test_a_command_of_a_child_must_lead_where_its_node_declares(door):
    child = StateGraph(State).add_node("up", writes(Command(graph=Command.PARENT, goto="b"))).add_edge(START, "up")
    for destinations in ((), ("b",)):
        builder = logging("abj", ("ab", "j")).add_node("child", child.compile(), destinations=destinations)
        choosing(builder, START, ["a", "b", "child"], lambda state: ["a", "child"])
        if destinations:
            assert log(door, builder) == "abj"
        else:
            with pytest.raises(UnknownTargetError, match="live join"):
                log(door, builder)


@pytest.mark.parametrize(("way", "expected"), [(["child"], "xyj"), (["child", "b"], "bxyj"), (["b"], "bj")])
def test_a_child_may_be_a_source(door, way, expected):
    child = logging("xy", ">x", "xy").compile()
    builder = logging("bj").add_node("child", child).add_edge(["child", "b"], "j", wait="live")
    assert log(door, choosing(builder, START, ["b", "child"]), way=way) == expected


# --- Deferred nodes ---------------------------------------------------------------------------------------------------


def test_live_joins_fire_before_deferred_nodes_run(door):
    builder = choosing(logging("rabcdj", ">r", ("ab", "j"), "rd", "dc", defer="d"), "r", "ab")
    assert log(door, builder, way=["a"]) == "rajdc"


def test_a_deferred_node_that_leads_to_a_missing_source_is_waited_for(door):
    builder = choosing(logging("rabdj", ">r", ("ab", "j"), "rd", "db", defer="d"), "r", "ab")
    assert log(door, builder, way=["a"]) == "radbj"


def test_a_deferred_packet_that_leads_to_a_missing_source_is_waited_for(door):
    builder = logging("abdj", ("ab", "j"), "db", defer="d")
    builder.add_conditional_edges(START, lambda state: ["a", Send("d", {})], ["a", "d"])
    assert log(door, builder) == "adbj"


def test_the_target_of_a_live_join_may_be_deferred(door):
    builder = choosing(logging("rastj", ">r", ">s", "st", ("ab", "j"), defer="j").add_node("b", writes({})), "r", "ab")
    assert log(door, builder, way=["a"]) == "rsatj"


def test_a_deferred_source_is_waited_for(door):
    assert log(door, logging("axydj", ">a", ">d", ">x", "xy", ("ad", "j"), defer="d")) == "axydj"


# --- Runs -------------------------------------------------------------------------------------------------------------


def test_each_run_hears_for_itself(door):
    builder = choosing(logging("rabc", ">r", ("ab", "c")), "r", "ab")
    graph = builder.compile()
    for _ in range(2):
        assert "".join(door.invoke(graph, {"way": ["a"]})["log"]) == "rac"
        assert "".join(door.invoke(graph, {"way": ["b"]})["log"]) == "rbc"


def test_a_live_join_into_end_waits_for_nothing(door):
    assert log(door, logging("ab", ">a", ">b").add_edge(["a", "b"], END, wait="live")) == "ab"


# --- Against the rule, word by word -----------------------------------------------------------------------------------


@st.composite
def plans(draw):
    """Return a small graph as plain data: deferred nodes, edges, routers, joins of both kinds, and a seed."""
    names = [f"n{number}" for number in range(draw(st.integers(3, 6)))]
    one_or_two = st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)
    few = st.one_of(st.just([]), st.just([]), one_or_two)  # few edges leave joins waiting
    edges = {name: draw(few) for name in names}
    routers = {
        name: (draw(one_or_two), draw(st.sampled_from(["edge", "send"])))
        for name in (START, *names)
        if not draw(st.integers(0, 2))
    }
    edges[START] = draw(one_or_two)
    sources = st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True)
    wait, target = st.sampled_from(["live", "live", "live", "all"]), st.sampled_from(names)
    joins = [(tuple(draw(sources)), draw(target), draw(wait))]
    if draw(st.booleans()):  # a second one, often after the first
        after = [joins[0][1]] if draw(st.booleans()) else []
        joins.append((tuple(dict.fromkeys([*after, *draw(sources)])), draw(target), draw(wait)))
    if draw(st.booleans()):
        joins.reverse()
    deferred = draw(st.lists(st.sampled_from(names), max_size=1))
    return names, deferred, edges, routers, {(ends, into): wait for ends, into, wait in joins}, draw(st.integers(0, 50))


def router(name, targets, kind, seed):
    """Return a path that chooses some of its targets, by what has run so far."""

    def path(state):
        bits = crc32(f"{seed}{name}{state['log']}".encode())
        chosen = [target for place, target in enumerate(targets) if bits >> place & 1]
        return chosen if kind == "edge" else [Send(target, {}) for target in chosen]

    return path


def built(plan):
    names, deferred, edges, routers, joins, seed = plan
    builder = StateGraph(State, strict=False)  # a join that starves, a node that nothing reaches: none of it matters
    for name in names:
        builder.add_node(name, writes({"log": [name]}), defer=name in deferred)
    for source, targets in edges.items():
        for target in targets:
            builder.add_edge(source, target)
    for source, (targets, kind) in routers.items():
        builder.add_conditional_edges(source, router(source, targets, kind, seed), targets)
    for (sources, target), wait in joins.items():
        builder.add_edge(list(sources), target, wait=wait)
    return builder.compile()


def described(plan):
    names, deferred, edges, routers, joins, seed = plan
    return reference.Graph(
        {"log": reference.Field("reduce", [], operator.add)},
        {name: reference.Node(writes({"log": [name]}), name in deferred) for name in names},
        tuple((source, target) for source, targets in edges.items() for target in targets),
        tuple(joins),
        tuple(
            reference.Branch(source, router(source, targets, kind, seed), {target: target for target in targets})
            for source, (targets, kind) in routers.items()
        ),
    )


def by_the_rule(graph, waits, limit):
    """Return the tasks of each superstep, as the rule for joins has it; everything is scanned, in every step."""
    state, due, waiting, trace = {"log": []}, [START], [], []
    heard = {join: set() for join in graph.joins}
    while due and len(trace) <= limit:
        trace.append([reference.name_of(task) for task in due])
        results = [reference.perform(graph, state, task, {}) for task in due]
        state = reference.applied(graph, state, [update for updates, _ in results for update in updates], graph.fields)
        asked = [*waiting, *(target for _, targets in results for target in targets)]
        for join in graph.joins:
            heard[join] |= {name for name in trace[-1] if name in join[0]}
            if heard[join] == set(join[0]):
                asked.append(join[1])
                heard[join] = set()
        pending = [join for join in graph.joins if heard[join] and waits[join] == "live"]
        while pending:
            join = foremost(graph, pending, heard)
            pending.remove(join)
            if not any(can_lead(graph, reference.name_of(task), join, heard) for task in asked):
                asked.append(join[1])
                heard[join] = set()
        due, waiting = reference.plan(graph, asked)
    return trace, bool(due)


def can_lead(graph, name, join, heard):
    """Return whether a run of a node can lead to a source that a join misses."""
    return any(reference.leads_to(graph, name, source) for source in join[0] if source not in heard[join])


def foremost(graph, pending, heard):
    """Return the join to decide next: none that is undecided leads to it, but those that it leads to as well."""
    before = {
        join: {other for other in pending if other != join and can_lead(graph, other[1], join, heard)}
        for join in pending
    }
    for _ in pending:
        before = {join: others.union(*(before[other] for other in others)) for join, others in before.items()}
    return next(join for join in pending if all(join in before[other] for other in before[join] - {join}))


@may_warn
@settings(max_examples=300)
@given(plan=plans())
def test_live_joins_fire_as_the_rule_says(plan):
    limit = 7
    trace, goes_on = by_the_rule(described(plan), plan[4], limit)
    steps, error = {}, None
    try:
        for part in built(plan).stream({}, {"recursion_limit": limit}, stream_mode="tasks", version="v2"):
            if "input" in part["data"]:
                steps.setdefault(part["step"], []).append(part["data"]["name"])
    except GraphRecursionError as raised:
        error = raised
    assert list(steps.values()) == trace[1:]
    assert (error is not None) == goes_on
