"""What limits of calls have in common: their options, and how an error tells of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pregel.graph.agent.middleware.options import check_count

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["checked_limits", "told_limits"]


def told_limits(thread: tuple[int, int | None], run: tuple[int, int | None], counts: Callable[[int, int], bool]) -> str:
    """Return which limits a number of calls meets, as words.

    Args:
        thread: The number in the thread, and its limit; None for no limit.
        run: The same for the run.
        counts: Whether a number, the first, meets a limit.
    """
    parts = [
        f"{number} of {limit} in this {name}"
        for name, (number, limit) in (("thread", thread), ("run", run))
        if limit is not None and counts(number, limit)
    ]
    return " and ".join(parts)


def checked_limits(
    who: str, thread_limit: int | None, run_limit: int | None, exit_behavior: str, behaviors: tuple[str, ...]
) -> None:
    """Check the options of a limit.

    Raises:
        ValueError: One has a value that it can't have; the message names the middleware and the option.
    """
    if thread_limit is None and run_limit is None:
        raise ValueError(f"{who}() limits nothing: give thread_limit, run_limit, or both")
    for option, limit in (("thread_limit", thread_limit), ("run_limit", run_limit)):
        check_count(who, option, limit, optional=True)
    if thread_limit is not None and run_limit is not None and run_limit > thread_limit:
        raise ValueError(
            f"{who}(thread_limit={thread_limit}, run_limit={run_limit}): a run can't have more calls than its thread"
        )
    if exit_behavior not in behaviors:
        raise ValueError(f"{who}(exit_behavior={exit_behavior!r}): it is one of {', '.join(behaviors)}")
