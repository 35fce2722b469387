"""The clock of runs, and the one that a test moves."""

import sys
import threading

import anyio
import pytest

from pregel.clock import Alarms, SystemClock, clock
from pregel.testing import fake_clock


def test_the_clock_of_the_machine_does_not_go_back_and_knows_the_date():
    machine = SystemClock()

    assert machine.now() <= machine.now()
    assert machine.time() > 1_700_000_000


@pytest.mark.parametrize("seconds", [3_600, sys.float_info.max])  # the latter is longer than threads can wait
def test_a_wait_ends_when_somebody_ends_it(seconds):
    woken = threading.Event()
    woken.set()

    SystemClock().sleep(seconds, woken)


def test_a_wait_on_a_loop_ends(loop):
    async def main():
        await SystemClock().asleep(0)
        return "ended"

    assert loop.run(main) == "ended"


def test_alarms_ring_in_the_order_of_their_times_and_not_when_taken_back():
    machine, rung, busy, done = SystemClock(), [], threading.Event(), threading.Event()
    now = machine.now()
    machine.call_at(now - 9, busy.wait)  # what follows is set while the thread of the alarms has something to do
    undo = machine.call_at(now - 4, lambda: rung.append("taken back"))
    machine.call_at(now + 0.001, done.set)
    machine.call_at(now - 1, lambda: rung.append("second"))
    machine.call_at(now - 2, lambda: rung.append("first"))
    undo()
    undo()
    busy.set()
    done.wait()

    assert rung == ["first", "second"]


def test_alarms_that_were_taken_back_do_not_pile_up():
    alarms = Alarms()
    keeps = threading.Event()
    alarms.add(SystemClock().now() + 3_600, keeps.set)
    for number in range(10_000):
        alarms.add(SystemClock().now() + 7_200 + number, keeps.set)()

    assert len(alarms.heap) < 200
    assert any(calls for _, _, calls in alarms.heap)


def test_a_fake_clock_stands_still_until_it_is_moved():
    before = clock()
    with fake_clock() as made:
        rung = []
        made.call_at(2, lambda: rung.append(made.now()))
        made.call_at(1, lambda: rung.append(made.now()))
        made.call_at(3, lambda: rung.append("too early"))
        made.call_at(1.5, lambda: rung.append("taken back"))()

        assert (clock(), made.now(), made.time()) == (made, 0, 0)
        made.advance(2.5)
        assert (rung, made.now()) == ([1, 2], 2.5)
    assert clock() is before


def test_a_fake_clock_jumps_to_the_end_of_waits(loop):
    with fake_clock() as made:
        made.sleep(5, threading.Event())
        ended = threading.Event()
        ended.set()
        made.sleep(100, ended)

        async def main():
            await made.asleep(7)
            with anyio.CancelScope() as scope:
                scope.cancel()
                await made.asleep(100)

        loop.run(main)
        assert (made.now(), made.slept) == (12, [5, 7])


def test_an_alarm_that_is_late_rings_at_once():
    with fake_clock() as made:
        made.advance(5)
        rung = []
        made.call_at(3, lambda: rung.append(made.now()))

        assert rung == [5]


def test_the_clock_is_put_back_when_a_test_fails():
    before = clock()
    with pytest.raises(ValueError, match="x"), fake_clock():
        raise ValueError("x")

    assert clock() is before
