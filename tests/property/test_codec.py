"""G10 and G11: every value comes back as it was, and no bytes bring anything but a value or `DecodeError`."""

import sys
import tracemalloc
from collections import Counter, OrderedDict, deque
from datetime import timedelta, timezone

import msgpack
from hypothesis import assume, example, given
from hypothesis import strategies as st

from pregel.codec import seal, unseal
from pregel.codec.encoding import Thorough
from pregel.errors import DecodeError
from tests.codec_values import CODEC, VALUES, Colour, Frozen, Level, Model, Open, Plain, Point, Rights, same

texts = st.text(st.characters(exclude_categories=[]), max_size=20)  # lone surrogates too
offsets = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
zones = st.one_of(st.none(), offsets, st.timezones(), st.just(timezone(timedelta(hours=1), "x")))
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**200), 2**200),
    st.floats(),
    texts,
    st.binary(max_size=20),
    st.complex_numbers(allow_nan=False),
    st.datetimes(timezones=zones, allow_imaginary=True),
    st.dates(),
    st.times(timezones=st.one_of(st.none(), offsets)),
    st.timedeltas(),
    st.uuids(),
    st.decimals(allow_nan=False),
    st.fractions(),
    st.ip_addresses(),
    st.sampled_from([*Colour, *Level, *Rights, Rights.READ | Rights.RUN, Rights(0)]),
    st.builds(range, st.integers(), st.integers(), st.integers(1)),
)
hashables = st.recursive(
    scalars.filter(lambda value: value == value),  # noqa: PLR0124 - a NaN is not itself, and no good key
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.frozensets(inner, max_size=3),
        st.builds(Point, inner, inner),
        st.builds(lambda key: Frozen(key=key), inner),
    ),
    max_leaves=5,
)


def containers(inner):
    items = st.lists(inner, max_size=4)
    dicts = st.dictionaries(hashables, inner, max_size=4)
    return st.one_of(
        items, items.map(tuple), dicts, dicts.map(OrderedDict), dicts.map(Counter), st.sets(hashables, max_size=4),
        st.frozensets(hashables, max_size=4), st.binary(max_size=9).map(bytearray),
        st.builds(deque, items, st.one_of(st.none(), st.integers(0, 5))),
        st.builds(Plain, inner, inner), st.builds(lambda key, more: Frozen(key=key, more=more), inner, inner),
        st.builds(Point, inner, inner), st.builds(lambda items: Model(items=items), items),
        st.builds(lambda more: Open(name="x", more=more), inner),
    )  # fmt: skip


values = st.recursive(scalars, containers, max_leaves=15)


@given(values)
def test_g11_every_value_comes_back_equal_of_the_same_types_and_as_the_same_bytes(value):
    data = CODEC.encode(value)
    again = CODEC.decode(data)
    assert same(again, value)
    assert CODEC.encode(again) == data


@given(values)
def test_the_thorough_way_writes_what_the_fast_one_does(value):
    assert Thorough(CODEC._type).encode(value) == CODEC.encode(value)


def survives(data):
    """Decode bytes in bounded memory without imports; return the value, or None where there is none."""
    before = set(sys.modules)
    tracemalloc.start()
    try:
        return CODEC.decode(data)
    except DecodeError:
        return None
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 1_000_000 + 2_000 * len(data)
        assert set(sys.modules) == before


def ours(data):
    """Leave out the tags for which a package is imported by a name in our own code."""
    return b"numpy" not in data and b"langchain" not in data


@given(st.binary(max_size=200))
@example(b"\xdd\x00\x00\xff\xff" * 200)
def test_g10_any_bytes_are_a_value_or_an_error(data):
    assume(ours(data))
    survives(data)


@given(values, st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=4), st.integers(0))
def test_g10_mutated_bytes_are_a_value_or_an_error(value, changes, cut):
    data = bytearray(CODEC.encode(value))
    for where, byte in changes:
        data[where % len(data)] = byte
    del data[len(data) - cut % 3 :]
    survives(bytes(data))


marks = st.integers(0, 32).map(lambda number: msgpack.ExtType(1, bytes([number])))
tags = st.sampled_from([*CODEC._own.tags, "os:system", "builtins:eval", "", "x"])
names = st.sampled_from(["a", "b", "key", "x", "y", "n", "items", "name", "_hidden", "__class__", "__dict__", "RED"])
shapes = st.recursive(
    st.one_of(marks, tags, names, st.none(), st.integers(-(2**63), 2**64 - 1), st.floats(), st.binary(max_size=9)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(names, inner, max_size=3),
        st.tuples(marks, inner).map(list),
        st.tuples(marks, inner, inner).map(list),
        st.tuples(marks, tags, st.dictionaries(names, inner, max_size=3), st.lists(names, max_size=2)).map(list),
    ),
    max_leaves=20,
)


@given(shapes)
def test_g10_forms_of_any_shape_are_a_value_or_an_error(shape):
    value = survives(msgpack.packb(shape))
    if value is not None:  # what can be read can be written, and is the same value then
        data = CODEC.encode(value)
        assert CODEC.encode(CODEC.decode(data)) == data


KEYS = st.lists(st.one_of(texts, st.integers(0, 2**40), st.lists(texts, max_size=3).map(tuple)), max_size=4).map(tuple)


@given(st.sampled_from(sorted(VALUES)), KEYS, KEYS, st.data())
def test_g12_flips_and_swaps_are_found(name, key, other, data):
    payload = CODEC.encode(VALUES[name])
    blob = seal(payload, *key)
    assert unseal(blob, *key) == payload
    flipped = bytearray(blob)
    bit = data.draw(st.integers(0, len(blob) * 8 - 1))
    flipped[bit // 8] ^= 1 << bit % 8
    for wrong, where in ((bytes(flipped), key), *(((blob, other),) if other != key else ())):
        try:
            unseal(wrong, *where)
        except DecodeError:
            continue
        raise AssertionError("it was not found")
