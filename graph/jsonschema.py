"""The JSON schema of a graph's input and output. Importing this module imports pydantic: do so where it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NotRequired

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from pregel.graph.coercion import adapter_of, modern, typeddict

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pydantic.json_schema import JsonSchemaValue

    from pregel.graph.schema import FieldSpec

__all__ = ["fields_jsonschema"]


class Lenient(GenerateJsonSchema):
    """Describes a type that has no JSON schema as `{}`, which is anything, wherever it stands."""

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonSchemaValue:  # noqa: ARG002
        """Return the schema of anything."""
        return {}


def fields_jsonschema(title: str, fields: Sequence[FieldSpec], required: Collection[str] = ()) -> dict[str, Any]:
    """Return the JSON schema of an object with these fields.

    Args:
        title: The name of the object's type.
        fields: The fields, in the order of the properties.
        required: The names of the fields that must be there.
    """
    opaque = [field.name for field in fields if adapter_of(field.annotation) is None]
    items = {field.name: Any if field.name in opaque else modern(field.annotation) for field in fields}
    whole = typeddict(title, {name: item if name in required else NotRequired[item] for name, item in items.items()})
    schema = TypeAdapter(whole).json_schema(schema_generator=Lenient)
    for name in opaque:
        schema["properties"][name] = {}
    return schema
