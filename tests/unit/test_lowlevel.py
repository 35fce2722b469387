"""The low level: nodes that subscribe to channels.

Results marked so are what LangGraph 1.2.24 gives for the same program. Its `values` streams have no part for the input;
ours begin with one.
"""

import operator
from functools import partial
from typing import Annotated, TypedDict

import anyio.lowlevel
import pytest

from pregel import (
    START,
    Command,
    MessagesState,
    NodeBuilder,
    Overwrite,
    Pregel,
    Runtime,
    Send,
    StateGraph,
    add_messages,
)
from pregel.channels import (
    AnyValue,
    BinaryOperatorAggregate,
    Channel,
    EphemeralValue,
    KeyedValue,
    LastValue,
    NamedBarrierValue,
    Topic,
    UntrackedValue,
)
from pregel.errors import (
    GraphDefinitionError,
    GraphRecursionError,
    InvalidConcurrentUpdateError,
    InvalidConfigError,
    InvalidInputError,
    InvalidUpdateTypeError,
    PregelWarning,
    UnreachableNodeError,
)


def node(channel, action, *writes, **values):
    """Return a node that subscribes to one channel."""
    return NodeBuilder().subscribe_only(channel).do(action).write_to(*writes, **values)


def double(value):
    return value + value


def joined(left, right):
    return f"{left} | {right}" if left else right


def program(nodes, channels, inputs, outputs, **options):
    return Pregel(nodes=nodes, channels=channels, input_channels=inputs, output_channels=outputs, **options)


SINGLE = ({"one": node("a", double, "b")}, {"a": EphemeralValue, "b": EphemeralValue})
CHAIN = (
    {"one": node("a", double, "b"), "two": NodeBuilder().subscribe_to("b").do(lambda s: double(s["b"])).write_to("c")},
    {"a": EphemeralValue, "b": LastValue, "c": EphemeralValue},
)
FORK = {"one": node("a", double, "b", "c"), "two": node("b", double, "c")}
CYCLE = ({"grow": node("value", lambda x: x + x if len(x) < 10 else None, "value")}, {"value": EphemeralValue()})
# q takes one superstep more than p; the gate is full when both have been heard
JOIN = (
    {
        "p": node("a", lambda x: x, gate="p", x=lambda x: x + 1),
        "q": node("a", lambda x: x, "late"),
        "q2": node("late", lambda x: x, gate="q", y=lambda x: x + 2),
        "sum": NodeBuilder().subscribe_to("gate", read=False).read_from("x", "y").do(
            lambda seen: seen["x"] + seen["y"]
        ).write_to("out"),
    },
    {
        "a": EphemeralValue, "late": EphemeralValue, "x": LastValue, "y": LastValue,
        "gate": NamedBarrierValue({"p", "q"}), "out": LastValue,
    },
)  # fmt: skip
GATED_LOOP = (
    {
        "p": node("n", lambda x: x, gate="p"),
        "q": node("n", lambda x: x, gate="q"),
        "next": NodeBuilder().subscribe_to("gate", read=False).read_from("n").do(
            lambda seen: seen["n"] + 1 if seen["n"] < 3 else None
        ).write_to("n"),
    },
    {"n": LastValue, "gate": NamedBarrierValue({"p", "q"})},
)  # fmt: skip
CRAWL = (
    {
        "walk": node("todo", lambda numbers: [n // 2 for n in numbers if n > 1], "todo"),
        "log": node("todo", lambda numbers: numbers, "seen"),
    },
    {"todo": Topic, "seen": Topic(int, accumulate=True)},
)
GROWN = [{"value": "a" * n} for n in (2, 4, 8, 16)]

#: program, inputs, outputs, input -> LangGraph's result, and its `values` parts of the outputs.
SAME_AS_LANGGRAPH = {
    "single": (SINGLE, ["a"], ["b"], {"a": "foo"}, {"b": "foofoo"}, [{"b": "foofoo"}]),
    "bare": (SINGLE, "a", "b", "foo", "foofoo", [{"b": "foofoo"}]),
    "chain": (
        CHAIN, ["a"], ["b", "c"], {"a": "foo"}, {"b": "foofoo", "c": "foofoofoofoo"},
        [{"b": "foofoo"}, {"b": "foofoo", "c": "foofoofoofoo"}],
    ),
    "topic": (
        (FORK, {"a": EphemeralValue, "b": EphemeralValue, "c": Topic(str, accumulate=True)}), ["a"], ["c"],
        {"a": "foo"}, {"c": ["foofoo", "foofoofoofoo"]}, [{"c": ["foofoo"]}, {"c": ["foofoo", "foofoofoofoo"]}],
    ),
    "reducer": (
        (FORK, {"a": EphemeralValue, "b": EphemeralValue, "c": BinaryOperatorAggregate(joined)}), ["a"], ["c"],
        {"a": "foo"}, {"c": "foofoo | foofoofoofoo"}, [{"c": "foofoo"}, {"c": "foofoo | foofoofoofoo"}],
    ),
    "cycle": (CYCLE, ["value"], ["value"], {"value": "a"}, {"value": "a" * 16}, GROWN),
    "values": (
        ({"n": node("a", lambda x: x + 1, "b", c=lambda r: r * 10, d="constant")},
         {"a": EphemeralValue, "b": LastValue, "c": LastValue, "d": LastValue}),
        "a", ["b", "c", "d"], 1, {"b": 2, "c": 20, "d": "constant"}, [{"b": 2, "c": 20, "d": "constant"}],
    ),
    "join": (JOIN, "a", "out", 1, 5, [{"out": 5}]),
    "join in a loop": (GATED_LOOP, "n", "n", 0, 3, [{"n": 1}, {"n": 2}, {"n": 3}]),
    "until nothing is published": (
        CRAWL, "todo", "seen", [8, 5], [8, 5, 4, 2, 2, 1, 1],
        [{"seen": [8, 5]}, {"seen": [8, 5, 4, 2]}, {"seen": [8, 5, 4, 2, 2, 1]}, {"seen": [8, 5, 4, 2, 2, 1, 1]}],
    ),
    "an output that is cleared before another": (
        ({"n": node("a", lambda x: x + "1", "b"), "m": node("b", lambda x: x + "2", "c")},
         dict.fromkeys("abc", EphemeralValue)),
        "a", ["b", "c"], "foo", {"c": "foo12"}, [{"b": "foo1"}, {"c": "foo12"}],
    ),
    "an output that is cleared on the way": (
        ({"n": node("a", lambda x: x + "1", "b"), "m": node("b", lambda x: x + "2", "c"), "k": node("c", double, "d")},
         dict.fromkeys("abcd", EphemeralValue)),
        "a", "b", "foo", "foo1", [{"b": "foo1"}],
    ),
    "an output that was cleared long before another is written": (
        ({"n": node("a", double, "b"), "m": node("b", double, "x"), "k": node("x", double, "c")},
         dict.fromkeys("abxc", EphemeralValue)),
        "a", ["b", "c"], "s", {"c": "ssssssss"}, [{"b": "ss"}, {"c": "ssssssss"}],
    ),
    "a topic that is emptied and stays so": (
        ({"n": node("a", double, "t", "b"), "m": node("b", double, "c"), "k": node("c", double, "d"),
          "l": node("d", double)}, {**dict.fromkeys("abcd", EphemeralValue), "t": Topic}),
        "a", "t", "s", ["ss"], [{"t": ["ss"]}],
    ),
    "no function": (
        ({"n": NodeBuilder().subscribe_to("a").write_to("b")}, {"a": EphemeralValue, "b": LastValue}),
        "a", "b", "foo", {"a": "foo"}, [{"b": {"a": "foo"}}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SAME_AS_LANGGRAPH)
def test_programs_give_what_langgraph_gives(door, case):
    (nodes, channels), inputs, outputs, given, result, values = SAME_AS_LANGGRAPH[case]
    app = program(nodes, channels, inputs, outputs)
    assert door.invoke(app, given) == result
    assert door.stream(app, given, stream_mode="values")[1:] == values


def test_updates_are_keyed_by_node_and_channel(door):
    (nodes, channels) = CYCLE
    app = program(nodes, channels, "value", "value")
    assert door.stream(app, "a") == [*({"grow": update} for update in GROWN), {"grow": None}]
    app = program(*CHAIN, ["a"], ["c"])
    assert door.stream(app, {"a": "x"}) == [{"one": None}, {"two": {"c": "xxxx"}}]
    assert door.stream(app, {"a": "x"}, stream_mode="values") == [{}, {"c": "xxxx"}]


def test_tasks_show_every_channel_and_which_of_them_made_a_node_due():
    parts = program(*CHAIN, ["a"], ["c"]).stream({"a": "x"}, stream_mode="tasks")
    assert [(part["name"], part["input"], part["triggers"]) for part in parts if "input" in part] == [
        ("one", {"a": "x"}, ["a"]),
        ("two", {"b": "xx"}, ["b"]),
    ]


def test_writes_are_applied_in_declaration_order(door):
    nodes = {name: node("a", lambda x, name=name: x + name, "c") for name in "zyx"}
    app = program(nodes, {"a": EphemeralValue, "c": Topic(str, accumulate=True)}, "a", "c")
    assert door.invoke(app, ".") == [".z", ".y", ".x"]


def test_a_node_is_due_when_any_of_its_channels_is_written_and_reads_what_holds_a_value(door):
    seen = []
    nodes = {
        "first": node("a", lambda x: x, "b"),
        "watch": NodeBuilder().subscribe_to("a", "b").read_from("c", "never").do(seen.append),
        "last": node("b", lambda x: x, "c"),
    }
    channels = {"a": EphemeralValue, "b": LastValue, "c": LastValue, "never": AnyValue}
    assert door.invoke(program(nodes, channels, "a", ["c", "never"]), 1) == {"c": 1}
    assert seen == [{"a": 1}, {"b": 1}]


def test_a_none_writes_nothing_unless_it_is_a_constant(door):
    nodes = {"n": node("a", lambda x: None, "plain", made=lambda r: r, constant=None, other=lambda r: "seen")}
    names = ("plain", "made", "constant", "other")
    app = program(nodes, {"a": EphemeralValue, **dict.fromkeys(names, LastValue)}, "a", names)
    assert door.invoke(app, 1) == {"constant": None, "other": "seen"}


def test_functions_that_make_none_route(door):
    step = node("n", lambda x: x * 2, n=lambda x: x if x < 50 else None, done=lambda x: x if x >= 50 else None)
    assert door.invoke(program({"step": step}, {"n": LastValue, "done": LastValue}, "n", "done"), 3) == 96


def test_a_run_that_wrote_no_output_gives_none_or_an_empty_dict(door):
    nodes = {"n": node("a", lambda x: None, "b")}
    channels = {"a": EphemeralValue, "b": LastValue, "t": Topic}
    assert door.invoke(program(nodes, channels, "a", "b"), 1) is None
    assert door.invoke(program(nodes, channels, ["a"], ["b"]), {"a": 1}) == {}
    assert door.invoke(program(nodes, channels, "a", "t"), 1) == []


def test_an_output_keeps_what_the_input_set(door):
    app = program({"n": node("a", lambda x: None, "a")}, {"a": EphemeralValue}, "a", "a")
    assert door.invoke(app, 1) == 1


def test_an_empty_list_publishes_nothing_and_wakes_nobody(door):
    ran = []
    nodes = {"n": node("t", ran.append)}
    for accumulate in (True, False):
        app = program(nodes, {"t": Topic(int, accumulate=accumulate)}, "t", "t")
        assert door.invoke(app, []) == []
    assert ran == []
    assert door.invoke(app, [[]]) == [[]]
    assert ran == [[[]]]


def test_a_full_barrier_that_is_an_output_holds_the_names(door):
    nodes = {"n": node("a", lambda x: x, gate="n"), "m": node("gate", lambda names: names, "heard")}
    channels = {"a": EphemeralValue, "gate": NamedBarrierValue(["n"]), "heard": LastValue}
    assert door.invoke(program(nodes, channels, "a", ["gate"]), 1) == {"gate": {"n"}}
    assert door.invoke(program(nodes, channels, "a", ["gate", "heard"]), 1) == {"heard": {"n"}}


def test_a_barrier_written_while_its_subscriber_runs_starts_anew(door):
    fired = []
    nodes = {
        "p": node("a", lambda x: x, "b", gate="p"),
        "q": node("b", lambda x: x, gate="p"),
        "fire": node("gate", fired.append),
        "again": node("b", lambda x: x, "c"),
    }
    channels = {**dict.fromkeys("abc", EphemeralValue), "gate": NamedBarrierValue({"p"})}
    door.invoke(program(nodes, channels, "a", "c"), 1)
    assert fired == [{"p"}, {"p"}]


def test_a_barrier_is_used_up_before_it_is_written_again(door):
    fired = []
    nodes = {
        "p": node("n", lambda n: n, n=lambda n: n + 1 if n < 5 else None, gate="p"),
        "q": node("n", lambda n: "q" if n % 2 == 0 else None, "gate"),
        "fire": node("gate", lambda names, runtime: fired.append((runtime.step, names))),
    }
    door.invoke(program(nodes, {"n": LastValue, "gate": NamedBarrierValue({"p", "q"})}, "n", "n"), 0)
    assert fired == [(2, {"p", "q"}), (4, {"p", "q"}), (6, {"p", "q"})]


def test_a_barrier_that_is_not_full_waits(door):
    fired = []
    nodes = {
        "p": node("a", lambda x: x, "b", gate="p"),
        "fire": NodeBuilder().subscribe_to("gate", "b").do(fired.append),
    }
    channels = {"a": EphemeralValue, "b": LastValue, "gate": NamedBarrierValue({"p", "q"})}
    assert door.invoke(program(nodes, channels, "a", ["gate", "b"]), 1) == {"b": 1}
    assert fired == [{"b": 1}]


def test_every_kind_of_channel_and_overwrite(door):
    nodes = {
        "n": node("a", lambda x: x, any=1, keyed={"k": 1}, untracked=2, total=3, log=Overwrite([4])),
        "m": node("a", lambda x: x, any=1, keyed={"j": 2}, total=4, log="dropped"),
    }
    channels = {
        "a": EphemeralValue, "any": AnyValue, "keyed": KeyedValue, "untracked": UntrackedValue,
        "total": BinaryOperatorAggregate(operator.add, initial=10), "log": Topic(int, True),
    }  # fmt: skip
    outputs = ["any", "keyed", "untracked", "total", "log"]
    assert door.invoke(program(nodes, channels, "a", outputs), 0) == {
        "any": 1, "keyed": {"k": 1, "j": 2}, "untracked": 2, "total": 17, "log": [4],
    }  # fmt: skip


def test_two_writes_of_one_value_conflict(door):
    nodes = {name: node("a", lambda x: x, "c") for name in ("left", "right")}
    app = program(nodes, {"a": EphemeralValue, "c": LastValue}, "a", "c", name="pair")
    (error,) = door.stream(app, 1)[2:]
    assert isinstance(error, InvalidConcurrentUpdateError)
    assert "'pair'" in str(error)
    assert "'left'" in str(error)
    assert "'right'" in str(error)


def test_a_reducer_prepares_updates(door):
    nodes = {"n": node("messages", lambda messages: "hello" if len(messages) < 2 else None, "messages")}
    app = program(nodes, {"messages": BinaryOperatorAggregate(add_messages)}, "messages", "messages")
    messages = door.invoke(app, [("user", "hi")])
    assert [message.content for message in messages] == ["hi", "hello"]
    assert all(message.id for message in messages)


def test_the_recursion_limit_counts_supersteps(door):
    app = program({"n": node("a", lambda x: x + 1, "a")}, {"a": LastValue}, "a", "a")
    with pytest.raises(GraphRecursionError) as caught:
        door.invoke(app, 0, {"recursion_limit": 3})
    assert caught.value.state == {"a": 3}


def test_sync_and_async_functions_mix_and_parameters_are_filled(door):
    async def sleepy(value, writer):
        await anyio.lowlevel.checkpoint()
        writer("awake")
        return value + 1

    def told(value, config, *rest, runtime: Runtime, times=1, **more):
        return (value * times, runtime.node, config["metadata"]["who"], rest, more)

    nodes = {"one": node("a", sleepy, "b"), "two": node("b", partial(told, times=2), "c").meta(colour="red")}
    app = program(nodes, {"a": EphemeralValue, "b": LastValue, "c": LastValue}, "a", "c", executor="inline")
    parts = door.stream(app, 1, {"metadata": {"who": "me"}}, stream_mode=["custom", "values"])
    assert parts == [("values", {}), ("custom", "awake"), ("values", {"c": (4, "two", "me", (), {})})]


class Adder:
    """A callable object, and one with `invoke`."""

    async def __call__(self, value):
        return value + 1

    def invoke(self, value, config=None, *, more=2):
        return value + more if config is not None else None


class AsyncOnly:
    """An object that can only be awaited."""

    async def ainvoke(self, value):
        return value * 10


class AsyncCallable:
    """A callable object whose call is awaited."""

    async def __call__(self, value):
        return value - 1


def test_objects_are_nodes(door):
    nodes = {"a": node("a", Adder(), "b"), "b": node("b", AsyncOnly(), "c"), "c": node("c", AsyncCallable(), "d")}
    app = program(nodes, dict.fromkeys("abcd", LastValue), "a", "d")
    assert door.invoke(app, 1) == 29
    builtin = program({"n": node("a", max, "b")}, {"a": LastValue, "b": LastValue}, "a", "b")
    assert door.invoke(builtin, [3, 5]) == 5


def test_a_program_is_a_node_of_a_program(door):
    inner = program(*CYCLE, "value", "value", name="inner")
    app = program({"n": node("a", inner, "b")}, {"a": LastValue, "b": LastValue}, "a", "b")
    assert door.invoke(app, "a") == "a" * 16
    assert door.stream(app, "a", stream_mode="updates", subgraphs=True)[-1] == ((), {"n": {"b": "a" * 16}})


class Outer(TypedDict):
    value: str
    log: Annotated[list, operator.add]
    other: int


def test_a_program_is_a_node_of_a_state_graph(door):
    nodes = {"grow": node("value", lambda x: x + x if len(x) < 10 else None, "value", log=lambda x: [x] if x else None)}
    child = program(
        nodes, {"value": EphemeralValue, "log": Topic(str, True), "own": LastValue}, "value", ["value", "log"]
    )
    graph = StateGraph(Outer).add_node("child", child).add_edge(START, "child").compile()
    result = door.invoke(graph, {"value": "a", "log": ["before"], "other": 1})
    assert result == {"value": "a" * 16, "log": ["before", *("a" * n for n in (2, 4, 8, 16))], "other": 1}


def test_a_program_takes_what_it_is_sent(door):
    child = program(
        {"n": node("value", double, "other")}, {"value": EphemeralValue, "other": LastValue}, "value", "other"
    )
    graph = StateGraph(Outer).add_node("child", child)
    graph.add_node("from", lambda state: Command(goto=Send("child", 21)), destinations=["child"])
    assert door.invoke(graph.add_edge(START, "from").compile(), {"value": "a"})["other"] == 42


def test_a_state_graph_runs_in_a_program(door):
    inner = StateGraph(MessagesState).add_node("n", lambda state: {"messages": "b"}).add_edge(START, "n").compile()
    nodes = {"n": node("a", inner, b=lambda result: [message.content for message in result["messages"]])}
    app = program(nodes, {"a": LastValue, "b": LastValue}, "a", "b")
    assert door.invoke(app, {"messages": "a"}) == ["a", "b"]


def test_a_builder_goes_on_after_it_was_built():
    builder = NodeBuilder().subscribe_to("a")
    first = builder.write_to("b").build()
    second = builder.read_from("b").write_to("c")
    app = program({"one": first, "two": second}, {"a": EphemeralValue, "b": LastValue, "c": LastValue}, "a", ["b", "c"])
    with pytest.raises(InvalidConcurrentUpdateError):
        app.invoke(1)
    assert program({"one": first}, {"a": EphemeralValue, "b": LastValue}, "a", "b").invoke(1) == {"a": 1}


def test_it_tells_its_channels_and_binds_configs_and_batches():
    app = program(*CHAIN, ["a"], ["c"], name="chain")
    assert (app.name, app.outputs, app.takes("a"), app.takes("b")) == ("chain", ("c",), True, False)
    assert all(isinstance(channel, Channel) for channel in app.channels.values())
    bare = program(*SINGLE, "a", "b").with_config({"recursion_limit": 1})
    assert bare.batch([1, 2]) == [2, 4]


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (lambda x: Command(goto="n"), "follows from the channels"),
        (lambda x: Send("n", 1), "follows from the channels"),
        (lambda x: AsyncOnly().ainvoke(x), "async def"),
    ],
)
def test_results_that_no_channel_holds_are_refused(door, action, words):
    with pytest.raises(InvalidUpdateTypeError, match=words):
        door.invoke(program({"n": node("a", action, "a")}, {"a": LastValue}, "a", "a"), 1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"aa": 1}, "'aa', which is no channel. Did you mean 'a'?"),
        ({"b": 1}, "'b', which is no input channel"),
        ({}, "give a mapping with some of the input channels, 'a'"),
        ("x", "give a mapping with some of the input channels, 'a'"),
        (None, "give a mapping"),
        (Command(goto="one"), "give a mapping"),
    ],
)
def test_wrong_inputs_are_refused(door, given, words):
    with pytest.raises(InvalidInputError) as caught:
        door.invoke(program(*CHAIN, ["a"], ["c"]), given)
    assert words in str(caught.value)


def test_a_bare_input_is_any_value_but_none(door):
    app = program(*SINGLE, "a", "b")
    assert door.invoke(app, []) == []
    with pytest.raises(InvalidInputError, match="give a value"):
        door.invoke(app, None)


def good(**changes):
    """Return the arguments of a small program, some of them changed."""
    plain = {"nodes": SINGLE[0], "channels": SINGLE[1], "input_channels": "a", "output_channels": "b"}
    return {**plain, **changes}


def needs_more(state, more): ...


def no_positional(*, state): ...


def nothing(): ...


async def awaited(result): ...


BASE = NodeBuilder().subscribe_only("a")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"input_channels": "aa"}, "input_channels of graph 'Pregel' names 'aa', which is no channel. Did you mean"),
        ({"output_channels": ["b", "bb"]}, "output_channels of graph 'Pregel' names 'bb'"),
        ({"output_channels": [1]}, "names 1, which is no channel"),
        ({"input_channels": []}, "input_channels of graph 'Pregel' names no channel"),
        ({"output_channels": ["b", "b"]}, "names a channel twice: 'b', 'b'"),
        ({"input_channels": "b"}, "no node of graph 'Pregel' subscribes to an input channel ('b')"),
        ({"nodes": {}}, "has no nodes"),
        ({"nodes": {"n": double}}, "node 'n' of graph 'Pregel' is <function double"),
        ({"nodes": {"n": NodeBuilder().read_from("a").write_to("b")}}, "node 'n' of graph 'Pregel' subscribes to no"),
        ({"nodes": {"n": NodeBuilder().subscribe_only("a")}}, "neither runs nor writes"),
        ({"nodes": {"n": node("aa", double, "b")}}, "subscribes to 'aa', which is no channel. Did you mean 'a'?"),
        ({"nodes": {"n": NodeBuilder().subscribe_to("a").read_from("c").do(double)}}, "reads 'c', which is no channel"),
        ({"nodes": {"n": node("a", double, "bb")}}, "writes 'bb', which is no channel. Did you mean 'b'?"),
        ({"nodes": {"n": node("a", double, b=awaited)}}, "writes 'b' by an async function"),
        ({"nodes": {"n": node("a", 5, "b")}}, "is 5: give a function"),
        ({"nodes": {"n": node("a", needs_more, "b")}}, "a parameter 'more' that nothing fills"),
        ({"nodes": {"n": node("a", no_positional, "b")}}, "has no positional parameter"),
        ({"nodes": {"n": node("a", nothing, "b")}}, "has no positional parameter"),
        ({"nodes": {"": BASE}}, "a node of graph 'Pregel' can't be named ''"),
        ({"nodes": {"__n": BASE}}, "can't be named '__n'"),
        ({"nodes": {"n:m": BASE}}, "':' separates names in streams"),
        ({"nodes": {1: BASE}}, "can't be named 1"),
        ({"channels": {"a": LastValue, "__b": LastValue}}, "a channel of graph 'Pregel' can't be named '__b'"),
        ({"channels": {"a": LastValue, "b": int}}, "the channel 'b' of graph 'Pregel' is <class 'int'>"),
        ({"channels": {"a": LastValue, "b": NamedBarrierValue}}, "NamedBarrierValue, which needs parameters"),
        ({"channels": {}}, "Channels: none"),
        ({"executor": "threads"}, "'inline' or 'thread', not 'threads'. Did you mean 'thread'"),
    ],
)  # fmt: skip
def test_wrong_programs_are_refused(changes, words):
    with pytest.raises(GraphDefinitionError) as caught:
        Pregel(**good(**changes))
    assert words in str(caught.value)


def test_a_wrong_failure_policy_is_refused():
    with pytest.raises(InvalidConfigError, match="on_failure"):
        Pregel(**good(on_failure="ignore"))


def test_a_node_that_no_input_leads_to_is_refused():
    nodes = {**SINGLE[0], "ping": node("x", double, "y"), "pong": node("y", double, "x")}
    with pytest.raises(UnreachableNodeError, match="node 'ping' of graph 'Pregel' never runs: it subscribes to 'x'"):
        Pregel(**good(nodes=nodes, channels={**SINGLE[1], "x": LastValue, "y": LastValue}))


def test_an_input_that_leads_nowhere_is_warned_of_where_the_program_stands():
    with pytest.warns(PregelWarning, match="the input channel 'lost' of graph 'Pregel' leads nowhere") as caught:
        Pregel(**good(input_channels=["a", "lost"], channels={**SINGLE[1], "lost": LastValue}))
    assert caught[0].filename == __file__
    reading = NodeBuilder().subscribe_to("a").read_from("read").write_to("b")
    channels = dict.fromkeys(("a", "b", "read", "shown"), LastValue)
    Pregel(nodes={"n": reading}, channels=channels, input_channels=["a", "read", "shown"], output_channels=["shown"])


@pytest.mark.parametrize(
    ("describe", "words"),
    [
        (lambda b: b.subscribe_only("a").subscribe_only("b"), "subscribe_only('b'): the node subscribes to or"),
        (lambda b: b.subscribe_to("a", read=False).subscribe_only("b"), "subscribes to or reads 'a' already"),
        (lambda b: b.subscribe_only("a").subscribe_to("b"), "subscribe_to: the node has subscribe_only('a')"),
        (lambda b: b.subscribe_only("a").read_from("b"), "read_from: the node has subscribe_only('a')"),
        (lambda b: b.subscribe_to("a").subscribe_to("a"), "subscribe_to names the channel 'a', which the node has"),
        (lambda b: b.subscribe_to("a").read_from("a"), "read_from names the channel 'a', which the node has"),
        (lambda b: b.write_to("a", "a"), "write_to names the channel 'a', which the node has"),
        (lambda b: b.write_to("a").write_to(a=1), "write_to names the channel 'a', which the node has"),
        (lambda b: b.subscribe_to(["a", "b"]), "takes names of channels, not ['a', 'b']"),
        (lambda b: b.do(double).do(double), "the node runs <function double"),
    ],
)  # fmt: skip
def test_a_builder_refuses_what_contradicts_itself(describe, words):
    with pytest.raises(GraphDefinitionError) as caught:
        describe(NodeBuilder())
    assert words in str(caught.value)


def test_the_cost_follows_what_was_written():
    class Counting(LastValue):
        __slots__ = ()
        asked = 0

        def is_available(self, value):
            Counting.asked += 1
            return super().is_available(value)

    width = 500
    nodes = {"step": node("n", lambda n: n + 1 if n < 20 else None, "n")}
    nodes |= {f"idle{i}": node(f"c{i}", double, "n") for i in range(width)}
    nodes["wake"] = node("other", double, *(f"c{i}" for i in range(width)))
    channels = {"n": Counting(), "other": LastValue(), **{f"c{i}": Counting() for i in range(width)}}
    assert program(nodes, channels, ["n", "other"], ["n"]).invoke({"n": 0}) == {"n": 20}
    assert 0 < Counting.asked < 100
