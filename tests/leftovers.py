"""Whether a run left tasks behind."""

import asyncio
import contextlib


@contextlib.asynccontextmanager
async def nothing_left(door):
    """Check that no task of the event loop outlives the block."""
    if door.way == "asyncio":
        before = asyncio.all_tasks()
        yield
        assert asyncio.all_tasks() == before
    else:
        import trio

        before = trio.lowlevel.current_statistics().tasks_living
        yield
        assert trio.lowlevel.current_statistics().tasks_living == before
