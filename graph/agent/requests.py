"""What goes through the wrappers around model and tool calls."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Self

from pregel.errors import GraphDefinitionError
from pregel.graph.agent.turns import is_answer_of_model

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pregel.graph.agent.injection import ToolRuntime
    from pregel.graph.messages import AnyMessage, SystemMessage, ToolCall
    from pregel.runtime import Runtime
    from pregel.types import Command

__all__ = ["ExtendedModelResponse", "ModelRequest", "ModelResponse", "ToolCallRequest"]

#: What a request has parts for, so that no setting may say it too.
PARTS: Final = ("messages", "system_message", "tools", "tool_choice")


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call of the model, which wrappers may change by `override` before they pass it on.

    Raises:
        GraphDefinitionError: The settings have a name that a part of the request has.
    """

    #: A `ChatModel`, or a chat model of LangChain.
    model: Any
    #: The conversation without the system message: a list of its own, so that changing it changes no state.
    messages: list[AnyMessage]
    system_message: SystemMessage | None = None
    #: `Tool`s, tools of LangChain, or dicts that describe tools which the provider runs.
    tools: list[Any] = field(default_factory=list)
    #: The name of the tool that must be called, "any", "none" or "auto"; None for the model's own default.
    tool_choice: str | None = None
    #: A `ToolStrategy`, a `ProviderStrategy`, or None.
    response_format: Any = None
    #: What else the model is called with, such as `temperature`.
    model_settings: Mapping[str, Any] = field(default_factory=dict)
    #: The state that the model node sees.
    state: Mapping[str, Any] = field(default_factory=dict)
    runtime: Runtime[Any] | None = None

    def __post_init__(self) -> None:
        for name in PARTS:
            if name in self.model_settings:
                raise GraphDefinitionError(
                    f"model_settings has {name!r}, which is a part of the request by itself: "
                    f"request.override({name}=...)"
                )

    @property
    def system_prompt(self) -> str | None:
        """The text of the system message."""
        return None if self.system_message is None else self.system_message.text

    def override(self, **changes: Any) -> Self:
        """Return the same request with some parts replaced; `system_prompt=` sets the system message by its text.

        Raises:
            TypeError: There is no part of that name.
            GraphDefinitionError: See above.
        """
        if "system_prompt" in changes:
            from pregel.graph.messages import SystemMessage  # noqa: PLC0415 - where a prompt is changed

            prompt = changes.pop("system_prompt")
            changes["system_message"] = None if prompt is None else SystemMessage(prompt)
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class ModelResponse:
    """What a call of the model gave."""

    #: The messages to add to the conversation: the model's, and `ToolMessage`s that answer structured output calls.
    result: Sequence[AnyMessage]
    #: The answer in the form of `response_format`; None where there is none.
    structured_response: Any = None

    @property
    def message(self) -> Any:
        """The model's message."""
        return next(message for message in reversed(self.result) if is_answer_of_model(message))


@dataclass(frozen=True, slots=True)
class ExtendedModelResponse:
    """What a `wrap_model_call` returns that also updates the state."""

    model_response: ModelResponse
    #: Its `update` becomes part of the model node's; it can't steer the run.
    command: Command[Any] | None = None


@dataclass(frozen=True, slots=True)
class ToolCallRequest:
    """One call of a tool, which wrappers may change by `override` before they pass it on."""

    tool_call: ToolCall
    #: The tool; None where no tool has this name, so that a wrapper may supply one.
    tool: Any
    #: The state of the last barrier.
    state: Mapping[str, Any]
    runtime: ToolRuntime

    def override(self, **changes: Any) -> Self:
        """Return the same request with some parts replaced.

        Raises:
            TypeError: There is no part of that name.
        """
        return replace(self, **changes)
