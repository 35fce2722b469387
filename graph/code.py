"""What a user's function or runnable tells about itself: how to call it, what it reads, what it returns."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import partial
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

from typing_extensions import get_type_hints

from pregel.config import RunConfig
from pregel.errors import GraphDefinitionError, nearest
from pregel.graph.schema import is_schema
from pregel.node import Code, Injection
from pregel.runtime import Runtime
from pregel.types import Command, Send, StreamWriter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["CodeFacts", "callable_name", "read_code"]

INJECTED: Mapping[str, Injection] = {"config": "config", "writer": "writer", "runtime": "runtime"}
VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class CodeFacts:
    """What was read off a piece of user code."""

    code: Code
    #: The schema that its first parameter is annotated with, or None.
    reads: Any = None
    #: Its annotated result; `inspect.Parameter.empty` where there is none.
    returns: Any = inspect.Parameter.empty

    @property
    def may_return_none(self) -> bool:
        """Whether the annotated result admits None."""
        return any(part in {None, NoneType, Any} for part in alternatives(self.returns))

    @property
    def returned_schemas(self) -> tuple[Any, ...]:
        """The schemas among the alternatives of its annotated result."""
        return tuple(
            part
            for part in alternatives(self.returns)
            if part is not inspect.Parameter.empty
            and (get_origin(part) or part) not in {Command, Send}
            and is_schema(part)
        )

    @property
    def returns_schemas_only(self) -> bool:
        """Whether its annotated result is always an instance of a schema (or None): nothing else can be written."""
        schemas = self.returned_schemas
        return all(part in {None, NoneType} or part in schemas for part in alternatives(self.returns))

    @property
    def literals(self) -> tuple[Any, ...] | None:
        """The answers that a path's annotation lists, or None where it does not list them."""
        found: list[Any] = []
        for part in alternatives(self.returns):
            if get_origin(part) in {list, tuple}:
                found.extend(value for arg in get_args(part) for value in literal_values(arg))
            else:
                found.extend(literal_values(part))
        return tuple(dict.fromkeys(found)) or None

    @property
    def command_targets(self) -> tuple[str, ...]:
        """The names that an annotated `Command[Literal[...]]` lists."""
        return tuple(dict.fromkeys(name for arg in self.command_arguments() for name in literal_values(arg)))

    @property
    def may_go_anywhere(self) -> bool:
        """Whether the annotated result is a `Command` that does not say where it goes."""
        return any(not tuple(literal_values(arg)) for arg in self.command_arguments())

    def command_arguments(self) -> Iterator[Any]:
        """Yield the argument of each `Command` in the annotated result."""
        if self.returns is inspect.Parameter.empty:
            return
        for part in alternatives(self.returns):
            for item in get_args(part) if get_origin(part) in {list, tuple} else (part,):
                for choice in alternatives(item):
                    if choice is Command or get_origin(choice) is Command:
                        yield next(iter(get_args(choice)), Any)


def alternatives(annotation: Any) -> Iterator[Any]:
    """Yield the members of a union, or the annotation itself."""
    if annotation is inspect.Parameter.empty:
        yield annotation
    elif get_origin(annotation) in {Union, UnionType}:
        for part in get_args(annotation):
            yield from alternatives(part)
    else:
        yield annotation


def literal_values(annotation: Any) -> Iterator[Any]:
    """Yield the values of a Literal, also inside a union."""
    for part in alternatives(annotation):
        if get_origin(part) is Literal:
            yield from get_args(part)


def callable_name(action: Any) -> str | None:
    """Return the name a piece of code goes by, if it has one."""
    while isinstance(action, partial):
        action = action.func
    name = getattr(action, "__name__", None) or getattr(action, "name", None)
    return name if isinstance(name, str) and name else None


def read_code(action: Any, name: str, where: str, known: Mapping[str, Any]) -> CodeFacts:
    """Read a node's action or a conditional edge's path.

    Args:
        action: A sync or async callable, or an object with `invoke` or `ainvoke`.
        name: The name it goes by.
        where: How messages name it.
        known: Schemas by name, for annotations that can't be resolved where they stand.

    Raises:
        GraphDefinitionError: It can't be called with a state, or has a parameter that nothing fills.
    """
    if takes_a_state_and_says_nothing(action):
        awaited = inspect.iscoroutinefunction(action)
        return CodeFacts(Code(name, None, action) if awaited else Code(name, action))
    if hasattr(action, "invoke") or hasattr(action, "ainvoke"):
        call, acall = getattr(action, "invoke", None), getattr(action, "ainvoke", None)
        inject = injections(signature(call or acall), {}, where, strangers=False)
        return CodeFacts(Code(name, call, acall, inject))
    if not callable(action):
        raise GraphDefinitionError(f"{where} is {action!r}: give a function, or an object with `invoke` (or `ainvoke`)")
    parameters = signature(action)
    if parameters is None:
        return CodeFacts(Code(name, action))
    function: Any = action
    while isinstance(function, partial):
        function = function.func
    if not inspect.isroutine(function):
        function = function.__call__
    first = next(iter(parameters.parameters.values()), None)
    if first is None or first.kind not in {*POSITIONAL, inspect.Parameter.VAR_POSITIONAL}:
        raise GraphDefinitionError(
            f"{where} has no positional parameter for the state: give it one, `def f(state): ...`"
        )
    hints = annotations_of(function, first.name, where, known)
    reads = hints.get(first.name)
    awaited = inspect.iscoroutinefunction(function)
    inject = injections(parameters, hints, where, strangers=True)
    return CodeFacts(
        Code(name, None, action, inject) if awaited else Code(name, action, None, inject),
        reads if reads is not None and is_schema(reads) else None,
        hints.get("return", inspect.Parameter.empty),
    )


def takes_a_state_and_says_nothing(action: Any) -> bool:
    """Return whether an action is a plain function of one parameter without annotations.

    Most nodes of large graphs are, and reading a full signature would cost more than everything else at compile.
    """
    if not inspect.isfunction(action) or action.__annotations__ or action.__dict__:
        return False
    code = action.__code__
    return (code.co_argcount, code.co_kwonlyargcount) == (1, 0) and not code.co_flags & VARIADIC


def signature(action: Any) -> inspect.Signature | None:
    """Return a callable's signature, or None for a builtin that does not tell it."""
    try:
        return inspect.signature(action)
    except (TypeError, ValueError):
        return None


def annotations_of(function: Any, first: str, where: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return a function's resolved annotations.

    One that can't be resolved counts as absent, except the state's: it decides what the function reads.

    Raises:
        GraphDefinitionError: The state's annotation can't be resolved.
    """
    raw = dict(getattr(function, "__annotations__", {}))
    try:
        hints = get_type_hints(function, localns=dict(known), include_extras=True)
    except Exception:  # noqa: BLE001 - an annotation may be any expression; they are tried one by one below
        hints = {}
        for name, annotation in raw.items():
            stand_in = partial(int)  # any object that can carry one annotation
            stand_in.__annotations__ = {name: annotation}
            try:
                hints.update(
                    get_type_hints(
                        stand_in,
                        globalns=getattr(inspect.unwrap(function), "__globals__", {}),
                        localns=dict(known),
                        include_extras=True,
                    )
                )
            except Exception as error:
                if name == first:
                    raise GraphDefinitionError(
                        f"{where} annotates its state with {annotation!r}, which can't be resolved ({error}): move the "
                        "schema to the module's level, or name it with input_schema="
                    ) from error
    if "return" in raw and hints.get("return", 0) is NoneType:
        hints["return"] = None
    return hints


def injections(
    parameters: inspect.Signature | None, hints: Mapping[str, Any], where: str, *, strangers: bool
) -> dict[str, Injection]:
    """Return which parameters, after the state, are filled with what.

    Args:
        parameters: The signature.
        hints: Resolved annotations.
        where: How messages name the code.
        strangers: Whether a parameter that nothing fills is an error; runnables have parameters of their own.

    Raises:
        GraphDefinitionError: A parameter without default that nothing fills.
    """
    found: dict[str, Injection] = {}
    for name, parameter in list(parameters.parameters.items())[1:] if parameters else ():
        if parameter.kind in {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
            continue
        injection = INJECTED.get(name) or injection_by_annotation(hints.get(name))
        if injection is not None and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
            found[name] = injection
        elif strangers and parameter.default is inspect.Parameter.empty:
            raise GraphDefinitionError(
                f"{where} has a parameter {name!r} that nothing fills.{nearest(name, INJECTED)} After the state it may "
                f"take {', '.join(INJECTED)} (by name, or any name annotated with Runtime, RunConfig or StreamWriter); "
                "give others a default, or bind them with functools.partial"
            )
    return found


def injection_by_annotation(annotation: Any) -> Injection | None:
    """Return what a parameter is filled with by its annotation."""
    for part in alternatives(annotation):
        if part is Runtime or get_origin(part) is Runtime:
            return "runtime"
        if part == StreamWriter:  # by value: resolving hints makes the alias anew
            return "writer"
        if part is RunConfig or getattr(part, "__name__", "") == "RunnableConfig":
            return "config"
    return None
