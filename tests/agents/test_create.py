"""`create_agent`: what it makes of a model, tools and middleware, and what it hands through."""

import json
import subprocess
import sys
from typing import Annotated

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage as LangChainAIMessage
from typing_extensions import TypedDict

from pregel.codec import decode, encode
from pregel.errors import GraphDefinitionError, InvalidConfigError, PregelError
from pregel.graph import MessagesState, StateGraph
from pregel.graph.agent import AgentMiddleware, InjectedState, ScriptedModel, create_agent, tool
from pregel.graph.agent import middleware as middleware_module
from pregel.graph.agent.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    LLMToolSelectorMiddleware,
    ToolCallLimitMiddleware,
    ToolRetryMiddleware,
)
from pregel.graph.agent.routing import ToolTurn
from pregel.graph.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from pregel.runtime import interrupt
from pregel.store.memory import InMemoryStore
from pregel.types import START, Command

THREAD = {"configurable": {"thread_id": "one"}}


def calls(*pairs, text=""):
    """A message of the model that calls tools: ("add", {"a": 1}, "id")."""
    return AIMessage(text, tool_calls=[{"name": name, "args": args, "id": key} for name, args, key in pairs])


def texts(result):
    return [message.text for message in result["messages"]]


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def test_a_model_without_tools_answers_once(door):
    result = door.invoke(create_agent(ScriptedModel(["hello"])), {"messages": "hi"})
    assert [(message.type, message.text) for message in result["messages"]] == [("human", "hi"), ("ai", "hello")]
    assert sorted(result) == ["messages"]


def test_tools_are_called_until_the_model_calls_none(door):
    model = ScriptedModel(
        [calls(("add", {"a": 1, "b": 2}, "c1")), calls(("add", {"a": 3, "b": 4}, "c2")), "the sum is 7"]
    )
    result = door.invoke(create_agent(model, [add]), {"messages": "1 + 2 + 4?"})
    assert texts(result) == ["1 + 2 + 4?", "", "3", "", "7", "the sum is 7"]
    assert [tool["name"] for tool in model.calls[0].tools] == ["add"]


def test_the_calls_of_a_turn_are_tasks_of_their_own_and_answer_in_their_order(door):
    model = ScriptedModel([calls(("add", {"a": 1, "b": 1}, "x"), ("add", {"a": 2, "b": 2}, "y")), "done"])
    agent = create_agent(model, [add])
    parts = door.stream(agent, {"messages": "go"}, stream_mode="updates")
    assert [next(iter(part)) for part in parts] == ["model", "tools", "tools", "model"]
    model = ScriptedModel([calls(("add", {"a": 1, "b": 1}, "x"), ("add", {"a": 2, "b": 2}, "y")), "done"])
    assert texts(door.invoke(create_agent(model, [add]), {"messages": "go"})) == ["go", "", "2", "4", "done"]


def test_the_system_prompt_is_told_and_is_no_part_of_the_state(door):
    for prompt in ("be brief", SystemMessage("be brief")):
        model = ScriptedModel(["ok"])
        result = door.invoke(create_agent(model, system_prompt=prompt), {"messages": "hi"})
        assert [message.type for message in model.calls[0].messages] == ["system", "human"]
        assert texts(result) == ["hi", "ok"]


def test_the_agent_s_name_is_the_name_of_its_messages_and_of_the_graph():
    agent = create_agent(ScriptedModel([calls(("add", {"a": 1, "b": 1}, "x")), "two"]), [add], name="adder")
    result = agent.invoke({"messages": HumanMessage("go", name="me")})
    assert [message.name for message in result["messages"]] == ["me", "adder", "add", "adder"]
    assert agent.name == "adder"


def test_a_message_that_has_a_name_keeps_it():
    agent = create_agent(ScriptedModel([AIMessage("hello", name="somebody")]), name="me")
    assert agent.invoke({"messages": "hi"})["messages"][-1].name == "somebody"


def test_langchain_s_messages_are_named_as_well():
    model = GenericFakeChatModel(messages=iter([LangChainAIMessage("hello")]))
    message = create_agent(model, name="me").invoke({"messages": "hi"})["messages"][-1]
    assert (type(message), message.name) == (LangChainAIMessage, "me")


def test_a_model_may_be_named():
    with pytest.raises(PregelError, match="nowhere"):
        create_agent("nowhere:model")


def test_dicts_describe_tools_of_the_provider():
    model = ScriptedModel(["ok"])
    agent = create_agent(model, [{"type": "web_search"}])
    agent.invoke({"messages": "hi"})
    assert list(model.calls[0].tools) == [{"type": "web_search"}]
    assert "tools" not in agent.get_graph()


def test_a_call_that_nothing_here_runs_is_the_agent_s_answer():
    asked = calls(("search", {}, "c1"))
    result = create_agent(ScriptedModel([asked]), [{"name": "search", "parameters": {}}]).invoke({"messages": "hi"})
    assert result["messages"][-1].tool_calls[0]["name"] == "search"


def test_an_unknown_tool_is_told_to_the_model(door):
    agent = create_agent(ScriptedModel([calls(("ad", {}, "c1")), "sorry"]), [add])
    result = door.invoke(agent, {"messages": "hi"})
    assert "Did you mean 'add'?" in result["messages"][2].text
    assert result["messages"][-1].text == "sorry"


def test_arguments_that_are_no_json_are_told_to_the_model(door):
    broken = AIMessage("", invalid_tool_calls=[{"name": "add", "args": "{", "id": "c1", "error": "cut off"}])
    result = door.invoke(create_agent(ScriptedModel([broken, "sorry"]), [add]), {"messages": "hi"})
    message = result["messages"][2]
    assert (message.type, message.status, message.tool_call_id) == ("tool", "error", "c1")
    assert "cut off" in message.text
    assert result["messages"][-1].text == "sorry"


def test_a_call_beside_one_that_can_not_be_read_is_made(door):
    both = calls(("add", {"a": 1, "b": 2}, "c1"))
    both = both.model_copy(update={"invalid_tool_calls": [{"name": "add", "args": "{", "id": "c2", "error": None}]})
    result = door.invoke(create_agent(ScriptedModel([both, "done"]), [add]), {"messages": "hi"})
    assert [(message.type, getattr(message, "status", None)) for message in result["messages"]] == [
        ("human", None),
        ("ai", None),
        ("tool", "error"),
        ("tool", "success"),
        ("ai", None),
    ]


def test_the_agent_ends_after_tools_that_all_return_directly(door):
    @tool(return_direct=True)
    def answer() -> str:
        """Answer."""
        return "42"

    agent = create_agent(ScriptedModel([calls(("answer", {}, "c1"), ("answer", {}, "c2"))]), [answer, add])
    assert texts(door.invoke(agent, {"messages": "?"})) == ["?", "", "42", "42"]
    mixed = [calls(("answer", {}, "c1"), ("add", {"a": 1, "b": 1}, "c2")), "so it is"]
    assert texts(door.invoke(create_agent(ScriptedModel(mixed), [answer, add]), {"messages": "?"}))[-1] == "so it is"


def test_tools_read_the_state_of_the_last_barrier(door, saver):
    read = []

    def look(state: Annotated[dict, InjectedState]) -> str:
        """Look."""
        read.append((state["n"], [message.type for message in state["messages"]]))
        return "seen"

    class State(TypedDict):
        n: int

    agent = create_agent(
        ScriptedModel([calls(("look", {}, "c1")), "ok"]), [look], state_schema=State, checkpointer=saver
    )
    door.invoke(agent, {"messages": "hi", "n": 3}, THREAD)
    assert read == [(3, ["human", "ai"])]


def test_what_a_turn_stores_for_its_calls_is_the_call_alone():
    agent = create_agent(ScriptedModel([calls(("add", {"a": 1, "b": 1}, "c1")), "ok"]), [add])
    given = [
        part["input"]
        for part in agent.stream({"messages": "x" * 9999}, stream_mode="tasks")
        if part["name"] == "tools" and "input" in part
    ]
    assert given == [ToolTurn({"name": "add", "args": {"a": 1, "b": 1}, "id": "c1", "type": "tool_call"})]
    assert decode(encode(given)) == given


def test_a_paused_tool_asks_and_goes_on_alone(door, saver):
    made = []

    def sure(what: str) -> str:
        """Ask."""
        made.append(what)
        return f"{what}: {interrupt(what)}"

    asked = calls(("sure", {"what": "a"}, "c1"), ("sure", {"what": "b"}, "c2"))
    agent = create_agent(ScriptedModel([asked, "ok"]), [sure], checkpointer=saver)
    result = door.invoke(agent, {"messages": "hi"}, THREAD)
    assert [question.value for question in result["__interrupt__"]] == ["a", "b"]
    first = result["__interrupt__"][0].id
    result = door.invoke(agent, Command(resume={first: "yes"}), THREAD)
    assert [question.value for question in result["__interrupt__"]] == ["b"]
    result = door.invoke(agent, Command(resume="no"), THREAD)
    assert texts(result) == ["hi", "", "a: yes", "b: no", "ok"]
    assert sorted(made) == ["a", "a", "b", "b"]


def test_a_thread_goes_on_with_its_messages(door, saver):
    agent = create_agent(ScriptedModel(["one", "two"]), checkpointer=saver)
    door.invoke(agent, {"messages": "first"}, THREAD)
    assert texts(door.invoke(agent, {"messages": "second"}, THREAD)) == ["first", "one", "second", "two"]


@pytest.mark.parametrize(("when", "nodes"), [("interrupt_before", ["tools"]), ("interrupt_after", ["model"])])
def test_breakpoints_are_handed_through(when, nodes, door, saver):
    model = ScriptedModel([calls(("add", {"a": 1, "b": 1}, "c1")), "two"])
    agent = create_agent(model, [add], checkpointer=saver, **{when: nodes})
    assert door.invoke(agent, {"messages": "hi"}, THREAD)["__interrupt__"][0].nodes == tuple(nodes)
    result = door.invoke(agent, None, THREAD)
    if when == "interrupt_after":
        result = door.invoke(agent, None, THREAD)
    assert texts(result)[-1] == "two"


def test_the_store_and_the_context_are_handed_through(door):
    read = []

    class Context(TypedDict):
        user: str

    class Reads(AgentMiddleware):
        def before_agent(self, state, runtime):
            runtime.store.put(("a",), "k", {"by": runtime.context["user"]})

        def after_agent(self, state, store):
            read.append(store.get(("a",), "k").value)

    agent = create_agent(ScriptedModel(["ok"]), middleware=[Reads()], context_schema=Context, store=InMemoryStore())
    door.invoke(agent, {"messages": "hi"}, context={"user": "Ada"})
    assert read == [{"by": "Ada"}]
    with pytest.raises(InvalidConfigError, match="sets 'usr'"):
        agent.invoke({"messages": "hi"}, context={"usr": "Ada"})


def test_the_model_s_config_is_the_run_s():
    seen = []

    class Model:
        def invoke(self, messages, **options):
            from pregel.config import get_config

            seen.append(get_config()["tags"])
            return AIMessage("ok")

    create_agent(Model()).invoke({"messages": "hi"}, {"tags": ["mine"]})
    assert seen == [["mine"]]


def test_an_async_model_runs_in_every_way(door):
    class Model:
        async def ainvoke(self, messages, **options):
            return AIMessage("ok")

    assert texts(door.invoke(create_agent(Model()), {"messages": "hi"})) == ["hi", "ok"]


def test_debug_finds_a_hook_that_changes_its_state():
    class Mutates(AgentMiddleware):
        def before_model(self, state):
            state["messages"].append(HumanMessage("sneaky"))

    agent = create_agent(ScriptedModel(["ok"]), middleware=[Mutates()], debug=True)
    with pytest.raises(PregelError, match=r"Mutates\.before_model"):
        agent.invoke({"messages": "hi"})


def test_an_agent_is_a_node_of_a_graph(door, saver):
    inner = create_agent(ScriptedModel([calls(("add", {"a": 1, "b": 1}, "c1")), "two"]), [add], name="adder")
    outer = StateGraph(MessagesState).add_node("adder", inner).add_edge(START, "adder").compile(saver)
    assert texts(door.invoke(outer, {"messages": "hi"}, THREAD)) == ["hi", "", "2", "two"]


def test_two_middlewares_of_one_name_are_an_error():
    with pytest.raises(GraphDefinitionError, match="two middlewares are named 'AgentMiddleware'"):
        create_agent(ScriptedModel(["ok"]), middleware=[AgentMiddleware(), AgentMiddleware()])


def test_a_middleware_in_place_of_a_list_is_an_error():
    with pytest.raises(GraphDefinitionError, match=r"middleware takes a list"):
        create_agent(ScriptedModel(["ok"]), middleware=AgentMiddleware())


def test_two_tools_of_one_name_are_an_error_also_where_one_is_a_middleware_s():
    class Adds(AgentMiddleware):
        tools = (add,)

    def other(a: int) -> int:
        """Add nothing."""
        return a

    with pytest.raises(PregelError, match="two tools are named 'add'"):
        create_agent(ScriptedModel(["ok"]), [tool("add")(other)], middleware=[Adds()])


def test_the_tools_of_middleware_are_the_agent_s(door):
    class Adds(AgentMiddleware):
        tools = (add,)

    agent = create_agent(ScriptedModel([calls(("add", {"a": 1, "b": 1}, "c1")), "two"]), middleware=[Adds()])
    assert texts(door.invoke(agent, {"messages": "hi"})) == ["hi", "", "2", "two"]


def test_a_tool_s_command_updates_the_state_and_may_end_the_loop(door):
    class State(TypedDict):
        n: int

    def finish(jump: str) -> Command:
        """Finish."""
        return Command(update={"n": 1, "jump_to": jump, "messages": [ToolMessage("done", tool_call_id="c1")]})

    ran = []
    middleware = type("Ends", (AgentMiddleware,), {"after_agent": lambda self, state: ran.append(state["n"])})()

    def agent(jump):
        model = ScriptedModel([calls(("finish", {"jump": jump}, "c1")), "more"])
        return create_agent(model, [finish], state_schema=State, middleware=[middleware])

    assert texts(door.invoke(agent("end"), {"messages": "hi"})) == ["hi", "", "done"]
    assert texts(door.invoke(agent("model"), {"messages": "hi"})) == ["hi", "", "done", "more"]
    assert ran == [1, 1]
    for wrong, said in [("ends", "Did you mean 'end'"), ("tools", "jumps to 'model' or 'end'")]:
        with pytest.raises(PregelError, match=said):
            agent(wrong).invoke({"messages": "hi"})


def test_a_tool_s_goto_takes_the_place_of_the_next_step(door):
    def stop() -> Command:
        """Stop."""
        return Command(update={"messages": [ToolMessage("stopped", tool_call_id="c1")]}, goto="__end__")

    agent = create_agent(ScriptedModel([calls(("stop", {}, "c1"))]), [stop])
    assert texts(door.invoke(agent, {"messages": "hi"})) == ["hi", "", "stopped"]


def test_handle_tool_errors_is_handed_through(door):
    def fails() -> str:
        """Fail."""
        raise ValueError("broken")

    def agent(**options):
        return create_agent(ScriptedModel([calls(("fails", {}, "c1")), "ok"]), [fails], **options)

    assert "broken" in texts(door.invoke(agent(handle_tool_errors=True), {"messages": "hi"}))[2]
    with pytest.raises(ValueError, match="broken"):
        door.invoke(agent(), {"messages": "hi"})


def test_the_public_names_of_agents_are_there():
    from pregel.graph import agent

    for module in (agent, middleware_module):
        assert sorted(module.__all__) == list(module.__all__)
        assert all(getattr(module, name) is not None for name in module.__all__)
        assert set(module.__all__) <= set(dir(module))


def test_agents_load_neither_langchain_nor_providers():
    code = (
        "import json, sys\n"
        "from pregel.graph.agent import ScriptedModel, create_agent\n"
        "create_agent(ScriptedModel(['ok']), [lambda a: a]).invoke({'messages': 'hi'})\n"
        "print(json.dumps([m for m in ('langchain_core', 'openai', 'mcp') if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize(
    "middleware",
    [
        HumanInTheLoopMiddleware({"ehco": True}),
        ToolCallLimitMiddleware(tool_name="ehco", run_limit=1),
        ToolRetryMiddleware(tools=["ehco"]),
        LLMToolSelectorMiddleware(model=ScriptedModel([]), always_include=["ehco"]),
        ContextEditingMiddleware(edits=[ClearToolUsesEdit(exclude_tools=["ehco"])]),
    ],
    ids=lambda each: type(each).__name__,
)
def test_middleware_that_names_a_tool_which_is_not_there_is_refused(middleware):
    def echo(text: str) -> str:
        """Say it again."""
        return text

    with pytest.raises(GraphDefinitionError, match=r"names the tool 'ehco'.*Did you mean 'echo'"):
        create_agent(ScriptedModel([]), [echo], middleware=[middleware])
    create_agent(ScriptedModel([]), [echo, {"name": "ehco", "type": "of_the_provider"}], middleware=[middleware])
