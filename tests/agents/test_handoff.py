"""Agents that hand over to one another: nothing of the conversation is lost."""

import operator
from typing import Annotated

import pytest

from pregel import START, InMemorySaver, MessagesState, SqliteSaver, StateGraph, interrupt
from pregel.errors import GraphDefinitionError, InvalidInputError, InvalidUpdateError, UnknownTargetError
from pregel.graph.agent.create import create_agent
from pregel.graph.agent.handoff import SwarmState, create_supervisor, create_swarm, handoff_tool
from pregel.graph.agent.models.scripted import ScriptedModel
from pregel.graph.agent.tools import as_tool
from pregel.graph.messages import AIMessage
from pregel.types import Command

THREAD = {"configurable": {"thread_id": "t"}}


def calls(*named):
    """A model's message that calls tools without arguments, with ids that are the tools' names."""
    return AIMessage("", tool_calls=[{"name": name, "args": {}, "id": name} for name in named])


def weigh():
    return "3 kg"


async def price():
    return "4 euros"


def confirm():
    return f"confirmed: {interrupt('sure?')}"


def agent(name, answers, *tools):
    return create_agent(ScriptedModel(answers), tools, name=name)


def three(first=("transfer_to_bob", "weigh")):
    """Agents that hand over in a ring, with calls beside the hand-offs; the last one answers, twice."""
    return [
        agent("alice", [calls(*first), "alice again"], weigh, confirm, handoff_tool("bob")),
        agent("bob", [calls("price", "transfer_to_carol"), "bob again"], price, handoff_tool("carol")),
        agent("carol", ["carol speaks", calls("transfer_to_alice")], handoff_tool("alice")),
    ]


def story(messages):
    """Return a conversation in short, after checking that each call has one answer and each answer a call."""
    asked = [call["id"] for message in messages for call in getattr(message, "tool_calls", ())]
    answered = [message.tool_call_id for message in messages if message.type == "tool"]
    assert sorted(asked) == sorted(answered)
    seen = set()
    for message in messages:
        if message.type == "tool":
            assert message.tool_call_id in seen  # an answer never stands before its call
        seen |= {call["id"] for call in getattr(message, "tool_calls", ())}
    return [
        "+".join(call["name"] for call in message.tool_calls) if getattr(message, "tool_calls", ()) else message.content
        for message in messages
    ]


WHOLE = [
    "hi",
    "transfer_to_bob+weigh",
    "3 kg",
    "The conversation was handed over to bob.",
    "price+transfer_to_carol",
    "4 euros",
    "The conversation was handed over to carol.",
    "carol speaks",
]


def ring(agents, saver=None):
    """The agents as nodes of a graph of the user's own."""
    builder = StateGraph(MessagesState)
    for each in agents:
        builder.add_node(each.name, each, destinations=["alice", "bob", "carol"])
    return builder.add_edge(START, "alice").compile(saver)


def test_a_hand_off_between_three_agents_keeps_the_calls_and_the_results_beside_them(door):
    assert story(door.invoke(ring(three()), {"messages": ["hi"]})["messages"]) == WHOLE


def test_the_next_agent_reads_the_whole_conversation(door):
    model = ScriptedModel(["done"])
    bob = create_agent(model, name="bob")
    alice = agent("alice", [calls("weigh", "transfer_to_bob")], weigh, handoff_tool("bob"))
    builder = StateGraph(MessagesState).add_node("alice", alice, destinations=["bob"]).add_node("bob", bob)
    door.invoke(builder.add_edge(START, "alice").compile(), {"messages": ["hi"]})
    assert story(model.calls[0].messages) == ["hi", "weigh+transfer_to_bob", "3 kg", WHOLE[3]]


def test_a_swarm_goes_on_with_the_agent_that_had_the_conversation_last(door):
    swarm = create_swarm(three(), "alice", checkpointer=InMemorySaver())
    first = door.invoke(swarm, {"messages": ["hi"]}, THREAD)
    assert story(first["messages"]) == WHOLE
    assert first["active_agent"] == "carol"
    second = door.invoke(swarm, {"messages": ["and now?"]}, THREAD)
    assert story(second["messages"])[len(WHOLE) :] == [
        "and now?",
        "transfer_to_alice",
        "The conversation was handed over to alice.",
        "alice again",
    ]
    assert second["active_agent"] == "alice"


def test_a_swarm_is_stored_over_a_pause_beside_a_hand_off(door, tmp_path):
    path = tmp_path / "runs.sqlite"
    first = ("confirm", "transfer_to_bob", "weigh")
    with SqliteSaver(path) as saver:
        swarm = create_swarm(three(first), "alice", checkpointer=saver)
        paused = door.invoke(swarm, {"messages": ["hi"]}, THREAD)
        assert [question.value for question in paused["__interrupt__"]] == ["sure?"]
        assert paused["active_agent"] == "alice"
    with SqliteSaver(path) as saver:  # as in another process: agents and models are made anew
        fresh = three(["never asked again"])
        swarm = create_swarm(fresh, "alice", checkpointer=saver)
        done = door.invoke(swarm, Command(resume="yes"), THREAD)
        assert story(done["messages"]) == [
            "hi",
            "confirm+transfer_to_bob+weigh",
            "confirmed: yes",
            "3 kg",
            *WHOLE[3:],
        ]
        assert done["active_agent"] == "carol"
        assert door.invoke(swarm, {"messages": ["more"]}, THREAD)["active_agent"] == "alice"


def test_a_pause_after_a_hand_off_goes_on_with_the_agent_that_asked(door, tmp_path):
    def team():
        return [
            agent("alice", [calls("transfer_to_bob"), "not me"], handoff_tool("bob")),
            agent("bob", [calls("confirm"), "thanks"] if not asked else ["thanks"], confirm),
        ]

    asked = False
    with SqliteSaver(tmp_path / "runs.sqlite") as saver:
        paused = door.invoke(create_swarm(team(), "alice", checkpointer=saver), {"messages": ["hi"]}, THREAD)
        assert paused["active_agent"] == "bob"
        asked = True
        done = door.invoke(create_swarm(team(), "alice", checkpointer=saver), Command(resume="yes"), THREAD)
    assert story(done["messages"])[-3:] == ["confirm", "confirmed: yes", "thanks"]


def test_of_two_hand_offs_in_one_turn_the_first_counts(door):
    alice = agent("alice", [calls("transfer_to_carol", "transfer_to_bob")], handoff_tool("bob"), handoff_tool("carol"))
    swarm = create_swarm([alice, agent("bob", ["bob"]), agent("carol", ["carol"])], "alice")
    state = door.invoke(swarm, {"messages": ["hi"]})
    assert story(state["messages"])[-1] == "carol"
    assert state["active_agent"] == "carol"
    refused = next(message for message in state["messages"] if getattr(message, "status", "") == "error")
    assert refused.tool_call_id == "transfer_to_bob"
    assert "'transfer_to_carol' hands over already" in refused.content


def test_a_supervisor_gets_the_conversation_back_from_each_agent(door):
    model = ScriptedModel([calls("transfer_to_bob"), calls("transfer_to_carol"), "all done"])
    graph = create_supervisor(
        [agent("bob", [calls("price"), "it costs 4"], price), agent("carol", ["it is blue"])],
        model,
        prompt="Bob knows prices.",
    )
    assert story(door.invoke(graph, {"messages": ["hi"]})["messages"]) == [
        "hi",
        "transfer_to_bob",
        "The conversation was handed over to bob.",
        "price",
        "4 euros",
        "it costs 4",
        "transfer_to_carol",
        "The conversation was handed over to carol.",
        "it is blue",
        "all done",
    ]
    assert model.calls[0].messages[0].content == "Bob knows prices."
    assert [tool["name"] for tool in model.calls[0].tools] == ["transfer_to_bob", "transfer_to_carol"]


def test_agents_of_a_supervisor_work_side_by_side_and_come_back_once(door):
    graph = create_supervisor(
        [agent("bob", ["bob's part"]), agent("carol", [calls("weigh"), "carol's part"], weigh)],
        ScriptedModel([calls("transfer_to_carol", "transfer_to_bob", "price"), "together"]),
        tools=[price],
    )
    told = story(door.invoke(graph, {"messages": ["hi"]})["messages"])
    assert told[1] == "transfer_to_carol+transfer_to_bob+price"
    assert told[5:] == ["bob's part", "weigh", "3 kg", "carol's part", "together"]
    assert sorted(told[2:5]) == [
        "4 euros",
        "The conversation was handed over to bob.",
        "The conversation was handed over to carol.",
    ]


def test_an_agent_as_a_tool_of_another_one_pauses_the_outermost_and_goes_on(door, tmp_path):
    def lead(answers, inner):
        helper = agent("helper", inner, confirm)
        return create_agent(
            ScriptedModel(answers), [as_tool(helper, description="Helps."), weigh], name="lead", checkpointer=saver
        )

    ask = AIMessage(
        "", tool_calls=[{"name": "helper", "args": {"request": "check it"}, "id": "h"}, *calls("weigh").tool_calls]
    )
    with SqliteSaver(tmp_path / "runs.sqlite") as saver:
        paused = door.invoke(lead([ask], [calls("confirm")]), {"messages": ["hi"]}, THREAD)
        (question,) = paused["__interrupt__"]
        assert question.value == "sure?"
        done = door.invoke(lead(["done"], ["helped"]), Command(resume="yes"), THREAD)
    assert [message.content for message in done["messages"][2:]] == ["helped", "3 kg", "done"]


def test_a_hand_off_to_nobody_names_the_nearest_agent(door):
    alice = agent("alice", [calls("transfer_to_bop")], handoff_tool("bop"))
    swarm = create_swarm([alice, agent("bob", ["x"])], "alice")
    with pytest.raises(UnknownTargetError, match=r"'bop', which is no node\. Did you mean 'bob'\?"):
        door.invoke(swarm, {"messages": ["hi"]})


def test_a_hand_off_in_an_agent_that_is_nobodys_node_says_so(door):
    alice = agent("alice", [calls("transfer_to_bob")], handoff_tool("bob"))
    with pytest.raises(InvalidUpdateError, match=r"Command\.PARENT"):
        door.invoke(alice, {"messages": ["hi"]})


def test_an_agent_that_does_not_exist_is_not_given_the_conversation(door):
    swarm = create_swarm([agent("alice", ["x"])], "alice")
    with pytest.raises(
        InvalidInputError, match=r"'alise', which is no agent of swarm 'swarm'\. Did you mean 'alice'\?"
    ):
        door.invoke(swarm, {"messages": ["hi"], "active_agent": "alise"})
    assert door.invoke(swarm, {"messages": ["hi"], "active_agent": "alice"})["messages"][-1].content == "x"


def test_a_state_of_ones_own_is_shared_with_agents_that_have_its_fields(door):
    class Mine(SwarmState):
        log: Annotated[list[str], operator.add]

    def note(state):
        return {"log": ["noted"], "messages": [AIMessage("noted")]}

    scribe = StateGraph(Mine).add_node(note).add_edge(START, "note").compile(name="scribe")
    swarm = create_swarm([scribe], "scribe", state_schema=Mine)
    assert door.invoke(swarm, {"messages": ["hi"], "log": ["before"]})["log"] == ["before", "noted"]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: create_swarm([], "x"), "there are no agents"),
        (lambda: create_swarm([agent("a", []), agent("a", [])], "a"), "two agents are named 'a'"),
        (lambda: create_supervisor([agent("supervisor", [])], ScriptedModel([])), "two agents are named 'supervisor'"),
        (lambda: create_swarm([agent("alice", [])], "alise"), "Did you mean 'alice'"),
        (lambda: create_swarm([print], "a"), "is no agent"),
    ],
    ids=range(5),
)
def test_a_team_that_can_not_work_is_refused_with_a_reason(make, says):
    with pytest.raises(GraphDefinitionError, match=says):
        make()


def test_the_name_of_a_hand_off_is_one_that_providers_take():
    made = handoff_tool("night shift (2)")
    assert made.name == "transfer_to_night_shift_2_"
    assert made.description == "Hand the conversation over to night shift (2)."
    assert made.describe()["parameters"]["properties"] == {}
    assert handoff_tool("x", name="go", description="When lost.").describe()["description"] == "When lost."
