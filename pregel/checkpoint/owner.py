"""Who holds a lease, and whether that process is provably dead.

A process is named by its machine, its number and the moment it began. The machine is its name with the boot and the
process namespace, for containers may share a name and numbers. Dead is only what can be shown to be: a lease of another
machine waits until it expires.
"""

from __future__ import annotations

import os
import secrets
import socket
from functools import lru_cache
from pathlib import Path
from typing import Final

from pregel.checkpoint.base import Lease

__all__ = ["is_dead", "new_lease"]

PROC = Path("/proc")
#: The states of a process that has ended and that its parent has not asked about yet.
ENDED: Final = frozenset("ZXx")


def new_lease() -> Lease:
    """Return a lease of this process with a new token. After a fork it is the child's."""
    pid = os.getpid()
    return Lease(secrets.token_hex(16), machine(pid), pid, started(pid))


def is_dead(lease: Lease) -> bool:
    """Return whether the holder of a lease is gone for certain."""
    if lease.host != machine(os.getpid()):
        return False
    try:
        os.kill(lease.pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:
        pass  # it is there, and another user's
    state, now = status(lease.pid)
    if state in ENDED:
        return True
    return bool(now and lease.started) and now != lease.started


@lru_cache(maxsize=1)
def machine(_: int) -> str:
    """Return the name of what numbers processes here, as it was when this process, given by its number, first asked."""
    parts = [socket.gethostname(), text_of(PROC / "sys/kernel/random/boot_id"), process_namespace()]
    return "/".join(filter(None, parts))


@lru_cache(maxsize=1)
def started(pid: int) -> str:
    """Return when this process, given by its number, began."""
    return status(pid)[1]


def process_namespace() -> str:
    """Return the process namespace, empty where there are none."""
    try:
        return str((PROC / "self/ns/pid").readlink())
    except OSError:
        return ""


def status(pid: int) -> tuple[str, str]:
    """Return the letter of a process's state, and when it began, in ticks since the boot; empty where not told."""
    # The command stands in brackets and may hold any character. Behind it: the state, field 3; the start is field 22.
    fields = text_of(PROC / str(pid) / "stat").rpartition(")")[2].split()
    return (fields[0], fields[19]) if len(fields) > 19 else ("", "")  # noqa: PLR2004 - see above


def text_of(path: Path) -> str:
    """Return a small file's text, empty if it can't be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
