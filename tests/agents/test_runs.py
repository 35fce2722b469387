"""What a run with a `response_format` may end with: its own answer or an error, and what it was told is counted."""

import pytest
from langchain_core.messages import AIMessage as LangChainAIMessage
from pydantic import BaseModel

from pregel.errors import InvalidUpdateTypeError, PregelError
from pregel.graph.agent import (
    AgentMiddleware,
    MissingStructuredOutputError,
    ModelResponse,
    ProviderStrategy,
    ScriptedModel,
    StructuredOutputError,
    StructuredOutputValidationError,
    ToolStrategy,
    as_tool,
    create_agent,
    hook_config,
    tool,
)
from pregel.graph.agent.middleware import (
    ModelCallLimitMiddleware,
    SummarizationMiddleware,
    ToolCallLimitMiddleware,
    after_model,
    before_agent,
    wrap_model_call,
    wrap_tool_call,
)
from pregel.graph.messages import REMOVE_ALL_MESSAGES, AIMessage, HumanMessage, RemoveMessage, ToolMessage
from pregel.runtime import interrupt
from pregel.types import END, Command

THREAD = {"configurable": {"thread_id": "one"}}


class Weather(BaseModel):
    city: str
    degrees: int


@tool
def look() -> str:
    """Look."""
    return "seen"


@tool(return_direct=True)
def final(n: int) -> str:
    """Give the answer."""
    return f"final {n}"


def calls(*pairs, **fields):
    """A message of the model that calls tools."""
    return AIMessage(
        "", tool_calls=[{"name": name, "args": args, "id": f"c{n}"} for n, (name, args) in enumerate(pairs)], **fields
    )


def broken(name, identity="b1"):
    """A message of the model with a call whose arguments can't be read."""
    return AIMessage("", invalid_tool_calls=[{"name": name, "args": "{", "id": identity, "error": "cut off"}])


GOOD = ("Weather", {"city": "Paris", "degrees": 21})
BAD = ("Weather", {"city": "Paris"})


def kinds(result):
    """The messages by type, tool messages with their status."""
    return [f"tool {each.status}" if each.type == "tool" else each.type for each in result["messages"]]


# -- the answer of an earlier run --------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [{"thread_limit": 1}, {"run_limit": 1, "thread_limit": 1}], ids=["first", "later"])
def test_a_run_that_a_limit_ends_has_no_answer_of_an_earlier_one(limit, door, saver):
    model = ScriptedModel([calls(GOOD)])
    agent = create_agent(
        model, response_format=Weather, middleware=[ModelCallLimitMiddleware(**limit)], checkpointer=saver
    )
    assert door.invoke(agent, {"messages": "Paris?"}, THREAD)["structured_response"].city == "Paris"
    result = door.invoke(agent, {"messages": "Rome?"}, THREAD)
    assert result["structured_response"] is None
    assert "limit of model calls is reached" in result["messages"][-1].text


def test_a_run_whose_first_hook_ends_it_has_no_answer_of_an_earlier_one(door, saver):
    @before_agent(can_jump_to=["end"])
    def guards(state):
        return {"jump_to": "end"} if "Rome" in state["messages"][-1].text else None

    agent = create_agent(ScriptedModel([calls(GOOD)]), response_format=Weather, middleware=[guards], checkpointer=saver)
    door.invoke(agent, {"messages": "Paris?"}, THREAD)
    with pytest.raises(MissingStructuredOutputError, match="before_agent of middleware 'guards' ends the run"):
        door.invoke(agent, {"messages": "Rome?"}, THREAD)


def test_the_answer_of_a_run_stays_while_the_run_goes_on(door, saver):
    seen = []

    @after_model
    def notes(state):
        seen.append(state["structured_response"])

    agent = create_agent(
        ScriptedModel([calls(GOOD, ("look", {}))]),
        [look],
        response_format=Weather,
        middleware=[notes],
        checkpointer=saver,
        interrupt_before=["tools"],
    )
    door.invoke(agent, {"messages": "?"}, THREAD)
    assert door.invoke(agent, None, THREAD)["structured_response"] == seen[0] == Weather(city="Paris", degrees=21)


def test_an_agent_that_is_asked_for_no_form_has_no_fields_for_it():
    plain = create_agent(ScriptedModel(["ok"]))
    formed = create_agent(ScriptedModel(["ok"]), response_format=Weather)
    assert {*formed.specs} - {*plain.specs} == {"agent_run_ongoing", "structured_response_tries"}
    assert {*formed.get_output_jsonschema()["properties"]} == {"messages", "structured_response"}


# -- tools that there are not ------------------------------------------------------------------------------------------


def test_a_call_is_answered_also_where_the_agent_has_no_tools(door, saver):
    model = ScriptedModel([calls(("lok", {})), "I can't."])
    result = door.invoke(create_agent(model, checkpointer=saver), {"messages": "?"}, THREAD)
    assert kinds(result) == ["human", "ai", "tool error", "ai"]
    assert result["messages"][2].text == "There is no tool 'lok'. Tools: none."


def test_a_form_s_name_that_is_misspelt_is_told_and_counts(door):
    model = ScriptedModel([calls(("Wether", {})), calls(GOOD)])
    result = door.invoke(create_agent(model, response_format=Weather), {"messages": "?"})
    assert "Did you mean 'Weather'?" in result["messages"][2].text
    assert result["structured_response"].city == "Paris"
    model = ScriptedModel([calls(("Wether", {}))], on_exhausted="repeat")
    with pytest.raises(MissingStructuredOutputError, match="the model called 'Wether', which there is not"):
        door.invoke(create_agent(model, response_format=Weather), {"messages": "?"})
    assert len(model.calls) == 4


def test_a_call_of_a_tool_that_the_provider_was_told_of_is_the_caller_s():
    model = ScriptedModel([calls(("browse", {}))])
    result = create_agent(model, [{"name": "browse", "description": "", "parameters": {}}]).invoke({"messages": "?"})
    assert kinds(result) == ["human", "ai"]


# -- what wrappers return ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "no message of the model"),
        ([HumanMessage("hm")], "no message of the model"),
        ([AIMessage("a"), AIMessage("b")], "2 messages of the model"),
        (["text"], "which is no message"),
    ],
)
@pytest.mark.parametrize("form", [None, Weather])
def test_a_wrapper_s_response_has_one_message_of_the_model(given, said, form, door):
    odd = wrap_model_call(name="odd")(lambda request, handler: ModelResponse(given))
    with pytest.raises(
        InvalidUpdateTypeError, match=f"wrap_model_call of 'odd' returned a ModelResponse with .*{said}"
    ):
        door.invoke(create_agent(ScriptedModel(["ok"]), middleware=[odd], response_format=form), {"messages": "?"})


def test_what_a_wrapper_adds_beside_its_own_words_does_not_make_them_an_answer(door):
    tried = []

    @wrap_model_call
    def adds(request, handler):
        tried.append(1)
        return ModelResponse([HumanMessage("hm"), AIMessage("warm")]) if len(tried) == 1 else handler(request)

    agent = create_agent(ScriptedModel([calls(GOOD)]), middleware=[adds], response_format=Weather)
    result = door.invoke(agent, {"messages": "?"})
    assert kinds(result) == ["human", "human", "ai", "human", "ai", "tool success"]


def test_calls_in_a_wrapper_s_own_message_get_ids_and_those_that_can_t_be_read_an_answer(door):
    tried = []

    @wrap_model_call
    def makes(request, handler):
        tried.append(1)
        message = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": None}] * 2)
        return [message, ModelResponse([broken("look", None)]), AIMessage("ok")][len(tried) - 1]

    result = door.invoke(create_agent(ScriptedModel([]), [look], middleware=[makes]), {"messages": "?"})
    assert kinds(result) == ["human", "ai", "tool success", "tool success", "ai", "tool error", "ai"]
    ids = [each["id"] for each in result["messages"][1].tool_calls]
    assert [message.tool_call_id for message in result["messages"][2:4]] == ids[:2]
    assert len(set(ids)) == 2
    assert result["messages"][4].invalid_tool_calls[0]["id"] == result["messages"][5].tool_call_id != ""


def test_a_wrapper_that_does_not_await_its_handler_is_told_so(loop):
    @wrap_model_call
    async def forgets(request, handler):
        return handler(request)

    @wrap_tool_call
    async def forgets_too(request, handler):
        return handler(request)

    said = "returned a coroutine in the place of a result: .*`return await handler"
    with pytest.raises(InvalidUpdateTypeError, match=f"wrap_model_call of 'forgets' {said}"):
        loop.invoke(create_agent(ScriptedModel(["ok"]), middleware=[forgets]), {"messages": "?"})
    agent = create_agent(ScriptedModel([calls(("look", {})), "ok"]), [look], middleware=[forgets_too])
    with pytest.raises(InvalidUpdateTypeError, match=f"wrap_tool_call of 'forgets_too' {said}"):
        loop.invoke(agent, {"messages": "?"})


# -- hooks that would end it -------------------------------------------------------------------------------------------


def test_a_hook_that_removes_the_correction_does_not_end_the_run(door):
    @after_model
    def removes(state):
        last = state["messages"][-1]
        return {"messages": [RemoveMessage(id=last.id)]} if last.name == "correction" else None

    agent = create_agent(ScriptedModel(["warm", calls(GOOD)]), middleware=[removes], response_format=Weather)
    assert door.invoke(agent, {"messages": "?"})["structured_response"].city == "Paris"
    model = ScriptedModel(["warm"], on_exhausted="repeat")
    with pytest.raises(MissingStructuredOutputError, match="answered in words"):
        door.invoke(create_agent(model, middleware=[removes], response_format=Weather), {"messages": "?"})
    assert len(model.calls) == 4


HOOKS = ("before_agent", "before_model", "after_model")


def ending(hook, result):
    """A middleware whose hook ends the run."""
    method = hook_config(can_jump_to=["end"])(lambda self, state: result)
    return type("Ends", (AgentMiddleware,), {hook: method})()


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("result", [{"jump_to": "end"}, Command(goto=END)], ids=["jump", "goto"])
def test_a_hook_that_ends_the_run_without_the_answer_is_an_error(hook, result, door):
    agent = create_agent(
        ScriptedModel(["warm"], on_exhausted="repeat"), response_format=Weather, middleware=[ending(hook, result)]
    )
    with pytest.raises(MissingStructuredOutputError, match=f"{hook} of middleware 'Ends' ends the run"):
        door.invoke(agent, {"messages": "?"})
    agent = create_agent(ScriptedModel(["warm"]), middleware=[ending(hook, result)])
    assert "structured_response" not in door.invoke(agent, {"messages": "?"})


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("answer", [None, Weather(city="Rome", degrees=1)], ids=["none", "own"])
def test_a_hook_may_say_what_the_answer_is_or_that_there_is_none(hook, answer, door, saver):
    middleware = ending(hook, {"jump_to": "end", "structured_response": answer})
    agent = create_agent(ScriptedModel(["warm"]), response_format=Weather, middleware=[middleware], checkpointer=saver)
    assert door.invoke(agent, {"messages": "?"}, THREAD)["structured_response"] == answer


def test_a_hook_may_end_the_run_when_the_answer_is_there(door):
    agent = create_agent(
        ScriptedModel([calls(GOOD)]), response_format=Weather, middleware=[ending("after_model", {"jump_to": "end"})]
    )
    assert door.invoke(agent, {"messages": "?"})["structured_response"].city == "Paris"


def test_a_tool_limit_that_ends_the_run_says_that_there_is_no_answer(door):
    limit = ToolCallLimitMiddleware(run_limit=0, exit_behavior="end")
    agent = create_agent(ScriptedModel([calls(("look", {}))]), [look], response_format=Weather, middleware=[limit])
    assert door.invoke(agent, {"messages": "?"})["structured_response"] is None


def test_a_tool_limit_that_ends_the_run_takes_no_answer_away(door):
    limit = ToolCallLimitMiddleware(run_limit=0, exit_behavior="end")
    agent = create_agent(
        ScriptedModel([calls(GOOD, ("look", {}))]), [look], response_format=Weather, middleware=[limit]
    )
    assert door.invoke(agent, {"messages": "?"})["structured_response"].city == "Paris"


@pytest.mark.parametrize("way", [{"update": {"jump_to": "end"}}, {"goto": END}], ids=["jump", "goto"])
def test_a_tool_that_ends_the_run_without_the_answer_is_an_error(way, door):
    def finish() -> Command:
        """Finish."""
        messages = [ToolMessage("done", tool_call_id="c0")]
        return Command(update={**way.get("update", {}), "messages": messages}, goto=way.get("goto", ()))

    agent = create_agent(ScriptedModel([calls(("finish", {}))]), [finish], response_format=Weather)
    with pytest.raises(MissingStructuredOutputError, match="a tool's Command ends the run"):
        door.invoke(agent, {"messages": "?"})


def test_a_direct_tool_s_result_is_the_answer_and_there_is_none_in_the_form(door, saver):
    model = ScriptedModel([calls(GOOD), calls(("final", {"n": 1}))])
    agent = create_agent(model, [final], response_format=Weather, checkpointer=saver)
    door.invoke(agent, {"messages": "?"}, THREAD)
    result = door.invoke(agent, {"messages": "?"}, THREAD)
    assert (result["messages"][-1].text, result["structured_response"]) == ("final 1", None)


# -- how often the model may try ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [calls(BAD), broken("Weather"), AIMessage("warm")], ids=["bad", "broken", "words"])
@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("hooks", ["before_model", "after_model"])
def test_what_the_model_was_told_is_counted_whatever_becomes_of_the_messages(wrong, forgets, hooks, door):
    class Forgets(AgentMiddleware):
        pass

    def hook(self, state):
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("summary")]} if forgets else None

    setattr(Forgets, hooks, hook)
    model = ScriptedModel([wrong], on_exhausted="repeat")
    agent = create_agent(model, [look], response_format=ToolStrategy(Weather, max_retries=2), middleware=[Forgets()])
    with pytest.raises(StructuredOutputError) as caught:
        door.invoke(agent, {"messages": "?"})
    assert len(model.calls) == 3
    assert "told 2 times" in caught.value.__notes__[0]


def test_arguments_of_the_form_that_can_t_be_read_are_told_once(door):
    model = ScriptedModel([broken("Weather"), calls(GOOD)])
    result = door.invoke(create_agent(model, [look], response_format=Weather), {"messages": "?"})
    assert kinds(result) == ["human", "ai", "tool error", "ai", "tool success"]
    assert "the arguments can't be read: cut off" in result["messages"][2].text
    model = ScriptedModel([broken("Weather")])
    strategy = ToolStrategy(Weather, handle_errors=False)
    with pytest.raises(StructuredOutputValidationError, match="cut off"):
        door.invoke(create_agent(model, response_format=strategy), {"messages": "?"})


def test_a_summary_between_two_tries_does_not_begin_the_count_anew(door):
    summary = SummarizationMiddleware(ScriptedModel(["short"], on_exhausted="repeat"), trigger=("messages", 2))
    summary._keep = ("messages", 1)
    model = ScriptedModel(["warm"], on_exhausted="repeat")
    agent = create_agent(model, middleware=[summary], response_format=ToolStrategy(Weather, max_retries=2))
    with pytest.raises(MissingStructuredOutputError):
        door.invoke(agent, {"messages": "?"})
    assert len(model.calls) == 3


def test_tries_are_counted_on_after_a_question_and_anew_in_the_next_run(door, saver):
    @tool
    def ask() -> str:
        """Ask."""
        return interrupt("?")

    wrong, question = calls(BAD), calls(("ask", {}))
    model = ScriptedModel([wrong, question, wrong, calls(GOOD), wrong, wrong, wrong])
    agent = create_agent(model, [ask], response_format=ToolStrategy(Weather, max_retries=2), checkpointer=saver)
    door.invoke(agent, {"messages": "?"}, THREAD)
    assert agent.get_state(THREAD).interrupts
    door.invoke(agent, Command(resume="yes", update={"messages": ["hm"]}), THREAD)
    with pytest.raises(StructuredOutputValidationError):
        door.invoke(agent, {"messages": "again"}, THREAD)
    assert len(model.calls) == 7


def test_tries_are_not_forgotten_by_a_question(door, saver):
    @tool
    def ask() -> str:
        """Ask."""
        return interrupt("?")

    model = ScriptedModel([calls(BAD), calls(("ask", {})), calls(BAD), calls(BAD)])
    agent = create_agent(model, [ask], response_format=ToolStrategy(Weather, max_retries=2), checkpointer=saver)
    door.invoke(agent, {"messages": "?"}, THREAD)
    with pytest.raises(StructuredOutputValidationError):
        door.invoke(agent, Command(resume="yes"), THREAD)
    assert len(model.calls) == 4


def test_tries_are_counted_where_only_a_wrapper_asks_for_a_form(door, saver):
    schema = {"title": "Weather", "type": "object", "required": ["city", "degrees"]}
    form = ToolStrategy(schema, max_retries=1)
    asks = wrap_model_call(name="asks")(lambda request, handler: handler(request.override(response_format=form)))
    model = ScriptedModel([calls(BAD), calls(GOOD), calls(BAD), calls(BAD)])
    hooks = type("Hooks", (AgentMiddleware,), dict.fromkeys(("before_model", "after_model"), lambda self, state: None))
    agent = create_agent(model, [look], middleware=[asks, hooks()], checkpointer=saver)
    assert door.invoke(agent, {"messages": "?"}, THREAD)["structured_response"] == GOOD[1]
    with pytest.raises(StructuredOutputValidationError):
        door.invoke(agent, {"messages": "?"}, THREAD)
    assert len(model.calls) == 4


# -- refusals ----------------------------------------------------------------------------------------------------------

REFUSAL = [{"type": "refusal", "refusal": "I must "}, {"type": "refusal", "refusal": "not say."}]


@pytest.mark.parametrize("strategy", [ProviderStrategy, ToolStrategy])
@pytest.mark.parametrize(
    "answer",
    [
        AIMessage(REFUSAL),
        LangChainAIMessage(REFUSAL),
        LangChainAIMessage("", additional_kwargs={"refusal": "I must not say."}),
    ],
    ids=["own", "langchain", "kwargs"],
)
def test_a_refusal_is_said_and_not_asked_for_again(strategy, answer, door):
    class Refuses:
        calls = 0

        def invoke(self, messages, **options):
            self.calls += 1
            return answer

    model = Refuses()
    with pytest.raises(MissingStructuredOutputError, match=r"the model refused .*'I must not say\.'"):
        door.invoke(create_agent(model, response_format=strategy(Weather)), {"messages": "?"})
    assert model.calls == 1


def test_words_in_the_place_of_json_are_shown():
    model = ScriptedModel(["I can't help with that."], on_exhausted="repeat")
    with pytest.raises(StructuredOutputValidationError, match=r"it is no JSON .*\"I can't help with that\.\""):
        create_agent(model, response_format=ProviderStrategy(Weather)).invoke({"messages": "?"})


# -- forms and agents as tools -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form", [ToolStrategy, ProviderStrategy, lambda form: create_agent(ScriptedModel([]), response_format=form)]
)
def test_an_empty_schema_is_refused(form):
    with pytest.raises(PregelError, match="empty JSON schema"):
        form({})


def test_a_choice_of_no_forms_is_refused():
    with pytest.raises(PregelError, match='the "oneOf" of response_format lists no form'):
        ToolStrategy({"oneOf": []})


def test_a_structured_agent_as_a_tool_tells_the_model_json(door):
    helper = create_agent(ScriptedModel([calls(GOOD)]), response_format=Weather, name="helper")
    model = ScriptedModel([calls(("helper", {"request": "Paris?"})), "warm"])
    result = door.invoke(create_agent(model, [as_tool(helper, description="Help.")]), {"messages": "?"})
    assert result["messages"][2].text == '{"city":"Paris","degrees":21}'
