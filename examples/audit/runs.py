"""Where does a run begin? With the first file, or at what a killed one has left behind.

A stored run is one whose report nobody has seen: it is forgotten as soon as its report is printed. So whatever is
stored is gone on with, and the file does not grow by the runs that are over.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from examples.audit.graph import CONCURRENCY, build
from examples.audit.progress import Resumed
from pregel.checkpoint.base import Checkpointer
from pregel.errors import DecodeError, GraphChangedError
from pregel.types import Durability, StateSnapshot, StreamMode

#: What the view follows.
MODES: list[StreamMode] = ["updates", "values", "custom"]
#: A transaction for each of thousands of tasks would wait for the disk thousands of times. In groups nobody waits, and
#: a kill loses what ended in the last tenth of a second: these tasks are run again.
DURABILITY: Durability = "async"


@dataclass(frozen=True, slots=True)
class Run:
    """An audit that begins or goes on.

    Attributes:
        parts: The parts of the stream: what each task did, what nodes say, the state after each superstep.
        resumed: Where it goes on; None where it begins.
        lost: Why it does not go on with what was stored; empty where nothing was.
    """

    parts: Generator[tuple[str, Any], None, None]
    resumed: Resumed | None = None
    lost: str = ""


def run(root: Path, top: int, saver: Checkpointer | None = None, *, fresh: bool = False) -> Run:
    """Audit a path, from where an earlier run with the same path and `top` was stopped.

    Args:
        root: A folder or a file.
        top: How many rows a list may have.
        saver: Where runs are stored; None for nowhere.
        fresh: Whether to begin anew whatever is stored. If the same is being audited meanwhile, that run fails.

    Raises:
        ThreadBusyError: Another process audits the same; `parts` raises it.
    """
    graph = build(saver)
    # The analyses compute, so more threads would only wait for each other, and push out of memory what they share.
    config: dict[str, Any] = {"max_concurrency": CONCURRENCY}
    # Resolved, for it may be gone on with from another working directory.
    given = {"root": str(root.resolve()), "top": top}
    if saver is None:
        return Run(graph.stream(given, config, stream_mode=MODES))
    thread_id = thread_of(root, top)
    config["configurable"] = {"thread_id": thread_id}
    resumed, lost = None, ""
    try:
        resumed = None if fresh else _resumed(graph.get_state(config))
    except (DecodeError, GraphChangedError) as error:  # another version of this audit wrote it, or it is damaged
        lost = str(error)
    if fresh or lost:
        # A new input alone would not do: the lists would go on from those of the run before.
        saver.delete_thread(thread_id)
    parts = graph.stream(None if resumed else given, config, stream_mode=MODES, durability=DURABILITY)
    return Run(parts, resumed, lost)


def forget(root: Path, top: int, saver: Checkpointer) -> None:
    """Drop a run whose report has been seen."""
    saver.delete_thread(thread_of(root, top))


def thread_of(root: Path, top: int) -> str:
    """Name the thread of a path by a digest: a path may be longer than a name, and need not be UTF-8."""
    digest = blake2b(os.fsencode(root.resolve()), digest_size=16).hexdigest()
    return f"audit {digest} top {top}"


def _resumed(state: StateSnapshot) -> Resumed | None:
    """Where a stored run stands; None where there is none."""
    if state.metadata is None:
        return None
    planned = Counter(task.name for task in state.tasks)
    done = Counter(task.name for task in state.tasks if task.result is not None)
    return Resumed(state.metadata["step"] + 1, dict(planned), dict(done))
