"""How a value that changed a little becomes a patch, and a patch the value."""

import operator

import pytest

from pregel.channels import BinaryOperatorAggregate, LastValue, Overwrite, Topic
from pregel.channels.base import MISSING
from pregel.checkpoint.fields import alike, change, given_back
from pregel.checkpoint.patch import Patch, appended, apply, difference
from pregel.checkpoint.restore import Sizes
from pregel.commands import CommitBarrier, Standing
from pregel.errors import DecodeError
from pregel.node import Field

APPEND, SPLICE, KEYS = range(3)
LIST = [object() for _ in range(8)]
DICT = {name: object() for name in "abcdef"}


def test_items_at_the_end_of_a_list_are_all_that_is_stored():
    assert difference(LIST, [*LIST, 1, 2]) == Patch(APPEND, (8,), [1, 2])


def test_a_replaced_item_is_stored_with_its_place():
    assert difference(LIST, [*LIST[:3], "new", *LIST[4:]]) == Patch(SPLICE, (8, 3, 4), ["new"])


def test_a_removed_item_is_a_place_and_nothing_else():
    assert difference(LIST, [*LIST[:3], *LIST[4:]]) == Patch(SPLICE, (8, 3, 4), [])


def test_items_at_the_beginning_keep_the_rest_as_it_is():
    assert difference(LIST, ["new", *LIST]) == Patch(SPLICE, (8, 0, 8), ["new"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ([1, 2, 3], [1, 3]),
        (LIST, LIST[:1]),
        (LIST, [object() for _ in LIST]),
        (LIST, tuple(LIST)),
        ({"a": 1}, {"a": 1, "b": 2}),
        (DICT, {name: object() for name in DICT}),
        ({"a": 0, "b": 1, "c": 2, "d": 3}, {"d": 3, "c": 2, "b": 1, "a": 0}),
        ("text", "text and more"),
        ({1, 2, 3, 4}, {1, 2, 3, 4, 5}),
    ],
    ids=["small", "shorter", "other items", "other type", "small dict", "other values", "other order", "text", "set"],
)
def test_a_value_that_is_as_small_or_as_new_is_stored_whole(old, new):
    assert difference(old, new) is None


def test_new_keys_are_all_that_is_stored_of_a_dict():
    assert difference(DICT, {**DICT, "x": 1}) == Patch(KEYS, (), ({"x": 1}, []))


def test_a_key_that_is_gone_is_stored_as_its_name():
    assert difference(DICT, {key: value for key, value in DICT.items() if key != "b"}) == Patch(KEYS, (), ({}, ["b"]))


def test_what_a_node_gave_back_is_stored_anew_although_it_is_the_same_object():
    assert difference(LIST, list(LIST), {id(LIST[3])}) == Patch(SPLICE, (8, 3, 4), [LIST[3]])
    assert difference(DICT, dict(DICT), {id(DICT["c"])}) == Patch(KEYS, (), ({"c": DICT["c"]}, []))
    assert difference(LIST, list(LIST), set(map(id, LIST))) is None


@pytest.mark.parametrize(
    ("old", "patch"),
    [
        ([1], Patch(APPEND, (2,), [3])),
        ([1], Patch(APPEND, (), [3])),
        ([1], Patch(APPEND, (1,), "3")),
        ([1], Patch(SPLICE, (1,), [3])),
        ([1], Patch(7, (1,), [3])),
        ({}, Patch(APPEND, (0,), [3])),
        ([], Patch(KEYS, (), ({}, []))),
        ({}, Patch(KEYS, (), None)),
        ({}, Patch(KEYS, (), ({}, 1))),
    ],
)
def test_a_patch_for_another_value_is_refused(old, patch):
    with pytest.raises(DecodeError, match="a stored patch"):
        apply(old, patch)


def test_a_patch_leaves_the_value_before_as_it_was():
    old_list, old_dict = [1, 2], {"a": 1}
    assert apply(old_list, Patch(APPEND, (2,), [3])) == [1, 2, 3]
    assert apply(old_dict, Patch(KEYS, (), ({"b": 2}, ["a"]))) == {"b": 2}
    assert (old_list, old_dict) == ([1, 2], {"a": 1})


def test_a_log_that_was_changed_in_place_gets_only_what_was_added():
    assert appended(3, ["a", "b", "c", "in place"], ["a", "b", "c", "in place", "d"]) == Patch(APPEND, (3,), ["d"])


# -- which of them a field gets --------------------------------------------------------------------------------------

LOG = Field("log", BinaryOperatorAggregate(operator.add, initial=[]), folds=True)
PLAIN = Field("plain", LastValue())


def made(rule, old, new, *, overwritten=False, updates=(), given=None, sizes=None):
    sizes = sizes or Sizes().holding(old, old, log=rule is not PLAIN)
    names = frozenset({rule.name}) if overwritten else frozenset()
    command = CommitBarrier(1, "loop", {}, {}, names, Standing(), updates=updates)
    return change(sizes, rule, old, new, command, given)


def test_a_log_is_not_looked_through():
    assert made(LOG, [1], [1, 2]) == Patch(APPEND, (1,), [2])
    assert made(Field("topic", Topic(accumulate=True)), [], [2]) == Patch(APPEND, (0,), [2])


@pytest.mark.parametrize(("old", "new"), [([1, 2], [1]), ((1,), (1, 2)), ([1], None), (MISSING, [1]), ([1], MISSING)])
def test_a_log_that_did_something_else_is_stored_whole(old, new):
    assert made(LOG, old, new) is None


def test_an_overwritten_log_is_stored_whole():
    assert made(LOG, [1], [1, 2], overwritten=True) is None


def test_a_part_that_a_node_gave_back_is_stored_again():
    parts = [{}, {}, {}, {}, {}]
    kept = Patch(APPEND, (5,), [])
    again = Patch(SPLICE, (5, 2, 2), [parts[2]])
    assert made(PLAIN, parts, list(parts), updates=(("plain", [1]),)) == kept
    assert made(PLAIN, parts, list(parts), updates=(("plain", [parts[2]]),)) == again
    assert made(PLAIN, parts, list(parts), updates=(("other", [parts[2]]),)) == kept
    assert made(PLAIN, parts, list(parts), given={"plain": {id(parts[2]): parts[2]}}) == again


def test_a_plain_field_is_compared_with_what_was_stored_and_not_with_what_was_made_of_it():
    stored = [1, 2, 3, 4, 5]
    sizes = Sizes().holding(stored, stored, log=False)
    stored[0] = "in place"
    assert made(PLAIN, stored, stored, sizes=sizes) == Patch(SPLICE, (5, 0, 4), ["in place"])


def test_the_parts_of_updates_that_a_node_may_have_changed():
    part, other = {}, []
    updates = [[part, 1], {"key": other, "text": "a"}, Overwrite([part]), {"key": Overwrite(other)}, "text", 5]
    assert [id(each) for each in given_back(updates)] == [id(part), id(other), id(part), id(other)]
    value = {1}
    assert list(given_back([value])) == [value]


def test_values_are_alike_that_are_one_object_or_hold_the_same_ones():
    item = {}
    assert alike(item, item)
    assert alike([item], [item])
    assert not alike([item], [{}])
    assert not alike([item], [item, item])
    assert not alike((item,), (item,))
    assert not alike([item], None)
