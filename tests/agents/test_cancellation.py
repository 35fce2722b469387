"""What becomes of an agent that is cancelled, or whose reader leaves: it waits for its threads and begins nothing."""

import asyncio
import gc
import threading
from contextlib import aclosing, closing
from functools import partial
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.to_thread
import pytest
import trio
import trio.testing
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage as LangChainAIMessage
from langchain_core.messages import AIMessageChunk as LangChainChunk
from langchain_core.outputs import ChatGenerationChunk

from pregel import START, MessagesState, StateGraph
from pregel.drivers import workers
from pregel.graph.agent import AgentMiddleware, ScriptedModel, create_agent, tool
from pregel.graph.agent.middleware import (
    LLMToolSelectorMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
    ToolRetryMiddleware,
)
from pregel.graph.agent.middleware.tool_selection import SELECT
from pregel.graph.agent.models import AIMessageChunk
from pregel.graph.messages import AIMessage, HumanMessage
from pregel.runtime import message_writer
from tests.chat_server import ChatServer, Reply, delta, streamed

ASKED = {"messages": [HumanMessage("hi", id="q")]}


@pytest.fixture
def one_thread():
    """One thread for the sync code of each loop."""
    yield from limited(1)


@pytest.fixture
def few_threads():
    """Few threads for the sync code of each loop."""
    yield from limited(3)


def limited(number):
    before = workers.thread_limit()
    workers.set_thread_limit(number)
    yield number
    workers.set_thread_limit(before)


@tool
async def fast() -> str:
    """Take no time: with an async tool all of them are awaited."""
    return "fast"


@tool
def other() -> str:
    """Do something else."""
    return "other"


def calls(*names):
    """A message of the model that calls tools without arguments."""
    return AIMessage("", tool_calls=[{"name": name, "args": {}, "id": f"{place}"} for place, name in enumerate(names)])


class Held:
    """Sync code that a test holds until it says so, and that notes whether it has ended."""

    def __init__(self):
        self.began = threading.Event()
        self.go_on = threading.Event()
        self.ended = False

    def __call__(self):
        self.began.set()
        assert self.go_on.wait(30)
        self.ended = True


async def cancelled_while(held, run, how):
    """Cancel a run while it is held in a thread; return whether the code had ended when the run ended."""
    seen = []
    timeout, scope = asyncio.timeout(None), anyio.CancelScope()

    async def watched():
        try:
            await run()
        finally:
            seen.append(held.ended)

    async def within():
        if how == "timeout":
            async with timeout:
                await watched()
        else:
            with scope:
                await watched()

    task = asyncio.ensure_future(within())
    assert await asyncio.to_thread(held.began.wait, 30)
    if how == "cancel":
        task.cancel()
    elif how == "timeout":
        timeout.reschedule(asyncio.get_running_loop().time())
    else:
        scope.cancel()
    await turns()
    held.go_on.set()
    ends = {"cancel": asyncio.CancelledError, "timeout": TimeoutError, "scope": type(None)}
    (end,) = await asyncio.gather(task, return_exceptions=True)
    assert type(end) is ends[how]
    return seen


async def turns():
    """Let the loop turn some times, in which a run that waits for nothing ends."""
    for _ in range(20):
        await asyncio.sleep(0)


def sync_tool(held):
    """An agent with a sync tool that runs beside an async one, and so in a thread of its own."""

    @tool
    def slow() -> str:
        """Take long."""
        held()
        return "done"

    return create_agent(ScriptedModel([calls("slow"), "never"]), [slow, fast])


def sync_model(held):
    """An agent with a sync model behind an async wrapper."""

    class Model:
        def invoke(self, messages, **options):
            held()
            return AIMessage("done")

    class Around(AgentMiddleware):
        async def awrap_model_call(self, request, handler):
            return await handler(request)

    return create_agent(Model(), middleware=[Around()])


def sync_wrapper(held):
    """An agent with a sync wrapper around an async model."""

    class Around(AgentMiddleware):
        def wrap_model_call(self, request, handler):
            held()
            return AIMessage("done")

    return create_agent(ScriptedModel(["never"]), middleware=[Around()])


def sync_tool_wrapper(held):
    """An agent with a sync wrapper around an async tool."""

    class Around(AgentMiddleware):
        def wrap_tool_call(self, request, handler):
            held()
            return handler(request)

    return create_agent(ScriptedModel([calls("fast"), "never"]), [fast], middleware=[Around()])


MAKERS = [sync_tool, sync_model, sync_wrapper, sync_tool_wrapper]


# --- Threads of a cancelled run ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["cancel", "timeout", "scope"])
@pytest.mark.parametrize("make", MAKERS)
def test_a_cancelled_run_waits_for_code_in_threads(make, how):
    held = Held()
    agent = make(held)

    assert asyncio.run(cancelled_while(held, lambda: agent.ainvoke(ASKED), how)) == [True]


@pytest.mark.parametrize("make", MAKERS)
def test_a_run_whose_loop_ends_waits_for_code_in_threads(make):
    held, seen = Held(), []

    async def until_cancelled():
        try:
            await asyncio.Event().wait()
        finally:
            await turns()
            held.go_on.set()

    async def main():
        task = asyncio.ensure_future(make(held).ainvoke(ASKED))
        task.add_done_callback(lambda _: seen.append(held.ended))
        releasing = asyncio.ensure_future(until_cancelled())
        assert await asyncio.to_thread(held.began.wait, 30)
        return task, releasing

    task, _ = asyncio.run(main())

    assert task.cancelled()
    assert seen == [True]


def test_a_call_that_waits_for_a_thread_is_never_made_once_its_run_is_cancelled(loop, one_thread):
    first, made = Held(), []

    @tool
    def held() -> str:
        """Take long."""
        made.append("held")
        first()
        return "done"

    async def main():
        async with anyio.create_task_group() as group:
            for _ in range(2):
                group.start_soon(partial(held.acall, {}))
            assert await anyio.to_thread.run_sync(first.began.wait, 30)
            group.cancel_scope.cancel()
            first.go_on.set()

    loop.run(main)
    assert made == ["held"]


def test_what_a_tool_runs_in_a_thread_begins_nothing_once_the_run_is_cancelled(loop):
    held, begun = Held(), []
    inner = (
        StateGraph(MessagesState)
        .add_sequence([("first", lambda state: held() or {}), ("second", lambda state: begun.append("second") or {})])
        .add_edge(START, "first")
        .compile()
    )

    @tool
    def run() -> str:
        """Run a graph."""
        begun.append("tool")
        inner.invoke(ASKED)
        begun.append("end")
        return "done"

    async def main():
        async with anyio.create_task_group() as group:
            group.start_soon(create_agent(ScriptedModel([calls("run")]), [run, fast]).ainvoke, ASKED)
            assert await anyio.to_thread.run_sync(held.began.wait, 30)
            group.cancel_scope.cancel()
            await_turns(group, held)

    def await_turns(group, held):
        async def go_on():
            with anyio.CancelScope(shield=True):
                for _ in range(20):
                    await anyio.lowlevel.checkpoint()
                held.go_on.set()

        group.start_soon(go_on)

    loop.run(main)
    assert begun == ["tool"]


@pytest.mark.parametrize("what", ["model", "tool"])
def test_a_sync_wrapper_that_tries_again_is_stopped_by_the_cancellation(loop, what):
    began, tries = anyio.Event(), []

    async def forever():
        tries.append("once")
        began.set()
        await anyio.sleep_forever()

    class Model:
        async def ainvoke(self, messages, **options):
            await forever()

    @tool
    async def endless() -> str:
        """Never end."""
        await forever()

    class Again(AgentMiddleware):
        def wrap_model_call(self, request, handler):
            return self.again(request, handler)

        def wrap_tool_call(self, request, handler):
            return self.again(request, handler)

        def again(self, request, handler):
            while True:
                try:
                    return handler(request)
                except Exception:
                    tries.append("again")

    model = Model() if what == "model" else ScriptedModel([calls("endless")])

    async def main():
        async with anyio.create_task_group() as group:
            group.start_soon(create_agent(model, [endless], middleware=[Again()]).ainvoke, ASKED)
            await began.wait()
            group.cancel_scope.cancel()

    loop.run(main)
    assert tries == ["once"]


def test_what_a_tool_raises_in_a_thread_comes_out_as_it_is(loop):
    @tool
    def broken() -> str:
        """Fail."""
        raise SystemExit(3)

    with pytest.raises(SystemExit) as raised:
        loop.run(lambda: create_agent(ScriptedModel([calls("broken")]), [broken, fast]).ainvoke(ASKED))
    assert raised.value.code == 3


# --- Agents on trio ---------------------------------------------------------------------------------------------------


def test_the_waits_of_retries_end_with_their_scope_on_trio():
    model = ScriptedModel(lambda messages: ConnectionError("down"))
    agent = create_agent(
        model, middleware=[ModelRetryMiddleware(max_retries=4, initial_delay=1, backoff_factor=1, jitter=False)]
    )

    async def main():
        with trio.move_on_after(2.5) as scope:
            await agent.ainvoke(ASKED)
        return scope.cancelled_caught, trio.current_time()

    clock = trio.testing.MockClock(autojump_threshold=0)
    start = clock.current_time()
    assert trio.run(main, clock=clock) == (True, start + 2.5)
    assert len(model.calls) == 3


def test_the_waits_of_tool_retries_end_with_their_scope_on_trio():
    tried = []

    @tool
    async def down() -> str:
        """Fail."""
        tried.append("down")
        raise ConnectionError("down")

    agent = create_agent(
        ScriptedModel([calls("down")]),
        [down],
        middleware=[ToolRetryMiddleware(max_retries=4, initial_delay=1, backoff_factor=1, jitter=False)],
    )

    async def main():
        with trio.move_on_after(2.5) as scope:
            await agent.ainvoke(ASKED)
        return scope.cancelled_caught

    assert trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert len(tried) == 3


@pytest.mark.parametrize("place", ["alone", "in a graph"])
@pytest.mark.parametrize("stream", [False, True])
def test_requests_of_a_cancelled_agent_end_at_once(loop, place, stream):
    from pregel.graph.agent.models import OpenAIChat

    reply = streamed(delta(content="one"), after="stall") if stream else Reply(b"", after="stall")

    async def main():
        model = OpenAIChat("m", base_url=server.url, api_key="key", timeout=1, max_retries=1)
        graph = create_agent(model, middleware=[ModelRetryMiddleware(max_retries=2, initial_delay=0)])
        if place == "in a graph":
            graph = StateGraph(MessagesState).add_node("agent", graph).add_edge(START, "agent").compile()

        async def run():
            if not stream:
                await graph.ainvoke(ASKED)
            async with aclosing(graph.astream(ASKED, stream_mode="messages", subgraphs=True)) as parts:
                async for _ in parts:
                    pass

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await anyio.to_thread.run_sync(server.arrived.acquire)
            group.cancel_scope.cancel()
        gc.collect(1)

    with ChatServer(reply, reply, reply) as server:
        loop.run(main)
    assert len(server.asked) == 1


def test_models_of_langchain_are_called_in_a_thread_on_trio(loop):
    threads = []

    class Model(GenericFakeChatModel):
        def _generate(self, *given, **options):
            threads.append(threading.get_ident())
            return super()._generate(*given, **options)

    agent = create_agent(Model(messages=iter([LangChainAIMessage("ok")])))
    result = loop.invoke(agent, ASKED)

    assert result["messages"][-1].text == "ok"
    # On asyncio its `ainvoke` is awaited, which calls `_generate` in a thread of asyncio's.
    assert threads != [threading.get_ident()]


def test_of_the_users_middleware_with_both_forms_the_sync_one_runs_on_trio(loop):
    found = []

    class Mine(AgentMiddleware):
        def before_model(self, state, runtime):
            found.append(("hook", "sync"))

        async def abefore_model(self, state, runtime):
            await asyncio.sleep(0)
            found.append(("hook", "async"))

        def wrap_model_call(self, request, handler):
            found.append(("wrapper", "sync"))
            return handler(request)

        async def awrap_model_call(self, request, handler):
            await asyncio.sleep(0)
            found.append(("wrapper", "async"))
            return await handler(request)

    loop.invoke(create_agent(ScriptedModel(["ok"]), middleware=[Mine()]), ASKED)

    form = "async" if loop.way == "asyncio" else "sync"
    assert found == [("hook", form), ("wrapper", form)]


@pytest.mark.parametrize("says", [None, False, True, "yes"])
def test_a_node_may_say_that_its_async_form_runs_on_any_loop(loop, says):
    found = []

    class Node:
        any_loop = says

        def invoke(self, state):
            found.append("sync")
            return {}

        async def ainvoke(self, state):
            found.append("async")
            return {}

    loop.invoke(StateGraph(MessagesState).add_node("node", Node()).add_edge(START, "node").compile(), ASKED)

    assert found == ["async" if loop.way == "asyncio" or says is True else "sync"]


# --- Readers that leave -----------------------------------------------------------------------------------------------

MANY = 100_000


class Endless:
    """A sync model that speaks for long; it notes what it has said, and when nobody listens any more."""

    def __init__(self):
        self.said = 0
        self.closed = False

    def invoke(self, messages, **options):
        raise AssertionError("it is streamed")

    def stream(self, messages, **options):
        try:
            for self.said in range(MANY):
                yield AIMessageChunk("word ")
        finally:
            self.closed = True


class EndlessLangChain(GenericFakeChatModel):
    """The same of LangChain."""

    notes: Any

    def _stream(self, *given, **options):
        for self.notes.said in range(MANY):
            yield ChatGenerationChunk(message=LangChainChunk("word "))


def leave_after_one(door, graph):
    """Read one part of a graph's messages, and leave."""
    if door.way == "sync":
        with closing(graph.stream(ASKED, stream_mode="messages")) as parts:
            next(parts)
        return

    async def main():
        async with aclosing(graph.astream(ASKED, stream_mode="messages")) as parts:
            await anext(parts)

    door.run(main)


@pytest.mark.parametrize("around", [[], [ModelRetryMiddleware()]])
def test_a_sync_model_stops_when_its_reader_leaves(door, around):
    model = Endless()

    leave_after_one(door, create_agent(model, middleware=around))

    assert model.closed
    assert model.said < MANY - 1


def test_a_sync_model_of_langchain_stops_when_its_reader_leaves(door):
    notes = SimpleNamespace()
    model = EndlessLangChain(messages=iter(()), notes=notes)

    leave_after_one(
        door,
        StateGraph(MessagesState)
        .add_sequence([("ask", lambda state: {"messages": model.invoke("x")})])
        .add_edge(START, "ask")
        .compile(),
    )

    assert notes.said < MANY - 1


def test_a_model_in_a_graph_inside_stops_when_the_reader_leaves(door):
    model = Endless()
    inner = create_agent(model)
    graph = StateGraph(MessagesState).add_node("agent", inner).add_edge(START, "agent").compile()

    def parts_of(**options):
        return {"stream_mode": "messages", "subgraphs": True, **options}

    if door.way == "sync":
        with closing(graph.stream(ASKED, **parts_of())) as parts:
            next(parts)
    else:

        async def main():
            async with aclosing(graph.astream(ASKED, **parts_of())) as parts:
                await anext(parts)

        door.run(main)

    assert model.closed
    assert model.said < MANY - 1


def test_a_whole_answer_that_comes_after_its_reader_has_left_is_no_reason_to_stop(door):
    left, found = threading.Event(), []

    def ask(state):
        tell = message_writer()
        tell(AIMessageChunk("a", id="1"))
        assert left.wait(30)
        tell(AIMessage("whole", id="2"))
        found.append("went on")
        return {}

    graph = StateGraph(MessagesState).add_node(ask).add_edge(START, "ask").compile()
    if door.way == "sync":
        with closing(graph.stream(ASKED, stream_mode="messages")) as parts:
            next(parts)
            left.set()
    else:

        async def main():
            async with aclosing(graph.astream(ASKED, stream_mode="messages")) as parts:
                await anext(parts)
                left.set()

        door.run(main)

    assert found == ["went on"]


# --- What middleware asks ---------------------------------------------------------------------------------------------


class LangChainModel(GenericFakeChatModel):
    """A model of LangChain that may be told of tools."""

    def bind_tools(self, tools, **options):
        return self.bind(tools=tools, **options)


def langchain(*answers):
    """A model of LangChain with answers."""
    return LangChainModel(messages=iter([LangChainAIMessage(answer) for answer in answers]))


class Selecting(LangChainModel):
    """The same, which thinks aloud before it chooses a tool."""

    def _stream(self, *given, **options):
        chosen = {"name": SELECT, "args": '{"tools": ["fast"]}', "id": "s", "index": 0}
        yield ChatGenerationChunk(message=LangChainChunk("let me see "))
        yield ChatGenerationChunk(message=LangChainChunk("", tool_call_chunks=[chosen]))


def test_what_middleware_asks_a_model_of_its_own_is_not_told(door):
    summary = SummarizationMiddleware(langchain("in short nothing"), trigger=("messages", 2), keep=("messages", 1))
    agent = create_agent(langchain("one two"), middleware=[summary])
    given = {"messages": [HumanMessage("a", id="a"), AIMessage("b", id="b"), HumanMessage("c", id="c")]}

    parts = door.stream(agent, given, stream_mode="messages")

    said = [message.text for message, about in parts if message.text.strip() and about["node"] == "model"]
    assert said == ["one", "two"]
    # Only the message that comes into the state tells of it, whole.
    rest = [message for message, about in parts if about["node"] != "model"]
    assert [message.type for message in rest] == ["human"]


def test_what_the_selector_of_tools_asks_is_not_told(door):
    selector = LLMToolSelectorMiddleware(model=Selecting(messages=iter(())), max_tools=1)
    agent = create_agent(langchain("one two"), [fast, other], middleware=[selector])

    parts = door.stream(agent, ASKED, stream_mode="messages")

    assert [message.text for message, _ in parts if message.text.strip()] == ["one", "two"]


# --- How many threads there are ---------------------------------------------------------------------------------------


def test_calls_in_threads_are_as_many_as_the_limit_says(loop, few_threads):
    begun, go_on, most = threading.Semaphore(0), threading.Event(), []
    running = []

    @tool
    def each() -> str:
        """Run beside others."""
        running.append("one")
        begun.release()
        assert go_on.wait(30)
        return "done"

    number = few_threads * 5
    agent = create_agent(ScriptedModel([calls(*["each"] * number), "end"]), [each, fast])

    async def main():
        async with anyio.create_task_group() as group:
            group.start_soon(agent.ainvoke, ASKED)
            for _ in range(few_threads):
                assert await anyio.to_thread.run_sync(begun.acquire, True, 30)
            for _ in range(50):
                await anyio.lowlevel.checkpoint()
            most.append(len(running))
            go_on.set()

    loop.run(main)
    assert most == [few_threads]
    assert len(running) == number


@pytest.mark.parametrize("side_by_side", [1, 5])
def test_calls_inside_calls_find_a_thread(loop, one_thread, side_by_side):
    class Around(AgentMiddleware):
        def wrap_tool_call(self, request, handler):
            return handler(request)

    class Outside(Around):
        pass

    @tool
    def plain() -> str:
        """Do nothing."""
        return "plain"

    inner = create_agent(
        ScriptedModel(lambda messages: "end" if messages[-1].type == "tool" else calls("plain", "plain")),
        [plain, fast],
        middleware=[Around()],
    )

    @tool
    def nested() -> str:
        """Run an agent."""
        return inner.invoke(ASKED)["messages"][-1].text

    agent = create_agent(
        ScriptedModel([calls(*["nested"] * side_by_side), "end"]), [nested, fast], middleware=[Outside(), Around()]
    )
    result = loop.invoke(agent, ASKED)

    assert [message.text for message in result["messages"][2:]] == ["end"] * (side_by_side + 1)


def test_answers_that_a_sync_wrapper_asks_for_again_have_ids_of_their_own(loop):
    class Twice(AgentMiddleware):
        def wrap_model_call(self, request, handler):
            handler(request)
            return handler(request)

    agent = create_agent(ScriptedModel(["one", "two"]), middleware=[Twice()])
    parts = loop.stream(agent, ASKED, stream_mode="messages")

    assert len({message.id for message, _ in parts}) == 2
