"""How a state schema becomes fields: annotations in, one channel per field out."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_args, get_origin

from pregel.channels.base import MISSING
from pregel.errors import SchemaError
from pregel.graph.annotations import field_hints, is_typeddict, substitute, unresolvable
from pregel.graph.fields import (
    FieldSpec,
    OmitFromInput,
    OmitFromOutput,
    OmitFromSchema,
    PrivateStateAttr,
    Unchecked,
    compile_field,
    merge_fields,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

__all__ = [
    "FieldSpec",
    "OmitFromInput",
    "OmitFromOutput",
    "OmitFromSchema",
    "PrivateStateAttr",
    "Schema",
    "Unchecked",
    "is_schema",
    "merge_fields",
    "read_schema",
]

Kind = Literal["typeddict", "dataclass", "pydantic"]


@dataclass(frozen=True, slots=True)
class Schema:
    """A state schema that was read."""

    name: str
    #: The class; for a generic alias such as `State[int]` the class `State`.
    source: type
    kind: Kind
    fields: Mapping[str, FieldSpec]
    #: The fields without which no instance can be built; empty for a TypedDict, whose dict may lack any.
    required: tuple[str, ...]

    def updates_of(self, instance: Any) -> dict[str, Any]:
        """Return what was set in a mapping or an instance of the schema (or of a subclass), and nothing else.

        For a pydantic model that is what was given or assigned, for a dataclass what differs from its default.
        """
        if isinstance(instance, Mapping):
            return dict(instance)
        if self.kind == "pydantic":
            names = (*type(instance).model_fields, *(instance.model_extra or ()))
            return {name: getattr(instance, name) for name in names if name in instance.model_fields_set}
        values = {field.name: getattr(instance, field.name) for field in dataclasses.fields(instance)}
        return {name: value for name, value in values.items() if not is_default(self.fields.get(name), value)}

    def build(self, values: Mapping[str, Any]) -> Any:
        """Return what code written for this schema is given: an instance, or a dict for a TypedDict.

        Args:
            values: The values by field name, among them all of `required`.

        Raises:
            Exception: Whatever the class says about values that it does not accept.
        """
        if self.kind == "typeddict":
            return dict(values)
        if self.kind == "pydantic":
            model: type[BaseModel] = self.source
            return model.model_validate({input_name(model, name): value for name, value in values.items()})
        computed = {field.name for field in dataclasses.fields(self.source) if not field.init}
        instance = self.source(**{name: value for name, value in values.items() if name not in computed})
        for name in computed & values.keys():
            object.__setattr__(instance, name, values[name])  # the class may be frozen
        return instance


def is_schema(annotation: Any) -> bool:
    """Return whether an annotation is a TypedDict, dataclass or pydantic model, or a generic alias of one."""
    return kind_of(get_origin(annotation) or annotation) is not None


def read_schema(annotation: Any) -> Schema:
    """Return the fields that a schema declares; a schema is read once, however many nodes name it.

    Args:
        annotation: A TypedDict, dataclass or pydantic model, or a generic alias of one (`State[int]`).

    Raises:
        SchemaError: It is no schema or has no fields, or a field has a reserved name, an annotation that can't be
            resolved, or markers that can't mean anything; the message names schema and field.
    """
    kind = kind_of(get_origin(annotation) or annotation)
    if kind is None:
        raise SchemaError(f"{annotation!r} is no schema: give a TypedDict, a dataclass or a pydantic model")
    return read_once(annotation, kind)


@lru_cache(maxsize=1024)
def read_once(annotation: Any, kind: Kind) -> Schema:
    """Do what `read_schema` says."""
    source: Any = get_origin(annotation) or annotation
    read: Callable[[Any, tuple[Any, ...]], Iterator[Declared]] = {
        "typeddict": read_typeddict,
        "dataclass": read_dataclass,
        "pydantic": read_pydantic,
    }[kind]
    name = source.__name__
    fields: dict[str, FieldSpec] = {}
    required = []
    for field in read(source, get_args(annotation)):
        if field.name.startswith("__"):
            raise SchemaError(
                f"schema {name}, field {field.name!r}: names that begin with two underscores belong to the engine; "
                "choose another"
            )
        fields[field.name] = compile_field(
            name, field.name, field.annotation, default=field.default, default_factory=field.default_factory
        )
        if field.required:
            required.append(field.name)
    if not fields:
        raise SchemaError(f"schema {name} has no fields: annotate at least one (`count: int`)")
    return Schema(name, source, kind, fields, tuple(required))


@dataclass(frozen=True, slots=True)
class Declared:
    """One field as its class declares it."""

    name: str
    annotation: Any
    default: Any = MISSING
    default_factory: Callable[[], Any] | None = None
    required: bool = False


def kind_of(source: Any) -> Kind | None:
    """Return which kind of schema a class is, or None if it is none."""
    if not isinstance(source, type):
        return None
    if is_typeddict(source):
        return "typeddict"
    # Where pydantic was never imported nothing can be a model, and asking must not cost its import.
    model = getattr(sys.modules.get("pydantic"), "BaseModel", None)
    if model is not None and source is not model and issubclass(source, model):
        return "pydantic"
    return "dataclass" if dataclasses.is_dataclass(source) else None


def read_typeddict(source: type, arguments: tuple[Any, ...]) -> Iterator[Declared]:
    """Yield the fields of a TypedDict."""
    for name, annotation in field_hints(source, arguments).items():
        yield Declared(name, annotation)


def read_dataclass(source: Any, arguments: tuple[Any, ...]) -> Iterator[Declared]:
    """Yield the fields of a dataclass."""
    fields = dataclasses.fields(source)
    hints = field_hints(source, arguments, {field.name for field in fields})
    infos: Mapping[str, FieldInfo] = getattr(source, "__pydantic_fields__", {})  # of pydantic's own dataclasses
    for field in fields:
        if field.name in infos:
            default, factory = info_defaults(infos[field.name])
        else:
            default = MISSING if field.default is dataclasses.MISSING else field.default
            factory = None if field.default_factory is dataclasses.MISSING else field.default_factory
        required = field.init and default is MISSING and factory is None
        yield Declared(field.name, hints[field.name], default, factory, required)


def read_pydantic(source: type[BaseModel], _: tuple[Any, ...]) -> Iterator[Declared]:
    """Yield the fields of a pydantic model; a generic alias of one is a class of its own, without arguments.

    Raises:
        SchemaError: A forward reference can't be resolved, also not now that the model is used.
    """
    if not source.__pydantic_complete__:
        try:
            source.model_rebuild()
        except NameError as error:
            fields = source.model_fields
            name = next((name for name in fields if str(error.name) in str(fields[name].annotation)), "")
            raise unresolvable(source.__name__, name, error) from error
    for name, info in source.model_fields.items():
        annotation = Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation
        default, factory = info_defaults(info)
        yield Declared(name, substitute(annotation, {}), default, factory, info.is_required())


def info_defaults(info: FieldInfo) -> tuple[Any, Callable[[], Any] | None]:
    """Return the default of a pydantic field, or its factory."""
    if info.default_factory is not None:
        if getattr(info, "default_factory_takes_validated_data", False):
            return MISSING, None  # follows from the other fields of an instance: no run can start with it
        return MISSING, cast("Callable[[], Any]", info.default_factory)
    if info.is_required():
        return MISSING, None
    default = info.default
    if type(default) in {list, dict, set} and not default:
        return MISSING, type(default)
    if info.get_default() is default:
        return default, None
    return MISSING, info.get_default  # copies a default that could be changed, as pydantic does for each instance


def is_default(field: FieldSpec | None, value: Any) -> bool:
    """Return whether a dataclass field still has the value it gets when nothing is given for it."""
    default = MISSING if field is None else field.declared_default()
    try:
        return default is value or (type(default) is type(value) and bool(default == value))
    except Exception:  # noqa: BLE001 - arrays and the like compare to no single answer: count it as set
        return False


def input_name(model: type[BaseModel], name: str) -> str:
    """Return the key under which a pydantic model takes a field."""
    alias = model.model_fields[name].validation_alias
    return alias if isinstance(alias, str) else name
