"""How long to wait before a call is made again, and which errors are worth it."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from pregel.graph.agent.handling import FAULTS_OF_THE_GRAPH
from pregel.graph.agent.middleware.options import check_amount, check_count
from pregel.text import told

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["Backoff", "GivenUp", "OnFailure", "RetryOn", "Tries", "checked_tries", "task_of"]

T = TypeVar("T")
#: The exceptions after which a call is made again, or a function that says whether one is.
RetryOn: TypeAlias = "type[Exception] | tuple[type[Exception], ...] | Callable[[Exception], bool]"
#: What becomes of a call whose last attempt failed: a message of the error, the error itself, or a message of the
#: text that a function makes of it.
OnFailure: TypeAlias = "str | Callable[[Exception], str]"

#: Jitter makes a wait at most so much longer or shorter.
SPREAD: Final = 0.25
HASHED: Final = 2**32


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits that grow from one retry to the next."""

    #: The first wait, in seconds.
    initial_delay: float
    #: What each wait is multiplied by to give the next; 0 for waits of one length.
    backoff_factor: float
    #: No wait is longer, in seconds.
    max_delay: float
    #: Whether waits of different tasks differ by up to a quarter, so that what failed together does not come again
    #: together.
    jitter: bool

    def delay(self, retry: int, task: str) -> float:
        """Return the wait before a retry, in seconds.

        Args:
            retry: The retry's number, from 0.
            task: Who waits. The same gives the same wait, so that a run can be repeated.
        """
        try:
            grown = self.initial_delay * self.backoff_factor**retry if self.backoff_factor else self.initial_delay
        except OverflowError:  # after a thousand retries
            grown = self.max_delay
        wait = min(grown, self.max_delay)
        if not self.jitter:
            return wait
        digest = blake2b(f"{task}|{retry}".encode("utf-8", "surrogatepass"), digest_size=4).digest()
        return min(wait * (1 - SPREAD + 2 * SPREAD * int.from_bytes(digest) / HASHED), self.max_delay)


class GivenUp(NamedTuple):
    """How a call ended that is not made again."""

    error: Exception
    #: How many attempts have failed.
    failed: int


@dataclass(frozen=True, slots=True)
class Tries:
    """When a call is made again, and what becomes of one that fails for good."""

    max_retries: int
    retry_on: RetryOn
    on_failure: OnFailure
    backoff: Backoff

    def call(self, call: Callable[[], T], task: str, sleep: Callable[[float], None]) -> T | GivenUp:
        """Make a call until it answers or there are no attempts left.

        Args:
            call: Makes it once.
            task: See `Backoff.delay`.
            sleep: Waits so many seconds.

        Raises:
            Exception: A fault of the program, which no attempt can mend.
        """
        failed = 0
        while True:
            try:
                return call()
            except FAULTS_OF_THE_GRAPH:
                raise
            except Exception as error:  # noqa: BLE001 - the user says which are worth another attempt
                failed += 1
                wait = self.wait_after(error, failed, task)
                if wait is None:
                    return GivenUp(error, failed)
            sleep(wait)

    async def acall(
        self, call: Callable[[], Awaitable[T]], task: str, sleep: Callable[[float], Awaitable[None]]
    ) -> T | GivenUp:
        """Do the same, awaited."""
        failed = 0
        while True:
            try:
                return await call()
            except FAULTS_OF_THE_GRAPH:
                raise
            except Exception as error:  # noqa: BLE001 - as above
                failed += 1
                wait = self.wait_after(error, failed, task)
                if wait is None:
                    return GivenUp(error, failed)
            await sleep(wait)

    def wait_after(self, error: Exception, failed: int, task: str) -> float | None:
        """Return how long to wait before the next attempt, in seconds; None if there is none.

        Args:
            error: How the last attempt ended.
            failed: How many attempts have failed.
            task: See `Backoff.delay`.
        """
        if failed > self.max_retries or not self.is_worth(error):
            return None
        return self.backoff.delay(failed - 1, task)

    def is_worth(self, error: Exception) -> bool:
        """Return whether a call that ended in this error may be made again."""
        kinds = self.retry_on
        return isinstance(error, kinds) if isinstance(kinds, type | tuple) else bool(kinds(error))

    def last_words(self, given_up: GivenUp, what: str) -> str:
        """Return what to say in the place of a result.

        Args:
            given_up: How the call ended.
            what: What failed, as the beginning of a sentence.

        Raises:
            Exception: The error, where `on_failure` is "error".
        """
        error, failed = given_up
        if callable(self.on_failure):
            return self.on_failure(error)
        if self.on_failure == "error":
            error.add_note(f"{what} failed {times(failed)}.")
            raise error
        return f"{what} failed {times(failed)}. The last error was {told(error)}"


def times(count: int) -> str:
    """Return "once" or "n times"."""
    return "once" if count == 1 else f"{count} times"


def checked_tries(
    name: str,
    max_retries: int,
    retry_on: RetryOn,
    on_failure: OnFailure,
    backoff: Backoff,
) -> Tries:
    """Return the options of a retry middleware, checked.

    Raises:
        ValueError: One has a value that it can't have; the message names the middleware and the option.
    """
    check_count(name, "max_retries", max_retries)
    for option in ("initial_delay", "backoff_factor", "max_delay"):
        check_amount(name, option, getattr(backoff, option))
    if not callable(on_failure) and on_failure not in {"continue", "error"}:
        raise ValueError(
            f"{name}(on_failure={on_failure!r}): it is 'continue' (a message tells the error), 'error' (the error is "
            "raised), or a function from the error to the text of the message"
        )
    kinds = retry_on if isinstance(retry_on, tuple) else (retry_on,)
    if not callable(retry_on) and not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        raise ValueError(
            f"{name}(retry_on={retry_on!r}): it is an exception class, a tuple of these, or a function from the error "
            "to whether the call is made again"
        )
    return Tries(max_retries, retry_on, on_failure, backoff)


def task_of(runtime: Any) -> str:
    """Return the id of the task that makes a call, or an empty text where none is known."""
    return getattr(runtime, "task_id", None) or ""
