"""How a stored state is changed from outside: as if nodes had returned the values, in supersteps of their own."""

from __future__ import annotations

from dataclasses import replace
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from pregel.drivers.sync import SyncDriver
from pregel.errors import CheckpointNotFoundError, InvalidUpdateError, nearest
from pregel.node import EDITOR, Code, View
from pregel.session import Session
from pregel.task import Task
from pregel.types import END, START, StateUpdate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pregel.main import Pregel
    from pregel.node import Node
    from pregel.superstep import Command

__all__ = ["Edit", "read_supersteps"]


class Edit(Session):
    """A run whose tasks return what they were told in place of running their nodes; it ends after the last superstep."""

    graph: Pregel
    supersteps: list[list[StateUpdate]]

    def edit(self, graph: Pregel, supersteps: list[list[StateUpdate]]) -> None:
        """Take what is to be changed when the run is performed: all of it, or nothing."""
        self.graph = graph
        self.supersteps = supersteps[::-1]
        self.claim_thread(self.begin_edit)

    def begin_edit(self) -> Sequence[Command]:
        """Read what is stored, and return what the machine does first."""
        self.claim.together = []  # type: ignore[union-attr]
        opening, found = self.begin_thread(self.address.namespace)
        if not found and self.address.namespace:
            raise CheckpointNotFoundError(
                f"thread {self.address.thread_id!r} has nothing stored of the graph {'/'.join(self.address.namespace)!r}"
            )
        self.recorder.owner = opening.record.owner  # type: ignore[union-attr]
        updates = self.supersteps.pop()
        names = [update.as_node for update in updates]
        if names == [START] or (names == [None] and not found):
            given = self.graph._door.updates(updates[0].values or {}, self.run.new_id)  # noqa: SLF001 - as `invoke`
            return opening.start(given, found=found, edits=True)
        if found:
            self.machine.load(opening.values, opening.step, opening.standing)
        return self.edited(updates)

    def following(self) -> bool:
        """Begin the next superstep; return whether there is one."""
        if not self.supersteps:
            return False
        before = self.machine
        self.machine = before.successor()
        self.machine.load(before.values, before.step, before.standing)
        self.commands = self.edited(self.supersteps.pop())
        return True

    def edited(self, updates: list[StateUpdate]) -> Sequence[Command]:
        """Return what the machine does to make these updates."""
        step = self.machine.step
        if [update.as_node for update in updates] == [END] and updates[0].values is None:  # nothing is due any more
            return self.machine.edit((Task(replace(EDITOR, code=returning({})), step, 0),), keeps=False)
        tasks = tuple(Task(self.standing_in(update, updates), step, place) for place, update in enumerate(updates))
        return self.machine.edit(tasks, keeps=updates[0].as_node is None)

    def complete(self) -> None:
        """Make all updates, without an event loop."""
        try:
            self.open()
            more = True
            while more:
                for _ in SyncDriver(self.network, self.machine, self.run, SimpleQueue()).perform(self.commands):
                    pass
                more = self.following()
        except BaseException:
            self.drop()
            raise
        finally:
            self.close()

    async def acomplete(self) -> None:
        """Make all updates on the event loop at hand."""
        from pregel.drivers.aio import AsyncDriver  # noqa: PLC0415 - sync runs do not pay for anyio
        from pregel.drivers.loops import current_loop  # noqa: PLC0415 - as above

        try:
            await self.aopen()
            more = True
            while more:
                await AsyncDriver(self.network, self.machine, self.run, current_loop(), None).perform(self.commands)
                more = self.following()
        except BaseException:
            self.drop()
            raise
        finally:
            await self.aclose()

    def drop(self) -> None:
        """Forget what was changed so far."""
        if self.claim is not None:
            self.claim.together = None

    def standing_in(self, update: StateUpdate, updates: Sequence[StateUpdate]) -> Node:
        """Return a node that returns the values of an update, and leads where the named one leads.

        Raises:
            InvalidUpdateError: There is no such node, or several updates do not all say which node they are of.
        """
        values = {} if update.values is None else update.values
        if update.as_node is None:
            if len(updates) > 1:
                raise InvalidUpdateError(
                    f"{len(updates)} updates of one superstep of graph {self.network.name!r} need as_node each: what "
                    "is due next follows from the nodes that they stand for"
                )
            return replace(EDITOR, code=returning(values))
        node = self.network.nodes.get(update.as_node)
        if node is None:
            raise InvalidUpdateError(
                f"as_node={update.as_node!r} names no node of graph {self.network.name!r}."
                f"{nearest(update.as_node, self.network.nodes)} Nodes: {', '.join(self.network.nodes)}"
            )
        return replace(node, code=returning(values), view=View())


def returning(values: Any) -> Code:
    """Return the code of a node that returns these values, whatever it is given."""
    return Code("update_state", lambda given: values)  # noqa: ARG005 - a node's signature


def read_supersteps(supersteps: Sequence[Sequence[StateUpdate]]) -> list[list[StateUpdate]]:
    """Return the supersteps of a bulk update.

    Raises:
        InvalidUpdateError: There is none, or an empty one.
    """
    read = [[StateUpdate(*update) for update in updates] for updates in supersteps]
    if not read or not all(read):
        raise InvalidUpdateError("bulk_update_state takes a list of supersteps, each a list of at least one StateUpdate")
    return read
