"""The nodes and links of a flow graph, as they are added: records, and nothing that runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from pregel.errors import nearest
from pregel.graph.flow.errors import FlowDefinitionError
from pregel.graph.flow.home import check_key
from pregel.graph.flow.parts import Record, takes_node
from pregel.graph.flow.resources import declared
from pregel.graph.flow.templates import Template
from pregel.names import check_name
from pregel.types import END

if TYPE_CHECKING:
    from datetime import timedelta

    from pregel.graph.flow.context import FlowContext
    from pregel.graph.flow.keys import KeySpace
    from pregel.graph.flow.parts import AgentPart
    from pregel.graph.flow.resources import Resource
    from pregel.types import RetryPolicy, TimeoutPolicy

__all__ = ["Condition", "FlowBuilder"]

#: What is said of a compiled graph that is given for an agent.
OF_A_GRAPH: Final = (
    ": a compiled graph, such as create_agent's, does not say what it reads and writes of a context. "
    "SimpleAgent(model, name=..., tools=[...], instruction=..., output_key=...) makes an agent that does"
)
#: A condition of a gateway: a sync or async function of the context, which it only reads.
Condition = Callable[["FlowContext"], Any]


class FlowBuilder:
    """What is added to a flow graph: see `FlowGraph`."""

    def __init__(self, name: str, keys: type[KeySpace] | None = None) -> None:
        check_name(name, "a flow graph", reserved="|:/")
        if name.startswith("@"):
            raise FlowDefinitionError(f"a flow graph can't be named {name!r}: '@' is the engine's")
        if keys is not None and not isinstance(getattr(keys, "keys", None), dict):
            raise FlowDefinitionError(f"keys of graph {name!r} is a class of keys, a KeySpace, not {keys!r}")
        self.name = name
        self.keys = keys
        self.records: dict[str, Record] = {}

    def changed(self) -> None:
        """Forget what was made of the graph as it was."""

    def add_activity(
        self,
        name: str,
        fn: Callable[..., Any],
        *,
        to: str | None = None,
        reads: Sequence[str] | None = None,
        writes: Sequence[str] | None = None,
        meta: Mapping[str, Any] | None = None,
        resources: Sequence[Resource] = (),
        retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
        timeout: float | timedelta | TimeoutPolicy | None = None,
    ) -> Self:
        """Add a function.

        Args:
            name: The node's name.
            fn: A sync or async function of `(ctx, node)` or `(ctx)`. It writes to the context and returns nothing.
            to: What runs next; see `link`.
            reads: The keys it reads, for the checks at build; None where it does not say.
            writes: The keys it writes, for the checks at build.
            meta: What it finds as `node.meta`.
            resources: What each run must be given for it, such as a connection; it finds them by `ctx.resource(name)`.
            retry_policy: When it is tried again; what an attempt that failed has written is gone.
            timeout: How long one attempt may take, in seconds, as a `timedelta` or as a `TimeoutPolicy`.

        Returns:
            This graph.

        Raises:
            FlowDefinitionError: The name is taken or can't be one, or the function can't be called so.
        """
        if not callable(fn):
            raise FlowDefinitionError(f"activity {name!r} of graph {self.name!r} is a function, not {fn!r}")
        try:
            takes_node(fn)
        except TypeError as error:
            raise FlowDefinitionError(f"activity {name!r} of graph {self.name!r}: {error}") from None
        return self._add(
            Record(
                name,
                "activity",
                links(to),
                fn,
                dict(meta or {}),
                self._keys(name, reads),
                self._keys(name, writes),
                options={"retry_policy": retry_policy, "timeout": timeout},
                needs=declared(resources, f"activity {name!r} of graph {self.name!r}"),
            )
        )

    def add_agent(self, agent: AgentPart, *, prompt: str | None = None, to: str | None = None) -> Self:
        """Add an agent under its own name. What it shall know of the context stands in its templates, nothing else.

        Args:
            agent: A `SimpleAgent`, `TeamAgent` or another `AgentPart`.
            prompt: A template of what it is asked, where the agent does not say itself.
            to: What runs next.

        Returns:
            This graph.

        Raises:
            FlowDefinitionError: The name is taken, or it is no agent.
            TemplateError: The prompt can't be read.
        """
        name = getattr(agent, "name", None)
        if not isinstance(name, str) or not callable(getattr(agent, "act", None)):
            from pregel.main import Pregel  # noqa: PLC0415 - a graph that is only described loads no engine

            raise FlowDefinitionError(
                f"add_agent of graph {self.name!r} takes a SimpleAgent, a TeamAgent or another AgentPart, not {agent!r}"
                f"{OF_A_GRAPH if isinstance(agent, Pregel) else ''}"
            )
        template = None if prompt is None else Template(prompt, f"the prompt of agent {name!r}")
        reads = tuple(dict.fromkeys((*agent.reads, *(template.reads if template else ()))))
        key = agent.output_key
        return self._add(
            Record(name, "agent", links(to), agent, {}, reads, () if key is None else (str(key),), prompt=template)
        )

    def add_exclusive(self, name: str, routes: Sequence[tuple[Condition, str]], *, default: str | None = None) -> Self:
        """Add a gateway that takes the first route whose condition holds.

        Args:
            name: The node's name.
            routes: Pairs of a condition, a sync or async function of the context, and a node.
            default: Where to go if none holds; without it that is a `NoRouteError`.

        Returns:
            This graph.

        Raises:
            FlowDefinitionError: The name is taken, or a route is no such pair.
        """
        return self._gateway("exclusive", name, routes, default)

    def add_inclusive(self, name: str, routes: Sequence[tuple[Condition, str]], *, default: str | None = None) -> Self:
        """Add a gateway that takes all routes whose conditions hold; see `add_exclusive`."""
        return self._gateway("inclusive", name, routes, default)

    def add_parallel(self, name: str, to: Sequence[str] = ()) -> Self:
        """Add a gateway that takes all its links; the branches run side by side.

        Args:
            name: The node's name.
            to: Where it leads; `link` adds more.

        Returns:
            This graph.
        """
        if isinstance(to, str):
            raise FlowDefinitionError(f"parallel gateway {name!r} leads to a list of nodes, not to {to!r}")
        return self._add(Record(name, "parallel", tuple(to)))

    def add_join(self, name: str, *, to: str | None = None) -> Self:
        """Add a node where branches meet: it runs once, when nothing that still runs can arrive any more.

        So it does not wait for a branch that was never taken, or that went elsewhere.
        """
        return self._add(Record(name, "join", links(to)))

    def add_loop(
        self,
        name: str,
        *,
        over: str | Callable[[FlowContext], Sequence[Any]],
        item: str,
        body: str,
        to: str | None = None,
    ) -> Self:
        """Add a loop: `body` begins a pass for each item, and what links back to the loop ends the pass.

        The items are settled when the loop is entered. Which one is next is state like any other: a run that stopped,
        paused or failed goes on at the item where it was.

        Args:
            name: The node's name.
            over: The key of a sequence, or a sync or async function of the context that returns one.
            item: The key that gets the item.
            body: The first node of a pass.
            to: What runs after the last item.

        Returns:
            This graph.
        """
        reads = () if callable(over) else self._keys(name, (over,))
        then = END if to is None else to
        return self._add(
            Record(name, "loop", (body, then), over, {}, reads, self._keys(name, (item,)), item=check_key(item))
        )

    def link(self, source: str, target: str) -> Self:
        """Let `target` (a node, or END) run after `source`, which may be added later than this is said of it.

        Raises:
            FlowDefinitionError: There is no such source, or it leads to one node and has it; a parallel gateway leads
                to several, and the other gateways and loops are told where when they are added.
        """
        record = self.records.get(source)
        if record is None:
            raise self._unknown(source, f"link({source!r}, {target!r})")
        if record.kind in {"exclusive", "inclusive"}:
            raise FlowDefinitionError(f"{record.kind} gateway {source!r} of graph {self.name!r} has routes, not links")
        if record.kind == "loop":
            if record.targets[1] != END:
                raise self._linked(record)
            targets: tuple[str, ...] = (record.targets[0], target)
        elif record.targets and record.kind != "parallel":
            raise self._linked(record)
        else:
            targets = (*record.targets, target)
        self.records[source] = replace(record, targets=targets)
        self.changed()
        return self

    # -- what the methods share ----------------------------------------------------------------------------------------

    def _add(self, record: Record) -> Self:
        check_name(record.name, f"a node of graph {self.name!r}")
        if record.name.startswith("@"):
            raise FlowDefinitionError(
                f"a node of graph {self.name!r} can't be named {record.name!r}: '@' is the engine's"
            )
        if record.name in self.records:
            raise FlowDefinitionError(f"graph {self.name!r} has a node {record.name!r} already")
        self.records[record.name] = record
        self.changed()
        return self

    def _gateway(
        self,
        kind: Literal["exclusive", "inclusive"],
        name: str,
        routes: Sequence[tuple[Condition, str]],
        default: str | None,
    ) -> Self:
        where = f"{kind} gateway {name!r} of graph {self.name!r}"
        for route in routes:
            pair: Any = route  # what it really is, nobody has checked
            if not (type(pair) is tuple and len(pair) == 2 and callable(pair[0]) and isinstance(pair[1], str)):  # noqa: PLR2004 - a pair
                raise FlowDefinitionError(f"{where} takes pairs of a condition and a node, not {route!r}")
        targets = dict.fromkeys((*(target for _, target in routes), *(() if default is None else (default,))))
        if not targets:
            raise FlowDefinitionError(f"{where} leads nowhere: give it routes, as pairs of a condition and a node")
        return self._add(Record(name, kind, tuple(targets), tuple(routes), default=default))

    def _keys(self, node: str, keys: Sequence[str] | None) -> tuple[str, ...] | None:
        if keys is None:
            return None
        if isinstance(keys, str):
            raise FlowDefinitionError(f"node {node!r} of graph {self.name!r} takes lists of keys, not {keys!r}")
        return tuple(map(check_key, keys))

    def _unknown(self, name: str, where: str) -> FlowDefinitionError:
        return FlowDefinitionError(
            f"{where} of graph {self.name!r} names {name!r}, which is no node.{nearest(name, self.records)}"
        )

    def _linked(self, record: Record) -> FlowDefinitionError:
        return FlowDefinitionError(
            f"{record.where(self.name)} leads to {record.targets[-1]!r} already, and to one "
            "node only: add_parallel leads to several"
        )


def links(to: str | None) -> tuple[str, ...]:
    """Return where a node leads."""
    return () if to is None else (to,)
