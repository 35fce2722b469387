"""One node of a compiled graph, run alone on a state made for the purpose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from pregel.channels.base import MISSING, Overwrite
from pregel.commands import TaskFailed
from pregel.config import merged_config, read_config
from pregel.drivers.sync import SyncDriver
from pregel.errors import InvalidInputError, PregelError, nearest
from pregel.session import Session
from pregel.task import Task
from pregel.text import show
from pregel.writes import admit, fault, new_ids

if TYPE_CHECKING:
    from pregel.commands import Event
    from pregel.main import Pregel
    from pregel.reporter import Emit
    from pregel.types import Send

__all__ = ["NodeRun", "UnknownNodeError", "run_node"]


class UnknownNodeError(PregelError, LookupError):
    """A graph has no node of that name; the message names the nearest match."""


@dataclass(frozen=True, slots=True)
class NodeRun:
    """What a node asked for. Nothing of it has been applied."""

    #: The (field, update) pairs, checked and prepared, in the order the node gave them.
    updates: list[tuple[str, Any]]
    #: The nodes that it leads to: by its edges, its commands and its conditional edges, in this order. Joins wait for
    #: others too and are left out, as is END.
    goto: list[str]
    sends: list[Send]
    #: What it gave to its stream writer.
    custom: list[Any]


def run_node(
    graph: Pregel,
    name: str,
    state: Any,
    *,
    arg: Any = MISSING,
    config: Mapping[str, Any] | None = None,
    context: Any = None,
) -> NodeRun:
    """Run one node, sync or async, and its conditional edges on a state, and apply nothing.

    The task has the place of the first one of superstep 1. A node with async code gets an asyncio loop of its own.

    Args:
        graph: The compiled graph.
        name: The node.
        state: The values of fields as the node finds them: a mapping, or an instance of a schema. Private fields may
            be given; fields left out hold what a run starts with.
        arg: What a `Send` would carry: given in place of the state. Conditional edges see the state all the same.
        config: See `Pregel.invoke`.
        context: See `Pregel.invoke`.

    Returns:
        What the node asked for.

    Raises:
        UnknownNodeError: The graph has no such node.
        InvalidInputError: The state names a field that is not declared, or gives a value of the wrong type.
        Exception: What would end a run: what the node raised, or what is wrong with its result.
    """
    network = graph._network  # noqa: SLF001 - a test kit looks inside
    node = network.nodes.get(name)
    if node is None:
        raise UnknownNodeError(
            f"graph {network.name!r} has no node {name!r}.{nearest(name, network.nodes)} "
            f"It has {', '.join(map(repr, network.nodes))}"
        )
    options = read_config(merged_config(graph._config, config))  # noqa: SLF001 - as above
    session = Session(network, options, context=graph._read_context(context), on_failure="finish")  # noqa: SLF001 - as above
    parts: list[Emit] = []
    session.connect(parts.append, custom=True)
    session.machine.values = values_of(graph, state, session)
    task = Task(node, 1, 0, arg)
    if node.needs_loop:
        from pregel.drivers.bridge import run_async  # noqa: PLC0415 - only async nodes need a loop

        event = run_async(lambda: awaited(session, task))
    else:
        event = SyncDriver(network, session.machine, session.run, SimpleQueue()).attempt(task)
    if isinstance(event, TaskFailed):
        raise event.error
    writes = event.writes  # type: ignore[union-attr]  # nothing waits for answers where nothing is stored
    goto = list(dict.fromkeys(writes.goto))
    return NodeRun(list(writes.updates), goto, list(writes.sends), [part.payload for part in parts])


async def awaited(session: Session, task: Task) -> Event:
    """Run a task on the event loop at hand."""
    from pregel.drivers.aio import AsyncDriver  # noqa: PLC0415 - only async nodes need a loop
    from pregel.drivers.loops import current_loop  # noqa: PLC0415 - as above

    driver = AsyncDriver(session.network, session.machine, session.run, current_loop(), None)
    return await driver.attempt(task)


def values_of(graph: Pregel, state: Any, session: Session) -> dict[str, Any]:
    """Return the values of a run that stands where `state` says.

    Raises:
        InvalidInputError: It names a field that is not declared, or gives a value of the wrong type.
    """
    network = graph._network  # noqa: SLF001 - a test kit looks inside
    where = f"the state given to run_node for graph {network.name!r}"
    values = network.initial_values()
    ids = new_ids(session.run.new_id, "input")
    given = state if isinstance(state, Mapping) else network.updates_of(state)
    if given is None:
        raise InvalidInputError(f"{where} is {show(state)}: give a mapping of fields, or an instance of its schema")
    for name, value in given.items():
        field = network.fields.get(name)
        if field is None:
            known = ", ".join(sorted(network.fields))
            message = f"{where} sets {name!r}, which no schema of the graph declares.{nearest(name, network.fields)}"
            fault(network.allowed, "undeclared-input", InvalidInputError, f"{message} Declared: {known}")
        else:  # the whole value, and no update to be folded into another one
            values[name] = admit(field, Overwrite(value), network, where, InvalidInputError, ids).value
    return values
