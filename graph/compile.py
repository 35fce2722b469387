"""From the builder's records to a `Pregel`: one pass, linear in nodes and edges."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeGuard

from pregel.channels.aggregate import BinaryOperatorAggregate
from pregel.channels.barrier import NamedBarrierValue
from pregel.channels.base import MISSING, Channel
from pregel.channels.keyed import KeyedValue
from pregel.channels.topic import Topic
from pregel.child import Child, Giving
from pregel.door import Door
from pregel.errors import (
    GraphDefinitionError,
    InvalidConfigError,
    PregelWarning,
    SchemaError,
    UnreachableNodeError,
    nearest,
)
from pregel.graph.analysis import Reach, deferred_order, unreachable
from pregel.graph.annotations import describe
from pregel.graph.checker import Check, checker, field_checker, mismatch, reducer_update_annotation
from pregel.graph.code import CodeFacts, callable_name, read_code
from pregel.graph.findings import findings, lost_text, warnings_of
from pregel.graph.live import leads_to
from pregel.graph.schema import merge_fields, read_schema
from pregel.graph.state import ContextT, InputT, OutputT, StateT
from pregel.main import Pregel
from pregel.network import Network
from pregel.node import Branch, Code, Field, Join, Node, View, join_name
from pregel.persistence import read_persistence
from pregel.policy import Policy, read_cache_policy, read_retries, read_timeout
from pregel.text import show
from pregel.types import END, START
from pregel.writes import fault

if TYPE_CHECKING:
    from pregel.graph.draw import Drawing
    from pregel.graph.findings import Finding
    from pregel.graph.schema import FieldSpec, Schema
    from pregel.graph.state import BranchRecord, NodeRecord, StateGraph
    from pregel.persistence import Persistence
    from pregel.types import ExecutorLike, ExecutorName, OnFailure

__all__ = ["CompiledStateGraph", "compile_graph"]


class CompiledStateGraph(Pregel[dict[str, Any]], Generic[StateT, ContextT, InputT, OutputT]):
    """A compiled `StateGraph`: a `Pregel` that knows its schemas and can draw itself."""

    #: Whether as a node it shares fields with the graph around it; else it is called like a function.
    shares_fields = True

    def __init__(
        self,
        builder: StateGraph[StateT, ContextT, InputT, OutputT],
        network: Network,
        door: Door,
        specs: Mapping[str, FieldSpec],
        *,
        on_failure: OnFailure,
        persistence: Persistence,
    ) -> None:
        self._assemble(
            network,
            door,
            on_failure=on_failure,
            persistence=persistence,
            read_context=context_reader(builder.context_schema, network.name),
        )
        self.builder = builder
        #: The fields as their schemas declare them.
        self.specs = specs

    def get_graph(self) -> Drawing:
        """Return the graph as a networkx `MultiDiGraph` whose `draw_mermaid()` draws it.

        Nodes are the node names, START and END, with the attributes `defer` and `metadata`; edges have `kind`
        ("static", "conditional" or "join") and, where a path's answer has another name than its target, `label`.
        """
        from pregel.graph.draw import drawing  # noqa: PLC0415 - networkx is loaded when it is needed

        return drawing(self._network)

    def check(self) -> list[Finding]:
        """Return what is wrong with the graph, and what may be: the warnings of `compile`, and what it allowed.

        Errors come first, the rest by code; nothing is raised and no warning is given.
        """
        return findings(self._network, read_schema(self.builder.state_schema).fields)

    def get_input_jsonschema(self) -> dict[str, Any]:
        """Return the JSON schema of what a caller may set."""
        return self._jsonschema("Input", [name for name in self.specs if name in self._door.accepted])

    def get_output_jsonschema(self) -> dict[str, Any]:
        """Return the JSON schema of what a caller gets."""
        return self._jsonschema("Output", list(self._network.outputs))

    def _jsonschema(self, suffix: str, names: list[str]) -> dict[str, Any]:
        from pregel.graph.jsonschema import fields_jsonschema  # noqa: PLC0415 - needs pydantic

        return fields_jsonschema(f"{self.name}{suffix}", [self.specs[name] for name in names])


def compile_graph(
    builder: StateGraph[StateT, ContextT, InputT, OutputT],
    *,
    name: str | None,
    executor: ExecutorLike,
    on_failure: OnFailure,
    debug: bool,
    **stored: Any,
) -> CompiledStateGraph[StateT, ContextT, InputT, OutputT]:
    """Compile a builder; see `StateGraph.compile`."""
    compiler = Compiler(builder, name, executor, debug)
    network = compiler.network()
    for finding in warnings_of(network, compiler.state.fields):
        warnings.warn(finding.message, PregelWarning, stacklevel=3)  # at the line that calls `StateGraph.compile`
    persistence = read_persistence(network, types=compiler.types, children=compiler.children, **stored)
    return CompiledStateGraph(
        builder, network, compiler.door(network), compiler.specs, on_failure=on_failure, persistence=persistence
    )


def plain_update(channel: Channel) -> type | None:
    """Return the type of updates that no check would look at; None for a channel of which that is not known."""
    if isinstance(channel, KeyedValue):
        return dict
    return list if isinstance(channel, Topic) and channel.item is Any else None


class Compiler:
    """The steps of one compilation, and what they share."""

    def __init__(
        self,
        builder: StateGraph[Any, Any, Any, Any],
        name: str | None,
        executor: ExecutorLike,
        debug: bool,  # noqa: FBT001 - as `compile` was told
    ) -> None:
        self.builder = builder
        self.debug = debug
        self.executor = executor
        self.state = read_schema(builder.state_schema)
        self.input = read_schema(builder.input_schema)
        self.output = read_schema(builder.output_schema)
        self.name = name or self.state.name
        self.known = {schema.name: schema.source for schema in (self.state, self.input, self.output)}
        self.options = {record.name: record.options.over(builder.defaults) for record in builder.nodes.values()}
        self.facts = {record.name: self.read_node(record) for record in builder.nodes.values()}
        self.paths = [self.read_path(record) for record in builder.branches]
        self.node_schemas = {record.name: self.schema_of(record) for record in builder.nodes.values()}
        self.path_schemas = [read_schema(facts.reads) if facts.reads else self.state for facts in self.paths]
        own = [self.state, self.input, self.output]
        inner = list({id(schema): schema for schema in (*self.node_schemas.values(), *self.path_schemas)}.values())
        merged = merge_fields([*own, *(schema for schema in inner if schema not in own)])
        self.managed = {name: spec.managed for name, spec in merged.items() if spec.managed is not None}
        self.specs = {name: spec for name, spec in merged.items() if spec.managed is None}
        self.declared_outside = {name for schema in own for name in schema.fields}
        self.compare_schemas(inner)
        self.fields = {name: self.field(spec) for name, spec in self.specs.items()}
        self.views: dict[int, View] = {}

    def read_node(self, record: NodeRecord) -> CodeFacts:
        """Read a node's action. What a graph takes and gives is known when all fields are; see `child`."""
        if is_child(record.action):
            return CodeFacts(Code(record.name))
        return read_code(record.action, record.name, f"node {record.name!r} of graph {self.name!r}", self.known)

    def read_path(self, record: BranchRecord) -> CodeFacts:
        """Read a conditional edge's path."""
        name = callable_name(record.path) or type(record.path).__name__
        where = f"the conditional edge {name!r} of node {record.source!r} of graph {self.name!r}"
        return read_code(record.path, name, where, self.known)

    def schema_of(self, record: NodeRecord) -> Schema:
        """Return what a node reads."""
        return read_schema(record.input_schema or self.facts[record.name].reads or self.builder.state_schema)

    def compare_schemas(self, inner: list[Schema]) -> None:
        """Find at build time what would go wrong in a run: annotations of nodes that contradict the state's.

        Raises:
            SchemaError: A node reads or returns a field as another type than the state declares, or returns a field
                that nobody declares.
        """
        for schema in inner:
            for name, spec in schema.fields.items():
                self.compare(spec, f"schema {schema.name}, which nodes of graph {self.name!r} read,", name)
        for node, facts in self.facts.items():
            for returned in map(read_schema, facts.returned_schemas):
                for name, spec in returned.fields.items():
                    self.compare(
                        spec, f"node {node!r} of graph {self.name!r}, annotated to return {returned.name},", name
                    )

    def compare(self, spec: FieldSpec, where: str, name: str) -> None:
        """Compare one declaration of a field with the graph's."""
        if name in self.managed:
            return
        declared = self.specs.get(name)
        if declared is None:
            fault(
                self.builder.allowed,
                "schema-mismatch",
                SchemaError,
                f"{where} would update {name!r}, which no schema of the graph declares.{nearest(name, self.specs)} "
                f"Declared: {', '.join(sorted(self.specs))}",
            )
        elif mismatch(spec.annotation, declared.annotation):
            fault(
                self.builder.allowed,
                "schema-mismatch",
                SchemaError,
                f"{where} has the field {name!r} as {describe(spec.annotation)}; {declared.declared_by} declares it "
                f"as {describe(declared.annotation)}: give both the same type",
            )

    def field(self, spec: FieldSpec) -> Field:
        """Return a field with the checks of its updates."""
        channel = spec.channel
        reducer = channel if isinstance(channel, BinaryOperatorAggregate) else None
        check, whole = (None, None) if spec.unchecked else self.checks(spec)
        prepare = None if reducer is None else reducer.prepare
        if prepare is not None and check is None:
            check = checker(Any)  # a field with a check is looked at, and so prepared
        return Field(
            spec.name,
            channel,
            exact=plain_update(channel) if check is None else None if prepare is not None else check.exact,
            check=check,
            expected="Any" if check is None else check.expected,
            check_whole=whole,
            expected_whole="Any" if whole is None else whole.expected,
            folds=reducer is not None or (isinstance(channel, Topic) and channel.accumulate),
            prepare=prepare,
        )

    def checks(self, spec: FieldSpec) -> tuple[Check | None, Check | None]:
        """Return the check of a field's updates, and that of a whole value where it is another one."""
        channel = spec.channel
        if isinstance(channel, (KeyedValue, NamedBarrierValue)):
            return None, None  # they check their updates themselves
        if isinstance(channel, Topic):
            published: Any = list[channel.item]  # type: ignore[name-defined]
            return (None, None) if channel.item is Any else (checker(channel.item | published), checker(published))
        model = self.state.source if self.state.kind == "pydantic" and spec.name in self.state.fields else None
        whole = checker(spec.annotation) if model is None else field_checker(model, spec.name)
        if not isinstance(channel, BinaryOperatorAggregate):
            return whole, None
        update = reducer_update_annotation(channel.operator, spec.annotation)
        if update is spec.annotation:
            return whole, None
        return checker(update, coerce=model is not None), None if channel.prepare is not None else whole

    def view(self, schema: Schema) -> View:
        """Return the view that a schema gives; one schema, one view."""
        found = self.views.get(id(schema))
        if found is None:
            names = tuple(name for name in self.specs if name in schema.fields)
            guarded = tuple(self.fields[name] for name in names if self.fields[name].channel.guards)
            found = self.views[id(schema)] = View(
                fields=None if len(names) == len(self.specs) else names,
                guarded=guarded,
                managed=tuple((name, kind) for name, kind in self.managed.items() if name in schema.fields),
                build=None if schema.kind == "typeddict" else schema.build,
                required=schema.required,
                schema=schema.name,
            )
        return found

    def network(self) -> Network:
        """Link nodes and edges.

        Raises:
            GraphDefinitionError: An edge names an unknown node, there is no entry point, or a node is unreachable.
        """
        builder = self.builder
        targets: dict[str, list[str]] = {name: [] for name in (START, *builder.nodes)}
        for source, target in builder.edges:
            self.check_end(source, target, f"the edge {source!r} -> {target!r}")
            if target != END:
                targets[source].append(target)
        joins: dict[str, list[Join]] = {}
        live: list[dict[str, frozenset[str]]] = []
        for place, ((sources, target), wait) in enumerate(builder.joins.items()):
            label = join_name(sources, target)
            where = f"the join {label!r}"
            for source in sources:
                self.check_end(source, target, where)
            if target == END:  # nothing waits to be run
                continue
            leads = None if wait == "all" else dict.fromkeys(sources, frozenset[str]())
            if leads is not None:
                self.check_live(label)
                live.append(leads)
            join = Join(label, target, NamedBarrierValue(sources), tuple(sources), place, leads)
            for source in sources:
                joins.setdefault(source, []).append(join)
        branches: dict[str, list[Branch]] = {}
        for record, facts, schema in zip(builder.branches, self.paths, self.path_schemas, strict=True):
            branches.setdefault(record.source, []).append(self.branch(record, facts, schema))
        if not targets[START] and START not in branches:
            raise GraphDefinitionError(
                f"graph {self.name!r} has no entry point: add_edge(START, 'node'), or a conditional edge from START"
            )
        self.children = {record.name: record.action for record in builder.nodes.values() if is_child(record.action)}
        children = {name: self.child(builder.nodes[name], graph) for name, graph in self.children.items()}
        nodes = {
            name: Node(
                name,
                order,
                *(children.get(name) or (facts.code, self.view(self.node_schemas[name]))),
                targets=tuple(targets[name]),
                branches=tuple(branches.get(name, ())),
                joins=tuple(joins.get(name, ())),
                defer=record.defer,
                executor=self.executor_of(name),
                policy=self.policy(name, order, children.get(name)),
                max_concurrency=self.options[name].max_concurrency,
                may_write=written_fields(facts),
                may_return_none=facts.may_return_none,
                metadata=record.metadata,
                destinations=self.destinations(record, facts),
                once=name in self.children and self.children[name].remembers,
            )
            for order, (record, facts) in enumerate(zip(builder.nodes.values(), self.facts.values(), strict=True))
            for name in (record.name,)
        }
        start = Node(
            START, -1, Code(START), View(), targets=tuple(targets[START]), branches=tuple(branches.get(START, ()))
        )
        known = leads_to(Reach(nodes, start), {source for leads in live for source in leads}) if live else {}
        for leads in live:  # where a source can be reached from is known when all nodes are linked
            leads.update({source: known[source] for source in leads})
        self.check_reach(nodes, start)
        return Network(
            self.name,
            self.fields,
            deferred_order(nodes, start),
            start,
            outputs=tuple(
                name for name, spec in self.specs.items() if name in self.output.fields and not spec.omit_output
            ),
            allowed=builder.allowed,
            managed=frozenset(self.managed),
            debug=self.debug,
            seeds=self.seeds(),
            updates_of=instance_reader([self.state, self.input, self.output, *self.node_schemas.values()]),
        )

    def executor_of(self, name: str) -> ExecutorName:
        """Return where the rest of a node runs whose code an executor runs, and of any other the whole of it."""
        executor = self.options[name].executor or self.executor
        return executor if isinstance(executor, str) else "thread"

    def policy(self, name: str, order: int, child: tuple[Code, View] | None) -> Policy | None:
        """Return what a node has beside being run; None for most.

        Raises:
            GraphDefinitionError: Its error handler can't be called, or it has a timeout and no thread to wait in.
        """
        options = self.options[name]
        executor = options.executor or self.executor
        remote = None if isinstance(executor, str) else self.elsewhere(name, executor, is_graph=child is not None)
        asked = (options.retry_policy, options.timeout, options.cache_policy, options.error_handler, remote)
        if all(each is None for each in asked):
            return None
        where = f"node {name!r} of graph {self.name!r}"
        code, view = child or (self.facts[name].code, self.view(self.node_schemas[name]))
        handler: Node | None = None
        if options.error_handler is not None:
            facts = read_code(
                options.error_handler, name, f"the error handler of {where}", self.known, handles_errors=True
            )
            handler = Node(
                name,
                order,
                facts.code,
                view,
                executor=self.executor_of(name),
                may_return_none=facts.may_return_none,
                destinations=self.destinations(self.builder.nodes[name], facts),
            )
        run_timeout, idle_timeout = read_timeout(options.timeout, where)
        policy = Policy(
            read_retries(options.retry_policy, where),
            run_timeout,
            idle_timeout,
            handler,
            read_cache_policy(options.cache_policy, where),
            remote,
        )
        if policy.is_timed and executor == "inline" and code.call is not None:
            raise GraphDefinitionError(
                f"{where} has a timeout and runs inline, in the thread that would have to give it up: let it run in a "
                'worker thread (executor="thread"), or make it async'
            )
        if remote is not None and idle_timeout is not None:
            from pregel.drivers.executors import crosses  # noqa: PLC0415 - most graphs have no executors

            if crosses(remote):
                raise GraphDefinitionError(
                    f"{where} has an idle timeout and runs on an executor, from where its signs of life come only with "
                    "its result: give it a run timeout"
                )
        return None if policy.is_empty else policy

    def elsewhere(self, name: str, executor: Any, *, is_graph: bool) -> Any:
        """Return what runs the code of a node; None for a graph, whose nodes have executors of their own.

        Raises:
            GraphDefinitionError: It is no executor, or was asked to run a graph.
        """
        from pregel.drivers.executors import is_executor  # noqa: PLC0415 - most graphs have none

        where = f"node {name!r} of graph {self.name!r}"
        if not is_executor(executor):
            raise GraphDefinitionError(
                f"the executor of {where} is no concurrent.futures.Executor but {executor!r}"
                + (": give its get_executor()" if hasattr(executor, "get_executor") else "")
            )
        if not is_graph:
            return executor
        if self.builder.nodes[name].options.executor is not None:
            raise GraphDefinitionError(
                f"{where} is a graph, which runs where the graph around it does: give the executor to its own nodes, "
                "or to its compile"
            )
        return None

    def child(self, record: NodeRecord, graph: Pregel) -> tuple[Code, View]:
        """Return the code and the view of a node that is a graph.

        Raises:
            GraphDefinitionError: It shares no field with this graph.
            SchemaError: A shared field has another type in the two graphs.
        """
        takes = tuple(
            name for name in self.view(self.node_schemas[record.name]).names(self.fields) if graph.takes(name)
        )
        gives = {name: giving(self.fields[name].channel) for name in self.fields if name in graph.outputs}
        if not takes and not gives:
            raise GraphDefinitionError(
                f"node {record.name!r} of graph {self.name!r} is the graph {graph.name!r}, which shares no field with "
                f"it: this one has {', '.join(self.fields)}. Give both a field of one name, or call it in a function"
            )
        if isinstance(graph, CompiledStateGraph):
            for name in dict.fromkeys((*takes, *gives)):
                self.compare(graph.specs[name], f"graph {graph.name!r}, a node of graph {self.name!r},", name)
        child = Child(graph, gives)
        call = None if graph.needs_loop else child.call
        return Code(record.name, call, child.acall if graph.uses_loop else None, any_loop=True), View(takes)

    def check_end(self, source: str, target: str, where: str) -> None:
        """Check that an edge's ends exist.

        Raises:
            GraphDefinitionError: One does not; names the nearest match.
        """
        known = self.builder.nodes
        for name, free in ((source, START), (target, END)):
            if name not in known and name != free:
                raise GraphDefinitionError(
                    f"{where} of graph {self.name!r} names {name!r}, which is no node.{nearest(name, known)} "
                    f"Nodes: {', '.join(known) or 'none'}"
                )

    def branch(self, record: BranchRecord, facts: CodeFacts, schema: Schema) -> Branch:
        """Return a conditional edge.

        Raises:
            GraphDefinitionError: Its source or one of its declared targets is no node.
        """
        where = f"the conditional edge {facts.code.name!r} from {record.source!r}"
        declared = facts.literals if record.path_map is None else tuple(record.path_map.values())
        self.check_end(record.source, END, where)
        for target in declared or ():
            self.check_end(START, target, where)
        targets = None if declared is None else tuple(dict.fromkeys(declared))
        return Branch(facts.code, self.view(schema), record.path_map, targets)

    def destinations(self, record: NodeRecord, facts: CodeFacts) -> tuple[str, ...] | None:
        """Return where a node's commands may go, or None for anywhere.

        Raises:
            GraphDefinitionError: A declared destination is no node.
        """
        declared = record.destinations or facts.command_targets
        for target in declared:
            self.check_end(START, target, f"a destination of node {record.name!r}")
        return None if facts.may_go_anywhere and not record.destinations else declared

    def check_live(self, join: str) -> None:
        """Check that a live join does not have to wait for a node that waits for it.

        Raises:
            GraphDefinitionError: Some node is deferred "live".
        """
        deferred = [record.name for record in self.builder.nodes.values() if record.defer == "live"]
        if deferred:
            raise GraphDefinitionError(
                f"graph {self.name!r} has the live join {join!r} and node {deferred[0]!r}, which is deferred live: "
                "each waits for what can still come, and so for the other. Defer the join's target with "
                'defer="live" and give it plain edges'
            )

    def check_reach(self, nodes: Mapping[str, Node], start: Node) -> None:
        """Check that every node can be reached.

        Raises:
            UnreachableNodeError: One can't; the message says how to declare what leads to it.
        """
        lost = unreachable(Reach(nodes, start))
        if lost:
            text = lost_text(self.name, lost)
            fault(self.builder.allowed, "unreachable-node", UnreachableNodeError, text)

    def types(self) -> list[type]:
        """Return the types that the graph's schemas name, which may be stored."""
        from pregel.graph.storable import storable_types  # noqa: PLC0415 - graphs that store nothing do not load it

        fields = [spec.annotation for spec in self.specs.values()]
        return storable_types([*fields, *(schema.source for schema in self.node_schemas.values())])  # of Send arguments

    def seeds(self) -> dict[str, Callable[[], Any]]:
        """Return what makes the value that each field starts with."""
        return {name: spec.initial for name, spec in self.specs.items() if spec.initial() is not MISSING}

    def door(self, network: Network) -> Door:
        """Return the graph's door."""
        accepted = {name for name in self.input.fields if name in self.specs and not self.specs[name].omit_input}
        private = {
            name
            for name, spec in self.specs.items()
            if (spec.omit_input and spec.omit_output) or name not in self.declared_outside
        }
        whole = self.input.kind == "pydantic"
        return Door(
            network,
            frozenset(accepted),
            frozenset(private),
            whole_validator(self.input, accepted) if whole else None,
        )


def is_child(action: Any) -> TypeGuard[Pregel]:
    """Return whether a node's action is a graph that shares fields with the graph around it."""
    return isinstance(action, Pregel) and getattr(action, "shares_fields", True)


def giving(channel: Channel) -> Giving:
    """Return how the updates of a child become updates of a field with this channel."""
    if isinstance(channel, KeyedValue):
        return "merged"
    return "each" if isinstance(channel, (BinaryOperatorAggregate, Topic)) else "final"


def written_fields(facts: CodeFacts) -> frozenset[str] | None:
    """Return the fields that a node's annotated result can update, or None where it does not say."""
    if not facts.returns_schemas_only:
        return None
    return frozenset(name for schema in facts.returned_schemas for name in read_schema(schema).fields)


def whole_validator(schema: Schema, accepted: set[str]) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """Return what builds a whole pydantic model from an input, so that its model validators run.

    A model that requires fields which an input can't set can't be built from one; its fields are checked one by one.
    """
    buildable = accepted.issuperset(schema.required)

    def validate(values: Mapping[str, Any]) -> Mapping[str, Any]:
        if buildable:
            return schema.updates_of(schema.build(values))
        return {name: field_checker(schema.source, name)(value) for name, value in values.items()}

    return validate


def instance_reader(schemas: list[Schema]) -> Callable[[Any], Mapping[str, Any] | None]:
    """Return what reads the updates off an instance of one of a graph's schemas."""
    classes = tuple((schema.source, schema) for schema in schemas if schema.kind != "typeddict")

    def updates_of(instance: Any) -> Mapping[str, Any] | None:
        for source, schema in classes:
            if isinstance(instance, source):
                return schema.updates_of(instance)
        return None

    return updates_of


def context_reader(declared: Any, graph: str) -> Callable[[Any], Any]:
    """Return what checks the `context=` of a run.

    A mapping becomes an instance where the context schema is a class that makes instances, and nothing one of defaults.
    """
    if declared is None:
        return lambda context: context
    schema = read_schema(declared)
    checks = {name: checker(spec.annotation) for name, spec in schema.fields.items() if schema.kind != "pydantic"}

    def read(context: Any) -> Any:
        if context is None and schema.kind != "typeddict" and not schema.required:
            return schema.build({})
        if context is None or (schema.kind != "typeddict" and isinstance(context, schema.source)):
            return context
        if not isinstance(context, Mapping):
            raise InvalidConfigError(
                f"context of graph {graph!r} takes a {schema.name} or a mapping, not {type(context).__name__}"
            )
        for name in context:
            if name not in schema.fields:
                raise InvalidConfigError(
                    f"context of graph {graph!r} sets {name!r}, which {schema.name} does not declare."
                    f"{nearest(name, schema.fields)}"
                )
            if name in checks:
                try:
                    checks[name](context[name])
                except TypeError as error:
                    raise InvalidConfigError(
                        f"context of graph {graph!r} sets {name!r}, which {schema.name} declares as "
                        f"{checks[name].expected}, to {show(context[name])}: {error}"
                    ) from error
        try:
            return schema.build(context)
        except Exception as error:
            raise InvalidConfigError(f"context of graph {graph!r} does not make a {schema.name}: {error}") from error

    return read
