"""The rules of the channels, by values."""

import copy
import operator
import pickle
from functools import partial

import pytest

from pregel.channels import (
    DELETE,
    MISSING,
    AnyValue,
    BinaryOperatorAggregate,
    Channel,
    EphemeralValue,
    KeyedValue,
    LastValue,
    NamedBarrierValue,
    Overwrite,
    Topic,
    UntrackedValue,
)
from pregel.channels.aggregate import has_neutral_start
from pregel.errors import ConcurrentUpdateError, InvalidUpdateError

SUM = BinaryOperatorAggregate(operator.add, initial=0)
LOG = BinaryOperatorAggregate(operator.add, initial_factory=list)
BARE = BinaryOperatorAggregate(operator.add)
COPIES = [copy.copy, copy.deepcopy, *(lambda v, p=p: pickle.loads(pickle.dumps(v, p)) for p in range(6))]  # noqa: S301

# channel, a value it can hold, an update, what Overwrite takes, another one of these
CASES = {
    "last": (LastValue(), 1, 2, 5, 6),
    "untracked": (UntrackedValue(), 1, 2, 5, 6),
    "untracked, no guard": (UntrackedValue(guard=False), 1, 2, 5, 6),
    "any": (AnyValue(), 1, 2, 5, 6),
    "ephemeral": (EphemeralValue(), 1, 2, 5, 6),
    "ephemeral, no guard": (EphemeralValue(guard=False), 1, 2, 5, 6),
    "sum": (SUM, 1, 2, 5, 6),
    "log": (LOG, [1], [2], [5], []),
    "bare": (BARE, [1], [2], [5], []),
    "topic": (Topic(int), [1], 2, [5], []),
    "topic, accumulate": (Topic(int, accumulate=True), [1], 2, [5], []),
    "keyed": (KeyedValue(), {"a": 1}, {"a": 2}, {"b": 5}, {}),
    "barrier": (NamedBarrierValue(["a", "b", "c"]), frozenset("a"), "b", frozenset("c"), frozenset()),
}
each_channel = pytest.mark.parametrize(
    ("channel", "value", "update", "new", "other"), [pytest.param(*case, id=name) for name, case in CASES.items()]
)


# --- Overwrite, on every channel -------------------------------------------------------------------------------------


@each_channel
@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("absent", [False, True])
def test_overwrite_replaces_the_value_and_the_other_updates(channel, value, update, new, other, position, absent):
    updates = [update, update]
    updates.insert(position, Overwrite(new))
    assert channel.apply(MISSING if absent else value, updates) == new


@each_channel
@pytest.mark.parametrize("absent", [False, True])
def test_a_lone_overwrite_is_unwrapped(channel, value, update, new, other, absent):
    result = channel.apply(MISSING if absent else value, [Overwrite(new)])
    assert result == new
    assert type(result) is type(new)


@each_channel
@pytest.mark.parametrize("between", [0, 1])
def test_two_overwrites_are_an_error(channel, value, update, new, other, between):
    before = copy.deepcopy(value)
    with pytest.raises(ConcurrentUpdateError, match="two Overwrite updates in one superstep"):
        channel.apply(value, [Overwrite(new), *[update] * between, Overwrite(other)])
    assert value == before


@pytest.mark.parametrize("value", [MISSING, Overwrite(1)])
def test_overwrite_wraps_only_what_a_field_can_hold(value):
    with pytest.raises(InvalidUpdateError) as caught:
        Overwrite(value)
    assert str(caught.value) == f"Overwrite takes the field's new value, and {value!r} is none"


def test_overwrite_takes_none_and_other_false_values():
    for value in (None, 0, "", [], False):
        assert LastValue().apply(1, [Overwrite(value)]) is value


def test_overwrite_is_a_value_object():
    assert Overwrite([1]) == Overwrite([1])
    assert Overwrite(1) != Overwrite(2)
    assert Overwrite(1) != 1
    assert repr(Overwrite("x")) == "Overwrite('x')"
    with pytest.raises(TypeError, match="unhashable"):
        hash(Overwrite(1))
    match Overwrite(7):
        case Overwrite(inner):
            assert inner == 7
    for make in COPIES[:2] + COPIES[4:]:
        assert make(Overwrite([1])) == Overwrite([1])


def test_a_dict_that_looks_like_an_overwrite_is_data():
    data = {"__overwrite__": 1}
    assert LastValue().apply(0, [data]) == data
    assert AnyValue().apply(0, [data, data]) == data
    assert Topic(dict).apply([], [data]) == [data]
    assert KeyedValue().apply({"a": 1}, [data]) == {"a": 1, "__overwrite__": 1}
    assert BinaryOperatorAggregate(operator.or_).apply({"a": 1}, [data, {"b": 2}]) == {"a": 1, "b": 2, **data}


# --- the markers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", COPIES)
@pytest.mark.parametrize("marker", [MISSING, DELETE])
def test_markers_copy_and_pickle_to_themselves(marker, make):
    assert make(marker) is marker
    assert make([marker])[0] is marker


def test_markers_describe_themselves():
    assert (repr(MISSING), repr(DELETE)) == ("MISSING", "DELETE")
    assert not MISSING
    assert DELETE


# --- what channels have in common ------------------------------------------------------------------------------------


def test_a_channel_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        Channel()


@each_channel
def test_a_channel_is_found_again_after_pickling(channel, value, update, new, other):
    twin = pickle.loads(pickle.dumps(channel))  # noqa: S301
    assert twin == channel
    assert hash(twin) == hash(channel)
    assert twin.apply(value, [update]) == channel.apply(value, [update])


def test_channels_are_equal_by_kind_and_parameters():
    different = [
        LastValue(),
        AnyValue(),
        UntrackedValue(),
        UntrackedValue(guard=False),
        EphemeralValue(),
        EphemeralValue(guard=False),
        Topic(),
        Topic(int),
        Topic(int, accumulate=True),
        NamedBarrierValue("a"),
        NamedBarrierValue("ab"),
        KeyedValue(),
        BARE,
        SUM,
        LOG,
        BinaryOperatorAggregate(operator.or_),
        BinaryOperatorAggregate(lambda left, right: left + right),
        BinaryOperatorAggregate(lambda left, right: left + right),
    ]
    for i, one in enumerate(different):
        for j, other in enumerate(different):
            assert (one == other) is (i == j)
    assert LastValue() == LastValue()
    assert NamedBarrierValue(["a", "b"]) == NamedBarrierValue(["b", "a"])
    assert BinaryOperatorAggregate(set.union) == BinaryOperatorAggregate(set.union)
    assert LastValue() != "LastValue()"


def test_channels_show_their_parameters():
    assert repr(LastValue()) == "LastValue()"
    assert repr(EphemeralValue(guard=False)) == "EphemeralValue(False)"
    assert repr(NamedBarrierValue("a")) == "NamedBarrierValue(frozenset({'a'}))"


def test_which_channels_start_with_a_value():
    starts = {name: case[0].initial() for name, case in CASES.items()}
    assert {name: value for name, value in starts.items() if value is not MISSING} == {
        "sum": 0,
        "log": [],
        "topic": [],
        "topic, accumulate": [],
        "keyed": {},
        "barrier": frozenset(),
    }


def test_only_untracked_values_stay_out_of_checkpoints():
    assert {name for name, case in CASES.items() if not case[0].tracked} == {"untracked", "untracked, no guard"}


def test_none_is_a_value_and_missing_is_not():
    assert LastValue().is_available(None)
    assert not LastValue().is_available(MISSING)
    assert LastValue().apply(MISSING, [None]) is None
    assert AnyValue().apply(1, [None]) is None


def test_a_value_survives_its_reader():
    for name in ("last", "sum", "topic", "keyed", "ephemeral"):
        channel, value, *_ = CASES[name]
        assert channel.consume(value) is value


# --- channels that forget --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("channel", "value", "empty"),
    [
        (AnyValue(), 1, MISSING),
        (EphemeralValue(), 1, MISSING),
        (EphemeralValue(guard=False), 1, MISSING),
        (Topic(int), [1], []),
    ],
)
def test_a_resetting_channel_forgets_in_a_superstep_without_updates(channel, value, empty):
    assert channel.resets
    assert channel.apply(value, ()) == empty


def test_the_other_channels_are_not_asked():
    resetting = {name for name, case in CASES.items() if case[0].resets}
    assert resetting == {"any", "ephemeral", "ephemeral, no guard", "topic"}


# --- one value -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("channel", [LastValue(), UntrackedValue(), EphemeralValue()])
def test_a_guarded_value_takes_one_update(channel):
    assert channel.apply(1, [2]) == 2
    with pytest.raises(ConcurrentUpdateError) as caught:
        channel.apply(1, [2, 2, 3])
    assert str(caught.value) == (
        "a plain field takes one update in a superstep and got 3: "
        "annotate the field with a reducer (Annotated[list, operator.add]), or put the nodes in different supersteps"
    )


@pytest.mark.parametrize("channel", [AnyValue(), UntrackedValue(guard=False), EphemeralValue(guard=False)])
def test_without_guard_the_last_update_in_task_order_stays(channel):
    assert channel.apply(1, [2, 3]) == 3
    assert channel.apply(MISSING, [2]) == 2


# --- aggregates ------------------------------------------------------------------------------------------------------


def test_an_aggregate_folds_in_task_order():
    assert BinaryOperatorAggregate(operator.sub).apply(10, [1, 2, 3]) == 4
    assert BinaryOperatorAggregate("{}{}".format).apply("a", ["b", "c"]) == "abc"


def test_the_first_update_of_an_absent_value_is_stored_as_it_is():
    first = {"a": 1}
    assert BinaryOperatorAggregate(operator.or_).apply(MISSING, [first]) is first
    assert BinaryOperatorAggregate(min).apply(MISSING, [7]) == 7
    assert BinaryOperatorAggregate(operator.sub).apply(MISSING, [7, 1, 2]) == 4
    assert BinaryOperatorAggregate(operator.sub).apply(MISSING, [7, 1]) == 6


def test_the_initial_value_is_given_or_made_anew():
    assert BARE.initial() is MISSING
    assert BinaryOperatorAggregate(operator.add, initial=None).initial() is None
    one, two = LOG.initial(), LOG.initial()
    assert one == two == []
    assert one is not two


def test_initial_and_factory_together_are_an_error():
    with pytest.raises(ValueError, match="give one of them"):
        BinaryOperatorAggregate(operator.add, initial=[], initial_factory=list)


def test_a_reducer_that_raises_leaves_the_value_as_it_was():
    value = [1]
    with pytest.raises(TypeError):
        LOG.apply(value, [[2], (3,)])
    assert value == [1]


def test_joining_lists_makes_one_new_list():
    value, update = [1], [2]
    result = LOG.apply(value, [update, [3]])
    assert result == [1, 2, 3]
    assert (value, update) == ([1], [2])
    assert LOG.apply(value, [[]]) is not value


class Shouting(list):
    def __add__(self, other):
        return [*self, "left"]

    def __radd__(self, other):
        return [*other, "right"]


def test_only_plain_lists_are_joined_at_once():
    assert BARE.apply([1], [[2], Shouting()]) == [1, 2, "right"]
    assert BARE.apply(Shouting(), [[2], [3]]) == ["left", 3]
    assert BARE.apply((1,), [(2,), (3,)]) == (1, 2, 3)
    assert BARE.apply("a", ["b", "c"]) == "abc"
    for value, updates in (([1], [[2], (3,)]), ((1,), [[2], [3]]), ("a", [["b"], ["c"]])):
        with pytest.raises(TypeError):
            BARE.apply(value, updates)


def test_operator_add_counts_as_a_log_and_other_reducers_say_so_themselves():
    def append(left, right):
        return [*left, right]

    assert SUM.appends
    assert LOG.appends
    assert not BinaryOperatorAggregate(append).appends
    append.appends = True
    assert BinaryOperatorAggregate(append).appends


def test_a_fold_of_the_reducer_gets_all_updates_of_a_superstep_at_once():
    calls = []

    def reducer(left, right):
        calls.append("reducer")
        return left + right

    def fold(left, updates):
        calls.append(list(updates))
        return left + sum(updates)

    reducer.fold = fold
    channel = BinaryOperatorAggregate(reducer)
    assert channel.apply(1, [2, 3]) == 6
    assert channel.apply(MISSING, [1, 2, 3]) == 6
    assert channel.apply(1, [2]) == 3
    assert calls == [[2, 3], [2, 3], "reducer"]


def test_prepare_of_the_reducer_is_offered_and_not_called():
    def reducer(left, right):
        return left + right

    reducer.prepare = lambda update, new_id: [update, new_id()]
    channel = BinaryOperatorAggregate(reducer)
    assert channel.prepare(1, lambda: "id") == [1, "id"]
    assert channel.apply([], [[1]]) == [1]
    assert BARE.prepare is None


def test_callable_objects_and_partials_are_reducers():
    class Keep:
        def __init__(self, most):
            self.most = most

        def __call__(self, left, right):
            return (left + right)[-self.most :]

    assert BinaryOperatorAggregate(Keep(2)).apply([1], [[2], [3]]) == [2, 3]
    assert BinaryOperatorAggregate(partial(max, 5)).apply(1, [2, 3]) == 5


def test_reducers_for_which_an_empty_start_is_wrong():
    for reducer in (min, max, operator.mul, operator.imul, operator.and_, operator.iand):
        assert not has_neutral_start(reducer)
    for reducer in (set.intersection, set.__and__, frozenset.intersection, frozenset.__and__):
        assert not has_neutral_start(reducer)
    for reducer in (operator.add, operator.or_, set.union, frozenset.union, lambda left, right: right):
        assert has_neutral_start(reducer)


# --- topics ----------------------------------------------------------------------------------------------------------


def test_a_topic_collects_values_and_takes_lists_apart_once():
    assert Topic(int).apply([9], [1, [2, [3]], (4,), None]) == [1, 2, [3], (4,), None]
    assert Topic(int, accumulate=True).apply([9], [1, [2]]) == [9, 1, 2]
    assert Topic(int, accumulate=True).apply(MISSING, [1]) == [1]


def test_a_topic_never_hands_out_the_lists_it_was_given():
    value, update = [1], [2]
    for channel in (Topic(int), Topic(int, accumulate=True)):
        channel.apply(value, [update]).append(3)
        channel.apply(value, [Overwrite(update)]).append(3)
    assert (value, update) == ([1], [2])


def test_an_accumulating_topic_is_a_log():
    assert Topic(int, accumulate=True).appends
    assert not Topic(int).appends


def test_overwrite_of_a_topic_takes_a_list():
    with pytest.raises(InvalidUpdateError, match="Overwrite of a topic takes a list, not int"):
        Topic(int).apply([1], [Overwrite(1)])


# --- keyed values ----------------------------------------------------------------------------------------------------


def test_keys_are_written_and_deleted_one_by_one():
    value = {"a": 1, "b": 2}
    assert KeyedValue().apply(value, [{"a": 3}, {"b": DELETE, "c": None}]) == {"a": 3, "c": None}
    assert value == {"a": 1, "b": 2}
    assert KeyedValue().apply(MISSING, [{"a": 1}, {"x": DELETE}]) == {"a": 1}


@pytest.mark.parametrize("second", [{"b": 0, "a": 2}, {"a": DELETE}])
def test_two_updates_of_one_key_are_an_error_that_names_it(second):
    value = {"a": 1}
    with pytest.raises(
        ConcurrentUpdateError,
        match=r"^two updates of one superstep touch the key 'a'\. Let each write a key of its own",
    ):
        KeyedValue().apply(value, [{"a": 1}, second])
    assert value == {"a": 1}


@pytest.mark.parametrize("update", [5, None, [("a", 1)]])
def test_a_keyed_value_takes_mappings(update):
    value = {"a": 1}
    for updates in ([{"a": 2}, update], [Overwrite(update)]):
        with pytest.raises(InvalidUpdateError) as caught:
            KeyedValue().apply(value, updates)
        assert str(caught.value) == f"a keyed field takes a mapping of keys to values, not {type(update).__name__}"
    assert value == {"a": 1}


def test_overwrite_of_a_keyed_value_stores_no_marker():
    update = {"a": 1, "b": DELETE, "c": Overwrite(3)}
    assert KeyedValue().apply({"z": 0}, [{"a": 5}, Overwrite(update)]) == {"a": 1, "c": 3}
    assert update == {"a": 1, "b": DELETE, "c": Overwrite(3)}


def test_one_key_can_be_overwritten_against_other_updates_of_it():
    for updates in ([{"a": Overwrite(9)}, {"a": 1, "b": 2}], [{"a": 1, "b": 2}, {"a": Overwrite(9)}]):
        assert KeyedValue().apply({"a": 0}, updates) == {"a": 9, "b": 2}
    assert KeyedValue().apply({"a": 0}, [{"a": Overwrite(DELETE)}, {"a": 1}]) == {}
    with pytest.raises(ConcurrentUpdateError, match=r"^the key 'a' got two Overwrite updates in one superstep"):
        KeyedValue().apply({}, [{"a": Overwrite(1)}, {"a": Overwrite(2)}])


# --- barriers --------------------------------------------------------------------------------------------------------


def test_a_barrier_is_full_once_all_names_were_heard():
    barrier = NamedBarrierValue(["a", "b"])
    half = barrier.apply(barrier.initial(), ["a", "a"])
    full = barrier.apply(half, ["b"])
    assert (half, full) == (frozenset("a"), frozenset("ab"))
    assert not barrier.is_available(half)
    assert barrier.is_available(full)
    assert not barrier.is_available(MISSING)
    assert barrier.apply(MISSING, ["b"]) == frozenset("b")


def test_a_full_barrier_starts_again_when_consumed_and_an_unfinished_one_waits():
    barrier = NamedBarrierValue(["a", "b"])
    assert barrier.consume(frozenset("ab")) == frozenset()
    assert barrier.consume(frozenset("a")) == frozenset("a")


def test_a_barrier_knows_its_names():
    barrier, value = NamedBarrierValue(["b", "a"]), frozenset("a")
    for updates in (["b", "z", ["y"], 1], [Overwrite({"z", 1, ("y",)})]):
        with pytest.raises(InvalidUpdateError, match=r"this barrier waits for \['a', 'b'\] and does not know .*'z'"):
            barrier.apply(value, updates)
    with pytest.raises(InvalidUpdateError, match="Overwrite of a barrier takes a set of names, not str"):
        barrier.apply(value, [Overwrite("a")])
    assert value == frozenset("a")
