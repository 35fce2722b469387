"""About how many tokens messages take."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from pregel.graph.agent.middleware.reading import calls_of

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["count_tokens_approximately", "model_limit"]

#: What English text comes to with the usual tokenisers, and what a message costs beside its text.
CHARACTERS_PER_TOKEN: Final = 4
PER_MESSAGE: Final = 3


def count_tokens_approximately(messages: Iterable[Any]) -> int:
    """Return about how many tokens messages take: a quarter of their characters, and three for each.

    Tool calls and content blocks count by their JSON.
    """
    return sum(PER_MESSAGE - (-characters(message) // CHARACTERS_PER_TOKEN) for message in messages)


def characters(message: Any) -> int:
    """Return how many characters of a message a model reads."""
    size = len(message.type) + len(message.name or "") + len(getattr(message, "tool_call_id", None) or "")
    content = message.content
    parts = [content] if isinstance(content, str) else content
    size += sum(len(part) if isinstance(part, str) else written(part) for part in parts)
    return size + sum(written([call["name"], call["args"], call["id"]]) for call in calls_of(message))


def written(value: Any) -> int:
    """Return the length of a value's JSON."""
    return len(json.dumps(value, default=str, ensure_ascii=False))


def model_limit(model: Any, who: str) -> int:
    """Return how many tokens a model reads at most, as the `profile` of a model of LangChain says.

    Raises:
        ValueError: It does not say.
    """
    profile = getattr(model, "profile", None)
    limit = profile.get("max_input_tokens") if isinstance(profile, dict) else None
    if not isinstance(limit, int):
        raise ValueError(  # noqa: TRY004 - the size that was given is wrong, not a type
            f"{who} is given a fraction of what its model reads, and the {type(model).__name__} has no "
            "profile['max_input_tokens']: give ('tokens', n)"
        )
    return limit
