"""Cost against size as a picture: one panel a workload, one line an engine, both axes logarithmic.

Imported only for `--plot`: nothing else here needs matplotlib.
"""

from __future__ import annotations

from itertools import groupby
from math import ceil
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.curves import curves
from benchmarks.engines import ENGINES
from benchmarks.results import CaseResult

_COLUMNS = 2
#: An engine's colour is the same in every panel; its variants differ in the line.
_COLOURS = dict(zip(ENGINES, mpl.color_sequences["tab10"], strict=False))
_STYLES = ("-", "--", ":", "-.")


def draw(results: list[CaseResult], path: Path) -> bool:
    """Draw every curve there is.

    Args:
        results: What was measured.
        path: The SVG file to write.

    Returns:
        Whether there was a curve: one needs a workload measured in two sizes or more.
    """
    panels = [list(group) for _, group in groupby(curves(results), key=lambda curve: curve.title)]
    if not panels:
        return False
    rows = ceil(len(panels) / _COLUMNS)
    figure = Figure(figsize=(6 * _COLUMNS, 4 * rows), layout="constrained")
    grid = [*figure.subplots(rows, _COLUMNS, squeeze=False).flat]
    for axes, panel in zip(grid, panels, strict=False):
        seen: list[str] = []
        for curve in panel:
            engine = curve.contender.partition(" ")[0]
            style = _STYLES[seen.count(engine) % len(_STYLES)]
            seen.append(engine)
            axes.plot(
                curve.sizes,
                curve.microseconds,
                style,
                color=_COLOURS[engine],
                marker="o",
                markersize=3,
                label=curve.contender,
            )
        axes.set(title=panel[0].title, xscale="log", yscale="log", xlabel="size", ylabel=f"us per {panel[0].unit}")
        axes.grid(visible=True, which="major", alpha=0.3)
        axes.legend(fontsize="x-small")
    for axes in grid[len(panels) :]:  # the rest of the last row
        axes.set_axis_off()
    # The same numbers give the same bytes: no random ids, no date.
    with mpl.rc_context({"svg.hashsalt": "benchmarks"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
    return True
