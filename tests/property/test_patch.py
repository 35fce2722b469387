"""Whatever changes, a patch makes the new value of the old one, and leaves both alone."""

from hypothesis import given
from hypothesis import strategies as st

from pregel.checkpoint.patch import apply, difference

# Objects that are told apart by identity, as the parts of values are.
POOL = [object() for _ in range(12)]
items = st.sampled_from(POOL)


@st.composite
def edited_lists(draw):
    old = draw(st.lists(items, max_size=15))
    new = list(old)
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(new)))
        length = draw(st.integers(0, 2))
        new[place : place + length] = draw(st.lists(items, max_size=3))
    return old, new


@st.composite
def edited_dicts(draw):
    keys = st.sampled_from("abcdefghij")
    old = draw(st.dictionaries(keys, items))
    new = dict(old)
    for key in draw(st.lists(keys, max_size=3)):
        new.pop(key, None)
    new.update(draw(st.dictionaries(keys, items, max_size=3)))
    return old, new


@given(edited_lists(), st.sets(items))
def test_lists(pair, given_back):
    old, new = pair
    before = list(old), list(new)
    patch = difference(old, new, {id(part) for part in given_back})
    if patch is not None:
        assert apply(old, patch) == new
        retained = set(map(id, new)) - set(map(id, patch.news))
        assert not retained & set(map(id, given_back))
    assert (old, new) == before


@given(edited_dicts(), st.sets(items))
def test_dicts_and_their_order(pair, given_back):
    old, new = pair
    before = list(old.items()), list(new.items())
    patch = difference(old, new, {id(part) for part in given_back})
    if patch is not None:
        assert list(apply(old, patch).items()) == list(new.items())
        assert all(key in patch.news[0] for key, value in new.items() if value in given_back)
    assert (list(old.items()), list(new.items())) == before


@given(st.lists(items, min_size=4, max_size=30), st.lists(items, max_size=5))
def test_what_is_added_at_the_end_is_all_that_is_stored(old, added):
    patch = difference(old, old + added)
    assert patch is not None
    assert patch.news == added
