"""What a `state_schema` declares, and the one place where every value that is written is checked.

A schema is a TypedDict, a dataclass or a pydantic model. Each of its fields is a key of the state with a channel of its
own. Values are converted as pydantic does, and the converted one is stored.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, get_args, get_origin

from pregel.channels.aggregate import BinaryOperatorAggregate
from pregel.channels.base import Overwrite
from pregel.channels.keyed import DELETE, KeyedValue
from pregel.channels.last_value import LastValue
from pregel.channels.topic import Topic
from pregel.codec import encode
from pregel.errors import nearest
from pregel.graph.annotations import field_hints, unwrap
from pregel.graph.checker import Check, field_checker, reducer_update_annotation
from pregel.graph.checker import checker as type_checker
from pregel.graph.schema import Unchecked, read_schema
from pregel.graph.workflow.cells import Cell, Folded
from pregel.graph.workflow.errors import StateSchemaError
from pregel.graph.workflow.scopes import SHARED, Scope, check_key, scope_of
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pregel.channels.base import Channel
    from pregel.graph.schema import FieldSpec, Schema

__all__ = ["channel_of", "check_parameters", "checker", "fields_of", "keys_of"]

#: How keys begin that the store keeps.
KEPT: Final = tuple(f"{scope}:" for scope in SHARED)


class Key(NamedTuple):
    """A key of the state as a schema declares it."""

    #: Its whole name, with the prefix of its scope.
    name: str
    #: The name of the field that declares it.
    declared: str
    spec: FieldSpec
    channel: Channel
    #: Checks and converts what is written; `whole` what replaces a value that is else folded into.
    check: Check
    whole: Check


def read(state_schema: Any) -> Mapping[str, Key]:
    """Return the keys that a schema declares, by their whole names, in order of declaration.

    Raises:
        StateSchemaError: It is none, or a field has a name or a scope that can't be one.
        SchemaError: See `pregel.graph.schema.read_schema`.
    """
    if not isinstance(state_schema, Hashable):
        raise StateSchemaError(
            f"{show(state_schema)} is no state schema: give a TypedDict, a dataclass or a pydantic model, the class"
        )
    return read_once(state_schema)


@lru_cache(maxsize=256)
def read_once(state_schema: Any) -> Mapping[str, Key]:
    """Do what `read` says."""
    schema = read_schema(state_schema)
    scopes = declared_scopes(state_schema, schema)
    keys: dict[str, Key] = {}
    for field, spec in schema.fields.items():
        where = f"state schema {schema.name}"
        scope = scopes.get(field)
        name = check_key(field if scope is None else scope.key(field), where)
        if scope is not None and ":" in field:
            raise StateSchemaError(f"{where}: the field {field!r} has a prefix and a {scope!r}: keep one of them")
        if spec.managed is not None:
            raise StateSchemaError(f"{where}: the field {field!r} is computed by the engine, which a workflow has not")
        if scope_of(name) == "temp" and spec.explicit:
            raise StateSchemaError(
                f"{where}: the key {name!r} has a reducer, and `temp:` keys are plain: they live for one run, in which "
                "each key is written by one node at a time"
            )
        if name in keys:
            raise StateSchemaError(f"{where}: the fields {keys[name].declared!r} and {field!r} are both {name!r}")
        keys[name] = Key(name, field, spec, channel_for(spec), *checks_for(schema, spec))
    return keys


def declared_scopes(state_schema: Any, schema: Schema) -> dict[str, Scope]:
    """Return the scopes that fields are marked with.

    Raises:
        StateSchemaError: A field has two.
    """
    if schema.kind == "pydantic":
        model: Any = schema.source
        metadata = {name: (*info.metadata, *unwrap(info.annotation)[1]) for name, info in model.model_fields.items()}
    else:
        source = get_origin(state_schema) or state_schema
        hints = field_hints(source, get_args(state_schema), set(schema.fields))
        metadata = {name: unwrap(hint)[1] for name, hint in hints.items()}
    found: dict[str, Scope] = {}
    for name, items in metadata.items():
        for item in items:
            if item is Scope:
                raise StateSchemaError(f"state schema {schema.name}, field {name!r}: Scope takes a name, Scope('user')")
            if isinstance(item, Scope) and found.setdefault(name, item) != item:
                raise StateSchemaError(
                    f"state schema {schema.name}, field {name!r}: {found[name]!r} and {item!r}: keep one of them"
                )
    return {name: scope for name, scope in found.items() if scope.name != "session"}


def channel_for(spec: FieldSpec) -> Channel:
    """Return the channel of a key."""
    channel = spec.channel
    if type(channel) is BinaryOperatorAggregate:
        return Folded(channel.operator, initial=channel.initial_value, initial_factory=channel.initial_factory)
    return channel if spec.explicit and type(channel) is not LastValue else Cell(spec.initial)


def checks_for(schema: Schema, spec: FieldSpec) -> tuple[Check, Check]:
    """Return what checks and converts the updates of a key, and what does so with a whole value."""
    anything = type_checker(Any)
    if spec.unchecked:
        return anything, anything
    channel = spec.channel
    if schema.kind == "pydantic":
        whole = field_checker(schema.source, spec.name)
    else:
        whole = type_checker(spec.annotation, coerce=True)
    if isinstance(channel, BinaryOperatorAggregate):
        update = reducer_update_annotation(channel.operator, spec.annotation)
        return whole if update is spec.annotation else type_checker(update, coerce=True), whole
    if isinstance(channel, Topic):
        return anything, whole
    return (anything, anything) if isinstance(channel, KeyedValue) else (whole, whole)


def fields_of(state_schema: Any) -> dict[str, Any]:
    """Return the fields that a workflow's graph has for the keys of a schema: annotations by whole name.

    Keys of the scope `temp:` are not among them: see `pregel.graph.workflow.scopes.TEMP_FIELDS`. The graph does not
    check what is written to them again: `checker` has done so.

    Raises:
        StateSchemaError: A field has a name or a scope that can't be one.
        SchemaError: See `pregel.graph.schema.read_schema`.
    """
    return {
        name: Annotated[key.spec.annotation, key.channel, Unchecked]
        for name, key in read(state_schema).items()
        if scope_of(name) != "temp"
    }


def keys_of(state_schema: Any) -> dict[str, str]:
    """Return the whole names of keys that are declared by another one: `{"visits": "user:visits"}`; {} for None."""
    if state_schema is None:
        return {}
    return {key.declared: name for name, key in read(state_schema).items() if key.declared != name}


def channel_of(state_schema: Any, name: str) -> Channel | None:
    """Return the channel of a declared key, by its whole name; None where nothing is declared about it."""
    key = None if state_schema is None else read(state_schema).get(name)
    return None if key is None else key.channel


def checker(state_schema: Any, where: str) -> Callable[[str, Any], Any]:
    """Return the check that every write to the state passes: of nodes, of events, of the input.

    Args:
        state_schema: The schema; None where there is none, so that only prefixes are looked at.
        where: Who writes, for messages: "node 'f' of workflow 'w'".

    Returns:
        A function of whole name and value, which returns the value to store. It raises `StateSchemaError` for a key
        that is not declared and for a value of the wrong type.
    """
    if state_schema is None:
        return partial(check_undeclared, where)
    return partial(check_declared, read_schema(state_schema).name, read(state_schema), where)


def check_undeclared(where: str, key: str, value: Any) -> Any:
    """Return a value whose key may be one."""
    if type(key) is not str or ":" in key or key[:1] in {"", "@", "_"}:
        check_key(key, where)
        check_kept(where, key, value)
    return value


def check_declared(schema: str, keys: Mapping[str, Key], where: str, key: str, value: Any) -> Any:
    """Return a value as it is to be stored."""
    found = keys.get(key)
    if found is None:
        raise undeclared(schema, keys, where, key)
    if value is DELETE:
        if isinstance(found.channel, LastValue) and not isinstance(found.channel, Cell):
            raise StateSchemaError(f"{where}: the key {key!r} can't be deleted, as {found.channel!r} holds it")
        return value
    if type(value) is Overwrite:
        value = Overwrite(converted(found, found.whole, value.value, schema, where))
    elif type(value) is not found.check.exact:
        value = converted(found, found.check, value, schema, where)
    if ":" in key:
        check_kept(where, key, value)
    return value


def check_kept(where: str, key: str, value: Any) -> None:
    """Check that the value of a key that sessions share can be kept in the store: found at the write, not at the end.

    Raises:
        EncodeError: It can't; names the path to what can't.
    """
    if key.startswith(KEPT) and value is not DELETE:
        encode({"value": value.value if type(value) is Overwrite else value}, f"{where}: the key {key!r}")


def converted(key: Key, check: Check, value: Any, schema: str, where: str) -> Any:
    """Return a value as the schema converts it.

    Raises:
        StateSchemaError: It does not fit.
    """
    try:
        return check(value)
    except TypeError as error:
        raise StateSchemaError(
            f"{where}: the key {key.name!r} of state schema {schema} takes {check.expected} and was given "
            f"{show(value)}: {error}"
        ) from error


def undeclared(schema: str, keys: Mapping[str, Key], where: str, key: str) -> StateSchemaError:
    """Return the error for a key that a schema does not declare."""
    check_key(key, where)
    names = dict.fromkeys([*keys, *(each.declared for each in keys.values())])
    return StateSchemaError(
        f"{where}: the key {key!r} is not declared by state schema {schema}.{nearest(key, names)} "
        f"Declared: {', '.join(keys)}"
    )


def check_parameters(state_schema: Any, node: str, parameters: Iterable[str]) -> None:
    """Check at build time that what a node's parameters take from the state is declared.

    Args:
        state_schema: The schema; None declares nothing, and allows everything.
        node: How messages name the node: "node 'f' of workflow 'w'".
        parameters: The names of those that are bound to keys and have no default.

    Raises:
        StateSchemaError: One is not declared; names the nearest key.
    """
    if state_schema is None:
        return
    keys = read(state_schema)
    known = dict.fromkeys([*keys, *(key.declared for key in keys.values())])
    for parameter in parameters:
        if parameter not in known:
            raise StateSchemaError(
                f"{node} has the parameter {parameter!r}, which state schema {read_schema(state_schema).name} does not "
                f"declare.{nearest(parameter, known)} Declared: {', '.join(keys)}. Give it a default, or take the "
                "value from the node's input (node_input)"
            )
