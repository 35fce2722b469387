"""The low level: graphs whose nodes subscribe to channels, compiled into the network that every graph is.

A node is due when a channel it subscribes to was written and holds a value. It reads channels, runs, and writes
channels. There are no edges: what runs next follows from what was written.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from types import CoroutineType
from typing import TYPE_CHECKING, Any, NamedTuple

from pregel.callables import read_callable
from pregel.channels.base import MISSING, Channel
from pregel.channels.topic import Topic
from pregel.door import Door
from pregel.errors import (
    GraphDefinitionError,
    InvalidInputError,
    InvalidUpdateTypeError,
    PregelWarning,
    UnreachableNodeError,
    nearest,
)
from pregel.names import check_executor, check_name
from pregel.network import Network
from pregel.node import Code, Field, Node, View
from pregel.policy import Policy
from pregel.text import show
from pregel.types import START, Command, ExecutorLike, Send

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Self

__all__ = ["ChannelNode", "NodeBuilder", "Write", "compile_channels"]


class Write(NamedTuple):
    """One channel that a node writes."""

    channel: str
    #: A constant, or what makes the update from the node's result: None from it writes nothing.
    value: Any
    made: bool


@dataclass(frozen=True, slots=True, eq=False)
class ChannelNode:
    """What a `NodeBuilder` builds: a node that has no name yet, and has not met its channels."""

    subscribes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    #: Whether it is given the value of the one channel it reads, and not a dict.
    bare: bool = False
    #: What runs; `MISSING` where the node passes on what it read.
    action: Any = MISSING
    writes: tuple[Write, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


def same(result: Any) -> Any:
    """Return a node's result: what a channel named without a value is written."""
    return result


class NodeBuilder:
    """Describes a node of a `Pregel`: what it subscribes to and reads, what it runs, and what it writes.

    Every method but `build` returns the builder.
    """

    __slots__ = ("_action", "_bare", "_metadata", "_reads", "_subscribes", "_writes")

    def __init__(self) -> None:
        self._subscribes: list[str] = []
        self._reads: list[str] = []
        self._bare = False
        self._action: Any = MISSING
        self._writes: list[Write] = []
        self._metadata: dict[str, Any] = {}

    def subscribe_only(self, channel: str) -> Self:
        """Run when a channel was written, and be given its value.

        Raises:
            GraphDefinitionError: The node subscribes to or reads another channel.
        """
        if self._subscribes or self._reads:
            raise GraphDefinitionError(
                f"subscribe_only({channel!r}): the node subscribes to or reads "
                f"{listed(dict.fromkeys((*self._subscribes, *self._reads)))} already. Where there is more than one "
                "channel, use subscribe_to and read_from, which give a dict"
            )
        self._take("subscribe_only", (channel,), self._subscribes)
        self._take("subscribe_only", (channel,), self._reads)
        self._bare = True
        return self

    def subscribe_to(self, *channels: str, read: bool = True) -> Self:
        """Run when any of these channels was written.

        Args:
            channels: Their names.
            read: Whether they are in the dict that the node is given, each if it holds a value.

        Raises:
            GraphDefinitionError: The node has a `subscribe_only`, or one of the channels already.
        """
        self._refuse_bare("subscribe_to")
        self._take("subscribe_to", channels, self._subscribes)
        if read:
            self._take("subscribe_to", channels, self._reads)
        return self

    def read_from(self, *channels: str) -> Self:
        """Be given these channels too, each if it holds a value, without being run by them.

        Raises:
            GraphDefinitionError: The node has a `subscribe_only`, or one of the channels already.
        """
        self._refuse_bare("read_from")
        self._take("read_from", channels, self._reads)
        return self

    def do(self, action: Any) -> Self:
        """Run this: a sync or async function of what the node reads, or an object with `invoke`/`ainvoke`.

        Parameters named `config`, `writer` and `runtime` are filled. Without `do` the node passes on what it reads.

        Raises:
            GraphDefinitionError: The node runs something already.
        """
        if self._action is not MISSING:
            raise GraphDefinitionError(
                f"do({show(action)}): the node runs {show(self._action)} already. Call one from the other, or give "
                "each a node"
            )
        self._action = action
        return self

    def write_to(self, *channels: str, **values: Any) -> Self:
        """Write channels when the node has run.

        Args:
            channels: Channels that are written the node's result; None writes nothing.
            values: By channel: a constant, or a function that makes the update from the node's result, where None
                writes nothing.

        Raises:
            GraphDefinitionError: The node writes one of the channels already.
        """
        self._take("write_to", (*channels, *values), [write.channel for write in self._writes])
        self._writes.extend(Write(channel, same, made=True) for channel in channels)
        self._writes.extend(Write(channel, value, callable(value)) for channel, value in values.items())
        return self

    def meta(self, **metadata: Any) -> Self:
        """Add metadata for people and tools; the engine does not look at it."""
        self._metadata.update(metadata)
        return self

    def build(self) -> ChannelNode:
        """Return the node as it is now; the builder may go on."""
        return ChannelNode(
            tuple(self._subscribes),
            tuple(self._reads),
            self._bare,
            self._action,
            tuple(self._writes),
            dict(self._metadata),
        )

    def _refuse_bare(self, method: str) -> None:
        if self._bare:
            raise GraphDefinitionError(
                f"{method}: the node has subscribe_only({self._subscribes[0]!r}) and is given that channel's bare "
                "value. Where there is more than one channel, use subscribe_to for each"
            )

    def _take(self, method: str, channels: Sequence[str], known: list[str]) -> None:
        """Add channels to those that are known.

        Raises:
            GraphDefinitionError: One is named twice, or is no name.
        """
        for channel in channels:
            if not isinstance(channel, str):
                raise GraphDefinitionError(f"{method} takes names of channels, not {show(channel)}")
            if channel in known:
                raise GraphDefinitionError(f"{method} names the channel {channel!r}, which the node has there already")
            known.append(channel)


@dataclass(frozen=True, slots=True)
class ChannelDoor(Door):
    """Turns the input of a run into updates of input channels."""

    #: The one input channel, where the input is its value and not a mapping.
    bare: str | None = None

    def mapping(self, given: Any, where: str) -> Mapping[str, Any]:
        """Return an input as a mapping from channel to update.

        Raises:
            InvalidInputError: It is no mapping where there is a list of input channels, is empty, or names another
                channel.
        """
        takes = "a mapping" if self.bare is None else "a value"
        if given is None or isinstance(given, Command):
            raise InvalidInputError(
                f"{where} is {show(given)}, which goes on with a stored run, and nothing is stored: give {takes}"
            )
        if self.bare is not None:
            given = {self.bare: given}
        if not isinstance(given, Mapping) or not given:
            raise InvalidInputError(
                f"{where} is {show(given)}: give a mapping with some of the input channels, {listed(self.accepted)}"
            )
        for name in given:
            if name not in self.accepted:
                what = "no input channel" if name in self.network.fields else "no channel"
                raise InvalidInputError(
                    f"{where} sets {name!r}, which is {what}.{nearest(name, self.accepted)} Input channels: "
                    f"{listed(self.accepted)}"
                )
        fields = self.network.fields
        return {name: value for name, value in given.items() if not publishes_nothing(fields[name].channel, value)}


class Compiled(NamedTuple):
    """A program of channels as the engine runs it."""

    network: Network
    door: ChannelDoor
    #: The one output channel, where the result is its value and not a mapping.
    output: str | None


def compile_channels(
    *,
    nodes: Mapping[str, NodeBuilder | ChannelNode],
    channels: Mapping[str, Channel | type[Channel]],
    input_channels: str | Sequence[str],
    output_channels: str | Sequence[str],
    name: str,
    executor: ExecutorLike,
) -> Compiled:
    """Compile nodes and channels; see `Pregel`. Linear in nodes and subscriptions.

    Raises:
        GraphDefinitionError: A name is unknown or can't be one, a node can never run or does nothing, or something
            is no channel, node or function.
    """
    where = f"graph {name!r}"
    check_executor(executor, where)
    fields = {channel: field_of(channel, given, where) for channel, given in channels.items()}
    inputs = door_channels("input_channels", input_channels, fields, where)
    outputs = door_channels("output_channels", output_channels, fields, where)
    built = {node: built_node(node, given, fields, where) for node, given in nodes.items()}
    if not built:
        raise GraphDefinitionError(f"{where} has no nodes")
    triggers: dict[str, list[str]] = {}
    for node, made in built.items():
        for channel in made.subscribes:
            triggers.setdefault(channel, []).append(node)
    check_flow(built, triggers, inputs, outputs, where)
    network = Network(
        name,
        fields,
        {
            node: compiled_node(node, order, made, fields, executor, f"node {node!r} of {where}")
            for order, (node, made) in enumerate(built.items())
        },
        Node(START, -1, Code(START), View()),
        outputs,
        seeds={
            channel: rule.channel.initial for channel, rule in fields.items() if rule.channel.initial() is not MISSING
        },
        triggers={channel: tuple(names) for channel, names in triggers.items()},
    )
    bare_input = input_channels if isinstance(input_channels, str) else None
    bare_output = output_channels if isinstance(output_channels, str) else None
    return Compiled(network, ChannelDoor(network, frozenset(inputs), frozenset(), bare=bare_input), bare_output)


def field_of(name: str, given: Any, where: str) -> Field:
    """Return the field of a channel that was given as an instance or a class.

    Raises:
        GraphDefinitionError: It is no channel, or a class that needs parameters; or the name can't be one.
    """
    check_name(name, f"a channel of {where}", "")
    channel = given
    if isinstance(given, type) and issubclass(given, Channel):
        try:
            channel = given()
        except TypeError as error:
            raise GraphDefinitionError(
                f"the channel {name!r} of {where} is the class {given.__name__}, which needs parameters ({error}): "
                "give an instance"
            ) from error
    if not isinstance(channel, Channel):
        raise GraphDefinitionError(
            f"the channel {name!r} of {where} is {show(given)}: give a channel of pregel.channels, such as LastValue()"
        )
    return Field(name, channel, prepare=getattr(channel, "prepare", None))


def door_channels(option: str, given: str | Sequence[str], fields: Mapping[str, Field], where: str) -> tuple[str, ...]:
    """Return the channels of one side of the door.

    Raises:
        GraphDefinitionError: There are none, one is unknown, or one is named twice.
    """
    names = (given,) if isinstance(given, str) else tuple(given)
    if not names:
        raise GraphDefinitionError(f"{option} of {where} names no channel")
    check_known(names, f"{option} of {where} names", fields)
    if len(set(names)) < len(names):
        raise GraphDefinitionError(f"{option} of {where} names a channel twice: {listed(names)}")
    return names


def check_known(names: Iterable[object], what: str, fields: Mapping[str, Field]) -> None:
    """Check that channels exist.

    Raises:
        GraphDefinitionError: One does not; names the nearest match.
    """
    for name in names:
        if not isinstance(name, str) or name not in fields:
            raise GraphDefinitionError(
                f"{what} {name!r}, which is no channel.{nearest(name, fields)} Channels: {listed(fields) or 'none'}"
            )


def built_node(name: str, given: Any, fields: Mapping[str, Field], where: str) -> ChannelNode:
    """Return a node, built and checked against the channels.

    Raises:
        GraphDefinitionError: It is no node, subscribes to nothing, does nothing, or names an unknown channel.
    """
    check_name(name, f"a node of {where}")
    node = given.build() if isinstance(given, NodeBuilder) else given
    place = f"node {name!r} of {where}"
    if not isinstance(node, ChannelNode):
        raise GraphDefinitionError(
            f"{place} is {show(given)}: give a NodeBuilder, NodeBuilder().subscribe_only('channel').do(function)"
        )
    if not node.subscribes:
        raise GraphDefinitionError(f"{place} subscribes to no channel, so it never runs: subscribe_only, subscribe_to")
    if node.action is MISSING and not node.writes:
        raise GraphDefinitionError(f"{place} neither runs nor writes anything: do(function), write_to('channel')")
    check_known(node.subscribes, f"{place} subscribes to", fields)
    check_known(node.reads, f"{place} reads", fields)
    check_known((write.channel for write in node.writes), f"{place} writes", fields)
    for write in node.writes:
        if write.made and inspect.iscoroutinefunction(write.value):
            raise GraphDefinitionError(
                f"{place} writes {write.channel!r} by an async function, which nothing awaits: await in what `do` runs"
            )
    return node


def check_flow(
    nodes: Mapping[str, ChannelNode],
    triggers: Mapping[str, Sequence[str]],
    inputs: Sequence[str],
    outputs: Sequence[str],
    where: str,
) -> None:
    """Check that an input leads to every node, and that every input channel leads somewhere.

    Raises:
        GraphDefinitionError: No node subscribes to any of the input channels.
        UnreachableNodeError: Nothing that can run writes a channel that a node subscribes to.
    """
    if not any(name in triggers for name in inputs):
        raise GraphDefinitionError(
            f"no node of {where} subscribes to an input channel ({listed(inputs)}), so no input could run anything"
        )
    reached: set[str] = set()
    written = list(inputs)
    for channel in written:  # grows
        for name in triggers.get(channel, ()):
            if name not in reached:
                reached.add(name)
                written.extend(write.channel for write in nodes[name].writes)
    for name, node in nodes.items():
        if name not in reached:
            raise UnreachableNodeError(
                f"node {name!r} of {where} never runs: it subscribes to {listed(node.subscribes)}, which no input sets "
                "and no node that can run writes"
            )
    used = {*triggers, *outputs, *(channel for node in nodes.values() for channel in node.reads)}
    for name in inputs:
        if name not in used:
            warnings.warn(
                f"the input channel {name!r} of {where} leads nowhere: no node subscribes to it or reads it, and it is "
                "no output",
                PregelWarning,
                stacklevel=4,  # at the line that calls `Pregel`
            )


def compiled_node(
    name: str, order: int, node: ChannelNode, fields: Mapping[str, Field], executor: ExecutorLike, where: str
) -> Node:
    """Return a node as the engine runs it."""
    return Node(
        name,
        order,
        code_of(name, node.action, Updates(node.writes, fields, where), where),
        View(
            node.reads,
            guarded=tuple(fields[channel] for channel in node.reads if fields[channel].channel.guards),
            build=itemgetter(node.reads[0]) if node.bare else None,
        ),
        executor=executor if isinstance(executor, str) else "thread",
        policy=None if isinstance(executor, str) else Policy(executor=executor),
        may_write=frozenset(write.channel for write in node.writes),
        metadata=node.metadata,
        consumes=tuple(
            channel for channel in node.subscribes if type(fields[channel].channel).consume is not Channel.consume
        ),
    )


class Updates:
    """Makes a node's updates from its result."""

    __slots__ = ("where", "writes")

    def __init__(self, writes: Sequence[Write], fields: Mapping[str, Field], where: str) -> None:
        self.writes = [(*write, fields[write.channel].channel) for write in writes]
        self.where = where

    def __call__(self, result: Any) -> dict[str, Any]:
        """Return the updates, by channel.

        Raises:
            InvalidUpdateTypeError: The result is for another kind of graph, or was never awaited.
        """
        if isinstance(result, (Command, Send, CoroutineType)):
            raise InvalidUpdateTypeError(f"{self.where} returned {show(result)}: {remedy(result)}")
        updates = {}
        for name, value, made, channel in self.writes:
            update = value(result) if made else value
            if not (made and update is None) and not publishes_nothing(channel, update):
                updates[name] = update
        return updates


def remedy(result: Any) -> str:
    """Return what to do about a result that can't be written."""
    if isinstance(result, CoroutineType):
        result.close()  # never awaited: say so in our words instead of the interpreter's warning
        return "declare the function with `async def`, so that it is awaited"
    return (
        "what runs next here follows from the channels that are written, so write one that the next node subscribes to"
    )


def publishes_nothing(channel: Channel, update: Any) -> bool:
    """Return whether an update is an empty list for a topic: nothing is published, and nobody is woken."""
    return type(update) is list and not update and isinstance(channel, Topic)


def code_of(name: str, action: Any, updates: Updates, where: str) -> Code:
    """Return the code that runs a node's action and makes updates of its result.

    Raises:
        GraphDefinitionError: It can't be called with what the node reads, or has a parameter that nothing fills.
    """
    if action is MISSING:
        return Code(name, updates)
    code = read_callable(action, name, where).code
    call = code.call and called(code.call, updates)
    return Code(name, call, code.acall and awaited(code.acall, updates), code.inject, code.any_loop)


def called(call: Callable[..., Any], updates: Updates) -> Callable[..., dict[str, Any]]:
    """Return a sync function that makes updates of another one's result."""
    return lambda given, **injected: updates(call(given, **injected))


def awaited(acall: Callable[..., Any], updates: Updates) -> Callable[..., Any]:
    """Return an async function that makes updates of another one's result."""

    async def run(given: Any, **injected: Any) -> dict[str, Any]:
        return updates(await acall(given, **injected))

    return run


def listed(names: Iterable[object]) -> str:
    """Return names as a text."""
    return ", ".join(map(repr, names))
