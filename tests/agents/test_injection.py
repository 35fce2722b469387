"""What tools are given beside the model's arguments, and that a model can't forge it."""

import operator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.tools import InjectedToolArg as LangChainArg
from langchain_core.tools import tool as langchain_tool
from pydantic import BaseModel

from pregel import START, StateGraph
from pregel.config import RunConfig
from pregel.errors import MissingStoreError, OutsideTaskError
from pregel.graph.agent.injection import (
    InjectedState,
    InjectedStore,
    InjectedToolArg,
    InjectedToolCallId,
    ToolInjectionError,
    ToolRuntime,
)
from pregel.graph.agent.toolnode import ToolNode
from pregel.graph.agent.tools import as_tool
from pregel.graph.messages import AIMessage, MessagesState
from pregel.runtime import Runtime
from pregel.store.memory import InMemoryStore


class State(MessagesState):
    user: str
    log: Annotated[list[str], operator.add]


class Settings(TypedDict):
    unit: str


def call(name, **args):
    return {"name": name, "args": args, "id": "c0"}


def answer(door, made, args, *, state=None, store=None, config=None, wrappers=()):
    builder = StateGraph(State, context_schema=Settings)
    builder.add_node("tools", ToolNode([made], wrappers=wrappers)).add_edge(START, "tools")
    graph = builder.compile(store=store)
    name = as_tool(made).name
    given = {"messages": [AIMessage("", tool_calls=[call(name, **args)])], **(state or {})}
    return door.invoke(graph, given, config, context={"unit": "km"})["messages"][-1]


def test_a_tool_is_given_state_field_call_and_runtime(door):
    def look(
        q: str,
        state: Annotated[dict, InjectedState],
        user: Annotated[str, InjectedState("user")],
        call_id: Annotated[str, InjectedToolCallId],
        config: RunConfig,
        runtime: ToolRuntime[Settings, State],
        same: Runtime[Any],
        bare_state: Annotated[Any, InjectedState()] = None,
    ):
        assert bare_state == state == runtime.state
        assert same.task_id == runtime.task_id
        return [
            q,
            sorted(state),
            user,
            call_id,
            config["configurable"],
            runtime.context,
            runtime.tool_call_id,
            runtime.step,
            runtime.task_id,
            [each.name for each in runtime.tools],
        ]

    message = answer(door, look, {"q": "?"}, state={"user": "ada"}, config={"configurable": {"k": 1}})
    assert message.content == (
        '["?",["log","messages","user"],"ada","c0",{"k":1},{"unit":"km"},"c0",1,"1:0:tools",["look"]]'
    )


@pytest.mark.parametrize(
    "forged",
    [
        {"state": {"user": "root"}},
        {"user": "root"},
        {"call_id": "c9"},
        {"runtime": {"context": {}}},
        {"config": {"configurable": {"k": 9}}},
        {"store": {}},
        {"hidden": "mine"},
    ],
    ids=lambda forged: next(iter(forged)),
)
def test_what_a_model_gives_for_injected_parameters_is_not_seen(door, forged):
    def look(
        state: Annotated[dict, InjectedState],
        user: Annotated[str, InjectedState("user")],
        call_id: Annotated[str, InjectedToolCallId],
        runtime,
        config: RunConfig,
        store: Annotated[Any, InjectedStore] = "no store",
        hidden: Annotated[str, InjectedToolArg] = "default",
    ):
        return [state["user"], user, call_id, runtime.context["unit"], config["configurable"], store, hidden]

    message = answer(door, look, forged, state={"user": "ada"})
    assert message.content == '["ada","ada","c0","km",{},"no store","default"]'


def test_a_langchain_tool_does_not_see_them_either(door):
    @langchain_tool
    def look(
        user: Annotated[str, LangChainArg, InjectedState("user")], plain: Annotated[str, LangChainArg] = "d"
    ) -> str:
        """Look."""
        return f"{user} {plain}"

    message = answer(door, look, {"user": "root", "plain": "forged"}, state={"user": "ada"})
    assert message.content == "ada d"


def test_a_wrapper_gives_what_is_marked_with_injected_tool_arg(door):
    def look(key: Annotated[str, InjectedToolArg], state: Annotated[dict, InjectedState]):
        return f"{key} {state['user']}"

    def give(request, handler):
        args = {**request.tool_call["args"], "key": "k1"}
        return handler(request.override(tool_call={**request.tool_call, "args": args}, state={"user": "other"}))

    assert answer(door, look, {"key": "forged"}, wrappers=[give]).content == "k1 other"
    with pytest.raises(ToolInjectionError, match=r"'key' of tool 'look'.*no wrapper"):
        answer(door, look, {"key": "forged"})


def test_a_field_without_value_is_an_error_or_the_default(door):
    def needs(user: Annotated[str, InjectedState("usr")]):
        return user

    def takes(user: Annotated[str, InjectedState("user")] = "nobody"):
        return user

    assert answer(door, takes, {}).content == "nobody"
    with pytest.raises(ToolInjectionError, match=r"'usr' of the state, which has no value\. Did you mean 'user'\?"):
        answer(door, needs, {}, state={"user": "ada"})


def test_the_store_is_given_and_its_absence_is_an_error(door):
    def count(store: Annotated[Any, InjectedStore()], runtime):
        assert runtime.store is store
        store.put(("n",), "k", {"v": 1})
        return store.get(("n",), "k").value

    assert answer(door, count, {}, store=InMemoryStore()).content == '{"v":1}'
    with pytest.raises(MissingStoreError, match="'store' of tool 'count'"):
        answer(door, count, {})


def test_a_state_may_be_taken_as_an_instance():
    @dataclass
    class Data:
        user: str

    class Model(BaseModel):
        user: str
        n: int = 3

    def look(data: Annotated[Data, InjectedState], model: Annotated[Model, InjectedState]):
        return data, model

    runtime = ToolRuntime({"user": "ada", "other": 1}, None, {}, print)
    assert as_tool(look).call({}, runtime=runtime) == (Data("ada"), Model(user="ada"))


def test_a_tool_that_adds_to_its_state_changes_nobodys(door):
    def spoil(state: Annotated[dict, InjectedState], log: Annotated[list, InjectedState("log")]):
        state["user"] = "mallory"
        state["messages"].clear()
        log.append("spoiled")
        return "done"

    builder = StateGraph(State).add_node("tools", ToolNode([spoil])).add_edge(START, "tools")
    given = {"user": "ada", "messages": [AIMessage("", tool_calls=[call("spoil")])]}
    state = door.invoke(builder.compile(), given)
    assert (state["user"], len(state["messages"]), state["log"]) == ("ada", 2, [])


def test_what_a_tool_writes_to_the_stream_is_there(door):
    def tell(runtime: ToolRuntime):
        runtime.stream_writer({"half": 1})
        return "done"

    builder = StateGraph(State).add_node("tools", ToolNode([tell])).add_edge(START, "tools")
    given = {"messages": [AIMessage("", tool_calls=[call("tell")])]}
    assert door.stream(builder.compile(), given, stream_mode="custom") == [{"half": 1}]


def test_the_markers_of_other_libraries_count_by_their_names():
    other = {
        "InjectedState": type("InjectedState", (), {"field": "user"}),
        "InjectedToolCallId": type("Sub", (type("InjectedToolCallId", (), {}),), {}),
    }

    def look(user: Annotated[str, other["InjectedState"]()], call_id: Annotated[str, other["InjectedToolCallId"]]):
        return user, call_id

    made = as_tool(look)
    assert made.parameters["properties"] == {}
    assert made.call({}, runtime=ToolRuntime({"user": "ada"}, None, {}, print, "c7")) == ("ada", "c7")


def test_a_runtime_class_of_another_library_is_built():
    @dataclass
    class ToolRuntime:
        state: dict
        tool_call_id: str
        unknown: int = 1

    def look(runtime: ToolRuntime):
        return runtime

    import pregel.graph.agent.injection as ours

    runtime = ours.ToolRuntime({"a": 1}, None, {}, print, "c1")
    assert as_tool(look).call({}, runtime=runtime) == ToolRuntime({"a": 1}, "c1", None)


def test_a_type_of_the_users_that_is_named_as_one_of_ours_is_the_models():
    class Runtime(BaseModel):
        minutes: int

    def film(length: Runtime):
        return length.minutes

    assert as_tool(film).call({"length": {"minutes": "90"}}) == 90


def test_outside_of_a_graph_a_tool_can_be_called_with_a_runtime_or_without_need_of_one():
    def plain(a: int, store: Annotated[Any, InjectedStore] = None):
        return a

    def needs(a: int, runtime):
        return runtime.state["x"] + a

    assert as_tool(plain).call({"a": 1}) == 1
    assert as_tool(needs).call({"a": 1}, runtime=ToolRuntime({"x": 2}, None, {}, print)) == 3
    with pytest.raises(ToolInjectionError, match="there is none"):
        as_tool(needs).call({"a": 1})
    with pytest.raises(OutsideTaskError):
        ToolNode([plain]).invoke({"messages": [AIMessage("", tool_calls=[call("plain", a=1)])]})
