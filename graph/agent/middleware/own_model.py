"""How middleware asks a model of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pregel.graph.agent.requests import ModelRequest

__all__ = ["aask", "ask", "resolved"]


def resolved(model: Any) -> Any:
    """Return a model, which may be given as a string such as "openai:gpt-5-mini".

    Raises:
        ModelError: A string that names none.
    """
    if not isinstance(model, str):
        return model
    from pregel.graph.agent.models import named_model  # noqa: PLC0415 - where models are named

    return named_model(model)


def ask(request: ModelRequest) -> Any:
    """Return a model's message. Nobody reads its chunks: it is no answer of the agent's."""
    from pregel.graph.agent.models.calling import call_model  # noqa: PLC0415 - most middleware calls no model

    return call_model(request.model, request, config_of(request), None)


async def aask(request: ModelRequest) -> Any:
    """Do the same, awaited."""
    from pregel.graph.agent.models.calling import acall_model  # noqa: PLC0415 - as above

    return await acall_model(request.model, request, config_of(request), None)


def config_of(request: ModelRequest) -> Any:
    """Return the config of the run that a request belongs to."""
    return {} if request.runtime is None else request.runtime.config
