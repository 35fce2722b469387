"""How a workflow becomes a graph."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

from typing_extensions import TypedDict

from pregel.channels.base import Overwrite
from pregel.channels.keyed import DELETE
from pregel.errors import InvalidInputError
from pregel.graph.schema import OmitFromInput, OmitFromOutput, PrivateStateAttr, Unchecked
from pregel.graph.state import StateGraph
from pregel.graph.workflow.bodies import Bodies
from pregel.graph.workflow.body import Body
from pregel.graph.workflow.cells import Keys
from pregel.graph.workflow.edges import START
from pregel.graph.workflow.errors import StateSchemaError
from pregel.graph.workflow.event import NO_OUTPUT, USER, Output, StoredEvent
from pregel.graph.workflow.incoming import INPUT, incoming_of, out_field
from pregel.graph.workflow.nodes import JoinNode
from pregel.graph.workflow.outputs import TerminalOutput
from pregel.graph.workflow.routes import Routing
from pregel.graph.workflow.running import EVENTS, OUTPUT, PREFIX, TURN, NodeCode
from pregel.graph.workflow.schema import checker, fields_of, keys_of
from pregel.graph.workflow.scopes import TEMP, TEMP_FIELDS, TEMP_NAMES, temp_updates
from pregel.graph.workflow.state import STATE, StateAccess
from pregel.names import check_executor
from pregel.text import show
from pregel.types import END, Migration
from pregel.types import START as GRAPH_START

if TYPE_CHECKING:
    from pregel.graph.compile import CompiledStateGraph
    from pregel.graph.workflow.workflow import Workflow

__all__ = ["Builder"]

#: What no key of a state schema can be called: these are fields, or parameters, of every workflow.
TAKEN: Final = frozenset({INPUT, OUTPUT, STATE, "ctx", "self"})


class Builder:
    """Makes the graph of one workflow.

    Args:
        workflow: It.
        schema: The schema of its state; None for none.
        inside: Whether it is a node of another workflow.
    """

    def __init__(self, workflow: Workflow, schema: Any, *, inside: bool) -> None:
        self.workflow = workflow
        self.schema = schema
        self.inside = inside
        self.where = f"workflow {workflow.name!r}"
        self.edges = workflow.edges
        self.leaving = self.edges.leaving()
        self.arriving = self.edges.arriving()
        self.waiting = frozenset(
            name for name, spec in self.edges.nodes.items() if isinstance(spec, JoinNode) and spec.wait == "all"
        )
        self.state_fields = self.fields_of_state()
        self.routings = {name: self.routing(name) for name in self.edges.nodes}
        self.last = [name for name, routing in self.routings.items() if END in routing.order or not routing.order]
        self.names = keys_of(schema)
        #: The code of the nodes, as it is run where nobody looks for what they change in place.
        self.bodies = self.make_bodies(debug=False)

    def make_bodies(self, *, debug: bool) -> dict[str, Any]:
        """Return the code of the nodes."""
        bodies = Bodies(self.where, self.schema, debug)
        return {name: bodies.body(spec, name) for name, spec in self.edges.nodes.items()}

    def fields_of_state(self) -> dict[str, Any]:
        """Return the fields that hold the state.

        Raises:
            StateSchemaError: The schema declares a key that every workflow has.
        """
        if self.schema is None:
            return {STATE: Annotated[dict[str, Any], Keys()], **TEMP_FIELDS}
        fields = fields_of(self.schema)
        for key in fields:
            if key in TAKEN:
                raise StateSchemaError(
                    f"the state schema of {self.where} declares the key {key!r}, which means something else in every "
                    "workflow: choose another"
                )
        return {**fields, **TEMP_FIELDS}

    def routing(self, name: str) -> Routing:
        """Return where a node leads."""
        return Routing(f"node {name!r} of {self.where}", self.leaving.get(name, ()), self.waiting)

    def compile(self, checkpointer: Any, **options: Any) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Return the graph; see `Workflow.compile`."""
        hidden = OmitFromOutput if self.inside else PrivateStateAttr
        told = () if self.inside else (PrivateStateAttr,)
        # Where nothing is stored nobody could read a log, and a long run would copy it in each superstep.
        self.logs = self.inside or checkpointer not in {None, False}
        own: dict[str, Any] = {
            INPUT: Annotated[Any, Unchecked, OmitFromOutput],
            OUTPUT: Annotated[Any, Unchecked, OmitFromInput, TerminalOutput(len(self.last) == 1)],
            TURN: Annotated[int, operator.add, Unchecked, PrivateStateAttr],
            **({EVENTS: Annotated[(list, operator.add, *told)]} if self.logs else {}),
            PREFIX: Annotated[str, Unchecked, hidden],
        }
        outputs = {out_field(name): Annotated[Output, PrivateStateAttr] for name in self.edges.nodes}
        state = dict(self.state_fields)
        for name in TEMP_FIELDS if told else ():
            state[name] = Annotated[(state[name], *told)]
        fields = {**own, **state, **outputs}
        builder: StateGraph[Any, Any, Any, Any] = StateGraph(schema_of(self.workflow.name, fields))
        debug = bool(options.get("debug"))
        bodies = self.make_bodies(debug=True) if debug else self.bodies
        # What is no function reads or runs what is only at home: it stays there.
        executor = None if isinstance(options.get("executor"), str | None) else options.pop("executor")
        if executor is not None:
            check_executor(executor, "compile")
        view = schema_of("State", self.state_fields)
        for name, spec in self.edges.nodes.items():
            said = None if isinstance(spec, JoinNode) else spec.executor
            runs_on = said or (executor if type(bodies[name]) is Body else None)
            whole = debug or not isinstance(runs_on, str | None)
            self.add(builder, name, bodies[name], fields, None if whole else view, executor=runs_on, debug=debug)
        given = options.pop("migrations", ())
        given = (given,) if isinstance(given, Migration) else given
        migrations = [migrated(each, outputs) for each in given]
        compiled = builder.compile(checkpointer, **{"name": self.workflow.name, "migrations": migrations, **options})
        door = compiled._door  # noqa: SLF001 - this is a front door of the same package
        read = partial(self.read_input, checker(self.schema, f"the input of {self.where}"))
        compiled._door = replace(door, accepted=door.accepted | {STATE}, validate=read)  # noqa: SLF001 - as above
        return compiled

    def add(
        self,
        builder: StateGraph[Any, Any, Any, Any],
        name: str,
        body: Any,
        fields: Mapping[str, Any],
        view: Any,
        *,
        executor: Any,
        debug: bool,
    ) -> None:
        """Add a node with the edges that lead to it.

        Args:
            builder: Takes it.
            name: Its name.
            body: Its code.
            fields: All fields of the graph.
            view: The schema of what nodes are given; None where each is given all that it reads.
            executor: Where it runs.
            debug: Whether it is looked at for what it changes in place.
        """
        spec = self.edges.nodes[name]
        routing = self.routings[name]
        sources = tuple(dict.fromkeys(link.source for link in self.arriving[name]))
        joins = isinstance(spec, JoinNode)
        code = NodeCode(
            self.workflow.name,
            name,
            body,
            StateAccess(self.schema, f"node {name!r} of {self.where}"),
            incoming_of(name, sources, joins=joins),
            routing,
            reruns=not isinstance(spec, JoinNode) and spec.rerun_on_resume,
            is_last=len(self.last) == 1,
            is_given_all=view is None,
            debug=debug,
            logs=self.logs,
        )
        if view is None:
            reads = [TURN, PREFIX, INPUT, *self.state_fields, *map(out_field, (name, *sources))]
            view = schema_of(name, {field: fields[field] for field in dict.fromkeys(reads) if field in fields})
        options: dict[str, Any] = {}
        if not isinstance(spec, JoinNode):
            options = {"retry_policy": spec.retry, "timeout": spec.timeout, "executor": executor}
        if routing.is_routed:
            options["destinations"] = [target for target in dict.fromkeys(routing.order) if target not in self.waiting]
        builder.add_node(
            name,
            code,
            defer="live" if len(sources) > 1 and name not in self.waiting else False,
            input_schema=view,
            **options,
        )
        if name in self.waiting:
            builder.add_edge(sources, name)
            return
        for source in sources:
            if source == START:
                builder.add_edge(GRAPH_START, name)
            elif not self.routings[source].is_routed:
                builder.add_edge(source, name)

    def read_input(self, check: Any, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the updates that an input makes: what it sets, and that a turn begins.

        Raises:
            StateSchemaError: It sets a key that can't be set, or to a value that the key does not take.
            InvalidInputError: Its state is no mapping.
        """
        own = {INPUT, PREFIX, TEMP, TEMP_NAMES, STATE}
        updates = {name: value for name, value in values.items() if name in own}
        given = updates.pop(STATE, {})
        if not isinstance(given, Mapping):
            raise InvalidInputError(f"the input of {self.where}: state takes a mapping, not {show(given)}")
        given = {**{name: value for name, value in values.items() if name not in own}, **given}
        state = {self.names.get(key, key): check(self.names.get(key, key), value) for key, value in given.items()}
        stored, temp = temp_updates(state)
        if self.schema is None:
            updates.update({STATE: stored} if stored else {})
        else:
            updates.update(stored)
        updates.setdefault(INPUT, NO_OUTPUT)
        updates[TURN] = 1
        updates[OUTPUT] = NO_OUTPUT
        if self.inside:
            return updates
        kept = {key: value for key, value in stored.items() if value is not DELETE}
        delta = {key: value.value if type(value) is Overwrite else value for key, value in kept.items()}
        deleted = tuple(key for key in stored if key not in kept)
        replaced = tuple(key for key, value in kept.items() if type(value) is Overwrite)
        content = None if updates[INPUT] is NO_OUTPUT else updates[INPUT]
        if self.logs:
            updates[EVENTS] = [StoredEvent(USER, "", 0, 0, NO_OUTPUT, delta, deleted, replaced, content=content)]
        updates.update({name: Overwrite(temp.get(name, {})) for name in TEMP_FIELDS})
        return updates


def migrated(migration: Migration, outputs: Collection[str]) -> Migration:
    """Return a migration that does with the outputs of nodes what it does with the nodes.

    Args:
        migration: As the user gave it.
        outputs: The fields with the outputs of the nodes that there are.
    """
    renamed = {out_field(old): out_field(new) for old, new in migration.nodes.items()}
    drop = out_field("")

    def state(values: dict[str, Any]) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for name, value in values.items():
            field = renamed.get(name, name)
            if not field.startswith(drop):
                kept[field] = value
            elif field in outputs:
                kept[field] = value._replace(to=tuple(migration.nodes.get(node, node) for node in value.to))
        return kept if migration.state is None else migration.state(kept)

    return replace(migration, state=state)


def schema_of(name: str, fields: Mapping[str, Any]) -> Any:
    """Return a schema with these fields."""
    make: Any = TypedDict  # type checkers want to see the fields
    return make(name, dict(fields), total=False)
