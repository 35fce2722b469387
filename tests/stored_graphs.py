"""Random graphs that are stored, and a checkpointer that notes what is written and that a run can die on."""

from copy import copy
from dataclasses import fields, is_dataclass, replace

from pregel.checkpoint.base import DropTasks, Held, OpenBranch, PutCheckpoint, PutTask, PutValue
from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import GraphRecursionError
from tests.random_graphs import FieldPlan, built, kind_of, plans

THREAD = "t"
#: What stands in for a field whose value ends with the process: a run that goes on later has to see the same.
TRACKED = {"untracked": "last", "untracked-free": "any"}


def stored_plans():
    """Draw a graph all of whose fields are stored."""
    return plans().map(tracked)


def tracked(part):
    """Return a plan, or a part of one, with other kinds of fields."""
    if isinstance(part, FieldPlan):
        return replace(part, kind=TRACKED.get(part.kind, part.kind))
    if isinstance(part, tuple | list):
        return type(part)(map(tracked, part))
    if is_dataclass(part):
        return replace(part, **{each.name: tracked(getattr(part, each.name)) for each in fields(part)})
    return part


class NotingSaver(InMemorySaver):
    """Notes its transactions, and who holds a thread."""

    def __init__(self):
        super().__init__()
        self.transactions = []
        self.tokens = []

    def claim(self, thread_id, lease, seconds, dead):
        found = super().claim(thread_id, lease, seconds, dead)
        if isinstance(found, Held):
            self.tokens.append((thread_id, lease.token))
        return found

    def bury(self):
        """Let go of what runs held that died, as when their process is dead."""
        for thread_id, token in self.tokens:
            self.release(thread_id, token)
        self.tokens.clear()

    def write(self, thread_id, token, writes):
        super().write(thread_id, token, writes)
        self.transactions.append([timeless(write) for write in writes])

    def rows(self):
        """Return all rows that are there, by their keys."""
        rows = {}
        for write in (each for transaction in self.transactions for each in transaction):
            if isinstance(write, PutCheckpoint | PutTask):
                row = write.row
                rows[(*row[:3], getattr(row, "task", None))] = row
            elif isinstance(write, PutValue):
                row = write.row
                rows[(*row[:2], row.step, row.field, row.seq)] = row
            elif isinstance(write, OpenBranch):
                rows[write.row.branch] = write.row
            elif isinstance(write, DropTasks):
                place = write.branch, write.namespace, write.step
                rows = {key: row for key, row in rows.items() if type(row).__name__ != "TaskRow" or key[:3] != place}
        return rows


def timeless(write):
    """Return a write without the time at which it was made."""
    return PutCheckpoint(write.row._replace(created=0.0)) if isinstance(write, PutCheckpoint) else write


def compiled(plan, saver, log=None, *, durability="sync", **options):
    """Return a plan's graph, stored, as a new process has it."""
    return stored(built(plan, [] if log is None else log, **options), saver, durability)


def stored(graph, saver, durability="sync"):
    """Return the same graph, stored elsewhere: compiling costs more than most runs."""
    graph = copy(graph)
    graph._persistence = replace(graph._persistence, checkpointer=saver, durability=durability)
    return graph


def shown_state(graph, thread=THREAD):
    """Return what is stored of a thread as its user sees it, without times; a text tells -0.0, and order, apart."""
    state = graph.get_state(on_thread(thread=thread))
    return repr((state.values, state.next, [(task.id, task.error) for task in state.tasks], state.interrupts))


def on_thread(limit=None, thread=THREAD):
    """Return the config of a run."""
    return {"configurable": {"thread_id": thread}} | ({} if limit is None else {"recursion_limit": limit})


def ended(run):
    """Return how a run ended: its result, or the kind of its error."""
    try:
        return run()
    except GraphRecursionError:
        return "recursion"
    except Exception as error:
        return kind_of(error)
