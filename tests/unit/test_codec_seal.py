"""The envelope of a row: damage and a wrong place are found, always, and told apart."""

import pytest

from pregel.codec import seal, unseal
from pregel.codec.seal import OVERHEAD
from pregel.errors import DecodeError

KEY = ("thread", 0, ("outer", "inner"), 7, "messages")
PAYLOAD = b"\x93\x01\xa3abc\xc0" * 5


def test_a_sealed_payload_comes_back():
    for payload in (b"", b"x", PAYLOAD, bytes(range(256)) * 100):
        blob = seal(payload, *KEY)
        assert unseal(blob, *KEY) == payload
        assert type(unseal(memoryview(blob), *KEY)) is bytes
        assert len(blob) - len(payload) == OVERHEAD <= 8


def test_equal_rows_are_equal_bytes():
    assert seal(PAYLOAD, *KEY) == seal(PAYLOAD, *KEY)


@pytest.mark.parametrize("payload", [b"", PAYLOAD])
def test_every_single_bit_flip_is_found_and_called_damage(payload):
    blob = seal(payload, *KEY)
    for bit in range(len(blob) * 8):
        flipped = bytearray(blob)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DecodeError, match="damaged"):
            unseal(bytes(flipped), *KEY)


@pytest.mark.parametrize(
    "other",
    [
        ("thread2", 0, ("outer", "inner"), 7, "messages"),
        ("thread", 1, ("outer", "inner"), 7, "messages"),
        ("thread", 0, ("outer", "inner", ""), 7, "messages"),
        ("thread", 0, ("outer",), 7, "messages"),
        ("thread", 0, ("outerinner",), 7, "messages"),
        ("thread", 0, ("outer", "inner"), 8, "messages"),
        ("thread", 0, ("outer", "inner"), "7", "messages"),
        ("thread", 0, ("outer", "inner"), 7, "message"),
        ("thread", 0, ("outer", "inner"), 7),
        ("thread", 0, "outer", "inner", 7, "messages"),
        (),
    ],
    ids=str,
)
@pytest.mark.parametrize("payload", [b"", PAYLOAD])
def test_a_row_that_stands_elsewhere_is_found_and_called_so(other, payload):
    with pytest.raises(DecodeError, match="belongs elsewhere"):
        unseal(seal(payload, *KEY), *other)
    with pytest.raises(DecodeError, match="belongs elsewhere"):
        unseal(seal(payload, *other), *KEY)


def test_thousands_of_swapped_rows_are_all_found():
    blobs = {(step, field): seal(PAYLOAD, "t", step, field) for step in range(60) for field in ("a", "b")}
    for key, blob in blobs.items():
        for other in blobs:
            if other != key:
                with pytest.raises(DecodeError, match="belongs elsewhere"):
                    unseal(blob, "t", *other)


def test_bytes_that_move_between_payload_and_place_are_found():
    blob = seal(b"ab", ("a",))
    for size in range(len(blob)):
        with pytest.raises(DecodeError):
            unseal(blob[:size], ("a",))
    for more in (b"\0", b"\x91", b"\xa1a"):
        with pytest.raises(DecodeError):
            unseal(blob + more, ("a",))


@pytest.mark.parametrize("blob", [b"", b"\xc1", b"\xc1\x01\0\0\0\0\0", None, "text", 5], ids=repr)
def test_what_is_no_row_is_the_same_error(blob):
    with pytest.raises(DecodeError, match="is no row of pregel's"):
        unseal(blob, *KEY)


def test_a_newer_version_is_named():
    blob = bytearray(seal(PAYLOAD, *KEY))
    blob[1] = 9
    with pytest.raises(DecodeError, match="has version 9 of the format, and this version of pregel reads 1"):
        unseal(bytes(blob), *KEY)


def test_a_place_may_have_any_text_in_it():
    for name in ("\ud800", "a\0b", "", "ž" * 600):
        assert unseal(seal(b"x", name, (name,)), name, (name,)) == b"x"
