"""The capacity model: what the law predicts is what the simulation measures."""

import tempfile
from dataclasses import replace
from statistics import fmean

import pytest

from benchmarks import costs
from benchmarks.queueing import PLANNED, STATIONS, Costs, Load, demands, needed, shortest, utilisation
from benchmarks.simulation import Simulation

COSTS = Costs(superstep=1e-3, task=1e-3, store=2e-3, commit=3e-3, send=1e-3, schedule=2e-3, receive=1e-3)
LOAD = Load(rate=20, supersteps=3, tasks=3, remote=2, compute=0.01, wait=0.02)
ONE = dict.fromkeys(STATIONS, 1)


def test_a_run_asks_for_the_sum_of_what_its_supersteps_cost():
    assert demands(COSTS, LOAD) == pytest.approx(
        {"runners": 3 * 8e-3, "database": 3 * 3e-3, "scheduler": 3 * 4e-3, "computers": 3 * 22e-3}
    )


@pytest.mark.parametrize("rate", [1, 20, 300, 5_000])
def test_what_is_needed_is_busy_as_planned_and_one_less_is_not(rate):
    load = replace(LOAD, rate=rate)
    servers = needed(COSTS, load)
    for station, busy in utilisation(COSTS, load, servers).items():
        assert busy <= PLANNED + 1e-9
        fewer = servers[station] - 1
        assert not fewer or utilisation(COSTS, load, {**servers, station: fewer})[station] > PLANNED


def test_the_simulation_is_as_busy_as_the_law_says():
    servers = needed(COSTS, LOAD)
    law, measured = utilisation(COSTS, LOAD, servers), Simulation(COSTS, LOAD, servers, 0).run(8_000).busy
    assert measured == pytest.approx(law, rel=0.05)


def test_the_same_seed_gives_the_same_simulation():
    first, again, other = (Simulation(COSTS, LOAD, ONE, seed).run(300) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_station_that_cannot_follow_bounds_what_is_done():
    load = replace(LOAD, rate=40)  # of 0.066 s each at the computers: 15 a second
    assert utilisation(COSTS, load, ONE)["computers"] == pytest.approx(2.64)
    outcome = Simulation(COSTS, load, ONE, 0).run(3_000)
    assert outcome.busy["computers"] == pytest.approx(1, abs=0.01)
    assert outcome.runs / outcome.seconds == pytest.approx(1 / 0.066, rel=0.05)


def test_one_queue_waits_as_long_as_queueing_theory_says():
    only_commits = Costs(superstep=0, task=0, store=0, commit=0.01, send=0, schedule=0, receive=0)
    load = Load(rate=60, supersteps=1, tasks=1, remote=0, compute=0, wait=0)
    outcome = Simulation(only_commits, load, ONE, 3).run(60_000)
    assert fmean(outcome.latencies) == pytest.approx(1 / (100 - 60), rel=0.05)  # M/M/1: 1 / (mu - lambda)


def test_a_run_alone_takes_what_its_parts_take():
    assert shortest(COSTS, LOAD) == pytest.approx(3 * (8e-3 + max(4e-3 + 11e-3, 0.02) + 3e-3))
    assert shortest(COSTS, replace(LOAD, remote=0)) == pytest.approx(3 * (6e-3 + 0.02 + 3e-3))
    outcome = Simulation(COSTS, replace(LOAD, rate=0.001), ONE, 0).run(200)
    assert outcome.latency(50) == pytest.approx(shortest(COSTS, LOAD), rel=0.5)  # work varies


def test_a_measurement_leaves_nothing_behind(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with costs.saver_of("") as saver:
        saver.delete_thread("none")
        assert list(tmp_path.rglob("runs.db"))
    assert not list(tmp_path.iterdir())
