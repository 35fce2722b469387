"""The async driver, for asyncio and trio: a coroutine that performs the machine's commands.

Theory of operation. A task that is alone in its superstep is awaited in place, in a context of its own. Several run
in a task group of the event loop at hand. While only sync code is due, the sync driver performs the machine in one
worker thread, because a hop into a thread costs more than a superstep. A run is cancelled by cancelling its coroutine:
tasks of the loop are cancelled, code in a worker thread can't be and is waited for, and nothing of it is kept.
"""

from __future__ import annotations

import warnings
from contextvars import Context, copy_context
from functools import partial
from itertools import filterfalse
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.lowlevel

from pregel.attempt import attempt
from pregel.commands import COMMITS, RunTasks, TaskDone, TaskPaused, Warn, concluded, stored_first
from pregel.drivers import workers
from pregel.drivers.limits import TURN
from pregel.drivers.sync import RunStopped, SyncDriver, cancelled_inside
from pregel.errors import PregelWarning
from pregel.reporter import Emit
from pregel.runtime import FRAME

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Sequence
    from concurrent.futures import Executor

    from pregel.commands import Command, Event
    from pregel.drivers.limits import Turn
    from pregel.drivers.loops import EventLoop
    from pregel.drivers.mailbox import Mailbox
    from pregel.network import Network
    from pregel.node import Code
    from pregel.runtime import Run
    from pregel.superstep import Superstep
    from pregel.task import Task

    Asked = tuple[Turn, anyio.Event]

__all__ = ["AsyncDriver", "InContext"]

T = TypeVar("T")

# A run whose nodes never wait must let others have the loop now and then; every superstep would cost as much as a node.
STEPS_BETWEEN_CHECKPOINTS = 16
# Tasks that are done at once are gone before the next are made: ten thousand alive would cost the garbage collector
# more than they cost to run.
TASKS_BETWEEN_CHECKPOINTS = 256


class Cancelled(Exception):  # noqa: N818 - no error: it makes a task group cancel what is left of it
    """Leaves a task group whose superstep is over before its tasks are."""


class AsyncDriver:
    """Performs one run.

    Args:
        network: The graph.
        machine: The run.
        run: What the tasks share; its `publish` takes stream parts.
        loop: The event loop at hand.
        mailbox: Where the reader of the stream takes its parts; None when there is none, or he reads another run.
    """

    def __init__(
        self,
        network: Network,
        machine: Superstep,
        run: Run,
        loop: EventLoop,
        mailbox: Mailbox | None,
    ) -> None:
        self.network = network
        self.machine = machine
        self.run = run
        self.loop = loop
        self.mailbox = mailbox
        self.context: Context = copy_context()

    async def perform(self, commands: Sequence[Command]) -> None:
        """Perform commands until the run ends.

        Raises:
            Exception: What the run failed with.
        """
        steps = 0
        before = self.loop.requests()
        following: Sequence[Command] | None = commands
        while following is not None:
            tasks = await self.obey(following)
            if not tasks:
                return
            if self.mailbox is not None:
                await self.mailbox.emptied()
            steps += 1
            if not steps % STEPS_BETWEEN_CHECKPOINTS:
                await anyio.lowlevel.checkpoint()
            if len(tasks) == 1 and self.on_loop(tasks[0]):
                task = tasks[0]
                alone = self.in_turn(task, self.ask(task), self.attempt) if self.run.limited else self.attempt(task)
                event = await self.isolated(alone)
                if type(event) is not TaskDone and of_group(event):
                    self.loop.settle(before)
                following = self.machine.handle(event)
            elif any(map(self.on_loop, tasks)):
                following = await self.crowd(tasks)
            else:
                following = await self.stretch(tasks)
            if self.loop.requests() > before:  # a node has swallowed the cancellation of the run: nothing follows it
                raise self.loop.cancelled

    def on_loop(self, task: Task) -> bool:
        """Return whether a task's code belongs on the event loop: it awaits something, or asks to run inline."""
        node = task.node
        # What waits between attempts, or for a deadline, is cancelled best where it is awaited.
        return self.awaits(task) or node.executor == "inline" or node is self.network.start or node.policy is not None

    def awaits(self, task: Task) -> bool:
        """Return whether some of a task's code is awaited."""
        return task.node.uses_loop if self.prefers_async(task) else task.node.needs_loop

    def prefers_async(self, task: Task) -> bool:
        """Return whether code of a task that has both forms is awaited."""
        return self.loop.prefer_async or task.node.any_loop

    def isolated(self, coroutine: Any) -> InContext:
        """Return an awaitable of a coroutine that keeps the context variables it sets; a new task does so by itself."""
        return InContext(coroutine, self.context.copy())

    async def obey(self, commands: Sequence[Command]) -> tuple[Task, ...]:
        """Perform commands, and return the tasks that are to be run: none once the run is over.

        Raises:
            Exception: What the run failed with.
        """
        tasks: tuple[Task, ...] = ()
        for command in commands:
            kind = type(command)
            if kind is RunTasks:
                tasks = command.tasks  # type: ignore[union-attr]  # by its kind, here and below
                if self.run.watch is not None:
                    self.run.watch.superstep(tasks)
            elif kind is Emit:
                self.run.publish(command)  # type: ignore[misc, arg-type]  # an Emit, and who asks for parts takes them
            elif kind in COMMITS:
                await self.commit(command)
            elif kind is Warn:
                warnings.warn(command.message, PregelWarning, stacklevel=2)  # type: ignore[union-attr]  # see `kind`
            elif command.error is not None:  # type: ignore[union-attr]  # a Finish
                raise command.error  # type: ignore[union-attr]  # as above
        return tasks

    async def meanwhile(self, waiting: list[Command]) -> None:
        """Perform what the machine asks for while tasks of the superstep still run: to keep, and then to tell.

        Args:
            waiting: What it asks for; nothing of it is left.

        Raises:
            Exception: Something could not be stored.
        """
        kept = [command for command in waiting if type(command) is not Emit]
        told = [command for command in waiting if type(command) is Emit]
        waiting.clear()
        if kept:
            await self.in_thread(partial(self.run.recorder.commit_all, kept))
        for command in told:
            self.run.publish(command)  # type: ignore[misc]  # who asks for parts takes them

    async def commit(self, command: Command) -> None:
        """Store something, in a worker thread where that waits for a disk or a network.

        Raises:
            Exception: It could not be stored.
        """
        recorder = self.run.recorder
        if recorder.blocking:
            await self.in_thread(partial(recorder.commit, command))
        else:
            recorder.commit(command)

    async def attempt(self, task: Task, run: Run | None = None) -> Event:
        """Run a task in this coroutine, or its sync code in a worker thread.

        Args:
            task: The task.
            run: For one attempt of several what its code finds.
        """
        node = task.node
        if run is None:
            if node.policy is not None:
                from pregel.drivers.awaited import OnLoop, attempts  # noqa: PLC0415 - only runs with policies load it

                return await attempts(task, OnLoop(self))
            run = self.run
        executor = None if node.policy is None else node.policy.executor
        if not (self.awaits(task) or node.executor == "inline" or node is self.network.start or executor is not None):
            turn = TURN.get() if run.limited else None
            return await self.in_thread(partial(self.sync_driver().attempt, task, turn, run), run)
        prefer = self.prefers_async(task)
        awaited = node.code.acall is not None and (prefer or node.code.call is None)
        stays = awaited or node.executor == "inline" or node is self.network.start
        offload = None if stays else partial(self.offload, run)
        away = None if executor is None else partial(self.away, executor, run)
        body = attempt(task, self.machine.values, self.network, run, prefer, offload, away)
        if run.watch is not None:
            body = run.watch.task(task, run, body)
        try:
            return await body
        except self.loop.cancelled as error:
            if self.loop.requests() > 0:
                raise
            return cancelled_inside(task, self.network, error)
        except BaseExceptionGroup as group:  # of trio: a task that was cancelled, and what failed while it cleaned up
            cancelled, rest = group.split(self.loop.cancelled)
            if cancelled is None or not (rest is None or isinstance(rest, Exception)):
                raise
            raise cancelled from None

    def ask(self, task: Task) -> Asked:
        """Ask for the turn of a task; the event is set when it has come."""
        turn, came = self.run.limits.turn(task.node), anyio.Event()
        if turn.ask(partial(self.loop.call_soon, came.set)):
            came.set()
        return turn, came

    async def in_turn(self, task: Task, asked: Asked, call: Callable[[Task], Awaitable[T]]) -> T:
        """Await what runs a task when it is its turn."""
        turn, came = asked
        try:
            if not came.is_set():
                await came.wait()
            TURN.set(turn)
            return await call(task)
        finally:
            turn.end()

    async def offload(self, run: Run, call: Callable[..., Any], given: Any, extra: dict[str, Any]) -> Any:
        """Call the sync code of a node whose paths are awaited. Paths run where their task is: they are short."""
        return await self.in_thread(partial(copy_context().run, partial(call, given, **extra)), run)

    async def away(self, executor: Executor, run: Run, code: Code, given: Any, extra: dict[str, Any]) -> Any:
        """Let an executor run the code of a node, and wait for it on the loop."""
        from pregel.drivers.executors import depart  # noqa: PLC0415 - runs without executors do not load it

        flight = depart(executor, code, given, extra, self.network)
        done = anyio.Event()
        flight.when_done(lambda: self.loop.call_soon(done.set))
        try:
            await done.wait()
        except BaseException:
            if not flight.abandon() and not given_up(run):  # it runs in this process
                run.token.cancel()
                await self.loop.uncancelled(done.wait)
            raise
        return flight.outcome()

    async def crowd(self, tasks: tuple[Task, ...]) -> Sequence[Command]:  # noqa: C901 - closures over one superstep
        """Run the tasks of a superstep side by side; return the commands that follow."""
        # What is stored in threads must be stored in the order in which the machine said so.
        order = anyio.Lock() if self.run.recorder is not None and self.run.recorder.blocking else None
        waiting: list[Command] = []
        following: Sequence[Command] = ()
        running = dict.fromkeys(task.place for task in tasks)

        async def one(task: Task) -> None:
            # Between the conclusion of a superstep and the cancellation of the rest nothing begins, nor counts.
            if following:
                return
            event = await self.attempt(task)
            if order is None:
                if commands := told(task, event):
                    await self.obey(commands)
                return
            waiting.extend(told(task, event))
            async with order:  # whoever comes first stores what has come with it
                if not following:
                    await self.meanwhile(waiting)

        def told(task: Task, event: Event) -> Sequence[Command]:
            nonlocal following
            if following:
                return ()
            del running[task.place]
            commands = self.machine.handle(event)
            if not concluded(commands):
                return commands
            following = commands
            if running:
                self.run.token.cancel()
                raise Cancelled
            return ()

        async def limited(task: Task) -> None:
            await self.in_turn(task, asked[task.place], one)

        def stays(task: Task) -> bool:
            return task.node.executor == "inline" and not self.awaits(task)

        each = limited if self.run.limited else one
        asked: dict[int, Asked] = {}
        try:
            async with self.loop.group() as spawn:
                for begun, task in enumerate(filterfalse(stays, tasks), 1):
                    if each is limited:  # here, since loops start tasks in any order
                        asked[task.place] = self.ask(task)
                    spawn(each, task)
                    if not begun % TASKS_BETWEEN_CHECKPOINTS:
                        await anyio.lowlevel.checkpoint()
                for task in filter(stays, tasks):  # in their order, while the others wait
                    if each is limited:
                        asked[task.place] = self.ask(task)
                    await self.isolated(each(task))
        except* Cancelled:
            pass
        finally:
            for turn, _ in asked.values():  # of tasks that were cancelled before they were started
                turn.end()
        if not following:
            return await self.missed([task for task in tasks if task.place in running])
        if not waiting:
            return following
        if (ending := stored_first(waiting, following)) is None:
            await self.meanwhile(waiting)
        return ending or following

    async def missed(self, tasks: Sequence[Task]) -> Sequence[Command]:
        """Tell the machine of tasks that cancelled themselves, of which a task group takes no notice."""
        commands: Sequence[Command] = ()
        for task in tasks:
            commands = self.machine.handle(cancelled_inside(task, self.network))
            if not concluded(commands):
                await self.obey(commands)
        return commands

    async def stretch(self, tasks: tuple[Task, ...]) -> Sequence[Command] | None:
        """Let the sync driver perform the machine in a worker thread until async code is due.

        Returns:
            The commands to go on with, or None if the run is over.
        """
        sync = self.sync_driver()

        def perform() -> Sequence[Command] | None:
            parts = sync.perform((RunTasks(tasks),), leave=self.on_loop)
            try:
                while True:
                    part = next(parts)
                    if self.mailbox is None:
                        self.run.publish(part)  # type: ignore[misc]  # as in `obey`
                    else:
                        self.mailbox.put_and_wait(part, self.run.token)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]  # what the generator returns
            finally:
                parts.close()

        return await self.in_thread(perform)

    def sync_driver(self) -> SyncDriver:
        """Return a driver for code in a worker thread."""
        sync = SyncDriver(self.network, self.machine, self.run, SimpleQueue())
        sync.context = self.context
        return sync

    async def in_thread(self, call: Callable[[], T], run: Run | None = None) -> T:
        """Call something in a worker thread, and wait for it to end even when cancelled meanwhile.

        Args:
            call: It.
            run: What its code finds, if it is an attempt at a task: one that was given up is not waited for.

        Raises:
            BaseException: Whatever the call raises.
        """
        done = anyio.Event()
        outcome: list[T] = []
        failure: list[BaseException] = []

        def job() -> None:
            try:
                outcome.append(call())
            except BaseException as error:  # noqa: BLE001 - raised again where the call is awaited
                failure.append(error)
            self.loop.call_soon(done.set)

        # Who has a turn is waited for, perhaps by all threads that there are.
        inside = workers.in_worker() or FRAME.get(None) is not None or (self.run.limited and has_turn())
        workers.submit(job, inside=inside)
        try:
            await done.wait()
        except BaseException:
            if run is not None and given_up(run):
                raise
            self.run.token.cancel()
            if self.mailbox is not None:
                self.mailbox.release()
            await self.loop.uncancelled(done.wait)
            raise
        if failure:
            error = failure.pop()
            if isinstance(error, RunStopped):
                await self.loop.stopped()
            raise error
        return outcome[0]


def has_turn() -> bool:
    """Return whether the current task holds a gate that others may wait for."""
    turn = TURN.get()
    return turn is not None and bool(turn.held)


def given_up(run: Run) -> bool:
    """Return whether a task runs in an attempt that no longer counts."""
    return any(token.revoked for token in run.token.attempts())


def of_group(event: Event) -> bool:
    """Return whether a task may have ended by a task group of its own that failed."""
    return type(event) is TaskPaused or isinstance(event[1], BaseExceptionGroup)


class InContext:
    """Awaits a coroutine with each of its steps run inside a given context: what it sets stays in there."""

    __slots__ = ("context", "coroutine")

    def __init__(self, coroutine: Any, context: Context) -> None:
        self.coroutine = coroutine
        self.context = context

    def __await__(self) -> Generator[Any, Any, Any]:
        run, coroutine = self.context.run, self.coroutine
        try:
            waited = run(coroutine.send, None)
            while True:
                try:
                    sent = yield waited
                except BaseException as error:  # noqa: BLE001 - a cancellation, for the coroutine to see
                    waited = run(coroutine.throw, error)
                else:
                    waited = run(coroutine.send, sent)
        except StopIteration as end:
            return end.value
