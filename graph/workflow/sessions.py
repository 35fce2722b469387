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

from pregel.checkpoint.memory import InMemorySaver
from pregel.drivers.offloop import off_loop
from pregel.errors import InvalidIdError, nearest
from pregel.graph.workflow.errors import SessionNotFoundError, WorkflowConfigurationError
from pregel.graph.workflow.event import Event, shown
from pregel.graph.workflow.scopes import SHARED, scope_of
from pregel.graph.workflow.shared import SessionName
from pregel.graph.workflow.thread import App, Thread
from pregel.ids import check_id
from pregel.store.memory import InMemoryStore
from pregel.types import Interrupt  # noqa: TC001 - read by who asks for the hints of a session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pregel.checkpoint.base import Checkpointer
    from pregel.main import Pregel
    from pregel.store.base import BaseStore

__all__ = ["Session", "SessionInfo", "Sessions"]

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


class Sessions:
    """Where sessions are kept.

    Args:
        checkpointer: Keeps their runs; in memory if left out.
        store: Keeps what they share, the `user:` and `app:` keys; in memory if left out, which is an error when such a
            key is written and the checkpointer is one that outlives the process.
    """

    def __init__(self, checkpointer: Checkpointer | None = None, store: BaseStore | None = None) -> None:
        self.checkpointer: Checkpointer = InMemorySaver() if checkpointer is None else checkpointer
        self.store: BaseStore = InMemoryStore() if store is None else store
        #: Whether what sessions share is gone sooner than they are, and nobody has said that it may be.
        self.forgets = store is None and self.checkpointer.blocking
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


def name_of(value: object, what: str) -> str:
    """Return a part of a session's name.

    Raises:
        InvalidIdError: It can't be one.
    """
    name = check_id(value, what)
    if "/" in name:
        raise InvalidIdError(f"{what} has no slash, and {name!r} has one: a session's thread is app/user/session")
    return name
