"""How sync code runs a graph that has async nodes: one event loop for the run."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from pregel.drivers.loops import loop_is_running

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator

__all__ = ["iterate_async", "run_async"]

T = TypeVar("T")
EXHAUSTED = object()


def run_async(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine function to its end on a new asyncio loop.

    Where a loop runs in this thread already, as in a notebook, the new one gets a thread of its own.
    """
    with runner() as run:
        result: T = run(main)
        return result


def iterate_async(parts: Callable[[], AsyncGenerator[T, None]]) -> Generator[T, None, None]:
    """Iterate an async generator from sync code; the loop stands still between two parts."""
    with runner() as run:
        generator = parts()

        async def following() -> Any:
            return await anext(generator, EXHAUSTED)

        whole = True
        try:
            while (part := run(following)) is not EXHAUSTED:
                yield part
        except (KeyboardInterrupt, SystemExit):
            whole = False  # the loop was left in the middle of a part; closing it ends what is left on it
            raise
        finally:
            if whole:
                run(generator.aclose)


@contextmanager
def runner() -> Iterator[Callable[[Callable[[], Coroutine[Any, Any, Any]]], Any]]:
    """Give a function that runs coroutine functions on one new event loop, in the caller's context."""
    context = copy_context()
    # Another thread may be loading the module right now: then it lacks its names, and nobody has set anything.
    library = getattr(sys.modules.get("sniffio"), "current_async_library_cvar", None)
    if library is not None:  # or code of the new loop that asks would be told of the caller's
        context.run(library.set, "asyncio")
    if not loop_is_running():
        own = asyncio.Runner()
        try:
            yield lambda main: own.run(main(), context=context)
        except (KeyboardInterrupt, SystemExit):
            with suppress(RuntimeError):  # the exit stops the loop again while its tasks are cancelled
                own.close()
            raise
        finally:
            own.close()  # a second time it does nothing
        return
    own = asyncio.Runner()
    with ThreadPoolExecutor(1, thread_name_prefix="pregel-loop") as thread:
        try:
            yield lambda main: thread.submit(own.run, main(), context=context).result()
        finally:
            thread.submit(own.close).result()
