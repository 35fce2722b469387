"""The command line: choose, measure, show."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import docs_page, machine, session, table
from benchmarks.engines import ENGINES, available
from benchmarks.results import as_data
from benchmarks.session import QUICK_ROUNDS, ROUNDS, console
from benchmarks.workloads import WORKLOADS

app = typer.Typer(add_completion=False)


@app.command()
def main(
    *,
    only: Annotated[str, typer.Option(help=f"Workloads, with commas between: {', '.join(WORKLOADS)}.")] = "",
    engines: Annotated[str, typer.Option(help=f"Engines, with commas between: {', '.join(ENGINES)}.")] = "",
    quick: Annotated[bool, typer.Option("--quick", help=f"The smallest sizes, {QUICK_ROUNDS} rounds.")] = False,
    full: Annotated[
        bool,
        typer.Option("--full", help="Also what writes hundreds of megabytes a run: LangGraph in the longest ones."),
    ] = False,
    rounds: Annotated[
        int | None, typer.Option(min=1, show_default=f"{ROUNDS}", help="Rounds after the warm-up.")
    ] = None,
    json_path: Annotated[Path | None, typer.Option("--json", dir_okay=False, help="Write every time here.")] = None,
    plot_path: Annotated[
        Path | None, typer.Option("--plot", dir_okay=False, help="Draw cost against size here, as SVG.")
    ] = None,
    write_docs: Annotated[bool, typer.Option("--write-docs", help="Write docs/benchmarks.md.")] = False,
) -> None:
    """Measure pregel against LangGraph, other engines and a bare loop, in one run on one machine."""
    workloads = session.chosen("workload", only, WORKLOADS)
    wanted = session.chosen("engine", engines, ENGINES)
    _check_outputs(plot_path, write_docs=write_docs)
    rounds = rounds or (QUICK_ROUNDS if quick else ROUNDS)
    cases = [
        (WORKLOADS[name], session.with_engines(case, wanted, full=full))
        for name in workloads
        for case in WORKLOADS[name].cases
        if case.quick or not quick
    ]
    absent = session.absent(cases)
    cases = [(workload, session.without_absent(case)) for workload, case in cases]
    results = session.measure([(workload, case) for workload, case in cases if case.contenders], rounds)

    about = machine.describe()
    command = session.command_line("benchmarks", only, engines, quick=quick, rounds=rounds, full=full)
    console.print(table.for_terminal(results))
    for remark in [*table.remarks(results), *absent]:
        console.print(f"- {remark}", markup=False, highlight=False)
    if json_path:
        data = {**about, "command": command, "rounds": rounds, "left_out": absent, "results": as_data(results)}
        json_path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    if plot_path and not import_module("benchmarks.plot").draw(results, plot_path):
        console.print(f"{plot_path.name} was not written: no workload was measured in two sizes or more")
    failed = any(series.failure for result in results for series in result.series)
    if write_docs and failed:
        console.print(f"{docs_page.PAGE.name} was not written: something failed")
    elif write_docs:
        console.print(f"wrote {docs_page.write(results, about, command, rounds, absent).name}")
    if failed:
        raise typer.Exit(1)


def _check_outputs(plot_path: Path | None, *, write_docs: bool) -> None:
    """Find out before an hour of measuring whether the results can be written."""
    if plot_path and not available("matplotlib"):
        raise typer.BadParameter("--plot needs matplotlib, which the extra [bench] installs")
    if write_docs:
        try:
            docs_page.check()
        except docs_page.MarksMissingError as error:
            raise typer.BadParameter(str(error)) from None
