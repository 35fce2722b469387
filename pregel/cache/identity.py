"""What tells the code of one node from that of another, so that neither takes the other's results."""

from __future__ import annotations

from functools import partial
from hashlib import blake2b
from inspect import ismethod
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pregel.errors import EncodeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pregel.codec import Codec
    from pregel.node import Code

__all__ = ["identity"]

SIZE: Final = 16
#: How deep functions are looked for in what functions hold.
DEEPEST: Final = 8


def identity(code: Code, codec: Codec) -> bytes:
    """Return a digest of a node's code: of its functions with their modules and names, and of what is bound to them.

    Bound are defaults, the variables of functions around, the arguments of a `partial` and the attributes of an object
    that is called. Of what can't be stored, such as a client, nobody can tell whether two are the same: with one of
    these bound, the digest is another one each time this is asked, so that nothing is shared by mistake. Global
    variables and the functions that are called are no part of it.

    Args:
        code: The code.
        codec: Stores what is bound.
    """
    digest = blake2b(digest_size=SIZE)
    for form in (code.call, code.acall):
        for part in told(form, codec, 0):
            digest.update(len(part).to_bytes(8))
            digest.update(part)
    return digest.digest()


def told(value: Any, codec: Codec, depth: int) -> Iterator[bytes]:
    """Yield what tells a bound value from others."""
    if depth > DEEPEST:
        yield unlike_any()
    elif isinstance(value, FunctionType):
        yield from named("function", value)
        yield from compiled(value.__code__)
        cells = [cell.cell_contents for cell in value.__closure__ or () if not is_empty(cell)]
        for each in (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values(), *cells):
            yield from told(each, codec, depth + 1)
    elif isinstance(value, partial):
        yield b"partial"
        for each in (
            value.func,
            *value.args,
            *sorted(value.keywords),
            *map(value.keywords.get, sorted(value.keywords)),
        ):
            yield from told(each, codec, depth + 1)
    elif ismethod(value):
        yield b"method"
        yield from told(value.__func__, codec, depth + 1)
        yield from told(value.__self__, codec, depth + 1)
    elif isinstance(value, type):
        yield from named("class", value)
    elif is_object_with_code(value):
        yield from named("object", type(value))
        for name in ("__call__", "invoke", "ainvoke"):
            yield from told(getattr(type(value), name, None), codec, depth + 1)
        for name, each in sorted(vars(value).items()):
            yield name.encode("utf-8", "surrogatepass")
            yield from told(each, codec, depth + 1)
    else:
        try:
            yield codec.encode(value)
        except EncodeError:
            yield unlike_any()


def named(kind: str, value: Any) -> Iterator[bytes]:
    """Yield where something was defined."""
    yield f"{kind} {value.__module__}:{value.__qualname__}".encode("utf-8", "surrogatepass")


def compiled(code: CodeType) -> Iterator[bytes]:
    """Yield what a piece of code does: what it would be after a change of its comments, or lines above it."""
    yield code.co_code
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_flags)).encode("utf-8", "surrogatepass")
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from compiled(constant)
        else:
            yield shown(constant).encode("utf-8", "surrogatepass")


def shown(constant: Any) -> str:
    """Return a constant as text; the order of a set is another one in each process."""
    if isinstance(constant, frozenset):
        return f"frozenset({sorted(map(shown, constant))})"
    if isinstance(constant, tuple):
        return f"({', '.join(map(shown, constant))},)"
    return repr(constant)


def is_object_with_code(value: Any) -> bool:
    """Return whether something is an object of a class of Python's that is run, and that tells what it holds."""
    runs = any(isinstance(getattr(type(value), name, None), FunctionType) for name in ("__call__", "invoke", "ainvoke"))
    slots = any(getattr(cls, "__slots__", ()) for cls in type(value).__mro__)
    return runs and hasattr(value, "__dict__") and not slots


def is_empty(cell: Any) -> bool:
    """Return whether a variable of a function around has no value yet."""
    try:
        cell.cell_contents  # noqa: B018 - it raises if so
    except ValueError:
        return True
    return False


def unlike_any() -> bytes:
    """Return what nothing else is told by."""
    return uuid4().bytes
