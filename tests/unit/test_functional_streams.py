"""What who reads the stream of an entry point is told of it and of its tasks."""

from threading import Event
from typing import Annotated, TypedDict

import pytest

from pregel import START, Command, InMemorySaver, StateGraph, add_messages, interrupt
from pregel.config import get_stream_writer
from pregel.graph.agent import ScriptedModel, ToolNode, create_agent
from pregel.graph.functional import entrypoint, task
from pregel.graph.messages import AIMessage
from pregel.runtime import message_writer
from tests.waiting import PATIENCE

THREAD = {"configurable": {"thread_id": "1"}}


@task
def double(number: int) -> int:
    get_stream_writer()(f"double {number}")
    return 2 * number


@task
async def quadruple(number: int) -> int:
    return 2 * await double(2 * number)


@pytest.fixture
def graph():
    return entrypoint(checkpointer=InMemorySaver())(main_function)


async def main_function(number: int) -> int:
    first = await double(number)
    return first + await quadruple(interrupt("?"))


def test_updates_tell_tasks_as_they_come_and_then_the_entry_point(door, graph):
    parts = door.stream(graph, 1, THREAD)
    assert parts[:-1] == [{"double": 2}]
    assert [each.value for each in parts[-1]["__interrupt__"]] == ["?"]
    assert door.stream(graph, Command(resume=3), THREAD) == [{"double": 12}, {"quadruple": 24}, {"main_function": 26}]


def test_values_are_bare_and_come_when_there_is_one(door, graph):
    (part,) = door.stream(graph, 1, THREAD, stream_mode="values")
    assert part.keys() == {"__interrupt__"}
    assert door.stream(graph, Command(resume=3), THREAD, stream_mode="values") == [26]


def test_what_tasks_write_is_told_and_not_again_when_they_are_replayed(door, graph):
    assert door.stream(graph, 1, THREAD, stream_mode="custom") == ["double 1"]
    assert door.stream(graph, Command(resume=3), THREAD, stream_mode="custom") == ["double 6"]


def test_several_modes_and_typed_parts(door, graph):
    door.invoke(graph, 1, THREAD)
    modes = ["updates", "values", "custom"]
    parts = door.stream(graph, Command(resume=3), THREAD, stream_mode=modes, version="v2", subgraphs=True)
    assert [(each["type"], each["ns"], each["data"]) for each in parts] == [
        ("custom", (), "double 6"),
        ("updates", (), {"double": 12}),
        ("updates", (), {"quadruple": 24}),
        ("updates", (), {"main_function": 26}),
        ("values", (), 26),
    ]


def test_an_update_is_told_while_the_entry_point_still_runs(door):
    heard = Event()

    @entrypoint()
    def waits(_: int) -> None:
        double(1).result()
        assert heard.wait(PATIENCE)

    if door.way == "sync":
        parts = waits.stream(0)
        assert next(parts) == {"double": 2}
        heard.set()
        assert list(parts) == [{"waits": None}]
    else:

        async def read():
            found = []
            async for part in waits.astream(0):
                found.append(part)
                heard.set()
            return found

        assert door.run(read) == [{"double": 2}, {"waits": None}]


def test_the_other_modes_tell_the_entry_point_with_its_fields(door, graph):
    door.invoke(graph, 1, THREAD)
    begun, ended = door.stream(graph, Command(resume=3), THREAD, stream_mode="tasks")
    assert (begun["name"], begun["input"]) == ("main_function", {"input": 1})
    assert ended["result"] == {"value": 26, "previous": 26}
    kinds = [each["type"] for each in door.stream(graph, 1, THREAD, stream_mode="debug")]
    assert kinds == ["checkpoint", "task", "task_result"]
    (checkpoint,) = door.stream(graph, Command(resume=3), THREAD, stream_mode="checkpoints")
    assert checkpoint["values"] == {"value": 26, "previous": 26}


def test_messages_are_told_from_inside_tasks(door):
    model = ScriptedModel(["one two"])

    @task
    def speak() -> None:
        tell = message_writer()
        for piece in model.stream(["say it"]):
            tell(piece)

    @entrypoint()
    def says(_: int) -> None:
        speak()

    parts = door.stream(says, 0, stream_mode="messages")
    assert "".join(message.content for message, _ in parts) == "one two"
    assert {metadata["node"] for _, metadata in parts} == {"speak"}


def test_graphs_inside_tasks_are_told_apart_by_their_paths(door):
    agent = create_agent(ScriptedModel([lambda messages: messages[-1].content.upper()] * 2), [])

    @task
    def shout(text: str) -> str:
        return agent.invoke({"messages": [text]})["messages"][-1].content

    @entrypoint()
    def says(texts: list[str]) -> list[str]:
        return [future.result() for future in [shout(text) for text in texts]]

    parts = door.stream(says, ["a", "b"], stream_mode=["messages", "updates"], subgraphs=True, version="v2")
    said = {}
    for part in parts:
        if part["type"] == "messages":
            said[part["ns"]] = said.get(part["ns"], "") + part["data"][0].content
    assert sorted(said.values()) == ["A", "B"]
    assert parts[-1]["data"] == {"says": ["A", "B"]}
    assert {part["ns"] for part in parts} == {(), *said}


class State(TypedDict, total=False):
    messages: Annotated[list, add_messages]


def call(name, number, place):
    return {"name": name, "args": {"number": number}, "id": f"call-{place}"}


def test_tools_of_an_agent_call_tasks_and_repeat_nothing(door):
    """Equal calls of tools that run side by side are told apart by the tool, whichever came first."""
    ran = []

    @task
    def measure(number: int) -> int:
        ran.append(number)
        return number * len(ran)

    def look(number: int) -> str:
        """Look."""
        return f"{measure(number).result()} {interrupt('ok?')}"

    async def alook(number: int) -> str:
        """Look as well."""
        return f"{await measure(number)} {interrupt('ok?')}"

    for tools, names in (([look], ["look"] * 4), ([look, alook], ["look", "alook", "alook", "look"])):
        ran.clear()
        calls = [call(name, 7, place) for place, name in enumerate(names)]
        model = ScriptedModel([AIMessage("", tool_calls=calls), "done"])
        agent = create_agent(model, tools, checkpointer=InMemorySaver())
        questions = door.invoke(agent, {"messages": ["go"]}, THREAD)["__interrupt__"]
        assert len(questions) == 4
        answers = {each.id: place for place, each in enumerate(questions)}
        messages = door.invoke(agent, Command(resume=answers), THREAD)["messages"]
        told = [each.content.split() for each in messages if each.type == "tool"]
        assert sorted(int(each) for each, _ in told) == [7, 14, 21, 28]
        assert [int(answer) for _, answer in told] == [0, 1, 2, 3]
        assert ran == [7] * 4


def test_equal_calls_of_tools_that_run_side_by_side_are_told_apart_whichever_came_first(door):
    runs, found = [0], {}
    measured = {(run, number): Event() for run in (0, 1) for number in (0, 1)}

    @task
    def measure() -> int:
        found["count"] = found.get("count", 0) + 1
        return found["count"]

    def look(number: int) -> str:
        """Look: in run 0 call 1 is the first, in run 1 call 0."""
        run = runs[0]
        if number == run:
            assert measured[run, 1 - number].wait(PATIENCE)
        result = measure().result()
        measured[run, number].set()
        return f"{result} {interrupt('ok?')}"

    said = AIMessage("", tool_calls=[call("look", number, number) for number in range(2)])
    builder = StateGraph(State).add_node("tools", ToolNode([look])).add_edge(START, "tools")
    graph = builder.compile(InMemorySaver())
    questions = door.invoke(graph, {"messages": [said]}, THREAD)["__interrupt__"]
    runs[0] = 1
    result = door.invoke(graph, Command(resume={each.id: 1 for each in questions}), THREAD)
    assert [each.content for each in result["messages"] if each.type == "tool"] == ["2 1", "1 1"]


def test_a_tool_that_awaits_no_task_pauses_its_agent_with_what_the_task_asks(door):
    @task
    def ask(number: int) -> int:
        return interrupt(f"question {number}")

    def look(number: int) -> str:
        """Look."""
        ask(number)
        return f"looked {number}"

    calls = [call("look", number, number) for number in range(3)]
    agent = create_agent(ScriptedModel([AIMessage("", tool_calls=calls), "done"]), [look], checkpointer=InMemorySaver())
    questions = door.invoke(agent, {"messages": ["go"]}, THREAD)["__interrupt__"]
    assert [each.value for each in questions] == ["question 0", "question 1", "question 2"]
    result = door.invoke(agent, Command(resume={each.id: 1 for each in questions}), THREAD)
    assert [each.content for each in result["messages"] if each.type == "tool"] == ["looked 0", "looked 1", "looked 2"]


def test_nodes_of_other_graphs_tell_what_tasks_write_and_their_own_updates(door):
    def node(_: State):
        return {"messages": [str(double(1).result())]}

    graph = StateGraph(State).add_node(node).add_edge(START, "node").compile()
    parts = door.stream(graph, {}, stream_mode=["custom", "updates"])
    assert parts[0] == ("custom", "double 1")
    assert [mode for mode, _ in parts] == ["custom", "updates"]
