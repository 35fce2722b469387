"""What one run of a node tells: its output, its changes of the state, its route, as events in the order of telling."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pregel.channels.base import MISSING, Overwrite
from pregel.channels.keyed import DELETE
from pregel.graph.workflow.errors import WorkflowDataError
from pregel.graph.workflow.event import NO_OUTPUT, Event, StoredEvent, writes_of
from pregel.graph.workflow.routes import plain
from pregel.graph.workflow.state import Delta
from pregel.mutation import differs
from pregel.runtime import is_read
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pregel.graph.workflow.parts import Part
    from pregel.graph.workflow.state import StateAccess, TaskState
    from pregel.types import StreamWriter

__all__ = ["Place", "Telling"]

NOTHING: Final = Delta({})
#: Whether a key is kept nowhere.
IS_TEMP: Final = re.compile("temp:").match


class Place:
    """Where and when a node runs.

    Args:
        author: The workflow.
        node: The node.
        path: "workflow@1/node@2" for its second run in this turn.
        step: The superstep.
        turn: How many inputs the thread has got.
        attempt: The number of the attempt, from 1.
        writer: Takes what is told at once.
    """

    __slots__ = ("attempt", "author", "node", "path", "step", "turn", "writer")

    def __init__(
        self, author: str, node: str, path: str, step: int, turn: int, attempt: int, writer: StreamWriter
    ) -> None:
        self.author = author
        self.node = node
        self.path = path
        self.step = step
        self.turn = turn
        self.attempt = attempt
        self.writer = writer

    @property
    def where(self) -> str:
        """How messages name the node."""
        return f"node {self.node!r} of workflow {self.author!r}"

    def inside(self, name: str) -> Place:
        """Return the place of something that runs inside this node."""
        return Place(self.author, name, f"{self.path}/{name}", self.step, self.turn, self.attempt, self.writer)


class Telling:
    """Collects what a node tells.

    Args:
        place: Where and when it runs.
        view: What all tasks of the superstep see of the state.
        access: How the state is read and written.
    """

    __slots__ = (
        "_access",
        "_has_parts",
        "_heard",
        "_state",
        "_untold_route",
        "_writers",
        "events",
        "kept",
        "output",
        "parts",
        "place",
        "requests",
        "route",
        "view",
    )

    def __init__(self, place: Place, view: Mapping[str, Any], access: StateAccess) -> None:
        self.place = place
        #: What all tasks of the superstep see of the state.
        self.view = view
        self._access = access
        self._state: TaskState | None = None
        self._untold_route = self._has_parts = False
        # How many events there were when the last reply was heard.
        self._heard = 0
        self.output: Any = NO_OUTPUT
        self.route: Any = None
        #: Events, and the lists of those of what runs inside the node, in the order of beginning.
        self.events: list[StoredEvent | list[StoredEvent]] = []
        #: For what runs inside a node: the events that the node has taken of it.
        self.kept: list[StoredEvent] = []
        #: What runs inside the node, in the order of beginning.
        self.parts: list[Part] = []
        #: What the node has asked in this run, by `interrupt_id`.
        self.requests: set[str] = set()
        # The part that has changed a key of the state last.
        self._writers: dict[str, str] = {}

    @property
    def state(self) -> TaskState:
        """The state as the node sees and changes it."""
        if self._state is None:
            self._state = self._access.open(self.view)
        return self._state

    @property
    def writes(self) -> list[tuple[str, Any]]:
        """The writes to the state so far, in the order in which the events tell of them."""
        if self._state is None:
            return []
        writes = self._state.writes
        if not self._writers:
            return writes
        return [
            *(write for event in self.flat() for write in writes_of(event)),
            *((key, value) for key, value in writes if key.startswith("temp:")),
        ]

    def forget(self) -> None:
        """Begin anew: what was told so far was told by an attempt that failed."""
        self._state = None
        self._untold_route = self._has_parts = False
        self._heard = 0
        self._writers = {}
        self.output, self.route = NO_OUTPUT, None
        self.events, self.parts, self.requests = [], [], set()

    def numbered(self, name: str) -> str:
        """Return the name of the next part of a name: "work@2"."""
        return f"{name}@{1 + sum(part.name == name for part in self.parts)}"

    def plain_delta(self) -> dict[str, Any] | None:
        """Return what was changed, where keys were set and nothing else was told; else None."""
        if self.events or self.parts or self.route is not None or self.output is not NO_OUTPUT:
            return None
        if self._state is None:
            return {}
        writes = self._state.writes
        if self._access.folding:
            return None if writes else {}
        for key, value in writes:
            if value is DELETE or type(value) is Overwrite or key.startswith("temp:"):
                return None
        return dict(writes)

    def choose(self, route: Any) -> None:
        """Take a route; the last one that is taken counts."""
        self.route = plain(route)
        self._untold_route = route is not None

    def give(self, output: Any) -> None:
        """Take the output.

        Raises:
            WorkflowDataError: There is one.
        """
        if self.output is not NO_OUTPUT:
            raise WorkflowDataError(
                f"{self.place.where}: the output is set already, to {show(self.output)}, and a node gives one at most. "
                f"Now it gives {show(output)}: give both in one value, or yield Event(content=...) to tell something"
            )
        self.output = output

    def take(self, item: Any) -> None:
        """Take what a node returned or yielded, which is no question: an event, or an output.

        Raises:
            WorkflowDataError: It can't be told.
        """
        if isinstance(item, Event):
            self.take_event(item)
        else:
            self.give(item)
            self.tell(output=item)

    def take_event(self, event: Event) -> None:
        """Take an event.

        Raises:
            WorkflowDataError: A partial one that does more than to tell something, or a second output.
            StateSchemaError: A key or value that the state does not take.
        """
        actions = event.actions
        if event.partial:
            if actions.state_delta or actions.deleted or event.has_output or actions.route is not None:
                raise WorkflowDataError(
                    f"{self.place.where} tells a partial event with a state, an output or a route. A partial event is "
                    "kept nowhere: it has content only. Tell the rest in an event that is not partial"
                )
            place = self.place
            place.writer(
                event.model_copy(
                    update={"author": event.author or place.author, "path": place.path, "step": place.step}
                )
            )
            return
        if actions.state_delta:
            names = self._access.names
            replaced = {names.get(key, key) for key in actions.replaced}
            delta = {names.get(key, key): value for key, value in actions.state_delta.items()}
            self.state.update({key: Overwrite(value) if key in replaced else value for key, value in delta.items()})
        for key in actions.deleted:
            del self.state[key]
        if actions.route is not None:
            self.choose(actions.route)
        if event.has_output:
            self.give(event.output)
        self.tell(event.author, event.output, event.content, event.error_code, event.error_message)

    def tell(
        self,
        author: str = "",
        output: Any = NO_OUTPUT,
        content: Any = None,
        error_code: str | None = None,
        error_message: str | None = None,
    ) -> None:
        """Add an event with what has changed since the last one, if there is anything to tell."""
        deltas = self._state.untold() if self._state is not None else []
        place = self.place
        by = author or place.author
        for delta in deltas[:-1]:
            self.events.append(stored(by, place, NO_OUTPUT, delta))
        last = deltas[-1] if deltas else NOTHING
        route = self.route if self._untold_route else None
        self._untold_route = False
        if (
            output is not NO_OUTPUT
            or deltas
            or not (route is None and content is None and error_code is None and error_message is None)
        ):
            self.events.append(stored(by, place, output, last, route, content, error_code, error_message))

    @property
    def has_output(self) -> bool:
        """Whether there is an output; None is one."""
        return self.output is not NO_OUTPUT

    def take_reply(self, reply: Any) -> None:
        """Take the reply to the node's question as its output."""
        self.give(reply)
        self.tell(output=reply)

    def hear(self) -> None:
        """Note that the node goes on with a reply: what it told before was told ahead when it asked."""
        self._heard = len(self.events)

    def tell_ahead(self) -> None:
        """Tell those who read along what the node says before it asks, as partial events: it is kept with the rest."""
        writer = self.place.writer
        if not is_read(writer):
            return
        for event in flat(self.events[self._heard :]):
            if event.content is not None:
                writer(
                    Event(author=event.author, path=event.path, step=event.step, content=event.content, partial=True)
                )

    def take_told(self, event: StoredEvent) -> None:
        """Take an event that was told already, with its changes of the state."""
        self.write(writes_of(event))
        self.events.append(event)

    def restore(self, events: Iterable[StoredEvent]) -> None:
        """Take what the node had told before it asked."""
        for event in events:
            self.take_told(event)
            if event.route is not None:
                self.route = event.route

    def write(self, writes: Iterable[tuple[str, Any]]) -> None:
        """Make changes of the state that events tell of already, after telling those that none does yet."""
        self.tell()
        for key, value in writes:
            if value is not DELETE:
                self.state[key] = value
            elif key in self.state:
                del self.state[key]
        if self._state is not None:
            self._state.untold()

    def begin_part(self, name: str) -> Telling:
        """Return the telling of a part that runs inside the node, on the state as it is now.

        Its events stand where it began, which is here.
        """
        self.tell()
        view = self.view if self._state is None else self._state.to_dict()
        part = Telling(self.place.inside(name), view, self._access)
        self.events.append(part.kept)
        self._has_parts = True
        return part

    def end_part(self, part: Telling, events: Sequence[StoredEvent]) -> None:
        """Take what a part has told.

        Raises:
            WorkflowDataError: It wrote a key that has got another value since it began.
        """
        writes = [(event.path, *write) for event in events for write in writes_of(event)]
        for path, key, value in writes:
            if key not in self._access.folding:
                self.check_unchanged(part, path, key, value)
        for path, key, _ in writes:
            self._writers[key] = path
        self.write(write for _, *write in writes)  # type: ignore[misc]  # a pair each
        part.kept.extend(events)

    def check_unchanged(self, part: Telling, path: str, key: str, value: Any) -> None:
        """Check that a key is as it was when a part began, or was changed to the same value.

        Raises:
            WorkflowDataError: It is not.
        """
        before, now = part.view.get(key, MISSING), self.state.get(key, MISSING)
        by = self._writers.get(key, self.place.path)
        new = MISSING if value is DELETE else value
        if before is not now and differs(now, new):
            raise WorkflowDataError(
                f"{self.place.where}: {path!r} sets the key {key!r} of the state to {show(value)}, and {by!r} has set "
                f"it to {show(now)} meanwhile. Give the key a reducer, let one run after the other, or let them give "
                "outputs"
            )

    def told(self) -> list[StoredEvent]:
        """Return all events, those of what ran inside the node where it began."""
        return [*self.flat()] if self._has_parts else self.events  # type: ignore[return-value]  # no lists in it

    def flat(self) -> Iterator[StoredEvent]:
        """Yield all events."""
        return flat(self.events)


def flat(events: Iterable[StoredEvent | list[StoredEvent]]) -> Iterator[StoredEvent]:
    """Yield events, those of lists one by one."""
    for event in events:
        if isinstance(event, list):
            yield from event
        else:
            yield event


def stored(
    author: str,
    place: Place,
    output: Any,
    delta: Delta,
    route: Any = None,
    content: Any = None,
    error_code: str | None = None,
    error_message: str | None = None,
) -> StoredEvent:
    """Return an event as it is kept; `temp:` keys are in none."""
    values, deleted = delta.values, delta.deleted
    if any(map(IS_TEMP, values)) or any(map(IS_TEMP, deleted)):
        values = {key: value for key, value in values.items() if not key.startswith("temp:")}
        deleted = tuple(key for key in deleted if not key.startswith("temp:"))
    return StoredEvent(
        author,
        place.path,
        place.step,
        place.turn,
        output,
        values,
        deleted,
        delta.replaced,
        route,
        content,
        error_code,
        error_message,
    )
