"""How a run begins on what is stored: where it goes on from, with which answers, and what its machine does first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pregel.channels.base import MISSING
from pregel.checkpoint.base import PutTask
from pregel.checkpoint.claim import lineage_of
from pregel.checkpoint.record import Record, TaskRecord, forked, pack_task, unpack_task
from pregel.checkpoint.restore import read_journal, read_record, read_values, unsealed, unsealed_record
from pregel.checkpoint.revive import migration_for, revived_standing, revived_task, revived_values
from pregel.codec import seal
from pregel.commands import CommitBarrier, Finish, TaskDone
from pregel.errors import CheckpointNotFoundError, InvalidResumeError
from pregel.node import EDITOR
from pregel.task import Task, Writes
from pregel.types import Breakpoint, Command, Interrupt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pregel.checkpoint.base import Checkpointer, CheckpointRow, Write
    from pregel.checkpoint.claim import Claim
    from pregel.checkpoint.recorder import Recorder
    from pregel.commands import Command as MachineCommand
    from pregel.commands import Outcome, Standing
    from pregel.network import Network
    from pregel.persistence import Address, Persistence
    from pregel.superstep import Superstep

__all__ = ["Opening", "row_at"]

#: What the ids of interrupts look like: the path to a task, and a number.
INTERRUPT_ID: Final = re.compile(r".*\d+:\d+:.+#\d+", re.DOTALL)


def row_at(saver: Checkpointer, address: Address) -> CheckpointRow | None:
    """Return the checkpoint that an address names, or None where it names none and there is none.

    Without a step it is the newest one of the outermost graph; one of a graph inside is always named by its step.

    Raises:
        CheckpointNotFoundError: There is no such checkpoint.
    """
    thread_id, namespace = address.thread_id, address.namespace
    if address.checkpoint is None:
        return saver.latest(thread_id)
    branch, step = address.checkpoint
    row = saver.checkpoint(thread_id, branch, namespace, step)
    if row is None:
        inner = f" of the graph {'/'.join(namespace)!r}" if namespace else ""
        raise CheckpointNotFoundError(
            f"thread {thread_id!r} has no checkpoint '{branch}.{step}'{inner}: it was never written, or it was pruned. "
            "get_state_history lists those that are there"
        )
    return row


#: What is stored of a thread that is not there.
NOTHING: Final = Record()


class Opening:
    """Puts a machine where a stored run of its graph stands.

    Args:
        network: The graph.
        persistence: What it is stored with.
        claim: The run's hold on its thread.
        recorder: Stores what the machine commits.
        machine: The machine, which has not begun.
    """

    def __init__(
        self, network: Network, persistence: Persistence, claim: Claim, recorder: Recorder, machine: Superstep
    ) -> None:
        self.network = network
        self.persistence = persistence
        self.claim = claim
        self.saver = claim.saver
        self.recorder = recorder
        self.machine = machine
        #: What tasks have been answered, by `Interrupt.id`.
        self.answers: dict[str, Any] = {}
        self.record = NOTHING
        self.step = 0
        self.standing: Standing | None = None
        self.tasks: dict[str, TaskRecord] = {}
        #: The tasks that this run has brought an answer.
        self.answered: set[str] = set()

    # -- the outermost graph -----------------------------------------------------------------------------------------

    def find(self, address: Address) -> bool:
        """Load what an address names, on a new branch if that has been gone on from; return whether there is anything.

        Raises:
            CheckpointNotFoundError: There is no such checkpoint.
            DecodeError: What is stored is damaged.
            GraphChangedError: It belongs to another version of the graph.
        """
        row = None if self.claim.is_new and address.checkpoint is None else row_at(self.saver, address)
        if row is None:
            return False
        thread_id = address.thread_id
        branches = self.saver.branches(thread_id)
        if self.saver.head(thread_id, row.branch, ()) == row.step:
            self.claim.take_branch(row.branch, branches)
        else:
            lineage = lineage_of(row.branch, row.seq, branches)
            self.load(row, lineage)  # what can't be read is not forked
            number = max((each.branch for each in branches), default=0) + 1
            origin = self.claim.origin
            payload = forked(unsealed_record(row, origin), row.branch, row.step)
            row = self.claim.fork(row, branches, seal(payload, origin, number, (), row.step))
        self.load(row, self.claim.lineage)
        if self.recorder.head is None:  # of a branch that the first commit opens
            self.recorder.head = row.step
        return True

    def load(self, row: CheckpointRow, lineage: Sequence[tuple[int, int]]) -> None:
        """Read a checkpoint, and how tasks of the superstep after it ended."""
        recorder, claim = self.recorder, self.claim
        self.record = read_record(row, claim.origin, recorder.codec)
        values, kinds, sizes = read_values(self.saver, claim.thread_id, lineage, row.namespace, recorder.codec)
        migration = migration_for(self.record, self.recorder.fingerprint, self.persistence.migrations)
        self.values = revived_values(values, kinds, self.network, migration, self.record)
        # What a migration has converted is stored whole by the commit that writes it next, whatever wrote it before.
        recorder.sizes = {} if migration is not None and migration.state is not None else sizes
        recorder.converted = migration is not None and migration.state is not None
        recorder.left_out = [name for name in kinds if name not in self.values]
        self.step = row.step
        self.row = row
        self.standing = revived_standing(self.record, self.network, row.step + 1, migration)
        recorder.head = self.saver.head(claim.thread_id, claim.branch, row.namespace)
        recorder.parent = (row.branch, row.step)
        recorder.origin = self.record.origin
        rows = self.saver.tasks(claim.thread_id, claim.branch, row.namespace, row.step + 1)
        recorder.rows = {each.task: unsealed(each, claim.origin) for each in rows}
        self.tasks = {
            name: revived_task(unpack_task(payload, recorder.codec), self.network, migration, self.record)
            for name, payload in recorder.rows.items()
        }
        if migration is not None:  # a row that stays beside a checkpoint of this version is of this version too
            for name, ended in self.tasks.items():
                if isinstance(ended.outcome, Writes):
                    recorder.rows[name] = pack_task(ended.outcome, ended.answers, recorder.codec)
        for name, ended in self.tasks.items():
            # What a task still asks is not answered, whatever it was given: an answer that did not fit is none.
            taken = {each: answer for each, answer in ended.answers.items() if each not in open_questions(ended)}
            recorder.answers[name] = taken
            self.answers.update(taken)

    def start(
        self, updates: Sequence[tuple[str, Any]], *, found: bool, edits: bool = False
    ) -> tuple[MachineCommand, ...]:
        """Begin with a new input; what is due is left behind, and named in the checkpoint."""
        if found:
            standing: Standing = self.standing  # type: ignore[assignment]
            self.machine.load(self.values, self.step)
            self.machine.dropped = tuple(
                dict.fromkeys((*(task.node.name for task in standing.tasks), *standing.held.names()))
            )
        self.answers.clear()
        self.recorder.answers.clear()
        return self.machine.start(updates, edits=edits)

    def resume(self, command: Command[Any] | None, writes: Writes | None = None) -> tuple[MachineCommand, ...]:
        """Go on with what is due.

        Args:
            command: Answers; None where there is nothing to say.
            writes: What to change before.

        Raises:
            InvalidResumeError: The answers fit nothing that is asked.
            InvalidUpdateError: The updates fit no field, or the target is no node.
        """
        answers = {} if command is None or command.resume is MISSING else self.matched(command.resume)
        if writes is not None:
            self.edit(writes, answers)
        elif taken := self.take(answers):
            self.claim.write(taken)
        self.machine.load(self.values, self.step, self.standing)
        return self.machine.resume(self.outcomes())

    def matched(self, resume: Any) -> dict[str, Any]:
        """Return answers by what they answer.

        Raises:
            InvalidResumeError: Nothing is asked, several things are and the answer is bare, or an id is unknown.
        """
        due: Standing = self.standing  # type: ignore[assignment]
        asked = [each for task in due.tasks if task.id in self.tasks for each in open_questions(self.tasks[task.id])]
        where = f"thread {self.claim.thread_id!r} of graph {self.network.name!r}"
        if not asked:
            raise InvalidResumeError(
                f"{where} asks nothing, so there is nothing to answer. Give an input to begin anew, or None to go on "
                "with what is due"
            )
        by_id = isinstance(resume, Mapping) and any(
            isinstance(key, str) and (key in asked or INTERRUPT_ID.fullmatch(key)) for key in resume
        )
        if by_id:
            unknown = [key for key in resume if key not in asked]
            if unknown:
                raise InvalidResumeError(
                    f"{where} does not ask {', '.join(map(repr, unknown))}. It asks {', '.join(map(repr, asked))}"
                )
            return dict(resume)
        if len(asked) > 1:
            raise InvalidResumeError(
                f"{where} asks {len(asked)} things, and one bare answer fits none of them for certain: give "
                f"Command(resume={{id: answer}}) with the ids {', '.join(map(repr, asked))}"
            )
        return {asked[0]: resume}

    def take(self, given: Mapping[str, Any]) -> list[Write]:
        """Put answers to the tasks that they are for, and return what stores them, so that a crash does not ask again.

        Raises:
            EncodeError: An answer can't be stored.
        """
        recorder = self.recorder
        stored: list[Write] = []
        for name, ended in self.tasks.items():
            mine = [each for each in open_questions(ended) if each in given]
            if not mine:
                continue
            kept = recorder.answers[name]
            kept.update((each, given[each]) for each in mine)
            reasons: tuple[Interrupt | Breakpoint, ...] = ended.outcome  # type: ignore[assignment]  # it asks
            rest = tuple(each for each in reasons if isinstance(each, Breakpoint) or each.id not in mine)
            self.tasks[name] = TaskRecord(rest, kept)
            self.answered.add(name)
            payload = recorder.rows[name] = pack_task(rest, kept, recorder.codec)
            stored.append(PutTask(recorder.task_row(self.step + 1, name, payload), replaces=True))
        self.answers.update(given)
        if self.claim.keeps_until_end:
            recorder.answered |= self.answered
            self.claim.pending[recorder] = None
            return []
        return stored

    def outcomes(self) -> dict[int, Outcome]:
        """Return how the due tasks ended of which something is stored, by place.

        A paused task that got no answer since stays as it is: to run it again would ask the same again.
        """
        found: dict[int, Outcome] = {}
        for task in self.standing.tasks:  # type: ignore[union-attr]
            ended = self.tasks.get(task.id)
            if ended is None:
                continue
            outcome = ended.outcome
            if isinstance(outcome, str):
                found[task.place] = RanBefore(outcome)
            elif not isinstance(outcome, Writes) and (task.id in self.answered or self.may_go_on(outcome)):
                found[task.place] = RanBefore("paused, and answered since")
            else:
                found[task.place] = outcome
        return found

    def may_go_on(self, reasons: Sequence[Interrupt | Breakpoint]) -> bool:
        """Return whether a paused task has what it waited for, or some of it."""
        return not reasons or any(isinstance(each, Breakpoint) or each.id in self.answers for each in reasons)

    def edit(self, writes: Writes, answers: Mapping[str, Any]) -> None:
        """Apply what a command changes before the run goes on: a superstep of its own, after which the same is due.

        Args:
            writes: What is changed.
            answers: What is answered by the same command; both are stored or none.

        Raises:
            EncodeError: An update or an answer can't be stored.
            InvalidUpdateError: The updates can't be applied together.
        """
        machine = self.machine.successor()
        machine.load(self.values, self.step, self.standing)
        task = Task(EDITOR, self.step + 1, 0)
        machine.edit((task,), keeps=True)
        for each in machine.handle(TaskDone(task, writes)):
            if isinstance(each, CommitBarrier):
                self.take(answers)  # the rows of tasks that stay due are stored with the barrier
                self.claim.write(self.recorder.writes(each))
                self.standing = each.standing
            elif isinstance(each, Finish) and each.error is not None:
                raise each.error
        self.values = machine.values
        self.step += 1

    # -- a graph inside another one ----------------------------------------------------------------------------------

    def enter(self, updates: Sequence[tuple[str, Any]], owner: str, *, remembers: bool) -> tuple[MachineCommand, ...]:
        """Begin a run of a graph inside another one, or go on with the one that this task has begun before.

        Args:
            updates: What a new run begins with.
            owner: The task that runs the graph.
            remembers: Whether the graph has a history of its own, which a new run goes on from.
        """
        claim, namespace = self.claim, self.recorder.namespace
        self.machine.inside = True
        row: CheckpointRow | None
        if remembers:
            row = self.saver.visible_checkpoint(claim.thread_id, claim.lineage, namespace)
        else:
            head = self.saver.head(claim.thread_id, claim.branch, namespace)
            row = None if head is None else self.saver.checkpoint(claim.thread_id, claim.branch, namespace, head)
        if row is None:
            return self.machine.start(updates)
        self.load(row, claim.lineage)
        if self.record.owner != owner:
            return self.start(updates, found=True)
        made, escapes = read_journal(self.saver, claim.thread_id, row, self.record.origin, self.recorder.codec)
        self.machine.journal.extend(made)
        self.machine.escapes = escapes
        return self.resume(None)


def open_questions(ended: TaskRecord) -> list[str]:
    """Return the ids of what a task still asks."""
    outcome = ended.outcome
    if isinstance(outcome, Writes) or not isinstance(outcome, tuple):
        return []
    return [reason.id for reason in outcome if isinstance(reason, Interrupt)]


class RanBefore(Exception):  # noqa: N818 - no error: it stands for a row of a task that runs again
    """How a task ended that is due again."""
