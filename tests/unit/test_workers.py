"""The worker threads of the process."""

import os
import subprocess
import sys
import threading
from queue import SimpleQueue

import pytest

from pregel.drivers import workers
from pregel.drivers.crew import Crew
from pregel.errors import InvalidConfigError


def test_a_job_runs_in_a_daemon_thread_that_knows_what_it_is():
    seen = SimpleQueue()
    workers.submit(lambda: seen.put((threading.current_thread(), workers.in_worker())))
    thread, inside = seen.get(timeout=10)
    assert thread.daemon
    assert thread.name.startswith("pregel-worker-")
    assert inside
    assert not workers.in_worker()


LIMITED = """
import threading
from pregel.drivers.workers import Workers

pool = Workers()
pool.limit = 3
gate, done = threading.Event(), threading.Semaphore(0)

def job():
    gate.wait()
    done.release()

for _ in range(10):
    pool.submit(job)
print(sum(thread.name.startswith("pregel-worker") for thread in threading.enumerate()))
gate.set()
for _ in range(10):
    assert done.acquire(timeout=10)
print("all done")
"""


def test_there_are_never_more_threads_than_the_limit_and_every_job_runs():
    shown = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, check=True, timeout=60)
    assert shown.stdout == "3\nall done\n"


def test_idle_threads_are_used_again():
    pool = workers.Workers()
    for _ in range(20):
        done = threading.Event()
        pool.submit(done.set)
        assert done.wait(10)
    assert 1 <= pool._threads <= 2  # a thread may be asked before it says that it is idle


def test_the_limit_can_be_set_and_must_be_a_number_of_threads():
    before = workers.thread_limit()
    assert before == workers.DEFAULT_THREAD_LIMIT == 128
    for wrong in (0, 1.5, True, "3"):
        with pytest.raises(InvalidConfigError, match=f"a whole number of at least 1, not {wrong!r}"):
            workers.set_thread_limit(wrong)
    workers.set_thread_limit(5)
    try:
        assert workers.thread_limit() == 5
    finally:
        workers.set_thread_limit(before)


FORKED = """
import os, threading
from pregel.drivers import workers

first = threading.Event()
workers.submit(first.set)
assert first.wait(10)
child = os.fork()
if not child:
    done = threading.Event()
    workers.submit(done.set)
    os._exit(0 if done.wait(10) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_starts_threads_of_its_own():
    shown = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], capture_output=True, text=True, check=True)
    assert shown.stdout == "0\n"


def test_a_node_that_hangs_does_not_keep_the_process_alive():
    script = (
        "import threading\nfrom pregel.drivers import workers\n"
        "begun = threading.Event()\n"
        "workers.submit(lambda: (begun.set(), threading.Event().wait()))\nassert begun.wait(10)\nprint('over')\n"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=30)
    assert shown.stdout == "over\n"


class InterruptedCrew(Crew):
    """A crew whose thread gets Ctrl-C just after it has taken what a worker said, and before it has counted it."""

    def taken(self, patience=None):
        super().taken(patience)
        raise KeyboardInterrupt


def test_an_exit_between_taking_an_event_and_counting_it_does_not_keep_a_crew_waiting():
    crew = InterruptedCrew(range(8), str, SimpleQueue())
    crew.start()
    with pytest.raises(KeyboardInterrupt):
        next(crew.items())
    closing = threading.Thread(target=crew.close, daemon=True)
    closing.start()
    closing.join(timeout=30)
    assert not closing.is_alive()
