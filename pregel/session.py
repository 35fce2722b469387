"""One run of a graph: its machine, what its tasks share, and the driver that performs it."""

from __future__ import annotations

import sys
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from pregel.callbacks import LANGCHAIN, for_tasks, is_message, is_piece, listened, offer, offered
from pregel.cancellation import Token
from pregel.drivers.limits import TURN, Limits
from pregel.drivers.sync import RunStopped, SyncDriver
from pregel.errors import GraphInterrupt, NodeCancelledError
from pregel.holding import Holding
from pregel.newids import ids_of_run
from pregel.persistence import UNSTORED
from pregel.placing import placed, results
from pregel.reporter import INTERRUPT, Emit, Speech, Told
from pregel.runtime import FRAME, Quiet, Run, is_read
from pregel.superstep import Superstep

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Generator
    from contextlib import AbstractContextManager

    from pregel.config import RunOptions
    from pregel.control import RunControl
    from pregel.drivers.sync import Inbox
    from pregel.network import Network
    from pregel.persistence import Persistence
    from pregel.runtime import Frame
    from pregel.types import OnFailure

__all__ = ["Session"]


class Session(Holding):
    """One run.

    Args:
        network: The graph.
        options: The checked config.
        context: What nodes find as `runtime.context`.
        on_failure: What becomes of the siblings of a failed task.
        persistence: Whether and how the run is stored.
        modes: The stream modes that the caller reads here.
        subgraphs: Whether the parts of graphs inside this one are read as well.
        around: The task inside which this run takes place.
        tells: Whether its parts go where that task's parts go.
        journal: Where the run is a node of another graph, and so can send commands to it: the fields whose updates
            are written down.
        control: Asks the run to stop.
        call: For a call of that task, what tells it from others, which for other runs their number does. The parts of
            a call are the task's own, and its result stays until the superstep is over.
    """

    def __init__(
        self,
        network: Network,
        options: RunOptions,
        *,
        context: Any,
        on_failure: OnFailure,
        persistence: Persistence = UNSTORED,
        modes: tuple[str, ...] = (),
        subgraphs: bool = False,
        around: Frame | None = None,
        tells: bool = True,
        journal: Collection[str] | None = None,
        control: RunControl | None = None,
        call: str | None = None,
    ) -> None:
        self.network = network
        self.options = options
        self.persistence = persistence
        self.around = around
        self.reads = "custom" in modes or "messages" in modes or subgraphs
        self.custom = "custom" in modes
        self.place = placed(persistence, options, around, network.name)
        self.is_call = call is not None
        outer = None if around is None else around[1].limits
        limits = Limits(options.max_concurrency, outer, None if around is None else TURN.get())
        self.run = Run(
            options.config,
            context,
            ids_of_run(options.config.get("run_id")),
            options.recursion_limit,
            options.recursion_limit,
            options.max_concurrency,
            nested_modes=modes if subgraphs else (),
            is_node=journal is not None,
            # A run inside a task that was cancelled must not begin anything either, whoever reads its parts.
            token=Token(None if around is None else around[1].token),
            store=persistence.store,
            cache=results(persistence, around if self.place != "root" else None),
            limits=limits,
            limited=limits.slots is not None or network.limited,
        )
        if around is not None:
            if self.run.limited:  # before the check, or an attempt that is given up just now would not hear of it
                for token in self.run.token.attempts():
                    token.after(limits.close)
            around[1].token.check()
            self.enter(around, call, tells=tells)
            if self.is_call:
                modes = ()
            elif tells:
                modes = self.run.nested_modes
        if self.offers:
            self.run = replace(self.run, config=for_tasks(options.config))
        speech: Speech | None = None
        if "messages" in modes:
            given = options.config
            speech = Speech(given["metadata"], tuple(given["tags"] or ()), self.run.namespace, is_message)
            self.run = replace(self.run, speech=speech)
        if around is not None and tells and self.place != "root" and around[1].publish is not None:
            self.connect(around[1].publish, custom=is_read(around[1].writer))
        stored = self.place != "nowhere"
        if control is None and around is not None and self.place != "root":
            control = around[1].control
        if control is not None:
            self.run = replace(self.run, control=control)
        self.machine = Superstep(
            network,
            limit=options.recursion_limit,
            modes=modes,
            on_failure=on_failure,
            namespace=self.run.namespace,
            journal=journal,
            breakpoints=persistence.breakpoints,
            drains=None if control is None or not (stored or around is None) else partial(drain_requested, control),
            config_of=self.config_of if stored else None,
            speech=speech,
        )
        self.commands = ()
        self.claim = self.first = self.recorder = None

    # -- what its tasks share ----------------------------------------------------------------------------------------

    def enter(self, around: Frame, call: str | None, *, tells: bool) -> None:
        """Let the run take place inside a task of another one: its ids, and if it tells its parts, are that run's."""
        task, outer, numbers, *_ = around
        name = task.id.rpartition(":")[2]
        number = call or next(numbers)
        suffix = f":{number}" if number else ""
        self.label = label = f"{name}:{task.id}{suffix}"
        self.label_remembered = f"{name}{suffix}"
        changes: dict[str, Any] = {}
        if outer.beat is not None:
            changes = {"beat": outer.beat, "writer": Quiet(outer.beat)}
        if self.place == "root":
            self.run = replace(self.run, **changes)
            return
        self.owner = f"{outer.task_id(task)}|{label}"
        path = (*outer.calls, label)
        if self.is_call:
            changes.update(namespace=outer.namespace, calls=path, speech=outer.speech, tells_calls=outer.tells_calls)
        elif tells:
            changes["namespace"] = (*outer.namespace, *path)
        if tells:
            changes["nested_modes"] = outer.nested_modes
        self.run = replace(
            self.run,
            path=(*outer.path, label),
            new_id=lambda inner, number: outer.new_id(f"{label}|{inner}", number),
            answers=outer.answers,
            is_outermost=False,
            thread=outer.thread,
            store=self.run.store if self.run.store is not None else outer.store,
            **changes,
        )

    def connect(self, publish: Callable[[Emit], None], *, custom: bool) -> None:
        """Say where the parts go that nodes write, and those of graphs inside this one."""
        namespace = self.run.namespace

        def write(payload: Any) -> None:
            frame = FRAME.get(None)  # none in a thread that a node started by itself
            task = None if frame is None else frame[0]
            publish(Emit("custom", payload, namespace, 0 if task is None else task.step, task))

        config, speech = self.run.config, self.run.speech
        if speech is not None and LANGCHAIN in sys.modules:
            config = listened(config, publish, speech)
        writer = write if custom else self.run.writer
        self.run = replace(self.run, publish=publish, writer=writer, config=config)

    def tell_calls(self) -> None:
        """Tell the reader of updates of each call that a task makes, as soon as it has its result."""
        self.reads = True
        self.run = replace(self.run, tells_calls=True)

    def while_heard(self, publish: Callable[[Emit], None]) -> Callable[[Emit], None]:
        """Return what takes parts and, once the run was left, stops sync code that tells the next piece of a message.

        Else a model would speak to its end, and who leaves the run would wait for it. Code on a loop is cancelled.
        """
        if self.run.speech is None and "messages" not in self.run.nested_modes:
            return publish

        def take(part: Emit) -> None:
            if isinstance(part.payload, Told) and is_piece(part.payload.message):
                frame = FRAME.get(None)  # none in a thread that a node started by itself
                if frame is not None and frame[1].token.cancelled():
                    from pregel.drivers.loops import loop_is_running  # noqa: PLC0415 - sync runs do not pay for anyio

                    if not loop_is_running():
                        raise RunStopped
            publish(part)

        return take

    # -- performing --------------------------------------------------------------------------------------------------

    @property
    def offers(self) -> bool:
        """Whether the code of tasks has something to find for LangChain."""
        return self.run.config["callbacks"] is not None and LANGCHAIN in sys.modules

    def driver(self, inbox: Inbox, *, live: bool = False) -> SyncDriver:
        """Return what performs the run without an event loop."""
        driver = SyncDriver(self.network, self.machine, self.run, inbox, live=live)
        if self.offers:
            driver.context.run(offer, self.run.config)
        return driver

    def offering(self) -> AbstractContextManager[None]:
        """Return what lets drivers that are made within it offer the config to LangChain."""
        return offered(self.run.config) if self.offers else nullcontext()

    def result(self) -> dict[str, Any]:
        """Return the visible fields of the state, and why the run is paused if it is."""
        shown = self.network.project(self.machine.values)
        if self.machine.pauses:
            shown[INTERRUPT] = list(self.machine.pauses)
        return shown

    def conclude(self) -> None:
        """Let the task around this run wait with it.

        Raises:
            GraphInterrupt: The run is paused, and takes place inside a task of one that is stored.
        """
        if self.machine.pauses and self.place != "root" and self.around is not None:
            self.around[3].append(self.machine.pauses)
            raise GraphInterrupt(self.machine.pauses, self.machine.misfit)

    def parts(self) -> Generator[Emit, None, None]:
        """Run without an event loop, for a reader."""
        inbox: Inbox = SimpleQueue()
        try:
            self.open()
            if self.reads:
                self.connect(self.while_heard(inbox.put), custom=self.custom)
            yield from self.driver(inbox, live=self.reads).perform(self.commands)
        finally:
            self.close()
        self.conclude()

    def complete(self) -> None:
        """Run without an event loop to the end."""
        try:
            self.open()
            with closing(self.driver(SimpleQueue()).perform(self.commands)) as parts:
                for part in parts:
                    self.run.publish(part)  # type: ignore[misc]  # who asks for parts of a run inside his takes them
        finally:
            self.close()
        self.conclude()

    async def acomplete(self) -> None:
        """Run on the event loop at hand to the end, in the task of the caller."""
        from pregel.drivers.aio import AsyncDriver  # noqa: PLC0415 - sync runs do not pay for anyio
        from pregel.drivers.loops import current_loop  # noqa: PLC0415 - as above

        try:
            await self.aopen()
            with self.offering():
                driver = AsyncDriver(self.network, self.machine, self.run, current_loop(), None)
                await driver.perform(self.commands)
        finally:
            await self.aclose()
        self.conclude()

    async def aparts(self) -> AsyncGenerator[Emit, None]:
        """Run on the event loop at hand, in a task of its own, for a reader."""
        from pregel.drivers.aio import AsyncDriver  # noqa: PLC0415 - sync runs do not pay for anyio
        from pregel.drivers.loops import current_loop  # noqa: PLC0415 - as above
        from pregel.drivers.mailbox import Mailbox  # noqa: PLC0415 - as above

        loop = current_loop()
        mailbox = Mailbox(loop)
        failure: list[BaseException] = []

        async def main() -> None:
            try:
                try:
                    await self.aopen()
                    self.connect(self.while_heard(mailbox.put), custom=self.custom)
                    with self.offering():
                        await AsyncDriver(self.network, self.machine, self.run, loop, mailbox).perform(self.commands)
                finally:
                    await self.aclose()
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
        self.conclude()


def drain_requested(control: RunControl) -> bool:
    """Return whether a run was asked to stop."""
    return control.drain_requested
