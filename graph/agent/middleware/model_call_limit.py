"""Middleware that limits how often the model is called."""

from __future__ import annotations

from operator import ge
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NotRequired

from pregel.errors import PregelError
from pregel.graph.agent.middleware.base import AgentMiddleware, hook_config
from pregel.graph.agent.middleware.limits import checked_limits, told_limits
from pregel.graph.agent.requests import ExtendedModelResponse, ModelRequest, ModelResponse
from pregel.graph.agent.state import AgentState
from pregel.graph.messages import AIMessage
from pregel.graph.schema import PrivateStateAttr
from pregel.types import Command

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pregel.runtime import Runtime

__all__ = ["ModelCallLimitExceededError", "ModelCallLimitMiddleware", "ModelCallLimitState"]


class ModelCallLimitState(AgentState[Any]):
    """How often the model was called."""

    model_call_limit_thread_count: NotRequired[Annotated[int, PrivateStateAttr]]
    #: Kept in the state as well, so that a run which is resumed counts on.
    model_call_limit_run_count: NotRequired[Annotated[int, PrivateStateAttr]]


class ModelCallLimitExceededError(PregelError, RuntimeError):
    """The model was called as often as it may be. It was not called once more."""

    def __init__(self, thread_count: int, run_count: int, thread_limit: int | None, run_limit: int | None) -> None:
        reached = told_limits((thread_count, thread_limit), (run_count, run_limit), ge)
        super().__init__(f"The limit of model calls is reached: {reached}.")
        self.thread_count = thread_count
        self.run_count = run_count
        self.thread_limit = thread_limit
        self.run_limit = run_limit


class ModelCallLimitMiddleware(AgentMiddleware):
    """Limits how often the model is called.

    A call counts when the model node has ended, once also where other middleware made it several times. A run that
    was interrupted and goes on is the same run. A `before_agent` hook of middleware listed before that jumps passes by
    the beginning of a run; list it after this one.

    Args:
        thread_limit: How many calls a thread may have in all its runs; None for any number.
        run_limit: How many calls one run may have; None for any number.
        exit_behavior: At the limit "end" ends the run with a message of the model's that says so, "error" raises
            `ModelCallLimitExceededError`.

    Raises:
        ValueError: No limit is given, or an option has a value that it can't have.
    """

    state_schema: ClassVar[Any] = ModelCallLimitState

    def __init__(
        self,
        *,
        thread_limit: int | None = None,
        run_limit: int | None = None,
        exit_behavior: Literal["end", "error"] = "end",
    ) -> None:
        checked_limits("ModelCallLimitMiddleware", thread_limit, run_limit, exit_behavior, ("end", "error"))
        self._thread_limit = thread_limit
        self._run_limit = run_limit
        self._raises = exit_behavior == "error"

    def overrides(self, method: str) -> bool:
        """Return whether it has a method: without a limit for a run nothing happens at the beginning of one."""
        return super().overrides(method) and (method != "before_agent" or self._run_limit is not None)

    def before_agent(self, state: Any, runtime: Runtime[Any]) -> Any:  # noqa: ARG002 - the form of a hook
        """Begin to count the calls of a run."""
        return {"model_call_limit_run_count": 0}

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: Any, runtime: Runtime[Any]) -> Any:  # noqa: ARG002 - the form of a hook
        """End the run, or raise, where a limit is reached.

        Raises:
            ModelCallLimitExceededError: One is, and the user wants it raised.
        """
        thread_count, run_count = counts(state)
        if not (reached(thread_count, self._thread_limit) or reached(run_count, self._run_limit)):
            return None
        error = ModelCallLimitExceededError(thread_count, run_count, self._thread_limit, self._run_limit)
        if self._raises:
            raise error
        # Said outright that there is none: an agent with a `response_format` does not end without by accident.
        return {"jump_to": "end", "messages": [AIMessage(str(error))], "structured_response": None}

    def wrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]
    ) -> ExtendedModelResponse:
        """Count the call. Not in a hook: another's jump could pass it by."""
        return counted(request, handler(request))

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ExtendedModelResponse:
        """Do the same, awaited."""
        return counted(request, await handler(request))


def counts(state: Any) -> tuple[int, int]:
    """Return how many calls the thread and the run have had."""
    return state.get("model_call_limit_thread_count", 0), state.get("model_call_limit_run_count", 0)


def counted(request: ModelRequest, response: ModelResponse) -> ExtendedModelResponse:
    """Return a response with the counts after it."""
    thread_count, run_count = counts(request.state)
    update = {"model_call_limit_thread_count": thread_count + 1, "model_call_limit_run_count": run_count + 1}
    return ExtendedModelResponse(response, Command(update=update))


def reached(count: int, limit: int | None) -> bool:
    """Return whether there may be no further call."""
    return limit is not None and count >= limit
