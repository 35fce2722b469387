"""How far is the run? Stream parts in, supersteps with their task counts and times out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from examples.audit.state import Note, Planned


@dataclass(slots=True)
class Row:
    """The tasks of one node in one superstep; `seconds` lasts from the step's start to its latest task's end."""

    done: int = 0
    planned: int | None = None
    seconds: float = 0.0


@dataclass(slots=True)
class Step:
    """One superstep."""

    number: int
    started: float
    rows: dict[str, Row] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    seconds: float | None = None

    @property
    def tasks(self) -> int:
        """How many tasks have ended."""
        return sum(row.done for row in list(self.rows.values()))


class Progress:
    """Follows a run by its `updates`, `custom` and `values` parts.

    A task that ends gives an update, even an empty one. The state comes once after the input and then once after each
    barrier, so the second and each later one closes a superstep.

    Args:
        clock: Seconds from any origin.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.steps: list[Step] = []
        self.values: dict[str, Any] = {}
        self._clock = clock
        self._planned: dict[str, int] = {}

    def feed(self, mode: str, payload: Any) -> Step | Note | None:
        """Take one part. Returns what there is to tell: a superstep that ended, or a note."""
        now = self._clock()
        if mode == "values":
            return self._barrier(payload, now)
        if mode == "updates":
            step = self.steps[-1]
            for node in payload:
                row = step.rows.setdefault(node, Row())
                row.done += 1
                row.seconds = now - step.started
        elif isinstance(payload, Planned):
            self._planned = {node: count for node, count in payload.tasks if count}
        elif isinstance(payload, Note):
            self.steps[-1].notes.append(payload)
            return payload
        return None

    def _barrier(self, values: dict[str, Any], now: float) -> Step | None:
        self.values = values
        ended = self.steps[-1] if self.steps else None
        if ended:
            ended.seconds = now - ended.started
        # Opened before it is known whether anything is due: after the last barrier one step stays empty.
        step = Step(len(self.steps) + 1, now)
        step.rows.update({node: Row(planned=count) for node, count in self._planned.items()})
        self._planned = {}
        self.steps.append(step)
        return ended
