"""How often models and tools are called, counted exactly: over runs, over interrupts, over calls side by side."""

import pytest

from pregel import Command, InMemorySaver, SqliteSaver, interrupt
from pregel.graph.agent.create import create_agent
from pregel.graph.agent.middleware.base import AgentMiddleware, hook_config
from pregel.graph.agent.middleware.human_in_the_loop import HumanInTheLoopMiddleware
from pregel.graph.agent.middleware.model_call_limit import ModelCallLimitExceededError, ModelCallLimitMiddleware
from pregel.graph.agent.middleware.model_retry import ModelRetryMiddleware
from pregel.graph.agent.middleware.tool_call_limit import ToolCallLimitExceededError, ToolCallLimitMiddleware
from pregel.graph.agent.models import ScriptedModel
from pregel.graph.messages import AIMessage

THREAD = {"configurable": {"thread_id": "t"}}


class Calls:
    """A model that asks for some calls each time, without end, and tools that note what they do."""

    def __init__(self, *names):
        self.names = names or ("search",)
        self.done = []
        self.model = ScriptedModel(self.answer)

    def answer(self, messages):
        return AIMessage(
            tool_calls=[
                {"name": name, "args": {"at": str(place)}, "id": f"c{len(messages)}-{place}", "type": "tool_call"}
                for place, name in enumerate(self.names)
            ]
        )

    def agent(self, *middleware, saver=None):
        def search(at: str) -> str:
            """Search."""
            self.done.append(f"search {at}")
            return "found"

        def fetch(at: str) -> str:
            """Fetch."""
            self.done.append(f"fetch {at}")
            return "fetched"

        def ask(at: str) -> str:
            """Ask the user."""
            answer = interrupt("which?")
            self.done.append(f"ask {at}")
            return answer

        return create_agent(self.model, [search, fetch, ask], middleware=middleware, checkpointer=saver)

    @property
    def count(self):
        return len(self.model.calls)


def go(door, graph, given=None, **options):
    return door.invoke(graph, {"messages": ["go"]} if given is None else given, THREAD, **options)


def told(result):
    return [(message.tool_call_id, message.status) for message in result["messages"] if message.type == "tool"]


def test_a_run_ends_when_its_model_calls_are_used_up(door):
    calls = Calls()
    result = go(door, calls.agent(ModelCallLimitMiddleware(run_limit=3)))
    assert calls.count == 3
    assert result["messages"][-1].text == "The limit of model calls is reached: 3 of 3 in this run."
    assert len(calls.done) == 3


def test_the_counts_are_no_input_and_no_output(door):
    result = go(door, Calls().agent(ModelCallLimitMiddleware(run_limit=1), ToolCallLimitMiddleware(run_limit=9)))
    assert set(result) == {"messages"}


def test_an_error_is_raised_where_it_is_wanted(door):
    calls = Calls()
    with pytest.raises(ModelCallLimitExceededError, match="2 of 2 in this run") as caught:
        go(door, calls.agent(ModelCallLimitMiddleware(run_limit=2, exit_behavior="error")))
    error = caught.value
    assert (error.run_count, error.thread_count, error.run_limit, error.thread_limit) == (2, 2, 2, None)
    assert calls.count == 2


def test_a_run_has_a_count_of_its_own_and_a_thread_counts_all(door, saver):
    calls = Calls()
    graph = calls.agent(ModelCallLimitMiddleware(run_limit=2, thread_limit=5), saver=saver)
    counts = []
    for _ in range(4):
        before = calls.count
        result = go(door, graph)
        counts.append(calls.count - before)
    assert counts == [2, 2, 1, 0]
    assert result["messages"][-1].text == "The limit of model calls is reached: 5 of 5 in this thread."


def test_a_run_limit_of_model_calls_survives_an_interrupt(door, tmp_path):
    path = tmp_path / "runs.sqlite"
    calls = Calls("ask")
    given = None
    for _ in range(3):
        with SqliteSaver(path) as saver:
            result = go(door, calls.agent(ModelCallLimitMiddleware(run_limit=3), saver=saver), given)
        assert result["__interrupt__"]
        given = Command(resume="this one")
    with SqliteSaver(path) as saver:
        result = go(door, calls.agent(ModelCallLimitMiddleware(run_limit=3), saver=saver), given)
    assert "__interrupt__" not in result
    assert calls.count == 3
    assert len(calls.done) == 3


def test_a_call_that_is_retried_counts_once(door):
    model = ScriptedModel([OSError("down"), OSError("down"), "fine", "fine again"])
    retry = ModelRetryMiddleware(sleep=lambda seconds: None, asleep=no_sleep)
    for order in ([ModelCallLimitMiddleware(run_limit=1), retry], [retry, ModelCallLimitMiddleware(run_limit=1)]):
        model = ScriptedModel([OSError("down"), OSError("down"), "fine"])
        graph = create_agent(model, middleware=order, checkpointer=InMemorySaver())
        assert go(door, graph)["messages"][-1].text == "fine"
        assert graph.get_state(THREAD).values["model_call_limit_run_count"] == 1


async def no_sleep(seconds):
    pass


def test_a_jump_of_another_hook_does_not_pass_the_count_by(door):
    class Again(AgentMiddleware):
        @hook_config(can_jump_to=["model"])
        def after_model(self, state, runtime):
            return {"jump_to": "model"}

    model = ScriptedModel(lambda messages: "hm")
    go(door, create_agent(model, middleware=[ModelCallLimitMiddleware(run_limit=4), Again()]))
    assert len(model.calls) == 4


def test_of_calls_side_by_side_exactly_as_many_are_made_as_there_may_be(door, saver):
    calls = Calls("search", "search", "fetch", "search", "search")
    graph = calls.agent(
        ModelCallLimitMiddleware(run_limit=2),
        ToolCallLimitMiddleware(tool_name="search", run_limit=6, thread_limit=7),
        saver=saver,
    )
    result = go(door, graph)
    assert sorted(calls.done) == ["fetch 2"] * 2 + [f"search {place}" for place in "001134"]
    blocked = [message for message in result["messages"] if message.type == "tool" and message.status == "error"]
    assert [message.tool_call_id[-1] for message in blocked] == ["3", "4"]
    assert blocked[0].text == (
        "Not made: The limit of calls of 'search' would be exceeded: 8 of 7 in this thread and 8 of 6 in "
        "this run. Don't call 'search' again."
    )
    calls.done.clear()
    go(door, graph)
    assert sorted(calls.done) == ["fetch 2", "fetch 2", "search 0"]


def test_without_a_name_all_tools_are_limited_together(door):
    calls = Calls("search", "fetch", "search")
    go(door, calls.agent(ModelCallLimitMiddleware(run_limit=2), ToolCallLimitMiddleware(run_limit=4)))
    assert sorted(calls.done) == ["fetch 1", "search 0", "search 0", "search 2"]


def test_calls_of_other_tools_are_not_counted(door):
    calls = Calls("fetch", "fetch")
    go(
        door,
        calls.agent(ModelCallLimitMiddleware(run_limit=1), ToolCallLimitMiddleware(tool_name="search", run_limit=0)),
    )
    assert sorted(calls.done) == ["fetch 0", "fetch 1"]


def test_a_limit_for_one_tool_and_one_for_all_hold_together(door):
    calls = Calls("search", "search", "fetch", "fetch")
    go(
        door,
        calls.agent(
            ModelCallLimitMiddleware(run_limit=1),
            ToolCallLimitMiddleware(run_limit=2),
            ToolCallLimitMiddleware(tool_name="search", run_limit=1),
        ),
    )
    assert sorted(calls.done) == ["fetch 2", "search 0"]


def test_a_run_limit_of_tool_calls_survives_an_interrupt(door, tmp_path):
    path = tmp_path / "runs.sqlite"
    calls = Calls("ask")
    limits = [ModelCallLimitMiddleware(run_limit=4), ToolCallLimitMiddleware(tool_name="ask", run_limit=2)]
    given = None
    for _ in range(2):
        with SqliteSaver(path) as saver:
            assert go(door, calls.agent(*limits, saver=saver), given)["__interrupt__"]
        given = Command(resume="this one")
    with SqliteSaver(path) as saver:
        result = go(door, calls.agent(*limits, saver=saver), given)
    assert "__interrupt__" not in result
    assert [status for _, status in told(result)] == ["success", "success", "error", "error"]
    assert len(calls.done) == 2


def test_the_end_of_a_run_leaves_no_call_without_an_answer(door):
    calls = Calls("search", "fetch", "search")
    result = go(door, calls.agent(ToolCallLimitMiddleware(tool_name="search", run_limit=1, exit_behavior="end")))
    assert calls.done == []
    assert [message.type for message in result["messages"]] == ["human", "ai", "tool", "tool", "tool", "ai"]
    assert result["messages"][-1].text == "The limit of calls of 'search' would be exceeded: 2 of 1 in this run."


def test_what_was_not_made_at_the_end_of_a_run_is_not_counted(door, saver):
    calls = Calls("search", "search")
    limit = ToolCallLimitMiddleware(tool_name="search", thread_limit=3, exit_behavior="end")
    graph = calls.agent(limit, ModelCallLimitMiddleware(run_limit=2), saver=saver)
    go(door, graph)
    assert len(calls.done) == 2
    assert graph.get_state(THREAD).values["tool_call_limit_thread_counts"] == {"search": 2}


def test_an_error_is_raised_for_tools_where_it_is_wanted(door):
    calls = Calls("search", "search")
    with pytest.raises(
        ToolCallLimitExceededError, match="limit of tool calls would be exceeded: 2 of 1 in this thread"
    ) as caught:
        go(door, calls.agent(ToolCallLimitMiddleware(thread_limit=1, exit_behavior="error")))
    error = caught.value
    assert (error.thread_count, error.run_count, error.thread_limit, error.tool_name) == (2, 2, 1, None)
    assert calls.done == []


def test_calls_that_a_person_rejects_do_not_count(door):
    calls = Calls("search", "search")
    graph = calls.agent(
        ModelCallLimitMiddleware(run_limit=1),
        ToolCallLimitMiddleware(run_limit=1),
        HumanInTheLoopMiddleware({"search": True}),
        saver=InMemorySaver(),
    )
    go(door, graph)
    go(door, graph, Command(resume={"decisions": [{"type": "reject"}, {"type": "approve"}]}))
    assert calls.done == ["search 1"]


def test_what_is_not_limited_has_no_node():
    graph = Calls().agent(ModelCallLimitMiddleware(thread_limit=1), ToolCallLimitMiddleware(thread_limit=1))
    nodes = [name for part in graph.stream({"messages": ["go"]}, stream_mode="updates") for name in part]
    assert "ModelCallLimitMiddleware.before_model" in nodes
    assert not [name for name in nodes if name.endswith("before_agent")]


@pytest.mark.parametrize("kind", [ModelCallLimitMiddleware, ToolCallLimitMiddleware])
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "limits nothing"),
        ({"run_limit": -1}, "run_limit=-1"),
        ({"run_limit": 3, "thread_limit": 2}, "more calls than its thread"),
        ({"run_limit": 1, "exit_behavior": "stop"}, "exit_behavior='stop'"),
    ],
)
def test_limits_that_can_not_be_are_refused(kind, options, told):
    with pytest.raises(ValueError) as caught:
        kind(**options)
    assert told in str(caught.value)
    assert kind.__name__ in str(caught.value)


def test_a_model_has_no_calls_that_could_be_left_out():
    with pytest.raises(ValueError, match="end, error"):
        ModelCallLimitMiddleware(run_limit=1, exit_behavior="continue")
