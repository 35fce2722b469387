"""Where an agent's run goes: the order of its nodes, and the jumps of its hooks."""

import pytest
from typing_extensions import TypedDict

from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import GraphDefinitionError, InvalidUpdateError
from pregel.graph.agent import AgentMiddleware, ScriptedModel, create_agent, hook_config, tool
from pregel.graph.agent.layout import Layout
from pregel.graph.agent.routing import CORRECTION, Router, updated
from pregel.graph.agent.turns import pending_calls
from pregel.graph.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from pregel.types import Command, Overwrite, Send

THREAD = {"configurable": {"thread_id": "one"}}
HOOKS = ("before_agent", "before_model", "after_model", "after_agent")


def asks(*names):
    """A message of the model that calls tools."""
    return AIMessage("", tool_calls=[{"name": name, "args": {}, "id": f"c{n}"} for n, name in enumerate(names)])


def answers(n):
    return ToolMessage("result", tool_call_id=f"c{n}")


@tool
def look() -> str:
    """Look."""
    return "seen"


@tool(return_direct=True)
def final() -> str:
    """Give the answer."""
    return "42"


class Traced(AgentMiddleware):
    """Notes when its hooks and wrappers run."""

    def __init__(self, name, trace, results=None):
        self.called, self.trace, self.results = name, trace, results or {}

    @property
    def name(self):
        return self.called

    def note(self, hook):
        self.trace.append(f"{self.called}.{hook}")
        return self.results.get(hook)

    def before_agent(self, state, runtime):
        return self.note("before_agent")

    def before_model(self, state, runtime):
        return self.note("before_model")

    def after_model(self, state, runtime):
        return self.note("after_model")

    def after_agent(self, state, runtime):
        return self.note("after_agent")

    def wrap_model_call(self, request, handler):
        self.trace.append(f"{self.called}>model")
        response = handler(request)
        self.trace.append(f"model>{self.called}")
        return response

    def wrap_tool_call(self, request, handler):
        self.trace.append(f"{self.called}>tool")
        response = handler(request)
        self.trace.append(f"tool>{self.called}")
        return response


def jumping(hook, result, allowed=None, *, name="Jumps", tools=()):
    """A middleware with one hook that returns one thing."""

    def run(self, state):
        return result(state) if callable(result) else result

    code = run if allowed is None else hook_config(can_jump_to=allowed)(run)
    return type(name, (AgentMiddleware,), {hook: code, "tools": tools})()


# -- order -------------------------------------------------------------------------------------------------------------


def test_hooks_and_wrappers_run_in_the_order_of_an_onion(door):
    trace = []
    agent = create_agent(
        ScriptedModel([asks("look"), "done"]), [look], middleware=[Traced("A", trace), Traced("B", trace)]
    )
    door.invoke(agent, {"messages": "hi"})
    loop = ["A.before_model", "B.before_model", "A>model", "B>model", "model>B", "model>A"]
    loop += ["B.after_model", "A.after_model"]
    assert trace == [
        *["A.before_agent", "B.before_agent"],
        *loop,
        *["A>tool", "B>tool", "tool>B", "tool>A"],
        *loop,
        *["B.after_agent", "A.after_agent"],
    ]


def test_each_hook_is_a_node_and_a_superstep_of_its_own():
    agent = create_agent(ScriptedModel(["ok"]), middleware=[Traced("A", []), Traced("B", [])])
    parts = agent.stream({"messages": "hi"}, stream_mode="tasks")
    assert [part["name"] for part in parts if "input" in part] == [
        *["A.before_agent", "B.before_agent", "A.before_model", "B.before_model", "model"],
        *["B.after_model", "A.after_model", "B.after_agent", "A.after_agent"],
    ]


def test_a_middleware_of_wrappers_alone_has_no_node():
    wraps = type("Wraps", (AgentMiddleware,), {"wrap_model_call": lambda self, request, handler: handler(request)})()
    assert set(create_agent(ScriptedModel(["ok"]), middleware=[wraps]).get_graph()) == {"__start__", "model", "__end__"}


def test_a_wrapper_of_tool_calls_is_enough_for_a_node_of_tools(door):
    def answer(self, request, handler):
        assert request.tool is None
        return ToolMessage("by hand", tool_call_id=request.tool_call["id"])

    wraps = type("Wraps", (AgentMiddleware,), {"wrap_tool_call": answer})()
    result = door.invoke(create_agent(ScriptedModel([asks("x"), "ok"]), middleware=[wraps]), {"messages": "hi"})
    assert [message.text for message in result["messages"]] == ["hi", "", "by hand", "ok"]


def test_the_layout_says_what_leads_where():
    layout = Layout([Traced("A", []), Traced("B", [])], has_tools=True)
    assert layout.entry == "A.before_agent"
    assert layout.after_model == "B.after_model"
    assert (layout.router.loop, layout.router.exit) == ("A.before_model", "B.after_agent")
    assert {name: hook.following for name, hook in layout.hooks().items()} == {
        "A.before_agent": "B.before_agent",
        "B.before_agent": "A.before_model",
        "A.before_model": "B.before_model",
        "B.before_model": "model",
        "B.after_model": "A.after_model",
        "A.after_model": None,
        "B.after_agent": "A.after_agent",
        "A.after_agent": "__end__",
    }
    assert layout.hooks()["A.after_model"].destinations == ("tools", "A.before_model", "B.after_agent")


# -- what the conversation says ----------------------------------------------------------------------------------------

ROUTER = Router("loop", "exit", "tools", frozenset({"direct"}))


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], ["exit"]),
        ([HumanMessage("hi")], ["exit"]),
        ([AIMessage("ok")], ["exit"]),
        ([AIMessage("ok"), HumanMessage("and?")], ["exit"]),
        ([AIMessage("ok"), HumanMessage("again", name=CORRECTION)], ["loop"]),
        ([asks("a"), answers(0)], ["loop"]),
        ([asks("a"), answers(0), AIMessage("ok")], ["exit"]),
    ],
)
def test_what_follows_a_model_without_calls_that_wait(messages, expected):
    assert ROUTER.after_model(messages, None) == expected


@pytest.mark.parametrize(
    ("messages", "answer", "expected"),
    [
        ([asks("a", "b")], None, [("c0", False), ("c1", False)]),
        ([asks("a", "b"), answers(0)], None, [("c1", False)]),
        ([asks("direct", "direct")], None, [("c0", True), ("c1", True)]),
        ([asks("direct", "a")], None, [("c0", False), ("c1", False)]),
        ([asks("direct", "a"), answers(1)], None, [("c0", True)]),
        ([asks("a", "b"), answers(1)], {"x": 1}, [("c0", True)]),
    ],
)
def test_calls_are_sent_with_whether_the_turn_ends(messages, answer, expected):
    sends = ROUTER.after_model(messages, answer)
    assert all(isinstance(send, Send) and send.node == "tools" for send in sends)
    assert [(send.arg.call["id"], send.arg.ends) for send in sends] == expected


def test_without_tools_a_call_is_an_answer():
    assert Router("loop", "exit").after_model([asks("a")], None) == ["exit"]


def test_what_a_hook_updates_counts_for_what_follows():
    human, call = HumanMessage("hi", id="1"), asks("a").model_copy(update={"id": "2"})
    state = {"messages": [human, call], "structured_response": None}
    assert updated(state, [("messages", [answers(0)])])[0] == [human, call, answers(0)]
    assert updated(state, [("messages", [RemoveMessage(id="2")])]) == ([human], None)
    assert updated(state, [("messages", Overwrite([])), ("structured_response", 3)]) == ([], 3)
    assert pending_calls(state["messages"])[0]["id"] == "c0"


def test_a_hook_that_answers_a_call_leads_on_to_the_model(door):
    rejects = jumping(
        "after_model", lambda state: {"messages": [answers(0)]} if state["messages"][-1].text == "" else {}
    )
    result = door.invoke(create_agent(ScriptedModel([asks("look"), "ok"]), [look], middleware=[rejects]), {})
    assert [message.text for message in result["messages"]] == ["", "result", "ok"]


# -- jumps -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_jumps_where_it_declares(hook, door):
    trace = []
    jumps = jumping(hook, {"jump_to": "end"}, ["end"])
    agent = create_agent(ScriptedModel(["ok"]), middleware=[jumps, Traced("T", trace)])
    door.invoke(agent, {"messages": "hi"})
    assert (
        trace
        == {
            "before_agent": ["T.after_agent"],
            "before_model": ["T.before_agent", "T.after_agent"],
            "after_model": ["T.before_agent", "T.before_model", "T>model", "model>T", "T.after_model", "T.after_agent"],
            "after_agent": [
                *["T.before_agent", "T.before_model", "T>model", "model>T", "T.after_model", "T.after_agent"],
            ],
        }[hook]
    )


def test_a_jump_to_end_of_after_agent_leads_to_the_next_hook_and_not_to_itself(door):
    trace = []
    agent = create_agent(
        ScriptedModel(["ok"]), middleware=[Traced("First", trace), jumping("after_agent", {"jump_to": "end"}, ["end"])]
    )
    result = door.invoke(agent, {"messages": "hi"}, {"recursion_limit": 9})
    assert trace[-1] == "First.after_agent"
    assert [message.text for message in result["messages"]] == ["hi", "ok"]


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("allowed", [None, ["model"]])
def test_an_undeclared_jump_is_an_error_that_says_how_to_declare_it(hook, allowed, door):
    agent = create_agent(ScriptedModel(["ok"]), [look], middleware=[jumping(hook, {"jump_to": "end"}, allowed)])
    with pytest.raises(InvalidUpdateError) as caught:
        door.invoke(agent, {"messages": "hi"})
    assert f"{hook} of middleware 'Jumps' jumps to 'end', which it does not declare" in str(caught.value)
    wanted = "'end'" if allowed is None else "'model', 'end'"
    assert f"hook_config(can_jump_to=[{wanted}])" in str(caught.value)


def test_an_unknown_target_is_an_error_with_the_nearest_one(door):
    agent = create_agent(ScriptedModel(["ok"]), middleware=[jumping("before_model", {"jump_to": "ende"}, ["end"])])
    with pytest.raises(InvalidUpdateError, match=r"jumps to 'ende'.*Did you mean 'end'\?"):
        door.invoke(agent, {"messages": "hi"})


def test_a_declared_target_that_there_is_not_is_found_when_the_agent_is_made():
    with pytest.raises(GraphDefinitionError, match=r"declares to jump to 'ends'.*Did you mean 'end'\?"):
        create_agent(ScriptedModel([]), middleware=[jumping("before_model", None, ["ends"])])
    with pytest.raises(GraphDefinitionError, match="declares to jump to 'tools', and the agent has none"):
        create_agent(ScriptedModel([]), middleware=[jumping("before_model", None, ["tools"])])


def test_a_jump_to_the_tools_runs_the_calls_that_wait(door, saver):
    jumps = jumping(
        "before_model", lambda state: {"jump_to": "tools"} if len(state["messages"]) == 2 else None, ["tools"]
    )
    agent = create_agent(ScriptedModel(["ok"]), [look], middleware=[jumps], checkpointer=saver)
    result = door.invoke(agent, {"messages": ["hi", asks("look", "look")]}, THREAD)
    assert [message.text for message in result["messages"]] == ["hi", "", "seen", "seen", "ok"]


def test_a_jump_to_the_tools_without_a_call_is_an_error(door):
    jumps = jumping("before_model", {"jump_to": "tools"}, ["tools"])
    with pytest.raises(InvalidUpdateError, match="jumps to 'tools', and no tool call waits"):
        door.invoke(create_agent(ScriptedModel(["ok"]), [look], middleware=[jumps]), {"messages": "hi"})


def test_a_jump_to_the_model_begins_the_loop_again(door):
    trace = []
    again = jumping("after_model", lambda state: {"jump_to": "model"} if len(state["messages"]) == 2 else {}, ["model"])
    agent = create_agent(ScriptedModel(["one", "two"]), middleware=[Traced("T", trace), again])
    result = door.invoke(agent, {"messages": "hi"})
    assert [message.text for message in result["messages"]] == ["hi", "one", "two"]
    # The jump takes the place of the hooks that would follow.
    assert [each for each in trace if each.startswith("T.")] == [
        *["T.before_agent", "T.before_model", "T.before_model", "T.after_model", "T.after_agent"]
    ]


def test_a_jump_does_not_leak_to_the_next_hook(door):
    seen = []
    first = jumping("before_agent", {"jump_to": "model"}, ["model"], name="First")
    second = jumping("before_model", lambda state: seen.append(state.get("jump_to")), ["model", "end"], name="Second")
    result = door.invoke(create_agent(ScriptedModel(["ok"]), middleware=[first, second]), {"messages": "hi"})
    assert seen == ["model"]  # it is seen there, and not followed again
    assert result["messages"][-1].text == "ok"


def test_jump_to_none_is_no_jump(door):
    agent = create_agent(ScriptedModel(["ok"]), middleware=[jumping("before_model", {"jump_to": None})])
    assert door.invoke(agent, {"messages": "hi"})["messages"][-1].text == "ok"


@pytest.mark.parametrize(
    "result",
    [
        {"n": 1, "jump_to": "end"},
        Command(update={"n": 1, "jump_to": "end"}),
        Command(update=[("n", 1), ("jump_to", "end")]),
        [{"n": 1}, {"jump_to": "end"}],
        [Command(update={"n": 1}), {"jump_to": "end"}],
        Command(update={"n": 1}, goto="__end__"),
        [{"n": 1}, Command(goto=["__end__"])],
    ],
)
def test_a_jump_is_found_in_every_form_of_a_result(result, door):
    class State(TypedDict):
        n: int

    agent = create_agent(ScriptedModel([]), middleware=[jumping("before_model", result, ["end"])], state_schema=State)
    ended = door.invoke(agent, {"messages": "hi"})
    assert ended["n"] == 1
    assert len(ended["messages"]) == 1


def test_a_goto_takes_the_place_of_the_step_that_would_follow(door):
    trace = []
    skips = jumping("before_agent", Command(goto="T.after_agent"))
    agent = create_agent(ScriptedModel([]), middleware=[skips, Traced("T", trace)])
    door.invoke(agent, {"messages": "hi"})
    assert trace == ["T.after_agent"]


@pytest.mark.parametrize(("names", "expected"), [(["look", "final"], "ok"), (["final", "final"], "42")])
def test_a_goto_to_the_tools_makes_all_calls_that_wait(names, expected, door):
    goes = jumping("before_model", lambda state: Command(goto="tools") if len(state["messages"]) == 1 else None)
    agent = create_agent(ScriptedModel(["ok"]), [look, final], middleware=[goes])
    result = door.invoke(agent, {"messages": asks(*names)})
    assert [message.type for message in result["messages"]][:3] == ["ai", "tool", "tool"]
    assert result["messages"][-1].text == expected


def test_a_jump_and_a_goto_are_an_error():
    both = jumping("before_agent", [{"jump_to": "end"}, Command(goto="model")], ["end"])
    with pytest.raises(InvalidUpdateError, match="name one of them"):
        create_agent(ScriptedModel([]), middleware=[both]).invoke({"messages": "hi"})


def test_a_goto_to_no_node_is_an_error():
    with pytest.raises(InvalidUpdateError, match=r"'modle', which is no node.*Did you mean 'model'"):
        create_agent(ScriptedModel([]), middleware=[jumping("before_agent", Command(goto="modle"))]).invoke({})


def test_jumps_hold_over_a_stop(door, saver):
    jumps = jumping("after_model", {"jump_to": "end"}, ["end"])
    agent = create_agent(
        ScriptedModel([asks("look")]), [look], middleware=[jumps], checkpointer=saver, interrupt_after=["model"]
    )
    door.invoke(agent, {"messages": "hi"}, THREAD)
    result = door.invoke(agent, None, THREAD)
    assert [message.type for message in result["messages"]] == ["human", "ai"]
    assert agent.get_state(THREAD).next == ()


def test_the_declared_jumps_are_drawn():
    agent = create_agent(ScriptedModel([]), middleware=[jumping("before_model", None, ["end"])])
    edges = {(source, target) for source, target, _ in agent.get_graph().edges}
    assert edges == {
        ("__start__", "Jumps.before_model"),
        ("Jumps.before_model", "model"),
        ("Jumps.before_model", "__end__"),
        ("model", "Jumps.before_model"),
        ("model", "__end__"),
    }


# -- a result that is given in a node's place ----------------------------------------------------------------------


def edited(values, as_node, *, middleware=(), tools=(look,)):
    """What is due when a result is given in a node's place, and what the rest of the run comes to."""
    with InMemorySaver() as saver:
        agent = create_agent(
            ScriptedModel(["ok", "ok"]), tools, middleware=middleware, checkpointer=saver, interrupt_after="*"
        )
        agent.invoke({"messages": "hi"}, THREAD)
        agent.update_state(THREAD, values, as_node=as_node)
        return agent.get_state(THREAD).next


@pytest.mark.parametrize(
    ("values", "as_node", "expected"),
    [
        ({"messages": asks("look", "look")}, "model", ("tools", "tools")),
        ({"messages": AIMessage("done")}, "model", ()),
        ({"messages": [asks("look"), answers(0)]}, "tools", ("model",)),
        ({"messages": [asks("final"), answers(0)]}, "tools", ()),
    ],
)
def test_a_result_that_is_given_in_the_place_of_a_node_leads_on_as_its_own_would(values, as_node, expected):
    assert edited(values, as_node, tools=[look, final]) == expected


@pytest.mark.parametrize(
    ("values", "as_node", "expected"),
    [
        ({}, "Jumps.before_model", ("model",)),
        ({"jump_to": "end"}, "Jumps.before_model", ("T.after_agent",)),
        ({}, "T.before_model", ("Jumps.before_model",)),
        ({"messages": asks("look")}, "model", ("T.after_model",)),
        ({"messages": asks("look")}, "T.after_model", ("tools",)),
        ({}, "T.after_agent", ()),
    ],
)
def test_so_does_one_in_the_place_of_a_hook(values, as_node, expected):
    hooks = [Traced("T", []), jumping("before_model", None, ["end"])]
    assert edited(values, as_node, middleware=hooks) == expected


def test_a_call_that_a_person_edits_is_made_as_edited(door, saver):
    made = []

    @tool
    def send(to: str) -> str:
        """Send it."""
        made.append(to)
        return "sent"

    asked = AIMessage("", id="a", tool_calls=[{"name": "send", "args": {"to": "all"}, "id": "c0"}])
    agent = create_agent(ScriptedModel([asked, "ok"]), [send], checkpointer=saver, interrupt_before=["tools"])
    door.invoke(agent, {"messages": "hi"}, THREAD)
    better = AIMessage("", id="a", tool_calls=[{"name": "send", "args": {"to": "one"}, "id": "c0"}])
    agent.update_state(THREAD, {"messages": better}, as_node="model")
    assert [message.text for message in door.invoke(agent, None, THREAD)["messages"]] == ["hi", "", "sent", "ok"]
    assert made == ["one"]
