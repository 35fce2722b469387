"""`docs/benchmarks.md`: the program writes what stands between two marks, people write the rest."""

from __future__ import annotations

from pathlib import Path

from benchmarks import table
from benchmarks.model import Workload
from benchmarks.results import CaseResult

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
BEGIN = "<!-- results: begin (written by `python -m benchmarks --write-docs`) -->"
END = "<!-- results: end -->"
_NEW_PAGE = f"""# Benchmarks

What the engine's own work costs: the nodes do next to nothing, so that almost all of the time is the engine's.
`ours` is pregel, `floor` is a loop written by hand that does the same work with no engine at all.

{BEGIN}
{END}
"""

_METHOD = """\
Median (lowest - highest) of {rounds} rounds after a warm-up round. Within a round the engines take turns, and the ratio
is taken round by round. One event loop a measurement, started before the clock. Every answer is checked."""


class MarksMissingError(Exception):
    """The page exists but does not say where the results belong."""


def check() -> None:
    """Find out before an hour of measuring whether the page can be written.

    Raises:
        MarksMissingError: The page lacks one of the two marks, or has them in the wrong order.
    """
    if PAGE.exists():
        _split(PAGE.read_text(encoding="utf-8"))


def write(results: list[CaseResult], machine: dict[str, str], command: str, rounds: int) -> Path:
    """Replace what stands between the marks; a page that does not exist is made.

    Args:
        results: What was measured.
        machine: From `benchmarks.machine.describe`.
        command: What a reader types to measure the same.
        rounds: Measurements a contender and case.

    Returns:
        The page's path.

    Raises:
        MarksMissingError: See `check`.
    """
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else _NEW_PAGE
    before, after = _split(page)
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(before + _results(results, machine, command, rounds) + after, encoding="utf-8")
    return PAGE


def _split(page: str) -> tuple[str, str]:
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise MarksMissingError(
            f"{PAGE.name} has no place for the results: put the lines {BEGIN!r} and {END!r} into it"
        )
    return before + begin, end + after


def _results(results: list[CaseResult], machine: dict[str, str], command: str, rounds: int) -> str:
    workloads: dict[str, Workload] = {result.workload.name: result.workload for result in results}
    return "\n".join(
        [
            "",
            "",
            *(f"- {label}: {text}" for label, text in machine.items()),
            f"- command: `{command}`",
            "",
            _METHOD.format(rounds=rounds),
            "",
            table.for_docs(results),
            "",
            "The workloads:",
            "",
            *(
                f"- `{workload.name}`, microseconds per {workload.unit}: {workload.about}"
                for workload in workloads.values()
            ),
            "",
            "",
        ]
    )
