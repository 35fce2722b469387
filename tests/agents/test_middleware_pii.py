"""Personal data is found, and replaced or refused, in what goes into a model and comes out of it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage as ForeignHumanMessage

from pregel.graph.agent.create import create_agent
from pregel.graph.agent.middleware.detectors import DETECTORS, distinct, is_luhn
from pregel.graph.agent.middleware.pii import PIIDetectionError, PIIMiddleware
from pregel.graph.agent.models import ScriptedModel
from pregel.graph.agent.tools import tool
from pregel.graph.messages import AIMessage, HumanMessage, ToolMessage, add_messages


def values(kind, text):
    return [match["value"] for match in distinct(DETECTORS[kind](text))]


def cleaned(middleware, *messages, hook="before_model"):
    """The messages after a hook."""
    given = [message if message.id else message.model_copy(update={"id": str(n)}) for n, message in enumerate(messages)]
    update = getattr(middleware, hook)({"messages": given}, None)
    return given if update is None else add_messages(given, update["messages"])


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [
        ("email", "write to ada.l+x@mail.example.org, or bob@b.io.", ["ada.l+x@mail.example.org", "bob@b.io"]),
        ("email", "no @ here, a@b, @c.de", []),
        ("credit_card", "4111 1111 1111 1111 and 5500-0000-0000-0004", ["4111 1111 1111 1111", "5500-0000-0000-0004"]),
        ("credit_card", "378282246310005, 3782 822463 10005", ["378282246310005", "3782 822463 10005"]),
        ("credit_card", "12 4111 1111 1111 1111 123, 1234-4111 1111 1111 1111", ["4111 1111 1111 1111"] * 2),
        ("credit_card", "4111 1111 1111 1112", []),
        ("credit_card", "number 41111111111111110000 is too long", []),
        ("ip", "from 192.168.0.1 and 8.8.8.8.", ["192.168.0.1", "8.8.8.8"]),
        ("ip", "256.1.1.1 and version 1.2.3 and 1.2.3.4.5", []),
        ("ip", "at 2001:db8::ff00:42:8329 or fe80::1, at 12:30, std::x, ::", ["2001:db8::ff00:42:8329", "fe80::1"]),
        ("ip", "::ffff:10.0.0.1", ["::ffff:10.0.0.1"]),
        ("mac_address", "00:1A:2b:3C:4d:5E, 00-1a-2b-3c-4d-5e", ["00:1A:2b:3C:4d:5E", "00-1a-2b-3c-4d-5e"]),
        ("mac_address", "00:1A:2b:3C:4d and 00:1A-2b:3C:4d:5E and 00:1A:2b:3C:4d:5E:6F", []),
        ("url", "see https://a.example/x?y=1#z, (www.b.example).", ["https://a.example/x?y=1#z", "www.b.example"]),
        ("url", "http or a.example", []),
    ],
)
def test_what_is_found(kind, text, found):
    assert values(kind, text) == found


@given(st.integers(10**11, 10**17))
def test_exactly_one_check_digit_of_ten_is_right(number):
    assert sum(is_luhn(f"{number}{digit}") for digit in range(10)) == 1


@given(st.text(alphabet="a1@.:-/ wht%+4", max_size=200))
def test_what_is_found_stands_where_it_says_and_does_not_overlap(text):
    for detect in DETECTORS.values():
        matches = distinct(detect(text))
        end = 0
        for match in matches:
            assert text[match["start"] : match["end"]] == match["value"]
            assert match["start"] >= end
            end = match["end"]


@pytest.mark.parametrize(
    "text", ["a" * 50_000, "a." * 25_000, "1" * 50_000, "1 " * 25_000, "f:" * 25_000, "a@a." * 9000]
)
@pytest.mark.parametrize("kind", DETECTORS)
def test_hostile_texts_cost_linear_time(kind, text):
    """Not timed: a quadratic pattern would take minutes here, and the test run would show it."""
    values(kind, text)


@pytest.mark.parametrize(
    ("kind", "strategy", "text", "after"),
    [
        ("email", "redact", "to ada@b.org!", "to [REDACTED_EMAIL]!"),
        ("email", "mask", "to ada@b.org!", "to a****@****.org!"),
        ("email", "hash", "to ada@b.org!", "to <email_hash:0f4f4e6d>!"),
        ("credit_card", "mask", "4111 1111 1111 1111", "****-****-****-1111"),
        ("ip", "mask", "10.1.2.3, fe80::1", "*.*.*.3, ****:1"),
        ("mac_address", "mask", "00:1A:2b:3C:4d:5E", "**:**:**:**:**:5E"),
        ("url", "mask", "https://a.example", "[MASKED_URL]"),
    ],
)
def test_what_stands_in_its_place(kind, strategy, text, after):
    (message,) = cleaned(PIIMiddleware(kind, strategy=strategy), HumanMessage(text))
    if strategy == "hash":
        assert re.fullmatch(r"to <email_hash:[0-9a-f]{8}>!", message.text)
        assert cleaned(PIIMiddleware(kind, strategy=strategy), HumanMessage(text)) == [message]
    else:
        assert message.text == after


@pytest.mark.parametrize("strategy", ["redact", "mask", "hash"])
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("email", "ada@b.org"),
        ("credit_card", "4111111111111111"),
        ("ip", "10.1.2.3"),
        ("mac_address", "00:1A:2b:3C:4d:5E"),
        ("url", "https://a.example"),
    ],
)
def test_what_stands_in_its_place_is_not_found_again(kind, text, strategy):
    middleware = PIIMiddleware(kind, strategy=strategy)
    messages = cleaned(middleware, HumanMessage(text))
    assert middleware.before_model({"messages": messages}, None) is None


def test_blocked_data_is_an_error_that_does_not_tell_it():
    with pytest.raises(PIIDetectionError) as caught:
        cleaned(PIIMiddleware("email", strategy="block"), HumanMessage("ada@b.org and bob@b.org"))
    assert "ada" not in str(caught.value)
    assert "2 piece(s) of the kind 'email'" in str(caught.value)
    assert [match["value"] for match in caught.value.matches] == ["ada@b.org", "bob@b.org"]


def test_each_kind_of_message_is_looked_through_where_it_is_wanted():
    talk = [
        HumanMessage("a@b.org"),
        AIMessage("a@b.org", tool_calls=[{"name": "x", "args": {"to": "a@b.org"}, "id": "c"}]),
        ToolMessage("a@b.org", tool_call_id="c"),
    ]
    found = "[REDACTED_EMAIL]"
    assert [each.text for each in cleaned(PIIMiddleware("email"), *talk)] == [found, "a@b.org", "a@b.org"]
    results = PIIMiddleware("email", apply_to_input=False, apply_to_tool_results=True)
    assert [each.text for each in cleaned(results, *talk)] == ["a@b.org", "a@b.org", found]
    output = PIIMiddleware("email", apply_to_output=True)
    after = cleaned(output, *talk, hook="after_model")
    assert [each.text for each in after] == ["a@b.org", found, "a@b.org"]
    assert after[1].tool_calls[0]["args"] == {"to": "a@b.org"}


def test_all_of_a_conversation_is_looked_through_not_only_its_end():
    talk = [HumanMessage("a@b.org"), AIMessage("yes"), HumanMessage("c@b.org")]
    assert [each.text for each in cleaned(PIIMiddleware("email"), *talk)] == [
        "[REDACTED_EMAIL]",
        "yes",
        "[REDACTED_EMAIL]",
    ]


def test_text_blocks_are_looked_through_and_others_are_left_alone():
    blocks = ["a@b.org", {"type": "text", "text": "c@b.org"}, {"type": "image", "url": "https://x.example/d@b.org"}]
    (message,) = cleaned(PIIMiddleware("email"), HumanMessage(blocks))
    assert message.content == [
        "[REDACTED_EMAIL]",
        {"type": "text", "text": "[REDACTED_EMAIL]"},
        {"type": "image", "url": "https://x.example/d@b.org"},
    ]


def test_messages_of_langchain_stay_what_they_are():
    (message,) = cleaned(PIIMiddleware("email"), ForeignHumanMessage("a@b.org", id="1"))
    assert type(message) is ForeignHumanMessage
    assert message.content == "[REDACTED_EMAIL]"


@pytest.mark.parametrize(
    "detector",
    [
        r"sk-\w{4,}",
        lambda text: [
            {"type": "key", "value": match.group(), "start": match.start(), "end": match.end()}
            for match in re.finditer(r"sk-\w{4,}", text)
        ],
    ],
    ids=["pattern", "function"],
)
def test_a_kind_of_ones_own(detector):
    middleware = PIIMiddleware("key", detector=detector, strategy="mask")
    assert cleaned(middleware, HumanMessage("sk-123456789 x sk-1234"))[0].text == "****6789 x ****"


def test_of_matches_that_overlap_one_counts():
    matches = [
        {"type": "x", "value": "bc", "start": 1, "end": 3},
        {"type": "x", "value": "ab", "start": 0, "end": 2},
        {"type": "x", "value": "abc", "start": 0, "end": 3},
    ]
    assert distinct(matches) == [matches[2]]


def test_an_agent_never_shows_its_model_the_data(door):
    model = ScriptedModel(
        [AIMessage(tool_calls=[{"name": "look", "args": {}, "id": "c", "type": "tool_call"}]), "It is bob@b.org."]
    )

    def look() -> str:
        """Look."""
        return "bob@b.org, 10.0.0.1"

    middleware = [
        PIIMiddleware("email", apply_to_output=True, apply_to_tool_results=True),
        PIIMiddleware("ip", strategy="mask", apply_to_tool_results=True),
    ]
    result = door.invoke(create_agent(model, [look], middleware=middleware), {"messages": ["I am ada@b.org"]})
    assert not [message for asked in model.calls for message in asked.messages if "@" in message.text]
    assert [message.text for message in result["messages"]] == [
        "I am [REDACTED_EMAIL]",
        "",
        "[REDACTED_EMAIL], *.*.*.1",
        "It is [REDACTED_EMAIL].",
    ]


@pytest.mark.parametrize("strategy", ["redact", "block"])
def test_the_result_of_a_tool_that_is_the_agents_answer_is_looked_through(door, strategy):
    @tool(return_direct=True)
    def look() -> str:
        """Look."""
        return "bob@b.org"

    model = ScriptedModel([AIMessage(tool_calls=[{"name": "look", "args": {}, "id": "c", "type": "tool_call"}])])
    middleware = [PIIMiddleware("email", strategy=strategy, apply_to_tool_results=True)]
    graph = create_agent(model, [look], middleware=middleware)
    if strategy == "block":
        with pytest.raises(PIIDetectionError):
            door.invoke(graph, {"messages": ["go"]})
    else:
        assert door.invoke(graph, {"messages": ["go"]})["messages"][-1].text == "[REDACTED_EMAIL]"


def test_a_hook_that_would_look_at_nothing_is_no_node():
    graph = create_agent(ScriptedModel(["fine"]), middleware=[PIIMiddleware("email")])
    nodes = [name for part in graph.stream({"messages": ["hi"]}, stream_mode="updates") for name in part]
    assert nodes == ["PIIMiddleware[email].before_model", "model"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"pii_type": "emial"}, "Did you mean 'email'?"),
        ({"pii_type": "email", "strategy": "redacted"}, "Did you mean 'redact'?"),
        ({"pii_type": "key", "detector": "("}, "no regular expression"),
    ],
)
def test_what_can_not_be_is_refused(options, told):
    with pytest.raises(ValueError) as caught:
        PIIMiddleware(**options)
    assert told in str(caught.value)
