"""Tagged JSON: what the codec stores comes back through a text as it was, and no text runs anything."""

import json
import sys

import pytest
from hypothesis import given

from pregel.codec import Codec
from pregel.errors import DecodeError, EncodeError
from pregel.graph.flow.tagged import from_tree, parsed, to_tree
from tests.codec_values import CODEC, LOCAL, VALUES, Colour, same
from tests.property.test_codec import values


def through(value, codec=CODEC):
    text = json.dumps(to_tree(value, codec, "value"), allow_nan=False)
    return from_tree(parsed(text), codec, "value")


@pytest.mark.parametrize("name", [*VALUES, *LOCAL])
def test_m3_every_registered_type_comes_back_through_a_text_as_it_was(name):
    value = {**VALUES, **LOCAL}[name]
    assert same(through(value), value)


@given(values)
def test_m3_generated_values_come_back_through_a_text_as_they_were(value):
    assert same(through(value), value)


def test_plain_data_is_plain_json():
    value = {"order": {"id": "SO-1001", "lines": [1, 2.5, None, True]}}
    assert to_tree(value, CODEC, "value") == value


def test_a_dict_that_looks_like_a_tag_is_none():
    value = {"$": "set", "v": [1]}
    assert to_tree(value, CODEC, "value") == {"$": "dict", "v": [["$", "set"], ["v", [1]]]}
    assert through(value) == value


def test_a_value_that_can_not_be_told_names_the_path():
    with pytest.raises(EncodeError, match=r"analysis\.file\['x'\]\[0\]"):
        to_tree({"x": [object()]}, CODEC, "analysis.file")


HOSTILE = {
    "a class of a module": ({"$type": "os:system", "v": ["true"]}, "not registered here"),
    "a class of ours, unregistered": ({"$type": "pregel.main:Pregel", "v": [{}]}, "not registered here"),
    "a module that nobody imported": ({"$type": "antigravity:x", "v": []}, "not registered here"),
    "no tag of ours": ({"$": "datetme", "v": []}, "Did you mean 'datetime'"),
    "a tag and more": ({"$": "set", "v": [], "x": 1}, "no tagged value"),
    "a tag without parts": ({"$type": "os:system"}, "no tagged value"),
    "a tag that is no text": ({"$": 5, "v": []}, "no tagged value"),
    "parts that are no list": ({"$": "set", "v": "ab"}, "makes no value"),
    "a float that JSON has": ({"$": "float", "v": "1.5"}, "makes no value"),
    "bytes that are none": ({"$": "bytes", "v": "?"}, "base64"),
    "a pair of three": ({"$": "dict", "v": [[1, 2, 3]]}, "no pair"),
    "a key twice": ({"$": "dict", "v": [[1, 2], [1, 3]]}, "a key twice"),
    "a list as a key": ({"$": "dict", "v": [[[1], 2]]}, "value"),
    "a set with an element twice": ({"$": "set", "v": [1, 1]}, "equal"),
    "a member that there is not": ({"$type": "tests.codec_values:Colour", "v": ["BLUE"]}, "no member 'BLUE'"),
    "a number beyond all": (2**64, "never stored"),
    "half a character": ("\ud800", "never stored"),
    "a nest": (json.loads("[" * 600 + "]" * 600), "nested too deeply|never stored"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_m3_hostile_texts_are_refused_and_import_nothing(name):
    tree, why = HOSTILE[name]
    before = set(sys.modules)
    with pytest.raises(DecodeError, match=why):
        from_tree(tree, CODEC, "data['k']")
    assert set(sys.modules) == before


def test_a_type_that_is_known_to_the_writer_only_is_refused_with_its_tag():
    tree = to_tree(Colour.RED, CODEC, "value")
    with pytest.raises(DecodeError, match=r"data\['k'\]: .*tests\.codec_values:Colour"):
        from_tree(tree, Codec(), "data['k']")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "no JSON"),
        ("NaN", "NaN"),
        ('{"a": 1, "a": 2}', "a key twice"),
        ("[" * 100_000, "nested too deeply"),
        ("1" * 5_000, "no JSON"),
        (b"{}", "a JSON text"),
    ],
)
def test_a_text_that_is_no_json_is_refused(text, why):
    with pytest.raises(DecodeError, match=why):
        parsed(text)
