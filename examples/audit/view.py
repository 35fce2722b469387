"""How does a run look while it runs? A live tree on a terminal, plain lines in a log."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text
from rich.tree import Tree

from examples.audit.progress import Progress, Resumed, Row, Step
from examples.audit.state import Note
from examples.audit.words import counted, shown


def follow(parts: Iterable[tuple[str, Any]], console: Console, resumed: Resumed | None = None) -> dict[str, Any]:
    """Show the parts of a stream as they come and return the last state.

    Args:
        parts: The stream.
        console: Where they are shown.
        resumed: Where the run goes on; None where it begins.
    """
    progress = Progress(time.perf_counter, resumed)
    if not console.is_terminal:
        for mode, payload in parts:
            for line in plain_lines(progress.feed(mode, payload)):
                console.print(Text(line), soft_wrap=True)
        return progress.values
    with Live(get_renderable=lambda: draw(progress), console=console, refresh_per_second=8):
        for mode, payload in parts:
            progress.feed(mode, payload)
    return progress.values


def plain_lines(told: Step | Note | None) -> list[str]:
    """What a log says about a superstep that ended, or a note."""
    if isinstance(told, Note):
        return [f"{told.node}: {shown(told.text)}"]
    if told is None:
        return []
    head = f"superstep {told.number}: {_tasks(told)}, {told.seconds or 0.0:.2f} s"
    return [head, *(f"  {node:<16} {_count(row):>14} {row.seconds:8.2f} s" for node, row in told.rows.items())]


def draw(progress: Progress) -> Tree:
    """The supersteps so far as a tree."""
    tree = Tree(Text("audit", style="bold"))
    # Copies: the display draws from a thread of its own.
    for step in list(progress.steps):
        rows = list(step.rows.items())
        if not rows and not step.notes:
            continue
        took = f"{step.seconds:.2f} s" if step.seconds is not None else "running"
        style = "green" if step.seconds is not None else "yellow"
        title = Text.assemble((f"superstep {step.number}", style), f"  {_tasks(step)}, {took}")
        branch = tree.add(title)
        notes = {note.node: note.text for note in list(step.notes)}
        for node, row in rows:
            note = shown(notes.pop(node, ""))
            branch.add(Text(f"{node:<16} {_count(row):>15} {row.seconds:7.2f} s  {note}".rstrip()))
        for node, text in notes.items():  # of nodes still running
            branch.add(Text(f"{node:<16} {shown(text)}"))
    return tree


def going_on(path: str, resumed: Resumed) -> str:
    """What is said of a run that goes on."""
    head = f"going on with the run of {shown(path)}"
    if not resumed.planned:
        return f"{head}: only its report is left"
    done, due = sum(resumed.done.values()), sum(resumed.planned.values())
    return f"{head}: {done:,} of {counted(due, 'task')} of superstep {resumed.step} were done already"


def _tasks(step: Step) -> str:
    return counted(step.tasks, "task") + (f", {step.before:,} of them before" if step.before else "")


def _count(row: Row) -> str:
    return f"{row.done:,}/{row.planned:,}" if row.planned and row.done < row.planned else counted(row.done, "task")
