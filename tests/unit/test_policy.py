"""What follows a failure, as a function of values."""

import errno
import socket
import urllib.error
from email.message import Message
from functools import partial

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pregel.errors import (
    AttemptRevokedError,
    ConcurrentRunError,
    GraphDefinitionError,
    InvalidUpdateError,
    NodeCancelledError,
    NodeTimeoutError,
    PregelError,
)
from pregel.policy import Policy, delay, read_cache_policy, read_retries
from pregel.types import CachePolicy, RetryPolicy, default_retry_on


def foreign(module, name, base=Exception, **attributes):
    """Return an error of a class of another library."""
    made = type(name, (base,), {"__module__": module, **attributes})
    return made("it")


def answered(status, module="httpx", name="HTTPStatusError"):
    """Return an error with the HTTP answer that it is about."""
    return foreign(module, name, response=type("Response", (), {"status_code": status})())


def http_error(status):
    return urllib.error.HTTPError("http://x", status, "it", Message(), None)


BASE = foreign("httpx", "TransportError").__class__

RETRIED = [
    ConnectionError(), ConnectionRefusedError(), ConnectionResetError(), BrokenPipeError(), TimeoutError(),
    NodeTimeoutError("late"), socket.gaierror(), OSError(errno.EHOSTUNREACH, "it"),
    OSError(errno.ENETDOWN, "it"),
    foreign("httpx", "ConnectError", foreign("httpx", "NetworkError", BASE).__class__),
    foreign("httpx._exceptions", "ReadTimeout", foreign("httpx", "TimeoutException", BASE).__class__),
    foreign("httpx", "RemoteProtocolError", BASE), foreign("httpx2", "NetworkError"),
    foreign("requests.exceptions", "ConnectionError", OSError), foreign("requests.exceptions", "Timeout", OSError),
    foreign("urllib3.exceptions", "ProtocolError"), foreign("aiohttp.client_exceptions", "ClientConnectionError"),
    foreign("openai", "APIConnectionError"), foreign("anthropic", "APIConnectionError"),
    foreign("trio", "TooSlowError"),
    answered(500), answered(502), answered(503), answered(599), answered(429), answered(503, "requests", "HTTPError"),
    foreign("openai", "RateLimitError", status_code=429), foreign("openai", "InternalServerError", status_code=500),
    foreign("aiohttp", "ClientResponseError", status=502), http_error(503),
    urllib.error.URLError(ConnectionRefusedError()),
    foreign("mine", "UnavailableError", ConnectionError, code=14),  # a number that is no status says nothing
    ExceptionGroup("two", [ConnectionError(), ExceptionGroup("one", [TimeoutError()])]),
]  # fmt: skip

NOT_RETRIED = [
    ValueError(), TypeError(), KeyError(), IndexError(), AttributeError(), NameError(), ZeroDivisionError(),
    AssertionError(), NotImplementedError(), RuntimeError(), RecursionError(), MemoryError(), UnicodeError(),
    ImportError(), StopIteration(), Exception(), OSError(), FileNotFoundError(errno.ENOENT, "it"), PermissionError(),
    foreign("pydantic_core", "ValidationError", ValueError), foreign("json", "JSONDecodeError", ValueError),
    foreign("httpx", "UnsupportedProtocol", BASE), foreign("httpx", "InvalidURL"), foreign("mine", "ConnectError"),
    answered(400), answered(401), answered(403), answered(404), answered(422), answered(600), answered(True),
    foreign("openai", "BadRequestError", status_code=400), foreign("openai", "AuthenticationError", status_code=401),
    foreign("requests.exceptions", "HTTPError", ConnectionError, status_code=404), http_error(404),
    urllib.error.URLError("unknown url type"), urllib.error.URLError(ValueError()),
    PregelError(), NodeCancelledError(), InvalidUpdateError(), ConcurrentRunError(), AttemptRevokedError(),
    ExceptionGroup("two", [ConnectionError(), ValueError()]),
]  # fmt: skip


@pytest.mark.parametrize("error", RETRIED, ids=repr)
def test_case_42_what_may_be_gone_is_tried_again(error):
    assert default_retry_on(error) is True


@pytest.mark.parametrize("error", NOT_RETRIED, ids=repr)
def test_case_42_errors_in_a_program_and_of_a_request_are_not(error):
    assert default_retry_on(error) is False


def test_errors_of_httpx_are_known_by_their_real_classes():
    request = httpx.Request("GET", "http://x")
    status = httpx.HTTPStatusError("it", request=request, response=httpx.Response(503, request=request))
    refused = httpx.HTTPStatusError("it", request=request, response=httpx.Response(404, request=request))

    assert all(map(default_retry_on, (status, httpx.ConnectError("it"), httpx.ReadTimeout("it"))))
    assert not any(map(default_retry_on, (refused, httpx.UnsupportedProtocol("it"), httpx.InvalidURL("it"))))


def waits(policy, errors, task="1:0:a"):
    """Return the waits after errors, one after the other; None is the end."""
    failures, found = (), []
    for error in errors:
        wait, failures = policy.after(error, failures, task)
        found.append(wait)
    return found


def test_waits_grow_up_to_the_longest():
    policy = Policy((RetryPolicy(1, 3, 10, 6, jitter=False),))

    assert waits(policy, [TimeoutError()] * 6) == [1, 3, 9, 10, 10, None]


def test_a_policy_of_one_attempt_is_none():
    assert waits(Policy((RetryPolicy(max_attempts=1),)), [TimeoutError()]) == [None]


def test_without_a_policy_nothing_is_tried_again():
    assert waits(Policy(), [TimeoutError()]) == [None]


def test_the_first_policy_that_is_about_an_error_decides_even_when_it_gives_up():
    policies = (
        RetryPolicy(retry_on=KeyError, max_attempts=2, jitter=False),
        RetryPolicy(retry_on=lambda error: True, initial_interval=8, max_attempts=9, jitter=False),
    )

    assert waits(Policy(policies), [KeyError(), ValueError(), KeyError()]) == [0.5, 8, None]


def test_a_run_that_has_lost_its_thread_is_not_tried_again_whatever_the_policy_says():
    assert waits(Policy((RetryPolicy(retry_on=Exception),)), [ConcurrentRunError()]) == [None]


def test_a_thousand_attempts_do_not_overflow():
    assert delay(RetryPolicy(max_interval=60, jitter=False), 5_000, "t") == 60


@given(st.text(), st.integers(1, 50), st.floats(0, 1e6), st.floats(0, 100), st.floats(0, 1e6))
def test_a_wait_depends_on_the_task_and_the_failures_alone_and_jitter_moves_it_by_a_quarter(
    task, failed, initial, factor, longest
):
    steady = delay(RetryPolicy(initial, factor, longest, jitter=False), failed, task)
    moved = delay(RetryPolicy(initial, factor, longest), failed, task)

    assert moved == delay(RetryPolicy(initial, factor, longest), failed, task)
    assert 0.75 * steady <= moved <= min(1.25 * steady, longest)


def test_tasks_that_fail_together_do_not_come_again_together():
    assert len({delay(RetryPolicy(), 1, f"1:{place}:a") for place in range(100)}) == 100


class Judge:
    async def __call__(self, error):
        return True


async def judge(error):
    return True


AWAITED = {"function": judge, "object": Judge(), "partial": partial(judge), "partial object": partial(Judge())}


@pytest.mark.parametrize("judging", AWAITED.values(), ids=AWAITED)
def test_what_would_have_to_be_awaited_decides_nothing(judging):
    """A coroutine is true: such a predicate would retry whatever comes, and such a key would be no key."""
    with pytest.raises(GraphDefinitionError, match="sync function"):
        read_retries(RetryPolicy(retry_on=judging), "node 'a'")
    with pytest.raises(GraphDefinitionError, match="sync function"):
        read_cache_policy(CachePolicy(key_func=judging), "node 'a'")
