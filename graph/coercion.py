"""What pydantic makes of a value. Importing this module imports pydantic: do so where it is needed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typing_extensions
from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from pregel.graph.annotations import UNIONS, field_hints, is_typeddict
from pregel.graph.typetests import Find, shortened

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel

__all__ = ["adapter_of", "converter", "field_converter", "strict_find"]

CONFIG = ConfigDict(arbitrary_types_allowed=True)


def adapter_of(annotation: Any) -> TypeAdapter[Any] | None:
    """Return pydantic's view of an annotation, arbitrary classes allowed, or None where it has none."""
    try:
        annotation = modern(annotation, {})
        try:
            return TypeAdapter(annotation, config=CONFIG)
        except PydanticUserError as error:
            if error.code != "type-adapter-config-unused":
                raise
            return TypeAdapter(annotation)  # models and the like bring a configuration of their own
    except Exception:
        return None


def modern(annotation: Any, met: dict[Any, Any]) -> Any:
    """Return the annotation with each `typing.TypedDict` as one of typing_extensions: older Pythons need that.

    Args:
        annotation: The annotation.
        met: The TypedDicts around this place; one that contains itself is a plain dict there.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    ...
