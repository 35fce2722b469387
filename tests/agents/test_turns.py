"""The turns of a conversation: each call has an id of its own and an answer, and no message takes another's place."""

import pytest
from langchain_core.messages import AIMessage as LangChainAIMessage
from langchain_core.messages import HumanMessage as LangChainHumanMessage
from langchain_core.messages import ToolMessage as LangChainToolMessage

from pregel.graph import START, MessagesState, StateGraph
from pregel.graph.agent import AgentMiddleware, ScriptedModel, ToolNode, create_agent, tool
from pregel.graph.agent.middleware import HumanInTheLoopMiddleware
from pregel.graph.agent.turns import repaired, with_call_ids
from pregel.graph.messages import AIMessage, HumanMessage, ToolMessage
from pregel.types import Command

THREAD = {"configurable": {"thread_id": "one"}}


def call(name, identity, **args):
    return {"name": name, "args": args, "id": identity}


def calls(*made, **fields):
    """A message of the model that calls tools."""
    return AIMessage("", tool_calls=list(made), **fields)


@tool
def look(text: str = "") -> str:
    """Look."""
    return f"seen {text}"


@tool(return_direct=True)
def final(n: int) -> str:
    """Give the answer."""
    return f"final {n}"


def kinds(messages):
    return [f"tool {each.status}" if each.type == "tool" else each.type for each in messages]


# -- ids of calls ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [AIMessage, LangChainAIMessage])
def test_each_call_gets_an_id_of_its_own(kind):
    unread = {"name": "look", "args": "{", "error": "cut", "id": None}
    message = kind(
        content="",
        tool_calls=[call("look", "a"), call("look", "a"), call("look", None), call("look", "")],
        invalid_tool_calls=[unread, {**unread, "id": "a"}],
    )
    made = with_call_ids(message, "here")
    ids = [each["id"] for each in (*made.tool_calls, *made.invalid_tool_calls)]
    assert ids[0] == "a"
    assert len(set(ids)) == 6
    assert all(each.replace("_", "").isalnum() and len(each) < 40 for each in ids)
    assert with_call_ids(message, "here") == made
    assert [each["id"] for each in with_call_ids(message, "there").tool_calls][1:] != ids[1:4]
    assert with_call_ids(made, "there") is made


def test_two_calls_of_one_id_are_made_and_answered_each_for_itself(door, saver):
    model = ScriptedModel([calls(call("look", "a", text="one"), call("look", "a", text="two")), "ok"])
    messages = door.invoke(create_agent(model, [look], checkpointer=saver), {"messages": "hi"}, THREAD)["messages"]
    assert [message.text for message in messages] == ["hi", "", "seen one", "seen two", "ok"]
    assert [message.tool_call_id for message in messages[2:4]] == [each["id"] for each in messages[1].tool_calls]


def test_a_call_that_can_t_be_read_and_has_no_id_is_answered_by_one(door):
    unread = {"name": "look", "args": "{", "error": "cut", "id": None}
    model = ScriptedModel([AIMessage("", invalid_tool_calls=[unread]), "ok"])
    messages = door.invoke(create_agent(model, [look]), {"messages": "hi"})["messages"]
    assert messages[1].invalid_tool_calls[0]["id"] == messages[2].tool_call_id
    assert messages[2].tool_call_id
    assert model.calls[1].messages == messages[:3]


# -- calls without answers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("human", "ai", "answer"),
    [
        (HumanMessage, AIMessage, ToolMessage),
        (LangChainHumanMessage, LangChainAIMessage, LangChainToolMessage),
    ],
    ids=["own", "langchain"],
)
def test_calls_without_answers_get_one_behind_their_message(human, ai, answer):
    conversation = [
        human(content="1"),
        ai(content="", tool_calls=[call("a", "c1"), call("b", "c2")]),
        answer(content="done", tool_call_id="c1"),
        human(content="2"),
        ai(content="", tool_calls=[call("a", "c1")]),
        human(content="3"),
        ai(content="", tool_calls=[], invalid_tool_calls=[{"name": "a", "args": "{", "id": "c1", "error": "cut"}]),
    ]
    whole = repaired(conversation)
    assert kinds(whole) == [
        *("human", "ai", "tool error", "tool success"),
        *("human", "ai", "tool error"),
        *("human", "ai", "tool error"),
    ]
    assert [each.tool_call_id for each in whole if each.type == "tool"] == ["c2", "c1", "c1", "c1"]
    assert "was not carried out" in whole[2].text
    assert repaired(whole) == whole


def test_new_input_after_a_question_that_nobody_answered_leaves_no_call_open(door, saver):
    model = ScriptedModel([calls(call("look", "a")), "other"])
    agent = create_agent(model, [look], middleware=[HumanInTheLoopMiddleware({"look": True})], checkpointer=saver)
    door.invoke(agent, {"messages": "one"}, THREAD)
    result = door.invoke(agent, {"messages": "two"}, THREAD)
    assert kinds(model.calls[1].messages) == ["human", "ai", "tool error", "human"]
    assert model.calls[1].messages[2].tool_call_id == "a"
    assert kinds(result["messages"]) == ["human", "ai", "human", "ai"]


def test_new_input_after_a_tool_that_raised_leaves_no_call_open(door, saver):
    def fails() -> str:
        """Fail."""
        raise ZeroDivisionError

    model = ScriptedModel([calls(call("look", "a"), call("fails", "b")), "other", "third"])
    agent = create_agent(model, [look, fails], checkpointer=saver)
    with pytest.raises(ZeroDivisionError):
        door.invoke(agent, {"messages": "one"}, THREAD)
    door.invoke(agent, {"messages": "two"}, THREAD)
    assert kinds(model.calls[1].messages) == ["human", "ai", "tool error", "tool error", "human"]
    door.invoke(agent, {"messages": "three"}, THREAD)
    assert model.calls[2].messages[:5] == model.calls[1].messages


# -- direct tools ------------------------------------------------------------------------------------------------------


class Ends(AgentMiddleware):
    """Counts how often the agent ended."""

    def __init__(self):
        self.ended = 0

    def after_agent(self, state):
        self.ended += 1


@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ([{"n": 1}], ["human", "ai", "tool success"]),
        ([{"n": 1}, {"n": 2}], ["human", "ai", "tool success", "tool success"]),
        ([{}], ["human", "ai", "tool error", "ai"]),
        ([{}, {"n": 2}], ["human", "ai", "tool error", "tool success", "ai"]),
        ([{"n": 1}, {}], ["human", "ai", "tool success", "tool error", "ai"]),
    ],
    ids=["one", "two", "wrong", "wrong-right", "right-wrong"],
)
def test_the_model_sees_what_was_wrong_with_the_call_of_a_direct_tool(hooked, args, expected, door, saver):
    model = ScriptedModel([calls(*(call("final", f"c{n}", **each) for n, each in enumerate(args))), "sorry"])
    ends = Ends()
    agent = create_agent(model, [final], middleware=[ends] if hooked else [], checkpointer=saver)
    result = door.invoke(agent, {"messages": "hi"}, THREAD)
    assert kinds(result["messages"]) == expected
    assert ends.ended == hooked
    assert agent.get_state(THREAD).next == ()


def test_a_direct_call_beside_one_that_a_person_rejects_leads_back_to_the_model(door, saver):
    model = ScriptedModel([calls(call("final", "a", n=1), call("final", "b", n=2)), "well"])
    agent = create_agent(model, [final], middleware=[HumanInTheLoopMiddleware({"final": True})], checkpointer=saver)
    door.invoke(agent, {"messages": "hi"}, THREAD)
    result = door.invoke(agent, Command(resume={"decisions": [{"type": "approve"}, {"type": "reject"}]}), THREAD)
    assert kinds(result["messages"]) == ["human", "ai", "tool error", "tool success", "ai"]


def test_what_somebody_else_answers_in_a_direct_tool_s_place_follows_the_same_rule(saver):
    agent = create_agent(
        ScriptedModel([calls(call("final", "a", n=1))]), [final], checkpointer=saver, interrupt_before=["tools"]
    )
    for status, following in [("success", ()), ("error", ("model",))]:
        thread = {"configurable": {"thread_id": status}}
        agent.invoke({"messages": "hi"}, thread)
        answer = ToolMessage("given", tool_call_id="a", status=status)
        agent.update_state(thread, {"messages": [answer]}, as_node="tools")
        assert agent.get_state(thread).next == following
        agent = create_agent(
            ScriptedModel([calls(call("final", "a", n=1))]), [final], checkpointer=saver, interrupt_before=["tools"]
        )


# -- ids of messages ---------------------------------------------------------------------------------------------------


@tool
def fixed(n: int) -> ToolMessage:
    """Answer with an id that is always the same."""
    return ToolMessage(f"fixed {n}", tool_call_id=f"c{n}", id="always")


@tool
def commands(n: int) -> Command:
    """Do the same by a command."""
    return Command(update={"messages": [ToolMessage(f"fixed {n}", tool_call_id=f"c{n}", id="always")]})


@tool
def pairs(n: int) -> Command:
    """Do the same by pairs."""
    return Command(update=[("messages", LangChainToolMessage(f"fixed {n}", tool_call_id=f"c{n}", id="always"))])


@pytest.mark.parametrize("kind", [fixed, commands, pairs], ids=lambda each: each.name)
def test_no_answer_of_a_tool_takes_the_place_of_another(kind, door):
    model = ScriptedModel(
        [calls(call(kind.name, "c1", n=1), call(kind.name, "c2", n=2)), calls(call(kind.name, "c3", n=3)), "ok"]
    )
    messages = door.invoke(create_agent(model, [kind]), {"messages": "hi"})["messages"]
    assert [message.content for message in messages] == ["hi", "", "fixed 1", "fixed 2", "", "fixed 3", "ok"]
    node = ToolNode([kind])
    graph = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile()
    asked = calls(call(kind.name, "c1", n=1), call(kind.name, "c2", n=2))
    assert [message.content for message in door.invoke(graph, {"messages": [asked]})["messages"]] == [
        *("", "fixed 1", "fixed 2")
    ]


@pytest.mark.parametrize("streamed", [False, True])
def test_no_answer_of_a_model_takes_the_place_of_another(streamed, door, saver):
    model = ScriptedModel([calls(call("look", "c1"), id="m"), AIMessage("one", id="m"), AIMessage("two", id="m")])
    agent = create_agent(model, [look], checkpointer=saver)
    for text in ("hi", "again"):
        if streamed:
            parts = door.stream(agent, {"messages": text}, THREAD, stream_mode="messages")
            assert not any(isinstance(part, Exception) for part in parts)
        else:
            door.invoke(agent, {"messages": text}, THREAD)
    messages = agent.get_state(THREAD).values["messages"]
    assert [message.text for message in messages] == ["hi", "", "seen ", "one", "again", "two"]
    assert len({message.id for message in messages}) == 6
    if streamed:
        told = {message.id for message, _ in parts if message.text}
        assert told == {messages[-1].id}


def test_two_tools_of_one_turn_may_jump_to_one_place(door):
    @tool
    def leave(n: int) -> Command:
        """Leave."""
        return Command(update={"jump_to": "end", "messages": [ToolMessage("left", tool_call_id=f"c{n}")]})

    ends = Ends()
    model = ScriptedModel([calls(call("leave", "c1", n=1), call("leave", "c2", n=2))])
    result = door.invoke(create_agent(model, [leave], middleware=[ends]), {"messages": "hi"})
    assert [message.text for message in result["messages"]] == ["hi", "", "left", "left"]
    assert ends.ended == 1
