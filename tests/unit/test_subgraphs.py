"""A compiled graph as a node of another, or called inside a node: what goes in, what comes back, and its errors."""

import contextlib
import operator
import threading
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypedDict

import anyio
import anyio.lowlevel
import pytest
from pydantic import BaseModel, field_validator

from pregel import (
    START,
    Command,
    MessagesState,
    OmitFromInput,
    OmitFromOutput,
    Overwrite,
    PrivateStateAttr,
    Runtime,
    Send,
    StateGraph,
    add_messages,
)
from pregel.channels import DELETE, EphemeralValue, KeyedValue, Topic
from pregel.config import get_config, get_stream_writer
from pregel.errors import (
    GraphDefinitionError,
    GraphRecursionError,
    InvalidConcurrentUpdateError,
    InvalidInputError,
    InvalidUpdateError,
    PregelWarning,
    SchemaError,
    StarvedJoinError,
    UnknownTargetError,
)
from pregel.graph.messages import REMOVE_ALL_MESSAGES, AIMessage, HumanMessage, RemoveMessage
from pregel.runtime import get_runtime
from tests.leftovers import nothing_left

may_warn = pytest.mark.filterwarnings("ignore::pregel.errors.PregelWarning")


class State(TypedDict, total=False):
    log: Annotated[list, operator.add]
    value: int
    other: int


def writes(update):
    """Return a node that returns an update."""
    return lambda state: update


def up(update=None, goto=()):
    """Return a node that sends a command to the graph around its own."""
    return lambda state: Command(graph=Command.PARENT, update=update, goto=goto)


def note(name):
    """Return a node that logs what it sees of the log."""
    return lambda state: {"log": [f"{name}{len(state['log'])}"]}


def chain(schema=State, /, name=None, **actions):
    """Return a graph of nodes that run one after the other."""
    return chained(schema, **actions).compile(name=name)


def chained(schema=State, /, **actions):
    """Return a builder of nodes that run one after the other."""
    return StateGraph(schema).add_sequence(list(actions.items())).add_edge(START, next(iter(actions)))


def fan(schema=State, /, name=None, **actions):
    """Return a graph of nodes that run in one superstep."""
    builder = StateGraph(schema)
    for node, action in actions.items():
        builder.add_node(node, action).add_edge(START, node)
    return builder.compile(name=name)


def notes(error):
    return "\n".join(getattr(error, "__notes__", ()))


# --- What goes in and what comes back ---------------------------------------------------------------------------------


def test_case_33_what_the_child_was_given_is_not_folded_again(door):
    child = chain(c=note("c"), d=note("d"))
    parent = chain(p=note("p"), child=child, q=note("q"))
    assert door.invoke(parent, {"log": ["in"]}) == {"log": ["in", "p1", "c2", "d3", "q4"]}


def test_the_updates_of_parallel_nodes_of_the_child_come_back_in_order(door):
    child = fan(z=writes({"log": ["z"]}), a=writes({"log": ["a"]}), m=writes({"log": ["m"]}))
    assert door.invoke(chain(child=child), {"log": ["in"]}) == {"log": ["in", "z", "a", "m"]}


def test_updates_of_parallel_children_are_applied_in_the_order_of_the_nodes(door):
    child = chain(c=note("c"), d=note("d"))
    parent = fan(second=child, sibling=writes({"log": ["s"]}), first=child)
    assert door.invoke(parent, {"log": ["in"]}) == {"log": ["in", "c1", "d2", "s", "c1", "d2"]}


def test_reducers_of_the_child_see_the_parents_value_as_their_own(door):
    class Tangled(TypedDict):
        n: Annotated[int, lambda left, right: left * 10 + right]

    seen = []
    child = chain(Tangled, c=writes({"n": 2}), see=lambda state: seen.append(state["n"]) or {})
    assert door.invoke(chain(Tangled, child=child), {"n": 1}) == {"n": 12}
    assert seen == [12]


def test_a_child_that_writes_nothing_changes_nothing(door):
    class Tangled(TypedDict, total=False):
        n: Annotated[int, lambda left, right: left * 10 + right]
        plain: int

    child = chain(Tangled, c=writes({}))
    assert door.invoke(chain(Tangled, child=child), {"n": 3, "plain": 4}) == {"n": 3, "plain": 4}
    assert door.stream(chain(Tangled, child=child), {"n": 3}) == [{"child": None}]


def test_case_05_parallel_children_of_one_schema_that_change_their_own_key_do_not_conflict(door):
    parent = fan(a=chain(c=writes({"value": 1})), b=chain(c=writes({"other": 2})))
    assert door.invoke(parent, {"value": 0, "other": 0}) == {"log": [], "value": 1, "other": 2}


def test_case_05_parallel_children_that_write_one_plain_field_conflict_and_are_named(door):
    parent = fan(left=chain(c=writes({"value": 17})), right=chain(c=writes({"value": 23})))
    with pytest.raises(InvalidConcurrentUpdateError) as caught:
        door.invoke(parent, {})
    for word in ("'left'", "'right'", "17", "23", "'value'"):
        assert word in str(caught.value)


def test_of_a_plain_field_the_final_value_comes_back_once(door):
    child = chain(c=writes({"value": 1}), d=lambda state: {"value": state["value"] + 1})
    assert door.stream(chain(child=child), {}) == [{"child": {"value": 2}}]


def test_a_plain_field_that_the_child_set_to_what_it_was_counts_as_written(door):
    parent = fan(a=chain(c=lambda state: {"value": state["value"]}), b=writes({"value": 5}))
    with pytest.raises(InvalidConcurrentUpdateError):
        door.invoke(parent, {"value": 0})


def test_a_field_without_a_value_is_not_set_into_the_child(door):
    seen = []
    child = chain(c=lambda state: seen.append(dict(state)) or {})
    door.invoke(chain(child=child), {"value": 1})
    assert seen == [{"log": [], "value": 1}]


def test_an_overwrite_in_the_child_replaces_the_parents_value(door):
    child = chain(c=writes({"log": ["lost"]}), d=writes({"log": Overwrite(["new"])}), e=writes({"log": ["more"]}))
    parent = chain(p=writes({"log": ["p"]}), child=child, q=writes({"log": ["q"]}))
    assert door.invoke(parent, {"log": ["in"]}) == {"log": ["new", "more", "q"]}


def test_an_overwrite_in_the_child_replaces_what_its_siblings_write(door):
    child = chain(d=writes({"log": Overwrite(["new"])}))
    parent = fan(a=writes({"log": ["a"]}), child=child, b=writes({"log": ["b"]}))
    assert door.invoke(parent, {"log": ["in"]}) == {"log": ["new"]}


def test_an_overwrite_of_a_plain_field_in_the_child_is_never_stored_as_one(door):
    child = chain(d=writes({"value": Overwrite(3)}))
    assert door.invoke(chain(child=child), {"value": 1}) == {"log": [], "value": 3}


def test_a_field_may_be_plain_on_one_side_and_fold_on_the_other(door):
    class Plain(TypedDict, total=False):
        log: list

    child = chain(Plain, c=writes({"log": ["c"]}), d=writes({"log": ["d"]}))
    assert door.invoke(chain(child=child), {"log": ["in"]}) == {"log": ["in", "c", "d"]}
    folding = chain(c=writes({"log": ["c"]}), d=writes({"log": ["d"]}))
    assert door.invoke(chain(Plain, child=folding), {"log": ["in"]}) == {"log": ["in", "c", "d"]}


class Topics(TypedDict, total=False):
    kept: Annotated[list[str], Topic(str, True)]
    passing: Annotated[list[str], Topic(str)]


def test_what_the_child_publishes_is_published_once(door):
    child = chain(Topics, c=writes({"kept": "c", "passing": "c"}), d=writes({"kept": ["d", "e"], "passing": ["d"]}))
    seen = []
    parent = chain(
        Topics,
        p=writes({"kept": "p", "passing": "p"}),
        child=child,
        q=lambda state: seen.append(list(state["passing"])) or {},
    )
    assert door.invoke(parent, {"kept": ["in"]}) == {"kept": ["in", "p", "c", "d", "e"], "passing": []}
    assert seen == [["c", "d"]]


def test_the_child_sees_what_was_published_and_it_fades_inside_too(door):
    seen = []
    child = chain(
        Topics,
        c=lambda state: seen.append(list(state["passing"])) or {},
        d=lambda state: seen.append(list(state["passing"])) or {},
    )
    door.invoke(chain(Topics, p=writes({"passing": "p"}), child=child), {})
    assert seen == [["p"], []]


class Keyed(TypedDict, total=False):
    cells: Annotated[dict, KeyedValue]


def test_keys_that_the_child_writes_are_written_one_by_one(door):
    child = chain(Keyed, c=writes({"cells": {"a": 1, "b": 1}}), d=writes({"cells": {"b": 2, "old": DELETE}}))
    parent = fan(Keyed, child=child, sibling=writes({"cells": {"c": 3}}))
    given = {"cells": {"old": 0, "kept": 0}}
    assert door.invoke(parent, given) == {"cells": {"kept": 0, "a": 1, "b": 2, "c": 3}}


def test_parallel_children_that_write_one_key_conflict(door):
    child = chain(Keyed, c=writes({"cells": {"a": 1}}))
    with pytest.raises(InvalidConcurrentUpdateError, match="'a'"):
        door.invoke(fan(Keyed, left=child, right=child), {})


class Fading(TypedDict, total=False):
    flash: Annotated[str, EphemeralValue]
    log: Annotated[list, operator.add]


def test_an_ephemeral_field_enters_the_child_fades_there_and_comes_back_from_its_last_superstep(door):
    def see(state):
        return {"log": [state.get("flash")]}

    early = chain(Fading, a=see, b=lambda state: {"flash": "b"}, c=see, d=see)
    parent = chain(Fading, p=writes({"flash": "p"}), child=early, q=see)
    assert door.invoke(parent, {}) == {"log": ["p", "b", None, None]}
    late = chain(Fading, a=see, b=lambda state: {"flash": "b"})
    parent = chain(Fading, p=writes({"flash": "p"}), child=late, q=see)
    assert door.invoke(parent, {}) == {"log": ["p", "b"]}


def contents(messages):
    return [message.content for message in messages]


def test_messages_of_a_child_are_appended_once_and_keep_their_ids(door):
    inner = []
    child = chain(
        MessagesState,
        ask=writes({"messages": HumanMessage("ask")}),
        answer=lambda state: inner.extend(state["messages"]) or {"messages": AIMessage("answer")},
    )
    parent = chain(MessagesState, p=writes({"messages": "p"}), child=child)
    messages = door.invoke(parent, {"messages": "in"})["messages"]
    assert contents(messages) == ["in", "p", "ask", "answer"]
    assert [message.id for message in messages[:3]] == [message.id for message in inner]
    assert len({message.id for message in messages}) == 4


def test_a_child_may_replace_and_remove_messages_of_the_parent(door):
    child = chain(
        MessagesState,
        change=writes({"messages": [HumanMessage("changed", id="1"), RemoveMessage(id="2")]}),
        add=writes({"messages": "new"}),
    )
    given = {"messages": [HumanMessage("one", id="1"), HumanMessage("two", id="2"), HumanMessage("three", id="3")]}
    assert contents(door.invoke(chain(MessagesState, child=child), given)["messages"]) == ["changed", "three", "new"]
    child = chain(
        MessagesState, clear=writes({"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("only")]})
    )
    assert contents(door.invoke(chain(MessagesState, child=child), given)["messages"]) == ["only"]


def test_a_child_with_a_pydantic_schema_gives_back_what_its_validators_made(door):
    class Model(BaseModel):
        name: str = ""
        n: Annotated[int, operator.add] = 0

        @field_validator("name")
        @classmethod
        def upper(cls, value):
            return value.upper()

    class Outer(TypedDict, total=False):
        name: str
        n: Annotated[int, operator.add]

    seen = []
    child = chain(Model, c=lambda state: seen.append(state) or {"name": "ann", "n": 2})
    assert door.invoke(chain(Outer, child=child), {"name": "bo", "n": 1}) == {"name": "ANN", "n": 3}
    assert isinstance(seen[0], Model)
    assert seen[0].n == 1


def test_the_parents_schema_may_be_a_dataclass(door):
    @dataclass
    class Outer:
        value: int = 7
        extra: str = "x"

    child = chain(c=lambda state: {"value": state["value"] + 1, "log": ["inner"]})
    assert door.invoke(chain(Outer, child=child), {}) == {"value": 8, "extra": "x"}


def test_a_childs_own_fields_stay_its_own_and_begin_anew_in_each_run(door):
    class Inner(TypedDict, total=False):
        value: int
        own: Annotated[list, operator.add]

    seen = []
    child = chain(
        Inner, a=writes({"own": ["a"]}), b=lambda state: seen.append(list(state["own"])) or {"value": len(seen)}
    )
    assert door.invoke(chain(one=child, two=child), {}) == {"log": [], "value": 2}
    assert seen == [["a"], ["a"]]


# --- What is not shared -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("marker", "sees", "result"),
    [
        (None, {"value": 1, "other": 2}, {"value": 1, "other": 9}),
        (OmitFromInput, {"value": 1}, {"value": 1, "other": 9}),
        (OmitFromOutput, {"value": 1, "other": 2}, {"value": 1, "other": 2}),
        (PrivateStateAttr, {"value": 1}, {"value": 1, "other": 2}),
    ],
)
def test_a_field_that_the_child_omits_is_not_shared(door, marker, sees, result):
    inner = TypedDict("inner", {"value": int, "other": Annotated[int, marker]}, total=False)  # noqa: UP013 - of a parameter
    seen = []
    child = chain(inner, c=lambda state: seen.append(dict(state)) or {"other": 9})
    assert door.invoke(chain(child=child), {"value": 1, "other": 2}) == {"log": [], **result}
    assert seen == [sees]


def test_a_field_that_only_the_parent_omits_is_shared(door):
    class Outer(TypedDict, total=False):
        value: int
        other: Annotated[int, PrivateStateAttr]

    child = chain(c=lambda state: {"value": state["other"], "other": 3})
    seen = []
    parent = chain(Outer, p=writes({"other": 2}), child=child, q=lambda state: seen.append(dict(state)) or {})
    assert door.invoke(parent, {}) == {"value": 2}
    assert seen == [{"value": 2, "other": 3}]


def test_the_input_and_output_schemas_of_the_child_say_what_it_shares(door):
    class Given(TypedDict, total=False):
        value: int

    class Result(TypedDict, total=False):
        log: Annotated[list, operator.add]

    seen = []
    builder = StateGraph(State, input_schema=Given, output_schema=Result)
    builder.add_node("c", lambda state: seen.append(dict(state)) or {"log": ["c"], "value": 5}).add_edge(START, "c")
    parent = chain(child=builder.compile())
    assert door.invoke(parent, {"log": ["in"], "value": 1, "other": 2}) == {"log": ["in", "c"], "value": 1, "other": 2}
    assert seen == [{"log": [], "value": 1}]


def test_the_input_schema_of_the_node_narrows_what_the_child_gets(door):
    class Narrow(TypedDict, total=False):
        value: int

    seen = []
    child = chain(c=lambda state: seen.append(dict(state)) or {"other": 5})
    builder = StateGraph(State).add_node("child", child, input_schema=Narrow).add_edge(START, "child")
    assert door.invoke(builder.compile(), {"log": ["in"], "value": 1}) == {"log": ["in"], "value": 1, "other": 5}
    assert seen == [{"log": [], "value": 1}]


def test_a_shared_field_of_another_type_is_an_error_at_compile():
    class Inner(TypedDict):
        value: str

    child = chain(Inner, "the child", c=writes({}))
    with pytest.raises(SchemaError, match="schema-mismatch") as caught:
        chain(State, "the parent", child=child)
    for word in ("'the child'", "'the parent'", "'value'", "str", "int"):
        assert word in str(caught.value)


def test_a_shared_field_of_another_type_can_be_allowed():
    class Inner(TypedDict, total=False):
        value: str

    builder = StateGraph(State, allow={"schema-mismatch"}).add_node("child", chain(Inner, c=writes({})))
    with pytest.warns(PregelWarning, match="schema-mismatch"):
        graph = builder.add_edge(START, "child").compile()
    assert graph.invoke({"value": 1}) == {"log": [], "value": 1}


def test_a_child_that_shares_no_field_is_an_error_at_compile():
    class Inner(TypedDict):
        foreign: int

    with pytest.raises(GraphDefinitionError) as caught:
        chain(State, "the parent", child=chain(Inner, "the child", c=writes({})))
    for word in ("'the child'", "'the parent'", "'child'", "log, value, other"):
        assert word in str(caught.value)


def test_a_child_that_omits_all_that_it_has_in_common_shares_no_field():
    class Inner(TypedDict):
        value: Annotated[int, PrivateStateAttr]
        foreign: int

    with pytest.raises(GraphDefinitionError, match="shares no field"):
        chain(child=chain(Inner, c=writes({})))


# --- Send to a child --------------------------------------------------------------------------------------------------


def sending(child, *packets):
    builder = StateGraph(State).add_node("child", child)
    builder.add_conditional_edges(START, lambda state: [Send("child", packet) for packet in packets], ["child"])
    return builder.compile(name="parent")


def test_a_sent_input_takes_the_place_of_the_state(door):
    seen = []
    child = chain(c=lambda state: seen.append(dict(state)) or {"log": [state["value"]]})
    graph = sending(child, {"value": 1}, {"value": 2, "log": ["x"]})
    result = door.invoke(graph, {"log": ["in"], "other": 5})
    assert sorted(seen, key=operator.itemgetter("value")) == [{"log": [], "value": 1}, {"log": ["x"], "value": 2}]
    assert result == {"log": ["in", 1, 2], "other": 5}  # and what a child was sent does not come back


def test_a_sent_input_may_be_an_instance_of_the_childs_schema(door):
    @dataclass
    class Inner:
        value: int = 0
        log: Annotated[list, operator.add] = field(default_factory=list)

    child = chain(Inner, c=lambda state: {"log": [state.value]})
    builder = StateGraph(State).add_node("child", child)
    builder.add_conditional_edges(START, lambda state: [Send("child", Inner(value=4))], ["child"])
    assert door.invoke(builder.compile(), {}) == {"log": [4]}


@pytest.mark.parametrize(
    ("packet", "words"),
    [
        ({"valu": 1}, ["'valu'", "Did you mean 'value'?", "undeclared-input"]),
        ({"value": "x"}, ["'value'", "'x'", "wrong-type"]),
        (3, ["3", "mapping"]),
        (None, ["None"]),
    ],
)
def test_a_sent_input_goes_through_the_childs_door(door, packet, words):
    ran = []
    child = chain(State, "inner", c=lambda state: ran.append(1) or {})
    with pytest.raises(InvalidInputError) as caught:
        door.invoke(sending(child, packet), {})
    for word in ("'inner'", *words):
        assert word in str(caught.value)
    assert "In graph 'parent', node 'child'" in notes(caught.value)
    assert ran == []


def test_a_private_field_can_not_be_sent_into_a_child(door):
    class Inner(TypedDict, total=False):
        log: Annotated[list, operator.add]
        secret: Annotated[int, PrivateStateAttr]

    with pytest.raises(InvalidInputError, match="private-input"):
        door.invoke(sending(chain(Inner, c=writes({})), {"secret": 1}), {})


# --- Commands to the graph around -------------------------------------------------------------------------------------


def around(child, *nodes, edges=(), destinations=(), schema=State):
    """Return a graph around a child, with nodes that log their names."""
    builder = StateGraph(schema).add_node("child", child, destinations=destinations).add_edge(START, "child")
    for name in nodes:
        builder.add_node(name, writes({"log": [name]}))
    for edge in edges:
        builder.add_edge(*edge)
    return builder


def test_a_command_to_the_parent_updates_it_and_chooses_what_runs_next(door):
    child = chain(first=writes({"log": ["first"]}), up=up({"value": 5}, "b"), never=writes({"log": ["never"]}))
    parent = around(child, "a", "b", destinations=["a", "b"]).compile()
    assert door.invoke(parent, {}) == {"log": ["first", "b"], "value": 5}


def test_the_writes_of_the_child_before_the_command_and_beside_it_are_kept(door):
    builder = chained(a=writes({"log": ["a"], "other": 1}), b=writes({}))
    builder.add_node("x", writes({"log": ["x"]})).add_node("up", up({"log": ["up"]})).add_node("y", note("y"))
    builder.add_edge("b", "x").add_edge("b", "up").add_edge("b", "y")
    assert door.invoke(around(builder.compile()).compile(), {}) == {"log": ["a", "x", "y1", "up"], "other": 1}


@may_warn
def test_static_edges_of_the_parent_run_beside_a_goto(door):
    parent = around(
        chain(up=up({"log": ["up"]}, "x")), "x", "y", "z", edges=[("child", "y"), ("y", "z")], destinations=["x"]
    )
    assert door.invoke(parent.compile(), {})["log"] == ["up", "x", "y", "z"]


def test_static_edges_of_the_parent_run_after_a_command_without_goto(door):
    assert door.invoke(around(chain(up=up({"log": ["up"]})), "y", edges=[("child", "y")]).compile(), {})["log"] == [
        "up",
        "y",
    ]


def test_case_15_commands_of_parallel_nodes_are_all_merged_in_the_order_of_the_nodes(door):
    child = fan(b=up({"log": ["b"]}, "y"), a=up({"log": ["a"], "value": 3}, "x"), c=up({"log": ["c"]}))
    parent = around(child, "x", "y", destinations=["x", "y"]).compile()
    assert door.invoke(parent, {}) == {"log": ["b", "a", "c", "x", "y"], "value": 3}


def test_case_15_commands_of_parallel_nodes_that_write_one_plain_field_conflict(door):
    child = fan(a=up({"value": 17}), b=up({"value": 23}))
    with pytest.raises(InvalidConcurrentUpdateError) as caught:
        door.invoke(around(child).compile(), {})
    for word in ("'value'", "17", "23", "'child'"):
        assert word in str(caught.value)


def test_commands_of_parallel_children_are_all_merged(door):
    builder = StateGraph(State).add_node("a", chain(up=up({"log": ["a"]}, "x")), destinations=["x"])
    builder.add_node("b", chain(up=up({"log": ["b"], "value": 1}, "x")), destinations=["x"])
    builder.add_node("x", writes({"log": ["x"]})).add_edge(START, "a").add_edge(START, "b")
    assert door.invoke(builder.compile(), {}) == {"log": ["a", "b", "x"], "value": 1}


def test_commands_of_sent_children_are_all_merged(door):
    child = chain(
        c=writes({"log": ["c"]}),
        up=lambda state: Command(graph=Command.PARENT, update={"log": [state["value"]]}, goto=Send("x", state)),
    )
    builder = StateGraph(State).add_node("child", child, destinations=["x"])
    builder.add_node("x", lambda state: {"log": [("x", state["value"])]})
    builder.add_conditional_edges(START, lambda state: [Send("child", {"value": n}) for n in (2, 1)], ["child"])
    assert door.invoke(builder.compile(), {})["log"] == ["c", 2, "c", 1, ("x", 2), ("x", 1)]


def test_a_node_may_return_updates_and_a_command_to_the_parent_together(door):
    child = chain(both=writes([{"log": ["own"]}, Command(graph=Command.PARENT, update={"log": ["up"]})]))
    assert door.invoke(around(child).compile(), {})["log"] == ["own", "up"]


def test_a_command_may_update_fields_that_only_the_parent_has(door):
    class Inner(TypedDict, total=False):
        log: Annotated[list, operator.add]

    child = chain(Inner, up=up([("value", 1), ("log", ["up"])]))
    assert door.invoke(around(child).compile(), {}) == {"log": ["up"], "value": 1}


def test_what_the_command_says_of_a_plain_field_conflicts_with_what_the_child_wrote(door):
    child = chain(a=writes({"value": 17}), up=up({"value": 23}))
    with pytest.raises(InvalidConcurrentUpdateError, match=r"'value'.*17.*23"):
        door.invoke(around(child).compile(), {})
    child = chain(a=writes({"value": 17}), up=up({"value": Overwrite(23)}))
    assert door.invoke(around(child).compile(), {})["value"] == 23


def test_messages_in_a_command_to_the_parent_get_ids(door):
    child = chain(MessagesState, a=writes({"messages": "a"}), up=up({"messages": [HumanMessage("up")]}))
    messages = door.invoke(around(child, schema=MessagesState).compile(), {"messages": "in"})["messages"]
    assert contents(messages) == ["in", "a", "up"]
    assert len({message.id for message in messages if message.id}) == 3


def half_a_join():
    """Return a builder of a join that hears from one of its two sources."""
    builder = StateGraph(State)
    for name in "abj":
        builder.add_node(name, writes({"log": [name]}))
    builder.add_conditional_edges(START, lambda state: "a", ["a", "b"])
    return builder.add_edge(["a", "b"], "j")


@may_warn
def test_a_join_of_the_child_that_a_command_leaves_waiting_is_no_error(door):
    child = half_a_join().add_node("up", up({"log": ["up"]})).add_edge("a", "up").compile()
    assert door.invoke(around(child).compile(), {})["log"] == ["a", "up"]


def test_a_command_reaches_the_graph_around_only_one_level_up(door):
    inner = chain(State, "inner", up=up({"log": ["up"]}, "b"))
    middle = around(inner, "a", "b", destinations=["a", "b"]).compile(name="middle")
    outer = chain(State, "outer", middle=middle, after=writes({"log": ["after"]}))
    assert door.invoke(outer, {})["log"] == ["up", "b", "after"]


def test_a_command_can_be_handed_on_from_graph_to_graph(door):
    inner = chain(up=up({"log": ["inner"]}, "leave"))
    middle = around(inner, destinations=["leave"]).add_node("leave", up({"log": ["middle"]}, "b")).compile()
    outer = around(middle, "a", "b", destinations=["a", "b"]).compile()
    assert door.invoke(outer, {})["log"] == ["inner", "middle", "b"]


def test_at_the_root_a_command_to_the_parent_is_an_error(door):
    with pytest.raises(InvalidUpdateError) as caught:
        door.invoke(chain(State, "root", up=up({"value": 5})), {})
    for word in ("'up'", "'root'", "PARENT"):
        assert word in str(caught.value)


def test_in_a_graph_that_a_function_calls_a_command_to_the_parent_is_an_error(door):
    inner = chain(State, "inner", up=up({"value": 5}))
    with pytest.raises(InvalidUpdateError, match="'inner'"):
        door.invoke(chain(call=lambda state: inner.invoke({})), {})


@pytest.mark.parametrize("goto", ["nods", ["node", "nods"], Send("nods", 1)])
def test_a_goto_to_no_node_of_the_parent_is_an_error(door, goto):
    parent = around(chain(State, "inner", up=up(goto=goto)), "node", destinations=["node"]).compile(name="outer")
    with pytest.raises(UnknownTargetError) as caught:
        door.invoke(parent, {})
    for word in ("'child'", "'outer'", "'nods'", "Did you mean 'node'?"):
        assert word in str(caught.value)


def test_an_undeclared_field_in_a_command_to_the_parent_is_an_error(door):
    with pytest.raises(InvalidUpdateError) as caught:
        door.invoke(around(chain(up=up({"valeu": 5}))).compile(name="outer"), {})
    for word in ("'child'", "'outer'", "'valeu'", "Did you mean 'value'?", "undeclared-key"):
        assert word in str(caught.value)


# --- Nesting, sync and async ------------------------------------------------------------------------------------------


async def alog(state):
    await anyio.lowlevel.checkpoint()
    return {"log": ["async"]}


def nested(innermost, depth):
    """Return a graph around a graph around ..., each with a node before and one after it."""
    graph = innermost
    for level in range(depth, 0, -1):
        actions = {f"before{level}": note(f"b{level}:"), "child": graph, f"after{level}": note(f"a{level}:")}
        graph = chain(State, f"level{level}", **actions)
    return graph


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_graphs_nest_five_deep(door, kind):
    graph = nested(chain(leaf=alog if kind == "async" else writes({"log": ["sync"]})), 5)
    expected = [*(f"b{n}:{n}" for n in range(1, 6)), kind, *(f"a{n}:{12 - n}" for n in range(5, 0, -1))]
    assert door.invoke(graph, {"log": ["in"]}) == {"log": ["in", *expected]}


@pytest.mark.parametrize("executor", ["inline", "thread"])
@pytest.mark.parametrize("kinds", ["sa", "as", "sas", "asa"])
def test_every_mixture_of_sync_and_async_levels_runs_in_every_way(door, kinds, executor):
    graph, expected = None, []
    for kind in reversed(kinds):
        action = alog if kind == "a" else writes({"log": ["sync"]})
        builder = StateGraph(State).add_node("own", action).add_edge(START, "own")
        if graph is not None:
            builder.add_node("left", graph).add_node("right", graph).add_edge("own", "left").add_edge("own", "right")
        graph = builder.compile(executor=executor)
        expected = ["async" if kind == "a" else "sync", *expected, *expected]
    assert door.invoke(graph, {})["log"] == expected


def test_an_object_with_both_forms_is_awaited_on_asyncio_in_a_child_as_it_is_outside(door):
    class Both:
        def invoke(self, state):
            return {"log": ["invoke"]}

        async def ainvoke(self, state):
            return {"log": ["ainvoke"]}

    graph = chain(both=Both())
    form = "ainvoke" if door.way == "asyncio" else "invoke"
    assert door.invoke(graph, {})["log"] == [form]
    assert door.invoke(chain(child=graph), {})["log"] == [form]


def test_more_children_side_by_side_than_there_are_threads(door):
    from pregel.drivers.workers import set_thread_limit, thread_limit

    inner = fan(a=writes({"log": ["a"]}), b=writes({"log": ["b"]}))
    child = chain(inner=inner)
    before = thread_limit()
    set_thread_limit(2)
    try:
        result = door.invoke(sending(child, *[{}] * 50), {})
    finally:
        set_thread_limit(before)
    assert result["log"] == ["a", "b"] * 50


# --- Errors -----------------------------------------------------------------------------------------------------------


def fail(state):
    raise ValueError("no luck")


async def afail(state):
    raise ValueError("no luck")


@pytest.mark.parametrize("failing", [fail, afail])
def test_an_error_in_a_child_carries_notes_of_both_graphs(door, failing):
    parent = chain(State, "outer", p=writes({}), child=chain(State, "inner", c=writes({}), failing=failing))
    with pytest.raises(ValueError, match="no luck") as caught:
        door.invoke(parent, {})
    inner, outer = caught.value.__notes__
    assert inner.startswith("In graph 'inner', node 'failing', superstep 2")
    assert outer.startswith("In graph 'outer', node 'child', superstep 2")


def test_two_failures_in_a_child_are_one_group_and_each_has_its_notes(door):
    parent = chain(State, "outer", child=fan(State, "inner", a=fail, b=fail))
    with pytest.raises(ExceptionGroup) as caught:
        door.invoke(parent, {})
    assert "'inner'" in str(caught.value)
    assert [notes(error).count("In graph 'inner', node") for error in caught.value.exceptions] == [1, 1]
    assert "In graph 'outer', node 'child'" in notes(caught.value)


def test_a_failed_child_changes_nothing_of_the_parent(door):
    child = chain(a=writes({"log": ["a"]}), fail=fail)
    *states, error = door.stream(chain(p=writes({"log": ["p"]}), child=child), {}, stream_mode="values")
    assert states == [{"log": []}, {"log": ["p"]}]
    assert isinstance(error, ValueError)


def test_a_wrong_update_inside_a_child_names_the_childs_node_and_graph(door):
    parent = chain(State, "outer", child=chain(State, "inner", c=writes({"valeu": 1})))
    with pytest.raises(InvalidUpdateError, match=r"node 'c' of graph 'inner'.*Did you mean 'value'\?") as caught:
        door.invoke(parent, {})
    assert "In graph 'outer', node 'child'" in notes(caught.value)


@may_warn
def test_a_join_that_starves_in_a_child_is_an_error(door):
    parent = chain(State, "outer", child=half_a_join().compile(name="inner"))
    with pytest.raises(StarvedJoinError, match="graph 'inner'") as caught:
        door.invoke(parent, {"value": 3})
    assert caught.value.state == {"log": ["a"], "value": 3}
    assert "In graph 'outer', node 'child'" in notes(caught.value)


def count(state):
    return {"value": state["value"] + 1}


def test_the_recursion_limit_counts_the_supersteps_of_a_child_for_themselves(door):
    child = chain(State, "inner", a=count, b=count, c=count)
    parent = chain(State, "outer", one=child, two=child, three=child)
    assert door.invoke(parent, {"value": 0}, {"recursion_limit": 3})["value"] == 9
    with pytest.raises(GraphRecursionError, match="graph 'inner' has run 2 supersteps") as caught:
        door.invoke(parent, {"value": 0}, {"recursion_limit": 2})
    assert caught.value.state == {"log": [], "value": 2}
    assert "In graph 'outer', node 'one'" in notes(caught.value)


def test_max_concurrency_holds_in_a_child(door):
    lock, running, most = threading.Lock(), [], []

    def work(state):
        with lock:
            running.append(1)
            most.append(len(running))
        with lock:
            running.pop()
        return {}

    child = fan(**{f"n{number}": work for number in range(12)})
    door.invoke(chain(child=child), {}, {"max_concurrency": 1})
    assert most == [1] * 12


def test_on_failure_is_what_the_child_was_compiled_with(door):
    class Beside:
        """Runs beside a failing node: it is cancelled, or ends in its own time."""

        def __init__(self):
            self.begun = self.ended = self.failed = False

        async def fail(self, state):
            while not self.begun:
                await anyio.lowlevel.checkpoint()
            self.failed = True
            raise ValueError("no luck")

        async def beside(self, state):
            self.begun = True
            while not self.failed:
                await anyio.lowlevel.checkpoint()
            for _ in range(100):
                await anyio.lowlevel.checkpoint()
            self.ended = True
            return {}

    for inner, outer in (("finish", "cancel"), ("cancel", "finish")):
        beside = Beside()
        builder = StateGraph(State).add_node("fail", beside.fail).add_node("beside", beside.beside)
        child = builder.add_edge(START, "fail").add_edge(START, "beside").compile(on_failure=inner)
        parent = StateGraph(State).add_node("child", child).add_edge(START, "child").compile(on_failure=outer)
        with pytest.raises(ValueError, match="no luck"):
            door.invoke(parent, {})
        assert beside.ended is (inner == "finish")


def test_siblings_of_a_failed_child_run_to_their_end(door):
    ended = []
    slow = chain(a=writes({}), b=writes({}), c=lambda state: ended.append("c") or {})
    with pytest.raises(ValueError, match="no luck"):
        door.invoke(fan(fail=chain(fail=fail), slow=slow), {})
    assert ended == ["c"]


def test_a_sync_child_beside_a_failed_task_begins_no_further_superstep_where_failure_cancels(door):
    begun = threading.Event()

    def step(state):
        begun.set()
        return {"value": state["value"] + 1}

    def failing(state):
        assert begun.wait(20)
        raise ValueError("no luck")

    seen = []
    endless = StateGraph(State).add_node("step", step).add_edge(START, "step")
    endless.add_conditional_edges("step", lambda state: seen.append(state["value"]) or "step", ["step"])
    parent = StateGraph(State).add_node("endless", endless.compile()).add_node("failing", failing)
    graph = parent.add_edge(START, "endless").add_edge(START, "failing").compile(on_failure="cancel")
    with pytest.raises(ValueError, match="no luck"):
        door.invoke(graph, {"value": 0}, {"recursion_limit": 300_000})
    assert len(seen) < 300_000


# --- Graphs called inside a node --------------------------------------------------------------------------------------


def talk(state):
    get_stream_writer()(f"talk {state['value']}")
    return {"log": ["inner"]}


inner_graph = chain(State, "inner", talk=talk)


def call(state):
    return {"log": [inner_graph.invoke({"value": state["value"]})["log"]]}


async def acall(state):
    return {"log": [(await inner_graph.ainvoke({"value": state["value"]}))["log"]]}


def call_stream(state):
    return {"log": list(inner_graph.stream({"value": state["value"]}, stream_mode=["custom", "updates"]))}


async def acall_stream(state):
    parts = inner_graph.astream({"value": state["value"]}, stream_mode=["custom", "updates"])
    return {"log": [part async for part in parts]}


STREAMED = [("custom", "talk 7"), ("updates", {"talk": {"log": ["inner"]}})]


@pytest.mark.parametrize("executor", ["inline", "thread"])
@pytest.mark.parametrize(
    ("action", "logged"),
    [(call, [["inner"]]), (acall, [["inner"]]), (call_stream, STREAMED), (acall_stream, STREAMED)],
)
def test_a_node_may_run_a_graph(door, action, logged, executor):
    graph = StateGraph(State).add_node("n", action).add_edge(START, "n").compile(executor=executor)
    assert door.invoke(graph, {"value": 7}) == {"log": logged, "value": 7}


def test_a_sync_node_may_run_a_graph_with_async_nodes_in_every_way(door):
    inner = chain(a=alog)
    graph = chain(n=lambda state: {"log": [inner.invoke({})["log"], list(inner.stream({}))]})
    assert door.invoke(graph, {})["log"] == [["async"], [{"a": {"log": ["async"]}}]]


@pytest.mark.parametrize("action", [call, acall])
def test_the_parts_of_a_graph_that_a_node_runs_are_in_the_stream(door, action):
    graph = chain(n=action)
    path = ("n:1:0:n",)
    assert door.stream(graph, {"value": 7}, stream_mode=["custom", "updates"], subgraphs=True) == [
        (path, "custom", "talk 7"),
        (path, "updates", {"talk": {"log": ["inner"]}}),
        ((), "updates", {"n": {"log": [["inner"]]}}),
    ]
    assert door.stream(graph, {"value": 7}, stream_mode=["custom", "updates"]) == [
        ("custom", "talk 7"),
        ("updates", {"n": {"log": [["inner"]]}}),
    ]
    assert door.stream(graph, {"value": 7}, stream_mode="updates") == [{"n": {"log": [["inner"]]}}]


@pytest.mark.parametrize("action", [call_stream, acall_stream])
def test_the_parts_that_a_node_reads_itself_are_not_in_the_stream_too(door, action):
    parts = door.stream(chain(n=action), {"value": 7}, stream_mode=["custom", "updates"], subgraphs=True)
    assert parts == [((), "updates", {"n": {"log": STREAMED}})]


def test_an_error_of_a_graph_that_a_node_runs_carries_notes_of_both_graphs(door):
    inner = chain(State, "inner", fail=fail)
    with pytest.raises(ValueError, match="no luck") as caught:
        door.invoke(chain(State, "outer", n=lambda state: inner.invoke({})), {})
    assert "In graph 'inner', node 'fail'" in notes(caught.value)
    assert "In graph 'outer', node 'n'" in notes(caught.value)


def test_a_node_may_catch_the_error_of_a_graph_that_it_runs(door):
    inner = chain(fail=fail)

    def careful(state):
        try:
            return inner.invoke({})
        except ValueError as error:
            return {"log": [str(error)]}

    assert door.invoke(chain(n=careful), {})["log"] == ["no luck"]


def test_graphs_run_by_one_node_side_by_side_have_paths_of_their_own(loop):
    async def both(state):
        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(inner_graph.ainvoke, {"value": number})
        return {}

    parts = loop.stream(chain(n=both), {}, stream_mode="custom", subgraphs=True)
    assert sorted(part for _, part in parts) == [f"talk {number}" for number in range(5)]
    assert len({path for path, _ in parts}) == 5
    assert all(len(path) == 1 and path[0].startswith("n:1:0:n") for path, _ in parts)


# --- Context and config -----------------------------------------------------------------------------------------------


@dataclass
class Settings:
    unit: str


def seeing(seen):
    def see(state, runtime: Runtime[Settings], config):
        seen.append((runtime.context, config["configurable"], config["tags"], get_config() == config))
        return {}

    return see


@pytest.mark.parametrize("declared", [None, Settings])
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_context_and_config_reach_the_child(door, declared, depth):
    seen = []
    builder = StateGraph(State, context_schema=declared).add_node("see", seeing(seen)).add_edge(START, "see")
    graph = builder.compile()
    for _ in range(depth):
        graph = StateGraph(State, context_schema=Settings).add_node("child", graph).add_edge(START, "child").compile()
    door.invoke(graph, {}, {"configurable": {"user": "ada"}, "tags": ["t"]}, context=Settings("km"))
    assert seen == [(Settings("km"), {"user": "ada"}, ["t"], True)]


def test_a_graph_that_a_node_runs_has_the_config_and_context_it_is_given(door):
    seen = []
    inner = StateGraph(State, context_schema=Settings).add_node("see", seeing(seen)).add_edge(START, "see").compile()

    def run(state, config, runtime):
        return inner.invoke({}, config, context=runtime.context)

    graph = StateGraph(State, context_schema=Settings).add_node("n", run).add_edge(START, "n").compile()
    door.invoke(graph, {}, {"configurable": {"user": "ada"}, "tags": ["t"]}, context={"unit": "km"})
    assert seen == [(Settings("km"), {"user": "ada"}, ["t"], True)]


def test_a_graph_that_a_node_runs_without_a_config_and_context_has_those_of_the_node(door):
    seen = []
    inner = StateGraph(State, context_schema=Settings).add_node("see", seeing(seen)).add_edge(START, "see").compile()
    graph = StateGraph(State, context_schema=Settings)
    graph = graph.add_node("n", lambda state: inner.invoke({})).add_edge(START, "n").compile()
    door.invoke(graph, {}, {"configurable": {"user": "ada"}, "tags": ["t"]}, context=Settings("km"))
    assert seen == [(Settings("km"), {"user": "ada"}, ["t"], True)]


# --- Leaving early ----------------------------------------------------------------------------------------------------


class Sleeper:
    """A node that waits for ever, and what became of it."""

    def __init__(self):
        self.begun = anyio.Event()
        self.ended = False

    async def sleep(self, state):
        self.begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.ended = True


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("depth", [1, 3])
def test_cancelling_a_run_ends_the_tasks_of_its_children(loop, depth, beside):
    async def main():
        sleeper = Sleeper()
        graph = chain(sleep=sleeper.sleep)
        for _ in range(depth):
            graph = fan(child=graph, **({"other": alog} if beside else {}))
        async with nothing_left(loop), anyio.create_task_group() as group:
            group.start_soon(graph.ainvoke, {})
            await sleeper.begun.wait()
            group.cancel_scope.cancel()
        assert sleeper.ended

    loop.run(main)


def test_leaving_a_stream_ends_the_tasks_of_the_children(loop):
    async def main():
        sleeper = Sleeper()
        graph = chain(child=chain(first=alog, sleep=sleeper.sleep))
        async with nothing_left(loop):
            async with contextlib.aclosing(graph.astream({}, subgraphs=True)) as parts:
                assert await anext(parts) == (("child:1:0:child",), {"first": {"log": ["async"]}})
                await sleeper.begun.wait()
        assert sleeper.ended

    loop.run(main)


@pytest.mark.parametrize("how", ["node", "function"])
def test_a_cancelled_run_begins_nothing_more_in_a_sync_child(loop, how):
    begun, release, ran = threading.Event(), threading.Event(), []

    def work(state):
        begun.set()
        assert release.wait(20)
        ran.append("work")
        return {}

    child = chain(work=work, after=lambda state: ran.append("after") or {})
    graph = chain(child=child if how == "node" else lambda state: child.invoke({}))

    async def main():
        async with nothing_left(loop), anyio.create_task_group() as group:
            group.start_soon(graph.ainvoke, {})
            while not begun.is_set():
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                for _ in range(10):  # until the run has been told
                    await anyio.lowlevel.checkpoint()
            release.set()
        assert ran == ["work"]

    loop.run(main)


def counter(seen):
    builder = StateGraph(State).add_node("step", lambda state: seen.append(1) or {"value": state["value"] + 1})
    return builder.add_edge(START, "step").add_edge("step", "step").compile()


@pytest.mark.parametrize("how", ["node", "function"])
def test_leaving_a_stream_stops_a_sync_child(door, how):
    seen = []
    child = counter(seen)
    config = {"recursion_limit": 300_000}
    graph = chain(child=child if how == "node" else lambda state: child.invoke({"value": 0}, config))
    if door.way == "sync":
        with contextlib.closing(graph.stream({"value": 0}, config, subgraphs=True)) as parts:
            assert next(parts) == (("child:1:0:child",), {"step": {"value": 1}})
    else:

        async def main():
            async with (
                nothing_left(door),
                contextlib.aclosing(graph.astream({"value": 0}, config, subgraphs=True)) as parts,
            ):
                assert await anext(parts) == (("child:1:0:child",), {"step": {"value": 1}})

        door.run(main)
    assert len(seen) < 300_000


# --- Ids --------------------------------------------------------------------------------------------------------------


class Chat(TypedDict):
    messages: Annotated[list, add_messages]


def speaking(text):
    return chain(Chat, speak=writes({"messages": HumanMessage(text)}))


def ids(door, graph, config=None):
    return [message.id for message in door.invoke(graph, {"messages": []}, config)["messages"]]


CONFIG = {"run_id": "12345678-1234-5678-1234-567812345678"}


def test_message_ids_are_unique_across_children(door):
    inner = chain(Chat, one=speaking("a"), two=speaking("b"))
    builder = StateGraph(Chat).add_node("left", inner).add_node("right", inner).add_node("own", speaking("own"))
    for name in ("left", "right", "own"):
        builder.add_edge(START, name)
    builder.add_conditional_edges("own", lambda state: [Send("left", {"messages": []}), Send("left", {})], ["left"])
    graph = builder.compile()
    found = ids(door, graph)
    assert len(found) == len(set(found)) == 9
    assert ids(door, graph) != found
    assert ids(door, graph, CONFIG) == ids(door, graph, CONFIG)
    assert len(set(ids(door, graph, CONFIG))) == 9


def test_message_ids_are_unique_where_a_node_runs_a_graph_twice(door):
    inner = speaking("hello")

    def twice(state):
        return [inner.invoke({"messages": []}), inner.invoke({"messages": []})]

    graph = chain(Chat, twice=twice)
    found = ids(door, graph)
    assert len(found) == len(set(found)) == 2
    assert ids(door, graph, CONFIG) == ids(door, graph, CONFIG)


def test_message_ids_of_inputs_are_unique_where_a_node_runs_a_graph_twice(door):
    inner = chain(Chat, idle=writes({}))

    def twice(state):
        return [inner.invoke({"messages": "one"}), inner.invoke({"messages": "two"})]

    assert contents(door.invoke(chain(Chat, twice=twice), {"messages": []})["messages"]) == ["one", "two"]


def test_task_ids_are_unique_across_children_and_the_same_in_each_run(door):
    seen = []
    lock = threading.Lock()

    def see(state):
        with lock:
            seen.append(get_runtime().task_id)
        return {}

    inner = fan(a=see, b=see)
    graph = fan(left=inner, right=inner, own=see, called=lambda state: inner.invoke({}) and {})
    door.invoke(graph, {})
    assert len(seen) == len(set(seen)) == 7
    first = sorted(seen)
    seen.clear()
    door.invoke(graph, {})
    assert sorted(seen) == first


def test_task_ids_are_unique_where_a_node_runs_a_graph_twice(door):
    seen = []
    inner = chain(see=lambda state: seen.append(get_runtime().task_id) or {})

    def twice(state):
        inner.invoke({})
        inner.invoke({})
        return {}

    door.invoke(chain(twice=twice), {})
    assert len(seen) == len(set(seen)) == 2


# --- Building ---------------------------------------------------------------------------------------------------------


def test_a_graph_gives_its_node_its_name():
    graph = StateGraph(State).add_node(chain(State, "child", c=writes({"value": 1}))).add_edge(START, "child")
    assert graph.compile().invoke({}) == {"log": [], "value": 1}


def test_a_node_that_only_a_command_of_a_child_leads_to_is_declared_as_destination():
    child = chain(up=up(goto="b"))
    with pytest.raises(GraphDefinitionError, match="destinations="):
        around(child, "b").compile()
    assert around(child, "b", destinations=["b"]).compile().invoke({})["log"] == ["b"]


def test_one_graph_may_be_a_node_many_times_and_run_by_itself(door):
    child = chain(c=note("c"))

    def decide(state) -> Literal["one", "two"]:
        return "one"

    builder = StateGraph(State).add_node("one", child).add_node("two", child).add_edge("one", "two")
    graph = builder.add_conditional_edges(START, decide).compile()
    assert door.invoke(graph, {})["log"] == ["c0", "c1"]
    assert door.invoke(child, {})["log"] == ["c0"]
