"""Where are runs stored?"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import DecodeError


class DatabaseError(Exception):
    """A file can't be used; the message says which and why."""


def default_path() -> Path:
    """The file for those who name none: in the user's cache folder, never in the audited tree.

    Raises:
        RuntimeError: The user has no home.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not cache.is_absolute():  # unset, or to be ignored by the XDG specification
        cache = Path.home() / ".cache"
    return cache / "pregel" / "audit.sqlite"


def open_database(path: Path | None) -> SqliteSaver:
    """Open the file, making it where there is none; None for the default one, with its folders.

    Raises:
        DatabaseError: It can't be used.
    """
    try:
        if path is None:
            path = default_path()
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return SqliteSaver(path)
    except (DecodeError, OSError, RuntimeError, sqlite3.Error) as error:
        raise DatabaseError(str(error)) from error
