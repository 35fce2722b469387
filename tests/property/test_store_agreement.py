"""Memory, SQLite and PostgreSQL answer alike, whatever they are asked; a model of a few lines says what is right."""

from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pregel.errors import ConcurrentPutError, PregelError
from pregel.store.base import GetOp, Item, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from pregel.store.filters import OPERATORS, matches
from pregel.store.memory import InMemoryStore
from pregel.store.postgres import PostgresStore
from pregel.store.sqlite import SqliteStore
from pregel.testing.store_conformance import HOSTILE

# Few names, so that operations meet; hostile ones, and some that can't be names at all.
NAMES = st.sampled_from(HOSTILE)
ANY_NAMES = NAMES | st.text(max_size=3) | st.sampled_from(["", "\0", "\ud800", "x" * 512, "\U0001f600" * 512])
NAMESPACES = st.lists(st.sampled_from(HOSTILE[:5]), min_size=1, max_size=3).map(tuple)
ANY_NAMESPACES = NAMESPACES | st.lists(ANY_NAMES, max_size=3).map(tuple)
LEAVES = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(width=16) | NAMES | st.text(max_size=3) | st.just(2**80)
)
PARTS = LEAVES | st.lists(LEAVES, max_size=2) | st.dictionaries(NAMES, LEAVES, max_size=2)
VALUES = st.dictionaries(NAMES | st.text(max_size=3), PARTS, max_size=3)
OPERANDS = {"$in": st.lists(LEAVES, max_size=2), "$nin": st.lists(LEAVES, max_size=2), "$exists": st.booleans()}
CONDITIONS = PARTS | st.fixed_dictionaries({}, optional={name: OPERANDS.get(name, LEAVES) for name in OPERATORS})
FILTERS = st.none() | st.dictionaries(NAMES | st.text(max_size=3), CONDITIONS, max_size=2)
PAGES = st.integers(0, 4) | st.sampled_from([-1, 10**30])
CONDITION = st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), st.lists(NAMES, max_size=2).map(tuple))
OPS = st.one_of(
    st.builds(PutOp, NAMESPACES, NAMES, VALUES, st.none()),
    st.builds(PutOp, NAMESPACES, NAMES, VALUES, st.integers(0, 6)),
    st.builds(PutOp, NAMESPACES, NAMES, st.none(), st.none() | st.integers(0, 6)),
    st.builds(PutOp, ANY_NAMESPACES, ANY_NAMES, VALUES, st.none()),
    st.builds(GetOp, ANY_NAMESPACES, ANY_NAMES),
    st.builds(SearchOp, ANY_NAMESPACES, FILTERS, PAGES, PAGES, st.none()),
    st.builds(SearchOp, st.just(()), FILTERS, st.just(50), st.just(0), st.none()),
    st.builds(
        ListNamespacesOp, st.lists(CONDITION, max_size=2).map(tuple), st.none() | st.integers(0, 3), PAGES, PAGES
    ),
    st.just(ListNamespacesOp()),
)
BATCHES = st.lists(st.lists(OPS, min_size=1, max_size=5), min_size=1, max_size=8)


def shown(result):
    """Return a result without the times, which differ, in a form in which nan equals itself and 1 is not True."""
    if isinstance(result, list):
        return [shown(part) for part in result]
    if isinstance(result, Item):
        assert result.created_at <= result.updated_at
        return result.namespace, result.key, repr(result.value), result.version
    return result


def outcome(store, batch):
    """Return what a batch gives, or the kind of its error."""
    try:
        return shown(store.batch(batch))
    except PregelError as error:
        return type(error)


@contextmanager
def emptied(store, dsn):
    """Yield a store on PostgreSQL as if it were new."""
    import psycopg

    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DELETE FROM pregel_items")
        connection.execute("UPDATE pregel_item_counter SET last = 0")
    yield store


def test_three_stores_agree_on_everything(postgres):
    errors, answers = set(), 0

    with PostgresStore(postgres) as server:

        @given(BATCHES)
        def agree(batches):
            nonlocal answers
            with InMemoryStore() as memory, SqliteStore(":memory:") as file, emptied(server, postgres) as third:
                for batch in batches:
                    wanted = outcome(memory, batch)
                    assert outcome(file, batch) == wanted
                    assert outcome(third, batch) == wanted
                    if isinstance(wanted, type):
                        errors.add(wanted.__name__)
                    else:
                        answers += 1
                for everything in (SearchOp((), None, 1_000), ListNamespacesOp(None, None, 1_000)):
                    wanted = outcome(memory, [everything])
                    assert outcome(file, [everything]) == wanted
                    assert outcome(third, [everything]) == wanted

        agree()
    assert {"ConcurrentPutError", "InvalidIdError", "InvalidOpError"} <= errors
    assert answers > 50


class Model:
    """What a store does, without concurrency, encoding or storage."""

    def __init__(self):
        self.items, self.last = {}, 0

    def batch(self, ops):
        before = dict(self.items), self.last
        try:
            return [self.one(op) for op in ops]
        except ConcurrentPutError:
            self.items, self.last = before
            raise

    def one(self, op):
        if isinstance(op, PutOp):
            self.last += 1
            place = op.namespace, op.key
            if op.expected is not None and op.expected != self.items.get(place, (0,))[0]:
                raise ConcurrentPutError
            self.items.pop(place, None)
            if op.value is not None:
                self.items[place] = self.last, op.value
            return None
        if isinstance(op, GetOp):
            found = self.items.get((op.namespace, op.key))
            return found and (op.namespace, op.key, repr(found[1]), found[0])
        if isinstance(op, SearchOp):
            found = [
                (namespace, key, repr(value), version)
                for (namespace, key), (version, value) in reversed(self.items.items())
                if namespace[: len(op.namespace_prefix)] == op.namespace_prefix and matches(value, op.filter or {})
            ]
            return found[op.offset :][: op.limit]
        return sorted({namespace for namespace, _ in self.items})[op.offset :][: op.limit]


@given(
    st.lists(
        st.lists(
            st.one_of(
                st.builds(PutOp, NAMESPACES, NAMES, VALUES, st.none() | st.integers(0, 9)),
                st.builds(PutOp, NAMESPACES, NAMES, st.none(), st.none()),
                st.builds(GetOp, NAMESPACES, NAMES),
                st.builds(SearchOp, NAMESPACES | st.just(()), FILTERS, st.integers(0, 9), st.integers(0, 3), st.none()),
                st.builds(ListNamespacesOp, st.none(), st.none(), st.integers(0, 9), st.integers(0, 3)),
            ),
            max_size=6,
        ),
        max_size=10,
    )
)
def test_the_memory_store_does_what_the_model_does(batches):
    model, store = Model(), InMemoryStore()
    for batch in batches:
        try:
            wanted = model.batch(batch)
        except ConcurrentPutError:
            wanted = ConcurrentPutError
        assert outcome(store, batch) == wanted


@settings(max_examples=20)
@given(st.lists(st.tuples(NAMESPACES, NAMES, VALUES), max_size=20))
def test_a_batch_of_puts_leaves_what_the_same_puts_one_by_one_leave(puts):
    with SqliteStore(":memory:") as one, SqliteStore(":memory:") as other:
        one.batch([PutOp(*put) for put in puts])
        for put in puts:
            other.put(*put)
        assert outcome(one, [SearchOp((), None, 100)]) == outcome(other, [SearchOp((), None, 100)])


def test_the_model_can_disagree():
    model = Model()
    assert model.batch([PutOp(("a",), "k", {"x": 1}), GetOp(("a",), "k")]) == [None, (("a",), "k", "{'x': 1}", 1)]
    with pytest.raises(ConcurrentPutError):
        model.batch([PutOp(("a",), "k", {}, 9)])
