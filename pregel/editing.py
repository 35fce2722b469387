"""How a stored state is changed from outside: as if nodes had returned the values, in supersteps of their own."""

from __future__ import annotations

from dataclasses import replace
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from pregel.checkpoint.base import DropTasks, PutTask
from pregel.checkpoint.claim import Claim
from pregel.checkpoint.record import unpack_task
from pregel.checkpoint.restore import read_record, unsealed
from pregel.drivers.sync import SyncDriver
from pregel.errors import CheckpointNotFoundError, InvalidUpdateError, nearest
from pregel.node import EDITOR, Code, View
from pregel.session import Session
from pregel.snapshots import located
from pregel.task import Task, Writes
from pregel.types import END, START, StateUpdate
from pregel.writes import interpret

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pregel.checkpoint.base import Write
    from pregel.checkpoint.recorder import Recorder
    from pregel.commands import Command, Standing
    from pregel.main import Pregel
    from pregel.node import Node
    from pregel.opening import Opening

__all__ = ["Edit", "read_supersteps"]


class Gathering(Claim):
    """A hold on a thread that writes nothing before `close`, and then everything in one transaction."""

    def write_now(self, writes: Sequence[Write]) -> None:
        """Gather writes, those that open a branch among them; at the end write them."""
        if self.held and self.together is not None:
            self.together.extend(writes)
        else:
            super().write_now(writes)


class Edit(Session):
    """A run whose tasks return what they were told in place of running their nodes."""

    graph: Pregel
    supersteps: list[list[StateUpdate]]
    #: Whether what was due has been left behind.
    replans: bool

    def edit(self, graph: Pregel, supersteps: list[list[StateUpdate]]) -> None:
        """Take what is to be changed when the run is performed: all of it, or nothing."""
        self.graph = graph
        self.supersteps = supersteps[::-1]
        self.replans = any(update.as_node is not None for updates in supersteps for update in updates)
        self.claim_thread(self.begin_edit)
        self.claim = Gathering(self.claim.saver, self.address.thread_id, "sync")  # type: ignore[union-attr]  # just taken

    def begin_edit(self) -> Sequence[Command]:
        """Read what is stored, and return what the machine does first.

        Raises:
            CheckpointNotFoundError: There is no such checkpoint, or nothing of the graph inside that is named.
        """
        claim: Claim = self.claim  # type: ignore[assignment]  # an edit has one
        claim.together = []
        if self.address.namespace:
            opening = self.begin_child(claim)
        else:
            opening, found = self.begin_thread()
            if not found:
                return self.performed(self.supersteps.pop(), {}, 0, None)
        recorder: Recorder = self.recorder  # type: ignore[assignment]  # since the opening
        recorder.owner = opening.record.owner
        if recorder.head is None and not self.address.namespace:  # of a branch that this very transaction opens
            recorder.head = opening.step
        return self.performed(self.supersteps.pop(), opening.values, opening.step, opening.standing)

    def begin_child(self, claim: Claim) -> Opening:
        """Read what is stored of a graph inside the outermost one.

        Raises:
            CheckpointNotFoundError: It has not begun, or the checkpoint that is named is not its newest one.
        """
        saver, address = claim.saver, self.address
        path = "/".join(address.namespace)
        row = located(saver, address)
        if row is None:
            raise CheckpointNotFoundError(
                f"thread {address.thread_id!r} has nothing stored of the graph {path!r}: it has not begun"
            )
        branch = row.branch
        if address.checkpoint is None:
            branch = saver.latest(address.thread_id).branch  # type: ignore[union-attr]  # what is inside it is stored
        elif saver.head(address.thread_id, branch, address.namespace) != row.step:
            raise CheckpointNotFoundError(
                f"the checkpoint '{branch}.{row.step}' of the graph {path!r} is not its newest one: a branch begins at "
                "a checkpoint of the outermost graph"
            )
        claim.take_branch(branch, saver.branches(address.thread_id))
        opening = self.opening(claim, address.namespace)
        opening.load(row, claim.lineage)
        self.run = replace(self.run, answers=opening.answers, thread=claim.thread_id, recorder=self.recorder)
        return opening

    def following(self) -> bool:
        """Begin the next superstep; return whether there is one."""
        if not self.supersteps:
            return False
        before = self.machine
        self.machine = before.successor()
        self.commands = self.performed(self.supersteps.pop(), before.values, before.step, before.standing)
        return True

    def performed(
        self, updates: list[StateUpdate], values: dict[str, Any], step: int, standing: Standing | None
    ) -> Sequence[Command]:
        """Return what the machine does to make the updates of one superstep.

        Args:
            updates: The updates.
            values: The state before.
            step: The superstep that was committed last.
            standing: What is due; None on a thread on which nothing is stored.
        """
        machine = self.machine
        update = updates[0]
        names = [each.as_node for each in updates]
        if names == [START] or (names == [None] and standing is None):
            given = self.read_input(update)
            if standing is not None:
                machine.load(values, step)
                machine.dropped = tuple(
                    dict.fromkeys((*(task.node.name for task in standing.tasks), *standing.held.names()))
                )
            self.recorder.answers.clear()  # type: ignore[union-attr]  # see `begin_edit`
            return machine.start(given, edits=True)
        ends = names == [END] and update.values is None
        if standing is not None:  # where nothing is due any more, no join waits for anything
            machine.load(values, step, standing._replace(heard={}) if ends else standing)
        if ends:
            return machine.edit((Task(replace(EDITOR, code=returning({})), machine.step, 0),), keeps=False)
        tasks = tuple(Task(self.standing_in(each, updates), machine.step, place) for place, each in enumerate(updates))
        return machine.edit(tasks, keeps=update.as_node is None)

    def read_input(self, update: StateUpdate) -> Sequence[tuple[str, Any]]:
        """Return the updates of an input: as a caller gives it, or where no node is named, of any field."""
        values = {} if update.values is None else update.values
        if update.as_node == START:
            return self.graph._door.updates(values, self.run.new_id)  # noqa: SLF001 - as `invoke`
        return interpret(values, self.network, Task(EDITOR, 0, 0), {}, self.run).updates

    def complete(self) -> None:
        """Make all updates, without an event loop."""
        try:
            self.open()
            more = True
            while more:
                driver = SyncDriver(self.network, self.machine, self.run, SimpleQueue())
                list(driver.perform(self.commands))  # there are no parts: nobody reads them
                more = self.following()
            self.reopen()
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
            self.reopen()
        except BaseException:
            self.drop()
            raise
        finally:
            await self.aclose()

    def drop(self) -> None:
        """Forget what was changed so far."""
        self.claim.together = None  # type: ignore[union-attr]  # an edit has one

    def reopen(self) -> None:
        """Let the tasks run again that run the graph which was changed, up to the outermost one.

        What such a task came to is stored with it. That holds only as long as its graph still asks the same.
        """
        recorder: Recorder = self.recorder  # type: ignore[assignment]  # since the opening
        claim, namespace, owner = recorder.claim, self.address.namespace, recorder.owner
        saver, thread_id = claim.saver, claim.thread_id
        while namespace and owner is not None:
            namespace = namespace[:-1]
            step = saver.head(thread_id, claim.branch, namespace)
            above = None if step is None else saver.checkpoint(thread_id, claim.branch, namespace, step)
            if step is None or above is None:
                return
            task = owner.split("|")[-2]
            rows = saver.tasks(thread_id, claim.branch, namespace, step + 1)
            mine = next((row for row in rows if row.task == task), None)
            if mine is not None:
                outcome = unpack_task(unsealed(mine, recorder.claim.origin), recorder.codec).outcome
                if self.replans or isinstance(outcome, Writes):
                    claim.write([DropTasks(claim.branch, namespace, step + 1)])
                    claim.write([PutTask(row) for row in rows if row is not mine])
            owner = read_record(above, recorder.claim.origin, recorder.codec).owner

    def standing_in(self, update: StateUpdate, updates: Sequence[StateUpdate]) -> Node:
        """Return a node that returns the values of an update, and leads where the named one leads.

        Raises:
            InvalidUpdateError: There is no such node, or several updates do not all say which node they are of.
        """
        values = {} if update.values is None else update.values
        name, graph, nodes = update.as_node, self.network.name, self.network.nodes
        if name is None:
            if len(updates) > 1:
                raise InvalidUpdateError(
                    f"{len(updates)} updates of one superstep of graph {graph!r} need as_node each: what is due next "
                    "follows from the nodes that they stand for"
                )
            return replace(EDITOR, code=returning(values))
        if name == START:
            raise InvalidUpdateError(
                f"as_node=START makes an input of graph {graph!r}, and an input is a superstep of its own"
            )
        if name == END:
            raise InvalidUpdateError(
                f"as_node=END ends a run of graph {graph!r}: it takes None in place of values, alone in a superstep"
            )
        node = nodes.get(name)
        if node is None:
            raise InvalidUpdateError(
                f"as_node={name!r} names no node of graph {graph!r}.{nearest(name, nodes)} Nodes: {', '.join(nodes)}"
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
    if not read or not all(read):  # none of them empty
        raise InvalidUpdateError("bulk_update_state takes a list of supersteps, each a list of StateUpdates")
    return read
