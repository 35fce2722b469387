"""What a paused session asks, and which reply is to which question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pregel.errors import InvalidResumeError, nearest
from pregel.graph.workflow.asking import is_request
from pregel.graph.workflow.event import Event
from pregel.text import show

if TYPE_CHECKING:
    from pregel.graph.workflow.thread import Head
    from pregel.types import Interrupt

__all__ = ["replies", "request_event"]


def replies(given: Any, head: Head) -> Any:
    """Return replies by the ids of the questions; the reply to the one question as it is.

    Raises:
        InvalidResumeError: It is not certain to which question something is the reply, or it is to none.
    """
    asked: dict[str, list[str]] = {}
    for request in head.requests:
        name = request.value["interrupt_id"] if is_request(request.value) else request.id
        asked.setdefault(name, []).append(request.id)
    ids = {request.id for request in head.requests}
    if not isinstance(given, Mapping) or not any(key in asked or key in ids for key in given):
        if len(ids) > 1:
            near = "".join(nearest(str(key), asked) for key in given) if isinstance(given, Mapping) else ""
            raise InvalidResumeError(
                f"{len(ids)} things are asked, and {show(given)} is no reply to one of them for certain.{near} Give "
                f"replies by interrupt_id, all or some of {', '.join(map(repr, asked))}: {{{next(iter(asked))!r}: ...}}"
            )
        return given
    found: dict[Any, Any] = {}
    for key, value in given.items():
        names = [key] if key in ids else asked.get(key, [])
        if not names:
            raise InvalidResumeError(
                f"nothing is asked by the interrupt_id {key!r}.{nearest(str(key), asked)} Asked: "
                f"{', '.join(map(repr, asked))}"
            )
        if len(names) > 1:
            raise InvalidResumeError(
                f"{len(names)} questions have the interrupt_id {key!r}: reply by the ids {', '.join(map(repr, names))} "
                "or give each RequestInput an interrupt_id of its own"
            )
        found[names[0]] = value
    return found


def request_event(request: Interrupt, head: Head, workflow: str) -> Event:
    """Return the event that says what a paused run asks.

    Args:
        request: What is asked.
        head: Where the session stands.
        workflow: The name of the workflow.
    """
    value = dict(request.value) if isinstance(request.value, Mapping) else {"message": request.value}
    path = value.pop("path") if is_request(request.value) else head.path_of(request, workflow)
    content = {**value, "id": request.id, "response_schema": request.response_schema}
    return Event(author=workflow, path=path, content=content)
