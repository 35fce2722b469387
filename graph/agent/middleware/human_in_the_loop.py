"""Middleware that asks a person before tools are called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from pregel.errors import nearest
from pregel.graph.agent.middleware.base import AgentMiddleware
from pregel.graph.agent.middleware.decisions import DECISIONS, response_schema
from pregel.graph.agent.middleware.reading import calls_of, with_calls
from pregel.graph.agent.turns import answer_to, answered, last_turn
from pregel.interrupting import interrupt

if TYPE_CHECKING:
    from collections.abc import Collection

    from pregel.graph.agent.middleware.decisions import (
        ActionRequest,
        Decision,
        DecisionType,
        HITLRequest,
        InterruptOnConfig,
        ReviewConfig,
    )
    from pregel.graph.messages import ToolMessage
    from pregel.runtime import Runtime

__all__ = ["HumanInTheLoopMiddleware"]

OPTIONS: Final = ("allowed_decisions", "description", "args_schema")


class HumanInTheLoopMiddleware(AgentMiddleware):
    """Asks a person before the calls of some tools are made: one question for all calls of a model's message.

    The question's value is a `HITLRequest`, the answer a `HITLResponse`:
    `Command(resume={"decisions": [{"type": "approve"}, ...]})`, one decision for each call, in the order of the calls.
    An answer that does not fit is an `InvalidResumeError`, and the question stays. It needs a checkpointer.

    - {"type": "approve"}: the call is made.
    - {"type": "edit", "edited_action": {"name": ..., "args": {...}}}: that call is made in its place, with its id.
    - {"type": "reject", "message": ...}: it is not made, and the model is told so; the message may be left out.
    - {"type": "respond", "message": ...}: it is not made; the message is the tool's answer.

    Calls that need no decision wait until those that do have one, and are then made with them.

    A person approves what the message holds at that time. The `after_model` of middleware listed before this one comes
    later, and a `wrap_tool_call` stands around the call itself: what they change was approved by nobody. List hooks
    that change calls after this one.

    Args:
        interrupt_on: By tool: True for calls that need a decision of any kind, False for calls that need none, or an
            `InterruptOnConfig`. Tools that are not named need none.
        description_prefix: What a question says about each call before its name and arguments, where the tool has no
            description of its own.

    Raises:
        ValueError: No tool is named, or a tool's configuration can't be one; the message names the tool.
    """

    def __init__(
        self,
        interrupt_on: Mapping[str, bool | InterruptOnConfig],
        *,
        description_prefix: str = "Tool execution requires approval",
    ) -> None:
        given: Any = interrupt_on
        if not isinstance(given, Mapping) or not given:
            raise ValueError(
                f"HumanInTheLoopMiddleware(interrupt_on={interrupt_on!r}) asks about no tool: give a dict by the names "
                'of tools, such as {"send": True}'
            )
        reviewed = {name: checked(name, given) for name, given in interrupt_on.items() if given is not False}
        self._reviewed: dict[str, InterruptOnConfig] = reviewed
        self._allowed = {name: config["allowed_decisions"] for name, config in reviewed.items()}
        self._prefix = description_prefix
        self._named = tuple(interrupt_on)

    @property
    def tool_names(self) -> Collection[str]:
        """See `AgentMiddleware`."""
        return self._named

    def after_model(self, state: Any, runtime: Runtime[Any]) -> Any:
        """Ask about the calls that need a decision, and put what was decided into the conversation."""
        message, _ = last_turn(state["messages"])
        if message is None:
            return None
        before = calls_of(message)
        done = answered(state["messages"])
        # By place, not by id: where a model gives two calls one id, no decision may count for the other call.
        places = [
            place for place, call in enumerate(before) if call["name"] in self._reviewed and call["id"] not in done
        ]
        if not places:
            return None
        question: HITLRequest = {
            "action_requests": [self._action(before[place], state, runtime) for place in places],
            "review_configs": [self._review(before[place]) for place in places],
        }
        decisions = interrupt(question, response_schema(question, self._allowed))["decisions"]
        decided = dict(zip(places, decisions, strict=True))
        after = [edited(call, decided.get(place)) for place, call in enumerate(before)]
        answers = [answered_by(call, decided.get(place)) for place, call in enumerate(before)]
        changed = [with_calls(message, after)] if after != before else []
        return {"messages": [*changed, *(told for told in answers if told is not None)]}

    def _action(self, call: Any, state: Any, runtime: Any) -> ActionRequest:
        """Return what a person is told about a call."""
        given = self._reviewed[call["name"]].get("description")
        if callable(given):
            description = given(call, state, runtime)
        elif given is not None:
            description = given
        else:
            description = f"{self._prefix}\n\nTool: {call['name']}\nArgs: {call['args']}"
        return {"name": call["name"], "args": call["args"], "description": description}

    def _review(self, call: Any) -> ReviewConfig:
        """Return what a person may decide about a call."""
        config = self._reviewed[call["name"]]
        review: ReviewConfig = {
            "action_name": call["name"],
            "allowed_decisions": list(config["allowed_decisions"]),
        }
        if "args_schema" in config:
            review["args_schema"] = config["args_schema"]
        return review


def checked(name: str, given: Any) -> InterruptOnConfig:
    """Return how the calls of a tool are reviewed.

    Raises:
        ValueError: What was given can't say it.
    """
    who = f"HumanInTheLoopMiddleware(interrupt_on={{{name!r}: ...}})"
    if given is True:
        return {"allowed_decisions": DECISIONS}
    if not isinstance(given, dict):
        raise ValueError(f"{who} is {given!r}: give True, False, or {{'allowed_decisions': ['approve', ...]}}")  # noqa: TRY004 - one kind of error for what is given wrong
    for option in given:
        if option not in OPTIONS:
            raise ValueError(f"{who} has no option {option!r}.{nearest(option, OPTIONS)} It has {', '.join(OPTIONS)}")
    listed = given.get("allowed_decisions", ())
    if isinstance(listed, str) or not isinstance(listed, Iterable):
        raise ValueError(f"{who} has 'allowed_decisions': {listed!r}: give a list, such as ['approve', 'reject']")  # noqa: TRY004 - as above
    allowed: tuple[DecisionType, ...] = tuple(listed)
    if not allowed:
        raise ValueError(
            f"{who} allows no decision, so that no call of it could go on: 'allowed_decisions' is a list of some of "
            f"{', '.join(DECISIONS)}"
        )
    for decision in allowed:
        if decision not in DECISIONS:
            raise ValueError(
                f"{who} allows {decision!r}, which is no decision.{nearest(decision, DECISIONS)} "
                f"There are {', '.join(DECISIONS)}"
            )
    return cast("InterruptOnConfig", {**given, "allowed_decisions": allowed})


def edited(call: Any, decision: Decision | None) -> Any:
    """Return the call as it was decided, with the id of the model's."""
    if decision is None or decision["type"] != "edit":
        return call
    return {**call, **decision["edited_action"]}


def answered_by(call: Any, decision: Decision | None) -> ToolMessage | None:
    """Return the answer to a call that is not made, or None for one that is."""
    if decision is None:
        return None
    if decision["type"] == "respond":
        return answer_to(call, decision["message"], error=False)
    if decision["type"] == "reject":
        default = f"The user rejected this call of {call['name']!r}: it was not made. Don't make it again unasked."
        return answer_to(call, decision.get("message", default), error=True)
    return None
