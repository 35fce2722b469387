"""What of a node's call crosses to another process, and what comes back: the forms that both sides know."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["FORMAT", "Call", "Custom", "Piece", "Reply"]

#: What both sides must agree on: the form of a call, and the Python whose code is in it.
FORMAT: Final = f"pregel call 2, Python {sys.version_info.major}.{sys.version_info.minor}"


class Call(NamedTuple):
    """A call of a node's code, with what of its task and run can be asked for inside it."""

    node: str
    #: One of both.
    call: Callable[..., Any] | None
    acall: Callable[..., Any] | None
    #: Which parameters are filled with what.
    inject: Mapping[str, Any]
    given: Any
    config: Mapping[str, Any]
    context: Any
    #: The store, where a parameter takes it; else whether there is one that stays at home.
    store: Any
    has_store: bool
    #: The state of the last barrier; None where the code has no parameter that can tell it.
    state: dict[str, Any] | None
    #: Step, place and id of the task.
    task: tuple[int, int, str]
    answers: dict[str, Any] | None
    #: The fields of `Run` that are plain values.
    run: dict[str, Any]
    #: From what ids are made.
    space: str
    #: Fields whose updates are folded, so that giving back what was given must be noticed.
    folding: tuple[str, ...]
    #: Whether somebody reads what is written here and in graphs inside, and the run's tags where messages are read.
    custom: bool
    nested: bool
    tags: tuple[str, ...] | None
    #: What spans are made below, as OpenTelemetry carries it; empty without.
    trace: Mapping[str, str]


class Reply(NamedTuple):
    """How a call ended."""

    #: The bytes of the result; None where it raised.
    result: bytes | None
    error: Any
    #: What was asked, as a frame notes it.
    asked: list[Any]
    #: What was written to streams, in order: `Custom`, `Piece`, or the `Emit` of a graph inside.
    said: list[Any]


class Custom(NamedTuple):
    """What was written to the `custom` stream."""

    payload: Any


class Piece(NamedTuple):
    """A piece of a message, with the kind of part that tells it."""

    kind: Any
    message: Any
