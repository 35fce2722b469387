"""From the edges that a workflow is written with to who leads to whom, and by which routes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from pregel.errors import nearest
from pregel.graph.workflow.errors import WorkflowConfigurationError
from pregel.graph.workflow.nodes import JoinNode, NodeSpec, as_node, is_function, plain_name
from pregel.graph.workflow.routes import DEFAULT_ROUTE, ROUTES, Link, plain, typed
from pregel.text import show
from pregel.types import END
from pregel.types import START as GRAPH_START

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["START", "Edge", "Edges", "read_edges"]

#: Stands before the first nodes.
START: Final = "START"

#: From a route to the node, or the nodes, that it leads to.
RoutingMap: TypeAlias = Mapping[Any, Any]


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge.

    Args:
        from_node: START, or what a node can be made of.
        to_node: What a node can be made of, or END.
        route: None for an edge that is always taken; else the route, or the list of routes, that take it.
    """

    from_node: Any
    to_node: Any
    route: Any = None


class Edges(NamedTuple):
    """The nodes of a workflow by name, in order of declaration, and the edges between them."""

    nodes: Mapping[str, NodeSpec | JoinNode]
    links: tuple[Link, ...]

    def sources(self, name: str) -> tuple[str, ...]:
        """Return what leads to a node, in order of declaration."""
        return tuple(dict.fromkeys(link.source for link in self.links if link.target == name))

    def leaving(self) -> dict[str, list[Link]]:
        """Return the edges by source."""
        return grouped(self.links, "source")

    def arriving(self) -> dict[str, list[Link]]:
        """Return the edges by target."""
        return grouped(self.links, "target")


def grouped(links: Iterable[Link], end: str) -> dict[str, list[Link]]:
    """Return edges by one of their ends."""
    found: dict[str, list[Link]] = {}
    for link in links:
        found.setdefault(getattr(link, end), []).append(link)
    return found


class Reader:
    """Reads the edges of one workflow: gives each node its name, and links them.

    Args:
        workflow: The workflow's name.
    """

    def __init__(self, workflow: str) -> None:
        self.where = f"workflow {workflow!r}"
        self.nodes: dict[str, NodeSpec | JoinNode] = {}
        #: The name of what a node was made of, by identity; the first one of a function that has several nodes.
        self.names: dict[int, str] = {}
        self.kept: list[Any] = []
        self.links: dict[tuple[str, str, Any], Link] = {}
        #: Whether the edges of a pair of nodes have routes.
        self.pairs: dict[tuple[str, str], bool] = {}
        #: What has a node of its own in the item at hand.
        self.used: set[int] = set()
        self.lambdas = 0
        #: The last number that was given to another node of a name.
        self.numbers: dict[str, int] = {}

    def read(self, items: Any) -> None:
        """Read all items.

        Raises:
            WorkflowConfigurationError: One can't be an edge or a chain.
        """
        if not isinstance(items, Sequence) or isinstance(items, str):
            raise WorkflowConfigurationError(
                f"{self.where}: edges takes a list of chains and Edges, not {show(items)}: edges=[('START', f, g)]"
            )
        if not items:
            raise WorkflowConfigurationError(f"{self.where} has no edges, and would run nothing")
        for item in items:
            self.used = set()
            if isinstance(item, Edge):
                self.read_edge(item)
            elif isinstance(item, (tuple, list)):
                self.read_chain(item)
            else:
                raise WorkflowConfigurationError(
                    f"{self.where}: {show(item)} is no edge: give a chain, ('START', f, g), or an Edge"
                )

    def read_edge(self, edge: Edge) -> None:
        """Read an `Edge`."""
        route = edge.route
        source, target = self.place(edge.from_node, known=True), self.place(edge.to_node, known=True)
        if isinstance(route, (list, tuple)):
            if DEFAULT_ROUTE in route:
                raise WorkflowConfigurationError(
                    f"{self.where}: DEFAULT_ROUTE stands by itself, and not in a list of routes: {show(route)}"
                )
            if not route:
                raise WorkflowConfigurationError(
                    f"{self.where}: the edge {source!r} -> {target!r} has an empty list of routes and is never taken"
                )
            for each in route:
                self.link(source, target, self.route(each))
        else:
            self.link(source, target, None if route is None else self.route(route))

    def read_chain(self, chain: Sequence[Any]) -> None:
        """Read a chain: each element leads to the next one, all nodes of it to all nodes of that.

        Raises:
            WorkflowConfigurationError: An element can't stand where it does.
        """
        if len(chain) < 2:  # noqa: PLR2004 - an edge has two ends
            raise WorkflowConfigurationError(
                f"{self.where}: the chain {show(chain)} has no edge: it takes two elements at least"
            )
        before: list[str] = []
        for place, element in enumerate(chain):
            if isinstance(element, Mapping):
                if not before or isinstance(chain[place - 1], Mapping):
                    raise WorkflowConfigurationError(
                        f"{self.where}: the routing map {show(element)} follows no node: a map stands behind the node "
                        "that takes its routes"
                    )
                if not element:
                    raise WorkflowConfigurationError(f"{self.where}: a routing map is empty, and leads nowhere")
                names = self.read_map(before, element)
                before = [name for name in names if name != END] or names
                continue
            names = [self.place(each) for each in members(element, self.where)]
            for source in before:
                for target in names:
                    self.link(source, target, None)
            before = names

    def read_map(self, sources: Sequence[str], routes: RoutingMap) -> list[str]:
        """Read a routing map and return the names of all nodes in it."""
        names: dict[str, None] = {}
        for key, value in routes.items():
            route = self.route(key)
            for each in members(value, self.where):
                target = self.place(each, known=True)
                names[target] = None
                for source in sources:
                    self.link(source, target, route)
        return list(names)

    def route(self, route: Any) -> Any:
        """Return a route.

        Raises:
            WorkflowConfigurationError: It can't be one.
        """
        found = plain(route)
        if type(found) not in ROUTES:
            raise WorkflowConfigurationError(f"{self.where}: a route is a bool, an int or a text, not {show(route)}")
        return found

    def link(self, source: str, target: str, route: Any) -> None:
        """Add an edge.

        Raises:
            WorkflowConfigurationError: It leads into START or out of END, or START would have to take a route.
        """
        if target == START:
            raise WorkflowConfigurationError(f"{self.where}: an edge from {source!r} leads into START")
        if source == END:
            raise WorkflowConfigurationError(f"{self.where}: an edge to {target!r} leads out of END")
        if source == START and (route is not None or target == END):
            raise WorkflowConfigurationError(
                f"{self.where}: an edge from START leads to a node, by no route: let a node behind START take the route"
            )
        if self.pairs.setdefault((source, target), route is not None) is not (route is not None):
            raise WorkflowConfigurationError(
                f"{self.where}: the edge {source!r} -> {target!r} is there with a route and without one, so that it is "
                "always taken: keep one of them"
            )
        self.links[source, target, typed(route)] = Link(source, target, route)

    def place(self, given: Any, *, known: bool = False) -> str:
        """Return the name of the node that is made of something, and make the node where there is none.

        Args:
            given: A function, or what else a node can be made of; "START" or END.
            known: Whether a function means the node that there is of it; in a chain a function that comes again is
                another node.

        Raises:
            WorkflowConfigurationError: No node can be made of it, or its name is taken.
        """
        if isinstance(given, str):
            if given in {START, GRAPH_START}:
                return START
            if given in {END, "END"}:
                return END
            raise WorkflowConfigurationError(
                f"{self.where}: {given!r} is a text, and nodes are given as they are, not by name."
                f"{nearest(given, (START, 'END'))}"
            )
        key = id(given)
        found = self.names.get(key)
        again = found is not None and not known and key in self.used and is_function(given)
        self.used.add(key)
        if found is not None and not again:
            return found
        spec = as_node(given, self.where)
        name = spec.name or self.name_for(given)
        if again:
            name = self.free(plain_name(given) or name)
        elif name in self.nodes:
            raise WorkflowConfigurationError(
                f"{self.where} has two nodes named {name!r}: name one of them, node(function, name=...)"
            )
        self.nodes[name] = spec if isinstance(spec, JoinNode) else spec.named(name, self.where)
        self.names.setdefault(key, name)
        self.kept.append(given)  # or the identity could become another's
        return name

    def name_for(self, given: Any) -> str:
        """Return a name for what has none: a lambda.

        Raises:
            WorkflowConfigurationError: It is something else.
        """
        if plain_name(given) == "<lambda>":
            self.lambdas += 1
            return f"lambda_{self.lambdas}"
        raise WorkflowConfigurationError(
            f"{self.where}: {show(given)} has no name: give it one, node(function, name=...)"
        )

    def free(self, name: str) -> str:
        """Return a name that is free, made of another by a number: `f_2`."""
        if name == "<lambda>":
            name = "lambda"
        number = self.numbers.get(name, 1) + 1
        while f"{name}_{number}" in self.nodes:
            number += 1
        self.numbers[name] = number
        return f"{name}_{number}"


def members(element: Any, where: str) -> tuple[Any, ...]:
    """Return the nodes that stand side by side in an element of a chain.

    Raises:
        WorkflowConfigurationError: There is none, or a map among them.
    """
    if not isinstance(element, (tuple, list)):
        return (element,)
    if not element:
        raise WorkflowConfigurationError(f"{where}: a fan-out is empty, and leads nowhere")
    for each in element:
        if isinstance(each, (Mapping, tuple, list)):
            raise WorkflowConfigurationError(
                f"{where}: {show(each)} stands inside a fan-out, which takes nodes only: write another chain for it"
            )
    return tuple(element)


def read_edges(workflow: str, items: Any) -> Edges:
    """Read and check the edges of a workflow.

    Raises:
        WorkflowConfigurationError: They can't mean anything: an item is no edge, two nodes have one name, a node is
            never reached, a loop is never left, or a join would wait for what need not come.
    """
    reader = Reader(workflow)
    reader.read(items)
    edges = Edges(reader.nodes, tuple(reader.links.values()))
    lost = unreached(edges)
    if lost:
        raise WorkflowConfigurationError(f"{reader.where}: no edges lead from START to {', '.join(map(repr, lost))}")
    loop = unrouted_loop(edges)
    if loop:
        raise WorkflowConfigurationError(
            f"{reader.where}: the edges {' -> '.join(map(repr, loop))} are a loop in which no edge has a route, so it "
            "would never be left: give one of them a route"
        )
    for name, spec in edges.nodes.items():
        if isinstance(spec, JoinNode) and spec.wait == "all":
            for link in edges.links:
                if link.target == name and (link.route is not None or link.source == START):
                    raise WorkflowConfigurationError(
                        f"{reader.where}: the join {name!r} waits for all, and {link.source!r} leads to it "
                        + ("by a route, which need not be taken" if link.route is not None else "before anything runs")
                        + ': let it wait for those that come, JoinNode(..., wait="live")'
                    )
    return edges


def unreached(edges: Edges) -> list[str]:
    """Return the nodes that no edges lead to from START."""
    leaving = edges.leaving()
    seen = {START}
    todo = [START]
    while todo:
        for link in leaving.get(todo.pop(), ()):
            if link.target not in seen:
                seen.add(link.target)
                todo.append(link.target)
    return [name for name in edges.nodes if name not in seen]


def unrouted_loop(edges: Edges) -> list[str]:
    """Return a loop of edges without routes, if there is one."""
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for link in edges.links:
        if link.route is None:
            sorter.add(link.target, link.source)
    try:
        sorter.prepare()
    except CycleError as error:
        return list(error.args[1])
    return []
