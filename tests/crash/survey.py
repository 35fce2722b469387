"""What a store holds of the thread, read row by row: for a look between a kill and the restart, and for the end."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from pregel.checkpoint.record import unpack_task
from pregel.checkpoint.restore import read_record, read_values, unsealed
from pregel.task import Writes
from tests.crash.shapes import CONFIG, SILENT, THREAD


@dataclass
class Survey:
    """What is stored."""

    #: By namespace and step: the bytes of the checkpoint, and the values at it. No times, no numbers of commits.
    checkpoints: dict = field(default_factory=dict)
    #: The tasks that ended well and whose end is stored, as the ledger names them.
    committed: set = field(default_factory=set)
    #: The rows of open tasks, by namespace, step and task.
    open_tasks: dict = field(default_factory=dict)

    def is_prefix_of(self, other):
        """Say whether another survey begins like this one, in each namespace."""
        for (namespace, step), found in self.checkpoints.items():
            assert other.checkpoints[namespace, step] == found, f"{namespace} step {step} is another one"
        for namespace in {namespace for namespace, _ in self.checkpoints}:
            mine, its = (sorted(step for name, step in each.checkpoints if name == namespace) for each in (self, other))
            assert mine == its[: len(mine)], f"{namespace} has the steps {mine}, which do not begin {its}"


def survey(saver, codec):
    """Read everything that is stored of the thread."""
    found = Survey()
    assert saver.branches(THREAD) == []
    origin = saver.origin(THREAD)
    for namespace in saver.namespaces(THREAD, 0, ()):
        rows = saver.checkpoints(THREAD, namespace)
        head = saver.head(THREAD, 0, namespace)
        assert head == (rows[0].step if rows else None), f"{namespace}: the head is no checkpoint"
        path = "|".join((THREAD, *namespace))  # of a task, as `Runtime.task_id` has it; no graph here remembers
        due = {}
        for row in rows:
            record = read_record(row, origin, codec)
            values = read_values(saver, THREAD, ((0, row.seq),), namespace, codec)[0]
            found.checkpoints[namespace, row.step] = (row.blob, values)
            due[row.step] = [
                task.key or f"{row.step + 1}:{place}:{task.node}"
                for place, task in enumerate(record.tasks)
                if task.node != SILENT
            ]
        for step, tasks in due.items():
            if step + 1 in due:
                found.committed |= {f"{path}|{task}" for task in tasks}
        for row in [] if head is None else saver.tasks(THREAD, 0, namespace, head + 1):
            record = unpack_task(unsealed(row, origin), codec)
            found.open_tasks[namespace, row.step, row.task] = record
            if isinstance(record.outcome, Writes):
                found.committed.add(f"{path}|{row.task}")
    return found


def history(graph):
    """Return the history as its reader sees it, apart from times."""
    return [shown._replace(created_at=None) for shown in graph.get_state_history(CONFIG)]


def read_ledger(path):
    """Return how often each task has ended."""
    path = Path(path)
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return Counter(lines)
