"""What a flow graph asks of any agent that is its node, and what it gives it."""

import operator
from typing import Annotated

import pytest

from pregel.graph.flow import (
    ContextKeyError,
    FlowContext,
    FlowDefinitionError,
    FlowGraph,
    Key,
    KeySpace,
    MissingKeyError,
    MissingResourceError,
    Template,
    TemplateError,
)
from pregel.runtime import get_runtime
from tests.flow.running import run


class Echo:
    """An agent without a model: its answer is its prompt."""

    def __init__(self, name="echo", *, instruction=None, output_key="out", needs=None):
        self.name = name
        self.output_key = output_key
        self.instruction = None if instruction is None else Template(instruction)
        self.needs = needs or {}
        self.seen = []

    @property
    def has_prompt(self):
        return self.instruction is not None

    @property
    def reads(self):
        return () if self.instruction is None else self.instruction.reads

    def fields(self):
        return {"@said": Annotated[list[str], operator.add]}

    def resources(self):
        return self.needs

    def act(self, ctx, node, prompt):
        self.seen.append((dict(ctx.home.resources), list(get_runtime().state["@said"])))
        answer = (prompt or self.instruction).render(ctx, f"agent {self.name!r}")
        ctx[self.output_key] = answer
        return {"@said": [answer]}

    async def aact(self, ctx, node, prompt):
        return self.act(ctx, node, prompt)


class Keys(KeySpace):
    order = Key(str, "order.id", given=True)
    out = Key(str, "out", writers=["echo"])
    other = Key(str, "other")


def test_an_agent_without_a_prompt_is_found_at_build():
    with pytest.raises(FlowDefinitionError, match=r"agent 'echo' of graph 'g' has nothing to ask its model"):
        FlowGraph("g").add_agent(Echo()).compile()
    FlowGraph("g").add_agent(Echo(), prompt="go").compile()
    FlowGraph("g").add_agent(Echo(instruction="go")).compile()
    with pytest.raises(TemplateError, match=r"the prompt of agent 'echo'"):
        FlowGraph("g").add_agent(Echo(), prompt="#{")


def test_what_its_templates_read_is_checked_at_build():
    with pytest.raises(FlowDefinitionError, match=r"agent 'echo' of graph 'g' reads 'order.nr'.*'order.id'"):
        FlowGraph("g", keys=Keys).add_agent(Echo(instruction="#{order.nr}")).compile()
    with pytest.raises(FlowDefinitionError, match=r"reads 'other', which nothing writes"):
        FlowGraph("g", keys=Keys).add_agent(Echo(), prompt="#{other}").compile()
    FlowGraph("g", keys=Keys).add_agent(Echo(), prompt="#{order.id}").compile()


def test_its_output_key_is_checked_at_build():
    with pytest.raises(FlowDefinitionError, match=r"writes 'outt'.*'out'"):
        FlowGraph("g", keys=Keys).add_agent(Echo(output_key="outt"), prompt="x").compile()
    with pytest.raises(ContextKeyError, match=r"agent 'stranger' of graph 'g' writes 'out', whose writers are echo"):
        FlowGraph("g", keys=Keys).add_agent(Echo("stranger"), prompt="x").compile()


def test_two_agents_side_by_side_have_keys_of_their_own():
    graph = FlowGraph("g").add_parallel("fork", ["a", "b"])
    graph.add_agent(Echo("a"), prompt="x").add_agent(Echo("b"), prompt="x")
    with pytest.raises(FlowDefinitionError, match=r"'a' and 'b' of graph 'g' both write 'out'"):
        graph.compile()


def test_a_prompt_sees_what_nodes_before_it_wrote_and_names_what_is_missing(door):
    graph = FlowGraph("g").add_activity("load", lambda ctx: ctx.update({"order.id": "SO-1001"}), to="echo")
    graph.add_agent(Echo(), prompt="order=#{order.id}", to="second")
    graph.add_agent(Echo("second", output_key="again"), prompt="before: #{out}")
    ctx = FlowContext()
    run(door, graph, ctx)
    assert dict(ctx) == {"order.id": "SO-1001", "out": "order=SO-1001", "again": "before: order=SO-1001"}
    with pytest.raises(MissingKeyError, match=r"agent 'echo' reads '#{order.id}'.*Did you mean 'order.ids'"):
        run(door, FlowGraph("h").add_agent(Echo(), prompt="#{order.id}"), FlowContext(**{"order.ids": 1}))


def test_what_agents_keep_lasts_as_long_as_the_context_and_is_no_data(door):
    agent = Echo()
    ctx = FlowContext()
    for name in ("g", "h"):
        run(door, FlowGraph(name).add_agent(agent, prompt=name), ctx)
    assert [said for _, said in agent.seen] == [[], ["g"]]
    assert ctx.home.private["@said"] == ["g", "h"]
    assert dict(ctx) == {"out": "h"}


def test_all_missing_resources_are_named_before_anything_runs(door):
    ran = []
    graph = FlowGraph("g").add_activity("a", lambda ctx: ran.append(1), to="echo")
    agent = Echo(needs={"model": str, "db": dict})
    graph.add_agent(agent, prompt="x")
    ctx = FlowContext()
    with pytest.raises(MissingResourceError, match=r"'model' \(str\), 'db' \(dict, not 5"):
        run(door, graph, ctx, resources={"db": 5})
    assert ran == []
    ctx["free"] = 1
    run(door, graph, ctx, resources={"model": "m", "db": {}})
    assert agent.seen[0][0] == {"model": "m", "db": {}}
    assert ctx.home.resources == {}


@pytest.mark.parametrize("field", ["said", "@@said", "@trace", "@key/out", "@at/loop"])
def test_a_field_that_is_not_an_agents_to_keep_is_refused(field):
    agent = Echo(instruction="go")
    agent.fields = lambda: {field: int}
    with pytest.raises(FlowDefinitionError, match=rf"an agent of graph 'g' keeps the field '{field}'"):
        FlowGraph("g").add_agent(agent).run(FlowContext())
