"""An agent whose state has fields of its own: two go in, two come out. Run it with `python -m examples.visibility`.

The tool sees the whole state and changes nothing by itself: it returns a `Command`, and its update is applied at
the barrier. The model is made from the same base class as one of LangChain would be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pregel.graph.agent import AgentState, BaseChatModel, InjectedState, create_agent
from pregel.graph.agent.models import ChatGeneration, ChatResult
from pregel.graph.messages import AIMessage, ToolMessage
from pregel.graph.schema import OmitFromInput, OmitFromOutput
from pregel.types import Command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pregel.graph.agent.models import LanguageModelInput, Runnable
    from pregel.graph.messages import Message, ToolCall


class ModelSimulator(BaseChatModel):
    """Asks for the tool, and is content with whatever it answers."""

    def _generate(
        self,
        messages: list[Message],
        stop: list[str] | None = None,  # noqa: ARG002 - the base class passes it
        run_manager: None = None,  # noqa: ARG002 - as above
        **kwargs: Any,  # noqa: ARG002 - as above
    ) -> ChatResult:
        if any(isinstance(message, ToolMessage) for message in messages):
            return ChatResult(generations=[ChatGeneration(message=AIMessage(""))], llm_output={})
        call: ToolCall = {"name": "fake_tool", "args": {}, "id": "tool_call_001"}
        message = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])

    @property
    def _llm_type(self) -> str:
        return "model-simulator"

    def bind_tools(
        self,
        tools: Sequence[Any],  # noqa: ARG002 - it knows its one tool
        *,
        tool_choice: str | None = None,  # noqa: ARG002 - as above
        **kwargs: Any,  # noqa: ARG002 - as above
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Return the model as it is."""
        return self


class ExtendedAgentState(AgentState):
    """The state of an agent, two inputs and two outputs."""

    foo: Annotated[str, OmitFromOutput]
    bar: Annotated[str, OmitFromOutput]
    baz: Annotated[str, OmitFromInput]
    qux: Annotated[str, OmitFromInput]


def fake_tool(state: Annotated[dict[str, Any], InjectedState]) -> Command[Any]:
    """Copy what went in to what comes out."""
    tool_call_id = state["messages"][-1].tool_calls[0]["id"]
    return Command(
        update={
            "messages": [ToolMessage("", tool_call_id=tool_call_id)],
            "baz": state.get("foo", "N/A"),
            "qux": state.get("bar", "N/A"),
        }
    )


agent = create_agent(model=ModelSimulator(), tools=[fake_tool], state_schema=ExtendedAgentState)


def main() -> None:
    """Run the agent, and say what goes in and what comes out."""
    result = agent.invoke({"foo": "Hello", "bar": "World"})
    print(f"baz: {result['baz']}, qux: {result['qux']}")
    print("in:  ", ", ".join(agent.get_input_jsonschema()["properties"]))
    print("out: ", ", ".join(agent.get_output_jsonschema()["properties"]))
    for name, channel in agent.channels.items():
        print(f"{name}: {type(channel).__name__}")


if __name__ == "__main__":
    main()
