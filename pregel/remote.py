"""A node's code in another process: what goes there, how it runs there, and what comes back.

Theory of operation. Only the call of the node's own code crosses. Its view of the state is read before and its result
is checked after, at home, where also its conditional edges run; so what a node may return, and what is said of it, does
not depend on where it runs. `sent` makes bytes of a call, `work` makes of them, in a worker, bytes that say how it
ended, and `returned` does at home what the code did there: it tells what was written to streams, notes what was asked,
and returns or raises. `work` raises nothing, so whatever an executor raises is a fault of the executor.

In the worker the code finds the task it belongs to (`get_config`, `get_runtime`, `interrupt`, ...), rebuilt from what
crossed. What stays at home is replaced by something that says so: nothing is silently absent.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
from collections.abc import Iterator, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from itertools import count
from platform import node as host_name
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn
from uuid import UUID, uuid4, uuid5

from pregel.attempt import filled
from pregel.crossing import packed, portable, unpacked
from pregel.drivers.revocable import RevocableStore
from pregel.errors import MissingStoreError, NodeCancelledError, NotSendableError, OutsideTaskError
from pregel.node import Code, Node, View
from pregel.reporter import Emit
from pregel.runtime import FRAME, Run, ignore, is_read, store_of
from pregel.task import Task
from pregel.text import told
from pregel.types import Command
from pregel.writes import gives_back

if TYPE_CHECKING:
    from collections.abc import Callable

    from pregel.network import Network
    from pregel.runtime import Frame

__all__ = ["returned", "sent", "work"]

#: What both sides must agree on: the form of a call, and the Python whose code is in it.
FORMAT: Final = f"pregel call 1, Python {sys.version_info.major}.{sys.version_info.minor}"
#: Make the bytes of each call its own, for executors that take equal calls for one, as Dask does.
SENDER: Final = uuid4().hex
CALLS: Final = count()


class Call(NamedTuple):
    """A call of a node's code, with what of its task and run can be asked for inside it."""

    node: str
    #: One of both.
    call: Callable[..., Any] | None
    acall: Callable[..., Any] | None
    #: Which parameters are filled with what.
    inject: Mapping[str, Any]
    given: Any
    config: Mapping[str, Any]
    context: Any
    #: The store, where a parameter takes it; else whether there is one that stays at home.
    store: Any
    has_store: bool
    #: The state of the last barrier; None where the code has no parameter that can tell it.
    state: dict[str, Any] | None
    #: Step, place and id of the task.
    task: tuple[int, int, str]
    answers: dict[str, Any] | None
    #: The fields of `Run` that are plain values.
    run: dict[str, Any]
    #: From what ids are made.
    space: str
    #: Fields whose updates are folded, so that giving back what was given must be noticed.
    folding: tuple[str, ...]
    #: Whether somebody reads what is written here and in graphs inside, and the run's tags where messages are read.
    custom: bool
    nested: bool
    tags: tuple[str, ...] | None


class Reply(NamedTuple):
    """How a call ended."""

    #: The bytes of the result; None where it raised.
    result: bytes | None
    error: Any
    #: What was asked, as a frame notes it.
    asked: list[Any]
    #: What was written to streams, in order: `Custom`, `Piece`, or the `Emit` of a graph inside.
    said: list[Any]


class Custom(NamedTuple):
    """What was written to the `custom` stream."""

    payload: Any


class Piece(NamedTuple):
    """A piece of a message, with the kind of part that tells it."""

    kind: Any
    message: Any


# --- at home ----------------------------------------------------------------------------------------------------------


def sent(code: Code, given: Any, frame: Frame, network: Network) -> bytes:
    """Return a call of a node's code as bytes for `work`.

    Args:
        code: The code; of two forms the sync one is sent.
        given: What it is given.
        frame: Its task.
        network: Its graph.

    Raises:
        NotSendableError: Something that must cross can't; names the node and the value.
        MissingStoreError: The code takes a store, and the graph has none.
    """
    task, run, _, _, values = frame
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
    )
    what = f"node {task.node.name!r} of graph {network.name!r}"
    data = packed(call, f"{what} can't go to a worker: ")
    return pickle.dumps((FORMAT, f"{SENDER} {next(CALLS)}", what, data))


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
    task, run, _, asked, _ = frame
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


def bare_store(store: Any) -> Any:
    """Return the store of a graph without what takes it away from an attempt that was given up."""
    while isinstance(store, RevocableStore):
        store = store._store  # noqa: SLF001 - it stands for that one
    return store


def found_in(given: Any) -> Callable[[str], Any]:
    """Return what finds a field in what a node was given."""
    return given.__getitem__ if isinstance(given, dict) else partial(getattr, given)


# --- in the worker ----------------------------------------------------------------------------------------------------


def work(sent_call: bytes) -> bytes:
    """Make a call, in a worker; return how it ended. Nothing is raised: an error is a way to end."""
    form, _, what, data = pickle.loads(sent_call)  # noqa: S301 - an executor runs what the program sends it
    here = f"process {os.getpid()} on {host_name()}"
    if form != FORMAT:
        error = NotSendableError(
            f"{what} was sent as {form!r} to {here}, which reads {FORMAT!r}: install the same there as here"
        )
        return packed(Reply(None, portable(error, what, here), [], []), what)
    try:
        call: Call = unpacked(data, str)
    except Exception as raised:  # noqa: BLE001 - whatever making the values raises
        error = NotSendableError(
            f"{what} can't be read in {here} ({told(raised)}): install there what the node and its values need, or "
            "define them in the program's main module, whose code is sent along"
        )
        return packed(Reply(None, portable(error, what, here), [], []), what)
    asked: list[Any] = []
    said: list[Any] = []
    ended = copy_context().run(outcome, call, what, here, asked, said)
    try:
        return packed(Reply(*ended, asked, said), f"{what} can't tell what it did in its worker: ")
    except NotSendableError as error:
        return packed(Reply(None, portable(error, what, here), [], []), what)


def outcome(call: Call, what: str, here: str, asked: list[Any], said: list[Any]) -> tuple[bytes | None, Any]:
    """Make a call in the current context; return the bytes of its result, or its error."""
    step, place, key = call.task
    code = Code(call.node, call.call, call.acall, call.inject)
    task = Task(Node(call.node, 0, code, View()), step, place, key=key)
    run = run_of(call, what, said)
    state: Any = Unsent(what) if call.state is None else call.state
    FRAME.set((task, run, count(), asked, state))
    try:
        extra = filled(code, task, run, state)
        if code.call is not None:
            result = code.call(call.given, **extra)
        else:
            result = asyncio.run(code.acall(call.given, **extra))  # type: ignore[misc]  # one of both is there
        same = {
            id(value): name
            for name in call.folding
            for value in updates_of(result, name)
            if gives_back(value, call.given, name)
        }
        return packed(result, f"{what} can't give back from its worker: ", same), None
    except asyncio.CancelledError:
        cancelled = NodeCancelledError(f"{what} ended as cancelled in {here}, and nobody cancelled it")
        return None, portable(cancelled, what, here)
    except BaseException as error:  # noqa: BLE001 - an exit too belongs to the run
        return None, portable(error, what, here)


def run_of(call: Call, what: str, said: list[Any]) -> Run:
    """Return what the code finds as its run."""

    def tell(part: Any) -> None:
        said.append(part._replace(task=bare(part.task)) if type(part) is Emit else part)

    space = UUID(call.space)
    return Run(
        call.config,
        call.context,
        lambda task, number: str(uuid5(space, f"{task}:{number}")),
        **call.run,
        writer=(lambda payload: said.append(Custom(payload))) if call.custom else ignore,
        publish=tell if call.nested else None,
        answers=call.answers,
        store=AtHome(what) if call.store is None and call.has_store else call.store,
        speech=None if call.tags is None else Tags(call.tags),  # type: ignore[arg-type]  # it has what a task uses
    )


@dataclass(frozen=True, slots=True)
class Tags:
    """Tells messages in a worker: the parts are made at home."""

    tags: tuple[str, ...]

    def part(self, kind: Any, message: Any, _task: Any, *_more: Any) -> Piece:
        """Return a piece of a message, for home."""
        return Piece(kind, message)


def bare(task: Task | None) -> Task | None:
    """Return a task without its code and what it carries: its id and names."""
    return (
        None if task is None else Task(Node(task.node.name, 0, Code(task.node.name), View()), *task[1:3], key=task.id)
    )


def updates_of(result: Any, name: str) -> Iterator[Any]:
    """Yield what a result says of a field, in whatever form."""
    for item in result if isinstance(result, (list, tuple)) else (result,):
        update = item.update if isinstance(item, Command) else item
        if isinstance(update, Mapping):
            if name in update:
                yield update[name]
        elif isinstance(update, (list, tuple)):
            yield from (pair[1] for pair in update if isinstance(pair, tuple) and pair[:1] == (name,) and pair[1:])
        elif hasattr(update, name):
            yield getattr(update, name)


class AtHome:
    """Stands in a worker for the store, which is where the run is.

    Args:
        what: How messages name the node.
    """

    def __init__(self, what: str) -> None:
        self.what = what

    def __getattr__(self, name: str) -> NoReturn:
        raise MissingStoreError(
            f"{self.what} runs in a worker and uses the store ({name!r}), which stays where the run is: a store that "
            "can be sent crosses to nodes that have a parameter `store`; another one must be opened in the worker"
        )


class Unsent(Mapping[str, Any]):
    """Stands in a worker for the state of the last barrier.

    Args:
        what: How messages name the node.
    """

    def __init__(self, what: str) -> None:
        self.what = what

    def refuse(self, *_: Any) -> NoReturn:
        """Say that it is not here."""
        raise OutsideTaskError(
            f"{self.what} runs in a worker and reads runtime.state, which is sent only to nodes that have a parameter "
            "`runtime`: add it"
        )

    __getitem__ = __iter__ = __len__ = refuse
