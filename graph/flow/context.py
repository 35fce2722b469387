"""`FlowContext`: the business data of one graph instance, with the trace of what ran and the cursor kept apart.

Three things look alike and are not. The *data* is what the mapping shows. The *trace* is the history of the runs. The
*cursor* of a graph is what is due next on it. Only the data is in the mapping: no key of it means anything to the
engine, and names that begin with "@" or "__" are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, overload
from uuid import uuid4

from pregel.channels.base import MISSING
from pregel.errors import nearest
from pregel.graph.flow.errors import ContextBusyError, ContextKeyError, MissingResourceError
from pregel.graph.flow.home import Home, TaskPart, check_key
from pregel.graph.flow.storing import check_storable
from pregel.ids import check_id
from pregel.text import shortened

if TYPE_CHECKING:
    from collections.abc import Callable

    from pregel.checkpoint.base import Checkpointer
    from pregel.graph.flow.home import Cursor, Visit
    from pregel.graph.flow.keys import Key

__all__ = ["FlowContext", "Group"]

T = TypeVar("T")

#: What `scoped` lays over contexts, innermost last: (home, values). Tasks inherit it from who started the run.
OVERLAYS: Final[ContextVar[tuple[tuple[Home, dict[str, Any]], ...]]] = ContextVar("pregel_flow_overlays", default=())


class FlowContext(MutableMapping[str, Any]):
    """The business data of one graph instance: a mapping from flat keys such as "order.id" to values.

    None is a value and deletes are real. An activity gets a view with writes of its own: they reach the context when
    its superstep is committed, and never if it fails. Values are handed out as they are: to change one in place is no
    write, set the key. Two contexts of one id are two contexts.

    Args:
        id: Names the instance; None for a new unique one.
        init: The first data. Dotted keys: `ctx.update({"order.id": 1})`.

    Raises:
        ContextKeyError: A key is reserved.
        InvalidIdError: The id can't be one.
    """

    __slots__ = ("_home", "_task")

    def __init__(self, /, id: str | None = None, **init: Any) -> None:  # noqa: A002 - the public name
        self._home = Home(str(uuid4()) if id is None else check_id(id, "the id of a context"))
        self._task: TaskPart | None = None
        if init:
            self.update(init)

    @classmethod
    def of_home(cls, home: Home, task: TaskPart | None = None) -> Self:
        """Return a view of what belongs to an existing context: the context itself, or what a task sees of it."""
        made = cls.__new__(cls)
        made._home = home  # noqa: SLF001 - an object of this very class, here and below
        made._task = task  # noqa: SLF001
        return made

    # -- the mapping ---------------------------------------------------------------------------------------------------

    @overload
    def __getitem__(self, key: Key[T]) -> T: ...
    @overload
    def __getitem__(self, key: str) -> Any: ...
    def __getitem__(self, key: str) -> Any:
        """Return a value.

        Raises:
            KeyError: There is none; it says which keys are near.
        """
        value = self._laid_over(key)
        if value is not MISSING:
            return value
        if self._task is not None and key in self._task.folded:
            return self._task.folded[key]
        value = self._data.get(key, MISSING)
        if value is MISSING:
            raise KeyError(f"{key!r}{nearest(key, self)}")
        return value

    def __setitem__(self, key: str, value: Any) -> None:
        key = check_key(key)
        self._may_change(key)
        if self._task is None:
            check_storable(key, value, self._where)
            self._home.change({key: value})
        else:
            self._task.buffer[key] = value

    def __delitem__(self, key: str) -> None:
        self._may_change(key)
        if key not in self:
            self[key]  # raises as reading does
        if self._task is None:
            self._home.change({}, (key,))
        else:
            del self._task.buffer[key]

    def __iter__(self) -> Iterator[str]:
        data = self._data
        yield from data
        shown = {key for home, values in OVERLAYS.get() if home is self._home for key in values}
        if self._task is not None:
            shown |= self._task.folded.keys()
        yield from sorted(key for key in shown if key not in data)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, key: object) -> bool:
        if key in self._data or self._laid_over(key) is not MISSING:
            return True
        return self._task is not None and key in self._task.folded

    def __eq__(self, other: object) -> bool:
        """A context is itself and no other one: those with the same data may belong to different instances."""
        return self is other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"FlowContext({self.id!r}, {shortened(dict(self))})"

    def update(self, /, *others: Any, **values: Any) -> None:
        """Set several keys: all, or where one is refused, none.

        Raises:
            ContextKeyError: A key is reserved, or the node may not write it.
            KeyTypeError: A value is not of its key's type.
            EncodeError: A value can't be stored; the message names the key.
            ContextBusyError: A run has the context, and this is not its task's view of it.
        """
        given = {check_key(key): value for key, value in dict(*others, **values).items()}
        for key, value in given.items():
            self._may_change(key)
            if self._task is None:
                check_storable(key, value, self._where)
        if self._task is None:
            self._home.change(given)
        else:
            self._task.buffer.update(given)

    def clear(self) -> None:
        """Remove all keys, or where one may not be removed, none."""
        gone = list(self._data)
        for key in gone:
            self._may_change(key)
        if self._task is None:
            self._home.change({}, gone)
        else:
            for key in gone:
                del self._task.buffer[key]

    def get_or_create(self, key: str, make: Callable[[], T]) -> T:
        """Return a key's value; where there is none, set it to what `make` returns."""
        if key not in self:
            self[key] = make()
        return self[key]  # type: ignore[no-any-return]  # what `make` returned, or somebody set

    def add(self, key: str, value: Any) -> None:
        """Fold a value into a key that was declared with a reducer. Tasks that run side by side may all add.

        Raises:
            ContextKeyError: The key has no reducer, or the node may not write it.
        """
        declared = None if self._task is None else self._task.keys.get(key)
        if self._task is None or declared is None or declared.reducer is None:
            raise ContextKeyError(
                f"{self._where}: {key!r} has no reducer, so nothing can be added to it: declare it with "
                f"Key(type, {str(key)!r}, reducer=...), or set it. A reducer works in the tasks of a graph with keys"
            )
        task, key = self._task, str(key)
        task.may_write(key, adds=True)
        value = task.check(key, value)
        seen = self.get(key, MISSING)
        task.added.append((key, value))
        task.folded[key] = value if seen is MISSING else declared.reducer(seen, value)

    # -- views ---------------------------------------------------------------------------------------------------------

    def view(self) -> Mapping[str, Any]:
        """Return the data as it is now, as a mapping that nobody can change."""
        return MappingProxyType(dict(self))

    def group(self, prefix: str) -> Group:
        """Return the keys below a prefix, as a mapping by the rest of their names: `ctx.group("analysis")["risk"]`."""
        return Group(self, prefix)

    @contextmanager
    def scoped(self, values: Mapping[str, Any] | None = None, /, **more: Any) -> Iterator[None]:
        """Lay values over the data while the block runs: for this code and the runs it starts, and nobody else.

        They are not stored. Inside the block the keys can be read, not written.

        Raises:
            ContextKeyError: A key is reserved.
        """
        laid = {check_key(key): value for key, value in {**(values or {}), **more}.items()}
        token = OVERLAYS.set((*OVERLAYS.get(), (self._home, laid)))
        try:
            yield
        finally:
            OVERLAYS.reset(token)

    # -- beside the data -----------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """What names the instance."""
        return self._home.id

    @property
    def home(self) -> Home:
        """What all views of the context share; for the parts of this package."""
        return self._home

    @property
    def task(self) -> TaskPart | None:
        """What a view inside a task has of its own; for the parts of this package."""
        return self._task

    @property
    def trace(self) -> tuple[Visit, ...]:
        """What was run on the context, graph by graph, in order; inside a task as of the last superstep."""
        mine = () if self._task is None else self._task.trace
        return (*self._home.trace, *mine)

    @property
    def last_node(self) -> str | None:
        """The node that was recorded last; for people. What is due next is what `cursor` tells."""
        trace = self.trace
        return trace[-1].node if trace else None

    def resource(self, name: str) -> Any:
        """Return what the run was given under a name that a node of its graph has declared.

        Raises:
            MissingResourceError: None has declared it, or nothing runs.
        """
        given = self._home.resources
        if name not in given:
            raise MissingResourceError(
                f"{self._where} asks for the resource {name!r}, which no run declares.{nearest(name, given)} "
                "add_activity(..., resources=[Resource('name')]), so that a run without it does not begin"
            )
        return given[name]

    def cursor(self, graph: Any) -> Cursor:
        """Return where a `FlowGraph` stands on this context."""
        return graph.cursor(self)  # type: ignore[no-any-return]  # a FlowGraph

    def stop(self, reason: str = "stopped") -> None:
        """Let the run end after the current superstep; `resume` goes on from there.

        In an activity it holds when that ends well. From outside it may be called on any thread.

        Raises:
            FlowRunError: Nothing runs on the context.
        """
        if self._task is not None:
            self._task.stops.append(reason)
            return
        self._home.request_stop(reason, "stop")

    # -- in a store ----------------------------------------------------------------------------------------------------

    @classmethod
    def open(cls, id: str, checkpointer: Checkpointer) -> FlowContext:  # noqa: A002 - the public name
        """Return the stored context of an id, or a new one that is stored from now on. It takes one writer.

        A write from outside of a run is stored when it returns; what a run makes, when it ends, and after a crash
        when the context is opened again. It is open until `close`, or until the process ends:

            with FlowContext.open("risk-job-001", SqliteSaver("jobs.sqlite")) as ctx: ...

        Args:
            id: Names the instance.
            checkpointer: Where it is stored, and the runs of its graphs.

        Raises:
            ContextBusyError: It is open already, in this process or another one.
            DecodeError: What is stored is damaged, or of a type that is not registered.
        """
        from pregel.graph.flow.open import opened  # noqa: PLC0415 - most contexts are not stored

        return cls.of_home(opened(check_id(id, "the id of a context"), checkpointer))

    def close(self) -> None:
        """Let others open a stored context; it can still be read. For any other context it does nothing.

        Raises:
            ContextBusyError: A run has the context.
        """
        home = self._home
        if home.running is not None:
            raise ContextBusyError(f"context {home.id!r} can't be closed while graph {home.running!r} runs on it")
        if home.ledger is not None:
            home.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- as a text -----------------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Return data, trace, conversation and the unfinished runs of all graphs as a JSON text.

        Values of standard types that JSON lacks, and of registered types, stand there with a tag. What a run is given
        as resources does not; the text names what is needed.

        Raises:
            ContextBusyError: A run has the context.
        """
        from pregel.graph.flow.snapshot import to_json  # noqa: PLC0415 - most contexts are never told

        return to_json(self)

    @classmethod
    def from_json(cls, text: str, checkpointer: Checkpointer | None = None) -> FlowContext:
        """Return the context that a text of `to_json` tells of; `graph.resume` goes on exactly where it stood.

        No class that the text names is imported: its types must be registered, or be those of a `KeySpace`'s keys.

        Args:
            text: The text.
            checkpointer: Where the context is stored from now on, and open: see `open`; None for its own memory.

        Raises:
            DecodeError: The text is none, is damaged or of another format, or names a type that is not registered.
            ConcurrentRunError: The checkpointer has this context already.
        """
        from pregel.graph.flow.snapshot import from_json  # noqa: PLC0415 - as above

        return from_json(text, checkpointer)

    # -- what the methods share ----------------------------------------------------------------------------------------

    @property
    def _data(self) -> MutableMapping[str, Any]:
        return self._home.values if self._task is None else self._task.buffer

    @property
    def _where(self) -> str:
        return f"context {self.id!r}" if self._task is None else self._task.where

    def _laid_over(self, key: object) -> Any:
        for home, values in reversed(OVERLAYS.get()):
            if home is self._home and key in values:
                return values[key]
        return MISSING

    def _may_change(self, key: str) -> None:
        if self._task is None:
            if self._home.running is not None:
                raise ContextBusyError(
                    f"{self._where}: {str(key)!r} can't be changed while graph {self._home.running!r} runs. An "
                    "activity changes the context that it is given"
                )
        else:
            self._task.may_write(key)
        if self._laid_over(key) is not MISSING:
            raise ContextKeyError(
                f"{self._where}: {str(key)!r} is laid over by scoped() here, so a write would not be seen: write it "
                "outside of the block"
            )


class Group(MutableMapping[str, Any]):
    """The keys of a context below a prefix."""

    __slots__ = ("_context", "_prefix")

    def __init__(self, context: FlowContext, prefix: str) -> None:
        self._context = context
        self._prefix = f"{prefix}."

    def __getitem__(self, key: str) -> Any:
        return self._context[self._full(key)]

    def __setitem__(self, key: str, value: Any) -> None:
        self._context[self._full(check_key(key))] = value

    def __delitem__(self, key: str) -> None:
        del self._context[self._full(key)]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._full(key) in self._context

    def __iter__(self) -> Iterator[str]:
        start = len(self._prefix)
        return (key[start:] for key in self._context if key.startswith(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def update(self, /, *others: Any, **values: Any) -> None:
        """Set several keys: all, or where one is refused, none; see `FlowContext.update`."""
        self._context.update({self._full(check_key(key)): value for key, value in dict(*others, **values).items()})

    def _full(self, key: object) -> str:
        if not isinstance(key, str):
            raise KeyError(key)
        return self._prefix + key

    def __repr__(self) -> str:
        return f"Group({self._prefix!r}, {shortened(dict(self))})"
