"""How middleware asks a model of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pregel.errors import GraphDefinitionError
from pregel.text import show

if TYPE_CHECKING:
    from pregel.graph.agent.requests import ModelRequest

__all__ = ["aask", "ask", "resolved"]


def resolved(model: Any, who: str) -> Any:
    """Return a model, which may be given as a string such as "openai:gpt-5-mini".

    Args:
        model: What was given.
        who: To whom, for messages.

    Raises:
        ModelError: A string that names none.
        GraphDefinitionError: It is no model.
    """
    if not isinstance(model, str):
        if isinstance(model, type) or not any(callable(getattr(model, form, None)) for form in ("invoke", "ainvoke")):
            raise GraphDefinitionError(
                f"{who} is given {show(model)} as its model: give a chat model (an object, not its class), or a name "
                'such as "openai:gpt-5"'
            )
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
    """Return the config of the run that a request belongs to, with a tag that asks that no tokens are told."""
    config = {} if request.runtime is None else request.runtime.config
    return {**config, "tags": [*(config.get("tags") or ()), "nostream"]}
