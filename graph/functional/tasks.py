"""`@task`: a function whose calls inside a graph run side by side, and are recorded."""

from __future__ import annotations

from functools import cached_property, partial, update_wrapper
from inspect import isfunction
from typing import TYPE_CHECKING, Annotated, Any, Generic, ParamSpec, Protocol, TypeVar, overload

from typing_extensions import TypedDict

from pregel.errors import OutsideTaskError
from pregel.graph.functional.calling import CALL, begin_call, call_key
from pregel.graph.functional.futures import RESULT, TaskFuture, refuse_futures
from pregel.graph.functional.reading import UserFunction, accepts_call
from pregel.graph.schema import Unchecked
from pregel.graph.state import StateGraph
from pregel.names import check_name
from pregel.runtime import FRAME
from pregel.types import START

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import timedelta

    from pregel.graph.compile import CompiledStateGraph
    from pregel.types import CachePolicy, ExecutorLike, RetryPolicy, TimeoutPolicy

__all__ = ["TaskFunction", "task"]

P = ParamSpec("P")
T = TypeVar("T")


class TaskFunction(Generic[P, T]):
    """A function that `@task` has made a task; calling it inside a graph begins a call, and gives its future.

    `function` is what it was made of, to be called as it is.

    Args:
        read: That function.
        options: Of the node that runs it; see `task`.
    """

    def __init__(self, read: UserFunction, options: dict[str, Any]) -> None:
        self.function: Callable[P, Any] = read.function
        self.name = read.name
        check_name(read.name)
        self._read = read
        self._options = options
        # What a name stands for: the same code of a function that is made again and again is no other task.
        self._code = read.function.__code__ if isfunction(read.function) else read.function
        update_wrapper(self, read.function, updated=())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> TaskFuture[T]:
        """Begin a call.

        Args:
            args: What the function takes; where the graph is stored, something that can be stored.
            kwargs: The same.

        Returns:
            The future result. The node that calls waits for the end, whether somebody asks for the result or not.

        Raises:
            InvalidUpdateError: An argument is the future of another task.
            OutsideTaskError: No graph runs this code.
            EncodeError: An argument can't be stored, and the graph is.
            TypeError: The function does not take these arguments.
            GraphDefinitionError: The same node has called another task of this name.
            AttemptRevokedError: The node goes on although it was given up.
        """
        frame = FRAME.get(None)
        if frame is None:
            raise OutsideTaskError(
                f"task {self.name!r} is called where no graph runs: call it in an @entrypoint or in a node, or call "
                f"{self.name}.function as the plain function"
            )
        self._read.check_call(args, kwargs)
        refuse_futures((*args, *kwargs.values()), f"an argument of task {self.name!r}")
        given = (args, kwargs)
        key = call_key(self.graph, self.name, given, frame)
        future: TaskFuture[T] = begin_call(self.graph, self.name, key, given, frame, self._code)
        return future

    def __get__(self, instance: Any, _owner: type | None = None) -> Any:
        """Return the task of a method, with its object as the first argument."""
        return self if instance is None else partial(self, instance)

    @cached_property
    def graph(self) -> CompiledStateGraph[Any, Any, Any, Any]:
        """The graph of one node that a call runs."""
        read = self._read
        function = read.function
        injected = read.filled

        def call(state: Any, **extra: Any) -> dict[str, Any]:
            args, kwargs = state[CALL]
            return {RESULT: function(*args, **{**extra, **kwargs})}

        async def acall(state: Any, **extra: Any) -> dict[str, Any]:
            args, kwargs = state[CALL]
            return {RESULT: await function(*args, **{**extra, **kwargs})}

        node = accepts_call(acall if read.is_async else call, read.hints, injected)
        taken: Any = tuple(hint for name, hint in read.hints.items() if name != "return" and name not in injected)
        fields = {CALL: Annotated[tuple[(*taken, Any)], Unchecked], RESULT: Annotated[read.returns, Unchecked]}
        builder: StateGraph[Any, Any, Any, Any] = StateGraph(TypedDict("Call", fields))  # type: ignore[operator]
        builder.add_node(self.name, node, **self._options).add_edge(START, self.name)
        return builder.compile(name=self.name)


class TaskDecorator(Protocol):
    """Makes a function a task."""

    @overload
    def __call__(self, function: Callable[P, Awaitable[T]], /) -> TaskFunction[P, T]: ...
    @overload
    def __call__(self, function: Callable[P, T], /) -> TaskFunction[P, T]: ...


@overload
def task(function: Callable[P, Awaitable[T]], /) -> TaskFunction[P, T]: ...
@overload
def task(function: Callable[P, T], /) -> TaskFunction[P, T]: ...
@overload
def task(
    *,
    name: str | None = None,
    retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
    cache_policy: CachePolicy | None = None,
    timeout: float | timedelta | TimeoutPolicy | None = None,
    executor: ExecutorLike | None = None,
) -> TaskDecorator: ...
def task(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
    cache_policy: CachePolicy | None = None,
    timeout: float | timedelta | TimeoutPolicy | None = None,
    executor: ExecutorLike | None = None,
) -> Any:
    """Make a function a task.

    Called in an `@entrypoint`, or in a node of any graph, it gives a future at once, and runs beside the code that
    called it. Where the graph is stored its result is too: a node that runs again, after an interrupt, a crash or a
    failure, finds it by name, arguments and how many such calls came before, and the function does not run again.

    Args:
        function: A sync or async function. Keyword-only parameters named `config`, `writer`, `runtime` and `store` are
            filled where the caller does not give them.
        name: Its name, if not the function's own.
        retry_policy: As for `StateGraph.add_node`, and what follows too.
        cache_policy: When an earlier result stands for a call, in any run.
        timeout: How long one attempt may take.
        executor: Where it runs.

    Raises:
        GraphDefinitionError: It is no function, or a generator, or an option has no such value.
    """
    given = {
        "retry_policy": retry_policy,
        "cache_policy": cache_policy,
        "timeout": timeout,
        "executor": executor,
    }
    options = {key: value for key, value in given.items() if value is not None}

    def decorate(function: Callable[..., Any]) -> TaskFunction[Any, Any]:
        return TaskFunction(UserFunction(function, name, "@task"), options)

    return decorate if function is None else decorate(function)
