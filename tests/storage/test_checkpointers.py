"""Every checkpointer keeps the protocol, and the checks that say so can fail."""

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.testing import conformance


@pytest.fixture(params=["memory", "sqlite", "sqlite in memory", "postgres"])
def make(request, tmp_path):
    """A factory of empty checkpointers of each kind; one is made by a check."""
    if request.param == "memory":
        return InMemorySaver
    if request.param == "sqlite":
        return lambda: SqliteSaver(tmp_path / "runs.db", synchronous="NORMAL")
    if request.param == "sqlite in memory":
        return lambda: SqliteSaver(":memory:")
    from pregel.checkpoint.postgres import PostgresSaver

    dsn = request.getfixturevalue("postgres")
    return lambda: PostgresSaver(dsn, max_size=4)


@pytest.mark.parametrize("check", conformance.CHECKS, ids=lambda check: check.__name__)
def test_conformance(check, make):
    check(make)
