"""What all views of one context share: the data, the trace, and who has it."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pregel.codec import register
from pregel.errors import InvalidIdError, nearest
from pregel.graph.flow.errors import ContextBusyError, ContextKeyError, FlowRunError, MissingResourceError
from pregel.ids import check_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pregel.checkpoint.base import Checkpointer
    from pregel.control import RunControl
    from pregel.types import Breakpoint, Interrupt

__all__ = ["Cursor", "Home", "Visit", "check_key", "what_is_there"]

#: Keys that begin so belong to the engine and to the fields that a graph keeps for itself.
RESERVED: Final = ("@", "__")
#: How many keys a message names.
NAMED: Final = 12


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
        "questions",
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
        #: The names of what a run of each graph must be given if it goes on; of one that is over, what it was given.
        self.needs: dict[str, tuple[str, ...]] = {}
        self.saver = saver
        #: Whether that is a memory of its own, in which nobody looks for the history of runs.
        self.owns_saver = False
        #: What stores data and trace, for a context that was opened on a store: a `Ledger`.
        self.ledger: Any = None
        #: What paused runs have asked in this process, by `Interrupt.id`, to be asked again.
        self.questions: dict[str, Interrupt] = {}
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

    def take(self, graph: str, control: RunControl) -> None:
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
            self.running, self.control = graph, control

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

    def resource(self, name: str, where: str) -> Any:
        """Return what the run that has the context was given under a name.

        Raises:
            MissingResourceError: No node that may run has declared it, or nothing runs.
        """
        if name not in self.resources:
            raise MissingResourceError(
                f"{where} asks for the resource {name!r}, which no run declares.{nearest(name, self.resources)} "
                "add_activity(..., resources=[Resource('name')]), so that a run without it does not begin"
            )
        return self.resources[name]

    def close(self) -> None:
        """Let others open a context that is stored.

        Raises:
            ContextBusyError: A run has it.
        """
        if self.running is not None:
            raise ContextBusyError(f"context {self.id!r} can't be closed while graph {self.running!r} runs on it")
        if self.ledger is not None:
            self.ledger.close()

    def forget_questions(self, graph: str) -> None:
        """Forget what a graph has asked, when its run is over."""
        mine = f"{self.thread(graph)}|"
        self.questions = {name: asked for name, asked in self.questions.items() if not name.startswith(mine)}

    def release(self) -> None:
        """End the run that has the context."""
        self.running, self.control, self.resources = None, None, {}


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


def what_is_there(data: Iterable[str]) -> str:
    """Return which keys there are, as a sentence."""
    names = [str(key) for key in data]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"It has {', '.join(names[:NAMED])}{more}." if names else "It is empty."
