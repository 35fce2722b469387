"""Messages and the reducer that keeps a list of them."""

import copy
import operator
import pickle
import subprocess
import sys
from functools import reduce
from itertools import count
from typing import get_type_hints

import langchain_core.messages as lc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from pregel.channels import MISSING, BinaryOperatorAggregate, Overwrite
from pregel.errors import InvalidUpdateError
from pregel.graph.messages import (
    REMOVE_ALL_MESSAGES,
    AIMessage,
    AnyMessage,
    HumanMessage,
    MessagesState,
    RemoveMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    add_messages,
)
from pregel.testing import check_reducer

CALL: ToolCall = {"name": "search", "args": {"q": "x"}, "id": "call-1", "type": "tool_call"}
EVERYTHING = RemoveMessage(id=REMOVE_ALL_MESSAGES)


def ids(prefix="new"):
    """Ids one after the other, as the engine gives them."""
    numbers = count(1)
    return lambda: f"{prefix}-{next(numbers)}"


def human(text, id=None):  # noqa: A002
    return HumanMessage(text, id=id)


# --- messages --------------------------------------------------------------------------------------------------------


def test_messages_know_their_role():
    messages = [HumanMessage("a"), AIMessage("b"), SystemMessage("c"), ToolMessage("d", tool_call_id="1")]
    assert [message.type for message in messages] == ["human", "ai", "system", "tool"]
    assert [message.content for message in messages] == ["a", "b", "c", "d"]
    assert RemoveMessage(id="x").type == "remove"


def test_content_is_given_by_position_or_by_name():
    assert HumanMessage("a", id="1", name="ann") == HumanMessage(content="a", id="1", name="ann")
    with pytest.raises(TypeError, match="multiple values"):
        HumanMessage("a", content="b")


def test_messages_have_defaults():
    assert (HumanMessage("a").id, HumanMessage("a").name) == (None, None)
    empty = AIMessage()
    assert (empty.content, empty.tool_calls, empty.usage_metadata) == ("", [], None)
    answer = ToolMessage("a", tool_call_id="1")
    assert (answer.status, answer.artifact) == ("success", None)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (HumanMessage, {}),
        (HumanMessage, {"content": 5}),
        (HumanMessage, {"content": "a", "extra": 1}),
        (HumanMessage, {"content": "a", "type": "ai"}),
        (ToolMessage, {"content": "a"}),
        (ToolMessage, {"content": "a", "tool_call_id": "1", "status": "maybe"}),
        (AIMessage, {"tool_calls": [{"name": "f"}]}),
        (AIMessage, {"tool_calls": [{**CALL, "extra": 1}]}),
        (RemoveMessage, {}),
        (RemoveMessage, {"id": None}),
    ],
)
def test_messages_are_validated(kind, fields):
    with pytest.raises(ValidationError):
        kind(**fields)


@pytest.mark.parametrize(
    "message",
    [
        HumanMessage(["a", {"type": "image", "url": "u"}], id="1", name="ann"),
        AIMessage("b", tool_calls=[CALL], usage_metadata={"input_tokens": 1}),
        SystemMessage("c"),
        ToolMessage("d", tool_call_id="1", status="error", artifact={"rows": [1]}),
        EVERYTHING,
    ],
)
def test_messages_are_frozen_values(message):
    with pytest.raises(ValidationError, match="frozen"):
        message.id = "2"
    for twin in (copy.deepcopy(message), pickle.loads(pickle.dumps(message)), type(message)(**message.model_dump())):  # noqa: S301
        assert twin == message
        assert type(twin) is type(message)


def test_two_roles_with_one_content_are_different_messages():
    assert HumanMessage("a") != SystemMessage("a")
    assert hash(HumanMessage("a")) == hash(HumanMessage("a"))


def test_the_artifact_is_kept_as_it_is():
    artifact = object()
    assert ToolMessage("a", tool_call_id="1", artifact=artifact).artifact is artifact


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        ([], ""),
        (["a", {"type": "text", "text": "b"}, {"type": "image", "text": "no"}, {"no": "type"}, {"type": "text"}], "ab"),
    ],
)
def test_the_text_of_a_message_leaves_other_blocks_out(content, text):
    assert AIMessage(content).text == text


# --- coercion --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("hi", [HumanMessage("hi")]),
        ("", [HumanMessage("")]),
        (HumanMessage("hi"), [HumanMessage("hi")]),
        ([], []),
        (["user", "hi"], [HumanMessage("user"), HumanMessage("hi")]),
        (("user", "hi"), [HumanMessage("hi")]),
        ([["ai", "hi"], ("system", "be kind")], [AIMessage("hi"), SystemMessage("be kind")]),
        (("human", ["a", {"type": "text", "text": "b"}]), [HumanMessage(["a", {"type": "text", "text": "b"}])]),
        ({"role": "user", "content": "hi", "id": "1"}, [HumanMessage("hi", id="1")]),
        ({"type": "human", "content": "hi"}, [HumanMessage("hi")]),
        ({"role": "user", "type": "human", "content": "hi"}, [HumanMessage("hi")]),
        ({"role": "assistant", "content": "hi", "name": "bot"}, [AIMessage("hi", name="bot")]),
        ({"role": "developer", "content": "hi"}, [SystemMessage("hi")]),
        ({"role": "tool", "content": "4", "tool_call_id": "1"}, [ToolMessage("4", tool_call_id="1")]),
        ({"role": "assistant", "content": None, "tool_calls": [CALL]}, [AIMessage(tool_calls=[CALL])]),
    ],
)
def test_what_can_be_a_message_becomes_one(given, expected):
    before = copy.deepcopy(given)
    assert add_messages([], given) == expected
    assert add_messages(given, []) == expected
    assert add_messages.fold([], [given]) == expected
    assert given == before


@pytest.mark.parametrize("arguments", ['{"q": "x"}', {"q": "x"}])
def test_tool_calls_in_openais_form_are_understood(arguments):
    openai = {"id": "call-1", "type": "function", "function": {"name": "search", "arguments": arguments}}
    (message,) = add_messages([], {"role": "assistant", "content": None, "tool_calls": [openai]})
    assert message == AIMessage(tool_calls=[CALL])


def test_dumped_messages_come_back():
    messages = [HumanMessage("a", id="1"), AIMessage("b", tool_calls=[CALL]), ToolMessage("c", tool_call_id="call-1")]
    assert add_messages([], [message.model_dump() for message in messages]) == messages
    assert add_messages(messages[:1], RemoveMessage(id="1").model_dump()) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (5, "add_messages can't take 5 (int): it is no message. It takes a message, a text, a (role, text) pair"),
        (None, "None (NoneType): it is no message."),
        ((), "() (tuple): it is no message."),
        (("user", "a", "b"), "(tuple): it is no message."),
        ([["a"]], "it is no message."),
        ((1, "a"), "it is no message."),
        (("usr", "hi"), "('usr', 'hi') (tuple): the role 'usr' is unknown. Did you mean 'user'? It takes"),
        (("user", None), "its fields do not fit HumanMessage: content.str:"),
        (("tool", "hi"), "its fields do not fit ToolMessage: tool_call_id: Field required"),
        ({"role": "boss", "content": "hi"}, "the role 'boss' is unknown. It takes"),
        ({"type": "function", "content": "hi"}, "the type 'function' is unknown."),
        ({"role": ["user"], "content": "hi"}, "the role ['user'] is unknown."),
        ({"role": "user", "type": "ai", "content": ""}, "role 'user' and type 'ai' contradict each other."),
        ({"content": "hi"}, 'it has neither "role" nor "type".'),
        ({"role": "user"}, "{'role': 'user'} (dict): it has no \"content\"."),
        ({"role": "user", "content": "a", "colour": "red"}, "do not fit HumanMessage: colour: Extra inputs are not"),
        ({"role": "user", "content": "a", 1: 2}, "do not fit HumanMessage: 1: Extra inputs are not permitted"),
        ({"role": "user", "content": "a", "self": 2}, "do not fit HumanMessage: self: Extra inputs are not permitted"),
        ({"role": "ai", "content": "", "tool_calls": 5}, "do not fit AIMessage: tool_calls: Input should be a valid"),
        ({"role": "ai", "content": "", "tool_calls": [5]}, "do not fit AIMessage: tool_calls.0: Input should be a"),
        (
            {"role": "ai", "content": "", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{"}}]},
            "tool_calls.0.function: Extra inputs are not permitted",
        ),
        ({"role": "ai", "content": "", "tool_calls": [{"function": {"arguments": "5"}}]}, "tool_calls.0.args: Input"),
    ],
)
def test_what_can_be_no_message_is_named(given, said):
    left = [human("old", "1")]
    for call in (add_messages, lambda left, right: add_messages.prepare(right, ids())):
        with pytest.raises(InvalidUpdateError) as caught:
            call(left, given)
        assert said in str(caught.value)
        assert str(caught.value).endswith("the roles are ai, assistant, developer, human, remove, system, tool, user")
    assert left == [human("old", "1")]


def test_a_long_value_is_shortened_in_the_message():
    with pytest.raises(InvalidUpdateError) as caught:
        add_messages([], {"content": "x" * 10_000})
    assert len(str(caught.value)) < 400


# --- the reducer -----------------------------------------------------------------------------------------------------


def test_messages_are_appended_and_replaced_by_id():
    left = [human("a", "1"), human("b", "2")]
    assert add_messages(left, [human("c", "3"), human("B", "2")]) == [human("a", "1"), human("B", "2"), human("c", "3")]
    assert add_messages(left, [human("A", "1"), human("AA", "1")]) == [human("AA", "1"), human("b", "2")]
    assert left == [human("a", "1"), human("b", "2")]


def test_a_message_can_be_replaced_by_one_of_another_role():
    assert add_messages([human("a", "1")], AIMessage("b", id="1")) == [AIMessage("b", id="1")]


def test_by_hand_messages_without_id_are_appended_as_they_are():
    same = human("a")
    result = add_messages([same], [same, "a"])
    assert result == [same, same, same]
    assert result[1] is same


def test_nothing_at_all_is_an_empty_list():
    assert add_messages(None, "a") == [human("a")]
    left = [human("a", "1")]
    assert add_messages(left, []) == left
    assert add_messages(left, []) is not left


def test_remove_message_removes_the_message_with_its_id():
    left = [human("a", "1"), human("b", "2"), human("no id")]
    assert add_messages(left, RemoveMessage(id="1")) == [human("b", "2"), human("no id")]
    assert add_messages(left, [human("c", "3"), RemoveMessage(id="3")]) == left
    assert add_messages(left, [RemoveMessage(id="1"), human("new", "1")]) == [*left[1:], human("new", "1")]
    assert left == [human("a", "1"), human("b", "2"), human("no id")]


def test_remove_all_removes_what_stands_before_it():
    left = [human("a", "1"), human("b")]
    assert add_messages(left, EVERYTHING) == []
    assert add_messages([], EVERYTHING) == []
    assert add_messages(left, [human("c", "3"), EVERYTHING, human("d", "4")]) == [human("d", "4")]
    assert add_messages.fold(left, [human("c", "3"), EVERYTHING, human("d", "4")]) == [human("d", "4")]


def test_removing_an_unknown_id_is_an_error_that_names_the_nearest():
    left = [human("a", "message-1"), human("b")]
    with pytest.raises(InvalidUpdateError) as caught:
        add_messages(left, RemoveMessage(id="mesage-1"))
    assert str(caught.value) == (
        "RemoveMessage(id='mesage-1'): no message of the 2 in the list has this id. Did you mean 'message-1'? "
        "REMOVE_ALL_MESSAGES removes whatever there is."
    )
    with pytest.raises(InvalidUpdateError, match="no message of the 1 in the list has this id"):
        add_messages(left, [RemoveMessage(id="message-1"), RemoveMessage(id="message-1")])


def test_prepare_gives_ids_to_copies_of_those_that_have_none():
    mine, known = AIMessage("a", tool_calls=[CALL]), human("b", "mine")
    prepared = add_messages.prepare([mine, known, "c", RemoveMessage(id="x")], ids())
    assert [message.id for message in prepared] == ["new-1", "mine", "new-2", "x"]
    assert prepared[0] == AIMessage("a", tool_calls=[CALL], id="new-1")
    assert prepared[1] is known
    assert mine.id is None
    assert add_messages.prepare("a", ids()) == [human("a", "new-1")]


def test_an_empty_id_is_none():
    left = [human("a", ""), human("b", "")]
    assert add_messages(left, human("c", "")) == [*left, human("c", "")]
    assert [message.id for message in add_messages.prepare(left, ids())] == ["new-1", "new-2"]
    for nothing in add_messages.prepare([RemoveMessage(id=""), lc.RemoveMessage(id="")], ids()):
        with pytest.raises(InvalidUpdateError, match="id=''"):
            add_messages(left, nothing)


def test_the_reducer_does_not_claim_to_be_a_log():
    assert not hasattr(add_messages, "appends")
    assert not BinaryOperatorAggregate(add_messages).appends


def test_folding_looks_at_each_message_once():
    looks = count()

    class Counted(HumanMessage):
        def __getattribute__(self, name):
            if name == "type":
                next(looks)
            return super().__getattribute__(name)

    left = [Counted("a", id=str(n)) for n in range(100)]
    result = add_messages.fold(left, [[Counted("b", id=f"new-{n}")] for n in range(100)])
    assert len(result) == 200
    assert next(looks) == 200


# --- laws ------------------------------------------------------------------------------------------------------------

some_ids = st.sampled_from(["1", "2", "3"])
texts = st.sampled_from(["a", "b"])
mine = st.builds(HumanMessage, texts, id=some_ids | st.none()) | st.builds(AIMessage, texts, id=some_ids)
theirs = st.builds(lc.HumanMessage, texts, id=some_ids | st.none())
removals = st.sampled_from(["1", "2", REMOVE_ALL_MESSAGES]).map(lambda id: RemoveMessage(id=id))  # noqa: A006
loose = texts | st.tuples(st.sampled_from(["user", "ai"]), texts) | st.builds(dict, role=st.just("ai"), content=texts)
update_lists = st.lists(mine | theirs | removals | loose, max_size=4)
updates = update_lists | mine | loose | removals
values = st.lists(mine | theirs, max_size=4, unique_by=lambda message: message.id or object())


def test_add_messages_keeps_the_laws_of_reducers():
    check_reducer(add_messages, updates, values=values, max_examples=200)


def outcome(function, *operands):
    try:
        return function(*operands)
    except InvalidUpdateError as error:
        return str(error)


@settings(deadline=None)
@given(values, st.lists(updates, max_size=5))
def test_folding_at_once_is_adding_in_a_row(value, some):
    in_a_row = outcome(reduce, add_messages, some, value)
    assert outcome(add_messages.fold, value, some) == in_a_row
    together = reduce(operator.add, [update if isinstance(update, list) else [update] for update in some], [])
    assert outcome(add_messages, value, together) == in_a_row


@settings(deadline=None)
@given(values, st.lists(updates, min_size=1, max_size=4))
def test_in_a_channel_every_message_has_an_id_of_its_own_and_none_is_a_removal(value, some):
    channel = BinaryOperatorAggregate(add_messages, initial_factory=list)
    new_id = ids()
    value = channel.prepare(value, new_id)
    try:
        result = channel.apply(value, [channel.prepare(update, new_id) for update in some])
    except InvalidUpdateError:
        return
    found = [message.id for message in result]
    assert None not in found
    assert len(set(found)) == len(found)
    assert all(message.type != "remove" for message in result)


# --- langchain-core's classes ----------------------------------------------------------------------------------------


def test_langchain_messages_stay_what_they_are():
    left, right = lc.HumanMessage("a", id="1"), lc.AIMessage("b", id="2", additional_kwargs={"k": 1})
    result = add_messages([left], [right, lc.ToolMessage("c", tool_call_id="9", id="3")])
    assert result[0] is left
    assert result[1] is right
    assert type(result[2]) is lc.ToolMessage


def test_langchain_messages_replace_and_are_replaced():
    result = add_messages([lc.HumanMessage("a", id="1"), human("b", "2")], [human("A", "1"), lc.AIMessage("B", id="2")])
    assert result == [human("A", "1"), lc.AIMessage("B", id="2")]


def test_langchains_remove_message_removes():
    left = [lc.HumanMessage("a", id="1"), human("b", "2")]
    assert add_messages(left, lc.RemoveMessage(id="1")) == left[1:]
    assert add_messages(left, [lc.RemoveMessage(id=REMOVE_ALL_MESSAGES)]) == []


def test_a_langchain_message_that_gets_an_id_is_copied():
    original = lc.AIMessage("a", tool_calls=[CALL])
    (prepared,) = add_messages.prepare(original, ids())
    assert original.id is None
    assert prepared.id == "new-1"
    assert type(prepared) is lc.AIMessage
    assert prepared.tool_calls == original.tool_calls
    known = lc.HumanMessage("a", id="1")
    assert add_messages.prepare([known], ids())[0] is known


def test_messages_work_where_langchain_core_is_not_loaded():
    code = (
        "import sys\n"
        "from pregel.graph.messages import HumanMessage, add_messages\n"
        "assert add_messages(['a'], [HumanMessage('b')])[0].content == 'a'\n"
        "try:\n"
        "    add_messages([], object())\n"
        "except Exception as error:\n"
        "    assert 'it is no message' in str(error)\n"
        "sys.exit(any(name.startswith('langchain') for name in sys.modules))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- states ----------------------------------------------------------------------------------------------------------


def test_messages_state_declares_the_reducer():
    hint = get_type_hints(MessagesState, include_extras=True)["messages"]
    assert hint.__metadata__ == (add_messages,)
    assert hint.__origin__ == list[AnyMessage]


def test_pydantic_takes_the_messages_of_a_state_as_they_are():
    adapter = TypeAdapter(MessagesState)
    messages = [HumanMessage("a", id="1"), lc.AIMessage("b"), ToolMessage("c", tool_call_id="1")]
    for strict in (False, True):
        found = adapter.validate_python({"messages": messages}, strict=strict)["messages"]
        assert all(one is other for one, other in zip(found, messages, strict=True))
    assert adapter.validate_python({"messages": [{"type": "ai", "content": "x"}]}) == {"messages": [AIMessage("x")]}
    for wrong in ("a", RemoveMessage(id="1"), lc.RemoveMessage(id="1"), {"role": "user", "content": "a"}):
        with pytest.raises(ValidationError):
            adapter.validate_python({"messages": [wrong]})


def test_a_state_of_messages_has_a_json_schema():
    items = TypeAdapter(MessagesState).json_schema()["properties"]["messages"]["items"]["anyOf"]
    named = [item.get("$ref", "any").removeprefix("#/$defs/") for item in items]
    assert named == ["HumanMessage", "AIMessage", "SystemMessage", "ToolMessage", "any"]


def test_overwrite_replaces_the_conversation():
    channel = BinaryOperatorAggregate(add_messages)
    assert channel.apply([human("a", "1")], [[human("b", "2")], Overwrite([human("c", "3")])]) == [human("c", "3")]
    assert channel.apply(MISSING, [[human("a", "1")], [human("A", "1")]]) == [human("A", "1")]
