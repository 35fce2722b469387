"""What a load asks of the servers that it needs: the capacity model, by the utilisation law of queueing networks.

A station that a run asks for `d` seconds of work is busy `rate * d / servers` of the time, whatever else happens. That
says what a load needs at least, and nothing of how long a run waits: `benchmarks.simulation` does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

#: How busy a station is planned to be: beyond it, waiting grows fast.
PLANNED = 0.7
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


def at_home(costs: Costs, load: Load) -> float:
    """Return how many seconds of work a superstep asks of the process that runs the graph."""
    return costs.superstep + load.tasks * costs.task + load.remote * costs.send + costs.store


def demands(costs: Costs, load: Load) -> dict[str, float]:
    """Return how many seconds of work a run asks of each station."""
    each = {
        "runners": at_home(costs, load),
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
    waits = load.wait if load.tasks > load.remote else 0.0
    return load.supersteps * (at_home(costs, load) + max(away, waits) + costs.commit)
