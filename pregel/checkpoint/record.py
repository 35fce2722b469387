"""What is stored of a barrier and of a task beside values, as bytes and back.

The frame of a record is ours: names, numbers and the bytes of users' values, each encoded by the codec for itself. So
an `Overwrite`, a `Send` or a `Command` is stored as a place in the frame and comes back as one, and no value that a
user stores can turn into one, whatever it looks like.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgpack  # type: ignore[import-untyped]  # it has no types

from pregel.channels.base import MISSING, Overwrite
from pregel.channels.keyed import DELETE
from pregel.errors import DecodeError
from pregel.plan import Due
from pregel.task import Handled, Writes
from pregel.types import Breakpoint, Command, Interrupt, Send

if TYPE_CHECKING:
    from pregel.codec import Codec
    from pregel.commands import CommitBarrier, Outcome
    from pregel.task import Task

__all__ = ["DueTask", "Record", "TaskRecord", "forked", "pack_barrier", "pack_task", "unpack_record", "unpack_task"]

SOURCES: Final = ("loop", "input", "update", "fork")
#: The places of a record's frame. They are stored: new ones are added at the end.
(
    SOURCE,
    PARENT,
    ORIGIN,
    TASKS,
    HELD_NODES,
    HELD_SENDS,
    HEARD,
    KEPT,
    PAUSE,
    FINGERPRINT,
    METADATA,
    DROPPED,
    JOURNAL,
    ESCAPES,
    OWNER,
) = range(15)
PLAIN, OVERWRITE, KEYS, WHOLE = range(4)
DONE, FAILED, PAUSED, HANDLED = range(4)


@dataclass(frozen=True, slots=True)
class DueTask:
    """A task that is due, by the name of its node."""

    node: str
    arg: Any = MISSING
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A barrier that was committed, beside its values."""

    source: str = "loop"
    #: The branch and the step of the checkpoint before; None for the first one.
    parent: tuple[int, int] | None = None
    #: The step of the input that the run began with.
    origin: int = 0
    tasks: tuple[DueTask, ...] = ()
    held: Due = field(default_factory=Due)
    #: What joins have heard, by the joins' names.
    heard: Mapping[str, frozenset[str]] = field(default_factory=dict)
    kept: Mapping[str, Any] = field(default_factory=dict)
    pause: Breakpoint | None = None
    fingerprint: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    #: For a graph inside another one: the updates that this superstep made for it, its commands to it, and the task
    #: that it is run by.
    journal: tuple[tuple[str, Any], ...] = ()
    escapes: tuple[Command[Any], ...] = ()
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """How a task ended whose superstep is open."""

    #: What it asked for, or why it is paused; for one that failed the error as text.
    outcome: Writes | tuple[Interrupt | Breakpoint, ...] | str
    #: The answers that it has got so far, by `Interrupt.id`.
    answers: Mapping[str, Any] = field(default_factory=dict)


def pack_barrier(  # noqa: C901, PLR0912 - a branch for each thing that may be there, and is not as a rule
    command: CommitBarrier,
    parent: tuple[int, int] | None,
    origin: int,
    *,
    fingerprint: bytes,
    metadata: bytes | None,
    owner: str | None,
    codec: Codec,
) -> bytes:
    """Return a barrier beside its values as bytes, those of a `Record`; what is as usual takes no room.

    Args:
        command: The barrier.
        parent: The branch and the step of the checkpoint before.
        origin: The step of the input that the run began with.
        fingerprint: Of the graph.
        metadata: What the run's config has as metadata, encoded.
        owner: The task that runs the graph, if one does.
        codec: Encodes values.

    Raises:
        EncodeError: A value in it can't be stored; names the path.
    """
    standing = command.standing
    frame: dict[int, Any] = {FINGERPRINT: fingerprint}
    if command.source != "loop":
        frame[SOURCE] = SOURCES.index(command.source)
    if parent is not None:
        frame[PARENT] = parent
    if origin:
        frame[ORIGIN] = origin
    if standing.tasks:
        frame[TASKS] = [
            task.node.name if task.arg is MISSING and task.key is None else due(task, codec) for task in standing.tasks
        ]
    if standing.held:
        frame[HELD_NODES] = list(standing.held.nodes)
        frame[HELD_SENDS] = [send(each, codec) for each in standing.held.sends]
    if standing.heard:
        frame[HEARD] = {join.name: sorted(names) for join, names in standing.heard.items()}
    if standing.kept:
        frame[KEPT] = {name: codec.encode(value, name) for name, value in standing.kept.items()}
    if standing.pause is not None:
        frame[PAUSE] = [standing.pause.when, list(standing.pause.nodes)]
    if metadata is not None:
        frame[METADATA] = metadata
    if command.dropped:
        frame[DROPPED] = command.dropped
    if command.journal:
        frame[JOURNAL] = [update(*pair, codec) for pair in command.journal]
    if command.escapes:
        frame[ESCAPES] = [command_part(each, codec) for each in command.escapes]
    if owner is not None:
        frame[OWNER] = owner
    return msgpack.packb(frame)  # type: ignore[no-any-return]  # msgpack has no types


def forked(data: bytes, branch: int, step: int) -> bytes:
    """Return the record of a checkpoint as the first one of a branch that begins there.

    Args:
        data: The record.
        branch: The branch that it is on.
        step: Its step.

    Raises:
        DecodeError: The bytes hold no record.
    """
    try:
        frame: dict[int, Any] = msgpack.unpackb(data, strict_map_key=False)
        frame[SOURCE] = SOURCES.index("fork")
        frame[PARENT] = (branch, step)
        return msgpack.packb(frame)  # type: ignore[no-any-return]  # msgpack has no types
    except Exception as error:
        raise DecodeError(f"a stored checkpoint is no record of this library: {error}") from error


def unpack_record(data: bytes, codec: Codec) -> Record:
    """Return the record that bytes hold.

    Raises:
        DecodeError: They hold none, or a value in them can't be decoded.
    """
    decode = codec.decode
    try:
        found: dict[int, Any] = msgpack.unpackb(data, strict_map_key=False)
        parent = found.get(PARENT)
        pause = found.get(PAUSE)
        return Record(
            source=SOURCES[found.get(SOURCE, 0)],
            parent=None if parent is None else (parent[0], parent[1]),
            origin=found.get(ORIGIN, 0),
            tasks=tuple(undue(each, codec) for each in found.get(TASKS, ())),
            held=Due(found.get(HELD_NODES, ()), [unsend(each, codec) for each in found.get(HELD_SENDS, ())]),
            heard={name: frozenset(names) for name, names in found.get(HEARD, {}).items()},
            kept={name: decode(value) for name, value in found.get(KEPT, {}).items()},
            pause=None if pause is None else Breakpoint(pause[0], tuple(pause[1])),
            fingerprint=found.get(FINGERPRINT, b"").hex(),
            metadata=decode(found[METADATA]) if METADATA in found else {},
            dropped=tuple(found.get(DROPPED, ())),
            journal=tuple(unupdate(each, codec) for each in found.get(JOURNAL, ())),
            escapes=tuple(uncommand(each, codec) for each in found.get(ESCAPES, ())),
            owner=found.get(OWNER),
        )
    except DecodeError:
        raise
    except Exception as error:
        raise DecodeError(f"a stored checkpoint is no record of this library: {error}") from error


def pack_task(outcome: Outcome, answers: Mapping[str, Any], codec: Codec) -> bytes:
    """Return how a task ended as bytes.

    Raises:
        EncodeError: A value in it can't be stored; names the path.
    """
    body: Any
    if isinstance(outcome, Writes):
        kind = HANDLED if type(outcome) is Handled else DONE
        body = [
            [update(*pair, codec) for pair in outcome.updates],
            list(outcome.goto),
            [send(each, codec) for each in outcome.sends],
            [command_part(each, codec) for each in outcome.escapes],
        ]
    elif isinstance(outcome, tuple):
        kind = PAUSED
        body = [reason(each, codec) for each in outcome]  # type: ignore[arg-type]  # a tuple that is no Writes
    else:
        kind = FAILED
        body = describe(outcome)
    kept = {name: codec.encode(value, f"the answer to {name}") for name, value in answers.items()}
    return msgpack.packb([kind, body, kept])  # type: ignore[no-any-return]  # msgpack has no types


def unpack_task(data: bytes, codec: Codec) -> TaskRecord:
    """Return how a task ended.

    Raises:
        DecodeError: The bytes do not say it.
    """
    try:
        kind, body, kept = msgpack.unpackb(data)
        outcome: Any = body
        if kind in {DONE, HANDLED}:
            updates, goto, sends, escapes = body
            outcome = (Handled if kind == HANDLED else Writes)(
                tuple(unupdate(each, codec) for each in updates),
                tuple(goto),
                tuple(unsend(each, codec) for each in sends),
                tuple(uncommand(each, codec) for each in escapes),
            )
        elif kind == PAUSED:
            outcome = tuple(unreason(each, codec) for each in body)
        return TaskRecord(outcome, {name: codec.decode(value) for name, value in kept.items()})
    except DecodeError:
        raise
    except Exception as error:
        raise DecodeError(f"a stored task is no record of this library: {error}") from error


def describe(error: BaseException) -> str:
    """Return an error as a text, those of a group with it; lone surrogates are shown as escapes."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - an error whose text raises must not hide that it happened
        text = type(error).__name__
    if isinstance(error, BaseExceptionGroup):
        text += f" [{'; '.join(map(describe, error.exceptions))}]"
    return text.encode("utf-8", "backslashreplace").decode()


def due(task: Task, codec: Codec) -> Any:
    """Return a due task that is more than its node's name as a part of a frame."""
    name = task.node.name
    arg = None if task.arg is MISSING else codec.encode(task.arg, f"Send({name!r}).arg")
    return [name, arg, task.key]


def undue(part: Any, codec: Codec) -> DueTask:
    """Return the due task that a part of a frame tells of."""
    if isinstance(part, str):
        return DueTask(part)
    node, arg, key = part
    return DueTask(node, MISSING if arg is None else codec.decode(arg), key)


def send(packet: Send, codec: Codec) -> Any:
    """Return a packet as a part of a frame."""
    return [packet.node, codec.encode(packet.arg, f"Send({packet.node!r}).arg")]


def unsend(part: Any, codec: Codec) -> Send:
    """Return the packet that a part of a frame tells of."""
    node, arg = part
    return Send(node, codec.decode(arg))


def update(name: str, value: Any, codec: Codec) -> Any:
    """Return an update as a part of a frame."""
    if type(value) is Overwrite:
        return [name, OVERWRITE, codec.encode(value.value, name)]
    if isinstance(value, Mapping) and any(new is DELETE or type(new) is Overwrite for new in value.values()):
        return [name, KEYS, [keyed(name, key, new, codec) for key, new in value.items()]]
    return [name, PLAIN, codec.encode(value, name)]


def keyed(name: str, key: Any, new: Any, codec: Codec) -> Any:
    """Return one key's update of a keyed field as a part of a frame."""
    inner = codec.encode(key, f"a key of {name}")
    if new is DELETE:
        return [inner, None, False]
    replaces = type(new) is Overwrite
    return [inner, codec.encode(new.value if replaces else new, f"{name}[{key!r}]"), replaces]


def unupdate(part: Any, codec: Codec) -> tuple[str, Any]:
    """Return the update that a part of a frame tells of."""
    name, kind, value = part
    if kind == OVERWRITE:
        return name, Overwrite(codec.decode(value))
    if kind == KEYS:
        return name, {
            codec.decode(key): DELETE
            if new is None
            else Overwrite(codec.decode(new))
            if replaces
            else codec.decode(new)
            for key, new, replaces in value
        }
    return name, codec.decode(value)


def command_part(given: Command[Any], codec: Codec) -> Any:
    """Return a command for the graph around as a part of a frame: what it updates, and where it goes."""
    pairs = given.update
    if isinstance(pairs, Mapping):
        pairs = list(pairs.items())
    if isinstance(pairs, (list, tuple)):
        updates: Any = [update(name, value, codec) for name, value in pairs]
    else:  # an instance of that graph's schema, or nothing
        updates = None if pairs is None else codec.encode(pairs, "Command.update")
    targets = given.goto if isinstance(given.goto, (list, tuple)) else [given.goto]
    return [updates, [send(each, codec) if isinstance(each, Send) else each for each in targets]]


def uncommand(part: Any, codec: Codec) -> Command[Any]:
    """Return the command that a part of a frame tells of."""
    updates, targets = part
    if isinstance(updates, list):
        updates = [unupdate(each, codec) for each in updates]
    elif updates is not None:
        updates = codec.decode(updates)
    return Command(update=updates, goto=[unsend(each, codec) if isinstance(each, list) else each for each in targets])


def reason(given: Interrupt | Breakpoint, codec: Codec) -> Any:
    """Return why a task is paused as a part of a frame."""
    if isinstance(given, Breakpoint):
        return [given.when, list(given.nodes)]
    schema = None if given.response_schema is None else codec.encode(dict(given.response_schema), "response_schema")
    return [given.id, codec.encode(given.value, f"the value of interrupt {given.id}"), schema]


def unreason(part: Any, codec: Codec) -> Interrupt | Breakpoint:
    """Return why a task is paused."""
    if len(part) == 2:  # noqa: PLR2004 - a breakpoint: when, and at which nodes
        return Breakpoint(part[0], tuple(part[1]))
    name, value, schema = part
    return Interrupt(codec.decode(value), name, None if schema is None else codec.decode(schema))
