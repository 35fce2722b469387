"""Middleware of one hook or wrapper, made from a function."""

from __future__ import annotations

import inspect
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, cast, overload

from pregel.errors import GraphDefinitionError
from pregel.graph.agent.middleware.base import AgentMiddleware, hook_config
from pregel.graph.agent.state import AgentState
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pregel.graph.agent.requests import ModelRequest
    from pregel.graph.agent.state import JumpTo
    from pregel.graph.messages import SystemMessage

    Decorator = Callable[[Callable[..., Any]], AgentMiddleware]

__all__ = [
    "after_agent",
    "after_model",
    "before_agent",
    "before_model",
    "dynamic_prompt",
    "modify_model_request",
    "wrap_model_call",
    "wrap_tool_call",
]


def middleware_of(
    function: Callable[..., Any],
    method: str,
    *,
    code: Callable[..., Any] | None = None,
    name: str | None = None,
    state_schema: Any = None,
    tools: Sequence[Any] = (),
    can_jump_to: Sequence[JumpTo] = (),
) -> AgentMiddleware:
    """Return a middleware with one method.

    Args:
        function: The function that was decorated; an async one makes the async form.
        method: Which method it is, by the name of the sync form.
        code: What the method does, where that is not the function itself.
        name: The middleware's name; the function's if left out.
        state_schema: Fields that it adds to the state.
        tools: Tools that it adds.
        can_jump_to: Where the hook may jump to.

    Raises:
        GraphDefinitionError: It is no function.
    """
    if not callable(function):
        raise GraphDefinitionError(f"{method} decorates a function, not {show(function)}")
    code = function if code is None else code
    if can_jump_to:  # of this middleware: the function may be another one's as well
        code = hook_config(can_jump_to=can_jump_to)(partial(code))
    called = name or str(getattr(function, "__name__", type(function).__name__))
    is_async = inspect.iscoroutinefunction(function)
    made = type(
        called,
        (AgentMiddleware,),
        {
            "__doc__": function.__doc__,
            "__module__": function.__module__,
            "state_schema": AgentState if state_schema is None else state_schema,
            "tools": tuple(tools),
            # As it is, without `self`: its own signature says what it is given.
            f"a{method}" if is_async else method: staticmethod(code),
        },
    )
    return cast("AgentMiddleware", made())


def hook(method: str, function: Callable[..., Any] | None, options: dict[str, Any]) -> Any:
    """Return a middleware, or what makes one where the decorator was called with options."""
    if function is None:
        return lambda given: middleware_of(given, method, **options)
    return middleware_of(function, method, **options)


@overload
def before_agent(function: Callable[..., Any], /) -> AgentMiddleware: ...
@overload
def before_agent(
    *,
    can_jump_to: Sequence[JumpTo] = (),
    state_schema: Any = None,
    tools: Sequence[Any] = (),
    name: str | None = None,
) -> Decorator: ...
def before_agent(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function of state and runtime a middleware that runs once before a run of the agent begins.

    It may take less: `state` alone; or what else a node may take. `@before_agent` and `@before_agent(...)` both work.

    Args:
        function: The function, sync or async. It returns what it updates, or None.
        **options: `can_jump_to`, `state_schema`, `tools` and `name`, as `AgentMiddleware` has them.
    """
    return hook("before_agent", function, options)


@overload
def before_model(function: Callable[..., Any], /) -> AgentMiddleware: ...
@overload
def before_model(
    *,
    can_jump_to: Sequence[JumpTo] = (),
    state_schema: Any = None,
    tools: Sequence[Any] = (),
    name: str | None = None,
) -> Decorator: ...
def before_model(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Do what `before_agent` does for a hook that runs before each call of the model."""
    return hook("before_model", function, options)


@overload
def after_model(function: Callable[..., Any], /) -> AgentMiddleware: ...
@overload
def after_model(
    *,
    can_jump_to: Sequence[JumpTo] = (),
    state_schema: Any = None,
    tools: Sequence[Any] = (),
    name: str | None = None,
) -> Decorator: ...
def after_model(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Do what `before_agent` does for a hook that runs after each call of the model, before its tool calls."""
    return hook("after_model", function, options)


@overload
def after_agent(function: Callable[..., Any], /) -> AgentMiddleware: ...
@overload
def after_agent(
    *,
    can_jump_to: Sequence[JumpTo] = (),
    state_schema: Any = None,
    tools: Sequence[Any] = (),
    name: str | None = None,
) -> Decorator: ...
def after_agent(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Do what `before_agent` does for a hook that runs once when the agent is done."""
    return hook("after_agent", function, options)


@overload
def wrap_model_call(function: Callable[..., Any], /) -> AgentMiddleware: ...
@overload
def wrap_model_call(*, state_schema: Any = None, tools: Sequence[Any] = (), name: str | None = None) -> Decorator: ...
def wrap_model_call(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function of request and handler a middleware that wraps each call of the model.

    Args:
        function: The function, sync or async; the handler of an async one is awaited.
        **options: `state_schema`, `tools` and `name`, as `AgentMiddleware` has them.
    """
    return hook("wrap_model_call", function, options)


@overload
def wrap_tool_call(function: Callable[..., Any], /) -> AgentMiddleware: ...
@overload
def wrap_tool_call(*, state_schema: Any = None, tools: Sequence[Any] = (), name: str | None = None) -> Decorator: ...
def wrap_tool_call(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Do what `wrap_model_call` does for each call of a tool."""
    return hook("wrap_tool_call", function, options)


def modify_model_request(
    function: Callable[[ModelRequest], ModelRequest | Awaitable[ModelRequest]],
) -> AgentMiddleware:
    """Make a function a middleware that changes what the model is asked: it takes a request and returns another one.

    Args:
        function: The function, sync or async.
    """
    return around_request(function, lambda request, changed: checked(changed, request, function))


def checked(changed: Any, request: ModelRequest, function: Any) -> ModelRequest:
    """Return the request that a function made.

    Raises:
        GraphDefinitionError: It is none.
    """
    if type(changed) is not type(request):
        raise GraphDefinitionError(
            f"{function.__name__} returned {show(changed)}: it returns a ModelRequest, such as request.override(...)"
        )
    return changed


def dynamic_prompt(
    function: Callable[[ModelRequest], str | SystemMessage | Awaitable[str | SystemMessage]],
) -> AgentMiddleware:
    """Make a function a middleware that says what the model is told first: from a request to a text or message.

    Args:
        function: The function, sync or async.
    """
    return around_request(
        function,
        lambda request, prompt: request.override(
            **{"system_prompt" if isinstance(prompt, str) else "system_message": prompt}
        ),
    )


def around_request(
    function: Callable[..., Any], change: Callable[[ModelRequest, Any], ModelRequest]
) -> AgentMiddleware:
    """Return a middleware that calls the model with a request changed by what a function makes of it."""
    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def acall(request: ModelRequest, handler: Callable[..., Awaitable[Any]]) -> Any:
            return await handler(change(request, await function(request)))

        return middleware_of(function, "wrap_model_call", code=acall)

    @wraps(function)
    def call(request: ModelRequest, handler: Callable[..., Any]) -> Any:
        return handler(change(request, function(request)))

    return middleware_of(function, "wrap_model_call", code=call)
