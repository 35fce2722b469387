"""The command line: choose, measure, show."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import docs_page, machine, table
from benchmarks.engines import ENGINES, available, installed
from benchmarks.harness import run_case
from benchmarks.model import Case, Workload
from benchmarks.results import CaseResult, as_data
from benchmarks.workloads import WORKLOADS

ROUNDS, QUICK_ROUNDS = 5, 2

app = typer.Typer(add_completion=False)
console = Console()
if not console.is_terminal:
    # A file or a pipe has no width; the default of 80 would break the numbers.
    console.width = 160


@app.command()
def main(
    *,
    only: Annotated[str, typer.Option(help=f"Workloads, with commas between: {', '.join(WORKLOADS)}.")] = "",
    engines: Annotated[str, typer.Option(help=f"Engines, with commas between: {', '.join(ENGINES)}.")] = "",
    quick: Annotated[bool, typer.Option("--quick", help=f"The smallest sizes, {QUICK_ROUNDS} rounds.")] = False,
    rounds: Annotated[
        int | None, typer.Option(min=1, show_default=f"{ROUNDS}", help="Rounds after the warm-up.")
    ] = None,
    json_path: Annotated[Path | None, typer.Option("--json", dir_okay=False, help="Write every time here.")] = None,
    write_docs: Annotated[bool, typer.Option("--write-docs", help="Write docs/benchmarks.md.")] = False,
) -> None:
    """Measure pregel against LangGraph and against a bare loop, in one run on one machine."""
    workloads = _chosen("workload", only, WORKLOADS)
    wanted = _chosen("engine", engines, ENGINES)
    if write_docs:
        _check_page()
    rounds = rounds or (QUICK_ROUNDS if quick else ROUNDS)
    cases = [
        (WORKLOADS[name], _with_engines(case, wanted))
        for name in workloads
        for case in WORKLOADS[name].cases
        if case.quick or not quick
    ]
    absent = _absent(wanted, cases)
    cases = [(workload, _without_absent(case)) for workload, case in cases]
    results = _measure([(workload, case) for workload, case in cases if case.contenders], rounds)

    about = machine.describe()
    command = _command(only, engines, quick=quick, rounds=rounds)
    console.print(table.for_terminal(results))
    for remark in [*table.remarks(results), *absent]:
        console.print(f"- {remark}", markup=False, highlight=False)
    if json_path:
        data = {**about, "command": command, "rounds": rounds, "left_out": absent, "results": as_data(results)}
        json_path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    failed = any(series.failure for result in results for series in result.series)
    if write_docs and failed:
        console.print(f"{docs_page.PAGE.name} was not written: something failed")
    elif write_docs:
        console.print(f"wrote {docs_page.write(results, about, command, rounds).name}")
    if failed:
        raise typer.Exit(1)


def _chosen(kind: str, text: str, known: Iterable[str]) -> list[str]:
    """Read a list of names; nothing means all. The order is the program's, whatever order was typed."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise typer.BadParameter(f"unknown {kind} {name!r}{hint} (known: {', '.join(known)})")
    return [name for name in known if not names or name in names]


def _check_page() -> None:
    try:
        docs_page.check()
    except docs_page.MarksMissingError as error:
        raise typer.BadParameter(str(error)) from None


def _with_engines(case: Case, wanted: list[str]) -> Case:
    return replace(case, contenders=tuple(c for c in case.contenders if c.engine in wanted))


def _without_absent(case: Case) -> Case:
    return replace(case, contenders=tuple(c for c in case.contenders if installed(c.engine) and available(c.needs)))


def _absent(wanted: list[str], cases: list[tuple[Workload, Case]]) -> list[str]:
    """Say what was asked for and can't be measured here."""
    engines = [f"{name} is not installed and was left out" for name in wanted if not installed(name)]
    needs = {
        f"{workload.name}, {contender.label} was left out: {contender.needs} is not installed"
        for workload, case in cases
        for contender in case.contenders
        if not available(contender.needs)
    }
    return engines + sorted(needs)


def _measure(cases: list[tuple[Workload, Case]], rounds: int) -> list[CaseResult]:
    results = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    # No automatic refresh: it would be a thread that wakes up while the clock runs.
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as progress:
        turns = sum(len(case.contenders) for _, case in cases) * (rounds + 1)
        bar = progress.add_task("", total=turns, completed=-1)
        for workload, case in cases:

            def tick(what: str, where: str = f"{workload.name}, {case.label}") -> None:
                progress.update(bar, advance=1, description=f"{where}: {what}")
                progress.refresh()

            results.append(CaseResult(workload, case, run_case(case, rounds, tick)))
    return results


def _command(only: str, engines: str, *, quick: bool, rounds: int) -> str:
    """The command that measures the same again."""
    words = ["python -m benchmarks"]
    words += [f"--only {only}"] if only else []
    words += [f"--engines {engines}"] if engines else []
    words += ["--quick"] if quick else []
    words += [f"--rounds {rounds}"] if rounds != (QUICK_ROUNDS if quick else ROUNDS) else []
    return " ".join(words)
