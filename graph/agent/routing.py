"""Where an agent's run goes next, as far as the conversation and its hooks say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, get_args

from pregel.codec import register
from pregel.errors import InvalidUpdateError, nearest
from pregel.graph.agent.runs import ANSWER, noted
from pregel.graph.agent.state import JumpTo
from pregel.graph.agent.structured import MissingStructuredOutputError
from pregel.graph.agent.turns import has_error, last_turn, pending_calls, plain
from pregel.graph.messages import add_messages
from pregel.text import show
from pregel.types import END, Command, Overwrite, Send

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from pregel.graph.messages import ToolCall

__all__ = [
    "CORRECTION",
    "Router",
    "ToolTurn",
    "check_jump",
    "goto_in",
    "is_correction",
    "jump_in",
    "pairs_of",
    "updated",
    "updates_in",
]

#: The name of a message that tells the model what was wrong with its answer, so that it answers again.
CORRECTION: Final = "correction"
JUMPS: Final[tuple[str, ...]] = get_args(JumpTo)


@dataclass(frozen=True, slots=True)
class ToolTurn:
    """What a `Send` to the tools carries: small, for it is stored."""

    call: ToolCall
    #: Whether the loop ends when the calls of the turn are done, unless one is answered by an error. All calls of a
    #: turn agree.
    ends: bool = False

    @property
    def told_as(self) -> str:
        """How messages call the task."""
        return f"tool {self.call['name']!r}, call {self.call['id']!r}"


register(ToolTurn, tag="pregel:ToolTurn")


@dataclass(frozen=True, slots=True)
class Router:
    """Knows the layout of one agent, and decides."""

    #: The first node of the loop, and what follows the loop.
    loop: str
    exit: str
    #: The node of the tools, or None where there is none.
    tools: str | None = None
    #: The tools whose result is the agent's answer.
    direct: frozenset[str] = frozenset()
    #: Whether the agent has a `response_format`, and whether it may be asked for a form at all.
    has_form: bool = False
    asks_forms: bool = False
    #: What follows several calls of `direct` tools, if one may lead back and another out: a node that looks at all.
    join: str | None = None

    def after_model(self, messages: Sequence[Any], answer: Any, tries: int = 0) -> list[str | Send]:
        """Return what follows the last hook after a model call.

        Args:
            messages: The conversation.
            answer: The structured response, or None.
            tries: How often the model was told in this run to correct it: if it was, it is still to come.
        """
        calls = self.calls(messages, answer)
        if calls:
            return calls
        if answer is not None:
            return [self.exit]
        return [self.loop if self.has_form or tries or asks_again(messages) else self.exit]

    def calls(self, messages: Sequence[Any], answer: Any) -> list[str | Send]:
        """Return one `Send` for each call that has no answer yet."""
        if self.tools is None:
            return []
        calls = pending_calls(messages)
        direct = all(call["name"] in self.direct for call in calls) and not has_error(last_turn(messages)[1])
        ends = answer is not None or direct
        return [Send(self.tools, ToolTurn(plain(call), ends)) for call in calls]

    def after_tools(self, *, ends: bool) -> str:
        """Return what follows a turn of tool calls."""
        return self.exit if ends else self.loop

    def noted(self, state: Mapping[str, Any], written: Collection[str], *, may_begin: bool = False) -> dict[str, Any]:
        """Return what a node adds to its updates; see `pregel.graph.agent.runs.noted`."""
        return noted(state, written, has_form=self.has_form, may_begin=may_begin) if self.asks_forms else {}

    def leads_out(self, goto: Iterable[Any]) -> bool:
        """Return whether something of a `Command(goto=...)` leads out of the loop."""
        return any(isinstance(each, str) and each in {END, self.exit} for each in goto)

    def check_end(self, where: str, answer: Any, updates: Iterable[tuple[str, Any]]) -> None:
        """Check that a run may be ended: not without the structured response, if not on purpose.

        Args:
            where: Who ends it, for messages.
            answer: The structured response, or None.
            updates: What it updates: None as the structured response says that there shall be none.

        Raises:
            MissingStructuredOutputError: It may not.
        """
        if self.has_form and answer is None and all(name != ANSWER for name, _ in updates):
            raise MissingStructuredOutputError(
                f"{where} ends the run, and the agent has not given its structured response. Let it go on, or give one "
                f"beside the jump: {{'jump_to': 'end', {ANSWER!r}: ...}}, with None where there shall be none"
            )

    def jump(
        self, target: str, allowed: Sequence[str], where: str, exit_: str, messages: Sequence[Any], answer: Any
    ) -> list[str | Send]:
        """Return what follows a hook that jumps.

        Args:
            target: Where to.
            allowed: What the hook declares.
            where: How messages name the hook.
            exit_: What "end" means for it.
            messages: The conversation.
            answer: The structured response, or None.

        Raises:
            InvalidUpdateError: There is no such target, the hook does not declare it, or it is "tools" and no call
                waits.
        """
        check_jump(target, where)
        if target not in allowed:
            declared = f"It declares {', '.join(map(repr, allowed))}" if allowed else "It declares no jump"
            raise InvalidUpdateError(
                f"{where} jumps to {target!r}, which it does not declare. {declared}: decorate it with "
                f"hook_config(can_jump_to=[{', '.join(map(repr, (*allowed, target)))}])"
            )
        if target == "end":
            return [exit_]
        if target == "model":
            return [self.loop]
        calls = self.calls(messages, answer)
        if not calls:
            raise InvalidUpdateError(
                f"{where} jumps to 'tools', and no tool call waits: the last message of the model has none that is not "
                "answered"
            )
        return calls


def check_jump(target: Any, where: str) -> None:
    """Check the value of a "jump_to".

    Raises:
        InvalidUpdateError: There is no such target.
    """
    if target not in JUMPS:
        raise InvalidUpdateError(
            f"{where} jumps to {show(target)}: jump_to takes {', '.join(map(repr, JUMPS))}.{nearest(target, JUMPS)}"
        )


def asks_again(messages: Sequence[Any]) -> bool:
    """Return whether something that follows the model's last message is for the model to read."""
    _, after = last_turn(messages)
    return any(message.type == "tool" or is_correction(message) for message in after)


def is_correction(message: Any) -> bool:
    """Return whether a message tells the model to correct its answer."""
    return bool(message.type == "human" and message.name == CORRECTION)


def updates_in(result: Any) -> Iterator[tuple[str, Any]]:
    """Yield the (field, update) pairs of a node's result, where they can be read off it; the engine checks the rest."""
    for item in result if isinstance(result, (list, tuple)) else (result,):
        if isinstance(item, Command):
            if item.graph is None:
                yield from pairs_of(item.update)
        else:
            yield from pairs_of(item)


def pairs_of(update: Any) -> Iterable[tuple[str, Any]]:
    """Return the pairs of one update."""
    if isinstance(update, Mapping):
        return update.items()
    if isinstance(update, (list, tuple)):
        return [pair for pair in update if isinstance(pair, tuple) and len(pair) == 2]  # noqa: PLR2004 - a pair
    return ()


def jump_in(result: Any) -> Any:
    """Return the "jump_to" of a node's result, or None."""
    jumps = [value for name, value in updates_in(result) if name == "jump_to"]
    return jumps[-1] if jumps else None


def updated(state: Mapping[str, Any], updates: Iterable[tuple[str, Any]]) -> tuple[list[Any], Any]:
    """Return the conversation and the structured response as they will be when these updates are applied."""
    messages, answer = state.get("messages", []), state.get(ANSWER)
    for name, value in updates:
        whole = isinstance(value, Overwrite)
        if name == "messages":
            messages = add_messages([], value.value) if whole else add_messages(messages, value)
        elif name == ANSWER:
            answer = value.value if whole else value
    return messages, answer


def goto_in(result: Any) -> tuple[Any, ...]:
    """Return what the commands of a node's result name to run next, in this graph."""
    found: list[Any] = []
    for item in result if isinstance(result, (list, tuple)) else (result,):
        if isinstance(item, Command) and item.graph is None:
            found += item.goto if isinstance(item.goto, (list, tuple)) else [item.goto]
    return tuple(found)
