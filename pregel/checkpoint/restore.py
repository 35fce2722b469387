"""What is stored of one graph at one checkpoint, read back: its record, its values, and how its open tasks ended."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import msgpack  # type: ignore[import-untyped]  # it has no types

from pregel.channels.base import MISSING
from pregel.checkpoint.patch import APPEND, KEYS, Patch, apply
from pregel.checkpoint.record import unpack_record
from pregel.codec import unseal
from pregel.errors import DecodeError, EncodeError
from pregel.text import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pregel.checkpoint.base import Checkpointer, CheckpointRow, Lineage, Namespace, TaskRow, ValueRow
    from pregel.checkpoint.record import Record
    from pregel.codec import Codec

#: What is compared part by part: see `pregel.checkpoint.patch`.
COPIED: Final = frozenset({list, dict})
#: Bytes of a head, the length of which is one.
LONGEST_HEAD: Final = 255
#: Bytes that could be read in the time that a row takes.
ROW: Final = 32

__all__ = [
    "Sizes",
    "pack_inherited",
    "pack_patch",
    "pack_value",
    "patch_of",
    "read_field",
    "read_journal",
    "read_record",
    "read_values",
    "unsealed",
    "unsealed_record",
]


@dataclass(slots=True)
class Sizes:
    """What is stored of a field, as far as its next row depends on it."""

    #: How many bytes its value takes, about, and what reading it costs beyond: bytes that patches made obsolete, and
    #: the rows. So a value that grows item by item is not stored whole again, and one that changes is.
    value: int = 0
    waste: int = 0
    #: How many items it has, where it is a list.
    length: int = 0
    #: A copy of the list or dict, the parts of which are those of the live value: nodes may change that one in place.
    #: None for any other value, and for a log, of which only the length is needed.
    copy: Any = None

    def holding(self, stored: Any, live: Any, *, log: bool) -> Sizes:
        """Take what a whole value is, as it is stored and as nodes have it; return the same object."""
        self.length = len(stored) if type(stored) is list else 0
        self.copy = live.copy() if type(live) in COPIED and not log else None
        return self

    def follow(self, patch: Patch, size: int, live: Any) -> None:
        """Take what a patch of so many bytes has changed."""
        if self.copy is None:
            self.weigh(patch, size, grew=0)
            self.length += len(patch.news)
        else:
            self.weigh(patch, size, grew=len(live) - len(self.copy))
            self.length = len(live)
            self.copy = live.copy()

    def weigh(self, patch: Patch, size: int, *, grew: int) -> None:
        """Count the bytes of a patch, after which the value has so many items more."""
        self.waste += ROW
        if patch.kind == APPEND or (patch.kind == KEYS and grew == len(patch.news[0])):
            self.value += size
        else:
            self.waste += size


@cache
def head_of(kind: str) -> bytes:
    """Return what the bytes of a whole value begin with: the kind of channel that it is of."""
    return headed(kind)


def headed(head: Any) -> bytes:
    """Return a head as bytes, with its length before it, so that nobody has to look for its end.

    Raises:
        EncodeError: It is too long: the name of a channel's class is.
    """
    packed: bytes = msgpack.packb(head)
    if len(packed) > LONGEST_HEAD:
        raise EncodeError(f"{shortened(head)} is too long a name for the class of a channel")
    return bytes((len(packed),)) + packed


def pack_value(value: Any, kind: str, name: str, codec: Codec) -> bytes:
    """Return a whole value as bytes; `MISSING` is the absence of one.

    Raises:
        EncodeError: It can't be stored; names the path.
    """
    head = head_of(kind)
    return head if value is MISSING else head + codec.encode(value, name)


def pack_inherited(kind: str) -> bytes:
    """Return what stands for the value that the graph around has at the same time."""
    return headed([kind])


def pack_patch(patch: Patch, name: str, codec: Codec) -> bytes:
    """Return a patch as bytes.

    Raises:
        EncodeError: What is new in it can't be stored; names the path.
    """
    path = f"{name}[{patch.numbers[0]}:]" if patch.kind == APPEND else name
    return headed([patch.kind, *patch.numbers]) + codec.encode(patch.news, path)


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
    try:
        end = payload[0] + 1
        return msgpack.unpackb(payload[1:end]), payload[end:]
    except Exception as error:
        raise DecodeError(f"a stored value has no head: {error}") from error


def read_record(row: CheckpointRow, origin: str, codec: Codec) -> Record:
    """Return the record of a checkpoint.

    Raises:
        DecodeError: The row is damaged, or not where it was written.
    """
    return unpack_record(unsealed_record(row, origin), codec)


def unsealed_record(row: CheckpointRow, origin: str) -> bytes:
    """Return the payload of a checkpoint.

    Raises:
        DecodeError: The row is damaged, or not where it was written.
    """
    return unseal(row.blob, origin, row.branch, row.namespace, row.step)


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
    reader = Reader(saver, thread_id, lineage, codec)
    for name, rows in reader.rows(lineage, namespace).items():
        value, kinds[name], sizes[name] = reader.folded(rows)
        if value is not MISSING:
            values[name] = value
    return values, kinds, sizes


def read_field(
    saver: Checkpointer, thread_id: str, lineage: Lineage, namespace: Namespace, name: str, codec: Codec
) -> Any:
    """Return the value of one field that a lineage sees.

    Raises:
        DecodeError: A row is damaged, missing, or not where it was written.
    """
    reader = Reader(saver, thread_id, lineage, codec)
    return reader.folded(reader.rows(lineage, namespace)[name])[0]


class Reader:
    """Puts values together from rows, and looks up what a graph took over from the one around it.

    Args:
        saver: The checkpointer.
        thread_id: The thread.
        lineage: What is seen of it.
        codec: Decodes values.
    """

    def __init__(self, saver: Checkpointer, thread_id: str, lineage: Lineage, codec: Codec) -> None:
        self.saver = saver
        self.thread_id = thread_id
        self.lineage = lineage
        self.codec = codec
        self.origin = saver.origin(thread_id)
        #: What was read of graphs around, by where it was read.
        self.around: dict[tuple[int, int, Namespace], dict[str, list[ValueRow]]] = {}

    def rows(self, lineage: Lineage, namespace: Namespace) -> dict[str, list[ValueRow]]:
        """Return the rows that a lineage sees, by field."""
        found = groupby(self.saver.values(self.thread_id, lineage, namespace), attrgetter("field"))
        return {name: list(rows) for name, rows in found}

    def folded(self, rows: Sequence[ValueRow]) -> tuple[Any, str, Sizes]:
        """Return the value that the rows of one field make: a whole one, and patches.

        Raises:
            DecodeError: A row is damaged, missing, or not where it was written.
        """
        first, *rest = rows
        if not first.whole:
            raise DecodeError(
                f"the field {first.field!r} has patches in superstep {first.step}, and nothing before them"
            )
        value, kind, sizes = self.whole(first)
        grown: list[Any] | None = None
        for row in rest:
            patch = patch_of(self.opened(row), self.codec)
            before = len(value) if type(value) in COPIED else 0
            if patch.kind == APPEND and type(value) is list and patch.numbers == (len(value),):
                if grown is None:
                    grown = value = list(value)  # grows in place from here: a log is read in linear time
                grown.extend(patch.news)
            else:
                value, grown = apply(value, patch), None
            sizes.weigh(patch, len(row.blob), grew=len(value) - before)
        return value, kind, sizes.holding(value, value, log=False)

    def opened(self, row: ValueRow) -> bytes:
        """Return the payload of a row."""
        return unseal(row.blob, self.origin, row.branch, row.namespace, row.step, row.field)

    def whole(self, row: ValueRow) -> tuple[Any, str, Sizes]:
        """Return the value of a whole row, the kind of its channel, and how much of it is stored.

        Raises:
            DecodeError: The row is damaged, or the graph around does not have what was taken from it.
        """
        head, body = split(self.opened(row))
        if not isinstance(head, list):
            return self.codec.decode(body) if body else MISSING, head, Sizes(len(row.blob))
        if len(head) != 1 or not row.namespace:
            raise DecodeError(f"a stored value of the field {row.field!r} begins with {head!r}")
        rows = self.rows_around(row).get(row.field)
        if rows is None:
            raise DecodeError(
                f"the graph {'/'.join(row.namespace)!r} has taken the field {row.field!r} from the graph around it, "
                "and nothing of it is stored there"
            )
        value, _, sizes = self.folded(rows)
        return value, head[0], sizes

    def rows_around(self, row: ValueRow) -> dict[str, list[ValueRow]]:
        """Return the rows of the graph around a row's graph, as they were when the row was written."""
        namespace, bound = row.namespace[:-1], row.seq - 1
        place = (row.branch, bound, namespace)
        if place not in self.around:
            lineage = list(self.lineage)
            while lineage[0][0] != row.branch:
                lineage.pop(0)
            seen = [(branch, min(limit, bound)) for branch, limit in lineage]
            self.around[place] = self.rows(seen, namespace)
        return self.around[place]


def unsealed(row: TaskRow, origin: str) -> bytes:
    """Return the payload of a task's row.

    Raises:
        DecodeError: The row is damaged, or not where it was written.
    """
    return unseal(row.blob, origin, row.branch, row.namespace, row.step, row.task)


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
    sealed_as = saver.origin(thread_id)
    for step in range(origin, row.step + 1):
        found = row if step == row.step else saver.checkpoint(thread_id, row.branch, row.namespace, step)
        if found is not None:  # a run that stores its end only has none in between
            record = read_record(found, sealed_as, codec)
            updates.extend(record.journal)
            escapes = record.escapes
    return updates, escapes
