"""How many machines a load needs: `python -m benchmarks.capacity` measures what things cost, adds up, and simulates."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.costs import measured
from benchmarks.queueing import PLANNED, STATIONS, Costs, Load, Servers, demands, needed, shortest, utilisation
from benchmarks.simulation import Outcome, Simulation

#: How long a simulation is, in lifetimes of a run.
LIFETIMES = 8

app = typer.Typer(add_completion=False)


@app.command()
def main(
    *,
    rate: Annotated[float, typer.Option(min=1e-6, help="Runs that arrive in a second.")] = 100.0,
    supersteps: Annotated[int, typer.Option(min=1, help="Supersteps of a run.")] = 10,
    tasks: Annotated[int, typer.Option(min=1, help="Tasks of a superstep.")] = 4,
    remote: Annotated[int, typer.Option(min=0, help="How many of them go to an executor.")] = 1,
    compute: Annotated[float, typer.Option(min=0, help="Seconds that a remote task computes.")] = 0.05,
    wait: Annotated[float, typer.Option(min=0, help="Seconds that a task at home waits for a network.")] = 0.5,
    postgres: Annotated[str, typer.Option(help="Measure commits in this database; else in a SQLite file.")] = "",
    dask: Annotated[
        bool, typer.Option("--dask", help="Measure a scheduler of Dask; else it is taken as 1 ms.")
    ] = False,
    costs_path: Annotated[Path | None, typer.Option("--costs", help="Read costs from here; measure nothing.")] = None,
    json_path: Annotated[Path | None, typer.Option("--json", dir_okay=False, help="Write costs here.")] = None,
    runs: Annotated[int, typer.Option(min=100, help="Runs of the simulation, at least.")] = 3_000,
    seed: Annotated[int, typer.Option(help="Of the simulation.")] = 0,
) -> None:
    """Say how many servers a load needs, and how long its runs take on them."""
    if costs_path is not None:
        costs = Costs(**json.loads(costs_path.read_text(encoding="utf-8")))
    else:
        costs = measured(postgres, dask=dask)
    if json_path is not None:
        json_path.write_text(json.dumps(asdict(costs), indent=1) + "\n", encoding="utf-8")
    load = Load(rate=rate, supersteps=supersteps, tasks=tasks, remote=min(remote, tasks), compute=compute, wait=wait)
    console = Console()
    console.print(", ".join(f"{name} {seconds * 1e6:.0f} us" for name, seconds in asdict(costs).items()))
    servers = needed(costs, load)
    enough = math.ceil(LIFETIMES * rate * shortest(costs, load))  # for as many to end as arrive
    outcome = Simulation(costs, load, servers, seed).run(max(runs, enough))
    console.print(_table(demands(costs, load), servers, utilisation(costs, load, servers), outcome))
    console.print(
        f"{outcome.runs:,} runs in {outcome.seconds:,.0f} s: half of them take less than {outcome.latency(50):.2f} s, "
        f"99 of 100 less than {outcome.latency(99):.2f} s; one alone takes {shortest(costs, load):.2f} s"
    )


def _table(asked: Mapping[str, float], servers: Servers, law: Mapping[str, float], outcome: Outcome) -> Table:
    table = Table(title=f"servers that are busy at most {PLANNED:.0%} of the time", title_justify="left")
    table.add_column("station")
    for heading in ("work of a run, ms", "servers", "busy, by the law", "busy, simulated"):
        table.add_column(heading, justify="right")
    for name in STATIONS:
        table.add_row(
            name, f"{asked[name] * 1e3:.2f}", f"{servers[name]}", f"{law[name]:.0%}", f"{outcome.busy[name]:.0%}"
        )
    return table


if __name__ == "__main__":
    app()
