"""The results as rows of text, for the terminal and for the documentation alike."""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields
from itertools import groupby

from rich.table import Table

from benchmarks.harness import Series
from benchmarks.results import CaseResult, Stat, judge_growth


@dataclass(frozen=True, slots=True)
class Row:
    """One contender in one case. The names are the headings."""

    workload: str
    case: str
    engine: str
    us_per_unit: str
    ratio: str
    target: str
    verdict: str
    memory: str


HEADINGS = ("workload", "case", "engine", "us per unit", "ours is faster", "target", "verdict", "memory, disk")
_NUMBERS = {"us_per_unit", "ratio", "memory"}
#: What a terminal shows on one line.
_WHOLE = {"engine", "us_per_unit", "ratio"}
#: What the fifth column says.
RATIO = "ours is faster: than LangGraph in the rows of ours, than the row's engine in the rows of the others"


def rows(results: list[CaseResult]) -> list[Row]:
    """Make the rows, in the order in which they were measured."""
    return [_row(result, index) for result in results for index in range(len(result.series))]


def _row(result: CaseResult, index: int) -> Row:
    series, verdicts = result.series[index], result.verdicts(result.series[index])
    ratios = result.ratios(series)
    return Row(
        workload=f"{result.workload.name} ({result.workload.unit})",
        case=result.case.label,
        engine=series.contender.label,
        us_per_unit=_spread(series.microseconds) if series.seconds else "failed",
        ratio=_spread(ratios, "x") if ratios else "",
        target="; ".join(verdict.target.text for verdict in verdicts),
        verdict="; ".join(verdict.text for verdict in verdicts),
        memory=_memory(series),
    )


def _memory(series: Series) -> str:
    if series.measures:
        return _stored(series)
    if series.growth:
        return f"{Stat.of(series.growth).median:+,.0f} kB"
    return f"{_number(Stat.of(series.memory).median)} MB" if series.memory else ""


def _stored(series: Series) -> str:
    medians = {name: Stat.of(values).median for name, values in series.measures.items()}
    parts = [f"{_number(medians['disk'])} MB, {_number(medians['times raw'])}x raw"]
    if "late" in medians:
        parts.append(f"late {medians['late']:.2f}x early")
    return "; ".join([*parts, f"read {_number(medians['read'])} ms"])


def _spread(values: list[float], unit: str = "") -> str:
    stat = Stat.of(values)
    return f"{_number(stat.median)}{unit} ({_number(stat.low)} - {_number(stat.high)})"


def _number(value: float) -> str:
    """Three digits that mean something, and never an exponent."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def remarks(results: list[CaseResult]) -> list[str]:
    """What the rows can't say: targets across cases, notes, failures."""
    found = []
    for _, group in groupby(results, key=lambda result: result.workload.name):
        of_workload = list(group)
        workload = of_workload[0].workload
        measured_at_all = {series.contender.label for result in of_workload for series in result.series}
        for growth in workload.growth:
            if growth.contender not in measured_at_all:
                continue
            found.append(f"{workload.name}: {judge_growth(growth, of_workload)}")
        found += [
            f"{workload.name}, {result.case.label}: {result.case.note}" for result in of_workload if result.case.note
        ]
    found += [
        f"{result.workload.name}, {result.case.label}, {series.contender.label} failed: {series.failure}"
        for result in results
        for series in result.series
        if series.failure
    ]
    return found


def for_terminal(results: list[CaseResult]) -> Table:
    """The table that stands at the end of a run."""
    table = Table(title=f"median (lowest - highest) of the rounds; {RATIO}", title_justify="left")
    for field, heading in zip(fields(Row), HEADINGS, strict=True):
        table.add_column(heading, justify="right" if field.name in _NUMBERS else "left", no_wrap=field.name in _WHOLE)
    previous = None
    for row in rows(results):
        if previous and (previous.workload, previous.case) != (row.workload, row.case):
            table.add_section()
        repeated = previous is not None and (previous.workload, previous.case) == (row.workload, row.case)
        cells = ["" if repeated and place < 2 else cell for place, cell in enumerate(astuple(row))]
        table.add_row(
            *cells, style="red" if "missed" in row.verdict else "green" if row.verdict.startswith("met") else None
        )
        previous = row
    return table


def for_docs(results: list[CaseResult]) -> str:
    """The same rows as a Markdown table, followed by the remarks."""
    lines = [
        "| " + " | ".join(HEADINGS) + " |",
        "|" + "|".join("---:" if field.name in _NUMBERS else "---" for field in fields(Row)) + "|",
        *("| " + " | ".join(astuple(row)) + " |" for row in rows(results)),
    ]
    if notes := remarks(results):
        lines += ["", *(f"- {note}" for note in notes)]
    return "\n".join(lines)
