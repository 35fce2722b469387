"""What streams yield: shapes, modes, order, and the parts of graphs inside graphs."""

import operator
from datetime import datetime, timedelta
from typing import Annotated, TypedDict, get_args

import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pregel import END, START, Command, OmitFromOutput, Overwrite, PrivateStateAttr, Send, StateGraph
from pregel.config import get_stream_writer
from pregel.errors import InvalidConfigError
from pregel.types import StreamMode, StreamPart

MODES = ["values", "updates", "custom", "tasks", "debug"]
LIMITED = {"recursion_limit": 12}

may_warn = pytest.mark.filterwarnings("ignore::pregel.errors.PregelWarning")


class State(TypedDict, total=False):
    n: int
    log: Annotated[list, operator.add]


def writes(update):
    """Return a node that returns an update."""
    return lambda state: update


def chained(schema=State, /, **actions):
    """Return a builder of nodes that run one after the other."""
    return StateGraph(schema).add_sequence(list(actions.items())).add_edge(START, next(iter(actions)))


def chain(**actions):
    """Return a graph of nodes that run one after the other."""
    return chained(**actions).compile()


def talk(state):
    get_stream_writer()({"said": state["n"]})
    return {"n": state["n"] + 1, "log": ["talk"]}


async def atalk(state):
    await anyio.lowlevel.checkpoint()
    return talk(state)


def around(graph, depth):
    """Return a graph that has another one as its node, and so on, and the path from the outermost to it."""
    for _ in range(depth):
        graph = chain(child=graph)
    return graph, ("child:1:0:child",) * depth


# --- Shapes -----------------------------------------------------------------------------------------------------------

INNER = ("child:1:0:child",)


def test_the_shapes_of_version_1(door):
    graph, _ = around(chain(talk=talk), 1)
    update = {"talk": {"n": 2, "log": ["talk"]}}
    outer = {"child": {"n": 2, "log": ["talk"]}}

    assert door.stream(graph, {"n": 1}) == [outer]
    assert door.stream(graph, {"n": 1}, stream_mode=["updates"]) == [("updates", outer)]
    assert door.stream(graph, {"n": 1}, subgraphs=True) == [(INNER, update), ((), outer)]
    for modes in (["updates", "custom"], ("custom", "updates")):
        assert door.stream(graph, {"n": 1}, stream_mode=modes, subgraphs=True) == [
            (INNER, "custom", {"said": 1}),
            (INNER, "updates", update),
            ((), "updates", outer),
        ]
    assert door.stream(graph, {"n": 1}, stream_mode=["custom"], subgraphs=True) == [(INNER, "custom", {"said": 1})]


def test_version_2_has_one_shape_for_all(door):
    graph, _ = around(chain(talk=talk), 1)
    update = {"type": "updates", "ns": INNER, "data": {"talk": {"n": 2, "log": ["talk"]}}, "step": 1}
    outer = {"type": "updates", "ns": (), "data": {"child": {"n": 2, "log": ["talk"]}}, "step": 1}

    for mode in ("updates", ["updates"]):
        assert door.stream(graph, {"n": 1}, stream_mode=mode, version="v2") == [{**outer, "task": "1:0:child"}]
        assert door.stream(graph, {"n": 1}, stream_mode=mode, version="v2", subgraphs=True) == [
            {**update, "task": "1:0:talk"},
            {**outer, "task": "1:0:child"},
        ]


def test_every_mode_has_parts_with_all_keys_in_version_2(door):
    graph, _ = around(chain(talk=talk), 1)
    parts = door.stream(graph, {"n": 1}, stream_mode=MODES, version="v2", subgraphs=True)
    assert {part["type"] for part in parts if part["ns"]} == set(MODES)
    assert {part["type"] for part in parts if not part["ns"]} == set(MODES) - {"custom"}
    for part in parts:
        assert set(part) == set(StreamPart.__annotations__)
        assert type(part["ns"]) is tuple


def test_every_part_of_version_2_tells_its_superstep_and_its_task(door):
    graph = chain(one=talk, two=talk)
    parts = door.stream(graph, {"n": 1}, stream_mode=MODES, version="v2")
    assert [(part["type"], part["step"], part["task"]) for part in parts if part["type"] == "values"] == [
        ("values", 0, None),
        ("values", 1, None),
        ("values", 2, None),
    ]
    for mode, number in (("custom", 1), ("updates", 1), ("tasks", 2), ("debug", 2)):
        found = [(part["step"], part["task"]) for part in parts if part["type"] == mode]
        assert found == [(1, "1:0:one")] * number + [(2, "2:0:two")] * number, mode


def test_the_modes_are_those_that_the_types_name():
    assert sorted(get_args(StreamMode)) == sorted([*MODES, "checkpoints", "messages"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"version": "v3"}, ["'v1'", "'v2'", "'v3'"]),
        ({"version": 2}, ["'v1'", "'v2'", "2"]),
        ({"version": None}, ["'v1'", "'v2'", "None"]),
        ({"stream_mode": "update"}, ["'update'", "Did you mean 'updates'?"]),
        ({"stream_mode": ["values", "task"]}, ["'task'", "Did you mean 'tasks'?"]),
        ({"stream_mode": []}, ["no mode"]),
        ({"stream_mode": None}, ["None"]),
        ({"stream_mode": {"values"}}, ["'values'", "list"]),
    ],
)
def test_a_bad_version_or_mode_is_an_error_at_the_call(options, words):
    graph = chain(a=lambda state: pytest.fail("ran"))
    for call in (graph.stream, graph.astream):
        with pytest.raises(InvalidConfigError) as caught:
            call({}, **options)
        for word in words:
            assert word in str(caught.value)


def test_an_unhashable_version_is_the_same_error():
    with pytest.raises(InvalidConfigError, match="version"):
        chain(a=writes({})).stream({}, version=["v2"])


# --- Modes that follow tasks ------------------------------------------------------------------------------------------


def test_a_task_has_a_part_when_it_begins_and_one_when_it_ends(door):
    graph = chain(one=writes({"n": 2, "log": ["one"]}), two=writes({}))
    assert door.stream(graph, {"n": 1}, stream_mode="tasks") == [
        {"id": "1:0:one", "name": "one", "input": {"n": 1, "log": []}, "triggers": ["__start__"]},
        {"id": "1:0:one", "name": "one", "error": None, "result": {"n": 2, "log": ["one"]}, "interrupts": []},
        {"id": "2:0:two", "name": "two", "input": {"n": 2, "log": ["one"]}, "triggers": ["one"]},
        {"id": "2:0:two", "name": "two", "error": None, "result": None, "interrupts": []},
    ]


def test_debug_parts_are_those_of_tasks_with_step_time_and_type(door):
    graph = chain(one=writes({"n": 2}), two=writes({}))
    parts = door.stream(graph, {"n": 1}, stream_mode=["tasks", "debug"])
    tasks = [part for mode, part in parts if mode == "tasks"]
    debug = [part for mode, part in parts if mode == "debug"]
    assert [mode for mode, _ in parts] == ["tasks", "debug"] * 4
    assert [set(part) for part in debug] == [{"step", "timestamp", "type", "payload"}] * 4
    assert [part["payload"] for part in debug] == tasks
    assert [part["step"] for part in debug] == [1, 1, 2, 2]
    assert [part["type"] for part in debug] == ["task", "task_result"] * 2
    times = [datetime.fromisoformat(part["timestamp"]) for part in debug]
    assert times == sorted(times)
    assert {time.utcoffset() for time in times} == {timedelta(0)}


def begun(parts, name):
    """Return the parts that say that tasks of a node began."""
    return [part for part in parts if part["name"] == name and "input" in part]


@may_warn
def test_the_triggers_of_a_task_are_what_made_it_due(door):
    builder = chained(a=writes({}), b=writes({}))
    builder.add_node(
        "go", writes(Command(goto=["both", Send("sent", 5), Send("sent", 6)])), destinations=["both", "sent"]
    )
    builder.add_node("both", writes({})).add_node("sent", writes({})).add_node("joined", writes({}))
    builder.add_node("last", writes({}), defer=True)
    builder.add_edge("b", "go").add_edge("b", "last").add_edge(["both", "sent"], "joined").add_edge("go", "last")
    builder.add_conditional_edges("joined", lambda state: ["end", END], ["end", END]).add_node("end", writes({}))
    parts = door.stream(builder.compile(), {}, stream_mode="tasks")
    assert {part["name"]: part["triggers"] for part in parts if "input" in part} == {
        "a": ["__start__"],
        "b": ["a"],
        "go": ["b"],
        "both": ["go"],
        "sent": ["go"],
        "joined": ["both+sent->joined"],
        "end": ["joined"],
        "last": ["b", "go"],
    }


def test_the_triggers_of_a_loop_are_those_of_each_round(door):
    builder = chained(a=writes({"n": 1}), b=lambda state: {"log": ["b"]})
    builder.add_conditional_edges("b", lambda state: "b" if len(state["log"]) < 3 else END, ["b", END])
    parts = door.stream(builder.compile(), {}, stream_mode="tasks")
    assert [part["triggers"] for part in begun(parts, "b")] == [["a"], ["b"], ["b"]]


def test_the_trigger_of_a_live_join_is_the_join(door):
    builder = StateGraph(State)
    for name in "rabc":
        builder.add_node(name, writes({}))
    builder.add_edge(START, "r").add_conditional_edges("r", lambda state: "a", ["a", "b"])
    builder.add_edge(["a", "b"], "c", wait="live")
    parts = door.stream(builder.compile(), {}, stream_mode="tasks")
    assert [part["triggers"] for part in begun(parts, "c")] == [["a+b->c"]]


def test_what_a_task_was_sent_is_its_input(door):
    builder = StateGraph(State).add_node("sent", lambda arg: {"log": [arg]})
    builder.add_conditional_edges(START, lambda state: [Send("sent", 5), Send("sent", None)], ["sent"])
    parts = door.stream(builder.compile(executor="inline"), {"n": 1}, stream_mode="tasks", version="v2")
    assert [(part["task"], part["data"]["input"]) for part in parts if "input" in part["data"]] == [
        ("1:0:sent", 5),
        ("1:1:sent", None),
    ]


class Hiding(TypedDict, total=False):
    n: int
    shown: Annotated[int, OmitFromOutput]
    secret: Annotated[int, PrivateStateAttr]


def test_tasks_and_debug_reach_what_the_other_modes_hide(door):
    class Own(TypedDict, total=False):
        secret: int
        mine: int

    def a(state: Own):
        return {"n": 1, "shown": 2, "secret": 3, "mine": 4}

    def b(state: Own):
        return {}

    graph = chained(Hiding, a=a, b=b).compile()
    everything = {"n": 1, "shown": 2, "secret": 3, "mine": 4}
    parts = door.stream(graph, {}, stream_mode=MODES)
    for mode, part in parts:
        if mode in {"values", "updates"}:
            assert part in ({}, {"n": 1}, {"a": {"n": 1}}, {"b": None})
    tasks = [part for mode, part in parts if mode == "tasks"]
    assert [part["result"] for part in tasks if "result" in part] == [everything, None]
    assert [part["input"] for part in tasks if "input" in part] == [{}, {"secret": 3, "mine": 4}]
    assert [part["payload"] for mode, part in parts if mode == "debug"] == tasks


def test_a_failed_task_has_a_part_with_its_error_before_the_stream_ends_with_it(door):
    def fail(state):
        raise ValueError("no luck")

    graph = chain(ok=writes({"n": 1}), fail=fail)
    *parts, error = door.stream(graph, {}, stream_mode=["tasks", "debug", "updates"])
    assert isinstance(error, ValueError)
    ended = {"id": "2:0:fail", "name": "fail", "error": "ValueError('no luck')", "result": None, "interrupts": []}
    assert parts[-2][1] == ended
    assert parts[-1][1]["payload"] == ended
    assert parts[-1][1]["type"] == "task_result"
    assert [part for mode, part in parts if mode == "updates"] == [{"ok": {"n": 1}}]


def test_a_failed_task_of_a_child_has_parts_in_both_graphs(door):
    def fail(state):
        raise ValueError("no luck")

    *parts, error = door.stream(chain(child=chain(fail=fail)), {}, stream_mode="tasks", subgraphs=True)
    assert isinstance(error, ValueError)
    assert [(path, part["name"], part.get("error")) for path, part in parts] == [
        ((), "child", None),
        (INNER, "fail", None),
        (INNER, "fail", "ValueError('no luck')"),
        ((), "child", "ValueError('no luck')"),
    ]


def test_the_siblings_of_a_failed_task_have_their_parts_too(door):
    def fail(state):
        raise ValueError("no luck")

    builder = StateGraph(State).add_node("fail", fail).add_node("ok", writes({"n": 1}))
    graph = builder.add_edge(START, "fail").add_edge(START, "ok").compile()
    *parts, error = door.stream(graph, {}, stream_mode=["updates", "tasks"])
    assert isinstance(error, ValueError)
    assert ("updates", {"ok": {"n": 1}}) in parts
    assert sorted(part["name"] for mode, part in parts if mode == "tasks" and "error" in part) == ["fail", "ok"]


# --- Updates and values -----------------------------------------------------------------------------------------------


def test_a_field_that_a_task_writes_twice_makes_a_list(door):
    graph = chain(a=writes([{"log": [1]}, {"log": [2], "n": 3}]), b=writes({"log": Overwrite([9])}))
    listed = [{"log": [1]}, {"log": [2]}, {"n": 3}]
    assert door.stream(graph, {}) == [{"a": listed}, {"b": {"log": Overwrite([9])}}]
    results = [part["result"] for part in door.stream(graph, {}, stream_mode="tasks") if "result" in part]
    assert results == [listed, {"log": Overwrite([9])}]


def test_the_updates_of_a_child_are_what_its_node_gives_the_graph_around(door):
    child = chain(c=writes({"log": ["c"], "n": 1}), d=writes({"log": ["d"], "n": 2}))
    assert door.stream(chain(child=child), {}) == [{"child": [{"log": ["c"]}, {"log": ["d"]}, {"n": 2}]}]


def test_values_of_a_child_begin_with_what_it_was_given(door):
    graph = chain(p=writes({"n": 2, "log": ["p"]}), child=chain(c=writes({"log": ["c"]})))
    assert door.stream(graph, {"n": 1}, stream_mode="values", subgraphs=True) == [
        ((), {"n": 1, "log": []}),
        ((), {"n": 2, "log": ["p"]}),
        (("child:2:0:child",), {"n": 2, "log": ["p"]}),
        (("child:2:0:child",), {"n": 2, "log": ["p", "c"]}),
        ((), {"n": 2, "log": ["p", "c"]}),
    ]


def test_custom_parts_of_children_are_in_the_stream_with_and_without_subgraphs(door):
    graph, path = around(chain(talk=talk), 2)
    assert door.stream(graph, {"n": 1}, stream_mode="custom") == [{"said": 1}]
    (part,) = door.stream(graph, {"n": 1}, stream_mode="custom", version="v2")
    assert (part["ns"], part["data"]) == (path, {"said": 1})
    assert door.stream(graph, {"n": 1}, stream_mode="custom", subgraphs=True) == [(path, {"said": 1})]
    assert door.stream(graph, {"n": 1}, stream_mode=["values", "updates"], subgraphs=True) == [
        part for part in door.stream(graph, {"n": 1}, stream_mode=MODES[:3], subgraphs=True) if part[1] != "custom"
    ]


# --- Order ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", [talk, atalk])
@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_the_parts_of_one_superstep_come_in_order(door, action, executor):
    graph = chained(talk=action, after=writes({})).compile(executor=executor)
    for depth in (0, 1, 2):
        whole, path = around(graph, depth)
        parts = door.stream(whole, {"n": 1}, stream_mode=MODES, subgraphs=True)
        assert [mode for ns, mode, _ in parts if ns == path] == [
            "values",
            *["tasks", "debug", "custom", "updates", "tasks", "debug", "values"],
            *["tasks", "debug", "updates", "tasks", "debug"],
        ]


@pytest.mark.parametrize("executor", ["inline", "thread"])
@pytest.mark.parametrize("kind", ["sync", "async", "child"])
def test_what_a_task_writes_comes_after_its_beginning_and_before_its_end(door, kind, executor):
    def each(arg):
        get_stream_writer()(arg["n"])
        return {}

    async def aeach(arg):
        return each(arg)

    action = {"sync": each, "async": aeach, "child": chained(each=each).compile(executor=executor)}[kind]
    builder = StateGraph(State).add_node("each", action)
    builder.add_conditional_edges(START, lambda state: [Send("each", {"n": n}) for n in range(4)], ["each"])
    graph = builder.compile(executor=executor)
    parts = door.stream(graph, {}, stream_mode=["custom", "updates", "tasks"], version="v2")
    order = {}
    for place, part in enumerate(parts):
        number = part["data"] if part["type"] == "custom" else int(part["task"].split(":")[1])
        order.setdefault(number, []).append((place, part["type"]))
    assert sorted(order) == [0, 1, 2, 3]
    for found in order.values():
        assert [mode for _, mode in found] == ["tasks", "custom", "updates", "tasks"]


def test_parts_of_a_child_stand_between_the_beginning_and_the_end_of_its_node(door):
    graph, path = around(chain(talk=talk), 1)
    parts = door.stream(graph, {"n": 1}, stream_mode=["tasks", "values"], subgraphs=True)
    assert [(ns, mode) for ns, mode, _ in parts] == [
        ((), "values"),
        ((), "tasks"),
        *[(path, "values"), (path, "tasks"), (path, "tasks"), (path, "values")],
        ((), "tasks"),
        ((), "values"),
    ]


def test_children_side_by_side_have_paths_of_their_own(door):
    def say(state):
        get_stream_writer()({"said": state["n"]})
        return {}

    builder = StateGraph(State).add_node("child", chain(say=say))
    builder.add_conditional_edges(START, lambda state: [Send("child", {"n": n}) for n in range(3)], ["child"])
    parts = door.stream(builder.compile(), {}, stream_mode="custom", subgraphs=True)
    assert sorted(parts, key=repr) == [((f"child:1:{n}:child",), {"said": n}) for n in range(3)]


# --- The same graph at every depth ------------------------------------------------------------------------------------


@st.composite
def graphs(draw):
    """Return the plan of a graph: for each node what it does, and what leads where."""
    names = [f"n{number}" for number in range(draw(st.integers(1, 4)))]
    nodes = {
        name: draw(
            st.fixed_dictionaries(
                {
                    "kind": st.sampled_from(["sync", "async"]),
                    "says": st.integers(0, 2),
                    "update": st.sampled_from(
                        [{}, {"log": [name]}, {"log": [name], "n": 5}, {"log": Overwrite([name])}]
                    ),
                    "fails": st.sampled_from([False] * 9 + [True]),
                }
            )
        )
        for name in names
    }
    # A chain: side by side the order of parts is the order of ending, which may differ from run to run. One that goes
    # back to a node that replaces the log ends at the recursion limit.
    loops = draw(st.sampled_from([None, *names]))
    return nodes, loops


def built(plan):
    nodes, loops = plan
    builder = StateGraph(State)

    def action(name, facts):
        def run(state, writer):
            for number in range(facts["says"]):
                writer((name, number, len(state["log"])))
            if facts["fails"]:
                raise ValueError(name)
            return facts["update"]

        async def arun(state, writer):
            await anyio.lowlevel.checkpoint()
            return run(state, writer)

        return run if facts["kind"] == "sync" else arun

    for name, facts in nodes.items():
        builder.add_node(name, action(name, facts))
    names = list(nodes)
    for source, target in zip([START, *names], names, strict=False):
        builder.add_edge(source, target)
    if loops is not None:
        builder.add_node("turn", writes({"log": ["turn"], "n": 1})).add_edge(names[-1], "turn")
        builder.add_conditional_edges(
            "turn", lambda state: loops if state["log"].count("turn") == 1 else END, [loops, END]
        )
    return builder.compile()


def comparable(parts, path):
    """Return the parts of the graph at a path as if it had been run by itself."""
    found = []
    for part in parts:
        if isinstance(part, Exception):
            found.append((type(part), str(part)))
        elif part["ns"] == path:
            data = part["data"]
            if part["type"] == "debug":
                data = {key: value for key, value in data.items() if key != "timestamp"}
            found.append({**part, "ns": (), "data": data})
    return found


@settings(max_examples=60)
@given(plan=graphs(), way=st.sampled_from(["sync", "asyncio", "trio"]), start=st.lists(st.just("in"), max_size=1))
def test_the_same_graph_at_every_depth_gives_the_same_parts_but_for_the_path(plan, way, start):
    from tests.conftest import Door

    door, graph = Door(way), built(plan)
    # `n` is set: a child is given no field that has no value, and so is a graph that is run by itself.
    given_ = {"n": 1, "log": start}
    alone = comparable(door.stream(graph, given_, LIMITED, stream_mode=MODES, version="v2", subgraphs=True), ())
    assert len(alone) > 2
    for depth in (1, 2):
        whole, path = around(graph, depth)
        inside = comparable(door.stream(whole, given_, LIMITED, stream_mode=MODES, version="v2", subgraphs=True), path)
        assert inside == alone
    for mode in MODES:
        whole, path = around(graph, 1)
        inside = comparable(door.stream(whole, given_, LIMITED, stream_mode=mode, version="v2", subgraphs=True), path)
        assert inside == [part for part in alone if isinstance(part, tuple) or part["type"] == mode]


@settings(max_examples=30)
@given(plan=graphs())
def test_the_three_ways_to_run_a_graph_give_the_same_parts(plan):
    from tests.conftest import Door

    graph, path = around(built(plan), 1)
    runs = []
    for way in ("sync", "asyncio", "trio"):
        parts = Door(way).stream(graph, {"n": 1}, LIMITED, stream_mode=MODES, version="v2", subgraphs=True)
        runs.append([*comparable(parts, path), *comparable(parts, ())])
    assert runs[0] == runs[1] == runs[2]


@may_warn
@pytest.mark.parametrize("executor", ["inline", "thread"])
def test_a_graph_of_parallel_nodes_gives_the_same_parts_at_every_depth_up_to_their_order_in_a_superstep(door, executor):
    def shout(arg):
        get_stream_writer()(arg)
        return {"log": [arg]}

    async def ashout(state):
        return shout("async")

    builder = StateGraph(State).add_node("a", writes({"n": 2})).add_node("b", ashout).add_node("shout", shout)
    builder.add_node("j", writes({"log": ["j"]})).add_edge(START, "a").add_edge("a", "b")
    builder.add_conditional_edges("a", lambda state: [Send("shout", n) for n in range(3)], ["shout"])
    graph = builder.add_edge(["b", "shout"], "j").compile(executor=executor)

    def sorted_parts(whole, path):
        parts = comparable(door.stream(whole, {"n": 1}, stream_mode=MODES, version="v2", subgraphs=True), path)
        return sorted(parts, key=lambda part: (part["step"], part["type"] == "values", repr(part)))

    alone = sorted_parts(graph, ())
    assert [part["data"] for part in alone if part["type"] == "values"][-1] == {"n": 2, "log": ["async", 0, 1, 2, "j"]}
    for depth in (1, 2):
        assert sorted_parts(*around(graph, depth)) == alone
