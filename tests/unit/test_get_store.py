"""How nodes reach the store that their graph was compiled with."""

from typing import TypedDict

import pytest

from pregel import START, Runtime, StateGraph
from pregel.config import get_store
from pregel.errors import InvalidConfigError, MissingStoreError, OutsideTaskError
from pregel.store.base import BaseStore
from pregel.store.memory import InMemoryStore


class State(TypedDict, total=False):
    n: int
    found: list


def by_parameter(state: State, store: BaseStore) -> State:
    store.put(("a",), "parameter", {"n": 1})
    return {}


def by_runtime(state: State, runtime: Runtime) -> State:
    runtime.store.put(("a",), "runtime", {"n": 2})
    return {}


async def by_call(state: State) -> State:
    await get_store().aput(("a",), "call", {"n": 3})
    return {}


def chain(*nodes, **options):
    return StateGraph(State).add_sequence(list(nodes)).add_edge(START, nodes[0].__name__).compile(**options)


def keys(store):
    return sorted(item.key for item in store.search(("a",)))


def test_a_node_gets_the_store_by_parameter_by_runtime_and_by_call(door):
    store = InMemoryStore()
    door.invoke(chain(by_parameter, by_runtime, by_call, store=store), {"n": 0})
    assert keys(store) == ["call", "parameter", "runtime"]


def test_without_a_store_a_parameter_and_a_call_say_what_to_do(door):
    def by_runtime(state: State, runtime: Runtime) -> State:
        return {"found": [runtime.store]}

    assert door.invoke(chain(by_runtime), {"n": 0})["found"] == [None]
    with pytest.raises(MissingStoreError, match=r"node 'by_parameter' asks for the store.*compile\(store="):
        door.invoke(chain(by_parameter), {"n": 0})
    with pytest.raises(MissingStoreError, match=r"node 'by_call' asks for the store.*compile\(store="):
        door.invoke(chain(by_call), {"n": 0})


def test_what_is_no_store_is_refused_by_compile():
    with pytest.raises(InvalidConfigError, match=r"store of graph 'State' takes a BaseStore .* not \{\}"):
        chain(by_parameter, store={})


def test_outside_a_task_there_is_no_store():
    with pytest.raises(OutsideTaskError):
        get_store()


def test_a_graph_inside_shares_the_store_or_has_its_own(door):
    own, outer = InMemoryStore(), InMemoryStore()
    shared = chain(by_parameter)
    apart = chain(by_runtime, store=own)
    graph = (
        StateGraph(State).add_node("shared", shared).add_node("apart", apart)
        .add_edge(START, "shared").add_edge("shared", "apart").compile(store=outer)
    )  # fmt: skip
    door.invoke(graph, {"n": 0})
    assert (keys(outer), keys(own)) == (["parameter"], ["runtime"])


def test_a_graph_run_by_a_node_has_the_store_of_the_node(door):
    inner = chain(by_parameter)

    def node(state: State) -> State:
        inner.invoke({"n": 0})
        return {}

    store = InMemoryStore()
    door.invoke(chain(node, store=store), {"n": 0})
    assert keys(store) == ["parameter"]


def test_a_parameter_with_a_default_keeps_it_where_there_is_no_store(door):
    def node(state: State, store: BaseStore | None = None) -> State:
        return {"found": [store is None]}

    assert door.invoke(chain(node), {"n": 0})["found"] == [True]
    assert door.invoke(chain(node, store=InMemoryStore()), {"n": 0})["found"] == [False]
