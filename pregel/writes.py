"""How a node's result becomes writes: what is accepted, what is checked, and what is said when it is wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import Enum
from inspect import isasyncgen, isawaitable, isgenerator
from itertools import count
from typing import TYPE_CHECKING, Any

from pregel.channels.base import MISSING, Overwrite
from pregel.errors import (
    InvalidUpdateError,
    InvalidUpdateTypeError,
    PregelError,
    PregelWarning,
    UnknownTargetError,
    nearest,
)
from pregel.task import Writes
from pregel.text import show
from pregel.types import END, START, Command, Send

if TYPE_CHECKING:
    from pregel.network import Network
    from pregel.node import Field, Node
    from pregel.runtime import Run
    from pregel.task import Task

__all__ = ["admit", "destinations", "fault", "interpret", "prepared", "storable"]

# The interpreter shares objects of these types: being the same object says nothing about where they come from.
SHARED_BY_INTERPRETER = (int, float, complex, str, bytes, tuple, frozenset, type(None), Enum)

PAIR = 2


def fault(allowed: frozenset[str], code: str, kind: type[PregelError], message: str) -> None:
    """Report a broken strictness check: raise, or warn where the graph allows it.

    Raises:
        PregelError: Of type `kind`, unless `code` is allowed.
    """
    if code not in allowed:
        raise kind(f"{message} [{code}]")
    warnings.warn(f"{message} [{code}]", PregelWarning, stacklevel=2)


def admit(
    field: Field,
    value: Any,
    network: Network,
    where: str,
    kind: type[InvalidUpdateError | PregelError],
    ids: Callable[[], str],
) -> Any:
    """Return the update of a field that is to be stored: checked, and prepared if its reducer does so.

    Raises:
        PregelError: Of type `kind`: the update has the wrong type.
    """
    return prepared(field, checked(field, value, network, where, kind), where, kind, ids)


def checked(
    field: Field, value: Any, network: Network, where: str, kind: type[InvalidUpdateError | PregelError]
) -> Any:
    """Return an update if its type is right, as its schema converts it.

    Raises:
        PregelError: Of type `kind`: the update has the wrong type.
    """
    inner, check, expected = value, field.check, field.expected
    if value is MISSING:
        raise kind(f"{where}: the field {field.name!r} was given MISSING, the absence of a value: leave it out")
    if type(value) is Overwrite:
        inner = value.value
        if field.check_whole is not None:
            check, expected = field.check_whole, field.expected_whole
    if check is not None:
        try:
            inner = check(inner)
        except TypeError as error:
            fault(
                network.allowed,
                "wrong-type",
                kind,
                f"{where}: the field {field.name!r} takes {expected} and was given {show(inner)}: {error}",
            )
    return Overwrite(inner) if type(value) is Overwrite else inner


def prepared(
    field: Field,
    value: Any,
    where: str,
    kind: type[InvalidUpdateError | PregelError],
    ids: Callable[[], str],
) -> Any:
    """Return an update as its field's reducer prepares it, if it does.

    Raises:
        PregelError: Of type `kind`: the reducer does not accept it.
    """
    if field.prepare is None:
        return value
    inner = value.value if type(value) is Overwrite else value
    try:
        inner = field.prepare(inner, ids)
    except InvalidUpdateError as error:
        raise kind(f"{where}: the field {field.name!r} does not accept {show(inner)}: {error}") from error
    return Overwrite(inner) if type(value) is Overwrite else inner


def new_ids(new_id: Callable[[str, int], str], task_id: str) -> Callable[[], str]:
    """Return a function that gives one id after the other for what a task makes."""
    numbers = count()
    return lambda: new_id(task_id, next(numbers))


def interpret(result: Any, network: Network, task: Task, given: Any, run: Run) -> Writes:
    """Return what a node's result asks for, with the targets of its static edges.

    Args:
        result: What the node returned.
        network: The graph.
        task: The task.
        given: What the node was given, to recognise a value that it only gives back.
        run: What all tasks of the run share.

    Raises:
        InvalidUpdateError: The result is no update of this graph; names node, field and remedy.
        UnknownTargetError: `goto` or a `Send` names no node.
    """
    node = task.node
    where = f"node {node.name!r} of graph {network.name!r}"
    ids = new_ids(run.new_id, task.id)
    updates: list[tuple[str, Any]] = []
    goto: list[str] = list(node.targets)
    sends: list[Send] = []
    escapes: list[Command[Any]] = []
    for item in parts(result, network, node, where):
        pairs: Iterable[tuple[Any, Any]] = item
        if isinstance(item, Command):
            if item.graph == Command.PARENT and run.is_node:
                escapes.append(replace(item, graph=None))
                continue
            pairs = command_updates(item, network, where)
            destinations(item.goto, network, f"Command(goto=...) of {where}", node.destinations, goto, sends)
        for name, value in pairs:
            field = network.fields.get(name) if isinstance(name, str) else None
            if isinstance(name, str) and name in network.managed:
                raise InvalidUpdateError(f"{where} updates {name!r}, which the engine computes: leave it out")
            if field is None:
                fault(
                    network.allowed,
                    "undeclared-key",
                    InvalidUpdateError,
                    f"{where} updates {name!r}, which no schema of the graph declares."
                    f"{nearest(name, network.fields)} Declared: {', '.join(sorted(network.fields))}",
                )
                continue
            if field.folds and gives_back(value, given, name):
                fault(
                    network.allowed,
                    "same-object",
                    InvalidUpdateError,
                    f"{where} returns the field {name!r} as the very object it was given. Its channel would add the "
                    "value to itself: return only what is new, or Overwrite(value) to replace it",
                )
            updates.append((name, admit(field, value, network, where, InvalidUpdateError, ids)))
    return Writes(tuple(updates), tuple(goto), tuple(sends), tuple(escapes))


def storable(result: Any, network: Network, node: Node) -> list[Command[Any]] | None:
    """Return a node's result as commands that make the same when they are given in its place, and hold nothing else.

    Args:
        result: What the node returned; `interpret` has found it right.
        network: The graph.
        node: The node.

    Returns:
        None where a command is for the graph around this one.
    """
    where = f"node {node.name!r} of graph {network.name!r}"
    commands: list[Command[Any]] = []
    for item in parts(result, network, node, where):
        if not isinstance(item, Command):
            commands.append(Command(update=list(item)))
        elif item.graph is not None:
            return None
        else:
            commands.append(Command(update=list(command_updates(item, network, where)), goto=item.goto))
    return commands


def gives_back(value: Any, given: Any, name: str) -> bool:
    """Return whether an update is the object that the node found in the state."""
    if isinstance(value, SHARED_BY_INTERPRETER):
        return False
    found = given.get(name, MISSING) if isinstance(given, dict) else getattr(given, name, MISSING)
    return found is value


def parts(result: Any, network: Network, node: Node, where: str) -> list[Any]:
    """Return a result as a list of commands and of (field, update) sequences.

    Raises:
        InvalidUpdateTypeError: It is none of what a node may return.
    """
    if result is None:
        if not node.may_return_none:
            fault(
                network.allowed,
                "none-return",
                InvalidUpdateTypeError,
                f"{where} returned None: return {{}} to change nothing, or annotate it with `-> None`",
            )
        return []
    items = result if isinstance(result, (list, tuple)) and result else [result]
    return [part(item, result, network, where) for item in items]


def part(item: Any, result: Any, network: Network, where: str) -> Any:
    """Return one item of a result: a command, or its (field, update) pairs."""
    if isinstance(item, Command):
        return item
    if isinstance(item, Mapping):
        return item.items()
    pairs = network.updates_of(item)
    if pairs is not None:
        return pairs.items()
    raise InvalidUpdateTypeError(
        f"{where} returned {show(result)}. A node returns a mapping of updates, a Command, a list of these, or an "
        f"instance of the graph's schema; {hint(item)}"
    )


def hint(item: object) -> str:
    """Return what probably went wrong with a result that is no update."""
    if isawaitable(item) or isasyncgen(item):
        if hasattr(item, "close"):
            item.close()  # never awaited: say so in our words instead of the interpreter's warning
        return "this is a coroutine: declare the node with `async def`, so that it is awaited"
    if isgenerator(item):
        return "this is a generator: a node returns its updates and streams parts through its `writer`"
    if isinstance(item, Send):
        return "to start a node, return Command(goto=Send(...)) or send from a conditional edge"
    return "return {} to change nothing"


def command_updates(command: Command[Any], network: Network, where: str) -> Iterable[tuple[Any, Any]]:
    """Return the (field, update) pairs of a command.

    Raises:
        InvalidUpdateError: It is meant for another graph, or answers a pause.
        InvalidUpdateTypeError: Its `update` is neither a mapping nor a list of pairs.
    """
    if command.graph is not None:
        raise InvalidUpdateError(
            f"{where} returned a Command for the graph {command.graph!r}. A command is for this graph (leave `graph` "
            "out) or, where this graph is a node of another one, for that (Command.PARENT)"
        )
    if command.resume is not MISSING:
        raise InvalidUpdateError(
            f"{where} returned a Command with `resume`: answers to a paused run are the input of invoke, not a result"
        )
    update = command.update
    if update is None:
        return ()
    if isinstance(update, Mapping):
        return update.items()
    if isinstance(update, (list, tuple)) and all(isinstance(pair, tuple) and len(pair) == PAIR for pair in update):
        return update
    instance = network.updates_of(update)
    if instance is not None:
        return instance.items()
    raise InvalidUpdateTypeError(
        f"{where} returned Command(update={show(update)}): `update` is a mapping, a list of (field, update) "
        "pairs, or an instance of the graph's schema"
    )


def destinations(
    choice: Any,
    network: Network,
    where: str,
    declared: tuple[str, ...] | None,
    goto: list[str],
    sends: list[Send],
) -> None:
    """Sort the targets that a command or a path named into nodes to run and packets to send.

    Args:
        choice: What was named.
        network: The graph.
        where: How messages name the place.
        declared: The targets that may be named; None for any.
        goto: Takes the nodes.
        sends: Takes the packets.

    Raises:
        UnknownTargetError: One of them is no node, or nothing at all; or it is not declared, in a graph that must know
            what can still come.
    """
    for target in choice if isinstance(choice, (list, tuple)) else (choice,):
        name: Any = target.node if isinstance(target, Send) else target
        if not isinstance(name, str) or name not in network.nodes:
            if name != END or isinstance(target, Send):
                raise UnknownTargetError(f"{where} leads to {target_fault(name, target, network)}")
            continue
        if isinstance(target, Send) and target.arg is MISSING:
            raise InvalidUpdateError(f"{where} sends MISSING, the absence of a value, to {name!r}: send None")
        if network.live and declared is not None and name not in declared:
            raise UnknownTargetError(
                f"{where} leads to {name!r}, which it does not declare ({', '.join(declared) or 'it has none'}). "
                f"The graph has a live {network.live}, which must know what can still come: declare the target "
                "(destinations=[...], `-> Command[Literal[...]]`, or a path_map)"
            )
        if isinstance(target, Send):
            sends.append(target)
        else:
            goto.append(name)


def target_fault(name: Any, target: Any, network: Network) -> str:
    """Return what is wrong with a target, and what there is instead."""
    if isinstance(target, Send) and not isinstance(name, str):
        return f"{show(name)} by a Send: name a node"
    if name is None:
        return "None: return END to stop here"
    if name == START:
        return "START, which runs nothing: name a node"
    if isinstance(target, Send) and name == END:
        return "END by a Send, which would run nothing: leave it out"
    if not isinstance(name, str):
        return f"{show(target)}: a target is the name of a node, a Send, END, or a list of these"
    return f"{name!r}, which is no node.{nearest(name, network.nodes)} Nodes: {', '.join(network.nodes)}"
