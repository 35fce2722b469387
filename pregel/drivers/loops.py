"""What the drivers need of an event loop that anyio does not give, or gives at five times the price."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from threading import get_ident
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import anyio.lowlevel
from anyio import to_thread

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    Spawn = Callable[..., Any]

__all__ = ["AsyncioLoop", "EventLoop", "TrioLoop", "current_loop", "loop_is_running"]


class EventLoop(Protocol):
    """An event loop that a run lives on."""

    #: The thread that the loop runs in.
    thread: int
    #: What is raised in a task that is cancelled.
    cancelled: type[BaseException]
    #: Whether code that has a sync and an async form is awaited. LangChain's async forms need asyncio, so on trio the
    #: sync one runs in a worker thread.
    prefer_async: bool

    def requests(self) -> int:
        """Return how often the current task was asked to cancel, as far as the loop counts it."""

    def settle(self, before: int) -> None:
        """Take back the requests to cancel the current task that are more than there were before."""

    def group(self) -> AbstractAsyncContextManager[Spawn]:
        """Open a task group; what it gives starts a coroutine function in it, in a copy of the current context."""

    def call_soon(self, call: Callable[[], Any]) -> None:
        """Call something on the loop, from any thread; nothing happens where the loop is over."""

    def launch(self, main: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
        """Start a task that belongs to nobody's scope and never raises; return what cancels it and waits for it."""

    async def uncancelled(self, wait: Callable[[], Awaitable[Any]]) -> None:
        """Wait for something whatever cancellations arrive meanwhile."""

    async def stopped(self) -> None:
        """Cancel the current task, whose code in a thread has heard before it that the run was left, or an attempt."""

    async def in_thread(self, call: Callable[[], Any], limiter: anyio.CapacityLimiter, left: Callable[[], Any]) -> Any:
        """Call something in a thread of anyio's, from which `anyio.from_thread` comes back here; return its result.

        A cancellation waits for the call to end. Until then, what comes back here is cancelled.

        Args:
            call: It runs in a copy of the current context.
            limiter: Says when it begins.
            left: Called when a cancellation arrives before the call has ended.

        Raises:
            BaseException: Whatever the call raises.
        """


class AsyncioLoop:
    """The running asyncio loop."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.thread = get_ident()
        self.cancelled: type[BaseException] = asyncio.CancelledError
        self.prefer_async = True

    def requests(self) -> int:
        """Return how often the current task was asked to cancel; one that raises by itself was not."""
        task = asyncio.current_task()
        return 0 if task is None else task.cancelling()

    def settle(self, before: int) -> None:
        """Take back what a group that failed has requested: before Python 3.13 it does not do so itself."""
        task = asyncio.current_task()
        while task is not None and task.cancelling() > before:
            task.uncancel()

    @asynccontextmanager
    async def group(self) -> AsyncGenerator[Spawn, None]:
        """Open an `asyncio.TaskGroup`."""
        before = self.requests()
        try:
            async with asyncio.TaskGroup() as group:
                yield lambda function, argument: group.create_task(function(argument))
        except BaseExceptionGroup:
            self.settle(before)
            raise

    def call_soon(self, call: Callable[[], Any]) -> None:
        """Call something on the loop, from any thread."""
        with suppress(
            RuntimeError
        ):  # the loop is over, after an exit in the middle of a run: nobody is left to be told
            self.loop.call_soon_threadsafe(call)

    def launch(self, main: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
        """Start an asyncio task."""
        task = asyncio.ensure_future(main())

        async def stop() -> None:
            task.cancel()
            await self.uncancelled(lambda: asyncio.wait([task]))

        return stop

    async def uncancelled(self, wait: Callable[[], Awaitable[Any]]) -> None:
        """Wait for something; a cancellation that arrives meanwhile is raised when the wait is over."""
        waiting = asyncio.ensure_future(wait())
        cancelled: asyncio.CancelledError | None = None
        with anyio.CancelScope(shield=True):
            while not waiting.done():
                try:
                    await asyncio.shield(waiting)
                except asyncio.CancelledError as error:
                    cancelled = error
        if cancelled is not None:
            raise cancelled

    async def stopped(self) -> None:
        """Cancel the current task: a group takes some rounds of the loop to pass a cancellation on to its tasks."""
        await anyio.lowlevel.checkpoint_if_cancelled()
        raise self.cancelled

    async def in_thread(self, call: Callable[[], Any], limiter: anyio.CapacityLimiter, left: Callable[[], Any]) -> Any:
        """Call something in a thread of anyio's, which itself waits for it only where a scope of its own is cancelled.

        Raises:
            BaseException: Whatever the call raises.
        """
        scope, ended = anyio.CancelScope(), asyncio.Event()
        outcome: list[Any] = []
        failure: list[BaseException] = []
        ticket = [None]  # for the call, which takes it when it begins, or for the cancellation, which then drops it

        def job() -> Any:
            try:
                ticket.pop()
            except IndexError:
                return None
            try:
                return call()
            finally:
                self.call_soon(ended.set)

        async def main() -> None:
            try:
                with scope:
                    outcome.append(await to_thread.run_sync(job, limiter=limiter))
            except BaseException as error:  # noqa: BLE001 - raised again where the call is awaited
                failure.append(error)

        waiting = asyncio.ensure_future(main())
        try:
            await asyncio.wait([waiting])
        except asyncio.CancelledError:
            left()
            scope.cancel()
            try:
                ticket.pop()
            except IndexError:  # it has begun; `waiting` ends before it does where the loop cancels all tasks
                await self.uncancelled(ended.wait)
            raise
        if failure:
            raise failure.pop()
        return outcome.pop()


class TrioLoop:
    """The running trio loop."""

    def __init__(self) -> None:
        import trio  # noqa: PLC0415 - only where trio runs

        self.trio = trio
        self.token = trio.lowlevel.current_trio_token()
        self.thread = get_ident()
        self.cancelled: type[BaseException] = trio.Cancelled
        self.prefer_async = False

    def requests(self) -> int:
        """Return 1: trio raises `Cancelled` only where a scope was cancelled, and again at each checkpoint."""
        return 1

    def settle(self, before: int) -> None:
        """Do nothing: see `requests`."""

    @asynccontextmanager
    async def group(self) -> AsyncGenerator[Spawn, None]:
        """Open a trio nursery; an exit that leaves it is bare, as it is on asyncio."""
        try:
            async with self.trio.open_nursery() as nursery:
                yield nursery.start_soon
        except BaseExceptionGroup as group:
            left: BaseException | None = group.subgroup((KeyboardInterrupt, SystemExit))
            while isinstance(left, BaseExceptionGroup):
                left = left.exceptions[0]
            if left is None:
                raise
            raise left from None

    def call_soon(self, call: Callable[[], Any]) -> None:
        """Call something on the loop, from any thread."""
        with suppress(self.trio.RunFinishedError):  # as on asyncio
            self.token.run_sync_soon(call)

    def launch(self, main: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
        """Start a system task, which no scope of the caller reaches."""
        scope, done = self.trio.CancelScope(), self.trio.Event()

        async def contained() -> None:
            try:
                with scope:
                    await main()
            finally:
                done.set()

        # Without a context of its own a system task would not see the caller's variables.
        self.trio.lowlevel.spawn_system_task(contained, context=copy_context())

        async def stop() -> None:
            scope.cancel()
            await self.uncancelled(done.wait)

        return stop

    async def uncancelled(self, wait: Callable[[], Awaitable[Any]]) -> None:
        """Wait for something; a cancellation is delivered at the next checkpoint after it."""
        with self.trio.CancelScope(shield=True):
            await wait()

    async def stopped(self) -> None:
        """Cancel the current task if its scope is cancelled: here all scopes inside one are at once."""
        await self.trio.lowlevel.checkpoint_if_cancelled()

    async def in_thread(self, call: Callable[[], Any], limiter: anyio.CapacityLimiter, left: Callable[[], Any]) -> Any:
        """Call something in a thread of anyio's, beside a task that takes notice of a cancellation.

        Raises:
            BaseException: Whatever the call raises.
        """
        outcome: list[Any] = []
        failure: list[BaseException] = []

        async def watch() -> None:
            try:
                await self.trio.sleep_forever()
            finally:
                if not outcome and not failure:
                    left()

        async with self.trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            try:
                outcome.append(await to_thread.run_sync(call, limiter=limiter))
            except BaseException as error:  # noqa: BLE001 - raised again outside of the nursery, which would wrap it
                failure.append(error)
            nursery.cancel_scope.cancel()
        await self.trio.lowlevel.checkpoint_if_cancelled()  # what it came back for looks like something that failed
        if failure:
            raise failure.pop()
        return outcome.pop()


def trio_is_running() -> bool:
    """Return whether trio runs in this thread; it does not where nobody imported it."""
    low = getattr(sys.modules.get("trio"), "lowlevel", None)  # half loaded, a module lacks its names
    return low is not None and bool(low.in_trio_run())


def loop_is_running() -> bool:
    """Return whether an event loop runs in this thread."""
    if trio_is_running():
        return True
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def current_loop() -> EventLoop:
    """Return the event loop that runs this code."""
    return TrioLoop() if trio_is_running() else AsyncioLoop()
