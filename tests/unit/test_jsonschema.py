"""The JSON schemas of graphs: what other programs are told about inputs and results."""

import enum
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, Protocol, TypedDict

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from pregel.graph.jsonschema import fields_jsonschema
from pregel.graph.schema import read_schema

if TYPE_CHECKING:
    from fractions import Fraction


class Color(enum.Enum):
    RED = "red"


class Plain:
    pass


class Duck(Protocol):
    def quack(self): ...


@dataclass
class Data:
    n: int
    thing: Plain | None = None


class Model(BaseModel):
    n: int


class Item(TypedDict):
    """One item."""

    name: str
    count: NotRequired[int]


class Hidden(TypedDict):
    odd: "Fraction"


class Tree(TypedDict):
    children: "list[Tree]"


def described(annotation, **options):
    """Return the JSON schema of one field `x`, and the definitions beside it."""

    class State(TypedDict):
        x: annotation

    schema = fields_jsonschema("State", list(read_schema(State).fields.values()), **options)
    return schema["properties"]["x"], schema.get("$defs", {})


def test_an_object_with_the_fields_in_their_order():
    class State(TypedDict):
        zebra: int
        apple: Annotated[list[str], operator.add]

    fields = list(read_schema(State).fields.values())
    schema = fields_jsonschema("GraphInput", fields, required=["apple"])
    assert schema == {
        "title": "GraphInput",
        "type": "object",
        "properties": {
            "zebra": {"title": "Zebra", "type": "integer"},
            "apple": {"title": "Apple", "type": "array", "items": {"type": "string"}},
        },
        "required": ["apple"],
    }
    assert list(schema["properties"]) == ["zebra", "apple"]


def test_nothing_is_required_unless_said():
    class State(TypedDict):
        x: int

    fields = list(read_schema(State).fields.values())
    assert "required" not in fields_jsonschema("State", fields)
    assert fields_jsonschema("State", fields, required={"x", "elsewhere"})["required"] == ["x"]


def test_no_fields():
    assert fields_jsonschema("State", []) == {"title": "State", "type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (int, {"title": "X", "type": "integer"}),
        (int | None, {"title": "X", "anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Literal["a", "b"], {"title": "X", "type": "string", "enum": ["a", "b"]}),
        (dict[str, float], {"title": "X", "type": "object", "additionalProperties": {"type": "number"}}),
        (Any, {"title": "X"}),
        (Annotated[list[int], operator.add], {"title": "X", "type": "array", "items": {"type": "integer"}}),
    ],
)
def test_types(annotation, schema):
    assert described(annotation)[0] == schema


@pytest.mark.parametrize("annotation", [Duck, list[Duck], "Duck", Annotated[Duck, "doc"], Hidden, list[Hidden]])
def test_a_type_that_pydantic_does_not_know_is_anything(annotation):
    assert described(annotation)[0] == {}


def test_a_class_without_json_schema_is_anything_where_it_stands():
    assert described(list[Plain])[0] == {"title": "X", "type": "array", "items": {}}
    assert described(Plain)[0] == {"title": "X"}
    assert described(dict[str, Plain | int])[0]["additionalProperties"] == {"anyOf": [{}, {"type": "integer"}]}


def test_named_types_are_definitions():
    for kind in (Color, Model):
        assert described(kind)[0] == {"$ref": f"#/$defs/{kind.__name__}"}
    assert described(Model)[1]["Model"]["required"] == ["n"]
    assert described(Color)[1]["Color"]["enum"] == ["red"]
    assert described(list[Data])[1]["Data"]["properties"]["n"]["type"] == "integer"


def test_a_nested_typeddict():
    schema, definitions = described(list[Item])
    assert schema["items"] == {"$ref": "#/$defs/Item"}
    item = definitions["Item"]
    assert item["required"] == ["name"]
    assert item["description"] == "One item."
    assert item["properties"] == {
        "name": {"title": "Name", "type": "string"},
        "count": {"title": "Count", "type": "integer"},
    }


def test_a_typeddict_that_contains_itself_ends():
    _, definitions = described(Tree)
    assert definitions["Tree"]["properties"]["children"]["items"]["type"] == "object"


def test_names_that_a_model_could_not_have():
    class State(TypedDict):
        copy: int
        model_config: str
        _hidden: int
        json: int

    schema = fields_jsonschema("State", list(read_schema(State).fields.values()))
    assert {name: each["type"] for name, each in schema["properties"].items()} == {
        "copy": "integer",
        "model_config": "string",
        "_hidden": "integer",
        "json": "integer",
    }


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,5}", fullmatch=True),
        st.sampled_from([int, str, list[int], Plain, Duck, Item, Model, Any]),
        min_size=1,
        max_size=5,
    )
)
def test_every_schema_has_every_field_and_no_other(annotations):
    fields = list(read_schema(TypedDict("State", annotations)).fields.values())
    schema = fields_jsonschema("State", fields, required=annotations)
    assert list(schema["properties"]) == list(annotations)
    assert schema["required"] == list(annotations)


def test_constraints_of_pydantic_types_are_told():
    assert described(list[pydantic.PositiveInt])[0]["items"] == {"type": "integer", "exclusiveMinimum": 0}
