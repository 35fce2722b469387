"""What sessions share: the `user:` and `app:` keys, as the store keeps them, and how a run's changes get there.

Theory of operation. A run reads the shared keys at its start, with the versions of their items. What it changes stands
in its session's events until the run ends, pauses or fails; then all is published in one transaction of the store. The
same transaction moves the session's position: how many of its events are published. So events are published once,
whenever a process dies: what a killed run has left behind is published when the session is next run.

A plain key is compared and set: its item must be in the version that the run began with. Updates of a key with a
reducer are folded into what the item holds now. Where another session was faster meanwhile, all of this is done again.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from pregel.channels.base import MISSING, Overwrite
from pregel.channels.keyed import DELETE
from pregel.channels.last_value import LastValue
from pregel.errors import ConcurrentPutError
from pregel.graph.workflow.errors import ScopeConflictError
from pregel.graph.workflow.event import writes_of
from pregel.graph.workflow.scopes import SHARED, scope_of
from pregel.store.base import GetOp, Item, PutOp, SearchOp
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pregel.channels.base import Channel
    from pregel.graph.workflow.event import StoredEvent
    from pregel.store.base import BaseStore, Namespace

__all__ = ["Held", "Log", "SessionName", "Shared", "settled", "shared_writes"]

#: The first label of everything that workflows keep in a store.
ROOT: Final = "workflow"


class SessionName(NamedTuple):
    """Names a session."""

    app: str
    user: str
    session: str

    def namespace(self, scope: str) -> Namespace:
        """Return where the store has the keys of a scope."""
        return (ROOT, self.app, "app") if scope == "app" else (ROOT, self.app, "user", self.user)

    @property
    def positions(self) -> Namespace:
        """Where the store has the positions of the user's sessions."""
        return (ROOT, self.app, "published", self.user)


class Held(NamedTuple):
    """A shared key as it was read."""

    value: Any
    version: int


class Log(NamedTuple):
    """The events of a session, as far as they may be published."""

    events: Sequence[StoredEvent]
    #: The branch of the thread that they are on: what is rewound goes on on another one.
    branch: int
    #: Returns how many of them stood on the branch when it began.
    inherited: Callable[[], int]


class Shared:
    """The shared keys of one session.

    Args:
        store: Where they are kept.
        name: The session.
    """

    def __init__(self, store: BaseStore, name: SessionName) -> None:
        self.store = store
        self.name = name

    def read(self) -> dict[str, Held]:
        """Return all keys of the user and of the app, by whole names."""
        found = self.store.batch([SearchOp(self.name.namespace(scope), limit=sys.maxsize) for scope in SHARED])
        return {
            f"{scope}:{item.key}": Held(item.value["value"], item.version)
            for scope, items in zip(SHARED, cast("list[list[Item]]", found), strict=True)
            for item in items
        }

    def pending(self, log: Log) -> bool:
        """Return whether something of a session's events is not published."""
        if not shared_writes(log.events):
            return False
        return bool(shared_writes(log.events[self.first(self.position(), log) :]))

    def publish(self, log: Log, bases: Mapping[str, int], channel_of: Callable[[str], Channel | None]) -> None:
        """Publish what a session's events have changed since this was last done.

        Args:
            log: The events.
            bases: The versions that the run began with, by whole name; a key that is not there had no item.
            channel_of: Returns the channel that a schema gives a key.

        Raises:
            ScopeConflictError: Another session has changed a plain key since. Nothing of these events is published,
                now or later.
            EncodeError: A value can't be stored.
        """
        while shared_writes(log.events):
            at = self.position()
            writes = shared_writes(log.events[self.first(at, log) :])
            if not writes:
                return
            items = self.current(writes)
            clashes: list[str] = []
            puts: list[PutOp] = []
            for key, updates in writes.items():
                channel, item = channel_of(key), items[key]
                if channel is None or isinstance(channel, LastValue):
                    if version_of(item) != bases.get(key, 0):
                        clashes.append(clash(key, updates[-1], item))
                    puts.append(self.put(key, settled(updates[-1]), bases.get(key, 0)))
                else:
                    puts.append(self.put(key, folded(channel, item, updates), version_of(item)))
            refused = list(writes) if clashes else []
            position = {"branch": log.branch, "count": len(log.events), "refused": refused}
            moved = PutOp(self.name.positions, self.name.session, position, version_of(at))
            try:
                self.store.batch([moved, *([] if clashes else puts)])
            except ConcurrentPutError:
                continue
            if clashes:
                raise ScopeConflictError(conflict_text(self.name, clashes, writes))
            return

    def position(self) -> Item | None:
        """Return the item that says how many events are published."""
        return self.store.get(self.name.positions, self.name.session)

    def rewind(self, branch: int, count: int) -> None:
        """Let the session go on from earlier events on another branch; what it has published stays so."""
        self.store.put(self.name.positions, self.name.session, {"branch": branch, "count": count, "refused": []})

    def first(self, at: Item | None, log: Log) -> int:
        """Return how many of a log's events are published."""
        if at is not None and at.value["branch"] == log.branch:
            return int(at.value["count"])
        return 0 if log.branch == 0 else log.inherited()

    def current(self, keys: Iterable[str]) -> dict[str, Item | None]:
        """Return the items of some keys."""
        wanted = {key: GetOp(*self.at(key)) for key in keys}
        return dict(zip(wanted, cast("list[Item | None]", self.store.batch(wanted.values())), strict=True))

    def at(self, key: str) -> tuple[Namespace, str]:
        """Return where the item of a key is."""
        return self.name.namespace(scope_of(key)), key.partition(":")[2]

    def put(self, key: str, value: Any, expected: int) -> PutOp:
        """Return what stores a value, or deletes where there is none."""
        return PutOp(*self.at(key), None if value is MISSING else {"value": value}, expected)

    def forget(self) -> None:
        """Forget the session's position, if there is one."""
        if self.position() is not None:
            self.store.delete(self.name.positions, self.name.session)


def shared_writes(events: Iterable[StoredEvent]) -> dict[str, list[Any]]:
    """Return what nodes have written to shared keys, in order. What events of the user say was read from the store."""
    found: dict[str, list[Any]] = {}
    for event in events:
        if not event.path or not (event.delta or event.deleted):
            continue
        for key, update in writes_of(event):
            if ":" in key:
                found.setdefault(key, []).append(update)
    return found


def settled(update: Any) -> Any:
    """Return what the last update of a plain key leaves; `MISSING` for nothing."""
    if update is DELETE:
        return MISSING
    return update.value if type(update) is Overwrite else update


def folded(channel: Channel, item: Item | None, updates: Iterable[Any]) -> Any:
    """Return what an item holds with updates folded in, one after the other; `MISSING` for nothing."""
    value = channel.initial() if item is None else item.value["value"]
    for update in updates:
        value = channel.apply(value, (update,))
    return value


def version_of(item: Item | None) -> int:
    """Return the version of an item, as `expected` takes it."""
    return 0 if item is None else item.version


def clash(key: str, update: Any, item: Item | None) -> str:
    """Return how two sessions contradict each other."""
    mine = "deleted it" if update is DELETE else f"wrote {show(settled(update))}"
    theirs = "is gone" if item is None else f"holds {show(item.value['value'])}"
    return (
        f"the key {key!r}, to which it {mine}, {theirs} now"
        if update is not DELETE
        else (f"the key {key!r}, which it deleted, {theirs} now")
    )


def conflict_text(name: SessionName, clashes: Sequence[str], writes: Iterable[str]) -> str:
    """Return what is said of a conflict."""
    return (
        f"session {name.session!r} of user {name.user!r} began with values that another session has changed since: "
        f"{'; '.join(clashes)}. Nothing that it wrote to shared keys ({', '.join(writes)}) was published, and its next "
        "run reads what the store holds. Give such a key a reducer (Annotated[int, operator.add, Scope(...)]), or let "
        "one session at a time write it"
    )
