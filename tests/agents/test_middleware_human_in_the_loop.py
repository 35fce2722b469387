"""A person decides about tool calls before they are made: one question for a message, and no way around it."""

import pytest
from langchain_core.messages import AIMessage as ForeignAIMessage

from pregel import START, Command, InMemorySaver, MessagesState, SqliteSaver, StateGraph
from pregel.errors import InvalidResumeError, MissingCheckpointerError
from pregel.graph.agent.create import create_agent
from pregel.graph.agent.middleware.human_in_the_loop import HumanInTheLoopMiddleware
from pregel.graph.agent.models import ScriptedModel
from pregel.graph.messages import AIMessage

THREAD = {"configurable": {"thread_id": "t"}}


def call(name, number, **args):
    return {"name": name, "args": args, "id": f"c{number}", "type": "tool_call"}


def agent(*calls, on=None, saver=None, answers=("done",), script=None, **options):
    """An agent whose model asks for some calls in one message, and a list of what its tools have done."""
    done = []

    def send(to: str) -> str:
        """Send a letter."""
        done.append(f"send {to}")
        return f"sent to {to}"

    def pay(amount: int) -> str:
        """Pay."""
        done.append(f"pay {amount}")
        return f"paid {amount}"

    def look(at: str) -> str:
        """Look at something."""
        done.append(f"look {at}")
        return f"seen {at}"

    model = ScriptedModel(script or [AIMessage(content="", tool_calls=list(calls)), *answers])
    middleware = HumanInTheLoopMiddleware({"send": True, "pay": True} if on is None else on, **options)
    graph = create_agent(model, [send, pay, look], middleware=[middleware], checkpointer=saver or InMemorySaver())
    return graph, done


def told(result):
    """The answers to the calls, in order."""
    return [
        (message.tool_call_id, message.text, message.status) for message in result["messages"] if message.type == "tool"
    ]


def resume(*decisions):
    return Command(resume={"decisions": list(decisions)})


APPROVE, REJECT = {"type": "approve"}, {"type": "reject"}


def edit(name, **args):
    return {"type": "edit", "edited_action": {"name": name, "args": args}}


def test_a_call_waits_until_it_is_approved(door, saver):
    graph, done = agent(call("send", 1, to="ada"), saver=saver)
    result = door.invoke(graph, {"messages": ["go"]}, THREAD)
    (question,) = result["__interrupt__"]
    assert question.value == {
        "action_requests": [
            {
                "name": "send",
                "args": {"to": "ada"},
                "description": "Tool execution requires approval\n\nTool: send\nArgs: {'to': 'ada'}",
            }
        ],
        "review_configs": [
            {"action_name": "send", "allowed_decisions": ["approve", "edit", "reject", "respond"]},
        ],
    }
    assert done == []
    result = door.invoke(graph, resume(APPROVE), THREAD)
    assert done == ["send ada"]
    assert told(result) == [("c1", "sent to ada", "success")]
    assert result["messages"][-1].text == "done"


def test_calls_of_other_tools_need_no_decision(door):
    graph, done = agent(call("look", 1, at="sky"))
    assert "__interrupt__" not in door.invoke(graph, {"messages": ["go"]}, THREAD)
    assert done == ["look sky"]


def test_a_tool_can_be_named_as_one_that_needs_none():
    graph, done = agent(call("send", 1, to="ada"), on={"send": False})
    graph.invoke({"messages": ["go"]}, THREAD)
    assert done == ["send ada"]


def test_one_question_asks_about_all_calls_and_each_gets_its_own_decision(door, saver):
    graph, done = agent(
        call("send", 1, to="ada"),
        call("look", 2, at="sky"),
        call("pay", 3, amount=5),
        call("send", 4, to="bob"),
        call("pay", 5, amount=7),
        saver=saver,
    )
    result = door.invoke(graph, {"messages": ["go"]}, THREAD)
    (question,) = result["__interrupt__"]
    assert [(each["name"], each["args"]) for each in question.value["action_requests"]] == [
        ("send", {"to": "ada"}),
        ("pay", {"amount": 5}),
        ("send", {"to": "bob"}),
        ("pay", {"amount": 7}),
    ]
    assert done == []
    result = door.invoke(
        graph,
        resume(
            edit("send", to="eve"),
            {"type": "reject", "message": "too much"},
            {"type": "respond", "message": "I told him"},
            APPROVE,
        ),
        THREAD,
    )
    assert sorted(done) == ["look sky", "pay 7", "send eve"]
    assert told(result) == [
        ("c3", "too much", "error"),
        ("c4", "I told him", "success"),
        ("c1", "sent to eve", "success"),
        ("c2", "seen sky", "success"),
        ("c5", "paid 7", "success"),
    ]
    calls = result["messages"][1].tool_calls
    assert [(each["id"], each["name"], each["args"]) for each in calls] == [
        ("c1", "send", {"to": "eve"}),
        ("c2", "look", {"at": "sky"}),
        ("c3", "pay", {"amount": 5}),
        ("c4", "send", {"to": "bob"}),
        ("c5", "pay", {"amount": 7}),
    ]


def test_messages_of_langchain_are_decided_about_as_well(door):
    history = [("user", "go"), ForeignAIMessage("", tool_calls=[call("send", 1, to="ada")], id="ai")]
    middleware = HumanInTheLoopMiddleware({"send": True})

    def review(state: MessagesState, runtime) -> dict | None:
        return middleware.after_model(state, runtime)

    graph = StateGraph(MessagesState).add_node(review).add_edge(START, "review").compile(InMemorySaver())
    door.invoke(graph, {"messages": history}, THREAD)
    result = door.invoke(graph, resume(edit("send", to="eve")), THREAD)
    changed = result["messages"][1]
    assert type(changed) is ForeignAIMessage
    assert changed.tool_calls[0]["args"] == {"to": "eve"}


def test_when_nothing_is_left_to_call_the_model_is_asked_again(door):
    graph, done = agent(call("send", 1, to="ada"))
    door.invoke(graph, {"messages": ["go"]}, THREAD)
    result = door.invoke(graph, resume(REJECT), THREAD)
    assert done == []
    assert [message.type for message in result["messages"]] == ["human", "ai", "tool", "ai"]
    assert "rejected" in told(result)[0][1]


def test_each_turn_has_a_question_of_its_own_also_where_the_model_uses_an_id_again(door):
    again = AIMessage(tool_calls=[call("send", 1, to="bob")])
    graph, done = agent(call("send", 1, to="ada"), answers=[again, "done"])
    door.invoke(graph, {"messages": ["go"]}, THREAD)
    result = door.invoke(graph, resume(APPROVE), THREAD)
    assert result["__interrupt__"][0].value["action_requests"][0]["args"] == {"to": "bob"}
    assert done == ["send ada"]
    door.invoke(graph, resume(REJECT), THREAD)
    assert done == ["send ada"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"decisions": [APPROVE]}, "2 call(s) wait for a decision, in this order: 'send', 'pay'; the answer has 1"),
        ({"decisions": [APPROVE, APPROVE, APPROVE]}, "the answer has 3"),
        ({"decisions": []}, "the answer has 0"),
        ({"decisions": [APPROVE, APPROVE]}, "decision 1, about 'pay', is 'approve', and allowed are edit, reject"),
        ({"decisions": [{"type": "accept"}, REJECT]}, "accept"),
        ({"decisions": [{"type": "approve", "sudo": True}, REJECT]}, "sudo"),
        ({"decisions": [{"type": "edit"}, REJECT]}, "edited_action"),
        ({"decisions": [{"type": "edit", "edited_action": {"name": "send"}}, REJECT]}, "args"),
        ({"decisions": [{"type": "respond"}, REJECT]}, "message"),
        (
            {"decisions": [edit("pay", amount=9), REJECT]},
            "edits it into a call of 'pay', of which no call can be approved",
        ),
        ({"decisions": "approve"}, "decisions"),
        ({"decisions": [APPROVE, REJECT], "more": 1}, "more"),
        ([APPROVE, REJECT], "decisions"),
        ("approve", "decisions"),
        (True, "decisions"),
    ],
)
def test_a_forged_or_incomplete_answer_is_refused_and_the_question_stays(answer, told, saver):
    graph, done = agent(
        call("send", 1, to="ada"),
        call("pay", 2, amount=5),
        on={"send": True, "pay": {"allowed_decisions": ["edit", "reject"]}},
        saver=saver,
    )
    (question,) = graph.invoke({"messages": ["go"]}, THREAD)["__interrupt__"]
    with pytest.raises(InvalidResumeError) as caught:
        graph.invoke(Command(resume={question.id: answer}), THREAD)
    assert told in str(caught.value)
    assert done == []
    assert graph.get_state(THREAD).interrupts == (question,)
    graph.invoke(resume(APPROVE, REJECT), THREAD)
    assert done == ["send ada"]


def test_the_question_says_in_json_schema_how_many_decisions_it_wants():
    graph, _ = agent(call("send", 1, to="ada"), call("pay", 2, amount=5))
    (question,) = graph.invoke({"messages": ["go"]}, THREAD)["__interrupt__"]
    schema = question.response_schema["properties"]["decisions"]
    assert (schema["minItems"], schema["maxItems"]) == (2, 2)


def test_of_two_calls_of_one_id_one_is_made_and_the_other_rejected():
    graph, done = agent(call("send", 1, to="ada"), call("pay", 1, amount=5))
    graph.invoke({"messages": ["go"]}, THREAD)
    messages = graph.invoke(resume(REJECT, APPROVE), THREAD)["messages"]
    assert len(done) == 1
    assert done[0].startswith("pay")
    ids = [made["id"] for made in messages[1].tool_calls]
    assert len(set(ids)) == 2
    answers = {message.tool_call_id: message for message in messages if message.type == "tool"}
    assert [answers[each].status for each in ids] == ["error", "success"]


def test_an_answer_is_found_after_the_process_has_ended(tmp_path, door):
    path = tmp_path / "runs.sqlite"
    calls = (call("send", 1, to="ada"), call("pay", 2, amount=5))
    with SqliteSaver(path) as saver:
        graph, done = agent(*calls, saver=saver)
        (question,) = door.invoke(graph, {"messages": ["go"]}, THREAD)["__interrupt__"]
        assert done == []
    with SqliteSaver(path) as saver:
        graph, done = agent(*calls, saver=saver)
        assert graph.get_state(THREAD).interrupts == (question,)
    with SqliteSaver(path) as saver:
        graph, done = agent(saver=saver, script=["done elsewhere"])  # the first message of the model is stored
        result = door.invoke(graph, resume(edit("send", to="eve"), REJECT), THREAD)
    assert done == ["send eve"]
    assert [each[0] for each in told(result)] == ["c2", "c1"]
    assert result["messages"][-1].text == "done elsewhere"


def test_a_description_may_be_a_text_or_a_function(door):
    def describe(call, state, runtime):
        return f"{call['name']} after {state['messages'][0].text} in {runtime.node}"

    graph, _ = agent(
        call("send", 1, to="ada"),
        call("pay", 2, amount=5),
        on={
            "send": {"allowed_decisions": ["approve"], "description": "A letter goes out."},
            "pay": {"allowed_decisions": ["approve"], "description": describe, "args_schema": {"type": "object"}},
        },
    )
    value = door.invoke(graph, {"messages": ["go"]}, THREAD)["__interrupt__"][0].value
    assert [each["description"] for each in value["action_requests"]] == [
        "A letter goes out.",
        "pay after go in HumanInTheLoopMiddleware.after_model",
    ]
    assert value["review_configs"][1] == {
        "action_name": "pay",
        "allowed_decisions": ["approve"],
        "args_schema": {"type": "object"},
    }


def test_nothing_is_asked_where_the_model_has_said_nothing():
    middleware = HumanInTheLoopMiddleware({"send": True})
    assert middleware.after_model({"messages": []}, None) is None


def test_the_prefix_of_a_description_can_be_chosen():
    graph, _ = agent(call("send", 1, to="ada"), description_prefix="Please look")
    value = graph.invoke({"messages": ["go"]}, THREAD)["__interrupt__"][0].value
    assert value["action_requests"][0]["description"].startswith("Please look\n\nTool: send")


def test_without_a_checkpointer_the_error_says_what_is_missing():
    middleware = HumanInTheLoopMiddleware({"send": True})
    model = ScriptedModel([AIMessage(tool_calls=[call("send", 1, to="ada")])])

    def send(to: str) -> str:
        """Send a letter."""
        raise AssertionError

    with pytest.raises(MissingCheckpointerError, match="checkpointer"):
        create_agent(model, [send], middleware=[middleware]).invoke({"messages": ["go"]})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"send": "approve"}, "give True, False, or"),
        ({"send": {"allowed_decisions": []}}, "allows no decision"),
        ({"send": {}}, "allows no decision"),
        ({"send": {"allowed_decisions": ["aprove"]}}, "Did you mean 'approve'?"),
        ({"send": {"alowed_decisions": ["approve"]}}, "Did you mean 'allowed_decisions'?"),
    ],
)
def test_a_configuration_that_can_not_be_is_refused(given, told):
    with pytest.raises(ValueError) as caught:
        HumanInTheLoopMiddleware(given)
    assert told in str(caught.value)
    assert "'send'" in str(caught.value)
