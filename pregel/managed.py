"""Values that the engine computes for whoever reads them; they are no state and nobody writes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["IsLastStep", "Managed", "RemainingSteps", "managed_values"]

ManagedName = Literal["is_last_step", "remaining_steps"]


@dataclass(frozen=True, slots=True)
class Managed:
    """The marker of a field whose value is computed."""

    name: ManagedName


#: Annotates a field that tells whether `recursion_limit` lets no superstep follow this one.
IsLastStep = Annotated[bool, Managed("is_last_step")]
#: Annotates a field that tells how many supersteps `recursion_limit` lets follow this one.
RemainingSteps = Annotated[int, Managed("remaining_steps")]


def managed_values(fields: Iterable[tuple[str, ManagedName]], step: int, limit: int) -> dict[str, bool | int]:
    """Return the values of managed fields.

    Args:
        fields: The fields by name, with what each of them tells.
        step: The superstep that asks; 0 is the input.
        limit: How many supersteps of nodes may run.
    """
    return {name: step >= limit if kind == "is_last_step" else limit - step for name, kind in fields}
