"""`FlowContext`: the business data of one graph instance, with the trace of what ran and the cursor kept apart.

Three things look alike and are not. The *data* is what the mapping shows. The *trace* is the history of the runs. The
*cursor* of a graph is what is due next on it. Only the data is in the mapping: no key of it means anything to the
engine, and names that begin with "@" or "__" are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload
from uuid import uuid4

from pregel.channels.base import MISSING
from pregel.errors import nearest
from pregel.graph.flow.errors import ContextBusyError, ContextKeyError, MissingKeyError
from pregel.graph.flow.home import Home, check_key, what_is_there
from pregel.graph.flow.storing import check_storable
from pregel.graph.flow.views import Group, laid, laid_keys, laid_over
from pregel.ids import check_id
from pregel.text import shortened

if TYPE_CHECKING:
    from collections.abc import Callable

    from pregel.checkpoint.base import Checkpointer
    from pregel.graph.flow.home import Cursor, Visit
    from pregel.graph.flow.keys import Key
    from pregel.graph.flow.taskpart import TaskPart

__all__ = ["FlowContext"]

T = TypeVar("T")
D = TypeVar("D")


class FlowContext(MutableMapping[str, Any]):
    """The business data of one graph instance: a mapping from flat keys such as "order.id" to values.

    None is a value and deletes are real. An activity gets a view with writes of its own: they reach the context when
    its superstep is committed, and never if it fails. Values are handed out as they are: to change one in place is no
    write, set the key. Two contexts of one id are two contexts.

    Args:
        id: Names the instance; None for a new unique one.
        data: The first data, as a mapping: `FlowContext("job-1", {"order.id": 1})`.
        init: More of it, for keys that are names in Python.

    Raises:
        ContextKeyError: A key is reserved.
        InvalidIdError: The id can't be one.
        EncodeError: A value can't be stored.
    """

    __slots__ = ("_home", "_task")

    def __init__(self, /, id: str | None = None, *data: Mapping[str, Any], **init: Any) -> None:  # noqa: A002 - the public name
        self._home = Home(str(uuid4()) if id is None else check_id(id, "the id of a context"))
        self._task: TaskPart | None = None
        if data or init:
            self.update(*data, **init)

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
            MissingKeyError: There is none (a `KeyError`); it names the node, and near keys.
            ContextKeyError: There is none, and the graph that runs has declared its keys and not this one.
        """
        value = self._found(key)
        if value is not MISSING:
            return value
        if self._task is not None:
            raise self._task.missing(key, self)
        raise MissingKeyError(f"{self._where} has no key {str(key)!r}.{nearest(key, self)} {what_is_there(self)}")

    # What the mixin does by `__getitem__` would look for near keys each time there is none.

    @overload  # type: ignore[override]  # more is known of a `Key` than of a text
    def get(self, key: Key[T], default: None = None) -> T | None: ...
    @overload
    def get(self, key: Key[T], default: D) -> T | D: ...
    @overload
    def get(self, key: str, default: Any = None) -> Any: ...
    def get(self, key: str, default: Any = None) -> Any:
        """Return a value, or the default.

        Raises:
            ContextKeyError: The graph that runs has declared its keys and not this one.
        """
        value = self._found(key)
        return default if value is MISSING else value

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return a value, after setting it to the default where there is none."""
        return self.get_or_create(key, lambda: default)

    def pop(self, key: str, *default: Any) -> Any:
        """Delete a key and return its value, or the default where there is none."""
        if default and self._found(key) is MISSING:
            return default[0]
        value = self[key]
        del self[key]
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
        shown = laid_keys(self._home)
        if self._task is not None:
            shown |= self._task.folded.keys()
        yield from sorted(key for key in shown if key not in data)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, key: object) -> bool:
        if key in self._data or laid_over(self._home, key) is not MISSING:
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
        if self._found(key) is MISSING:
            self[key] = make()
        return self[key]  # type: ignore[no-any-return]  # what `make` returned, or somebody set

    def add(self, key: str, value: Any) -> None:
        """Fold a value into a key that was declared with a reducer. Tasks that run side by side may all add.

        Raises:
            ContextKeyError: The key has no reducer, or the node may not write it.
        """
        task = self._task
        if task is None or not task.folds(key):
            raise ContextKeyError(
                f"{self._where}: {str(key)!r} has no reducer, so nothing can be added to it: declare it with "
                f"Key(type, {str(key)!r}, reducer=...), or set it. A reducer works in the tasks of a graph with keys"
            )
        task.add(str(key), value, self.get(key, MISSING))

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
        with laid({check_key(key): value for key, value in {**(values or {}), **more}.items()}, over=self._home):
            yield

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
        return self._home.resource(name, self._where)

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
        self._home.close()

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

    def _found(self, key: str) -> Any:
        """Return a value, or MISSING.

        Raises:
            ContextKeyError: There is none, and the key is not declared.
        """
        value = laid_over(self._home, key)
        task = self._task
        if value is MISSING and task is not None:
            value = task.folded.get(key, MISSING)
        if value is MISSING:
            value = self._data.get(key, MISSING)
        if value is MISSING and task is not None:
            task.check_read(key)
        return value

    def _may_change(self, key: str) -> None:
        if self._task is None:
            if self._home.running is not None:
                raise ContextBusyError(
                    f"{self._where}: {str(key)!r} can't be changed while graph {self._home.running!r} runs. An "
                    "activity changes the context that it is given"
                )
        else:
            self._task.may_write(key)
        if laid_over(self._home, key) is not MISSING:
            raise ContextKeyError(
                f"{self._where}: {str(key)!r} is laid over by scoped() here, so a write would not be seen: write it "
                "outside of the block"
            )
