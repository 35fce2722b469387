"""From times to statements: medians, spreads, ratios a round, targets met or missed."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.harness import Series
from benchmarks.model import Case, Growth, Target, Workload


@dataclass(frozen=True, slots=True)
class Stat:
    """A median with the range it lies in."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> Stat:
        """Summarise one value a round."""
        return cls(median(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target beside what was measured; `met` is None where nothing could be compared."""

    target: Target
    measured: float | None
    met: bool | None

    @property
    def text(self) -> str:
        """As it stands in the tables: the word, and the value where no other column has it."""
        word = {True: "met", False: "missed", None: "not measured"}[self.met]
        shown = "" if self.measured is None else self.target.shown(self.measured)
        return f"{word} ({shown})" if shown else word


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The series of one case, and what can be said about them."""

    workload: Workload
    case: Case
    series: list[Series]

    def find(self, engine: str) -> Series | None:
        """The first series of an engine that has times."""
        return next((s for s in self.series if s.contender.engine == engine and s.seconds), None)

    def named(self, label: str) -> Series | None:
        """The series of one contender, if it has times."""
        return next((s for s in self.series if s.contender.label == label and s.seconds), None)

    def floor_of(self, series: Series) -> Series | None:
        """The floor that one series is measured by, if that has times."""
        return self.named(series.contender.floor) if series.contender.floor else self.find("floor")

    def ratios(self, series: Series) -> list[float]:
        """How many times faster ours is, round by round; empty if one of the two has no times.

        A series of ours is compared with its rival, LangGraph; one of another engine with ours in its default settings.
        """
        match series.contender.engine:
            case "ours":
                rival = series.contender.rival
                theirs, own = self.named(rival) if rival else self.find("langgraph"), series
            case "langgraph" | "floor":
                return []
            case _:
                theirs, own = series, self.find("ours")
        if not (theirs and own and theirs.seconds and own.seconds):
            return []
        # Per unit, and per round: both times of a ratio were taken within moments of each other.
        return [slow / fast for slow, fast in zip(theirs.microseconds, own.microseconds, strict=True)]

    def verdicts(self, series: Series) -> list[Verdict]:
        """Judge one contender by its targets."""
        return [self._judge(series, target) for target in self.case.targets.get(series.contender.label, ())]

    def _judge(self, series: Series, target: Target) -> Verdict:
        values = self._values(series, target)
        if not values:
            return Verdict(target, None, None)
        measured = median(values)
        return Verdict(target, measured, target.met_by(measured))

    def _values(self, series: Series, target: Target) -> list[float]:
        """What a target is about, round by round; empty if it was not measured."""
        match target.kind:
            case "ratio":
                return self.ratios(series)
            case "total":
                return [seconds * 1e3 for seconds in series.seconds]
            case "growth":
                return series.growth
            case "times-raw":
                return series.measures.get("times raw", [])
            case "late":
                return series.measures.get("late", [])
            case _:
                floor = self.floor_of(series)
                return _beside(series, floor, target) if floor else []


def _beside(series: Series, floor: Series, target: Target) -> list[float]:
    """What a target is about that compares with a floor, round by round."""
    match target.kind:
        case "over-floor":
            return [(own - bare) * 1e3 for own, bare in zip(series.seconds, floor.seconds, strict=False)]
        case "times-read":
            pairs = series.measures.get("read", []), floor.measures.get("read", [])
        case _:
            pairs = series.microseconds, floor.microseconds
    return [own / bare for own, bare in zip(*pairs, strict=False)]


def judge_growth(growth: Growth, results: list[CaseResult]) -> str:
    """Judge a target across two cases of one workload, in one line."""
    target = f"target {growth.contender}, {growth.large} costs <= {growth.at_most:g}x {growth.small}"
    costs = {
        result.case.label: median(series.microseconds)
        for result in results
        for series in result.series
        if series.contender.label == growth.contender and series.seconds
    }
    if growth.small not in costs or growth.large not in costs:
        return f"{target}: not measured"
    measured = costs[growth.large] / costs[growth.small]
    return f"{target}: {'met' if measured <= growth.at_most else 'missed'} ({measured:.1f}x)"


def as_data(results: list[CaseResult]) -> list[dict[str, Any]]:
    """Everything that was measured, as JSON can hold it."""
    return [
        {
            "workload": result.workload.name,
            "case": result.case.label,
            "form": result.case.form,
            "size": result.case.size,
            "contender": series.contender.label,
            "engine": series.contender.engine,
            "unit": result.workload.unit,
            "units": series.units,
            "calls": series.calls,
            "seconds": series.seconds,
            "ratios": result.ratios(series),
            "memory_mb": series.memory,
            "growth_kb": series.growth,
            "measures": series.measures,
            "targets": [
                {"target": verdict.target.text, "measured": verdict.measured, "met": verdict.met}
                for verdict in result.verdicts(series)
            ],
            "failure": series.failure,
        }
        for result in results
        for series in result.series
    ]
