"""What a field's annotation means: its type, its channel and who sees it."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NewType, get_args, get_origin

from pregel.channels.aggregate import BinaryOperatorAggregate, has_neutral_start
from pregel.channels.base import MISSING, Channel
from pregel.channels.last_value import LastValue
from pregel.channels.topic import Topic
from pregel.errors import SchemaError
from pregel.graph.annotations import unwrap
from pregel.graph.initial import empty_factory
from pregel.managed import Managed, ManagedName

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pregel.graph.schema import Schema

__all__ = [
    "FieldSpec",
    "OmitFromInput",
    "OmitFromOutput",
    "OmitFromSchema",
    "PrivateStateAttr",
    "Unchecked",
    "compile_field",
    "merge_fields",
]

#: Channels and managed values of LangGraph: as metadata nobody knows they would be ignored without a word.
FOREIGN = ("langgraph.channels", "langgraph.managed")


@dataclass(frozen=True)
class OmitFromSchema:
    """Keeps a field out of the graph's door: `Annotated[int, OmitFromSchema(input=False)]`; nodes see it all the same.

    Args:
        input: Whether callers can't set the field.
        output: Whether the field is left out of results, streams and JSON schemas.
    """

    input: bool = True
    output: bool = True


#: A field that only nodes set; given as input it is ignored, so that a result can be fed back in.
OmitFromInput = OmitFromSchema(input=True, output=False)
#: A field that callers may set and never get back.
OmitFromOutput = OmitFromSchema(input=False, output=True)
#: A field among nodes alone; giving it as input is an error.
PrivateStateAttr = OmitFromSchema(input=True, output=True)


class Unchecked:
    """Opts a field out of the type check of updates: `Annotated[Frame, Unchecked]`."""


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field of a state schema, or of several that declare it (see `merge_fields`)."""

    name: str
    #: The type without qualifiers, and without metadata but what tells pydantic how to validate.
    annotation: Any
    channel: Channel
    #: The name of the schema whose annotation this is.
    declared_by: str
    #: The channel as the marker alone gives it, without what type and defaults add; None for a field without marker.
    rule: Channel | None = None
    #: The default that a dataclass or pydantic model declares; at most one of the two is given.
    default: Any = MISSING
    default_factory: Callable[[], Any] | None = None
    omit_input: bool = False
    omit_output: bool = False
    unchecked: bool = False
    #: What the engine computes for whoever reads the field, which is then no state.
    managed: ManagedName | None = None

    @property
    def explicit(self) -> bool:
        """Whether a marker says which channel this is."""
        return self.rule is not None

    def declared_default(self) -> Any:
        """Return the default that the schema's class declares, made anew if it has a factory, or `MISSING`."""
        return deepcopy(self.default) if self.default_factory is None else self.default_factory()

    def initial(self) -> Any:
        """Return the value that a run starts with, or `MISSING` for a field that is absent until it is written."""
        start = self.channel.initial()
        # A reducer's channel knows of the default. One that forgets would drop it a step later: it starts empty.
        if type(self.channel) is BinaryOperatorAggregate or self.channel.resets:
            return start
        declared = self.declared_default()
        return start if declared is MISSING else declared


def compile_field(
    schema: str,
    name: str,
    annotation: Any,
    *,
    default: Any = MISSING,
    default_factory: Callable[[], Any] | None = None,
) -> FieldSpec:
    """Return the field that an annotation declares.

    Args:
        schema: The schema's name.
        name: The field's name.
        annotation: The resolved annotation with all its metadata.
        default: The default that the class declares.
        default_factory: What makes the default that the class declares.

    Raises:
        SchemaError: The metadata holds two candidates for the channel, or one that can't be it.
    """
    where = f"schema {schema}, field {name!r}"
    bare, metadata = unwrap(annotation, keep_hooks=True)
    omissions = [item() if item is OmitFromSchema else item for item in metadata if stands_for(item, OmitFromSchema)]
    marker = marker_of(metadata, where)
    rule = rule_of(marker, where)
    spec = FieldSpec(
        name=name,
        annotation=bare,
        channel=rule or LastValue(),
        declared_by=schema,
        rule=rule,
        default=default,
        default_factory=default_factory,
        omit_input=any(omission.input for omission in omissions),
        omit_output=any(omission.output for omission in omissions),
        unchecked=any(stands_for(item, Unchecked) for item in metadata),
        managed=next((item.name for item in metadata if isinstance(item, Managed)), None),
    )
    if marker is Topic:
        return replace(spec, channel=Topic(item_type(bare)))
    if type(rule) is BinaryOperatorAggregate:
        start, declared = rule.initial(), spec.declared_default()
        if start is not MISSING and declared is not MISSING and start != declared:
            raise SchemaError(
                f"{where}: the channel starts with {start!r} and the declared default is {declared!r}: give one of them"
            )
        return replace(spec, channel=started(rule, bare, spec))
    return spec


def merge_fields(schemas: Sequence[Schema]) -> dict[str, FieldSpec]:
    """Return the fields of several schemas of one graph together, in order of first declaration.

    A field's type is its first declarer's, its channel that of the first marker, its default the first that is
    declared; what one schema omits or leaves unchecked is so for all.

    Raises:
        SchemaError: Two schemas give one field different channels; the message names field and schemas.
    """
    merged: dict[str, FieldSpec] = {}
    marked: dict[str, FieldSpec] = {}
    for schema in schemas:
        for name, field in schema.fields.items():
            merged[name] = joined(merged[name], field) if name in merged else field
            if field.explicit and contradicts(marked.setdefault(name, field), field):
                first = marked[name]
                raise SchemaError(
                    f"field {name!r} is declared as {label(first.rule)} by schema {first.declared_by} and as "
                    f"{label(field.rule)} by schema {field.declared_by}: declare it once, and in the other schema by "
                    "its type alone"
                )
    for name, field in marked.items():
        spec, rule = merged[name], field.rule
        # The default may come from another schema than the reducer.
        channel = started(rule, field.annotation, spec) if type(rule) is BinaryOperatorAggregate else field.channel
        merged[name] = replace(spec, rule=rule, channel=channel)
    return merged


def joined(first: FieldSpec, second: FieldSpec) -> FieldSpec:
    """Return what two declarations of one field say together, their channels aside."""
    if first.default is MISSING and first.default_factory is None:
        first = replace(first, default=second.default, default_factory=second.default_factory)
    return replace(
        first,
        omit_input=first.omit_input or second.omit_input,
        omit_output=first.omit_output or second.omit_output,
        unchecked=first.unchecked or second.unchecked,
    )


def contradicts(first: FieldSpec, second: FieldSpec) -> bool:
    """Return whether two declarations with markers can't both be meant."""
    one, other = first.rule, second.rule
    if one == other or first.channel == second.channel:
        return False
    if type(one) is type(other) is BinaryOperatorAggregate and one.operator == other.operator:
        return has_start(one) and has_start(other)  # the same reducer; only one of them says where it starts
    return True


def marker_of(metadata: Collection[Any], where: str) -> Any:
    """Return the one channel, channel class or reducer among a field's metadata, or None.

    Raises:
        SchemaError: There are two different ones, or a function that takes no two arguments.
    """
    found: list[Any] = []
    for item in metadata:
        kind = item if isinstance(item, type) else type(item)
        if kind.__module__.startswith(FOREIGN):
            raise SchemaError(
                f"{where}: {label(item)} belongs to LangGraph and would do nothing here; use the channel of that name "
                "from pregel.channels"
            )
        is_channel = isinstance(item, Channel) or (isinstance(item, type) and issubclass(item, Channel))
        if (is_channel or is_reducer(item, where)) and item not in found:
            found.append(item)
    if len(found) > 1:
        raise SchemaError(
            f"{where}: {label(found[0])} and {label(found[1])} both say how updates are applied; keep one of them"
        )
    return found[0] if found else None


def is_reducer(item: Any, where: str) -> bool:
    """Return whether a piece of metadata is a function of two arguments; what stands for a type is a mere tag.

    Raises:
        SchemaError: It is a function that can't be called with two.
    """
    if not callable(item) or isinstance(item, (type, NewType)) or get_origin(item) is not None:
        return False
    if inspect.iscoroutinefunction(item) or inspect.isgeneratorfunction(item):
        raise SchemaError(f"{where}: {label(item)} is async or a generator, and a reducer returns the new value itself")
    try:
        signature = inspect.signature(item)
    except (TypeError, ValueError):  # builtins such as max have none that can be read
        return True
    try:
        signature.bind(None, None)
    except TypeError as error:
        raise SchemaError(
            f"{where}: a reducer is called with the value and one update, and {label(item)}{signature} can't be "
            f"({error}); metadata that is no reducer must not be callable"
        ) from error
    return True


def rule_of(marker: Any, where: str) -> Channel | None:
    """Return the channel that a marker alone describes.

    Raises:
        SchemaError: It is a class that can't be instantiated without arguments.
    """
    if marker is None or isinstance(marker, Channel):
        return marker
    if not isinstance(marker, type):
        return BinaryOperatorAggregate(marker)
    try:
        channel: Channel = marker()
    except TypeError as error:
        raise SchemaError(
            f"{where}: the channel {marker.__name__} needs arguments: annotate an instance, "
            f"{marker.__name__}(...), in place of the class ({error})"
        ) from error
    return channel


def started(rule: BinaryOperatorAggregate, annotation: Any, spec: FieldSpec) -> BinaryOperatorAggregate:
    """Return a reducer's channel with what a run starts with: said by itself, declared as default, or empty."""
    if has_start(rule):
        return rule
    if spec.default_factory is not None:
        return BinaryOperatorAggregate(rule.operator, initial_factory=spec.default_factory)
    if spec.default is not MISSING:
        return BinaryOperatorAggregate(rule.operator, initial=spec.default)
    factory = empty_factory(annotation) if has_neutral_start(rule.operator) else None
    return BinaryOperatorAggregate(rule.operator, initial_factory=factory)


def has_start(rule: BinaryOperatorAggregate) -> bool:
    """Return whether a reducer's channel says itself what a run starts with."""
    return rule.initial_value is not MISSING or rule.initial_factory is not None


def item_type(annotation: Any) -> Any:
    """Return the type of a topic's values: what a collection holds, anything for a bare one, else the type itself."""
    bare, _ = unwrap(annotation)
    kind = get_origin(bare) or bare
    if not isinstance(kind, type) or not issubclass(kind, Collection) or issubclass(kind, (str, bytes, Mapping)):
        return annotation
    return (get_args(bare) or (Any,))[0]


def stands_for(item: Any, marker: type) -> bool:
    """Return whether a piece of metadata is the marker class, or an instance of it."""
    return item is marker or isinstance(item, marker)


def label(marker: Any) -> str:
    """Return a channel or reducer as a text for messages; a function with where it stands, for lambdas look alike."""
    if isinstance(marker, BinaryOperatorAggregate) and not has_start(marker):
        marker = marker.operator
    code = getattr(marker, "__code__", None)
    name: str = getattr(marker, "__qualname__", None) or repr(marker)
    return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"
