"""How functions, LangChain's tools and graphs become tools."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, overload

from pregel.errors import nearest
from pregel.graph.agent.arguments import (
    Arguments,
    ToolArgumentsError,
    ToolDefinitionError,
    code_of,
    docstring_parts,
    read_function,
    shown,
)
from pregel.graph.agent.foreigntools import from_graph, from_langchain
from pregel.graph.agent.injection import ToolRuntime
from pregel.graph.agent.models.foreign import is_langchain_tool
from pregel.graph.agent.tooltype import ResponseFormat, Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pregel.graph.agent.injection import Injected

__all__ = [
    "ResponseFormat",
    "Tool",
    "ToolArgumentsError",
    "ToolDefinitionError",
    "ToolRuntime",
    "as_tool",
    "tool",
    "tools_by_name",
]


@overload
def tool(
    function: Callable[..., Any],
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    return_direct: bool = False,
    args_schema: Any = None,
    response_format: ResponseFormat = "content",
) -> Tool: ...
@overload
def tool(
    function: str | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    return_direct: bool = False,
    args_schema: Any = None,
    response_format: ResponseFormat = "content",
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | str | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    return_direct: bool = False,
    args_schema: Any = None,
    response_format: ResponseFormat = "content",
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a sync or async function a tool: `@tool`, `@tool("name")`, `@tool(return_direct=True)`.

    The model is told the name, the docstring and the types of the parameters; an `Args:` section in Google's style
    describes them one by one. Parameters that it does not see: those marked with `InjectedState`, `InjectedStore`,
    `InjectedToolCallId` or `InjectedToolArg`, those annotated with `ToolRuntime` or `RunConfig`, and one without
    annotation named `runtime`.

    Args:
        function: The function, or the tool's name.
        name: The tool's name; by default the function's.
        description: What the model is told; by default the docstring without its `Args:`.
        return_direct: Whether the result is the agent's answer.
        args_schema: A pydantic model of the arguments, or their JSON schema, in place of what the signature says.
        response_format: "content_and_artifact" for a function that returns a pair: what the model is told, and what
            the `ToolMessage` carries for the program.

    Raises:
        ToolDefinitionError: It can't be a tool; says why.
    """

    def make(given: Callable[..., Any]) -> Tool:
        return from_function(
            given,
            name=name if not isinstance(function, str) else function,
            description=description,
            return_direct=return_direct,
            args_schema=args_schema,
            response_format=response_format,
        )

    if isinstance(function, str) and name is not None:
        raise ToolDefinitionError(f"a tool was given two names, {function!r} and {name!r}")
    return make if function is None or isinstance(function, str) else make(function)


def from_function(
    function: Callable[..., Any],
    *,
    name: str | None,
    description: str | None,
    return_direct: bool,
    args_schema: Any,
    response_format: ResponseFormat,
) -> Tool:
    """Return a function as a tool; see `tool`.

    Raises:
        ToolDefinitionError: It can't be one; says why.
    """
    if not callable(function):
        raise ToolDefinitionError(f"{function!r} can't be called, so it is no tool")
    code = code_of(function)
    unbound: Any = function
    while isinstance(unbound, partial):
        unbound = unbound.func
    called = name or getattr(unbound, "__name__", "") or type(unbound).__name__
    if response_format not in {"content", "content_and_artifact"}:
        raise ToolDefinitionError(
            f"response_format of tool {called!r} is 'content' or 'content_and_artifact', not {response_format!r}."
            f"{nearest(response_format, ['content', 'content_and_artifact'])}"
        )
    arguments: Arguments | None
    arguments, parameters, injected = read_function(function, called)
    text = docstring_parts(code.__doc__)[0]
    if args_schema is not None:
        arguments, parameters = declared(args_schema, injected, called)
    awaited = inspect.iscoroutinefunction(code)
    return Tool(
        name=called,
        description=text if description is None else description,
        parameters=parameters,
        function=None if awaited else function,
        coroutine=function if awaited else None,
        return_direct=return_direct,
        response_format=response_format,
        arguments=arguments,
        injected=injected,
    )


def declared(schema: Any, injected: Mapping[str, Injected], name: str) -> tuple[Arguments | None, dict[str, Any]]:
    """Return what checks arguments, and their JSON schema, where both are given apart from the function.

    Raises:
        ToolDefinitionError: It is neither a pydantic model nor a JSON schema.
    """
    if isinstance(schema, Mapping):
        return None, shown(schema, injected)
    model: Any = schema
    if not isinstance(schema, type) or not hasattr(schema, "model_fields"):
        raise ToolDefinitionError(f"args_schema of tool {name!r} is a pydantic model or a JSON schema, not {schema!r}")
    fields = {attribute: attribute for attribute in model.model_fields}
    return Arguments(model, fields), shown(model.model_json_schema(), injected)


def as_tool(thing: Any, *, name: str | None = None, description: str | None = None) -> Tool:
    """Return something as a tool.

    Args:
        thing: A function, a `Tool`, a tool of LangChain (which is kept inside and called as it is), or a compiled
            graph. A graph that takes `messages` gets one argument, `request`, as the user's message, and answers with
            its last message; any other one gets the fields of its input, and answers with its output.
        name: Its name; by default that of the thing.
        description: What the model is told; by default what the thing says of itself. A graph says nothing.

    Raises:
        ToolDefinitionError: It can't be a tool; says why.
    """
    from pregel.main import Pregel  # noqa: PLC0415 - only where a graph may be a tool

    if isinstance(thing, Pregel):
        return from_graph(thing, name, description)
    made: Tool
    if isinstance(thing, Tool):
        made = thing
    elif is_langchain_tool(thing):
        made = from_langchain(thing)
    elif callable(thing):
        own: Callable[..., Any] = thing
        return tool(own, name=name, description=description)
    else:
        raise ToolDefinitionError(
            f"{thing!r} is no tool: give a function, what @tool made, a tool of LangChain, or a compiled graph"
        )
    if name is None and description is None:
        return made
    return replace(
        made,
        name=made.name if name is None else name,
        description=made.description if description is None else description,
        origin=None,  # LangChain's models would be told of that, by its own name
    )


def tools_by_name(tools: Iterable[Any]) -> dict[str, Tool]:
    """Return tools by their names; the same tool twice counts once.

    Raises:
        ToolDefinitionError: Two have one name, so that one of them could never be called.
    """
    found: dict[str, Tool] = {}
    origins: dict[str, Any] = {}
    for thing in tools:
        made = as_tool(thing)
        if made.name in found and origins[made.name] is not thing:
            raise ToolDefinitionError(
                f"two tools are named {made.name!r} ({shown_origin(origins[made.name])} and {shown_origin(thing)}), "
                "and a model calls tools by name: rename one, as_tool(..., name=...)"
            )
        found.setdefault(made.name, made)
        origins[made.name] = thing
    return found


def shown_origin(thing: Any) -> str:
    """Return how messages name what a tool was made from."""
    inner = (thing.function or thing.coroutine) if isinstance(thing, Tool) else thing
    name = getattr(inner, "__qualname__", None)
    return f"{inner.__module__}.{name}" if isinstance(name, str) else type(thing).__name__
