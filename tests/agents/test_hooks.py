"""Hooks and wrappers of middleware in their forms, and what passes through the wrappers around the model."""

import operator
from typing import Annotated

import pytest
from typing_extensions import TypedDict

from pregel.errors import GraphDefinitionError, InvalidUpdateError, InvalidUpdateTypeError
from pregel.graph.agent import (
    AgentMiddleware,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    ScriptedModel,
    create_agent,
    tool,
)
from pregel.graph.agent.middleware import (
    after_agent,
    after_model,
    before_agent,
    before_model,
    dynamic_prompt,
    modify_model_request,
    wrap_model_call,
    wrap_tool_call,
)
from pregel.graph.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from pregel.runtime import Runtime, interrupt
from pregel.types import Command

THREAD = {"configurable": {"thread_id": "one"}}
HOOKS = ("before_agent", "before_model", "after_model", "after_agent")


class State(TypedDict):
    n: int
    log: Annotated[list[str], operator.add]


def texts(result):
    return [message.text for message in result["messages"]]


def asks(name, **args):
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": "c0"}])


@tool
def look() -> str:
    """Look."""
    return "seen"


def wrapping(name, code, *, form="sync"):
    """A middleware that wraps the model call, in one form or both."""

    def sync(self, request, handler):
        return code(request, handler(request))

    async def awaited(self, request, handler):
        return code(request, await handler(request))

    methods = {"sync": {"wrap_model_call": sync}, "async": {"awrap_model_call": awaited}}
    methods["both"] = {**methods["sync"], **methods["async"]}
    methods["named sync"] = {"wrap_model_call": awaited}
    return type(name, (AgentMiddleware,), methods[form])()


def updating(name, update, *, form="sync"):
    return wrapping(name, lambda request, response: ExtendedModelResponse(response, Command(update=update)), form=form)


# -- forms of hooks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("form", ["sync", "async", "both", "named sync"])
def test_a_hook_runs_in_every_way_whatever_its_form(hook, form, door):
    def sync(self, state, runtime):
        return {"log": [f"sync {runtime.node}"]}

    async def awaited(self, state, runtime):
        return {"log": [f"async {runtime.node}"]}

    methods = {
        "sync": {hook: sync},
        "async": {f"a{hook}": awaited},
        "both": {hook: sync, f"a{hook}": awaited},
        "named sync": {hook: awaited},
    }[form]
    agent = create_agent(
        ScriptedModel(["ok"]), middleware=[type("M", (AgentMiddleware,), methods)()], state_schema=State
    )
    (line,) = door.invoke(agent, {"messages": "hi"})["log"]
    ran = {"sync": "sync", "async": "async", "named sync": "async"}.get(form)
    assert line == f"{ran or ('async' if door.way == 'asyncio' else 'sync')} M.{hook}"


def test_a_hook_may_take_less_and_other_than_state_and_runtime(door):
    seen = []

    class M(AgentMiddleware):
        def before_agent(self, state):
            seen.append("state")

        def before_model(self, state, config, writer):
            writer("part")
            seen.append(config["tags"])

        async def aafter_model(self, state, run: Runtime):
            seen.append(run.node)

        def after_agent(self, state, store=None):
            seen.append(store)

    agent = create_agent(ScriptedModel(["ok"]), middleware=[M()])
    parts = door.stream(agent, {"messages": "hi"}, {"tags": ["mine"]}, stream_mode="custom")
    assert parts == ["part"]
    assert seen == ["state", ["mine"], "M.after_model", None]


def test_a_hook_with_a_parameter_that_nothing_fills_is_found_when_the_agent_is_made():
    class M(AgentMiddleware):
        def before_model(self, state, runtme):
            """Do nothing."""

    with pytest.raises(GraphDefinitionError, match=r"before_model of middleware 'M'.*Did you mean 'runtime'"):
        create_agent(ScriptedModel(["ok"]), middleware=[M()])


def test_a_hook_may_ask(door, saver):
    @after_model
    def approve(state):
        return {"log": [interrupt("good?")]}

    agent = create_agent(ScriptedModel(["ok"]), middleware=[approve], state_schema=State, checkpointer=saver)
    assert door.invoke(agent, {"messages": "hi"}, THREAD)["__interrupt__"][0].value == "good?"
    assert door.invoke(agent, Command(resume="yes"), THREAD)["log"] == ["yes"]


# -- decorators --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decorator", [before_agent, before_model, after_model, after_agent])
@pytest.mark.parametrize("form", ["sync", "async"])
def test_a_function_becomes_a_middleware_of_one_hook(decorator, form, door):
    if form == "sync":

        @decorator
        def noted(state, runtime):
            """Note it."""
            return {"log": [runtime.node]}
    else:

        @decorator
        async def noted(state, runtime):
            """Note it."""
            return {"log": [runtime.node]}

    assert (noted.name, noted.__doc__) == ("noted", "Note it.")
    agent = create_agent(ScriptedModel(["ok"]), middleware=[noted], state_schema=State)
    assert door.invoke(agent, {"messages": "hi"})["log"] == [f"noted.{decorator.__name__}"]


def test_a_decorator_takes_what_a_middleware_has(door):
    @before_model(can_jump_to=["end"], state_schema=State, tools=[look], name="limits")
    def limit(state):
        return {"jump_to": "end", "n": 1} if len(state["messages"]) > 2 else None

    agent = create_agent(ScriptedModel([asks("look")]), middleware=[limit])
    result = door.invoke(agent, {"messages": "hi"})
    assert (texts(result), result["n"]) == (["hi", "", "seen"], 1)
    assert "limits.before_model" in agent.get_graph()


def test_two_middlewares_of_one_function_do_not_share_their_jumps():
    def plain(state):
        return {"jump_to": "end"}

    jumps, other = before_model(can_jump_to=["end"], name="one")(plain), before_model(name="two")(plain)
    assert create_agent(ScriptedModel([]), middleware=[jumps]).invoke({"messages": "hi"})
    with pytest.raises(InvalidUpdateError, match="does not declare"):
        create_agent(ScriptedModel([]), middleware=[other]).invoke({"messages": "hi"})


@pytest.mark.parametrize("form", ["sync", "async"])
def test_functions_wrap_the_calls_of_model_and_tools(form, door):
    if form == "sync":

        @wrap_model_call
        def loud(request, handler):
            response = handler(request)
            return AIMessage(response.message.text.upper(), tool_calls=response.message.tool_calls)

        @wrap_tool_call(name="quotes")
        def quoted(request, handler):
            return ToolMessage(f"'{handler(request).text}'", tool_call_id=request.tool_call["id"])
    else:

        @wrap_model_call
        async def loud(request, handler):
            response = await handler(request)
            return AIMessage(response.message.text.upper(), tool_calls=response.message.tool_calls)

        @wrap_tool_call(name="quotes")
        async def quoted(request, handler):
            return ToolMessage(f"'{(await handler(request)).text}'", tool_call_id=request.tool_call["id"])

    assert quoted.name == "quotes"
    agent = create_agent(ScriptedModel([asks("look"), "ok"]), [look], middleware=[loud, quoted])
    assert texts(door.invoke(agent, {"messages": "hi"})) == ["hi", "", "'seen'", "OK"]


@pytest.mark.parametrize("form", ["text", "message", "async"])
def test_a_prompt_is_made_for_each_call(form, door):
    def made(request):
        text = f"you have heard {len(request.messages)}"
        return SystemMessage(text) if form == "message" else text

    async def awaited(request):
        return made(request)

    model = ScriptedModel([asks("look"), "ok"])
    agent = create_agent(model, [look], middleware=[dynamic_prompt(awaited if form == "async" else made)])
    door.invoke(agent, {"messages": "hi"})
    assert [call.messages[0].text for call in model.calls] == ["you have heard 1", "you have heard 3"]


@pytest.mark.parametrize("form", ["sync", "async"])
def test_a_request_is_changed_for_each_call(form, door):
    def changed(request):
        return request.override(messages=request.messages[-1:], model_settings={"temperature": 0}, tool_choice="none")

    async def awaited(request):
        return changed(request)

    model = ScriptedModel([asks("look"), "ok"])
    middleware = modify_model_request(awaited if form == "async" else changed)
    result = door.invoke(create_agent(model, [look], middleware=[middleware]), {"messages": ["one", "two"]})
    assert [[message.type for message in call.messages] for call in model.calls] == [["human"], ["tool"]]
    assert model.calls[0].settings == {"temperature": 0}
    assert model.calls[0].tool_choice == "none"
    assert texts(result) == ["one", "two", "", "seen", "ok"]


def test_what_a_function_makes_of_a_request_is_a_request():
    @modify_model_request
    def forgets(request):
        """Forget to return."""

    with pytest.raises(GraphDefinitionError, match=r"forgets returned None.*it returns a ModelRequest"):
        create_agent(ScriptedModel(["ok"]), middleware=[forgets]).invoke({"messages": "hi"})


def test_what_is_no_function_can_not_be_decorated():
    with pytest.raises(GraphDefinitionError, match="before_model decorates a function, not 3"):
        before_model(3)


# -- wrappers around the model -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("outer", ["sync", "async", "both", "named sync"])
@pytest.mark.parametrize("inner", ["sync", "async", "both"])
def test_wrappers_of_all_forms_stand_around_one_call(outer, inner, door):
    def marked(mark):
        return lambda request, response: AIMessage(f"{mark}({response.message.text})")

    agent = create_agent(
        ScriptedModel(["ok"]),
        middleware=[wrapping("Outer", marked("o"), form=outer), wrapping("Inner", marked("i"), form=inner)],
    )
    assert texts(door.invoke(agent, {"messages": "hi"})) == ["hi", "o(i(ok))"]


def test_a_sync_wrapper_around_an_async_one_may_ask_on_every_loop(door, saver):
    @wrap_model_call
    def approves(request, handler):
        response = handler(request)
        return AIMessage(f"{response.message.text} {interrupt('good?')}")

    inner = wrapping("Inner", lambda request, response: response, form="async")
    agent = create_agent(ScriptedModel(["ok"], on_exhausted="repeat"), middleware=[approves, inner], checkpointer=saver)
    assert door.invoke(agent, {"messages": "hi"}, THREAD)["__interrupt__"][0].value == "good?"
    assert texts(door.invoke(agent, Command(resume="yes"), THREAD)) == ["hi", "ok yes"]


def test_many_agents_with_sync_wrappers_on_one_loop_do_not_wait_for_each_other_s_threads(loop):
    import anyio

    passes = wrap_model_call(name="passes")(lambda request, handler: handler(request))
    inner = wrapping("Inner", lambda request, response: response, form="async")
    together = anyio.Event()
    arrived = []

    class Model:
        async def ainvoke(self, messages, **options):
            arrived.append(1)
            if len(arrived) == 60:  # more than there are threads in anyio's default pool
                together.set()
            await together.wait()
            return AIMessage("ok")

    agent = create_agent(Model(), middleware=[passes, inner])

    async def main():
        async with anyio.create_task_group() as group:
            for _ in range(60):
                group.start_soon(agent.ainvoke, {"messages": "hi"})

    loop.run(main)
    assert len(arrived) == 60


def test_a_wrapper_may_call_its_handler_again_or_not_at_all(door):
    @wrap_model_call
    def retries(request, handler):
        try:
            return handler(request)
        except ValueError:
            return handler(request.override(system_prompt="again"))

    model = ScriptedModel([ValueError("down"), "ok"])
    assert texts(door.invoke(create_agent(model, middleware=[retries]), {"messages": "hi"})) == ["hi", "ok"]
    assert [call.messages[0].type for call in model.calls] == ["human", "system"]

    @wrap_model_call
    def answers(request, handler):
        return ModelResponse([AIMessage("known")])

    assert texts(door.invoke(create_agent(ScriptedModel([]), middleware=[answers]), {"messages": "hi"})) == [
        "hi",
        "known",
    ]


def test_the_messages_of_a_request_are_a_copy(door):
    @wrap_model_call
    def adds(request, handler):
        request.messages.append(HumanMessage("for the model alone"))
        request.tools.clear()
        return handler(request)

    model = ScriptedModel(["ok", "ok"])
    agent = create_agent(model, [look], middleware=[adds])
    assert texts(door.invoke(agent, {"messages": "hi"})) == ["hi", "ok"]
    assert [message.text for message in model.calls[0].messages] == ["hi", "for the model alone"]
    door.invoke(agent, {"messages": "hi"})
    assert len(model.calls[1].messages) == 2


def test_another_model_may_answer(door):
    other = ScriptedModel(["other"])
    swaps = wrap_model_call(name="swaps")(lambda request, handler: handler(request.override(model=other)))
    assert texts(door.invoke(create_agent(ScriptedModel([]), middleware=[swaps]), {"messages": "hi"})) == [
        "hi",
        "other",
    ]


@pytest.mark.parametrize("form", ["sync", "async"])
def test_the_commands_of_wrappers_update_the_state_and_the_outer_wins(form, door):
    agent = create_agent(
        ScriptedModel(["ok"]),
        middleware=[
            updating("Outer", {"n": 1, "log": ["outer"]}, form=form),
            updating("Inner", [("n", 2), ("log", ["inner"])], form=form),
        ],
        state_schema=State,
    )
    result = door.invoke(agent, {"messages": "hi"})
    assert (result["n"], result["log"], texts(result)) == (1, ["inner", "outer"], ["hi", "ok"])


def test_messages_of_a_command_come_behind_the_model_s(door):
    agent = create_agent(ScriptedModel(["ok"]), middleware=[updating("W", {"messages": [HumanMessage("noted")]})])
    assert texts(door.invoke(agent, {"messages": "hi"})) == ["hi", "ok", "noted"]


@pytest.mark.parametrize("form", ["sync", "async"])
def test_what_an_earlier_call_of_a_handler_updated_is_dropped(form, door):
    calls = []

    def counted(request, response):
        calls.append(1)
        return ExtendedModelResponse(response, Command(update={"log": [f"call {len(calls)}"]}))

    if form == "sync":

        @wrap_model_call
        def twice(request, handler):
            handler(request)
            return handler(request)
    else:

        @wrap_model_call
        async def twice(request, handler):
            await handler(request)
            return await handler(request)

    agent = create_agent(
        ScriptedModel(["one", "two"]), middleware=[twice, wrapping("Inner", counted, form=form)], state_schema=State
    )
    result = door.invoke(agent, {"messages": "hi"})
    assert (texts(result), result["log"]) == (["hi", "two"], ["call 2"])


def test_what_a_failed_second_call_leaves_is_nothing(door):
    @wrap_model_call
    def falls_back(request, handler):
        handler(request)
        try:
            return handler(request)
        except ValueError:
            return AIMessage("fallen back")

    agent = create_agent(
        ScriptedModel(["one", ValueError("down")]),
        middleware=[falls_back, updating("Inner", {"log": ["inner"]})],
        state_schema=State,
    )
    result = door.invoke(agent, {"messages": "hi"})
    assert (texts(result), result["log"]) == (["hi", "fallen back"], [])


@pytest.mark.parametrize("command", [Command(goto="model"), Command(graph=Command.PARENT), Command(resume=1)])
def test_a_wrapper_s_command_can_not_steer(command, door):
    steers = wrapping("Steers", lambda request, response: ExtendedModelResponse(response, command))
    with pytest.raises(InvalidUpdateError, match="wrap_model_call of 'Steers' returned a command that steers"):
        door.invoke(create_agent(ScriptedModel(["ok"]), middleware=[steers]), {"messages": "hi"})


def test_an_unknown_field_in_a_command_is_an_error():
    agent = create_agent(ScriptedModel(["ok"]), middleware=[updating("W", {"messagse": []})])
    with pytest.raises(InvalidUpdateError, match="Did you mean 'messages'"):
        agent.invoke({"messages": "hi"})


@pytest.mark.parametrize("wrong", [None, "text", {"messages": []}, HumanMessage("hi")])
def test_what_a_wrapper_returns_must_be_an_answer(wrong):
    with pytest.raises(InvalidUpdateTypeError, match=r"wrap_model_call of 'W' returned .*it returns a ModelResponse"):
        create_agent(ScriptedModel(["ok"]), middleware=[wrapping("W", lambda request, response: wrong)]).invoke({})


def test_what_a_wrapper_hands_on_must_be_a_request(door):
    hands = wrap_model_call(name="hands")(lambda request, handler: handler(request.messages))
    with pytest.raises(InvalidUpdateTypeError, match="called its handler with"):
        door.invoke(create_agent(ScriptedModel(["ok"]), middleware=[hands]), {"messages": "hi"})


def test_a_tool_that_nothing_would_run_is_an_error_where_it_is_added():
    @wrap_model_call
    def adds(request, handler):
        return handler(request.override(tools=[*request.tools, look]))

    with pytest.raises(GraphDefinitionError, match="added the tool 'look', which the agent does not have"):
        create_agent(ScriptedModel(["ok"]), middleware=[adds]).invoke({"messages": "hi"})


def test_a_tool_that_a_wrapper_of_tool_calls_runs_may_be_added(door):
    class Adds(AgentMiddleware):
        def wrap_model_call(self, request, handler):
            return handler(request.override(tools=[*request.tools, look]))

        def wrap_tool_call(self, request, handler):
            return handler(request.override(tool=look))

    agent = create_agent(ScriptedModel([asks("look"), "ok"]), middleware=[Adds()])
    assert texts(door.invoke(agent, {"messages": "hi"})) == ["hi", "", "seen", "ok"]


def test_the_tokens_of_the_model_are_told_while_it_speaks(door):
    agent = create_agent(ScriptedModel(["one two three"]), middleware=[wrapping("W", lambda request, made: made)])
    parts = door.stream(agent, {"messages": "hi"}, stream_mode="messages")
    assert "".join(piece.text for piece, _ in parts) == "one two three"
    assert len(parts) >= 3


def test_a_coroutine_function_under_the_sync_form_s_name_wraps_tool_calls_as_well(door):
    class Quotes(AgentMiddleware):
        async def wrap_tool_call(self, request, handler):
            return ToolMessage(f"'{(await handler(request)).text}'", tool_call_id=request.tool_call["id"])

    agent = create_agent(ScriptedModel([asks("look"), "ok"]), [look], middleware=[Quotes()])
    assert texts(door.invoke(agent, {"messages": "hi"})) == ["hi", "", "'seen'", "ok"]


def test_a_request_is_overridden_part_by_part():
    request = ModelRequest(model=None, messages=[])
    assert request.system_prompt is None
    told = request.override(system_prompt="be brief", tool_choice="any")
    assert (told.system_prompt, told.system_message, told.tool_choice) == ("be brief", SystemMessage("be brief"), "any")
    assert told.override(system_prompt=None).system_message is None
    assert request.system_message is None
    with pytest.raises(TypeError, match="mesages"):
        request.override(mesages=[])


def test_a_run_with_a_sync_wrapper_on_a_loop_can_be_cancelled(loop):
    import anyio

    ended = []

    class Model:
        async def ainvoke(self, messages, **options):
            started.set()
            try:
                await anyio.sleep_forever()
            finally:
                ended.append("model")

    passes = wrap_model_call(name="passes")(lambda request, handler: handler(request))
    agent = create_agent(Model(), middleware=[passes])

    async def main():
        nonlocal started
        started = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(agent.ainvoke, {"messages": "hi"})
            await started.wait()
            group.cancel_scope.cancel()
        ended.append("run")

    started = None
    loop.run(main)
    assert ended == ["model", "run"]
