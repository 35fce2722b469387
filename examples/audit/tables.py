"""How does the report look?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from examples.audit.state import Block, Cycle, Finding, Report
from examples.audit.words import counted, shown

#: No table fits more lines of one cell's list.
MAX_LISTED = 5


def tables(report: Report) -> Iterator[RenderableType]:
    """The report, part by part. A part with nothing to say is one line."""
    yield _summary(report)
    yield from _problems(report.problems)
    if not report.totals.files:
        return
    yield from _findings(report.findings, report.totals.findings)
    yield from _cycles(report.cycles, report.totals.cycles)
    yield from _imported(report.imported, report.totals.imported)
    yield from _blocks(report.blocks, report.totals.blocks)


def _summary(report: Report) -> Text:
    totals = report.totals
    if totals.files:
        counts = [
            counted(totals.files, "file"),
            counted(totals.lines, "line"),
            counted(totals.functions, "function"),
            counted(totals.classes, "class", "es"),
            f"{totals.documented:,} of {counted(totals.public, 'public definition')} documented",
        ]
        text = f"\n{shown(report.base)}: {', '.join(counts)}."
    else:
        text = f"\nNo Python files in {shown(report.base)}."
    if totals.skipped:
        text += f" {counted(totals.skipped, 'link')} or special files not followed."
    return Text(text)


def _problems(problems: tuple[tuple[str, str], ...]) -> Iterator[RenderableType]:
    """All of them: what could not be looked at must not be lost in a number."""
    if problems:
        table = _table("Could not be read or parsed", len(problems), len(problems))
        table.add_column("path", overflow="fold", ratio=1)
        table.add_column("what happened", overflow="fold", ratio=2)
        for path, text in problems:
            table.add_row(Text(shown(path)), Text(shown(text)))
        yield table


def _findings(findings: tuple[Finding, ...], count: int) -> Iterator[RenderableType]:
    if not findings:
        yield Text("\nNothing stands out.")
        return
    table = _table("Files that deserve attention", len(findings), count)
    table.add_column("score", justify="right")
    table.add_column("file", overflow="fold", ratio=1)
    table.add_column("why", overflow="fold", ratio=2)
    for finding in findings:
        table.add_row(f"{finding.score:.1f}", Text(shown(finding.path)), Text(shown("; ".join(finding.reasons))))
    yield table


def _cycles(cycles: tuple[Cycle, ...], count: int) -> Iterator[RenderableType]:
    if not cycles:
        yield Text("\nNo import cycles.")
        return
    table = _table("Import cycles", len(cycles), count)
    table.add_column("files", justify="right")
    table.add_column("one round trip", overflow="fold", ratio=1)
    for cycle in cycles:
        trip = _listed([*cycle.example, cycle.example[0]], "-> ")
        table.add_row(f"{len(cycle.paths):,}", Text(trip))
    yield table


def _imported(imported: tuple[tuple[str, int], ...], count: int) -> Iterator[RenderableType]:
    if not imported:
        yield Text("\nNo module imports another of the tree.")
        return
    table = _table("Most imported modules", len(imported), count)
    table.add_column("importers", justify="right")
    table.add_column("module", overflow="fold", ratio=1)
    for name, importers in imported:
        table.add_row(f"{importers:,}", Text(shown(name)))
    yield table


def _blocks(blocks: tuple[Block, ...], count: int) -> Iterator[RenderableType]:
    if not blocks:
        yield Text("\nNo repeated blocks.")
        return
    table = _table("Repeated blocks", len(blocks), count)
    table.add_column("code lines", justify="right")
    table.add_column("copies", justify="right")
    table.add_column("where", overflow="fold", ratio=1)
    for block in blocks:
        where = _listed([f"{place.path}:{place.first}-{place.last}" for place in block.places])
        table.add_row(f"{block.lines:,}", f"{len(block.places):,}", Text(where))
    yield table


def _table(title: str, rows: int, count: int) -> Table:
    text = f"\n{title}: {rows:,} of {count:,}" if rows < count else f"\n{title}: {count:,}"
    return Table(title=text, title_justify="left", title_style="bold", expand=True, show_lines=False)


def _listed(items: Iterable[str], mark: str = "") -> str:
    """One line per item, the middle left out of a long list so that both ends are seen."""
    lines = [f"{mark if position else ''}{shown(item)}" for position, item in enumerate(items)]
    if len(lines) > MAX_LISTED:
        lines[MAX_LISTED - 1 : -1] = [f"({len(lines) - MAX_LISTED:,} more)"]
    return "\n".join(lines)
