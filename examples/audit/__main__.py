"""The command line: `python -m examples.audit [PATH] [--top N]`."""

from __future__ import annotations

import gc
import os
import stat
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from examples.audit.graph import run
from examples.audit.tables import tables
from examples.audit.view import follow

#: The width of a log, where no terminal says how wide it is.
LOG_WIDTH = 120

app = typer.Typer(add_completion=False)


@app.command()
def audit(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A folder, or a single Python file.")] = Path(),
    top: Annotated[int, typer.Option(min=1, help="How many rows a table may have.")] = 10,
) -> None:
    """Audit a Python source tree: what deserves attention, import cycles, repeated blocks."""
    _require_readable(path)
    console = _console()
    started = time.perf_counter()
    report = follow(run(path, top), console)["report"]
    for part in tables(report):
        console.print(part, highlight=False)
    console.print(f"\n{time.perf_counter() - started:.1f} s in all", highlight=False)


def _require_readable(path: Path) -> None:
    """Say what is wrong with the argument before anything runs: exit code 2."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 (Path.exists hides why)
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"{path}: {getattr(error, 'strerror', None) or error}", param_hint="PATH") from None
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        raise typer.BadParameter(f"{path} is neither a folder nor a regular file", param_hint="PATH")
    if not os.access(path, os.R_OK | (os.X_OK if stat.S_ISDIR(mode) else 0)):
        raise typer.BadParameter(f"{path}: no permission to read it", param_hint="PATH")


def _console() -> Console:
    # A terminal or a log that can't show a character shows a mark instead of ending the run.
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure:
        reconfigure(errors="replace")
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = LOG_WIDTH
    return console


if __name__ == "__main__":
    # A syntax tree is tens of thousands of objects and no cycle. Looking for cycles among them after every 700 new ones
    # takes a third of the time.
    gc.set_threshold(100_000)
    app(prog_name="python -m examples.audit")
