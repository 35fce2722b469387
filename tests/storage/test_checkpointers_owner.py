"""Who holds a lease, and which processes are provably dead."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pregel.checkpoint import owner
from pregel.checkpoint.labels import pack
from pregel.checkpoint.owner import is_dead, new_lease
from pregel.errors import InvalidIdError

LINUX = Path("/proc/self/stat").exists()


@pytest.fixture(autouse=True)
def nothing_remembered():
    """What this process knows of itself is asked anew."""
    yield
    forget()


def forget():
    owner.machine.cache_clear()
    owner.started.cache_clear()


def test_this_process_is_alive_and_its_tokens_are_new():
    first, second = new_lease(), new_lease()
    assert first.token != second.token
    assert len(first.token) == 32
    assert first[1:] == second[1:]
    assert first.pid == os.getpid()
    assert not is_dead(first)


def test_a_process_that_ended_is_dead():
    code = "from pregel.checkpoint.owner import new_lease; print(*new_lease(), sep='\\n')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    token, host, pid, started = done.stdout.splitlines()
    assert host == owner.machine(os.getpid())
    assert is_dead(new_lease()._replace(token=token, pid=int(pid), started=started))


@pytest.mark.skipif(not LINUX, reason="needs /proc")
def test_a_number_that_another_process_uses_now_is_no_sign_of_life():
    assert is_dead(new_lease()._replace(started="1"))
    assert not is_dead(new_lease()._replace(started=""))  # it was not known, so nothing is proved


@pytest.mark.skipif(not LINUX, reason="needs /proc")
def test_a_process_that_ended_and_was_not_waited_for_is_dead():
    code = "from pregel.checkpoint.owner import new_lease; print(*new_lease(), sep='\\n', flush=True)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        token, host, pid, started = process.stdout.read().splitlines()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and still has its number
        assert is_dead(new_lease()._replace(token=token, host=host, pid=int(pid), started=started))


def test_another_machine_can_not_be_judged():
    assert not is_dead(new_lease()._replace(host="elsewhere", pid=2**22 + 1))


@pytest.mark.parametrize("pid", [2**22 + 1, 2**70])
def test_a_number_that_no_process_has_is_dead(pid):
    assert is_dead(new_lease()._replace(pid=pid))


def test_without_proc_only_a_missing_number_is_dead(monkeypatch, tmp_path):
    monkeypatch.setattr(owner, "PROC", tmp_path)
    forget()
    mine = new_lease()
    assert mine.started == ""
    assert mine.host
    assert not is_dead(mine)
    assert is_dead(mine._replace(pid=2**22 + 1))


def test_a_process_of_another_user_is_alive(monkeypatch):
    def refused(pid, number):
        raise PermissionError

    monkeypatch.setattr(os, "kill", refused)
    assert not is_dead(new_lease())


def test_the_start_is_read_behind_the_last_bracket(monkeypatch, tmp_path):
    (tmp_path / "7").mkdir()
    behind = " ".join(str(number) for number in range(3, 53))
    (tmp_path / "7" / "stat").write_text(f"7 (a ) b (c) {behind}\n")
    monkeypatch.setattr(owner, "PROC", tmp_path)
    assert owner.status(7) == ("3", "22")
    (tmp_path / "7" / "stat").write_text("7 (short) S\n")
    assert owner.status(7) == ("", "")


@pytest.mark.skipif(not LINUX, reason="needs /proc")
def test_containers_with_one_name_are_told_apart(monkeypatch):
    mine = owner.machine(os.getpid())
    monkeypatch.setattr(owner, "process_namespace", lambda: "pid:[1]")
    forget()
    assert owner.machine(os.getpid()) != mine


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_not_its_parent():
    code = """
import os
from pregel.checkpoint.owner import is_dead, new_lease
before = new_lease()
child = os.fork()
if not child:
    mine = new_lease()
    os._exit(not (mine.pid != before.pid and mine.token != before.token and not is_dead(mine) and not is_dead(before)))
print(os.waitpid(child, 0)[1])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"


@pytest.mark.parametrize("wrong", [("a\0b",), ("\ud800",), ("x" * 2601,)])
def test_labels_that_no_database_takes_are_refused(wrong):
    with pytest.raises(InvalidIdError):
        pack(wrong)
