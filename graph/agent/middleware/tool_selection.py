"""Middleware that lets a model choose which tools the agent's model is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pregel.errors import PregelError, nearest
from pregel.graph.agent.middleware.base import AgentMiddleware
from pregel.graph.agent.middleware.options import check_count, checked_names
from pregel.graph.agent.middleware.own_model import aask, ask, resolved
from pregel.graph.agent.middleware.reading import calls_of, role_of, tool_name
from pregel.graph.messages import HumanMessage, SystemMessage
from pregel.text import shortened

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from pregel.graph.agent.requests import ModelRequest, ModelResponse

__all__ = ["LLMToolSelectorMiddleware", "ToolSelectionError"]

PROMPT: Final = (
    "Your task is to choose the tools that are needed to answer the user's message. Call select_tools with their "
    "names, the most important first."
)
#: The tool by which the model gives its choice: every model that can be asked here can call tools.
SELECT: Final = "select_tools"


class ToolSelectionError(PregelError, ValueError):
    """The model that chooses tools gave no choice, or named tools that there are not."""


class LLMToolSelectorMiddleware(AgentMiddleware):
    """Lets a model choose, before each call of the agent's model, which tools that one is shown.

    Tools that the provider runs, given as dicts, are always shown. An answer that is no choice is a
    `ToolSelectionError`; with `ModelRetryMiddleware` listed before this one the model is asked again.

    Args:
        model: Who chooses: a model, a string such as "openai:gpt-5-mini", or None for the agent's own.
        system_prompt: What it is told.
        max_tools: How many of the tools it chooses are shown, the first ones; None for all.
        always_include: The names of tools that are shown in any case; they don't count as chosen.

    Raises:
        ValueError: An option has a value that it can't have.
    """

    def __init__(
        self,
        *,
        model: Any = None,
        system_prompt: str = PROMPT,
        max_tools: int | None = None,
        always_include: Sequence[str] = (),
    ) -> None:
        who = "LLMToolSelectorMiddleware"
        check_count(who, "max_tools", max_tools, least=1, optional=True)
        self._model = None if model is None else resolved(model, who)
        self._prompt = system_prompt
        self._max = max_tools
        self._always = checked_names(who, "always_include", always_include)

    @property
    def tool_names(self) -> Collection[str]:
        """See `AgentMiddleware`."""
        return self._always

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
        """Call the model with the chosen tools."""
        question = self._question(request)
        return handler(request if question is None else self._narrowed(request, ask(question)))

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        """Do the same, awaited."""
        question = self._question(request)
        return await handler(request if question is None else self._narrowed(request, await aask(question)))

    def _choice(self, request: ModelRequest) -> dict[str, Any]:
        """Return the tools that may be chosen, by name.

        Raises:
            ToolSelectionError: A tool that is always to be shown is not there.
        """
        tools = {tool_name(tool): tool for tool in request.tools if not isinstance(tool, dict)}
        for name in self._always:
            if name not in tools:
                raise ToolSelectionError(
                    f"LLMToolSelectorMiddleware(always_include=[{name!r}]): the agent has no tool of this name."
                    f"{nearest(name, tools)}"
                )
        return {name: tool for name, tool in tools.items() if name not in self._always}

    def _question(self, request: ModelRequest) -> ModelRequest | None:
        """Return the question which tools are needed, or None where there is nothing to choose.

        Raises:
            ToolSelectionError: A tool that is always to be shown is not there.
        """
        tools = self._choice(request)
        asked: Any = next((message for message in reversed(request.messages) if role_of(message) == "human"), None)
        if not tools or asked is None:
            return None
        names = list(tools)
        listed = "\n".join(f"- {name}: {getattr(tool, 'description', None) or ''}" for name, tool in tools.items())
        most = "" if self._max is None else f" At most {self._max} of them are used."
        select = {
            "name": SELECT,
            "description": "Give the tools that are needed.",
            "parameters": {
                "type": "object",
                "properties": {"tools": {"type": "array", "items": {"type": "string", "enum": names}}},
                "required": ["tools"],
            },
        }
        return request.override(
            model=self._model or request.model,
            messages=[HumanMessage(str(asked.text))],
            system_message=SystemMessage(f"{self._prompt}{most}\n\n{listed}"),
            tools=[select],
            tool_choice=SELECT,
            response_format=None,
            model_settings={},
        )

    def _narrowed(self, request: ModelRequest, chosen: Any) -> ModelRequest:
        """Return the request with the chosen tools only, in their order in the agent.

        Raises:
            ToolSelectionError: The answer is no choice.
        """
        call = next((call for call in calls_of(chosen) if call["name"] == SELECT), None)
        names = None if call is None else call["args"].get("tools")
        if not isinstance(names, list):
            raise ToolSelectionError(
                f"the model of LLMToolSelectorMiddleware was to call {SELECT} with a list of tools, and answered "
                f"{shortened(str(chosen.text) if call is None else call['args'])}"
            )
        tools = self._choice(request)
        for name in names:
            if name not in tools and name not in self._always:
                raise ToolSelectionError(
                    f"the model of LLMToolSelectorMiddleware chose the tool {shortened(name)}, which there is not."
                    f"{nearest(name, tools)}"
                )
        kept = {*list(dict.fromkeys(name for name in names if name in tools))[: self._max], *self._always}
        return request.override(
            tools=[tool for tool in request.tools if isinstance(tool, dict) or tool_name(tool) in kept]
        )
