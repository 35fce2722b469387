"""Which files deserve attention first, and why?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import log2

from examples.audit.state import Block, Cycle, Docs, Finding, Shape
from examples.audit.words import counted

#: Below these nothing is said: ten branches fit in a head, some hundred lines on a few screens.
MAX_COMPLEXITY = 10
MAX_LINES = 400
#: No single reason outweighs all others together.
MAX_POINTS = 40.0
PROBLEM_POINTS = 50.0


def rank(
    *,
    shapes: Iterable[Shape],
    docs: Iterable[Docs],
    blocks: Iterable[Block],
    cycles: Iterable[Cycle],
    importers: dict[str, int],
    problems: dict[str, str],
) -> list[Finding]:
    """Score every file with something to say about it, highest first, equals by path.

    Points are a matter of judgement, so each comes with its reason. What is wrong with a file that many others import
    reaches further: its points grow with the logarithm of its importers.
    """
    points: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for path, problem in problems.items():
        points[path].append((PROBLEM_POINTS, problem))
    for shape in shapes:
        points[shape.path].extend(_shape_points(shape))
    for entry in docs:
        if missing := entry.public - entry.documented:
            text = f"{missing:,} of {counted(entry.public, 'public definition')} without docstring"
            points[entry.path].append((min(missing * missing / entry.public, MAX_POINTS / 2), text))
    for path, lines in repeated_lines(blocks).items():
        points[path].append((min(lines / 5, MAX_POINTS), f"{counted(lines, 'line')} repeated"))
    for cycle in cycles:
        for path in cycle.paths:
            points[path].append((min(8.0 + len(cycle.paths), MAX_POINTS / 2), f"import cycle of {len(cycle.paths)}"))
    findings = [_finding(path, entries, importers.get(path, 0)) for path, entries in points.items() if entries]
    return sorted(findings, key=lambda finding: (-finding.score, finding.path))


def _shape_points(shape: Shape) -> Iterator[tuple[float, str]]:
    if shape.complexity > MAX_COMPLEXITY:
        text = f"{shape.worst} (line {shape.worst_line}) has complexity {shape.complexity}"
        yield min(float(shape.complexity - MAX_COMPLEXITY), MAX_POINTS), text
    if shape.lines > MAX_LINES:
        yield min((shape.lines - MAX_LINES) / 40, MAX_POINTS), f"{shape.lines:,} lines"


def _finding(path: str, entries: list[tuple[float, str]], importers: int) -> Finding:
    reasons = [text for _, text in sorted(entries, key=lambda entry: -entry[0])]
    if importers > 1:
        reasons.append(f"imported by {importers:,}")
    score = sum(points for points, _ in entries) * (1 + log2(1 + importers) / 8)
    return Finding(path, round(score, 1), tuple(reasons))


def repeated_lines(blocks: Iterable[Block]) -> dict[str, int]:
    """How many lines of each file belong to a repeated block, each line counted once."""
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for block in blocks:
        for place in block.places:
            spans[place.path].append((place.first, place.last))
    counts = {}
    for path, ranges in spans.items():
        count = reached = 0
        for first, last in sorted(ranges):
            count += max(0, last - max(first - 1, reached))
            reached = max(reached, last)
        counts[path] = count
    return counts
