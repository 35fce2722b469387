"""How a run begins where it is stored, and lets go of what it holds there."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from time import sleep
from typing import TYPE_CHECKING, Any, Final

from pregel.channels.base import MISSING
from pregel.drivers.offloop import at_once, off_loop
from pregel.errors import ConcurrentRunError, InvalidConfigError, InvalidInputError, InvalidResumeError, PregelError
from pregel.newids import ids_of_thread
from pregel.node import EDITOR
from pregel.persistence import Address, read_address, saver_of
from pregel.task import Task
from pregel.writes import interpret

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pregel.checkpoint.claim import Claim
    from pregel.checkpoint.recorder import Recorder
    from pregel.commands import Command
    from pregel.config import RunOptions
    from pregel.network import Network
    from pregel.opening import Opening
    from pregel.persistence import Format, Persistence
    from pregel.placing import Place
    from pregel.runtime import Frame, Run
    from pregel.superstep import Superstep
    from pregel.types import Command as Resume

__all__ = ["Holding"]

#: Seconds between two looks at whether a thread is free.
PATIENCE: Final = 0.02


class Holding:
    """The half of a `Session` that knows where the run is stored."""

    network: Network
    options: RunOptions
    persistence: Persistence
    around: Frame | None
    place: Place
    run: Run
    machine: Superstep
    #: What the machine does first.
    commands: Sequence[Command]
    #: The hold on the thread of a run that has one of its own, and the place that the config names.
    claim: Claim | None
    address: Address
    #: What a run that is stored does once it has the thread.
    first: Callable[[], Sequence[Command]] | None
    recorder: Recorder | None
    #: For a run inside a task: the last label of its namespace, the same where it has a history of its own, the task,
    #: and whether it is a call of that.
    label: str
    label_remembered: str
    owner: str
    is_call: bool

    def start(self, updates: Sequence[tuple[str, Any]]) -> None:
        """Take the updates that the input makes; a run that is stored begins when it is performed."""
        if self.place == "root":
            self.claim_thread(partial(self.begin, updates, None))
        elif self.place in {"child", "remembers"}:
            self.first = partial(self.begin_inside, updates)
        else:
            self.commands = self.machine.start(updates)

    def resume(self, command: Resume[Any] | None) -> None:
        """Go on with what is stored when the run is performed.

        Args:
            command: Answers, and what to change before.
        """
        self.claim_thread(partial(self.begin, None, command))

    def claim_thread(self, first: Callable[[], Sequence[Command]]) -> None:
        """Prepare the hold on the thread."""
        from pregel.checkpoint.claim import Claim  # noqa: PLC0415 - runs that are not stored do not load it

        self.address = read_address(self.options.config, self.network.name)
        saver = saver_of(self.persistence, self.network.name)
        self.claim = Claim(saver, self.address.thread_id, self.persistence.durability)
        self.first = first

    def begin(self, updates: Sequence[tuple[str, Any]] | None, command: Resume[Any] | None) -> Sequence[Command]:
        """Read what is stored, and return what the machine does first.

        Raises:
            InvalidInputError: There is nothing to go on with.
        """
        if self.address.namespace:
            raise InvalidConfigError(
                f"the config names the graph {'/'.join(self.address.namespace)!r} inside graph {self.network.name!r}: "
                "runs begin at the outermost one"
            )
        opening, found = self.begin_thread()
        if updates is not None:
            commands = opening.start(updates, found=found)
        elif found:
            writes = None
            if command is not None and (command.update is not None or command.goto):
                task = Task(EDITOR, opening.step + 1, 0)
                writes = interpret(replace(command, resume=MISSING), self.network, task, {}, self.run)
            commands = opening.resume(command, writes)
        else:
            raise nothing_stored(self.network.name, self.address.thread_id, command)
        self.count_steps()
        return commands

    def begin_thread(self) -> tuple[Opening, bool]:
        """Read what is stored of the outermost graph; return what reads it, and whether there is anything."""
        claim: Claim = self.claim  # type: ignore[assignment]  # a run at the root has one
        opening = self.opening(claim, ())
        found = opening.find(self.address)
        path = () if claim.branch == 0 else (f"branch-{claim.branch}",)
        self.run = replace(
            self.run,
            path=path,
            new_id=ids_of_thread(claim.thread_id, path),
            answers=opening.answers,
            thread=claim.thread_id,
            recorder=self.storing(),
        )
        return opening, found

    def begin_inside(self, updates: Sequence[tuple[str, Any]]) -> Sequence[Command]:
        """Read what is stored of this graph inside another one, and return what the machine does first.

        Raises:
            ConcurrentRunError: The graph has a history of its own, and another run of it is going on from it.
        """
        outer = self.around[1]  # type: ignore[index]  # a run inside a task has one
        around: Recorder = outer.recorder.recorder
        claim = around.claim
        remembers = self.place == "remembers"
        namespace = (*around.namespace, self.label_remembered if remembers else self.label)
        if remembers:
            if namespace in claim.busy:
                raise ConcurrentRunError(
                    f"graph {self.network.name!r} has a history of its own (checkpointer=True), and another task of "
                    f"this superstep is running it as {self.label_remembered!r}: which of them should the next run go "
                    "on from? Compile it with checkpointer=None, or run it once"
                )
            claim.busy.add(namespace)
        if remembers or any(token.repeats for token in self.run.token.attempts()):
            claim.flush()  # an earlier run of it may still be on its way to the store
        opening = self.opening(claim, namespace, around=around)
        opening.answers = dict(outer.answers or {})
        earlier = claim.remembered.get(namespace)
        if self.is_call and claim.keeps_until_end:
            earlier = claim.take_call(namespace, opening.recorder)
        if earlier is None:
            commands = opening.enter(updates, self.owner, remembers=remembers)
        elif self.is_call:
            self.recorder = earlier
            commands = earlier.again(self.machine, around)
        else:
            self.recorder = earlier
            commands = earlier.go_on(self.machine, updates, around, self.owner)
        self.run = replace(self.run, answers=opening.answers, thread=outer.thread, recorder=self.storing())
        self.count_steps()
        return commands

    def opening(self, claim: Claim, namespace: tuple[str, ...], around: Recorder | None = None) -> Opening:
        """Return what reads the thread for this run, with a recorder for what follows."""
        from pregel.checkpoint.recorder import Recorder  # noqa: PLC0415 - runs that are not stored do not load it
        from pregel.opening import Opening  # noqa: PLC0415 - as above

        form: Format = self.persistence.format  # type: ignore[assignment]  # every graph that can be stored has one
        self.recorder = Recorder(
            claim,
            namespace,
            self.network,
            form.codec,
            fingerprint=form.fingerprint,
            metadata=self.options.config["metadata"],
            around=around,
            owner=self.owner if around is not None else None,
            live=lambda: self.machine.values,
        )
        return Opening(self.network, self.persistence, claim, self.recorder, self.machine)

    def storing(self) -> Any:
        """Return what stores the run's commits: in an attempt that may be given up, only as long as that counts."""
        attempts = [*self.run.token.attempts()]
        if not attempts:
            return self.recorder
        from pregel.checkpoint.revocable import RevocableRecorder  # noqa: PLC0415 - few runs are inside an attempt

        for token in attempts:
            token.after(self.forget)
        return RevocableRecorder(self.recorder, attempts[0])  # type: ignore[arg-type]  # set by now

    def count_steps(self) -> None:
        """Say which superstep is the last one that may run."""
        if self.run.last_step != self.machine.last_step:  # as it is in the first run of a thread
            self.run = replace(self.run, last_step=self.machine.last_step)

    def config_of(self, step: int) -> dict[str, Any]:
        """Return the config that names a checkpoint of this run."""
        recorder: Recorder = self.recorder  # type: ignore[assignment]  # asked only of a stored run
        address = Address(recorder.claim.thread_id, None, recorder.namespace)
        return address.config(recorder.claim.branch, step)

    @property
    def blocking(self) -> bool:
        """Whether to begin and to end waits for a disk or a network."""
        if self.claim is not None:
            return self.claim.saver.blocking
        if self.first is None:
            return False
        return bool(self.around[1].recorder.claim.saver.blocking)  # type: ignore[index]  # no claim: it is inside a task

    def open(self) -> None:
        """Take the thread, waiting for it if the run is to, and begin.

        Raises:
            ThreadBusyError: Another run has the thread.
        """
        claim = self.claim
        if claim is not None:
            holder = claim.attempt()
            while holder is not None:
                if self.persistence.on_busy == "reject":
                    raise claim.refused(holder)
                sleep(PATIENCE)
                holder = claim.attempt()
        if self.first is not None:
            self.commands = self.first()

    async def aopen(self) -> None:
        """Take the thread without holding up the event loop; see `open`."""
        call = off_loop if self.blocking else at_once
        claim = self.claim
        if claim is not None:
            while (holder := await call(claim.attempt)) is not None:
                if self.persistence.on_busy == "reject":
                    raise claim.refused(holder)
                import anyio  # noqa: PLC0415 - sync runs do not pay for it

                await anyio.sleep(PATIENCE)
        if self.first is not None:
            self.commands = await call(self.first)

    def close(self) -> None:
        """Store what is still to be stored, and let the thread go."""
        if self.claim is not None:
            self.claim.close()
        elif self.recorder is not None and any(token.revoked for token in self.run.token.attempts()):
            return  # see `forget`
        elif self.recorder is not None:
            recorder, claim = self.recorder, self.recorder.claim
            claim.busy.discard(recorder.namespace)
            if self.place == "child" and self.machine.ended_well and recorder.head is None and not self.is_call:
                recorder.discard()
            elif self.place == "remembers" and recorder.latest is not None:
                claim.remembered[recorder.namespace] = recorder

    def forget(self) -> None:
        """Let go of what is held by a run inside an attempt that was given up, and store nothing more of it."""
        recorder: Recorder = self.recorder  # type: ignore[assignment]  # set where this is asked for
        if self.claim is not None:
            self.claim.close()
            return
        claim = recorder.claim
        claim.busy.discard(recorder.namespace)
        if claim.remembered.get(recorder.namespace) is not recorder and not (self.is_call and recorder.ended):
            recorder.discard()

    async def aclose(self) -> None:
        """Do so without holding up the event loop, whatever is cancelled meanwhile."""
        if self.claim is not None and self.claim.has_to_write and self.claim.saver.blocking:
            await off_loop(self.close)
        else:
            self.close()


def nothing_stored(graph: str, thread_id: str, command: Resume[Any] | None) -> PregelError:
    """Return the error of a run that is to go on where nothing is stored."""
    where = f"graph {graph!r} has nothing stored on thread {thread_id!r}"
    if command is None:
        return InvalidInputError(f"{where}, so None has nothing to go on with: give an input")
    if command.resume is not MISSING:
        return InvalidResumeError(f"{where}, so there is nothing to answer: is this the right thread_id?")
    return InvalidInputError(f"{where}, so a Command has nothing to steer: give an input")
