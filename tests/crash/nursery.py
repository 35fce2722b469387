"""Processes that start in a few milliseconds: a process that has imported everything and forks one for each job.

`Nursery` stands in the tests, `serve` in the process that forks. They speak in lines of JSON. That process has one
thread and no database open, so a fork of it inherits nothing that is in use.
"""

import contextlib
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import traceback
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Nursery:
    """Starts processes.

    Args:
        folder: Where what they print is kept until they have ended.
    """

    def __init__(self, folder):
        self.folder = folder
        self.server = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.crash.nursery"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):  # it has ended by itself, and whoever asked it was told
            self.server.stdin.close()
        self.server.wait()
        self.server.stdout.close()

    def ask(self, **order):
        """Give an order and return the answer."""
        self.server.stdin.write(json.dumps(order) + "\n")
        self.server.stdin.flush()
        answer = self.server.stdout.readline()
        assert answer, f"the process that forks has ended: {self.server.wait()}"
        return json.loads(answer)

    def start(self, task, **job):
        """Start a process; return its number."""
        return self.ask(start=task, job=job, printed=str(self.folder))

    def wait(self, pid, seconds=120.0):
        """Wait for its end; return how it ended as `subprocess` says it (-9 for SIGKILL), None if it goes on."""
        return self.ask(wait=pid, seconds=seconds)

    def kill(self, pid):
        """Kill a process that was not waited for to its end."""
        os.kill(pid, signal.SIGKILL)

    def printed(self, pid):
        """Return what an ended process printed."""
        return (self.folder / f"{pid}.txt").read_text(encoding="utf-8", errors="replace")

    def run(self, task, **job):
        """Let a process run to its end, which must be a good one."""
        pid = self.start(task, **job)
        status = self.wait(pid)
        assert status == 0, f"{task} {job} ended with {status}:\n{self.printed(pid)}"


def serve():
    """Fork one process a job, and say how they end."""
    from tests.crash.worker import JOBS

    preload()
    ends = {}
    for line in sys.stdin:
        order = json.loads(line)
        if "start" in order:
            ended, lives = os.pipe()
            pid = os.fork()
            if not pid:
                os.close(ended)
                perform(JOBS[order["start"]], order)
            os.close(lives)  # the child alone has it now: its end is the end of the pipe
            ends[pid] = ended
            answer = pid
        else:
            pid = order["wait"]
            answer = None
            if select.select([ends[pid]], [], [], order["seconds"])[0]:
                os.close(ends.pop(pid))
                answer = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    for pid in ends:  # those that nobody waited for to their end: a test has failed
        os.kill(pid, signal.SIGKILL)


def preload():
    """Import what a run imports on its way, so that no job has to: a first one tells."""
    from tests.crash.worker import modules_of_a_run

    told, tells = os.pipe()
    if not os.fork():
        try:
            os.close(told)
            with os.fdopen(tells, "w", encoding="utf-8") as pipe:
                json.dump(modules_of_a_run(), pipe)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(tells)
    with os.fdopen(told, encoding="utf-8") as pipe:
        names = json.load(pipe)
    os.wait()
    for name in names:
        with contextlib.suppress(ImportError):  # a module that another one makes, and that is no file
            importlib.import_module(name)


def perform(task, order):
    """Do a job, in the process that was forked for it, and end."""
    status = 1
    try:
        printed = os.open(Path(order["printed"]) / f"{os.getpid()}.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        task(order["job"])
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    serve()
