"""The words of a benchmark: a workload has cases, a case has contenders, a contender prepares a call to be timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

EngineName = Literal[
    "ours", "langgraph", "burr", "pydantic_graph", "agent_framework", "llama_index", "google_adk", "floor"
]
LoopName = Literal["asyncio", "trio"]
TargetKind = Literal["ratio", "over-floor", "times-floor", "total", "growth"]


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
    """

    call: Callable[[], Any]
    units: int
    check: Callable[[Any], None]
    loop: LoopName | None = None
    memory: Callable[[Any], float | None] | None = None
    growth: Callable[[Any], float | None] | None = None


@dataclass(frozen=True, slots=True)
class Contender:
    """One engine in one configuration.

    Args:
        engine: Whose time it is.
        prepare: Builds everything that is not to be timed.
        variant: What is special about the configuration; empty for the default settings.
        needs: A module beyond the engine without which this configuration is left out.
    """

    engine: EngineName
    prepare: Callable[[], Prepared]
    variant: str = ""
    needs: str = ""

    @property
    def label(self) -> str:
        """The engine's name with the variant, unique within a case."""
        return f"{self.engine} {self.variant}".strip()


@dataclass(frozen=True, slots=True)
class Target:
    """What a contender has to reach.

    Args:
        bound: `ratio`: ours is at least so many times faster; than LangGraph where the target stands at one of our
            contenders, than another engine where it stands at that. `over-floor`: at most so many milliseconds a call
            more than the floor. `times-floor`: at most so many times the floor. `total`: at most so many milliseconds a
            call. `growth`: memory grows by at most so many kB.
        kind: How to read `bound`.
    """

    bound: float
    kind: TargetKind = "ratio"

    @property
    def text(self) -> str:
        """The target as it stands in the tables."""
        match self.kind:
            case "ratio":
                return f">= {self.bound:g}x"
            case "over-floor":
                return f"<= floor + {self.bound:g} ms"
            case "times-floor":
                return f"<= {self.bound:g}x floor"
            case "total":
                return f"<= {self.bound:g} ms"
            case "growth":
                return f"grows <= {self.bound:g} kB"

    def shown(self, measured: float) -> str:
        """A measured value with its unit, for the targets whose value no column of the tables has."""
        match self.kind:
            case "ratio":
                return ""
            case "over-floor" | "total":
                return f"{measured:.0f} ms"
            case "times-floor":
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
