"""Sessions: what is kept of one user's runs of a workflow, and how it is found again.

A session is a thread of the checkpointer, `app/user/session`; its events are the field `@events` of that thread. The
keys that sessions share are in the store: see `pregel.graph.workflow.shared`.
"""

from __future__ import annotations

import builtins  # noqa: TC003 - as below
from collections.abc import Mapping  # noqa: TC003 - read by who asks for the hints of a session
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pregel.channels.base import MISSING, Overwrite
from pregel.channels.keyed import DELETE
from pregel.channels.last_value import LastValue
from pregel.checkpoint.claim import Claim
from pregel.checkpoint.memory import InMemorySaver
from pregel.codec import encode
from pregel.errors import InvalidIdError, nearest
from pregel.graph.workflow.errors import SessionNotFoundError, WorkflowConfigurationError
from pregel.graph.workflow.event import Event, shown
from pregel.graph.workflow.schema import channel_of, checker, fields_of
from pregel.graph.workflow.scopes import SHARED, scope_of
from pregel.graph.workflow.shared import Held, Log, SessionName, Shared, settled
from pregel.graph.workflow.state import STATE
from pregel.graph.workflow.telling import writes_of
from pregel.ids import check_id
from pregel.session import off_loop
from pregel.store.memory import InMemoryStore
from pregel.types import Interrupt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pregel.channels.base import Channel
    from pregel.checkpoint.base import Checkpointer
    from pregel.graph.workflow.event import StoredEvent
    from pregel.main import Pregel
    from pregel.store.base import BaseStore
    from pregel.types import StateSnapshot

__all__ = ["Head", "Session", "SessionInfo", "Sessions", "Thread", "fold_events"]

#: The field with the events of a session.
EVENTS: Final = "@events"
#: Where the metadata of a run's checkpoints has the versions of the shared keys that it began with.
VERSIONS: Final = "shared_versions"
#: Sessions that are listed at once.
PAGE: Final = 256


@dataclass(frozen=True, slots=True)
class Session:
    """A session as it stands: a copy, which does not change when the session goes on."""

    app_name: str
    user_id: str
    id: str
    #: Its own keys, and those that the user and the app have in the store now, by whole names.
    state: Mapping[str, Any]
    events: tuple[Event, ...]
    #: What its run asks, if it is paused.
    requests: tuple[Interrupt, ...] = ()
    #: The nodes that are due: of a run that is paused, or that failed or was killed.
    next: tuple[str, ...] = ()


class SessionInfo(NamedTuple):
    """What a list of sessions says."""

    app_name: str
    user_id: str
    id: str
    #: When it began and when it last went on, in seconds since 1970.
    created: float
    updated: float


class App(NamedTuple):
    """A workflow that keeps sessions."""

    graph: Pregel[Any]
    state_schema: Any

    def state(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the keys of the state, by whole names, from the values of the graph's fields."""
        if self.state_schema is None:
            return values.get(STATE) or {}
        return {key: values[key] for key in fields_of(self.state_schema) if key in values}

    def shared_starts(self) -> dict[str, Any]:
        """Return what keys that sessions share have where nobody has written them, as runs see it."""
        keys = (
            []
            if self.state_schema is None
            else [key for key in fields_of(self.state_schema) if scope_of(key) in SHARED]
        )
        starts = {key: self.channel_of(key).initial() for key in keys}  # type: ignore[union-attr]  # each field has one
        return {key: start for key, start in starts.items() if start is not MISSING}

    @property
    def shares(self) -> bool:
        """Whether its sessions may share keys."""
        return self.state_schema is None or any(scope_of(key) in SHARED for key in fields_of(self.state_schema))

    def channel_of(self, key: str) -> Channel | None:
        """Return the channel of a key; None for a plain one of a workflow without a schema."""
        return channel_of(self.state_schema, key)


class Sessions:
    """Where sessions are kept.

    Args:
        checkpointer: Keeps their runs; in memory if left out.
        store: Keeps what they share, the `user:` and `app:` keys; in memory if left out.
    """

    def __init__(self, checkpointer: Checkpointer | None = None, store: BaseStore | None = None) -> None:
        self.checkpointer: Checkpointer = InMemorySaver() if checkpointer is None else checkpointer
        self.store: BaseStore = InMemoryStore() if store is None else store
        self._apps: dict[str, App] = {}

    @property
    def blocking(self) -> bool:
        """Whether calls wait for a disk or a network."""
        return self.checkpointer.blocking or self.store.blocking

    def join(self, app_name: str, graph: Pregel[Any], state_schema: Any) -> App:
        """Say what an app's sessions are read with, and return it; a `Runner` does so."""
        app = self._apps[name_of(app_name, "the name of an app")] = App(graph, state_schema)
        return app

    def thread(self, app_name: str, user_id: str, session_id: str, app: App | None = None) -> Thread:
        """Return the thread of a session, whether it exists or not.

        Args:
            app_name: The app's name.
            user_id: Whose session.
            session_id: The session.
            app: What the session is read with; by default the workflow of the app's last `Runner`.

        Raises:
            InvalidIdError: One of the names can't be one.
            WorkflowConfigurationError: No `Runner` was made for the app.
        """
        app = app or self._apps.get(app_name)
        if app is None:
            raise WorkflowConfigurationError(
                f"sessions of the app {app_name!r} are read with its workflow, and nobody has named it."
                f"{nearest(app_name, self._apps)} Make its Runner(workflow, app_name={app_name!r}, sessions=...) first"
            )
        names = zip(
            ("the name of an app", "the id of a user", "the id of a session"),
            (app_name, user_id, session_id),
            strict=True,
        )
        return Thread(self, app, SessionName(*(name_of(value, what) for what, value in names)))

    def get(self, app_name: str, user_id: str, session_id: str) -> Session:
        """Return a session.

        Raises:
            SessionNotFoundError: There is none.
            WorkflowConfigurationError: No `Runner` was made for the app.
        """
        thread = self.thread(app_name, user_id, session_id)
        head = thread.head()
        if head is None:
            raise SessionNotFoundError(
                f"user {user_id!r} of app {app_name!r} has no session {session_id!r}."
                f"{nearest(session_id, [each.id for each in self.list(app_name, user_id)])}"
            )
        shared = {key: held.value for key, held in thread.held().items()}
        own = {key: value for key, value in head.state.items() if scope_of(key) not in SHARED}
        return Session(
            app_name,
            user_id,
            session_id,
            {**own, **thread.app.shared_starts(), **shared},
            tuple(shown(event, number) for number, event in enumerate(head.events, 1)),
            head.requests,
            head.next,
        )

    def list(self, app_name: str, user_id: str | None = None) -> list[SessionInfo]:
        """Return the sessions of an app, or of one of its users, in the order of their names."""
        start = f"{name_of(app_name, 'the name of an app')}/"
        if user_id is not None:
            start += f"{name_of(user_id, 'the id of a user')}/"
        return list(self._listed(start))

    def _listed(self, start: str) -> Iterator[SessionInfo]:
        """Yield the sessions whose threads begin with a text."""
        after = start
        while True:
            page = self.checkpointer.threads(limit=PAGE, after=after)
            for thread in page:
                if not thread.thread_id.startswith(start):
                    return
                if thread.checkpoints and thread.thread_id.count("/") == len(SessionName._fields) - 1:
                    yield SessionInfo(*SessionName(*thread.thread_id.split("/")), thread.created, thread.updated)
            if len(page) < PAGE:
                return
            after = page[-1].thread_id

    def delete(self, app_name: str, user_id: str, session_id: str) -> None:
        """Forget a session; one that is not there is left so. What it has published stays."""
        thread = self.thread(app_name, user_id, session_id)
        self.checkpointer.delete_thread(thread.id)
        thread.shared.forget()

    async def aget(self, app_name: str, user_id: str, session_id: str) -> Session:
        """Return a session, on asyncio or trio; see `get`."""
        return await self.off_loop(partial(self.get, app_name, user_id, session_id))  # type: ignore[no-any-return]  # of `get`

    async def alist(self, app_name: str, user_id: str | None = None) -> builtins.list[SessionInfo]:
        """Return the sessions of an app, on asyncio or trio; see `list`."""
        return await self.off_loop(partial(self.list, app_name, user_id))  # type: ignore[no-any-return]  # of `list`

    async def adelete(self, app_name: str, user_id: str, session_id: str) -> None:
        """Forget a session, on asyncio or trio; see `delete`."""
        await self.off_loop(partial(self.delete, app_name, user_id, session_id))

    async def off_loop(self, call: Callable[[], Any]) -> Any:
        """Call something, in a worker thread where it waits for a disk or a network."""
        return await off_loop(call) if self.blocking else call()


class Head(NamedTuple):
    """Where a session stands."""

    snapshot: StateSnapshot
    #: The keys of its state as its runs see them, by whole names.
    state: Mapping[str, Any]
    events: Sequence[StoredEvent]
    branch: int
    #: The versions of the shared keys that its last run began with.
    versions: Mapping[str, int]

    @property
    def requests(self) -> tuple[Interrupt, ...]:
        """What is asked."""
        return tuple(each for each in self.snapshot.interrupts if isinstance(each, Interrupt))

    @property
    def next(self) -> tuple[str, ...]:
        """The nodes that are due."""
        return self.snapshot.next


class Thread:
    """The thread of a session.

    Args:
        sessions: Where it is kept.
        app: The workflow.
        name: The session.

    Raises:
        InvalidIdError: The names together are too long for a thread.
    """

    def __init__(self, sessions: Sessions, app: App, name: SessionName) -> None:
        self.sessions = sessions
        self.app = app
        self.name = name
        self.id = check_id("/".join(name), "app/user/session, the name of a session's thread,")
        self.shared = Shared(sessions.store, name)

    @property
    def config(self) -> dict[str, Any]:
        """The config of its runs."""
        return {"configurable": {"thread_id": self.id}}

    def head(self, config: Mapping[str, Any] | None = None) -> Head | None:
        """Return where it stands, or stood at a checkpoint; None where nothing is stored."""
        snapshot = self.app.graph.get_state(self.config if config is None else config)
        if snapshot.metadata is None:
            return None
        values = snapshot.values
        branch = branch_of(snapshot.config)
        versions = snapshot.metadata.get(VERSIONS) or {}
        return Head(snapshot, self.app.state(values), values.get(EVENTS) or [], branch, versions)

    def log(self, head: Head) -> Log:
        """Return the events up to where it stands."""
        return Log(head.events, head.branch, partial(self.inherited, head.branch))

    def inherited(self, branch: int) -> int:
        """Return how many events a branch began with."""
        oldest = None
        for snapshot in self.app.graph.get_state_history(self.config):
            if branch_of(snapshot.config) == branch:
                oldest = snapshot
        return 0 if oldest is None else len(oldest.values.get(EVENTS) or [])

    def publish(self, log: Log, versions: Mapping[str, int]) -> None:
        """Publish what a session's events have changed since this was last done: see `Shared.publish`."""
        self.shared.publish(log, versions, self.app.channel_of)

    def settle(self) -> Head | None:
        """Publish what a run that was killed has left behind, and return where the session stands.

        Raises:
            ThreadBusyError: A run has the session.
            ScopeConflictError: Another session has changed a key meanwhile.
        """
        head = self.head()
        if not self.app.shares:
            return head
        if head is None:
            self.shared.forget()  # of a session of this name that was deleted
            return None
        if not self.shared.pending(self.log(head)):
            return head
        claim = Claim(self.sessions.checkpointer, self.id, "sync")
        holder = claim.attempt()
        if holder is not None:
            raise claim.refused(holder)
        try:
            head = self.head()  # as it is now that nobody changes it
            if head is not None:
                self.publish(self.log(head), head.versions)
        finally:
            claim.close()
        return head

    def held(self) -> dict[str, Held]:
        """Return what sessions share now."""
        return self.shared.read() if self.app.shares else {}

    def fresh(self, head: Head | None, held: Mapping[str, Held]) -> dict[str, Any]:
        """Return what a run must be told so that it begins with what the store holds, as updates by whole name.

        Raises:
            StateSchemaError: A value in the store is none that the schema takes.
        """
        schema = self.app.state_schema
        check = checker(schema, f"the store of app {self.name.app!r}")
        declared = None if schema is None else fields_of(schema)
        known = {key: value for key, value in held.items() if declared is None or key in declared}
        seen = {} if head is None else {key: value for key, value in head.state.items() if scope_of(key) in SHARED}
        updates: dict[str, Any] = {}
        for key, (value, _) in known.items():
            if not same(seen.get(key, MISSING), value):
                channel = self.app.channel_of(key)
                folds = channel is not None and not isinstance(channel, LastValue)
                new = check(key, Overwrite(value))
                updates[key] = new if folds else new.value
        for key, value in seen.items():
            if key in known:
                continue
            channel = self.app.channel_of(key)
            start = MISSING if channel is None else channel.initial()
            if not same(value, start):
                updates[key] = DELETE if start is MISSING else Overwrite(start)
        return updates


def same(left: Any, right: Any) -> bool:
    """Return whether two values are stored alike: equal ones of other types are not, anywhere in them."""
    if left is MISSING or right is MISSING:
        return left is right
    return left is right or encode(left) == encode(right)


def branch_of(config: Mapping[str, Any]) -> int:
    """Return the branch of the checkpoint that a config names."""
    return int(config["configurable"]["checkpoint_id"].partition(".")[0])


def name_of(value: object, what: str) -> str:
    """Return a part of a session's name.

    Raises:
        InvalidIdError: It can't be one.
    """
    name = check_id(value, what)
    if "/" in name:
        raise InvalidIdError(f"{what} has no slash, and {name!r} has one: a session's thread is app/user/session")
    return name


def fold_events(events: Iterable[Event | StoredEvent], state_schema: Any = None) -> dict[str, Any]:
    """Return the state that events lead to: that of their session, by whole names.

    Args:
        events: All events of a session, as it shows them or as its thread keeps them. Partial ones change nothing.
        state_schema: The schema of the workflow, whose defaults the state starts with and whose reducers fold.
    """
    state: dict[str, Any] = {}
    if state_schema is not None:
        starts = {key: channel_of(state_schema, key).initial() for key in fields_of(state_schema)}  # type: ignore[union-attr]  # each field has one
        state = {key: start for key, start in starts.items() if start is not MISSING}
    for event in events:
        for key, update in changes_of(event) if isinstance(event, Event) else writes_of(event):
            channel = channel_of(state_schema, key)
            new = settled(update) if channel is None else channel.apply(state.get(key, MISSING), (update,))
            if new is MISSING:
                state.pop(key, None)
            else:
                state[key] = new
    return state


def changes_of(event: Event) -> Iterator[tuple[str, Any]]:
    """Yield the changes of the state that an event tells of."""
    actions = event.actions
    for key, value in actions.state_delta.items():
        yield key, Overwrite(value) if key in actions.replaced else value
    for key in actions.deleted:
        yield key, DELETE
