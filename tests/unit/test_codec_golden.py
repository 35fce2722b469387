"""The promise of the format: bytes that an earlier version wrote are read, and written again as they were.

The files are never changed. A new kind of value gets a new file.
"""

from pathlib import Path

import pytest

from pregel.codec import seal, unseal
from tests.codec_values import CODEC, VALUES, same

FOLDER = Path(__file__).parents[1] / "golden" / "codec"
FILES = sorted(FOLDER.glob("*.bin"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_stored_bytes_are_read_and_written_as_they_were(path):
    data = unseal(path.read_bytes(), "golden", path.stem)
    value = CODEC.decode(data)
    assert same(value, VALUES[path.stem])
    assert CODEC.encode(value) == data
    assert seal(data, "golden", path.stem) == path.read_bytes()


def test_there_is_a_file_for_every_kind_of_value():
    assert {path.stem for path in FILES} == set(VALUES)
