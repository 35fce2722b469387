"""The law checker: one broken reducer for each law, and the message it gets."""

import itertools
import operator
import pickle
import random
import subprocess
import sys
from functools import partial

import pytest
from hypothesis import strategies as st

from pregel.errors import InvalidUpdateError, PregelError
from pregel.testing import MissingExtraError, ReducerLawError, check_reducer

numbers = st.integers()
lists = st.lists(st.integers(0, 9), max_size=4)


def broken(reducer, updates, **options):
    """The complaint about a reducer."""
    with pytest.raises(ReducerLawError) as caught:
        check_reducer(reducer, updates, **options)
    assert f'breaks the law "{caught.value.law}"' in str(caught.value)
    return str(caught.value).replace("test_laws.", "").split("<locals>.")[-1]


def with_attributes(function, **attributes):
    """The function as a new one that carries attributes."""

    def reducer(left, right):
        return function(left, right)

    for name, value in attributes.items():
        setattr(reducer, name, value)
    return reducer


# --- reducers that keep the laws -------------------------------------------------------------------------------------


class KeepLast:
    def __init__(self, most):
        self.most = most

    def __call__(self, left, right):
        return (left + right)[-self.most :]


def counted(left, right, *, step=1):
    return left + step * len(right)


@pytest.mark.parametrize(
    ("reducer", "options"),
    [
        (operator.add, {}),
        (KeepLast(2), {}),
        (partial(counted, step=2), {"values": numbers}),
        (partial(counted, step=2), {"values": numbers, "commutative": True}),
        (with_attributes(operator.add, appends=True, fold=lambda left, updates: sum(updates, left)), {}),
        (with_attributes(operator.add, prepare=lambda update, new_id: list(update)), {}),
    ],
)
def test_lawful_reducers_of_all_kinds_pass(reducer, options):
    assert check_reducer(reducer, lists, **options) is None


def test_commutative_reducers_pass():
    for reducer in (operator.add, max, min, operator.xor):
        check_reducer(reducer, numbers, commutative=True)
    check_reducer(set.union, st.sets(numbers), commutative=True)


def test_a_reducer_may_refuse_some_operands():
    def positive(left, right):
        if right < 0:
            raise InvalidUpdateError("negative")
        return left + right

    check_reducer(with_attributes(positive, fold=partial(in_a_row, positive)), numbers)
    check_reducer(with_attributes(refuse_empty, appends=True), lists)


def test_a_prepare_may_refuse_some_updates():
    def prepare(update, new_id):
        if not update:
            raise InvalidUpdateError("empty")
        return update

    check_reducer(with_attributes(operator.add, prepare=prepare, appends=True), lists)
    check_reducer(with_attributes(operator.add, prepare=prepare, fold=partial(in_a_row, operator.add)), lists)
    check_reducer(with_attributes(operator.add, prepare=prepare), numbers, commutative=True)


def in_a_row(reducer, left, updates):
    for update in updates:
        left = reducer(left, update)
    return left


def refuse_empty(left, right):
    if not right:
        raise InvalidUpdateError("empty")
    return left + right


# --- one broken reducer for each law ---------------------------------------------------------------------------------


def test_operands_are_left_alone():
    def extend(left, right):
        left.extend(right)
        return left

    assert broken(extend, lists) == (
        'extend breaks the law "operands are left alone" for\n'
        "  value = []\n"
        "  update = [0]\n"
        "the reducer changed its operands to [0] and [0]\n"
        "Remedy: build a new value (left + right, {**left, **right}) in place of changing left or right"
    )


def test_the_update_is_left_alone_as_well():
    def take(left, right):
        return [*left, *(right.pop() for _ in range(len(right)))]

    text = broken(take, lists)
    assert "the reducer changed its operands to [] and []" in text
    assert "  update = [0]\n" in text


def test_fold_and_prepare_leave_their_operands_alone():
    def fold(left, updates):
        for update in updates:
            left += update
        return left

    def prepare(update, new_id):
        update.sort()
        return update

    assert "\nfold changed its operands to [0] and [[0]]\n" in broken(with_attributes(operator.add, fold=fold), lists)
    text = broken(with_attributes(operator.add, prepare=prepare), lists)
    assert 'the law "operands are left alone"' in text
    assert "  update = [1, 0]\nprepare changed its update to [0, 1]\n" in text


def test_the_same_operands_give_the_same_result():
    numbered = itertools.count()

    def stamp(left, right):
        return [*left, *right, next(numbered)]

    text = broken(stamp, lists)
    assert text.startswith(
        'stamp breaks the law "same operands, same result" for\n  value = []\n  update = []\nfirst ['
    )
    assert text.endswith("or take ids from the second argument of the reducer's `prepare(update, new_id)`")


def test_randomness_is_found_although_the_search_seeds_it():
    assert 'the law "same operands, same result"' in broken(lambda left, right: left + right + random.random(), numbers)  # noqa: S311


def test_ids_that_prepare_makes_itself_are_found():
    numbered = itertools.count()
    reducer = with_attributes(operator.add, prepare=lambda update, new_id: update or [next(numbered)])
    text = broken(reducer, lists, values=lists)
    assert 'the law "same operands, same result"' in text
    assert "  update = []\n" in text


def test_trouble_that_does_not_come_again_is_a_matter_of_determinism():
    calls = itertools.count(1)

    def once(left, right):
        if next(calls) == 5:
            raise KeyError("fifth")
        return left + right

    text = broken(once, numbers)
    assert text.startswith('once breaks the law "same operands, same result" for\n')
    assert "it raises KeyError('fifth')\nand when the same call was made again: no trouble\nRemedy: leave" in text


def test_a_reducer_raises_nothing_but_refusals():
    def first(left, right):
        return left[0]

    text = broken(first, lists)
    assert text.startswith('first breaks the law "the reducer returns a value or raises InvalidUpdateError" for\n')
    assert "  value = []\n  update = []\nit raises IndexError('list index out of range')\nRemedy: handle these" in text


def test_values_of_another_type_have_to_be_drawn():
    text = broken(lambda left, right: left + len(right), lists)
    assert "it raises TypeError(" in text
    assert text.endswith("or draw others (values=... where values and updates are of different types)")


def test_prepare_is_idempotent():
    reducer = with_attributes(operator.add, prepare=lambda update, new_id: [*update, new_id()])
    text = broken(reducer, lists)
    assert text == (
        'reducer breaks the law "prepare is idempotent" for\n'
        "  value = []\n"
        "  update = []\n"
        "prepared once ['first-0'], prepared again ['first-0', 'second-0']\n"
        "Remedy: let `prepare` leave alone what it has made: give an id only where there is none"
    )


def test_a_fold_equals_the_reducer_in_a_row():
    reducer = with_attributes(operator.add, fold=lambda left, updates: left + updates[-1])
    assert broken(reducer, lists) == (
        'reducer breaks the law "fold equals the reducer applied in a row" for\n'
        "  value = []\n"
        "  updates = [[0], []]\n"
        "fold: [], in a row: [0]\n"
        "Remedy: let `fold(left, updates)` give what reducer(reducer(left, first), second) gives, or leave it out"
    )


def test_a_fold_refuses_what_the_reducer_refuses():
    reducer = with_attributes(refuse_empty, fold=lambda left, updates: sum(updates, left))
    assert "fold: [], in a row: raises InvalidUpdateError('empty')" in broken(reducer, lists)


def test_a_log_begins_with_its_old_value():
    assert broken(with_attributes(lambda left, right: right + left, appends=True), lists) == (
        'reducer breaks the law "appends: the result begins with the old value" for\n'
        "  value = [0]\n"
        "  update = [1]\n"
        "the old value is [0], the result [1, 0]\n"
        "Remedy: only add at the end, or take `appends` away from the reducer"
    )


def test_a_number_is_no_log():
    text = broken(with_attributes(operator.add, appends=True), numbers)
    assert 'the law "appends: the result begins with the old value" for\n  value = 0\n  update = 0\n' in text


def test_order_does_not_matter_to_a_commutative_reducer():
    text = broken(operator.add, lists, commutative=True)
    assert text == (
        'add breaks the law "commutative: the order of updates does not matter" for\n'
        "  value = []\n"
        "  updates = [[0], [1]]\n"
        "from the value, in this order: [0, 1], in the other: [1, 0]\n"
        "Remedy: let the result depend on the set of updates alone, or call check_reducer without commutative=True"
    )
    check_reducer(operator.add, lists)


def test_order_can_matter_only_to_a_field_that_starts_with_an_update():
    check_reducer(operator.sub, numbers, values=numbers, commutative=True)
    assert "from a field that holds nothing, in this order: " in broken(operator.sub, numbers, commutative=True)


class Opaque:
    def __repr__(self):
        return "Opaque()"


class Incomparable(Opaque):
    def __eq__(self, other):
        raise ValueError("which elements?")

    __hash__ = None


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Opaque, "Opaque() is not equal to a copy of itself"),
        (Incomparable, "comparing Opaque() with a copy of itself raises ValueError('which elements?')"),
    ],
)
def test_operands_have_to_be_comparable(kind, said):
    text = broken(lambda left, right: right, st.builds(kind), values=numbers)
    assert 'the law "operands are compared by value"' in text
    assert said in text


def test_a_check_in_which_everything_is_refused_is_no_check():
    def never(left, right):
        raise InvalidUpdateError("no")

    with pytest.raises(ReducerLawError) as caught:
        check_reducer(never, numbers)
    assert "never refused all operands that were drawn, so no law could be checked." in str(caught.value)
    assert "The last refusal: InvalidUpdateError('no')\nRemedy: give check_reducer strategies" in str(caught.value)


# --- the tool itself -------------------------------------------------------------------------------------------------


def test_partials_and_objects_are_named():
    class Last:
        def __call__(self, left, right):
            return [*left, *right][1:]

        appends = True

    def shout(text, left, right):
        return left + right + [text]

    assert broken(Last(), lists).startswith("Last breaks the law")
    text = broken(partial(shout, 1), lists, commutative=True)
    assert text.startswith("shout) breaks the law")


def test_two_checks_draw_the_same_operands():
    def drawn():
        seen = []

        def reducer(left, right):
            seen.append((left, right))
            return left + right

        check_reducer(reducer, numbers, max_examples=20)
        return seen

    assert drawn() == drawn()


def test_max_examples_bounds_the_calls():
    def calls(most):
        seen = []

        def reducer(left, right):
            seen.append(right)
            return left + right

        check_reducer(reducer, numbers, max_examples=most)
        return len(seen)

    assert 0 < calls(5) <= 25
    assert calls(5) < calls(50)


def test_the_error_is_an_assertion_of_this_library_and_pickles():
    with pytest.raises(ReducerLawError) as caught:
        check_reducer(operator.add, lists, commutative=True)
    assert isinstance(caught.value, AssertionError)
    assert isinstance(caught.value, PregelError)
    twin = pickle.loads(pickle.dumps(caught.value))  # noqa: S301
    assert (str(twin), twin.law) == (str(caught.value), "commutative: the order of updates does not matter")


def test_without_hypothesis_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(MissingExtraError) as caught:
        check_reducer(operator.add, lists)
    assert "pip install 'pregel[testing]'" in str(caught.value)
    assert isinstance(caught.value, ImportError)


def test_importing_the_test_kit_does_not_import_hypothesis():
    code = "import sys, pregel.testing; sys.exit('hypothesis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
