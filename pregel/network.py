"""The compiled graph as plain values: what every run of it shares and none changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pregel.node import Field, Node

__all__ = ["Network"]


def no_schema(instance: Any) -> None:
    """Say that an object is no instance of a schema: the answer where a graph has none."""


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """Fields and nodes, linked. Immutable, so one network serves any number of runs at once."""

    name: str
    fields: Mapping[str, Field]
    #: In the order they were added.
    nodes: Mapping[str, Node]
    #: The virtual node whose writes are the input.
    start: Node
    #: The fields in the result and in the `values` and `updates` streams.
    outputs: tuple[str, ...]
    #: Codes of strictness checks that warn instead of raise.
    allowed: frozenset[str] = frozenset()
    #: Fields whose values are computed: nobody writes them.
    managed: frozenset[str] = frozenset()
    #: Whether nodes are watched for changes in place.
    debug: bool = False
    #: The nodes that a write to a field makes due, in the order they were added; for graphs without edges.
    triggers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: Makes the value that a run starts with, for each field that has one.
    seeds: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    #: Returns what was set in an instance of one of the graph's schemas, or None for any other object.
    updates_of: Callable[[Any], Mapping[str, Any] | None] = no_schema
    visible: frozenset[str] = field(init=False)
    #: Whether some node can't run without an event loop.
    needs_loop: bool = field(init=False)
    #: Whether some code is awaited when there is an event loop.
    uses_loop: bool = field(init=False)
    #: Whether a barrier may take some field's value away, or has to ask a field that nobody wrote.
    clears: bool = field(init=False)
    #: The visible fields whose channel may hold a value that is not to be seen yet.
    guarded: tuple[str, ...] = field(init=False)
    #: The nodes that are graphs with a history of their own, of which one run at a time can go on.
    once: frozenset[str] = field(init=False)
    #: Whether some node limits how many of its tasks run at once.
    limited: bool = field(init=False)
    #: Whether there are joins.
    joins: bool = field(init=False)
    #: What must know where nodes can lead: a live "join", or a "node" that is deferred live; empty for nothing.
    live: Literal["", "join", "node"] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "visible", frozenset(self.outputs))
        object.__setattr__(
            self, "clears", any(rule.channel.clears or rule.channel.resets for rule in self.fields.values())
        )
        guarded = tuple(name for name in self.outputs if self.fields[name].channel.guards)
        object.__setattr__(self, "guarded", guarded)
        object.__setattr__(self, "once", frozenset(name for name, node in self.nodes.items() if node.once))
        limited = any(node.max_concurrency is not None for node in self.nodes.values())
        object.__setattr__(self, "limited", limited)
        object.__setattr__(self, "joins", any(node.joins for node in self.nodes.values()))
        live = "join" if any(join.leads is not None for node in self.nodes.values() for join in node.joins) else ""
        if any(node.defer == "live" for node in self.nodes.values()):
            live = "node"
        object.__setattr__(self, "live", live)
        object.__setattr__(self, "uses_loop", any(node.uses_loop for node in (self.start, *self.nodes.values())))
        object.__setattr__(self, "needs_loop", any(node.needs_loop for node in (self.start, *self.nodes.values())))

    def initial_values(self) -> dict[str, Any]:
        """Return the state before the input: a new mapping for each run."""
        return {name: seed() for name, seed in self.seeds.items()}

    def project(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the part of a state that is visible outside."""
        shown = {name: values[name] for name in self.outputs if name in values}
        for name in self.guarded:
            if name in shown and not self.fields[name].channel.is_available(shown[name]):
                del shown[name]
        return shown
