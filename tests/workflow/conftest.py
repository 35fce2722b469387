"""Fixtures of the tests of sessions."""

import pytest

from pregel.checkpoint.sqlite import SqliteSaver
from pregel.graph.workflow import Sessions
from pregel.store.sqlite import SqliteStore
from tests.workflow.kit import Way


@pytest.fixture(params=["memory", "sqlite"])
def sessions(request):
    if request.param == "memory":
        yield Sessions()
    else:
        with SqliteSaver(":memory:") as saver, SqliteStore(":memory:") as store:
            yield Sessions(saver, store)


@pytest.fixture
def way(door):
    return Way(door)
