"""One run of a graph: its machine, what its tasks share, and the driver that performs it."""

from __future__ import annotations

import sys
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from time import sleep
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

from pregel.callbacks import LANGCHAIN, for_tasks, is_message, is_piece, listened, offer, offered
from pregel.channels.base import MISSING
from pregel.drivers.limits import TURN, Limits
from pregel.drivers.sync import RunStopped, SyncDriver
from pregel.errors import (
    ConcurrentRunError,
    GraphInterrupt,
    InvalidConfigError,
    InvalidInputError,
    InvalidResumeError,
    MissingCheckpointerError,
    NodeCancelledError,
    PregelError,
)
from pregel.node import EDITOR
from pregel.persistence import UNSTORED, Address, Persistence, read_address, saver_of
from pregel.reporter import INTERRUPT, Emit, Speech, Told
from pregel.runtime import FRAME, Quiet, Run, Token, is_read
from pregel.superstep import Superstep
from pregel.task import Task
from pregel.writes import interpret

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Generator, Sequence
    from contextlib import AbstractContextManager

    from pregel.checkpoint.claim import Claim
    from pregel.checkpoint.recorder import Recorder
    from pregel.commands import Command
    from pregel.config import RunOptions
    from pregel.control import RunControl
    from pregel.drivers.sync import Inbox
    from pregel.network import Network
    from pregel.opening import Opening
    from pregel.persistence import Format
    from pregel.runtime import Frame
    from pregel.types import Command as Resume
    from pregel.types import OnFailure

__all__ = ["Session", "off_loop", "results"]

#: Seconds between two looks at whether a thread is free.
PATIENCE: Final = 0.02
#: Where a run is stored: on a thread of its own, in the run around it, there with a history of its own, or nowhere.
Place = Literal["root", "child", "remembers", "nowhere"]


class Session:
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
        label: Its name inside the task, where that does not go by number: a call of that task, whose parts are the
            task's own, and whose result stays until the superstep is over.
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
        label: str | None = None,
    ) -> None:
        self.network = network
        self.options = options
        self.persistence = persistence
        self.around = around
        self.reads = "custom" in modes or "messages" in modes or subgraphs
        self.custom = "custom" in modes
        self.place = placed(persistence, options, around, network.name)
        outer = None if around is None else around[1].limits
        limits = Limits(options.max_concurrency, outer, None if around is None else TURN.get())
        self.run = Run(
            options.config,
            context,
            id_maker(options.config.get("run_id")),
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
            self.enter(around, label, tells=tells)
            modes = () if label is not None else self.run.nested_modes if tells else modes
        if self.offers:
            self.run = replace(self.run, config=for_tasks(options.config))
        speech: Speech | None = None
        if "messages" in modes:
            given = options.config
            speech = Speech(given["metadata"], tuple(given["tags"] or ()), self.run.namespace, is_message)
            self.run = replace(self.run, speech=speech)
        if around is not None and tells and self.place != "root" and around[1].publish is not None:
            self.connect(around[1].publish, custom=is_read(around[1].writer))
        stored = self.place in {"root", "child", "remembers"}
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
        self.commands: Sequence[Command] = ()
        #: Where the run is stored: its hold on the thread, and what it does once it has it.
        self.claim: Claim | None = None
        self.first: Callable[[], Sequence[Command]] | None = None
        self.recorder: Recorder | None = None

    # -- beginning ---------------------------------------------------------------------------------------------------

    def start(self, updates: Sequence[tuple[str, Any]]) -> None:
        """Take the updates that the input makes; a run that is stored begins when it is performed."""
        if self.place == "root":
            self.claim_thread(partial(self.begin, updates, None))
        elif self.place in {"child", "remembers"}:
            self.first = partial(self.begin_inside, updates)
        else:
            self.commands = self.machine.start(updates)

    def resume(self, command: Resume[Any] | None) -> None:
        """Go on with what is stored when the run is performed.

        Args:
            command: Answers, and what to change before.
        """
        self.claim_thread(partial(self.begin, None, command))

    def claim_thread(self, first: Callable[[], Sequence[Command]]) -> None:
        """Prepare the hold on the thread."""
        from pregel.checkpoint.claim import Claim  # noqa: PLC0415 - runs that are not stored do not load it

        self.address = read_address(self.options.config, self.network.name)
        saver = saver_of(self.persistence, self.network.name)
        self.claim = Claim(saver, self.address.thread_id, self.persistence.durability)
        self.first = first

    def begin(self, updates: Sequence[tuple[str, Any]] | None, command: Resume[Any] | None) -> Sequence[Command]:
        """Read what is stored, and return what the machine does first.

        Raises:
            InvalidInputError: There is nothing to go on with.
        """
        if self.address.namespace:
            raise InvalidConfigError(
                f"the config names the graph {'/'.join(self.address.namespace)!r} inside graph {self.network.name!r}: "
                "runs begin at the outermost one"
            )
        opening, found = self.begin_thread()
        if updates is not None:
            commands = opening.start(updates, found=found)
        elif found:
            writes = None
            if command is not None and (command.update is not None or command.goto):
                task = Task(EDITOR, opening.step + 1, 0)
                writes = interpret(replace(command, resume=MISSING), self.network, task, {}, self.run)
            commands = opening.resume(command, writes)
        else:
            raise nothing_stored(self.network.name, self.address.thread_id, command)
        self.count_steps()
        return commands

    def begin_thread(self) -> tuple[Opening, bool]:
        """Read what is stored of the outermost graph; return what reads it, and whether there is anything."""
        claim: Claim = self.claim  # type: ignore[assignment]  # a run at the root has one
        opening = self.opening(claim, ())
        found = opening.find(self.address)
        path = () if claim.branch == 0 else (f"branch-{claim.branch}",)
        self.run = replace(
            self.run,
            path=path,
            new_id=lambda task, number: named_id(
                uuid5(NAMESPACE_OID, claim.thread_id), "|".join((*path, task)), number
            ),
            answers=opening.answers,
            thread=claim.thread_id,
            recorder=self.storing(),
        )
        return opening, found

    def begin_inside(self, updates: Sequence[tuple[str, Any]]) -> Sequence[Command]:
        """Read what is stored of this graph inside another one, and return what the machine does first.

        Raises:
            ConcurrentRunError: The graph has a history of its own, and another run of it is going on from it.
        """
        outer = self.around[1]  # type: ignore[index]  # a run inside a task has one
        around: Recorder = outer.recorder.recorder
        claim = around.claim
        remembers = self.place == "remembers"
        namespace = (*around.namespace, self.label_remembered if remembers else self.label)
        if remembers:
            if namespace in claim.busy:
                raise ConcurrentRunError(
                    f"graph {self.network.name!r} has a history of its own (checkpointer=True), and another task of "
                    f"this superstep is running it as {self.label_remembered!r}: which of them should the next run go "
                    "on from? Compile it with checkpointer=None, or run it once"
                )
            claim.busy.add(namespace)
        if remembers or any(token.repeats for token in self.run.token.attempts()):
            claim.flush()  # an earlier run of it may still be on its way to the store
        opening = self.opening(claim, namespace, around=around)
        opening.answers = dict(outer.answers or {})
        earlier = claim.remembered.get(namespace)
        if self.is_call and claim.keeps_until_end:
            earlier = claim.call(namespace, opening.recorder)
        if earlier is None:
            commands = opening.enter(updates, self.owner, remembers=remembers)
        elif self.is_call:
            self.recorder = earlier
            commands = earlier.again(self.machine, around)
        else:
            self.recorder = earlier
            commands = earlier.go_on(self.machine, updates, around, self.owner)
        self.run = replace(self.run, answers=opening.answers, thread=outer.thread, recorder=self.storing())
        self.count_steps()
        return commands

    def opening(self, claim: Claim, namespace: tuple[str, ...], around: Recorder | None = None) -> Opening:
        """Return what reads the thread for this run, with a recorder for what follows."""
        from pregel.checkpoint.recorder import Recorder  # noqa: PLC0415 - runs that are not stored do not load it
        from pregel.opening import Opening  # noqa: PLC0415 - as above

        form: Format = self.persistence.format  # type: ignore[assignment]  # every graph that can be stored has one
        self.recorder = Recorder(
            claim,
            namespace,
            self.network,
            form.codec,
            fingerprint=form.fingerprint,
            metadata=self.options.config["metadata"],
            around=around,
            owner=self.owner if around is not None else None,
            live=lambda: self.machine.values,
        )
        return Opening(self.network, self.persistence, claim, self.recorder, self.machine)

    def storing(self) -> Any:
        """Return what stores the run's commits: in an attempt that may be given up, only as long as that counts."""
        attempts = [*self.run.token.attempts()]
        if not attempts:
            return self.recorder
        from pregel.checkpoint.recorder import AttemptRecorder  # noqa: PLC0415 - few runs are inside an attempt

        for token in attempts:
            token.after(self.forget)
        return AttemptRecorder(self.recorder, attempts[0])  # type: ignore[arg-type]  # set by now

    def count_steps(self) -> None:
        """Say which superstep is the last one that may run."""
        if self.run.last_step != self.machine.last_step:  # as it is in the first run of a thread
            self.run = replace(self.run, last_step=self.machine.last_step)

    def config_of(self, step: int) -> dict[str, Any]:
        """Return the config that names a checkpoint of this run."""
        recorder: Recorder = self.recorder  # type: ignore[assignment]  # asked only of a stored run
        address = Address(recorder.claim.thread_id, None, recorder.namespace)
        return address.config(recorder.claim.branch, step)

    def enter(self, around: Frame, label: str | None, *, tells: bool) -> None:
        """Let the run take place inside a task of another one: its ids, and if it tells its parts, are that run's."""
        task, outer, numbers, *_ = around
        name = task.id.rpartition(":")[2]
        number = label or next(numbers)
        self.label = f"{name}:{task.id}" + (f":{number}" if number else "")
        self.label_remembered = name + (f":{number}" if number else "")
        self.is_call = label is not None
        changes: dict[str, Any] = {}
        if outer.beat is not None:
            changes = {"beat": outer.beat, "writer": Quiet(outer.beat)}
        if self.place == "root":
            self.run = replace(self.run, **changes)
            return
        label = self.label
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
                if frame is not None and frame[1].token.cancelled() and not on_loop():
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

    @property
    def blocking(self) -> bool:
        """Whether to begin and to end waits for a disk or a network."""
        if self.claim is not None:
            return self.claim.saver.blocking
        if self.first is None:
            return False
        return bool(self.around[1].recorder.claim.saver.blocking)  # type: ignore[index]  # no claim: it is inside a task

    def open(self) -> None:
        """Take the thread, waiting for it if the run is to, and begin.

        Raises:
            ThreadBusyError: Another run has the thread.
        """
        claim = self.claim
        if claim is not None:
            holder = claim.attempt()
            while holder is not None:
                if self.persistence.on_busy == "reject":
                    raise claim.refused(holder)
                sleep(PATIENCE)
                holder = claim.attempt()
        if self.first is not None:
            self.commands = self.first()

    async def aopen(self) -> None:
        """Take the thread without holding up the event loop; see `open`."""
        call = off_loop if self.blocking else at_once
        claim = self.claim
        if claim is not None:
            while (holder := await call(claim.attempt)) is not None:
                if self.persistence.on_busy == "reject":
                    raise claim.refused(holder)
                await anyio_sleep()
        if self.first is not None:
            self.commands = await call(self.first)

    def close(self) -> None:
        """Store what is still to be stored, and let the thread go."""
        if self.claim is not None:
            self.claim.close()
        elif self.recorder is not None and any(token.revoked for token in self.run.token.attempts()):
            return  # see `forget`
        elif self.recorder is not None:
            recorder, claim = self.recorder, self.recorder.claim
            claim.busy.discard(recorder.namespace)
            if self.place == "child" and self.machine.ended_well and recorder.head is None and not self.is_call:
                recorder.discard()
            elif self.place == "remembers" and recorder.latest is not None:
                claim.remembered[recorder.namespace] = recorder

    def forget(self) -> None:
        """Let go of what is held by a run inside an attempt that was given up, and store nothing more of it."""
        recorder: Recorder = self.recorder  # type: ignore[assignment]  # set where this is asked for
        if self.claim is not None:
            self.claim.close()
            return
        claim = recorder.claim
        claim.busy.discard(recorder.namespace)
        if claim.remembered.get(recorder.namespace) is not recorder and not (self.is_call and recorder.ended):
            recorder.discard()

    async def aclose(self) -> None:
        """Do so without holding up the event loop, whatever is cancelled meanwhile."""
        if self.claim is not None and self.claim.has_to_write and self.claim.saver.blocking:
            await off_loop(self.close)
        else:
            self.close()

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


def placed(persistence: Persistence, options: RunOptions, around: Frame | None, graph: str) -> Place:
    """Return where a run is stored.

    Raises:
        MissingCheckpointerError: The graph is to have a history of its own inside one that has none, or is not to be
            stored and stops at breakpoints.
    """
    checkpointer = persistence.checkpointer
    outer = None if around is None else around[1]
    if outer is not None and outer.recorder is not None and not is_elsewhere(persistence, options, outer):
        if checkpointer is False and persistence.breakpoints is not None:
            raise MissingCheckpointerError(
                f"graph {graph!r} stops at breakpoints and is not stored (checkpointer=False) inside the graph that "
                "runs it, so it would begin again and stop there for ever: compile it with checkpointer=None"
            )
        return "nowhere" if checkpointer is False else "remembers" if checkpointer is True else "child"
    if checkpointer is True:
        raise MissingCheckpointerError(
            f"graph {graph!r} has a history of its own (checkpointer=True) inside the graph that runs it, and that "
            "one is not stored: compile that one with a checkpointer, or give this one a checkpointer"
        )
    return "nowhere" if checkpointer is None or checkpointer is False else "root"


def is_elsewhere(persistence: Persistence, options: RunOptions, outer: Run) -> bool:
    """Return whether a run inside a task was given a thread of its own, and a place to store it."""
    thread = options.config["configurable"].get("thread_id")
    return not (persistence.checkpointer is None or isinstance(persistence.checkpointer, bool)) and thread not in {
        None,
        outer.thread,
    }


def results(persistence: Persistence, around: Frame | None) -> Any:
    """Return what keeps the results of a graph's nodes: its own cache, or that of the run around it; None for none."""
    cache = persistence.cache
    if cache is None and around is not None and around[1].cache is not None:
        cache = around[1].cache.cache
    if cache is None or persistence.format is None:
        return None
    from pregel.cache.results import Results  # noqa: PLC0415 - graphs without a cache do not load it

    return Results(cache, persistence.format)


def drain_requested(control: RunControl) -> bool:
    """Return whether a run was asked to stop."""
    return control.drain_requested


def nothing_stored(graph: str, thread_id: str, command: Resume[Any] | None) -> PregelError:
    """Return the error of a run that is to go on where nothing is stored."""
    where = f"graph {graph!r} has nothing stored on thread {thread_id!r}"
    if command is None:
        return InvalidInputError(f"{where}, so None has nothing to go on with: give an input")
    if command.resume is not MISSING:
        return InvalidResumeError(f"{where}, so there is nothing to answer: is this the right thread_id?")
    return InvalidInputError(f"{where}, so a Command has nothing to steer: give an input")


async def off_loop(call: Callable[[], Any]) -> Any:
    """Call something in a worker thread and wait for its end, whatever is cancelled meanwhile.

    A claim that went on behind a cancelled run would hold its thread for ever.
    """
    import anyio.to_thread  # noqa: PLC0415 - sync runs do not pay for it

    from pregel.drivers.loops import current_loop  # noqa: PLC0415 - as above

    result: list[Any] = []

    async def wait() -> None:
        result.append(await anyio.to_thread.run_sync(call))

    await current_loop().uncancelled(wait)
    return result.pop()


async def at_once(call: Callable[[], Any]) -> Any:
    """Call something that waits for nothing."""
    return call()


async def anyio_sleep() -> None:
    """Wait a little for another run to end."""
    import anyio  # noqa: PLC0415 - sync runs do not pay for it

    await anyio.sleep(PATIENCE)


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


def on_loop() -> bool:
    """Return whether an event loop runs in this thread."""
    from pregel.drivers.loops import loop_is_running  # noqa: PLC0415 - sync runs do not pay for anyio

    return loop_is_running()


def named_id(space: UUID, task: str, number: int) -> str:
    """Return the id of the n-th thing that a task makes."""
    return str(uuid5(space, f"{task}:{number}"))
