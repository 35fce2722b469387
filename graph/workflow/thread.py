"""The thread of a session: where it stands, and what a run of it begins with."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pregel.channels.base import MISSING, Overwrite
from pregel.channels.keyed import DELETE
from pregel.channels.last_value import LastValue
from pregel.checkpoint.claim import Claim
from pregel.codec import encode
from pregel.errors import GraphChangedError
from pregel.graph.workflow.errors import WorkflowConfigurationError
from pregel.graph.workflow.incoming import out_field
from pregel.graph.workflow.running import EVENTS, TURN
from pregel.graph.workflow.schema import channel_of, checker, fields_of
from pregel.graph.workflow.scopes import SHARED, scope_of
from pregel.graph.workflow.shared import Log, Shared, shared_writes
from pregel.graph.workflow.state import STATE
from pregel.ids import check_id
from pregel.types import Interrupt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pregel.channels.base import Channel
    from pregel.graph.workflow.event import Output, StoredEvent
    from pregel.graph.workflow.sessions import Sessions
    from pregel.graph.workflow.shared import Held, SessionName
    from pregel.main import Pregel
    from pregel.types import StateSnapshot

__all__ = ["App", "Head", "Thread", "branch_of"]

#: Where the metadata of a run's checkpoints has the versions of the shared keys that it began with.
VERSIONS: Final = "shared_versions"


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

    def path_of(self, request: Interrupt, workflow: str) -> str:
        """Return the path of the node of this workflow that asks something.

        Args:
            request: What is asked.
            workflow: The name of the workflow.
        """
        values = self.snapshot.values
        name = next((task.name for task in self.snapshot.tasks if request in task.interrupts), "")
        last: Output | None = values.get(out_field(name))
        number = last.run + 1 if last is not None and last.turn == values.get(TURN) else 1
        return f"{workflow}@1/{name}@{number}"

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
        _, user, session = self.name
        return {"configurable": {"thread_id": self.id, "user_id": user, "session_id": session}}

    def head(self, config: Mapping[str, Any] | None = None) -> Head | None:
        """Return where it stands, or stood at a checkpoint; None where nothing is stored.

        Raises:
            GraphChangedError: It holds something of a node or key that is gone.
        """
        try:
            snapshot = self.app.graph.get_state(self.config if config is None else config)
        except GraphChangedError as error:
            error.add_note(
                "A Runner is told by migrations= too: Migration() if nodes are gone, Migration(nodes={old: new}) if "
                "they have other names."
            )
            raise
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
        """Publish what a session's events have changed since this was last done: see `Shared.publish`.

        Raises:
            WorkflowConfigurationError: The store would forget it before the session is forgotten.
        """
        if self.sessions.forgets:
            keys = ", ".join(map(repr, shared_writes(log.events)))
            raise WorkflowConfigurationError(
                f"session {self.name.session!r} has written {keys}, which sessions share, and nothing would be left of "
                "that at the end of the process: the sessions are kept, and their store is in memory. Give a store "
                "that is kept too, Sessions(checkpointer, SqliteStore(...)); what was written is published then. Or "
                "say Sessions(checkpointer, InMemoryStore()) if it may be forgotten"
            )
        self.shared.publish(log, versions, self.app.channel_of)

    def settle(self) -> Head | None:
        """Publish what a run that was killed has left behind, and return where the session stands.

        Raises:
            ThreadBusyError: A run has the session.
            WorkflowConfigurationError: See `publish`.
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
