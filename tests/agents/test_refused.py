"""What is given wrong is refused when it is given, with a word on what to give."""

import pytest
from langchain_core.messages import SystemMessage as LangChainSystemMessage

from pregel.errors import GraphDefinitionError
from pregel.graph.agent.create import create_agent
from pregel.graph.agent.handoff import handoff_tool
from pregel.graph.agent.middleware import (
    AgentMiddleware,
    ClearToolUsesEdit,
    HumanInTheLoopMiddleware,
    LLMToolSelectorMiddleware,
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
    ToolCallLimitMiddleware,
    before_model,
)
from pregel.graph.agent.models import OpenAIChat, ScriptedModel
from pregel.graph.agent.requests import ModelRequest

MODEL = ScriptedModel(["ok"], on_exhausted="repeat")


def agent(**options):
    return create_agent(MODEL, **options)


ARGUMENTS = {
    "model=None": (lambda: create_agent(None), "create_agent is given None (NoneType) as its model: give a chat model"),
    "model's class": (lambda: create_agent(ScriptedModel), "give a chat model (an object, not its class)"),
    "model=3": (lambda: create_agent(3), 'or a name such as "openai:gpt-5"'),
    "tools=len": (lambda: agent(tools=len), "tools takes a list, not <built-in function len> "),
    "tools='add'": (lambda: agent(tools="add"), "tools takes a list, not 'add' (str) itself: tools=[...]"),
    "tools={...}": (lambda: agent(tools={"name": "f"}), "tools takes a list, not {'name': 'f'} (dict) itself"),
    "middleware=None": (lambda: agent(middleware=None), "middleware takes a list, not None (NoneType) itself"),
    "middleware=[None]": (lambda: agent(middleware=[None]), "middleware[0] is None (NoneType), which is no AgentMid"),
    "middleware=[class]": (
        lambda: agent(middleware=[AgentMiddleware(), PIIMiddleware]),
        "middleware[1] is the class PIIMiddleware: give an object, PIIMiddleware(...)",
    ),
    "middleware=[function]": (lambda: agent(middleware=[agent]), "decorate a function, such as by @before_model"),
    "name=3": (lambda: agent(name=3), "create_agent(name=3 (int)): a name is a text"),
    "system_prompt=3": (lambda: agent(system_prompt=3), "a prompt is a text or a SystemMessage"),
    "no name": (
        lambda: agent(tools=[{"description": "d", "parameters": {}}]),
        'has no "name": give a dict with "name"',
    ),
    "no name inside": (lambda: agent(tools=[{"type": "function", "function": {}}]), 'has no "name": give a dict'),
    "no function": (lambda: agent(tools=[{"type": "function", "function": "f"}]), 'has no "name": give a dict'),
    "handoff_tool(None)": (lambda: handoff_tool(None), "handoff_tool(None) hands over to nobody: give the name"),
    "handoff_tool('')": (lambda: handoff_tool(""), "handoff_tool('') hands over to nobody: give the name"),
    "a part as a setting": (
        lambda: ModelRequest(MODEL, []).override(model_settings={"tools": []}),
        "model_settings has 'tools', which is a part of the request by itself: request.override(tools=...)",
    ),
    "fallback to None": (lambda: ModelFallbackMiddleware(None), "ModelFallbackMiddleware is given None (NoneType)"),
    "summary by None": (lambda: SummarizationMiddleware(None), "SummarizationMiddleware is given None (NoneType) as"),
    "selection by 3": (lambda: LLMToolSelectorMiddleware(model=3), "LLMToolSelectorMiddleware is given 3 (int) as"),
    "temprature": (
        lambda: OpenAIChat("m", api_key="k", temprature=1),
        "Did you mean 'temperature'? What only another server knows goes into extra_body={'temprature': ...}",
    ),
    "stream": (lambda: OpenAIChat("m", api_key="k", stream=True), "OpenAIChat has no setting 'stream', which each"),
    "temprature of a call": (lambda: OpenAIChat("m", api_key="k").invoke("hi", temprature=1), "Did you mean 'temper"),
}

OPTIONS = {
    "interrupt_on=[...]": (lambda: HumanInTheLoopMiddleware(["f"]), "(interrupt_on=['f']) asks about no tool: give a"),
    "interrupt_on={}": (lambda: HumanInTheLoopMiddleware({}), "asks about no tool: give a dict by the names of tools"),
    "decisions as a text": (
        lambda: HumanInTheLoopMiddleware({"f": {"allowed_decisions": "approve"}}),
        "has 'allowed_decisions': 'approve': give a list, such as ['approve', 'reject']",
    ),
    "decisions=None": (lambda: HumanInTheLoopMiddleware({"f": {"allowed_decisions": None}}), "give a list, such as"),
    "run_limit='3'": (
        lambda: ModelCallLimitMiddleware(run_limit="3"),
        "ModelCallLimitMiddleware(run_limit='3'): it must be a whole number, 0 or more, or None",
    ),
    "run_limit=True": (lambda: ToolCallLimitMiddleware(run_limit=True), "(run_limit=True): it must be a whole number"),
    "tool_name=3": (lambda: ToolCallLimitMiddleware(tool_name=3, run_limit=1), "(tool_name=3): give the name of a"),
    "keep=-1": (lambda: ClearToolUsesEdit(keep=-1), "ClearToolUsesEdit(keep=-1): it must be a whole number, 0 or more"),
    "trigger=-1": (lambda: ClearToolUsesEdit(trigger=-1), "ClearToolUsesEdit(trigger=-1): it must be a whole number"),
    "clear_at_least": (lambda: ClearToolUsesEdit(clear_at_least=None), "(clear_at_least=None): it must be a whole"),
    "exclude_tools='f'": (
        lambda: ClearToolUsesEdit(exclude_tools="f"),
        "(exclude_tools='f'): give a list of the names",
    ),
    "always_include='abc'": (
        lambda: LLMToolSelectorMiddleware(always_include="abc"),
        "LLMToolSelectorMiddleware(always_include='abc'): give a list of the names of tools",
    ),
    "always_include=[len]": (lambda: LLMToolSelectorMiddleware(always_include=[len]), "give a list of the names of"),
    "max_tools='2'": (
        lambda: LLMToolSelectorMiddleware(max_tools="2"),
        "(max_tools='2'): it must be a whole number, 1",
    ),
    "max_retries='2'": (lambda: ModelRetryMiddleware(max_retries="2"), "(max_retries='2'): it must be a whole number"),
    "max_retries=1.5": (lambda: ModelRetryMiddleware(max_retries=1.5), "(max_retries=1.5): it must be a whole number"),
    "max_delay='1'": (lambda: ModelRetryMiddleware(max_delay="1"), "(max_delay='1'): it must be a number, 0 or more"),
    "max_delay=nan": (lambda: ModelRetryMiddleware(max_delay=float("nan")), "it must be a number, 0 or more"),
    "trim_tokens=0": (
        lambda: SummarizationMiddleware(MODEL, trim_tokens_to_summarize=0),
        "SummarizationMiddleware(trim_tokens_to_summarize=0): it must be a whole number, 1 or more, or None",
    ),
    "looks at nothing": (lambda: PIIMiddleware("email", apply_to_input=False), "looks at nothing: set apply_to_input"),
}


@pytest.mark.parametrize(("make", "says"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_an_argument_that_can_mean_nothing_is_refused(make, says):
    with pytest.raises(GraphDefinitionError) as caught:
        make()
    assert says in str(caught.value)


@pytest.mark.parametrize(("make", "says"), OPTIONS.values(), ids=OPTIONS)
def test_an_option_of_middleware_that_can_mean_nothing_is_refused(make, says):
    with pytest.raises(ValueError) as caught:
        make()
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("method", "meant"),
    [
        ("before_modle", "before_model"),
        ("beforeModel", "before_model"),
        ("abefor_model", "abefore_model"),
        ("wrap_tool_calls", "wrap_tool_call"),
        ("awrap_modelcall", "awrap_model_call"),
        ("after_agnet", "after_agent"),
    ],
)
def test_a_misspelt_hook_is_refused_with_the_hook_that_is_meant(method, meant):
    misspelt = type("Mine", (AgentMiddleware,), {method: lambda self, state, runtime: None})
    with pytest.raises(GraphDefinitionError, match=f"'Mine' has a method '{method}', .* Did you mean '{meant}'?"):
        agent(middleware=[misspelt()])


@pytest.mark.parametrize(
    "method",
    [
        "on_before_model",
        "before_model_hook",
        "before_tool",
        "after_node",
        "call_model",
        "wrap",
        "_before_modle",
        "model",
    ],
)
def test_other_methods_of_middleware_may_be_named_as_one_likes(method):
    mine = type("Mine", (AgentMiddleware,), {method: lambda self: None})
    agent(middleware=[mine()])


def test_a_field_of_middleware_may_be_named_as_one_likes():
    agent(middleware=[type("Mine", (AgentMiddleware,), {"before_models": ()})()])


def test_what_is_no_list_but_lists_something_is_taken(door):
    @before_model
    def hook(state):
        return None

    def add(a: int) -> int:
        """Add."""
        return a

    graph = create_agent(MODEL, iter((add,)), middleware=(hook,), system_prompt=LangChainSystemMessage("Be kind."))
    assert door.invoke(graph, {"messages": "hi"})["messages"][0].text == "hi"
    create_agent(MODEL, None, middleware={"hook": hook}.values())


def test_settings_that_the_client_knows_are_taken():
    model = OpenAIChat(
        "m", api_key="k", temperature=1, top_p=0.5, extra_body={"top_k": 3}, response_format={"type": "x"}
    )
    assert model.settings["temperature"] == 1
