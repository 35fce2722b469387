"""Middleware that replaces the beginning of a long conversation by a summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from pregel.errors import PregelError
from pregel.graph.agent.middleware.base import AgentMiddleware
from pregel.graph.agent.middleware.cutting import cut_before, first_fitting, leading_system
from pregel.graph.agent.middleware.options import check_count
from pregel.graph.agent.middleware.own_model import aask, ask, resolved
from pregel.graph.agent.middleware.reading import calls_of, role_of
from pregel.graph.agent.middleware.tokens import count_tokens_approximately, model_limit
from pregel.graph.agent.requests import ModelRequest
from pregel.graph.messages import REMOVE_ALL_MESSAGES, HumanMessage, RemoveMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pregel.graph.messages import AnyMessage
    from pregel.runtime import Runtime

__all__ = ["ContextSize", "EmptySummaryError", "SummarizationMiddleware"]

#: A size of a conversation: in messages, in tokens, or as a part of what the model reads at most.
ContextSize: TypeAlias = (
    tuple[Literal["messages"], int] | tuple[Literal["tokens"], int] | tuple[Literal["fraction"], float]
)

WHO: Final = "SummarizationMiddleware"
PROMPT: Final = """\
The conversation below has grown too long and is about to be replaced by what you write now. Write down what is \
needed to go on with it: what the user wants, what was decided, what was found out with which tools, what is still \
to do. Keep names, numbers, ids and quotations exactly. Say nothing else, and answer no question of the conversation.

<conversation>
{messages}
</conversation>"""
#: What the summary begins with in the conversation.
HEADING: Final = "Here is a summary of the conversation so far:"


class EmptySummaryError(PregelError, ValueError):
    """The model was asked for a summary and wrote none. Nothing was removed."""


class SummarizationMiddleware(AgentMiddleware):
    """Replaces the beginning of a long conversation by a summary, before the model is called.

    What stays begins where no tool call is separated from its answers; it may so be more than `keep`. System messages
    at the beginning stay too. The summary is a message of the user's; the messages before it leave the state.

    Args:
        model: Who writes the summary: a model, or a string such as "openai:gpt-5-mini".
        trigger: From which size on the conversation is summarized: ("messages", n), ("tokens", n), ("fraction", f) of
            what the model reads at most, or a list of these, of which one is enough. None for never.
        keep: How much of the end stays, in the same form.
        token_counter: From messages to their number of tokens; about a quarter of their characters by default.
        summary_prompt: What the model is asked, with "{messages}" where the conversation belongs.
        trim_tokens_to_summarize: How many tokens of what is replaced the model is shown, the last ones, beside an
            earlier summary; None for all.

    Raises:
        ValueError: The model, a size or the prompt can't be one, or a fraction is given and the model does not say what
            it reads.
    """

    def __init__(
        self,
        model: Any,
        *,
        trigger: ContextSize | Sequence[ContextSize] | None = None,
        keep: ContextSize = ("messages", 20),
        token_counter: Callable[[Sequence[AnyMessage]], int] = count_tokens_approximately,
        summary_prompt: str = PROMPT,
        trim_tokens_to_summarize: int | None = 4000,
    ) -> None:
        self._model = resolved(model, WHO)
        given = [] if trigger is None else [trigger] if isinstance(trigger, tuple) and is_size(trigger) else trigger
        self._triggers = [self._checked("trigger", size) for size in given]
        self._keep = self._checked("keep", keep)
        self._count = token_counter
        if "{messages}" not in summary_prompt:
            raise ValueError(
                "SummarizationMiddleware(summary_prompt=...) lacks '{messages}', where the conversation belongs"
            )
        self._prompt = summary_prompt
        check_count(WHO, "trim_tokens_to_summarize", trim_tokens_to_summarize, least=1, optional=True)
        self._shown = trim_tokens_to_summarize

    def before_model(self, state: Any, runtime: Runtime[Any]) -> Any:
        """Replace the beginning of the conversation if it is too long."""
        cut = self._cut(state["messages"])
        return None if cut is None else self._update(state, cut, ask(self._request(state, cut, runtime)))

    async def abefore_model(self, state: Any, runtime: Runtime[Any]) -> Any:
        """Do the same, awaited."""
        cut = self._cut(state["messages"])
        return None if cut is None else self._update(state, cut, await aask(self._request(state, cut, runtime)))

    def _checked(self, option: str, size: Any) -> tuple[Literal["messages", "tokens"], int]:
        """Return a size in messages or tokens.

        Raises:
            ValueError: It is none.
        """
        if is_size(size):
            kind, amount = size
            if kind == "fraction" and 0 < amount <= 1:
                return "tokens", max(
                    1, int(model_limit(self._model, f"SummarizationMiddleware({option}=...)") * amount)
                )
            if kind in {"messages", "tokens"} and isinstance(amount, int) and amount > 0:
                return cast("tuple[Literal['messages', 'tokens'], int]", (kind, amount))
        raise ValueError(
            f"SummarizationMiddleware({option}=...) can't use {size!r}: a size is ('messages', n) or ('tokens', n) "
            "with n of 1 or more, or ('fraction', f) with f above 0 and not above 1"
        )

    def _cut(self, messages: Sequence[Any]) -> int | None:
        """Return where what stays begins, or None if everything does."""
        if not any(self._size(messages, kind) >= amount for kind, amount in self._triggers):
            return None
        kind, amount = self._keep
        wished = first_fitting(messages, lambda end: self._size(end, kind) <= amount)
        # The last message stays however long it is: it is what the model has to answer.
        cut = cut_before(messages, min(wished, len(messages) - 1))
        return cut if cut > leading_system(messages) else None

    def _fits(self, limit: int) -> Callable[[Sequence[Any]], bool]:
        """Return whether messages have at most so many tokens, as a function of them."""
        return lambda messages: self._count(messages) <= limit

    def _size(self, messages: Sequence[Any], kind: str) -> int:
        """Return the size of messages."""
        return len(messages) if kind == "messages" else self._count(messages)

    def _request(self, state: Any, cut: int, runtime: Any) -> ModelRequest:
        """Return the question for the summary of what goes."""
        messages = state["messages"]
        gone = messages[leading_system(messages) : cut]
        # An earlier summary is all that is known of what it stands for, so it is shown in any case.
        earlier = 1 if is_summary(gone[0]) else 0
        rest = gone[earlier:]
        limit = self._shown
        left_out = 0 if limit is None or not rest else min(first_fitting(rest, self._fits(limit)), len(rest) - 1)
        lines = [*map(shown, gone[:earlier]), *map(shown, rest[left_out:])]
        if left_out:
            lines.insert(earlier, f"[{left_out} messages left out]")
        # Not by `format`: a prompt may have other braces.
        text = self._prompt.replace("{messages}", "\n".join(lines))
        return ModelRequest(self._model, [HumanMessage(text)], state=state, runtime=runtime)

    def _update(self, state: Any, cut: int, summary: Any) -> dict[str, Any]:
        """Return the update that puts a summary in the place of what goes.

        Raises:
            EmptySummaryError: There is no text in it.
        """
        text = str(summary.text).strip()
        if not text:
            raise EmptySummaryError(
                f"the {type(self._model).__name__} of SummarizationMiddleware wrote no summary: its answer has no "
                "text. The conversation is as it was"
            )
        messages = state["messages"]
        start = messages[: leading_system(messages)]
        told = HumanMessage(f"{HEADING}\n\n{text}")
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *start, told, *messages[cut:]]}


def is_size(value: Any) -> bool:
    """Return whether a value has the form of a size."""
    return isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[0], str)  # noqa: PLR2004 - a pair


def is_summary(message: Any) -> bool:
    """Return whether a message is the summary of an earlier part of the conversation."""
    return role_of(message) == "human" and message.text.startswith(HEADING)


def shown(message: Any) -> str:
    """Return a message as a line of the conversation that is summarized."""
    calls = "".join(f" [calls {call['name']} with {call['args']}]" for call in calls_of(message))
    return f"{role_of(message)}: {message.text}{calls}"
