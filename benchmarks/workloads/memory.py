"""What a long run keeps: by how much the process grows over 100,000 supersteps, in a new interpreter."""

import gc
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import graphs
from benchmarks.engines import api
from benchmarks.model import Case, Contender, EngineName, Prepared, Target, Workload, WrongAnswerError

STEPS = 100_000
#: LangGraph does fewer, and what it grew by is scaled up.
FEWER = 10_000
#: Supersteps before the first reading: caches, free lists and the allocator's arenas have their size by then.
WARM_UP = 5_000
#: No growth, in kB: an object a superstep would be some thousand; an arena more or less of the allocator is not a leak.
NOTHING = 512.0

_ROOT = Path(__file__).resolve().parent.parent.parent
_STATUS = Path("/proc/self/status")


def resident() -> int | None:
    """This process's resident memory in kB, where the system tells."""
    gc.collect()
    if not _STATUS.exists():
        return None
    lines = _STATUS.read_text(encoding="ascii", errors="replace").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def watch(engine: EngineName, steps: int) -> None:
    """Run in the new interpreter: one run of the loop that takes its own readings; print them and the answer."""
    total = WARM_UP + steps
    readings: list[int | None] = []

    def node(state: graphs.Counter) -> dict[str, int]:
        if state["n"] in {WARM_UP, total - 1}:
            readings.append(resident())
        return {"n": state["n"] + 1}

    answer = _floor(node, total) if engine == "floor" else _graph(engine, node, total)
    before, after = readings
    print(json.dumps({"n": answer["n"], "grown": None if before is None or after is None else after - before}))


def _graph(engine: EngineName, node: Callable[..., Any], total: int) -> dict[str, int]:
    return graphs.loop(api(engine), total, node).invoke({"n": 0}, config=graphs.limit(total))


def _floor(node: Callable[..., Any], total: int) -> dict[str, int]:
    state = {"n": 0}
    while state["n"] < total:
        state.update(node(state))
    return state


def _watched(engine: EngineName, steps: int) -> Prepared:
    statement = f"from benchmarks.workloads.memory import watch; watch({engine!r}, {steps})"

    def call() -> dict[str, Any]:
        command = [sys.executable, "-c", statement]
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=_ROOT)  # noqa: S603 - our text
        if done.returncode:
            raise RuntimeError(f"{statement!r} failed: {done.stderr.strip().rpartition(chr(10))[2]}")
        return json.loads(done.stdout)

    def check(answer: dict[str, Any]) -> None:
        if answer["n"] != WARM_UP + steps:
            raise WrongAnswerError(f"expected a count of {WARM_UP + steps}, got {answer['n']!r}")

    def growth(answer: dict[str, Any]) -> float | None:
        return None if answer["grown"] is None else answer["grown"] * STEPS / steps

    return Prepared(call=call, units=WARM_UP + steps, check=check, growth=growth)


def ours() -> Prepared:
    return _watched("ours", STEPS)


def langgraph() -> Prepared:
    return _watched("langgraph", FEWER)


def floor() -> Prepared:
    return _watched("floor", STEPS)


WORKLOAD = Workload(
    name="memory",
    about=f"How much resident memory {STEPS:,} supersteps of the loop add, after {WARM_UP:,} to warm up, in one run in "
    "a new interpreter. The time is that of the whole process, its start and imports among it. Floor: a while loop.",
    unit="superstep",
    cases=(
        Case(
            f"{STEPS:,} supersteps",
            (Contender("ours", ours), Contender("langgraph", langgraph), Contender("floor", floor)),
            targets={"ours": (Target(NOTHING, "growth"),)},
            quick=True,
            note=f"LangGraph runs {FEWER:,} supersteps; what it grows by is given for {STEPS:,}.",
        ),
    ),
)
