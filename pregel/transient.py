"""Which errors may be gone when the same thing is tried again: what a `RetryPolicy` retries that does not say it."""

from __future__ import annotations

import errno
from typing import Any, Final

from pregel.errors import NodeExecutorError, NodeTimeoutError, PregelError

__all__ = ["default_retry_on"]

TOO_MANY_REQUESTS: Final = 429
SERVER_ERRORS: Final = range(500, 600)
#: Other numbers are codes of something else.
STATUSES: Final = range(100, 600)
#: Of the library's own errors.
OURS: Final = (NodeExecutorError, NodeTimeoutError)
#: Of the operating system's errors, beside Python's `ConnectionError` and `TimeoutError`: no way to the other host.
UNREACHABLE: Final = frozenset(
    {errno.ENETDOWN, errno.ENETUNREACH, errno.ENETRESET, errno.EHOSTDOWN, errno.EHOSTUNREACH}
)
#: Connections that fail and time out, of libraries that do not say so by Python's own classes. Each class is named by
#: the package that it is defined in, so that none of them has to be imported.
HTTPX: Final = ("TimeoutException", "NetworkError", "RemoteProtocolError")
ANSWERS: Final = ("APIConnectionError",)
CONNECTION: Final = frozenset(
    (package, name)
    for package, names in {
        "httpx": HTTPX,
        "httpx2": HTTPX,
        "httpcore": HTTPX,
        "requests": ("ConnectionError", "Timeout", "ChunkedEncodingError"),
        "urllib3": ("TimeoutError", "NewConnectionError", "ProtocolError"),
        "aiohttp": ("ClientConnectionError",),
        "openai": ANSWERS,
        "anthropic": ANSWERS,
        "socket": ("gaierror",),
        "trio": ("TooSlowError",),
    }.items()
    for name in names
)


def default_retry_on(error: Exception) -> bool:
    """Return whether an error may be gone at the next attempt.

    Connections that fail, what takes too long, and answers of an HTTP server that say so: 429 and 5xx. Never an error
    in a program (`ValueError`, `TypeError`, `KeyError`, ...), nor an answer that another attempt gets again (404). Of
    the library's own errors only `NodeTimeoutError` and `NodeExecutorError`. A group counts if each error in it does.
    """
    if isinstance(error, ExceptionGroup):
        return all(map(default_retry_on, error.exceptions))
    if isinstance(error, PregelError):
        return isinstance(error, OURS)
    status = status_of(error)
    if status is not None:
        return status == TOO_MANY_REQUESTS or status in SERVER_ERRORS
    reason = getattr(error, "reason", None)  # where `urllib` has what went wrong
    if isinstance(reason, Exception):
        error = reason
    return (
        isinstance(error, (ConnectionError, TimeoutError))
        or (isinstance(error, OSError) and error.errno in UNREACHABLE)
        or any((kind.__module__.partition(".")[0], kind.__name__) in CONNECTION for kind in type(error).__mro__)
    )


def status_of(error: Exception) -> int | None:
    """Return the status of the HTTP answer that an error is about, or None where it is about none."""
    response = getattr(error, "response", None)
    places: tuple[tuple[Any, str], ...] = ((error, "status_code"), (response, "status_code"), (error, "status"))
    for holder, name in (*places, (response, "status"), (error, "code")):
        status = getattr(holder, name, None)
        if isinstance(status, int) and status in STATUSES:
            return int(status)
    return None
