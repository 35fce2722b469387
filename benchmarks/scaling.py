"""How cost grows: `python -m benchmarks.scaling` fits an exponent to every workload that has sizes.

An exponent is the slope of the time of a whole run over the size, both as logarithms. 1.0 means that the cost follows
the work. Where a larger size means more idle parts and no more work, 0.0 does.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from benchmarks import machine, session
from benchmarks.curves import Curve, curves
from benchmarks.engines import ENGINES
from benchmarks.session import QUICK_ROUNDS, ROUNDS, console
from benchmarks.workloads import WORKLOADS

SIZED = [name for name, workload in WORKLOADS.items() if any(case.size for case in workload.cases)]
#: `--quick` leaves out what is larger.
QUICK_SIZE = 100

app = typer.Typer(add_completion=False)


@app.command()
def main(
    *,
    only: Annotated[str, typer.Option(help=f"Workloads, with commas between: {', '.join(SIZED)}.")] = "",
    engines: Annotated[str, typer.Option(help=f"Engines, with commas between: {', '.join(ENGINES)}.")] = "ours",
    quick: Annotated[
        bool, typer.Option("--quick", help=f"Sizes up to {QUICK_SIZE} (or the two smallest), {QUICK_ROUNDS} rounds.")
    ] = False,
    rounds: Annotated[
        int | None, typer.Option(min=1, show_default=f"{ROUNDS}", help="Rounds after the warm-up.")
    ] = None,
    json_path: Annotated[Path | None, typer.Option("--json", dir_okay=False, help="Write the curves here.")] = None,
) -> None:
    """Fit how the cost of a run grows with its size."""
    wanted = session.chosen("engine", engines, ENGINES)
    rounds = rounds or (QUICK_ROUNDS if quick else ROUNDS)
    cases = []
    for name in session.chosen("workload", only, SIZED):
        workload = WORKLOADS[name]
        limit = max(QUICK_SIZE, sorted({case.size for case in workload.cases})[1])
        cases += [
            (workload, session.with_engines(case, wanted)) for case in workload.cases if case.size <= limit or not quick
        ]
    absent = session.absent(cases)
    cases = [(workload, session.without_absent(case)) for workload, case in cases]
    results = session.measure([(workload, case) for workload, case in cases if case.contenders], rounds)

    found = curves(results)
    console.print(_table(found))
    failures = [
        f"{result.workload.name}, {result.case.label}, {series.contender.label} failed: {series.failure}"
        for result in results
        for series in result.series
        if series.failure
    ]
    for remark in [*absent, *failures]:
        console.print(f"- {remark}", markup=False, highlight=False)
    if json_path:
        command = session.command_line("benchmarks.scaling", only, engines, quick=quick, rounds=rounds)
        fitted = [{**asdict(curve), "exponent": curve.exponent, "ideal": curve.ideal} for curve in found]
        data = {**machine.describe(), "command": command, "rounds": rounds, "left_out": absent, "curves": fitted}
        json_path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    if failures:
        raise typer.Exit(1)


def _table(found: list[Curve]) -> Table:
    table = Table(title="time of a run ~ size ^ exponent", title_justify="left")
    for heading in ("workload", "engine"):
        table.add_column(heading)
    for heading in ("sizes", "us per unit", "exponent", "ideal"):
        table.add_column(heading, justify="right", no_wrap=True)
    for curve in found:
        table.add_row(
            curve.title,
            curve.contender,
            f"{curve.sizes[0]:,} - {curve.sizes[-1]:,}",
            " / ".join(f"{value:,.3g}" if value < 1000 else f"{value:,.0f}" for value in curve.microseconds),
            f"{curve.exponent:.2f}",
            f"{curve.ideal:.0f}",
        )
    return table


if __name__ == "__main__":
    app(prog_name="python -m benchmarks.scaling")
