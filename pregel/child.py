"""A compiled graph as a node of another one: what goes in, and what comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pregel.barrier import grouped
from pregel.channels.base import MISSING, Overwrite
from pregel.config import RunOptions, merged_config, read_config
from pregel.observe import watched
from pregel.runtime import current_frame
from pregel.session import Session
from pregel.types import Command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pregel.main import Pregel
    from pregel.runtime import Run

__all__ = ["Child", "Giving", "options_inside"]

#: How the updates that a child made to a field become updates of the field of that name around it: each of them in
#: order, all of them merged by key, or the value they led to.
Giving = Literal["each", "merged", "final"]


class Child:
    """Runs a graph as a node.

    Shared fields are set into the child, not folded: its reducers see the value of the graph around it as their own.
    Back come the updates that the child made, never what it was given, so nothing is doubled and nothing echoed.

    Args:
        graph: The child.
        gives: The fields that it shares on the way back.
    """

    def __init__(self, graph: Pregel, gives: Mapping[str, Giving]) -> None:
        self.graph = graph
        self.gives = gives

    def call(self, given: Any) -> list[Command[Any]]:
        """Run the child without an event loop."""
        session = self.session(given)
        session.complete()
        return self.answer(session)

    async def acall(self, given: Any) -> list[Command[Any]]:
        """Run the child on the event loop at hand."""
        session = self.session(given)
        await session.acomplete()
        return self.answer(session)

    def session(self, given: Any) -> Session:
        """Return a run of the child that has taken its input.

        Raises:
            InvalidInputError: The child was started by a `Send` whose argument is no input of it.
        """
        frame = current_frame()
        task, run, *_ = frame
        graph = self.graph
        session = watched(Session)(
            graph._network,  # noqa: SLF001 - a child is a graph run from inside
            options_inside(graph, run),
            context=graph._read_context(run.context),  # noqa: SLF001 - see above
            on_failure=graph._on_failure,  # noqa: SLF001 - see above
            persistence=graph._persistence,  # noqa: SLF001 - see above
            around=frame,
            journal=self.gives,
        )
        if task.arg is MISSING:
            session.start([(name, Overwrite(value)) for name, value in given.items()])
        else:
            session.start(graph._door.updates(given, session.run.new_id))  # noqa: SLF001 - see above
        return session

    def answer(self, session: Session) -> list[Command[Any]]:
        """Return what the child asks of the graph around it: its updates, then its commands to that graph."""
        machine = session.machine
        updates = list(self.updates(machine.journal, machine.values))
        return [Command(update=updates), *machine.escapes]

    def updates(self, journal: Sequence[tuple[str, Any]], values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield the updates of the graph around the child."""
        for name, made in grouped(journal).items():
            final = values.get(name, MISSING)
            giving = self.gives[name]
            if any(isinstance(update, Overwrite) for update in made):
                if final is not MISSING:
                    yield name, Overwrite(final)
            elif giving == "each":
                yield from ((name, update) for update in made)
            elif giving == "merged":
                yield name, {key: value for update in made for key, value in update.items()}
            elif final is not MISSING:
                yield name, final


def options_inside(graph: Pregel, run: Run) -> RunOptions:
    """Return the options of a graph inside a task: those of the run of that, under those bound to the graph."""
    bound = graph._config  # noqa: SLF001 - a graph run from inside
    if bound is None:
        return RunOptions(run.limit, run.max_concurrency, run.config)
    outer = {**run.config, "recursion_limit": run.limit, "max_concurrency": run.max_concurrency}
    return read_config(merged_config(outer, bound))
