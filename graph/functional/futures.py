"""The future of a call: how the call is made, and how its result is waited for."""

from __future__ import annotations

from concurrent.futures import Future
from contextvars import copy_context
from threading import get_ident
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pregel.commands import RunTasks
from pregel.errors import InvalidUpdateError, PregelError
from pregel.reporter import Emit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from pregel.drivers.loops import EventLoop
    from pregel.graph.functional.nodecalls import NodeCalls
    from pregel.runtime import Frame
    from pregel.session import Session

__all__ = ["RESULT", "TaskFuture", "refuse_futures"]

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
        return self.aresult().__await__()

    async def aresult(self) -> T:
        """Wait for the end without holding up the event loop; return the result."""
        before, self.seen = self.seen, True
        try:
            await self.until_done()
        except BaseException:  # who waits was cancelled, and does not ask any more
            self.seen = before
            raise
        return super().result()

    async def until_done(self) -> None:
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


def refuse_futures(value: Any, what: str) -> None:
    """Refuse a value that is the future of a task, or a list, tuple or dict with one in it.

    Raises:
        InvalidUpdateError: It is. What the task will give is meant, and could not be stored as this.
    """
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else (value,)
    for part in parts:
        if isinstance(part, TaskFuture):
            raise InvalidUpdateError(
                f"{what} is the future of task {part.name!r}, and not what the task gives: call its .result(), or in "
                "async code await it"
            )
