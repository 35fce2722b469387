"""From what a node is given to the arguments of its function: read once, when the workflow is compiled."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Union, get_args, get_origin

from pregel.callables import annotations_of
from pregel.channels.base import MISSING
from pregel.errors import nearest
from pregel.graph.annotations import describe
from pregel.graph.checker import checker
from pregel.graph.workflow.context import Context
from pregel.graph.workflow.errors import WorkflowConfigurationError, WorkflowDataError
from pregel.graph.workflow.event import NO_OUTPUT
from pregel.graph.workflow.scopes import check_key
from pregel.runtime import Runtime, get_runtime
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BINDINGS", "Binder", "FromState", "ParameterBinding", "bind"]

#: Where the parameters of a function come from, beside `ctx` and `node_input`.
ParameterBinding = Literal["state", "node_input"]
BINDINGS: Final = get_args(ParameterBinding)
INPUT: Final = "node_input"
CONTEXT: Final = "ctx"


@dataclass(frozen=True, slots=True)
class FromState:
    """Says which key of the state a parameter takes: `visits: Annotated[int, FromState("user:visits")]`.

    Args:
        key: The key, by its whole name.
    """

    key: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that takes a value."""

    name: str
    #: The key of the state, or of the node's input, that it takes.
    key: str
    default: Any
    positional: bool
    #: Returns the value as the parameter is annotated; None where it takes any.
    convert: Callable[[Any], Any] | None
    #: A value of exactly this type needs no look.
    exact: type | None


@dataclass(frozen=True, slots=True)
class Binder:
    """Makes the arguments of one function.

    Args:
        function: The function.
        where: How messages name the node.
    """

    function: Callable[..., Any]
    where: str
    binding: ParameterBinding
    #: The parameter that takes the context, and the one that takes the node's input.
    context: Parameter | None
    node_input: Parameter | None
    #: The name of the parameter that takes the `Runtime`.
    runtime: str | None
    parameters: tuple[Parameter, ...]
    #: Whether it takes all further keys of its input.
    takes_rest: bool
    #: Whether it takes the node's input, by name, and nothing else.
    takes_input_only: bool = False

    @property
    def required(self) -> tuple[str, ...]:
        """The keys of the state that there must be: those without a default, and those that are named by a key."""
        if self.binding != "state":
            return ()
        return tuple(each.key for each in self.parameters if each.default is MISSING or each.key != each.name)

    def call(self, state: Mapping[str, Any], node_input: Any, context: Context | None) -> Any:
        """Call the function and return its result.

        Args:
            state: What the node sees of the state.
            node_input: What the nodes before it gave, or `NO_OUTPUT`.
            context: What a parameter for the context gets.

        Raises:
            WorkflowDataError: A parameter has no value, or one that it does not take.
        """
        if self.takes_input_only and node_input is not NO_OUTPUT:
            taken: Parameter = self.node_input  # type: ignore[assignment]  # there is one: see above
            return self.function(
                node_input=node_input if type(node_input) is taken.exact else self.converted(taken, node_input)
            )
        named: dict[str, Any] = {}
        placed: list[Any] = []
        source: Mapping[str, Any] = state if self.binding == "state" else self.fields_of_input(node_input)
        if self.runtime is not None:
            named[self.runtime] = get_runtime()
        if self.context is not None:
            self.put(self.context, context, placed, named)
        given = self.node_input
        if given is not None:
            if node_input is not NO_OUTPUT:
                value = node_input if type(node_input) is given.exact else self.converted(given, node_input)
                self.put(given, value, placed, named)
            elif given.default is MISSING:
                self.put(given, self.converted(given, None), placed, named)
        for parameter in self.parameters:
            value = source.get(parameter.key, MISSING)
            if value is MISSING:
                if parameter.default is MISSING:
                    raise self.missing(parameter, source)
                value = parameter.default
            elif type(value) is not parameter.exact and parameter.convert is not None:
                value = self.converted(parameter, value)
            self.put(parameter, value, placed, named)
        if self.takes_rest:
            known = {each.key for each in self.parameters}
            named.update({key: value for key, value in source.items() if key not in known})
        return self.function(*placed, **named)

    def put(self, parameter: Parameter, value: Any, placed: list[Any], named: dict[str, Any]) -> None:
        """Add an argument to those by place, or to those by name."""
        if parameter.positional:
            placed.append(value)
        else:
            named[parameter.name] = value

    def converted(self, parameter: Parameter, value: Any) -> Any:
        """Return a value as a parameter takes it.

        Raises:
            WorkflowDataError: It does not.
        """
        if parameter.convert is None:
            return value
        try:
            return parameter.convert(value)
        except TypeError as error:
            none = " (the node before it gave no output)" if value is None and parameter is self.node_input else ""
            raise WorkflowDataError(
                f"{self.where}: parameter {parameter.name!r} of function {name_of(self.function)!r} can't take "
                f"{show(value)}{none}: {error}"
            ) from error

    def fields_of_input(self, node_input: Any) -> Mapping[str, Any]:
        """Return the node's input as the mapping that its parameters are taken from.

        Raises:
            WorkflowDataError: It is none.
        """
        if isinstance(node_input, Mapping):
            return node_input
        if node_input is None or node_input is NO_OUTPUT:
            return {}
        if hasattr(type(node_input), "model_fields"):
            return {name: getattr(node_input, name) for name in type(node_input).model_fields}
        raise WorkflowDataError(
            f"{self.where} takes its parameters from its input (parameter_binding='node_input'), which is "
            f"{show(node_input)}: a mapping or a pydantic model is needed"
        )

    def missing(self, parameter: Parameter, source: Mapping[str, Any]) -> WorkflowDataError:
        """Return the error for a parameter without value."""
        place = "the state" if self.binding == "state" else "the node's input"
        alias = "" if parameter.key == parameter.name else f" (key {parameter.key!r})"
        return WorkflowDataError(
            f"{self.where}: missing value for parameter {parameter.name!r}{alias} of function "
            f"{name_of(self.function)!r}. It was not found in {place} and has no default value."
            f"{nearest(parameter.key, source)} There are: {', '.join(map(str, source)) or 'no keys'}"
        )


def name_of(function: Any) -> str:
    """Return what messages call a function."""
    while isinstance(function, partial):
        function = function.func
    return getattr(function, "__name__", type(function).__name__)


def bind(
    function: Callable[..., Any],
    where: str,
    binding: ParameterBinding = "state",
    names: Mapping[str, str] | None = None,
) -> Binder:
    """Read a function's parameters.

    Args:
        function: Any callable that tells its signature.
        where: How messages name the node.
        binding: Where the parameters come from that are neither the context nor `node_input`.
        names: The whole names of keys of the state that have another one.

    Raises:
        WorkflowConfigurationError: The signature can't be read, or two parameters take the context.
        StateSchemaError: A parameter takes a key that can't be one.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise WorkflowConfigurationError(
            f"{where}: {show(function)} does not tell its parameters ({error}): call it in a function of your own"
        ) from error
    inner: Any = function
    while isinstance(inner, partial):
        inner = inner.func
    hints = annotations_of(inner if inspect.isroutine(inner) else inner.__call__, "", where, None)
    context: Parameter | None = None
    node_input: Parameter | None = None
    parameters: list[Parameter] = []
    rest = False
    bound = function.keywords if isinstance(function, partial) else {}
    free = {name: hints.get(name) for name in signature.parameters if name not in bound}
    takes_context = the_one(free, Context, f"{where}: function {name_of(function)!r}") or CONTEXT
    runtime = the_one(free, Runtime, f"{where}: function {name_of(function)!r}")
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL or name in bound:
            continue
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            rest = binding == "node_input"
            continue
        if name == runtime and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
            continue
        read = read_parameter(name, parameter, hints.get(name, MISSING), where, plain=name == takes_context)
        if name == takes_context:
            context = read
        elif name == INPUT:
            node_input = read
        else:
            parameters.append(replace(read, key=(names or {}).get(read.key, read.key)))
    ordered = [each for each in (context, node_input, *parameters) if each is not None and each.positional]
    places = [name for name, each in signature.parameters.items() if each.kind is inspect.Parameter.POSITIONAL_ONLY]
    if [each.name for each in ordered] != places:
        raise WorkflowConfigurationError(
            f"{where}: function {name_of(function)!r} takes {', '.join(map(repr, places))} by position only, which "
            "works for a context first, then node_input, then keys: take the '/' out of its parameters"
        )
    only = node_input is not None and not (context or runtime or parameters or rest or node_input.positional)
    return Binder(function, where, binding, context, node_input, runtime, tuple(parameters), rest, only)


def read_parameter(name: str, parameter: inspect.Parameter, annotation: Any, where: str, *, plain: bool) -> Parameter:
    """Return a parameter with the conversion that its annotation asks for; none where it is `plain`.

    Raises:
        StateSchemaError: It takes a key that can't be one.
    """
    key = name
    if get_origin(annotation) is Annotated:
        for item in get_args(annotation)[1:]:
            if isinstance(item, FromState):
                key = check_key(item.key, f"{where}: parameter {name!r}")
                break
    default = MISSING if parameter.default is inspect.Parameter.empty else parameter.default
    positional = parameter.kind is inspect.Parameter.POSITIONAL_ONLY
    if plain or annotation is MISSING or annotation is Any:
        return Parameter(name, key, default, positional, None, None)
    check = checker(annotation)
    return Parameter(name, key, default, positional, Conversion(annotation, check), check.exact)


class Conversion:
    """Gives a value as an annotation says: the value itself where it fits, else what pydantic makes of it.

    So what a function gets never depends on how precisely it is annotated: a list is the list in the state.

    Args:
        annotation: The annotation.
        check: Returns a value that fits as it is.
    """

    __slots__ = ("annotation", "check", "convert")

    def __init__(self, annotation: Any, check: Callable[[Any], Any]) -> None:
        self.annotation = annotation
        self.check = check
        self.convert: Callable[[Any], Any] | None = None

    def __call__(self, value: Any) -> Any:
        """Return the value as the annotation says.

        Raises:
            TypeError: It can't be had.
        """
        try:
            return self.check(value)
        except TypeError as error:
            if self.convert is None:
                from pregel.graph.coercion import converter  # noqa: PLC0415 - most values fit as they are

                self.convert = converter(self.annotation)
            if self.convert is None:
                raise TypeError(f"{describe(self.annotation)} is expected: {error}") from error
        return self.convert(value)


def the_one(annotations: Mapping[str, Any], kind: type, where: str) -> str | None:
    """Return the name of the parameter that is annotated with a class, if there is one.

    Raises:
        WorkflowConfigurationError: There are several.
    """
    found = [name for name, annotation in annotations.items() if is_of(annotation, kind)]
    if len(found) > 1:
        raise WorkflowConfigurationError(
            f"{where} has the parameters {', '.join(map(repr, found))}, which all take the {kind.__name__}: keep one"
        )
    return found[0] if found else None


def is_of(annotation: Any, kind: type) -> bool:
    """Return whether an annotation names a class, or a class below it."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in {Union, types.UnionType}:
        return any(is_of(each, kind) for each in get_args(annotation))
    annotation = get_origin(annotation) or annotation
    return isinstance(annotation, type) and issubclass(annotation, kind)
