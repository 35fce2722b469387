"""Which types a graph's values may be of, as far as its annotations say: the codec is told of them."""

from __future__ import annotations

import dataclasses
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar, get_args, get_origin

from typing_extensions import get_type_hints

from pregel.codec.kinds import is_model, understood
from pregel.codec.registry import CONTROL, tag_of
from pregel.errors import SchemaError
from pregel.graph.annotations import alias_value, field_hints, is_alias, is_typeddict

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["storable_types"]

#: Classes whose annotations are remembered.
REMEMBERED: Final = 4096


def storable_types(annotations: Iterable[Any]) -> list[type]:
    """Return the dataclasses, pydantic models, Enums and NamedTuples that annotations name, in the order they are met.

    Unions, `Annotated`, aliases and type arguments are looked through, and so are the fields of the classes that are
    found and of TypedDicts. An annotation that can't be resolved is skipped: whoever stores a value of a type that is
    not found is told to register it.

    Args:
        annotations: Type annotations; classes among them.
    """
    found: dict[type, None] = {}
    #: What was looked at; an alias that contains itself is another object each time, and equal.
    seen: set[Any] = set()
    kept: list[Any] = []
    waiting = list(annotations)[::-1]
    while waiting:
        annotation = waiting.pop()
        key = identity(annotation)
        if key in seen:
            continue
        seen.add(key)
        kept.append(annotation)  # so that its id is no other's
        if isinstance(annotation, type) and not get_args(annotation):
            if is_storable(annotation):
                found[annotation] = None
            waiting += fields(annotation)[::-1]
        else:
            waiting += inside(annotation)[::-1]
    return list(found)


def identity(annotation: Any) -> Any:
    """Return what an annotation is known by: itself, or its id where it can't be looked up."""
    try:
        hash(annotation)
    except TypeError:
        return id(annotation)
    return annotation


def inside(annotation: Any) -> list[Any]:
    """Return what stands in an annotation that is no class."""
    if is_alias(annotation):
        try:
            return [alias_value(annotation)]
        except NameError:
            return []
    if isinstance(annotation, TypeVar):
        return [annotation.__bound__, *annotation.__constraints__]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return [arguments[0]]
    if origin is Literal:
        return [type(argument) for argument in arguments if isinstance(argument, Enum)]
    listed = [part for argument in arguments for part in (argument if isinstance(argument, list) else [argument])]
    return [origin, *listed] if isinstance(origin, type) else listed


def is_storable(cls: type) -> bool:
    """Return whether values of a class can be stored without functions for it."""
    if cls in CONTROL or cls.__module__ == "pydantic.main" or (issubclass(cls, Enum) and not cls.__members__):
        return False
    return understood(cls, tag_of(cls)) is not None


@lru_cache(maxsize=REMEMBERED)
def fields(cls: Any) -> list[Any]:
    """Return the annotations of a class that has fields; those that can be resolved."""
    if is_model(cls):
        return [field.annotation for field in cls.model_fields.values()]
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        try:
            return list(get_type_hints(cls, include_extras=True).values())
        except Exception:  # noqa: BLE001 - whatever the annotations raise, they name nothing
            return []
    if not (dataclasses.is_dataclass(cls) or is_typeddict(cls)):
        return []
    try:
        return list(field_hints(cls).values())
    except SchemaError:
        return [hint for name in names(cls) for hint in resolvable(cls, name)]


def names(cls: Any) -> list[str]:
    """Return the names of a class's fields."""
    if is_typeddict(cls):
        return [*cls.__annotations__]
    return [field.name for field in dataclasses.fields(cls)]


def resolvable(cls: Any, name: str) -> list[Any]:
    """Return a field's annotation, or nothing if it can't be resolved."""
    try:
        return [*field_hints(cls, (), {name}).values()]
    except SchemaError:
        return []
