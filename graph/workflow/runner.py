"""`Runner`: runs a workflow in sessions, and yields its events as its supersteps are committed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, closing
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pregel.channels.base import MISSING, Overwrite
from pregel.channels.keyed import DELETE
from pregel.errors import CheckpointNotFoundError, InvalidInputError, ThreadBusyError
from pregel.graph.workflow.errors import SessionNotFoundError
from pregel.graph.workflow.event import NO_OUTPUT, USER, Event, StoredEvent
from pregel.graph.workflow.following import Follower, Plan
from pregel.graph.workflow.incoming import INPUT
from pregel.graph.workflow.replying import replies
from pregel.graph.workflow.running import EVENTS
from pregel.graph.workflow.schema import keys_of
from pregel.graph.workflow.scopes import SHARED, scope_of
from pregel.graph.workflow.sessions import Sessions
from pregel.graph.workflow.shared import settled
from pregel.graph.workflow.state import STATE
from pregel.graph.workflow.thread import VERSIONS, branch_of
from pregel.runtime import FRAME
from pregel.text import show
from pregel.types import Command

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Sequence

    from pregel.graph.workflow.thread import Head, Thread
    from pregel.graph.workflow.workflow import Workflow
    from pregel.main import Pregel
    from pregel.types import Migration

__all__ = ["AsyncEvents", "Events", "Runner"]

MODES: Final = ("values", "custom")


class Events(Iterator[Event]):
    """The events of a run: to read them is to run it. It ends with the error of a run that fails.

    Args:
        session_id: The session: that of the run, or a new one where it was given none.
        made: Makes the events.
    """

    def __init__(self, session_id: str, made: Generator[Event, None, None]) -> None:
        self.session_id = session_id
        self._made = made

    def __next__(self) -> Event:
        return next(self._made)

    def close(self) -> None:
        """Leave the run: it is cancelled. What it has committed stays."""
        self._made.close()


class AsyncEvents(AsyncIterator[Event]):
    """The events of a run on asyncio or trio; see `Events`."""

    def __init__(self, session_id: str, made: AsyncGenerator[Event, None]) -> None:
        self.session_id = session_id
        self._made = made

    async def __anext__(self) -> Event:
        return await anext(self._made)

    async def aclose(self) -> None:
        """Leave the run: it is cancelled, and its end is waited for. What it has committed stays."""
        await self._made.aclose()


class Runner:
    """Runs a workflow in sessions.

    Args:
        workflow: The workflow.
        app_name: Under which sessions, and what users and the app share, are kept.
        sessions: Where; in memory if left out.
        migrations: What has become of versions of the workflow that sessions are stored by; see `Workflow.compile`.
        debug: Raise `MutatedStateError` where a node changes in place what it was given. Slow.

    Raises:
        InvalidIdError: The app's name can't be one.
    """

    def __init__(
        self,
        workflow: Workflow,
        app_name: str = "app",
        sessions: Sessions | None = None,
        *,
        migrations: Migration | Sequence[Migration] = (),
        debug: bool = False,
    ) -> None:
        self.workflow = workflow
        self.app_name = app_name
        self.sessions = Sessions() if sessions is None else sessions
        self.graph = workflow.compile(
            checkpointer=self.sessions.checkpointer,
            store=self.sessions.store,
            migrations=migrations,
            debug=debug,
        )
        self._telling = telling(self.graph)
        self._app = self.sessions.join(app_name, self.graph, workflow.state_schema)

    def run(
        self,
        input: Any,  # noqa: A002 - ADK's word
        user_id: str = "user",
        session_id: str | None = None,
        *,
        state: Mapping[str, Any] | None = None,
    ) -> Events:
        """Run the workflow once in a session.

        Args:
            input: The `node_input` of its first nodes. Where the session's run is paused, the reply to what it asks,
                or a mapping of replies by `interrupt_id`; None goes on with a run that failed or was killed.
            user_id: Whose session.
            session_id: The session, a new one if there is none of this name; None for a new one with a name of its
                own.
            state: Keys to set before the first nodes run, of the session or of this run (`temp:`). It goes with an
                input, and not with replies.

        Returns:
            The events in the order of the supersteps, and in each in the order in which its nodes were declared. They
            come while the run goes on: partial events at once, the others when their superstep is committed.

        Raises:
            InvalidIdError: A name can't be one.
            Exception: While the events are read: what a run raises, behind an event with `error_code`.
                `ThreadBusyError` where the session has a run. `ScopeConflictError`, at the end, where another session
                has changed a `user:` or `app:` key that the run has written.
        """
        thread = self._thread(user_id, session_id)
        return Events(thread.name.session, self._events(thread, input, state))

    def arun(
        self,
        input: Any,  # noqa: A002 - as above
        user_id: str = "user",
        session_id: str | None = None,
        *,
        state: Mapping[str, Any] | None = None,
    ) -> AsyncEvents:
        """Run the workflow once in a session, on asyncio or trio; see `run`."""
        thread = self._thread(user_id, session_id)
        return AsyncEvents(thread.name.session, self._aevents(thread, input, state))

    def rewind(self, session_id: str, sequence: int, user_id: str = "user") -> None:
        """Let a session go on from where it stood when an event was the last one.

        What came after it is left on another branch of the thread. What was published of it, `user:` and `app:` keys,
        stays as it is.

        Args:
            session_id: The session.
            sequence: The number of the event; where its superstep has told more, all of that goes.
            user_id: Whose session.

        Raises:
            SessionNotFoundError: There is no such session.
            CheckpointNotFoundError: It never stood there, or that was pruned.
            ThreadBusyError: A run has the session.
        """
        thread = self._thread(user_id, session_id)
        head = thread.settle()
        if head is None:
            raise SessionNotFoundError(f"user {user_id!r} has no session {session_id!r} to rewind")
        found: Head | None = head
        while found is not None and len(found.events) > sequence:
            before = found.snapshot.parent_config
            found = None if before is None else thread.head(before)
        if found is None:
            raise CheckpointNotFoundError(
                f"session {session_id!r} never stood where event {sequence!r} was the last one: it has "
                f"{len(head.events)} events, and the first is what it began with"
            )
        if found is not head:
            branch = branch_of(self.graph.update_state(found.snapshot.config, None))
            thread.shared.rewind(branch, len(found.events))

    async def arewind(self, session_id: str, sequence: int, user_id: str = "user") -> None:
        """Let a session go on from an earlier event, on asyncio or trio; see `rewind`."""
        await self.sessions.off_loop(partial(self.rewind, session_id, sequence, user_id))

    def _thread(self, user_id: str, session_id: str | None) -> Thread:
        session_id = str(uuid4()) if session_id is None else session_id
        return self.sessions.thread(self.app_name, user_id, session_id, self._app)

    def _events(self, thread: Thread, given: Any, state: Mapping[str, Any] | None) -> Generator[Event, None, None]:
        """Run without an event loop."""
        follower = self._begin(thread, given, state)
        plan = follower.plan
        try:
            stream = self._telling.stream(plan.given, plan.config, stream_mode=MODES, version="v2")
            with closing(stream) as parts:
                for part in parts:
                    yield from follower.take(part)
        except BaseException as error:
            follower.publish_after(error)
            if isinstance(error, Exception):
                yield from follower.failures(error)
            raise
        try:
            asked = follower.finish()
        except Exception as error:
            yield from follower.failures(error)
            raise
        yield from asked

    async def _aevents(
        self, thread: Thread, given: Any, state: Mapping[str, Any] | None
    ) -> AsyncGenerator[Event, None]:
        """Run on the event loop at hand."""
        off_loop = self.sessions.off_loop
        follower: Follower = await off_loop(partial(self._begin, thread, given, state))
        plan = follower.plan
        try:
            stream = self._telling.astream(plan.given, plan.config, stream_mode=MODES, version="v2")
            async with aclosing(stream) as parts:
                async for part in parts:
                    for event in follower.take(part):
                        yield event
        except BaseException as error:
            await off_loop(partial(follower.publish_after, error))
            if isinstance(error, Exception):
                for event in follower.failures(error):
                    yield event
            raise
        try:
            asked = await off_loop(follower.finish)
        except Exception as error:
            for event in follower.failures(error):
                yield event
            raise
        for event in asked:
            yield event

    def _begin(self, thread: Thread, given: Any, state: Mapping[str, Any] | None) -> Follower:
        """Publish what a killed run has left behind, read what is shared, and say what the run begins with."""
        frame = FRAME.get(None)
        if frame is not None and frame[1].thread == thread.id:
            raise ThreadBusyError(f"{self._where(thread)} is taken by the run that this very code is a part of")
        head = thread.settle()
        held = thread.held()
        updates = thread.fresh(head, held)
        versions = {key: each.version for key, each in held.items()}
        config = {**thread.config, "metadata": {VERSIONS: versions}}
        return Follower(thread, Plan(self._given(thread, head, given, state, updates), config, versions))

    def _given(
        self,
        thread: Thread,
        head: Head | None,
        given: Any,
        state: Mapping[str, Any] | None,
        updates: dict[str, Any],
    ) -> Any:
        """Return the input of the graph.

        Raises:
            InvalidInputError: There is nothing to go on with; or a state can't be set, or comes with a reply.
            InvalidResumeError: See `replies`.
        """
        begins = not isinstance(given, Command) and given is not None and not (head is not None and head.requests)
        if begins:
            return {INPUT: given, STATE: {**updates, **self._own(thread, {} if state is None else state)}}
        if state is not None:
            raise InvalidInputError(
                f"{self._where(thread)} goes on with what it was doing, and state= goes with a new input. Let a node "
                "set what the reply brings"
            )
        if isinstance(given, Command):
            if head is None or given.resume is MISSING or given.update is not None or given.goto:
                raise InvalidInputError(
                    f"{self._where(thread)} takes an input, replies, or Command(resume=...) where it is paused, not "
                    f"{given!r}"
                )
            return self._steered(replies(given.resume, head), head, updates)
        if given is None:
            if head is None or not head.next:
                raise InvalidInputError(f"{self._where(thread)} has nothing to go on with: give an input, not None")
            return self._steered(MISSING, head, updates) if updates else None
        return self._steered(replies(given, head), head, updates)  # type: ignore[arg-type]  # it asks something

    def _own(self, thread: Thread, state: Mapping[Any, Any]) -> Mapping[str, Any]:
        """Return the keys that a run is begun with.

        Raises:
            InvalidInputError: They are no mapping, or sessions share one: that is published with what nodes write.
        """
        if not isinstance(state, Mapping):
            raise InvalidInputError(f"{self._where(thread)}: state takes a mapping, not {show(state)}")
        names = keys_of(self.workflow.state_schema)
        for key in state:
            if isinstance(key, str) and scope_of(names.get(key, key)) in SHARED:
                raise InvalidInputError(
                    f"{self._where(thread)}: state= can't set {key!r}, which sessions share: let a node set it"
                )
        return state

    def _where(self, thread: Thread) -> str:
        name = thread.name
        return f"session {name.session!r} of user {name.user!r} of app {name.app!r}"

    def _steered(self, resume: Any, head: Head, updates: Mapping[str, Any]) -> Command[Any]:
        """Return what replies, and before that lets the session see what is shared now."""
        said = StoredEvent(
            USER,
            "",
            head.snapshot.metadata["step"] + 1,  # type: ignore[index]  # a head is stored
            head.events[-1].turn if head.events else 1,
            NO_OUTPUT,
            {key: settled(update) for key, update in updates.items() if update is not DELETE},
            tuple(key for key, update in updates.items() if update is DELETE),
            tuple(key for key, update in updates.items() if type(update) is Overwrite),
            content=None if resume is MISSING else resume,
        )
        return Command(resume=resume, update={**self._fields(updates), EVENTS: [said]})

    def _fields(self, updates: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return updates of the state as those of the graph's fields."""
        return updates if self.workflow.state_schema is not None else {STATE: updates} if updates else {}


def telling(graph: Pregel[Any]) -> Pregel[Any]:
    """Return the same graph, whose visible state is its events: what is told of a superstep costs what it has told."""
    made = copy(graph)
    made._network = replace(graph._network, outputs=(EVENTS,))  # noqa: SLF001 - this is a front door of the same package
    return made
