"""Count primes on several processes: `python -m examples.cluster [processes|dask] [FILE]`.

A node cuts the numbers into slices, each slice is a task that a worker computes, and a node here adds up. With a FILE
the run is stored: stop it in the middle, start it again, and the slices that were done are not computed again.
"""

from __future__ import annotations

import operator
import os
import sys
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from pregel.checkpoint.sqlite import SqliteSaver
from pregel.executors.process import ProcessExecutor
from pregel.graph import START, StateGraph
from pregel.types import Command, Overwrite, RetryPolicy, Send

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

LIMIT = 100_000
SLICES = 8


class Primes(TypedDict, total=False):
    """How many primes there are below a limit."""

    limit: int
    slices: int
    #: For each slice, how many there are in it, and the process that counted them.
    found: Annotated[list[tuple[int, int]], operator.add]
    total: int


class Slice(TypedDict):
    """What a task counts: the primes from `low` to below `high`."""

    low: int
    high: int


def cut(state: Primes) -> Command[str]:
    """Begin anew, and send each slice to a task of its own."""
    limit, slices = state["limit"], state["slices"]
    edges = [limit * place // slices for place in range(slices + 1)]
    sends = [Send("count", Slice(low=low, high=high)) for low, high in pairwise(edges)]
    return Command(update={"found": Overwrite([])}, goto=sends)


def count(part: Slice) -> dict[str, Any]:
    """Count the primes of a slice, in a worker."""
    primes = sum(n > 1 and all(n % d for d in range(2, int(n**0.5) + 1)) for n in range(part["low"], part["high"]))
    return {"found": [(primes, os.getpid())]}


def add_up(state: Primes) -> dict[str, int]:
    """Add what was found."""
    return {"total": sum(primes for primes, _ in state["found"])}


def counter(executor: Executor, **options: Any) -> Any:
    """Return the graph, whose slices are counted by an executor.

    Args:
        executor: It.
        options: Of `compile`.
    """
    builder = StateGraph(Primes).add_node("cut", cut, destinations=["count"])
    builder.add_node("count", count, executor=executor, retry_policy=RetryPolicy())  # a worker that dies is no matter
    builder.add_node("add_up", add_up, defer=True)
    return builder.add_edge(START, "cut").add_edge("count", "add_up").compile(name="primes", **options)


@contextmanager
def workers(kind: str) -> Iterator[Executor]:
    """Give two worker processes: our own, or those of a Dask cluster, which might as well be on other machines."""
    if kind == "dask":
        from distributed import Client, LocalCluster  # noqa: PLC0415 - an extra

        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            yield client.get_executor()
    elif kind == "processes":
        with ProcessExecutor(2) as executor:
            yield executor
    else:
        raise SystemExit(f"workers are 'processes' or 'dask', not {kind!r}")


def main(kind: str = "processes", file: str = "") -> None:
    """Count, and say who did."""
    config = {"configurable": {"thread_id": f"primes below {LIMIT}"}}
    with workers(kind) as executor, SqliteSaver(file) if file else nullcontext() as saver:
        graph = counter(executor, checkpointer=saver)
        begun = saver is not None and graph.get_state(config).next
        result = graph.invoke(None if begun else {"limit": LIMIT, "slices": SLICES}, config)
    processes = {pid for _, pid in result["found"]}
    print(f"{result['total']:,} primes below {LIMIT:,}, counted in {SLICES} slices by {len(processes)} processes")
    print("none of them is this one" if os.getpid() not in processes else "this one helped")


if __name__ == "__main__":
    main(*sys.argv[1:])
