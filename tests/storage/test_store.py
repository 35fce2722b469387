"""What every store does, on each of the three, and the list of checks that says so."""

import asyncio
import threading
from itertools import count

import anyio
import pytest
from pydantic import TypeAdapter

from pregel.errors import ConcurrentPutError, EncodeError, InvalidOpError, PregelError, SemanticSearchError
from pregel.store import transaction
from pregel.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    SearchItem,
    SearchOp,
)
from pregel.store.memory import InMemoryStore, MemoryRows
from pregel.store.sqlite import SqliteStore
from pregel.store.transaction import RowStore
from pregel.testing import store_conformance
from pregel.testing.conformance import ConformanceError
from pregel.testing.store_conformance import CHECKS, check_store


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request, tmp_path):
    """A new store of each kind, in turn."""
    if request.param == "memory":
        made = InMemoryStore()
    elif request.param == "sqlite":
        made = SqliteStore(tmp_path / "store.db")
    else:
        from pregel.store.postgres import PostgresStore

        made = PostgresStore(request.getfixturevalue("postgres"))
    with made:
        yield made


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_conformance(check, store):
    check(store)


def test_the_list_holds_every_check_of_its_module():
    written = {name for name in vars(store_conformance) if name.startswith("check_") and name != "check_store"}
    assert {check.__name__ for check in CHECKS} == written


def test_a_store_is_closed_after_each_check():
    closed = []

    class Counted(InMemoryStore):
        def close(self):
            closed.append(self)

    check_store(Counted)
    assert len(set(map(id, closed))) == len(CHECKS)


# -- stores that are wrong in one thing, to show that the checks can fail ----------------------------------------------


class Mutant(InMemoryStore):
    """A store with rows that differ in one thing."""

    rows = MemoryRows

    def __init__(self):
        super().__init__()
        self._rows = self.rows()


class JoinsLabels(Mutant):
    class rows(MemoryRows):  # noqa: N801 - stands in for an attribute
        def scan(self, prefix, most):
            for row in super().scan((), most):
                if ".".join(row.namespace).startswith(".".join(prefix)):
                    yield row


class OldestFirst(Mutant):
    class rows(MemoryRows):  # noqa: N801 - stands in for an attribute
        def scan(self, prefix, most):
            yield from reversed(list(super().scan(prefix, most)))


class KeepsHalfABatch(Mutant):
    class rows(MemoryRows):  # noqa: N801 - stands in for an attribute
        def undo(self):
            self.keep()


class ForgetsWhenItWasMade(Mutant):
    class rows(MemoryRows):  # noqa: N801 - stands in for an attribute
        def write(self, rows):
            for row in rows:
                super().delete(row.namespace, row.key)
                super().write([row._replace(created=row.created + row.version)])


class UsesVersionsAgain(Mutant):
    class rows(MemoryRows):  # noqa: N801 - stands in for an attribute
        def reserve(self, count):
            return 1 + max((row.version for row in self.scan((), 10**9)), default=0)


class ListsWhatIsGone(Mutant):
    class rows(MemoryRows):  # noqa: N801 - stands in for an attribute
        def __init__(self):
            super().__init__()
            self.seen = {}

        def write(self, rows):
            super().write(rows)
            self.seen.update({row.namespace: None for row in rows})

        def namespaces(self, prefix):
            return [name for name in self.seen if name[: len(prefix)] == prefix]

        def scan(self, prefix, most):
            for name in list(self._items):
                if name[: len(prefix)] == prefix:
                    yield from sorted(self._items[name].values(), key=lambda row: -row.version)


class KeepsTheObject(InMemoryStore):
    """Keeps the dict it was given."""

    def __init__(self):
        super().__init__()
        self.kept = {}

    def batch(self, ops):
        ops = list(ops)
        results = super().batch(ops)
        self.kept.update({(op.namespace, op.key): op.value for op in ops if isinstance(op, PutOp)})
        for result in results:
            for item in result if isinstance(result, list) else [result]:
                if isinstance(item, Item):
                    object.__setattr__(item, "value", self.kept[item.namespace, item.key])
        return results


class NeverConflicts(InMemoryStore):
    def batch(self, ops):
        return super().batch([op._replace(expected=None) if isinstance(op, PutOp) else op for op in ops])


class TakesAnything(InMemoryStore):
    """Answers nothing where it has to refuse."""

    refused: type[Exception]

    def batch(self, ops):
        ops = list(ops)
        try:
            return super().batch(ops)
        except self.refused:
            return [None] * len(ops)


class TakesBadNames(TakesAnything):
    refused = store_conformance.InvalidIdError


class TakesBadOps(TakesAnything):
    refused = InvalidOpError


class TakesBadValues(TakesAnything):
    refused = EncodeError


class SplitsFieldsAtDots(InMemoryStore):
    def batch(self, ops):
        return super().batch(
            [
                op._replace(filter={field.split(".")[0]: given for field, given in op.filter.items()})
                if isinstance(op, SearchOp) and isinstance(op.filter, dict) and all(map(is_text, op.filter))
                else op
                for op in ops
            ]
        )


def is_text(value):
    return isinstance(value, str)


class CountsBoolsAsNumbers(InMemoryStore):
    def batch(self, ops):
        results = super().batch(list(ops))
        for op, result in zip(ops, results, strict=True):
            if isinstance(op, SearchOp) and op.filter == {"x": 3}:
                result.extend(super().batch([SearchOp(op.namespace_prefix, {"x": True})])[0])
        return results


class PutsLast(InMemoryStore):
    """Answers the reads of a batch before its writes."""

    def batch(self, ops):
        ops = list(ops)
        order = sorted(range(len(ops)), key=lambda index: isinstance(ops[index], PutOp))
        done = dict(zip(order, super().batch([ops[index] for index in order]), strict=True))
        return [done[index] for index in range(len(ops))]


class PagesWithoutOffset(InMemoryStore):
    def batch(self, ops):
        ops = list(ops)
        searches = [op._replace(offset=0) if isinstance(op, SearchOp) and op.offset == 5 else op for op in ops]
        return super().batch(searches)


class LosesWhatIsAwaited(InMemoryStore):
    async def abatch(self, ops):
        return [None for _ in ops]


MUTANTS = [
    (JoinsLabels, {"check_takes_names_as_they_are", "check_searches_by_tuple_prefix"}),
    (OldestFirst, {"check_finds_the_newest_first"}),
    (KeepsHalfABatch, {"check_stores_a_batch_whole_or_not"}),
    (ForgetsWhenItWasMade, {"check_replaces"}),
    (UsesVersionsAgain, {"check_never_uses_a_version_twice"}),
    (ListsWhatIsGone, {"check_lists_namespaces"}),
    (KeepsTheObject, {"check_copies_values"}),
    (NeverConflicts, {"check_compares_and_sets", "check_serves_many_threads"}),
    (TakesBadNames, {"check_refuses_bad_names"}),
    (TakesBadOps, {"check_refuses_what_means_nothing"}),
    (TakesBadValues, {"check_refuses_what_it_cannot_keep"}),
    (SplitsFieldsAtDots, {"check_takes_names_as_they_are"}),
    (CountsBoolsAsNumbers, {"check_filters"}),
    (PutsLast, {"check_batches_in_order"}),
    (PagesWithoutOffset, {"check_finds_the_newest_first"}),
    (LosesWhatIsAwaited, {"check_is_the_same_on_an_event_loop"}),
]


@pytest.mark.parametrize(("mutant", "checks"), MUTANTS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_store_that_is_wrong_in_one_thing_is_found(mutant, checks):
    failed = set()
    for check in CHECKS:
        try:
            check(mutant())
        except ConformanceError:
            failed.add(check.__name__)
    assert checks <= failed


def test_all_failures_are_told_with_the_names_of_their_checks():
    with pytest.raises(ExceptionGroup, match=r"of 18 checks failed") as caught:
        check_store(OldestFirst)
    assert "in the check check_finds_the_newest_first" in [error.__notes__[0] for error in caught.value.exceptions]


# -- messages ----------------------------------------------------------------------------------------------------------


def message(error, call, *given, **options):
    with pytest.raises(error) as caught:
        call(*given, **options)
    return str(caught.value)


def test_errors_say_what_where_and_what_to_do():
    store = InMemoryStore()
    unknown = message(InvalidOpError, store.search, (), filter={"age": {"$gte": 1, "$gtt": 2}})
    assert "'age'" in unknown
    assert "'$gtt'" in unknown
    assert "Did you mean '$gt'?" in unknown
    assert "Did you mean 'prefix'?" in message(
        InvalidOpError, store.batch, [ListNamespacesOp((transaction.MatchCondition("prefx", ()),))]
    )
    store.put(("a",), "k", {"x": 1})
    late = message(ConcurrentPutError, store.put, ("a",), "k", {}, expected=7)
    assert "the item 'k' in namespace ('a',) is in version 1, and was expected in version 7" in late
    assert "was expected not to be there" in message(ConcurrentPutError, store.put, ("a",), "k", {}, expected=0)
    gone = message(ConcurrentPutError, store.delete, ("b",), "k", expected=3)
    assert "'k' in namespace ('b',) is not there, and was expected in version 3" in gone
    assert "leave `query` out" in message(SemanticSearchError, store.search, (), query="x")
    assert "GetOp, PutOp" in message(InvalidOpError, store.batch, [("a", "k")])


def test_the_error_of_a_value_names_the_path_to_it():
    text = message(EncodeError, InMemoryStore().put, ("a",), "k", {"deep": {"down": [1, object()]}})
    assert text.startswith("namespace ('a',), key 'k': value['deep']['down'][1]: ")
    assert "{'value': ...}" in message(EncodeError, InMemoryStore().put, ("a",), "k", [1])
    assert "`delete` deletes" in message(EncodeError, InMemoryStore().put, ("a",), "k", None)


def test_a_search_by_meaning_is_no_method_that_is_there():
    assert issubclass(SemanticSearchError, NotImplementedError)
    assert issubclass(SemanticSearchError, PregelError)


# -- items -------------------------------------------------------------------------------------------------------------


def test_items_are_values(store):
    store.put(("a",), "k", {"x": [1]})
    first, second = store.get(("a",), "k"), store.get(("a",), "k")
    assert first == second
    assert first.value is not second.value
    assert len({first, second}) == 1
    with pytest.raises(AttributeError):
        first.key = "other"
    (found,) = store.search(("a",))
    assert found.score is None
    assert (found.namespace, found.key, found.value, found.version) == (("a",), "k", {"x": [1]}, first.version)


def test_items_and_operations_may_be_fields_of_a_state(store):
    store.put(("a",), "k", {"x": 1})
    for kind, value in (
        (list[SearchItem], store.search(())),
        (Item, store.get(("a",), "k")),
        (list[Op], [GetOp(("a",), "k"), PutOp(("a",), "k", {}), SearchOp(()), ListNamespacesOp()]),
    ):
        assert TypeAdapter(kind).validate_python(value, strict=True) == value


def test_a_list_of_labels_is_a_namespace_too(store):
    store.put(["a", "b"], "k", {})
    assert store.get(("a", "b"), "k").namespace == ("a", "b")


def test_a_base_store_needs_nothing_but_batch():
    class Always(BaseStore):
        def batch(self, ops):
            return [[] for _ in ops]

    with Always() as store:
        assert store.search(("a",)) == []
        assert store.list_namespaces() == []
        assert asyncio.run(store.asearch(("a",))) == []


# -- threads and event loops -------------------------------------------------------------------------------------------


class Watched(InMemoryStore):
    """A store that tells which thread it works in, and waits there if told so."""

    def __init__(self):
        super().__init__()
        self.threads = []
        self.inside, self.go = threading.Event(), threading.Event()

    def transaction(self, *, writes):
        self.threads.append(threading.get_ident())
        self.inside.set()
        assert self.go.wait(30)
        return super().transaction(writes=writes)


def test_memory_runs_on_the_event_loop_itself(loop):
    store = Watched()
    store.go.set()

    async def main():
        await store.aput(("a",), "k", {})

    loop.run(main)
    assert store.threads == [threading.get_ident()]


class BlockingWatched(Watched):
    blocking = True


def test_what_blocks_runs_in_a_thread_and_a_cancelled_call_is_done_whole(loop):
    store = BlockingWatched()

    async def main():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.abatch, [PutOp(("a",), "k", {}), PutOp(("a",), "l", {})])
            await anyio.to_thread.run_sync(store.inside.wait, 30)
            tasks.cancel_scope.cancel()
            store.go.set()

    loop.run(main)
    assert store.threads != [threading.get_ident()]
    assert [item.key for item in store.search(())] == ["l", "k"]


def test_a_call_that_is_cancelled_before_it_begins_stores_nothing(loop):
    store = BlockingWatched()
    store.go.set()

    async def main():
        with anyio.CancelScope() as scope:
            scope.cancel()
            await store.aput(("a",), "k", {})

    loop.run(main)
    assert store.search(()) == []


def test_operations_are_taken_from_an_iterator_once(store):
    assert store.batch(iter([PutOp(("a",), "k", {}), GetOp(("a",), "k")]))[1].key == "k"


# -- all or nothing ----------------------------------------------------------------------------------------------------

OPS = [
    PutOp(("a",), "old", {"x": 2}),
    PutOp(("b",), "new", {}),
    GetOp(("a",), "old"),
    PutOp(("a",), "gone", None),
    PutOp(("c",), "new", {}, expected=0),
    SearchOp(()),
    PutOp(("d",), "new", {}),
]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_whatever_ends_a_batch_half_way_nothing_of_it_is_stored(store, monkeypatch, error):
    assert isinstance(store, RowStore)
    store.batch([PutOp(("a",), "old", {"x": 1}), PutOp(("a",), "gone", {})])
    before = (store.search(()), store.list_namespaces())
    for call in count(1):
        calls = count(1)
        with monkeypatch.context() as patch:
            with store.transaction(writes=False) as rows:
                kind = type(rows)

            def failing(method, calls=calls, call=call):
                def instead(*args):
                    result = method(*args)
                    if next(calls) == call:
                        raise error("half-way")
                    return result

                return instead

            for name in ("reserve", "write", "delete", "version", "read", "scan"):
                patch.setattr(kind, name, failing(getattr(kind, name)))
            try:
                store.batch(OPS)
            except error:
                patch.undo()
                assert (store.search(()), store.list_namespaces()) == before
                continue
        break
    assert call > 8
    assert [item.key for item in store.search(())] == ["new", "new", "new", "old"]
