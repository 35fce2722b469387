"""The laws of the channels, for drawn values."""

import copy
import operator
from functools import reduce

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pregel.channels import (
    DELETE,
    MISSING,
    AnyValue,
    BinaryOperatorAggregate,
    EphemeralValue,
    KeyedValue,
    LastValue,
    NamedBarrierValue,
    Overwrite,
    Topic,
    UntrackedValue,
)
from pregel.errors import ConcurrentUpdateError, InvalidUpdateError

law = settings(deadline=None)

NAMES = ["a", "b", "c"]
numbers = st.integers(-3, 3)
small_lists = st.lists(numbers, max_size=3)
names = st.sampled_from(NAMES)
anything = st.none() | numbers | st.text(max_size=2) | small_lists | st.dictionaries(names, numbers, max_size=2)
mappings = st.dictionaries(names, anything, max_size=3)
changes = st.dictionaries(names, anything | st.just(DELETE) | anything.map(Overwrite), max_size=3)

# channel, its values, its updates, what Overwrite takes
KINDS = [
    (LastValue(), anything, anything, anything),
    (UntrackedValue(), anything, anything, anything),
    (UntrackedValue(guard=False), anything, anything, anything),
    (AnyValue(), anything, anything, anything),
    (EphemeralValue(), anything, anything, anything),
    (EphemeralValue(guard=False), anything, anything, anything),
    (BinaryOperatorAggregate(operator.add), numbers, numbers, numbers),
    (BinaryOperatorAggregate(operator.add), small_lists, small_lists | st.tuples(numbers), small_lists),
    (BinaryOperatorAggregate(operator.or_), mappings, mappings, mappings),
    (BinaryOperatorAggregate(max), numbers, numbers, numbers),
    (Topic(), small_lists, anything, small_lists),
    (Topic(accumulate=True), small_lists, anything, small_lists),
    (KeyedValue(), mappings, changes, mappings),
    (NamedBarrierValue(NAMES), st.frozensets(names), names | st.just("z"), st.frozensets(names)),
]


@st.composite
def barriers(draw, *, overwrites):
    """A channel, a value of it or MISSING, and the updates of one superstep, some of them `Overwrite`s."""
    channel, values, updates, replacements = draw(st.sampled_from(KINDS))
    value = draw(values | st.just(MISSING))
    plain = draw(st.lists(updates, min_size=0 if overwrites else 1, max_size=4))
    wrapped = draw(st.lists(replacements.map(Overwrite), min_size=overwrites, max_size=overwrites))
    return channel, value, draw(st.permutations([*plain, *wrapped])) if wrapped else plain


def outcome(function, *operands):
    """What a call came to: its value, or the type of its error."""
    try:
        return function(*operands)
    except (InvalidUpdateError, TypeError) as error:
        return type(error)


@law
@given(st.one_of(barriers(overwrites=0), barriers(overwrites=1), barriers(overwrites=2)))
def test_a_barrier_changes_neither_value_nor_updates_also_when_it_fails(case):
    channel, value, updates = case
    before = copy.deepcopy((value, updates))
    first = outcome(channel.apply, value, updates)
    assert (value, updates) == before
    assert outcome(channel.apply, value, updates) == first


@law
@given(barriers(overwrites=1))
def test_one_overwrite_wins_wherever_it_stands(case):
    channel, value, updates = case
    (new,) = (update.value for update in updates if isinstance(update, Overwrite))
    assert channel.apply(value, updates) == new


@law
@given(barriers(overwrites=2))
def test_two_overwrites_are_always_an_error(case):
    channel, value, updates = case
    assert outcome(channel.apply, value, updates) is ConcurrentUpdateError


@law
@given(st.one_of(barriers(overwrites=0), barriers(overwrites=1)))
def test_no_marker_is_ever_stored(case):
    channel, value, updates = case
    result = outcome(channel.apply, value, updates)
    for stored in (result, *(result.values() if isinstance(channel, KeyedValue) and isinstance(result, dict) else ())):
        assert not isinstance(stored, Overwrite)
        assert stored is not DELETE


@law
@given(barriers(overwrites=0))
def test_a_resetting_channel_does_not_look_at_its_value(case):
    channel, value, updates = case
    assume(channel.resets)
    assert outcome(channel.apply, value, updates) == outcome(channel.apply, channel.initial(), updates)
    assert channel.apply(value, ()) == channel.initial()


MERGING = [
    (BinaryOperatorAggregate(operator.add), numbers, numbers),
    (BinaryOperatorAggregate(operator.add), small_lists, small_lists),
    (BinaryOperatorAggregate(operator.sub), numbers, numbers),
    (BinaryOperatorAggregate(operator.or_), mappings, mappings),
    (BinaryOperatorAggregate(min), numbers, numbers),
    (Topic(accumulate=True), small_lists, anything),
    (NamedBarrierValue(NAMES), st.frozensets(names), names),
]


@st.composite
def two_supersteps(draw):
    channel, values, updates = draw(st.sampled_from(MERGING))
    some = st.lists(updates, min_size=1, max_size=3)
    return channel, draw(values | st.just(MISSING)), draw(some), draw(some)


@law
@given(two_supersteps())
def test_two_supersteps_give_what_one_with_all_updates_gives(case):
    channel, value, first, second = case
    assert channel.apply(channel.apply(value, first), second) == channel.apply(value, first + second)


@law
@given(mappings | st.just(MISSING), changes, st.sets(names))
def test_a_keyed_value_merges_updates_of_disjoint_keys_in_any_order(value, update, left_keys):
    channel = KeyedValue()
    left = {key: new for key, new in update.items() if key in left_keys}
    right = {key: new for key, new in update.items() if key not in left_keys}
    at_once = channel.apply(value, [update])
    assert channel.apply(channel.apply(value, [left]), [right]) == at_once
    assert channel.apply(value, [left, right]) == channel.apply(value, [right, left]) == at_once


@law
@given(st.dictionaries(names, anything | st.just(DELETE)), st.dictionaries(names, anything | st.just(DELETE)))
def test_a_keyed_value_conflicts_exactly_where_two_updates_share_a_key(first, second):
    result = outcome(KeyedValue().apply, {}, [first, second])
    assert (result is ConcurrentUpdateError) == bool(first.keys() & second.keys())


COMMUTATIVE = [
    (BinaryOperatorAggregate(operator.add), numbers, numbers),
    (BinaryOperatorAggregate(max), numbers, numbers),
    (BinaryOperatorAggregate(set.union), st.sets(names), st.sets(names)),
    (BinaryOperatorAggregate(set.intersection), st.sets(names), st.sets(names)),
    (NamedBarrierValue(NAMES), st.frozensets(names), names),
]


@st.composite
def reordered(draw):
    channel, values, updates = draw(st.sampled_from(COMMUTATIVE))
    some = draw(st.lists(updates, min_size=1, max_size=4))
    return channel, draw(values | st.just(MISSING)), some, draw(st.permutations(some))


@law
@given(reordered())
def test_order_does_not_matter_to_a_commutative_reducer(case):
    channel, value, updates, shuffled = case
    assert channel.apply(value, updates) == channel.apply(value, shuffled)


class Odd(list):
    """A list that decides itself what it is added to."""

    def __radd__(self, other):
        return [*other, "odd"]


addends = (
    small_lists | small_lists.map(Odd) | st.tuples(numbers) | st.text(max_size=2) | numbers | st.none() | st.booleans()
)
one_kind = st.sampled_from([small_lists, small_lists.map(tuple), st.text(max_size=2), numbers])


@law
@given(one_kind.flatmap(lambda kind: st.lists(kind, min_size=2, max_size=5)) | st.lists(addends, min_size=2))
def test_adding_at_once_is_adding_in_a_row(operands):
    value, *updates = operands
    channel = BinaryOperatorAggregate(operator.add)
    in_a_row = outcome(reduce, operator.add, updates, value)
    at_once = outcome(channel.apply, value, updates)
    assert at_once == in_a_row
    assert type(at_once) is type(in_a_row)
    assert outcome(channel.apply, MISSING, operands) == in_a_row


@law
@given(small_lists, st.lists(small_lists, min_size=1))
def test_a_log_only_grows_at_its_end(value, updates):
    for channel in (BinaryOperatorAggregate(operator.add), Topic(accumulate=True)):
        assert channel.appends
        assert channel.apply(value, updates) == value + [item for update in updates for item in update]


@law
@given(st.lists(st.lists(names | st.none(), max_size=4), max_size=6))
def test_a_barrier_is_full_exactly_when_all_were_heard_since_it_fired(supersteps):
    channel, heard = NamedBarrierValue(NAMES), set()
    value = channel.initial()
    for updates in supersteps:
        spoken = [name for name in updates if name is not None]
        if spoken:
            value = channel.apply(value, spoken)
            heard |= set(spoken)
        assert channel.is_available(value) == (heard == set(NAMES))
        if channel.is_available(value):
            heard = set()
        value = channel.consume(value)
