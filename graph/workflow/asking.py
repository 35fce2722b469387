"""What a node asks by `RequestInput`: how the question waits, and how the reply finds the node again."""

from __future__ import annotations

import types
from itertools import count, takewhile
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Union, get_args, get_origin

from pregel.codec import register
from pregel.codec.registry import GLOBAL
from pregel.errors import EncodeError
from pregel.graph.annotations import describe
from pregel.graph.functional import recorded
from pregel.graph.workflow.errors import WorkflowDataError
from pregel.runtime import current_frame, interrupt
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pregel.graph.workflow.event import RequestInput, StoredEvent
    from pregel.graph.workflow.telling import Telling

__all__ = ["Question", "ask", "is_resumed", "replies_so_far", "reply_to"]

BUILTINS: Final[dict[str, Any]] = {
    "str": str, "int": int, "float": float, "bool": bool, "bytes": bytes, "list": list, "dict": dict, "tuple": tuple,
    "set": set, "None": type(None), "Any": Any,
}  # fmt: skip
NAMES: Final = {kind: name for name, kind in BUILTINS.items()}


class Question(NamedTuple):
    """What a node has asked, as it is recorded until there is a reply."""

    #: What the one who is asked sees: `interrupt_id`, `message` and `payload`.
    asked: dict[str, Any]
    #: The type of the reply: see `reference`.
    schema: Any
    #: How many questions the node had asked before by `interrupt`.
    number: int
    #: What it had told before.
    events: list[StoredEvent]


register(Question, tag="pregel.workflow:Question")


class NotAskedError(Exception):
    """Nothing of the kind is recorded."""


def missing() -> Any:
    """Say that nothing is recorded."""
    raise NotAskedError


def is_resumed() -> bool:
    """Return whether something that the task at hand has asked is replied to."""
    return any(True for _ in answered())


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


def ask(request: RequestInput, telling: Telling, replied: int, *, reruns: bool) -> Any:
    """Ask something: leave the node until there is a reply, and return it.

    Args:
        request: What is asked.
        telling: What the node has told.
        replied: How many of its requests have replies.
        reruns: Whether the node runs again when there is a reply.

    Raises:
        GraphInterrupt: There is none yet.
        WorkflowDataError: The node can't ask that now.
        MissingCheckpointerError: Nothing could wait for the reply.
    """
    where = telling.place.where
    telling.tell()
    number = sum(type(each) is not tuple for each in current_frame()[3])
    if reruns and number != replied:
        raise WorkflowDataError(
            f"{where} asks by RequestInput what it has begun to ask by interrupt(): use one of them in a node"
        )
    if not reruns and telling.has_output:
        raise WorkflowDataError(
            f"{where} asks by RequestInput and has given an output, which the reply would be: give it in a node behind "
            "this one, or use node(..., rerun_on_resume=True)"
        )
    asked = {"interrupt_id": request.interrupt_id, "message": request.message, "payload": request.payload}
    question = Question(asked, reference(request.response_schema, where), number, [] if reruns else telling.told())
    recorded(f"@question {number}", lambda: question)
    return interrupt(asked, request.response_schema)


def reply_to(telling: Telling) -> bool:
    """Let the reply to the node's question be its output; return False where it has asked none by `RequestInput`.

    Raises:
        GraphInterrupt: There is none yet, or it is not of the type that was asked for.
    """
    question = next((found for found in map(noted, answered()) if found is not None), None)
    if question is None:
        return False
    for _ in range(question.number):
        interrupt(None)  # what the node had asked before has its answers
    reply = interrupt(question.asked, resolved(question.schema))
    telling.restore(question.events)
    telling.take_reply(reply)
    return True


def replies_so_far() -> dict[str, Any]:
    """Return the replies to what the node has asked by `RequestInput`, by `interrupt_id`.

    Raises:
        GraphInterrupt: One is not of the type that was asked for.
    """
    replies: dict[str, Any] = {}
    for question in map(noted, answered()):
        if question is None:
            break
        replies[question.asked["interrupt_id"]] = interrupt(question.asked, resolved(question.schema))
    return replies


def reference(schema: Any, where: str) -> Any:
    """Return a type as something that can be stored, so that the reply can be checked in another process.

    Raises:
        WorkflowDataError: It can't be found again there.
    """
    if schema is None:
        return None
    origin = get_origin(schema)
    if origin is Literal:
        return ["literal", list(get_args(schema))]
    if origin in {Union, types.UnionType}:
        return ["union", [reference(each, where) for each in get_args(schema)]]
    if origin in NAMES:
        return ["of", NAMES[origin], [reference(each, where) for each in get_args(schema)]]
    if schema in NAMES:
        return ["builtin", NAMES[schema]]
    if isinstance(schema, type):
        try:
            if schema not in GLOBAL.types:
                register(schema)
        except EncodeError as error:
            raise WorkflowDataError(
                f"{where}: the response_schema {describe(schema)} can't be stored with the question: {error}"
            ) from error
        return ["class", GLOBAL.types[schema].tag]
    raise WorkflowDataError(
        f"{where}: response_schema takes a builtin type, a Literal, a class that can be stored, or a list, dict or "
        f"union of these, not {show(schema)}"
    )


def resolved(stored: Any) -> Any:
    """Return the type that was stored.

    Raises:
        WorkflowDataError: It is a class that is not registered in this process.
    """
    if stored is None:
        return None
    kind, *rest = stored
    if kind == "literal":
        return Literal[tuple(rest[0])]
    if kind == "union":
        return Union[tuple(map(resolved, rest[0]))]  # noqa: UP007 - the members are in a tuple
    if kind == "of":
        return BUILTINS[rest[0]][tuple(map(resolved, rest[1]))]
    if kind == "builtin":
        return BUILTINS[rest[0]]
    entry = GLOBAL.tags.get(rest[0])
    if entry is None:
        raise WorkflowDataError(
            f"the reply to a question must be of the type {rest[0]!r}, which is not registered in this process: "
            "decorate the class with pregel.codec.serializable, or register it, before the run goes on"
        )
    return entry.cls
