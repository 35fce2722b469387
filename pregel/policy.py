"""What happens to a task beside one run of its node: whether it is tried again, when it is given up, who takes over.

Everything here is a function of values: no clock is read and no number is drawn, so a run can be repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from pregel.callables import is_async
from pregel.errors import ConcurrentRunError, GraphDefinitionError
from pregel.types import CachePolicy, RetryPolicy, TimeoutPolicy

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from pregel.node import Node

__all__ = [
    "Failures",
    "Policy",
    "delay",
    "read_cache_policy",
    "read_retries",
    "read_timeout",
]

#: Jitter makes a wait at most so much longer or shorter.
SPREAD: Final = 0.25
HASHED: Final = 2**32
#: How often each retry policy of a node has counted a failure.
Failures = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """What a node has that is not simply run; made by `compile`, and checked."""

    retries: tuple[RetryPolicy, ...] = ()
    #: Seconds that an attempt may take, and that it may give no sign of life.
    run_timeout: float | None = None
    idle_timeout: float | None = None
    #: What runs in place of the node when it has failed for good: its code with the node's own view, and no edges.
    handler: Node | None = None
    cache: CachePolicy | None = None
    #: What runs its code somewhere else.
    executor: Executor | None = None

    @property
    def is_timed(self) -> bool:
        """Whether an attempt can be given up before its end."""
        return self.run_timeout is not None or self.idle_timeout is not None

    @property
    def is_empty(self) -> bool:
        """Whether it asks for nothing."""
        return not (self.retries or self.is_timed or self.handler or self.cache or self.executor)

    def is_beyond(self, error: Exception) -> bool:
        """Return whether an error is nobody's to handle: another run has the thread, so nothing comes of this one."""
        return isinstance(error, ConcurrentRunError)

    def after(self, error: Exception, failures: Failures, task_id: str) -> tuple[float | None, Failures]:
        """Return what follows a failure: the wait before the next attempt in seconds, or None if there is none.

        The first policy that retries the error decides, by the failures that it has counted itself.

        Args:
            error: How the attempt ended.
            failures: What the policies have counted before; empty after the first attempt.
            task_id: The task; waits of different tasks differ.

        Returns:
            The wait, and what the policies have counted now.
        """
        if self.is_beyond(error):
            return None, failures
        counted = list(failures or (0,) * len(self.retries))
        for place, policy in enumerate(self.retries):
            if retries(policy, error):
                counted[place] += 1
                again = counted[place] < policy.max_attempts
                return delay(policy, counted[place], task_id) if again else None, tuple(counted)
        return None, tuple(counted)


def retries(policy: RetryPolicy, error: Exception) -> bool:
    """Return whether a policy is about an error."""
    kinds = policy.retry_on
    return isinstance(error, kinds) if isinstance(kinds, type | tuple) else bool(kinds(error))


def delay(policy: RetryPolicy, failed: int, task_id: str) -> float:
    """Return the wait after a failure, in seconds.

    Args:
        policy: The policy.
        failed: How many failures it has counted, from 1.
        task_id: Who waits; the same gives the same wait.
    """
    try:
        grown = policy.initial_interval * policy.backoff_factor ** (failed - 1)
    except OverflowError:  # after a thousand attempts
        grown = policy.max_interval
    wait = min(grown, policy.max_interval)
    if not policy.jitter:
        return wait
    share = crc32(f"{task_id}|{failed}".encode("utf-8", "surrogatepass")) / HASHED
    return min(wait * (1 - SPREAD + 2 * SPREAD * share), policy.max_interval)


def read_retries(given: Any, where: str) -> tuple[RetryPolicy, ...]:
    """Return the retry policies of a node, checked.

    Args:
        given: One, a sequence of them (an empty one for none), or None.
        where: How messages name the node.

    Raises:
        GraphDefinitionError: One is none, or has a value that can't be.
    """
    if given is None:
        return ()
    several = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else (given,)
    for policy in several:
        if not isinstance(policy, RetryPolicy):
            raise GraphDefinitionError(f"retry_policy of {where} takes a RetryPolicy or a list of them, not {given!r}")
        check_retries(policy, f"of the retry policy of {where}")
    return several


def check_retries(policy: RetryPolicy, where: str) -> None:
    """Check the values of a retry policy.

    Args:
        policy: The policy.
        where: How messages name it.

    Raises:
        GraphDefinitionError: One can't be.
    """
    for name in ("initial_interval", "backoff_factor", "max_interval"):
        if not is_number(getattr(policy, name)):
            raise GraphDefinitionError(f"{name} {where} is {getattr(policy, name)!r}: it takes a number, 0 or more")
    if not isinstance(policy.jitter, bool):
        raise GraphDefinitionError(
            f"jitter {where} is {policy.jitter!r}: it takes True, or False for waits that differ by nothing"
        )
    if type(policy.max_attempts) is not int or policy.max_attempts < 1:
        raise GraphDefinitionError(
            f"max_attempts {where} is {policy.max_attempts!r}: it takes a whole number of at least 1, the first "
            "attempt among them"
        )
    kinds = policy.retry_on if isinstance(policy.retry_on, tuple) else (policy.retry_on,)
    if all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        return
    if isinstance(policy.retry_on, type) or not is_sync_function(policy.retry_on):
        raise GraphDefinitionError(
            f"retry_on {where} is {policy.retry_on!r}: it takes an exception class, a tuple of these, or a sync "
            "function from the error to whether there is another attempt"
        )


def read_timeout(given: Any, where: str) -> tuple[float | None, float | None]:
    """Return the two timeouts of a node in seconds, checked.

    Raises:
        GraphDefinitionError: One is no time.
    """
    policy = given if isinstance(given, TimeoutPolicy) else TimeoutPolicy(given)
    return seconds(policy.run_timeout, "timeout", where), seconds(policy.idle_timeout, "idle_timeout", where)


def seconds(given: Any, option: str, where: str) -> float | None:
    """Return a time in seconds.

    Raises:
        GraphDefinitionError: It is no time, or none that passes.
    """
    if given is None:
        return None
    total_seconds = getattr(given, "total_seconds", None)  # a timedelta's; the core knows no clock
    found = given if total_seconds is None else total_seconds()
    if not is_number(found) or found == 0:
        raise GraphDefinitionError(
            f"{option} of {where} takes seconds, a timedelta or a TimeoutPolicy, more than 0, not {given!r}"
        )
    return float(found)


def read_cache_policy(given: Any, where: str) -> CachePolicy | None:
    """Return the cache policy of a node, checked.

    Raises:
        GraphDefinitionError: It is none, or has a value that can't be.
    """
    if given is None:
        return None
    if not isinstance(given, CachePolicy):
        raise GraphDefinitionError(f"cache_policy of {where} takes a CachePolicy, not {given!r}")
    if given.key_func is not None and not is_sync_function(given.key_func):
        raise GraphDefinitionError(
            f"key_func of the cache policy of {where} is {given.key_func!r}: it takes a sync function from what the "
            "node is given to what its result depends on"
        )
    if given.ttl is not None and (not is_number(given.ttl) or given.ttl == 0):
        raise GraphDefinitionError(f"ttl of the cache policy of {where} takes seconds, more than 0, not {given.ttl!r}")
    return given


def is_sync_function(value: Any) -> bool:
    """Return whether something can be called and answers at once: a coroutine is true, whatever would come of it."""
    return callable(value) and not is_async(value)


def is_number(value: object) -> bool:
    """Return whether a value is a number of at least 0, and no infinite one."""
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value >= 0
