"""What the names of threads, namespaces and keys may be."""

import pytest

from pregel.errors import InvalidIdError
from pregel.ids import ID_LIMIT, check_id, check_labels


@pytest.mark.parametrize("name", ["a", "x" * ID_LIMIT, "% _ . : ' \\", "日本", " "])
def test_any_text_of_reasonable_length_is_a_name(name):
    assert check_id(name, "a thread") == name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (1, "a thread is a text, not 1"),
        (None, "a thread is a text, not None"),
        ("", "has 1 to 512 characters, and '' .* has 0"),
        ("x" * (ID_LIMIT + 1), "has 1 to 512 characters, .* has 513"),
        ("a\0b", "no NUL character"),
        ("\ud800", "half a character"),
    ],
)
def test_anything_else_is_refused_with_the_reason(name, words):
    with pytest.raises(InvalidIdError, match=words):
        check_id(name, "a thread")


def test_a_namespace_is_a_tuple_or_list_of_names():
    assert check_labels(["a", "b"], "a namespace") == ("a", "b")
    assert check_labels((), "a namespace") == ()
    with pytest.raises(InvalidIdError, match="a namespace is a tuple of texts, not 'ab'"):
        check_labels("ab", "a namespace")
    with pytest.raises(InvalidIdError, match="a label of a namespace is a text"):
        check_labels(("a", 1), "a namespace")
