"""Teams: the work of several agents as one node, with a record of it that is exact whatever runs side by side."""

import inspect

import pytest

from pregel import interrupt
from pregel.errors import GraphRecursionError
from pregel.graph.agent import ScriptedModel
from pregel.graph.flow.agents import SimpleAgent
from pregel.graph.flow.context import FlowContext
from pregel.graph.flow.errors import AgentOutputError, FlowDefinitionError, FlowRunError, MissingKeyError
from pregel.graph.flow.flowgraph import FlowGraph
from pregel.graph.flow.keys import Key, KeySpace
from pregel.graph.flow.resources import Resource
from pregel.graph.flow.session import AgentSession
from pregel.graph.flow.team import Lead, Sequential, TeamAgent
from pregel.graph.flow.trace import Record, TeamTrace
from tests.flow.flows import said, tokens
from tests.flow.running import resume, run


def approve():
    """Ask a human."""
    return interrupt("May I?")


def member(name, *answers, **options):
    return SimpleAgent(ScriptedModel(list(answers)), name=name, **options)


def pair(name="team", **options):
    """Two members in a row, each with its own costs."""
    return TeamAgent(
        [
            member("writer", said("a draft", 1, 10), role="Write about #{topic}."),
            member("editor", said("a text", 2, 20)),
        ],
        name=name,
        **options,
    )


def test_members_work_in_order_and_each_is_asked_with_what_was_answered_before(door):
    team = pair(prompt="Topic: #{topic}", output_key="text")
    ctx = FlowContext(topic="moss", other="unsaid")
    run(door, FlowGraph("g").add_agent(team), ctx)
    writer, editor = (each.model for each in team.members)
    assert [message.text for message in writer.calls[0].messages] == ["Write about moss.", "Topic: moss"]
    assert [message.text for message in editor.calls[0].messages] == ["Topic: moss\n\n[writer]\na draft"]
    assert ctx["text"] == "a text"


def test_what_a_team_is_told_itself_reaches_each_member_of_a_sequence():
    team = pair(prompt="Go", role="Be brief.", instruction="On #{topic}.")
    FlowGraph("g").add_agent(team).run(FlowContext(topic="moss"))
    writer, editor = (each.model for each in team.members)
    assert writer.calls[0].messages[-1].text == "Be brief.\n\nOn moss.\n\nGo"
    assert editor.calls[0].messages[-1].text == "Be brief.\n\nOn moss.\n\nGo\n\n[writer]\na draft"


def test_m1_the_record_of_a_team_is_kept_apart_from_the_data(door):
    team = pair(prompt="Go", output_key="text")
    ctx = FlowContext(topic="moss")
    session = AgentSession(ctx)
    assert team.trace(session) == TeamTrace("team")
    run(door, FlowGraph("g").add_agent(team), ctx)
    trace = team.trace(session)
    assert trace.records == (Record("writer", "member", "a draft"), Record("editor", "member", "a text"))
    assert (trace.prompt, trace.final_answer) == ("Go", "a text")
    assert trace.protocol_state == {"order": ["writer", "editor"]}
    assert tokens(trace.metrics) == (2, 0, 3, 30, 33)
    assert [tokens(each.trace(session).metrics)[2:4] for each in team.members] == [(1, 10), (2, 20)]
    assert dict(ctx) == {"topic": "moss", "text": "a text"}
    assert [(message.type, message.text) for message in session.messages] == [("human", "Go"), ("ai", "a text")]


def supervised(**options):
    """A supervisor that asks both members, one after the other."""
    lead = ScriptedModel(
        [
            said("", 1, 1, ["transfer_to_tech"]),
            said("", 1, 1, ["transfer_to_cost"]),
            said("fine", 1, 1),
        ]
    )
    members = [member("tech", said("works", 10, 10)), member("cost", said("cheap", 100, 100), role="#{rate}")]
    return TeamAgent(members, name="board", protocol="supervisor", model=lead, role="Chair.", **options)


def test_a_supervisor_hands_over_and_has_the_last_word(door):
    team = supervised(prompt="Decide", output_key="decision")
    ctx = FlowContext(rate=3)
    run(door, FlowGraph("g").add_agent(team), ctx)
    trace = team.trace(ctx)
    assert trace.records == (
        Record("board", "supervisor", "", ("transfer_to_tech",)),
        Record("tech", "member", "works"),
        Record("board", "supervisor", "", ("transfer_to_cost",)),
        Record("cost", "member", "cheap"),
        Record("board", "supervisor", "fine"),
    )
    assert trace.protocol_state == {"decisions": ["transfer_to_tech", "transfer_to_cost"]}
    assert tokens(trace.metrics) == (5, 2, 113, 113, 226)
    assert ctx["decision"] == trace.final_answer == "fine"
    assert team.members[1].model.calls[0].messages[0].text == "3"
    assert tokens(team.members[1].trace(ctx).metrics) == (1, 0, 100, 100, 200)


def restless(max_turns, calls, **options):
    """A team whose supervisor hands out work so many times before its last word."""
    turns = [said("", calls=[(f"c{number}", "transfer_to_tech")]) for number in range(calls)]
    lead = ScriptedModel([*turns, said("fine")])
    members = [member("tech", *[said(f"work {number}") for number in range(calls)])]
    options = {"protocol": "supervisor", "prompt": "Decide", **options}
    return TeamAgent(members, name="board", model=lead, output_key="out", max_turns=max_turns, **options)


def test_a_supervisor_that_never_ends_is_stopped_and_one_with_more_turns_goes_on(door):
    ctx = FlowContext()
    team = restless(3, 5)
    with pytest.raises(
        GraphRecursionError, match=r"supervisor of team 'board' has had 3 turns, its max_turns.*to_tech"
    ):
        run(door, FlowGraph("g").add_agent(team), ctx)
    assert len(team.model.calls) == 3
    assert "out" not in ctx
    more = restless(6, 5)
    more.model, more.members = team.model, team.members
    assert resume(door, FlowGraph("g").add_agent(more), ctx).status == "finished"
    assert ctx["out"] == "fine"
    assert tokens(more.trace(ctx).metrics)[0] == 11


def test_the_last_word_is_a_turn_and_eight_are_the_default(door):
    ctx = FlowContext()
    run(door, FlowGraph("g").add_agent(restless(3, 2)), ctx)
    assert ctx["out"] == "fine"
    assert Lead("board", None, "").max_turns == 8
    assert inspect.signature(TeamAgent).parameters["max_turns"].default == 8
    for wrong in (0, True, "8"):
        with pytest.raises(FlowDefinitionError, match=r"team 'board': max_turns is a number of turns"):
            restless(wrong, 1)


def test_turns_before_the_question_do_not_count():
    session = AgentSession()
    for _ in range(2):
        team = restless(3, 2)
        assert team.run(session, "again").status == "finished"


def test_a_paused_team_writes_nothing_and_goes_on_with_the_member_that_it_was_at(door):
    clerk = SimpleAgent(
        ScriptedModel([said("", 10, 1, ["approve"]), said("approved", 20, 2)]), name="clerk", tools=[approve]
    )
    team = TeamAgent([member("writer", said("a draft", 1, 1)), clerk], name="team", prompt="Go", output_key="text")
    graph, ctx = FlowGraph("g").add_agent(team), FlowContext()
    outcome = run(door, graph, ctx)
    assert [each.value for each in outcome.pending] == ["May I?"]
    assert dict(ctx) == {}
    assert team.trace(ctx) == TeamTrace("team")
    resume(door, graph, ctx, "yes")
    assert len(team.members[0].model.calls) == 1
    assert ctx["text"] == "approved"
    trace = team.trace(ctx)
    assert tokens(trace.metrics) == (3, 1, 31, 4, 35)
    assert [record.source for record in trace.records] == ["writer", "clerk", "clerk"]


def test_a_member_that_fails_leaves_the_work_before_it_done_and_nothing_written(door):
    flaky = SimpleAgent(ScriptedModel([ValueError("no"), said("a text", 2, 2)]), name="editor")
    team = TeamAgent([member("writer", said("a draft", 1, 1)), flaky], name="team", prompt="Go", output_key="text")
    graph, ctx = FlowGraph("g").add_agent(team), FlowContext()
    with pytest.raises(ValueError, match="no"):
        run(door, graph, ctx)
    assert (dict(ctx), team.trace(ctx)) == ({}, TeamTrace("team"))
    resume(door, graph, ctx)
    assert len(team.members[0].model.calls) == 1
    assert ctx["text"] == "a text"
    assert tokens(team.trace(ctx).metrics) == (2, 0, 3, 3, 6)


def test_teams_side_by_side_that_share_a_member_lose_no_record_and_no_token(door):
    shared = SimpleAgent(ScriptedModel(lambda _: said("shared", 1, 1)), name="shared")
    graph = FlowGraph("g").add_parallel("fork")
    teams = []
    for number in range(5):
        own = member(f"own{number}", said(f"own {number}", 10**number, 0))
        team = TeamAgent([shared, own], name=f"team{number}", prompt="Go", output_key=f"out.{number}")
        teams.append(team)
        graph.add_agent(team).link("fork", team.name)
    ctx = FlowContext()
    for _ in range(2):
        for team in teams:
            team.members[1].model._given[None] = 0
        run(door, graph, ctx)
    for number, team in enumerate(teams):
        trace = team.trace(ctx)
        assert [record.content for record in trace.records] == ["shared", f"own {number}"] * 2
        assert tokens(trace.metrics) == (4, 0, 2 * (1 + 10**number), 2, 2 * (2 + 10**number))
    assert tokens(shared.trace(ctx).metrics) == (10, 0, 10, 10, 20)


class Keys(KeySpace):
    score = Key(float, "score")


def test_a_teams_answer_is_parsed_to_the_keys_type():
    team = TeamAgent([member("a", "0.5"), member("b", "0.25")], name="team", prompt="?", output_key="score")
    ctx = FlowContext()
    FlowGraph("g", Keys).add_agent(team).run(ctx)
    assert ctx["score"] == 0.25
    bad = TeamAgent([member("a", "many")], name="team", prompt="?", output_key="score")
    with pytest.raises(AgentOutputError, match="agent 'team' answered 'many'"):
        FlowGraph("bad", Keys).add_agent(bad).run(ctx)


def test_a_key_that_a_member_reads_and_nobody_wrote_is_an_error_that_names_the_member():
    with pytest.raises(MissingKeyError, match=r"agent 'writer'.*topic"):
        FlowGraph("g").add_agent(pair(prompt="Go")).run(FlowContext())


def test_models_of_teams_may_be_given_to_each_run(door):
    lead = Resource("lead", ScriptedModel)
    team = TeamAgent(
        [SimpleAgent(Resource("work"), name="a")], name="team", protocol="supervisor", model=lead, prompt="?"
    )
    assert team.resources() == {"lead": ScriptedModel, "work": object}
    given = {"lead": ScriptedModel([said("", calls=["transfer_to_a"]), "end"]), "work": ScriptedModel(["did it"])}
    ctx = FlowContext()
    run(door, FlowGraph("g").add_agent(team), ctx, resources=given)
    assert [record.content for record in team.trace(ctx).records] == ["", "did it", "end"]


class Reversed(Sequential):
    """A protocol of one's own: the members in the other order."""

    name = "reversed"

    def build(self, lead, members):
        return super().build(lead, dict(reversed(members.items())))


def test_a_protocol_of_ones_own_builds_the_graph():
    ctx = FlowContext(topic="moss")
    team = pair(prompt="Go", protocol=Reversed())
    FlowGraph("g").add_agent(team).run(ctx)
    assert team.trace(ctx).protocol_state == {"order": ["editor", "writer"]}
    assert team.trace(ctx).final_answer == "a draft"


def test_a_team_by_itself_runs_and_resumes_by_two_calls(door):
    team, session = pair(), AgentSession()
    session.ctx["topic"] = "moss"
    if door.way == "sync":
        team.run(session, "Go")
    else:

        async def main():
            await team.arun(session, "Go")

        door.run(main)
    assert team.trace(session).final_answer == "a text"
    with pytest.raises(FlowRunError, match="nothing unfinished"):
        team.resume(session)


A = member("a", "x")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: TeamAgent([], name="t"), "no members"),
        (lambda: TeamAgent(A, name="t"), "no members"),
        (lambda: TeamAgent(["a"], name="t"), "'a' is no SimpleAgent"),
        (lambda: TeamAgent([A, A], name="t"), "two are named 'a'"),
        (lambda: TeamAgent([A], name="a"), "two are named 'a'"),
        (lambda: TeamAgent([member("b", output_key="k")], name="t"), "an output key of its own"),
        (lambda: TeamAgent([member("b", prompt="?")], name="t"), "a prompt of its own"),
        (lambda: TeamAgent([A], name="t", protocol="sequental"), "Did you mean 'sequential'"),
        (lambda: TeamAgent([A], name="t", protocol=5), "5 is no TeamProtocol"),
        (lambda: TeamAgent([A], name="t", protocol="supervisor"), "needs a model"),
        (lambda: TeamAgent([A], name="t", model=ScriptedModel([])), "has no use for a model"),
    ],
)
def test_what_can_not_be_a_team_is_refused_when_it_is_made(make, why):
    with pytest.raises(FlowDefinitionError, match=why):
        make()


def test_a_sequence_by_itself_takes_part_in_the_conversation():
    model = ScriptedModel(["first", "second", "third", "fourth"])
    team = TeamAgent([SimpleAgent(model, name="a"), SimpleAgent(model, name="b")], name="t", output_key="out")
    session = AgentSession()
    team.run(session, "One?")
    team.run(session, "Two?")
    told = [[message.text for message in call.messages] for call in model.calls]
    assert told[:2] == [["One?"], ["One?\n\n[a]\nfirst"]]
    assert told[2:] == [["One?", "second", "Two?"], ["One?", "second", "Two?\n\n[a]\nthird"]]
    assert [record.content for record in team.trace(session).records] == ["first", "second", "third", "fourth"]
    assert session.ctx["out"] == "fourth"
