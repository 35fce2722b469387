"""Middleware that changes what the model reads: old results cleared, a list of things to do, tools selected."""

import pytest
from langchain_core.messages import AIMessage as ForeignAIMessage
from langchain_core.messages import ToolMessage as ForeignToolMessage

from pregel.graph.agent.create import create_agent
from pregel.graph.agent.middleware.context_editing import ClearToolUsesEdit, ContextEditingMiddleware
from pregel.graph.agent.middleware.model_retry import ModelRetryMiddleware
from pregel.graph.agent.middleware.summarization import HEADING, SummarizationMiddleware
from pregel.graph.agent.middleware.todo import TodoListMiddleware
from pregel.graph.agent.middleware.tool_selection import LLMToolSelectorMiddleware, ToolSelectionError
from pregel.graph.agent.models import ScriptedModel
from pregel.graph.agent.requests import ModelRequest
from pregel.graph.agent.tools import tool
from pregel.graph.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

THREAD = {"configurable": {"thread_id": "t"}}


def call(name, call_id, **args):
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


def uses(count, ai=AIMessage, tool=ToolMessage):
    """A conversation of so many calls of tools with their results."""
    messages = [HumanMessage("go")]
    for number in range(count):
        name = "look" if number % 2 == 0 else "fetch"
        messages.append(ai(content="", tool_calls=[call(name, f"c{number}", at=number)]))
        messages.append(tool(content=f"result {number}", tool_call_id=f"c{number}"))
    return messages


def results(messages):
    return [message.content for message in messages if message.type == "tool"]


def edited(messages, **options):
    return ClearToolUsesEdit(**{"trigger": 0, **options}).apply(messages, count_tokens=lambda some: 10 * len(some))


@pytest.mark.parametrize(("ai", "tool"), [(AIMessage, ToolMessage), (ForeignAIMessage, ForeignToolMessage)])
def test_the_oldest_results_are_cleared_and_what_was_given_is_left_alone(ai, tool):
    messages = uses(4, ai, tool)
    before = [message.model_copy(deep=True) for message in messages]
    after = edited(messages, keep=2)
    assert results(after) == ["[cleared]", "[cleared]", "result 2", "result 3"]
    assert messages == before


def test_nothing_is_cleared_below_the_trigger():
    assert results(edited(uses(2), trigger=50, keep=0)) == ["result 0", "result 1"]
    assert results(edited(uses(2), trigger=49, keep=0)) == ["[cleared]", "[cleared]"]


def test_results_of_some_tools_stay():
    assert results(edited(uses(4), keep=0, exclude_tools=["look"])) == [
        "result 0",
        "[cleared]",
        "result 2",
        "[cleared]",
    ]


def test_arguments_can_be_cleared_with_the_results():
    after = edited(uses(2), keep=1, clear_tool_inputs=True, placeholder="gone")
    assert [message.tool_calls[0]["args"] for message in after if message.type == "ai"] == [{}, {"at": 1}]
    assert results(after) == ["gone", "result 1"]


def test_no_more_is_cleared_than_is_needed():
    def count(messages):
        return sum(len(message.text) for message in messages)

    after = ClearToolUsesEdit(trigger=0, keep=0, clear_at_least=90).apply(
        [*uses(0), *[ToolMessage("x" * 60, tool_call_id=str(number)) for number in range(4)]], count_tokens=count
    )
    assert results(after) == ["[cleared]", "[cleared]", "x" * 60, "x" * 60]


def test_an_id_that_is_used_again_belongs_to_the_call_before_it():
    messages = [
        AIMessage(tool_calls=[call("look", "c", at=1)]),
        ToolMessage("one", tool_call_id="c"),
        AIMessage(tool_calls=[call("fetch", "c", at=2)]),
        ToolMessage("two", tool_call_id="c"),
    ]
    after = edited(messages, keep=0, exclude_tools=["fetch"], clear_tool_inputs=True)
    assert results(after) == ["[cleared]", "two"]
    assert [message.tool_calls[0]["args"] for message in after if message.type == "ai"] == [{}, {"at": 2}]


def test_an_agent_keeps_in_its_state_what_its_model_is_not_shown(door):
    model = ScriptedModel(
        [AIMessage(tool_calls=[call("look", "c1")]), AIMessage(tool_calls=[call("look", "c2")]), "done"]
    )

    def look() -> str:
        """Look."""
        return "a long result"

    middleware = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1, keep=1)])
    result = door.invoke(create_agent(model, [look], middleware=[middleware]), {"messages": ["go"]})
    assert results(model.calls[2].messages) == ["[cleared]", "a long result"]
    assert results(result["messages"]) == ["a long result", "a long result"]


def test_tokens_can_be_counted_by_the_model():
    class Counting:
        def get_num_tokens_from_messages(self, messages):
            assert messages[0].type == "system"
            return 1000

    middleware = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=999, keep=0)], token_count_method="model")  # noqa: S106 - no password
    request = ModelRequest(Counting(), uses(1), SystemMessage("rules"))
    assert results(middleware.wrap_model_call(request, lambda given: given.messages)) == ["[cleared]"]


def test_a_model_that_can_not_count_is_an_error_that_says_so():
    middleware = ContextEditingMiddleware(token_count_method="model")  # noqa: S106 - no password
    with pytest.raises(ValueError, match="use 'approximate'"):
        middleware.wrap_model_call(ModelRequest(object(), []), None)
    with pytest.raises(ValueError, match="'approximate' or 'model'"):
        ContextEditingMiddleware(token_count_method="exact")  # noqa: S106 - no password


TODOS = [{"content": "look", "status": "completed"}, {"content": "tell", "status": "in_progress"}]


def test_the_model_writes_a_list_that_is_part_of_the_state(door):
    model = ScriptedModel([AIMessage(tool_calls=[call("write_todos", "c1", todos=TODOS)]), "done"])
    graph = create_agent(model, system_prompt="Be kind.", middleware=[TodoListMiddleware()])
    result = door.invoke(graph, {"messages": ["go"]})
    assert result["todos"] == TODOS
    assert result["messages"][2].status == "success"
    (asked, _) = model.calls
    assert asked.messages[0].text.startswith("Be kind.\n\n## write_todos")
    (tool,) = asked.tools
    assert tool["name"] == "write_todos"
    assert list(tool["parameters"]["properties"]) == ["todos"]


def test_a_list_of_another_form_is_an_error_for_the_model(door):
    wrong = [{"content": "look", "status": "later"}]
    model = ScriptedModel([AIMessage(tool_calls=[call("write_todos", "c1", todos=wrong)]), "done"])
    result = door.invoke(create_agent(model, middleware=[TodoListMiddleware()]), {"messages": ["go"]})
    assert result["messages"][2].status == "error"
    assert "todos" not in result


def test_two_lists_in_one_message_are_refused(door):
    calls = [call("write_todos", "c1", todos=TODOS), call("write_todos", "c2", todos=[])]
    model = ScriptedModel([AIMessage(tool_calls=calls), "done"])
    result = door.invoke(create_agent(model, middleware=[TodoListMiddleware()]), {"messages": ["go"]})
    assert [message.status for message in result["messages"] if message.type == "tool"] == ["error", "error"]
    assert "todos" not in result


@pytest.mark.parametrize("content", [None, "rules", [{"type": "text", "text": "rules"}]])
def test_the_prompt_is_added_to_whatever_there_is(content):
    given = None if content is None else SystemMessage(content)
    request = ModelRequest(None, [], given)
    after = TodoListMiddleware(system_prompt="Use it.").wrap_model_call(request, lambda asked: asked.system_message)
    assert after.text == ("Use it." if content is None else "rules\n\nUse it.")


def look() -> str:
    """Look at something."""
    return "seen"


def fetch() -> str:
    """Fetch something."""
    return "fetched"


def send() -> str:
    """Send something."""
    return "sent"


def chosen(*names):
    return AIMessage(tool_calls=[call("select_tools", "s", tools=list(names))])


def selecting(selector, answers=("done",), tools=(look, fetch, send), before=(), **options):
    model = ScriptedModel(list(answers))
    middleware = [*before, LLMToolSelectorMiddleware(model=selector, **options)]
    return create_agent(model, list(tools), middleware=middleware), model


def test_the_model_is_shown_the_tools_that_another_one_chose(door):
    selector = ScriptedModel([chosen("send", "look")])
    graph, model = selecting(selector)
    result = door.invoke(graph, {"messages": ["look and send"]})
    assert [tool["name"] for tool in model.calls[0].tools] == ["look", "send"]
    assert [message.type for message in result["messages"]] == ["human", "ai"]
    (asked,) = selector.calls
    assert asked.tool_choice == "select_tools"
    assert "- fetch: Fetch something." in asked.messages[0].text
    assert asked.messages[1].text == "look and send"


def test_the_first_of_too_many_are_shown_and_some_always():
    graph, model = selecting(ScriptedModel([chosen("send", "fetch")]), max_tools=1, always_include=["look"])
    graph.invoke({"messages": ["go"]})
    assert [tool["name"] for tool in model.calls[0].tools] == ["look", "send"]


def test_a_choice_is_made_for_each_call_and_by_the_agents_own_model_if_there_is_no_other():
    answers = [chosen("look"), AIMessage(tool_calls=[call("look", "c1")]), chosen("send"), "done"]
    graph, model = selecting(None, answers)
    result = graph.invoke({"messages": ["go"]})
    assert [[tool["name"] for tool in asked.tools] for asked in model.calls] == [
        ["select_tools"],
        ["look"],
        ["select_tools"],
        ["send"],
    ]
    assert result["messages"][-1].text == "done"


def test_nothing_is_asked_where_there_is_nothing_to_choose():
    selector = ScriptedModel([])
    graph, model = selecting(selector, tools=[look], always_include=["look"])
    graph.invoke({"messages": ["go"]})
    assert selector.calls == []
    assert [tool["name"] for tool in model.calls[0].tools] == ["look"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (chosen("lok"), "Did you mean 'look'?"),
        ("I would take look.", "answered 'I would take look.'"),
        (AIMessage(tool_calls=[call("select_tools", "s", tools="look")]), "with a list of tools"),
    ],
)
def test_an_answer_that_is_no_choice_is_an_error(answer, told):
    graph, _ = selecting(ScriptedModel([answer]))
    with pytest.raises(ToolSelectionError) as caught:
        graph.invoke({"messages": ["go"]})
    assert told in str(caught.value)


def test_with_retries_around_it_the_choice_is_asked_for_again():
    selector = ScriptedModel([chosen("lok"), chosen("look")])
    graph, model = selecting(selector, before=[ModelRetryMiddleware(sleep=lambda seconds: None)])
    graph.invoke({"messages": ["go"]})
    assert [tool["name"] for tool in model.calls[0].tools] == ["look"]


def test_a_tool_that_is_always_to_be_shown_must_be_there():
    def look(place: str) -> str:
        """Look."""
        return place

    middleware = LLMToolSelectorMiddleware(model=ScriptedModel([]), always_include=["loook"])
    request = ModelRequest(ScriptedModel([]), [HumanMessage("go")], tools=[tool(look)])  # another wrapper's doing
    with pytest.raises(ToolSelectionError, match="Did you mean 'look'"):
        middleware.wrap_model_call(request, lambda _: None)


def test_at_least_one_tool_may_be_chosen():
    with pytest.raises(ValueError, match="1 or more"):
        LLMToolSelectorMiddleware(max_tools=0)


def test_an_agent_with_a_long_conversation_goes_on_with_a_summary(door, saver):
    model = ScriptedModel([f"answer {number}" for number in range(3)])
    writer = ScriptedModel(["They talked."])
    middleware = SummarizationMiddleware(writer, trigger=("messages", 5), keep=("messages", 2))
    graph = create_agent(model, middleware=[middleware], checkpointer=saver)
    for number in range(3):
        result = door.invoke(graph, {"messages": [f"question {number}"]}, THREAD)
    texts = [message.text for message in result["messages"]]
    assert texts == [f"{HEADING}\n\nThey talked.", "answer 1", "question 2", "answer 2"]
    assert [message.text for message in model.calls[2].messages] == texts[:3]
    assert len({message.id for message in result["messages"]}) == 4
    assert [message.text for message in graph.get_state(THREAD).values["messages"]] == texts
