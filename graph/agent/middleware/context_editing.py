"""Middleware that leaves parts of the conversation out of what the model reads, and changes no state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pregel.graph.agent.middleware.base import AgentMiddleware
from pregel.graph.agent.middleware.options import check_count, checked_names
from pregel.graph.agent.middleware.reading import calls_of, with_calls, with_content
from pregel.graph.agent.middleware.tokens import count_tokens_approximately

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

    from pregel.graph.agent.requests import ModelRequest, ModelResponse

__all__ = ["ClearToolUsesEdit", "ContextEdit", "ContextEditingMiddleware"]


class ContextEdit(Protocol):
    """A change of what the model reads."""

    def apply(self, messages: Sequence[Any], *, count_tokens: Callable[[Sequence[Any]], int]) -> list[Any]:
        """Return the messages with the change; those given are left alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearToolUsesEdit:
    """Clears the results of tools when the conversation is long, the oldest first.

    Raises:
        ValueError: An option has a value that it can't have.
    """

    #: From how many tokens on.
    trigger: int = 100_000
    #: Clear results until so many tokens are saved; 0 clears all but those that are kept.
    clear_at_least: int = 0
    #: How many of the last results stay in any case.
    keep: int = 3
    #: Whether the arguments of the calls are cleared with their results.
    clear_tool_inputs: bool = False
    #: The names of tools whose results stay.
    exclude_tools: Sequence[str] = ()
    #: What a result is replaced by.
    placeholder: str = "[cleared]"

    def __post_init__(self) -> None:
        for option in ("trigger", "clear_at_least", "keep"):
            check_count("ClearToolUsesEdit", option, getattr(self, option))
        checked_names("ClearToolUsesEdit", "exclude_tools", self.exclude_tools)

    def apply(self, messages: Sequence[Any], *, count_tokens: Callable[[Sequence[Any]], int]) -> list[Any]:
        """Return the messages with some results cleared; those given are left alone.

        Args:
            messages: The conversation.
            count_tokens: Gives the number of tokens of messages.
        """
        edited = list(messages)
        before = count_tokens(edited)
        if before <= self.trigger:
            return edited
        results = results_in(edited)
        for place, caller, tool in results[: len(results) - self.keep] if self.keep else results:
            if tool in self.exclude_tools or edited[place].content == self.placeholder:
                continue
            edited[place] = with_content(edited[place], self.placeholder)
            if self.clear_tool_inputs and caller is not None:
                edited[caller] = without_args(edited[caller], edited[place].tool_call_id)
            if self.clear_at_least and before - count_tokens(edited) >= self.clear_at_least:
                break
        return edited


def results_in(messages: Sequence[Any]) -> list[tuple[int, int | None, str | None]]:
    """Return where the results of tools stand, where the messages that called them do, and the tools' names."""
    found: list[tuple[int, int | None, str | None]] = []
    made: dict[Any, tuple[int, str]] = {}
    for place, message in enumerate(messages):
        made.update({call["id"]: (place, call["name"]) for call in calls_of(message)})
        if message.type == "tool":
            found.append((place, *made.get(message.tool_call_id, (None, message.name))))
    return found


def without_args(message: Any, call_id: str) -> Any:
    """Return a model's message in which a call has no arguments."""
    return with_calls(message, [{**call, "args": {}} if call["id"] == call_id else call for call in calls_of(message)])


class ContextEditingMiddleware(AgentMiddleware):
    """Leaves parts of the conversation out of what the model reads. The state stays as it is.

    Args:
        edits: What is done, in order; without any, `ClearToolUsesEdit()`.
        token_count_method: "approximate" takes a quarter of the characters, "model" asks the model, which must have
            LangChain's `get_num_tokens_from_messages`.

    Raises:
        ValueError: There is no such method.
    """

    def __init__(
        self,
        *,
        edits: Iterable[ContextEdit] | None = None,
        token_count_method: Literal["approximate", "model"] = "approximate",  # noqa: S107 - tokens of text
    ) -> None:
        if token_count_method not in {"approximate", "model"}:
            raise ValueError(
                f"ContextEditingMiddleware(token_count_method={token_count_method!r}): it is 'approximate' or 'model'"
            )
        self._edits: list[ContextEdit] = [ClearToolUsesEdit()] if edits is None else list(edits)
        self._asks_model = token_count_method == "model"  # noqa: S105 - tokens of text

    @property
    def tool_names(self) -> Collection[str]:
        """See `AgentMiddleware`."""
        return [name for edit in self._edits for name in getattr(edit, "exclude_tools", ())]

    def wrap_model_call(self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]) -> ModelResponse:
        """Call the model with the edited conversation."""
        return handler(self._edited(request))

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        """Do the same, awaited."""
        return await handler(self._edited(request))

    def _edited(self, request: ModelRequest) -> ModelRequest:
        """Return the request with the edited conversation."""
        system = [] if request.system_message is None else [request.system_message]
        count = self._counter(request.model)
        messages: list[Any] = list(request.messages)
        for edit in self._edits:
            messages = edit.apply(messages, count_tokens=lambda given: count([*system, *given]))
        return request.override(messages=messages)

    def _counter(self, model: Any) -> Callable[[Sequence[Any]], int]:
        """Return what counts tokens.

        Raises:
            ValueError: The model should, and can't.
        """
        if not self._asks_model:
            return count_tokens_approximately
        counter: Callable[[Sequence[Any]], int] | None = getattr(model, "get_num_tokens_from_messages", None)
        if counter is None:
            raise ValueError(
                f"ContextEditingMiddleware(token_count_method='model'): the {type(model).__name__} has no "
                "get_num_tokens_from_messages: use 'approximate'"
            )
        return counter
