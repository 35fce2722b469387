"""The sync driver: a loop in one thread that performs the machine's commands.

A task that is alone in its superstep runs in place. Several run on worker threads, and this thread waits for their
events. The loop is a generator of stream parts: between two of them the run stands still.
"""

from __future__ import annotations

import sys
import warnings
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from pregel.attempt import attempt
from pregel.commands import COMMITS, CommitTask, RunTasks, TaskFailed, Warn, concluded, stored_first
from pregel.drivers.crew import Crew
from pregel.drivers.limitedcrew import LimitedCrew
from pregel.drivers.limits import TURN
from pregel.errors import NodeCancelledError, PregelWarning
from pregel.reporter import Emit

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from concurrent.futures import Executor

    from pregel.attempt import Away
    from pregel.commands import Command, Event
    from pregel.drivers.limits import Turn
    from pregel.network import Network
    from pregel.node import Code
    from pregel.runtime import Run
    from pregel.superstep import Superstep
    from pregel.task import Task

__all__ = ["Inbox", "RunStopped", "SyncDriver"]

Inbox = SimpleQueue[Any]
#: How much a run may hold back to store it in one transaction; a crash meanwhile runs so many tasks again.
MOST_WAITING = 256


class SyncDriver:
    """Performs one run.

    Args:
        network: The graph.
        machine: The run.
        run: What the tasks share.
        inbox: What worker threads have to say: events, written parts, and what must not happen in a thread.
        live: Whether parts are written into the inbox, and must appear while their node still runs.
    """

    def __init__(self, network: Network, machine: Superstep, run: Run, inbox: Inbox, *, live: bool = False) -> None:
        self.network = network
        self.machine = machine
        self.run = run
        self.inbox = inbox
        self.live = live
        self.context: Context = copy_context()

    def perform(  # noqa: C901, PLR0912 - one hot loop: a branch for each kind of command
        self, commands: Sequence[Command], leave: Callable[[Task], bool] | None = None
    ) -> Generator[Emit, None, tuple[Command, ...] | None]:
        """Perform commands until the run ends, yielding stream parts.

        Args:
            commands: Where to begin.
            leave: Tells the tasks that are not for this driver; a superstep with one is given back.

        Returns:
            None once the run is over, or the commands that another driver goes on with.

        Raises:
            Exception: What the run failed with.
        """
        machine = self.machine
        while True:
            tasks: tuple[Task, ...] = ()
            for command in commands:
                kind = type(command)
                if kind is RunTasks:
                    tasks = command.tasks  # type: ignore[union-attr]  # by its kind, here and below
                    if self.run.watch is not None:
                        self.run.watch.superstep(tasks)
                elif kind is Emit:
                    yield command  # type: ignore[misc]  # see `kind`
                elif kind in COMMITS:
                    self.run.recorder.commit(command)
                elif kind is Warn:
                    warnings.warn(command.message, PregelWarning, stacklevel=2)  # type: ignore[union-attr]  # see `kind`
                elif command.error is not None:  # type: ignore[union-attr]  # a Finish
                    raise command.error  # type: ignore[union-attr]  # as above
            if not tasks:
                return None
            if leave is not None and any(map(leave, tasks)):
                return (RunTasks(tasks),)
            if len(tasks) == 1 and not (self.live and tasks[0].node.executor == "thread"):
                commands = machine.handle((self.in_turn if self.run.limited else self.attempt)(tasks[0]))
            else:
                commands = yield from self.crowd(tasks)
            if self.live:  # what nodes wrote in this thread, among events that came when the superstep was over
                while not self.inbox.empty():
                    item = self.inbox.get()
                    if type(item) is Emit:
                        yield item

    def in_turn(self, task: Task) -> Event:
        """Run a task in this thread when it is its turn."""
        turn = self.run.limits.turn(task.node)
        try:
            turn.wait()
            return self.attempt(task, turn)
        finally:
            turn.end()

    def attempt(self, task: Task, turn: Turn | None = None, run: Run | None = None) -> Event:
        """Run a task in this thread, in a context of its own.

        Args:
            task: The task.
            turn: The turn that it has, where tasks need one.
            run: For one attempt of several what its code finds.

        Raises:
            RunStopped: The run was cancelled before the task began.
        """
        if run is None:
            if task.node.policy is not None:
                return self.attempts(task, turn)
            run = self.run
        if run.token.cancelled():
            raise RunStopped
        executor = None if task.node.policy is None else task.node.policy.executor
        away = None if executor is None else flying(executor, self.network, run)
        body = attempt(task, self.machine.values, self.network, run, False, None, away)  # noqa: FBT003 - see its docstring
        if run.watch is not None:
            body = run.watch.task(task, run, body)
        context = self.context.copy()
        if turn is not None:
            context.run(TURN.set, turn)
        try:
            context.run(body.send, None)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # what the generator returns
        except cancellations() as error:  # sync code can't be cancelled: this one came from a loop of its own
            return cancelled_inside(task, self.network, error)
        raise AssertionError("a sync attempt suspended")  # pragma: no cover - `attempt` awaits nothing then

    def attempts(self, task: Task, turn: Turn | None) -> Event:
        """Run a task whose node has a policy."""
        from pregel.drivers.threaded import InThread, attempts  # noqa: PLC0415 - runs without policies do not load it

        body = attempts(task, InThread(self, turn))
        try:
            body.send(None)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # as above
        raise AssertionError("attempts in a thread suspended")  # pragma: no cover - they wait in place

    def crowd(self, tasks: tuple[Task, ...]) -> Generator[Emit, None, Sequence[Command]]:
        """Run the tasks of a superstep side by side; return the commands that follow."""
        threaded = (task for task in tasks if task.node.executor != "inline")
        inline = [task for task in tasks if task.node.executor == "inline"]
        crew: Crew
        if self.run.limited:
            crew = LimitedCrew(threaded, self.attempt, self.inbox, self.run.limits)
        else:
            crew = Crew(threaded, self.attempt, self.inbox)
        waiting: list[Command] = []  # what is to be kept and told, while more has come already
        left = True
        try:
            commands = yield from self.together(crew, inline, waiting)
            left = False
        except Exception:
            left = False
            raise
        finally:
            if crew.open:  # left early: what runs inside the tasks that still run begins nothing more either
                self.run.token.cancel()
            crew.close()
            if left and self.run.recorder is not None:  # by its reader, or by Ctrl-C
                waiting.extend(self.ended(crew))
            self.keep(waiting)
        return commands

    def together(
        self, crew: Crew, inline: Sequence[Task], waiting: list[Command]
    ) -> Generator[Emit, None, Sequence[Command]]:
        """Run the tasks of a crew, and those that stay in this thread, until the superstep ends."""
        limited = self.run.max_concurrency is not None
        if not limited:  # with a limit, what runs in this thread goes first
            crew.start()
        for task in inline:
            commands = self.machine.handle((self.in_turn if self.run.limited else self.attempt)(task))
            yield from crew.written()
            if concluded(commands):
                return commands
            yield from self.meanwhile([*commands])
        if limited:
            crew.start()
        for item in crew.items():
            if type(item) is Emit:
                waiting.append(item)
            else:
                commands = self.machine.handle(item)  # type: ignore[arg-type]  # no part, so an event
                if concluded(commands):
                    return (yield from self.over(waiting, commands))
                waiting.extend(commands)
            if len(waiting) >= MOST_WAITING or not crew.has_come():
                yield from self.meanwhile(waiting)
        raise AssertionError("a superstep ended without a conclusion")  # pragma: no cover - the machine concludes

    def ended(self, crew: Crew) -> Iterator[CommitTask]:
        """Yield what stores the tasks that have ended well, of a superstep that is left in the middle."""
        for event in crew.rest() if self.machine.is_running else ():
            commands = self.machine.handle(event)
            yield from (command for command in commands if type(command) is CommitTask)
            if concluded(commands):
                return

    def over(self, waiting: list[Command], commands: Sequence[Command]) -> Generator[Emit, None, Sequence[Command]]:
        """Return how a superstep ends, with what of it still waits; that is performed first where it must be."""
        ending = stored_first(waiting, commands)
        if ending is None:
            yield from self.meanwhile(waiting)
            return commands
        waiting.clear()
        return ending

    def meanwhile(self, waiting: list[Command]) -> Iterator[Emit]:
        """Perform what the machine asks for while tasks of the superstep still run: to keep, and then to tell.

        Args:
            waiting: What it asks for; nothing of it is left.
        """
        told = [command for command in waiting if type(command) is Emit]
        self.keep(waiting)
        yield from told

    def keep(self, waiting: list[Command]) -> None:
        """Store what has ended, in one transaction; nothing of it is left."""
        kept = [command for command in waiting if type(command) is not Emit]
        waiting.clear()
        if kept:
            self.run.recorder.commit_all(kept)


def cancellations() -> tuple[type[BaseException], ...]:
    """Return what is raised in cancelled code, of the event loops that are loaded."""
    loops = (("asyncio", "CancelledError"), ("trio", "Cancelled"))
    found = (getattr(sys.modules.get(loop), name, None) for loop, name in loops)  # none while one is being loaded
    return tuple(kind for kind in found if kind is not None)


def cancelled_inside(task: Task, network: Network, error: BaseException | None = None) -> TaskFailed:
    """Return how a task ended whose code let a cancellation out although nobody cancelled the run."""
    message = (
        f"node {task.node.name!r} of graph {network.name!r} ended as cancelled, and nobody cancelled the run: it let a "
        "cancellation of its own escape"
    )
    failure = NodeCancelledError(message)
    failure.__cause__ = error
    return TaskFailed(task, failure)


def flying(executor: Executor, network: Network, run: Run) -> Away:
    """Return what lets an executor run the code of a node, waiting in the current thread."""
    from pregel.drivers.executors import depart, waited  # noqa: PLC0415 - runs without executors do not load it

    async def away(code: Code, given: Any, extra: dict[str, Any]) -> Any:
        flight = depart(executor, code, given, extra, network)
        if waited(flight, run):
            return flight.outcome()
        raise RunStopped

    return away


class RunStopped(BaseException):
    """Unwinds the loop of a cancelled run, or code in a thread that nobody hears; it never leaves the drivers."""
