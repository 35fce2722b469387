"""Long conversations become a summary and their end, and no tool call loses its answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage as ForeignAIMessage
from langchain_core.messages import HumanMessage as ForeignHumanMessage
from langchain_core.messages import ToolMessage as ForeignToolMessage

from pregel.graph.agent.middleware.cutting import cut_before, first_fitting, leading_system
from pregel.graph.agent.middleware.summarization import HEADING, EmptySummaryError, SummarizationMiddleware
from pregel.graph.agent.middleware.tokens import count_tokens_approximately
from pregel.graph.agent.models import ScriptedModel
from pregel.graph.messages import (
    REMOVE_ALL_MESSAGES,
    AIMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    add_messages,
)


def call(name, **args):
    return {"name": name.rstrip("0123456789"), "args": args, "id": name}


def talk(count):
    """A conversation of so many short messages, in turns."""
    return [(HumanMessage if place % 2 == 0 else AIMessage)(f"text {place}", id=str(place)) for place in range(count)]


def summarized(middleware, messages):
    """What the state holds after the hook, or None if it changes nothing."""
    update = middleware.before_model({"messages": messages}, None)
    return None if update is None else add_messages(messages, update["messages"])


def test_a_short_conversation_stays_and_costs_no_call():
    model = ScriptedModel(["never"])
    middleware = SummarizationMiddleware(model, trigger=("messages", 6), keep=("messages", 2))
    assert middleware.before_model({"messages": talk(5)}, None) is None
    assert model.calls == []


def test_without_a_trigger_nothing_is_ever_summarized():
    assert SummarizationMiddleware(ScriptedModel([])).before_model({"messages": talk(99)}, None) is None


def test_the_beginning_is_replaced_by_a_summary_and_the_end_stays():
    model = ScriptedModel(["They greeted."])
    middleware = SummarizationMiddleware(model, trigger=("messages", 6), keep=("messages", 2))
    after = summarized(middleware, talk(6))
    assert [message.text for message in after] == [f"{HEADING}\n\nThey greeted.", "text 4", "text 5"]
    assert [message.id for message in after[1:]] == ["4", "5"]
    (asked,) = model.calls
    for place in range(4):
        assert f"text {place}" in asked.messages[0].text
    assert "text 4" not in asked.messages[0].text


def test_one_of_several_triggers_is_enough():
    middleware = SummarizationMiddleware(
        ScriptedModel(["short"]), trigger=[("messages", 100), ("tokens", 20)], keep=("messages", 1)
    )
    assert len(summarized(middleware, talk(6))) == 2


def test_the_kept_end_can_be_measured_in_tokens():
    middleware = SummarizationMiddleware(
        ScriptedModel(["short"]),
        trigger=("messages", 6),
        keep=("tokens", 30),
        token_counter=lambda some: 10 * len(some),
    )
    assert [message.text for message in summarized(middleware, talk(6))][1:] == ["text 3", "text 4", "text 5"]


def test_the_last_message_stays_however_long_it_is():
    middleware = SummarizationMiddleware(
        ScriptedModel(["short"]), trigger=("messages", 3), keep=("tokens", 1), token_counter=lambda some: 10 * len(some)
    )
    assert [message.text for message in summarized(middleware, talk(3))][1:] == ["text 2"]


@pytest.mark.parametrize(
    ("ai", "tool"), [(AIMessage, ToolMessage), (ForeignAIMessage, ForeignToolMessage)], ids=["ours", "langchain"]
)
def test_a_call_is_not_separated_from_its_answers(ai, tool):
    messages = [
        HumanMessage("go", id="h"),
        ai(content="", tool_calls=[call("a1"), call("a2")], id="calls"),
        tool(content="one", tool_call_id="a1", id="t1"),
        tool(content="two", tool_call_id="a2", id="t2"),
        HumanMessage("more", id="h2"),
    ]
    middleware = SummarizationMiddleware(ScriptedModel(["short"]), trigger=("messages", 5), keep=("messages", 2))
    assert [message.id for message in summarized(middleware, messages)][1:] == ["calls", "t1", "t2", "h2"]


def test_nothing_is_summarized_where_everything_hangs_together():
    model = ScriptedModel([])
    messages = [AIMessage(tool_calls=[call("a1")]), ToolMessage("one", tool_call_id="a1"), HumanMessage("more")]
    middleware = SummarizationMiddleware(model, trigger=("messages", 3), keep=("messages", 2))
    assert middleware.before_model({"messages": messages}, None) is None


def test_calls_that_still_wait_stay_with_what_follows():
    messages = [*talk(4), AIMessage(tool_calls=[call("a1")]), HumanMessage("meanwhile")]
    assert cut_before(messages, 5) == 4


def test_system_messages_at_the_beginning_stay():
    messages = [SystemMessage("rules", id="s"), *talk(6)]
    middleware = SummarizationMiddleware(ScriptedModel(["short"]), trigger=("messages", 6), keep=("messages", 2))
    assert [message.type for message in summarized(middleware, messages)] == ["system", "human", "human", "ai"]


def test_only_the_end_of_a_long_beginning_is_shown_and_the_gap_is_told():
    model = ScriptedModel(["short"])
    middleware = SummarizationMiddleware(
        model,
        trigger=("messages", 6),
        keep=("messages", 1),
        token_counter=lambda some: 10 * len(some),
        trim_tokens_to_summarize=20,
    )
    summarized(middleware, talk(6))
    text = model.calls[0].messages[0].text
    assert "[3 messages left out]" in text
    assert "text 2" not in text
    assert "text 3" in text


def test_an_earlier_summary_is_always_shown():
    model = ScriptedModel(["first facts", "second facts"])
    middleware = SummarizationMiddleware(
        model,
        trigger=("messages", 6),
        keep=("messages", 1),
        token_counter=lambda some: 10 * len(some),
        trim_tokens_to_summarize=10,
    )
    once = summarized(middleware, talk(6))
    summarized(middleware, [*once, *talk(6)])
    assert "first facts" in model.calls[1].messages[0].text


def test_messages_of_langchain_are_summarized_and_kept_as_they_are():
    messages = [ForeignHumanMessage(f"text {place}", id=str(place)) for place in range(4)]
    middleware = SummarizationMiddleware(ScriptedModel(["short"]), trigger=("messages", 4), keep=("messages", 1))
    after = summarized(middleware, messages)
    assert after[1] is messages[3]


def test_of_a_message_of_blocks_the_text_is_shown():
    model = ScriptedModel(["short"])
    middleware = SummarizationMiddleware(
        model, trigger=("messages", 2), keep=("messages", 1), summary_prompt="{messages}"
    )
    blocks = ["plain", {"type": "text", "text": " and block"}, {"type": "image", "url": "https://x.example"}]
    middleware.before_model({"messages": [HumanMessage(blocks), HumanMessage("more")]}, None)
    assert model.calls[0].messages[0].text == "human: plain and block"


def test_a_summary_without_text_is_an_error_and_removes_nothing():
    middleware = SummarizationMiddleware(ScriptedModel(["  "]), trigger=("messages", 4), keep=("messages", 1))
    with pytest.raises(EmptySummaryError, match="wrote no summary"):
        middleware.before_model({"messages": talk(4)}, None)


def test_the_update_removes_all_and_adds_what_stays_in_one_go():
    middleware = SummarizationMiddleware(ScriptedModel(["short"]), trigger=("messages", 4), keep=("messages", 1))
    update = middleware.before_model({"messages": talk(4)}, None)["messages"]
    assert (update[0].type, update[0].id) == ("remove", REMOVE_ALL_MESSAGES)


def test_a_fraction_is_of_what_a_model_reads_at_most():
    model = ScriptedModel(["short"])
    model.profile = {"max_input_tokens": 100}
    middleware = SummarizationMiddleware(
        model, trigger=("fraction", 0.5), keep=("messages", 1), token_counter=lambda some: 10 * len(some)
    )
    assert middleware.before_model({"messages": talk(4)}, None) is None
    assert summarized(middleware, talk(5)) is not None


@pytest.mark.parametrize("size", [("words", 3), ("messages", 0), ("fraction", 1.5), "messages", ("tokens",)])
def test_a_size_that_is_none_is_refused(size):
    with pytest.raises(ValueError, match=r"SummarizationMiddleware\(keep=") as caught:
        SummarizationMiddleware(ScriptedModel([]), keep=size)
    assert "('messages', n)" in str(caught.value)


def test_a_fraction_of_a_model_that_does_not_say_what_it_reads_is_refused():
    with pytest.raises(ValueError, match="max_input_tokens"):
        SummarizationMiddleware(ScriptedModel([]), trigger=("fraction", 0.5))


def test_a_prompt_without_a_place_for_the_conversation_is_refused():
    with pytest.raises(ValueError, match=r"\{messages\}"):
        SummarizationMiddleware(ScriptedModel([]), summary_prompt="Sum up.")


def test_braces_in_a_prompt_and_in_messages_are_left_alone():
    model = ScriptedModel(["short"])
    middleware = SummarizationMiddleware(
        model, trigger=("messages", 2), keep=("messages", 1), summary_prompt='as {"json": ...}: {messages}'
    )
    middleware.before_model({"messages": [HumanMessage("{0} {x}"), HumanMessage("more")]}, None)
    assert model.calls[0].messages[0].text == 'as {"json": ...}: human: {0} {x}'


def test_system_messages_that_lead_are_counted():
    assert leading_system([SystemMessage("a"), SystemMessage("b"), HumanMessage("c")]) == 2
    assert leading_system([SystemMessage("a")]) == 1
    assert leading_system([]) == 0


def test_the_longest_end_that_fits_is_found():
    assert first_fitting([1, 2, 3, 4], lambda end: len(end) <= 3) == 1
    assert first_fitting([1, 2], lambda end: not end) == 2


def test_tokens_count_text_blocks_and_calls():
    plain = count_tokens_approximately([HumanMessage("x" * 400)])
    assert 100 <= plain <= 110
    blocks = count_tokens_approximately([HumanMessage([{"type": "text", "text": "x" * 400}])])
    assert plain < blocks <= plain + 10
    assert count_tokens_approximately([AIMessage(tool_calls=[call("a1", q="x" * 400)])]) > 100


@given(st.lists(st.integers(0, 3), max_size=12), st.data())
def test_no_cut_ever_separates_a_call_from_an_answer(sizes, data):
    messages = []
    for turn, size in enumerate(sizes):
        calls = [call(f"t{turn}{number}") for number in range(size)]
        messages += [HumanMessage("go"), AIMessage(tool_calls=calls)]
        messages += [ToolMessage("x", tool_call_id=each["id"]) for each in calls]
    place = data.draw(st.integers(0, len(messages)))
    cut = cut_before(messages, place)
    assert 0 <= cut <= place
    made = {each["id"] for message in messages[cut:] if message.type == "ai" for each in message.tool_calls}
    assert {message.tool_call_id for message in messages[cut:] if message.type == "tool"} <= made
