"""`docs/benchmarks.md`: the program writes what stands between two marks, people write the rest.

What people wrote is kept, also where they wrote it between the program's marks: the program itself writes no headings
there, so from the first heading, or the mark of an explanation, on it is theirs and moves below.
"""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks import table
from benchmarks.model import Workload
from benchmarks.results import CaseResult

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
BEGIN = "<!-- results: begin (written by `python -m benchmarks --write-docs`) -->"
END = "<!-- results: end -->"
EXPLANATION_BEGIN = "<!-- explanation: begin (written by people, kept by the program) -->"
EXPLANATION_END = "<!-- explanation: end -->"
_THEIRS = re.compile(rf"^(?:{re.escape(EXPLANATION_BEGIN)}|#+ )", re.MULTILINE)
_NEW_PAGE = f"""# Benchmarks

What the engine's own work costs: the nodes do next to nothing, so that almost all of the time is the engine's.
`ours` is pregel, `floor` is a loop written by hand that does the same work with no engine at all.

{BEGIN}
{END}

{EXPLANATION_BEGIN}

{EXPLANATION_END}
"""

_METHOD = """\
Median (lowest - highest) of {rounds} rounds after a warm-up round. Within a round the engines take turns, and the ratio
is taken round by round. In the rows of `ours`, "{heading}" compares with LangGraph; in the rows of other engines, with
`ours` in its default settings. One event loop a measurement, started before the clock. Every answer is checked."""

_MORE = """\
How cost grows with size is fitted by `python -m benchmarks.scaling`: exponents, 1.0 where the time of a run follows its
work; `--plot out.svg` draws the curves. The extra `[bench]` installs every engine; one that is not installed is left
out. {left_out}"""


class MarksMissingError(Exception):
    """The page exists but does not say where the results belong."""


def check() -> None:
    """Find out before an hour of measuring whether the page can be written.

    Raises:
        MarksMissingError: The page lacks one of the two marks, or has them in the wrong order.
    """
    if PAGE.exists():
        _split(PAGE.read_text(encoding="utf-8"))


def write(results: list[CaseResult], machine: dict[str, str], command: str, rounds: int, left_out: list[str]) -> Path:
    """Replace what stands between the marks; a page that does not exist is made.

    Args:
        results: What was measured.
        machine: From `benchmarks.machine.describe`.
        command: What a reader types to measure the same.
        rounds: Measurements a contender and case.
        left_out: What could not be measured, a line each.

    Returns:
        The page's path.

    Raises:
        MarksMissingError: See `check`.
    """
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else _NEW_PAGE
    before, after = _split(page)
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(before + _results(results, machine, command, rounds, left_out) + after, encoding="utf-8")
    return PAGE


def _split(page: str) -> tuple[str, str]:
    """Cut the page into what stands before the results and after them, with everything that people wrote."""
    before, begin, rest = page.partition(BEGIN)
    old, end, after = rest.partition(END)
    if not (begin and end):
        raise MarksMissingError(
            f"{PAGE.name} has no place for the results: put the lines {BEGIN!r} and {END!r} into it"
        )
    theirs = _THEIRS.search(old)
    kept = f"\n\n{old[theirs.start() :].strip()}\n" if theirs else ""
    return before + begin, end + kept + after


def _results(results: list[CaseResult], machine: dict[str, str], command: str, rounds: int, left_out: list[str]) -> str:
    workloads: dict[str, Workload] = {result.workload.name: result.workload for result in results}
    return "\n".join(
        [
            "",
            "",
            *(f"- {label}: {text}" for label, text in machine.items()),
            f"- command: `{command}`",
            "",
            _METHOD.format(rounds=rounds, heading=table.HEADINGS[4]),
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
            _MORE.format(left_out="Here, none was." if not left_out else "Here:"),
            *(["", *(f"- {line}" for line in left_out)] if left_out else []),
            "",
            "",
        ]
    )
