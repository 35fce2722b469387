"""The calls of tasks that a node has made: where each runs, and that none outlives the node.

Theory of operation. A call is the run of a graph of one node inside the task that calls. Sync code runs on the worker
threads of the process; a call that has found no thread yet is made by whoever asks for its result, so calls that wait
for each other never wait in a circle. Async code that is called by async code runs on the event loop of that, in a task
of its own; called by sync code it has a thread and a loop of its own.
"""

from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pregel.commands import RunTasks
from pregel.drivers.workers import has_room, submit
from pregel.errors import GraphDefinitionError, GraphInterrupt, PregelError
from pregel.reporter import Emit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from pregel.drivers.loops import EventLoop
    from pregel.runtime import Frame
    from pregel.session import Session

__all__ = ["RESULT", "NodeCalls", "TaskFuture", "calls_of"]

T = TypeVar("T")

#: The field of a task's graph that holds what the task returned.
RESULT = "result"


class TaskFuture(Future[T], Generic[T]):
    """The result of a task that may still run: a `concurrent.futures.Future` that async code can await.

    Args:
        calls: The calls of the node.
        name: The task's name.
        session: The run of the task.
        frame: The task of the graph that calls.
    """

    def __init__(self, calls: NodeCalls, name: str, session: Session, frame: Frame) -> None:
        super().__init__()
        self.set_running_or_notify_cancel()
        self.calls = calls
        self.name = name
        self.session = session
        self.frame = frame
        self.context = copy_context()
        #: Where it runs, if not in a thread, and what cancels it there.
        self.loop: EventLoop | None = None
        self.stop: Callable[[], Awaitable[None]] | None = None
        #: Whether somebody has asked how it ended.
        self.seen = False

    def result(self, timeout: float | None = None) -> T:
        """Return the result, waiting for it at most so many seconds.

        Raises:
            TimeoutError: It is not there yet.
            Exception: What the task raised.
            GraphInterrupt: The task waits for an answer, and so does the node that called it: let it through.
            PregelError: The task runs on the event loop of this thread, which would wait for itself: `await` it.
        """
        self.expect(timeout)
        try:
            return super().result(timeout)
        finally:
            self.seen = self.done()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return what the task raised, or None, waiting for its end at most so many seconds; see `result`."""
        self.expect(timeout)
        try:
            return super().exception(timeout)
        finally:
            self.seen = self.done()

    def expect(self, timeout: float | None) -> None:
        """See to it that the call is made, before somebody waits for it in this thread."""
        self.seen = True
        if not self.done():
            if self.loop is not None and self.loop.thread == get_ident():
                raise PregelError(
                    f"the result of task {self.name!r} is asked for in the thread of the event loop on which the task "
                    "still runs, which would wait for itself: await it"
                )
            if timeout is None:  # who can't wait for long must not make the call, which may take longer
                self.calls.make_here(self)

    def __await__(self) -> Generator[Any, None, T]:
        return self.over().__await__()

    async def over(self) -> T:
        """Wait for the end without holding up the event loop; return the result."""
        before, self.seen = self.seen, True
        try:
            await self.ended()
        except BaseException:  # who waits was cancelled, and does not ask any more
            self.seen = before
            raise
        return super().result()

    async def ended(self) -> None:
        """Wait for the end without holding up the event loop."""
        if self.done():
            return
        import anyio  # noqa: PLC0415 - sync code does not pay for it

        from pregel.drivers.loops import current_loop  # noqa: PLC0415 - as above

        done, loop = anyio.Event(), current_loop()
        self.add_done_callback(lambda _: loop.call_soon(done.set))
        await done.wait()

    # -- making the call ---------------------------------------------------------------------------------------------

    def make(self) -> None:
        """Make the call in this thread."""
        self.context.run(self.complete)

    def complete(self) -> None:
        """Make the call, in the context that it was asked for in."""
        session = self.session
        try:
            if session.network.needs_loop:
                from pregel.drivers.bridge import run_async  # noqa: PLC0415 - only async tasks need a loop

                run_async(session.acomplete)
            else:
                session.complete()
            self.conclude()
        except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
            self.set_exception(error)

    async def acomplete(self) -> None:
        """Make the call on the event loop at hand."""
        try:
            await self.session.acomplete()
            self.conclude()
        except BaseException as error:
            self.set_exception(error)
            if self.loop is not None and isinstance(error, self.loop.cancelled):
                raise

    def conclude(self) -> None:
        """Take the result, and tell it unless an earlier run of the node has."""
        session = self.session
        value = session.machine.values[RESULT]
        task, run, *_ = self.frame
        if run.tells_calls and run.publish is not None and any(type(each) is RunTasks for each in session.commands):
            run.publish(Emit("updates", {self.name: value}, run.namespace, task.step, task))
        self.set_result(value)


class NodeCalls:
    """The calls that one task of a graph has made, and code in it that counts as a task of its own.

    Args:
        awaited: Whether the task is awaited, so that calls may be.
        on_loop: Whether its code is, so that async calls share its event loop.
    """

    def __init__(self, *, awaited: bool, on_loop: bool) -> None:
        self.awaited = awaited
        self.on_loop = on_loop
        self.made: list[TaskFuture[Any]] = []
        # How often each call was made, by the task that calls and what tells it from others; and by the same, what is
        # called by a name.
        self.counts: dict[tuple[str, str], int] = {}
        self.known: dict[tuple[str, str], Any] = {}
        self.lock = Lock()
        self.waiting: OrderedDict[TaskFuture[Any], None] = OrderedDict()
        # How many jobs of the pool take calls from the queue.
        self.workers = 0

    def label(self, caller: str, key: str, name: str, code: Any) -> str:
        """Return the name of the next call of a task with this key: what it is recorded by.

        Raises:
            GraphDefinitionError: The same caller has called another function by the name.
        """
        with self.lock:
            if self.known.setdefault((caller, name), code) is not code:
                raise GraphDefinitionError(
                    f"two functions are called as task {name!r} in task {caller}, and a call is recorded by the name: "
                    "give one of them another, @task(name=...)"
                )
            number = self.counts[caller, key] = self.counts.get((caller, key), -1) + 1
        return f"{key}:{number}"

    def begin(self, future: TaskFuture[Any]) -> None:
        """Let a call be made, soon."""
        self.made.append(future)
        if self.on_loop and future.session.network.uses_loop and loop_runs():
            from pregel.drivers.loops import current_loop  # noqa: PLC0415 - sync code does not pay for anyio

            future.loop = current_loop()
            future.stop = future.loop.launch(future.acomplete)
            return
        with self.lock:
            self.waiting[future] = None
            if self.workers and not has_room():
                return
            alone = not self.workers
            self.workers += 1
        # One thread at least must come, for all others could be waiting for such calls.
        submit(self.work, inside=alone)

    def work(self) -> None:
        """Make calls that wait, in a worker thread."""
        while True:
            with self.lock:
                if not self.waiting:
                    self.workers -= 1
                    return
                future, _ = self.waiting.popitem(last=False)
            future.make()
            del future  # or an idle thread would keep the last run alive

    def make_here(self, future: TaskFuture[Any]) -> None:
        """Make a call in this thread if it still waits for one."""
        with self.lock:
            if future not in self.waiting:
                return
            del self.waiting[future]
        future.make()

    # -- the end of the node -----------------------------------------------------------------------------------------

    async def settled(self, asked: list[Any]) -> None:
        """Wait for all calls.

        Args:
            asked: What the task asks, as in its frame; what the calls ask comes in their order.

        Raises:
            Exception: What one failed with whose result nobody has asked for; several make an `ExceptionGroup`.
            GraphInterrupt: The same, of one that waits for an answer.
        """
        await self.wait()
        raised = self.unseen()
        failure = together(raised)
        if failure is not None:
            raise failure
        for pause in raised:
            raise pause
        self.gather(asked)
        self.made.clear()  # or each would lead back to itself

    async def close(self, error: BaseException, asked: list[Any]) -> Exception | None:
        """Wait for all calls before what the node ended by goes on; cancel them if it was left.

        Args:
            error: What the node raised. If it failed, the failures of calls nobody asked for are notes of that.
            asked: See `settled`.

        Returns:
            What counts in the place of a pause: what calls failed with that nobody has asked for.
        """
        failure: Exception | None = None
        try:
            if is_left(error):
                await self.cancel()
            else:
                try:
                    await self.wait()
                except BaseException:  # a cancellation that comes now
                    await self.cancel()
                    raise
        finally:
            self.gather(asked)
        raised = self.unseen()
        if isinstance(error, Exception):
            for each in raised:
                if isinstance(each, Exception):
                    with suppress(Exception):  # one that takes no notes goes without
                        error.add_note(f"Nor was this failure of a task asked for: {type(each).__name__}: {each}")
        elif not is_left(error):
            failure = together(raised)
        if isinstance(error, GraphInterrupt) and error.error is None:
            ended = (each.exception() for each in self.made if each.done())
            error.error = next((each.error for each in ended if isinstance(each, GraphInterrupt) and each.error), None)
        self.made.clear()
        return failure

    async def cancel(self) -> None:
        """Cancel what runs on the loop and wait for it; code in a thread hears of it, and is waited for as well.

        Where an attempt at the task was given up nobody waits for threads: what they do does not count.
        """
        for future in self.made:
            future.session.run.token.cancel()
        for future in self.made:
            if future.stop is not None:
                await future.stop()
        if any(token.revoked for future in self.made for token in future.session.run.token.attempts()):
            return
        if self.awaited and not all(future.done() for future in self.made):
            from pregel.drivers.loops import current_loop  # noqa: PLC0415 - sync code does not pay for anyio

            await current_loop().uncancelled(self.wait)
        else:
            await self.wait()

    async def wait(self) -> None:
        """Wait for all calls, also those that are made meanwhile; in sync code this thread makes some."""
        for future in self.made:
            if self.awaited:
                await future.ended()
            else:
                self.make_here(future)
                Future.exception(future)

    def unseen(self) -> list[BaseException]:
        """Return what calls have raised that nobody has asked for, in the order in which each caller has made them."""
        made = sorted(self.made, key=lambda future: future.frame[0].id)  # the order between callers is luck
        ended = (each for each in made if not each.seen and each.done())
        return [error for each in ended if (error := each.exception()) is not None]

    def gather(self, asked: list[Any]) -> None:
        """Put what the calls ask into their order: that in which they came to ask is luck."""
        found: dict[str, list[Any]] = {}
        known = set()
        for future in self.made:
            if pauses := future.session.machine.pauses:
                known.add(id(pauses))
                found.setdefault(future.frame[0].id, []).extend(pauses)
        if found:
            asked[:] = [*(each for each in asked if id(each) not in known), *map(tuple, found.values())]


def calls_of(frame: Frame) -> NodeCalls:
    """Return the calls that a task has made."""
    held, awaited = frame[5], frame[6]
    if not held:
        held.append(NodeCalls(awaited=awaited, on_loop=awaited and frame[0].node.code.acall is not None))
    return held[0]  # type: ignore[return-value]  # nobody else puts something there


def together(raised: list[BaseException]) -> Exception | None:
    """Return the failures among what calls have raised, as one error."""
    errors = [error for error in raised if isinstance(error, Exception)]
    if len(errors) > 1:
        return ExceptionGroup(f"{len(errors)} tasks failed whose results were not asked for", errors)
    return errors[0] if errors else None


def is_left(error: BaseException) -> bool:
    """Return whether a node raised what no code of its own did: it was cancelled, or the process is to end."""
    if isinstance(error, BaseExceptionGroup):
        return error.split((Exception, GraphInterrupt))[1] is not None
    return not isinstance(error, (Exception, GraphInterrupt))


def loop_runs() -> bool:
    """Return whether an event loop runs in this thread."""
    from pregel.drivers.loops import loop_is_running  # noqa: PLC0415 - sync code does not pay for anyio

    return loop_is_running()
