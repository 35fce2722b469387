"""Filters on their own: what the list of checks leaves open."""

from collections import UserDict
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pregel.errors import InvalidOpError
from pregel.store.filters import OPERATORS, check_filter, matches


class Odd:
    """A value that can't be compared with anything."""

    def __eq__(self, other):
        raise TypeError("odd")

    __hash__ = None

    def __lt__(self, other):
        raise TypeError("odd")


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(max_size=3),
    st.decimals(), st.datetimes(), st.datetimes(timezones=st.just(UTC)), st.just(Odd()),
    st.frozensets(st.integers(), max_size=2),
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(st.text() | st.integers(), inner, max_size=2)
    ),
    max_leaves=5,
)


@given(VALUES, VALUES, st.sampled_from(sorted(set(OPERATORS) - {"$in", "$nin", "$exists"})))
def test_no_pair_of_values_makes_a_filter_raise(value, operand, name):
    assert matches({"x": value}, {"x": {name: operand}}) in {True, False}
    assert matches({"x": value}, {"x": {"$in": [operand]}}) is matches({"x": value}, {"x": {"$eq": operand}})
    assert not matches({}, {"x": {"$eq": operand}})


@given(VALUES, VALUES)
def test_ne_and_nin_are_the_negations(value, operand):
    for stored in ({"x": value}, {}):
        assert matches(stored, {"x": {"$ne": operand}}) is not matches(stored, {"x": {"$eq": operand}})
        assert matches(stored, {"x": {"$nin": [operand]}}) is not matches(stored, {"x": {"$in": [operand]}})


@given(st.integers() | st.floats(allow_nan=False), st.integers() | st.floats(allow_nan=False))
def test_numbers_stand_in_one_order(left, right):
    held = {name for name in ("$lt", "$eq", "$gt") if matches({"x": left}, {"x": {name: right}})}
    assert len(held) == 1
    assert matches({"x": left}, {"x": {"$lte": right}}) is bool(held & {"$lt", "$eq"})
    assert matches({"x": left}, {"x": {"$gte": right}}) is bool(held & {"$gt", "$eq"})


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, True), (0, False), ("1", 1), (b"a", "a"), ([1], (1,)), (None, 0), ({}, []), (1, Decimal(1)),
        ([True], [1]), ({"a": 1}, {"a": True}), ({"a": 1}, {"a": 1, "b": 2}), ([1], [1, 2]),
        (datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)),  # noqa: DTZ001 - the difference is the point
    ],
)  # fmt: skip
def test_values_of_different_kinds_do_not_match(left, right):
    for one, other in ((left, right), (right, left)):
        for name in ("$eq", "$lt", "$gt", "$lte", "$gte"):
            if isinstance(one, (list, dict)) and type(one) is type(other) and name != "$eq":
                continue
            assert not matches({"x": one}, {"x": {name: other}}), name
        assert matches({"x": one}, {"x": {"$ne": other}})


def test_what_equals_inside_lists_and_dicts_counts():
    stored = {"x": [1.0, {"a": (None, "b")}]}
    assert matches(stored, {"x": [1, {"a": (None, "b")}]})
    assert not matches(stored, {"x": [1, {"a": [None, "b"]}]})


def test_times_with_zones_are_compared_as_moments():
    stored = {"x": datetime(2024, 1, 1, 12, tzinfo=UTC)}
    assert matches(stored, {"x": {"$gt": datetime(2024, 1, 1, 11, tzinfo=UTC)}})
    east = (stored["x"] + timedelta(0)).astimezone()
    assert matches(stored, {"x": east})


def test_a_key_with_a_dot_is_a_key():
    assert matches({"a.b": 1}, {"a.b": 1})
    assert not matches({"a": {"b": 1}}, {"a.b": 1})


def test_a_mapping_that_is_no_dict_can_hold_operators():
    assert matches({"x": 2}, UserDict({"x": UserDict({"$gt": 1})}))


def test_a_mapping_with_a_dollar_is_equalled_through_eq():
    assert matches({"x": {"$gt": 1}}, {"x": {"$eq": {"$gt": 1}}})
    with pytest.raises(InvalidOpError, match=r"\$eq"):
        check_filter({"x": {"$like": "a%"}})


@pytest.mark.parametrize("wrong", ["$GT", "$", "$gt\0", "gt", 1])
def test_an_operator_that_is_not_there_is_named(wrong):
    with pytest.raises(InvalidOpError) as caught:
        check_filter({"x": {"$gt": 1, wrong: 1}})
    assert repr(wrong) in str(caught.value)
