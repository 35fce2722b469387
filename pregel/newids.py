"""What the things that tasks make are called: ids that depend on run, task and number only, so that they come again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

from pregel.errors import InvalidConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ids_of_run", "ids_of_thread"]


def ids_of_run(run_id: Any) -> Callable[[str, int], str]:
    """Return what names the things that the tasks of a run make: (task id, number) -> id.

    Args:
        run_id: What the config has as `run_id`; None for one that nobody else has.

    Raises:
        InvalidConfigError: `run_id` is no UUID.
    """
    if run_id is None:
        made: list[UUID] = []  # at the first id that is asked for: most runs make none

        def new_id(task: str, number: int) -> str:
            if not made:
                made.append(uuid4())
            return named_id(made[0], task, number)

        return new_id
    try:
        space = run_id if isinstance(run_id, UUID) else UUID(run_id)
    except (AttributeError, TypeError, ValueError):
        raise InvalidConfigError(f"config['run_id'] takes a UUID, not {run_id!r}") from None
    return partial(named_id, space)


def ids_of_thread(thread_id: str, path: tuple[str, ...]) -> Callable[[str, int], str]:
    """Return the same for a run that is stored: it goes on later, and by another `run_id`.

    Args:
        thread_id: The thread.
        path: What tells the branch of the thread from others.
    """
    return lambda task, number: named_id(uuid5(NAMESPACE_OID, thread_id), "|".join((*path, task)), number)


def named_id(space: UUID, task: str, number: int) -> str:
    """Return the id of the n-th thing that a task makes."""
    return str(uuid5(space, f"{task}:{number}"))
