"""Whatever the bytes are: a value or `DecodeError`, nothing imported, no control, little memory."""

import sys
import tracemalloc
from importlib import import_module

import msgpack
import pytest

from pregel.codec import decode, encode
from pregel.errors import DecodeError
from tests.codec_values import CODEC, VALUES


def mark(number):
    return msgpack.ExtType(1, bytes([number]))


def pack(value):
    return msgpack.packb(value, default=None, strict_types=False)


def form(number, *parts):
    return pack([mark(number), *parts])


def deep(header, depth):
    return header * depth + b"\xc0"


#: What is refused, and a word of the message.
HOSTILE = {
    "nothing": (b"", "truncated"),
    "truncated text": (b"\xa5abc", "truncated"),
    "truncated list": (b"\x93\x01", "truncated"),
    "trailing bytes": (b"\x01\x02", "go on after the value"),
    "unused byte": (b"\xc1", "damaged"),
    "bad utf-8": (b"\xa1\xff", "damaged"),
    "a list as key": (b"\x81\x91\x01\x01", "damaged"),
    "huge list": (b"\xdd\xff\xff\xff\xff\x01", "damaged"),
    "huge dict": (b"\xdf\xff\xff\xff\xff\x01\x01", "damaged"),
    "huge text": (b"\xdb\xff\xff\xff\xff", "damaged"),
    "huge extension": (b"\xc9\xff\xff\xff\xff\x01", "damaged"),
    "deep lists": (deep(b"\x91", 5_000), "too deeply"),
    "deep dicts": (deep(b"\x81\x01", 5_000), "too deeply"),
    "deep tuples": (deep(b"\x92\xd4\x01\x01", 5_000), "too deeply"),
    "timestamp 32": (b"\xd6\xff\0\0\0\0", "timestamp"),
    "timestamp 64": (b"\xd7\xff" + b"\0" * 8, "timestamp"),
    "timestamp 96": (b"\xc7\x0c\xff" + b"\0" * 12, "timestamp"),
    "timestamp in a tuple": (form(1, msgpack.Timestamp(1)), "timestamp"),
    "timestamp as a key": (pack({msgpack.Timestamp(1): 1}), "timestamp"),
    "extension of another": (pack(msgpack.ExtType(5, b"x")), "extension type 5"),
    "pickle of another": (pack(msgpack.ExtType(5, b"cos\nsystem\n(S'true'\ntR.")), "extension type 5"),
    "long mark": (pack([msgpack.ExtType(1, b"\1\1")]), "extension type 1"),
    "unknown form": (form(200, 1), "form of number 200"),
    "a mark alone": (pack(mark(1)), "mark"),
    "a mark second": (pack([1, mark(1)]), "mark"),
    "a mark as value": (pack({"a": mark(0)}), "mark"),
    "a mark as key": (pack({mark(1): 1}), "mark"),
    "two marks": (form(1, mark(1)), "mark"),
    "no tag": (form(0), "names no type"),
    "tag that is no text": (form(0, 1, 2), "names no type"),
    "module path as tag": (form(0, "os:system", "true"), "'os:system', which is not registered"),
    "class path as tag": (form(0, "subprocess:Popen", ["true"]), "not registered"),
    "control": (form(0, "pregel.types:Command", {"goto": "x"}), "not registered"),
    "overwrite": (form(0, "pregel.channels.base:Overwrite", {"value": 1}), "not registered"),
    "long tag": (form(0, "x" * 100_000), "not registered"),
    "tag of langchain's that is none": (form(0, "langchain_core.messages:os", {}), "not registered"),
    "big integer": (form(4, b"\x01" * 9_000), "longer than the 8192"),
    "big integer as text": (form(4, "1" * 50), "bytes expected"),
    "no parts": (form(9), "can't be rebuilt"),
    "month 13": (form(9, 2024, 13, 1, 0, 0, 0, 0), "month"),
    "timezone of a day": (form(13, 5), "can't be rebuilt"),
    "zone outside": (form(14, "../../etc/passwd"), "no time zone"),
    "zone absolute": (form(14, "/etc/passwd"), "no time zone"),
    "zone as module": (form(14, "Europe/__init__"), "no time zone"),
    "decimal": (form(16, "1_0"), "not how a Decimal is written"),
    "decimal words": (form(16, "ten"), "can't be rebuilt"),
    "fraction": (form(17, 2, 4), "lowest terms"),
    "fraction of zero": (form(17, 1, 0), "can't be rebuilt"),
    "address as a number": (form(25, 1), "str expected"),
    "deque beyond its limit": (form(22, 1, [1, 2]), "at most 1"),
    "equal elements": (form(2, 1, 1), "two of its elements are equal"),
    "equal frozen elements": (form(3, 1, 1), "two of its elements are equal"),
    "list in a set": (form(2, []), "can't be rebuilt"),
    "counter of a list": (form(23, [1]), "dict expected"),
    "complex of texts": (form(7, "1", "2"), "float expected"),
    "no member": (form(0, "tests.codec_values:Colour", "BLUE"), "no member 'BLUE'"),
    "member by value": (form(0, "tests.codec_values:Colour", 1), "name of a member"),
    "flags beyond": (form(0, "tests.codec_values:Rights", 4096), "can't be rebuilt"),
    "record of another shape": (form(0, "tests.codec_values:Plain", [1]), "a record expected"),
    "attribute that is no field": (
        form(0, "tests.codec_values:Plain", {"a": 1, "__class__": 2}),
        "no field '__class__'",
    ),
    "private attribute": (
        form(0, "tests.codec_values:Model", {}, [], None, {"_other": 1}),
        "no private attribute '_other'",
    ),
    "fields that were not set": (form(0, "tests.codec_values:Model", {"n": 1, "items": []}, ["x"]), "does not have"),
    "extra": (form(0, "tests.codec_values:Model", {"n": 1, "items": []}, [], {"x": 1}, None), "no field 'x'"),
    "array of objects": (form(0, "numpy:ndarray", "|O", [1], b"\0" * 8), "no dtype that is stored"),
    "array too short": (form(0, "numpy:ndarray", "<i8", [2**40], b"\0" * 8), "are no array"),
    "array of negative shape": (form(0, "numpy:ndarray", "<i8", [-1, -1], b"\0" * 8), "a shape and bytes expected"),
    "array of huge items": (form(0, "numpy:ndarray", "<U999999999", [0], b""), "no dtype that is stored"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_case_57_hostile_bytes_are_one_named_error_and_import_nothing(name):
    data, words = HOSTILE[name]
    if b"numpy:" in data:
        import_module("numpy")  # before, so that it is seen that nothing else is loaded
    before = set(sys.modules)
    with pytest.raises(DecodeError, match=words):
        CODEC.decode(data)
    assert set(sys.modules) == before


@pytest.mark.parametrize(
    "given",
    [None, "text", 5, [1], bytearray(b"\x01"), memoryview(b"\x01")],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_bytes_is_the_same_error(given):
    with pytest.raises(DecodeError, match="bytes are decoded, not"):
        decode(given)


def test_case_59_data_that_looks_like_control_stays_data():
    for value in (
        {"type": "__overwrite__", "value": []},
        {"__overwrite__": []},
        {"__interrupt__": [{"value": 1}]},
        {"goto": "x", "update": {}, "graph": "__parent__"},
        {"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {}},
        ["\x01", {"pregel.types:Send": ["node", {}]}],
    ):
        again = decode(encode(value))
        assert again == value
        assert type(again) is type(value)


def test_a_text_that_looks_like_a_form_stays_a_text():
    value = [form(1, 1), form(1, 1).decode("latin-1"), {"x": [b"\xd4\x01\x01", "\xd4\x01\x01"]}, 0xD4, 0.1]
    assert decode(encode(value)) == value


@pytest.mark.parametrize("size", [300, 3_000, 30_000])
def test_lists_that_claim_more_than_comes_take_little_memory(size):
    claims = b"\xdc" + size.to_bytes(2, "big")
    data = (claims * 1_000)[:size]
    with pytest.raises(DecodeError):
        decode(data[:300])  # loads what errors need
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError):
            decode(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000 + 200 * len(data)


def test_nested_forms_are_rebuilt_without_recursion():
    value = ()
    for _ in range(900):
        value = [value]
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(150 + len_of_stack())
    try:
        again = decode(b"\x91" * 900 + encode(()))
    finally:
        sys.setrecursionlimit(limit)
    while type(again) is list:
        again = again[0]
    assert again == ()


def len_of_stack():
    frame, count = sys._getframe(), 0
    while frame:
        frame, count = frame.f_back, count + 1
    return count


@pytest.mark.parametrize("name", VALUES)
def test_every_truncation_is_found(name):
    data = CODEC.encode(VALUES[name])
    for size in range(len(data)):
        with pytest.raises(DecodeError):
            CODEC.decode(data[:size])
