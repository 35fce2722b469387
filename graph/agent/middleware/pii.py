"""Middleware that keeps personal data from the model, or from who reads its answers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, get_args

from pregel.errors import PregelError, nearest
from pregel.graph.agent.middleware.base import AgentMiddleware
from pregel.graph.agent.middleware.detectors import DETECTORS, Strategy, by_pattern, distinct, replaced
from pregel.graph.agent.middleware.reading import replaced_text, role_of, with_content

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pregel.graph.agent.middleware.detectors import Detector, PIIMatch
    from pregel.runtime import Runtime

__all__ = ["PIIDetectionError", "PIIMiddleware"]

STRATEGIES: Final = get_args(Strategy)


class PIIDetectionError(PregelError, ValueError):
    """A message holds personal data that may not be there. The message of the error does not tell it."""

    def __init__(self, pii_type: str, matches: Sequence[PIIMatch], where: str = "a message") -> None:
        super().__init__(f"{where} holds {len(matches)} piece(s) of the kind {pii_type!r}, which are blocked")
        self.pii_type = pii_type
        self.matches = list(matches)


class PIIMiddleware(AgentMiddleware):
    """Finds personal data of one kind in messages, and replaces it in the state, or refuses it.

    Texts and content blocks of type "text" are looked through; the arguments of tool calls are not: tools need them as
    they are. Each kind has a middleware of its own. What a run is given is stored with the checkpoint of its input
    before it is replaced, and readers of `stream_mode="messages"` see what the model says as it is said.

    Args:
        pii_type: "email", "credit_card", "ip", "mac_address", "url", or a kind of your own, with a `detector`.
        strategy: "redact" ("[REDACTED_EMAIL]"), "mask" (a part stays visible), "hash" (the same for the same data; who
            can guess the data can check the guess), or "block" (`PIIDetectionError`).
        detector: What finds the data: a regular expression, or a function from a text to `PIIMatch`es.
        apply_to_input: Whether the user's messages are looked through, before the model is called.
        apply_to_output: Whether the model's are, after it is called.
        apply_to_tool_results: Whether the tools' answers are, before the model is called, and when the agent is done.

    Raises:
        ValueError: The kind is unknown and has no detector, or an option has a value that it can't have.
    """

    def __init__(
        self,
        pii_type: str,
        *,
        strategy: Strategy = "redact",
        detector: str | Detector | None = None,
        apply_to_input: bool = True,
        apply_to_output: bool = False,
        apply_to_tool_results: bool = False,
    ) -> None:
        if strategy not in STRATEGIES:
            raise ValueError(
                f"PIIMiddleware({pii_type!r}, strategy={strategy!r}): there is no such strategy."
                f"{nearest(strategy, STRATEGIES)} There are {', '.join(STRATEGIES)}"
            )
        self._kind = pii_type
        self._strategy = strategy
        self._detect = detector_of(pii_type, detector)
        kinds = {"human": apply_to_input, "tool": apply_to_tool_results}
        self._before = frozenset(kind for kind, applies in kinds.items() if applies)
        self._after = frozenset({"ai"} if apply_to_output else ())
        self._last = self._before & {"tool"}
        if not self._before | self._after:
            raise ValueError(
                f"PIIMiddleware({pii_type!r}, ...) looks at nothing: set apply_to_input, apply_to_output or "
                "apply_to_tool_results"
            )

    @property
    def name(self) -> str:
        """Its name in the graph, with the kind."""
        return f"{type(self).__name__}[{self._kind}]"

    def overrides(self, method: str) -> bool:
        """Return whether it has a method: a hook that would look at nothing is no node of the graph."""
        kinds = {"before_model": self._before, "after_model": self._after, "after_agent": self._last}
        return super().overrides(method) and bool(kinds.get(method, True))

    def before_model(self, state: Any, runtime: Runtime[Any]) -> Any:  # noqa: ARG002 - the form of a hook
        """Look through what the user and the tools say.

        Raises:
            PIIDetectionError: There is such data, and it is blocked.
        """
        return self._cleaned(state["messages"], self._before)

    def after_model(self, state: Any, runtime: Runtime[Any]) -> Any:  # noqa: ARG002 - the form of a hook
        """Look through what the model says.

        Raises:
            PIIDetectionError: There is such data, and it is blocked.
        """
        return self._cleaned(state["messages"], self._after)

    def after_agent(self, state: Any, runtime: Runtime[Any]) -> Any:  # noqa: ARG002 - the form of a hook
        """Look through what the tools say where that is the agent's answer, which no model is shown.

        Raises:
            PIIDetectionError: There is such data, and it is blocked.
        """
        return self._cleaned(state["messages"], self._last)

    def _cleaned(self, messages: Iterable[Any], kinds: frozenset[str]) -> dict[str, Any] | None:
        """Return the messages of these kinds in which something is replaced, as an update; None if nothing is.

        All are looked through each time, not only new ones: a run may be given a whole conversation.
        """
        news = []
        for message in messages:
            if role_of(message) in kinds:
                content = replaced_text(message.content, self._replacer(message))
                if content != message.content:
                    news.append(with_content(message, content))
        return {"messages": news} if news else None

    def _replacer(self, message: Any) -> Callable[[str], str]:
        """Return what cleans a text of a message."""

        def clean(text: str) -> str:
            matches = distinct(self._detect(text))
            if matches and self._strategy == "block":
                raise PIIDetectionError(self._kind, matches, f"a message of type {role_of(message)!r}")
            return replaced(text, matches, self._strategy)

        return clean


def detector_of(kind: str, given: str | Detector | None) -> Detector:
    """Return what finds data of a kind.

    Raises:
        ValueError: The kind is unknown and there is no detector, or it is no regular expression.
    """
    if callable(given):
        return given
    if given is not None:
        try:
            return by_pattern(kind, re.compile(given))
        except re.error as error:
            raise ValueError(f"PIIMiddleware({kind!r}, detector={given!r}): no regular expression: {error}") from None
    if kind not in DETECTORS:
        raise ValueError(
            f"PIIMiddleware({kind!r}): unknown kind.{nearest(kind, DETECTORS)} There are {', '.join(DETECTORS)}; "
            "any other needs a detector=, a regular expression or a function from a text to its matches"
        )
    return DETECTORS[kind]
