"""How long runs wait at the servers of a load: a simulation of the stations of `benchmarks.queueing`.

Runs arrive at random and queue. What the law predicts must be what the simulation measures, or one of them is wrong.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from statistics import quantiles
from typing import Any

from benchmarks.queueing import STATIONS, Costs, Load, Servers, at_home, shortest


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
        for _ in range(load.supersteps):
            yield "runners", at_home(costs, load)
            waits = [self.pause()] if load.tasks > load.remote else []
            yield [*(self.away() for _ in range(load.remote)), *waits]
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
