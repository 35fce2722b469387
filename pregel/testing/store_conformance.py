"""What every store has to do, as checks that anybody's own store can be held against.

Each check takes a store that is new and empty, and raises `ConformanceError` where it does something else.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread
from typing import TYPE_CHECKING, Any, Final
from unicodedata import normalize

from pregel.errors import (
    ConcurrentPutError,
    EncodeError,
    InvalidIdError,
    InvalidOpError,
    SemanticSearchError,
)
from pregel.store.base import (
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from pregel.testing.conformance.kit import ConformanceError, collect, expect
from pregel.text import shortened

if TYPE_CHECKING:
    from collections.abc import Callable

    from pregel.store.base import BaseStore

__all__ = ["CHECKS", "check_store"]

#: Names that a store which splices or splits them takes for something else.
HOSTILE: Final = (
    "a.b", "a%", "a_", "%", "_", "*", ":", "'", '"', "\\", "/", "?", "%s", "%(a)s", "a b", " ", "\n", "A", "a", "é",
    normalize("NFD", "é"), "\U0001f600", "\uffff", "'; DROP TABLE pregel_items; --", "null", "0",
)  # fmt: skip


def check_store(make: Callable[[], BaseStore]) -> None:
    """Run every check of `CHECKS` against stores of one kind.

    Args:
        make: Gives a new and empty store; each is closed after its check.

    Raises:
        ExceptionGroup: Of what the checks that failed raised, each with the name of its check as a note.
    """

    def run(check: Callable[[BaseStore], None]) -> None:
        with make() as store:
            check(store)

    collect(CHECKS, run)


def expect_error(
    error: type[BaseException], what: str, call: Callable[..., object], *given: Any, **options: Any
) -> None:
    """Check that a call is refused in the right way."""
    try:
        result = call(*given, **options)
    except error:
        return
    except Exception as other:
        raise ConformanceError(f"{what} raises {other!r}, and has to raise {error.__name__}") from other
    raise ConformanceError(f"{what} returns {shortened(result)}, and has to raise {error.__name__}")


def values(store: BaseStore, *names: str) -> dict[tuple[tuple[str, ...], str], Any]:
    """Return all that is stored below a namespace."""
    return {(item.namespace, item.key): item.value for item in store.search(names, limit=1_000)}


def check_gives_back_what_was_put(store: BaseStore) -> None:
    """A value comes back as it was, with the types of all its parts."""
    value = {
        "": None,
        "a.b": [1, -(2**70), 0.5, "text", True],
        "nested": {"list": [{}, [], ""], 1: "an int key", "bytes": b"\0\xff"},
        "when": datetime(2024, 2, 29, 12, tzinfo=UTC),
        "tuple": (1, (2,)),
    }
    store.put(("a", "b"), "k", value)
    item = store.get(("a", "b"), "k")
    if item is None:
        raise ConformanceError("an item that was put is not there")
    expect((item.namespace, item.key), (("a", "b"), "k"), "where it is")
    expect(item.value, value, "its value")
    expect(type(item.value["tuple"]), tuple, "the type of a tuple")
    store.put(("a", "b"), "zero", {"zero": -0.0})
    expect([math.copysign(1, found["zero"]) for found in [value_of(store, "zero")]], [-1.0], "the sign of -0.0")


def value_of(store: BaseStore, key: str) -> dict[str, Any]:
    """Return the value of an item in ("a", "b")."""
    item = store.get(("a", "b"), key)
    return {} if item is None else item.value


def check_knows_what_is_not_there(store: BaseStore) -> None:
    """Reading or deleting what is not there does nothing."""
    expect(store.get(("a",), "k"), None, "an item that was never put")
    store.delete(("a",), "k")
    store.put(("a",), "k", {})
    expect(store.get(("a",), "K"), None, "an item whose key differs by case")
    expect(store.get(("a", "k"), "k"), None, "an item of a namespace below")
    store.delete(("a",), "k")
    expect(store.get(("a",), "k"), None, "an item that was deleted")
    expect((store.search(()), store.list_namespaces()), ([], []), "an emptied store")


def check_replaces(store: BaseStore) -> None:
    """A put on what is there replaces the whole value, keeps `created_at` and moves the version."""
    store.put(("a",), "k", {"x": 1, "y": 1})
    first = store.get(("a",), "k")
    store.put(("b",), "k", {})
    store.put(("a",), "k", {"x": 2})
    second = store.get(("a",), "k")
    if first is None or second is None:
        raise ConformanceError("an item that was put is not there")
    expect(second.value, {"x": 2}, "the new value")
    expect(second.created_at, first.created_at, "created_at after a second put")
    expect(second.updated_at.utcoffset(), timedelta(0), "the zone of updated_at")
    expect(first.created_at <= second.updated_at, True, "the order of the times")  # noqa: FBT003 - the value
    expect(first.version < second.version, True, "whether the version grew")  # noqa: FBT003 - the value


def check_never_uses_a_version_twice(store: BaseStore) -> None:
    """A version says what was put also after a delete, so that nobody takes a new item for the one it read."""
    store.put(("a",), "k", {})
    first = store.search(())[0].version
    store.delete(("a",), "k")
    store.put(("a",), "k", {})
    expect(store.search(())[0].version > first, True, "whether the version grew")  # noqa: FBT003 - the value
    expect_error(ConcurrentPutError, "a put on the version before", store.put, ("a",), "k", {}, expected=first)


def check_copies_values(store: BaseStore) -> None:
    """What a caller does to a value it gave or was given changes nothing in the store."""
    given: dict[str, Any] = {"list": [1]}
    store.put(("a",), "k", given)
    given["list"].append(2)
    item = store.get(("a",), "k")
    if item is not None:
        item.value["list"].append(3)
    for found in store.search(("a",)):
        found.value["list"].append(4)
    for found in store.search(("a",), filter={"list": [1]}):
        found.value["list"].append(5)
    expect(values(store), {(("a",), "k"): {"list": [1]}}, "what is stored")


def check_takes_names_as_they_are(store: BaseStore) -> None:
    """Labels, keys and fields are texts without any meaning: whatever is in them, each is another one."""
    for label in HOSTILE:
        store.put((label,), label, {label: label})
        store.put(("below", label, "x"), label, {label: label})
    for label in HOSTILE:
        expect(values(store, label), {((label,), label): {label: label}}, f"what is below {label!r}")
        expect(len(store.search(("below", label))), 1, f"the number of items below ('below', {label!r})")
        found = store.search((), filter={label: {"$eq": label}}, limit=100)
        expect({item.key for item in found}, {label}, f"what has the field {label!r}")
    expect(store.list_namespaces(prefix=("below",), max_depth=2), [("below", x) for x in sorted(HOSTILE)], "the list")


def check_searches_by_tuple_prefix(store: BaseStore) -> None:
    """A search goes by whole labels, from the first one on; the namespace itself is included."""
    for namespace in [("a",), ("a", "b"), ("a", "b", "c"), ("ab",), ("a.b",), ("b", "a"), ("a\x01",), ("a", "bc")]:
        store.put(namespace, "k", {})
    expect(
        {item.namespace for item in store.search(("a",))}, {("a",), ("a", "b"), ("a", "b", "c"), ("a", "bc")}, "('a',)"
    )
    expect({item.namespace for item in store.search(("a", "b"))}, {("a", "b"), ("a", "b", "c")}, "('a', 'b')")
    expect(len(store.search(())), 8, "the number of all items")
    expect(store.search(("c",)), [], "what is below a label that is not there")


def check_finds_the_newest_first(store: BaseStore) -> None:
    """A search is ordered by the last put of each item, over all namespaces; its pages are parts of that order."""
    for number in range(25):
        store.put((f"n{number % 4}",), f"k{number}", {"number": number, "even": not number % 2})
    store.put(("n3",), "k3", {"number": 25, "even": False})
    order = [25, *range(24, 3, -1), 2, 1, 0]
    expect([item.value["number"] for item in store.search((), limit=100)], order, "the order")
    expect([item.value["number"] for item in store.search(())], order[:10], "what comes without a limit")
    expect([item.value["number"] for item in store.search((), limit=4, offset=5)], order[5:9], "a page")
    expect(store.search((), limit=0), [], "a page of nothing")
    expect(store.search((), limit=10**30, offset=10**30), [], "a page behind the end")
    even = store.search((), filter={"even": True}, limit=3, offset=2)
    expect([item.value["number"] for item in even], [20, 18, 16], "a page of what matches")


def check_filters(store: BaseStore) -> None:
    """A filter compares values of one kind, and nothing else matches or raises."""
    stored: dict[str, Any] = {
        "int": 3, "float": 3.0, "text": "3", "bool": True, "none": None, "list": [1, {"a": 2}], "dict": {"a": {"b": 1}},
        "when": datetime(2024, 1, 1, tzinfo=UTC), "nan": math.nan,
    }  # fmt: skip
    for name, value in stored.items():
        store.put(("a",), name, {"x": value})
    store.put(("a",), "absent", {"X": 3})
    for condition, names in (
        (3, "int float"),
        ("3", "text"),
        (True, "bool"),
        (None, "none"),
        ([1, {"a": 2}], "list"),
        ({"a": {"b": 1}}, "dict"),
        ({"a": {}}, ""),
        ({"$eq": {"a": {"b": 1}}}, "dict"),
        ({"$ne": 3}, "text bool none list dict when nan absent"),
        ({"$gt": 2}, "int float"),
        ({"$gt": 3}, ""),
        ({"$gte": 3, "$lte": 3}, "int float"),
        ({"$lt": 3.5}, "int float"),
        ({"$lte": "4"}, "text"),
        ({"$lt": datetime(2025, 1, 1, tzinfo=UTC)}, "when"),
        ({"$lt": datetime(2025, 1, 1)}, ""),  # noqa: DTZ001 - a date without zone compares with none that has one
        ({"$gt": None}, ""),
        ({"$gte": {}}, ""),
        ({"$in": ["3", None]}, "text none"),
        ({"$nin": [3, "3", True]}, "none list dict when nan absent"),
        ({"$exists": False}, "absent"),
        ({"$exists": True, "$ne": None}, "int float text bool list dict when nan"),
        ({}, ""),
    ):
        found = {item.key for item in store.search(("a",), filter={"x": condition}, limit=100)}
        expect(found, set(names.split()), f"what matches {condition!r}")
    expect([item.key for item in store.search((), filter={"x": 3, "X": 3})], [], "what matches two fields")
    expect(len(store.search((), filter={}, limit=100)), len(stored) + 1, "what matches an empty filter")


def check_refuses_what_means_nothing(store: BaseStore) -> None:
    """An operation that can't mean anything is an error before anything is done."""
    bad: Any
    for bad in (
        [],
        "x",
        {1: 2},
        {"x": {"$gte ": 1}},
        {"x": {"$eq": 1, "y": 2}},
        {"x": {"$in": 3}},
        {"x": {"$exists": 1}},
    ):
        expect_error(InvalidOpError, f"the filter {bad!r}", store.search, (), filter=bad)
    for bad in (-1, 1.5, True, None, "1"):
        expect_error(InvalidOpError, f"limit={bad!r}", store.search, (), limit=bad)
        expect_error(InvalidOpError, f"offset={bad!r}", store.list_namespaces, offset=bad)
    expect_error(InvalidOpError, "max_depth=0", store.list_namespaces, max_depth=0)
    expect_error(InvalidOpError, "expected=-1", store.put, ("a",), "k", {}, expected=-1)
    unknown: Any = [PutOp(("a",), "k", {}), "get"]
    expect_error(InvalidOpError, "a batch with a text in it", store.batch, unknown)
    wrong: Any = MatchCondition("infix", ("a",))  # type: ignore[arg-type]  # what is refused
    expect_error(InvalidOpError, "a match by infix", store.batch, [ListNamespacesOp((wrong,))])
    for bad in ("ab", 1, [("prefix", ("a",))]):
        expect_error(InvalidOpError, f"match_conditions={bad!r}", store.batch, [ListNamespacesOp(bad)])
    expect_error(SemanticSearchError, "a search by meaning", store.search, (), query="what was it")
    expect(store.search(()), [], "what is stored after it")


def check_refuses_bad_names(store: BaseStore) -> None:
    """A namespace is a tuple of labels, at least one; labels and keys are texts that every database can keep."""
    bad: Any
    for bad in ("", "x" * 513, "nul\0", "\ud800", 1, None, b"k", ("k",)):
        expect_error(InvalidIdError, f"the key {shortened(bad)}", store.put, ("a",), bad, {})
        expect_error(InvalidIdError, f"the label {shortened(bad)}", store.get, ("a", bad), "k")
        expect_error(InvalidIdError, f"the prefix of {shortened(bad)}", store.search, (bad,))
        expect_error(InvalidIdError, f"the suffix of {shortened(bad)}", store.list_namespaces, suffix=(bad,))
    for bad in ((), "ab", {"a"}, None, ("x" * 512,) * 6):
        expect_error(InvalidIdError, f"the namespace {shortened(bad)}", store.put, bad, "k", {})
    expect_error(InvalidIdError, "a prefix that is too long", store.search, ("x" * 512,) * 6)
    longest = ("\U0001f600" * 500, "x" * 500)  # with its key as long as two names may be together
    store.put(longest, "k" * 90, {"x": 1})
    expect(values(store), {(longest, "k" * 90): {"x": 1}}, "what is stored after it")


def check_refuses_what_it_cannot_keep(store: BaseStore) -> None:
    """A value is a mapping with texts as keys, of what can be stored; else nothing of the batch is."""
    bad: Any
    for bad in ([], "x", 1, {1: 2}, {"deep": {"down": [object()]}}, {"f": print}):
        expect_error(EncodeError, f"the value {shortened(bad)}", store.put, ("a",), "k", bad)
        ops = [PutOp(("a",), "before", {}), PutOp(("a",), "k", bad)]
        expect_error(EncodeError, f"a batch with the value {shortened(bad)}", store.batch, ops)
    nothing: Any = None
    expect_error(EncodeError, "a put of None", store.put, ("a",), "k", nothing)
    expect(store.search(()), [], "what is stored after it")


def check_lists_namespaces(store: BaseStore) -> None:
    """The namespaces that hold items are listed once each and sorted; a wildcard stands for one label."""
    kept = [("b", "x"), ("a", "x", "1"), ("a", "y", "1"), ("a", "x", "2"), ("a", "x"), ("c",)]
    for namespace in [*kept, ("gone", "x")]:
        for key in ("k1", "k2"):
            store.put(namespace, key, {})
    store.delete(("gone", "x"), "k1")
    store.delete(("gone", "x"), "k2")
    store.delete(("c",), "k1")
    for options, wanted in (
        ({}, sorted(kept)),
        ({"prefix": ("a",)}, [("a", "x"), ("a", "x", "1"), ("a", "x", "2"), ("a", "y", "1")]),
        ({"prefix": ("*", "x")}, [("a", "x"), ("a", "x", "1"), ("a", "x", "2"), ("b", "x")]),
        ({"prefix": ("a", "*", "1")}, [("a", "x", "1"), ("a", "y", "1")]),
        ({"suffix": ("x",)}, [("a", "x"), ("b", "x")]),
        ({"suffix": ("*", "1")}, [("a", "x", "1"), ("a", "y", "1")]),
        ({"prefix": ("a", "x"), "suffix": ("2",)}, [("a", "x", "2")]),
        ({"prefix": ("a", "x", "1", "*")}, []),
        ({"max_depth": 1}, [("a",), ("b",), ("c",)]),
        ({"max_depth": 2, "suffix": ("1",)}, [("a", "x"), ("a", "y")]),
        ({"limit": 2, "offset": 1}, sorted(kept)[1:3]),
        ({"limit": 0}, []),
    ):
        given: Any = options
        expect(store.list_namespaces(**given), wanted, f"the list by {options}")


def check_batches_in_order(store: BaseStore) -> None:
    """The operations of a batch happen one after the other, and each has its result."""
    results = store.batch(
        [
            GetOp(("a",), "k"),
            PutOp(("a",), "k", {"x": 1}),
            SearchOp(("a",)),
            PutOp(("a",), "k", {"x": 2}),
            PutOp(("b",), "k", {"x": 3}),
            GetOp(("a",), "k"),
            PutOp(("a",), "k", None),
            ListNamespacesOp(),
            PutOp(("a",), "k", {"x": 4}, expected=0),
        ]
    )
    shown = [
        [item.value if hasattr(item, "value") else item for item in result] if isinstance(result, list) else
        getattr(result, "value", None) for result in results
    ]  # fmt: skip
    expect(shown, [None, None, [{"x": 1}], None, None, {"x": 2}, None, [("b",)], None], "the results")
    expect([item.value["x"] for item in store.search(())], [4, 3], "what is stored in the end")
    expect(store.batch([]), [], "the result of no operations")


def check_stores_a_batch_whole_or_not(store: BaseStore) -> None:
    """Where one operation of a batch fails, none of it is stored."""
    store.put(("a",), "kept", {"x": 1})
    store.put(("b",), "kept", {"x": 1})
    before = (store.search((), limit=100), store.list_namespaces())
    ops = [
        PutOp(("new",), "k", {}),
        PutOp(("a",), "kept", {"x": 2}),
        PutOp(("b",), "kept", None),
        PutOp(("a",), "kept", None, expected=99),
        PutOp(("new",), "l", {}),
    ]
    expect_error(ConcurrentPutError, "a batch with a conflict", store.batch, ops)
    expect((store.search((), limit=100), store.list_namespaces()), before, "what is stored after it")
    store.put(("new",), "k", {})
    expect(len(store.search(())), 3, "the number of items after another put")


def check_compares_and_sets(store: BaseStore) -> None:
    """With `expected`, a put or a delete happens only to the version that was read."""
    store.put(("a",), "k", {"x": 1}, expected=0)
    expect_error(ConcurrentPutError, "a second first put", store.put, ("a",), "k", {"x": 2}, expected=0)
    version = store.search(())[0].version
    store.put(("a",), "k", {"x": 2}, expected=version)
    expect_error(ConcurrentPutError, "a late put", store.put, ("a",), "k", {"x": 3}, expected=version)
    expect_error(ConcurrentPutError, "a late delete", store.delete, ("a",), "k", expected=version)
    expect_error(ConcurrentPutError, "a put on what is not there", store.put, ("b",), "k", {}, expected=1)
    expect(values(store), {(("a",), "k"): {"x": 2}}, "what is stored")
    store.delete(("a",), "k", expected=store.search(())[0].version)
    store.delete(("a",), "k", expected=0)
    expect(store.search(()), [], "what is stored after the delete")


def check_serves_many_threads(store: BaseStore) -> None:
    """Of threads that read one version and put on it, exactly one succeeds, and the others are told."""
    barrier = Barrier(4, timeout=60)
    stored: list[int] = []
    failures: list[Exception] = []

    def race() -> None:
        try:
            for _ in range(5):
                barrier.wait()
                item = store.get(("a",), "k")
                total, version = (item.value["total"], item.version) if item else (0, 0)
                barrier.wait()
                try:
                    store.put(("a",), "k", {"total": total + 1}, expected=version)
                except ConcurrentPutError:
                    continue
                stored.append(total + 1)
        except Exception as error:  # noqa: BLE001 - told by the thread that checks
            failures.append(error)
            barrier.abort()

    threads = [Thread(target=race) for _ in range(barrier.parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(failures, [], "what went wrong in threads")
    expect(sorted(stored), [1, 2, 3, 4, 5], "what four threads stored that raced for five versions")
    expect(values(store), {(("a",), "k"): {"total": 5}}, "what is there in the end")


def check_is_the_same_on_an_event_loop(store: BaseStore) -> None:
    """The forms that are awaited do as the others."""
    import anyio  # noqa: PLC0415 - no other check needs a loop

    async def main() -> None:
        await store.aput(("a", "b"), "k", {"x": 1})
        await store.aput(("a", "c"), "k", {"x": 2}, expected=0)
        expect(await store.aget(("a", "b"), "k"), store.get(("a", "b"), "k"), "the item")
        expect(await store.asearch(("a",), filter={"x": {"$gt": 1}}), store.search(("a", "c")), "what is found")
        expect(await store.asearch(("a",), limit=1, offset=1), store.search(("a",))[1:], "a page")
        expect(await store.alist_namespaces(suffix=("c",), max_depth=2), [("a", "c")], "the namespaces")
        await store.adelete(("a", "b"), "k", expected=(store.search(("a", "b"))[0].version))
        expect(await store.abatch([GetOp(("a", "b"), "k"), ListNamespacesOp()]), [None, [("a", "c")]], "a batch")
        try:
            await store.aput(("a", "c"), "k", {}, expected=0)
        except ConcurrentPutError:
            return
        raise ConformanceError("a second first put is stored, and has to raise ConcurrentPutError")

    anyio.run(main)


CHECKS: Final[tuple[Callable[[BaseStore], None], ...]] = (
    check_gives_back_what_was_put,
    check_knows_what_is_not_there,
    check_replaces,
    check_never_uses_a_version_twice,
    check_copies_values,
    check_takes_names_as_they_are,
    check_searches_by_tuple_prefix,
    check_finds_the_newest_first,
    check_filters,
    check_refuses_what_means_nothing,
    check_refuses_bad_names,
    check_refuses_what_it_cannot_keep,
    check_lists_namespaces,
    check_batches_in_order,
    check_stores_a_batch_whole_or_not,
    check_compares_and_sets,
    check_serves_many_threads,
    check_is_the_same_on_an_event_loop,
)
