"""Where a conversation is cut in two, so that no tool call is separated from its answers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

from pregel.graph.agent.turns import last_turn, pending_calls
from pregel.graph.trimming import cuts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["cut_before", "first_fitting", "leading_system"]


def leading_system(messages: Sequence[Any]) -> int:
    """Return how many system messages a conversation begins with."""
    return next((place for place, message in enumerate(messages) if message.type != "system"), len(messages))


def first_fitting(messages: Sequence[Any], fits: Callable[[Sequence[Any]], bool]) -> int:
    """Return the place from which the longest end of the messages fits; the length if not even the last one does.

    Args:
        messages: The conversation.
        fits: Whether an end of it fits; each end of one that fits does too.
    """
    return bisect_left(range(len(messages)), 1, key=lambda place: fits(messages[place:]))


def cut_before(messages: Sequence[Any], place: int) -> int:
    """Return the last place, not after the given one, where a cut leaves calls and answers together.

    Calls of the model's last message that have no answer yet stay with what follows them, as the answers will.

    Args:
        messages: The conversation.
        place: The wished first message of the second part.
    """
    if pending_calls(messages):
        _, after = last_turn(messages)
        place = min(place, len(messages) - len(after) - 1)
    places = cuts(messages)
    return places[bisect_right(places, place) - 1]
