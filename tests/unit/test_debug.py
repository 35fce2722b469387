"""`compile(debug=True)`: nodes that change what they were given are found, and nothing of it gets into the state."""

import operator
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pytest

from pregel import START, Send, StateGraph
from pregel.errors import MutatedStateError
from pregel.mutation import differs


class Box:
    """An object that equals nothing but itself."""

    def __init__(self, content):
        self.content = content


class State(TypedDict, total=False):
    items: Annotated[list, operator.add]
    table: dict
    box: Any
    count: int


def graph(*nodes, schema=State, **options):
    builder = StateGraph(schema)
    for node in nodes:
        builder.add_node(node).add_edge(START, node.__name__)
    return builder.compile(debug=True, **options)


def appends(state):
    state["items"].append("leaked")
    return {}


def deep(state):
    state["table"]["rows"][0].append("leaked")
    return {"count": 1}


def sets(state):
    state["count"] = 5
    return {}


def deletes(state):
    del state["count"]
    return {}


def invents(state):
    state["new"] = 5
    return {}


def returns_what_it_changed(state):
    state["table"]["rows"] = []
    return {"table": state["table"]}


def opens(state):
    state["box"].content.append("leaked")
    return {}


GIVEN = {"items": ["a"], "table": {"rows": [[1]]}, "box": Box([1]), "count": 0}


@pytest.mark.parametrize(
    ("node", "field"),
    [
        (appends, "items"),
        (deep, "table"),
        (sets, "count"),
        (deletes, "count"),
        (invents, "new"),
        (returns_what_it_changed, "table"),
        (opens, "box"),
    ],
)
def test_a_change_in_place_names_node_and_field(door, node, field):
    watched = graph(node)
    with pytest.raises(MutatedStateError, match=f"node '{node.__name__}' of graph 'State' changed the field '{field}'"):
        door.invoke(watched, GIVEN)
    assert (GIVEN["items"], GIVEN["table"], GIVEN["box"].content) == (["a"], {"rows": [[1]]}, [1])


def test_the_node_that_did_it_is_named_beside_one_that_did_not(door):
    def innocent(state):
        return {"count": len(state["items"])}

    with pytest.raises(MutatedStateError, match="'appends'"):
        door.invoke(graph(innocent, appends), GIVEN)


def test_nodes_that_return_what_they_change_pass(door):
    def works(state):
        state = dict(state)
        state["count"] += 1
        return {"count": state["count"], "items": ["b"]}

    def fills_its_own_dict(state):
        state["table"] = {"rows": []}
        return {"table": state["table"]}

    result = door.invoke(graph(works, fills_its_own_dict), GIVEN)
    assert (result["count"], result["items"], result["table"]) == (1, ["a", "b"], {"rows": []})


def test_what_can_not_be_copied_is_given_as_it_is(door):
    lock = threading.Lock()

    def holds(state):
        with state["box"]:
            return {}

    assert door.invoke(graph(holds), {"box": lock})["box"] is lock


def test_an_instance_is_watched_in_what_it_holds():
    @dataclass
    class Record:
        names: list = field(default_factory=list)

    def renames(record: Record):
        record.names.append("leaked")
        return {}

    with pytest.raises(MutatedStateError, match="'names'"):
        graph(renames, schema=Record).invoke({"names": ["a"]})


def test_a_packets_argument_is_its_own_affair(door):
    def work(arg):
        arg["n"] = 5
        return {"count": arg["n"]}

    builder = StateGraph(State).add_node(work).add_conditional_edges(START, lambda s: Send("work", {"n": 1}), ["work"])
    assert door.invoke(builder.compile(debug=True), {})["count"] == 5


class Array:
    """Compares element by element, as arrays of numpy do."""

    def __init__(self, *numbers):
        self.numbers = numbers

    def __eq__(self, other):
        raise ValueError("the truth of an array is ambiguous")

    __hash__ = None

    def tobytes(self):
        return bytes(self.numbers)


class Slotted:
    __slots__ = ("content",)

    def __init__(self, content):
        self.content = content


LOOP: list = [1]
LOOP.append(LOOP)
SAME_LOOP: list = [1]
SAME_LOOP.append(SAME_LOOP)


@pytest.mark.parametrize(
    ("one", "other", "unlike"),
    [
        (1, 1, False),
        (1, 1.0, True),
        ([1, [2]], [1, [2]], False),
        ([1, [2]], [1, [3]], True),
        ((1,), (1, 2), True),
        ({"a": Box(1)}, {"a": Box(1)}, False),
        ({"a": Box(1)}, {"a": Box(2)}, True),
        ({"a": 1}, {"b": 1}, True),
        (object(), object(), False),
        (Array(1, 2), Array(1, 2), False),
        (Array(1, 2), Array(1, 3), True),
        (LOOP, SAME_LOOP, False),
        ({1, 2}, {1, 2}, False),
        ({1, 2}, {1, 3}, True),
        ({Box(1)}, {Box(1)}, False),
        (frozenset({Box(1), 2}), frozenset({Box(1), 3}), True),
        (deque([Box(1)]), deque([Box(1)]), False),
        ({Box(1): 1}, {Box(1): 2}, True),
        (Slotted(1), Slotted(1), False),
        (Slotted(1), Slotted(2), True),
    ],
)
def test_values_are_compared_by_what_they_hold(one, other, unlike):
    assert differs(one, other) is unlike
