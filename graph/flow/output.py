"""The final text of an agent as a value of the key that it goes to."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pregel.graph.checker import checker
from pregel.graph.flow.errors import AgentOutputError
from pregel.graph.flow.keys import Key
from pregel.text import shortened

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from pregel.graph.flow.context import FlowContext

__all__ = ["is_folded", "kind_of", "parsed_output"]


def kind_of(ctx: FlowContext, key: str) -> Any:
    """Return the type of a key's values: as the key says itself, or as the graph that runs has declared it."""
    if isinstance(key, Key):
        return key.kind
    declared = None if ctx.task is None else ctx.task.keys.get(key)
    return Any if declared is None else declared.kind


def is_folded(ctx: FlowContext, key: str) -> bool:
    """Return whether the graph that runs has declared a key with a reducer, so that it is added to and not set."""
    return ctx.task is not None and ctx.task.folds(key)


def parsed_output(text: str, key: str, annotation: Any, agent: str) -> Any:
    """Return what a text says, as a value of a key.

    Where the key takes texts it is the text. Else it is read as JSON, and if it is none, as pydantic reads a text: "12"
    is an int, "HIGH" a member of a Literal or an Enum.

    Args:
        text: The text.
        key: The key, for messages.
        annotation: The type of its values; Any for whatever comes.
        agent: Who said it, for messages.

    Raises:
        AgentOutputError: It is no such value.
    """
    check = checker(annotation)
    try:
        return check(text)
    except TypeError:
        pass
    adapter = adapter_of(annotation)
    bare = text.strip()
    for read in (adapter.validate_json, adapter.validate_python):
        try:
            return check(read(bare))
        except (ValueError, TypeError) as error:
            reason = error
    raise AgentOutputError(
        f"agent {agent!r} answered {shortened(text)}, and its output key {key!r} takes {check.expected}. Nothing was "
        f"written. Say in the instruction what the answer looks like. {shortened(reason, 200)}"
    )


@lru_cache(maxsize=64)
def adapter_of(annotation: Any) -> TypeAdapter[Any]:
    """Return what reads values of a type."""
    from pydantic import ConfigDict, TypeAdapter  # noqa: PLC0415 - only answers that are no texts need it

    try:
        return TypeAdapter(annotation, config=ConfigDict(arbitrary_types_allowed=True))
    except Exception:  # noqa: BLE001 - a type that has a config of its own takes no other
        return TypeAdapter(annotation)
