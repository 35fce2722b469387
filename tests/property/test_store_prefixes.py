"""A namespace prefix is a prefix of a tuple of labels: 100,000 of them, against a model of one line."""

import random

import pytest

from pregel.store.base import PutOp
from pregel.store.memory import InMemoryStore
from pregel.store.postgres import PostgresStore
from pregel.store.sqlite import SqliteStore
from pregel.testing.store_conformance import HOSTILE

#: Labels that begin with one another, that hold what separates or matches elsewhere, and the first and last of UTF-8.
LABELS = (
    *HOSTILE,
    "ab",
    "abc",
    "b",
    "aa",
    "\x01",
    "\x7f",
    "\x80",
    "\U0010ffff",
    "a\x01",
    "a\U0010ffff",
    "\uffff\uffff",
)


def namespaces(count, seed):
    """Return different tuples of labels, the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311 - a test that can be run again
    found = {}
    while len(found) < count:
        found[tuple(chance.choices(LABELS, k=chance.randint(1, 6)))] = None
    return list(found)


def prefixes(names, count, seed):
    """Return prefixes: of names, names with another end, and some that nothing begins with."""
    chance = random.Random(seed)  # noqa: S311 - a test that can be run again
    for _ in range(count):
        name = chance.choice(names)
        cut = name[: chance.randint(1, len(name))]
        yield chance.choice(
            [cut, cut, (*cut, chance.choice(LABELS)), (*cut[:-1], cut[-1][:-1] or "x"), (*cut, "never")]
        )


def fits(label, wanted):
    """Return whether a label is the one wanted, or any is."""
    return wanted in ("*", label)


def agree(store, count):
    """Put namespaces, and hold what is found below prefixes against the model."""
    names = namespaces(count, seed=1)
    for start in range(0, count, 10_000):
        store.batch([PutOp(name, "k", {}) for name in names[start : start + 10_000]])
    sizes = []
    for index, prefix in enumerate(prefixes(names, 60, seed=2)):
        wanted = [name for name in names if name[: len(prefix)] == prefix]
        listed = [name for name in names if len(name) >= len(prefix) and all(map(fits, name, prefix))]
        assert store.list_namespaces(prefix=prefix, limit=count) == sorted(listed)
        if index % 3 == 0:
            assert [item.namespace for item in store.search(prefix, limit=count)] == wanted[::-1]
            assert [item.namespace for item in store.search(prefix, limit=3, offset=2)] == wanted[::-1][2:5]
        sizes.append(len(wanted))
    assert min(sizes) == 0
    assert max(sizes) > count / len(LABELS) / 2
    assert len(store.list_namespaces(limit=2 * count)) == count
    assert store.list_namespaces(max_depth=1) == sorted((label,) for label in LABELS)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_prefixes_of_100_000_namespaces(kind, tmp_path):
    with InMemoryStore() if kind == "memory" else SqliteStore(tmp_path / "store.db", synchronous="NORMAL") as store:
        agree(store, 100_000)


def test_prefixes_of_20_000_namespaces_on_a_server(postgres):
    with PostgresStore(postgres) as store:
        agree(store, 20_000)
