"""What a tool may ask for that the model neither sees nor gives: state, store, the call's id, the runtime."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Generic, Literal, get_args, get_origin

from typing_extensions import TypeVar

from pregel.callables import alternatives
from pregel.errors import MissingStoreError, PregelError, nearest

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from pregel.types import StreamWriter

__all__ = [
    "Injected",
    "InjectedState",
    "InjectedStore",
    "InjectedToolArg",
    "InjectedToolCallId",
    "ToolInjectionError",
    "ToolRuntime",
    "injected_values",
    "injection_of",
]

ContextT = TypeVar("ContextT", default=Any)
StateT = TypeVar("StateT", default=Any)

Kind = Literal["state", "store", "call", "runtime", "config", "argument"]


class ToolInjectionError(PregelError):
    """A tool asks for something that its graph does not have."""


@dataclass(frozen=True, slots=True)
class ToolRuntime(Generic[ContextT, StateT]):
    """What a tool's code finds about the run, in a parameter annotated with it or named `runtime`."""

    #: The state of the last barrier, as a dict of the tool's own; to change it, return a `Command`.
    state: StateT
    #: What the caller gave as `context=`.
    context: ContextT
    config: Mapping[str, Any]
    #: Adds a part to the `custom` stream.
    stream_writer: StreamWriter
    #: The id of the call, which the answering `ToolMessage` gives as its `tool_call_id`.
    tool_call_id: str | None = None
    #: The long-term memory of the graph, or None.
    store: Any = None
    step: int = 0
    #: The same when the task runs again after a crash; see `pregel.runtime.Runtime`.
    task_id: str = ""
    #: The tools that can be called where this one is.
    tools: tuple[Any, ...] = ()


class InjectedToolArg:
    """Marks a parameter that the model does not see: `Annotated[str, InjectedToolArg]`.

    A wrapper gives its value, by `request.override(tool_call={**call, "args": {**call["args"], name: value}})`; else it
    has its default.
    """


class InjectedState(InjectedToolArg):
    """Marks a parameter that is given the state of the last barrier, or one field of it.

    Args:
        field: The field; None for the whole state.
    """

    def __init__(self, field: str | None = None) -> None:
        self.field = field


class InjectedStore(InjectedToolArg):
    """Marks a parameter that is given the graph's store."""


class InjectedToolCallId(InjectedToolArg):
    """Marks a parameter that is given the id of the call."""


#: By the name of the class, so that the markers of LangChain and LangGraph count as ours do.
MARKERS: Final[Mapping[str, Kind]] = {
    "InjectedState": "state",
    "InjectedStore": "store",
    "InjectedToolCallId": "call",
    "ToolRuntime": "runtime",
    "InjectedToolArg": "argument",
}
#: The same for the annotated type itself. The other names are everybody's, and count where these libraries define them.
RUNTIME: Final = "ToolRuntime"
TYPES: Final[Mapping[str, Kind]] = {"Runtime": "runtime", "RunConfig": "config", "RunnableConfig": "config"}
LIBRARIES: Final = frozenset({"pregel", "langgraph", "langchain_core"})


@dataclass(frozen=True, slots=True)
class Injected:
    """How a parameter is filled."""

    kind: Kind
    #: The field of the state; None for all of it.
    field: str | None = None
    #: Whether it has a default, which stays where there is nothing to give.
    optional: bool = False
    #: The class of which it is given an instance, where that is no dict and not our own `ToolRuntime`.
    build: type | None = None

    #: What is only given by wrappers, and so checked as the model's arguments are.
    BY_WRAPPERS: ClassVar[Kind] = "argument"


def injection_of(name: str, annotation: Any, *, optional: bool) -> Injected | None:
    """Return how a tool's parameter is filled, or None if the model gives it.

    Args:
        name: The parameter's name.
        annotation: Its resolved annotation; `Any` where there is none.
        optional: Whether it has a default.
    """
    for part in alternatives(annotation):
        inner, *marks = get_args(part) if get_origin(part) is Annotated else (part,)
        marked = [(MARKERS[each], mark) for mark in marks for each in class_names(mark) if each in MARKERS]
        if marked:  # the bare InjectedToolArg says least, and others derive from it
            kind, mark = next((each for each in marked if each[0] != Injected.BY_WRAPPERS), marked[0])
            field = getattr(mark, "field", None) if kind == "state" else None
            return Injected(kind, field, optional, built(inner, kind))
        typed = kind_of_type(get_origin(inner) or inner)
        if typed is not None:
            return Injected(typed, None, optional, built(inner, typed))
    if name == "runtime" and annotation is Any:
        return Injected("runtime", None, optional)
    return None


def kind_of_type(annotated: Any) -> Kind | None:
    """Return what a type says that its parameter is filled with."""
    if RUNTIME in class_names(annotated):
        return "runtime"
    if getattr(annotated, "__module__", "").partition(".")[0] in LIBRARIES:
        return TYPES.get(getattr(annotated, "__name__", ""))
    return None


def class_names(thing: Any) -> Iterator[str]:
    """Yield the names of a class, or of an object's class, and of those it derives from."""
    cls = thing if isinstance(thing, type) else type(thing)
    yield from (base.__name__ for base in cls.__mro__)


def built(annotation: Any, kind: Kind) -> type | None:
    """Return the class of which a parameter takes an instance, where it takes one that must be built."""
    cls = get_origin(annotation) or annotation
    if not isinstance(cls, type) or cls.__module__.startswith("pregel."):
        return None
    if kind == "runtime":
        return cls if is_dataclass(cls) else None
    return cls if kind == "state" and (is_dataclass(cls) or hasattr(cls, "model_fields")) else None


def injected_values(
    wanted: Mapping[str, Injected], runtime: ToolRuntime[Any, Any] | None, tool: str, given: Container[str] = ()
) -> dict[str, Any]:
    """Return the values of the parameters that a tool is given beside the model's arguments.

    Args:
        wanted: How each is filled.
        runtime: What there is; None outside of a graph.
        tool: The tool's name, for messages.
        given: The parameters to which wrappers have given a value.

    Raises:
        ToolInjectionError: There is no such field in the state, no runtime, or no value from a wrapper, and the
            parameter has no default.
        MissingStoreError: There is no store, and the parameter has no default.
    """
    values: dict[str, Any] = {}
    for name, how in wanted.items():
        if how.kind == Injected.BY_WRAPPERS:
            if name not in given and not how.optional:
                raise ToolInjectionError(
                    f"the parameter {name!r} of tool {tool!r} is marked with InjectedToolArg, and no wrapper gave it a "
                    "value: give it a default, or wrap the call and override its arguments"
                )
            continue
        if runtime is None:
            if how.optional:
                continue
            raise ToolInjectionError(
                f"the parameter {name!r} of tool {tool!r} is filled from the run of a graph, and there is none: call "
                "the tool in a ToolNode or an agent, or give `runtime=ToolRuntime(...)`"
            )
        found = filling(name, how, runtime, tool)
        if found:
            values[name] = found[0]
    return values


def filling(  # noqa: PLR0911 - one return for each kind
    name: str, how: Injected, runtime: ToolRuntime[Any, Any], tool: str
) -> tuple[Any, ...]:
    """Return the one value of a parameter, or nothing where its default stays.

    Raises:
        ToolInjectionError: See `injected_values`.
        MissingStoreError: See `injected_values`.
    """
    if how.kind == "call":
        return (runtime.tool_call_id,)
    if how.kind == "config":
        return (dict(runtime.config),)
    if how.kind == "runtime":
        if how.build is None:
            return (runtime,)
        given = {field.name: getattr(runtime, field.name, None) for field in fields(how.build) if field.init}
        if "tools" in given:  # theirs knows theirs only
            given["tools"] = [each.origin for each in runtime.tools if each.origin is not None]
        return (how.build(**given),)
    if how.kind == "store":
        if runtime.store is None and not how.optional:
            raise MissingStoreError(
                f"the parameter {name!r} of tool {tool!r} is filled with the store, and the graph was made without "
                "one: give it `store=InMemoryStore()`, or the parameter a default"
            )
        return () if runtime.store is None else (runtime.store,)
    state: Mapping[str, Any] = runtime.state
    if how.field is None:
        return (dict(state) if how.build is None else instance(how.build, state),)
    if how.field in state:
        return (state[how.field],)
    if how.optional:
        return ()
    raise ToolInjectionError(
        f"the parameter {name!r} of tool {tool!r} is filled with the field {how.field!r} of the state, which has no "
        f"value.{nearest(how.field, state)} Those that have one: {', '.join(sorted(state)) or 'none'}. Give the field "
        "a value before, or the parameter a default"
    )


def instance(cls: type, state: Mapping[str, Any]) -> Any:
    """Return the state as an instance of a dataclass or a pydantic model, without what that does not declare."""
    names = {field.name for field in fields(cls)} if is_dataclass(cls) else set(getattr(cls, "model_fields", ()))
    return cls(**{name: value for name, value in state.items() if name in names})
