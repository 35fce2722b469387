"""Results of nodes that are used again: when they are, when not, and what is told of it."""

import operator
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import Annotated, Literal, TypedDict

import pytest

from pregel import END, START, Command, InMemorySaver, Send, StateGraph, add_messages, interrupt
from pregel.cache.base import BaseCache
from pregel.cache.memory import InMemoryCache
from pregel.checkpoint.record import pack_task
from pregel.codec import Codec, seal
from pregel.errors import EncodeError, InvalidConfigError, PregelWarning
from pregel.managed import RemainingSteps
from pregel.testing import fake_clock
from pregel.types import CachePolicy, RetryPolicy

CONFIG = {"configurable": {"thread_id": "t"}}


class State(TypedDict, total=False):
    n: int
    other: int
    log: Annotated[list[str], operator.add]


class Work:
    """Counts how often a node ran; sync or async."""

    def __init__(self, kind, result=lambda state: {"log": [f"n={state['n']}"]}):
        self.ran = 0
        self.result = result
        self.kind = kind

    def node(self):
        def work(state: State):
            self.ran += 1
            return self.result(state)

        async def awork(state: State):
            return work(state)

        return awork if self.kind == "async" else work


@pytest.fixture(params=["sync", "async"])
def kind(request):
    """Each kind of node, in turn."""
    return request.param


def graph_of(work, cache, policy=None, *, name="State", checkpointer=None, **options):
    builder = StateGraph(State)
    builder.add_node(
        "work", work.node() if isinstance(work, Work) else work, cache_policy=policy or CachePolicy(), **options
    )
    return builder.add_edge(START, "work").compile(checkpointer, cache=cache, name=name)


# -- caches ------------------------------------------------------------------------------------------------------------


def test_a_cache_in_memory_keeps_bytes_by_namespace_and_key():
    cache = InMemoryCache()
    cache.put(("g", "a"), "k", b"1")
    cache.put(("g", "b"), "k", b"2")
    cache.put(("g", "a"), "k", b"3")
    assert (cache.get(("g", "a"), "k"), cache.get(("g", "b"), "k")) == (b"3", b"2")
    assert cache.get(("g",), "k") is cache.get(("g", "a"), "other") is None


def test_clearing_forgets_a_namespace_and_those_in_it():
    cache = InMemoryCache()
    places = [("g",), ("g", "a"), ("g", "a", "x"), ("gg",), ("h", "a")]
    for place in places:
        cache.put(place, "k", b"v")
    cache.clear(("g", "a"))
    assert [place for place in places if cache.get(place, "k")] == [("g",), ("gg",), ("h", "a")]
    cache.clear(("g",))
    assert [place for place in places if cache.get(place, "k")] == [("gg",), ("h", "a")]
    cache.clear()
    assert not any(cache.get(place, "k") for place in places)


def test_what_has_expired_is_gone_and_takes_no_room():
    with fake_clock() as clock:
        cache = InMemoryCache()
        for number in range(10):
            cache.put(("g",), str(number), b"v", ttl=5 + number)
        cache.put(("g",), "for ever", b"v")
        clock.advance(5)
        assert cache.get(("g",), "0") is None
        assert cache.get(("g",), "1") == b"v"
        clock.advance(4.5)
        cache.put(("g",), "new", b"v", ttl=1)
        assert sorted(cache._kept["g",]) == ["5", "6", "7", "8", "9", "for ever", "new"]
        clock.advance(1_000)
        cache.put(("h",), "k", b"v")
        assert cache._kept == {("g",): {"for ever": (b"v", None)}, ("h",): {"k": (b"v", None)}}


# -- graphs ------------------------------------------------------------------------------------------------------------


def test_a_result_is_used_again_for_the_same_input_only(door, kind):
    work = Work(kind)
    graph = graph_of(work, InMemoryCache())
    assert [door.invoke(graph, {"n": n, "log": []}) for n in (1, 1, 2, 1)] == [
        {"n": n, "log": [f"n={n}"]} for n in (1, 1, 2, 1)
    ]
    assert work.ran == 2


def test_without_a_cache_or_without_a_policy_every_run_runs(door, kind):
    work, other = Work(kind), Work(kind)
    unkept = graph_of(work, None)
    builder = StateGraph(State).add_node("work", other.node()).add_edge(START, "work")
    unasked = builder.compile(cache=InMemoryCache())
    for graph in (unkept, unkept, unasked, unasked):
        door.invoke(graph, {"n": 1, "log": []})
    assert (work.ran, other.ran) == (2, 2)


def test_updates_say_that_a_result_was_cached(door, kind):
    graph = graph_of(Work(kind), InMemoryCache())
    updates = {"work": {"log": ["n=1"]}}
    assert door.stream(graph, {"n": 1, "log": []}) == [updates]
    assert door.stream(graph, {"n": 1, "log": []}) == [{**updates, "__metadata__": {"cached": True}}]


def test_a_result_is_forgotten_when_its_time_is_over(door, kind):
    work = Work(kind)
    with fake_clock() as clock:
        graph = graph_of(work, InMemoryCache(), CachePolicy(ttl=60))
        for seconds in (0, 59.5, 0.5):
            clock.advance(seconds)
            door.invoke(graph, {"n": 1, "log": []})
    assert work.ran == 2


def test_a_key_function_says_what_a_result_depends_on(door, kind):
    work = Work(kind)
    graph = graph_of(work, InMemoryCache(), CachePolicy(key_func=lambda state: state["n"] % 2))
    assert [door.invoke(graph, {"n": n, "log": []})["log"] for n in (1, 3, 2)] == [["n=1"], ["n=1"], ["n=2"]]
    assert work.ran == 2


def test_the_order_in_which_fields_were_written_makes_no_other_key(door):
    work = Work("sync")
    graph = graph_of(work, InMemoryCache())
    door.invoke(graph, {"n": 1, "other": 2})
    door.invoke(graph, {"other": 2, "n": 1})
    assert work.ran == 1


def test_only_what_a_node_reads_is_part_of_its_key(door):
    class Reads(TypedDict):
        n: int

    work = Work("sync")
    graph = graph_of(work, InMemoryCache(), input_schema=Reads)
    for other in (1, 2):
        door.invoke(graph, {"n": 1, "other": other})
    assert work.ran == 1


@dataclass
class Whole:
    n: int = 0


def test_a_node_that_takes_an_instance_and_gives_one_is_cached(door):
    ran = []

    def work(state: Whole) -> Whole:
        ran.append(type(state))
        return Whole(n=state.n + 1)

    def key(state: Whole) -> int:
        assert type(state) is Whole
        return state.n

    builder = StateGraph(Whole).add_node("work", work, cache_policy=CachePolicy(key_func=key)).add_edge(START, "work")
    graph = builder.compile(cache=InMemoryCache())
    assert [door.invoke(graph, {"n": 1})["n"] for _ in range(2)] == [2, 2]
    assert ran == [Whole]


def test_an_instance_and_a_packet_that_holds_the_same_are_told_apart(door):
    def work(state: Whole):
        return {"n": 7 if type(state) is Whole else 8}

    builder = StateGraph(Whole).add_node("work", work, cache_policy=CachePolicy())
    cache = InMemoryCache()
    whole = builder.add_edge(START, "work").compile(cache=cache)
    builder = StateGraph(Whole).add_node("work", work, cache_policy=CachePolicy())
    builder.add_conditional_edges(START, lambda state: Send("work", {"n": 1}), ["work"])
    packet = builder.compile(cache=cache)
    assert [door.invoke(graph, {"n": 1})["n"] for graph in (whole, packet)] == [7, 8]


@pytest.mark.parametrize("ask", [None, lambda arg: arg])
def test_packets_are_told_apart_by_what_they_carry(door, kind, ask):
    work = Work(kind, lambda arg: {"log": [str(arg)]})
    builder = StateGraph(State).add_node("work", work.node(), cache_policy=CachePolicy(ask), input_schema=State)
    builder.add_conditional_edges(START, lambda state: [Send("work", each) for each in (1, "1", True, [1])], ["work"])
    graph = builder.compile(cache=InMemoryCache())
    for _ in range(2):
        assert door.invoke(graph, {"log": []})["log"] == ["1", "1", "True", "[1]"]
    assert work.ran == 4


def test_a_command_with_its_targets_and_packets_is_used_again(door, kind):
    work = Work(kind, lambda state: [Command(update={"log": ["w"]}, goto=["a", Send("b", {"n": 7})]), {"other": 3}])
    builder = StateGraph(State)
    builder.add_node("work", work.node(), cache_policy=CachePolicy(), destinations=["a", "b"]).add_edge(START, "work")
    builder.add_node("a", lambda state: {"log": ["a"]}).add_node("b", lambda arg: {"log": [f"b{arg['n']}"]})
    graph = builder.compile(cache=InMemoryCache())
    results = [door.invoke(graph, {"n": 1, "log": []}) for _ in range(2)]
    assert results == [{"n": 1, "other": 3, "log": ["w", "a", "b7"]}] * 2
    assert work.ran == 1


def test_a_node_that_changes_nothing_is_cached(door, kind):
    work = Work(kind, lambda state: {})
    graph = graph_of(work, InMemoryCache())
    assert [door.invoke(graph, {"n": 1}) for _ in range(2)] == [{"n": 1, "log": []}] * 2
    assert work.ran == 1


def test_conditional_edges_look_at_the_state_as_it_is_now(door, kind):
    class Reads(TypedDict):
        n: int

    work = Work(kind, lambda state: {"log": ["w"]})

    def path(state: State) -> Literal["left", "right"]:
        return "left" if state["other"] else "right"

    builder = StateGraph(State).add_edge(START, "work")
    builder.add_node("work", work.node(), cache_policy=CachePolicy(), input_schema=Reads)
    builder.add_node("left", lambda state: {"log": ["left"]}).add_node("right", lambda state: {"log": ["right"]})
    graph = builder.add_conditional_edges("work", path).compile(cache=InMemoryCache())
    assert [door.invoke(graph, {"n": 1, "other": other})["log"] for other in (1, 0)] == [["w", "left"], ["w", "right"]]
    assert work.ran == 1


def test_static_edges_and_joins_follow_a_cached_result(door, kind):
    work = Work(kind)
    builder = StateGraph(State).add_node("work", work.node(), cache_policy=CachePolicy())
    builder.add_node("beside", lambda state: {"log": ["beside"]}).add_node("last", lambda state: {"log": ["last"]})
    builder.add_edge(START, "work").add_edge(START, "beside").add_edge(["work", "beside"], "last")
    graph = builder.add_edge("last", END).compile(cache=InMemoryCache())
    for _ in range(2):
        assert door.invoke(graph, {"n": 1, "log": []})["log"] == ["n=1", "beside", "last"]
    assert work.ran == 1


def test_a_conditional_edge_that_fails_after_a_cached_result_fails_its_task(door, kind):
    work = Work(kind)
    asked = []

    def path(state: State) -> str:
        asked.append(state["n"])
        if len(asked) > 1:
            raise KeyError("path")
        return END

    builder = StateGraph(State).add_node("work", work.node(), cache_policy=CachePolicy()).add_edge(START, "work")
    graph = builder.add_conditional_edges("work", path, [END]).compile(cache=InMemoryCache())
    door.invoke(graph, {"n": 1, "log": []})
    with pytest.raises(KeyError, match="path") as caught:
        door.invoke(graph, {"n": 1, "log": []})
    assert "node 'work'" in caught.value.__notes__[0]
    assert work.ran == 1


def test_values_that_the_engine_computes_are_part_of_a_key(door, kind):
    class Counts(TypedDict):
        n: int
        left: RemainingSteps

    work = Work(kind, lambda state: {"n": state["left"]})
    builder = StateGraph(Counts).add_edge(START, "work")
    builder.add_node("work", work.node(), cache_policy=CachePolicy(), input_schema=Counts)
    graph = builder.compile(cache=InMemoryCache())
    results = [door.invoke(graph, {"n": 0}, {"recursion_limit": limit})["n"] for limit in (5, 6, 5)]
    assert results[0] == results[2] == results[1] - 1
    assert work.ran == 2


def test_messages_of_a_cached_result_get_ids_of_their_own(door, kind):
    class Talk(TypedDict):
        messages: Annotated[list, add_messages]
        n: int

    work = Work(kind, lambda state: {"messages": [{"role": "ai", "content": "hello"}]})

    class Reads(TypedDict):
        n: int

    builder = StateGraph(Talk).add_node("work", work.node(), cache_policy=CachePolicy(), input_schema=Reads)
    builder.add_node("again", lambda state: {}).add_edge(START, "work").add_edge("work", "again")
    builder.add_conditional_edges("again", lambda state: "work" if len(state["messages"]) < 3 else END, ["work", END])
    messages = door.invoke(builder.compile(cache=InMemoryCache()), {"n": 1, "messages": []})["messages"]
    assert [message.content for message in messages] == ["hello"] * 3
    assert len({message.id for message in messages}) == 3
    assert work.ran == 1


def test_a_failure_is_not_cached_and_what_comes_after_it_is(door, kind):
    def result(state):
        if work.ran == 1:
            raise ConnectionError("once")
        return {"log": ["well"]}

    work = Work(kind, result)
    graph = graph_of(work, InMemoryCache())
    with pytest.raises(ConnectionError):
        door.invoke(graph, {"n": 1, "log": []})
    for _ in range(2):
        assert door.invoke(graph, {"n": 1, "log": []})["log"] == ["well"]
    assert work.ran == 2


def test_a_result_of_a_later_attempt_is_cached_and_one_of_an_error_handler_is_not(door, kind):
    def result(state):
        if work.ran == 1 or state["n"] == 2:
            raise ConnectionError("no")
        return {"log": ["well"]}

    work = Work(kind, result)
    options = {"retry_policy": RetryPolicy(max_attempts=2), "error_handler": lambda state: {"log": ["handled"]}}
    with fake_clock():
        graph = graph_of(work, InMemoryCache(), **options)
        assert [door.invoke(graph, {"n": 1, "log": []})["log"] for _ in range(2)] == [["well"]] * 2
        assert work.ran == 2
        assert [door.invoke(graph, {"n": 2, "log": []})["log"] for _ in range(2)] == [["handled"]] * 2
    assert work.ran == 6


def test_what_was_answered_is_not_cached(door, kind, saver):
    work = Work(kind, lambda state: {"log": [interrupt("?")]})
    graph = graph_of(work, InMemoryCache(), checkpointer=saver)
    for thread, answer in (("a", "yes"), ("b", "no")):
        config = {"configurable": {"thread_id": thread}}
        assert "__interrupt__" in door.invoke(graph, {"n": 1, "log": []}, config)
        assert door.invoke(graph, Command(resume=answer), config)["log"] == [answer]
    assert work.ran == 4


def test_a_graph_inside_is_cached_unless_it_was_answered(door, kind, saver):
    def result(state):
        return {"log": [interrupt("?") if state["n"] else "alone"]}

    work = Work(kind, result)
    child = StateGraph(State).add_node("inner", work.node()).add_edge(START, "inner").compile(name="child")
    graph = graph_of(child, InMemoryCache(), checkpointer=saver)
    for thread in "ab":
        config = {"configurable": {"thread_id": thread}}
        assert door.invoke(graph, {"n": 0, "log": []}, config)["log"] == ["alone"]
    assert work.ran == 1
    for thread, answer in (("c", "yes"), ("d", "no")):
        config = {"configurable": {"thread_id": thread}}
        assert "__interrupt__" in door.invoke(graph, {"n": 1, "log": []}, config)
        assert door.invoke(graph, Command(resume=answer), config)["log"] == [answer]
    assert work.ran == 5


def test_nodes_of_graphs_inside_use_the_cache_around_them(door, kind):
    work = Work(kind)
    child = graph_of(work, None, name="child")
    cache = InMemoryCache()
    graph = StateGraph(State).add_node("child", child).add_edge(START, "child").compile(cache=cache)
    for _ in range(2):
        assert door.invoke(graph, {"n": 1, "log": []})["log"] == ["n=1"]
    assert work.ran == 1
    cache.clear(("child", "work"))
    door.invoke(graph, {"n": 1, "log": []})
    assert work.ran == 2


def test_a_command_for_the_graph_around_is_not_cached(door, kind):
    work = Work(kind, lambda state: Command(graph=Command.PARENT, update={"log": ["up"]}))
    child = graph_of(work, None, name="child")
    graph = StateGraph(State).add_node("child", child).add_edge(START, "child").compile(cache=InMemoryCache())
    for _ in range(2):
        assert door.invoke(graph, {"n": 1, "log": []})["log"] == ["up"]
    assert work.ran == 2


def test_the_cache_of_a_node_may_be_cleared_alone(door):
    one, two = Work("sync"), Work("sync")
    builder = StateGraph(State).add_node("one", one.node(), cache_policy=CachePolicy())
    builder.add_node("two", two.node(), cache_policy=CachePolicy()).add_edge(START, "one").add_edge(START, "two")
    graph = builder.compile(cache=InMemoryCache())

    def clear(*names):
        if door.way == "sync":
            graph.clear_cache(*names)
        else:

            async def main():
                await graph.aclear_cache(*names)

            door.run(main)

    for _ in range(2):
        door.invoke(graph, {"n": 1, "log": []})
    clear(["one"])
    door.invoke(graph, {"n": 1, "log": []})
    assert (one.ran, two.ran) == (2, 1)
    clear()
    door.invoke(graph, {"n": 1, "log": []})
    assert (one.ran, two.ran) == (3, 2)
    with pytest.raises(InvalidConfigError, match=r"names 'oen', which is no node\. Did you mean 'one'\?"):
        clear(["oen"])
    graph_of(one, None).clear_cache()  # there is none


def test_an_input_that_makes_no_key_is_an_error_that_says_what_to_do(door, kind):
    class Holds(TypedDict):
        client: object

    work = Work(kind, lambda state: {})
    builder = StateGraph(Holds).add_node("work", work.node(), cache_policy=CachePolicy(), input_schema=Holds)
    graph = builder.add_edge(START, "work").compile(cache=InMemoryCache())
    with pytest.raises(EncodeError, match=r"node 'work' of graph 'Holds' has a cache policy.*key_func") as caught:
        door.invoke(graph, {"client": object()})
    assert "node 'work'" in caught.value.__notes__[0]
    assert work.ran == 0


def test_a_result_that_can_not_be_kept_is_an_error(door, kind):
    class Holds(TypedDict, total=False):
        n: int
        client: object

    work = Work(kind, lambda state: {"client": object()})
    builder = StateGraph(Holds).add_node("work", work.node(), cache_policy=CachePolicy(lambda state: 1))
    graph = builder.add_edge(START, "work").compile(cache=InMemoryCache())
    with pytest.raises(EncodeError, match=r"its result can't be kept: .*client"):
        door.invoke(graph, {"n": 1})


def test_an_error_of_the_key_function_is_the_tasks(door, kind):
    graph = graph_of(Work(kind), InMemoryCache(), CachePolicy(lambda state: state["nothing"]))
    with pytest.raises(KeyError, match="nothing") as caught:
        door.invoke(graph, {"n": 1, "log": []})
    assert "node 'work'" in caught.value.__notes__[0]


class Broken(InMemoryCache):
    """Gives back what was damaged, or belongs elsewhere."""

    def get(self, namespace, key):
        found = super().get(namespace, key)
        return None if found is None else found[:-1] + bytes([found[-1] ^ 1])


def test_a_damaged_result_is_told_and_the_node_runs_again(door, kind):
    work = Work(kind)
    graph = graph_of(work, Broken())
    door.invoke(graph, {"n": 1, "log": []})
    with pytest.warns(PregelWarning, match="cached result of node 'work' of graph 'State' can't be read.*damaged"):
        assert door.invoke(graph, {"n": 1, "log": []})["log"] == ["n=1"]
    assert work.ran == 2


class Full(InMemoryCache):
    """Takes nothing."""

    def put(self, namespace, key, value, ttl=None):
        raise OSError("no space left")


class Away(InMemoryCache):
    """Can't be asked."""

    def get(self, namespace, key):
        raise ConnectionError("no route")


@pytest.mark.parametrize(
    ("cache", "told"), [(Full, "can't be kept.*OSError: no space"), (Away, "can't be looked up.*ConnectionError: no r")]
)
def test_a_cache_that_fails_is_told_and_the_run_goes_on(door, kind, cache, told):
    work = Work(kind)
    graph = graph_of(work, cache())
    for _ in range(2):
        with pytest.warns(PregelWarning, match=told):
            assert door.invoke(graph, {"n": 1, "log": []})["log"] == ["n=1"]
    assert work.ran == 2


@pytest.mark.parametrize("outcome", [(), ValueError("failed")], ids=["paused", "failed"])
def test_bytes_that_hold_no_result_count_as_absent(door, outcome):
    class Other(InMemoryCache):
        def get(self, namespace, key):
            return seal(pack_task(outcome, {}, Codec()), *namespace, key)

    work = Work("sync")
    with pytest.warns(PregelWarning, match="a task without a result"):
        assert door.invoke(graph_of(work, Other()), {"n": 1, "log": []})["log"] == ["n=1"]


def test_paths_after_a_cached_result_are_asked_where_they_are_without_one(loop, kind):
    threads = []

    def path(state):
        threads.append(threading.current_thread() is threading.main_thread())
        return END

    builder = StateGraph(State).add_node("work", Work(kind).node(), cache_policy=CachePolicy()).add_edge(START, "work")
    graph = builder.add_conditional_edges("work", path, [END]).compile(cache=InMemoryCache())
    for _ in range(2):
        loop.invoke(graph, {"n": 1, "log": []})
    assert threads == [kind == "async"] * 2


class Slow(InMemoryCache):
    """Says that it may wait for something."""

    blocking = True


def test_a_cache_that_waits_does_not_hold_up_an_event_loop(loop):
    threads = set()

    class Watched(Slow):
        def get(self, namespace, key):
            threads.add(threading.current_thread())
            return super().get(namespace, key)

        def put(self, namespace, key, value, ttl=None):
            threads.add(threading.current_thread())
            super().put(namespace, key, value, ttl)

    work = Work("async")
    graph = graph_of(work, Watched())
    for _ in range(2):
        loop.invoke(graph, {"n": 1, "log": []})
    assert work.ran == 1
    assert threads
    assert threading.current_thread() not in threads


@pytest.mark.parametrize("given", [{}, InMemorySaver()], ids=["a dict", "the saver of threads"])
def test_what_is_no_cache_is_refused(given):
    with pytest.raises(InvalidConfigError, match="cache of graph 'State' takes a BaseCache such as InMemoryCache"):
        graph_of(Work("sync"), given)


def test_a_cache_must_say_how_it_keeps_things():
    with pytest.raises(TypeError, match="abstract"):
        BaseCache()


def test_a_run_on_a_thread_keeps_what_its_cached_tasks_did(door, kind, saver):
    work = Work(kind)
    graph = graph_of(work, InMemoryCache(), checkpointer=saver)
    for thread in "ab":
        config = {"configurable": {"thread_id": thread}}
        door.invoke(graph, {"n": 1, "log": []}, config)
        assert graph.get_state(config).values == {"n": 1, "log": ["n=1"]}
    assert work.ran == 1


def test_case_54_two_classes_with_call_and_two_objects_of_one_do_not_share_results(door):
    class First:
        def __init__(self, word):
            self.word = word

        def __call__(self, state: State) -> dict:
            return {"log": [f"first {self.word}"]}

    class Second(First):
        def __call__(self, state: State) -> dict:
            return {"log": [f"second {self.word}"]}

    cache = InMemoryCache()
    graphs = [graph_of(node, cache) for node in (First("a"), Second("a"), First("b"))]
    for _ in range(2):
        shown = [door.invoke(graph, {"n": 1, "log": []})["log"] for graph in graphs]
        assert shown == [["first a"], ["second a"], ["first b"]]


def test_two_key_functions_do_not_share_keys(door):
    cache = InMemoryCache()

    def run(key, given):
        builder = StateGraph(State).add_node("work", node, cache_policy=CachePolicy(key)).add_edge(START, "work")
        return door.invoke(builder.compile(cache=cache), {**given, "log": []})["log"]

    def node(state: State):
        return {"log": [f"n={state['n']}"]}

    assert run(lambda state: state["n"], {"n": 1, "other": 2}) == ["n=1"]
    assert run(lambda state: state["other"], {"n": 2, "other": 1}) == ["n=2"]


def test_runs_without_a_cache_load_nothing_of_it():
    script = (
        "import sys\nfrom typing import TypedDict\nfrom pregel import START, StateGraph\n"
        "class S(TypedDict):\n    n: int\n"
        "StateGraph(S).add_node('a', lambda s: {'n': 1}).add_edge(START, 'a').compile().invoke({'n': 0})\n"
        "print([name for name in sys.modules if name.startswith('pregel.cache') or name == 'pregel.drivers.recall'])"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"
