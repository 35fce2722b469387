"""How the state of an agent is put together from schemas, and who sees what of it."""

import operator
import warnings
from dataclasses import dataclass, field
from typing import Annotated, Any, List, Literal, NotRequired, Optional, Required  # noqa: UP035 - an older way to write it

import pytest
from langchain_core.messages import BaseMessage
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from pregel.channels import BinaryOperatorAggregate, EphemeralValue, LastValue, Topic
from pregel.errors import InvalidInputError, InvalidUpdateError, PregelWarning, SchemaError
from pregel.graph import OmitFromInput, OmitFromOutput, OmitFromSchema, PrivateStateAttr
from pregel.graph.agent import AgentMiddleware, AgentState, JumpTo, ScriptedModel, create_agent
from pregel.graph.agent.schemas import Declaration, merge_schemas, narrows
from pregel.graph.messages import AnyMessage, HumanMessage, add_messages
from pregel.managed import RemainingSteps


def middleware(name, schema, **hooks):
    """A middleware with a state of its own."""
    return type(name, (AgentMiddleware,), {"state_schema": schema, **hooks})()


def agent_with(*schemas, state_schema=None, update=None):
    """An agent with a middleware for each schema; one more hook writes an update."""
    listed = [middleware(f"M{place}", schema) for place, schema in enumerate(schemas)]
    if update is not None:
        listed.append(middleware("Writer", AgentState, after_agent=lambda self, state: update))
    return create_agent(ScriptedModel(["ok"]), middleware=listed, state_schema=state_schema)


def seen(agent):
    """The fields that callers may set, and those that they get."""
    return (
        set(agent.get_input_jsonschema()["properties"]),
        set(agent.get_output_jsonschema()["properties"]),
    )


# -- the markers: who sees a field ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("marker", "is_input", "is_output"),
    [
        (None, True, True),
        (OmitFromInput, False, True),
        (OmitFromOutput, True, False),
        (PrivateStateAttr, False, False),
        (OmitFromSchema(input=True, output=False), False, True),
        (OmitFromSchema(), False, False),
        (OmitFromSchema, False, False),
    ],
)
@pytest.mark.parametrize("form", ["plain", "required", "inside"])
def test_a_marker_says_whether_a_field_is_input_and_output(marker, is_input, is_output, form):
    hint = int if marker is None else Annotated[int, marker]
    if form == "required":
        hint = Required[hint]
    elif form == "inside":
        hint = NotRequired[int] if marker is None else Annotated[NotRequired[int], marker]
    given, got = seen(agent_with(TypedDict("State", {"n": hint})))
    assert ("n" in given, "n" in got) == (is_input, is_output)


def test_the_markers_are_what_they_are_said_to_be():
    assert OmitFromInput == OmitFromSchema(input=True, output=False)
    assert OmitFromOutput == OmitFromSchema(input=False, output=True)
    assert PrivateStateAttr == OmitFromSchema(input=True, output=True)


def test_the_fields_of_every_agent_have_the_table_s_channels_and_doors():
    agent = agent_with()
    assert {name: type(channel) for name, channel in agent.channels.items()} == {
        "messages": BinaryOperatorAggregate,
        "jump_to": EphemeralValue,
        "structured_response": LastValue,
    }
    assert agent.channels["messages"].operator is add_messages
    assert seen(agent) == ({"messages"}, {"messages", "structured_response"})


def test_a_private_field_is_between_the_hooks_alone(door):
    read = []

    class State(AgentState):
        secret: Annotated[int, PrivateStateAttr]

    agent = create_agent(
        ScriptedModel(["ok", "ok"]),
        middleware=[
            middleware("Writes", State, before_agent=lambda self, state: {"secret": 7}),
            middleware("Reads", AgentState, before_model=lambda self, state: read.append(state["secret"])),
        ],
    )
    assert "secret" not in door.invoke(agent, {"messages": "hi"})
    assert read == [7]
    with pytest.raises(InvalidInputError, match="'secret', which is private"):
        door.invoke(agent, {"messages": "hi", "secret": 1})


# -- the merging rules -------------------------------------------------------------------------------------------------


def test_the_fields_of_all_middleware_and_of_the_user_are_there():
    agent = agent_with(
        TypedDict("A", {"a": int}), TypedDict("B", {"b": int}), state_schema=TypedDict("User", {"mine": int})
    )
    assert list(agent.channels) == ["messages", "jump_to", "structured_response", "a", "b", "mine"]


def test_of_two_declarations_the_later_counts_and_a_warning_names_both():
    class First(AgentState):
        n: int

    class Second(AgentState):
        n: str

    with pytest.warns(PregelWarning) as caught:
        agent = agent_with(First, Second, update={"n": "text"})
    assert agent.invoke({"messages": "hi"})["n"] == "text"
    text = str(caught[0].message)
    assert "'n' is declared as int by First of middleware 'M0' and as str by Second of middleware 'M1'" in text
    assert "second_n" in text
    assert caught[0].filename == __file__  # the line that calls create_agent


def test_the_user_s_schema_comes_after_the_middleware():
    class Theirs(AgentState):
        n: int

    class Mine(AgentState):
        n: list[int]

    with pytest.warns(PregelWarning, match="Theirs of middleware 'M0' and as list"):
        agent = agent_with(Theirs, state_schema=Mine, update={"n": [1]})
    assert agent.invoke({"messages": "hi"})["n"] == [1]


def test_two_reducers_for_one_field_are_told_of():
    with pytest.warns(PregelWarning, match=r"list without a reducer by A .* and as list with .*add.* by B"):
        agent = agent_with(TypedDict("A", {"n": list}), TypedDict("B", {"n": Annotated[list, operator.add]}))
    assert type(agent.channels["n"]) is BinaryOperatorAggregate


def test_declarations_that_mean_the_same_give_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent = agent_with(
            TypedDict("A", {"n": Annotated[list[int], operator.add], "m": int | None, "k": int}),
            TypedDict("B", {"n": Annotated[List[int], PrivateStateAttr, operator.add], "m": Optional[int]}),  # noqa: UP006, UP045 - other ways to write it
            TypedDict("C", {"k": Required[Annotated[int, LastValue]]}),
        )
    assert type(agent.channels["n"]) is BinaryOperatorAggregate


def test_a_schema_that_is_listed_twice_is_one():
    class State(AgentState):
        n: Annotated[list, operator.add]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent = agent_with(State, State, state_schema=State, update={"n": [1]})
    assert agent.invoke({"messages": "hi", "n": [0]})["n"] == [0, 1]


# -- what LangChain's merging loses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hint",
    [
        Annotated[list, operator.add, PrivateStateAttr],
        Annotated[list, PrivateStateAttr, operator.add],
        Annotated[NotRequired[Annotated[list, operator.add]], PrivateStateAttr],
        Annotated[list, operator.add, "a note"],
    ],
)
def test_a_reducer_is_not_dropped_wherever_it_stands(hint):
    agent = agent_with(TypedDict("State", {"n": hint}))
    assert agent.channels["n"].operator is operator.add


@pytest.mark.parametrize("order", ["marked first", "marked last"])
def test_visibility_does_not_leak_where_another_schema_has_no_marker(order):
    marked, plain = TypedDict("Marked", {"x": Annotated[int, PrivateStateAttr]}), TypedDict("Plain", {"x": int})
    agent = agent_with(*((marked, plain) if order == "marked first" else (plain, marked)))
    assert all("x" not in door for door in seen(agent))


def test_each_marker_restricts_what_it_says_and_the_user_s_schema_lifts_none():
    agent = agent_with(
        TypedDict("A", {"x": Annotated[int, OmitFromInput], "y": Annotated[int, OmitFromOutput]}),
        TypedDict("B", {"x": Annotated[int, OmitFromOutput], "y": int}),
        state_schema=TypedDict("User", {"x": int, "y": int}),
    )
    given, got = seen(agent)
    assert ("x" in given, "x" in got) == (False, False)
    assert ("y" in given, "y" in got) == (True, False)


def test_jump_to_stays_private_where_it_is_declared_again():
    agent = agent_with(TypedDict("State", {"jump_to": JumpTo | None}))
    assert type(agent.channels["jump_to"]) is EphemeralValue
    assert all("jump_to" not in door for door in seen(agent))


def test_a_reducer_and_a_plain_field_with_a_marker_can_be_merged():
    with pytest.warns(PregelWarning, match="the later one counts"):
        agent = agent_with(
            TypedDict("A", {"n": Annotated[list, operator.add]}),
            state_schema=TypedDict("User", {"n": Annotated[list, OmitFromInput]}),
        )
    assert type(agent.channels["n"]) is LastValue


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("messages", list),
        ("messages", Annotated[list[AnyMessage], operator.add]),
        ("messages", list[str]),
        ("messages", Annotated[list[AnyMessage], LastValue]),
        ("messages", Annotated[dict, add_messages]),
        ("jump_to", str),
        ("jump_to", Literal["tools", "elsewhere"]),
        ("jump_to", Annotated[JumpTo | None, LastValue]),
        ("structured_response", Annotated[list, operator.add]),
        ("structured_response", RemainingSteps),
    ],
)
@pytest.mark.parametrize("by", ["middleware", "user"])
def test_the_fields_of_every_agent_can_not_be_replaced(name, hint, by):
    schema = TypedDict("Mine", {name: hint})
    with pytest.raises(SchemaError, match=f"Mine of .* declares '{name}' as .* and in AgentState of every agent"):
        agent_with(*([schema] if by == "middleware" else []), state_schema=schema if by == "user" else None)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("messages", list[HumanMessage]),
        ("messages", list[BaseMessage]),
        ("messages", Annotated[list, add_messages]),
        ("messages", Annotated[list[AnyMessage], PrivateStateAttr, add_messages]),
        ("jump_to", Literal["end"] | None),
        ("structured_response", int),
        ("structured_response", Annotated[int, LastValue]),
    ],
)
def test_they_can_be_narrowed(name, hint):
    agent = agent_with(TypedDict("Mine", {name: hint}))
    assert agent.channels[name] == agent_with().channels[name]
    assert "messages" not in agent.invoke({}) or "messages" in seen(agent)[1]


def test_a_narrowed_field_takes_no_other_values():
    agent = agent_with(state_schema=AgentState[int], update={"structured_response": "text"})
    with pytest.raises(InvalidUpdateError, match="'structured_response' takes int"):
        agent.invoke({"messages": "hi"})


def test_two_narrowings_that_nothing_satisfies_are_an_error():
    with pytest.raises(SchemaError, match=r"AgentState of the agent declares 'structured_response' as str .* is int"):
        agent_with(AgentState[int], state_schema=AgentState[str])


def test_a_narrowing_stays_where_a_later_schema_says_less():
    class Wide(AgentState):
        n: int

    agent = agent_with(AgentState[int], state_schema=Wide, update={"structured_response": "text"})
    with pytest.raises(InvalidUpdateError, match="takes int"):
        agent.invoke({"messages": "hi"})


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (int, Any, True),
        (Any, int, False),
        (bool, int, True),
        (int, bool, False),
        (list[int], list, True),
        (list, list[int], False),
        (list[bool], list[int], True),
        (int, int | None, True),
        (int | None, int, False),
        (Literal["a"], Literal["a", "b"], True),
        (Literal["a"], str, True),
        (str, Literal["a"], False),
        (dict[str, int], dict[str, int | str], True),
    ],
)
def test_what_a_narrower_type_is(one, other, expected):
    assert narrows(one, other) is expected


# -- the forms of schemas ----------------------------------------------------------------------------------------------


def test_a_generic_alias_is_a_schema():
    agent = agent_with(state_schema=AgentState[dict[str, int]], update={"structured_response": {"a": 1}})
    assert agent.invoke({"messages": "hi"})["structured_response"] == {"a": 1}


def test_a_schema_without_messages_has_them_all_the_same(door):
    result = door.invoke(agent_with(state_schema=TypedDict("Mine", {"n": int})), {"messages": "hi", "n": 1})
    assert result["n"] == 1
    assert [message.text for message in result["messages"]] == ["hi", "ok"]


def test_required_makes_nothing_mandatory_that_a_run_can_begin_without():
    assert [message.text for message in agent_with().invoke({})["messages"]] == ["ok"]


def test_a_pydantic_state_keeps_its_defaults_and_validators(door):
    class State(BaseModel):
        n: int = Field(3, ge=1)
        names: list[str] = []

    agent = agent_with(TypedDict("Other", {"extra": int}), state_schema=State, update={"extra": 1, "n": 5})
    assert door.invoke(agent, {"messages": "hi"}).items() >= {"n": 5, "names": [], "extra": 1}.items()
    with pytest.raises(InvalidInputError, match="greater than or equal to 1"):
        door.invoke(agent, {"messages": "hi", "n": 0})
    bad = agent_with(state_schema=State, update={"n": 0})
    with pytest.raises(InvalidUpdateError, match="greater than or equal to 1"):
        door.invoke(bad, {"messages": "hi"})


def test_a_dataclass_keeps_its_defaults_and_may_be_the_input_and_an_update(door):
    @dataclass
    class State:
        n: int = 3
        names: list[str] = field(default_factory=list)

    agent = agent_with(state_schema=State, update=State(n=4))
    assert door.invoke(agent, State(names=["a"])).items() >= {"n": 4, "names": ["a"]}.items()
    assert door.invoke(agent_with(state_schema=State), {})["n"] == 3


def test_a_middleware_s_dataclass_keeps_its_defaults():
    @dataclass
    class Theirs:
        n: int = 3
        names: list[str] = field(default_factory=list)
        log: Annotated[list[str], operator.add] = field(default_factory=lambda: ["begun"])

    result = agent_with(Theirs, state_schema=TypedDict("Mine", {"m": int}), update={"log": ["on"]}).invoke({})
    assert result.items() >= {"n": 3, "names": [], "log": ["begun", "on"]}.items()


def test_a_hook_that_wants_an_instance_is_given_one(door):
    read = []

    @dataclass
    class State:
        n: int = 3

    class Reads(AgentMiddleware):
        def before_model(self, state: State):
            read.append(state)

    door.invoke(create_agent(ScriptedModel(["ok"]), middleware=[Reads()], state_schema=State), {"messages": "hi"})
    assert read == [State(3)]


def test_topics_managed_values_and_channels_of_their_own_survive_the_merging():
    read = []

    class State(AgentState):
        posts: Annotated[list[str], Topic]
        left: RemainingSteps

    agent = create_agent(
        ScriptedModel(["ok"]),
        middleware=[
            middleware("M", State, before_model=lambda self, state: {"posts": str(read.append(state["left"]))})
        ],
    )
    agent.invoke({"messages": "hi"}, {"recursion_limit": 9})
    assert read == [8]
    assert agent.channels["posts"] == Topic(str)


def test_merge_schemas_takes_declarations_alone():
    merged = merge_schemas("agent", [Declaration("somebody", TypedDict("A", {"n": Annotated[int, operator.add]}))])
    assert merged.state is merged.door is merged.view
    assert merged.folding == {"messages", "n"}


def test_no_schema_is_an_error_that_says_what_is_one():
    with pytest.raises(SchemaError, match="is no schema"):
        agent_with(state_schema=dict)
