"""What agents and teams did: records that are appended, and counts that add up, whatever runs side by side.

Theory of operation. Each call of an agent or a team leaves one line in a log of its own, a private field of the graph
that runs it, beside the data. Logs only grow, and two calls of one superstep both stand in them. A trace is what such a
log comes to: its lines one after the other, their counts summed. So no call overwrites what another one has told.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - read by who asks for the hints of a NamedTuple
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from pregel.channels.topic import Topic
from pregel.codec import register

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pregel.graph.messages import AnyMessage

__all__ = [
    "AgentCall",
    "AgentStep",
    "AgentTrace",
    "Metrics",
    "Record",
    "TeamCall",
    "TeamTrace",
    "agent_field",
    "calls_of",
    "log",
    "summed",
    "team_field",
    "usage_of",
]

#: The counts of usage that providers report below others, and what they are called here.
DETAILS: Final = {
    "cached_tokens": ("input_token_details", "cache_read"),
    "reasoning_tokens": ("output_token_details", "reasoning"),
}


@dataclass(frozen=True, slots=True)
class Metrics:
    """What calls cost. They add up: `a + b`."""

    #: How often a model was asked.
    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    #: Of the input tokens, those that the provider had in its cache.
    cached_tokens: int = 0
    #: Of the output tokens, those that were thought and not said.
    reasoning_tokens: int = 0
    #: Seconds, by the clock, from when the task of a call last began to the answer: what it took before a pause or a
    #: failure is not in it. 0 for the members of a team, whose time is the team's.
    seconds: float = 0.0

    def __add__(self, other: Metrics) -> Metrics:
        if type(other) is not Metrics:
            return NotImplemented
        return Metrics(*(getattr(self, each) + getattr(other, each) for each in NAMES))


NAMES: Final = tuple(each.name for each in fields(Metrics))


class AgentStep(NamedTuple):
    """One thing that an agent did: it asked its model, or a tool answered."""

    #: "model" or "tool".
    kind: str
    #: The agent, or the tool.
    name: str
    #: What came back.
    content: str
    #: The tools that the model called.
    calls: tuple[str, ...] = ()


class Record(NamedTuple):
    """One contribution to the work of a team."""

    #: Who made it: the name of a member or of the supervisor.
    source: str
    #: "member" or "supervisor".
    role: str
    content: str
    #: Whom a supervisor handed over to.
    calls: tuple[str, ...] = ()


class AgentCall(NamedTuple):
    """A call of an agent that came to an answer."""

    agent: str
    #: The task that it was made in: see `Runtime.task_id`.
    task: str
    prompt: str
    answer: str
    #: What the model was told and said, in order.
    memory: tuple[AnyMessage, ...]
    steps: tuple[AgentStep, ...]
    metrics: Metrics


class TeamCall(NamedTuple):
    """A call of a team that came to an answer."""

    team: str
    task: str
    prompt: str
    answer: str
    records: tuple[Record, ...]
    protocol_state: Mapping[str, Any]
    metrics: Metrics


for kind in (Metrics, AgentStep, Record, AgentCall, TeamCall):
    register(kind, tag=f"pregel:flow.{kind.__name__}")


@dataclass(frozen=True, slots=True)
class AgentTrace:
    """What an agent did on a context, in all its calls that came to an answer."""

    agent: str
    #: The messages of its last call.
    working_memory: tuple[AnyMessage, ...] = ()
    steps: tuple[AgentStep, ...] = ()
    #: What it answered in its last call.
    final_answer: str | None = None
    metrics: Metrics = field(default_factory=Metrics)

    @classmethod
    def of(cls, agent: str, calls: Sequence[AgentCall]) -> AgentTrace:
        """Return what calls come to."""
        return cls(
            agent,
            calls[-1].memory if calls else (),
            tuple(step for call in calls for step in call.steps),
            calls[-1].answer if calls else None,
            summed(call.metrics for call in calls),
        )


@dataclass(frozen=True, slots=True)
class TeamTrace:
    """What a team did on a context, in all its calls that came to an answer. What it found out is in the data."""

    team: str
    #: What it was asked last.
    prompt: str | None = None
    records: tuple[Record, ...] = ()
    #: What the protocol has to say about its last call.
    protocol_state: Mapping[str, Any] = field(default_factory=dict)
    final_answer: str | None = None
    metrics: Metrics = field(default_factory=Metrics)

    @classmethod
    def of(cls, team: str, calls: Sequence[TeamCall]) -> TeamTrace:
        """Return what calls come to."""
        if not calls:
            return cls(team)
        last = calls[-1]
        return cls(
            team,
            last.prompt,
            tuple(record for call in calls for record in call.records),
            last.protocol_state,
            last.answer,
            summed(call.metrics for call in calls),
        )


def agent_field(name: str) -> str:
    """Return the field of an agent's log."""
    return f"@agent/{name}"


def team_field(name: str) -> str:
    """Return the field of a team's log."""
    return f"@team/{name}"


def log(kind: Any) -> Any:
    """Return the annotation of a field that is a log of such lines."""
    return Annotated[list[kind], Topic(kind, accumulate=True)]


def calls_of(private: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    """Return the lines of a log that a context has."""
    return tuple(private.get(name, ()))


def summed(metrics: Iterable[Metrics]) -> Metrics:
    """Return the sum of counts."""
    return sum(metrics, Metrics())


def usage_of(messages: Iterable[Any]) -> Metrics:
    """Return what the messages of a model and of tools cost, as far as the provider has told."""
    total = Metrics()
    for message in messages:
        if message.type == "tool":
            total += Metrics(tool_calls=1)
        elif message.type == "ai":
            usage: Mapping[str, Any] = message.usage_metadata or {}
            given, made = counted(usage, "input_tokens"), counted(usage, "output_tokens")
            total += Metrics(
                model_calls=1,
                input_tokens=given,
                output_tokens=made,
                total_tokens=counted(usage, "total_tokens") or given + made,
                **{name: counted(usage.get(outer) or {}, inner) for name, (outer, inner) in DETAILS.items()},
            )
    return total


def counted(usage: Mapping[str, Any], name: str) -> int:
    """Return a count of a report of usage; 0 where it is not told."""
    count = usage.get(name)
    return count if isinstance(count, int) else 0
