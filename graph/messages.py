"""Chat messages, and the reducer that keeps a list of them.

Messages are small frozen models. The message classes of langchain-core are accepted wherever these are and stay what
they are; langchain-core is never imported.

Ids are given once, by `add_messages.prepare`, when the task that made an update ends: the reducer itself is pure, so
applying the stored updates again gives the same list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from typing_extensions import TypedDict

from pregel.errors import InvalidUpdateError, nearest
from pregel.graph.blocks import audio_block, file_block, image_block, text_block
from pregel.graph.knownids import Memory
from pregel.graph.messageforms import coerce
from pregel.graph.messagetypes import (
    LASTING,
    AIMessage,
    AnyMessage,
    Content,
    ForeignMessage,
    HumanMessage,
    InvalidToolCall,
    Message,
    RemoveMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    is_foreign,
)
from pregel.graph.trimming import trim_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "REMOVE_ALL_MESSAGES",
    "AIMessage",
    "AnyMessage",
    "Content",
    "ForeignMessage",
    "HumanMessage",
    "InvalidToolCall",
    "Message",
    "MessagesState",
    "RemoveMessage",
    "SystemMessage",
    "ToolCall",
    "ToolMessage",
    "add_messages",
    "audio_block",
    "file_block",
    "image_block",
    "text_block",
    "trim_messages",
]

#: `RemoveMessage(id=REMOVE_ALL_MESSAGES)` removes everything that stands before it.
REMOVE_ALL_MESSAGES: Final = "__remove_all__"
MEMORY: Final = Memory()


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

    One more message on a long list costs little beside the copy of the list.

    Raises:
        InvalidUpdateError: See `add_messages`.
    """
    news = [message for update in updates for message in (update if type(update) is list else (update,))]
    if type(left) is not list or not all(type(message) in LASTING or is_foreign(message) for message in news):
        return joined(left, updates)
    try:
        known = MEMORY.ids_of(left)
    except (AttributeError, ValueError):  # a list that this reducer has not made in a graph
        return joined(left, updates)
    # Nothing is replaced and nothing removed, as nearly always: what was there needs no further look.
    if any(map(is_removal, news)) or not known.add(news):
        return joined(left, updates)
    MEMORY.keep(known)
    return [*left, *news]


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


add_messages.prepare = prepare  # type: ignore[attr-defined]  # read by the channel
add_messages.fold = fold  # type: ignore[attr-defined]  # as above


class MessagesState(TypedDict):
    """A state that is a conversation. Extend it with fields of your own."""

    messages: Annotated[list[AnyMessage], add_messages]
