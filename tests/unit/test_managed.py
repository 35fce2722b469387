"""Values that the engine computes."""

from typing import TypedDict

import pytest

from pregel import END, START, StateGraph
from pregel.errors import InvalidInputError, InvalidUpdateError
from pregel.managed import IsLastStep, RemainingSteps


class State(TypedDict):
    seen: list
    last: IsLastStep
    left: RemainingSteps


def note(state):
    return {"seen": [*state.get("seen", []), (state["last"], state["left"])]}


def looping(node=note, **options):
    builder = StateGraph(State).add_node("note", node).add_edge(START, "note")
    builder.add_conditional_edges("note", lambda state: END if state["last"] else "note", ["note", END])
    return builder.compile(**options)


def test_they_count_down_to_the_recursion_limit(door):
    expected = [(False, 2), (False, 1), (True, 0)]
    assert door.invoke(looping(), {}, {"recursion_limit": 3}) == {"seen": expected}
    assert door.invoke(looping(debug=True), {}, {"recursion_limit": 3}) == {"seen": expected}


def test_they_are_no_state_and_stand_in_no_schema():
    graph = looping()
    assert set(graph.channels) == {"seen"}
    assert set(graph.get_input_jsonschema()["properties"]) == {"seen"}
    assert set(graph.get_output_jsonschema()["properties"]) == {"seen"}
    with pytest.raises(InvalidInputError, match="'left'"):
        graph.invoke({"left": 5})


def test_nobody_writes_them():
    graph = looping(lambda state: {"left": 5})
    with pytest.raises(InvalidUpdateError, match="updates 'left', which the engine computes"):
        graph.invoke({})


def test_only_who_reads_them_gets_them():
    class Plain(TypedDict):
        seen: list

    def plain(state: Plain):
        assert set(state) == {"seen"}
        return {}

    graph = StateGraph(State).add_node(plain).add_edge(START, "plain").compile()
    assert graph.invoke({"seen": []}) == {"seen": []}
