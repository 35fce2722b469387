"""Functions as graphs: ordinary control flow whose calls of tasks run side by side and are recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pregel.lazy import lazily

if TYPE_CHECKING:
    from pregel.graph.functional.entry import EntryPoint, entrypoint
    from pregel.graph.functional.futures import TaskFuture
    from pregel.graph.functional.recording import arecorded, recorded
    from pregel.graph.functional.tasks import TaskFunction, task

__all__ = ["EntryPoint", "TaskFunction", "TaskFuture", "arecorded", "entrypoint", "recorded", "task"]

_HOMES = {
    "EntryPoint": "pregel.graph.functional.entry",
    "TaskFunction": "pregel.graph.functional.tasks",
    "TaskFuture": "pregel.graph.functional.futures",
    "arecorded": "pregel.graph.functional.recording",
    "entrypoint": "pregel.graph.functional.entry",
    "recorded": "pregel.graph.functional.recording",
    "task": "pregel.graph.functional.tasks",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
