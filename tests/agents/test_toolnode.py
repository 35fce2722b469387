"""The node that calls tools: results, errors, wrappers, calls side by side, pauses."""

import operator
import threading
from dataclasses import dataclass
from typing import Annotated, Any

import anyio
import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage as LangChainAIMessage
from langchain_core.messages import ToolMessage as LangChainToolMessage
from langchain_core.tools import tool as langchain_tool

from pregel import END, START, InMemorySaver, MessagesState, Overwrite, Send, StateGraph, interrupt
from pregel.channels.base import InvalidUpdateError
from pregel.errors import (
    InvalidConcurrentUpdateError,
    MissingCheckpointerError,
    NodeInputError,
)
from pregel.graph.agent.create import create_agent
from pregel.graph.agent.handoff import handoff_tool
from pregel.graph.agent.injection import InjectedState, InjectedToolArg, InjectedToolCallId, ToolRuntime
from pregel.graph.agent.middleware.base import AgentMiddleware
from pregel.graph.agent.models.scripted import ScriptedModel
from pregel.graph.agent.results import ToolResultError
from pregel.graph.agent.state import AgentState
from pregel.graph.agent.toolnode import ToolNode, tools_condition
from pregel.graph.agent.tools import ToolDefinitionError, as_tool, tool
from pregel.graph.messages import REMOVE_ALL_MESSAGES, AIMessage, HumanMessage, RemoveMessage, ToolMessage
from pregel.types import Command

THREAD = {"configurable": {"thread_id": "t"}}
CallId = Annotated[str, InjectedToolCallId]


class State(MessagesState):
    plain: str
    log: Annotated[list[str], operator.add]


def asking(*calls, kind=AIMessage):
    made = [{"name": name, "args": args, "id": f"c{place}"} for place, (name, args) in enumerate(calls)]
    return kind(content="", tool_calls=made)


def graph_of(tools, checkpointer=None, **options):
    return (
        StateGraph(State).add_node("tools", ToolNode(tools, **options)).add_edge(START, "tools").compile(checkpointer)
    )


def run(door, tools, *calls, **options):
    return door.invoke(graph_of(tools, **options), {"messages": [asking(*calls)]})


def answers(door, tools, *calls, **options):
    return run(door, tools, *calls, **options)["messages"][1:]


def echo(text: str = "hi"):
    """Say it again."""
    return text


async def aecho(text: str = "hi"):
    return text


def boom(text: str = "boom"):
    raise KeyError(text)


# -- results -----------------------------------------------------------------------------------------------------------


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("result", "content"),
    [
        ("text", "text"),
        (None, "null"),
        ({"ä": [1, True]}, '{"ä":[1,true]}'),
        (Point(1), '{"x":1}'),
        (["a", "b"], '["a","b"]'),
        ([{"x": 1}], '[{"x":1}]'),
        ([], "[]"),
        ((1, 2), "[1,2]"),
        ([{"type": "text", "text": "t"}], [{"type": "text", "text": "t"}]),
        (
            ["t", {"type": "image_url", "image_url": {"url": "u"}}],
            ["t", {"type": "image_url", "image_url": {"url": "u"}}],
        ),
        ({"o": {1}, "r": range(2)}, '{"o":[1],"r":"range(0, 2)"}'),
        (b"\xff", "b'\\xff'"),
    ],
    ids=repr,
)
def test_what_a_tool_returns_is_told_as_text_blocks_or_json(door, result, content):
    (message,) = answers(door, [tool("f")(lambda: result)], ("f", {}))
    assert (message.content, message.name, message.tool_call_id, message.status) == (content, "f", "c0", "success")


def test_an_artifact_stays_beside_the_text(door):
    made = tool(response_format="content_and_artifact")(echo)
    with pytest.raises(ToolResultError, match="return a pair"):
        run(door, [made], ("echo", {}))
    pair = tool("pair", response_format="content_and_artifact")(lambda: ("short", {"long": [1]}))
    (message,) = answers(door, [pair], ("pair", {}))
    assert (message.content, message.artifact) == ("short", {"long": [1]})


def test_messages_commands_and_lists_of_them_stand_as_they_are(door):
    def own(call_id: CallId):
        return ToolMessage("own", tool_call_id=call_id, status="error")

    def theirs(call_id: CallId):
        return LangChainToolMessage("theirs", tool_call_id=call_id)

    def command(call_id: CallId):
        return Command(
            update={"messages": [ToolMessage("cmd", tool_call_id=call_id), HumanMessage("more")], "plain": "p"}
        )

    def pairs(call_id: CallId):
        update = [
            ("log", ["a"]),
            ("log", ["b"]),
            ("messages", {"role": "tool", "content": "x", "tool_call_id": call_id}),
        ]
        return [Command(update=update), Command(update={"log": ["c"]})]

    def mixed(call_id: CallId):
        return ToolMessage("mixed", tool_call_id=call_id), Command(update={"log": ["d"]})

    tools = [own, theirs, command, pairs, mixed]
    state = run(door, tools, *((each.__name__, {}) for each in tools))
    assert [message.content for message in state["messages"][1:]] == ["own", "theirs", "cmd", "more", "x", "mixed"]
    assert (state["plain"], state["log"]) == ("p", ["a", "b", "c", "d"])


def test_a_command_may_clear_the_conversation_and_the_call_with_it(door):
    def clear():
        return Command(update={"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("anew")]})

    def replace():
        return Command(update={"messages": Overwrite([HumanMessage("anew")])})

    for each in (clear, replace):
        assert [message.content for message in run(door, [each], (each.__name__, {}))["messages"]] == ["anew"]


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (
            Command(update={"plain": "p"}),
            r"does not answer the call 'c0' of tool 'f'.*ToolMessage\('...', tool_call_id='c0'\)",
        ),
        (Command(goto="x"), "does not answer"),
        ([Command(update={"log": []}), Command()], "does not answer"),
        (ToolMessage("x", tool_call_id="c9"), "answers the call 'c9', and was asked for 'c0'"),
        ([ToolMessage("x", tool_call_id="c0"), ToolMessage("y", tool_call_id="c0")], "2 times"),
        (
            [ToolMessage("x", tool_call_id="c0"), Command(update={"messages": ToolMessage("y", tool_call_id="c0")})],
            "2 times",
        ),
        (HumanMessage("x"), "only a ToolMessage answers"),
        (AIMessage("x"), "only a ToolMessage answers"),
        (RemoveMessage(id="x"), "only a ToolMessage answers"),
        (Send("x", 1), "is no Command of this library"),
        ([type("Command", (), {})()], "is no Command of this library"),
        ([ToolMessage("x", tool_call_id="c0"), "text"], "return a ToolMessage, a Command, or a list of these"),
    ],
    ids=range(12),
)
def test_a_result_that_is_no_answer_is_an_error_that_says_how_to_write_one(door, result, says):
    with pytest.raises(ToolResultError, match=says):
        run(door, [tool("f")(lambda: result)], ("f", {}), handle_tool_errors=True)


@pytest.mark.parametrize("make", [aecho, lambda: (part for part in "ab")], ids=["coroutine", "generator"])
def test_a_result_that_is_still_to_come_is_an_error(door, make):
    def f():
        return make()

    with pytest.raises(ToolResultError, match="no result yet"):
        run(door, [f], ("f", {}))


def test_a_call_without_an_id_is_answered(door):
    message = AIMessage("", tool_calls=[{"name": "echo", "args": {}, "id": None}])

    def as_command(call_id: CallId):
        return Command(update={"messages": [ToolMessage("x", tool_call_id=call_id)]})

    assert door.invoke(graph_of([echo]), {"messages": [message]})["messages"][1].tool_call_id == ""
    other = AIMessage("", tool_calls=[{"name": "as_command", "args": {}, "id": None}])
    assert door.invoke(graph_of([as_command]), {"messages": [other]})["messages"][1].content == "x"


def test_an_update_of_a_key_that_does_not_exist_is_an_error_with_the_nearest_one(door):
    def f(call_id: CallId):
        return Command(update={"messages": [ToolMessage("x", tool_call_id=call_id)], "plane": 1})

    with pytest.raises(InvalidUpdateError, match=r"updates 'plane'.*Did you mean 'plain'\?"):
        run(door, [f], ("f", {}))


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [boom, aecho], ids=["sync", "async"])
def test_an_unknown_tool_is_told_with_the_nearest_name(door, other):
    (message,) = answers(door, [echo, other], ("ecko", {"text": "x"}))
    assert message.status == "error"
    assert message.content == f"There is no tool 'ecko'. Did you mean 'echo'? Tools: echo, {other.__name__}."


def test_by_default_only_errors_of_arguments_are_told(door):
    (message,) = answers(door, [echo], ("echo", {"text": 1}))
    assert message.status == "error"
    with pytest.raises(KeyError) as caught:
        run(door, [boom], ("boom", {}))
    assert "In tool 'boom', call 'c0'." in caught.value.__notes__


def by_type(error: KeyError | OSError) -> str:
    return f"by type {error.args[0]}"


class Handler:
    def __call__(self, error) -> str:
        return f"object {type(error).__name__}"


@pytest.mark.parametrize(
    ("handle", "content"),
    [
        (True, "Error: KeyError: 'boom'"),
        ("Sorry.", "Sorry."),
        (LookupError, "Error: KeyError: 'boom'"),
        ((OSError, KeyError), "Error: KeyError: 'boom'"),
        (by_type, "by type boom"),
        (Handler(), "object KeyError"),
        (lambda error: "any", "any"),
    ],
    ids=range(7),
)
def test_errors_are_told_as_the_user_wants_it(door, handle, content):
    (message,) = answers(door, [boom], ("boom", {}), handle_tool_errors=handle)
    assert (message.content, message.status) == (content, "error")


@pytest.mark.parametrize("handle", [False, OSError, (), None], ids=repr)
def test_other_errors_end_the_run(door, handle):
    with pytest.raises(KeyError):
        run(door, [boom], ("boom", {}), handle_tool_errors=handle)


def test_errors_of_arguments_can_end_the_run_too(door):
    with pytest.raises(ValueError, match="text: Input should be a valid string"):
        run(door, [echo], ("echo", {"text": 1}), handle_tool_errors=False)


def test_a_fault_of_the_graph_is_never_told_to_a_model(door):
    def ask():
        return interrupt("sure?")

    with pytest.raises(MissingCheckpointerError):
        run(door, [ask], ("ask", {}), handle_tool_errors=True)


# -- calls side by side ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("native", [False, True], ids=["sync tools", "async tools"])
def test_fifty_calls_run_side_by_side_and_answer_in_their_order(door, native):
    count = 50
    barrier = threading.Barrier(count)
    arrived: list[int] = []
    everyone = anyio.Event()

    def meet(n: int):
        barrier.wait(timeout=30)  # passes only if all fifty are here at once
        return f"n{n}"

    async def ameet(n: int):
        arrived.append(n)
        if len(arrived) == count:
            everyone.set()
        await everyone.wait()
        return f"n{n}"

    made = tool("meet")(ameet if native else meet)
    messages = answers(door, [made], *(("meet", {"n": n}) for n in range(count)))
    assert [message.content for message in messages] == [f"n{n}" for n in range(count)]
    assert [message.tool_call_id for message in messages] == [f"c{n}" for n in range(count)]


def test_sync_and_async_tools_mix(door):
    assert [m.content for m in answers(door, [echo, aecho], ("echo", {"text": "a"}), ("aecho", {"text": "b"}))] == [
        "a",
        "b",
    ]


def test_async_tools_run_on_the_loop_that_the_run_has(door):
    import sniffio

    async def which():
        await anyio.lowlevel.checkpoint()
        return sniffio.current_async_library()

    (message,) = answers(door, [which], ("which", {}))
    assert message.content == ("trio" if door.way == "trio" else "asyncio")


def test_max_concurrency_holds_for_calls_in_one_task(door):
    threads = []

    def where():
        threads.append(threading.get_ident())

    state = {"messages": [asking(*[("where", {})] * 12)]}
    door.invoke(graph_of([where]), state, {"max_concurrency": 1})
    assert len(threads) == 12
    assert len(set(threads)) == 1


def test_errors_of_several_calls_are_a_group_and_one_is_itself(door):
    with pytest.raises(ExceptionGroup) as caught:
        run(door, [boom, echo], ("boom", {"text": "a"}), ("echo", {}), ("boom", {"text": "b"}))
    assert [error.args for error in caught.value.exceptions] == [("a",), ("b",)]
    with pytest.raises(KeyError):
        run(door, [boom, echo], ("boom", {}), ("echo", {}))


def test_calls_of_one_task_have_task_ids_of_their_own(door):
    def which(runtime):
        return runtime.task_id

    assert [message.content for message in answers(door, [which], ("which", {}), ("which", {}))] == [
        "1:0:tools.0",
        "1:0:tools.1",
    ]
    (message,) = answers(door, [which], ("which", {}))
    assert message.content == "1:0:tools"


def test_only_calls_without_an_answer_are_made(door):
    state = {
        "messages": [asking(("echo", {"text": "a"}), ("echo", {"text": "b"})), ToolMessage("x", tool_call_id="c0")]
    }
    assert [m.content for m in door.invoke(graph_of([echo]), state)["messages"][1:]] == ["x", "b"]
    answered = {"messages": [asking(("echo", {})), ToolMessage("x", tool_call_id="c0")]}
    assert len(door.invoke(graph_of([echo]), answered)["messages"]) == 2


def test_a_send_of_a_call_makes_one_call(door):
    def split(state) -> list[Send]:
        return [Send("tools", call) for call in state["messages"][-1].tool_calls]

    builder = StateGraph(State).add_node("tools", ToolNode([echo]))
    graph = builder.add_conditional_edges(START, split, ["tools"]).compile()
    state = {"messages": [asking(("echo", {"text": "a"}), ("echo", {"text": "b"}))]}
    assert [message.content for message in door.invoke(graph, state)["messages"][1:]] == ["a", "b"]
    (listed,) = ToolNode([echo]).calls([{"name": "echo", "args": {}, "id": "c7"}])
    assert listed["id"] == "c7"


def test_messages_of_langchain_ask_for_calls_too(door):
    state = {"messages": [asking(("echo", {"text": "a"}), kind=LangChainAIMessage)]}
    assert door.invoke(graph_of([echo]), state)["messages"][-1].content == "a"


def test_without_a_models_message_there_is_an_error_that_says_so(door):
    with pytest.raises(NodeInputError, match="no message of a model among 1 messages"):
        door.invoke(graph_of([echo]), {"messages": ["hi"]})
    with pytest.raises(NodeInputError, match="no field 'chat'"):
        door.invoke(graph_of([echo], messages_key="chat"), {"messages": ["hi"]})


def test_tools_condition_leads_to_the_tools_while_there_are_calls():
    assert tools_condition({"messages": [asking(("echo", {}))]}) == "tools"
    assert tools_condition({"messages": [AIMessage("done")]}) == END
    assert tools_condition([AIMessage("done")]) == END
    with pytest.raises(NodeInputError):
        tools_condition({"messages": []})


def test_a_loop_of_model_and_tools_ends_when_the_model_has_its_answer(door):
    def model(state):
        results = [message for message in state["messages"] if message.type == "tool"]
        return {"messages": [AIMessage("done")] if results else [asking(("echo", {}))]}

    builder = StateGraph(State).add_node(model).add_node("tools", ToolNode([echo]))
    builder.add_edge(START, "model").add_conditional_edges("model", tools_condition).add_edge("tools", "model")
    messages = door.invoke(builder.compile(), {"messages": ["hi"]})["messages"]
    assert [message.type for message in messages] == ["human", "ai", "tool", "ai"]


def test_two_tools_that_write_one_plain_field_conflict(door):
    def write(text: str, call_id: CallId):
        return Command(update={"messages": [ToolMessage("w", tool_call_id=call_id)], "plain": text})

    with pytest.raises(InvalidConcurrentUpdateError, match=r"'plain'.*wrote 'a'.*wrote 'b'"):
        run(door, [write], ("write", {"text": "a"}), ("write", {"text": "b"}))


# -- pauses ------------------------------------------------------------------------------------------------------------


def test_a_tool_asks_and_goes_on_with_the_answer(door):
    ran = []

    def book(city: str):
        ran.append(city)
        return f"{city}: {interrupt(f'book {city}?')}"

    graph = graph_of([book], InMemorySaver(), handle_tool_errors=True)
    paused = door.invoke(graph, {"messages": [asking(("book", {"city": "Oslo"}))]}, THREAD)
    assert [question.value for question in paused["__interrupt__"]] == ["book Oslo?"]
    done = door.invoke(graph, Command(resume="yes"), THREAD)
    assert done["messages"][-1].content == "Oslo: yes"
    assert ran == ["Oslo", "Oslo"]


@pytest.mark.parametrize("native", [False, True], ids=["sync tools", "async tools"])
def test_questions_of_calls_in_one_task_belong_to_their_calls_whichever_was_first(door, native):
    order = [3, 0, 2, 1]
    turns = [threading.Event() for _ in order]
    turns[0].set()

    def ask(n: int):
        place = order.index(n)
        turns[place].wait(30)
        try:
            return f"{n}: {interrupt(f'q{n}')} {interrupt(f'r{n}')}"
        finally:
            if place + 1 < len(order):
                turns[place + 1].set()

    async def aask(n: int):
        return f"{n}: {interrupt(f'q{n}')} {interrupt(f'r{n}')}"

    graph = graph_of([tool("ask")(aask if native else ask)], InMemorySaver())
    calls = [("ask", {"n": n}) for n in range(4)]
    first = door.invoke(graph, {"messages": [asking(*calls)]}, THREAD)["__interrupt__"]
    assert [question.value for question in first] == ["q0", "q1", "q2", "q3"]
    order.reverse()
    for turn in turns[1:]:
        turn.clear()
    replies = {question.id: question.value.upper() for question in first}
    second = door.invoke(graph, Command(resume=replies), THREAD)["__interrupt__"]
    assert [question.value for question in second] == ["r0", "r1", "r2", "r3"]
    replies = {question.id: question.value.upper() for question in second}
    done = door.invoke(graph, Command(resume=replies), THREAD)
    assert [message.content for message in done["messages"][1:]] == [f"{n}: Q{n} R{n}" for n in range(4)]


def test_an_error_beside_a_question_counts(door):
    def ask():
        return interrupt("sure?")

    graph = graph_of([ask, boom], InMemorySaver())
    with pytest.raises(KeyError):
        door.invoke(graph, {"messages": [asking(("ask", {}), ("boom", {}))]}, THREAD)


# -- wrappers ----------------------------------------------------------------------------------------------------------


def told(messages):
    return [message.content for message in messages]


def test_the_first_wrapper_is_the_outermost_and_may_call_its_handler_any_number_of_times(door):
    trace = []

    def outer(request, handler):
        trace.append("outer")
        handler(request)
        return handler(request)

    def inner(request, handler):
        trace.append("inner")
        args = {"text": request.tool_call["args"]["text"] + "!"}
        return handler(request.override(tool_call={**request.tool_call, "args": args}))

    def never(request, handler):
        return ToolMessage("refused", tool_call_id=request.tool_call["id"])

    assert told(answers(door, [echo], ("echo", {"text": "a"}), wrappers=[outer, inner])) == ["a!"]
    assert trace == ["outer", "inner", "inner"]
    assert told(answers(door, [echo], ("echo", {"text": "a"}), wrappers=[never, outer])) == ["refused"]
    assert len(trace) == 3


class Both(AgentMiddleware):
    def wrap_tool_call(self, request, handler):
        result = handler(request)
        return result.model_copy(update={"content": f"sync({result.content})"})

    async def awrap_tool_call(self, request, handler):
        result = await handler(request)
        return result.model_copy(update={"content": f"async({result.content})"})


class Sync(AgentMiddleware):
    def wrap_tool_call(self, request, handler):
        result = handler(request)
        return result.model_copy(update={"content": f"s({result.content})"})


class Async(AgentMiddleware):
    async def awrap_tool_call(self, request, handler):
        result = await handler(request)
        return result.model_copy(update={"content": f"a({result.content})"})


@pytest.mark.parametrize("made", [echo, aecho], ids=["sync tool", "async tool"])
@pytest.mark.parametrize(
    ("wrappers", "content"),
    [
        ([Sync(), Async()], "s(a(x))"),
        ([Async(), Sync()], "a(s(x))"),
        ([Async()], "a(x)"),
        ([Sync(), Sync()], "s(s(x))"),
        ([Sync(), Async(), Sync(), Async()], "s(a(s(a(x))))"),
        ([AgentMiddleware(), Sync()], "s(x)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_sync_and_async_wrappers_mix_with_both_kinds_of_tools(door, made, wrappers, content):
    name = as_tool(made).name
    calls = [(name, {"text": "x"})] * 3
    assert told(answers(door, [made], *calls, wrappers=wrappers)) == [content] * 3


def test_of_a_wrapper_with_both_forms_the_async_one_runs_on_asyncio_and_the_sync_one_on_trio(door):
    (message,) = answers(door, [echo], ("echo", {"text": "x"}), wrappers=[Both()])
    assert message.content == ("async(x)" if door.way == "asyncio" else "sync(x)")
    (message,) = answers(door, [aecho], ("aecho", {"text": "x"}), wrappers=[Both()])  # `invoke` starts asyncio for it
    assert message.content == ("sync(x)" if door.way == "trio" else "async(x)")


def test_a_question_passes_through_wrappers_that_catch_exceptions(door):
    def ask():
        return interrupt("sure?")

    def catching(request, handler):
        try:
            return handler(request)
        except Exception:
            return ToolMessage("swallowed", tool_call_id=request.tool_call["id"])

    graph = graph_of([ask], InMemorySaver(), wrappers=[catching, Async(), catching])
    assert door.invoke(graph, {"messages": [asking(("ask", {}))]}, THREAD)["__interrupt__"][0].value == "sure?"
    assert door.invoke(graph, Command(resume="yes"), THREAD)["messages"][-1].content == "a(yes)"


def test_a_wrapper_sees_what_a_tool_raised(door):
    def retry(request, handler):
        try:
            return handler(request)
        except KeyError:
            return handler(request.override(tool=echo))

    assert told(answers(door, [boom], ("boom", {"text": "x"}), wrappers=[retry])) == ["x"]


def test_a_wrapper_may_supply_a_tool_that_the_node_does_not_have(door):
    def supply(request, handler):
        assert request.tool is None
        return handler(request.override(tool=as_tool(aecho, name="late")))

    assert told(answers(door, [], ("late", {"text": "x"}), wrappers=[supply])) == ["x"]


@pytest.mark.parametrize(
    "result", ["text", {"messages": []}, None, [ToolMessage("x", tool_call_id="c0"), "text"], []], ids=repr
)
def test_a_wrapper_that_returns_no_answer_is_an_error_that_names_it(door, result):
    def careless(request, handler):
        handler(request)
        return result

    class Careless(AgentMiddleware):
        def wrap_tool_call(self, request, handler):
            return result

    with pytest.raises(ToolResultError, match="the wrapper careless returned"):
        run(door, [echo], ("echo", {}), wrappers=[Sync(), careless])
    with pytest.raises(ToolResultError, match="wrap_tool_call of 'Careless' returned"):
        run(door, [echo], ("echo", {}), wrappers=[Careless()])


def test_a_wrapper_that_hands_on_no_request_is_an_error_that_names_it(door):
    def careless(request, handler):
        return handler(request.tool_call)

    with pytest.raises(ToolResultError, match="the wrapper careless called its handler with"):
        run(door, [echo], ("echo", {}), wrappers=[careless])


def test_forty_sync_wrappers_around_async_tools_do_not_wait_for_each_other(door):
    everyone = anyio.Event()
    arrived: list[Any] = []

    async def meet():
        arrived.append(1)
        if len(arrived) == 45:
            everyone.set()
        await everyone.wait()
        return "met"

    assert told(answers(door, [meet], *[("meet", {})] * 45, wrappers=[Sync(), Sync()])) == ["s(s(met))"] * 45


# -- in agents ---------------------------------------------------------------------------------------------------------


class AgentFields(AgentState):
    plain: str
    log: Annotated[list[str], operator.add]


def agent(answers, tools, **options):
    return create_agent(ScriptedModel(answers), tools, state_schema=AgentFields, **options)


@pytest.mark.parametrize("native", [False, True], ids=["sync tools", "async tools"])
def test_a_turn_of_fifty_calls_of_an_agent_runs_side_by_side_and_answers_in_order(door, native):
    count = 50
    barrier = threading.Barrier(count)
    arrived: list[int] = []
    everyone = anyio.Event()

    def meet(n: int, call_id: CallId):
        barrier.wait(timeout=30)  # passes only if all fifty are here at once
        return [ToolMessage(f"n{n}", tool_call_id=call_id), Command(update={"log": [str(n)]})]

    async def ameet(n: int, call_id: CallId):
        arrived.append(n)
        if len(arrived) == count:
            everyone.set()
        await everyone.wait()
        return [ToolMessage(f"n{n}", tool_call_id=call_id), Command(update={"log": [str(n)]})]

    made = tool("meet")(ameet if native else meet)
    graph = agent([asking(*(("meet", {"n": n}) for n in range(count))), "done"], [made])
    state = door.invoke(graph, {"messages": ["hi"]})
    assert told(state["messages"][2:]) == [*(f"n{n}" for n in range(count)), "done"]
    assert state["log"] == [str(n) for n in range(count)]


def test_each_call_of_an_agent_pauses_by_itself_and_its_siblings_run_once(door):
    ran = []

    def book(city: str):
        return f"{city}: {interrupt(city)}"

    def look(city: str):
        ran.append(city)
        return city

    calls = [("book", {"city": "a"}), ("look", {"city": "b"}), ("book", {"city": "c"})]
    graph = agent([asking(*calls), "done"], [book, look], checkpointer=InMemorySaver())
    questions = door.invoke(graph, {"messages": ["hi"]}, THREAD)["__interrupt__"]
    assert [question.value for question in questions] == ["a", "c"]
    door.invoke(graph, Command(resume={questions[1].id: "no"}), THREAD)
    done = door.invoke(graph, Command(resume="yes"), THREAD)
    assert told(done["messages"][2:]) == ["a: yes", "b", "c: no", "done"]
    assert ran == ["b"]


def test_forged_arguments_do_not_reach_an_agents_tools(door):
    def look(q: str, plain: Annotated[str, InjectedState("plain")], call_id: CallId, runtime: ToolRuntime):
        return [q, plain, call_id, runtime.tool_call_id]

    forged = {"q": "?", "plain": "root", "call_id": "c9", "runtime": {"tool_call_id": "c9"}}
    graph = agent([asking(("look", forged)), "done"], [look])
    state = door.invoke(graph, {"messages": ["hi"], "plain": "ada"})
    assert state["messages"][2].content == '["?","ada","c0","c0"]'


def test_two_tools_of_an_agent_that_write_one_plain_field_conflict(door):
    def write(text: str, call_id: CallId):
        return Command(update={"messages": [ToolMessage("w", tool_call_id=call_id)], "plain": text})

    graph = agent([asking(("write", {"text": "a"}), ("rewrite", {"text": "b"}))], [write, tool("rewrite")(write)])
    both = r"'plain'.*tool 'write', call '\w+'\) wrote 'a'.*tool 'rewrite', call '\w+'\) wrote 'b'"
    with pytest.raises(InvalidConcurrentUpdateError, match=both):
        door.invoke(graph, {"messages": ["hi"]})


def test_an_error_of_a_tool_says_which_call_it_was(door):
    def fails():
        raise RuntimeError("no")

    with pytest.raises(RuntimeError) as caught:
        door.invoke(agent([asking(("fails", {}))], [fails], handle_tool_errors=False), {"messages": ["hi"]})
    assert any("tool 'fails', call '" in note for note in caught.value.__notes__)


def test_two_tools_of_one_name_are_an_error_when_an_agent_is_made():
    with pytest.raises(ToolDefinitionError, match="two tools are named 'echo'"):
        agent([], [echo, tool("echo")(aecho)])


def test_a_langchain_model_and_its_tools_run_in_an_agent_beside_ours(door):
    @langchain_tool
    def multiply(a: int, b: int) -> int:
        """Multiply."""
        return a * b

    told_of = []

    class Model(GenericFakeChatModel):
        def bind_tools(self, tools, **options):
            told_of.append(tools)
            return self

    helper = create_agent(ScriptedModel(["helped"]), name="helper")
    calls = [("multiply", {"a": 2, "b": 3}), ("echo", {"text": "x"}), ("helper", {"request": "go"})]
    answers_of_it = iter([asking(*calls, kind=LangChainAIMessage), LangChainAIMessage("done")])
    graph = create_agent(Model(messages=answers_of_it), [multiply, echo, as_tool(helper), handoff_tool("bob")])
    state = door.invoke(graph, {"messages": ["hi"]})
    assert told(state["messages"][2:]) == ["6", "x", "helped", "done"]
    assert multiply in told_of[0]
    assert [tool["function"]["name"] for tool in told_of[0] if tool is not multiply] == [
        "echo",
        "helper",
        "transfer_to_bob",
    ]


# -- arguments of its own ----------------------------------------------------------------------------------------------


def spoil(items):
    """Empty a list, and what is in it."""
    found = str(items)
    items[0]["deep"].clear()
    items.clear()
    return found


SPOILING = [
    pytest.param(tool("spoil")(spoil), id="without annotations"),
    pytest.param(tool("spoil", args_schema={"type": "object", "properties": {"items": {}}})(spoil), id="JSON schema"),
    pytest.param(as_tool(langchain_tool("spoil")(spoil)), id="LangChain"),
]


@pytest.mark.parametrize("spoiling", SPOILING)
def test_a_tool_that_changes_its_arguments_in_place_changes_no_message(door, spoiling):
    asked, answer = run(door, [spoiling], ("spoil", {"items": [{"deep": [1]}]}))["messages"]
    assert answer.content == "[{'deep': [1]}]"
    assert asked.tool_calls[0]["args"] == {"items": [{"deep": [1]}]}


def test_each_attempt_has_arguments_of_its_own_and_a_wrapper_changes_no_message(door):
    def twice(request, handler):
        first, second = handler(request), handler(request)
        request.tool_call["args"]["items"].clear()
        assert first == second
        return second

    asked, answer = run(door, [tool("spoil")(spoil)], ("spoil", {"items": [{"deep": [1]}]}), wrappers=[twice])[
        "messages"
    ]
    assert answer.content == "[{'deep': [1]}]"
    assert asked.tool_calls[0]["args"] == {"items": [{"deep": [1]}]}


def test_what_a_wrapper_gives_a_tool_is_that_object(door):
    seen = []

    def note(log: Annotated[Any, InjectedToolArg]) -> str:
        """Note it."""
        log.append("noted")
        return "done"

    def giving(request, handler):
        return handler(request.override(tool_call={**request.tool_call, "args": {"log": seen}}))

    run(door, [note], ("note", {}), wrappers=[giving])
    assert seen == ["noted"]
