"""How many machines a load needs: `python -m benchmarks.capacity` measures what things cost, adds up, and simulates.

The model is the utilisation law of queueing networks: a station that a run asks for `d` seconds of work is busy
`rate * d / servers` of the time, whatever else happens. It says what a load needs at least, and nothing of how long a
run waits. The simulation does: runs arrive at random and queue at the same stations. What the law predicts must be what
the simulation measures, or one of them is wrong.
"""

from __future__ import annotations

import json
import math
import random
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from statistics import quantiles
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

#: How busy a station is planned to be: beyond it, waiting grows fast.
PLANNED = 0.7
#: How long a simulation is, in lifetimes of a run.
LIFETIMES = 8
STATIONS = ("runners", "database", "scheduler", "computers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What things cost, in seconds of one processor (of the database, for `commit`)."""

    #: A superstep, and each task in it, in the process that runs the graph.
    superstep: float
    task: float
    #: Storing a superstep: in that process, and in the database.
    store: float
    commit: float
    #: A task on an executor: at home, at the scheduler, and in the worker beside the node's own code.
    send: float
    schedule: float
    receive: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What runs do."""

    #: Runs that arrive in a second.
    rate: float
    supersteps: int
    #: Tasks of a superstep, and how many of them go to an executor.
    tasks: int
    remote: int
    #: What a remote task computes and a task at home waits for a network, in seconds.
    compute: float
    wait: float


Servers = Mapping[str, int]


def demands(costs: Costs, load: Load) -> dict[str, float]:
    """Return how many seconds of work a run asks of each station."""
    each = {
        "runners": costs.superstep + load.tasks * costs.task + load.remote * costs.send + costs.store,
        "database": costs.commit,
        "scheduler": load.remote * costs.schedule,
        "computers": load.remote * (costs.receive + load.compute),
    }
    return {station: load.supersteps * seconds for station, seconds in each.items()}


def utilisation(costs: Costs, load: Load, servers: Servers) -> dict[str, float]:
    """Return which part of the time each station is busy; above 1 it can't follow."""
    return {station: load.rate * seconds / servers[station] for station, seconds in demands(costs, load).items()}


def needed(costs: Costs, load: Load, planned: float = PLANNED) -> dict[str, int]:
    """Return how many servers each station needs to be busy at most so much of the time."""
    return {
        station: max(1, math.ceil(load.rate * seconds / planned - 1e-9))
        for station, seconds in demands(costs, load).items()
    }


def shortest(costs: Costs, load: Load) -> float:
    """Return how long a run takes that waits for nobody else and finds computers for all its tasks."""
    away = costs.schedule * load.remote + costs.receive + load.compute if load.remote else 0.0
    at_home = load.wait if load.tasks > load.remote else 0.0
    here = costs.superstep + load.tasks * costs.task + load.remote * costs.send + costs.store
    return load.supersteps * (here + max(away, at_home) + costs.commit)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a simulation measured."""

    runs: int
    seconds: float
    #: Which part of the time each station was busy, once the first runs have ended and until the last one arrives.
    busy: dict[str, float]
    #: Seconds from a run's arrival to its end, from the fastest to the slowest.
    latencies: list[float]

    def latency(self, percent: int) -> float:
        """Return how long all but the slowest runs took."""
        return quantiles(self.latencies, n=100, method="inclusive")[percent - 1]


class Station:
    """Servers with one queue, first come first served."""

    def __init__(self, servers: int) -> None:
        self.free = servers
        self.queue: deque[tuple[float, Any]] = deque()
        self.worked: list[tuple[float, float]] = []


class Simulation:
    """Runs that arrive at random, as Poisson has it, and queue for servers.

    Args:
        costs: What things cost. Each piece of work takes an exponential time with that mean.
        load: What runs do.
        servers: How many servers each station has.
        seed: The same seed gives the same simulation.
    """

    def __init__(self, costs: Costs, load: Load, servers: Servers, seed: int) -> None:
        self.costs = costs
        self.load = load
        self.random = random.Random(seed)  # noqa: S311 - a simulation
        self.stations = {name: Station(servers[name]) for name in STATIONS}
        self.servers = servers
        self.now = 0.0
        self.order = count()
        self.events: list[tuple[float, int, Any, Station | None]] = []
        self.latencies: list[float] = []

    def run(self, runs: int) -> Outcome:
        """Let so many runs arrive, and simulate until the last one has ended."""
        at = 0.0
        for _ in range(runs):
            at += self.random.expovariate(self.load.rate)
            self.later(at, self.life(at))
        while self.events:
            self.now, _, process, left = heappop(self.events)
            if left is not None:
                self.leave(left)
            self.go_on(process)
        steady = min(2 * shortest(self.costs, self.load), at / 2), at
        busy = {
            name: sum(within(spell, steady) for spell in station.worked)
            / ((steady[1] - steady[0]) * self.servers[name])
            for name, station in self.stations.items()
        }
        return Outcome(runs, self.now, busy, sorted(self.latencies))

    def life(self, arrived: float) -> Iterator[tuple[str, float] | list[Iterator[Any]]]:
        """Yield what a run asks for: a station and the work there, a wait, or several things side by side."""
        costs, load = self.costs, self.load
        here = costs.superstep + load.tasks * costs.task + load.remote * costs.send + costs.store
        for _ in range(load.supersteps):
            yield "runners", here
            at_home = [self.pause()] if load.tasks > load.remote else []
            yield [*(self.away() for _ in range(load.remote)), *at_home]
            yield "database", costs.commit
        self.latencies.append(self.now - arrived)

    def away(self) -> Iterator[tuple[str, float]]:
        """Yield what a task on an executor asks for."""
        yield "scheduler", self.costs.schedule
        yield "computers", self.costs.receive + self.load.compute

    def pause(self) -> Iterator[tuple[str, float]]:
        """Yield what tasks at home ask for: time, which is not anybody's."""
        yield "", self.load.wait

    def go_on(self, process: Any) -> None:
        """Let a process ask for its next thing."""
        step = next(process, None)
        if step is None:
            return
        if isinstance(step, list):
            self.side_by_side(step, process)
            return
        name, mean = step
        seconds = self.random.expovariate(1 / mean) if mean else 0.0
        if not name:
            self.later(self.now + seconds, process)
            return
        station = self.stations[name]
        if station.free:
            self.serve(station, seconds, process)
        else:
            station.queue.append((seconds, process))

    def side_by_side(self, parts: list[Iterator[Any]], process: Any) -> None:
        """Let parts go on beside each other, and the process when the last one has ended."""
        left = len(parts)

        def one(part: Iterator[Any]) -> Iterator[Any]:
            nonlocal left
            yield from part
            left -= 1
            if not left:
                self.later(self.now, process)

        if not parts:
            self.later(self.now, process)
        for part in parts:
            self.go_on(one(part))

    def serve(self, station: Station, seconds: float, process: Any) -> None:
        """Let a free server work for a process."""
        station.free -= 1
        station.worked.append((self.now, self.now + seconds))
        self.later(self.now + seconds, process, station)

    def leave(self, station: Station) -> None:
        """Free a server, and let it take who waits first."""
        station.free += 1
        if station.queue:
            self.serve(station, *station.queue.popleft())

    def later(self, at: float, process: Any, left: Station | None = None) -> None:
        """Let a process go on at a time, which frees a server if it had one."""
        heappush(self.events, (at, next(self.order), process, left))


def within(spell: tuple[float, float], window: tuple[float, float]) -> float:
    """Return how much of a spell lies in a window."""
    return max(0.0, min(spell[1], window[1]) - max(spell[0], window[0]))


app = typer.Typer(add_completion=False)


@app.command()
def main(
    *,
    rate: Annotated[float, typer.Option(help="Runs that arrive in a second.")] = 100.0,
    supersteps: Annotated[int, typer.Option(min=1, help="Supersteps of a run.")] = 10,
    tasks: Annotated[int, typer.Option(min=1, help="Tasks of a superstep.")] = 4,
    remote: Annotated[int, typer.Option(min=0, help="How many of them go to an executor.")] = 1,
    compute: Annotated[float, typer.Option(help="Seconds that a remote task computes.")] = 0.05,
    wait: Annotated[float, typer.Option(help="Seconds that a task at home waits for a network.")] = 0.5,
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
        from benchmarks.costs import measured  # noqa: PLC0415 - it needs what is measured

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
