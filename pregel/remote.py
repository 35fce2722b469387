"""A node's code in another process: what goes there, and what is made of what comes back.

Theory of operation. Only the call of the node's own code crosses. Its view of the state is read before and its result
is checked after, at home, where also its conditional edges run; so what a node may return, and what is said of it, does
not depend on where it runs. `sent` makes bytes of a call, `pregel.remotework.work` makes of them, in a worker, bytes
that say how it ended, and `returned` does at home what the code did there: it tells what was written to streams, notes
what was asked, and returns or raises. `work` raises nothing, so whatever an executor raises is a fault of the executor.
"""

from __future__ import annotations

import pickle
import sys
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pregel.crossing import packed, unpacked
from pregel.drivers.revocable import RevocableStore
from pregel.errors import NotSendableError
from pregel.remotecall import FORMAT, Call, Custom, Piece, Reply
from pregel.runtime import is_read, store_of
from pregel.text import told

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pregel.network import Network
    from pregel.node import Code
    from pregel.runtime import Frame

__all__ = ["returned", "sent"]

#: Make the bytes of each call its own, for executors that take equal calls for one, as Dask does.
SENDER: Final = uuid4().hex
CALLS: Final = count()
#: The fields of `Run` that cross as they are.
PLAIN: Final = (
    "attempt",
    "is_outermost",
    "last_step",
    "limit",
    "max_concurrency",
    "namespace",
    "nested_modes",
    "path",
    "thread",
)


def sent(code: Code, given: Any, frame: Frame, network: Network) -> bytes:
    """Return a call of a node's code as bytes for `pregel.remotework.work`.

    Args:
        code: The code; of two forms the sync one is sent.
        given: What it is given.
        frame: Its task.
        network: Its graph.

    Raises:
        NotSendableError: Something that must cross can't; names the node and the value.
        MissingStoreError: The code takes a store, and the graph has none.
    """
    task, run, _, _, values, *_ = frame
    kinds = set(code.inject.values())
    takes_store = "store" in kinds or ("optional_store" in kinds and run.store is not None)
    call = Call(
        task.node.name,
        code.call,
        code.acall if code.call is None else None,
        code.inject,
        given,
        {**run.config, "callbacks": None},
        run.context,
        bare_store(store_of(task, run)) if takes_store else None,
        run.store is not None,
        dict(values) if "runtime" in kinds else None,
        (task.step, task.place, task.id),
        # Those of the task and of runs inside it, whose ids contain its own.
        None if run.answers is None else {key: answer for key, answer in run.answers.items() if task.id in key},
        {name: getattr(run, name) for name in PLAIN},
        run.new_id(task.id, -1),  # a number that nothing the task itself makes has
        tuple(name for name, field in network.fields.items() if field.folds),
        is_read(run.writer),
        run.publish is not None,
        None if run.speech is None else run.speech.tags,
        trace_here(),
    )
    what = f"node {task.node.name!r} of graph {network.name!r}"
    data = packed(call, f"{what} can't go to a worker: ")
    return pickle.dumps((FORMAT, f"{SENDER} {next(CALLS)}", what, data))


def returned(reply: bytes, given: Any, frame: Frame) -> Any:
    """Return what a call returned in a worker, or raise what it raised.

    Args:
        reply: What `work` returned.
        given: What the code was given, as it is here.
        frame: The task, which must be that of the current context: what the call asked and wrote becomes its own.

    Raises:
        BaseException: What the code raised, with a note that shows the worker's traceback.
        NotSendableError: What came back can't be read here.
    """
    task, run, _, asked, *_ = frame
    try:
        ended: Reply = unpacked(reply, found_in(given))
        error = None if ended.error is None else ended.error.put_together()
        result = None if ended.result is None else unpacked(ended.result, found_in(given))
    except Exception as raised:
        raise NotSendableError(
            f"what node {task.node.name!r} returned, raised or wrote in a worker can't be read here ({told(raised)}): "
            "this process must be able to import what the worker imports"
        ) from raised
    for said in ended.said:
        if type(said) is Custom:
            run.writer(said.payload)
        elif type(said) is Piece:
            run.publish(run.speech.part(said.kind, said.message, task))  # type: ignore[misc, union-attr]  # somebody reads
        else:
            run.publish(said)  # type: ignore[misc]  # as above
    asked.extend(ended.asked)
    if error is not None:
        raise error
    return result


def trace_here() -> Mapping[str, str]:
    """Return what spans in a worker are made below; empty where the program does not trace."""
    if "opentelemetry.trace" not in sys.modules:
        return {}
    from pregel.spans import carried  # noqa: PLC0415 - needs OpenTelemetry, and the program has loaded it

    return carried()


def bare_store(store: Any) -> Any:
    """Return the store of a graph without what takes it away from an attempt that was given up."""
    while isinstance(store, RevocableStore):
        store = store._store  # noqa: SLF001 - it stands for that one
    return store


def found_in(given: Any) -> Callable[[str], Any]:
    """Return what finds a field in what a node was given."""
    return given.__getitem__ if isinstance(given, dict) else partial(getattr, given)
