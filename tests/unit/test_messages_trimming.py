"""Which part of a conversation fits, cut where no tool call is separated from its answers."""

from itertools import pairwise

import langchain_core.messages as lc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pregel.graph.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, trim_messages
from pregel.graph.trimming import cuts


def call(number):
    return {"name": "f", "args": {}, "id": f"c{number}"}


SYSTEM = SystemMessage("be kind")
ASK = HumanMessage("one")
CALLS = AIMessage("two", tool_calls=[call(1), call(2)])
FIRST = ToolMessage("three", tool_call_id="c1")
SECOND = ToolMessage("four", tool_call_id="c2")
ANSWER = AIMessage("five")
AGAIN = HumanMessage("six")
TALK = [SYSTEM, ASK, CALLS, FIRST, SECOND, ANSWER, AGAIN]


def trimmed(most, messages=TALK, **options):
    return trim_messages(messages, max_tokens=most, token_counter=len, **options)


@pytest.mark.parametrize(
    ("most", "kept"),
    [
        (0, []),
        (1, [AGAIN]),
        (2, [ANSWER, AGAIN]),
        (3, [ANSWER, AGAIN]),
        (4, [ANSWER, AGAIN]),
        (5, [CALLS, FIRST, SECOND, ANSWER, AGAIN]),
        (6, TALK[1:]),
        (7, TALK),
        (99, TALK),
    ],
)
def test_the_longest_end_that_fits_is_kept_without_cutting_calls_from_answers(most, kept):
    assert trimmed(most) == kept


@pytest.mark.parametrize(
    ("most", "kept"), [(0, []), (1, TALK[:1]), (2, TALK[:2]), (4, TALK[:2]), (5, TALK[:5]), (6, TALK[:6]), (7, TALK)]
)
def test_so_is_the_longest_beginning(most, kept):
    assert trimmed(most, strategy="first") == kept


@pytest.mark.parametrize(("most", "kept"), [(1, [SYSTEM]), (2, [SYSTEM, AGAIN]), (6, [SYSTEM, *TALK[2:]]), (7, TALK)])
def test_the_system_message_can_be_kept_and_counts(most, kept):
    assert trimmed(most, include_system=True) == kept


def test_only_a_system_message_at_the_beginning_is_kept():
    assert trimmed(1, [ASK, SYSTEM, AGAIN], include_system=True) == [AGAIN]
    assert trimmed(1, [], include_system=True) == []


def test_a_system_message_that_does_not_fit_is_an_error():
    with pytest.raises(ValueError, match="the system message has 1 tokens, and max_tokens=0: shorten it"):
        trimmed(0, include_system=True)


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"start_on": "human"}, [AGAIN]),
        ({"start_on": "ai"}, TALK[2:]),
        ({"start_on": ["human", "system"]}, [AGAIN]),
        ({"start_on": HumanMessage}, [AGAIN]),
        ({"start_on": (HumanMessage, "ai")}, TALK[2:]),
        ({"start_on": "tool"}, []),
        ({"end_on": "ai"}, TALK[1:6]),
        ({"end_on": "tool"}, TALK[:5]),
        ({"end_on": ToolMessage}, TALK[:5]),
        ({"end_on": ["ai", "tool"], "start_on": "human"}, TALK[1:6]),
        ({"end_on": "ai", "start_on": "human", "include_system": True}, [SYSTEM, AGAIN][:1]),
        ({"end_on": "tool", "start_on": "ai", "include_system": True}, TALK[:1] + TALK[2:5]),
        ({"strategy": "first", "end_on": "human"}, TALK[:2]),
        ({"strategy": "first", "end_on": "tool"}, TALK[:5]),
        ({"strategy": "first", "start_on": "human", "end_on": "ai"}, TALK[1:6]),
        ({"strategy": "first", "start_on": "ai"}, TALK[2:]),
        ({"strategy": "first", "end_on": "human", "include_system": True, "start_on": "ai"}, [SYSTEM]),
    ],
)
def test_what_the_result_starts_and_ends_on_can_be_said(options, kept):
    assert trimmed(5, **options) == kept


def test_what_may_not_stand_at_the_end_takes_no_room():
    assert trimmed(1, [ASK, ANSWER, AGAIN], end_on="ai") == [ANSWER]
    assert trimmed(1, [SYSTEM, ASK, ANSWER], strategy="first", start_on="human") == [ASK]


def test_tokens_are_counted_over_the_messages_together():
    def letters(messages):
        return sum(len(message.text) for message in messages)

    assert trim_messages(TALK, max_tokens=7, token_counter=letters) == [ANSWER, AGAIN]
    assert trim_messages(TALK, max_tokens=6, token_counter=letters) == [AGAIN]


def test_the_list_is_left_alone_and_the_messages_are_the_same():
    talk = list(TALK)
    kept = trimmed(99, talk)
    assert kept is not talk
    assert talk == TALK
    assert all(one is other for one, other in zip(kept, TALK, strict=True))


def test_messages_of_langchain_are_trimmed_too():
    asks = lc.AIMessage("", tool_calls=[call(1)])
    talk = [lc.SystemMessage("a"), ASK, asks, lc.ToolMessage("x", tool_call_id="c1"), lc.HumanMessage("b")]
    assert trimmed(2, talk) == talk[4:]
    assert trimmed(3, talk) == talk[2:]
    assert trimmed(5, talk, start_on=lc.HumanMessage, include_system=True) == [talk[0], talk[4]]


def test_the_answer_to_a_malformed_call_stays_with_it():
    wrong = AIMessage("", invalid_tool_calls=[{"name": "f", "args": "{", "id": "c1", "error": "no JSON"}])
    assert trimmed(2, [ASK, wrong, FIRST, AGAIN]) == [AGAIN]
    assert trimmed(3, [ASK, wrong, FIRST, AGAIN]) == [wrong, FIRST, AGAIN]


def test_an_answer_without_its_call_is_left_out_and_takes_no_room():
    assert trimmed(2, [FIRST, ASK]) == [ASK]
    assert trimmed(2, [ASK, SECOND, AGAIN]) == [ASK, AGAIN]
    assert trimmed(2, [ASK, SECOND, AGAIN], strategy="first") == [ASK, AGAIN]


@pytest.mark.parametrize("most", [-1, None, "3", True, 1.5])
def test_what_is_no_number_of_tokens_is_an_error(most):
    with pytest.raises(ValueError, match=r"^max_tokens=.*: give a whole number, 0 or more$"):
        trimmed(most)


def test_answers_may_come_late_and_overlap():
    late = [CALLS, AGAIN, SECOND, AIMessage("", tool_calls=[call(3)]), FIRST, ToolMessage("x", tool_call_id="c3")]
    assert cuts(late) == [0, 6]


def test_open_calls_strange_answers_and_missing_ids_keep_nothing_together():
    assert cuts([ASK, CALLS]) == [0, 1, 2]
    assert cuts([FIRST, ASK]) == [0, 1, 2]
    assert cuts([FIRST, CALLS]) == [0, 1, 2]
    assert cuts([AIMessage("", tool_calls=[{**call(1), "id": None}]), FIRST]) == [0, 1, 2]


def test_of_two_calls_with_one_id_the_later_one_is_answered():
    again = AIMessage("", tool_calls=[call(1)])
    assert cuts([again, FIRST, again, FIRST]) == [0, 2, 4]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"strategy": "middle"}, "strategy='middle' is unknown: it is 'last' or 'first'"),
        (
            {"start_on": "humann"},
            "start_on='humann': there are no messages of type 'humann'. Did you mean 'human'? There are ai, human, ",
        ),
        ({"end_on": ["ai", "boss"]}, "end_on=['ai', 'boss']: there are no messages of type 'boss'. There are ai"),
    ],
)
def test_unknown_words_are_errors(options, said):
    with pytest.raises(ValueError) as caught:
        trimmed(3, **options)
    assert str(caught.value).startswith(said)


ids = st.integers(0, 3)
anything = st.lists(
    st.builds(HumanMessage, st.text(max_size=3))
    | st.builds(SystemMessage, st.text(max_size=3))
    | st.builds(AIMessage, tool_calls=st.lists(ids.map(call), max_size=2))
    | st.builds(ToolMessage, st.text(max_size=3), tool_call_id=ids.map(lambda number: f"c{number}")),
    max_size=12,
)


def answered_by(talk):
    """The pairs of places of a call and of an answer to it."""
    for at, message in enumerate(talk):
        if message.type == "tool":
            makers = [
                place
                for place, other in enumerate(talk[:at])
                if other.type == "ai" and message.tool_call_id in {each["id"] for each in other.tool_calls}
            ]
            if makers:
                yield makers[-1], at


@given(anything, st.integers(0, 12), st.sampled_from(["last", "first"]), st.booleans())
def test_whatever_the_conversation_the_part_is_the_longest_of_those_that_may_be(talk, most, strategy, system):
    head = talk[:1] if system and talk and talk[0].type == "system" else []
    if len(head) > most:
        return
    body = talk[len(head) :]
    together = [*answered_by(body)]
    places = [place for place in range(len(body) + 1) if not any(low < place <= high for low, high in together)]
    assert cuts(body) == places
    assert all(low < high for low, high in pairwise(places))
    room = most - len(head)
    orphans = {at for at, message in enumerate(body) if message.type == "tool"} - {at for _, at in together}
    body = [message for at, message in enumerate(body) if at not in orphans]
    together = [*answered_by(body)]
    places = [place for place in range(len(body) + 1) if not any(low < place <= high for low, high in together)]
    if strategy == "last":
        expected = body[min(place for place in places if len(body) - place <= room) :]
    else:
        expected = body[: max(place for place in places if place <= room)]
    found = trimmed(most, talk, strategy=strategy, include_system=system)
    assert found == head + expected
