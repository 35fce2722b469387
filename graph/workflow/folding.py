"""The state that the events of a session lead to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pregel.channels.base import MISSING
from pregel.graph.workflow.event import Event, changes_of, writes_of
from pregel.graph.workflow.schema import channel_of, fields_of
from pregel.graph.workflow.shared import settled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pregel.graph.workflow.event import StoredEvent

__all__ = ["fold_events"]


def fold_events(events: Iterable[Event | StoredEvent], state_schema: Any = None) -> dict[str, Any]:
    """Return the state that events lead to: that of their session, by whole names.

    Args:
        events: All events of a session, as it shows them or as its thread keeps them. Partial ones change nothing.
        state_schema: The schema of the workflow, whose defaults the state starts with and whose reducers fold.
    """
    state: dict[str, Any] = {}
    if state_schema is not None:
        starts = {key: channel_of(state_schema, key).initial() for key in fields_of(state_schema)}  # type: ignore[union-attr]  # each field has one
        state = {key: start for key, start in starts.items() if start is not MISSING}
    for event in events:
        for key, update in changes_of(event) if isinstance(event, Event) else writes_of(event):
            channel = channel_of(state_schema, key)
            new = settled(update) if channel is None else channel.apply(state.get(key, MISSING), (update,))
            if new is MISSING:
                state.pop(key, None)
            else:
                state[key] = new
    return state
