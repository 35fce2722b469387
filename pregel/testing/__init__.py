"""The public test kit. Import it in tests; a running graph does not need it. Names are loaded when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pregel.lazy import lazily

if TYPE_CHECKING:
    from pregel.testing.clock import FakeClock, fake_clock
    from pregel.testing.conformance import ConformanceError, check_checkpointer
    from pregel.testing.faults import FaultySaver, StorageFault, crash_at, points_passed
    from pregel.testing.laws import MissingExtraError, ReducerLawError, check_reducer
    from pregel.testing.nodes import NodeRun, UnknownNodeError, run_node
    from pregel.testing.scheduler import SeededRun, run_seeded
    from pregel.testing.store_conformance import check_store
    from pregel.testing.tracing import trace

__all__ = [
    "ConformanceError",
    "FakeClock",
    "FaultySaver",
    "MissingExtraError",
    "NodeRun",
    "ReducerLawError",
    "SeededRun",
    "StorageFault",
    "UnknownNodeError",
    "check_checkpointer",
    "check_reducer",
    "check_store",
    "crash_at",
    "fake_clock",
    "points_passed",
    "run_node",
    "run_seeded",
    "trace",
]

_HOMES = {
    "ConformanceError": "pregel.testing.conformance",
    "FakeClock": "pregel.testing.clock",
    "FaultySaver": "pregel.testing.faults",
    "MissingExtraError": "pregel.testing.laws",
    "NodeRun": "pregel.testing.nodes",
    "ReducerLawError": "pregel.testing.laws",
    "SeededRun": "pregel.testing.scheduler",
    "StorageFault": "pregel.testing.faults",
    "UnknownNodeError": "pregel.testing.nodes",
    "check_checkpointer": "pregel.testing.conformance",
    "check_reducer": "pregel.testing.laws",
    "check_store": "pregel.testing.store_conformance",
    "crash_at": "pregel.testing.faults",
    "fake_clock": "pregel.testing.clock",
    "points_passed": "pregel.testing.faults",
    "run_node": "pregel.testing.nodes",
    "run_seeded": "pregel.testing.scheduler",
    "trace": "pregel.testing.tracing",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
