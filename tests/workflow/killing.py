"""Kills runs of a session at every place where something is stored, and lets another process go on.

Run as a program, in a folder of its own; forks a process for each place. Prints a line of JSON for each: where it was
killed, what the nodes have done, and what is stored in the end.
"""

import json
import operator
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, TypedDict

from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import InvalidInputError
from pregel.graph.workflow import JoinNode, Runner, Scope, Sessions, Workflow
from pregel.graph.workflow.folding import fold_events
from pregel.store.base import PutOp
from pregel.store.sqlite import SqliteStore
from pregel.testing import crash_at, points_passed


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    visits: Annotated[int, operator.add, Scope("user")]
    last: Annotated[str, Scope("app")]


class KillingStore(SqliteStore):
    """Ends the process before or after a batch that puts something."""

    killed_at = None
    puts = 0

    def batch(self, ops):
        ops = list(ops)
        putting = any(isinstance(op, PutOp) for op in ops)
        if putting:
            self.puts += 1
            if self.killed_at == ("put.before", self.puts):
                os.kill(os.getpid(), signal.SIGKILL)
        result = super().batch(ops)
        if putting and self.killed_at == ("put.after", self.puts):
            os.kill(os.getpid(), signal.SIGKILL)
        return result


def opened(folder):
    """Return the sessions in a folder, and a runner that writes down what its nodes do."""

    def done(name):
        with (folder / "ledger").open("a") as ledger:
            ledger.write(f"{name}\n")

    def silent():
        done("silent")

    def left(ctx):
        done("left")
        ctx.state["log"] = ["left"]
        ctx.state["visits"] = 1

    def right(ctx):
        done("right")
        ctx.state["visits"] = 10

    def after(ctx):
        done("after")
        ctx.state["last"] = "after"
        ctx.state["log"] = ["after"]

    def quiet():
        done("quiet")

    edges = [("START", silent, (left, right), JoinNode("join"), after, quiet)]
    workflow = Workflow(name="wf", edges=edges, state_schema=State)
    store = KillingStore(folder / "store.db")
    sessions = Sessions(SqliteSaver(folder / "runs.db"), store)
    return sessions, Runner(workflow, sessions=sessions), store


def forked(job):
    """Do a job in a process of its own; return how that ends."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            job()
            status = 0
        finally:
            sys.stderr.flush()
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def killed(folder, place):
    """Run the workflow, to be killed."""
    _, runner, store = opened(folder)
    if place[0].startswith("put."):
        store.killed_at = place
    else:
        crash_at(*place)
    list(runner.run("go", session_id="s"))


def resumed(folder):
    """Go on with what the killed process has left, to the end, and print what there is."""
    sessions, runner, _ = opened(folder)
    thread = sessions.thread("app", "user", "s")
    ledger = folder / "ledger"
    done = Counter(ledger.read_text().split() if ledger.exists() else ())
    head = thread.head()
    started = head is not None
    told = {event.path.split("/")[-1].partition("@")[0] for event in head.events} if started else set()
    try:
        list(runner.run(None if started else "go", session_id="s"))
    except InvalidInputError:
        assert started  # it had come to its end: what was not published is now
    head = thread.head()
    found = {
        "state": dict(head.state),
        "folded": fold_events(head.events, State),
        "shared": {key: held.value for key, held in thread.shared.read().items()},
        "ledger": Counter(ledger.read_text().split()),
        "committed": sorted(told & done.keys()),
        "done": done,
    }
    (folder / "told.json").write_text(json.dumps(found))


def main(folder):
    """Kill a run at each place."""
    counting = folder / "counting"
    counting.mkdir()
    with points_passed() as passed:
        _, runner, store = opened(counting)
        list(runner.run("go", session_id="s"))
    places = [(point, number) for point, times in sorted(passed.items()) for number in range(1, times + 1)]
    places += [(point, number) for point in ("put.before", "put.after") for number in range(1, store.puts + 1)]
    store.close()
    for point, number in places:
        here = folder / f"{point}{number}"
        here.mkdir()
        ended = forked(lambda here=here, place=(point, number): killed(here, place))
        went_on = forked(lambda here=here: resumed(here))
        told = json.loads((here / "told.json").read_text()) if went_on == 0 else None
        sys.stdout.write(json.dumps({"point": point, "number": number, "ended": ended, "told": told}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
