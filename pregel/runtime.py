"""What a node can ask for about the run it is part of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pregel.types import StreamWriter

__all__ = ["Run", "Runtime"]

ContextT = TypeVar("ContextT")


@dataclass(frozen=True, slots=True)
class Runtime(Generic[ContextT]):
    """Injected into a node that has a parameter named `runtime` or annotated with `Runtime`."""

    #: What the caller gave as `context=`, checked against the graph's context schema.
    context: ContextT
    #: Adds a part to the `custom` stream.
    stream_writer: StreamWriter
    config: Mapping[str, Any]
    node: str
    #: The superstep, from 1.
    step: int
    #: The same when the run is repeated: a key for effects outside that must not happen twice.
    task_id: str


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What all tasks of one run share; made at the door and handed down explicitly."""

    config: Mapping[str, Any]
    context: Any
    #: Where a node's stream writer puts its parts.
    writer: StreamWriter
    #: Gives the text of a new id for the n-th thing that a task makes: (task id, n) -> text.
    new_id: Callable[[str, int], str]
