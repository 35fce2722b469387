"""Middleware that gives the model a list of things to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, NotRequired

from pydantic import ConfigDict
from typing_extensions import TypedDict

from pregel.graph.agent.injection import InjectedToolCallId
from pregel.graph.agent.middleware.base import AgentMiddleware
from pregel.graph.agent.middleware.reading import with_content
from pregel.graph.agent.state import AgentState
from pregel.graph.agent.tools import tool
from pregel.graph.agent.turns import answer_to, pending_calls
from pregel.graph.messages import SystemMessage, ToolMessage
from pregel.graph.schema import OmitFromInput
from pregel.types import Command

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pregel.graph.agent.requests import ModelRequest, ModelResponse
    from pregel.runtime import Runtime

__all__ = ["Todo", "TodoListMiddleware", "TodoState"]

TOOL: Final = "write_todos"
PROMPT: Final = """\
## write_todos

You have the tool write_todos to plan work of many steps and to show how far you are. Use it where a task has three \
steps or more, and not where it has fewer. Mark a step as in_progress before you begin it and as completed as soon \
as it is done, not several at once. Change the list where you learn something new. Never call write_todos more than \
once in one message."""
DESCRIPTION: Final = """\
Write the list of things to do for the current task. The list replaces the one before: give all steps, those that are \
completed too. The status of a step is "pending", "in_progress" or "completed"."""


class Todo(TypedDict):
    """A step of a plan."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]  # read by pydantic

    content: str
    status: Literal["pending", "in_progress", "completed"]


class TodoState(AgentState[Any]):
    """The list, which whoever runs the agent may show."""

    todos: NotRequired[Annotated[list[Todo], OmitFromInput]]


def write_todos(todos: list[Todo], tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Replace the list."""
    told = ToolMessage(f"The list is now {todos}", tool_call_id=tool_call_id, name=TOOL)
    return Command(update={"todos": todos, "messages": [told]})


class TodoListMiddleware(AgentMiddleware):
    """Gives the model the tool `write_todos`, the state a field `todos`, and the prompt a text that tells of them.

    Args:
        system_prompt: What is added to the agent's prompt.
        tool_description: What the model is told of the tool.
    """

    state_schema: ClassVar[Any] = TodoState

    def __init__(self, *, system_prompt: str = PROMPT, tool_description: str = DESCRIPTION) -> None:
        self._prompt = system_prompt
        self.tools = [tool(write_todos, description=tool_description)]

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
        """Call the model with the longer prompt."""
        return handler(self._prompted(request))

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        """Do the same, awaited."""
        return await handler(self._prompted(request))

    def after_model(self, state: Any, runtime: Runtime[Any]) -> Any:  # noqa: ARG002 - the form of a hook
        """Answer several calls of one message with errors: each replaces the list, and none comes first."""
        calls = [call for call in pending_calls(state["messages"]) if call["name"] == TOOL]
        if len(calls) < 2:  # noqa: PLR2004 - several
            return None
        text = f"{TOOL} was called {len(calls)} times in one message, and nothing was written: give one whole list."
        return {"messages": [answer_to(call, text, error=True) for call in calls]}

    def _prompted(self, request: ModelRequest) -> ModelRequest:
        """Return the request with the longer prompt."""
        message = request.system_message
        if message is None:
            longer = SystemMessage(self._prompt)
        elif isinstance(message.content, str):
            longer = with_content(message, f"{message.content}\n\n{self._prompt}")
        else:
            longer = with_content(message, [*message.content, {"type": "text", "text": f"\n\n{self._prompt}"}])
        return request.override(system_message=longer)
