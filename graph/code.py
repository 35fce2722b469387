"""What a user's function or runnable tells about itself: how to call it, what it reads, what it returns."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from pregel.callables import alternatives, read_callable
from pregel.graph.schema import is_schema
from pregel.types import Command, Send

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pregel.node import Code

__all__ = ["CodeFacts", "callable_name", "read_code"]


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


def read_code(
    action: Any, name: str, where: str, known: Mapping[str, Any], *, handles_errors: bool = False
) -> CodeFacts:
    """Read a node's action, its error handler, or a conditional edge's path.

    Args:
        action: A sync or async callable, or an object with `invoke` or `ainvoke`.
        name: The name it goes by.
        where: How messages name it.
        known: Schemas by name, for annotations that can't be resolved where they stand.
        handles_errors: Whether it is an error handler, which may ask for the error.

    Raises:
        GraphDefinitionError: It can't be called with a state, or has a parameter that nothing fills, or its state's
            annotation can't be resolved.
    """
    read = read_callable(action, name, where, known, handles_errors=handles_errors)
    reads = read.hints.get(read.first)
    return CodeFacts(
        read.code,
        reads if reads is not None and is_schema(reads) else None,
        read.hints.get("return", inspect.Parameter.empty),
    )
