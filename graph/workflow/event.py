"""What a workflow tells: events as users make and read them, and the light form in which runs keep them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, final

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer, model_validator
from pydantic.alias_generators import to_camel

from pregel.channels.base import Overwrite
from pregel.channels.keyed import DELETE
from pregel.codec import register

__all__ = [
    "NO_OUTPUT",
    "USER",
    "Event",
    "EventActions",
    "Output",
    "RequestInput",
    "StoredEvent",
    "changes_of",
    "shown",
    "writes_of",
]

#: The author of the event that holds the input of a run.
USER: Final = "user"


@final
class NoOutput:
    """The type of `NO_OUTPUT`, which says that a node gave no output (`None` is one)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NO_OUTPUT"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "NO_OUTPUT"


NO_OUTPUT: Final = NoOutput()


#: A misspelt argument of an event is an error.
CONFIG: Final = ConfigDict(
    alias_generator=to_camel,
    populate_by_name=True,
    arbitrary_types_allowed=True,
    extra="forbid",
    ser_json_bytes="base64",  # else bytes that are no text can't be told in JSON
)


#: What of `EventActions` can be given to an `Event` by itself.
SHORTHANDS: Final = {"state": "state_delta", "route": "route"}


class EventActions(BaseModel):
    """What an event does beside telling something."""

    model_config = CONFIG

    #: The keys of the state that were set, with their values; for a key with a reducer, with what was given to it.
    state_delta: dict[str, Any] = Field(default_factory=dict)
    #: The keys that were deleted.
    deleted: list[str] = Field(default_factory=list)
    #: The keys in `state_delta` with a reducer that was passed over: their values were replaced.
    replaced: list[str] = Field(default_factory=list)
    #: Which of the routed edges are taken; None for none of them.
    route: Any = None


class Event(BaseModel):
    """One thing that a node tells: an output, changes of the state, a route, a message, or several of these.

    A node returns or yields `Event(state={...}, output=..., route=..., content=...)`; the rest is filled in by the run
    that tells it. JSON with `by_alias=True` has camelCase names.

    Args:
        state: Keys of the state to set; the same as `actions=EventActions(state_delta=...)`.
        output: What the node gives to those after it. `None` is an output; leave it out to give none.
        route: Which of the routed edges from the node are taken: a value, or a list of values.
        content: A message, for whoever reads the events; `message=` is the same.
        partial: Tell this at once to those who read the events as they come, and keep it nowhere. It can't have state.
    """

    model_config = CONFIG

    #: The workflow whose node it was, or "user".
    author: str = ""
    #: "workflow@1/node@2" is the second run of the node in this run of the workflow.
    path: str = ""
    output: Any = NO_OUTPUT
    content: Any = None
    partial: bool = False
    error_code: str | None = None
    error_message: str | None = None
    actions: EventActions = Field(default_factory=EventActions)
    #: The superstep whose barrier committed it; 0 for the input.
    step: int | None = None
    #: The place among all events of the session, from 1; None for a partial event.
    sequence: int | None = None

    @model_validator(mode="before")
    @classmethod
    def take_shorthands(cls, given: Any) -> Any:
        """Put `state`, `route` and `message` where they belong."""
        if not isinstance(given, Mapping):
            return given
        values = dict(given)
        short = {name: values.pop(key) for key, name in SHORTHANDS.items() if key in values}
        if short:
            actions = values.get("actions") or {}
            if isinstance(actions, EventActions):  # the values in it stay the objects that they are
                actions = {name: getattr(actions, name) for name in actions.model_fields_set}
            for name in short:
                if name in actions or to_camel(name) in actions:
                    raise ValueError(f"{name} of an event is given twice, by itself and in actions: give one of them")
            values["actions"] = {**actions, **short}
        if "message" in values:
            if "content" in values:
                raise ValueError("message and content of an event are the same: give one of them")
            values["content"] = values.pop("message")
        return values

    @model_serializer(mode="wrap")
    def leave_out_no_output(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Serialise without an output where there is none."""
        if self.output is not NO_OUTPUT:
            return handler(self)  # type: ignore[no-any-return]
        values: dict[str, Any] = handler(self.model_copy(update={"output": None}))
        values.pop("output", None)
        return values

    @property
    def has_output(self) -> bool:
        """Whether there is an output; None is one."""
        return self.output is not NO_OUTPUT


@dataclass(frozen=True, slots=True)
class RequestInput:
    """Asks whoever runs the workflow: returned or yielded by a node, it pauses the node until there is a reply.

    A function that returns it does not run again: the reply is its output. A generator that yields it runs again, and
    `reply = yield RequestInput(...)` goes on with the reply.

    Args:
        message: What to ask.
        payload: Data that belongs to the question; anything that can be stored.
        interrupt_id: What `ctx.resume_inputs` holds the reply by, and what it is given by where several things are
            asked; by default "input", and for what the node asks after that "input_2" and so on.
        response_schema: The type that the reply must have, as pydantic understands it: a builtin type, a `Literal`, a
            list, dict or union of these, or a class that can be stored.
    """

    message: str = ""
    payload: Any = None
    interrupt_id: str | None = None
    response_schema: Any = field(default=None, kw_only=True)


class Output(NamedTuple):
    """What is known of the last run of a node."""

    #: The superstep in which it ran, and the turn: how many inputs the thread had got.
    step: int
    turn: int
    #: How many times it had run in that turn.
    run: int
    value: Any
    #: The names of the nodes that it led to.
    to: tuple[str, ...]


class StoredEvent(NamedTuple):
    """An event as the field `@events` keeps it."""

    author: str
    path: str
    step: int
    turn: int
    output: Any
    delta: Mapping[str, Any]
    deleted: tuple[str, ...] = ()
    #: The keys in `delta` whose reducers were passed over.
    replaced: tuple[str, ...] = ()
    route: Any = None
    content: Any = None
    error_code: str | None = None
    error_message: str | None = None


def shown(event: StoredEvent, sequence: int | None = None) -> Event:
    """Return an event as users read it.

    Args:
        event: The event.
        sequence: Its place among the events of the session, from 1.
    """
    return Event.model_construct(
        author=event.author,
        path=event.path,
        output=event.output,
        content=event.content,
        partial=False,
        error_code=event.error_code,
        error_message=event.error_message,
        actions=EventActions.model_construct(
            state_delta=dict(event.delta),
            deleted=list(event.deleted),
            replaced=list(event.replaced),
            route=event.route,
        ),
        step=event.step,
        sequence=sequence,
    )


def writes_of(event: StoredEvent) -> Iterator[tuple[str, Any]]:
    """Yield the writes to the state that an event tells of."""
    for key, value in event.delta.items():
        yield key, Overwrite(value) if key in event.replaced else value
    for key in event.deleted:
        yield key, DELETE


def changes_of(event: Event) -> Iterator[tuple[str, Any]]:
    """Yield the changes of the state that an event tells of."""
    actions = event.actions
    for key, value in actions.state_delta.items():
        yield key, Overwrite(value) if key in actions.replaced else value
    for key in actions.deleted:
        yield key, DELETE


register(NoOutput, tag="pregel.workflow:NoOutput", encode=lambda _: None, decode=lambda _: NO_OUTPUT)
register(Output, tag="pregel.workflow:Output")
register(StoredEvent, tag="pregel.workflow:StoredEvent")
