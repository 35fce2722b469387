"""What is read back at each checkpoint is what the run had there, for every kind of field and in all durabilities."""

import operator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage as CoreAIMessage
from langchain_core.messages import HumanMessage as CoreHumanMessage
from pydantic import BaseModel
from typing_extensions import TypedDict

from pregel import START, Overwrite, Send, StateGraph, add_messages
from pregel.channels import DELETE, EphemeralValue, KeyedValue, Topic, UntrackedValue
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.graph.messages import REMOVE_ALL_MESSAGES, AIMessage, HumanMessage, RemoveMessage
from pregel.types import GroupCommit

DURABILITIES = ["sync", "async", GroupCommit(steps=1, milliseconds=1000.0), "exit"]
CONFIG = {"configurable": {"thread_id": "t"}, "recursion_limit": 10_000}


class Point(NamedTuple):
    x: int
    y: Any


class State(TypedDict, total=False):
    turn: int
    log: Annotated[list, operator.add]
    messages: Annotated[list, add_messages]
    topic: Annotated[list, Topic(accumulate=True)]
    once: Annotated[list, Topic()]
    keyed: Annotated[dict, KeyedValue()]
    union: Annotated[dict, operator.or_]
    tags: Annotated[set, operator.or_]
    total: Annotated[int, operator.add]
    last: Annotated[list, lambda old, new: new]
    items: list
    point: Point
    eph: Annotated[int, EphemeralValue()]
    hidden: Annotated[Any, UntrackedValue()]


scalars = st.one_of(
    st.integers(-(2**70), 2**70), st.text(max_size=5), st.none(), st.floats(allow_nan=False), st.booleans()
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
lists = st.lists(values, max_size=6)
ids = st.sampled_from("abcdefghij")
messages = st.one_of(
    st.builds(
        lambda kind, text, id_: kind(content=text, id=id_),
        st.sampled_from([HumanMessage, AIMessage, CoreHumanMessage, CoreAIMessage]),
        st.text(max_size=5),
        ids | st.none(),
    ),
    st.text(max_size=5),
)
keys = st.sampled_from("abcdefg")
#: What any number of tasks may write to one field in one superstep.
SHARED = {
    "log": lists,
    "messages": st.lists(messages, max_size=5),
    "topic": st.one_of(values, lists),
    "once": lists,
    "union": st.dictionaries(keys, values, max_size=6),
    "tags": st.sets(st.integers(0, 20), max_size=4),
    "total": st.integers(-5, 5),
    "last": lists,
}
#: What the first task of a superstep alone may write.
SINGLE = {
    "keyed": st.dictionaries(keys, values | st.just(DELETE) | st.builds(Overwrite, values), max_size=6),
    "items": lists,
    "point": st.builds(Point, st.integers(), values),
    "eph": st.integers(),
    "hidden": values,
    "log": st.builds(Overwrite, lists),
    "topic": st.builds(Overwrite, lists),
    "messages": st.just([RemoveMessage(id=REMOVE_ALL_MESSAGES)]),
}
shared = st.fixed_dictionaries({}, optional=SHARED)
first = st.fixed_dictionaries({}, optional={**SHARED, **SINGLE})
steps = st.lists(st.tuples(first, st.lists(shared, max_size=2)), min_size=1, max_size=8)


def scripted(script):
    """Return a builder of a graph whose supersteps make these updates: those of one task, and those of packets."""

    def tick(state):
        turn = state.get("turn", 0)
        return {"turn": turn + 1, **script[turn][0]}

    def fan(state):
        turn = state["turn"]
        packets = [Send("work", [update]) for update in script[turn - 1][1]]
        return packets or ("tick" if turn < len(script) else "__end__")

    def after(state):
        return "tick" if state["turn"] < len(script) else "__end__"

    return (
        StateGraph(State)
        .add_node("tick", tick)
        .add_node("work", lambda box: box[0])
        .add_edge(START, "tick")
        .add_conditional_edges("tick", fan, ["tick", "work", "__end__"])
        .add_conditional_edges("work", after, ["tick", "__end__"])
    )


def tracked(state):
    return {name: value for name, value in state.items() if name != "hidden"}


def live_and_stored(builder, saver, durability, state):
    """Run, and return each checkpoint as the run had it and as another graph reads it back."""
    graph = builder.compile(saver, durability=durability)
    parts = list(graph.stream(state, CONFIG, stream_mode="checkpoints"))
    fresh = builder.compile(saver)
    if durability == "exit":
        parts = parts[-1:]
    return [(tracked(part["values"]), fresh.get_state(part["config"]).values) for part in parts]


@pytest.mark.parametrize("durability", DURABILITIES, ids=str)
@settings(max_examples=40)
@given(steps)
def test_replay_equals_live(durability, script):
    for live, stored in live_and_stored(scripted(script), InMemorySaver(), durability, {"turn": 0}):
        assert stored == live
        assert {name: type(value) for name, value in stored.items()} == {k: type(v) for k, v in live.items()}


@settings(max_examples=20)
@given(steps, steps)
def test_a_second_run_goes_on_from_what_is_read_back(script, more):
    saver = InMemorySaver()
    live_and_stored(scripted(script), saver, "sync", {"turn": 0})
    for live, stored in live_and_stored(scripted(more), saver, "sync", {"turn": 0}):
        assert stored == live


@settings(max_examples=30)
@given(steps, st.lists(st.tuples(first, st.lists(shared, max_size=2)), min_size=1, max_size=3), st.data())
def test_forks_do_not_see_each_other(script, other, data):
    saver = InMemorySaver()
    builder = scripted(script)
    graph = builder.compile(saver)
    graph.invoke({"turn": 0}, CONFIG)
    history = list(graph.get_state_history(CONFIG))
    fork = data.draw(st.sampled_from(history))
    again = scripted([*script[: fork.values.get("turn", 0)], *other]).compile(saver)
    parts = list(again.stream(None, fork.config, stream_mode="checkpoints")) if fork.next else []
    twice = list(graph.stream(None, fork.config, stream_mode="checkpoints")) if fork.next else []
    for part in parts + twice:
        assert graph.get_state(part["config"]).values == tracked(part["values"])
    for before in history:
        assert graph.get_state(before.config) == before


# -- one shape after the other, long enough that whole values are written again --------------------------------------


def long_run(annotation, update, count=120, given=None, saver=None, durability="sync"):
    """Return what a run had, and what is stored, after so many supersteps that add to one field."""

    class Long(TypedDict, total=False):
        n: int
        field: annotation

    def add(state):
        return {"n": state["n"] + 1, **({} if (new := update(state, state["n"])) is None else {"field": new})}

    builder = (
        StateGraph(Long)
        .add_node(add)
        .add_edge(START, "add")
        .add_conditional_edges("add", lambda state: "add" if state["n"] < count else "__end__", ["add", "__end__"])
    )
    saver = saver or InMemorySaver()
    pairs = live_and_stored(builder, saver, durability, {"n": 0, **({} if given is None else {"field": given})})
    assert len(pairs) == (1 if durability == "exit" else count + 1)
    return pairs


def reply(text, state, number):
    """Return a message by another one's id now and then, and remove one now and then."""
    if number % 7 == 3:
        return [RemoveMessage(id=state["field"][number // 7].id)]
    return [text(content=f"message {number}", id=str(number - 5 if number % 5 == 4 else number))]


SHAPES = {
    "operator.add": (Annotated[list, operator.add], lambda state, n: [{"n": n}]),
    "messages": (Annotated[list, add_messages], lambda state, n: reply(HumanMessage, state, n)),
    "core messages": (Annotated[list, add_messages], lambda state, n: reply(CoreHumanMessage, state, n)),
    "topic": (Annotated[list, Topic(accumulate=True)], lambda state, n: [n, [n]]),
    "keyed": (
        Annotated[dict, KeyedValue()],
        lambda state, n: {n % 30: [n], **({n % 11: DELETE} if n % 30 != n % 11 else {})},
    ),
    "union": (Annotated[dict, operator.or_], lambda state, n: {n % 40: "x" * n}),
    "a list that grows": (list, lambda state, n: [*state.get("field", []), "x" * 20]),
    "a list of dicts of which one is changed": (
        list,
        lambda state, n: (
            [{**each, "seen": n} if place == n % 3 else each for place, each in enumerate(state.get("field", []))]
            + [{"n": n}]
        ),
    ),
    "a list that shrinks and grows": (list, lambda state, n: state.get("field", [])[n % 3 :] + [n] * 5),
    "a dict that grows": (dict, lambda state, n: {**state.get("field", {}), f"key {n}": "x" * 30}),
    "a set": (Annotated[set, operator.or_], lambda state, n: {n, str(n)}),
    "overwritten now and then": (
        Annotated[list, operator.add],
        lambda state, n: Overwrite(state.get("field", [])[::2]) if n % 10 == 9 else ["x" * 30] * 3,
    ),
    "cleared": (Annotated[int, EphemeralValue()], lambda state, n: n if n % 3 else None),
}


@pytest.mark.parametrize("durability", DURABILITIES, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_long_run_of_each_shape(shape, durability):
    for live, stored in long_run(*SHAPES[shape], durability=durability):
        assert stored == live
        assert type(stored.get("field")) is type(live.get("field"))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_on_a_file(shape, tmp_path):
    with SqliteSaver(tmp_path / "runs.db", synchronous="NORMAL") as saver:
        for live, stored in long_run(*SHAPES[shape], saver=saver):
            assert stored == live


class Inner(BaseModel):
    name: str = ""
    notes: list[str] = []


class Model(BaseModel):
    n: int = 0
    inner: Inner = Inner()
    log: Annotated[list[Inner], operator.add] = []
    choice: Inner | None = None


@dataclass
class Data:
    n: int = 0
    inner: Inner = field(default_factory=Inner)
    log: Annotated[list[Inner], operator.add] = field(default_factory=list)
    choice: Point | None = None


@pytest.mark.parametrize("durability", DURABILITIES, ids=str)
@pytest.mark.parametrize("schema", [Model, Data])
def test_model_and_dataclass_states(schema, durability):
    def step(state: schema):
        n = state.n
        inner = Inner(name=f"{n}", notes=[*state.inner.notes, f"note {n}"])
        return {"n": n + 1, "inner": inner, "log": [inner], "choice": None if n % 2 else state.choice}

    builder = (
        StateGraph(schema)
        .add_node(step)
        .add_edge(START, "step")
        .add_conditional_edges("step", lambda state: "step" if state.n < 60 else "__end__", ["step", "__end__"])
    )
    pairs = live_and_stored(builder, InMemorySaver(), durability, {"n": 0})
    assert pairs[-1][0]["log"][-1].notes[-1] == "note 59"
    for live, stored in pairs:
        assert stored == live
        assert all(type(each) is Inner for each in stored["log"])


# -- nodes that change in place what they were given -----------------------------------------------------------------


@pytest.mark.parametrize("durability", ["sync", "async"])
@pytest.mark.parametrize(
    ("annotation", "new"),
    [
        (Annotated[list, operator.add], lambda n: [{"n": n}]),
        (Annotated[list, Topic(accumulate=True)], lambda n: [{"n": n}]),
        (Annotated[list, add_messages], lambda n: [CoreHumanMessage(content=f"{n}", id=f"{n}")]),
    ],
    ids=["operator.add", "topic", "messages"],
)
def test_what_is_stored_is_not_what_nodes_made_of_it_in_place(annotation, new, durability):
    def spoil(state, n):
        old = state.get("field", [])
        if old:
            part = old[0]
            if isinstance(part, dict):
                part["spoilt"] = "x" * 100
            else:
                part.content = "spoilt"
        return new(n)

    pairs = long_run(annotation, spoil, count=300, durability=durability)
    assert pairs[-1][1]["field"] == [new(n)[0] for n in range(300)]


@pytest.mark.parametrize("durability", DURABILITIES, ids=str)
@pytest.mark.parametrize(
    "change", [lambda old: old.append("in place"), lambda old: old.clear(), lambda old: old.reverse()]
)
@pytest.mark.parametrize(
    "annotation",
    [list, Annotated[list, operator.add], Annotated[list, Topic(accumulate=True)]],
    ids=["plain", "add", "topic"],
)
def test_a_list_that_was_changed_in_place_can_be_read(annotation, change, durability):
    def spoil(state, n):
        old = list(state.get("field", []))
        change(state.get("field", []))
        return [*old, n] if annotation is list else [n]

    pairs = long_run(annotation, spoil, count=50, given=[], durability=durability)
    assert pairs[-1][1]["field"] == list(range(50)) or durability == "exit"


@pytest.mark.parametrize("durability", DURABILITIES, ids=str)
@pytest.mark.parametrize(
    ("annotation", "update"),
    [
        (list, lambda old: old),
        (list, list),
        (dict, lambda old: old),
        (dict, dict),
        (Annotated[dict, KeyedValue()], lambda old: {2: old[2]}),
    ],
    ids=["list", "copied list", "dict", "copied dict", "keyed"],
)
def test_what_a_node_changes_in_place_and_gives_back_is_stored(annotation, update, durability):
    def change(state, n):
        old = state["field"]
        old[2]["n"] = n
        return update(old)

    given_first = [{"n": 0} for _ in range(8)] if annotation is list else {key: {"n": 0} for key in range(8)}
    pairs = long_run(annotation, change, count=5, given=given_first, durability=durability)
    assert pairs[-1][1]["field"][2] == {"n": 4}


@pytest.mark.parametrize("durability", DURABILITIES, ids=str)
@pytest.mark.parametrize(
    ("annotation", "given_first", "change"),
    [
        (
            Annotated[list, add_messages],
            [CoreHumanMessage(content="0", id=f"{place}") for place in range(8)],
            lambda part, n: setattr(part, "content", f"{n}"),
        ),
        (Annotated[list, lambda old, new: new], [{"n": 0} for _ in range(8)], lambda part, n: part.update(n=n)),
        (Annotated[dict, operator.or_], {key: {"n": 0} for key in range(8)}, lambda part, n: part.update(n=n)),
    ],
    ids=["messages", "replaced", "union"],
)
def test_what_a_node_changes_in_place_and_gives_to_a_reducer_is_stored(annotation, given_first, change, durability):
    def update(state, n):
        part = state["field"][2]
        change(part, n)
        if isinstance(state["field"], dict):
            return {2: part}
        return [part] if isinstance(part, CoreHumanMessage) else list(state["field"])

    saver = InMemorySaver()
    long_run(annotation, update, count=5, given=deepcopy(given_first), saver=saver)
    pairs = long_run(annotation, update, count=7, saver=saver, durability=durability)
    assert pairs[-1][1]["field"] == pairs[-1][0]["field"]
    assert "6" in str(pairs[-1][1]["field"][2])
