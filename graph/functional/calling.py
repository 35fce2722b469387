"""How a task is called: the run of its graph inside the task at hand, by the name that it is recorded under."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from pregel.child import options_inside
from pregel.errors import EncodeError
from pregel.graph.functional.futures import TaskFuture
from pregel.graph.functional.nodecalls import calls_of
from pregel.observe import watched
from pregel.session import Session

if TYPE_CHECKING:
    from pregel.main import Pregel
    from pregel.runtime import Frame

__all__ = ["CALL", "begin_call", "call_key"]

#: The field of a task's graph that holds what the task was called with.
CALL = "call"


def begin_call(graph: Pregel[Any], name: str, key: str, given: Any, frame: Frame, code: Any = None) -> TaskFuture[Any]:
    """Begin a run of a task's graph inside the task at hand.

    Args:
        graph: It.
        name: The task's name.
        key: What tells the call from others of the node; equal ones go by their order.
        given: What the graph is called with.
        frame: The task at hand.
        code: What the name stands for in it; None where names tell all there is.

    Raises:
        AttemptRevokedError: The attempt at that task was given up.
        GraphDefinitionError: That task has called something else by the name.
    """
    run = frame[1]
    run.token.check()
    calls = calls_of(frame)
    session = watched(Session)(
        graph._network,  # noqa: SLF001 - as of a graph that is a node
        options_inside(graph, run),
        context=run.context,
        on_failure="finish",
        persistence=graph._persistence,  # noqa: SLF001 - see above
        around=frame,
        call=calls.label(frame[0].id, key, name, code),
    )
    session.start([(CALL, given)])
    future: TaskFuture[Any] = TaskFuture(calls, name, session, frame)
    calls.begin(future)
    return future


def call_key(graph: Pregel[Any], name: str, given: tuple[tuple[Any, ...], dict[str, Any]], frame: Frame) -> str:
    """Return what tells a call of a task from calls with other arguments.

    Raises:
        EncodeError: An argument can't be stored, so that a later run could not tell the call again.
    """
    if frame[1].recorder is None:  # no later run will ask
        return name
    args, kwargs = given
    codec = graph._persistence.format.codec  # type: ignore[union-attr]  # noqa: SLF001 - every StateGraph has one
    try:
        packed = codec.encode([list(args), sorted(kwargs.items())])
    except EncodeError as error:
        error.add_note(
            f"An argument of task {name!r}, called by node {frame[0].node.name!r}: the call is recorded by its "
            "arguments, so that a node that runs again finds its result"
        )
        raise
    return f"{name}:{blake2b(packed, digest_size=8).hexdigest()}"
