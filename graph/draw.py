"""A compiled graph as a networkx graph, and as Mermaid text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import networkx as nx

from pregel.types import END, START

if TYPE_CHECKING:
    from pregel.network import Network

__all__ = ["Drawing", "drawing"]


class Drawing(nx.MultiDiGraph):  # type: ignore[type-arg]  # at run time networkx's class takes no type argument
    """The nodes and edges of a compiled graph, START and END among them."""

    def draw_mermaid(self) -> str:
        """Return the graph as Mermaid flowchart text: static edges solid, conditional ones dotted, joins thick."""
        ids = {name: f"n{number}_{re.sub(r'[^0-9A-Za-z_]', '_', name)}" for number, name in enumerate(self.nodes)}
        lines = ["graph TD;"]
        for name, data in self.nodes(data=True):
            text = quoted(name)
            if name in {START, END}:
                lines.append(f"\t{ids[name]}([{text}]);")
            else:
                lines.append(f"\t{ids[name]}{{{{{text}}}}};" if data["defer"] else f"\t{ids[name]}[{text}];")
        arrows = {"static": "-->", "conditional": "-.->", "join": "==>"}
        for source, target, data in self.edges(data=True):
            label = f"|{quoted(data['label'])}|" if data.get("label") else ""
            lines.append(f"\t{ids[source]} {arrows[data['kind']]}{label} {ids[target]};")
        return "\n".join(lines) + "\n"


def quoted(text: Any) -> str:
    """Return a text as a Mermaid string."""
    return '"' + str(text).replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace("\n", " ") + '"'


def drawing(network: Network) -> Drawing:
    """Return the drawing of a network.

    A node that leads nowhere leads to END; one that may go anywhere has no edge for that, and the attribute
    `anywhere`.
    """
    graph = Drawing(name=network.name)
    nodes = (network.start, *network.nodes.values())
    for node in nodes:
        anywhere = None in node.choices
        graph.add_node(node.name, defer=node.defer, metadata=dict(node.metadata), anywhere=anywhere)
    graph.add_node(END, defer=False, metadata={}, anywhere=False)
    for node in nodes:
        for target in node.targets:
            graph.add_edge(node.name, target, kind="static")
        for join in node.joins:
            graph.add_edge(node.name, join.target, kind="join")
        handler = None if node.policy is None else node.policy.handler
        for target in dict.fromkeys((*(node.destinations or ()), *((handler and handler.destinations) or ()))):
            graph.add_edge(node.name, target, kind="conditional")
        for branch in node.branches:
            named = branch.path_map or {target: target for target in branch.targets or ()}
            for answer, target in named.items():
                graph.add_edge(node.name, target, kind="conditional", label=None if answer == target else str(answer))
        if not graph.out_degree(node.name) and not graph.nodes[node.name]["anywhere"]:
            graph.add_edge(node.name, END, kind="static")
    return graph
