"""Nodes that are deferred live: they run once, when all that can come to them has come."""

from typing import Annotated, Literal

import pytest
from typing_extensions import TypedDict

from pregel import END, START, Command, Send, StateGraph
from pregel.errors import GraphDefinitionError, UnknownTargetError


def joined(left: str, right: str) -> str:
    return left + right


class State(TypedDict):
    log: Annotated[str, joined]


def writes(name):
    def node(state: State) -> dict:
        return {"log": name}

    return node


def graph(*edges, live="", deferred="", nodes=""):
    """Return a builder of nodes that log their names, with edges written as "ab"; ">a" is one from START."""
    names = nodes or "".join(sorted({each for edge in edges for each in edge} - {">", "."}))
    builder = StateGraph(State)
    for name in names:
        builder.add_node(name, writes(name), defer="live" if name in live else name in deferred)
    for source, target in edges:
        builder.add_edge(START if source == ">" else source, END if target == "." else target)
    return builder


def steps(door, builder):
    """Return the names of each superstep's tasks, in order."""
    compiled = builder.compile(name="demo")
    found = {}
    for part in door.stream(compiled, {"log": ""}, stream_mode="tasks", version="v2"):
        if "input" in part["data"]:
            found.setdefault(part["step"], []).append(part["data"]["name"])
    return ["".join(found[step]) for step in sorted(found)]


def test_branches_of_unequal_length_meet_once(door):
    assert steps(door, graph(">a", ">b", "bc", "cd", "ae", "de", live="e")) == ["ab", "c", "d", "e"]


def test_without_it_the_node_runs_for_each_arrival(door):
    with pytest.warns(match="depths-differ"):
        assert steps(door, graph(">a", ">b", "bc", "cd", "ae", "de")) == ["ab", "ce", "d", "e"]


def test_it_does_not_wait_for_branches_that_do_not_lead_to_it(door):
    assert steps(door, graph(">a", ">b", "bc", "cd", "ae", live="e")) == ["ab", "ce", "d"]


def routed(answer: str):
    """Return a builder in which "r" leads to "x", which leads to the gathering "j", or to its end."""

    def path(state: State) -> Literal["x", "__end__"]:
        return answer

    return graph(">a", ">r", "aj", "xj", live="j", nodes="arxj").add_conditional_edges("r", path)


@pytest.mark.parametrize(("answer", "wanted"), [("x", ["ar", "x", "j"]), (END, ["ar", "j"])])
def test_a_branch_that_is_routed_away_is_not_waited_for(door, answer, wanted):
    assert steps(door, routed(answer)) == wanted


def test_edges_of_all_kinds_arrive(door):
    def goes(state: State) -> Command[Literal["j"]]:
        return Command(update={"log": "g"}, goto="j")

    builder = graph(">a", ">b", "bc", "cd", "aj", live="j", nodes="abcdj")
    builder.add_node("g", goes).add_edge(START, "g").add_conditional_edges("d", lambda _: "j", ["j"])
    assert steps(door, builder) == ["abg", "c", "d", "j"]


def test_it_gathers_anew_in_every_round_of_a_loop(door):
    def again(state: State) -> Literal["a", "__end__"]:
        return "a" if state["log"].count("j") < 3 else END

    builder = graph(">a", "ab", "ac", "cd", "bj", "dj", live="j", nodes="abcdj").add_conditional_edges("j", again)
    assert steps(door, builder) == ["a", "bc", "d", "j"] * 3


def test_the_head_of_a_loop_may_gather(door):
    def again(state: State) -> Literal["h", "__end__"]:
        return "h" if state["log"].count("h") < 3 else END

    builder = graph(">a", "ah", "hb", live="h", nodes="ahb").add_conditional_edges("b", again)
    assert steps(door, builder) == ["a", "h", "b", "h", "b", "h", "b"]


def test_of_two_that_lead_to_each_other_the_one_added_first_goes(door):
    def back(state: State) -> Literal["h", "__end__"]:
        return "h" if len(state["log"]) < 4 else END

    builder = graph(">h", ">k", "hk", live="hk", nodes="hk").add_conditional_edges("k", back)
    assert steps(door, builder) == ["h", "k", "h", "k"]


def test_two_in_series_run_in_order(door):
    assert steps(door, graph(">a", ">b", "bc", "aj", "cj", "jk", "ak", live="jk")) == ["ab", "c", "j", "k"]


def test_deferred_nodes_come_after_it_and_those_that_lead_to_it_before(door):
    assert steps(door, graph(">a", ">b", ">d", "bc", "aj", "cj", live="j", deferred="d")) == ["ab", "c", "j", "d"]
    assert steps(door, graph(">a", ">b", ">d", "aj", "dj", live="j", deferred="d")) == ["ab", "d", "j"]


def test_packets_to_it_wait_too(door):
    def sends(state: State) -> Command[Literal["j"]]:
        return Command(goto=[Send("j", state), Send("j", state)])

    builder = graph(">b", "bc", "cj", live="j", nodes="bcj")
    builder.add_node("s", sends).add_edge(START, "s")
    assert steps(door, builder) == ["bs", "c", "jjj"]


def test_a_target_that_is_not_declared_is_an_error(door):
    builder = graph(">a", "aj", live="j", nodes="aj").add_node("x", writes("x")).add_edge("j", "x")
    builder.add_node("g", lambda _: Command(goto="x"), destinations=["j"]).add_edge(START, "g")
    with pytest.raises(UnknownTargetError, match="live node"):
        door.invoke(builder.compile(), {"log": ""})


def test_it_waits_for_whatever_may_go_anywhere(door):
    def anywhere(state: State) -> Command:
        return Command(update={"log": "g"}, goto="j")

    builder = graph(">a", "aj", ">b", "bg", live="j", nodes="abj").add_node("g", anywhere)
    assert steps(door, builder) == ["ab", "g", "j"]


def test_live_joins_beside_it_are_refused():
    builder = graph(">a", ">b", "aj", live="j").add_node("k", writes("k")).add_edge(["a", "b"], "k", wait="live")
    with pytest.raises(GraphDefinitionError, match="waits for what can still come"):
        builder.compile()


@pytest.mark.parametrize("wrong", ["all", "Live", None, 2])
def test_another_word_for_it_is_an_error(wrong):
    with pytest.raises(GraphDefinitionError, match='True, False or "live"'):
        StateGraph(State).add_node("a", writes("a"), defer=wrong)


def test_it_is_drawn_as_deferred_and_changes_the_fingerprint():
    live, plain, deferred = (graph(">a", "aj", **how).compile() for how in ({"live": "j"}, {}, {"deferred": "j"}))
    assert live.get_graph().nodes["j"]["defer"] == "live"
    assert len({live.fingerprint, plain.fingerprint, deferred.fingerprint}) == 3


@pytest.mark.parametrize("names", ["habIJ", "habJI", "JIhab"])
def test_in_a_cycle_what_leads_to_another_gathering_node_goes_first_however_they_were_added(door, names):
    """Both wait, and each leads to the other: J, further on in the same round, must not run without I."""

    def again(state: State) -> Literal["h", "__end__"]:
        return "h" if state["log"].count("J") < 2 else END

    builder = graph(">h", "ha", "hb", "hJ", "aI", "bI", "IJ", live="IJ", nodes=names)
    builder.add_conditional_edges("J", again)
    assert ["".join(sorted(step)) for step in steps(door, builder)] == ["h", "ab", "I", "J"] * 2


@pytest.mark.parametrize("names", ["hlbcAJ", "hlbcJA", "JAhlbc"])
def test_a_round_of_a_loop_inside_goes_before_what_comes_after_that_loop(door, names):
    """ "A" gathers the two ends of a round of the loop "l"; "J" gathers what that loop and a branch beside it give."""

    def inner(state: State) -> list[Literal["b", "c", "J"]]:
        return ["b", "c"] if state["log"].count("l") % 3 else ["J"]

    def outer(state: State) -> Literal["h", "__end__"]:
        return "h" if state["log"].count("J") < 2 else END

    builder = graph(">h", "hl", "hJ", "bA", "cA", "Al", live="AJ", nodes=names)
    builder.add_conditional_edges("l", inner).add_conditional_edges("J", outer)
    found = ["".join(sorted(step)) for step in steps(door, builder)]
    assert found == ["h", "l", "bc", "A", "l", "bc", "A", "l", "J"] * 2
