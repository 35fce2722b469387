"""How code finds out that nobody waits for it any more: its run was left, or its attempt was given up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pregel.errors import AttemptRevokedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

__all__ = ["AttemptToken", "Token"]


class Token:
    """Whether a run was left before its end; asked before each task, so that nothing begins after it.

    Args:
        outer: The token of the run inside whose task this one takes place.
    """

    __slots__ = ("_cancelled", "_outer", "_watchers")

    #: Whether something of the same task may have been done and stored by an earlier attempt.
    repeats = False

    def __init__(self, outer: Token | None = None) -> None:
        self._cancelled = False
        self._outer = outer
        self._watchers: list[Callable[[], None]] | None = None

    def cancel(self) -> None:
        """Say that the run is left, and with it the runs inside it."""
        self._cancelled = True
        for call in tuple(self._watchers or ()):
            call()

    def cancelled(self) -> bool:
        """Return whether this run, or one around it, was left."""
        return self._cancelled or (self._outer is not None and self._outer.cancelled())

    def attempts(self) -> Iterator[AttemptToken]:
        """Yield the attempts that this run is a part of, the innermost first."""
        token: Token | None = self
        while token is not None:
            if isinstance(token, AttemptToken):
                yield token
            token = token._outer  # noqa: SLF001 - of the same class

    def check(self) -> None:
        """Check that the attempts this run is a part of still count.

        Raises:
            AttemptRevokedError: One was given up.
        """
        if any(token.revoked for token in self.attempts()):
            raise AttemptRevokedError(
                "this code goes on in an attempt that was given up: it took too long, or failed while a part of it "
                "still ran. Nothing of it counts any more. Code that takes long asks runtime.cancelled() and ends"
            )

    def watch(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call something when the run is left, on any thread, or at once where it was; return what undoes that."""
        chain: list[list[Callable[[], None]]] = []
        token: Token | None = self
        while token is not None:
            if token._watchers is None:  # noqa: SLF001 - of the same class, here and below
                token._watchers = []  # noqa: SLF001
            token._watchers.append(call)  # noqa: SLF001
            chain.append(token._watchers)  # noqa: SLF001
            token = token._outer  # noqa: SLF001
        if self.cancelled():
            call()

        def undo() -> None:
            for watchers in chain:
                watchers.remove(call)

        return undo


class AttemptToken(Token):
    """Whether one attempt at a task still counts. Only tasks whose node has a policy have one.

    Args:
        outer: The token of the run.
        repeats: Whether it is not the first attempt.
        hold: Lets one thread at a time past: a lock.
    """

    __slots__ = ("_after", "_hold", "repeats", "revoked")

    def __init__(self, outer: Token, *, repeats: bool, hold: AbstractContextManager[Any]) -> None:
        super().__init__(outer)
        self.repeats = repeats
        self.revoked = False
        self._hold = hold
        self._after: list[Callable[[], None]] = []

    def revoke(self) -> None:
        """Say that nothing counts any more that the attempt does from now on."""
        self.revoked = True
        self.cancel()

    def settle(self) -> None:
        """Wait for what the attempt was storing when it was revoked, and clear up after it."""
        with self._hold:
            while self._after:
                self._after.pop()()

    def after(self, call: Callable[[], None]) -> None:
        """Clear up in this way if the attempt is revoked."""
        self._after.append(call)

    def within(self, call: Callable[[], Any]) -> Any:
        """Call something that must not happen once the attempt is revoked, nor while that is settled.

        Raises:
            AttemptRevokedError: It is revoked.
        """
        with self._hold:
            self.check()
            around = next(self._outer.attempts(), None)  # type: ignore[union-attr]  # it is a part of a run
            return call() if around is None else around.within(call)
