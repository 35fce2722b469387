"""How far is the run? Stream parts in, supersteps with their task counts and times out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from examples.audit.state import Note, Planned


@dataclass(frozen=True, slots=True)
class Resumed:
    """Where a run stands that another process began.

    Attributes:
        step: The number of the superstep that goes on, counted from 1.
        planned: How many tasks each node has in it; empty where only the report is left to print.
        done: How many of them were done already; nodes with none may be absent.
    """

    step: int
    planned: dict[str, int]
    done: dict[str, int]


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
    #: How many of its tasks were done by an earlier process.
    before: int = 0

    @property
    def tasks(self) -> int:
        """How many tasks have ended, those before included."""
        return sum(row.done for row in list(self.rows.values()))


class Progress:
    """Follows a run by its `updates`, `custom` and `values` parts.

    A task that ends gives an update, even an empty one. The state comes once after the input and then once after each
    barrier, so the second and each later one closes a superstep.

    Args:
        clock: Seconds from any origin.
        resumed: Where the run goes on; None where it begins.
    """

    def __init__(self, clock: Callable[[], float], resumed: Resumed | None = None) -> None:
        self.steps: list[Step] = []
        self.values: dict[str, Any] = {}
        self._clock = clock
        self._resumed = resumed
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
        if ended is None and self._resumed is not None:
            self.steps.append(_resumed_step(self._resumed, now))
            return None
        if ended:
            ended.seconds = now - ended.started
        # Opened before it is known whether anything is due: after the last barrier one step stays empty.
        step = Step(ended.number + 1 if ended else 1, now)
        step.rows.update({node: Row(planned=count) for node, count in self._planned.items()})
        self._planned = {}
        self.steps.append(step)
        return ended


def _resumed_step(resumed: Resumed, now: float) -> Step:
    rows = {node: Row(resumed.done.get(node, 0), count) for node, count in resumed.planned.items()}
    return Step(resumed.step, now, rows, before=sum(resumed.done.values()))
