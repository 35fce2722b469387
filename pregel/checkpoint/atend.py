"""What a run that writes at its end keeps of one graph until then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pregel.channels.base import MISSING
from pregel.checkpoint.base import PutTask
from pregel.checkpoint.fields import given_by
from pregel.commands import CommitTask, DropTasks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pregel.checkpoint.base import Namespace, TaskRow, Write
    from pregel.checkpoint.claim import Claim
    from pregel.checkpoint.recorder import Recorder
    from pregel.checkpoint.restore import Sizes
    from pregel.commands import Command, CommitBarrier
    from pregel.superstep import Superstep

__all__ = ["AtEnd"]


class AtEnd:
    """The half of a `Recorder` for a run that writes at its end."""

    claim: Claim
    namespace: Namespace
    around: Recorder | None
    owner: str | None
    live: Callable[[], Mapping[str, Any]]
    head: int | None
    origin: int
    sizes: dict[str, Sizes]
    rows: dict[str, bytes]
    writes: Callable[..., list[Write]]
    task_row: Callable[[int, str, bytes], TaskRow]

    def __init__(self) -> None:
        #: The last barrier, and the values that the changed fields have in the store and have come to.
        self.latest: CommitBarrier | None = None
        self.stored_values: dict[str, Any] = {}
        self.final_values: dict[str, Any] = {}
        self.overwritten: set[str] = set()
        #: The objects that updates have held which are parts of what is stored, by field and id.
        self.given: dict[str, dict[int, Any]] = {}
        #: What the tasks of the open superstep have come to.
        self.open_tasks: dict[str, CommitTask] = {}
        #: Whether what was due in the store has been left behind, before the first barrier.
        self.dropped = False
        #: The superstep of the graph around that was the last one to be over when this one committed something.
        self.written_at: int | None = None
        #: The tasks that have got answers since their rows were stored.
        self.answered: set[str] = set()

    @property
    def step(self) -> int | None:
        """The superstep that was committed last, stored or not yet."""
        return self.head if self.latest is None else self.latest.step

    def keep(self, command: CommitBarrier | CommitTask | DropTasks) -> None:
        """Take what a run commits that writes at its end: only what it leaves behind is kept."""
        self.claim.pending[self] = None  # type: ignore[index]  # the half of a `Recorder`
        self.written_at = None if self.around is None else self.around.step
        if isinstance(command, CommitTask):
            self.open_tasks[command.task.id] = command
            return
        self.open_tasks.clear()
        if isinstance(command, DropTasks):
            self.dropped = self.latest is None
            return
        earlier = self.latest
        if earlier is not None:
            journal = command.journal if command.source == "input" else (*earlier.journal, *command.journal)
            command = command._replace(journal=journal, dropped=command.dropped or earlier.dropped)
        if command.source == "input":
            self.origin = command.step
        else:
            self.claim.forget_calls(self.namespace)
        for name, value in command.changed.items():
            self.stored_values.setdefault(name, command.before.get(name, MISSING))
            self.final_values[name] = value
        self.overwritten |= command.overwritten
        for name, parts in given_by(command).items():
            copy = self.sizes[name].copy if name in self.sizes else None
            if copy is not None:
                stored = set(map(id, copy.values() if type(copy) is dict else copy))
                ours = {number: part for number, part in parts.items() if number in stored}
                self.given.setdefault(name, {}).update(ours)
        self.latest = command

    def remaining(self) -> list[Write]:
        """Return what a run that writes at its end has to write."""
        writes: list[Write] = []
        if self.latest is not None:
            command = self.latest._replace(
                changed=self.final_values, before=self.stored_values, overwritten=frozenset(self.overwritten)
            )
            writes += self.writes(command, self.given)
        elif self.dropped:
            writes += self.writes(DropTasks((self.head or 0) + 1))
        for name in sorted(self.answered & self.rows.keys() - self.open_tasks.keys()):
            writes.append(PutTask(self.task_row((self.head or 0) + 1, name, self.rows[name]), replaces=True))
        for task in list(self.open_tasks.values()):
            writes += self.writes(task._replace(replaces=task.task.id in self.rows))
        return writes

    def go_on(
        self, machine: Superstep, updates: Sequence[tuple[str, Any]], around: Recorder, owner: str
    ) -> tuple[Command, ...]:
        """Begin the next run of a graph with a history of its own, where the last one will be stored at the end.

        Args:
            machine: The next run.
            updates: Its input.
            around: The recorder of the graph whose node this one is.
            owner: The task that runs it now.
        """
        latest: CommitBarrier = self.latest  # type: ignore[assignment]  # else the store tells where it stands
        machine.load(dict(self.live()), latest.step)
        standing = latest.standing
        machine.dropped = tuple(dict.fromkeys((*(task.node.name for task in standing.tasks), *standing.held.names())))
        self.around, self.owner, self.live = around, owner, lambda: machine.values
        return machine.start(updates)

    @property
    def ended(self) -> bool:
        """Whether a run that writes at its end has come to an end here."""
        return self.latest is not None and self.latest.ends

    def again(self, machine: Superstep, around: Recorder) -> tuple[Command, ...]:
        """Come to the same end once more.

        Args:
            machine: Where that is found.
            around: The recorder of the graph whose task makes the call.
        """
        latest: CommitBarrier = self.latest  # type: ignore[assignment]  # it has ended
        values = dict(self.live())
        self.around, self.live = around, lambda: values
        machine.inside = True
        machine.load(values, latest.step, latest.standing)
        return machine.resume({})

    def discard(self) -> None:
        """Forget what a run that writes at its end would write: what it came to is in the hands of the graph around."""
        self.claim.pending.pop(self, None)  # type: ignore[call-overload]  # see `keep`
