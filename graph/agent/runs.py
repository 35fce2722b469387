"""Where a run of an agent begins, as its nodes see it.

Theory of operation. A node can't see whether it is the first one after an input. So each node of an agent that is to
give a structured response notes that it ran, in a field that the engine clears at a barrier which does not write it:
the input's is such a barrier. Whoever finds no note is the first one of a run, and forgets what the run before it left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pregel.channels.base import MISSING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["ANSWER", "ONGOING", "TRIES", "begins", "noted", "tries_in"]

#: The fields: the answer; whether a node of the agent ran in the superstep before; how often the model was told to
#: correct its answer in this run.
ANSWER: Final = "structured_response"
ONGOING: Final = "agent_run_ongoing"
TRIES: Final = "structured_response_tries"


def begins(state: Mapping[str, Any]) -> bool:
    """Return whether a run begins, where its agent is to give a structured response."""
    return not state.get(ONGOING)


def tries_in(state: Mapping[str, Any]) -> int:
    """Return how often the model was told to correct its answer in this run."""
    return 0 if begins(state) else state.get(TRIES, 0)


def noted(
    state: Mapping[str, Any], written: Collection[str], *, has_form: bool, may_begin: bool = False
) -> dict[str, Any]:
    """Return what a node of an agent that has these fields adds to its updates.

    Args:
        state: The state of the last barrier.
        written: The fields that the node writes itself.
        has_form: Whether the agent has a `response_format`; else a wrapper may ask for a form.
        may_begin: Whether the node may be the first one of a run.
    """
    if not (has_form or TRIES in written or state.get(TRIES) or state.get(ANSWER) is not None):
        return {}
    update: dict[str, Any] = {ONGOING: True}
    if may_begin and begins(state):
        if state.get(ANSWER, MISSING if has_form else None) is not None:
            update[ANSWER] = None
        if state.get(TRIES):
            update[TRIES] = 0
    return {name: value for name, value in update.items() if name not in written}
