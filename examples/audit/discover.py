"""Which files belong to a source tree?"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from examples.audit.state import Tree

#: Folders that hold no source of the tree: version control, environments, caches.
SKIPPED_FOLDERS = frozenset(
    {
        ".eggs", ".git", ".hg", ".mypy_cache", ".nox", ".pytest_cache", ".ruff_cache", ".svn", ".tox", ".venv",
        "__pycache__", "node_modules",
    }
)  # fmt: skip


@dataclass(slots=True)
class _Walk:
    """What a walk has gathered so far."""

    base: Path
    files: list[str] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    skipped: int = 0
    problems: dict[str, str] = field(default_factory=dict)


def discover(root: Path) -> tuple[Tree, dict[str, str]]:
    """List the Python files of a folder, or a single file whatever its suffix.

    Links are never followed, so a loop of them ends nothing. A folder that can't be listed is a problem, not an error.

    Args:
        root: A folder or a regular file. It may be a link itself: whoever names it means its target.

    Returns:
        The tree, and the problems met as {path: what happened}.
    """
    root = root.resolve()
    if not root.is_dir():
        base = root.parent
        return Tree(str(base), (root.name,), _enclosing_packages(base)), {}
    walk = _Walk(root)
    folders = [root]
    while folders:
        folders.extend(_look_into(folders.pop(), walk))
    tree = Tree(
        base=str(root),
        files=tuple(sorted(walk.files)),
        package=_enclosing_packages(root),
        links=tuple(sorted(walk.links)),
        skipped=walk.skipped,
    )
    return tree, walk.problems


def _look_into(folder: Path, walk: _Walk) -> list[Path]:
    """Take a folder's files into `walk` and return its folders."""
    try:
        with os.scandir(folder) as listing:
            entries = list(listing)
    except OSError as error:
        walk.problems[_relative(folder, walk.base)] = f"folder can't be listed: {error.strerror}"
        return []
    folders = []
    for entry in entries:
        path = Path(entry.path)
        if entry.is_symlink():
            walk.skipped += 1
            if (target := _target_inside(path, walk.base)) is not None:
                walk.links.append((_relative(path, walk.base), target))
        elif entry.is_dir(follow_symlinks=False):
            # An environment under any other name is known by its configuration file.
            if entry.name not in SKIPPED_FOLDERS and not _exists(path / "pyvenv.cfg"):
                folders.append(path)
        elif entry.name.endswith(".py"):
            if entry.is_file(follow_symlinks=False):
                walk.files.append(_relative(path, walk.base))
            else:
                walk.skipped += 1  # a pipe or a socket: reading it could wait for ever
    return folders


def _exists(path: Path) -> bool:
    # Path.exists raises where a folder may be listed but not entered.
    return os.path.exists(path)  # noqa: PTH110


def _target_inside(link: Path, base: Path) -> str | None:
    """Where a link to a folder leads, if that is inside the tree and not around the link itself."""
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):  # broken, or a loop (3.11 and 3.12 raise RuntimeError for one)
        return None
    if target == base or not target.is_dir() or not target.is_relative_to(base) or link.is_relative_to(target):
        return None
    return _relative(target, base)


def _relative(path: Path, base: Path) -> str:
    return path.relative_to(base).as_posix()


def _enclosing_packages(folder: Path) -> tuple[str, ...]:
    """The packages that a folder lies in, itself included, outermost first."""
    names: list[str] = []
    while _exists(folder / "__init__.py") and folder.name:
        names.insert(0, folder.name)
        folder = folder.parent
    return tuple(names)
