"""Which errors of tools are told to the model, and as what."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import UnionType
from typing import Any, Final, TypeAlias, Union, get_args, get_origin

from pregel.callables import annotations_of
from pregel.errors import (
    ConcurrentRunError,
    GraphDefinitionError,
    InterruptSwallowedError,
    InvalidConfigError,
    InvalidUpdateError,
    MissingCheckpointerError,
    MissingStoreError,
    OutsideTaskError,
    SchemaError,
)
from pregel.graph.agent.arguments import ToolArgumentsError, ToolDefinitionError, code_of
from pregel.graph.agent.injection import ToolInjectionError

__all__ = ["FAULTS_OF_THE_GRAPH", "HandleToolErrors", "read_handling"]

#: Which errors of tools are told to the model, and as what: all (True) or none (False) of them, those of a class or of
#: several, all of them as one text, or what a function makes of them, those of the type that its parameter is annotated
#: with. None: those about arguments that do not fit.
HandleToolErrors: TypeAlias = bool | str | type[Exception] | tuple[type[Exception], ...] | Callable[[Any], str] | None

#: What is wrong with the program: no model can mend it, and no retry.
FAULTS_OF_THE_GRAPH: Final = (
    ConcurrentRunError,
    GraphDefinitionError,
    InterruptSwallowedError,
    InvalidConfigError,
    InvalidUpdateError,
    MissingCheckpointerError,
    MissingStoreError,
    OutsideTaskError,
    SchemaError,
    ToolInjectionError,
)


def read_handling(handle: HandleToolErrors) -> tuple[tuple[type[Exception], ...], Callable[[Exception], str]]:
    """Return which errors become messages, and what makes a text of them.

    Raises:
        ToolDefinitionError: It does not say.
    """
    if handle is None:
        return (ToolArgumentsError,), str
    if isinstance(handle, bool):
        return ((Exception,) if handle else ()), told
    if isinstance(handle, str):
        return (Exception,), lambda _: handle
    kinds: Any = handle if isinstance(handle, tuple) else (handle,)
    if all(isinstance(each, type) and issubclass(each, Exception) for each in kinds):
        return kinds, told
    if callable(handle) and not isinstance(handle, type):
        return handled_by(handle), handle
    raise ToolDefinitionError(
        f"handle_tool_errors takes a bool, a text, a class of errors, a tuple of these, or a function, not {handle!r}"
    )


def handled_by(handler: Callable[..., Any]) -> tuple[type[Exception], ...]:
    """Return the errors that a function takes, by the annotation of its first parameter; all where it has none."""
    hints = annotations_of(code_of(handler), "", "handle_tool_errors", None)
    names = list(inspect.signature(handler).parameters)
    hint = hints.get(names[0], Exception) if names else Exception
    kinds = get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
    return tuple(kind if isinstance(kind, type) and issubclass(kind, Exception) else Exception for kind in kinds)


def told(error: Exception) -> str:
    """Return an error as a message for the model."""
    return str(error) if isinstance(error, ToolArgumentsError) else f"Error: {type(error).__name__}: {error}"
