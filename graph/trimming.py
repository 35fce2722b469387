"""Which part of a conversation fits: its end or its beginning, cut where no tool call is separated from its answers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from pregel.errors import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pregel.graph.messagetypes import AnyMessage

__all__ = ["Kinds", "cuts", "trim_messages"]

#: A type of messages ("human", "ai", "system", "tool"), a class of messages, or several of these.
Kinds: TypeAlias = "str | type[Any] | Sequence[str | type[Any]]"

TYPES: Final = frozenset({"human", "ai", "system", "tool"})


def trim_messages(
    messages: Sequence[AnyMessage],
    *,
    max_tokens: int,
    token_counter: Callable[[Sequence[AnyMessage]], int],
    strategy: Literal["last", "first"] = "last",
    include_system: bool = False,
    start_on: Kinds | None = None,
    end_on: Kinds | None = None,
) -> list[AnyMessage]:
    """Return the longest end (or beginning) of a conversation that has at most so many tokens.

    Messages are kept whole, and those that call tools are kept with all answers or not at all: a model is never shown
    an answer without its call, and one that has none is left out. So the result may be empty, where not even the last
    message (or a call with its answers) fits.

    Args:
        messages: The conversation; it is left alone. Messages of langchain-core are taken as well.
        max_tokens: How many tokens the result may have.
        token_counter: Counts the tokens of a list of messages; more messages never have fewer. `len` counts messages.
        strategy: Whether the "last" or the "first" messages are kept.
        include_system: Keep the system message that the conversation begins with, whatever is cut after it.
        start_on: What the result begins with, after that system message: the messages before the first of these are
            left out.
        end_on: What the result ends with: the messages after the last of these are left out.

    Raises:
        ValueError: An unknown strategy or type of messages, no number of tokens, or the system message alone has too
            many.
    """
    given: Any = max_tokens
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise ValueError(f"max_tokens={max_tokens!r}: give a whole number, 0 or more")
    if strategy not in {"last", "first"}:
        raise ValueError(f"strategy={strategy!r} is unknown: it is 'last' or 'first'")
    starts, ends = test_of(start_on, "start_on"), test_of(end_on, "end_on")
    whole = list(messages)
    head = whole[:1] if include_system and whole and whole[0].type == "system" else []
    if head and (size := token_counter(head)) > max_tokens:
        raise ValueError(
            f"the system message has {size} tokens, and max_tokens={max_tokens}: shorten it, or leave it to be cut by "
            "include_system=False"
        )
    body = without_orphans(whole[len(head) :])
    places = cuts(body)
    # What may not stand at the end that is kept goes first, so that it takes no room; at the other end it goes last.
    low, high = 0, len(places) - 1
    if strategy == "last":
        high = last_end(body, places, low, high, ends)
        stop = places[high]
        low = bisect_left(places, 1, low, high, key=lambda place: token_counter(head + body[place:stop]) <= max_tokens)
        low = first_start(body, places, low, high, starts)
    else:
        low = first_start(body, places, low, high, starts)
        start = places[low]
        high = (
            bisect_right(
                places, 0, low + 1, high + 1, key=lambda place: token_counter(head + body[start:place]) > max_tokens
            )
            - 1
        )
        high = last_end(body, places, low, high, ends)
    return head + body[places[low] : places[high]]


def without_orphans(messages: Sequence[Any]) -> list[Any]:
    """Return messages without the answers that have no call before them."""
    made: set[str | None] = set()
    kept = []
    for message in messages:
        made.update(call["id"] for call in calls_in(message))
        if message.type != "tool" or message.tool_call_id in made:
            kept.append(message)
    return kept


def calls_in(message: Any) -> Iterable[Any]:
    """Return the calls that a message makes, those that can't be read with them."""
    return (*getattr(message, "tool_calls", ()), *getattr(message, "invalid_tool_calls", ()))


def cuts(messages: Sequence[Any]) -> list[int]:
    """Return the places where a conversation can be cut, in order: 0, its length, and between some of its messages.

    A place is the number of messages before the cut. No call that is made before it is answered after it.
    """
    made: dict[str, int] = {}
    #: For each message the place after the last answer to its calls.
    until = list(range(1, len(messages) + 1))
    for place, message in enumerate(messages):
        if message.type == "tool" and message.tool_call_id in made:
            until[made[message.tool_call_id]] = place + 1
        for call in calls_in(message):
            if call["id"] is not None:
                made[call["id"]] = place
    found, reach = [0], 0
    for place in range(1, len(messages) + 1):
        reach = max(reach, until[place - 1])
        if reach == place:
            found.append(place)
    return found


def first_start(body: list[Any], places: list[int], low: int, high: int, fits: Callable[[Any], bool]) -> int:
    """Return the first cut after which a message that fits stands; `high` if there is none."""
    return next((at for at in range(low, high) if fits(body[places[at]])), high)


def last_end(body: list[Any], places: list[int], low: int, high: int, fits: Callable[[Any], bool]) -> int:
    """Return the last cut before which a message that fits stands; `low` if there is none."""
    return next((at for at in range(high, low, -1) if fits(body[places[at] - 1])), low)


def test_of(kinds: Kinds | None, option: str) -> Callable[[Any], bool]:
    """Return the test for messages of some kinds.

    Raises:
        ValueError: An unknown type of messages.
    """
    if kinds is None:
        return lambda message: True  # noqa: ARG005 - any message will do
    some = [kinds] if isinstance(kinds, (str, type)) else list(kinds)
    names = {kind for kind in some if isinstance(kind, str)}
    classes = tuple(kind for kind in some if isinstance(kind, type))
    for name in names - TYPES:
        raise ValueError(
            f"{option}={kinds!r}: there are no messages of type {name!r}.{nearest(name, TYPES)} "
            f"There are {', '.join(sorted(TYPES))}"
        )
    return lambda message: message.type in names or isinstance(message, classes)
