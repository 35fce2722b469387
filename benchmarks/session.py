"""What both programs of this package do: read names, leave out what is not installed, measure behind a progress bar."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.engines import available, installed
from benchmarks.harness import run_case
from benchmarks.model import Case, Workload
from benchmarks.results import CaseResult

ROUNDS, QUICK_ROUNDS = 5, 2

console = Console()
if not console.is_terminal:
    # A file or a pipe has no width; the default of 80 would break the numbers.
    console.width = 180


def chosen(kind: str, text: str, known: Iterable[str]) -> list[str]:
    """Read a list of names; nothing means all. The order is the program's, whatever order was typed."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise typer.BadParameter(f"unknown {kind} {name!r}{hint} (known: {', '.join(known)})")
    return [name for name in known if not names or name in names]


def with_engines(case: Case, wanted: Iterable[str], *, full: bool = False) -> Case:
    """Keep the contenders of some engines; those that cost a lot only where everything is to be measured."""
    return replace(case, contenders=tuple(c for c in case.contenders if c.engine in wanted and (full or not c.full)))


def without_absent(case: Case) -> Case:
    """Keep the contenders that can be measured here."""
    return replace(case, contenders=tuple(c for c in case.contenders if installed(c.engine) and available(c.needs)))


def absent(cases: Iterable[tuple[Workload, Case]]) -> list[str]:
    """Say what was asked for and can't be measured here."""
    asked = [(workload, contender) for workload, case in cases for contender in case.contenders]
    engines = dict.fromkeys(contender.engine for _, contender in asked if not installed(contender.engine))
    needs = {
        f"{workload.name}, {contender.label} was left out: {contender.needs} is not installed"
        for workload, contender in asked
        if not available(contender.needs)
    }
    return [f"{name} is not installed and was left out" for name in engines] + sorted(needs)


def measure(cases: list[tuple[Workload, Case]], rounds: int) -> list[CaseResult]:
    """Measure the cases one after the other."""
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


def command_line(program: str, only: str, engines: str, *, quick: bool, rounds: int, full: bool = False) -> str:
    """The command that measures the same again."""
    words = [f"python -m {program}"]
    words += [f"--only {only}"] if only else []
    words += [f"--engines {engines}"] if engines else []
    words += ["--quick"] if quick else []
    words += ["--full"] if full else []
    words += [f"--rounds {rounds}"] if rounds != (QUICK_ROUNDS if quick else ROUNDS) else []
    return " ".join(words)
