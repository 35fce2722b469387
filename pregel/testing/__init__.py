"""The public test kit. Import it in tests; a running graph does not need it. Names are loaded when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pregel.lazy import lazily

if TYPE_CHECKING:
    from pregel.testing.laws import MissingExtraError, ReducerLawError, check_reducer
    from pregel.testing.nodes import NodeRun, UnknownNodeError, run_node
    from pregel.testing.scheduler import SeededRun, run_seeded
    from pregel.testing.tracing import trace

__all__ = [
    "MissingExtraError",
    "NodeRun",
    "ReducerLawError",
    "SeededRun",
    "UnknownNodeError",
    "check_reducer",
    "run_node",
    "run_seeded",
    "trace",
]

_HOMES = {
    "MissingExtraError": "pregel.testing.laws",
    "NodeRun": "pregel.testing.nodes",
    "ReducerLawError": "pregel.testing.laws",
    "SeededRun": "pregel.testing.scheduler",
    "UnknownNodeError": "pregel.testing.nodes",
    "check_reducer": "pregel.testing.laws",
    "run_node": "pregel.testing.nodes",
    "run_seeded": "pregel.testing.scheduler",
    "trace": "pregel.testing.tracing",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
