"""Files that are there twice: ordinary functions whose work is done once, in this process or the next one.

    python -m examples.functional FILE FOLDER            # looks at the files of a folder, and says what it asks
    python -m examples.functional FILE FOLDER --answer yes no   # answers, in the order of the questions

Each file is read by a task of its own. Killed half-way, the same command goes on: no file is read twice. Each group of
files with equal content asks whether all but the first may go; all ask at the same time.
"""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pregel import Command, Interrupt, SqliteSaver, interrupt
from pregel.graph.functional import entrypoint, recorded, task

if TYPE_CHECKING:
    from pregel.checkpoint.base import Checkpointer
    from pregel.graph.functional import EntryPoint

YES_OR_NO: Final = Literal["yes", "no"]


@task
def digest(path: str) -> str:
    """Return what two files have in common only if their content is equal."""
    return sha256(Path(path).read_bytes()).hexdigest()


@task
def may_go(first: str, copies: list[str]) -> bool:
    """Ask whether copies of a file may be deleted."""
    question = f"delete {', '.join(copies)}, equal to {first}?"
    return bool(interrupt(question, response_schema=YES_OR_NO) == "yes")


@task
def deleted(path: str) -> str:
    """Delete a file; a crash right after that finds it gone."""
    Path(path).unlink(missing_ok=True)
    return path


def tidying(saver: Checkpointer) -> EntryPoint:
    """Return the graph, stored there."""

    @entrypoint(checkpointer=saver)
    def tidy(folder: str) -> dict[str, list[str]]:
        # Recorded, for when this runs again, files may be gone.
        paths = recorded("files", lambda: sorted(str(path) for path in Path(folder).rglob("*") if path.is_file()))
        digests = [digest(path) for path in paths]  # all begin, and then each is waited for
        groups: dict[str, list[str]] = {}
        for path, future in zip(paths, digests, strict=True):
            groups.setdefault(future.result(), []).append(path)
        copies = [group for group in groups.values() if len(group) > 1]
        answers = [may_go(first, rest) for first, *rest in copies]
        gone = [
            deleted(path)
            for (_, *rest), answer in zip(copies, answers, strict=True)
            if answer.result()
            for path in rest
        ]
        went = [future.result() for future in gone]
        return {"deleted": went, "kept": [path for path in paths if path not in went]}

    return tidy


def told(result: dict[str, Any]) -> list[str]:
    """Return what a run came to, or what it asks."""
    questions = [f"{number}. {each.value}" for number, each in enumerate(result.get("__interrupt__", ()), 1)]
    return questions or [f"{name}: {', '.join(result[name]) or 'nothing'}" for name in ("deleted", "kept")]


def main(path: str, folder: str, *words: str) -> None:
    """Tidy a folder, go on with that, or answer what it asks."""
    config = {"configurable": {"thread_id": folder}}
    with SqliteSaver(path) as saver:
        tidy = tidying(saver)
        state = tidy.get_state(config)
        if words[:1] == ("--answer",):
            asked = [each.id for each in state.interrupts if isinstance(each, Interrupt)]
            result = tidy.invoke(Command(resume=dict(zip(asked, words[1:], strict=False))), config)
        else:
            result = tidy.invoke(None if state.next else folder, config)
    for line in told(result):
        print(line)


if __name__ == "__main__":
    main(*sys.argv[1:])
