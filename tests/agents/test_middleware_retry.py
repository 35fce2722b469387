"""Calls that fail are made again, later and later; and other models are asked."""

from types import SimpleNamespace

import anyio
import pytest
import trio
from trio.testing import MockClock

from pregel import Command, InMemorySaver, interrupt
from pregel.errors import (
    GraphDefinitionError,
    GraphInterrupt,
    InvalidConfigError,
    InvalidUpdateTypeError,
    MissingStoreError,
    SchemaError,
)
from pregel.graph.agent.create import create_agent
from pregel.graph.agent.middleware.backoff import Backoff
from pregel.graph.agent.middleware.decorators import wrap_model_call, wrap_tool_call
from pregel.graph.agent.middleware.model_fallback import ModelFallbackMiddleware
from pregel.graph.agent.middleware.model_retry import ModelRetryMiddleware
from pregel.graph.agent.middleware.tool_retry import ToolRetryMiddleware
from pregel.graph.agent.models import ModelError, ScriptedModel
from pregel.graph.agent.requests import ModelRequest, ModelResponse, ToolCallRequest
from pregel.graph.messages import AIMessage, ToolMessage


class Handler:
    """Gives what it was told, one after the other, in both forms; exceptions are raised."""

    def __init__(self, *results):
        self.results = list(results)
        self.requests = []

    def __call__(self, request):
        self.requests.append(request)
        result = self.results.pop(0)
        if isinstance(result, BaseException):
            raise result
        return result

    async def awaited(self, request):
        return self(request)


@pytest.fixture(params=["sync", "asyncio", "trio"])
def way(request):
    return request.param


def wrapped(way, middleware, method, request, handler):
    """Call a wrapper in one of the three ways."""
    if way == "sync":
        return getattr(middleware, method)(request, handler)

    async def main():
        return await getattr(middleware, f"a{method}")(request, handler.awaited)

    return anyio.run(main, backend=way)


class Waits(list):
    """Two sleeps that only note how long they would last."""

    def options(self):
        async def asleep(seconds):
            self.append(seconds)

        return {"sleep": self.append, "asleep": asleep}


def model_request():
    return ModelRequest("first model", [], runtime=SimpleNamespace(task_id="t|1:0:model"))


def tool_request(name="search", call_id="c1"):
    call = {"name": name, "args": {}, "id": call_id}
    return ToolCallRequest(call, None, {}, SimpleNamespace(task_id="t|2:0:tools"))


FINE = ModelResponse([AIMessage("fine")])
SECOND, THIRD = ScriptedModel([]), ScriptedModel([])


def test_a_model_is_called_again_until_it_answers(way):
    waits, handler = Waits(), Handler(OSError("one"), OSError("two"), FINE)
    middleware = ModelRetryMiddleware(jitter=False, **waits.options())
    assert wrapped(way, middleware, "wrap_model_call", model_request(), handler) is FINE
    assert waits == [1.0, 2.0]


def test_a_model_that_never_answers_ends_with_a_message_that_says_so(way):
    waits, handler = Waits(), Handler(*[OSError("down")] * 3)
    middleware = ModelRetryMiddleware(jitter=False, **waits.options())
    message = wrapped(way, middleware, "wrap_model_call", model_request(), handler)
    assert message.text == "The call of the model failed 3 times. The last error was OSError: down"
    assert handler.results == []


def test_the_last_error_can_be_raised(way):
    middleware = ModelRetryMiddleware(max_retries=0, on_failure="error")
    with pytest.raises(OSError, match="down") as caught:
        wrapped(way, middleware, "wrap_model_call", model_request(), Handler(OSError("down")))
    assert caught.value.__notes__ == ["The call of the model failed once."]


def test_the_last_words_can_be_a_function_of_the_error(way):
    middleware = ModelRetryMiddleware(max_retries=0, on_failure=lambda error: f"sorry, {error}")
    message = wrapped(way, middleware, "wrap_model_call", model_request(), Handler(OSError("down")))
    assert message.text == "sorry, down"


@pytest.mark.parametrize("retry_on", [OSError, (OSError, TypeError), lambda error: isinstance(error, OSError)])
def test_other_errors_are_not_worth_another_attempt(way, retry_on):
    waits, handler = Waits(), Handler(KeyError("x"), FINE)
    middleware = ModelRetryMiddleware(retry_on=retry_on, on_failure="error", **waits.options())
    with pytest.raises(KeyError):
        wrapped(way, middleware, "wrap_model_call", model_request(), handler)
    assert (waits, len(handler.requests)) == ([], 1)


def test_a_tool_is_called_again_until_it_answers(way):
    waits, answer = Waits(), ToolMessage("found", tool_call_id="c1")
    handler = Handler(OSError("one"), answer)
    middleware = ToolRetryMiddleware(jitter=False, initial_delay=0.5, **waits.options())
    assert wrapped(way, middleware, "wrap_tool_call", tool_request(), handler) is answer
    assert waits == [0.5]


def test_a_tool_that_never_answers_is_answered_for(way):
    middleware = ToolRetryMiddleware(max_retries=1, **Waits().options())
    handler = Handler(OSError("down"), OSError("still down"))
    message = wrapped(way, middleware, "wrap_tool_call", tool_request(), handler)
    assert (message.tool_call_id, message.name, message.status) == ("c1", "search", "error")
    assert message.text == "Tool 'search' failed 2 times. The last error was OSError: still down"


def test_only_the_named_tools_are_called_again(way):
    def lookup():
        """A tool."""

    middleware = ToolRetryMiddleware(tools=[lookup, "fetch"], **Waits().options())
    with pytest.raises(OSError, match="down"):
        wrapped(way, middleware, "wrap_tool_call", tool_request("search"), Handler(OSError("down")))
    for name in ("lookup", "fetch"):
        answer = ToolMessage("found", tool_call_id="c1")
        handler = Handler(OSError("down"), answer)
        assert wrapped(way, middleware, "wrap_tool_call", tool_request(name), handler) is answer


def test_a_pause_is_no_failure(way):
    for middleware, method, request in (
        (ModelRetryMiddleware(), "wrap_model_call", model_request()),
        (ToolRetryMiddleware(), "wrap_tool_call", tool_request()),
        (ModelFallbackMiddleware(SECOND), "wrap_model_call", model_request()),
    ):
        handler = Handler(GraphInterrupt())
        with pytest.raises(GraphInterrupt):
            wrapped(way, middleware, method, request, handler)
        assert len(handler.requests) == 1


def test_waits_grow_up_to_a_bound():
    backoff = Backoff(1.0, 3.0, 10.0, jitter=False)
    assert [backoff.delay(retry, "") for retry in range(4)] == [1.0, 3.0, 9.0, 10.0]
    assert backoff.delay(100_000, "") == 10.0
    assert Backoff(2.0, 0, 10.0, jitter=False).delay(7, "") == 2.0


def test_jitter_is_the_same_for_the_same_task_and_differs_between_tasks():
    backoff = Backoff(10.0, 2.0, 1000.0, jitter=True)
    waits = [backoff.delay(0, f"task {number}") for number in range(50)]
    assert waits == [backoff.delay(0, f"task {number}") for number in range(50)]
    assert len(set(waits)) == 50
    assert all(7.5 <= wait <= 12.5 for wait in waits)


def test_jitter_stays_below_the_bound():
    backoff = Backoff(10.0, 2.0, 10.0, jitter=True)
    assert max(backoff.delay(0, str(number)) for number in range(50)) == 10.0


def test_calls_beside_each_other_wait_differently():
    waits = Waits()
    middleware = ToolRetryMiddleware(max_retries=1, **waits.options())
    for call_id in ("c1", "c2"):
        middleware.wrap_tool_call(tool_request(call_id=call_id), Handler(OSError(), OSError()))
    assert len(set(waits)) == 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"max_retries": -1}, "max_retries=-1"),
        ({"initial_delay": -0.5}, "initial_delay=-0.5"),
        ({"backoff_factor": float("nan")}, "backoff_factor=nan"),
        ({"max_delay": -1}, "max_delay=-1"),
        ({"on_failure": "ignore"}, "on_failure='ignore'"),
        ({"retry_on": "OSError"}, "retry_on='OSError'"),
        ({"retry_on": (OSError, int)}, "retry_on="),
    ],
)
@pytest.mark.parametrize("kind", [ModelRetryMiddleware, ToolRetryMiddleware])
def test_an_option_that_can_not_be_is_refused(kind, options, told):
    with pytest.raises(ValueError) as caught:
        kind(**options)
    assert told in str(caught.value)
    assert kind.__name__ in str(caught.value)


def test_one_name_in_place_of_a_list_of_tools_is_refused():
    with pytest.raises(ValueError, match="give a list"):
        ToolRetryMiddleware(tools="search")


def test_another_model_is_asked_when_one_fails(way):
    handler = Handler(OSError("one"), OSError("two"), FINE)
    middleware = ModelFallbackMiddleware(SECOND, THIRD)
    assert wrapped(way, middleware, "wrap_model_call", model_request(), handler) is FINE
    assert [request.model for request in handler.requests] == ["first model", SECOND, THIRD]


def test_the_last_error_is_raised_and_tells_of_the_others(way):
    handler = Handler(OSError("one"), KeyError("two"), OSError("three"))
    middleware = ModelFallbackMiddleware(SECOND, THIRD)
    with pytest.raises(OSError, match="three") as caught:
        wrapped(way, middleware, "wrap_model_call", model_request(), handler)
    assert caught.value.__notes__ == [
        "The agent's model failed before with OSError: one",
        "Fallback model 1 failed before with KeyError: 'two'",
    ]


def test_a_name_that_names_no_model_is_refused_when_the_middleware_is_made():
    with pytest.raises(ModelError, match="provider:model"):
        ModelFallbackMiddleware("second")


def test_under_async_others_go_on_while_a_call_waits():
    """On a clock that jumps when all tasks wait: an hour passes at once, unless something blocks the loop."""
    order = []

    async def other():
        await trio.sleep(1800)
        order.append("other")

    async def main():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(other)
            middleware = ModelRetryMiddleware(initial_delay=3600, max_delay=3600, jitter=False)
            handler = Handler(OSError("down"), FINE)
            assert await middleware.awrap_model_call(model_request(), handler.awaited) is FINE
            order.append("call")

    trio.run(main, clock=MockClock(autojump_threshold=0))
    assert order == ["other", "call"]


def asked_for(*names):
    return AIMessage(
        tool_calls=[
            {"name": name, "args": {}, "id": f"c{place}", "type": "tool_call"} for place, name in enumerate(names)
        ]
    )


def test_in_an_agent_tools_are_called_again_beside_each_other(door):
    waits, tries = Waits(), []

    def shaky() -> str:
        """Fails once."""
        tries.append("shaky")
        if tries.count("shaky") == 1:
            raise OSError("down")
        return "up"

    def broken() -> str:
        """Fails always."""
        tries.append("broken")
        raise OSError("gone")

    middleware = ToolRetryMiddleware(max_retries=2, jitter=False, **waits.options())
    graph = create_agent(
        ScriptedModel([asked_for("shaky", "broken"), "done"]), [shaky, broken], middleware=[middleware]
    )
    result = door.invoke(graph, {"messages": ["go"]})
    assert [(message.text, message.status) for message in result["messages"] if message.type == "tool"] == [
        ("up", "success"),
        ("Tool 'broken' failed 3 times. The last error was OSError: gone", "error"),
    ]
    assert sorted(waits) == [1.0, 1.0, 2.0]
    assert (tries.count("shaky"), tries.count("broken")) == (2, 3)


def test_in_an_agent_a_tool_that_asks_waits_for_the_answer(door):
    def ask() -> str:
        """Ask."""
        return f"answer {interrupt('which?')}"

    thread = {"configurable": {"thread_id": "t"}}
    graph = create_agent(
        ScriptedModel([asked_for("ask"), "done"]),
        [ask],
        middleware=[ToolRetryMiddleware(**Waits().options())],
        checkpointer=InMemorySaver(),
    )
    assert door.invoke(graph, {"messages": ["go"]}, thread)["__interrupt__"][0].value == "which?"
    assert door.invoke(graph, Command(resume=42), thread)["messages"][2].text == "answer 42"


def test_in_an_agent_each_model_is_tried_again_before_the_next(door):
    first = ScriptedModel([OSError("one"), OSError("two")])
    second = ScriptedModel([OSError("three"), "fine"])
    retry = ModelRetryMiddleware(max_retries=1, on_failure="error", **Waits().options())
    graph = create_agent(first, middleware=[ModelFallbackMiddleware(second), retry])
    assert door.invoke(graph, {"messages": ["go"]})["messages"][-1].text == "fine"
    assert (len(first.calls), len(second.calls)) == (2, 2)


class Flaky:
    """A tool that fails some times and then answers, and the model that calls it once."""

    def __init__(self, *failures):
        self.failures = list(failures)
        self.made = 0

    def search(self, query: str) -> str:
        """Search."""
        self.made += 1
        if self.failures:
            raise self.failures.pop(0)
        return "found"

    def agent(self, *middleware, args=None, **options):
        call = {"name": "search", "args": {"query": "q"} if args is None else args, "id": "c1"}
        model = ScriptedModel([AIMessage("", tool_calls=[call]), "done"])
        return create_agent(model, [self.search], middleware=middleware, **options)

    def told(self, door, *middleware, **options):
        """Return what the model is told."""
        return door.invoke(self.agent(*middleware, **options), {"messages": "hi"})["messages"][2]


def test_a_tool_whose_errors_the_model_is_told_is_called_again_first(door):
    flaky, waits = Flaky(OSError("one"), OSError("two")), Waits()
    retry = ToolRetryMiddleware(jitter=False, **waits.options())
    told = flaky.told(door, retry, handle_tool_errors=True)
    assert (told.content, told.status, flaky.made, waits) == ("found", "success", 3, [1.0, 2.0])


def test_the_model_is_told_of_an_error_that_the_retries_raise_at_last(door):
    flaky, waits = Flaky(*map(OSError, "123")), Waits()
    retry = ToolRetryMiddleware(on_failure="error", **waits.options())
    told = flaky.told(door, retry, handle_tool_errors=True)
    assert (told.content, told.status, flaky.made) == ("Error: OSError: 3", "error", 3)


def test_arguments_that_do_not_fit_are_not_tried_again(door):
    flaky, waits = Flaky(), Waits()
    told = flaky.told(door, ToolRetryMiddleware(**waits.options()), args={"query": []})
    assert "query" in told.content
    assert (told.status, flaky.made, waits) == ("error", 0, [])


def test_an_error_of_a_wrapper_is_not_told_to_the_model_as_one_of_the_tool(door):
    @wrap_tool_call
    def broken(request, handler):
        handler(request)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Flaky().told(door, broken, handle_tool_errors=True)


FAULTS = [
    GraphDefinitionError("no such tool"),
    InvalidUpdateTypeError("no answer"),
    MissingStoreError("no store"),
    SchemaError("no schema"),
    InvalidConfigError("no thread"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
@pytest.mark.parametrize(
    ("method", "request_of"), [("wrap_model_call", model_request), ("wrap_tool_call", tool_request)]
)
def test_a_fault_of_the_program_is_raised_at_once_and_no_answer(way, method, request_of, fault):
    waits, handler = Waits(), Handler(fault)
    kind = ModelRetryMiddleware if method == "wrap_model_call" else ToolRetryMiddleware
    with pytest.raises(type(fault)) as caught:
        wrapped(way, kind(**waits.options()), method, request_of(), handler)
    assert caught.value is fault
    assert waits == []


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_no_other_model_is_asked_after_a_fault_of_the_program(way, fault):
    handler = Handler(fault, FINE)
    with pytest.raises(type(fault)):
        wrapped(way, ModelFallbackMiddleware(SECOND), "wrap_model_call", model_request(), handler)
    assert len(handler.requests) == 1


def test_a_wrapper_that_answers_nonsense_behind_a_retry_ends_the_run(door):
    @wrap_model_call
    def broken(request, handler):
        return "text"

    waits = Waits()
    agent = create_agent(ScriptedModel(["fine"]), middleware=[ModelRetryMiddleware(**waits.options()), broken])
    with pytest.raises(InvalidUpdateTypeError, match="returned 'text'"):
        door.invoke(agent, {"messages": "hi"})
    assert waits == []
