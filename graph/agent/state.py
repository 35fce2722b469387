"""The state of an agent."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, NotRequired, Required, TypeAlias

from typing_extensions import TypedDict, TypeVar

from pregel.channels.ephemeral import EphemeralValue
from pregel.graph.messages import AnyMessage, add_messages
from pregel.graph.schema import OmitFromInput, PrivateStateAttr

__all__ = ["AgentState", "JumpTo", "ResponseT", "RunState"]

#: Where a hook may send a run: to the tools, to the start of the loop, or out of it.
JumpTo: TypeAlias = Literal["tools", "model", "end"]
#: What an agent's structured response is.
ResponseT = TypeVar("ResponseT", default=Any)


class AgentState(TypedDict, Generic[ResponseT]):
    """What every agent's state holds. Extend it with fields of your own."""

    #: The conversation.
    messages: Required[Annotated[list[AnyMessage], add_messages]]
    #: Where a hook has sent the run, for one superstep.
    jump_to: NotRequired[Annotated[JumpTo | None, EphemeralValue, PrivateStateAttr]]
    #: The answer in the form of `response_format`.
    structured_response: NotRequired[Annotated[ResponseT, OmitFromInput]]


class RunState(TypedDict):
    """What the state of an agent holds for itself that may be asked for a form; see `pregel.graph.agent.runs`."""

    #: Whether a node of the agent ran in the superstep before.
    agent_run_ongoing: NotRequired[Annotated[bool, EphemeralValue(guard=False), PrivateStateAttr]]
    #: How often the model was told to correct its structured response in this run.
    structured_response_tries: NotRequired[Annotated[int, PrivateStateAttr]]
