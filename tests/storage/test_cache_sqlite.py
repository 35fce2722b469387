"""The cache in a file: what it keeps, for how long, and for which processes."""

import sqlite3
import subprocess
import sys
from typing import TypedDict

import pytest

from pregel import START, SqliteSaver, StateGraph
from pregel.cache.sqlite import SqliteCache
from pregel.errors import DecodeError, InvalidIdError
from pregel.testing import fake_clock
from pregel.types import CachePolicy


class State(TypedDict):
    n: int


@pytest.fixture
def cache():
    made = SqliteCache(":memory:")
    yield made
    made.close()


def test_it_keeps_bytes_by_namespace_and_key(cache):
    cache.put(("g", "a"), "k", b"1")
    cache.put(("g", "b"), "k", b"2")
    cache.put(("g", "a"), "k", b"3\0\xff")
    assert (cache.get(("g", "a"), "k"), cache.get(("g", "b"), "k")) == (b"3\0\xff", b"2")
    assert cache.get(("g",), "k") is cache.get(("g", "a"), "K") is None


def test_clearing_forgets_a_namespace_and_those_in_it(cache):
    places = [("g",), ("g", "a"), ("g", "a", "x"), ("gg",), ("g%", "a"), ("g_",), ("h", "a"), ("g", "'; --")]
    for place in places:
        cache.put(place, "k", b"v")
    cache.clear(("g", "a"))
    assert [place for place in places if cache.get(place, "k") is None] == [("g", "a"), ("g", "a", "x")]
    cache.clear(("g",))
    left = [("gg",), ("g%", "a"), ("g_",), ("h", "a")]
    assert [place for place in places if cache.get(place, "k")] == left
    cache.clear()
    assert not any(cache.get(place, "k") for place in places)


def test_what_has_expired_is_gone_and_takes_no_room(cache):
    def rows():
        return cache._connection.execute("SELECT count(*) FROM pregel_cache").fetchone()[0]

    with fake_clock() as clock:
        for number in range(5):
            cache.put(("g",), str(number), b"v", ttl=5 + number)
        cache.put(("g",), "for ever", b"v")
        clock.advance(5)
        assert (cache.get(("g",), "0"), cache.get(("g",), "1")) == (None, b"v")
        clock.advance(2.5)
        cache.put(("g",), "new", b"v")
        assert rows() == 4
        cache.put(("g",), "3", b"again")  # now for ever
        clock.advance(1_000)
        assert (cache.get(("g",), "3"), cache.get(("g",), "4")) == (b"again", None)


def test_a_name_that_can_not_be_one_is_refused(cache):
    for wrong in (("a\0b",), ("\ud800",)):
        with pytest.raises(InvalidIdError):
            cache.put(wrong, "k", b"v")


def test_a_failed_change_leaves_what_was_there(cache):
    cache.put(("g",), "k", b"v")
    with pytest.raises(sqlite3.Error):
        cache.put(("g",), "k", object())
    assert cache.get(("g",), "k") == b"v"
    cache.put(("g",), "k", b"w")
    assert cache.get(("g",), "k") == b"w"


def test_it_closes_twice_and_then_refuses(tmp_path):
    cache = SqliteCache(tmp_path / "c.sqlite")
    cache.close()
    cache.close()
    with pytest.raises(sqlite3.ProgrammingError):
        cache.get(("g",), "k")


def test_tables_of_a_later_release_are_refused(tmp_path):
    path = tmp_path / "c.sqlite"
    SqliteCache(path).close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE pregel_versions SET version = 99 WHERE part = 'cache'")
    connection.commit()
    connection.close()
    with pytest.raises(DecodeError, match="version 99"):
        SqliteCache(path)


#: What nodes have been given; a global variable is no part of what tells their code apart.
RAN = []


def noted(state: State) -> dict:
    RAN.append(state["n"])
    return {"n": state["n"] + 1}


def test_graphs_share_results_in_a_file_that_a_checkpointer_uses_too(door, tmp_path):
    RAN.clear()
    path = tmp_path / "all.sqlite"
    builder = StateGraph(State).add_node("work", noted, cache_policy=CachePolicy(key_func=lambda state: state["n"]))
    builder.add_edge(START, "work")
    for thread in "ab":
        with SqliteSaver(path) as saver:
            cache = SqliteCache(path)
            graph = builder.compile(saver, cache=cache)
            assert door.invoke(graph, {"n": 1}, {"configurable": {"thread_id": thread}}) == {"n": 2}
            cache.close()
    assert RAN == [1]


PROGRAM = """
import sys
from typing import TypedDict
from pregel import START, StateGraph
from pregel.cache.sqlite import SqliteCache
from pregel.types import CachePolicy

class State(TypedDict):
    n: int

def work(state: State) -> dict:
    print("works")
    return {{"n": state["n"] + {by}}}

cache = SqliteCache(sys.argv[1])
builder = StateGraph(State).add_node("work", work, cache_policy=CachePolicy()).add_edge(START, "work")
print(builder.compile(cache=cache).invoke({{"n": 1}}))
cache.close()
"""


def test_another_process_uses_a_result_until_the_code_changes(tmp_path):
    def shown(by):
        command = [sys.executable, "-c", PROGRAM.format(by=by), str(tmp_path / "c.sqlite")]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split("\n")[:-1]

    assert shown(1) == ["works", "{'n': 2}"]
    assert shown(1) == ["{'n': 2}"]
    assert shown(2) == ["works", "{'n': 3}"]
    assert shown(1) == ["{'n': 2}"]
