"""A compiled node: what it reads, what runs, and where its result leads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from pregel.errors import NodeInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pregel.channels.barrier import NamedBarrierValue
    from pregel.channels.base import Channel
    from pregel.managed import ManagedName
    from pregel.policy import Policy
    from pregel.types import Defer, ExecutorLike

__all__ = ["EDITOR", "Branch", "Code", "Field", "Injection", "Join", "Node", "View", "join_name"]

#: What a parameter of a node may be filled with.
Injection = Literal["config", "writer", "runtime", "store", "optional_store", "error"]


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One field of the state: its channel and what an update of it must be."""

    name: str
    channel: Channel
    #: An update of exactly this type needs no further look.
    exact: type | None = None
    #: Returns the update to store, or raises `TypeError` saying what is wrong with it.
    check: Callable[[Any], Any] | None = None
    #: The expected type, as text for messages.
    expected: str = "Any"
    #: The same for the value that an `Overwrite` brings, where that is not of an update's type.
    check_whole: Callable[[Any], Any] | None = None
    expected_whole: str = "Any"
    #: Whether updates are folded into the value, so that giving back the value itself would double it.
    folds: bool = False
    #: Coerces an update and gives it ids, once, when its task ends.
    prepare: Callable[[Any, Callable[[], str]], Any] | None = None


@dataclass(frozen=True, slots=True)
class View:
    """What a piece of user code sees of the state: a fresh dict, or an instance of its schema."""

    #: The fields in view; None for all fields of the graph, which is one copy of the whole mapping.
    fields: tuple[str, ...] | None = None
    #: Fields in view whose channel may hold a value that is not to be seen yet.
    guarded: tuple[Field, ...] = ()
    #: Fields in view whose values are computed, with what each of them tells.
    managed: tuple[tuple[str, ManagedName], ...] = ()
    #: Builds an instance from the values in view.
    build: Callable[[dict[str, Any]], Any] | None = None
    #: Fields without which no instance can be built.
    required: tuple[str, ...] = ()
    schema: str = ""

    def names(self, fields: Mapping[str, Field]) -> tuple[str, ...]:
        """Return the fields in view."""
        return tuple(fields) if self.fields is None else self.fields

    def read(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the values in view as a dict of the reader's own."""
        fields = self.fields
        seen = values.copy() if fields is None else {name: values[name] for name in fields if name in values}
        if self.guarded:
            for guarded in self.guarded:
                if guarded.name in seen and not guarded.channel.is_available(seen[guarded.name]):
                    del seen[guarded.name]
        return seen

    def present(self, seen: dict[str, Any], reader: str) -> Any:
        """Return the instance that the code is given, built from the values in view.

        Raises:
            NodeInputError: A required field has no value, or the values do not make an instance.
        """
        absent = [name for name in self.required if name not in seen]
        if absent:
            raise NodeInputError(
                f"{reader} takes a {self.schema or 'value'}, and its field {absent[0]!r} has no value yet: "
                f"give it in the input, let an earlier node write it, or declare a default in {self.schema}"
            )
        try:
            return self.build(seen)  # type: ignore[misc]  # only asked where there is an instance to build
        except Exception as error:
            what = self.schema or "value"
            raise NodeInputError(f"{reader} takes a {what}, which the state does not make: {error!r}") from error


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """User code in its sync and async form; at least one is there, except in the virtual start node."""

    name: str
    call: Callable[..., Any] | None = None
    acall: Callable[..., Any] | None = None
    #: Parameters to fill, by name.
    inject: Mapping[str, Injection] = field(default_factory=dict)
    #: Whether the async form runs on every event loop; of code that has both forms, others are taken to need asyncio.
    any_loop: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """A conditional edge: a path function and the names it may answer with."""

    code: Code
    view: View
    #: From the path's answer to a target; None where the answer is the target.
    path_map: Mapping[Any, str] | None = None
    #: The targets it can name, or None where it did not say.
    targets: tuple[str, ...] | None = None


def join_name(sources: Sequence[str], target: str) -> str:
    """Return how a join is called and stored: "a+b->c". A name that could be taken for several is quoted."""
    quoted = [repr(name) if "+" in name or "->" in name or "'" in name else name for name in (*sources, target)]
    return f"{'+'.join(quoted[:-1])}->{quoted[-1]}"


@dataclass(frozen=True, slots=True, eq=False)
class Join:
    """An edge from several sources: `target` runs once every source has run since the join last fired.

    A live join does not wait for sources that nothing due can lead to any more.
    """

    name: str
    target: str
    channel: NamedBarrierValue
    #: In the order in which they were given.
    sources: tuple[str, ...] = ()
    #: The place among the joins as they were added.
    order: int = 0
    #: For a live join: the nodes whose run can lead to each source, the source itself among them.
    leads: Mapping[str, frozenset[str]] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One node of the network. Compared by identity: two nodes of one name never meet in one graph."""

    name: str
    #: The place among the nodes as they were added: the order in which writes are applied.
    order: int
    code: Code
    view: View
    #: Nodes that run after each run of this one.
    targets: tuple[str, ...] = ()
    branches: tuple[Branch, ...] = ()
    #: The joins that wait for this node.
    joins: tuple[Join, ...] = ()
    #: Whether it waits until nothing else is due, or "live", until nothing that is can lead to it.
    defer: Defer = False
    #: The nodes that can lead here and run first where they are due: for "live" all that can, else the deferred ones.
    defer_after: frozenset[str] = frozenset()
    #: The place of a deferred node in a pass through the graph, where a head of a cycle comes before the cycle.
    place_in_pass: int = 0
    executor: ExecutorLike = "thread"
    #: The fields that its annotated result can update; None where it does not say.
    may_write: frozenset[str] | None = None
    #: Whether its annotations say that it may return None.
    may_return_none: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    #: Where its commands may go as far as it says; None for anywhere.
    destinations: tuple[str, ...] | None = ()
    #: The fields that make it due and whose value is used up when it has run.
    consumes: tuple[str, ...] = ()
    #: Whether it is a graph with a history of its own, of which one run at a time can go on.
    once: bool = False
    #: What is to be done beside running it once, in place: attempts, timeouts, a cache, another process. None for most.
    policy: Policy | None = None
    #: How many of its tasks may run at once; None for no limit of its own.
    max_concurrency: int | None = None

    #: Whether it can't run without an event loop.
    needs_loop: bool = field(init=False)
    #: Whether some of its code is awaited when there is an event loop.
    uses_loop: bool = field(init=False)
    #: Whether that holds for every event loop, and not for asyncio alone.
    any_loop: bool = field(init=False)

    @property
    def choices(self) -> tuple[tuple[str, ...] | None, ...]:
        """Where its commands, those of its error handler and its conditional edges may go; None for anywhere."""
        handler = None if self.policy is None else self.policy.handler
        handled = () if handler is None else (handler.destinations,)
        return (self.destinations, *handled, *(branch.targets for branch in self.branches))

    def __post_init__(self) -> None:
        codes = [branch.code for branch in self.branches]
        if self.policy is None or self.policy.executor is None:  # else it is awaited where the executor runs it
            codes.append(self.code)
        if self.policy is not None and self.policy.handler is not None:
            codes.append(self.policy.handler.code)
        needs = any(code.call is None and code.acall is not None for code in codes)
        object.__setattr__(self, "needs_loop", needs)
        object.__setattr__(self, "uses_loop", any(code.acall is not None for code in codes))
        both = [code for code in codes if code.call is not None and code.acall is not None]
        object.__setattr__(self, "any_loop", all(code.any_loop for code in both))


#: The node of a superstep that changes the state from outside.
EDITOR: Final = Node("update_state", -1, Code("update_state"), View(), destinations=None)
