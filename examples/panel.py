"""A question for three experts at once, and a judge who decides from what they found.

    python -m examples.panel ["Shall we keep uploads in the database or as files?"]

The experts are agents, each with a role, a model and tools of its own. One `Send` for each makes them run side by side,
in one superstep; what each says is shown while it is said. The judge's verdict has a type. Without a network, models
answer from scripts; PREGEL_MODEL=openai:gpt-5 (with OPENAI_API_KEY and OPENAI_BASE_URL as the openai client reads them)
makes a real model answer.
"""

from __future__ import annotations

import operator
import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final, TypedDict

from pregel import START, Send, StateGraph
from pregel.graph.agent import AgentState, ScriptedModel, ToolStrategy, create_agent
from pregel.graph.agent.middleware import after_agent, before_agent
from pregel.graph.agent.models import named_model
from pregel.graph.messages import AIMessage, HumanMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pregel.graph.compile import CompiledStateGraph

QUESTION: Final = "Shall we keep uploads in the database or as files?"
NOTES: Final = (
    "2023-04: restoring the database took nine hours; uploads were four fifths of it.",
    "2023-11: a release deleted rows and left 40,000 files that nothing referred to.",
    "2024-02: files on disk were fast, and nobody had backed them up for a month.",
)
EURO_PER_GB: Final = {"database": 0.23, "files": 0.023}
#: Milliseconds to read a file of this many kilobytes, as measured.
READS: Final = {"database": {10: 1.1, 1000: 14.0}, "files": {10: 1.9, 1000: 6.5}}
#: What ends a piece of speech that is worth a line.
PHRASE_ENDS: Final = (".", "!", "?")


# --- What the experts can look up -------------------------------------------------------------------------------------


def search_notes(word: str) -> str:
    """Find the notes about past incidents that have a word.

    Args:
        word: What to look for.
    """
    return " ".join(note for note in NOTES if word.lower() in note.lower()) or "nothing"


def monthly_cost(gigabytes: int) -> dict[str, float]:
    """Say what it costs in a month, in euro, to keep data in the database and as files.

    Args:
        gigabytes: How much data.
    """
    return {place: round(gigabytes * price, 2) for place, price in EURO_PER_GB.items()}


def measured_reads(kilobytes: int) -> dict[str, float]:
    """Say how many milliseconds a read takes from the database and from a file, as it was measured.

    Args:
        kilobytes: The size of what is read.
    """
    return {place: times[min(times, key=lambda size: abs(size - kilobytes))] for place, times in READS.items()}


# --- Who sits on the panel --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Expert:
    """A member of the panel."""

    name: str
    role: str
    tools: Sequence[Callable[..., Any]]
    #: What it says where there is no real model.
    script: Sequence[Any] = field(repr=False)


def asks(tool: str, **args: Any) -> AIMessage:
    """Return the message of a model that calls a tool."""
    return AIMessage("", tool_calls=[{"name": tool, "args": args, "id": f"call-{tool}"}])


EXPERTS: Final = (
    Expert(
        "historian",
        "You know what went wrong before. Search the notes, and say in two sentences what they teach.",
        [search_notes],
        [asks("search_notes", word="files"), lambda told: f"Files were the cause twice. {told[-1].text}"],
    ),
    Expert(
        "accountant",
        "You know what things cost. Assume 500 GB of uploads unless told otherwise; answer in two sentences.",
        [monthly_cost],
        [asks("monthly_cost", gigabytes=500), lambda told: f"Files cost a tenth for 500 GB: {told[-1].text} euro."],
    ),
    Expert(
        "engineer",
        "You know how fast things are. Look up small and large reads, and answer in two sentences.",
        [measured_reads],
        [asks("measured_reads", kilobytes=1000), lambda told: f"Large reads favour files: {told[-1].text} ms."],
    ),
)
JUDGE: Final = "You decide. Weigh what the experts found against each other, and give your verdict."


class Verdict(TypedDict):
    """What the judge decides."""

    choice: str
    because: list[str]
    #: What speaks against it.
    but: list[str]


DECIDED: Final = Verdict(
    choice="files",
    because=["a tenth of the cost", "large reads take half the time"],
    but=["they need a backup and a clean-up of their own"],
)


# --- How it runs ------------------------------------------------------------------------------------------------------


class Panel(TypedDict, total=False):
    """What the panel knows."""

    question: str
    #: What the experts found, in the order in which they were asked, whoever was first.
    findings: Annotated[list[str], operator.add]
    structured_response: Verdict


class Member(AgentState[Any]):
    """What an expert shares with the panel beside its conversation, which it keeps to itself."""

    question: str
    findings: Annotated[list[str], operator.add]


@after_agent(state_schema=Member)
def report(state: Member) -> dict[str, Any]:
    """Hand the expert's last word to the panel."""
    last: Any = state["messages"][-1]
    return {"findings": [f"{last.name}: {last.text}"]}


@before_agent(state_schema=Member)
def brief(state: Member) -> dict[str, Any]:
    """Tell the judge the question and what was found."""
    return {"messages": [HumanMessage("\n".join([state["question"], *state["findings"]]))]}


def model_of(script: Sequence[Any]) -> Any:
    """Return the model that the environment names, or one that answers from a script."""
    name = os.environ.get("PREGEL_MODEL")
    return named_model(name) if name else ScriptedModel(script)


def ask_all(state: Panel) -> list[Send]:
    """Ask each expert."""
    return [Send(expert.name, {"messages": state["question"]}) for expert in EXPERTS]


def panel(models: Mapping[str, Any] | None = None) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return the panel.

    Args:
        models: The model of each expert and of the "judge", by name; what `model_of` gives for those left out.
    """
    given = dict(models or {})
    builder = StateGraph(Panel)
    for expert in EXPERTS:
        model = given.get(expert.name) or model_of(expert.script)
        agent = create_agent(model, expert.tools, system_prompt=expert.role, middleware=[report], name=expert.name)
        builder.add_node(expert.name, agent).add_edge(expert.name, "judge")
    judge = create_agent(
        given.get("judge") or model_of([asks("Verdict", **DECIDED)]),
        system_prompt=JUDGE,
        middleware=[brief],
        response_format=ToolStrategy(Verdict),
        name="judge",
    )
    builder.add_node("judge", judge)
    builder.add_conditional_edges(START, ask_all, [expert.name for expert in EXPERTS])
    return builder.compile(name="panel")


def told(parts: Iterable[Any]) -> Iterator[str]:
    """Yield lines as they arrive: what each agent says, phrase by phrase, for they speak at once; and the verdict."""
    said: dict[str, str] = {}
    for path, mode, part in parts:
        if mode == "updates":
            if not path and "judge" in part:
                verdict = part["judge"]["structured_response"]
                yield f"verdict: {verdict['choice']}"
                yield from (f"  because {reason}" for reason in verdict["because"])
                yield from (f"  but {reason}" for reason in verdict["but"])
            elif path and (rest := said.pop(agent_of(path), "").strip()):
                yield f"{agent_of(path)}: {rest}"
            continue
        message, _ = part
        if not path or message.type == "human":
            continue
        name = agent_of(path)
        if message.type == "tool":
            if name != "judge":  # whose verdict is a call too
                yield f"{name} has looked up {message.name}"
        else:
            said[name] = said.get(name, "") + message.text
            if said[name].rstrip().endswith(PHRASE_ENDS):
                yield f"{name}: {said.pop(name).strip()}"


def agent_of(path: Sequence[str]) -> str:
    """Return whose stream a part is of: its node comes first in the path."""
    return path[0].partition(":")[0]


def main(*words: str) -> None:
    """Ask the panel, and print what is said as it is said."""
    question = " ".join(words) or QUESTION
    parts = panel().stream({"question": question}, stream_mode=["messages", "updates"], subgraphs=True)
    for line in told(parts):
        print(line, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
