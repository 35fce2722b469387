"""How the state of an agent is put together: fields of its middleware, of its user, and of every agent."""

from __future__ import annotations

import dataclasses
import warnings
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, Optional, get_args, get_origin

from typing_extensions import TypedDict, TypeVar

from pregel.channels.base import MISSING
from pregel.channels.last_value import LastValue
from pregel.errors import PregelWarning, SchemaError
from pregel.graph.agent.state import AgentState
from pregel.graph.annotations import describe, is_typeddict
from pregel.graph.compare import members, mismatch
from pregel.graph.fields import FieldSpec, contradicts, label
from pregel.graph.messages import ForeignMessage
from pregel.graph.schema import OmitFromSchema, Unchecked, read_schema
from pregel.managed import Managed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pregel.graph.schema import Schema

__all__ = ["Declaration", "MergedSchemas", "merge_schemas"]

#: The fields that every agent has.
CORE: Final = read_schema(AgentState).fields


class Declaration(NamedTuple):
    """A schema, and who declares it, for messages: "middleware 'Retry'"."""

    by: str
    schema: Any


class MergedSchemas(NamedTuple):
    """The schemas of an agent, as a `StateGraph` takes them."""

    #: The last declared schema where that is a class with validators and defaults of its own, else the same as `door`.
    state: Any
    #: All fields; what callers may set and get of them is said by their markers.
    door: Any
    #: All fields as a `TypedDict`: what nodes read.
    view: Any
    #: The fields that take several updates in a superstep, each applied to what the others made.
    folding: frozenset[str]


class Declared(NamedTuple):
    """A field, and who declares it."""

    field: FieldSpec
    by: str

    @property
    def where(self) -> str:
        """Whose field it is, for messages."""
        return f"{self.field.declared_by} of {self.by}"


def merge_schemas(
    name: str, declared: Sequence[Declaration], answer: Any = MISSING, *, stacklevel: int = 3
) -> MergedSchemas:
    """Return the schemas of an agent.

    For a field that several declare the later declaration counts. Who sees a field is merged apart: what one of them
    keeps out of input or output stays out. The fields of `AgentState` can be given a narrower type, and nothing else.

    Args:
        name: The agent's name.
        declared: The schemas: those of the middleware in order, then the user's. A `TypedDict`, dataclass or pydantic
            model each, or a generic alias of one, such as `AgentState[Answer]`.
        answer: The type of the structured response, as the agent's `response_format` has it.
        stacklevel: Whose line a warning is for, as `warnings.warn` counts from this function.

    Raises:
        SchemaError: A schema can't be read, or replaces a field of `AgentState`.

    Warns:
        PregelWarning: Two schemas give a field different types or reducers; the later one counts.
    """
    merged = {name: Declared(field, "every agent") for name, field in CORE.items()}
    schemas = [(declaration.by, read_schema(declaration.schema)) for declaration in declared]
    for by, schema in schemas:
        for field in schema.fields.values():
            mine, before = Declared(field, by), merged.get(field.name)
            if field.name in CORE:
                merged[field.name] = narrowed(merged[field.name], mine)
            elif before is None:
                merged[field.name] = mine
            else:
                merged[field.name] = laid_over(before, mine, stacklevel + 1)
    if answer is not MISSING:
        field = replace(CORE["structured_response"], annotation=answer, declared_by="response_format")
        merged["structured_response"] = narrowed(merged["structured_response"], Declared(field, f"agent {name!r}"))
    response = merged["structured_response"]  # there is none until the model gives it, and an old one is taken away
    merged["structured_response"] = Declared(
        replace(response.field, annotation=Optional[response.field.annotation]),  # noqa: UP045 - the type is a value
        response.by,
    )
    fields = [each.field for each in merged.values()]
    view = typed_dict(name, fields)
    defaults = any(field.default is not MISSING or field.default_factory is not None for field in fields)
    door = with_defaults(name, fields) if defaults else view
    folding = frozenset(field.name for field in fields if not isinstance(field.channel, LastValue))
    return MergedSchemas(own_class(schemas) or door, door, view, folding)


def own_class(schemas: Sequence[tuple[str, Schema]]) -> Any:
    """Return the class of the last schema if it does more than to name fields, else None."""
    if not schemas:
        return None
    schema = schemas[-1][1]
    return None if schema.kind == "typeddict" else schema.source


def laid_over(before: Declared, later: Declared, stacklevel: int) -> Declared:
    """Return what two declarations of one field come to."""
    first, second = before.field, later.field
    difference = difference_of(first, second)
    if difference:
        warnings.warn(
            f"field {second.name!r} is declared as {difference[0]} by {before.where} and as {difference[1]} by "
            f"{later.where}; the later one counts. If two fields are meant, give them different names, such as "
            f"{prefixed(later)!r}",
            PregelWarning,
            stacklevel=stacklevel,
        )
    elif second.default is MISSING and second.default_factory is None:
        second = replace(second, default=first.default, default_factory=first.default_factory)
    return Declared(seen_as(second, first), later.by)


def seen_as(field: FieldSpec, other: FieldSpec) -> FieldSpec:
    """Return a field that is seen by nobody who does not see the other one."""
    return replace(
        field,
        omit_input=field.omit_input or other.omit_input,
        omit_output=field.omit_output or other.omit_output,
        unchecked=field.unchecked or other.unchecked,
    )


def prefixed(declared: Declared) -> str:
    """Return an example of a name that no other middleware has."""
    owner = declared.field.declared_by.removesuffix("State").lower() or "own"
    return f"{owner}_{declared.field.name}"


def difference_of(first: FieldSpec, second: FieldSpec) -> tuple[str, str] | None:
    """Return how two declarations of a field differ, as a text for each; None where they mean the same."""
    if not same_type(first.annotation, second.annotation):
        return describe(first.annotation), describe(second.annotation)
    one, other = first.rule, second.rule
    apart = contradicts(first, second) if one and other else first.channel != second.channel
    if apart or first.managed != second.managed:
        return rule_text(first), rule_text(second)
    return None


def same_type(first: Any, second: Any) -> bool:
    """Return whether two annotations mean the same type: `List[int]` and `list[int]` do."""
    return bool(first == second) or (describe(first) == describe(second) and not mismatch(first, second))


def rule_text(field: FieldSpec) -> str:
    """Return how updates of a field are applied, as a text for messages."""
    if field.managed:
        return f"{describe(field.annotation)}, computed,"
    rule = "without a reducer" if field.rule is None else f"with {label(field.rule)}"
    return f"{describe(field.annotation)} {rule}"


def narrowed(before: Declared, later: Declared) -> Declared:
    """Return a field of every agent as a schema declares it again.

    Raises:
        SchemaError: That would replace it.
    """
    core, kept, field = CORE[before.field.name], before.field, later.field
    narrower = narrows(field.annotation, core.annotation)
    same_rule = field.channel == core.channel or (None not in {core.rule, field.rule} and not contradicts(core, field))
    fits = narrower if field.rule is None else same_rule
    if not fits or field.managed or mismatch(field.annotation, kept.annotation):
        raise SchemaError(
            f"{later.where} declares {field.name!r} as {rule_text(field)}, and in {before.where} it is "
            f"{rule_text(kept)}. This field can be given a narrower type and nothing else: leave it out, or extend "
            "AgentState"
        )
    if narrower and not narrows(kept.annotation, field.annotation):
        kept = replace(kept, annotation=field.annotation, declared_by=field.declared_by)
        before = later
    return Declared(seen_as(kept, field), before.by)


def narrows(one: Any, other: Any) -> bool:
    """Return whether every value of a type is certainly one of the other type."""
    return all(any(within(each, part) for part in members(other)) for each in members(one))


def within(one: Any, other: Any) -> bool:
    """Return whether a type that is no union is a part of another one."""
    if other is Any or other is object or isinstance(other, TypeVar):
        return True
    if get_origin(other) is Literal:
        return get_origin(one) is Literal and set(get_args(one)) <= set(get_args(other))
    if get_origin(one) is Literal:
        return all(within(type(value), other) for value in get_args(one))
    kind, wider = (dict if is_typeddict(part) else get_origin(part) or part for part in (one, other))
    if wider is ForeignMessage:
        return kind is ForeignMessage or is_langchain_message(kind)
    if not isinstance(kind, type) or not isinstance(wider, type) or kind is Any or not issubclass(kind, wider):
        return False
    mine, theirs = get_args(one), get_args(other)
    return not theirs or (len(mine) == len(theirs) and all(map(narrows, mine, theirs)))


def is_langchain_message(kind: Any) -> bool:
    """Return whether a class is one of langchain-core's messages, or made from one."""
    return isinstance(kind, type) and any(
        base.__module__.startswith("langchain_core.messages") for base in kind.__mro__
    )


def annotation_of(field: FieldSpec) -> Any:
    """Return an annotation that declares a field as it was merged."""
    metadata: list[Any] = [] if field.rule is None else [field.channel]
    if field.managed is not None:
        metadata.append(Managed(field.managed))
    if field.omit_input or field.omit_output:
        metadata.append(OmitFromSchema(input=field.omit_input, output=field.omit_output))
    if field.unchecked:
        metadata.append(Unchecked)
    return Annotated[(field.annotation, *metadata)] if metadata else field.annotation


def typed_dict(name: str, fields: Sequence[FieldSpec]) -> Any:
    """Return a new `TypedDict` of these fields."""
    make: Any = TypedDict  # type checkers want to see the items
    return make(name, {field.name: annotation_of(field) for field in fields})


def with_defaults(name: str, fields: Sequence[FieldSpec]) -> Any:
    """Return a new dataclass of these fields: only a class can declare defaults."""
    items: list[Any] = []
    for field in fields:
        factory = field.default_factory
        if factory is None and field.default is not MISSING:
            factory = partial(deepcopy, field.default)
        extra = () if factory is None else (dataclasses.field(default_factory=factory),)
        items.append((field.name, annotation_of(field), *extra))
    return dataclasses.make_dataclass(name, items, kw_only=True)
