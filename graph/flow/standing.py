"""Where the stored runs on a context stand: what is due, what is asked, and what has ended and is not applied yet."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - read by who asks for the hints of a NamedTuple
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pregel.checkpoint.base import CheckpointRow  # noqa: TC001 - as above
from pregel.checkpoint.record import Record, TaskRecord, unpack_task
from pregel.checkpoint.restore import read_record, unsealed
from pregel.graph.flow.storing import CODEC
from pregel.task import Writes
from pregel.types import Interrupt

if TYPE_CHECKING:
    from pregel.checkpoint.base import Checkpointer
    from pregel.codec import Codec
    from pregel.graph.flow.home import Home

__all__ = ["Standing", "Stored", "graphs_of", "pending_of", "read", "standing"]

#: How many threads are looked at at a time.
PAGE: Final = 64


class Standing(NamedTuple):
    """Where the stored run of a graph stands."""

    fingerprint: str
    step: int
    #: The nodes that are due and have not ended.
    due: tuple[str, ...]
    #: What is asked.
    questions: tuple[Interrupt, ...] = ()
    #: What tasks that have ended wrote, by node; it is applied when the superstep is over.
    written: Mapping[str, Any] = {}


class Stored(NamedTuple):
    """The newest checkpoint of a thread, and what of it is open."""

    row: CheckpointRow
    record: Record
    #: The ids of the tasks that are due, with the names of their nodes.
    tasks: Mapping[str, str]
    ended: Mapping[str, TaskRecord]


def read(saver: Checkpointer, thread_id: str, codec: Codec) -> Stored | None:
    """Return the newest checkpoint of a thread, or None where there is none.

    Raises:
        DecodeError: It is damaged.
    """
    row = saver.latest(thread_id)
    if row is None:
        return None
    origin = saver.origin(thread_id)
    record = read_record(row, origin, codec)
    tasks = {due.key or f"{row.step + 1}:{place}:{due.node}": due.node for place, due in enumerate(record.tasks)}
    rows = saver.tasks(thread_id, row.branch, (), row.step + 1)
    ended = {each.task: unpack_task(unsealed(each, origin), codec) for each in rows}
    return Stored(row, record, tasks, ended)


def graphs_of(home: Home) -> list[str]:
    """Return the names of the graphs that have a stored run on a context, sorted."""
    if home.saver is None:
        return []
    before = last = home.thread("")
    names: list[str] = []
    while page := home.saver.threads(limit=PAGE, after=last):
        mine = [info.thread_id for info in page if info.thread_id.startswith(before)]
        names += [name.removeprefix(before) for name in mine]
        if len(mine) < PAGE:
            break
        last = mine[-1]
    # A context may have an id that begins as this one's threads do; and "@" begins what is no graph.
    return [name for name in names if "/" not in name and not name.startswith("@")]


def pending_of(home: Home) -> tuple[Interrupt, ...]:
    """Return what the paused runs on a context ask, graph by graph."""
    if home.saver is None:
        return ()
    found = [read(home.saver, home.thread(name), CODEC) for name in graphs_of(home)]
    return tuple(asked for each in found if each is not None for asked in standing(each).questions)


def standing(found: Stored) -> Standing:
    """Return where a run stands, for people and for checks."""
    record = found.record
    due = [name for task, name in found.tasks.items() if not isinstance(outcome_of(found, task), Writes)]
    due += [*record.held.nodes, *(send.node for send in record.held.sends)]
    questions = [
        reason
        for task in found.tasks
        if isinstance(outcome := outcome_of(found, task), tuple) and not isinstance(outcome, Writes)
        for reason in outcome
        if isinstance(reason, Interrupt)
    ]
    written = {
        name: dict(outcome.updates)
        for task, name in found.tasks.items()
        if isinstance(outcome := outcome_of(found, task), Writes)
    }
    return Standing(record.fingerprint, found.row.step, tuple(dict.fromkeys(due)), tuple(questions), written)


def outcome_of(found: Stored, task: str) -> Any:
    """Return how a due task has ended, or None if it has not."""
    return found.ended[task].outcome if task in found.ended else None
