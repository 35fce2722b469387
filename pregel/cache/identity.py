"""What tells the code of one node from that of another, so that neither takes the other's results."""

from __future__ import annotations

import sys
from functools import cached_property, partial
from hashlib import blake2b
from inspect import ismethod
from operator import itemgetter
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pregel.errors import EncodeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pregel.codec import Codec

__all__ = ["identity"]

SIZE: Final = 16
#: How an object is run.
RUNS: Final = ("__call__", "invoke", "ainvoke")
#: What of a class says nothing of its objects that their attributes do not.
UNTOLD: Final = frozenset({"__init__", "__new__", "__post_init__", "_abc_impl"})


def identity(functions: Iterable[Any], codec: Codec) -> bytes:
    """Return a digest of what a node runs: of functions with their modules and names, and of what is bound to them.

    Bound are defaults, the variables of functions around, the arguments of a `partial`, and the attributes of an object
    that is called, with those of its class. Of what can't be stored, such as a client, nobody can tell whether two are
    the same: with one of these bound, the digest is another one each time this is asked, so that nothing is shared by
    mistake. Global variables and the functions that are called are no part of it; nor are classes, but by their names.

    Args:
        functions: The functions, or what else is called; None for one that is not there.
        codec: Stores what is bound.
    """
    teller = Teller(codec)
    try:
        teller.group(functions, teller.tell)
    except RecursionError:  # a chain of so many functions
        return unlike_any()
    return teller.digest.digest()


class Teller:
    """Digests values. No two have the same digest: each part has its length before it, and each group its size.

    Args:
        codec: Stores what has no code.
    """

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self.digest = blake2b(digest_size=SIZE)
        #: The places of what was told already, which may hold itself, by `id`; and the thing, which keeps that its own.
        self.known: dict[int, tuple[int, Any]] = {}

    def add(self, *parts: bytes | str) -> None:
        """Take parts."""
        for part in parts:
            data = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
            self.digest.update(len(data).to_bytes(8))
            self.digest.update(data)

    def group(self, items: Iterable[Any], tell: Callable[[Any], None]) -> None:
        """Tell items, and how many they are."""
        items = tuple(items)
        self.add(str(len(items)))
        for item in items:
            tell(item)

    def tell(self, value: Any) -> None:
        """Tell a value."""
        if not (isinstance(value, (FunctionType, partial, type)) or ismethod(value) or is_object_with_code(value)):
            try:
                self.add("value", self.codec.encode(value))
            except EncodeError:
                self.add(unlike_any())
            return
        if id(value) in self.known:
            self.add("known", str(self.known[id(value)][0]))
            return
        self.know(value)
        if isinstance(value, FunctionType):
            self.function(value)
        elif isinstance(value, partial):
            self.add("partial")
            self.tell(value.func)
            self.group(value.args, self.tell)
            self.group(sorted(value.keywords.items(), key=itemgetter(0)), self.pair)
        elif isinstance(value, type):
            self.add("class", *((value.__module__, value.__qualname__) if is_global(value) else (unlike_any(),)))
        elif ismethod(value):
            self.add("method")
            self.tell(value.__func__)
            self.tell(value.__self__)
        else:
            self.add("object")
            self.group(type(value).__mro__[:-1], self.members)
            self.group(sorted(vars(value).items(), key=itemgetter(0)), self.pair)

    def know(self, value: Any) -> None:
        """Take that something is told from now on."""
        self.known[id(value)] = (len(self.known), value)

    def pair(self, pair: tuple[str, Any]) -> None:
        """Tell something that has a name."""
        self.add(pair[0])
        self.tell(pair[1])

    def function(self, function: FunctionType) -> None:
        """Tell a function with what is bound to it."""
        self.add("function", function.__module__, function.__qualname__)
        self.code(function.__code__)
        self.group(function.__defaults__ or (), self.tell)
        self.group(sorted((function.__kwdefaults__ or {}).items(), key=itemgetter(0)), self.pair)
        self.group(function.__closure__ or (), self.cell)

    def cell(self, cell: Any) -> None:
        """Tell a variable of a function around."""
        try:
            content = cell.cell_contents
        except ValueError:  # it has no value yet
            self.add("empty")
        else:
            self.tell(content)

    def members(self, cls: type) -> None:
        """Tell the methods and attributes that a class gives its objects."""
        self.know(cls)
        self.add("class", cls.__module__, cls.__qualname__)
        told = {name: unwrapped(member) for name, member in vars(cls).items() if name not in UNTOLD}
        pairs = [pair for pair in told.items() if isinstance(pair[1], FunctionType) or not pair[0].startswith("__")]
        self.group(sorted(pairs, key=itemgetter(0)), self.pair)

    def code(self, code: CodeType) -> None:
        """Tell what a piece of code does: what it would be after a change of its comments, or lines above it."""
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        self.add("code", code.co_code, code.co_exceptiontable)
        self.add(repr((counts, code.co_names, code.co_varnames, code.co_freevars)))
        self.group(code.co_consts, self.constant)

    def constant(self, constant: Any) -> None:
        """Tell a constant of a piece of code."""
        if isinstance(constant, CodeType):
            self.code(constant)
        else:
            self.add("constant", shown(constant))


def shown(constant: Any) -> str:
    """Return a constant as text; the order of a set is another one in each process."""
    if isinstance(constant, frozenset):
        return f"frozenset({sorted(map(shown, constant))})"
    if isinstance(constant, tuple):
        return f"({', '.join(map(shown, constant))},)"
    return repr(constant)


def is_object_with_code(value: Any) -> bool:
    """Return whether something is an object of a class of Python's that is run, and that tells what it holds."""
    runs = any(isinstance(getattr(type(value), name, None), FunctionType) for name in RUNS)
    slots = any(getattr(cls, "__slots__", ()) for cls in type(value).__mro__)
    return runs and hasattr(value, "__dict__") and not slots


def is_global(cls: type) -> bool:
    """Return whether a class is what its name says, and not one of several that a function makes."""
    found: Any = sys.modules.get(cls.__module__)
    for name in cls.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is cls


def unwrapped(member: Any) -> Any:
    """Return the function of a method or property."""
    if isinstance(member, (staticmethod, classmethod)):
        return member.__func__
    if isinstance(member, property):
        return member.fget
    return member.func if isinstance(member, cached_property) else member


def unlike_any() -> bytes:
    """Return what nothing else is told by."""
    return uuid4().bytes
