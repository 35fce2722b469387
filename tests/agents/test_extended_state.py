"""The example of a state with fields of its own, as it was written for LangChain: only its import lines differ."""

import sys
from types import ModuleType

import pytest

from pregel.channels import BinaryOperatorAggregate, EphemeralValue, LastValue
from pregel.errors import InvalidInputError

#: The author's own words, below his import lines and above his call.
EXAMPLE = '''
class ModelSimulator(BaseChatModel):
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        if [message for message in messages if isinstance(message, ToolMessage)]:
            generation = ChatGeneration(message=AIMessage(""))
            return ChatResult(generations=[generation], llm_output={})

        tool_call: ToolCall = {
            "name": "fake_tool",
            "args": {},
            "id": "tool_call_001",
        }
        generation = ChatGeneration(message=AIMessage(content="", tool_calls=[tool_call]))
        return ChatResult(generations=[generation], llm_output={})

    @property
    def _llm_type(self) -> str:
        return "model-simulator"

    @override
    def bind_tools(
        self,
        tools: Sequence[builtins.dict[str, Any] | type | Callable | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        return self


class ExtendedAgentState(AgentState):
    foo: Annotated[str, OmitFromOutput]
    bar: Annotated[str, OmitFromOutput]
    baz: Annotated[str, OmitFromInput]
    qux: Annotated[str, OmitFromInput]


def fake_tool(state: Annotated[dict, InjectedState]) -> Command:
    """A fake tool"""
    tool_call_id = state["messages"][-1].tool_calls[0]["id"]
    return Command(
        update={
            "messages": [ToolMessage("", tool_call_id=tool_call_id)],
            "baz": state.get("foo", "N/A"),
            "qux": state.get("bar", "N/A"),
        },
    )


agent = create_agent(
    model=ModelSimulator(),
    tools=[fake_tool],
    state_schema=ExtendedAgentState,
)
'''

CALL = """
result = agent.invoke(input={"foo": "Hello", "bar": "World"})  # type: ignore
assert result["baz"] == "Hello"
assert result["qux"] == "World"
"""

#: Where the author's names come from, with LangChain's messages and models, and with our own alone.
IMPORTS = {
    "langchain": """
from typing import Annotated, Any, Callable, Sequence
from typing_extensions import override
import builtins
from pregel.graph.agent import create_agent
from pregel.graph.agent.middleware import OmitFromOutput, OmitFromInput
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import BaseMessage, AIMessage, ToolMessage, ToolCall
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.outputs.chat_result import ChatResult, ChatGeneration
from langchain_core.tools import BaseTool
from langchain_core.runnables import Runnable
from pregel.graph.agent import InjectedState
from pregel.graph.agent.middleware import AgentState
from pregel.types import Command
""",
    "own": """
from typing import Annotated, Any, Callable, Sequence
from typing_extensions import override
import builtins
from pregel.graph.agent import create_agent
from pregel.graph.agent.middleware import OmitFromOutput, OmitFromInput
from pregel.graph.agent.models import BaseChatModel, LanguageModelInput
from pregel.graph.messages import AnyMessage as BaseMessage, AIMessage, ToolMessage, ToolCall
from typing import Any as CallbackManagerForLLMRun
from pregel.graph.agent.models import ChatResult, ChatGeneration
from pregel.graph.agent.tools import Tool as BaseTool
from pregel.graph.agent.models import Runnable
from pregel.graph.agent import InjectedState
from pregel.graph.agent.middleware import AgentState
from pregel.types import Command
""",
}


@pytest.fixture(params=sorted(IMPORTS))
def example(request, monkeypatch):
    module = ModuleType(f"example_{request.param}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(IMPORTS[request.param] + EXAMPLE, module.__dict__)  # noqa: S102 - the text stands above
    return module


@pytest.fixture
def agent(example):
    return example.agent


def test_the_example_gives_what_its_author_says(example):
    exec(CALL, example.__dict__)  # noqa: S102 - the text stands above


def test_it_does_so_in_every_way_to_run_it(agent, door):
    result = door.invoke(agent, {"foo": "Hello", "bar": "World"})
    assert (result["baz"], result["qux"]) == ("Hello", "World")
    assert [message.type for message in result["messages"]] == ["ai", "tool", "ai"]
    assert sorted(result) == ["baz", "messages", "qux"]


def test_messages_stay_of_the_classes_that_made_them(example):
    messages = example.agent.invoke({"foo": "", "bar": ""})["messages"]
    assert [type(message) for message in messages] == [example.AIMessage, example.ToolMessage, example.AIMessage]


#: Field: channel, whether it is input, whether it is output.
TABLE = {
    "messages": (BinaryOperatorAggregate, True, True),
    "jump_to": (EphemeralValue, False, False),
    "structured_response": (LastValue, False, True),
    "foo": (LastValue, True, False),
    "bar": (LastValue, True, False),
    "baz": (LastValue, False, True),
    "qux": (LastValue, False, True),
}


def test_the_agent_has_the_channels_inputs_and_outputs_that_its_author_lists(agent):
    given, got = agent.get_input_jsonschema()["properties"], agent.get_output_jsonschema()["properties"]
    assert {name: (type(channel), name in given, name in got) for name, channel in agent.channels.items()} == TABLE


def test_the_nodes_and_edges_of_the_example(agent):
    drawing = agent.get_graph()
    assert list(drawing.nodes) == ["__start__", "model", "tools", "__end__"]
    assert {(source, target, data["kind"]) for source, target, data in drawing.edges(data=True)} == {
        ("__start__", "model", "static"),
        ("model", "tools", "conditional"),
        ("model", "model", "conditional"),  # where the arguments of all calls can't be read
        ("model", "__end__", "conditional"),
        ("tools", "model", "conditional"),
    }


def test_a_field_that_is_no_input_is_not_taken_from_the_caller(agent):
    assert agent.invoke({"foo": "Hello", "bar": "World", "baz": "mine"})["baz"] == "Hello"
    with pytest.raises(InvalidInputError, match="'jump_to', which is private"):
        agent.invoke({"foo": "", "bar": "", "jump_to": "end"})


def test_the_example_goes_on_where_it_was_stopped(agent, saver, door):
    stored = agent.builder.compile(saver, interrupt_before=["tools"])
    thread = {"configurable": {"thread_id": "one"}}
    result = door.invoke(stored, {"foo": "Hello", "bar": "World"}, thread)
    assert result["__interrupt__"][0].nodes == ("tools",)
    result = door.invoke(stored, None, thread)
    assert (result["baz"], result["qux"]) == ("Hello", "World")
