"""How wrappers stand around the call of a tool, in sync and async code."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pregel.graph.agent.arguments import ToolDefinitionError
from pregel.graph.agent.middleware.base import AgentMiddleware, forms_of, is_awaited
from pregel.graph.agent.offloading import back_on_loop, in_worker
from pregel.graph.agent.requests import ToolCallRequest
from pregel.graph.agent.results import ToolResultError, checked
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from pregel.graph.agent.results import Answer

__all__ = ["Wrapper", "acall_wrapped", "call_wrapped", "read_wrappers"]


class Wrapper(NamedTuple):
    """A wrapper around tool calls; at least one form is there."""

    name: str
    sync: Callable[[ToolCallRequest, Callable[[ToolCallRequest], Answer]], Answer] | None
    awaited: Callable[[ToolCallRequest, Callable[[ToolCallRequest], Awaitable[Answer]]], Awaitable[Answer]] | None


def read_wrappers(wrappers: Iterable[Any]) -> tuple[Wrapper, ...]:
    """Return wrappers in the forms that they have.

    Args:
        wrappers: Functions of a request and a handler, sync or async, or middleware; one that wraps no tool calls is
            left out.

    Raises:
        ToolDefinitionError: Something that is neither.
    """
    found = []
    for each in wrappers:
        if isinstance(each, AgentMiddleware):
            forms = forms_of(each, "wrap_tool_call")
            if forms != (None, None):
                found.append(Wrapper(f"wrap_tool_call of {each.name!r}", *forms))
        elif callable(each):
            name = f"the wrapper {getattr(each, '__name__', repr(each))}"
            is_async = inspect.iscoroutinefunction(each)
            found.append(Wrapper(name, None if is_async else each, each if is_async else None))
        else:
            raise ToolDefinitionError(
                f"{each!r} wraps no tool calls: give a function of a request and a handler, or a middleware"
            )
    return tuple(found)


def call_wrapped(
    wrappers: tuple[Wrapper, ...],
    request: ToolCallRequest,
    execute: Callable[[ToolCallRequest], Answer],
    messages_key: str,
) -> Answer:
    """Make a call through its wrappers, which have sync forms; the first is the outermost.

    Raises:
        ToolResultError: What a wrapper returned is no answer to the call.
    """
    if not wrappers:
        return execute(request)
    wrapper, rest = wrappers[0], wrappers[1:]

    def handler(inner: ToolCallRequest) -> Answer:
        return call_wrapped(rest, handed_on(inner, wrapper), execute, messages_key)

    sync: Any = wrapper.sync  # where one has an async form only, calls are awaited
    result = sync(request, handler)
    return checked(result, request.tool_call, wrapper.name, messages_key)


def handed_on(request: Any, wrapper: Wrapper) -> ToolCallRequest:
    """Return what a wrapper hands to its handler, if it is a request.

    Raises:
        ToolResultError: It is none.
    """
    if isinstance(request, ToolCallRequest):
        return request
    raise ToolResultError(
        f"{wrapper.name} called its handler with {show(request)}: give it the request, or request.override(...)"
    )


async def acall_wrapped(
    wrappers: tuple[Wrapper, ...],
    request: ToolCallRequest,
    execute: Callable[[ToolCallRequest], Awaitable[Answer]],
    messages_key: str,
) -> Answer:
    """Do the same, awaited. A wrapper whose sync form is called runs in a worker thread; its handler comes back here.

    Raises:
        ToolResultError: See `call_wrapped`.
    """
    if not wrappers:
        return await execute(request)
    wrapper, rest = wrappers[0], wrappers[1:]

    async def handler(inner: ToolCallRequest) -> Answer:
        return await acall_wrapped(rest, handed_on(inner, wrapper), execute, messages_key)

    sync: Any = wrapper.sync
    awaited: Any = wrapper.awaited
    if is_awaited(sync, awaited):
        result = await awaited(request, handler)
    else:
        result = await in_worker(partial(sync, request, partial(back_on_loop, handler)))
    return checked(result, request.tool_call, wrapper.name, messages_key)
