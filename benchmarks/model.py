"""The words of a benchmark: a workload has cases, a case has contenders, a contender prepares a call to be timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal

EngineName = Literal[
    "ours", "langgraph", "burr", "pydantic_graph", "agent_framework", "llama_index", "google_adk", "floor"
]
LoopName = Literal["asyncio", "trio"]
TargetKind = Literal["ratio", "over-floor", "times-floor", "total", "growth", "times-raw", "late", "times-read"]
#: What a workload that stores measures beside time: megabytes on disk; how many times the raw data that is; how many
#: times an early superstep a late one costs; milliseconds to read the state back.
MeasureName = Literal["disk", "times raw", "late", "read"]


_TEXTS: dict[TargetKind, str] = {
    "ratio": ">= {:g}x",
    "over-floor": "<= floor + {:g} ms",
    "times-floor": "<= {:g}x floor",
    "total": "<= {:g} ms",
    "growth": "grows <= {:g} kB",
    "times-raw": "disk <= {:g}x raw",
    "late": "late <= {:g}x early",
    "times-read": "read <= {:g}x floor",
}


class WrongAnswerError(Exception):
    """An engine computed something else than the workload asks for, so its time means nothing."""


def equals(expected: Any) -> Callable[[Any], None]:
    """Make a check that accepts `expected` and nothing else."""

    def check(got: Any) -> None:
        if got != expected:
            raise WrongAnswerError(f"expected {expected!r:.200}, got {got!r:.200}")

    return check


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A call that is ready to be timed: graphs are compiled, inputs are built.

    Args:
        call: What is timed. It returns the answer; with `loop` set, an awaitable of it.
        units: How many supersteps (or tasks, nodes, imports: `Workload.unit`) one call does.
        check: Given the answer, after the clock has stopped; raises if the answer is wrong.
        loop: The event loop to await the call in. The clock starts and stops inside the running loop, for every
            engine alike, so that starting a loop is in nobody's time.
        memory: Reads the peak memory in MB from the answer, where a workload measures it.
        growth: Reads from the answer by how many kB the memory grew, where a workload measures it.
        around: Makes what each measurement has afresh, such as a file. It is entered before the clock starts and left
            when the answers are checked.
        once: Whether a measurement is one call, however short: where its traces are measured too.
        measures: Given the answer, still inside `around`: what else the workload measures.
    """

    call: Callable[[], Any]
    units: int
    check: Callable[[Any], None]
    loop: LoopName | None = None
    memory: Callable[[Any], float | None] | None = None
    growth: Callable[[Any], float | None] | None = None
    around: Callable[[], AbstractContextManager[Any]] | None = None
    once: bool = False
    measures: Callable[[Any], Mapping[MeasureName, float]] | None = None


@dataclass(frozen=True, slots=True)
class Contender:
    """One engine in one configuration.

    Args:
        engine: Whose time it is.
        prepare: Builds everything that is not to be timed.
        variant: What is special about the configuration; empty for the default settings.
        needs: A module beyond the engine without which this configuration is left out.
        rival: The label of the contender that ours is compared with; empty for the first one of LangGraph.
        floor: The label of the contender that is its floor; empty for the first one.
        full: Whether only `--full` measures it.
    """

    engine: EngineName
    prepare: Callable[[], Prepared]
    variant: str = ""
    needs: str = ""
    rival: str = ""
    floor: str = ""
    full: bool = False

    @property
    def label(self) -> str:
        """The engine's name with the variant, unique within a case."""
        return f"{self.engine} {self.variant}".strip()


@dataclass(frozen=True, slots=True)
class Target:
    """What a contender has to reach.

    Args:
        bound: `ratio`: ours is at least so many times faster; than its rival where the target stands at one of our
            contenders, than another engine where it stands at that. `over-floor`: at most so many milliseconds a call
            more than the floor. `times-floor`: at most so many times the floor. `total`: at most so many milliseconds a
            call. `growth`: memory grows by at most so many kB. `times-raw`: at most so many times the raw data on disk.
            `late`: a late superstep costs at most so many times an early one. `times-read`: reading the state costs at
            most so many times what reading the raw data costs the floor.
        kind: How to read `bound`.
    """

    bound: float
    kind: TargetKind = "ratio"

    @property
    def text(self) -> str:
        """The target as it stands in the tables."""
        return _TEXTS[self.kind].format(self.bound)

    def shown(self, measured: float) -> str:
        """A measured value with its unit, for the targets whose value no column of the tables has."""
        match self.kind:
            case "ratio":
                return ""
            case "over-floor" | "total":
                return f"{measured:.0f} ms"
            case "times-floor" | "times-raw" | "late" | "times-read":
                return f"{measured:.2f}x"
            case "growth":
                return f"{measured:.0f} kB"

    def met_by(self, measured: float) -> bool:
        """Compare a measured value, in the unit of `bound`."""
        return measured >= self.bound if self.kind == "ratio" else measured <= self.bound


@dataclass(frozen=True, slots=True)
class Growth:
    """How much more a unit may cost in a larger case, for one contender."""

    contender: str
    small: str
    large: str
    at_most: float


@dataclass(frozen=True, slots=True)
class Case:
    """One size and form of a workload: all its contenders do the same work.

    Args:
        label: The size, as it stands in the tables.
        contenders: In the order in which they alternate.
        targets: By the contender's label; one may have several.
        quick: Whether `--quick` runs it.
        note: What a reader of the results has to know, such as an engine that is left out.
        size: The number in the label, for curves of cost against size; 0 where there is just one size.
        form: What the cases of one curve have in common, where a workload has several curves.
    """

    label: str
    contenders: tuple[Contender, ...]
    targets: Mapping[str, tuple[Target, ...]]
    quick: bool = False
    note: str = ""
    size: int = 0
    form: str = ""


@dataclass(frozen=True, slots=True)
class Workload:
    """One file of `benchmarks/workloads/`.

    Args:
        name: What `--only` takes.
        about: One line: what the work is, and what the floor is.
        unit: What a time is given per.
        cases: From small to large.
        growth: Targets across cases.
    """

    name: str
    about: str
    unit: str
    cases: tuple[Case, ...]
    growth: tuple[Growth, ...] = ()
