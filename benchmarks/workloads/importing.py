"""What a program pays before its first line runs: time and peak memory of an import, in a new interpreter."""

import subprocess
import sys
from functools import partial

from benchmarks.model import Case, Contender, Prepared, Target, Workload, WrongAnswerError

# The kernel's own peak of this process. `resource.getrusage` would not do: a child's figure starts with its parent's.
_PRINT_PEAK = """
try:
    print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
except OSError:
    print(0)
"""


def _engine(statement: str) -> Prepared:
    def call() -> str:
        command = [sys.executable, "-c", statement + _PRINT_PEAK]
        done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - our own text
        if done.returncode:
            raise RuntimeError(f"{statement!r} failed: {done.stderr.strip().rpartition(chr(10))[2]}")
        return done.stdout

    def check(answer: str) -> None:
        if not answer.strip().isdecimal():
            raise WrongAnswerError(f"expected the peak memory in kB, got {answer!r}")

    def memory(answer: str) -> float | None:
        return int(answer) / 1024 or None

    return Prepared(call=call, units=1, check=check, memory=memory)


def ours(statement: str) -> Prepared:
    return _engine(statement)


def langgraph() -> Prepared:
    return _engine("from langgraph.graph import StateGraph")


def floor() -> Prepared:
    return _engine("pass")


WORKLOAD = Workload(
    name="import",
    about="A new interpreter that imports and ends. LangGraph: `from langgraph.graph import StateGraph`. "
    "Floor: `python -c pass`.",
    unit="import",
    cases=(
        Case(
            "time and peak memory",
            (
                Contender("ours", partial(ours, "import pregel"), "import pregel"),
                Contender("ours", partial(ours, "from pregel import StateGraph"), "StateGraph"),
                Contender("langgraph", langgraph),
                Contender("floor", floor),
            ),
            targets={
                "ours import pregel": (Target(50, "over-floor"),),
                "ours StateGraph": (Target(250, "total"),),
            },
            quick=True,
        ),
    ),
)
