"""All attempts at one task whose node has a policy: what is between them, what ends one early, and who takes over.

Theory of operation. The loop is written once, as a coroutine, for both kinds of driver, which perform its three verbs:
`once` makes one attempt, `pause` waits, `settle` sees to it that nothing of a given-up attempt is on its way into the
store. In a thread they never suspend. Each attempt has a `Run` of its own, with a token that takes away what its code
can do: whoever still runs behind a timeout holds that one.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from threading import Event as Flag
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from pregel.attempt import explained
from pregel.channels.base import MISSING
from pregel.clock import clock
from pregel.commands import TaskDone, TaskFailed
from pregel.drivers import workers
from pregel.drivers.recall import as_cached, kept, recalled, stand_in
from pregel.drivers.revocable import RevocableStore, RevocableWriter
from pregel.errors import NodeTimeoutError
from pregel.observe import tell_retry
from pregel.routing import named
from pregel.runtime import AttemptToken, Quiet, is_read
from pregel.task import Handled, make
from pregel.types import NodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pregel.commands import Event
    from pregel.drivers.limits import Turn
    from pregel.drivers.sync import SyncDriver
    from pregel.network import Network
    from pregel.policy import Failures, Policy
    from pregel.runtime import Run
    from pregel.task import Task

__all__ = ["Attempt", "Deadline", "InThread", "Performer", "attempts", "timed_out"]

T = TypeVar("T")


class Deadline:
    """When an attempt is given up: some time after its beginning, or after its last sign of life.

    Args:
        policy: Of the node.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        #: Which time is up.
        self.passed: Literal["run", "idle"] | None = None
        self.stopped = False
        self.clock = clock()
        self.begun = self.last = 0.0
        self.expire: Callable[[], None] = Flag().set
        self.undo: Callable[[], None] = Flag().set

    def start(self, expire: Callable[[], None]) -> None:
        """Begin, and call something on some thread when time is up."""
        self.begun = self.last = self.clock.now()
        self.expire = expire
        self.arm()

    def arm(self) -> None:
        """Look again when time may be up."""
        self.undo = self.clock.call_at(min(self.ends().values()), self.look)
        if self.stopped:
            self.undo()

    def ends(self) -> dict[Literal["run", "idle"], float]:
        """Return when which time is up, as far as is known."""
        found: dict[Literal["run", "idle"], float] = {}
        if self.policy.run_timeout is not None:
            found["run"] = self.begun + self.policy.run_timeout
        if self.policy.idle_timeout is not None:
            found["idle"] = self.last + self.policy.idle_timeout
        return found

    def look(self) -> None:
        """Say that time is up if it is; signs of life may have come."""
        now = self.clock.now()
        passed = [kind for kind, end in self.ends().items() if end <= now]
        if self.stopped:
            return
        if passed:
            self.passed = passed[0]
            self.expire()
        else:
            self.arm()

    def beat(self) -> None:
        """Take a sign of life."""
        self.last = self.clock.now()

    def stop(self) -> None:
        """Forget about it."""
        self.stopped = True
        self.undo()


class Attempt:
    """One attempt at a task.

    Args:
        task: The task.
        run: What all tasks of the run share.
        number: The attempt's, from 1.
        policy: What limits its time; None for nothing.
        failure: What an error handler is to handle.
    """

    def __init__(
        self, task: Task, run: Run, number: int, policy: Policy | None, failure: NodeError | None = None
    ) -> None:
        self.task = task
        self.token = token = AttemptToken(run.token, repeats=number > 1, hold=Lock())
        self.deadline = deadline = Deadline(policy) if policy is not None and policy.is_timed else None
        outer = run.beat

        def beat() -> None:
            token.check()
            if deadline is not None:
                deadline.beat()
            if outer is not None:
                outer()

        idle = outer is not None or (policy is not None and policy.idle_timeout is not None)
        writer = run.writer
        if is_read(writer):
            writer = RevocableWriter(writer, beat)
        elif idle:
            writer = Quiet(beat)
        #: What its code finds.
        self.run = replace(
            run,
            token=token,
            writer=writer,
            publish=None if run.publish is None else RevocableWriter(run.publish, beat),
            store=None if run.store is None else RevocableStore(run.store, token),
            attempt=number,
            beat=beat if idle else None,
            failure=failure,
        )


class Performer(Protocol):
    """How a driver does what attempts need."""

    @property
    def network(self) -> Network:
        """The graph."""

    @property
    def run(self) -> Run:
        """What all tasks of the run share."""

    async def once(self, attempt: Attempt) -> Event:
        """Make an attempt, and revoke it when its time is up."""

    async def pause(self, seconds: float) -> None:
        """Wait between two attempts."""

    async def settle(self, token: AttemptToken) -> None:
        """Settle a revoked attempt."""

    @property
    def values(self) -> dict[str, Any]:
        """The state of the last barrier."""

    async def aside(self, call: Callable[[], T], *, blocking: bool) -> T:
        """Call something that may wait for a disk or a network if it is said to."""


async def attempts(task: Task, performer: Performer) -> Event:
    """Run a task whose node has a policy: as often as it says, and at last its error handler.

    Returns:
        How the task ended.
    """
    policy: Policy = task.node.policy  # type: ignore[assignment]  # see above
    failures: Failures = ()
    key: str | None = None
    if policy.cache is not None and performer.run.cache is not None:
        key, found = await recalled(task, performer)
        if isinstance(found, TaskFailed):
            return found
        if found is not None:
            return as_cached(task, await performer.once(Attempt(stand_in(task, found), performer.run, 1, None)))
    number = 0
    while True:
        number += 1
        returned: list[Any] = []
        run = performer.run if key is None else replace(performer.run, keeps=returned)
        attempt = Attempt(task, run, number, policy)
        event = await performer.once(attempt)
        if not isinstance(event, TaskFailed):
            return event if key is None else await kept(task, key, returned, event, performer)
        try:
            wait, failures = policy.after(event.error, failures, performer.run.task_id(task))
        except Exception as raised:  # noqa: BLE001 - `retry_on` is the user's code, and how it ends is how the task does
            raised.__context__ = event.error
            wait, event = None, TaskFailed(task, explained(raised, task, performer.network, MISSING))
        if wait is None and number > 1:
            with suppress(Exception):  # one that takes no notes goes without
                event.error.add_note(f"That was attempt {number}, the last one.")
        if wait is not None or policy.handler is not None or attempt.token.revoked:
            attempt.token.revoke()
            await performer.settle(attempt.token)
        if wait is None:
            if policy.handler is None or policy.is_beyond(event.error):
                return event
            return await handled(task, event.error, number, performer)
        tell_retry(task, attempt.run, performer.network.name, event.error, wait)
        await performer.pause(wait)


async def handled(task: Task, error: Exception, number: int, performer: Performer) -> Event:
    """Run the error handler of a task that has failed for good.

    To its own code it is a task of its own: what it asks, and the graphs that it runs, never take what the node's code
    has been answered and has stored.

    Args:
        task: The task.
        error: What its last attempt raised.
        number: How many attempts there were.
        performer: The driver.

    Returns:
        How the task ended: as the handler did.
    """
    head, _, name = task.id.rpartition(":")
    handler: Any = task.node.policy.handler  # type: ignore[union-attr]  # asked only where there is one
    own = task._replace(node=handler, key=f"{head}:__error__{name}")
    event = await performer.once(Attempt(own, performer.run, 1, None, NodeError(task.node.name, error, number)))
    if isinstance(event, TaskDone):
        return TaskDone(task, make(Handled, event.writes))
    if isinstance(event, TaskFailed) and event.error is not error and event.error.__context__ is None:
        event.error.__context__ = error
    return event._replace(task=task)


def timed_out(attempt: Attempt, network: Network) -> TaskFailed:
    """Return how a task ended whose attempt was given up."""
    task, deadline = attempt.task, attempt.deadline
    policy: Any = task.node.policy
    assert deadline is not None  # noqa: S101 - only what has one can be late
    idle = deadline.passed == "idle"
    error = NodeTimeoutError(
        f"{named(task.node.name, network)} "
        + (
            f"gave no sign of life for {policy.idle_timeout:g} s"
            if idle
            else f"ran longer than {policy.run_timeout:g} s"
        )
        + f" in attempt {attempt.run.attempt}, and was given up. Sync code of it that still runs has no effect any more"
    )
    return TaskFailed(task, explained(error, task, network, MISSING))


class InThread:
    """Makes attempts in the current thread, and those that have a deadline in a worker thread that it waits for.

    Args:
        driver: The driver of the run.
        turn: The turn that the task has, where tasks need one.
    """

    def __init__(self, driver: SyncDriver, turn: Turn | None) -> None:
        self.driver = driver
        self.network = driver.network
        self.run = driver.run
        self.turn = turn

    async def once(self, attempt: Attempt) -> Event:
        """Make an attempt, and leave it alone in its thread when its time is up.

        Raises:
            BaseException: What its code raised that is no `Exception`.
        """
        make_it, deadline = self.driver.attempt, attempt.deadline
        if deadline is None:
            return make_it(attempt.task, self.turn, attempt.run)
        over = Flag()
        ended: list[Event | BaseException] = []

        def job() -> None:
            try:
                ended.append(make_it(attempt.task, self.turn, attempt.run))
            except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits, if one does
                ended.append(error)
            over.set()

        deadline.start(over.set)
        try:
            workers.submit(job, inside=True)
            over.wait()
        except BaseException:  # such as Ctrl-C
            attempt.token.revoke()
            raise
        finally:
            deadline.stop()
        if not ended:
            attempt.token.revoke()
            return timed_out(attempt, self.network)
        event = ended[0]
        if isinstance(event, BaseException):
            raise event
        return event

    async def pause(self, seconds: float) -> None:
        """Wait, until the run is left: the next attempt does not begin then."""
        woken = Flag()
        undo = self.run.token.watch(woken.set)
        try:
            clock().sleep(seconds, woken)
        finally:
            undo()

    async def settle(self, token: AttemptToken) -> None:
        """Settle a revoked attempt."""
        token.settle()

    @property
    def values(self) -> dict[str, Any]:
        """The state of the last barrier."""
        return self.driver.machine.values

    async def aside(self, call: Callable[[], T], *, blocking: bool) -> T:  # noqa: ARG002 - this thread may wait
        """Call something."""
        return call()
