"""Scopes: prefixes, keys that live for one run, and keys that sessions share through the store."""

import operator
from typing import Annotated, TypedDict

import pytest

from pregel.channels.keyed import DELETE
from pregel.graph.workflow.errors import NotPersistedError, ScopeConflictError, StateSchemaError
from pregel.graph.workflow.event import NO_OUTPUT, USER, StoredEvent
from pregel.graph.workflow.schema import channel_of, checker, keys_of
from pregel.graph.workflow.scopes import (
    TEMP,
    TEMP_NAMES,
    Scope,
    ScopedState,
    scope_of,
    temp_updates,
    with_temp,
)
from pregel.graph.workflow.shared import Log, SessionName, Shared
from pregel.store.memory import InMemoryStore
from pregel.store.sqlite import SqliteStore


class Counted(TypedDict, total=False):
    visits: Annotated[int, operator.add, Scope("user")]
    name: Annotated[str, Scope("user")]
    n: int


@pytest.fixture(params=[InMemoryStore, lambda: SqliteStore(":memory:")], ids=["memory", "sqlite"])
def store(request):
    with request.param() as made:
        yield made


def event(path="w@1/f@1", deleted=(), replaced=(), **delta):
    keys = {key.replace("_", ":", 1): value for key, value in delta.items()}
    return StoredEvent(USER if not path else "w", path, 1, 1, NO_OUTPUT, keys, deleted, replaced)


def log(*events, branch=0, inherited=0):
    return Log(list(events), branch, lambda: inherited)


def shared(store, session="s1", user="ada"):
    return Shared(store, SessionName("shop", user, session))


def versions(shared):
    return {key: held.version for key, held in shared.read().items()}


def values(shared):
    return {key: held.value for key, held in shared.read().items()}


def plain(key):
    return None


def counted(key):
    return channel_of(Counted, key)


# -- prefixes ----------------------------------------------------------------------------------------------------------


def test_a_prefix_says_the_scope():
    keys = ["k", "user:k", "app:k", "temp:k", "user:a:b"]
    assert [scope_of(key) for key in keys] == ["session", "user", "app", "temp", "user"]


@pytest.mark.parametrize(("key", "near"), [("usr:k", "user"), ("apps:k", "app"), ("tmp:k", "temp")])
def test_an_unknown_prefix_is_an_error_with_the_nearest(key, near):
    with pytest.raises(StateSchemaError, match=f"no scope. Did you mean '{near}'"):
        scope_of(key)


def test_a_declared_scoped_key_answers_to_both_its_names():
    state = ScopedState({"user:visits": 3, "n": 1}, checker(Counted, "node 'f'"), keys_of(Counted))
    assert state["visits"] == state["user:visits"] == state.get("visits") == 3
    assert "visits" in state
    assert "other" not in state
    state["name"] = "Ada"
    state.update(visits="4", n=2)
    assert state.delta() == {"user:name": "Ada", "user:visits": 4, "n": 2}
    del state["visits"]
    assert state.delta()["user:visits"] is DELETE
    assert sorted(state) == ["n", "user:name"]


# -- temp: -------------------------------------------------------------------------------------------------------------


def test_temp_keys_are_split_off():
    stored, more = temp_updates({"k": 1, "temp:a": 2, "temp:b": DELETE})
    assert stored == {"k": 1}
    assert more == {TEMP: {"temp:a": 2, "temp:b": DELETE}, TEMP_NAMES: {"temp:a": None, "temp:b": DELETE}}
    assert temp_updates({"k": 1}) == ({"k": 1}, {})


def test_temp_keys_are_seen_beside_the_state():
    state = ScopedState(with_temp({"k": 1}, {TEMP: {"temp:a": 2}, TEMP_NAMES: {"temp:a": None}}))
    assert (state["k"], state["temp:a"], len(state), list(state)) == (1, 2, 2, ["k", "temp:a"])
    assert state.get("temp:other") is None
    assert "temp:other" not in state
    assert dict(with_temp({"k": 1}, {TEMP: {"temp:a": 2}, TEMP_NAMES: {"temp:a": None}})) == {"k": 1, "temp:a": 2}
    del state["temp:a"]
    assert list(state) == ["k"]
    assert with_temp({"k": 1}, {TEMP: {}, TEMP_NAMES: {}}) == {"k": 1}


@pytest.mark.parametrize("read", [lambda s: s["temp:a"], lambda s: s.get("temp:a"), lambda s: s.get("temp:a", 5)])
def test_a_temp_key_of_an_earlier_run_is_an_error_to_read(read):
    state = ScopedState(with_temp({}, {TEMP_NAMES: {"temp:a": None}}))
    with pytest.raises(NotPersistedError, match="'temp:a' was set before the run was resumed, and is not persisted"):
        read(state)
    state["temp:a"] = "again"
    assert read(state) == "again"


def test_a_temp_key_of_an_earlier_run_is_not_there_for_who_does_not_read_it():
    view = with_temp({"k": 1}, {TEMP: {"temp:b": 2}, TEMP_NAMES: {"temp:a": None, "temp:b": None}})
    assert dict(view) == {"k": 1, "temp:b": 2}
    assert len(view) == 2
    assert "temp:a" not in ScopedState(view)


# -- publishing --------------------------------------------------------------------------------------------------------


def test_what_one_session_publishes_another_reads(store):
    shared(store).publish(log(event(user_name="Ada", app_limit=3, own=1)), {}, plain)
    assert values(shared(store, "s2")) == {"user:name": "Ada", "app:limit": 3}
    assert values(shared(store, "s3", user="bob")) == {"app:limit": 3}


def test_events_are_published_once(store):
    mine = shared(store)
    events = [event(user_visits=1), event(user_visits=2)]
    mine.publish(log(*events), {}, counted)
    mine.publish(log(*events), {}, counted)
    assert values(mine) == {"user:visits": 3}
    assert not mine.pending(log(*events))
    events.append(event(user_visits=4))
    assert mine.pending(log(*events))
    mine.publish(log(*events), {}, counted)
    assert values(mine) == {"user:visits": 7}


def test_events_without_shared_keys_cost_no_item(store):
    shared(store).publish(log(event(n=1)), {}, plain)
    assert store.search(()) == []


def test_what_the_user_s_event_says_was_read_and_is_not_published(store):
    shared(store).publish(log(event(path="", user_name="Ada")), {}, plain)
    assert values(shared(store)) == {}


def test_updates_of_a_reducer_s_key_are_folded_into_the_newest_value(store):
    one, two = shared(store, "s1"), shared(store, "s2")
    base = versions(one)
    one.publish(log(event(user_visits=1)), base, counted)
    two.publish(log(event(user_visits=10)), base, counted)
    assert values(one) == {"user:visits": 11}
    two.publish(log(event(user_visits=10), event(user_visits=5, replaced=("user:visits",))), base, counted)
    assert values(one) == {"user:visits": 5}


def test_a_plain_key_that_another_session_changed_since_is_a_conflict_with_both_values(store):
    one, two = shared(store, "s1"), shared(store, "s2")
    base = versions(one)
    one.publish(log(event(user_name="Ada")), base, plain)
    late = log(event(user_name="Bob", app_limit=3))
    with pytest.raises(ScopeConflictError, match=r"'s2'.*'user:name', to which it wrote 'Bob' .*holds 'Ada'"):
        two.publish(late, base, plain)
    assert values(two) == {"user:name": "Ada"}  # nothing of it, the other key included
    assert two.position().value["refused"] == ["user:name", "app:limit"]
    two.publish(late, base, plain)  # told once
    assert values(two) == {"user:name": "Ada"}


def test_a_key_that_was_created_or_deleted_since_is_a_conflict(store):
    one, two = shared(store, "s1"), shared(store, "s2")
    one.publish(log(event(user_name="Ada")), {}, plain)
    base = versions(two)
    one.publish(log(event(user_name="Ada"), event(deleted=("user:name",))), base, plain)
    assert values(two) == {}
    with pytest.raises(ScopeConflictError, match=r"'user:name', to which it wrote 'Bob' .*is gone now"):
        two.publish(log(event(user_name="Bob")), base, plain)
    three = shared(store, "s3")
    one.publish(log(event(), event(), event(user_name="Eve")), {}, plain)
    with pytest.raises(ScopeConflictError, match="'user:name', which it deleted, holds 'Eve'"):
        three.publish(log(event(deleted=("user:name",))), {}, plain)


def test_deletes_are_real(store):
    mine = shared(store)
    mine.publish(log(event(user_name="Ada", user_visits=1)), {}, counted)
    base = versions(mine)
    gone = event(deleted=("user:name", "user:visits"))
    mine.publish(log(event(), gone), base, counted)
    assert values(mine) == {"user:visits": 0}  # a reducer begins anew


class Overtaken(InMemoryStore):
    """Lets another writer in before the next puts."""

    def __init__(self, before):
        super().__init__()
        self.before = [before]

    def batch(self, ops):
        ops = list(ops)
        if self.before and any(hasattr(op, "expected") for op in ops):
            self.before.pop()(self)
        return super().batch(ops)


def test_a_fold_that_is_overtaken_is_done_again():
    def other(store):
        shared(store, "s2").publish(log(event(user_visits=10)), {}, counted)

    store = Overtaken(other)
    shared(store, "s1").publish(log(event(user_visits=1)), {}, counted)
    assert values(shared(store)) == {"user:visits": 11}


def test_of_two_that_publish_the_same_events_one_does():
    events = [event(user_visits=1)]
    store = Overtaken(lambda store: shared(store).publish(log(*events), {}, counted))
    shared(store).publish(log(*events), {}, counted)
    assert values(shared(store)) == {"user:visits": 1}


def test_after_a_rewind_what_was_inherited_is_not_published_again(store):
    mine = shared(store)
    events = [event(user_visits=1), event(user_visits=2), event(user_visits=4)]
    mine.publish(log(*events), {}, counted)
    mine.publish(log(*events[:1], event(user_visits=100), branch=1, inherited=1), {}, counted)
    assert values(mine) == {"user:visits": 107}
    mine.rewind(2, 1)
    mine.publish(log(*events[:1], event(user_visits=1000), branch=2, inherited=99), {}, counted)
    assert values(mine) == {"user:visits": 1107}


def test_a_forgotten_session_leaves_what_it_published(store):
    mine = shared(store)
    mine.publish(log(event(user_name="Ada")), {}, plain)
    mine.forget()
    assert mine.position() is None
    assert values(mine) == {"user:name": "Ada"}


def test_users_and_apps_do_not_mix(store):
    for app, user in (("shop", "ada"), ("shop", "app"), ("other", "ada")):
        name = SessionName(app, user, "s")
        Shared(store, name).publish(log(event(user_k=f"{app}/{user}")), {}, plain)
    for user in ("ada", "app"):
        assert values(Shared(store, SessionName("shop", user, "s"))) == {"user:k": f"shop/{user}"}
