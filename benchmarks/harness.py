"""Timing: the engines alternate within a round, so that a slow minute of the machine hits all of them alike.

A measurement is one number, seconds a call. Calls that are too short for one reading of the clock are repeated within a
measurement; every answer of every repetition is checked after the clock has stopped.
"""

from __future__ import annotations

import asyncio
import gc
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from time import perf_counter
from typing import Any

from benchmarks.model import Case, Contender, MeasureName, Prepared

#: A measurement lasts at least about this long, in seconds: far above what a clock reading or a timer tick costs.
_SHORTEST = 0.02
#: ... but not more repetitions than this, since their answers are kept until they are checked.
_MOST_CALLS = 2_000
#: A first call that takes as long is a long one, and not a short one that loaded modules.
_LONG = 0.5


@dataclass(slots=True)
class Series:
    """What one contender showed in one case."""

    contender: Contender
    #: Units of work in one call.
    units: int = 0
    #: Calls in one measurement.
    calls: int = 1
    #: Seconds a call, one entry a round.
    seconds: list[float] = field(default_factory=list)
    #: Peak memory in MB, one entry a round, where the workload measures it.
    memory: list[float] = field(default_factory=list)
    #: By how many kB the memory grew, one entry a round, where the workload measures it.
    growth: list[float] = field(default_factory=list)
    #: What else the workload measures, one entry a round.
    measures: dict[MeasureName, list[float]] = field(default_factory=dict)
    #: Why the contender left the case; empty if it did not.
    failure: str = ""

    @property
    def microseconds(self) -> list[float]:
        """Microseconds a unit, one entry a round."""
        return [seconds / self.units * 1e6 for seconds in self.seconds]


def run_case(case: Case, rounds: int, tick: Callable[[str], None]) -> list[Series]:
    """Measure a case: a warm-up round, then `rounds` rounds in which each contender has one turn.

    Args:
        case: What to measure.
        rounds: How many measurements each contender gets.
        tick: Told what comes next before every turn, outside the timed region.

    Returns:
        One series a contender, in the case's order. A contender that raises or gives a wrong answer leaves the case;
        its series says why and keeps no times.
    """
    entries = []
    for contender in case.contenders:
        tick(f"{contender.label}, warm-up")
        series = Series(contender)
        entries.append((series, _attempt(series, partial(_warm_up, series))))
    for number in range(1, rounds + 1):
        for series, prepared in entries:
            tick(f"{series.contender.label}, round {number} of {rounds}")
            if not series.failure:
                _attempt(series, partial(_measure, series, prepared))
    return [series for series, _ in entries]


def _attempt(series: Series, step: Callable[[], Any]) -> Any:
    """Run a step for a contender; an exception of any kind becomes its failure, and the others go on."""
    try:
        return step()
    except Exception as error:
        series.failure = f"{type(error).__name__}: {' '.join(str(error).split())}"
        series.seconds.clear()
        series.memory.clear()
        series.growth.clear()
        series.measures.clear()
        return None


def _warm_up(series: Series) -> Prepared:
    prepared = series.contender.prepare()
    series.units = prepared.units
    with _around(prepared):
        seconds, _ = _time(prepared, 1)
        if seconds < _LONG and not prepared.once:
            # The first call loads modules and fills caches, so a second one says how many fit. Long calls need none.
            seconds, _ = _time(prepared, 1)
            series.calls = min(math.ceil(_SHORTEST / seconds), _MOST_CALLS)
    return prepared


def _measure(series: Series, prepared: Prepared) -> None:
    with _around(prepared):
        seconds, answer = _time(prepared, series.calls)
        measures = prepared.measures(answer) if prepared.measures else {}
    series.seconds.append(seconds)
    if prepared.memory and (peak := prepared.memory(answer)) is not None:
        series.memory.append(peak)
    if prepared.growth and (grown := prepared.growth(answer)) is not None:
        series.growth.append(grown)
    for name, value in measures.items():
        series.measures.setdefault(name, []).append(value)


def _around(prepared: Prepared) -> AbstractContextManager[Any]:
    return prepared.around() if prepared.around else nullcontext()


def _time(prepared: Prepared, calls: int) -> tuple[float, Any]:
    """Time `calls` calls, check all their answers; give seconds a call and the last answer."""
    # The collector stays on while the clock runs: what an engine leaves behind is its cost. But it starts clean.
    gc.collect()
    seconds, answers = _run(prepared, calls)
    for answer in answers:
        prepared.check(answer)
    return seconds / calls, answers[-1]


def _run(prepared: Prepared, calls: int) -> tuple[float, list[Any]]:
    call = prepared.call

    async def awaited() -> tuple[float, list[Any]]:
        start = perf_counter()
        answers = [await call() for _ in range(calls)]
        return perf_counter() - start, answers

    match prepared.loop:
        case "asyncio":
            return asyncio.run(awaited())
        case "trio":
            return import_module("trio").run(awaited)
        case None:
            start = perf_counter()
            answers = [call() for _ in range(calls)]
            return perf_counter() - start, answers
