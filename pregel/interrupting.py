"""How a task asks whoever runs the graph something, and what it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pregel.channels.base import MISSING
from pregel.errors import GraphInterrupt, InvalidResumeError, MissingCheckpointerError, OutsideTaskError
from pregel.runtime import current_frame
from pregel.text import shortened
from pregel.types import START, Interrupt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pregel.types import Breakpoint

__all__ = ["interrupt", "unanswered"]


def interrupt(value: Any, response_schema: Any = None) -> Any:
    """Ask whoever runs the graph something: pause the task until there is an answer, and return it.

    The run ends with what is asked under `__interrupt__`; `invoke(Command(resume=answer), config)` goes on. The node
    then runs again from its top, and this call returns the answer. So what stands before it runs twice: keep effects
    out of there. Several calls of one node are told apart by their order.

    Args:
        value: What to ask; anything that can be stored.
        response_schema: The type that the answer must have, as pydantic understands it: JSON is converted to it.

    Returns:
        The answer, which may be None.

    Raises:
        GraphInterrupt: There is no answer yet. It is no `Exception`: let it through.
        MissingCheckpointerError: The graph runs without a checkpointer, so nothing could wait for the answer.
        OutsideTaskError: No task runs this code.
    """
    task, run, _, asked, *_ = current_frame()
    run.token.check()
    if run.answers is None:
        raise MissingCheckpointerError(
            f"node {task.node.name!r} calls interrupt, and its graph runs without a checkpointer, so that no later run "
            "could go on from here: compile(checkpointer=...) and give config={'configurable': {'thread_id': ...}}"
        )
    if task.node.name == START and run.is_outermost:
        raise OutsideTaskError(
            "a conditional edge of START can't ask anything: the input is stored when it has answered, so nothing "
            "could wait. Let the edge lead to a node, and ask there or in its own conditional edge"
        )
    adapter = None if response_schema is None else adapter_of(response_schema)
    question = Interrupt(
        value,
        # Runs inside the task that wait are no questions of its own: when they go on they are not in the list.
        f"{run.task_id(task)}#{sum(type(each) is not tuple for each in asked)}",
        None if adapter is None else adapter.json_schema(),
    )
    answer = run.answers.get(question.id, MISSING)
    error: Exception | None = None
    if answer is not MISSING and adapter is not None:
        try:
            answer = adapter.validate_python(answer)
        except ValueError as raised:
            error = InvalidResumeError(
                f"the answer to {question.id!r} of node {task.node.name!r} does not fit what was asked for: "
                f"{shortened(answer)}. The task is still paused; answer again. {raised}"
            )
            answer = MISSING
    if answer is MISSING:
        asked.append(question)
        raise GraphInterrupt((question,), error)
    asked.append(None)
    return answer


def adapter_of(schema: Any) -> Any:
    """Return what checks answers against a type."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - most graphs ask nothing

    return TypeAdapter(schema)


def unanswered(asked: Sequence[Any]) -> tuple[Interrupt | Breakpoint, ...]:
    """Return what a task, with the runs inside it, waits for.

    Its own questions come first, in their order; then those of the runs inside it, by the number of the run: which of
    several side by side was the first to pause is luck.
    """
    own = [each for each in asked if each is not None and type(each) is not tuple]
    inside = sorted((each for each in asked if type(each) is tuple), key=place_of)
    return (*own, *(reason for reasons in inside for reason in reasons))


def place_of(reasons: tuple[Interrupt | Breakpoint, ...]) -> list[list[tuple[bool, int, str]]]:
    """Return what sorts the runs inside a task: the labels of the first id, with numbers as numbers."""
    first = next((reason.id for reason in reasons if isinstance(reason, Interrupt)), "")
    return [
        [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in label.split(":")]
        for label in first.split("|")
    ]
