"""Models by name: "openai:gpt-5"."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from pregel.errors import nearest
from pregel.graph.agent.models.openai_chat import OpenAIChat
from pregel.graph.agent.models.protocol import ModelError

__all__ = ["named_model"]

OWN: Final = {"openai": OpenAIChat}


def named_model(name: str) -> Any:
    """Return the model that a name means.

    Args:
        name: "provider:model". "openai" is `OpenAIChat`; the other providers are those of the package `langchain`,
            where it is installed.

    Raises:
        ModelError: The name has another form, the provider is unknown, or its package is not installed.
    """
    provider, colon, model = name.partition(":")
    if not colon or not provider or not model:
        raise ModelError(f'the name of a model is "provider:model", such as "openai:gpt-5", not {name!r}')
    if provider in OWN:
        return OWN[provider](model)
    if find_spec("langchain") is None:
        raise ModelError(
            f"the provider {provider!r} of the model {name!r} is unknown: {', '.join(OWN)} is known here, and others "
            f"where the packages langchain and langchain-{provider} are installed.{nearest(provider, OWN)}"
        )
    try:
        return import_module("langchain.chat_models").init_chat_model(model, model_provider=provider)
    except (ValueError, ImportError) as error:
        raise ModelError(f"LangChain gives no model {name!r}: {error}.{nearest(provider, OWN)}") from error
