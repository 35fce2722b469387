"""A model that answers from a script: for tests and demos, without a network."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from pregel.errors import InvalidConfigError, nearest
from pregel.graph.agent.models.chunks import pieces_of
from pregel.graph.agent.models.foreign import to_own
from pregel.graph.agent.models.protocol import ModelAnswerError, ModelError
from pregel.graph.messages import AIMessage, add_messages
from pregel.graph.messagetypes import is_foreign
from pregel.text import shortened, show

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from pregel.graph.agent.models.chunks import AIMessageChunk
    from pregel.graph.messages import AnyMessage

__all__ = ["Answer", "ModelCall", "ScriptExhaustedError", "ScriptedModel"]

#: A text, a message, an error that is raised, or what makes one of these from the messages that were asked.
Answer: TypeAlias = str | AIMessage | Exception | Callable[[list[Any]], Any]
OnExhausted: TypeAlias = Literal["raise", "repeat", "cycle"]
WORD: Final = re.compile(r"\s*\S+\s*$|\s*\S+|\s+")


class ScriptExhaustedError(ModelError):
    """A `ScriptedModel` was asked more often than it has answers."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What a `ScriptedModel` was asked."""

    messages: list[AnyMessage]
    tools: list[Mapping[str, Any]] = field(default_factory=list)
    tool_choice: str | None = None
    response_format: Mapping[str, Any] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


class ScriptedModel:
    """Answers the first call with the first answer, the second with the second, and so on.

    The calls are counted over the life of the model, on all threads. Agents that run side by side would take their
    answers in the order of luck: give each a model of its own, or one callable, or a script for each question.

    Args:
        answers: One of these:
            a list of answers, each a text, an `AIMessage`, an exception (it is raised), or a callable that is given
            the messages and returns one of these;
            one callable, which answers every call;
            a dict from the text of the last human message to a list of answers, each list counted by itself.
        on_exhausted: What happens when all answers are given: "raise" a `ScriptExhaustedError`, "repeat" the last one,
            or "cycle" and begin again.

    Raises:
        InvalidConfigError: An answer is none of these, or `on_exhausted` is unknown.
    """

    def __init__(
        self,
        answers: Sequence[Answer] | Mapping[str, Sequence[Answer]] | Callable[[list[Any]], Any],
        *,
        on_exhausted: OnExhausted = "raise",
    ) -> None:
        if on_exhausted not in get_args(OnExhausted):
            raise InvalidConfigError(
                f"ScriptedModel(on_exhausted={on_exhausted!r}): it is one of {', '.join(get_args(OnExhausted))}."
                f"{nearest(on_exhausted, get_args(OnExhausted))}"
            )
        self._scripts = scripts_of(answers)
        self._on_exhausted = on_exhausted
        self._given = dict.fromkeys(self._scripts, 0)
        self._lock = threading.Lock()
        #: What the model was asked, in the order of the calls.
        self.calls: list[ModelCall] = []

    def invoke(
        self,
        messages: Sequence[AnyMessage],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        tool_choice: str | None = None,
        response_format: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> AIMessage:
        """Return the next answer.

        Raises:
            ScriptExhaustedError: There is none.
            ModelAnswerError: What a callable returned is no answer.
        """
        asked: list[Any] = add_messages(None, messages)
        with self._lock:
            self.calls.append(ModelCall(asked, list(tools), tool_choice, response_format, settings))
            answer = self._next(asked)
        while callable(answer):
            answer = answer(list(asked))
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, str):
            return AIMessage(answer)
        if is_foreign(answer):
            (answer,) = to_own([answer])
        if not isinstance(answer, AIMessage):
            raise ModelAnswerError(
                f"a ScriptedModel's callable returned {show(answer)}: give a text, an AIMessage or an exception"
            )
        return answer

    async def ainvoke(self, messages: Sequence[AnyMessage], **options: Any) -> AIMessage:
        """Do the same, awaited."""
        return self.invoke(messages, **options)

    def stream(self, messages: Sequence[AnyMessage], **options: Any) -> Iterator[AIMessageChunk]:
        """Yield the next answer word by word."""
        message = self.invoke(messages, **options)
        yield from pieces_of(message, WORD.findall(message.text))

    async def astream(self, messages: Sequence[AnyMessage], **options: Any) -> AsyncIterator[AIMessageChunk]:
        """Do the same, awaited."""
        for piece in self.stream(messages, **options):
            yield piece

    def _next(self, asked: list[Any]) -> Any:
        """Return the next answer to some messages; called with the lock held."""
        key = key_of(self._scripts, asked)
        script, given = self._scripts[key], self._given[key]
        self._given[key] += 1
        if callable(script):
            return script
        if given >= len(script) and (self._on_exhausted == "raise" or not script):
            where = "" if key is None else f" to {shortened(key)}"
            raise ScriptExhaustedError(
                f"a ScriptedModel was asked {given + 1} times, and it has {len(script)} answers{where}: give more, or "
                f'on_exhausted="repeat". The last message was {last_text(asked)}'
            )
        return script[min(given, len(script) - 1) if self._on_exhausted == "repeat" else given % len(script)]


def scripts_of(answers: Any) -> dict[str | None, Any]:
    """Return the scripts by key; the key is None where there is one script for all calls.

    Raises:
        InvalidConfigError: There are no such answers.
    """
    if callable(answers):
        return {None: answers}
    if isinstance(answers, Mapping):
        return {str(key): script if callable(script) else checked(script) for key, script in answers.items()}
    return {None: checked(answers)}


def checked(answers: Any) -> tuple[Any, ...]:
    """Return answers that are such.

    Raises:
        InvalidConfigError: One is not, or there is no list of them.
    """
    if isinstance(answers, str) or not isinstance(answers, Sequence):
        raise InvalidConfigError(f"ScriptedModel takes a list of answers, not {show(answers)}")
    for place, answer in enumerate(answers):
        is_message = isinstance(answer, AIMessage) or (is_foreign(answer) and answer.type == "ai")
        if not (is_message or isinstance(answer, (str, Exception)) or callable(answer)):
            raise InvalidConfigError(
                f"answer {place} of a ScriptedModel is {show(answer)}: give a text, an AIMessage, an exception, or a "
                "callable that is given the messages"
            )
    return tuple(answers)


def key_of(scripts: dict[str | None, Any], asked: list[Any]) -> str | None:
    """Return the key of the script that answers some messages.

    Raises:
        ModelError: There is none.
    """
    if None in scripts:
        return None
    text = next((str(message.text) for message in reversed(asked) if message.type == "human"), "")
    if text not in scripts:
        raise ModelError(
            f"a ScriptedModel has no answers to {shortened(text)}, which is the last human message."
            f"{nearest(text, [key for key in scripts if key is not None])}"
        )
    return text


def last_text(asked: list[Any]) -> str:
    """Return the text of the last message, for error messages."""
    return shortened(str(asked[-1].text)) if asked else "none"
