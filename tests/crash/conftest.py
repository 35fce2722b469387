"""What the kill tests share: the process that forks the others, and the count of kills."""

import os
from collections import Counter

import pytest

from tests.crash.nursery import Nursery

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
TALLY = pytest.StashKey()


class Tally:
    """How many processes were killed."""

    def __init__(self):
        self.kills = Counter()
        self.cases = set()

    def add(self, kind, case, kills):
        """Count the kills of a case."""
        self.kills[kind] += kills
        self.cases.add((kind, case))


def pytest_configure(config):
    config.stash[TALLY] = Tally()


@pytest.fixture(scope="session")
def tally(pytestconfig):
    """The count of kills, which is printed at the end."""
    return pytestconfig.stash[TALLY]


@pytest.fixture(scope="session")
def nightly():
    """Whether this is the long run."""
    return NIGHTLY


@pytest.fixture(scope="session")
def nursery(tmp_path_factory):
    """Starts processes."""
    with Nursery(tmp_path_factory.mktemp("printed")) as nursery:
        yield nursery


def pytest_terminal_summary(terminalreporter, config):
    kills = config.stash[TALLY].kills
    if kills:
        told = ", ".join(f"{number} {kind}" for kind, number in sorted(kills.items()))
        terminalreporter.write_line(f"processes killed: {kills.total()} ({told})")
