"""The types of numpy and langchain-core, where those are installed.

Neither is imported by this module. A value of numpy's shows that it is loaded; bytes with one of *our* tags for it make
us import it, by the fixed names that stand below, so that a process can resume what another one stored.
"""

from __future__ import annotations

import re
import sys
from math import prod
from typing import TYPE_CHECKING, Any, Final

from pregel.codec.registry import GLOBAL
from pregel.codec.wire import NAMED, Entry, Form, UnstorableError
from pregel.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["for_tag", "for_type"]

ARRAY: Final = "numpy:ndarray"
SCALAR: Final = "numpy:scalar"
#: Numbers, booleans, texts, bytes and times of a fixed width, as `dtype.str` writes them; no objects, no records.
DTYPE: Final = re.compile(r"[<>|](?:b1|[iu][1248]|f[248]|c(?:8|16)|[SU]\d{1,5}|[mM]8(?:\[\d{0,9}[A-Za-z]{1,7}\])?)")

#: What stands before the name of one of langchain-core's classes in its tag.
PREFIX: Final = "langchain_core.messages:"
ROLES: Final = ("AI", "Human", "System", "Tool", "Chat", "Function")
#: The tags of all of them. No other tag makes us import anything.
MESSAGES: Final = frozenset(
    {
        f"{PREFIX}RemoveMessage",
        *(f"{PREFIX}{role}Message" for role in ROLES),
        *(f"{PREFIX}{role}MessageChunk" for role in ROLES),
    }
)


def for_type(cls: type) -> Entry | None:
    """Return how a class of numpy or langchain-core is stored; None for any other."""
    package = str(cls.__module__).partition(".")[0]
    if package not in LOADERS or package not in sys.modules:
        return None
    LOADERS[package]()
    return GLOBAL.types.get(cls)


def for_tag(tag: str) -> Entry | None:
    """Return what one of our tags stands for; None for any other tag.

    Raises:
        DecodeError: The package is not installed here.
    """
    package = "numpy" if tag in {ARRAY, SCALAR} else "langchain_core" if tag in MESSAGES else ""
    if not package:
        return None
    try:
        LOADERS[package]()
    except ImportError as error:
        name = package.replace("_", "-")
        raise DecodeError(
            f"the bytes hold a {tag!r}, and {name} can't be imported here ({error}): install {name} to read them"
        ) from error
    return GLOBAL.tags.get(tag)


# -- numpy -----------------------------------------------------------------------------------------------------------


def load_numpy() -> None:  # noqa: C901 - the functions in it share the import
    """Register numpy's arrays and scalars."""
    import numpy as np  # noqa: PLC0415 - an optional package

    if ARRAY in GLOBAL.tags:
        return

    def described(value: Any) -> str:
        text: str = value.dtype.str
        if not DTYPE.fullmatch(text) or value.dtype.metadata:
            raise UnstorableError(f"numpy's dtype {value.dtype} is none of the plain ones that are stored")
        return text

    def array_form(value: Any) -> Form:
        return [NAMED, ARRAY, described(value), list(value.shape), value.tobytes()]

    def build_array(form: Form) -> Any:
        _, _, text, shape, data = form
        return build(text, tuple(shape), data)

    def scalar_form(value: Any) -> Form:
        text, data = described(value), value.tobytes()[: value.dtype.itemsize]
        again = build(text, (), data)[()]
        if type(again) is not type(value) or (value.dtype.kind in "US" and again != value):
            raise UnstorableError("numpy's dtype of it, without the value, stands for another one")
        return [NAMED, SCALAR, text, data]

    def build_scalar(form: Form) -> Any:
        _, _, text, data = form
        return build(text, (), data)[()]

    def build(text: str, shape: tuple[int, ...], data: bytes) -> Any:
        if not DTYPE.fullmatch(text):
            raise ValueError(f"{text!r} is no dtype that is stored")
        if not all(type(size) is int and size >= 0 for size in shape) or type(data) is not bytes:
            raise TypeError("a shape and bytes expected")
        dtype = np.dtype(text)
        if prod(shape) * dtype.itemsize != len(data):
            raise ValueError(f"{len(data)} bytes are no array of shape {shape} and dtype {text}")
        return np.ndarray(shape, dtype, bytearray(data) or bytearray(max(1, dtype.itemsize)))

    scalars = [kind for kind in np.sctypeDict.values() if kind not in {np.object_, np.void}]
    GLOBAL.add(Entry(np.ndarray, ARRAY, array_form, build_array))
    scalar = Entry(np.generic, SCALAR, scalar_form, build_scalar)
    GLOBAL.add(scalar)
    GLOBAL.types.update(dict.fromkeys(scalars, scalar))


# -- langchain-core --------------------------------------------------------------------------------------------------


def load_messages() -> None:
    """Register langchain-core's message classes."""
    from langchain_core import messages  # noqa: PLC0415 - an optional package

    from pregel.codec.kinds import model_entry  # noqa: PLC0415 - only models need it

    for cls in (
        *(messages.AIMessage, messages.HumanMessage, messages.SystemMessage, messages.ToolMessage),
        *(messages.ChatMessage, messages.FunctionMessage, messages.RemoveMessage),
        *(messages.AIMessageChunk, messages.HumanMessageChunk, messages.SystemMessageChunk),
        *(messages.ToolMessageChunk, messages.ChatMessageChunk, messages.FunctionMessageChunk),
    ):
        if cls not in GLOBAL.types:
            GLOBAL.add(model_entry(cls, f"{PREFIX}{cls.__name__}"))


LOADERS: Final[dict[str, Callable[[], None]]] = {"numpy": load_numpy, "langchain_core": load_messages}
