"""Middleware that calls the model again when a call fails."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import anyio

from pregel.graph.agent.middleware.backoff import Backoff, GivenUp, OnFailure, RetryOn, checked_tries, task_of
from pregel.graph.agent.middleware.base import AgentMiddleware
from pregel.graph.messages import AIMessage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pregel.graph.agent.requests import ModelRequest, ModelResponse

__all__ = ["ModelRetryMiddleware"]


class ModelRetryMiddleware(AgentMiddleware):
    """Calls the model again when a call fails.

    The waits between attempts grow; with jitter they depend on the task's id, so that a repeated run waits as long.
    Faults of the program, such as a `GraphDefinitionError`, are raised at once, whatever the options say.

    Args:
        max_retries: How many times more a call is made; 2 means three attempts.
        retry_on: The exceptions after which it is, as a class, a tuple, or a function that says whether.
        on_failure: After the last attempt "continue" ends with a message of the model's that tells the error, "error"
            raises it, a function makes the message's text of it. An exception that is not retried is treated so too.
        backoff_factor: What each wait is multiplied by to give the next; 0 for waits of one length.
        initial_delay: The first wait, in seconds.
        max_delay: No wait is longer, in seconds.
        jitter: Whether waits differ by up to a quarter from task to task.
        sleep: Waits under `invoke`.
        asleep: Waits under `ainvoke`.

    Raises:
        ValueError: An option has a value that it can't have.
    """

    def __init__(
        self,
        *,
        max_retries: int = 2,
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
        self._sleep = sleep
        self._asleep = asleep

    def wrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]
    ) -> ModelResponse | AIMessage:
        """Call the model until it answers or there are no attempts left."""
        return self._ended(self._tries.call(partial(handler, request), task_of(request.runtime), self._sleep))

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse | AIMessage:
        """Do the same, awaited."""
        return self._ended(await self._tries.acall(partial(handler, request), task_of(request.runtime), self._asleep))

    def _ended(self, result: ModelResponse | GivenUp) -> ModelResponse | AIMessage:
        """Return what a call gave, or the message in its place.

        Raises:
            Exception: The error, where the user wants it raised.
        """
        if isinstance(result, GivenUp):
            return AIMessage(self._tries.last_words(result, "The call of the model"))
        return result
