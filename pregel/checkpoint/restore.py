"""What is stored of one graph at one checkpoint, read back: its record, its values, and how its open tasks ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import msgpack

from pregel.channels.base import MISSING
from pregel.checkpoint.patch import APPEND, Patch, apply
from pregel.checkpoint.record import Record, unpack_record
from pregel.codec import seal, unseal
from pregel.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pregel.checkpoint.base import Checkpointer, CheckpointRow, Lineage, Namespace, TaskRow, ValueRow
    from pregel.codec import Codec

#: What is compared part by part: see `pregel.checkpoint.patch`.
COPIED: Final = frozenset({list, dict})

__all__ = [
    "Sizes",
    "Stored",
    "folded",
    "pack_patch",
    "pack_value",
    "patch_of",
    "read_journal",
    "read_record",
    "read_values",
    "sealed",
    "unsealed",
]


@dataclass(slots=True)
class Sizes:
    """What is stored of a field, as far as its next row depends on it."""

    #: Bytes of its last whole value, and of the patches since.
    whole: int = 0
    patches: int = 0
    #: How many items it has, where it is a list.
    length: int = 0
    #: A copy of the list or dict, the parts of which are those of the live value: nodes may change that one in place.
    #: None for any other value, and for a log, of which only the length is needed.
    copy: Any = None

    def note(self, value: Any, *, log: bool) -> None:
        """Take what is stored now."""
        if type(value) is list:
            self.length = len(value)
        self.copy = value.copy() if type(value) in COPIED and not log else None


@dataclass(frozen=True, slots=True)
class Stored:
    """One graph at one checkpoint."""

    row: CheckpointRow
    record: Record
    #: The fields that hold a value.
    values: dict[str, Any]
    #: The kind of channel that wrote each field that has a row.
    kinds: dict[str, str]
    sizes: dict[str, Sizes] = field(default_factory=dict)


def sealed(payload: bytes, row: tuple[Any, ...]) -> bytes:
    """Return bytes with what proves that they are whole and stand in this row: (branch, namespace, step, name)."""
    return seal(payload, *row)


def pack_value(value: Any, kind: str, name: str, codec: Codec) -> bytes:
    """Return a whole value as bytes; `MISSING` is the absence of one.

    Raises:
        EncodeError: It can't be stored; names the path.
    """
    head = msgpack.packb(kind)
    return head if value is MISSING else head + codec.encode(value, name)  # type: ignore[no-any-return]


def pack_patch(patch: Patch, name: str, codec: Codec) -> bytes:
    """Return a patch as bytes.

    Raises:
        EncodeError: What is new in it can't be stored; names the path.
    """
    path = f"{name}[{patch.numbers[0]}:]" if patch.kind == APPEND else name
    head = msgpack.packb([patch.kind, *patch.numbers])
    return head + codec.encode(patch.news, path)  # type: ignore[no-any-return]


def patch_of(payload: bytes, codec: Codec) -> Patch:
    """Return the patch that bytes hold.

    Raises:
        DecodeError: They hold none.
    """
    head, body = split(payload)
    if not isinstance(head, list) or not head:
        raise DecodeError(f"a stored patch begins with {head!r}")
    return Patch(head[0], tuple(head[1:]), codec.decode(body))


def split(payload: bytes) -> tuple[Any, bytes]:
    """Return the head of a payload, and the rest: the bytes of a user's value.

    Raises:
        DecodeError: There is no head.
    """
    unpacker = msgpack.Unpacker(max_buffer_size=len(payload) + 1)
    unpacker.feed(payload)
    try:
        head = unpacker.unpack()
    except Exception as error:
        raise DecodeError(f"a stored value has no head: {error}") from error
    return head, payload[unpacker.tell() :]


def read_record(row: CheckpointRow, codec: Codec) -> Record:
    """Return the record of a checkpoint.

    Raises:
        DecodeError: The row is damaged, or not where it was written.
    """
    return unpack_record(unseal(row.blob, row.branch, row.namespace, row.step), codec)


def read_values(
    saver: Checkpointer, thread_id: str, lineage: Lineage, namespace: Namespace, codec: Codec
) -> tuple[dict[str, Any], dict[str, str], dict[str, Sizes]]:
    """Return the values that a lineage sees, the kinds of their channels, and what is stored of each.

    Raises:
        DecodeError: A row is damaged, missing, or not where it was written.
    """
    values: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    sizes: dict[str, Sizes] = {}
    for name, rows in groupby(saver.values(thread_id, lineage, namespace), attrgetter("field")):
        value, kinds[name], sizes[name] = folded(list(rows), codec)
        if value is not MISSING:
            values[name] = value
    return values, kinds, sizes


def folded(rows: Sequence[ValueRow], codec: Codec) -> tuple[Any, str, Sizes]:
    """Return the value that the rows of one field make: a whole one, and patches.

    Raises:
        DecodeError: A row is damaged, missing, or not where it was written.
    """
    first, *rest = rows
    if not first.whole:
        raise DecodeError(f"the field {first.field!r} has patches in superstep {first.step} and nothing before them")
    kind, body = split(opened(first))
    value = codec.decode(body) if body else MISSING
    patches = 0
    grown: list[Any] | None = None
    for row in rest:
        patch = patch_of(opened(row), codec)
        patches += len(row.blob)
        if patch.kind == APPEND and type(value) is list and patch.numbers == (len(value),):
            if grown is None:
                grown = value = list(value)  # grows in place from here: a log is read in linear time
            grown.extend(patch.news)
        else:
            value, grown = apply(value, patch), None
    return value, kind, Sizes(len(first.blob), patches)


def opened(row: ValueRow) -> bytes:
    """Return the payload of a row."""
    return unseal(row.blob, row.branch, row.namespace, row.step, row.field)


def unsealed(row: TaskRow) -> bytes:
    """Return the payload of a task's row.

    Raises:
        DecodeError: The row is damaged, or not where it was written.
    """
    return unseal(row.blob, row.branch, row.namespace, row.step, row.task)


def read_journal(
    saver: Checkpointer, thread_id: str, row: CheckpointRow, origin: int, codec: Codec
) -> tuple[list[tuple[str, Any]], tuple[Any, ...]]:
    """Return what a run of a graph inside another one has made for that one so far: its updates, and its commands.

    Args:
        saver: The checkpointer.
        thread_id: The thread.
        row: The newest checkpoint of the run.
        origin: The step of its input.
        codec: Decodes values.
    """
    updates: list[tuple[str, Any]] = []
    escapes: tuple[Any, ...] = ()
    for step in range(origin, row.step + 1):
        found = row if step == row.step else saver.checkpoint(thread_id, row.branch, row.namespace, step)
        if found is not None:  # a run that stores its end only has none in between
            record = read_record(found, codec)
            updates.extend(record.journal)
            escapes = record.escapes
    return updates, escapes
