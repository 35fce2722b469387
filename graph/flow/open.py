"""A context that is stored: its data, its trace and what is kept beside it, under a lease that one writer has.

Theory of operation. A stored context has a thread of its own, beside those of its graphs' runs. Each key of the data is
a field there, so that a write costs what it changes; logs are patched at their end. While a graph runs, its own thread
is ahead: before it begins, the context's thread is marked with the graph and with where that stands, and when it ends
takes back what came of it. If the process dies between, whoever opens the context finds the mark and takes it back.

Who has the context open holds the lease of its thread, and every write shows its token: a second writer is refused, in
the same process or another one, and one that was thought dead writes nothing any more.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Final

import msgpack  # type: ignore[import-untyped]  # it has no types

from pregel.channels.base import MISSING
from pregel.checkpoint.base import Advance, CheckpointRow, PutCheckpoint, PutValue, ValueRow
from pregel.checkpoint.claim import LATEST, Claim, lineage_of
from pregel.checkpoint.patch import APPEND, Patch, difference
from pregel.checkpoint.record import FINGERPRINT
from pregel.checkpoint.restore import pack_patch, pack_value, read_values
from pregel.clock import clock
from pregel.codec import seal
from pregel.errors import ConcurrentRunError
from pregel.graph.flow.errors import ContextBusyError, FlowRunError
from pregel.graph.flow.home import Home
from pregel.graph.flow.parts import DATA, TRACE
from pregel.graph.flow.storing import CODEC

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pregel.checkpoint.base import Checkpointer, Write
    from pregel.graph.flow.folding import Folded

__all__ = ["Ledger", "opened"]

#: The thread of a context, as if it were a graph of it; no graph can have that name.
THREAD: Final = "@context"
#: What the fields of the thread begin with: a key of the data, and something that is kept beside it.
KEY, BESIDE = "data/", "@"
#: The field of the mark.
RUN: Final = "@@run"
#: The field of the names of what each graph needs.
NEEDS: Final = "@@needs"
#: What the rows say as the kind of their channel.
KIND: Final = "FlowContext"
#: A log is stored whole again when it has grown to so many times what it was.
GROWTH: Final = 2
#: Says that a field is as it was.
NOTHING: Final = Patch(APPEND, (), [])


class Ledger:
    """The stored half of an open context.

    Args:
        claim: The hold on its thread.
        head: The last step that was stored; None for a context that is new.
    """

    def __init__(self, claim: Claim, head: int | None) -> None:
        self.claim = claim
        self.head = head
        #: What is stored, by field: the very objects, for values are replaced and never changed in place; of lists
        #: copies, for the trace is.
        self.stored: dict[str, Any] = {}
        #: How many items of each list were stored whole.
        self.whole: dict[str, int] = {}

    @property
    def is_open(self) -> bool:
        """Whether the context can be written."""
        return self.claim.held

    def close(self) -> None:
        """Let the context go; a second time it does nothing.

        Raises:
            Exception: The storage failed.
        """
        self.claim.close()

    def __del__(self) -> None:
        # Nothing is called here that might wait for a lock: a collection comes at any moment, on any thread.
        if self.claim.held:
            warnings.warn(
                f"context thread {self.claim.thread_id!r} was never closed, and stays taken until the process ends: "
                "`with FlowContext.open(...) as ctx`, or ctx.close()",
                ResourceWarning,
                stacklevel=2,
                source=self,
            )

    def known(self, fields: Mapping[str, Any]) -> None:
        """Take what is stored."""
        self.stored = {name: copied(value) for name, value in fields.items()}
        self.whole = {name: len(value) for name, value in fields.items() if type(value) is list}

    def save(self, home: Home, mark: Mapping[str, Any] | None = None) -> None:
        """Store what has changed, in one transaction.

        Args:
            home: The context.
            mark: What runs now; None for nothing.

        Raises:
            FlowRunError: The context was closed.
            ConcurrentRunError: Somebody else has opened it meanwhile; nothing was stored.
            EncodeError: A value can't be stored.
        """
        if not self.is_open:
            raise FlowRunError(f"context {home.id!r} was closed, and takes no writes: FlowContext.open(...) again")
        fields = fields_of(home, mark)
        gone = [name for name in self.stored if name not in fields]
        patches = {name: patch for name, value in fields.items() if (patch := self.patch(name, value)) is not NOTHING}
        if not gone and not patches:
            return
        claim, step, seq = self.claim, 0 if self.head is None else self.head + 1, next(self.claim.seqs)
        blob = seal(msgpack.packb({FINGERPRINT: b""}), claim.origin, 0, (), step)
        writes: list[Write] = [
            Advance(0, (), self.head, step, seq),
            PutCheckpoint(CheckpointRow(0, (), step, seq, clock().time(), blob)),
        ]
        for name in (*gone, *patches):
            patch = patches.get(name)
            if patch is None:
                payload = pack_value(fields.get(name, MISSING), KIND, name, CODEC)
            else:
                payload = pack_patch(patch, name, CODEC)
            writes.append(self.row(name, step, seq, payload, whole=patch is None))
        try:
            claim.write(writes)
        except ConcurrentRunError as error:
            raise ContextBusyError(
                f"context {home.id!r} was opened by somebody else meanwhile, for this process did not renew its lease; "
                f"nothing was stored. {error}"
            ) from error
        self.head, self.stored = step, {name: copied(value) for name, value in fields.items()}
        for name, patch in patches.items():
            if patch is None and type(fields[name]) is list:
                self.whole[name] = len(fields[name])

    def begin(self, home: Home, graph: str, folded: Iterable[Folded], kept: Iterable[str]) -> None:
        """Mark that a run of a graph begins: where it stands, and which of its fields come back.

        Raises:
            Exception: See `save`.
        """
        seq = home.storage().last_seq(home.thread(graph))
        fields = [[each.key, each.field, each.neutral is None] for each in folded]
        self.save(home, {"graph": graph, "seq": seq, "folded": fields, "kept": list(kept)})

    def patch(self, name: str, value: Any) -> Patch | None:
        """Return how a field has changed: `NOTHING` if it has not, None where it is stored whole."""
        old = self.stored.get(name, MISSING)
        if old is value:
            return NOTHING
        if type(old) is list and type(value) is list and name.startswith(BESIDE):
            patch = difference(old, value)
            if patch is not None and patch.kind == APPEND and not patch.news:
                return NOTHING
            if len(value) <= GROWTH * self.whole.get(name, 0):
                return patch
        return None

    def row(self, name: str, step: int, seq: int, payload: bytes, *, whole: bool) -> Write:
        """Return what writes a field."""
        blob = seal(payload, self.claim.origin, 0, (), step, name)
        return PutValue(ValueRow(0, (), name, step, seq, whole, blob))


def copied(value: Any) -> Any:
    """Return a value as it is remembered."""
    return value.copy() if type(value) is list else value


def fields_of(home: Home, mark: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what is stored of a context, field by field."""
    fields = {KEY + key: value for key, value in home.values.items()}
    fields |= home.private
    fields[TRACE] = home.trace
    if home.needs:
        fields[NEEDS] = home.needs
    if mark is not None:
        fields[RUN] = mark
    return fields


def opened(id: str, saver: Checkpointer) -> Home:  # noqa: A002 - the public name
    """Return what belongs to a stored context, which is held from now on.

    Args:
        id: The context's id; nothing need be stored under it.
        saver: Where it is stored.

    Raises:
        ContextBusyError: Somebody has it open.
        DecodeError: What is stored is damaged, or of a type that is not registered.
    """
    home = Home(id, saver)
    claim = Claim(saver, home.thread(THREAD), "sync")
    holder = claim.attempt()
    if holder is not None:
        raise ContextBusyError(
            f"context {id!r} is open already (process {holder.pid} on {holder.host}), and it takes one writer: "
            "ctx.close() there, or share that very context"
        )
    try:
        home.ledger = ledger = Ledger(claim, saver.head(claim.thread_id, 0, ()))
        if ledger.head is not None:
            fields, _, _ = read_values(saver, claim.thread_id, claim.lineage, (), CODEC)
            mark = fields.pop(RUN, None)
            read(home, fields)
            ledger.known(fields if mark is None else {**fields, RUN: mark})
            if mark is not None:
                recover(home, mark)
                ledger.save(home)
    except BaseException:
        claim.close()
        raise
    return home


def read(home: Home, fields: Mapping[str, Any]) -> None:
    """Take stored fields as those of a context."""
    for name, value in fields.items():
        if name.startswith(KEY):
            home.values[name.removeprefix(KEY)] = value
        elif name == TRACE:
            home.trace = value
        elif name == NEEDS:
            home.needs = value
        else:
            home.private[name] = value


def recover(home: Home, mark: Mapping[str, Any]) -> None:
    """Take back what a run has committed whose process died before it could."""
    saver, thread = home.storage(), home.thread(mark["graph"])
    row = saver.latest(thread)
    if row is None or saver.last_seq(thread) <= mark["seq"]:
        return  # it committed nothing
    lineage = lineage_of(row.branch, LATEST, saver.branches(thread))
    values, _, _ = read_values(saver, thread, lineage, (), CODEC)
    data = dict(values.get(DATA, {}))
    for key, field, boxed in mark["folded"]:
        held = values.get(field, MISSING)
        if held is not MISSING and not (boxed and not held):
            data[key] = held[0] if boxed else held
    home.values = data
    home.private.update((name, values[name]) for name in mark["kept"] if name in values)
    home.trace = [*home.trace, *values.get(TRACE, ())]
