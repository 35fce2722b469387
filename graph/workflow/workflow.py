"""`Workflow`: nodes and edges in one list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pregel.graph.workflow.building import Builder
from pregel.graph.workflow.edges import read_edges
from pregel.graph.workflow.nodes import check_node_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pregel.graph.compile import CompiledStateGraph

__all__ = ["Workflow"]


class Workflow:
    """Functions that run one after the other, side by side, or as they choose, and share a state.

    A workflow can be a node of another one, where it shares that one's state.

    Args:
        name: Its name, which the events of its nodes have as their author.
        edges: Chains, `("START", f, (g, h), i)`, routing maps in them, and `Edge`s; see `docs/workflow.md`.
        state_schema: The keys of the state with their types: a TypedDict, a dataclass or a pydantic model. Without it
            any key may be set, to any value.

    Raises:
        WorkflowConfigurationError: The edges can't mean anything.
        StateSchemaError: A function has a parameter that the schema does not declare, or the schema declares a key that
            can't be one.
    """

    def __init__(self, name: str, edges: Sequence[Any], state_schema: Any = None) -> None:
        check_node_name(name, "a workflow")
        self.name = name
        self.state_schema = state_schema
        #: The nodes by name, and the edges between them.
        self.edges = read_edges(name, edges)
        self._builder = Builder(self, state_schema, inside=False)

    def __repr__(self) -> str:
        return f"Workflow({self.name!r})"

    def compile(self, checkpointer: Any = None, **options: Any) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Return the workflow as a graph.

        Its input is `{"node_input": ..., "state": {...}}`: what the first nodes get, and keys of the state that are set
        before they run, if there are any. Its result has `output`, what the nodes gave that nothing follows (absent
        where they gave nothing), and the state: under `state`, or with a schema each key by itself. The events are in
        the field `@events` of `get_state().values`; a `Runner` yields them.

        Args:
            checkpointer: Where runs are stored; see `StateGraph.compile`.
            options: See `StateGraph.compile`. With `migrations`, what is stored of nodes is renamed with them; what is
                stored of others that are gone is dropped.
        """
        return self._builder.compile(checkpointer, **options)
