"""The forms of classes that explain themselves: dataclasses, pydantic models, Enums and NamedTuples.

A value is rebuilt as it was, by setting its declared fields: no `__init__`, `__post_init__` or validator runs.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, Flag
from functools import cached_property
from operator import attrgetter
from typing import Any, Final

from pregel.codec.wire import FIELD, NAMED, Entry, Form, UnstorableError

__all__ = ["is_model", "model_entry", "understood"]

#: What CPython sets in classes that Python code made (`Py_TPFLAGS_HEAPTYPE`); others hold values that are no fields.
MADE_IN_PYTHON: Final = 1 << 9

#: From a field's name to a function that returns its default.
Defaults = Mapping[str, Callable[[], Any]]


def understood(cls: type, tag: str) -> Entry | None:
    """Return how a class is stored that needs no functions for it, or None for one that does."""
    if issubclass(cls, Enum):
        return Entry(cls, tag, enum_form(tag), enum_builder(cls))
    if is_model(cls):
        return model_entry(cls, tag)
    if issubclass(cls, tuple):
        return namedtuple_entry(cls, tag) if hasattr(cls, "_fields") and hasattr(cls, "_field_defaults") else None
    if dataclasses.is_dataclass(cls) and plain(cls):
        return dataclass_entry(cls, tag)
    return None


def is_model(cls: type) -> bool:
    """Return whether a class is a pydantic model; where pydantic is not loaded there is none."""
    pydantic = sys.modules.get("pydantic.main")
    # While another thread is loading it, it lacks its names.
    return pydantic is not None and "BaseModel" in vars(pydantic) and issubclass(cls, pydantic.BaseModel)


def plain(cls: type) -> bool:
    """Return whether instances hold nothing but attributes: none is a list, a text or an exception as well."""
    return all(base is object or base.__flags__ & MADE_IN_PYTHON for base in cls.__mro__)


# -- what records share ----------------------------------------------------------------------------------------------


def reader(names: tuple[str, ...]) -> Callable[[Any], dict[str, Any]]:
    """Return a function from an instance to the values of these attributes, by name."""
    if not names:
        return lambda _: {}
    get = attrgetter(*names)
    if len(names) == 1:
        return lambda value: {names[0]: get(value)}
    return lambda value: dict(zip(names, get(value), strict=True))


def caches(cls: type) -> set[str]:
    """Return the names under which a class keeps what it can compute again."""
    return {name for base in cls.__mro__ for name, held in vars(base).items() if isinstance(held, cached_property)}


def undeclared(cls: type, names: set[str]) -> UnstorableError:
    """Return the error for attributes that no field declares."""
    return UnstorableError(
        f"it has the attributes {sorted(names)}, which {cls.__name__} does not declare as fields: declare them, or "
        "register the class with functions of its own"
    )


def completed(cls: type, stored: Any, names: Sequence[str], defaults: Defaults) -> dict[str, Any]:
    """Return the fields of a stored record, each with its value or, where the class has got it since, its default.

    Raises:
        ValueError: A field has no value, or a value no field.
    """
    if type(stored) is not dict:
        raise TypeError(f"a record expected, not {type(stored).__name__}")
    if [*stored] == [*names]:
        return stored
    if gone := [name for name in stored if name not in names]:
        raise ValueError(f"{cls.__name__} has no field {gone[0]!r} any more")
    fields = {}
    for name in names:
        if name in stored:
            fields[name] = stored[name]
        elif name in defaults:
            fields[name] = defaults[name]()
        else:
            raise ValueError(f"the field {name!r} of {cls.__name__} has no value, and no default")
    return fields


# -- the kinds -------------------------------------------------------------------------------------------------------


def dataclass_entry(cls: Any, tag: str) -> Entry:
    """Return how a dataclass is stored: by the names and values of its fields."""
    fields = dataclasses.fields(cls)
    names = tuple(field.name for field in fields)
    read = reader(names)
    open_ended = bool(cls.__dictoffset__)
    allowed = frozenset({*names, *caches(cls)})
    defaults = {
        field.name: field.default_factory
        if field.default_factory is not dataclasses.MISSING
        else lambda default=field.default: default
        for field in fields
        if field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
    }

    def form(value: Any) -> Form:
        try:
            record = read(value)
        except AttributeError as error:
            raise UnstorableError(f"a field has no value: {error}") from None
        if open_ended and not vars(value).keys() <= allowed:
            raise undeclared(cls, vars(value).keys() - allowed)
        return [NAMED, tag, record]

    def build(form: Form) -> Any:
        _, _, stored = form
        value = object.__new__(cls)
        for name, held in completed(cls, stored, names, defaults).items():
            object.__setattr__(value, name, held)
        return value

    return Entry(cls, tag, form, build, FIELD)


def namedtuple_entry(cls: Any, tag: str) -> Entry:
    """Return how a NamedTuple is stored: by the names and values of its fields."""
    names: tuple[str, ...] = cls._fields
    defaults = {name: lambda default=default: default for name, default in cls._field_defaults.items()}
    open_ended = bool(cls.__dictoffset__)

    def form(value: Any) -> Form:
        if open_ended and vars(value):
            raise undeclared(cls, set(vars(value)))
        return [NAMED, tag, dict(zip(names, value, strict=True))]

    def build(form: Form) -> Any:
        _, _, stored = form
        return tuple.__new__(cls, completed(cls, stored, names, defaults).values())

    return Entry(cls, tag, form, build, FIELD)


def enum_form(tag: str) -> Callable[[Any], Form]:
    """Return the function from a member to its form: its name, or the value of a combination of flags."""

    def form(member: Any) -> Form:
        cls = type(member)
        if cls.__members__.get(member._name_) is member:
            return [NAMED, tag, member._name_]
        if isinstance(member, Flag):
            return [NAMED, tag, member._value_]
        raise UnstorableError(f"{cls.__name__} has no member of that name")

    return form


def enum_builder(cls: type[Enum]) -> Callable[[Form], Any]:
    """Return the function from a form to the member."""

    def build(form: Form) -> Any:
        _, _, key = form
        if type(key) is str:
            if key not in cls.__members__:
                raise ValueError(f"{cls.__name__} has no member {key!r} any more")
            return cls.__members__[key]
        if type(key) is not int or not issubclass(cls, Flag):
            raise TypeError(f"the name of a member of {cls.__name__} expected, not {type(key).__name__}")
        member = cls(key)
        if type(member) is not cls or member._value_ != key:
            raise ValueError(f"{cls.__name__} has no combination {key} any more")
        return member

    return build


def model_entry(cls: Any, tag: str) -> Entry:
    """Return how a pydantic model is stored: its fields, which of them were set, and what more it holds."""
    fields = cls.model_fields
    names = [*fields]
    private = cls.__private_attributes__
    ignored = frozenset(caches(cls))
    allows_extra = cls.model_config.get("extra") == "allow"
    defaults = {
        name: lambda field=field: field.get_default(call_default_factory=True)
        for name, field in fields.items()
        if not field.is_required()
    }

    def form(value: Any) -> Form:
        held = value.__dict__
        given = value.__pydantic_fields_set__
        if [*held] != names:
            if missing := [name for name in names if name not in held]:
                raise UnstorableError(f"the field {missing[0]!r} has no value")
            if more := held.keys() - fields.keys() - ignored:
                raise undeclared(cls, more)
            held = {name: held[name] for name in names}
        parts = [NAMED, tag, held, [*filter(given.__contains__, names)]]
        if len(parts[3]) != len(given):
            parts[3] += sorted(given - fields.keys())
        extra, hidden = value.__pydantic_extra__, value.__pydantic_private__
        if extra or hidden or (extra is None) is allows_extra:
            parts += (extra, hidden)
        return parts

    def build(form: Form) -> Any:
        _, _, stored, given, *rest = form
        extra, hidden = rest or ({} if allows_extra else None, None)
        if extra and not allows_extra:
            raise ValueError(f"{cls.__name__} has no field {next(iter(extra))!r} any more")
        if hidden and (gone := [name for name in hidden if name not in private]):
            raise ValueError(f"{cls.__name__} has no private attribute {gone[0]!r} any more")
        held = completed(cls, stored, names, defaults)
        if not (given := set(given)) <= fields.keys() and not given <= {*names, *(extra or ())}:
            raise ValueError(f"fields of {cls.__name__} were set that it does not have")
        value = cls.__new__(cls)
        object.__setattr__(value, "__dict__", held)
        object.__setattr__(value, "__pydantic_fields_set__", given)
        object.__setattr__(value, "__pydantic_extra__", extra)
        object.__setattr__(value, "__pydantic_private__", with_defaults(private, hidden))
        return value

    return Entry(cls, tag, form, build, FIELD)


def with_defaults(private: Mapping[str, Any], hidden: Any) -> dict[str, Any] | None:
    """Return the private attributes of a model: those that are stored, and the defaults of those it has got since."""
    if not private:
        return None
    held = {} if hidden is None else dict(hidden)
    for name, attribute in private.items():
        if name not in held and (attribute.default_factory is not None or not is_undefined(attribute.default)):
            held[name] = attribute.get_default()
    return held


def is_undefined(default: Any) -> bool:
    """Return whether pydantic means "no default" by this."""
    return type(default).__name__ == "PydanticUndefinedType"
