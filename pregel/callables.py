"""What a user's callable or runnable tells about how to call it."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from functools import partial
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from typing_extensions import get_type_hints

from pregel.config import RunConfig
from pregel.errors import GraphDefinitionError, nearest
from pregel.node import Code, Injection
from pregel.runtime import Runtime
from pregel.types import NodeError, StreamWriter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["ReadCallable", "alternatives", "is_async", "read_callable"]

INJECTED: Mapping[str, Injection] = {"config": "config", "writer": "writer", "runtime": "runtime", "store": "store"}
#: The same for error handlers.
HANDLING: Mapping[str, Injection] = {**INJECTED, "error": "error"}
VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class ReadCallable:
    """A callable as it was read."""

    code: Code
    #: The name of its first parameter, which takes what the node reads; empty where it does not tell.
    first: str = ""
    #: Its resolved annotations; those that can't be resolved are absent.
    hints: Mapping[str, Any] = field(default_factory=dict)


def read_callable(
    action: Any, name: str, where: str, known: Mapping[str, Any] | None = None, *, handles_errors: bool = False
) -> ReadCallable:
    """Read how to call a node's action or a conditional edge's path.

    Args:
        action: A sync or async callable, or an object with `invoke` or `ainvoke`; its `any_loop`, where that is True,
            says that its `ainvoke` runs on every event loop.
        name: The name it goes by.
        where: How messages name it.
        known: Schemas by name, for annotations that can't be resolved where they stand; None where the annotation of
            what is read says nothing.
        handles_errors: Whether it is an error handler, which may ask for the error.

    Raises:
        GraphDefinitionError: It can't be called, or has a parameter that nothing fills, or the annotation of what it
            reads can't be resolved.
    """
    filled = HANDLING if handles_errors else INJECTED
    if takes_a_state_and_says_nothing(action):
        awaited = inspect.iscoroutinefunction(action)
        return ReadCallable(Code(name, None, action) if awaited else Code(name, action))
    if hasattr(action, "invoke") or hasattr(action, "ainvoke"):
        call, acall = getattr(action, "invoke", None), getattr(action, "ainvoke", None)
        inject = injections(signature(call or acall), {}, where, filled, strangers=False)
        return ReadCallable(Code(name, call, acall, inject, getattr(action, "any_loop", False) is True))
    if not callable(action):
        raise GraphDefinitionError(f"{where} is {action!r}: give a function, or an object with `invoke` (or `ainvoke`)")
    parameters = signature(action)
    if parameters is None:
        return ReadCallable(Code(name, action))
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
    awaited = inspect.iscoroutinefunction(function)
    inject = injections(parameters, hints, where, filled, strangers=True)
    code = Code(name, None, action, inject) if awaited else Code(name, action, None, inject)
    return ReadCallable(code, first.name, hints)


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


def annotations_of(function: Any, first: str, where: str, known: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a function's resolved annotations.

    One that can't be resolved counts as absent, except the state's where it decides what the function reads.

    Raises:
        GraphDefinitionError: The state's annotation can't be resolved.
    """
    raw = dict(getattr(function, "__annotations__", {}))
    try:
        hints = get_type_hints(function, localns=dict(known or {}), include_extras=True)
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
                        localns=dict(known or {}),
                        include_extras=True,
                    )
                )
            except Exception as error:
                if name == first and known is not None:
                    raise GraphDefinitionError(
                        f"{where} annotates its state with {annotation!r}, which can't be resolved ({error}): move the "
                        "schema to the module's level, or name it with input_schema="
                    ) from error
    if "return" in raw and hints.get("return", 0) is NoneType:
        hints["return"] = None
    return hints


def is_async(function: Any) -> bool:
    """Return whether a function, or what an object does when it is called, is async."""
    while isinstance(function, partial):
        function = function.func
    return any(map(inspect.iscoroutinefunction, (function, type(function).__call__)))


def injections(
    parameters: inspect.Signature | None,
    hints: Mapping[str, Any],
    where: str,
    filled: Mapping[str, Injection],
    *,
    strangers: bool,
) -> dict[str, Injection]:
    """Return which parameters, after the state, are filled with what.

    Args:
        parameters: The signature.
        hints: Resolved annotations.
        where: How messages name the code.
        filled: What parameters are filled with by their names.
        strangers: Whether a parameter that nothing fills is an error; runnables have parameters of their own.

    Raises:
        GraphDefinitionError: A parameter without default that nothing fills.
    """
    found: dict[str, Injection] = {}
    for name, parameter in list(parameters.parameters.items())[1:] if parameters else ():
        if parameter.kind in {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
            continue
        injection = filled.get(name) or injection_by_annotation(hints.get(name))
        if injection == "error" and "error" not in filled:
            injection = None
        if injection is not None and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
            if injection == "store" and parameter.default is not inspect.Parameter.empty:
                injection = "optional_store"  # where the graph has none the default stays
            found[name] = injection
        elif strangers and parameter.default is inspect.Parameter.empty:
            raise GraphDefinitionError(
                f"{where} has a parameter {name!r} that nothing fills.{nearest(name, filled)} After the state it may "
                f"take {', '.join(filled)} (by name, or any name annotated with Runtime, RunConfig or StreamWriter); "
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
        if part is NodeError:
            return "error"
    return None


def alternatives(annotation: Any) -> Iterator[Any]:
    """Yield the members of a union, or the annotation itself."""
    if annotation is inspect.Parameter.empty:
        yield annotation
    elif get_origin(annotation) in {Union, UnionType}:
        for part in get_args(annotation):
            yield from alternatives(part)
    else:
        yield annotation
