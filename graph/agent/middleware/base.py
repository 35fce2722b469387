"""What a middleware is: hooks around the steps of an agent, wrappers around its calls, tools and fields of state."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pregel.graph.agent.state import AgentState

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from pregel.graph.agent.requests import ExtendedModelResponse, ModelRequest, ModelResponse, ToolCallRequest
    from pregel.graph.agent.state import JumpTo
    from pregel.graph.messages import AIMessage, ToolMessage
    from pregel.runtime import Runtime
    from pregel.types import Command

__all__ = [
    "HOOKS",
    "WRAPPERS",
    "AgentMiddleware",
    "forms_of",
    "hook_config",
    "is_awaited",
    "jumps_of",
    "runs_on_any_loop",
]

HookT = TypeVar("HookT", bound="Callable[..., Any]")
#: The hooks that are nodes, and the wrappers that are not; the async form of each has an `a` before its name.
HOOKS = ("before_agent", "before_model", "after_model", "after_agent")
WRAPPERS = ("wrap_model_call", "wrap_tool_call")


class AgentMiddleware:
    """Override what you need; a method that is not overridden costs nothing.

    A hook returns what it updates, or None. With `hook_config(can_jump_to=[...])` it may also return "jump_to", which
    takes the place of the step that would follow. Each hook is a node of the graph, named `<name>.<hook>`; `before_*`
    run in the order of the list, `after_*` in reverse. A wrapper may call its handler any number of times; the first
    of the list is the outermost.

    A hook or wrapper may have a sync form, an async form, or both; each runs under `invoke` and `ainvoke` alike. Of
    both, the async one is awaited on asyncio; on trio, where it may not work, the sync one runs in a worker thread.
    """

    #: Fields that the middleware adds to the agent's state.
    state_schema: ClassVar[Any] = AgentState
    #: Tools that it adds.
    tools: Sequence[Any] = ()

    @property
    def name(self) -> str:
        """Its name in the graph; two middlewares of one name need different ones."""
        return type(self).__name__

    @property
    def tool_names(self) -> Collection[str]:
        """The tools that its options name: `create_agent` refuses one that the agent does not have."""
        return ()

    def before_agent(self, state: Any, runtime: Runtime[Any]) -> Any:
        """Run once before a run of the agent begins."""

    async def abefore_agent(self, state: Any, runtime: Runtime[Any]) -> Any:
        """Do the same, awaited."""

    def before_model(self, state: Any, runtime: Runtime[Any]) -> Any:
        """Run before each call of the model."""

    async def abefore_model(self, state: Any, runtime: Runtime[Any]) -> Any:
        """Do the same, awaited."""

    def after_model(self, state: Any, runtime: Runtime[Any]) -> Any:
        """Run after each call of the model, before its tool calls."""

    async def aafter_model(self, state: Any, runtime: Runtime[Any]) -> Any:
        """Do the same, awaited."""

    def after_agent(self, state: Any, runtime: Runtime[Any]) -> Any:
        """Run once when the agent is done."""

    async def aafter_agent(self, state: Any, runtime: Runtime[Any]) -> Any:
        """Do the same, awaited."""

    def wrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]
    ) -> ModelResponse | AIMessage | ExtendedModelResponse:
        """Make a call of the model, by calling the handler or otherwise."""
        return handler(request)

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse | AIMessage | ExtendedModelResponse:
        """Do the same, awaited."""
        return await handler(request)

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Make a call of a tool, by calling the handler or otherwise."""
        return handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """Do the same, awaited."""
        return await handler(request)

    def overrides(self, method: str) -> bool:
        """Return whether a method, such as "abefore_model", is its own."""
        return getattr(type(self), method) is not getattr(AgentMiddleware, method)


def hook_config(*, can_jump_to: Sequence[JumpTo] = ()) -> Callable[[HookT], HookT]:
    """Declare where a hook may jump to.

    Args:
        can_jump_to: Of "tools", "model" and "end". "end" leads out of the loop, to the `after_agent` hooks; from one of
            those to the next one.
    """

    def declare(hook: HookT) -> HookT:
        hook.__can_jump_to__ = tuple(can_jump_to)  # type: ignore[attr-defined]  # read by `jumps_of`
        return hook

    return declare


def jumps_of(middleware: AgentMiddleware, hook: str) -> tuple[JumpTo, ...]:
    """Return where a hook of a middleware may jump to, as either of its forms declares."""
    forms = (getattr(type(middleware), name) for name in (hook, f"a{hook}"))
    return tuple(dict.fromkeys(target for form in forms for target in getattr(form, "__can_jump_to__", ())))


def forms_of(
    middleware: AgentMiddleware, method: str
) -> tuple[Callable[..., Any] | None, Callable[..., Awaitable[Any]] | None]:
    """Return the sync and the async form of a hook or wrapper, each if the middleware has it.

    A coroutine function under the sync form's name is an async form.
    """
    call = getattr(middleware, method) if middleware.overrides(method) else None
    acall = getattr(middleware, f"a{method}") if middleware.overrides(f"a{method}") else None
    if call is not None and inspect.iscoroutinefunction(call):
        call, acall = None, acall or call
    return call, acall


def runs_on_any_loop(form: Callable[..., Any]) -> bool:
    """Return whether an async form of a hook or wrapper is one of ours: others may be written for asyncio alone."""
    return form.__module__.startswith("pregel.")


def is_awaited(call: Callable[..., Any] | None, acall: Callable[..., Any] | None) -> bool:
    """Return whether the async one of two forms is to be awaited on the event loop at hand."""
    from pregel.drivers.loops import trio_is_running  # noqa: PLC0415 - sync runs do not pay for anyio

    return acall is not None and (call is None or runs_on_any_loop(acall) or not trio_is_running())
