"""Every error and warning of the library, in one place.

All derive from `PregelError` or `PregelWarning`. The errors of the channel layer have their home there.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from pregel.channels.base import (
    ConcurrentUpdateError,
    InvalidUpdateError,
    PregelError,
    PregelWarning,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "STRICTNESS_CODES",
    "AttemptRevokedError",
    "CheckpointNotFoundError",
    "ConcurrentPutError",
    "ConcurrentRunError",
    "ConcurrentUpdateError",
    "DecodeError",
    "EncodeError",
    "GraphChangedError",
    "GraphDefinitionError",
    "GraphInterrupt",
    "GraphRecursionError",
    "IllegalEventError",
    "InterruptSwallowedError",
    "InvalidConcurrentUpdateError",
    "InvalidConfigError",
    "InvalidIdError",
    "InvalidInputError",
    "InvalidOpError",
    "InvalidResumeError",
    "InvalidUpdateError",
    "InvalidUpdateTypeError",
    "MissingCheckpointerError",
    "MissingStoreError",
    "MutatedStateError",
    "NodeCancelledError",
    "NodeExecutorError",
    "NodeInputError",
    "NodeTimeoutError",
    "NotSendableError",
    "OutsideTaskError",
    "PregelError",
    "PregelWarning",
    "ReducerError",
    "SchemaError",
    "SemanticSearchError",
    "StarvedJoinError",
    "ThreadBusyError",
    "UnknownTargetError",
    "UnreachableNodeError",
    "nearest",
]

#: The strictness checks: `allow={code}` turns one into a `PregelWarning`, `strict=False` all of them.
STRICTNESS_CODES: Final = frozenset(
    {
        "none-return",
        "undeclared-key",
        "same-object",
        "wrong-type",
        "undeclared-input",
        "private-input",
        "schema-mismatch",
        "unreachable-node",
        "starved-join",
    }
)


class GraphDefinitionError(PregelError, ValueError):
    """A graph that can't mean anything: unknown names, no entry point, parameters that can't be injected."""


class UnreachableNodeError(GraphDefinitionError):
    """A node that no path from START reaches."""


class SchemaError(PregelError, TypeError):
    """A state schema, or the schemas of one graph together, can't be compiled into channels."""


class InvalidUpdateTypeError(InvalidUpdateError, TypeError):
    """A node returned something that is no update at all."""


class InvalidConcurrentUpdateError(ConcurrentUpdateError):
    """Two tasks of one superstep wrote a field that takes one value; the message names both."""


class InvalidInputError(PregelError, ValueError):
    """The input of a run does not fit the graph's input schema. Nothing was run."""


class InvalidConfigError(PregelError, ValueError):
    """An option of a run is unknown or has a value it can't have. Nothing was run."""


class NodeInputError(PregelError):
    """A node's input could not be built from the state: a field that its schema requires has no value."""


class MutatedStateError(InvalidUpdateError):
    """A node changed in place what it was given; found where a graph is compiled with `debug=True`."""


class UnknownTargetError(InvalidUpdateError):
    """A conditional edge, `Command(goto=...)` or `Send` names a node that does not exist."""


class ReducerError(InvalidUpdateError):
    """A reducer raised; the original error is its `__cause__`."""


class NodeCancelledError(PregelError):
    """A node ended as cancelled although nobody cancelled the run."""


class NodeExecutorError(PregelError):
    """The worker that ran a node is gone, or its executor takes no more work. The task may be tried again."""


class NotSendableError(PregelError, TypeError):
    """A value that can't go to a worker in another process or come back; the message names the node and the path."""


class NodeTimeoutError(PregelError, TimeoutError):
    """An attempt at a task took longer than the timeout of its node allows; nothing of it has any effect any more."""


class AttemptRevokedError(PregelError):
    """Code went on after its attempt at a task was given up, and what it asked for now was refused."""


class OutsideTaskError(PregelError, RuntimeError):
    """Code that belongs inside a task was called where none runs."""


class InvalidIdError(PregelError, ValueError):
    """A name of a thread, a namespace or a key that can't be one. Nothing was stored."""


class EncodeError(PregelError, TypeError):
    """A value that can't be stored as it is; the message names the path to it. Nothing was stored."""


class DecodeError(PregelError, ValueError):
    """Stored bytes that are damaged, of another format, or of a type that is not registered here."""


class ConcurrentRunError(PregelError):
    """Another run has the thread or has moved it on. This run commits nothing more; what it committed stays."""


class ThreadBusyError(ConcurrentRunError):
    """Another run has the thread. Nothing was run."""


class CheckpointNotFoundError(PregelError, LookupError):
    """There is no such thread, or no such checkpoint of it."""


class GraphChangedError(PregelError):
    """What is stored belongs to another version of the graph: a due node, a join or a field is gone."""


class MissingCheckpointerError(PregelError, RuntimeError):
    """Something needs stored runs, and the graph was compiled without a checkpointer."""


class MissingStoreError(PregelError, RuntimeError):
    """A node asks for the store, and the graph was compiled without one."""


class ConcurrentPutError(PregelError):
    """An item is not in the version that a put or delete expected. Nothing of the batch was stored."""


class SemanticSearchError(PregelError, NotImplementedError):
    """A search by meaning was asked of a store that has no index of vectors."""


class InvalidOpError(PregelError, ValueError):
    """An operation on a store that can't mean anything: an unknown operator, a negative limit. Nothing was done."""


class InvalidResumeError(InvalidInputError):
    """Answers to a paused run that fit nothing it asked. Nothing was run."""


class InterruptSwallowedError(PregelError):
    """A node ended although it had asked something that is not answered: it caught the pause."""


class GraphInterrupt(BaseException):
    """Leaves a node that waits for an answer. No error: `except Exception` does not catch it, and nothing should.

    Args:
        interrupts: What is asked, one or several `Interrupt`s.
        error: What is wrong with the answer that was given, if there was one.
    """

    def __init__(self, interrupts: tuple[Any, ...] = (), error: Exception | None = None) -> None:
        super().__init__(*interrupts)
        self.interrupts = interrupts
        self.error = error

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.interrupts, self.error)  # as it was made: it may come from another process


class IllegalEventError(PregelError):
    """A driver told the superstep machine something that can't have happened: a defect of the driver."""


class StateCarryingError(PregelError):
    """An error at the end of a run that carries the state reached."""

    def __init__(self, message: str, state: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        #: The values of the last barrier, private fields included.
        self.state = {} if state is None else state


class GraphRecursionError(StateCarryingError, RecursionError):
    """The run is not done after `recursion_limit` supersteps; `.state` is where it stood."""


class StarvedJoinError(StateCarryingError):
    """The run ended while a join had heard from some of its sources only; `.state` is the final state."""


def nearest(name: object, known: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the known name closest to `name`, or an empty text."""
    matches = get_close_matches(str(name), [str(candidate) for candidate in known], n=1)
    return f" Did you mean {matches[0]!r}?" if matches else ""
