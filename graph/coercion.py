"""What pydantic makes of a value. Importing this module imports pydantic: do so where it is needed."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, Union, get_args, get_origin

import pydantic_core
import typing_extensions
from pydantic import ConfigDict, PydanticUndefinedAnnotation, PydanticUserError, TypeAdapter, ValidationError

from pregel.errors import SchemaError
from pregel.graph.annotations import UNIONS, describe, field_hints, is_optional, is_typeddict, required_keys
from pregel.graph.typetests import shortened

if TYPE_CHECKING:
    from pydantic import BaseModel

    from pregel.graph.typetests import Fault, Find

__all__ = ["adapter_of", "converter", "field_converter", "modern", "strict_finder", "typeddict"]

CONFIG = ConfigDict(arbitrary_types_allowed=True)
#: How pydantic, or the reading of a nested TypedDict, says that it can make nothing of an annotation.
UNKNOWN = (PydanticUserError, PydanticUndefinedAnnotation, pydantic_core.SchemaError, SchemaError, UserWarning)


def adapter_of(annotation: Any) -> TypeAdapter[Any] | None:
    """Return pydantic's view of an annotation, arbitrary classes allowed, or None where it has none."""
    try:
        renewed = modern(annotation)
        with warnings.catch_warnings():
            warnings.filterwarnings("error", ".* is not a Python type")
            try:
                adapter = TypeAdapter(renewed, config=CONFIG)
            except PydanticUserError as error:
                if error.code != "type-adapter-config-unused":
                    raise
                adapter = TypeAdapter(renewed)  # models and the like bring a configuration of their own
    except UNKNOWN:
        return None
    # Of names that it can't find pydantic speaks only when it is used; versions before 2.10 do at once.
    return adapter if getattr(adapter, "pydantic_complete", True) else None


def converter(annotation: Any) -> Callable[[Any], Any] | None:
    """Return what converts a value to a type as pydantic does, or None for a type that pydantic doesn't know."""
    adapter = adapter_of(annotation)
    return None if adapter is None else partial(converted, adapter.validate_python)


def field_converter(model: type[BaseModel], field: str) -> Callable[[Any], Any]:
    """Return what runs constraints and validators of one field of a model on a value.

    The model's own schema holds them readily assembled. Assigning to an instance would run them too, and with them
    the validators of the whole model, which no single update can satisfy.
    """
    schema: Any = model.__pydantic_core_schema__
    config: Any = None
    definitions: list[Any] = []
    while schema["type"] != "model-fields":  # around it stand the model, its validators, and definitions of types
        if schema["type"] == "definition-ref":
            schema = next(each for each in definitions if each["ref"] == schema["schema_ref"])
            continue
        definitions = schema.get("definitions", definitions)
        config = schema.get("config", config)
        schema = schema["schema"]
    alone: Any = {
        "type": "model-fields",
        "model_name": model.__name__,
        "fields": {field: {"type": "model-field", "schema": schema["fields"][field]["schema"]}},
    }
    if definitions:
        alone = {"type": "definitions", "schema": alone, "definitions": definitions}
    validator = pydantic_core.SchemaValidator(alone, config)

    def convert(value: Any) -> Any:
        values, _, _ = validator.validate_python({field: value})
        return values[field]

    return partial(converted, convert, depth=1)


def strict_finder(annotation: Any) -> Find:
    """Return what finds faults in values of a type by pydantic's strict rules; to fit by conversion is a fault too.

    A type that pydantic does not know lets everything pass.
    """
    adapter = adapter_of(annotation)
    expected = describe(annotation)

    def find(value: Any) -> Fault | None:
        if adapter is None:
            return None
        try:
            result = adapter.validate_python(value, strict=True)
        except ValidationError as error:
            return "", explained(error)
        if result is value or (type(result) is type(value) and result == value):
            return None
        return "", f"expected {expected}, and {shortened(value)} is one only when converted"

    return find


def converted(convert: Callable[[Any], Any], value: Any, *, depth: int = 0) -> Any:
    """Return the converted value.

    Args:
        convert: Asks pydantic.
        value: The value.
        depth: How many steps of the places that pydantic names lead to the value itself.

    Raises:
        TypeError: pydantic refuses it; the message is short and names the place.
    """
    try:
        return convert(value)
    except ValidationError as error:
        raise TypeError(explained(error, depth)) from error


def explained(error: ValidationError, depth: int = 0) -> str:
    """Return the first thing that pydantic found wrong as a short text."""
    first = error.errors(include_url=False)[0]
    where = "".join(f"[{part!r}]" for part in first["loc"][depth:])
    message = first["msg"]
    others = error.error_count() - 1
    return (
        f"{f'at {where}: ' if where else ''}{message[0].lower()}{message[1:]}, got {shortened(first['input'])}"
        f"{f' (and {others} more)' if others else ''}"
    )


def modern(annotation: Any, around: tuple[Any, ...] = ()) -> Any:
    """Return the annotation with each `typing.TypedDict` as one of typing_extensions, which older Pythons need.

    Args:
        annotation: The annotation.
        around: The TypedDicts around this place; one that contains itself is any dict there.
    """
    kind = get_origin(annotation) or annotation
    if is_typeddict(kind):
        return dict if kind in around else modern_typeddict(annotation, kind, (*around, kind))
    arguments = get_args(annotation)
    if kind is Annotated:
        return Annotated[(modern(annotation.__origin__, around), *annotation.__metadata__)]
    if kind is Literal or kind is Callable:
        return annotation
    renewed = tuple(modern(argument, around) for argument in arguments)
    if renewed == arguments:
        return annotation
    if kind in UNIONS:
        return Union[renewed]  # noqa: UP007 - the members are in a tuple
    return annotation.copy_with(renewed) if hasattr(annotation, "copy_with") else kind[renewed]


def modern_typeddict(annotation: Any, kind: Any, around: tuple[Any, ...]) -> Any:
    """Return a TypedDict of typing_extensions with the same items."""
    hints = field_hints(kind, get_args(annotation))
    required = required_keys(kind, hints)
    renewed = {name: modern(hint, around) for name, hint in hints.items()}
    items = {
        name: hint if name in required or is_optional(hint) else NotRequired[hint] for name, hint in renewed.items()
    }
    return typeddict(kind.__name__, items, __doc__=kind.__doc__, __module__=kind.__module__)


def typeddict(name: str, items: dict[str, Any], **attributes: Any) -> Any:
    """Return a new TypedDict with these items, which pydantic lets hold values of any class."""
    make: Any = typing_extensions.TypedDict  # type checkers want to see the items
    made = make(name, items)
    for attribute, value in {"__pydantic_config__": CONFIG, **attributes}.items():
        setattr(made, attribute, value)
    return made
