"""What the reducer of messages remembers between calls saves time and changes no result."""

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from threading import Barrier

import langchain_core.messages as lc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pregel.errors import InvalidUpdateError
from pregel.graph import knownids, messages
from pregel.graph.messages import REMOVE_ALL_MESSAGES, AIMessage, HumanMessage, RemoveMessage, add_messages


@pytest.fixture(autouse=True)
def memory(monkeypatch):
    """A memory of its own for each test."""
    monkeypatch.setattr(messages, "MEMORY", knownids.Memory())


@pytest.fixture
def eager(monkeypatch):
    """Even the shortest lists are remembered, and few of them."""
    monkeypatch.setattr(knownids, "LONG", 1)
    monkeypatch.setattr(knownids, "CONVERSATIONS", 2)


@pytest.fixture
def looks(monkeypatch):
    """How many ids were read."""
    numbers = count()

    def read(message):
        next(numbers)
        return message.id

    monkeypatch.setattr(knownids, "ID", read)
    return numbers


def plain(left, update):
    """What `add_messages` means, written down in the plainest way."""
    result = list(left)
    for message in update:
        places = [place for place, other in enumerate(result) if message.id and other.id == message.id]
        if message.id == REMOVE_ALL_MESSAGES and message.type == "remove":
            result = []
        elif message.type == "remove":
            if not places:
                raise InvalidUpdateError("unknown id")
            del result[places[-1]]
        elif places:
            result[places[-1]] = message
        else:
            result.append(message)
    return result


def outcome(function, *operands):
    try:
        return function(*operands)
    except InvalidUpdateError:
        return InvalidUpdateError


def same(one, other):
    return one is other or (len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True)))


def long(length, prefix="m"):
    """A list of messages that the reducer has made."""
    made = []
    for number in range(length):
        made = add_messages(made, [HumanMessage("x", id=f"{prefix}{number}")])
    return made


# --- the results are the plain ones ----------------------------------------------------------------------------------

names = st.integers(0, 19).map(str)
own = st.builds(HumanMessage, st.just("a"), id=names | st.none() | st.just("")) | st.builds(AIMessage, id=names)
theirs = st.builds(lc.HumanMessage, st.just("a"), id=names)
removals = st.builds(RemoveMessage, id=names | st.just(REMOVE_ALL_MESSAGES))
additions = st.lists(own, min_size=1, max_size=3)
updates = st.one_of(additions, additions, additions, additions, st.lists(own | theirs | removals, max_size=3))


@dataclass(frozen=True)
class Step:
    """Add an update to a list made earlier, `back` lists ago, perhaps after changing that one in place."""

    update: list
    back: int = 0
    change: tuple | None = None
    #: Whether the update is a message with the id of the one that was put into the list.
    echo: bool = False
    #: Whether the same is asked for twice, as a path does, and then the barrier.
    again: bool = False


def changed(made, change):
    """Change a list in place, as a node must not."""
    kind, place, message = change
    match kind:
        case "replace" if made:
            made[place % len(made)] = message
        case "insert":
            made.insert(place % (len(made) + 1), message)
        case "delete" if made:
            del made[place % len(made)]
        case "reverse":
            made.reverse()


changes = st.tuples(
    st.sampled_from(["replace", "insert", "delete", "reverse"]), st.integers(0, 9), st.one_of(own, own, theirs)
)
steps = st.builds(Step, updates, st.integers(0, 3) | st.just(0), changes | st.none(), st.booleans(), st.booleans())


def follow(some):
    """Take steps, and check each result."""
    made = [[]]
    for step in some:
        left, update = made[-1 - step.back % len(made)], step.update
        if step.change is not None:
            changed(left, step.change)
            if step.echo:
                update = [AIMessage("echo", id=step.change[2].id)]
        distinct = [message.id for message in left if message.id]
        if len({*distinct}) != len(distinct):  # an id twice: what such a list means is `add_messages`' own affair
            expected = outcome(messages.joined, left, [update])
        else:
            expected = outcome(plain, left, update)
        for _ in range(1 + step.again):
            before = list(left)
            result = outcome(add_messages, left, update)
            assert same(left, before)
            assert same(result, expected)
        if result is not InvalidUpdateError:
            assert result is not left
            made.append(result)


@pytest.mark.usefixtures("eager")
def test_whatever_was_asked_before_the_result_is_the_plain_one():
    @settings(deadline=None, max_examples=300)
    @given(st.lists(steps, min_size=3, max_size=25))
    def check(some):
        follow(some)

    check()


@pytest.mark.usefixtures("eager")
def test_several_threads_on_the_same_lists_get_the_plain_results():
    start = long(30)
    together = Barrier(4)

    def work(seed):
        draw = random.Random(seed)  # noqa: S311 - a reproducible choice
        made = [start]
        together.wait()
        for number in range(400):
            left = draw.choice(made[-3:])
            fresh = HumanMessage("y", id=draw.choice([f"{seed}-{number}", "m7", "m29", f"{1 - seed}-{number}"]))
            result = add_messages(left, [fresh])
            assert same(result, plain(left, [fresh]))
            made.append(result)
        return len(made)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [401] * 4


def test_a_message_that_was_replaced_in_place_is_noticed():
    made = long(100)
    made[50] = HumanMessage("other", id="new")
    found = add_messages(made, [HumanMessage("x", id="new")])
    assert len(found) == 100
    assert found[50] == HumanMessage("x", id="new")
    assert len(add_messages(made, [HumanMessage("x", id="m50")])) == 101


def test_the_id_of_a_langchain_message_that_was_changed_in_place_is_noticed():
    made = []
    for number in range(100):
        made = add_messages(made, [lc.HumanMessage("x", id=f"m{number}")])
    made[50].id = "new"
    assert len(add_messages(made, [lc.HumanMessage("y", id="new")])) == 100
    assert len(add_messages(made, [lc.HumanMessage("y", id="m50")])) == 101


def test_so_it_is_after_a_path_has_looked_ahead():
    made = long(100)
    assert len(add_messages(made, [HumanMessage("x", id="one"), HumanMessage("x", id="two")])) == 102
    made = add_messages(made, [lc.HumanMessage("x", id="foreign")])
    made[100].id = "new"
    assert len(add_messages(made, [HumanMessage("y", id="new")])) == 101


def test_messages_that_cant_be_compared_are_told_apart():
    class Awkward:
        def __eq__(self, other):
            raise RuntimeError("can't be compared")

        __hash__ = None

    made = long(70)
    made = add_messages(made, [messages.ToolMessage("x", tool_call_id="c", id="t", artifact=Awkward())])
    made = add_messages(made, [HumanMessage("x", id="last")])
    made[70] = messages.ToolMessage("x", tool_call_id="c", id="t", artifact=Awkward())
    assert len(add_messages(made, [HumanMessage("x", id="next")])) == 73


# --- and little is read ----------------------------------------------------------------------------------------------


def test_one_more_message_on_a_long_list_reads_the_ids_of_few(looks):
    made = long(1000)
    before = next(looks)
    for number in range(1000):
        made = add_messages(made, [HumanMessage("x", id=f"n{number}")])
    assert next(looks) - before < 3000


def test_a_path_that_looks_ahead_and_the_barrier_after_it_read_few(looks):
    made = long(1000)
    before = next(looks)
    for number in range(100):
        mine, other = HumanMessage("x", id=f"a{number}"), HumanMessage("x", id=f"b{number}")
        assert len(add_messages.fold(made, [[mine]])) == len(made) + 1
        made = add_messages.fold(made, [[mine], [other]])
    assert len(made) == 1200
    assert next(looks) - before < 1000


def test_branches_of_one_conversation_take_turns(looks):
    left = right = long(1000)
    before = next(looks)
    for number in range(50):
        left = add_messages(left, [HumanMessage("x", id=f"left{number}")])
        right = add_messages(right, [HumanMessage("x", id=f"right{number}")])
    assert len(left) == len(right) == 1050
    assert left[:1000] == right[:1000]
    assert next(looks) - before < 2000  # the first turn reads one of the two again


def test_some_conversations_at_a_time_are_remembered_and_no_more(looks):
    talks = [long(100, f"talk{number}-") for number in range(knownids.CONVERSATIONS)]
    before = next(looks)
    talks = [add_messages(talk, [HumanMessage("x", id="more")]) for talk in talks]
    assert next(looks) - before < 100
    for number in range(50):
        long(knownids.LONG + 1, f"another{number}-")
    assert len(messages.MEMORY.conversations) == knownids.CONVERSATIONS


def test_short_and_changeable_lists_are_not_kept_alive():
    long(knownids.LONG - 1)
    made = long(knownids.LONG - 2, "other")
    add_messages([*made, lc.HumanMessage("x", id="foreign"), HumanMessage("x", id="own")], [AIMessage("x", id="new")])
    assert not messages.MEMORY.conversations
