"""What names and executors of nodes may be."""

from __future__ import annotations

from typing import Any, Final, get_args

from pregel.errors import GraphDefinitionError, nearest
from pregel.types import ExecutorName

__all__ = ["check_concurrency", "check_executor", "check_name"]

EXECUTORS: Final[tuple[str, ...]] = get_args(ExecutorName)
# In streams of nested graphs these separate a node from its task, and one graph from the next.
RESERVED_CHARACTERS: Final = "|:"


def check_name(name: object, what: str = "a node", reserved: str = RESERVED_CHARACTERS) -> None:
    """Check the name of a node, or of something else.

    Raises:
        GraphDefinitionError: It is no text, empty, begins as the engine's own do, or has a reserved character.
    """
    if not isinstance(name, str) or not name or name.startswith("__"):
        raise GraphDefinitionError(
            f"{what} can't be named {name!r}: names are texts that are not empty, and those that begin with two "
            "underscores belong to the engine"
        )
    for character in reserved:
        if character in name:
            raise GraphDefinitionError(f"{what} can't be named {name!r}: {character!r} separates names in streams")


def check_executor(executor: Any, where: str) -> None:
    """Check where code shall run.

    Raises:
        GraphDefinitionError: There is no such executor.
    """
    if isinstance(executor, str) or not callable(getattr(executor, "submit", None)):
        if executor in EXECUTORS:
            return
        raise GraphDefinitionError(
            f"executor of {where} is a concurrent.futures.Executor, 'inline' or 'thread', not {executor!r}."
            f"{nearest(executor, EXECUTORS)}"
        )


def check_concurrency(limit: Any, where: str) -> None:
    """Check how many tasks of a node may run at once.

    Raises:
        GraphDefinitionError: It is no whole number of at least 1.
    """
    if type(limit) is not int or limit < 1:
        raise GraphDefinitionError(f"max_concurrency of {where} is a whole number of at least 1, not {limit!r}")
