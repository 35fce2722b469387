"""Structured output: the answer in a form, or an error; never nothing."""

import json
from dataclasses import dataclass
from datetime import date
from typing import Literal, NotRequired

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage as LangChainAIMessage
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from pregel.errors import GraphDefinitionError, SchemaError
from pregel.graph.agent import (
    AgentMiddleware,
    AgentState,
    AutoStrategy,
    MissingStructuredOutputError,
    MultipleStructuredOutputsError,
    ProviderStrategy,
    ScriptedModel,
    StructuredOutputError,
    StructuredOutputValidationError,
    ToolStrategy,
    create_agent,
    tool,
)
from pregel.graph.agent.middleware import wrap_model_call
from pregel.graph.agent.routing import CORRECTION
from pregel.graph.agent.structured import resolved
from pregel.graph.messages import AIMessage, HumanMessage

THREAD = {"configurable": {"thread_id": "one"}}


class Weather(BaseModel):
    """The weather."""

    city: str
    degrees: int = Field(ge=-90, le=60)


@dataclass
class Day:
    when: date
    kind: Literal["good", "bad"] = "good"


class Place(TypedDict):
    name: str
    country: NotRequired[str]


JSON_SCHEMA = {
    "title": "city info",
    "description": "A city.",
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}


@tool
def look() -> str:
    """Look."""
    return "seen"


def calls(*pairs, **fields):
    """A message of the model that calls tools."""
    return AIMessage(
        "", tool_calls=[{"name": name, "args": args, "id": f"c{n}"} for n, (name, args) in enumerate(pairs)], **fields
    )


GOOD = ("Weather", {"city": "Paris", "degrees": 21})
BAD = ("Weather", {"city": "Paris", "degrees": 99})


def kinds(result):
    """The messages by type, tool messages with their status."""
    return [f"tool {each.status}" if each.type == "tool" else each.type for each in result["messages"]]


# -- by a tool ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "name", "args", "expected"),
    [
        (Weather, *GOOD, Weather(city="Paris", degrees=21)),
        (Day, "Day", {"when": "2024-05-01"}, Day(date(2024, 5, 1))),
        (Place, "Place", {"name": "Rome"}, {"name": "Rome"}),
        (JSON_SCHEMA, "city_info", {"name": "Rome"}, {"name": "Rome"}),
        (Weather | Day, "Day", {"when": "2024-05-01", "kind": "bad"}, Day(date(2024, 5, 1), "bad")),
        ({"oneOf": [JSON_SCHEMA, {"title": "other"}]}, "other", {"x": 1}, {"x": 1}),
    ],
)
@pytest.mark.parametrize("bare", [True, False])
def test_the_answer_is_an_instance_of_the_schema(schema, name, args, expected, bare, door, saver):
    model = ScriptedModel([calls((name, args))])
    agent = create_agent(model, response_format=schema if bare else ToolStrategy(schema), checkpointer=saver)
    result = door.invoke(agent, {"messages": "?"}, THREAD)
    assert result["structured_response"] == expected
    assert kinds(result) == ["human", "ai", "tool success"]
    assert agent.get_state(THREAD).values["structured_response"] == expected
    assert model.calls[0].tool_choice == "any"
    assert name in [tool["name"] for tool in model.calls[0].tools]


def test_the_model_is_told_of_the_form_as_of_a_tool():
    model = ScriptedModel([calls(GOOD)])
    create_agent(model, [look], response_format=ToolStrategy(Weather)).invoke({"messages": "?"})
    _, form = model.calls[0].tools
    assert (form["name"], form["description"]) == ("Weather", "The weather.")
    assert form["parameters"]["properties"]["degrees"]["maximum"] == 60


def test_what_the_conversation_has_of_the_answer_can_be_said():
    strategy = ToolStrategy(Weather, tool_message_content="noted")
    result = create_agent(ScriptedModel([calls(GOOD)]), response_format=strategy).invoke({"messages": "?"})
    assert result["messages"][-1].text == "noted"


@pytest.mark.parametrize(
    "wrong", [calls(BAD), calls(GOOD, GOOD), AIMessage("It is warm."), calls(("Weather", {}))], ids=str
)
@pytest.mark.parametrize("tools", [[], [look]])
def test_an_answer_that_does_not_comply_is_corrected(wrong, tools, door, saver):
    model = ScriptedModel([wrong, calls(GOOD)])
    agent = create_agent(model, tools, response_format=ToolStrategy(Weather), checkpointer=saver)
    result = door.invoke(agent, {"messages": "?"}, THREAD)
    assert result["structured_response"] == Weather(city="Paris", degrees=21)
    told = model.calls[1].messages[2:]
    assert [message.type for message in told] == (["tool"] * len(wrong.tool_calls) or ["human"])
    assert all(message.text.startswith("Error: ") for message in told)
    assert all(message.status == "error" for message in told if message.type == "tool")


def test_the_error_says_what_is_wrong_and_shows_no_more():
    model = ScriptedModel([calls(BAD), calls(GOOD)])
    create_agent(model, response_format=ToolStrategy(Weather)).invoke({"messages": "?"})
    text = model.calls[1].messages[-1].text
    assert "degrees: Input should be less than or equal to 60" in text
    assert "http" not in text


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (calls(BAD), StructuredOutputValidationError),
        (calls(GOOD, GOOD), MultipleStructuredOutputsError),
        (AIMessage("It is warm."), MissingStructuredOutputError),
    ],
    ids=["invalid", "several", "text"],
)
@pytest.mark.parametrize("tools", [[], [look]])
def test_a_quiet_none_is_impossible_a_model_that_never_complies_raises(wrong, error, tools, door):
    model = ScriptedModel([wrong], on_exhausted="repeat")
    agent = create_agent(model, tools, response_format=ToolStrategy(Weather, max_retries=2))
    with pytest.raises(error) as caught:
        door.invoke(agent, {"messages": "?"})
    assert len(model.calls) == 3
    assert caught.value.ai_message.tool_calls == wrong.tool_calls
    assert "told 2 times" in caught.value.__notes__[0]


def test_the_errors_are_of_one_family_and_say_what_they_know():
    error = StructuredOutputValidationError("Weather", ValueError("too hot"))
    assert (error.tool_name, str(error.source)) == ("Weather", "too hot")
    assert isinstance(error, StructuredOutputError)
    assert MultipleStructuredOutputsError(["A", "B"]).tool_names == ["A", "B"]


@pytest.mark.parametrize(
    ("handle", "told"),
    [
        (True, "Error: the model's answer does not fit"),
        ("once more", "once more"),
        (StructuredOutputValidationError, "Error: "),
        (ValueError, "Error: "),
        ((KeyError, ValueError), "Error: "),
        (lambda error: f"no: {type(error).__name__}", "no: StructuredOutputValidationError"),
        (False, None),
        (KeyError, None),
    ],
)
def test_which_errors_the_model_may_correct_can_be_said(handle, told):
    model = ScriptedModel([calls(BAD), calls(GOOD)])
    agent = create_agent(model, response_format=ToolStrategy(Weather, handle_errors=handle))
    if told is None:
        with pytest.raises(StructuredOutputValidationError):
            agent.invoke({"messages": "?"})
        assert len(model.calls) == 1
    else:
        agent.invoke({"messages": "?"})
        assert model.calls[1].messages[-1].text.startswith(told)


def test_a_valid_answer_beside_a_real_call_lets_the_tool_run_and_ends(door, saver):
    model = ScriptedModel([calls(("look", {}), GOOD)])
    agent = create_agent(model, [look], response_format=ToolStrategy(Weather), checkpointer=saver)
    result = door.invoke(agent, {"messages": "?"}, THREAD)
    assert result["structured_response"] == Weather(city="Paris", degrees=21)
    assert kinds(result) == ["human", "ai", "tool success", "tool success"]
    assert len(model.calls) == 1


def test_an_invalid_answer_beside_a_real_call_lets_the_tool_run_and_asks_again(door, saver):
    model = ScriptedModel([calls(("look", {}), BAD), calls(GOOD)])
    agent = create_agent(model, [look], response_format=ToolStrategy(Weather), checkpointer=saver)
    result = door.invoke(agent, {"messages": "?"}, THREAD)
    assert result["structured_response"] == Weather(city="Paris", degrees=21)
    assert kinds(result) == ["human", "ai", "tool error", "tool success", "ai", "tool success"]


def test_real_calls_come_first_and_the_answer_when_the_model_gives_it(door):
    model = ScriptedModel([calls(("look", {})), calls(GOOD)])
    result = door.invoke(create_agent(model, [look], response_format=Weather), {"messages": "?"})
    assert kinds(result) == ["human", "ai", "tool success", "ai", "tool success"]


def test_a_new_run_of_a_thread_may_correct_as_often_again_and_begins_without_an_answer(door, saver):
    strategy = ToolStrategy(Weather, max_retries=1)
    second = ("Weather", {"city": "Rome", "degrees": 30})
    model = ScriptedModel([calls(BAD), calls(GOOD), calls(("look", {})), calls(BAD), calls(second)])
    agent = create_agent(model, [look], response_format=strategy, checkpointer=saver)
    assert door.invoke(agent, {"messages": "Paris?"}, THREAD)["structured_response"].city == "Paris"
    parts = door.stream(agent, {"messages": "Rome?"}, THREAD, stream_mode="values")
    assert [part["structured_response"] and part["structured_response"].city for part in parts] == [
        "Paris",  # the input alone
        None,
        None,
        None,
        "Rome",
    ]


# -- by the provider ---------------------------------------------------------------------------------------------------


def test_the_provider_is_asked_for_the_form_and_the_text_is_parsed(door):
    model = ScriptedModel(['{"city": "Paris", "degrees": 21}'])
    agent = create_agent(model, [look], response_format=ProviderStrategy(Weather, strict=True))
    result = door.invoke(agent, {"messages": "?"})
    assert result["structured_response"] == Weather(city="Paris", degrees=21)
    assert kinds(result) == ["human", "ai"]
    form = model.calls[0].response_format
    assert (form["name"], form["strict"]) == ("Weather", True)
    assert form["schema"]["required"] == ["city", "degrees"]
    assert model.calls[0].tool_choice is None


@pytest.mark.parametrize("wrong", ["It is warm.", '{"city": "Paris"}', '{"city": "Paris", "degrees": 99}', "[]"])
def test_a_provider_s_text_that_does_not_comply_is_corrected(wrong, door):
    model = ScriptedModel([wrong, '{"city": "Paris", "degrees": 21}'])
    result = door.invoke(create_agent(model, response_format=ProviderStrategy(Weather)), {"messages": "?"})
    assert result["structured_response"].degrees == 21
    assert kinds(result) == ["human", "ai", "human", "ai"]
    assert result["messages"][2].name == CORRECTION


def test_a_provider_that_never_complies_raises(door):
    model = ScriptedModel(["no"], on_exhausted="repeat")
    with pytest.raises(StructuredOutputValidationError, match="does not fit Weather"):
        door.invoke(create_agent(model, response_format=ProviderStrategy(Weather, max_retries=1)), {"messages": "?"})
    assert len(model.calls) == 2


def test_calls_of_tools_are_made_before_a_provider_s_text(door):
    model = ScriptedModel([calls(("look", {})), '{"city": "Paris", "degrees": 21}'])
    result = door.invoke(create_agent(model, [look], response_format=ProviderStrategy(Weather)), {"messages": "?"})
    assert kinds(result) == ["human", "ai", "tool success", "ai"]
    assert result["structured_response"].city == "Paris"


def test_auto_asks_the_provider_where_the_model_says_it_can():
    class Able(ScriptedModel):
        profile = {"structured_output": True}  # noqa: RUF012 - as LangChain's models have it

    assert isinstance(resolved(AutoStrategy(Weather), Able([])), ProviderStrategy)
    assert isinstance(resolved(AutoStrategy(Weather | Day), Able([])), ToolStrategy)
    assert isinstance(resolved(Weather, ScriptedModel([])), ToolStrategy)
    assert resolved(None, Able([])) is None
    model = Able(['{"city": "Paris", "degrees": 21}'])
    agent = create_agent(model, response_format=Weather)
    assert agent.invoke({"messages": "?"})["structured_response"].city == "Paris"


def test_langchain_s_models_answer_in_a_form_as_well(door):
    class Model(GenericFakeChatModel):
        def bind_tools(self, tools, *, tool_choice=None, **kwargs):
            assert tool_choice == "any"
            assert tools[0]["function"]["name"] == "Weather"
            return self

    answer = LangChainAIMessage("", tool_calls=[{"name": GOOD[0], "args": GOOD[1], "id": "c1"}])
    agent = create_agent(Model(messages=iter([LangChainAIMessage("warm"), answer])), response_format=Weather)
    result = door.invoke(agent, {"messages": "?"})
    assert result["structured_response"] == Weather(city="Paris", degrees=21)
    assert kinds(result) == ["human", "ai", "human", "ai", "tool success"]


# -- with middleware ---------------------------------------------------------------------------------------------------


def test_wrappers_see_the_answer(door):
    seen = []

    @wrap_model_call
    def looks(request, handler):
        response = handler(request)
        seen.append(response.structured_response)
        return response

    door.invoke(create_agent(ScriptedModel([calls(GOOD)]), middleware=[looks], response_format=Weather), {})
    assert seen == [Weather(city="Paris", degrees=21)]


def test_a_message_that_a_wrapper_makes_is_read_as_the_model_s(door):
    @wrap_model_call
    def rewrites(request, handler):
        message = handler(request).message
        (call,) = message.tool_calls
        return AIMessage("", tool_calls=[{**call, "args": {**call["args"], "degrees": 5}}])

    agent = create_agent(ScriptedModel([calls(GOOD)]), middleware=[rewrites], response_format=Weather)
    result = door.invoke(agent, {"messages": "?"})
    assert result["structured_response"].degrees == 5
    assert kinds(result) == ["human", "ai", "tool success"]


def test_a_wrapper_that_answers_in_words_is_corrected_and_does_not_end_with_none(door):
    from pregel.graph.agent import ModelResponse

    tried = []

    @wrap_model_call
    def answers(request, handler):
        tried.append(1)
        return ModelResponse([AIMessage("warm")]) if len(tried) == 1 else handler(request)

    agent = create_agent(ScriptedModel([calls(GOOD)]), middleware=[answers], response_format=Weather)
    assert door.invoke(agent, {"messages": "?"})["structured_response"].city == "Paris"


def test_a_wrapper_may_ask_for_another_form(door):
    narrows = wrap_model_call(name="narrows")(lambda request, handler: handler(request.override(response_format=Day)))
    model = ScriptedModel([calls(("Day", {"when": "2024-05-01"}))])
    agent = create_agent(model, middleware=[narrows], response_format=Weather | Day)
    assert door.invoke(agent, {"messages": "?"})["structured_response"] == Day(date(2024, 5, 1))
    assert [tool["name"] for tool in model.calls[0].tools] == ["Day"]


def test_a_form_that_only_a_wrapper_asks_for_ends_the_loop(door):
    asks = wrap_model_call(name="asks")(lambda request, handler: handler(request.override(response_format=Place)))
    agent = create_agent(ScriptedModel(["Rome", calls(("Place", {"name": "Rome"}))]), [look], middleware=[asks])
    assert door.invoke(agent, {"messages": "?"})["structured_response"] == {"name": "Rome"}


def test_hooks_run_around_each_try(door):
    seen = []

    class Counts(AgentMiddleware):
        def before_model(self, state):
            seen.append(len(state["messages"]))

        def after_model(self, state):
            seen.append(state.get("structured_response"))

    agent = create_agent(ScriptedModel([calls(BAD), calls(GOOD)]), middleware=[Counts()], response_format=Weather)
    door.invoke(agent, {"messages": "?"})
    assert seen == [1, None, 3, Weather(city="Paris", degrees=21)]


# -- what is no schema -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [3, "Weather", int, Weather(city="", degrees=1)])
def test_what_is_no_schema_is_found_when_the_agent_is_made(wrong):
    with pytest.raises(GraphDefinitionError, match="response_format takes"):
        create_agent(ScriptedModel([]), response_format=wrong)


def test_a_tool_with_the_name_of_the_form_is_found_when_the_agent_is_made():
    with pytest.raises(GraphDefinitionError, match="the tool 'Weather' has the name of the response format"):
        create_agent(ScriptedModel([]), [tool("Weather")(lambda: "")], response_format=Weather)


def test_two_forms_of_one_name_are_an_error():
    with pytest.raises(GraphDefinitionError, match="two forms of response_format have one name"):
        ToolStrategy({"oneOf": [{"type": "object"}, {"type": "object"}]})


def test_a_state_that_declares_another_answer_is_an_error():
    with pytest.raises(SchemaError, match="response_format"):
        create_agent(ScriptedModel([]), response_format=Weather, state_schema=AgentState[Day])


def test_a_state_that_declares_the_same_answer_is_none():
    agent = create_agent(ScriptedModel([calls(GOOD)]), response_format=Weather, state_schema=AgentState[Weather])
    assert agent.invoke({"messages": [HumanMessage("?")]})["structured_response"].city == "Paris"
    assert "Weather" in json.dumps(agent.get_output_jsonschema())
