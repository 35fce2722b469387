"""How the code of a node runs on an executor: begun, waited for, given up.

A thread pool of the user's runs it as it is, in the context of its task. Any other executor gets bytes and gives bytes
back (`pregel.remote`), so it may be anywhere.
"""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from threading import Event as Flag
from typing import TYPE_CHECKING, Any

from pregel.errors import NodeExecutorError
from pregel.runtime import current_frame
from pregel.text import told

if TYPE_CHECKING:
    from collections.abc import Callable

    from pregel.network import Network
    from pregel.node import Code
    from pregel.runtime import Run

__all__ = ["Flight", "crosses", "depart", "is_executor", "waited"]


def is_executor(executor: Any) -> bool:
    """Return whether something can be given the code of nodes."""
    return isinstance(executor, Executor)


def crosses(executor: Executor) -> bool:
    """Return whether code that an executor runs goes to another process, or may do so."""
    isolated: Any = getattr(sys.modules.get("concurrent.futures.interpreter"), "InterpreterPoolExecutor", ())
    return not isinstance(executor, ThreadPoolExecutor) or isinstance(executor, isolated)


def process_pools() -> Any:
    """Return the class of the standard library's pools of processes, or nothing that there is an instance of."""
    return getattr(sys.modules.get("concurrent.futures.process"), "ProcessPoolExecutor", ())


class Flight:
    """A call that an executor was given.

    Args:
        future: The executor's.
        land: Returns what the node returned from what the executor did, or raises what it raised; None where the
            executor calls the node itself, in this process.
        what: How messages name the node.
        executor: It.
    """

    __slots__ = ("_executor", "_future", "_land", "_what")

    def __init__(self, future: Future[Any], land: Callable[[Any], Any] | None, what: str, executor: Executor) -> None:
        self._future = future
        self._land = land
        self._what = what
        self._executor = executor

    def when_done(self, call: Callable[[], Any]) -> None:
        """Call something once it has ended, in whatever thread that happens; at once if it has."""
        self._future.add_done_callback(lambda _: call())

    def abandon(self) -> bool:
        """Take it back if it has not begun, and return whether nobody need wait for it.

        In another process it goes on without effect on the run; in this one it must be waited for.
        """
        return self._future.cancel() or self._land is not None

    def outcome(self) -> Any:
        """Return what the node returned, or raise what it raised, once it has ended.

        The current context must be that of the task.

        Raises:
            NodeExecutorError: The worker is gone, or the executor failed in another way.
            BaseException: What the node raised.
        """
        if self._land is None and not self._future.cancelled():
            return self._future.result()
        try:
            reply = self._future.result()
        except (Exception, CancelledError) as error:
            raise lost(self._what, self._executor, error) from error
        return self._land(reply)  # type: ignore[misc]  # a future that was cancelled has raised


def depart(executor: Executor, code: Code, given: Any, extra: dict[str, Any], network: Network) -> Flight:
    """Let an executor call the code of a node, that of the task of the current context.

    Args:
        executor: It.
        code: The code; of two forms the sync one is called.
        given: What it is given.
        extra: What its further parameters are filled with in this process.
        network: Its graph.

    Raises:
        NotSendableError: Something that must cross can't.
        NodeExecutorError: The executor takes nothing.
    """
    frame = current_frame()
    what = f"node {frame[0].node.name!r} of graph {network.name!r}"
    if not crosses(executor):
        call = partial(called, code, given, extra)
        return Flight(submitted(executor, what, copy_context().run, call), None, what, executor)
    from pregel.remote import returned, sent  # noqa: PLC0415 - most graphs run in one process
    from pregel.remotework import work  # noqa: PLC0415 - as above

    future = submitted(executor, what, work, sent(code, given, frame, network))
    return Flight(future, partial(returned, given=given, frame=frame), what, executor)


def called(code: Code, given: Any, extra: dict[str, Any]) -> Any:
    """Call code in a thread that has no event loop."""
    if code.call is not None:
        return code.call(given, **extra)
    return asyncio.run(code.acall(given, **extra))  # type: ignore[misc]  # one of both is there


def waited(flight: Flight, run: Run) -> bool:
    """Wait in this thread for a flight to end; return False where the run was left before that."""
    over, done = Flag(), Flag()
    flight.when_done(done.set)
    flight.when_done(over.set)
    undo = run.token.watch(over.set)
    try:
        over.wait()
        if done.is_set():
            return True
        if not flight.abandon() and not any(token.revoked for token in run.token.attempts()):
            done.wait()
    except BaseException:  # such as Ctrl-C
        flight.abandon()
        raise
    finally:
        undo()
    return False


def submitted(executor: Executor, what: str, *call: Any) -> Future[Any]:
    """Give an executor a call.

    Raises:
        NodeExecutorError: It takes none.
    """
    try:
        return executor.submit(*call)
    except Exception as error:
        raise lost(what, executor, error) from error


def lost(what: str, executor: Executor, error: BaseException) -> NodeExecutorError:
    """Return the error of a call that an executor did not bring to an end."""
    if isinstance(error, CancelledError):
        return NodeExecutorError(f"{what} did not run to its end: its executor has cancelled it")
    broken = (
        ". A ProcessPoolExecutor is broken for good by one dead worker; those of "
        "pregel.executors.process.ProcessExecutor die alone"
        if isinstance(error, BrokenExecutor) and isinstance(executor, process_pools())
        else ""
    )
    return NodeExecutorError(f"{what} did not run to its end: its executor failed ({told(error)}){broken}")
