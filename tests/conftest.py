"""What tests share: the three ways to run a graph, and the sizes of property tests."""

import asyncio
import os
from itertools import count

import anyio
import pytest
from hypothesis import HealthCheck, settings

from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.sqlite import SqliteSaver
from tests.postgres import binaries, running_server

settings.register_profile("default", max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("nightly", settings.get_profile("default"), max_examples=5_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


class Door:
    """Runs a graph in one of the three ways, so that one test body holds for all."""

    def __init__(self, way):
        self.way = way

    def run(self, main):
        """Run a coroutine function on this door's event loop."""
        return asyncio.run(main()) if self.way == "asyncio" else anyio.run(main, backend="trio")

    def invoke(self, graph, given, *args, **options):
        """Run a graph to its end."""
        if self.way == "sync":
            return graph.invoke(given, *args, **options)

        async def main():
            return await graph.ainvoke(given, *args, **options)

        return self.run(main)

    def stream(self, graph, given, *args, **options):
        """Run a graph and return all parts, with the error that ended the stream, if one did, as the last item."""
        parts = []
        try:
            if self.way == "sync":
                parts.extend(graph.stream(given, *args, **options))
            else:

                async def main():
                    async for part in graph.astream(given, *args, **options):
                        parts.append(part)

                self.run(main)
        except Exception as error:
            parts.append(error)
        return parts


@pytest.fixture(params=["sync", "asyncio", "trio"])
def door(request):
    """Each way to run a graph, in turn."""
    return Door(request.param)


@pytest.fixture(params=["asyncio", "trio"])
def loop(request):
    """Each way to run a graph on an event loop, in turn."""
    return Door(request.param)


@pytest.fixture(params=[InMemorySaver, lambda: SqliteSaver(":memory:")], ids=["memory", "sqlite"])
def saver(request):
    """An empty checkpointer in memory of each kind, in turn."""
    with request.param() as made:
        yield made


@pytest.fixture(scope="session")
def postgres_server():
    """The connection string of a PostgreSQL server that lives as long as the tests."""
    if binaries() is None:
        reason = "no PostgreSQL server is installed (on Debian: apt install postgresql)"
        if os.environ.get("PREGEL_REQUIRE_POSTGRES"):
            pytest.fail(reason)
        pytest.skip(reason)
    with running_server() as dsn:
        yield dsn


SCHEMAS = count()


@pytest.fixture
def postgres(postgres_server):
    """The connection string of an empty PostgreSQL schema."""
    import psycopg

    schema = f"test_{next(SCHEMAS)}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    return f"{postgres_server} options='-c search_path={schema}'"
