"""What a run of a session tells while it goes on, and what is done when it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pregel.errors import InvalidConfigError, InvalidInputError, ThreadBusyError
from pregel.graph.workflow.event import Event, shown
from pregel.graph.workflow.replying import request_event
from pregel.graph.workflow.running import EVENTS
from pregel.graph.workflow.shared import shared_writes
from pregel.reporter import INTERRUPT
from pregel.text import told

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pregel.graph.workflow.event import StoredEvent
    from pregel.graph.workflow.thread import Thread

__all__ = ["Follower", "Plan"]

#: Errors of runs that have not begun.
REFUSED: Final = (ThreadBusyError, InvalidInputError, InvalidConfigError)


class Plan(NamedTuple):
    """What a run begins with."""

    #: The input of the graph.
    given: Any
    config: dict[str, Any]
    #: The versions of the shared keys.
    versions: Mapping[str, int]


class Follower:
    """Follows one run: tells events when the superstep is committed that they belong to.

    Args:
        thread: The session's thread.
        plan: What the run begins with.
    """

    def __init__(self, thread: Thread, plan: Plan) -> None:
        self.thread = thread
        self.plan = plan
        #: All events of the session; None until the run has begun.
        self.events: Sequence[StoredEvent] | None = None
        #: How many there were when it began, and how many are told or need not be.
        self.first = self.seen = 0
        #: Whether the run is paused.
        self.is_paused = False
        #: What attempts have failed with, as their events say it.
        self.failed: set[tuple[str | None, str | None]] = set()

    def take(self, part: Mapping[str, Any]) -> list[Event]:
        """Return the events that a part of the stream brings."""
        data = part["data"]
        if part["type"] == "custom":
            event = data if isinstance(data, Event) else Event(content=data, partial=True, step=part["step"])
            if event.error_code is not None:
                self.failed.add((event.error_code, event.error_message))
            return [event]
        events: Sequence[StoredEvent] = data.get(EVENTS) or []
        self.is_paused = INTERRUPT in data
        if self.events is None:  # what runs before this one have told, and what the user has said now
            self.first = self.seen = len(events)
        self.events = events
        new = [
            shown(event, number)
            for number, event in enumerate(events[self.seen :], self.seen + 1)
            if event.path  # the user knows what he has said
        ]
        self.seen = len(events)
        return new

    def failures(self, error: Exception) -> Iterator[Event]:
        """Yield the events that say what the run ended with, where attempts have not told them. They have no state."""
        if isinstance(error, ExceptionGroup):
            for each in error.exceptions:
                yield from self.failures(each)
        elif not isinstance(error, REFUSED):
            code = type(error).__name__
            message = told(error).removeprefix(f"{code}: ")
            if (code, message) not in self.failed:
                yield Event(author=self.thread.app.graph.name, partial=True, error_code=code, error_message=message)

    def finish(self) -> list[Event]:
        """Publish what the run has changed, and return what it asks if it is paused."""
        self.publish()
        head = self.thread.head() if self.is_paused else None
        return [] if head is None else [request_event(each, head, self.thread.app.graph.name) for each in head.requests]

    def publish(self) -> None:
        """Publish what the run has changed, as far as it was committed.

        Raises:
            ScopeConflictError: Another session has changed a key since the run began.
        """
        if shared_writes((self.events or ())[self.first :]):
            head = self.thread.head()
            if head is not None:
                self.thread.publish(self.thread.log(head), self.plan.versions)

    def publish_after(self, error: BaseException) -> None:
        """Do so for a run that ends with an error, which goes on; a second one becomes a note of it."""
        try:
            self.publish()
        except Exception as second:  # noqa: BLE001 - whatever it is, it must not hide the first one
            error.add_note(f"and when the run's shared keys were published: {told(second)}")
