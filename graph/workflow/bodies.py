"""From what a node was declared as to the code that runs it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pregel.channels.last_value import LastValue
from pregel.errors import nearest
from pregel.graph.workflow.binding import bind
from pregel.graph.workflow.body import Body, GraphBody, JoinBody
from pregel.graph.workflow.cells import Folded
from pregel.graph.workflow.errors import StateSchemaError, WorkflowConfigurationError
from pregel.graph.workflow.nested import WorkflowBody
from pregel.graph.workflow.nodes import JoinNode, as_node, kind_of, plain_name
from pregel.graph.workflow.parts import ParallelBody, PartRunner
from pregel.graph.workflow.schema import channel_of, check_parameters, fields_of, keys_of

if TYPE_CHECKING:
    from pregel.graph.workflow.nodes import NodeSpec
    from pregel.graph.workflow.workflow import Workflow

__all__ = ["Bodies"]


@dataclass(frozen=True, slots=True)
class Bodies:
    """Makes the code of the nodes of one workflow. It goes to other processes with the code.

    Args:
        where: How messages name the workflow.
        schema: The schema of its state, or None.
        debug: Whether nodes are looked at for what they change in place, those of workflows inside too.
    """

    where: str
    schema: Any
    debug: bool = False

    def body(self, spec: NodeSpec | JoinNode, name: str) -> Any:
        """Return the code of a node.

        Raises:
            WorkflowConfigurationError: It can't be run like that.
            StateSchemaError: It takes a key that the schema does not declare.
        """
        if isinstance(spec, JoinNode):
            return JoinBody()
        where = f"node {name!r} of {self.where}"
        kind = kind_of(spec.action, where)
        if kind == "workflow":
            return self.nested(spec.action)
        if kind == "graph":
            return GraphBody(spec.action)
        binder = bind(spec.action, where, spec.parameter_binding, keys_of(self.schema))
        check_parameters(self.schema, where, binder.required)
        body = Body(kind, binder, PartRunner(self.part))
        return ParallelBody(body, name, spec.max_parallel_workers) if spec.parallel_worker else body

    def part(self, given: Any, name: str | None) -> tuple[NodeSpec, Any]:
        """Return what `ctx.run_node` is given as a node, with its code.

        Raises:
            WorkflowConfigurationError: It can't be run.
        """
        spec = as_node(given, self.where)
        if isinstance(spec, JoinNode):
            raise WorkflowConfigurationError(f"{self.where}: ctx.run_node can't run the join {spec.name!r}")
        called = name or spec.name or plain_name(given)
        if called in {None, "<lambda>"}:
            raise WorkflowConfigurationError(f"{self.where}: ctx.run_node needs a name for {given!r}: name=...")
        return replace(spec, name=called), self.body(spec, str(called))

    def nested(self, workflow: Workflow) -> WorkflowBody:
        """Return the code of a workflow inside this one.

        Raises:
            StateSchemaError: Its schema declares a key that this one's does not, or with another reducer.
        """
        from pregel.graph.workflow.building import Builder  # noqa: PLC0415 - which makes nodes of bodies

        schema = workflow.state_schema or self.schema
        keys = None if schema is None else tuple(fields_of(schema))
        if workflow.state_schema is not None:
            outer = {} if self.schema is None else fields_of(self.schema)
            for key in keys or ():
                if self.schema is not None and key not in outer:
                    raise StateSchemaError(
                        f"workflow {workflow.name!r}, a node of {self.where}, declares the key {key!r}, which the "
                        f"state schema of {self.where} does not.{nearest(key, outer)}"
                    )
                self.check_alike(workflow, key)
        builder = Builder(workflow, schema, inside=True)
        code = next((body.code for body in builder.bodies.values() if not isinstance(body, JoinBody)), None)
        return WorkflowBody(builder.compile(None, debug=self.debug), keys, code)

    def check_alike(self, workflow: Workflow, key: str) -> None:
        """Check that a key of a workflow inside is folded as it is here, where its events are folded again.

        Raises:
            StateSchemaError: It is not.
        """
        inner, outer = channel_of(workflow.state_schema, key), channel_of(self.schema, key)
        if isinstance(inner, LastValue) and (outer is None or isinstance(outer, LastValue)):
            return
        if isinstance(inner, Folded) and isinstance(outer, Folded) and inner.operator == outer.operator:
            return
        if inner != outer:
            raise StateSchemaError(
                f"workflow {workflow.name!r}, a node of {self.where}, declares the key {key!r} with {inner!r}, and "
                f"{self.where} has {'no schema' if self.schema is None else f'it with {outer!r}'}: what is written "
                "inside would come to another value outside. Declare the key with the same reducer in both"
            )
