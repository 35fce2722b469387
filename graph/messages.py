"""Chat messages, and the reducer that keeps a list of them.

Messages are small frozen models. The message classes of langchain-core are accepted wherever these are and stay what
they are; langchain-core is never imported.

Ids are given once, by `add_messages.prepare`, when the task that made an update ends: the reducer itself is pure, so
applying the stored updates again gives the same list.
"""

from __future__ import annotations

import json
import sys
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NotRequired, Protocol, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import core_schema
from typing_extensions import TypedDict

from pregel.codec import register
from pregel.errors import InvalidUpdateError, nearest
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = [
    "REMOVE_ALL_MESSAGES",
    "AIMessage",
    "AnyMessage",
    "Content",
    "ForeignMessage",
    "HumanMessage",
    "Message",
    "MessagesState",
    "RemoveMessage",
    "SystemMessage",
    "ToolCall",
    "ToolMessage",
    "add_messages",
]

#: `RemoveMessage(id=REMOVE_ALL_MESSAGES)` removes everything that stands before it.
REMOVE_ALL_MESSAGES: Final = "__remove_all__"

#: A text, or a list of texts and content blocks (dicts with a "type").
Content: TypeAlias = str | list[str | dict[str, Any]]

PAIR = 2


class ToolCall(TypedDict):
    """A model's request to call a tool."""

    name: str
    args: dict[str, Any]
    #: What the answering `ToolMessage` gives as its `tool_call_id`.
    id: str | None
    type: NotRequired[Literal["tool_call"]]


ToolCall.__pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[attr-defined]


class Message(BaseModel):
    """What all messages share. The content may be given by position.

    Args:
        content: A text, or a list of texts and content blocks.
        id: The message's identity in a list; a message with the id of another replaces it.
        name: Who speaks, where that is more than the role.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    content: Content
    id: str | None = None
    name: str | None = None

    def __init__(self, content: Content | None = None, /, **fields: Any) -> None:
        if content is None:
            super().__init__(**fields)
        else:
            super().__init__(content=content, **fields)

    @property
    def text(self) -> str:
        """The content's text without the other content blocks."""
        if isinstance(self.content, str):
            return self.content
        parts = ({"type": "text", "text": part} if isinstance(part, str) else part for part in self.content)
        return "".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")


class HumanMessage(Message):
    """What the user says."""

    type: Literal["human"] = "human"

    if TYPE_CHECKING:  # for checkers, which see no __init__ that a model inherits

        def __init__(self, content: Content, *, id: str | None = None, name: str | None = None) -> None: ...  # noqa: A002


class SystemMessage(Message):
    """What the model is told about its part."""

    type: Literal["system"] = "system"

    if TYPE_CHECKING:

        def __init__(self, content: Content, *, id: str | None = None, name: str | None = None) -> None: ...  # noqa: A002


class AIMessage(Message):
    """What the model says.

    Args:
        tool_calls: The calls the model asks for.
        usage_metadata: What the answer cost, as the provider reports it.
    """

    type: Literal["ai"] = "ai"
    content: Content = ""
    tool_calls: list[ToolCall] = []
    usage_metadata: dict[str, Any] | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            content: Content = "",
            *,
            tool_calls: list[ToolCall] = ...,
            usage_metadata: dict[str, Any] | None = None,
            id: str | None = None,  # noqa: A002
            name: str | None = None,
        ) -> None: ...


class ToolMessage(Message):
    """What a tool answers.

    Args:
        tool_call_id: The id of the `ToolCall` that is answered.
        status: Whether the content is a result or an error.
        artifact: What the tool made beside the text for the model; never sent to one.
    """

    type: Literal["tool"] = "tool"
    tool_call_id: str
    status: Literal["success", "error"] = "success"
    artifact: Any = None

    if TYPE_CHECKING:

        def __init__(
            self,
            content: Content,
            *,
            tool_call_id: str,
            status: Literal["success", "error"] = "success",
            artifact: Any = None,
            id: str | None = None,  # noqa: A002
            name: str | None = None,
        ) -> None: ...


class RemoveMessage(BaseModel):
    """An update that removes a message; it is never stored.

    Args:
        id: The id of the message to remove, or `REMOVE_ALL_MESSAGES`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["remove"] = "remove"
    id: str


class ForeignMessage(Protocol):
    """What is known of a message that another library made: langchain-core's message classes."""

    @property
    def type(self) -> str:
        """The role: "human", "ai" and so on."""

    @property
    def content(self) -> Any:
        """A text or content blocks."""

    @property
    def id(self) -> str | None:
        """The message's identity."""


class ForeignSchema:
    """Tells pydantic how to validate a foreign message: by its class, and without touching it."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        """Return a schema that keeps the object."""
        return core_schema.no_info_after_validator_function(foreign, core_schema.any_schema())


def foreign(value: Any) -> Any:
    """Return the value if it is a message of another library.

    Raises:
        ValueError: It is none.
    """
    if is_foreign(value) and value.type != "remove":
        return value
    raise ValueError("not a message")


#: A message as the state holds it.
AnyMessage: TypeAlias = (
    HumanMessage | AIMessage | SystemMessage | ToolMessage | Annotated[ForeignMessage, ForeignSchema()]
)

# Known to every graph that stores messages, also where its schema does not name their classes. The tags are stored, and
# stay what they are whatever becomes of the modules.
for stored, tag in (
    (HumanMessage, "pregel:HumanMessage"),
    (AIMessage, "pregel:AIMessage"),
    (SystemMessage, "pregel:SystemMessage"),
    (ToolMessage, "pregel:ToolMessage"),
    (RemoveMessage, "pregel:RemoveMessage"),
):
    register(stored, tag=tag)

ROLES: Final[dict[str, type[Message | RemoveMessage]]] = {
    "human": HumanMessage,
    "user": HumanMessage,
    "ai": AIMessage,
    "assistant": AIMessage,
    "system": SystemMessage,
    "developer": SystemMessage,
    "tool": ToolMessage,
    "remove": RemoveMessage,
}

ID: Final = attrgetter("id")
LASTING: Final = frozenset({HumanMessage, AIMessage, SystemMessage, ToolMessage})
MINE: Final = frozenset(ROLES.values())  # looked at first: a model's isinstance is slow, and the list is long


def add_messages(left: Any, right: Any) -> list[AnyMessage]:
    """Add messages to a list of messages, in their order.

    - A message with the id of one in the list replaces it where it stands; any other is appended.
    - `RemoveMessage(id=...)` removes the message with that id, `REMOVE_ALL_MESSAGES` all that stand before it.

    Both arguments may be a message, a text (said by the user), a `(role, text)` pair, a dict with "role" (or "type")
    and "content", or a list of these. Messages of langchain-core stay what they are. A message without an id (or
    with an empty one) replaces nothing; in a graph all messages have one, which `add_messages.prepare` gives them.

    Returns:
        The new list.

    Raises:
        InvalidUpdateError: Something that is no message, or a `RemoveMessage` for an id that is not in the list.
    """
    return fold(left, [right])


def fold(left: Any, updates: Sequence[Any]) -> list[AnyMessage]:
    """Return what `add_messages` gives for one update after the other, in time linear in the messages.

    Raises:
        InvalidUpdateError: See `add_messages`.
    """
    news = [message for update in updates for message in (update if type(update) is list else (update,))]
    if type(left) is list and all(type(message) in LASTING or is_foreign(message) for message in news):
        try:
            known = set(map(ID, left))
        except AttributeError:  # a list that this reducer has not made
            return joined(left, updates)
        before = len(known)
        known.update(map(ID, news))
        # Nothing is replaced and nothing removed, as nearly always: what was there needs no further look.
        if before == len(left) and len(known) == before + len(news) and not any(map(is_removal, news)):
            return [*left, *news]
    return joined(left, updates)


def is_removal(message: Any) -> bool:
    """Return whether a message of another library removes one."""
    return bool(message.type == "remove")


def joined(left: Any, updates: Sequence[Any]) -> list[AnyMessage]:
    """Return what `add_messages` gives for one update after the other, whatever their form.

    Raises:
        InvalidUpdateError: See `add_messages`.
    """
    # By id, in the order of the list; a message without id has a key of its own.
    found: dict[Any, Any] = {}
    for update in ([] if left is None else left, *updates):
        for message in coerce(update):
            key = message.id
            if message.type != "remove":
                found[key or object()] = message
            elif key == REMOVE_ALL_MESSAGES:
                found.clear()
            elif found.pop(key, None) is None:
                known = [other for other in found if isinstance(other, str)]
                raise InvalidUpdateError(
                    f"RemoveMessage(id={key!r}): no message of the {len(found)} in the list has this id."
                    f"{nearest(key, known)} REMOVE_ALL_MESSAGES removes whatever there is."
                )
    return list(found.values())


def prepare(update: Any, new_id: Callable[[], str]) -> list[Any]:
    """Return an update of `add_messages` as a list of messages, each with an id.

    Args:
        update: Whatever `add_messages` takes; it is left alone.
        new_id: Gives the ids of those that have none.

    Raises:
        InvalidUpdateError: Something that is no message.
    """
    return [
        message if message.id or message.type == "remove" else message.model_copy(update={"id": new_id()})
        for message in coerce(update)
    ]


add_messages.prepare = prepare  # type: ignore[attr-defined]
add_messages.fold = fold  # type: ignore[attr-defined]


class MessagesState(TypedDict):
    """A state that is a conversation. Extend it with fields of your own."""

    messages: Annotated[list[AnyMessage], add_messages]


def is_foreign(value: Any) -> bool:
    """Return whether a value is a message of langchain-core: if so, its module is loaded."""
    module = sys.modules.get("langchain_core.messages.base")
    return module is not None and isinstance(value, getattr(module, "BaseMessage", ()))


def coerce(update: Any) -> Iterable[Any]:
    """Return an update as messages: a list is several, anything else is one."""
    if isinstance(update, list):
        return map(coerce_item, update)
    return (as_message(update),)


def coerce_item(value: Any) -> Any:
    """Return an item of a list as a message. Here a pair may be a list as well, as in JSON."""
    return as_message(tuple(value) if isinstance(value, list) else value)


def as_message(value: Any) -> Any:
    """Return a value as a message.

    Raises:
        InvalidUpdateError: It is nothing that can be one; the message says what can.
    """
    if type(value) in MINE or isinstance(value, Message | RemoveMessage) or is_foreign(value):
        return value
    if isinstance(value, str):
        return HumanMessage(value)
    if isinstance(value, tuple) and len(value) == PAIR and isinstance(value[0], str):
        return from_fields({"role": value[0], "content": value[1]}, value)
    if isinstance(value, dict):
        return from_fields(value, value)
    raise refusal(value, "it is no message")


def from_fields(fields: dict[str, Any], source: Any) -> Any:
    """Return the message that a dict describes.

    Args:
        fields: The dict; it is left alone.
        source: What was given, for error messages.

    Raises:
        InvalidUpdateError: The role is missing or unknown, or the fields do not fit it.
    """
    rest = dict(fields)
    given = [(key, rest.pop(key)) for key in ("role", "type") if key in rest]
    if not given:
        raise refusal(source, 'it has neither "role" nor "type"')
    for key, role in given:
        if not isinstance(role, str) or role not in ROLES:
            raise refusal(source, f"the {key} {role!r} is unknown", nearest(role, ROLES))
    kinds = {ROLES[role] for _, role in given}
    if len(kinds) > 1:
        raise refusal(source, f"role {given[0][1]!r} and type {given[1][1]!r} contradict each other")
    (kind,) = kinds
    if kind is not RemoveMessage and "content" not in rest:
        raise refusal(source, 'it has no "content"')
    if kind is AIMessage:
        if rest["content"] is None:  # as in OpenAI's form of an answer that only calls tools
            rest["content"] = ""
        if isinstance(rest.get("tool_calls"), list):
            rest["tool_calls"] = [plain_call(call) for call in rest["tool_calls"]]
    try:
        return kind(**{str(key): part for key, part in rest.items()})
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise refusal(source, f"its fields do not fit {kind.__name__}: {faults}") from None


def plain_call(call: Any) -> Any:
    """Return a tool call, which may be in OpenAI's form, as a `ToolCall`."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return call
    args = function.get("arguments")
    if isinstance(args, str):
        try:
            args = json.loads(args)
        except ValueError:
            return call  # the model refuses it and says where
    return {"name": function.get("name"), "args": args, "id": call.get("id"), "type": "tool_call"}


def refusal(value: Any, reason: str, hint: str = "") -> InvalidUpdateError:
    """Return the error for a value that can't be a message."""
    return InvalidUpdateError(
        f"add_messages can't take {show(value)}: {reason}.{hint} It takes a message, a text, "
        'a (role, text) pair, a dict with "role" and "content", or a list of these; '
        f"the roles are {', '.join(sorted(ROLES))}"
    )
