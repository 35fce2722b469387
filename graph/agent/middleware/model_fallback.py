"""Middleware that asks another model when one fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pregel.graph.agent.handling import FAULTS_OF_THE_GRAPH
from pregel.graph.agent.middleware.base import AgentMiddleware
from pregel.graph.agent.middleware.own_model import resolved
from pregel.text import told

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pregel.graph.agent.requests import ModelRequest, ModelResponse

__all__ = ["ModelFallbackMiddleware"]


class ModelFallbackMiddleware(AgentMiddleware):
    """Asks other models, in their order, when the agent's fails.

    If all fail the last error is raised, with notes that tell the others'. Faults of the program, such as a
    `GraphDefinitionError`, are raised at once. With `ModelRetryMiddleware` listed before this one all models are tried
    again, listed after it each model on its own.

    Args:
        first_model: Who is asked next: a model, or a string such as "openai:gpt-5-mini".
        additional_models: Who is asked after that.

    Raises:
        GraphDefinitionError: One is no model.
    """

    def __init__(self, first_model: Any, *additional_models: Any) -> None:
        who = "ModelFallbackMiddleware"
        self._models = [resolved(model, who) for model in (first_model, *additional_models)]

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
        """Call one model after the other until one answers."""
        failures: list[Exception] = []
        for model in (request.model, *self._models):
            try:
                return handler(request.override(model=model))
            except FAULTS_OF_THE_GRAPH:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, the next model may answer
                failures.append(error)
        raise summed_up(failures)

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        """Do the same, awaited."""
        failures: list[Exception] = []
        for model in (request.model, *self._models):
            try:
                return await handler(request.override(model=model))
            except FAULTS_OF_THE_GRAPH:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, the next model may answer
                failures.append(error)
        raise summed_up(failures)


def summed_up(failures: list[Exception]) -> Exception:
    """Return the last error, with a note on each of those before it."""
    *others, last = failures
    for place, error in enumerate(others):
        who = "The agent's model" if place == 0 else f"Fallback model {place}"
        last.add_note(f"{who} failed before with {told(error)}")
    return last
