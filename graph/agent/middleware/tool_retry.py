"""Middleware that calls a tool again when a call fails."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from pregel.graph.agent.middleware.backoff import Backoff, GivenUp, OnFailure, RetryOn, checked_tries, task_of
from pregel.graph.agent.middleware.base import AgentMiddleware
from pregel.graph.agent.middleware.reading import tool_name
from pregel.graph.agent.turns import answer_to

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from pregel.graph.agent.requests import ToolCallRequest
    from pregel.graph.messages import ToolMessage
    from pregel.types import Command

__all__ = ["ToolRetryMiddleware"]


class ToolRetryMiddleware(AgentMiddleware):
    """Calls a tool again when it raises. A tool that asks something by `interrupt` does not fail, and waits.

    What a failed attempt did outside is not undone: use it for tools whose effects may happen twice. Faults of the
    program, such as a missing store, are raised at once, whatever the options say.

    Args:
        max_retries: How many times more a call is made; 2 means three attempts.
        tools: The tools it is for, or their names; None for all.
        retry_on: The exceptions after which a call is made again, as a class, a tuple, or a function that says whether.
        on_failure: After the last attempt "continue" answers the call with the error, as a message for the model;
            "error" raises it; a function makes the message's text of it. An exception that is not retried is treated
            so too.
        backoff_factor: What each wait is multiplied by to give the next; 0 for waits of one length.
        initial_delay: The first wait, in seconds.
        max_delay: No wait is longer, in seconds.
        jitter: Whether waits differ by up to a quarter from call to call.
        sleep: Waits under `invoke`.
        asleep: Waits under `ainvoke`.

    Raises:
        ValueError: An option has a value that it can't have.
    """

    def __init__(
        self,
        *,
        max_retries: int = 2,
        tools: Sequence[Any] | None = None,
        retry_on: RetryOn = Exception,
        on_failure: OnFailure = "continue",
        backoff_factor: float = 2.0,
        initial_delay: float = 1.0,
        max_delay: float = 60.0,
        jitter: bool = True,
        sleep: Callable[[float], None] = time.sleep,
        asleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        backoff = Backoff(initial_delay, backoff_factor, max_delay, jitter)
        self._tries = checked_tries(type(self).__name__, max_retries, retry_on, on_failure, backoff)
        if isinstance(tools, str):
            raise ValueError(f"ToolRetryMiddleware(tools={tools!r}): give a list of tools or of their names")  # noqa: TRY004 - as for the other options
        self._only = None if tools is None else frozenset(map(tool_name, tools))
        self._sleep = sleep
        self._asleep = asleep

    @property
    def tool_names(self) -> Collection[str]:
        """See `AgentMiddleware`."""
        return self._only or ()

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Call the tool until it answers or there are no attempts left."""
        if not self._concerns(request):
            return handler(request)
        return self._ended(request, self._tries.call(partial(handler, request), caller(request), self._sleep))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """Do the same, awaited."""
        if not self._concerns(request):
            return await handler(request)
        return self._ended(request, await self._tries.acall(partial(handler, request), caller(request), self._asleep))

    def _concerns(self, request: ToolCallRequest) -> bool:
        """Return whether a call is of a tool that this is for."""
        return self._only is None or request.tool_call["name"] in self._only

    def _ended(
        self, request: ToolCallRequest, result: ToolMessage | Command[Any] | GivenUp
    ) -> ToolMessage | Command[Any]:
        """Return what a call gave, or the answer in its place.

        Raises:
            Exception: The error, where the user wants it raised.
        """
        if isinstance(result, GivenUp):
            words = self._tries.last_words(result, f"Tool {request.tool_call['name']!r}")
            return answer_to(request.tool_call, words, error=True)
        return result


def caller(request: ToolCallRequest) -> str:
    """Return who makes a call, so that calls beside each other wait differently."""
    return f"{task_of(request.runtime)}|{request.tool_call['id']}"
