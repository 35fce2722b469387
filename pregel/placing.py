"""Where a run keeps what it comes to: which thread holds its checkpoints, which cache the results of its nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pregel.errors import MissingCheckpointerError

if TYPE_CHECKING:
    from pregel.config import RunOptions
    from pregel.persistence import Persistence
    from pregel.runtime import Frame, Run

__all__ = ["Place", "placed", "results"]

#: Where a run is stored: on a thread of its own, in the run around it, there with a history of its own, or nowhere.
Place = Literal["root", "child", "remembers", "nowhere"]


def placed(persistence: Persistence, options: RunOptions, around: Frame | None, graph: str) -> Place:
    """Return where a run is stored.

    Raises:
        MissingCheckpointerError: The graph is to have a history of its own inside one that has none, or is not to be
            stored and stops at breakpoints.
    """
    checkpointer = persistence.checkpointer
    outer = None if around is None else around[1]
    if outer is not None and outer.recorder is not None and not is_elsewhere(persistence, options, outer):
        if checkpointer is False and persistence.breakpoints is not None:
            raise MissingCheckpointerError(
                f"graph {graph!r} stops at breakpoints and is not stored (checkpointer=False) inside the graph that "
                "runs it, so it would begin again and stop there for ever: compile it with checkpointer=None"
            )
        return "nowhere" if checkpointer is False else "remembers" if checkpointer is True else "child"
    if checkpointer is True:
        raise MissingCheckpointerError(
            f"graph {graph!r} has a history of its own (checkpointer=True) inside the graph that runs it, and that "
            "one is not stored: compile that one with a checkpointer, or give this one a checkpointer"
        )
    return "nowhere" if checkpointer is None or checkpointer is False else "root"


def is_elsewhere(persistence: Persistence, options: RunOptions, outer: Run) -> bool:
    """Return whether a run inside a task was given a thread of its own, and a place to store it."""
    thread = options.config["configurable"].get("thread_id")
    return not (persistence.checkpointer is None or isinstance(persistence.checkpointer, bool)) and thread not in {
        None,
        outer.thread,
    }


def results(persistence: Persistence, around: Frame | None) -> Any:
    """Return what keeps the results of a graph's nodes: its own cache, or that of the run around it; None for none."""
    cache = persistence.cache
    if cache is None and around is not None and around[1].cache is not None:
        cache = around[1].cache.cache
    if cache is None or persistence.format is None:
        return None
    from pregel.cache.results import Results  # noqa: PLC0415 - graphs without a cache do not load it

    return Results(cache, persistence.format)
