"""What all views of one context share, and what a task's view has of its own."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pregel.codec import register
from pregel.errors import InvalidIdError
from pregel.graph.flow.errors import ContextBusyError, ContextKeyError, FlowRunError
from pregel.ids import check_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pregel.checkpoint.base import Checkpointer
    from pregel.control import RunControl
    from pregel.graph.buffered import Buffered
    from pregel.graph.flow.keys import Key
    from pregel.types import Breakpoint, Interrupt

__all__ = ["Cursor", "Home", "TaskPart", "Visit", "check_key"]

#: Keys that begin so belong to the engine and to the fields that a graph keeps for itself.
RESERVED: Final = ("@", "__")


class Visit(NamedTuple):
    """One line of a context's trace: a node of a graph was run, or stopped."""

    graph: str
    node: str
    #: The superstep, counted over the runs of the graph on this context.
    step: int
    #: "done"; "paused" for a node that waits for an answer, "failed" for one that raised.
    status: str = "done"
    #: How long it took, in seconds; None where it did not end.
    duration: float | None = None


register(Visit, tag="pregel:flow.Visit")


class Cursor(NamedTuple):
    """Where a graph stands on a context."""

    graph: str
    #: "new" if it never ran, "unfinished" if something is due, else "finished".
    status: str
    #: The nodes that are due.
    next: tuple[str, ...] = ()
    #: What those that are paused ask.
    pending: tuple[Interrupt | Breakpoint, ...] = ()
    #: The last superstep.
    step: int = 0


class Home:
    """What all views of one context share: everything but the view's own buffer.

    Args:
        id: The context's id.
        saver: Where its graphs' runs are stored; None for a memory of its own.
    """

    __slots__ = (
        "control",
        "id",
        "ledger",
        "lock",
        "needs",
        "owns_saver",
        "private",
        "resources",
        "running",
        "saver",
        "trace",
        "values",
    )

    def __init__(self, id: str, saver: Checkpointer | None = None) -> None:  # noqa: A002 - the public name
        self.id = id
        #: The data, as of the end of the last run.
        self.values: dict[str, Any] = {}
        #: What graphs keep on the context beside the data, by field ("@records/team"): see `AgentPart.fields`.
        self.private: dict[str, Any] = {}
        self.trace: list[Visit] = []
        #: The names of what each graph needs that no snapshot holds, as of its last run.
        self.needs: dict[str, tuple[str, ...]] = {}
        self.saver = saver
        #: Whether that is a memory of its own, in which nobody looks for the history of runs.
        self.owns_saver = False
        #: What stores data and trace, for a context that was opened on a store: a `Ledger`.
        self.ledger: Any = None
        self.lock = Lock()
        #: The graph that runs on it now, by name.
        self.running: str | None = None
        #: Stops that run at its next barrier.
        self.control: RunControl | None = None
        #: What the run was given that no snapshot holds, by name.
        self.resources: Mapping[str, Any] = {}

    def storage(self) -> Checkpointer:
        """Return where runs are stored."""
        if self.saver is None:
            from pregel.checkpoint.memory import InMemorySaver  # noqa: PLC0415 - a context that runs nothing needs none

            self.saver = InMemorySaver()
            self.owns_saver = True
        return self.saver

    def thread(self, graph: str) -> str:
        """Return the thread of a graph's runs on this context."""
        return f"{self.id}/{graph}"

    def take(self, graph: str, control: RunControl, resources: Mapping[str, Any]) -> None:
        """Begin a run on the context.

        Raises:
            ContextBusyError: Another one has it.
        """
        with self.lock:
            if self.running is not None:
                raise ContextBusyError(
                    f"graph {graph!r} can't run on context {self.id!r} now: graph {self.running!r} does, and a context "
                    "takes one run at a time. Wait for its end, or give each its own context"
                )
            self.running, self.control, self.resources = graph, control, resources

    def request_stop(self, reason: str, where: str) -> None:
        """Let the run that has the context end at its next barrier.

        Raises:
            FlowRunError: None has it.
        """
        if self.control is None:
            raise FlowRunError(
                f"{where}: no run has context {self.id!r}, so there is nothing to stop. FlowGraph.run and .resume have "
                "their context; the compiled graph by itself is stopped with control=RunControl()"
            )
        self.control.request_drain(reason)

    def change(self, given: Mapping[str, Any], gone: Iterable[str] = ()) -> None:
        """Set and remove keys, from outside of a run; in a context that was opened on a store it is stored then.

        Raises:
            FlowRunError: The context was closed.
            Exception: The storage failed; nothing has changed.
        """
        if self.ledger is None:
            self.values.update(given)
            for key in gone:
                del self.values[key]
            return
        before, left = self.values, frozenset(gone)
        self.values = {key: value for key, value in {**before, **given}.items() if key not in left}
        try:
            self.ledger.save(self)
        except BaseException:
            self.values = before
            raise

    def release(self) -> None:
        """End the run that has the context."""
        self.running, self.control, self.resources = None, None, {}


class TaskPart:
    """What a view of a context inside a task has of its own.

    Args:
        graph: The graph that runs.
        node: The node that runs.
        buffer: The task's writes over the data of the last barrier.
        check: Returns the value to keep for a key, or raises.
        keys: The declared keys, with the types of their values; empty where any key may be used.
        trace: What was run before, in this run.
        frozen: Why nothing may be written, where that is so.
    """

    __slots__ = ("added", "buffer", "check", "folded", "frozen", "graph", "keys", "node", "stops", "trace")

    def __init__(
        self,
        graph: str,
        node: str,
        buffer: Buffered,
        check: Callable[[str, Any], Any],
        keys: Mapping[str, Key[Any]],
        trace: list[Visit],
        frozen: str | None = None,
    ) -> None:
        self.graph = graph
        self.node = node
        self.buffer = buffer
        self.check = check
        self.keys = keys
        self.trace = trace
        self.frozen = frozen
        #: What `add` was given, in order, and what the task sees of it.
        self.added: list[tuple[str, Any]] = []
        self.folded: dict[str, Any] = {}
        #: The reasons that `stop` was given: they hold when the task has ended well.
        self.stops: list[str] = []

    @property
    def where(self) -> str:
        """How messages name the node."""
        return f"node {self.node!r} of graph {self.graph!r}"

    def may_write(self, key: str, *, adds: bool = False) -> None:
        """Check that the node may write a key in this way.

        Raises:
            ContextKeyError: Nothing may be written here, or not by this node, or the key is folded and not set.
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
        if declared.reducer is not None and not adds:
            raise ContextKeyError(
                f"{self.where}: {str(key)!r} is folded by its reducer, not set: ctx.add({str(key)!r}, value)"
            )


def check_key(key: object) -> str:
    """Return a key that may be one, as a bare text.

    Raises:
        ContextKeyError: It is no text that can be stored as a name, or is reserved.
    """
    try:
        check_id(key, "a key of a context")
    except InvalidIdError as error:
        raise ContextKeyError(str(error)) from None
    key = str(key)
    if key.startswith(RESERVED):
        raise ContextKeyError(
            f"the key {key!r} is reserved: those that begin with '@' or '__' belong to the engine. What runs "
            "(sessions, models, traces) is kept beside the data, never in it"
        )
    return key
