"""All attempts at one task whose node has a policy: what is between them, what ends one early, and who takes over.

Theory of operation. The loop is written once, as a coroutine, for both kinds of driver, which perform its four verbs:
`once` makes one attempt, `pause` waits, `settle` sees to it that nothing of a given-up attempt is on its way into the
store, `aside` calls what may wait for a disk or a network. In a thread they never suspend. Each attempt has a `Run` of
its own, with a token that takes away what its code can do: whoever still runs behind a timeout holds that one.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pregel.attempt import explained
from pregel.cancellation import AttemptToken
from pregel.channels.base import MISSING
from pregel.commands import TaskDone, TaskFailed
from pregel.drivers.deadline import Deadline
from pregel.drivers.recall import as_cached, kept, recalled, stand_in
from pregel.drivers.revocable import RevocableStore, RevocableWriter
from pregel.observe import tell_retry
from pregel.routing import named
from pregel.runtime import Quiet, is_read
from pregel.task import Handled, make
from pregel.types import NodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pregel.commands import Event
    from pregel.network import Network
    from pregel.node import Node
    from pregel.policy import Failures, Policy
    from pregel.runtime import Run
    from pregel.task import Task

__all__ = ["Attempt", "Performer", "attempts", "timed_out"]

T = TypeVar("T")


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

    @property
    def values(self) -> dict[str, Any]:
        """The state of the last barrier."""

    async def once(self, attempt: Attempt) -> Event:
        """Make an attempt, and revoke it when its time is up."""

    async def pause(self, seconds: float) -> None:
        """Wait between two attempts."""

    async def settle(self, token: AttemptToken) -> None:
        """Settle a revoked attempt."""

    async def aside(self, call: Callable[[], T], *, blocking: bool) -> T:
        """Call something that may wait for a disk or a network if it is said to."""


async def attempts(task: Task, performer: Performer) -> Event:
    """Run a task whose node has a policy: as often as it says, and at last its error handler.

    Args:
        task: The task; one whose node has no policy is run by its driver alone.
        performer: The driver.

    Returns:
        How the task ended.
    """
    policy: Policy = task.node.policy  # type: ignore[assignment]  # it has one
    failures: Failures = ()
    number = 0
    while True:
        number += 1
        attempt, event = await tried(task, policy, number, performer)
        if not isinstance(event, TaskFailed):
            return event
        try:
            wait, failures = policy.after(event.error, failures, performer.run.task_id(task))
        except Exception as raised:  # noqa: BLE001 - `retry_on` is the user's code, and how it ends is how the task does
            show_before(raised, event.error)
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
            return await handled(task, policy.handler, event.error, number, performer)
        tell_retry(task, attempt.run, performer.network.name, event.error, wait)
        await performer.pause(wait)


async def tried(task: Task, policy: Policy, number: int, performer: Performer) -> tuple[Attempt, Event]:
    """Make an attempt at a task, or let an earlier result stand for it.

    Args:
        task: The task.
        policy: That of its node.
        number: The attempt's, from 1.
        performer: The driver.

    Returns:
        The attempt and how it ended: what goes wrong with the cache is a failure like any other.
    """
    run = performer.run
    key: str | None = None
    returned: list[Any] = []
    if policy.cache is not None and run.cache is not None:
        key, found = await recalled(task, performer)
        if isinstance(found, TaskFailed):
            return Attempt(task, run, number, None), found
        if found is not None:
            attempt = Attempt(stand_in(task, found), run, number, None)
            return attempt, as_cached(task, await performer.once(attempt))
        if key is not None:
            run = replace(run, keeps=returned)
    attempt = Attempt(task, run, number, policy)
    event = await performer.once(attempt)
    return attempt, event if key is None else await kept(task, key, returned, event, performer)


def show_before(error: Exception, before: Exception) -> None:
    """Let an error show the one that led to it, unless it shows another, or is itself what led to that one."""
    led: BaseException | None = before
    while led is not None and led is not error:
        led = led.__context__
    if led is None and error.__context__ is None:
        with suppress(Exception):  # one that takes nothing goes without
            error.__context__ = before


async def handled(task: Task, handler: Node, error: Exception, number: int, performer: Performer) -> Event:
    """Run the error handler of a task that has failed for good.

    To its own code it is a task of its own: what it asks, and the graphs that it runs, never take what the node's code
    has been answered and has stored.

    Args:
        task: The task.
        handler: That of its node.
        error: What its last attempt raised.
        number: How many attempts there were.
        performer: The driver.

    Returns:
        How the task ended: as the handler did.
    """
    head, _, name = task.id.rpartition(":")
    own = task._replace(node=handler, key=f"{head}:__error__{name}")
    event = await performer.once(Attempt(own, performer.run, 1, None, NodeError(task.node.name, error, number)))
    if isinstance(event, TaskDone):
        return TaskDone(task, make(Handled, event.writes))
    if isinstance(event, TaskFailed):
        show_before(event.error, error)
    return event._replace(task=task)


def timed_out(attempt: Attempt, deadline: Deadline, network: Network) -> TaskFailed:
    """Return how a task ended whose attempt was given up."""
    error = deadline.error(named(attempt.task.node.name, network), attempt.run.attempt)
    return TaskFailed(attempt.task, explained(error, attempt.task, network, MISSING))
