"""The command line: `python -m examples.audit [PATH] [--top N] [--db FILE] [--fresh]`."""

from __future__ import annotations

import gc
import os
import signal
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from examples.audit.database import DatabaseError, open_database
from examples.audit.runs import forget, run
from examples.audit.tables import tables
from examples.audit.view import follow, going_on
from pregel.checkpoint.base import Checkpointer
from pregel.errors import ConcurrentRunError, ThreadBusyError

#: The width of a log, where no terminal says how wide it is.
LOG_WIDTH = 120
#: What a shell makes of a process that Ctrl-C has ended.
INTERRUPTED = 130

app = typer.Typer(add_completion=False)


@app.command()
def audit(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A folder, or a single Python file.")] = Path(),
    top: Annotated[int, typer.Option(min=1, help="How many rows a table may have.")] = 10,
    db: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where runs are stored; pregel/audit.sqlite in your cache folder if not given."
        ),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin anew, whatever is stored.")] = False,  # noqa: FBT002 - a flag
) -> None:
    """Audit a Python source tree: what deserves attention, import cycles, repeated blocks.

    Stopped half-way, even by a kill, it goes on from there when it is started again with the same PATH and --top.
    """
    _require_readable(path)
    console = _console()
    with _opened(db, console) or nullcontext() as saver:
        try:
            _audit(path, top, saver, console, fresh=fresh)
        except (ConcurrentRunError, ThreadBusyError) as error:
            typer.echo(f"{path} is being audited elsewhere: {error}", err=True)
            raise typer.Exit(1) from None
        except KeyboardInterrupt:
            if saver:
                console.print("stopped. The same command goes on from here")
            raise typer.Exit(INTERRUPTED) from None


def _audit(path: Path, top: int, saver: Checkpointer | None, console: Console, *, fresh: bool) -> None:
    """Run, or go on, and print the report."""
    started = time.perf_counter()
    begun = run(path, top, saver, fresh=fresh)
    if begun.lost:
        _say(console, f"beginning anew, for what is stored can't be gone on with: {begun.lost}")
    if begun.resumed:
        _say(console, going_on(str(path.resolve()), begun.resumed))
    # Closed in any case, so that what has ended is stored before the file is closed.
    with closing(begun.parts):
        report = follow(_until_stopped(begun.parts), console, begun.resumed)["report"]
    for part in tables(report):
        console.print(part, highlight=False)
    since = "since it went on" if begun.resumed else "in all"
    console.print(f"\n{time.perf_counter() - started:.1f} s {since}", highlight=False)
    if saver:
        forget(path, top, saver)


def _until_stopped(parts: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield parts until Ctrl-C. The first one waits for the next part, so that it finds no step half done.

    Raises:
        KeyboardInterrupt: There was one.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # such as ignored, behind a shell's `&`
        yield from parts
        return
    stopped = False

    def stop(_number: int, _frame: object) -> None:
        nonlocal stopped
        stopped = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    signal.signal(signal.SIGINT, stop)
    try:
        for part in parts:
            yield part
            if stopped:
                raise KeyboardInterrupt
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _opened(db: Path | None, console: Console) -> Checkpointer | None:
    """Open the file of runs. One that was named must be usable: exit code 2. Without the default one it runs too."""
    try:
        return open_database(db)
    except DatabaseError as error:
        if db is not None:
            raise typer.BadParameter(str(error), param_hint="--db") from None
        _say(console, f"this run is not stored, and begins anew if it is stopped: {error}. Name a file with --db")
        return None


def _say(console: Console, text: str) -> None:
    console.print(Text(text), soft_wrap=True)


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
