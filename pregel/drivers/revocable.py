"""What the code of an attempt holds in its hands, and loses when the attempt is given up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pregel.store.base import BaseStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pregel.cancellation import AttemptToken
    from pregel.store.base import Op, Result

__all__ = ["RevocableStore", "RevocableWriter"]


class RevocableWriter:
    """Passes parts of a stream on.

    Args:
        write: Takes them.
        beat: Takes each as a sign of life, and raises `AttemptRevokedError` once the attempt is given up.
    """

    __slots__ = ("beat", "write")

    def __init__(self, write: Callable[[Any], None], beat: Callable[[], None]) -> None:
        self.write = write
        self.beat = beat

    def __call__(self, part: Any) -> None:
        """Take a part."""
        self.beat()
        self.write(part)


class RevocableStore(BaseStore):
    """Does what a store does; what belongs to one kind of store only is found here too.

    Args:
        store: The store.
        attempt: What uses it.
    """

    def __init__(self, store: BaseStore, attempt: AttemptToken) -> None:
        self._store = store
        self._attempt = attempt

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Perform operations; see `BaseStore.batch`.

        Raises:
            AttemptRevokedError: The attempt was given up; nothing was done.
        """
        self._attempt.check()
        return self._store.batch(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Perform operations on asyncio or trio.

        Raises:
            AttemptRevokedError: The attempt was given up; nothing was done.
        """
        self._attempt.check()
        return await self._store.abatch(ops)

    def close(self) -> None:
        """Close the store."""
        self._store.close()
