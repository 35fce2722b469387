"""`@entrypoint`: a function that is a graph."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import partial
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from typing_extensions import TypedDict

from pregel.channels import EphemeralValue
from pregel.config import read_modes
from pregel.door import Door
from pregel.errors import GraphDefinitionError, InvalidInputError
from pregel.graph.compile import CompiledStateGraph
from pregel.graph.functional.futures import refuse_futures
from pregel.graph.functional.reading import UserFunction, accepts_call
from pregel.graph.schema import OmitFromInput, OmitFromOutput, PrivateStateAttr, Unchecked
from pregel.graph.state import StateGraph
from pregel.reporter import INTERRUPT
from pregel.types import START, Command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timedelta

    from pregel.cache.base import BaseCache
    from pregel.checkpoint.base import Checkpointer
    from pregel.reporter import Emit
    from pregel.session import Session
    from pregel.store.base import BaseStore
    from pregel.types import CachePolicy, RetryPolicy, StreamMode, TimeoutPolicy

__all__ = ["EntryPoint", "entrypoint"]

R = TypeVar("R")
S = TypeVar("S")

INPUT, VALUE, PREVIOUS = "input", "value", "previous"
BY_POSITION = {Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.VAR_POSITIONAL}


class EntryPoint(CompiledStateGraph[Any, Any, Any, Any]):
    """A function as a graph of one node: its input and its result are bare values.

    Args:
        graph: The graph, with fields for both.
    """

    #: As a node of another graph it takes what a function would, and returns an update.
    shares_fields = False
    any_loop = True

    def __init__(self, graph: CompiledStateGraph[Any, Any, Any, Any]) -> None:
        vars(self).update(vars(graph))
        self._door = BareDoor(self._door.network, self._door.accepted, self._door.private)
        self._output = VALUE

    def _streamed(
        self, *run: Any, stream_mode: StreamMode | Sequence[StreamMode], **options: Any
    ) -> tuple[Session, Callable[[Emit], Any], Callable[[Emit], bool] | None]:
        session, shape, takes = super()._streamed(*run, stream_mode=stream_mode, **options)
        if "updates" in read_modes(stream_mode)[0]:
            session.tell_calls()
        return session, lambda part: shape(bare(part, self.name)), partial(is_told, takes)


def is_told(takes: Callable[[Emit], bool] | None, part: Emit) -> bool:
    """Return whether a part says something to the caller of a function: before its end there is no state to show.

    Args:
        takes: What says which parts the caller of any graph takes.
        part: It.
    """
    if part.mode == "values" and not part.namespace and not part.payload.keys() & {VALUE, INTERRUPT}:
        return False
    return takes is None or takes(part)


class BareDoor(Door):
    """Takes the input of a function as it is."""

    __slots__ = ()

    def mapping(self, given: Any, where: str) -> Mapping[str, Any]:
        """Return the input as the update of one field.

        Raises:
            InvalidInputError: It is None or a command, which go on with a stored run.
        """
        if given is None:
            raise InvalidInputError(
                f"{where} is None, which continues a stored run, and nothing is stored: give what the function takes"
            )
        return super().mapping(given, where) if isinstance(given, Command) else {INPUT: given}


def bare(part: Emit, graph: str) -> Emit:
    """Return a part with the result in the place of the field that holds it."""
    payload = part.payload
    if part.namespace or not isinstance(payload, dict):
        return part
    if part.mode == "values" and VALUE in payload:
        return part._replace(payload=payload[VALUE])
    if part.mode == "updates" and isinstance(payload.get(graph), dict) and VALUE in payload[graph]:
        return part._replace(payload={graph: payload[graph][VALUE]})
    return part


@dataclass(frozen=True, slots=True)
class Final(Generic[R, S]):
    """What an entry point returns to save something else than what its caller gets."""

    #: What the caller gets.
    value: R
    #: What the next run on the thread finds as `previous`.
    save: S


class entrypoint:  # noqa: N801 - a decorator, by LangGraph's name
    """Makes a function a graph: `Pregel` with one node, and so with all that a graph has.

    The function takes the input as its first parameter. Further ones are filled by name: `previous` (what the last run
    on the thread has saved, None in the first one), `config`, `writer`, `runtime`, `store`. What it returns is the
    result, and saved; `entrypoint.final(value=, save=)` saves something else. When it runs again, after an interrupt
    or a crash, it runs from its top: what must not be done twice stands in a `@task`.

    Args:
        checkpointer: As for `StateGraph.compile`, and so are `store` and `cache`.
        store: See there.
        cache: See there.
        context_schema: What `context=` of a run must be.
        name: The graph's name, if not the function's own.
        retry_policy: As for `StateGraph.add_node`, and so are `cache_policy` and `timeout`.
        cache_policy: See there.
        timeout: See there.

    Raises:
        GraphDefinitionError: It is no function of an input, a generator, or an option has no such value.
    """

    final = Final

    def __init__(
        self,
        checkpointer: Checkpointer | bool | None = None,  # noqa: FBT001 - as of `StateGraph.compile`
        store: BaseStore | None = None,
        cache: BaseCache | None = None,
        context_schema: type[Any] | None = None,
        *,
        name: str | None = None,
        retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
        cache_policy: CachePolicy | None = None,
        timeout: float | timedelta | TimeoutPolicy | None = None,
    ) -> None:
        if inspect.isroutine(checkpointer):
            raise GraphDefinitionError(
                f"@entrypoint stands bare before {checkpointer.__name__!r}, which it takes for a checkpointer: write "
                "@entrypoint()"
            )
        self._name = name
        self._context_schema = context_schema
        self._stored: dict[str, Any] = {"checkpointer": checkpointer, "store": store, "cache": cache}
        self._options: dict[str, Any] = {"retry_policy": retry_policy, "cache_policy": cache_policy, "timeout": timeout}

    def __call__(self, function: Callable[..., Any]) -> EntryPoint:
        """Return the graph of a function."""
        read = UserFunction(function, self._name, "@entrypoint")
        first, *rest = read.signature.parameters.values() or (None,)
        if first is None or first.kind not in BY_POSITION:
            raise GraphDefinitionError(
                f"@entrypoint {read.name!r} has no positional parameter: its first one takes the input of a run"
            )
        injected = read.injected((each for each in rest if each.name != PREVIOUS), strangers=True)
        wants_previous = any(each.name == PREVIOUS for each in rest)

        def extra(state: Any, filled: dict[str, Any]) -> dict[str, Any]:
            return {**filled, PREVIOUS: state.get(PREVIOUS)} if wants_previous else filled

        def call(state: Any, **filled: Any) -> dict[str, Any]:
            return updates(function(state[INPUT], **extra(state, filled)))

        async def acall(state: Any, **filled: Any) -> dict[str, Any]:
            return updates(await function(state[INPUT], **extra(state, filled)))

        node = accepts_call(acall if read.is_async else call, read.hints, injected)
        fields = {
            INPUT: Annotated[read.hints.get(first.name, Any), EphemeralValue, OmitFromOutput],
            VALUE: Annotated[read.returns, EphemeralValue, OmitFromInput, Unchecked],
            PREVIOUS: Annotated[read.hints.get(PREVIOUS, read.returns), PrivateStateAttr, Unchecked],
        }
        builder: StateGraph[Any, Any, Any, Any] = StateGraph(
            TypedDict(read.name, fields),  # type: ignore[operator]
            self._context_schema,
        )
        builder.add_node(read.name, node, **self._options).add_edge(START, read.name)
        return EntryPoint(builder.compile(name=read.name, **self._stored))


def updates(returned: Any) -> dict[str, Any]:
    """Return what a function's result changes.

    Raises:
        InvalidUpdateError: It is the future of a task, or has one in it.
    """
    if isinstance(returned, Final):
        refuse_futures(returned.value, "the result of an entry point")
        refuse_futures(returned.save, "what an entry point saves")
        return {VALUE: returned.value, PREVIOUS: returned.save}
    refuse_futures(returned, "the result of an entry point")
    return {VALUE: returned, PREVIOUS: returned}
