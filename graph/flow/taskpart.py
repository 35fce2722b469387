"""What a view of a context has of its own inside a task: its writes, and what it may read and write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pregel.channels.base import MISSING
from pregel.errors import nearest
from pregel.graph.flow.errors import ContextKeyError, MissingKeyError
from pregel.graph.flow.home import what_is_there

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pregel.graph.buffered import Buffered
    from pregel.graph.flow.home import Visit
    from pregel.graph.flow.keys import Key, KeySpace

__all__ = ["TaskPart"]


class TaskPart:
    """What a view of a context inside a task has of its own.

    Args:
        graph: The graph that runs.
        node: The node that runs.
        buffer: The task's writes over the data of the last barrier.
        check: Returns the value to keep for a key, or raises.
        space: The declared keys; None where any key may be used.
        trace: What was run before, in this run.
        frozen: Why nothing may be written, where that is so.
    """

    __slots__ = (
        "added",
        "buffer",
        "check",
        "folded",
        "frozen",
        "given",
        "graph",
        "keys",
        "node",
        "space",
        "stops",
        "trace",
    )

    def __init__(
        self,
        graph: str,
        node: str,
        buffer: Buffered,
        check: Callable[[str, Any], Any],
        space: type[KeySpace] | None,
        trace: list[Visit],
        frozen: str | None = None,
    ) -> None:
        self.graph = graph
        self.node = node
        self.buffer = buffer
        self.check = check
        self.space = space
        #: The declared keys by name; empty where any key may be used.
        self.keys: Mapping[str, Key[Any]] = {} if space is None else space.keys
        self.trace = trace
        self.frozen = frozen
        #: Where changes in place are looked for: the data of the last barrier, and the copies that the task was given.
        self.given: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None
        #: What `add` was given, in order, and what the task sees of it.
        self.added: list[tuple[str, Any]] = []
        self.folded: dict[str, Any] = {}
        #: The reasons that `stop` was given: they hold when the task has ended well.
        self.stops: list[str] = []

    @property
    def where(self) -> str:
        """How messages name the node."""
        return f"node {self.node!r} of graph {self.graph!r}"

    def check_read(self, key: object) -> None:
        """Check that a key that has no value is one that may be looked for.

        Raises:
            ContextKeyError: It is not declared.
        """
        if self.space is not None:
            self.space.find(key, self.where)  # type: ignore[arg-type]  # any object may be asked for

    def missing(self, key: object, there: Mapping[str, Any]) -> MissingKeyError:
        """Return the error of reading a key that has no value."""
        known = "is declared and has no value" if key in self.keys else "the context does not have"
        return MissingKeyError(
            f"{self.where} reads {str(key)!r}, which {known}.{nearest(key, there)} {what_is_there(there)}"
        )

    def may_write(self, key: str, *, adds: bool = False) -> None:
        """Check that the node may write a key in this way.

        Raises:
            ContextKeyError: Nothing may be written here, or not by this node, or the key is folded and not set, or is
                set once and has a value.
        """
        if self.frozen is not None:
            raise ContextKeyError(f"{self.where}: {str(key)!r} can't be changed here: {self.frozen}")
        declared = self.keys.get(key)
        if declared is None:  # where keys are declared, the check of the value says that this one is not
            return
        if declared.writers and self.node not in declared.writers:
            raise ContextKeyError(
                f"{self.where} may not write {str(key)!r}: its writers are {', '.join(sorted(declared.writers))}"
            )
        if self.folds(key) and not adds:
            raise ContextKeyError(
                f"{self.where}: {str(key)!r} is folded by its reducer, not set: ctx.add({str(key)!r}, value)"
            )
        if declared.once and key in self.buffer:
            raise ContextKeyError(
                f"{self.where}: {str(key)!r} is set once and has a value, so no node may change it: write another key. "
                "Between runs the context's owner may"
            )

    def folds(self, key: str) -> bool:
        """Return whether a key is declared with a reducer, so that it is added to and not set."""
        return key in self.keys and self.keys[key].reducer is not None

    def add(self, key: str, value: Any, seen: Any) -> None:
        """Fold a value into a key with a reducer.

        Args:
            key: The key.
            value: What is added.
            seen: What the task sees there now; MISSING for nothing.

        Raises:
            ContextKeyError: The node may not write the key.
            KeyTypeError: The value is not of the key's type.
        """
        self.may_write(key, adds=True)
        value = self.check(key, value)
        self.added.append((key, value))
        reducer: Any = self.keys[key].reducer
        self.folded[key] = value if seen is MISSING else reducer(seen, value)
