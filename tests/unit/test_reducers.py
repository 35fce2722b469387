"""The reducers that people write by hand, and the laws they keep."""

import operator
import pickle
from functools import reduce
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import TypedDict

from pregel import START, Send, StateGraph
from pregel.channels import BinaryOperatorAggregate
from pregel.errors import InvalidUpdateError
from pregel.graph.reducers import append, keep_last, merge_dicts, merge_unique
from pregel.testing import check_reducer

things = st.integers(0, 4) | st.booleans() | st.text(max_size=1) | st.none() | st.tuples(st.integers(0, 1))
unhashable = st.lists(st.integers(0, 1), max_size=1) | st.sets(st.integers(0, 1)) | st.frozensets(st.integers(0, 1))
lists = st.lists(things | unhashable, max_size=6)
dicts = st.dictionaries(st.integers(0, 3) | st.text(max_size=1), things, max_size=4)
refused = st.just("text") | st.just(5) | st.sets(st.integers())


def unique(items):
    """The items without those that equal an earlier one, found in the plainest way."""
    found = []
    for item in items:
        if not any(item == other for other in found):
            found.append(item)
    return found


# --- laws -------------------------------------------------------------------------------------------------------------


def test_append_keeps_the_laws_of_reducers():
    check_reducer(append, things | lists, values=st.lists(things) | refused)


def test_merge_unique_keeps_the_laws_of_reducers():
    check_reducer(merge_unique, lists | refused)


def test_merge_dicts_keeps_the_laws_of_reducers():
    check_reducer(merge_dicts, dicts | refused)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_keep_last_keeps_the_laws_of_reducers(n):
    check_reducer(keep_last(n), lists | refused)


@given(*[st.lists(things, max_size=5, unique=True)] * 3)
def test_merge_unique_is_associative_and_neutral_for_nothing(one, two, three):
    assert merge_unique(merge_unique(one, two), three) == merge_unique(one, merge_unique(two, three))
    assert merge_unique(one, []) == merge_unique([], one) == merge_unique(None, one) == unique(one)


@given(*[dicts] * 3)
def test_merge_dicts_is_associative_and_neutral_for_nothing(one, two, three):
    assert merge_dicts(merge_dicts(one, two), three) == merge_dicts(one, merge_dicts(two, three))
    assert merge_dicts(one, {}) == merge_dicts({}, one) == merge_dicts(None, one) == one


@given(st.integers(1, 6), *[lists] * 3)
def test_keep_last_is_associative_and_neutral_for_nothing(n, one, two, three):
    keep = keep_last(n)
    assert keep(keep(one, two), three) == keep(one, keep(two, three))
    assert keep(one, []) == keep([], one) == keep(None, one) == one[-n:]


# --- results ----------------------------------------------------------------------------------------------------------


@given(lists, lists)
def test_merge_unique_adds_what_is_new_in_order(left, right):
    left = unique(left)
    assert merge_unique(left, right) == unique([*left, *right])


def test_merge_unique_leaves_the_value_as_it_is():
    assert merge_unique([1, 1], [1, 2, 2]) == [1, 1, 2]
    assert merge_unique([1], (2, 1)) == [1, 2]


def test_the_first_update_of_a_field_is_unique_as_well():
    channel = BinaryOperatorAggregate(merge_unique)
    update = channel.prepare([1, 2, 1], iter)
    assert channel.apply(channel.initial(), [update]) == [1, 2]
    assert channel.appends


def test_append_takes_anything_as_one_item():
    assert append([1], 2) == [1, 2]
    assert append([], [1, 2]) == [[1, 2]]
    assert append(None, None) == [None]
    assert append.fold([1], [2, [3]]) == [1, 2, [3]]
    assert BinaryOperatorAggregate(append).appends


def test_merge_dicts_replaces_values_as_a_whole():
    left = {"a": {"x": 1}, "b": 1}
    assert merge_dicts(left, {"a": {"y": 2}, "c": 3}) == {"a": {"y": 2}, "b": 1, "c": 3}
    assert left == {"a": {"x": 1}, "b": 1}


@given(st.integers(1, 6), lists, st.lists(lists, max_size=4))
def test_keep_last_keeps_the_last(n, left, updates):
    every = reduce(operator.add, updates, list(left))
    assert keep_last(n).fold(left, updates) == every[-n:]


def test_the_first_update_of_a_field_is_cut_as_well():
    channel = BinaryOperatorAggregate(keep_last(2))
    assert channel.apply(channel.initial(), [channel.prepare([1, 2, 3], iter)]) == [2, 3]
    assert not channel.appends


def test_two_of_one_number_are_the_same_reducer():
    assert keep_last(3) == keep_last(3) == pickle.loads(pickle.dumps(keep_last(3)))  # noqa: S301 - made here
    assert keep_last(3) != keep_last(4)
    assert BinaryOperatorAggregate(keep_last(3)) == BinaryOperatorAggregate(keep_last(3))


@pytest.mark.parametrize("n", [0, -1, True, 1.5, "3"])
def test_keep_last_needs_a_number(n):
    with pytest.raises(ValueError) as caught:
        keep_last(n)
    assert str(caught.value) == f"keep_last({n!r}): how many items are kept is an int of at least 1"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: merge_unique([], "text"), "merge_unique takes lists, not 'text' (str): for one item, return [item]"),
        (lambda: merge_unique({1}, []), "merge_unique takes lists, not {1} (set): for one item, return [item]"),
        (lambda: keep_last(2)([], 5), "keep_last(2) takes lists, not 5 (int): for one item, return [item]"),
        (lambda: merge_dicts({}, [1]), "merge_dicts takes dicts, not [1] (list): return {key: value}"),
        (lambda: merge_dicts({}, None), "merge_dicts takes dicts, not None (NoneType): return {key: value}"),
        (lambda: append("text", 1), "append adds to lists, and the field holds 'text' (str): declare it as a list"),
    ],
)
def test_what_a_reducer_does_not_take_is_named(call, said):
    with pytest.raises(InvalidUpdateError) as caught:
        call()
    assert str(caught.value) == said


# --- in a graph -------------------------------------------------------------------------------------------------------


class State(TypedDict):
    seen: Annotated[list[int], merge_unique]
    facts: Annotated[dict[str, int], merge_dicts]
    recent: Annotated[list[int], keep_last(3)]
    log: Annotated[list[int], append]


def test_parallel_nodes_update_one_field_through_each(door):
    def work(number):
        return {"seen": [number % 3], "facts": {f"{number}": number}, "recent": [number], "log": number}

    builder = StateGraph(State).add_node("split", lambda state: {"log": -1}).add_node("work", work)
    builder.add_edge(START, "split")
    builder.add_conditional_edges("split", lambda state: [Send("work", number) for number in range(5)], ["work"])
    found = door.invoke(builder.compile(), {"seen": [7, 7]})
    assert found == {
        "seen": [7, 0, 1, 2],
        "facts": {"0": 0, "1": 1, "2": 2, "3": 3, "4": 4},
        "recent": [2, 3, 4],
        "log": [-1, 0, 1, 2, 3, 4],
    }
