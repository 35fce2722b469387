"""The other engines, one file each: the same chain, loop and fan-out, written as that engine's documentation does.

Each file has the functions `chain`, `loop` and `fanout`, as far as its engine knows such a graph. They take the size
and give what is to be timed: one run, from an input to the answer, of a graph that is already built. Tracing that
nobody reads is switched off, and so are time limits.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from importlib import import_module
from typing import Literal

from benchmarks.model import Contender, EngineName, Prepared, Target

Shape = Literal["chain", "loop", "fanout"]

OTHERS: tuple[EngineName, ...] = ("burr", "pydantic_graph", "agent_framework", "llama_index", "google_adk")
#: How many times faster ours has to be than each of them, in every workload that they can run.
TARGETS: dict[str, tuple[Target, ...]] = {name: (Target(5 if name == "burr" else 10),) for name in OTHERS}
#: Said of the large cases: the cost a unit of these two grows with the number of units.
TOO_SLOW = "llama_index and google_adk are left out: at 5 to 60 ms a unit one call takes up to a minute."


def prepare(engine: EngineName, shape: Shape, size: int) -> Prepared:
    """Build an engine's graph; the engine is imported only now."""
    build = getattr(import_module(f"{__name__}.{engine}"), shape)
    return build(size)


def contenders(shape: Shape, size: int, *, without: Collection[EngineName] = ()) -> tuple[Contender, ...]:
    """One contender for every engine that is not left out."""
    return tuple(Contender(name, partial(prepare, name, shape, size)) for name in OTHERS if name not in without)
