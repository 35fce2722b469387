"""What a node asks by `RequestInput`: how the question waits, and how the reply finds the node again."""

from __future__ import annotations

import types
from dataclasses import replace
from itertools import count, takewhile
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pregel.channels.base import MISSING
from pregel.codec import register
from pregel.errors import GraphInterrupt
from pregel.graph.functional import recorded
from pregel.graph.workflow.errors import WorkflowDataError
from pregel.graph.workflow.replytypes import reference, resolved
from pregel.runtime import current_frame, interrupt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pregel.graph.workflow.event import RequestInput, StoredEvent
    from pregel.graph.workflow.telling import Place, Telling

__all__ = [
    "NO_REPLIES",
    "Asked",
    "Question",
    "Replies",
    "answered_questions",
    "ask",
    "is_request",
    "named",
    "replies_to",
    "reply_to",
]

#: What the one who is asked sees of a `RequestInput`, and the path of the node that asks.
SHOWN: Final = frozenset({"interrupt_id", "message", "payload", "path"})


class Question(NamedTuple):
    """What a node has asked, as it is recorded until there is a reply."""

    #: What the one who is asked sees: `interrupt_id`, `message`, `payload`, and the `path` of the node.
    asked: dict[str, Any]
    #: The type of the reply: see `reference`.
    schema: Any
    #: How many questions the node had asked before by `interrupt`.
    number: int
    #: What it had told before; None where the node runs again, and tells it again.
    events: list[StoredEvent] | None


register(Question, tag="pregel.workflow:Question")


def is_request(value: Any) -> bool:
    """Return whether what is asked was asked by `RequestInput`."""
    return isinstance(value, dict) and value.keys() == SHOWN


class Asked(NamedTuple):
    """A question without a reply, as the code of a node left it."""

    request: RequestInput
    #: Whether the code goes on when there is a reply: a generator does.
    continues: bool


class Replies(NamedTuple):
    """The replies to what a node has asked by `RequestInput`, in the order of asking."""

    #: By `interrupt_id`.
    given: dict[str, Any]
    #: The messages of the questions, by the same.
    messages: dict[str, str]

    def to(self, request: RequestInput) -> Any:
        """Return the reply to a request, or `MISSING`."""
        return self.given.get(str(request.interrupt_id), MISSING)

    def hear(self, request: RequestInput, telling: Telling) -> Any:
        """Return the reply to what a generator asks, which goes on with it, or `MISSING`."""
        reply = self.to(request)
        if reply is MISSING:
            reply = late_reply(request, telling)
            if reply is not MISSING:
                self.given[str(request.interrupt_id)] = reply
        if reply is not MISSING:
            telling.hear()
        return reply


#: Those of a node that runs for the first time; nothing is added to them.
NO_REPLIES: Final = Replies(types.MappingProxyType({}), types.MappingProxyType({}))  # type: ignore[arg-type]  # see above


class NotAskedError(Exception):
    """Nothing of the kind is recorded."""


def missing() -> Any:
    """Say that nothing is recorded."""
    raise NotAskedError


def answered() -> Iterator[int]:
    """Yield the numbers of the questions of the task at hand that have answers."""
    task, run, *_ = current_frame()
    name = run.task_id(task)
    yield from takewhile(lambda number: f"{name}#{number}" in (run.answers or ()), count())


def noted(number: int) -> Question | None:
    """Return what was recorded of a question; None for one that was asked in another way."""
    try:
        question: Question = recorded(f"@question {number}", missing)
    except NotAskedError:
        return None
    return question


def answered_questions() -> list[Question | None]:
    """Return what the task at hand has asked that has an answer, in order; None for what was asked by `interrupt`.

    To be called once by each run of a node: what is recorded is found by how often it was asked for.
    """
    return [noted(number) for number in answered()]


def named(request: RequestInput, telling: Telling, replies: Replies) -> RequestInput:
    """Return a request with its `interrupt_id`, and note that the node has asked it.

    Raises:
        WorkflowDataError: Another question of the node has that id.
    """
    name, where = request.interrupt_id, telling.place.where
    if name is None:
        number = next(number for number in count(1) if default_id(number) not in telling.requests)
        name = default_id(number)
        if replies.messages.get(name, request.message) != request.message:
            raise WorkflowDataError(
                f"{where} asks {request.message!r} where it asked {replies.messages[name]!r} when it ran before, and "
                "the reply may be to either: give each of its requests an interrupt_id of its own"
            )
        request = replace(request, interrupt_id=name)
    elif name in telling.requests:
        raise WorkflowDataError(
            f"{where} asks twice by the interrupt_id {name!r}: give each request its own, by which ctx.resume_inputs "
            "holds the reply"
        )
    telling.requests.add(name)
    return request


def default_id(number: int) -> str:
    """Return the `interrupt_id` of the n-th question of a node that gives none."""
    return "input" if number == 1 else f"input_{number}"


def ask(asked: Asked, telling: Telling, replied: int, *, reruns: bool) -> Any:
    """Ask something: leave the node until there is a reply, and return it.

    Args:
        asked: What is asked.
        telling: What the node has told.
        replied: How many of its requests have replies.
        reruns: Whether the node runs again when there is a reply, whatever its form.

    Raises:
        GraphInterrupt: There is none yet.
        WorkflowDataError: The node can't ask that now.
        MissingCheckpointerError: Nothing could wait for the reply.
    """
    request = asked.request
    place = telling.place
    again = reruns or asked.continues
    telling.tell()
    number = next_number()
    if reruns and not asked.continues and (number != replied or number in answered()):
        raise WorkflowDataError(
            f"{place.where} asks by RequestInput what it has begun to ask by interrupt(): use one of them, or yield "
            "the request in a generator"
        )
    if not again and telling.has_output:
        raise WorkflowDataError(
            f"{place.where} asks by RequestInput and has given an output, which the reply would be: give it in a node "
            "behind this one, or yield the request in a generator"
        )
    shown = what_is_shown(request, place)
    schema = reference(request.response_schema, place.where)
    question = Question(shown, schema, number, None if again else telling.told())
    recorded(f"@question {number}", lambda: question)
    try:
        return interrupt(shown, request.response_schema)
    except GraphInterrupt:
        telling.tell_ahead()
        raise


def late_reply(request: RequestInput, telling: Telling) -> Any:
    """Return the reply to a request that was asked behind an `interrupt` or in another process, or `MISSING`.

    There, replies are told apart by the order of asking alone.

    Raises:
        GraphInterrupt: It is not of the type that is asked for.
    """
    if next_number() not in answered():
        return MISSING
    return answer(what_is_shown(request, telling.place), request.response_schema)


def next_number() -> int:
    """Return how many questions the task at hand has asked."""
    return sum(type(each) is not tuple for each in current_frame()[3])


def what_is_shown(request: RequestInput, place: Place) -> dict[str, Any]:
    """Return what the one who is asked sees of a request."""
    return {
        "interrupt_id": request.interrupt_id,
        "message": request.message,
        "payload": request.payload,
        "path": place.path,
    }


def answer(shown: dict[str, Any], schema: Any) -> Any:
    """Return the reply to a question that has one.

    Args:
        shown: What the one who was asked saw of it.
        schema: The type that the reply must have, or None.

    Raises:
        GraphInterrupt: It is not of that type.
    """
    try:
        return interrupt(shown, schema)
    except GraphInterrupt as pause:
        if pause.error is not None:
            pause.error.add_note(f"It was the reply to the request of the interrupt_id {shown['interrupt_id']!r}.")
        raise


def reply_to(questions: Sequence[Question | None], telling: Telling) -> bool:
    """Let the reply to a node's question be its output, if the node need not run again for it.

    Args:
        questions: See `answered_questions`.
        telling: Takes the reply.

    Returns:
        Whether there is such a question.

    Raises:
        GraphInterrupt: The reply is not of the type that was asked for.
    """
    question = next((found for found in questions if found is not None), None)
    if question is None or question.events is None:
        return False
    for _ in range(question.number):
        interrupt(None)  # what the node had asked before has its answers
    reply = answer(question.asked, resolved(question.schema))
    telling.restore(question.events)
    telling.take_reply(reply)
    return True


def replies_to(questions: Sequence[Question | None]) -> Replies:
    """Return the replies for a node that runs again.

    Raises:
        GraphInterrupt: One is not of the type that was asked for.
    """
    given: dict[str, Any] = {}
    messages: dict[str, str] = {}
    for question in questions:
        if question is None:
            break
        name = question.asked["interrupt_id"]
        given[name] = answer(question.asked, resolved(question.schema))
        messages[name] = question.asked["message"]
    return Replies(given, messages)
