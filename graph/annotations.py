"""What a type annotation says once everything around the type itself is taken off."""

from __future__ import annotations

import collections
import collections.abc
import inspect
import types
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ForwardRef,
    Literal,
    NotRequired,
    ParamSpec,
    Required,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from typing_extensions import ReadOnly, TypeAliasType, get_type_hints, is_typeddict

from pregel.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = [
    "ITEMS",
    "MAPPINGS",
    "QUALIFIERS",
    "TOWER",
    "UNIONS",
    "alias_value",
    "describe",
    "field_hints",
    "is_alias",
    "is_hook",
    "is_optional",
    "is_typeddict",
    "required_keys",
    "substitute",
    "unresolvable",
    "unwrap",
]

#: The origins of `Union[X, Y]` and of `X | Y`.
UNIONS = (Union, types.UnionType)
#: What stands in annotations under a name of its own.
NAMES = {None: "None", types.NoneType: "None", ...: "..."}
#: Containers whose one type argument is the type of their items, and that can be walked any number of times.
ITEMS = frozenset(
    {
        *(list, set, frozenset, collections.deque, collections.abc.Sequence, collections.abc.MutableSequence),
        *(collections.abc.Set, collections.abc.MutableSet, collections.abc.Collection),
    }
)
#: Mappings whose type arguments are the types of their keys and values.
MAPPINGS = frozenset(
    {
        *(dict, collections.defaultdict, collections.OrderedDict, collections.Counter),
        *(collections.abc.Mapping, collections.abc.MutableMapping),
    }
)
#: What counts as a number of another kind (PEP 484).
TOWER: dict[Any, tuple[type, ...]] = {
    int: (int, bool),
    float: (float, int, bool),
    complex: (complex, float, int, bool),
}
QUALIFIERS = (Required, NotRequired, ReadOnly)


def unwrap(annotation: Any, *, keep_hooks: bool = False) -> tuple[Any, tuple[Any, ...]]:
    """Return the bare type and all metadata around it, outermost last.

    `Annotated`, `Required`, `NotRequired`, `ReadOnly` and type aliases are looked through in any order, and so are
    the members of unions: `Optional[Annotated[list, add]]` is `Optional[list]` with `add`. Type arguments, as in
    `list[Annotated[int, ...]]`, speak of the items and are left alone.

    Args:
        annotation: The annotation.
        keep_hooks: Leave what tells pydantic how to validate around the type: it is a part of what the type means.
    """
    origin = get_origin(annotation)
    if origin is Annotated:
        bare, inner = unwrap(annotation.__origin__, keep_hooks=keep_hooks)
        kept = tuple(filter(is_hook, annotation.__metadata__)) if keep_hooks else ()
        return Annotated[(bare, *kept)] if kept else bare, (*inner, *annotation.__metadata__)
    if origin in QUALIFIERS:
        return unwrap(get_args(annotation)[0], keep_hooks=keep_hooks)
    if is_alias(annotation):
        return unwrap(alias_value(annotation), keep_hooks=keep_hooks)
    if origin in UNIONS:
        members = [unwrap(member, keep_hooks=keep_hooks) for member in get_args(annotation)]
        metadata = tuple(item for _, inner in members for item in inner)
        return (Union[tuple(bare for bare, _ in members)] if metadata else annotation), metadata  # noqa: UP007
    return annotation, ()


def is_hook(item: Any) -> bool:
    """Return whether a piece of metadata tells pydantic how to validate."""
    return hasattr(item, "__get_pydantic_core_schema__") and not isinstance(item, type)


def is_alias(annotation: Any) -> bool:
    """Return whether an annotation is a `type` alias, or a generic one with arguments."""
    return isinstance(get_origin(annotation) or annotation, TypeAliasType)


def alias_value(annotation: Any) -> Any:
    """Return what a `type` alias stands for."""
    alias = get_origin(annotation) or annotation
    return substitute(alias.__value__, dict(zip(alias.__type_params__, get_args(annotation), strict=False)))


def substitute(annotation: Any, bindings: Mapping[Any, Any]) -> Any:
    """Return the annotation with its type variables replaced; one that is not bound stands for anything."""
    if isinstance(annotation, TypeVar):
        return bindings.get(annotation, Any)
    parameters = () if isinstance(annotation, type) else getattr(annotation, "__parameters__", ())
    if not parameters:
        return annotation
    return annotation[tuple(bindings.get(each, ... if isinstance(each, ParamSpec) else Any) for each in parameters)]


def field_hints(schema: type, arguments: tuple[Any, ...] = (), names: Collection[str] | None = None) -> dict[str, Any]:
    """Return the resolved annotations of a TypedDict or dataclass, inherited ones included, in order of declaration.

    Args:
        schema: The class.
        arguments: The type arguments of the class, as in `State[int]`.
        names: The annotations of interest; None for all.

    Raises:
        SchemaError: An annotation names something that can't be found, or is no type.
    """
    raw_hints: dict[str, Any] = {}
    hints: dict[str, Any] = {}
    for owner, bindings in owners(schema, arguments):
        for name, raw in inspect.get_annotations(owner).items():
            # A TypedDict lists what it inherits among its own annotations.
            inherited = is_typeddict(owner) and name in hints and raw_hints[name] == raw
            if not inherited and (names is None or name in names):
                raw_hints[name] = raw
                hints[name] = substitute(resolved(schema, owner, name, raw), bindings)
    return hints


def required_keys(schema: Any, hints: Mapping[str, Any]) -> frozenset[str]:
    """Return the keys that a TypedDict must have, given its resolved annotations.

    Its own record of them does not see a `NotRequired` under `from __future__ import annotations`.
    """
    return frozenset(name for name in schema.__required_keys__ if not is_optional(hints[name]))


def is_optional(hint: Any) -> bool:
    """Return whether an item of a TypedDict is declared as `NotRequired`."""
    origin = get_origin(hint)
    return origin is NotRequired or (origin in {Annotated, ReadOnly} and is_optional(get_args(hint)[0]))


def owners(schema: type, arguments: tuple[Any, ...]) -> list[tuple[type, dict[Any, Any]]]:
    """Return the classes that declare a schema's fields, bases first, each with what its type variables stand for."""
    found: dict[type, dict[Any, Any]] = {}
    bind(schema, arguments, found)
    if is_typeddict(schema):  # has no bases at run time but those that __orig_bases__ remembers; later ones win
        return list(found.items())
    return [(owner, found.get(owner, {})) for owner in reversed(schema.__mro__)]


def bind(owner: type, arguments: tuple[Any, ...], found: dict[type, dict[Any, Any]]) -> None:
    """Add `owner` and its bases to `found`, with what their type variables stand for."""
    bindings = dict(zip(getattr(owner, "__parameters__", ()), arguments, strict=False))
    for base in vars(owner).get("__orig_bases__", owner.__bases__):
        origin = get_origin(base) or base
        if isinstance(origin, type) and origin not in found:
            bind(origin, tuple(substitute(argument, bindings) for argument in get_args(base)), found)
    found[owner] = bindings


def resolved(schema: type, owner: type, name: str, raw: Any) -> Any:
    """Return one annotation with its forward references replaced by what they name.

    Raises:
        SchemaError: That fails.
    """
    module = owner.__module__
    if isinstance(raw, ForwardRef):
        module = raw.__forward_module__ or module
        raw = raw.__forward_arg__
    # A class of its own, so that one field is read at a time and an error can name it.
    namespace = {"__annotations__": {name: raw}, "__module__": module, owner.__name__: owner}
    try:
        return get_type_hints(type(owner.__name__, (), namespace), include_extras=True)[name]
    except NameError as error:
        raise unresolvable(schema.__name__, name, error) from error
    except Exception as error:
        raise SchemaError(
            f"schema {schema.__name__}, field {name!r}: the annotation {raw!r} is no type: {error}"
        ) from error


def unresolvable(schema: str, field: str, error: NameError) -> SchemaError:
    """Return the error for an annotation with a name that can't be found, and the remedy."""
    where = f"schema {schema}, field {field!r}" if field else f"schema {schema}"
    return SchemaError(
        f"{where}: the annotation names {error.name or str(error)!r}, which can't be found. Define or import it at "
        "module level, neither inside a function nor under `if TYPE_CHECKING:`"
    )


def describe(annotation: Any) -> str:
    """Return an annotation as a short text for messages: `list[int] | None`."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated or origin in QUALIFIERS:
        return describe(arguments[0])
    if isinstance(annotation, list):  # the parameters of a Callable
        return f"[{', '.join(map(describe, annotation))}]"
    if origin in UNIONS:
        return " | ".join(map(describe, arguments))
    if arguments:
        show = repr if origin is Literal else describe
        return f"{describe(origin)}[{', '.join(map(show, arguments))}]"
    if annotation in NAMES:
        return NAMES[annotation]
    name: str = getattr(annotation, "__name__", None) or repr(annotation)
    return name
