"""Worker processes that die alone."""

import os
import signal
from concurrent.futures import CancelledError, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from select import select
from threading import Event

import pytest

from pregel.executors.process import ProcessExecutor


@pytest.fixture(scope="module")
def executor():
    with ProcessExecutor(2) as made:
        yield made


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def test_calls_run_in_processes_of_their_own(executor):
    futures = [executor.submit(os.getpid) for _ in range(4)]
    pids = {future.result() for future in futures}
    assert os.getpid() not in pids
    assert len(pids) <= 2


def test_what_a_call_raises_comes_back_and_the_process_goes_on(executor):
    pid = executor.submit(os.getpid).result()
    with pytest.raises(ZeroDivisionError):
        executor.submit(divmod, 1, 0).result()
    assert executor.submit(os.getpid).result() == pid


def test_a_process_that_dies_fails_its_call_only(executor, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    waits = executor.submit(fifo.read_text)  # until somebody writes: it is under way while the other one dies
    others = [executor.submit(die), *(executor.submit(pow, 2, n) for n in range(3))]
    with pytest.raises(BrokenProcessPool):
        others[0].result()
    assert [future.result() for future in others[1:]] == [1, 2, 4]
    assert not waits.done()
    fifo.write_text("still here")
    assert waits.result() == "still here"


def test_a_process_that_died_idle_is_replaced_without_a_word(executor):
    pid = executor.submit(os.getpid).result()
    os.kill(pid, signal.SIGKILL)
    pool = next(each for each in reversed(executor._idle) if each is not None)
    manager = pool._executor_manager_thread
    manager.join()  # it has taken notice
    assert executor.submit(os.getpid).result() != pid


def test_what_waits_can_be_taken_back(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    executor = ProcessExecutor(1)
    first, second, third = executor.submit(fifo.read_text), executor.submit(int), executor.submit(str)
    assert second.cancel()
    executor.shutdown(wait=False, cancel_futures=True)
    assert third.cancelled()
    assert not wait([second, third]).not_done
    fifo.write_text("x")
    executor.shutdown()
    assert first.result() == "x"
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(int)


def stands(begun, hold):
    begun.write_text("here")
    return hold.read_text()


def test_a_call_that_never_ends_can_be_cancelled_and_another_process_takes_its_place(gate):
    with ProcessExecutor(1) as executor:
        pid = executor.submit(os.getpid).result()
        never = executor.submit(stands, *gate)
        waits = executor.submit(os.getpid)
        gate[0].read_text()
        assert never.cancel()
        assert never.cancel()  # it is already
        with pytest.raises(CancelledError):
            never.result()
        assert waits.result() != pid
        assert not waits.cancel()
        assert not waits.cancelled()


def test_to_cancel_a_call_leaves_others_alone(executor, gate, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    other = executor.submit(fifo.read_text)
    never = executor.submit(stands, *gate)
    gate[0].read_text()
    never.cancel()
    fifo.write_text("still here")
    assert other.result() == "still here"
    assert not wait([never]).not_done


def test_calls_that_are_cancelled_as_they_begin_or_end_cost_no_other_call():
    with ProcessExecutor(2) as executor:
        for _ in range(20):
            calls = [executor.submit(pow, 2, n) for n in range(4)]
            calls[0].result()
            calls[1].cancel()
            calls[2].cancel()
            assert calls[3].result() == 8


HELD = []


def holds(fifo, stays):
    """Keep a pipe open for as long as this process lives."""
    HELD.append(fifo.open("w"))
    HELD[-1].write("here\n")
    HELD[-1].flush()
    if stays:
        Event().wait()


def two_workers(fifos):
    """Be a process with two workers, of which one is at a call that never ends."""
    executor = ProcessExecutor(2)
    for fifo, stays in zip(fifos, (True, False), strict=True):
        executor.submit(holds, fifo, stays)
    Event().wait()


def test_processes_end_with_the_one_that_started_them_even_if_it_is_killed(tmp_path):
    fifos = tmp_path / "busy", tmp_path / "idle"
    for fifo in fifos:
        os.mkfifo(fifo)
    parent = get_context("spawn").Process(target=two_workers, args=(fifos,))
    parent.start()
    with fifos[0].open() as busy, fifos[1].open() as idle:
        assert [pipe.readline() for pipe in (busy, idle)] == ["here\n"] * 2
        parent.kill()
        parent.join()
        for pipe in (busy, idle):  # the end of its writer is the end of a pipe
            assert select([pipe], [], [], 60)[0]
            assert pipe.read() == ""


def test_an_executor_that_is_left_ends_its_processes():
    with ProcessExecutor(1) as executor:
        pid = executor.submit(os.getpid).result()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_call_that_cannot_be_sent_fails_and_nothing_else(executor):
    with pytest.raises(Exception, match="pickle"):
        executor.submit(lambda: 1).result()
    assert executor.submit(int, "3").result() == 3
