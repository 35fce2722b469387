"""Values as bytes between a run and its workers: how they are written, and what is said of those that can't be.

These bytes are pickles, written by cloudpickle: they go from one process of a program to another one, and whoever can
write to that connection can run code at both ends. They are never stored, and nothing that is stored is read so.
"""

from __future__ import annotations

import inspect
import pickle
from contextlib import suppress
from functools import partial
from io import BytesIO
from traceback import format_exception
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pregel.errors import NotSendableError
from pregel.text import shortened, told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType

__all__ = ["packed", "portable", "unpacked"]

#: How far down a value is searched for the part that can't be sent.
DEEPEST: Final = 20


def packed(value: Any, what: str, places: Mapping[int, str] | None = None) -> bytes:
    """Return a value as bytes.

    Args:
        value: What to send.
        what: How a message begins that names the part, such as "node 'a' of graph 'g' can't give back: ".
        places: Objects that the receiver has, by their `id`: their names are sent in their place.

    Raises:
        NotSendableError: A part of it can't be sent; the message names the part.
    """
    cloudpickle = cloudpickle_module()
    stream = BytesIO()
    pickler = cloudpickle.Pickler(stream)
    if places:
        pickler.persistent_id = lambda part: places.get(id(part))
    try:
        pickler.dump(value)
    except Exception as error:
        path, part, reason = culprit(value, "", error)
        kind = f"{type(part).__module__}.{type(part).__qualname__}"
        raise NotSendableError(
            f"{what}{path.removeprefix('.') or 'it'} is {shortened(part)} of type {kind}, which can't be sent between "
            f"processes ({type(reason).__name__}: {reason}). Send what it is made from, and make it "
            "where it is used; or let the node run in this process: executor='thread'"
        ) from error
    return stream.getvalue()


def unpacked(data: bytes, find: Callable[[str], Any]) -> Any:
    """Return the value of bytes from `packed`.

    Args:
        data: The bytes.
        find: Gives the objects that were named.

    Raises:
        Exception: Whatever the code raises that makes the value, such as `ModuleNotFoundError`.
    """
    unpickler = Unpickler(BytesIO(data))
    unpickler.find = find
    return unpickler.load()


class Unpickler(pickle.Unpickler):
    """Reads a value in which objects of the reader's own are named."""

    find: Callable[[str], Any]

    def persistent_load(self, name: str) -> Any:
        """Return the object that was named."""
        return self.find(name)


def cloudpickle_module() -> ModuleType:
    """Return cloudpickle.

    Raises:
        ModuleNotFoundError: It is not installed; the message says how.
    """
    try:
        import cloudpickle  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "nodes that run in other processes need cloudpickle: pip install 'pregel[process]'", name=error.name
        ) from error
    return cloudpickle  # type: ignore[no-any-return]  # see the import


def culprit(value: Any, path: str, error: Exception) -> tuple[str, Any, Exception]:
    """Return the innermost part of a value that can't be sent: its path, itself, and why."""
    for _ in range(DEEPEST):
        for label, part in parts(value):
            if (reason := fault_of(part)) is not None:
                path, value, error = path + label, part, reason
                break
        else:
            break
    return path, value, error


def fault_of(value: Any) -> Exception | None:
    """Return why a value can't be sent, or None if it can."""
    try:
        cloudpickle_module().dumps(value)
    except Exception as error:  # noqa: BLE001 - any type says no in its own way
        return error
    return None


def parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a value is made of, each with how it is reached."""
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", part) for key, part in value.items())
        return
    if isinstance(value, (list, tuple, set, frozenset)):
        names = getattr(value, "_fields", None)
        yield from ((f".{names[at]}" if names else f"[{at}]", part) for at, part in enumerate(value))
        return
    if isinstance(value, partial):
        yield from ((".func", value.func), (".args", value.args), (".keywords", value.keywords))
        return
    if inspect.ismethod(value):
        yield ".__self__", value.__self__
        return
    if inspect.isfunction(value):
        yield from ((f", whose default {name!r}", part) for name, part in defaults(value))
        names = inspect.getclosurevars(value)
        yield from ((f", whose variable {name!r}", part) for name, part in names.nonlocals.items())
        yield from ((f", whose global {name!r}", part) for name, part in names.globals.items())
        return
    yield from ((f".{name}", part) for name, part in attributes(value).items())


def defaults(function: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parameters of a function that have a default, with it."""
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.default is not inspect.Parameter.empty:
            yield name, parameter.default


def attributes(value: Any) -> dict[str, Any]:
    """Return what an object holds."""
    slots = [
        name
        for kind in type(value).__mro__
        for name in getattr(kind, "__slots__", ())
        if isinstance(name, str) and hasattr(value, name)
    ]
    return {**{name: getattr(value, name) for name in slots}, **getattr(value, "__dict__", {})}


class ByCall(NamedTuple):
    """An error as it says itself how it is made again.

    Not left to pickle, which asks what other libraries have said of errors: tblib, which Dask loads, has a way for all
    of them that loses the code of a `SystemExit`.
    """

    make: Callable[..., BaseException]
    args: tuple[Any, ...]
    state: Any = None

    def put_together(self) -> BaseException:
        """Return the error."""
        error = self.make(*self.args)
        if self.state is not None:
            error.__setstate__(self.state)
        return error


class ByParts(NamedTuple):
    """An error whose class can't be called with its `args` alone, as it says itself."""

    kind: type[BaseException]
    args: tuple[Any, ...]
    attributes: dict[str, Any]

    def put_together(self) -> BaseException:
        """Return the error, made without calling its class."""
        error = self.kind.__new__(self.kind, *self.args)
        error.args = self.args
        error.__dict__.update(self.attributes)
        return error


def portable(error: BaseException, what: str, here: str) -> ByCall | ByParts:
    """Return an error in a form that can be sent, or one that says what it was.

    Args:
        error: What a node raised.
        what: How messages name the node.
        here: Where this process is, for the note with its traceback, which stays behind.
    """
    if isinstance(error, Exception):
        trace = "".join(format_exception(error)).rstrip()
        with suppress(Exception):  # one that takes no notes goes without
            error.add_note(f"Traceback in {here}:\n{trace}")
    forms: tuple[Callable[[], ByCall | ByParts], ...] = (
        lambda: ByCall(*error.__reduce_ex__(pickle.HIGHEST_PROTOCOL)),
        lambda: ByParts(type(error), error.args, dict(getattr(error, "__dict__", {}))),
    )
    for form in forms:
        try:
            sent = form()
            arrived = unpacked(packed(sent, what), str).put_together()
            same = type(arrived) is type(error) and str(arrived) == str(error)
        except Exception:  # noqa: BLE001, S112 - an error's own code may raise anything; there is another form
            continue
        if same:
            return sent
    stand_in = NotSendableError(
        f"{what} raised an error of {type(error).__module__} that can't be sent between processes: {told(error)}"
    )
    for note in getattr(error, "__notes__", ()):
        stand_in.add_note(note)
    return ByCall(*stand_in.__reduce__())
