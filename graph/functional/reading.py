"""What a user's function tells about how it is called as a task or an entry point."""

from __future__ import annotations

import inspect
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import get_type_hints

from pregel.callables import INJECTED, injections
from pregel.errors import GraphDefinitionError, nearest
from pregel.graph.code import callable_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["UserFunction", "accepts_call"]

KEYWORD: Final[frozenset[Any]] = frozenset({inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD})
#: What stands before them in a node.
STATE: Final = inspect.Parameter("state", inspect.Parameter.POSITIONAL_ONLY)


class UserFunction:
    """A function as it was read.

    Args:
        function: It.
        name: The name it goes by; its own if None.
        what: How messages name its kind.

    Raises:
        GraphDefinitionError: It can't be called, has no name, or is a generator.
    """

    def __init__(self, function: Callable[..., Any], name: str | None, what: str) -> None:
        if not callable(function):
            raise GraphDefinitionError(f"{what} takes a function, not {function!r}")
        name = name or callable_name(function)
        if name is None or name == "<lambda>":
            raise GraphDefinitionError(f"{what} of {function!r} has no name to go by: give name=...")
        self.name = name
        self.what = what
        self.function = function
        code = function if inspect.isroutine(function) else getattr(function, "func", function.__call__)  # type: ignore[operator]
        if inspect.isgeneratorfunction(code) or inspect.isasyncgenfunction(code):
            raise GraphDefinitionError(
                f"{what} {name!r} is a generator, and what it yields would go nowhere: return a value, and write what "
                "is to be streamed to get_stream_writer()"
            )
        self.is_async = inspect.iscoroutinefunction(code)
        self.signature = inspect.signature(function)
        try:
            self.hints: Mapping[str, Any] = get_type_hints(code, include_extras=True)
        except Exception:  # noqa: BLE001 - what is annotated with may be anything; whoever needs it is told then
            self.hints = {}

    def check_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Check that it can be called so, where the engine fills what it fills.

        Raises:
            TypeError: It can't.
        """
        self._call.bind(*args, **kwargs)

    @cached_property
    def _call(self) -> inspect.Signature:
        given = [
            each.replace(default=None) if each.name in self.filled else each
            for each in self.signature.parameters.values()
        ]
        return self.signature.replace(parameters=given)

    @property
    def returns(self) -> Any:
        """The annotated result; Any where there is none."""
        return self.hints.get("return", Any)

    def injected(self, parameters: Iterable[inspect.Parameter], *, strangers: bool) -> dict[str, inspect.Parameter]:
        """Return the parameters that the engine fills, by name.

        Args:
            parameters: Those that it may fill.
            strangers: Whether another one without default is an error.

        Raises:
            GraphDefinitionError: There is such a one.
        """
        own = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters if each.kind in KEYWORD]
        where = f"{self.what} {self.name!r}"
        found = injections(inspect.Signature([STATE, *own]), self.hints, where, INJECTED, strangers=False)
        for each in own:
            if strangers and each.name not in found and each.default is each.empty:
                known = ("previous", *INJECTED)
                raise GraphDefinitionError(
                    f"{where} has a parameter {each.name!r} that nothing fills.{nearest(each.name, known)} After its "
                    f"input it may take {', '.join(known)}; give others a default, or let the input be a mapping"
                )
        return {each.name: each for each in own if each.name in found}

    @cached_property
    def filled(self) -> dict[str, inspect.Parameter]:
        """The parameters that the engine fills in a task: none that a caller could give by position."""
        own = [each for each in self.signature.parameters.values() if each.kind is inspect.Parameter.KEYWORD_ONLY]
        return self.injected(own, strangers=False)


def accepts_call(call: Callable[..., Any], hints: Mapping[str, Any], injected: Mapping[str, inspect.Parameter]) -> Any:
    """Let a wrapper look like a node that takes a state and what the engine fills; return it.

    Args:
        call: It takes a state, and keywords.
        hints: The resolved annotations of what it wraps.
        injected: The parameters of that which the engine fills, as `UserFunction.injected` gives them.
    """
    call.__signature__ = inspect.Signature([STATE, *injected.values()])  # type: ignore[attr-defined]
    call.__annotations__ = {name: hints[name] for name in injected if name in hints}
    return call
