"""What tells the results of one node from those of another: keys, and the identity of code."""

import subprocess
import sys
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypedDict

from pregel import START, StateGraph
from pregel.cache.identity import identity
from pregel.cache.memory import InMemoryCache
from pregel.cache.results import Results
from pregel.codec import Codec


class State(TypedDict, total=False):
    n: int


class Other:
    pass


def results_of(graph):
    return Results(InMemoryCache(), graph._persistence.format)


def key_of(action, *, graph="g", node="n", given=1):
    """Return the key of a result."""
    builder = StateGraph(State).add_node(node, action).add_edge(START, node)
    compiled = builder.compile(name=graph)
    return results_of(compiled).key(compiled._network.nodes[node], given)


def adder(amount, *, client=None):
    def add(state):
        return {"n": state["n"] + amount + (client is None)}

    return add


def test_graphs_nodes_functions_and_inputs_have_keys_of_their_own():
    def other(state):
        return {"n": 2}

    keys = [
        key_of(adder(1)),
        key_of(adder(1), graph="h"),
        key_of(adder(1), node="m"),
        key_of(adder(1), given=2),
        key_of(adder(2)),
        key_of(other),
        key_of(lambda state: {"n": 2}),
        key_of(partial(lambda state, by: {"n": by}, by=1)),
        key_of(partial(lambda state, by: {"n": by}, by=2)),
        key_of(adder(1), given=1.0),
        key_of(adder(1), given=True),
        key_of(adder(1), given="1"),
        key_of(adder(1), given=["1"]),
    ]
    assert len(set(keys)) == len(keys)
    assert key_of(adder(1)) == keys[0]


def test_names_that_run_into_each_other_make_other_keys():
    assert key_of(adder(1), graph="gn", node="m") != key_of(adder(1), graph="g", node="nm")
    assert key_of(adder(1), graph="a,b", node="c") != key_of(adder(1), graph="a", node="b,c")


def test_what_can_not_be_told_apart_is_never_taken_for_the_same():
    client = object()
    assert key_of(adder(1, client=client)) != key_of(adder(1, client=client))
    graph = StateGraph(State).add_node("n", adder(1, client=client)).add_edge(START, "n").compile()
    node, results = graph._network.nodes["n"], results_of(graph)
    assert results.key(node, 1) == results.key(node, 1) == results_of(graph).key(node, 1)


def told(call, acall=None):
    return identity((call, acall), Codec())


def test_an_identity_sees_defaults_methods_and_functions_that_are_bound():
    def function(by, *, more=0):
        return lambda state, first=by, *, second=more: first + second

    class Holder:
        def __init__(self, held):
            self.held = held

        def __call__(self, state):
            return self.held

        def method(self, state):
            return self.held

    calls = [
        function(1),
        function(2),
        function(1, more=1),
        Holder(1),
        Holder(2),
        Holder(1).method,
        Holder(2).method,
        Holder(function(1)),
        Holder(function(2)),
        Holder(State),
        Holder(Other),
    ]
    digests = [told(call) for call in calls]
    assert len(set(digests)) == len(digests)
    assert told(function(1)) == digests[0]
    assert told(Holder(1)) == digests[3]
    assert told(function(1), function(1)) != digests[0]


def test_an_identity_is_that_of_what_a_function_does_and_not_of_where_its_lines_are():
    def made(source):
        space = {"__name__": "made"}
        exec(compile(source, "made.py", "exec"), space)  # noqa: S102 - a function at another place
        return space["f"]

    first = made("def f(state):\n    return {'n': 1} if state in {'a', 'b'} else (lambda: 2)()\n")
    moved = made("\n\n# a remark\ndef f(state):\n\n    return {'n': 1} if state in {'a', 'b'} else (lambda: 2)()\n")
    inner = made("def f(state):\n    return {'n': 1} if state in {'a', 'b'} else (lambda: 3)()\n")
    constant = made("def f(state):\n    return {'n': 1} if state in {'a', 'c'} else (lambda: 2)()\n")
    called = made("def f(state):\n    return {'n': 1} if state in {'a', 'b'} else (lambda: max)()\n")
    assert told(first) == told(moved)
    assert len({told(each) for each in (first, inner, constant, called)}) == 4


def test_functions_that_hold_each_other_have_an_identity_which_is_found_in_no_time():
    def outer(last):
        def one(state):
            return one, two, three, four, five, six

        def two(state):
            return one, two, three, four, five, six

        def three(state):
            return one, two, three, four, five, six

        def four(state):
            return one, two, three, four, five, six

        def five(state):
            return one, two, three, four, five, six

        def six(state):
            return one, two, three, four, five, six, last

        return one

    class Counting(Codec):
        def encode(self, value, *args):
            asked.append(value)
            return super().encode(value, *args)

    asked = []
    identity([outer("last")], Counting())
    assert asked == ["last"]
    assert told(outer(1)) == told(outer(1)) != told(outer(2))


def test_a_chain_of_too_many_functions_is_like_no_other():
    def around(inner):
        return lambda state: {**inner(state)}

    def chain():
        call = len
        for _ in range(5_000):
            call = around(call)
        return call

    assert told(chain()) != told(chain())


def test_what_is_bound_in_another_way_is_told_apart():
    def function(state, *args, **options):
        return {"n": (args, options)}

    def holds(which):
        def node(state):
            return one, two

        if which == "one":
            one = 1
        else:
            two = 1
        return node

    def made(source):
        space = {"__name__": "made"}
        exec(compile(source, "made.py", "exec"), space)  # noqa: S102 - a function at another place
        return space["f"]

    calls = [
        partial(function, "by", 1),
        partial(function, by=1),
        partial(function, 1, by=1),
        holds("one"),
        holds("two"),
        made("def f(state, *, a=1, b):\n    return a, b\n"),
        made("def f(state, *, a, b=1):\n    return a, b\n"),
        made("def f(s):\n    try:\n        a()\n        b()\n    except E:\n        c()\n"),
        made("def f(s):\n    try:\n        a()\n    except E:\n        c()\n    else:\n        b()\n"),
    ]
    digests = [told(call) for call in calls]
    assert len(set(digests)) == len(digests)
    assert [told(call) for call in calls] == digests


def test_an_object_is_told_by_all_that_its_class_says():
    class Base:
        added = 0

        @property
        def word(self):
            return "a"

        @staticmethod
        def helped():
            return 1

        def __call__(self, state):
            return self.word, self.helped(), self.added

    def made(**members):
        return type("Made", (Base,), members)()

    calls = [
        made(),
        made(added=1),
        made(helped=staticmethod(lambda: 2)),
        made(helped=classmethod(lambda cls: 3)),
        made(word=property(lambda self: "b")),
        made(word=cached_property(lambda self: "c")),
    ]
    digests = [told(call) for call in calls]
    assert len(set(digests)) == len(digests)
    assert [told(call) for call in calls] == digests
    client = object()
    assert told(made(client=client)) != told(made(client=client))


def test_a_dataclass_that_is_called_is_told_by_its_fields():
    @dataclass
    class Node:
        words: list = field(default_factory=list)

        def __call__(self, state):
            return self.words

    assert told(Node()) == told(Node()) != told(Node(["a"]))


def test_a_class_that_a_function_holds_is_told_by_its_name_where_that_says_which_one_it_is():
    def holds(cls):
        return lambda state: cls()

    def made():
        class Answer:
            pass

        return Answer

    assert told(holds(State)) == told(holds(State)) != told(holds(Other))
    assert told(holds(made())) != told(holds(made()))


def test_a_variable_without_a_value_is_no_error():
    def outer():
        def inner(state):
            return later

        if False:
            later = 1
        return inner

    assert told(outer()) == told(outer())


KEY = """
from typing import TypedDict
from pregel import START, StateGraph
from pregel.cache.memory import InMemoryCache
from pregel.cache.results import Results

class State(TypedDict):
    n: int

def work(state, words=("a", "b")):
    return {"n": 1} if "x" in {"a", "b", "c", "d"} else {"n": 2}

graph = StateGraph(State).add_node("work", work).add_edge(START, "work").compile()
print(Results(InMemoryCache(), graph._persistence.format).key(graph._network.nodes["work"], {"n": 1, "m": {1, 2}}))
"""


def test_another_process_finds_the_same_key():
    keys = {
        subprocess.run(
            [sys.executable, "-c", KEY],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(keys) == 1
    assert len(keys.pop().strip()) == 64
