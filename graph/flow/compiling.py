"""From a flow graph to the engine's builder: the checks, the fields, the nodes and the edges."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final, TypedDict, Union

from pregel.channels.base import MISSING
from pregel.channels.topic import Topic
from pregel.graph.flow.checks import check
from pregel.graph.flow.errors import ContextKeyError
from pregel.graph.flow.folding import KeyedData
from pregel.graph.flow.home import Visit
from pregel.graph.flow.nodes import Loop, runner_of
from pregel.graph.flow.parts import DATA, TRACE, again_of, items_of, position_of
from pregel.graph.flow.plan import Plan
from pregel.graph.schema import PrivateStateAttr
from pregel.graph.state import StateGraph
from pregel.types import END, START

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pregel.graph.flow.flowgraph import FlowGraph
    from pregel.graph.flow.parts import Record

__all__ = ["build"]

#: The kinds of nodes that say themselves where to go.
CHOOSING: Final = frozenset({"exclusive", "inclusive", "loop"})


def build(
    graph: FlowGraph, *, stored: bool, handed_over: bool = False, debug: bool = False
) -> StateGraph[Any, Any, Any, Any]:
    """Return the engine's builder of a flow graph.

    Args:
        graph: The flow graph.
        stored: Whether its runs are stored, so that values must be storable.
        handed_over: Whether a context gives it the fields that it keeps for itself, and gets them back: see
            `Turn.handed_over`. Else they are private, and its input is checked by the graph itself.
        debug: Whether values that a node changes in place are found.

    Raises:
        FlowDefinitionError: It can't mean anything.
    """
    back = check(graph)
    plan = Plan(graph.name, graph.keys, stored=stored, debug=debug)
    schema = TypedDict(graph.name, fields(graph, handed_over=handed_over))  # type: ignore[misc]  # the functional form
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(schema)
    records = [redirected(record, back) for record in graph.records.values()]
    collecting = {record.name for record in records if record.kind == "join"}
    collecting |= {again_of(loop) for loop, sources in back.items() if len(sources) > 1}
    added = {name: options for record in records for name, options in nodes_of(plan, record)}
    for name, options in added.items():
        builder.add_node(name, defer="live" if name in collecting else False, **options)
    first = records[0].name
    if handed_over or graph.keys is None:
        builder.add_edge(START, first)
    else:
        builder.add_conditional_edges(START, Entrance(graph, first), [first])
    for record in records:
        if record.kind not in CHOOSING:
            for target in record.targets:
                builder.add_edge(record.name, target)
    return builder


class Entrance:
    """Lets the input of a compiled graph by itself in, as a turn does with what a context hands over.

    Args:
        graph: The flow graph.
        first: Where it leads.
    """

    def __init__(self, graph: FlowGraph, first: str) -> None:
        self.graph = graph
        self.first = first
        self.__name__ = "entrance"  # what the edge is called in drawings

    def __call__(self, state: Any) -> str:
        """Check the data, and return what runs first.

        Raises:
            ContextKeyError: A key is not declared, or it is a field of its own.
            KeyTypeError: A value is not of its key's type.
            MissingKeyError: A key that must be given is not there.
        """
        graph, data = self.graph, dict(state.get(DATA, {}))
        where = f"the input of graph {graph.name!r}"
        for each in graph.folded():
            if each.key in data:  # nobody would see it
                raise ContextKeyError(
                    f"{where}: {DATA!r} has {each.key!r}, which is folded by its reducer: give it as the field "
                    f"{each.field!r}"
                )
        for key in data:
            graph.keys.find(key, where)  # type: ignore[union-attr]  # one without keys has no entrance
        graph.checked_data(data)
        held = {each.key for each in graph.folded() if each.value(state) is not MISSING}
        graph.check_given(data.keys() | held, where)
        return self.first


def redirected(record: Record, back: dict[str, frozenset[str]]) -> Record:
    """Return a node with links to engine's nodes: one that ends a pass of a loop leads to what goes on with it."""
    loops = {target: again_of(target) for target in record.targets if record.name in back.get(target, ())}
    if not loops:
        return record
    routes = record.action
    if record.kind in {"exclusive", "inclusive"}:
        routes = tuple((condition, loops.get(target, target)) for condition, target in routes)
    default = record.default
    return replace(
        record,
        targets=tuple(loops.get(target, target) for target in record.targets),
        action=routes,
        default=None if default is None else loops.get(default, default),
    )


def fields(graph: FlowGraph, *, handed_over: bool) -> dict[str, Any]:
    """Return the fields of the compiled graph, with their types and channels."""
    keys = {} if graph.keys is None else graph.keys.keys
    values: Any = Union[(Any, *(key.kind for key in keys.values()))]  # the codec is told of the types
    found: dict[str, Any] = {DATA: Annotated[dict[str, values], KeyedData()]}
    found |= {each.field: each.annotation for each in graph.folded()}
    own: dict[str, Any] = {TRACE: Annotated[list[Visit], Topic(Visit, accumulate=True)]}
    for record in graph.records.values():
        if record.kind == "loop":
            own[items_of(record.name)] = list[Any]
            own[position_of(record.name)] = int
    own |= graph.private_fields()
    return found | (own if handed_over else {name: Annotated[kind, PrivateStateAttr] for name, kind in own.items()})


def nodes_of(plan: Plan, record: Record) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the engine's nodes for a node, and how each is added; for a loop these are two.

    Args:
        plan: What the nodes share.
        record: The node, with links to the engine's nodes.
    """
    places = tuple(target for target in record.targets if target != END) if record.kind in CHOOSING else ()
    options = {"destinations": places, "metadata": {"kind": record.kind, **record.meta}, **record.options}
    yield record.name, {"action": runner_of(plan, record), **options}
    if record.kind == "loop":
        yield again_of(record.name), {"action": Loop(plan, record).again, **options}
