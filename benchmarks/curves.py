"""Cost against size: the cases of a workload that differ in their size only, put together as curves."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log
from statistics import linear_regression, median

from benchmarks.results import CaseResult


@dataclass(slots=True)
class Curve:
    """One contender over the sizes of one workload, in one form."""

    workload: str
    form: str
    contender: str
    unit: str
    sizes: list[int] = field(default_factory=list)
    #: Units of work in a call, one entry a size.
    units: list[int] = field(default_factory=list)
    #: The median of seconds a call, one entry a size.
    seconds: list[float] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The workload, and the form where it has several."""
        return f"{self.workload}, {self.form}" if self.form else self.workload

    @property
    def microseconds(self) -> list[float]:
        """Microseconds a unit, one entry a size."""
        return [seconds / units * 1e6 for seconds, units in zip(self.seconds, self.units, strict=True)]

    @property
    def grows(self) -> bool:
        """Whether there is more work in a larger size; if not, the size is that of idle parts."""
        return len(set(self.units)) > 1

    @property
    def ideal(self) -> float:
        """The exponent of an engine whose cost follows the work alone."""
        return 1.0 if self.grows else 0.0

    @property
    def exponent(self) -> float:
        """The slope of log seconds a call over log size, by least squares."""
        return linear_regression([log(size) for size in self.sizes], [log(value) for value in self.seconds]).slope


def curves(results: list[CaseResult]) -> list[Curve]:
    """Put together what was measured in two sizes or more, in the order of the workloads."""
    found: dict[tuple[str, str, str], Curve] = {}
    for result in results:
        workload, case = result.workload, result.case
        for series in result.series:
            if not (case.size and series.seconds):
                continue
            label = series.contender.label
            curve = found.setdefault(
                (workload.name, case.form, label), Curve(workload.name, case.form, label, workload.unit)
            )
            curve.sizes.append(case.size)
            curve.units.append(series.units)
            curve.seconds.append(median(series.seconds))
    return [curve for curve in found.values() if len(curve.sizes) > 1]
