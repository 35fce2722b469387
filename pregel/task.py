"""One run of one node in one superstep, and what it asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pregel.channels.base import MISSING

if TYPE_CHECKING:
    from pregel.node import Node
    from pregel.types import Command, Send

__all__ = ["Cached", "Handled", "Task", "Writes", "make"]

#: Makes a named tuple from its fields, in half the time of calling its class: `make(Task, (node, step, place, arg))`.
#: For what is made once a task.
make = tuple.__new__


class Task(NamedTuple):
    """A node that is due.

    A tuple, because a fan-out makes ten thousand of them and the garbage collector sees each.
    """

    node: Node
    #: The superstep; 0 is the input.
    step: int
    #: The place in the superstep: the order in which writes are applied.
    place: int
    #: What a `Send` carries, the updates of the input, or `MISSING` for a node that reads the state.
    arg: Any = MISSING
    #: Its id where it is no longer the one that step and place give: the state was edited while it was due.
    key: str | None = None

    @property
    def id(self) -> str:
        """The name of this task in its run: the same when the run is repeated."""
        return self.key or f"{self.step}:{self.place}:{self.node.name}"

    @property
    def about(self) -> str:
        """What messages say of it after its id: the `told_as` of what its `Send` carries, where that has one.

        Tasks of one node, such as the calls of an agent's tools, are told apart by it.
        """
        about = getattr(self.arg, "told_as", None)
        return f", {about}" if isinstance(about, str) else ""


class Writes(NamedTuple):
    """What a task asks for once it has ended well; nothing of it has been applied."""

    #: (field, update) in the order the node gave them.
    updates: tuple[tuple[str, Any], ...] = ()
    #: Nodes to run next.
    goto: tuple[str, ...] = ()
    sends: tuple[Send, ...] = ()
    #: Commands for the graph around this one.
    escapes: tuple[Command[Any], ...] = ()


class Handled(Writes):
    """What the error handler of a task that failed asks for: joins that wait for its node do not hear of it."""

    __slots__ = ()


class Cached(Writes):
    """What a task asks for whose node did not run: an earlier result stands for it."""

    __slots__ = ()
