"""Parts of a node that are not done again when the node runs again."""

from __future__ import annotations

from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from typing_extensions import TypedDict

from pregel.graph.functional.calling import CALL, begin_call
from pregel.graph.functional.futures import RESULT
from pregel.graph.schema import Unchecked
from pregel.graph.state import StateGraph
from pregel.names import check_name
from pregel.runtime import current_frame
from pregel.types import START

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pregel.graph.compile import CompiledStateGraph
    from pregel.graph.functional.futures import TaskFuture

__all__ = ["arecorded", "recorded"]

T = TypeVar("T")

#: What makes the value, for the graph that records it.
MAKE: Final[ContextVar[Callable[[], Any]]] = ContextVar("pregel_make")


class Recorded(TypedDict):
    """What is recorded of a part of a node."""

    call: Annotated[None, Unchecked]
    result: Annotated[Any, Unchecked]


def recorded(name: str, make: Callable[[], T]) -> T:
    """Return what `make` returns, or what it has returned when the task at hand ran before.

    The value is stored with the run, where that is stored, as the result of a `@task` is. It goes by its name and by
    how many of that name came before in the task.

    Args:
        name: It.
        make: Makes the value, which can be stored.

    Raises:
        OutsideTaskError: No task runs this code.
        EncodeError: The value can't be stored.
        GraphDefinitionError: It is no name for a node either, or a task of the name was called.
    """
    value: T = begin(name, make, awaited=False).result()
    return value


async def arecorded(name: str, make: Callable[[], Awaitable[T]]) -> T:
    """Do as `recorded` with what is awaited."""
    value: T = await begin(name, make, awaited=True)
    return value


def begin(name: str, make: Callable[[], Any], *, awaited: bool) -> TaskFuture[Any]:
    """Begin to make a value."""
    frame = current_frame()
    check_name(name, "a recorded value")
    token = MAKE.set(make)
    try:
        return begin_call(recording_graph(awaited=awaited), name, name, None, frame)
    finally:
        MAKE.reset(token)


@cache
def recording_graph(*, awaited: bool) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return the graph whose run records a value."""

    def call(_: Recorded) -> dict[str, Any]:
        return {RESULT: MAKE.get()()}

    async def acall(_: Recorded) -> dict[str, Any]:
        return {RESULT: await MAKE.get()()}

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Recorded)
    return builder.add_node(CALL, acall if awaited else call).add_edge(START, CALL).compile(name="recorded")
