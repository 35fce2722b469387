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
from threading import Lock
from typing import TYPE_CHECKING, Any

from pregel.drivers.workers import has_room, submit
from pregel.errors import GraphDefinitionError, GraphInterrupt

if TYPE_CHECKING:
    from pregel.graph.functional.futures import TaskFuture
    from pregel.runtime import Frame

__all__ = ["NodeCalls", "calls_of"]


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
        if self.on_loop and future.session.network.uses_loop:
            from pregel.drivers.loops import current_loop, loop_is_running  # noqa: PLC0415 - sync code needs no anyio

            if loop_is_running():  # else a thread that the node's code has started makes the call
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
                await future.until_done()
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
