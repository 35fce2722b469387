"""Finding a time zone by its name, where the name comes from stored bytes."""

from __future__ import annotations

import re
import zoneinfo
from functools import lru_cache
from pathlib import Path
from typing import Final

__all__ = ["zone"]

#: What names of time zones look like; nothing else is ever looked for.
NAME: Final = re.compile(r"[A-Za-z0-9_+-]{1,40}(?:/[A-Za-z0-9_+-]{1,40}){0,3}")


@lru_cache(maxsize=256)
def zone(key: str) -> zoneinfo.ZoneInfo:
    """Return a time zone that the machine has data for.

    `ZoneInfo` looks for a name it does not find in the package tzdata, and imports a module of that name there. So it
    is asked for names only that are known to exist.

    Raises:
        ValueError: There is no such zone here.
    """
    if NAME.fullmatch(key) and (on_disk(key) or key in known()):
        return zoneinfo.ZoneInfo(key)
    raise ValueError(f"there is no time zone {key[:80]!r} on this machine; installing the package tzdata may bring it")


def on_disk(key: str) -> bool:
    """Return whether the machine's own data have a zone."""
    return any(Path(folder, key).is_file() for folder in zoneinfo.TZPATH)


@lru_cache(maxsize=1)
def known() -> frozenset[str]:
    """Return the names of all zones, those of the package tzdata included."""
    return frozenset(zoneinfo.available_timezones())
