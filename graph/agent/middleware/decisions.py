"""What a person is asked about tool calls, and what they may decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NotRequired, TypeAlias

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from typing_extensions import TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "DECISIONS",
    "Action",
    "ActionRequest",
    "ApproveDecision",
    "Decision",
    "DecisionType",
    "EditDecision",
    "HITLRequest",
    "HITLResponse",
    "InterruptOnConfig",
    "RejectDecision",
    "RespondDecision",
    "ReviewConfig",
    "response_schema",
]

DecisionType: TypeAlias = Literal["approve", "edit", "reject", "respond"]
#: All of them, in the order in which they are offered.
DECISIONS: Final[tuple[DecisionType, ...]] = ("approve", "edit", "reject", "respond")
STRICT: Final = ConfigDict(extra="forbid")


class Action(TypedDict):
    """A call of a tool: what it is called with."""

    __pydantic_config__ = STRICT  # type: ignore[misc]  # read by pydantic

    name: str
    args: dict[str, Any]


class ActionRequest(TypedDict):
    """A call that waits for a decision."""

    name: str
    args: dict[str, Any]
    #: What the person is told.
    description: NotRequired[str]


class ReviewConfig(TypedDict):
    """What may be decided about a call."""

    action_name: str
    allowed_decisions: list[DecisionType]
    #: The JSON schema of the arguments, for a form to edit them.
    args_schema: NotRequired[dict[str, Any]]


class HITLRequest(TypedDict):
    """What is asked: one question for all calls of a model's message that wait for a decision."""

    #: The calls, in the order of the model's.
    action_requests: list[ActionRequest]
    #: For each call, what may be decided about it.
    review_configs: list[ReviewConfig]


class ApproveDecision(TypedDict):
    """The call is made as it is."""

    __pydantic_config__ = STRICT  # type: ignore[misc]  # as above

    type: Literal["approve"]


class EditDecision(TypedDict):
    """Another call is made in its place."""

    __pydantic_config__ = STRICT  # type: ignore[misc]  # as above

    type: Literal["edit"]
    edited_action: Action


class RejectDecision(TypedDict):
    """The call is not made, and the model is told so."""

    __pydantic_config__ = STRICT  # type: ignore[misc]  # as above

    type: Literal["reject"]
    #: What the model is told in place of a standard text.
    message: NotRequired[str]


class RespondDecision(TypedDict):
    """The call is not made: the person answers in the place of the tool."""

    __pydantic_config__ = STRICT  # type: ignore[misc]  # as above

    type: Literal["respond"]
    message: str


Decision: TypeAlias = Annotated[
    ApproveDecision | EditDecision | RejectDecision | RespondDecision, Field(discriminator="type")
]


class HITLResponse(TypedDict):
    """The answer: a decision for each call, in the order of the calls."""

    decisions: list[Decision]


class InterruptOnConfig(TypedDict):
    """How the calls of a tool are reviewed."""

    allowed_decisions: Sequence[DecisionType]
    #: What the person is told: a text, or a function of the call, the state and the runtime.
    description: NotRequired[str | Callable[[Any, Any, Any], str]]
    #: Shown to the person, for a form to edit the arguments.
    args_schema: NotRequired[dict[str, Any]]


def response_schema(request: HITLRequest, allowed: Mapping[str, Sequence[DecisionType]]) -> Any:
    """Return the type that the answer to a question must have.

    An answer of another number of decisions does not fit it, nor one with a decision that is not allowed for its call,
    nor one that edits a call into one of a tool which could not be approved.

    Args:
        request: The question.
        allowed: What may be decided, by tool; calls of tools that are not in it need no decision.
    """
    calls = request["action_requests"]
    configs = request["review_configs"]

    def fitting(decisions: list[Any]) -> list[Any]:
        if len(decisions) != len(calls):
            names = ", ".join(repr(call["name"]) for call in calls)
            raise ValueError(
                f"{len(calls)} call(s) wait for a decision, in this order: {names}; the answer has {len(decisions)}. "
                "Give one decision for each call, in the order of the calls"
            )
        for place, (decision, config) in enumerate(zip(decisions, configs, strict=True)):
            where = f"decision {place}, about {config['action_name']!r}"
            if decision["type"] not in config["allowed_decisions"]:
                raise ValueError(
                    f"{where}, is {decision['type']!r}, and allowed are {', '.join(config['allowed_decisions'])}"
                )
            if decision["type"] == "edit":
                target = decision["edited_action"]["name"]
                may = allowed.get(target, DECISIONS)
                if target != config["action_name"] and "approve" not in may:
                    raise ValueError(
                        f"{where}, edits it into a call of {target!r}, of which no call can be approved: for that tool "
                        f"allowed are {', '.join(may)}"
                    )
        return decisions

    bounds: dict[str, Any] = {"minItems": len(calls), "maxItems": len(calls)}
    made: Any = TypedDict  # a type for this one question, of which checkers can know nothing
    answer = made(
        "HITLResponse",
        {"decisions": Annotated[list[Decision], AfterValidator(fitting), Field(json_schema_extra=bounds)]},
    )
    answer.__pydantic_config__ = STRICT
    return Annotated[answer, BeforeValidator(shaped)]


def shaped(answer: Any) -> Any:
    """Return an answer that has the form of one, as far as can be told at a glance.

    Raises:
        ValueError: It has not; pydantic's own words for that don't say what to give.
    """
    if not isinstance(answer, dict) or "decisions" not in answer:
        raise ValueError(
            'the answer is a dict with "decisions", one for each call in the order of the calls, such as '
            '{"decisions": [{"type": "approve"}, ...]}'
        )
    return answer
