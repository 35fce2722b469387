"""What can be wrong with the middleware that an agent is given, and is best said before it runs."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Final

from pregel.errors import GraphDefinitionError
from pregel.graph.agent.middleware.base import HOOKS, WRAPPERS, AgentMiddleware
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["check_middleware"]

METHODS: Final = tuple(f"{form}{method}" for method in (*HOOKS, *WRAPPERS) for form in ("", "a"))
#: From where on a name is taken for a misspelt one: two letters of `before_model` changed over are, a word in front of
#: it is not.
LIKENESS: Final = 0.9


def check_middleware(middleware: Sequence[Any]) -> None:
    """Check that each is a middleware, without methods that nobody would ever call.

    Raises:
        GraphDefinitionError: One is none, or has a method that is nearly named like a hook.
    """
    for place, each in enumerate(middleware):
        if not isinstance(each, AgentMiddleware):
            raise GraphDefinitionError(f"middleware[{place}] is {named(each)}")
        for method in dir(type(each)):
            meant = misspelt(method)
            if meant is not None and callable(getattr(type(each), method)):
                raise GraphDefinitionError(
                    f"middleware {each.name!r} has a method {method!r}, which no agent calls. Did you mean {meant!r}? "
                    "A method of your own needs a name that is less like it, or one that begins with '_'"
                )


def named(thing: Any) -> str:
    """Return what somebody gave in the place of a middleware, and what to give."""
    if isinstance(thing, type) and issubclass(thing, AgentMiddleware):
        return f"the class {thing.__name__}: give an object, {thing.__name__}(...)"
    return (
        f"{show(thing)}, which is no AgentMiddleware: derive its class from that, or decorate a function, such as by "
        "@before_model"
    )


def misspelt(name: str) -> str | None:
    """Return the hook or wrapper that a method's name is nearly, and None for other names."""
    if name in METHODS or name.startswith("_"):
        return None
    bare = plain(name)
    likely = [method for method in METHODS if abs(len(plain(method)) - len(bare)) <= 1]
    likeness = {method: SequenceMatcher(None, bare, plain(method)).ratio() for method in likely}
    best = max(likely, key=likeness.__getitem__, default=None)
    return best if best is not None and likeness[best] >= LIKENESS else None


def plain(name: str) -> str:
    """Return a name without what people write in different ways."""
    return name.replace("_", "").lower()
