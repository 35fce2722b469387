"""Which ids a long list of messages has, without reading all of them again each time one is added.

A conversation grows by a message or two a superstep, and for each the reducer asks which ids are in the list already.
The answer of the last time is kept, with the messages that it was read from: for a list that begins with those very
messages it still holds. Only messages that can't change are kept, so what is kept never makes a difference to a result.
"""

from __future__ import annotations

from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from pregel.graph.messagetypes import LASTING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["KnownIds", "Memory"]

ID: Final = attrgetter("id")
#: A list of fewer messages is read again.
LONG = 64
#: How many conversations are remembered; each keeps its messages alive until others take its place.
CONVERSATIONS = 8


class KnownIds:
    """The ids of a list of messages, all different. It belongs to one call at a time.

    Args:
        messages: The list; it is left alone.

    Raises:
        AttributeError: Something in the list has no id.
        ValueError: Two messages have one id.
    """

    __slots__ = ("ids", "lasting", "messages")

    def __init__(self, messages: list[Any]) -> None:
        #: How many messages, from the first, are known to be of classes that can't change.
        self.lasting = 0
        self.messages = messages.copy()
        self.ids = set(map(ID, self.messages))
        if len(self.ids) != len(self.messages):
            raise ValueError("two messages have one id")

    def may_describe(self, messages: list[Any]) -> bool:
        """Return whether a list that is not empty looks like the one that was read, or like the beginning of it."""
        size, mine = len(messages), self.messages
        return size <= len(mine) and mine[size - 1] is messages[-1] and mine[0] is messages[0]

    def describes(self, messages: list[Any]) -> bool:
        """Return whether these are the ids of a list that looks so, after forgetting the messages that came after it.

        A list is added to twice where a path looks ahead and the barrier comes after it.
        """
        size, mine = len(messages), self.messages
        if size < len(mine):
            self.ids.difference_update(map(ID, mine[size:]))
            del mine[size:]
            self.lasting = min(self.lasting, size)
        try:
            return mine == messages  # by identity, and fast, unless the list was changed
        except Exception:  # noqa: BLE001 - messages may hold things that can't be compared
            return False

    def add(self, news: Sequence[Any]) -> bool:
        """Add messages if all their ids are new, and return whether they are."""
        more = set(map(ID, news))
        if len(more) != len(news) or not more.isdisjoint(self.ids):
            return False
        self.ids |= more
        self.messages += news
        return True


class Memory:
    """The ids of the conversations that grew last. Safe to use from several threads."""

    __slots__ = ("conversations", "lock")

    def __init__(self) -> None:
        self.lock = Lock()
        #: Each belongs to nobody; the newest is the last.
        self.conversations: list[KnownIds] = []

    def ids_of(self, messages: list[Any]) -> KnownIds:
        """Return the ids of a list, for the caller alone until it gives them back by `keep`.

        Raises:
            AttributeError: Something in the list has no id.
            ValueError: Two messages have one id.
        """
        known = self.take(messages) if len(messages) >= LONG else None
        return known if known is not None and known.describes(messages) else KnownIds(messages)

    def take(self, messages: list[Any]) -> KnownIds | None:
        """Take out the newest ids that look like those of a list."""
        with self.lock:
            for place in reversed(range(len(self.conversations))):
                if self.conversations[place].may_describe(messages):
                    return self.conversations.pop(place)
        return None

    def keep(self, known: KnownIds) -> None:
        """Remember the ids of a list, if it is long and none of its messages can change."""
        mine = known.messages
        if len(mine) < LONG or not all(type(message) in LASTING for message in mine[known.lasting :]):
            return
        known.lasting = len(mine)
        with self.lock:
            self.conversations.append(known)
            del self.conversations[:-CONVERSATIONS]
