"""A real PostgreSQL server for tests, started and stopped by them. It refuses root, so it runs as user `postgres`."""

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

#: Where Debian puts what is not on the PATH.
DEBIAN = Path("/usr/lib/postgresql")


def binaries():
    """Return the folder of the newest server that is installed, or None."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).parent
    folders = sorted(DEBIAN.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return folders[-1].parent if folders else None


def as_owner(*command):
    """Run a command as the user that owns the server, with a short path of its own."""
    prefix = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    done = subprocess.run([*prefix, *map(str, command)], cwd="/", capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stdout}{done.stderr}")


@contextmanager
def running_server():
    """Start a server on a socket in a new folder; yield the connection string of its database `postgres`."""
    folder = binaries()
    assert folder is not None, "no PostgreSQL binaries"
    home = Path(tempfile.mkdtemp(prefix="pregel-pg-", dir="/tmp"))  # a socket's path must be short
    if os.geteuid() == 0:
        shutil.chown(home, "postgres", "postgres")
    data = home / "data"
    try:
        as_owner(folder / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync")
        # No TCP, and no fsync: what is lost with the machine is no subject of these tests, a killed process is.
        options = f"-c listen_addresses='' -c unix_socket_directories='{home}' -c fsync=off -c max_connections=200"
        as_owner(folder / "pg_ctl", "-D", data, "-w", "-t", "60", "-l", home / "log", "-o", options, "start")
        try:
            yield f"host={home} user=postgres dbname=postgres"
        finally:
            as_owner(folder / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)
