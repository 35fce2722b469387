"""One run of a graph: its machine, what its tasks share, and the driver that performs it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4, uuid5

from pregel.drivers.sync import SyncDriver
from pregel.errors import InvalidConfigError, NodeCancelledError
from pregel.runtime import FRAME, Run, Token, ignore
from pregel.superstep import Emit, Superstep

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Generator, Sequence

    from pregel.config import RunOptions
    from pregel.drivers.sync import Inbox
    from pregel.network import Network
    from pregel.runtime import Frame
    from pregel.superstep import Command
    from pregel.types import OnFailure

__all__ = ["Session", "id_maker"]


class Session:
    """One run.

    Args:
        network: The graph.
        options: The checked config.
        context: What nodes find as `runtime.context`.
        on_failure: What becomes of the siblings of a failed task.
        modes: The stream modes that the caller reads here.
        subgraphs: Whether the parts of graphs inside this one are read as well.
        around: The task inside which this run takes place.
        tells: Whether its parts go where that task's parts go.
        journal: Where the run is a node of another graph, and so can send commands to it: the fields whose updates
            are written down.
    """

    def __init__(
        self,
        network: Network,
        options: RunOptions,
        *,
        context: Any,
        on_failure: OnFailure,
        modes: tuple[str, ...] = (),
        subgraphs: bool = False,
        around: Frame | None = None,
        tells: bool = True,
        journal: Collection[str] | None = None,
    ) -> None:
        self.network = network
        self.reads = "custom" in modes or subgraphs
        self.custom = "custom" in modes
        self.run = Run(
            options.config,
            context,
            id_maker(options.config.get("run_id")),
            options.recursion_limit,
            options.max_concurrency,
            nested_modes=modes if subgraphs else (),
            is_node=journal is not None,
            # A run inside a task that was cancelled must not begin anything either, whoever reads its parts.
            token=Token(None if around is None else around[1].token),
        )
        if around is not None:
            self.enter(around, tells=tells)
            modes = self.run.nested_modes if tells else modes
        self.machine = Superstep(
            network,
            limit=options.recursion_limit,
            modes=modes,
            on_failure=on_failure,
            namespace=self.run.namespace,
            journal=journal,
        )
        self.commands: Sequence[Command] = ()

    def start(self, updates: Sequence[tuple[str, Any]]) -> None:
        """Take the updates that the input makes."""
        self.commands = self.machine.start(updates)

    def enter(self, around: Frame, *, tells: bool) -> None:
        """Let the run take place inside a task of another one: its ids, and if it tells its parts, are that run's."""
        task, outer, numbers = around
        number = next(numbers)
        label = f"{task.node.name}:{task.id}" + (f":{number}" if number else "")
        self.run = replace(
            self.run,
            path=(*outer.path, label),
            new_id=lambda inner, number: outer.new_id(f"{label}|{inner}", number),
        )
        if tells:
            self.run = replace(self.run, namespace=(*outer.namespace, label), nested_modes=outer.nested_modes)
        if tells and outer.publish is not None:
            self.connect(outer.publish, custom=outer.writer is not ignore)

    def connect(self, publish: Callable[[Emit], None], *, custom: bool) -> None:
        """Say where the parts go that nodes write, and those of graphs inside this one."""
        namespace = self.run.namespace

        def write(payload: Any) -> None:
            frame = FRAME.get(None)  # none in a thread that a node started by itself
            task = None if frame is None else frame[0]
            publish(Emit("custom", payload, namespace, 0 if task is None else task.step, task))

        self.run = replace(self.run, publish=publish, writer=write if custom else ignore)

    def result(self) -> dict[str, Any]:
        """Return the visible fields of the state."""
        return self.network.project(self.machine.values)

    def parts(self) -> Generator[Emit, None, None]:
        """Run without an event loop, for a reader."""
        inbox: Inbox = SimpleQueue()
        if self.reads:
            self.connect(inbox.put, custom=self.custom)
        driver = SyncDriver(self.network, self.machine, self.run, inbox, live=self.reads)
        yield from driver.perform(self.commands)

    def complete(self) -> None:
        """Run without an event loop to the end."""
        driver = SyncDriver(self.network, self.machine, self.run, SimpleQueue())
        with closing(driver.perform(self.commands)) as parts:
            for part in parts:
                self.run.publish(part)  # type: ignore[misc]  # who asks for parts of a run inside his takes them

    async def acomplete(self) -> None:
        """Run on the event loop at hand to the end, in the task of the caller."""
        from pregel.drivers.aio import AsyncDriver  # noqa: PLC0415 - sync runs do not pay for anyio
        from pregel.drivers.loops import current_loop  # noqa: PLC0415 - as above

        driver = AsyncDriver(self.network, self.machine, self.run, current_loop(), None)
        await driver.perform(self.commands)

    async def aparts(self) -> AsyncGenerator[Emit, None]:
        """Run on the event loop at hand, in a task of its own, for a reader."""
        from pregel.drivers.aio import AsyncDriver  # noqa: PLC0415 - sync runs do not pay for anyio
        from pregel.drivers.loops import current_loop  # noqa: PLC0415 - as above
        from pregel.drivers.mailbox import Mailbox  # noqa: PLC0415 - as above

        loop = current_loop()
        mailbox = Mailbox(loop)
        self.connect(mailbox.put, custom=self.custom)
        driver = AsyncDriver(self.network, self.machine, self.run, loop, mailbox)
        failure: list[BaseException] = []

        async def main() -> None:
            try:
                await driver.perform(self.commands)
            except loop.cancelled:
                if not self.run.token.cancelled():
                    message = f"the run of graph {self.network.name!r} was cancelled, and not by who reads it"
                    failure.append(NodeCancelledError(message))
                raise
            except BaseException as error:  # noqa: BLE001 - raised again where the parts are read
                failure.append(error)
            finally:
                mailbox.put(None)

        stop = loop.launch(main)
        try:
            while (part := await mailbox.get()) is not None:
                yield part
        finally:
            self.run.token.cancel()
            await stop()
        if failure:
            raise failure.pop()


def id_maker(run_id: Any) -> Callable[[str, int], str]:
    """Return what names the things that tasks make: ids that depend on run, task and number only.

    Raises:
        InvalidConfigError: `run_id` is no UUID.
    """
    if run_id is None:
        made: list[UUID] = []  # at the first id that is asked for: most runs make none

        def new_id(task: str, number: int) -> str:
            if not made:
                made.append(uuid4())
            return named_id(made[0], task, number)

        return new_id
    try:
        space = run_id if isinstance(run_id, UUID) else UUID(run_id)
    except (AttributeError, TypeError, ValueError):
        raise InvalidConfigError(f"config['run_id'] takes a UUID, not {run_id!r}") from None
    return partial(named_id, space)


def named_id(space: UUID, task: str, number: int) -> str:
    """Return the id of the n-th thing that a task makes."""
    return str(uuid5(space, f"{task}:{number}"))
