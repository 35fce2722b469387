"""A node's call in a worker, another process: how it is made, and what its code finds there.

The code finds the task it belongs to (`get_config`, `get_runtime`, `interrupt`, ...), rebuilt from what crossed. What
stays at home is replaced by something that says so: nothing is silently absent.
"""

from __future__ import annotations

import asyncio
import os
import pickle
from collections.abc import Iterator, Mapping
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from itertools import count
from platform import node as host_name
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar
from uuid import UUID, uuid5

from pregel.attempt import filled
from pregel.crossing import packed, portable, unpacked
from pregel.errors import MissingStoreError, NodeCancelledError, NotSendableError, OutsideTaskError
from pregel.node import Code, Node, View
from pregel.remotecall import FORMAT, Custom, Piece, Reply
from pregel.reporter import Emit
from pregel.runtime import FRAME, Run, ignore
from pregel.task import Task
from pregel.text import told
from pregel.types import Command
from pregel.writes import gives_back

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from pregel.remotecall import Call
    from pregel.runtime import Calls

__all__ = ["work"]

T = TypeVar("T")


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
    calls: list[Calls] = []
    FRAME.set((task, run, count(), asked, state, calls, False))
    if call.trace:
        with suppress(ImportError):  # without OpenTelemetry in the worker nobody makes spans there
            from pregel.spans import enter  # noqa: PLC0415 - see above

            enter(call.trace)
    try:
        extra = filled(code, task, run, state)
        if code.call is not None:
            result = code.call(call.given, **extra)
        else:
            result = asyncio.run(code.acall(call.given, **extra))  # type: ignore[misc]  # one of both is there
        for each in calls:
            finish(each.settled(asked))
        same = {
            id(value): name
            for name in call.folding
            for value in updates_of(result, name)
            if gives_back(value, call.given, name)
        }
        return packed(result, f"{what} can't give back from its worker: ", same), None
    except BaseException as error:  # noqa: BLE001 - an exit too belongs to the run
        for each in calls:
            error = finish(each.close(error, asked)) or error
        if isinstance(error, asyncio.CancelledError):
            error = NodeCancelledError(f"{what} ended as cancelled in {here}, and nobody cancelled it")
        return None, portable(error, what, here)


def finish(waiting: Coroutine[Any, Any, T]) -> T:
    """Wait for what the code has begun beside itself: nothing is awaited, since the frame says so."""
    try:
        waiting.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("calls of a worker were awaited")  # pragma: no cover - see above


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
