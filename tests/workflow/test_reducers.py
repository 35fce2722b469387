"""Keys with reducers: many updates of one node, deletes and overwrites, in the order in which they are made."""

import operator
from typing import Annotated, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pregel.channels.base import Overwrite
from pregel.channels.ephemeral import EphemeralValue
from pregel.channels.keyed import KeyedValue
from pregel.channels.last_value import AnyValue, LastValue, UntrackedValue
from pregel.channels.topic import Topic
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import InvalidConcurrentUpdateError
from pregel.graph.messages import add_messages
from pregel.graph.workflow import (
    Event,
    EventActions,
    JoinNode,
    Runner,
    Scope,
    Sessions,
    StateSchemaError,
    Workflow,
    node,
)
from pregel.graph.workflow.folding import fold_events
from pregel.store.memory import InMemoryStore


class State(TypedDict, total=False):
    log: Annotated[list[int], operator.add]
    messages: Annotated[list, add_messages]
    items: Annotated[list[int], Topic(int, accumulate=True)]
    pairs: Annotated[dict[str, int], KeyedValue()]
    shared: Annotated[list[int], operator.add, Scope("user")]


@pytest.fixture(params=["memory", "sqlite"])
def sessions(request):
    if request.param == "memory":
        yield Sessions()
    else:
        with SqliteSaver(":memory:") as saver:
            yield Sessions(saver, InMemoryStore())


def stored(sessions, *chain, node_input="go"):
    """The state that is stored after a run, which is what its events fold to."""
    list(Runner(Workflow("w", [("START", *chain)], State), sessions=sessions).run(node_input, session_id="s"))
    session = sessions.get("app", "user", "s")
    assert fold_events(session.events, State) == session.state
    return session.state


def one(ctx):
    ctx.state["log"] = [1]
    ctx.state["shared"] = [1]


@pytest.mark.parametrize("key", ["log", "shared"])
def test_a_log_that_starts_anew_is_stored_anew(sessions, key):
    def anew(ctx):
        del ctx.state[key]
        ctx.state[key] = [8]

    whole = "user:shared" if key == "shared" else key
    assert stored(sessions, one, anew)[whole] == [8]
    assert stored(sessions, one, anew)[whole] == [8]


def test_what_is_written_after_an_overwrite_counts(sessions):
    seen = []

    def overwrite(ctx):
        ctx.state["log"] = [2]
        ctx.state["log"] = Overwrite([3])
        ctx.state["log"] = Overwrite([4])
        ctx.state["log"] = [5]
        seen.append(ctx.state["log"])

    assert stored(sessions, one, overwrite)["log"] == [4, 5] == seen[0]


def test_siblings_of_an_overwrite_count_in_their_order(sessions):
    def overwrite(ctx):
        ctx.state["log"] = Overwrite([2])

    def after(ctx):
        ctx.state["log"] = [3]

    assert stored(sessions, (one, overwrite, after), JoinNode("join"))["log"] == [2, 3]


def test_two_nodes_overwrite_with_one_value_or_it_is_an_error(sessions):
    def overwrites(name, value):
        return node(lambda ctx: ctx.state.update(log=Overwrite(value)), name=name)

    assert stored(sessions, (overwrites("a", [2]), overwrites("b", [2])), JoinNode("join"))["log"] == [2]
    with pytest.raises(InvalidConcurrentUpdateError, match=r"'a'.*'b'"):
        stored(Sessions(), (overwrites("a", [2]), overwrites("b", [3])), JoinNode("join"))


def test_items_overwrite_and_delete_in_their_order(sessions):
    def work(ctx, node_input):
        if node_input:
            ctx.state["log"] = Overwrite([node_input])
        else:
            del ctx.state["log"]
        ctx.state["log"] = [9]

    assert stored(sessions, node(work, parallel_worker=True), node_input=[1, 2])["log"] == [2, 9]
    assert stored(sessions, node(work, parallel_worker=True), node_input=[1, 0])["log"] == [9]


def test_an_event_can_replace_and_delete(sessions):
    def tell():
        yield Event(actions=EventActions(state_delta={"log": [7]}, replaced=["log"]))
        yield Event(actions=EventActions(deleted=["log"]))
        yield Event(state={"log": [8]})

    assert stored(sessions, one, tell)["log"] == [8]


@pytest.mark.parametrize("key", ["shared", "user:shared"])
@pytest.mark.parametrize("replaced", ["shared", "user:shared"])
def test_an_event_replaces_a_key_by_either_of_its_names(sessions, key, replaced):
    def tell():
        yield Event(actions=EventActions(state_delta={key: [7]}, replaced=[replaced]))

    assert stored(sessions, one, tell)["user:shared"] == [7]


def test_messages_that_one_node_writes_one_by_one_are_all_there(sessions):
    def say(ctx):
        ctx.state["messages"] = ("user", "hi")
        ctx.state["messages"] = [("ai", "hello")]
        yield Event(state={"messages": ("user", "bye")})

    assert [each.content for each in stored(sessions, say)["messages"]] == ["hi", "hello", "bye"]


def test_messages_can_be_deleted(sessions):
    def say(ctx):
        ctx.state["messages"] = ("user", "hi")

    def forget(ctx):
        del ctx.state["messages"]
        ctx.state["messages"] = ("user", "again")

    assert [each.content for each in stored(sessions, say, forget)["messages"]] == ["again"]


@pytest.mark.parametrize(
    ("key", "updates", "expected"), [("items", [1, 2], [2]), ("pairs", [{"a": 1}, {"b": 2}], {"b": 2})]
)
def test_a_key_with_a_channel_of_its_own_starts_anew_when_it_is_deleted(sessions, key, updates, expected):
    def write(ctx):
        ctx.state[key] = updates[0]

    def anew(ctx):
        del ctx.state[key]
        ctx.state[key] = updates[1]

    assert stored(sessions, write, anew)[key] == expected


@pytest.mark.parametrize("channel", [EphemeralValue(), UntrackedValue(), AnyValue()])
def test_a_key_that_can_not_start_anew_can_not_be_deleted(door, channel):
    class Fleeting(TypedDict, total=False):
        now: Annotated[int, channel]

    def write(ctx):
        ctx.state["now"] = 1
        del ctx.state["now"]

    with pytest.raises(StateSchemaError, match="the key 'now' can't be deleted"):
        door.invoke(Workflow("w", [("START", write)], Fleeting).compile(), {})


def test_all_keys_can_be_deleted(sessions):
    def write(ctx):
        ctx.state.update(log=[1], items=1, pairs={"a": 1}, shared=[1])

    def clear(ctx):
        ctx.state.clear()
        assert not ctx.state

    starts = {"log": [], "messages": [], "items": [], "pairs": {}, "user:shared": []}
    assert stored(sessions, write, clear) == starts


def test_a_key_that_is_said_to_be_plain_can_be_deleted(door):
    class Plain(TypedDict, total=False):
        key: Annotated[int, LastValue()]

    def write(ctx):
        ctx.state["key"] = 1

    def delete(ctx):
        del ctx.state["key"]

    assert door.invoke(Workflow("w", [("START", write, delete)], Plain).compile(), {}) == {}


def test_a_session_shows_what_shared_keys_start_with(sessions):
    def nothing():
        return None

    assert stored(sessions, nothing)["user:shared"] == []


VALUES = {"log": st.lists(st.integers(0, 9), max_size=2), "shared": st.just([1]), "plain": st.integers(0, 9)}
CHANGES = st.one_of(
    *(
        st.tuples(st.sampled_from(["set", "delete", "overwrite", "event", "replace"]), st.just(key), values)
        for key, values in VALUES.items()
    )
)


class Mixed(TypedDict, total=False):
    log: Annotated[list[int], operator.add]
    shared: Annotated[list[int], operator.add, Scope("app")]
    plain: int


@given(st.lists(st.lists(CHANGES, max_size=4), min_size=1, max_size=3))
def test_whatever_is_written_events_and_checkpoints_and_what_nodes_see_agree(steps):
    seen = []

    def changing(number, changes):
        def change(ctx):
            for way, key, value in changes:
                if way == "set":
                    ctx.state[key] = value
                elif way == "delete":
                    ctx.state.pop(key, None)
                elif way == "overwrite":
                    ctx.state[key] = Overwrite(value)
                else:
                    replaced = [key] if way == "replace" else []
                    yield Event(actions=EventActions(state_delta={key: value}, replaced=replaced))
            seen.append(ctx.state.to_dict())

        return node(change, name=f"n{number}")

    chain = [changing(number, changes) for number, changes in enumerate(steps)]
    sessions = Sessions()
    list(Runner(Workflow("w", [("START", *chain)], Mixed), sessions=sessions).run("go", session_id="s"))
    session = sessions.get("app", "user", "s")
    starts = {"log": [], "app:shared": []}  # of what is deleted, for those who come later
    assert session.state == {**starts, **seen[-1]} == fold_events(session.events, Mixed)
