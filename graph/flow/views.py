"""Other views of a context's data: the keys below a prefix, and values that are laid over it for a while."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from pregel.channels.base import MISSING
from pregel.graph.flow.home import check_key
from pregel.text import shortened

if TYPE_CHECKING:
    from pregel.graph.flow.home import Home

__all__ = ["Group", "laid", "laid_keys", "laid_over"]

#: What `FlowContext.scoped` lays over contexts, innermost last: (home, values). Tasks inherit it from who started the
#: run.
OVERLAYS: Final[ContextVar[tuple[tuple[Home, dict[str, Any]], ...]]] = ContextVar("pregel_flow_overlays", default=())


@contextmanager
def laid(values: dict[str, Any], *, over: Home) -> Iterator[None]:
    """Lay values over a context while the block runs."""
    token = OVERLAYS.set((*OVERLAYS.get(), (over, values)))
    try:
        yield
    finally:
        OVERLAYS.reset(token)


def laid_over(home: Home, key: object) -> Any:
    """Return the value that is laid over a key of a context here, or MISSING."""
    for owner, values in reversed(OVERLAYS.get()):
        if owner is home and key in values:
            return values[key]
    return MISSING


def laid_keys(home: Home) -> set[str]:
    """Return the keys of a context over which something is laid here."""
    return {key for owner, values in OVERLAYS.get() if owner is home for key in values}


class Group(MutableMapping[str, Any]):
    """The keys of a context below a prefix."""

    __slots__ = ("_context", "_prefix")

    def __init__(self, context: MutableMapping[str, Any], prefix: str) -> None:
        self._context = context
        self._prefix = f"{prefix}."

    def __getitem__(self, key: str) -> Any:
        return self._context[self._full(key)]

    def __setitem__(self, key: str, value: Any) -> None:
        self._context[self._full(check_key(key))] = value

    def __delitem__(self, key: str) -> None:
        del self._context[self._full(key)]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._full(key) in self._context

    def __iter__(self) -> Iterator[str]:
        start = len(self._prefix)
        return (key[start:] for key in self._context if key.startswith(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def update(self, /, *others: Any, **values: Any) -> None:
        """Set several keys: all, or where one is refused, none; see `FlowContext.update`."""
        self._context.update({self._full(check_key(key)): value for key, value in dict(*others, **values).items()})

    def _full(self, key: object) -> str:
        if not isinstance(key, str):
            raise KeyError(key)
        return self._prefix + key

    def __repr__(self) -> str:
        return f"Group({self._prefix!r}, {shortened(dict(self))})"
