"""What a tool is, and how it is called."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pregel.graph.agent.arguments import ToolDefinitionError, copied
from pregel.graph.agent.injection import Injected, injected_values
from pregel.graph.agent.offloading import in_worker

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pregel.graph.agent.arguments import Arguments
    from pregel.graph.agent.injection import ToolRuntime

__all__ = ["ResponseFormat", "Tool"]

#: Whether a tool returns what the model is told, or a pair of that and an artifact for the program.
ResponseFormat: TypeAlias = Literal["content", "content_and_artifact"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Tool:
    """Something that a model may ask to be called; see `tool` and `as_tool`, which make them.

    One that is made by hand, from a JSON schema, checks nothing of what the model gives.
    """

    name: str
    #: What the model is told of it.
    description: str = ""
    #: The JSON schema of the arguments that the model gives: an object.
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})
    #: Called with the arguments by name.
    function: Callable[..., Any] | None = None
    #: The same, awaited. At least one of the two is there.
    coroutine: Callable[..., Awaitable[Any]] | None = None
    #: Whether its result is the agent's answer.
    return_direct: bool = False
    response_format: ResponseFormat = "content"
    #: What checks and converts the arguments; None where nothing does.
    arguments: Arguments | None = None
    #: How parameters are filled that the model does not give.
    injected: Mapping[str, Injected] = field(default_factory=dict)
    #: The tool of LangChain that it was made from, which LangChain's models are told of as it is.
    origin: Any = None
    #: Whether its async form runs on asyncio only.
    needs_asyncio: bool = False
    #: Whether it is called with its runtime as a first argument.
    takes_runtime: bool = False

    def __post_init__(self) -> None:
        if not self.name:
            raise ToolDefinitionError(f"a tool can't be named {self.name!r}: give it a name, a text that is not empty")
        if self.function is None and self.coroutine is None:
            raise ToolDefinitionError(f"tool {self.name!r} has nothing to call: give it `function=` or `coroutine=`")

    @property
    def needs_loop(self) -> bool:
        """Whether it has an async form only."""
        return self.function is None

    def describe(self) -> dict[str, Any]:
        """Return what a model is told: name, description, and the JSON schema of the arguments."""
        return {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}

    def without_injected(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of the model's arguments without those that are not the model's to give, whatever it gives."""
        return {name: copied(value) for name, value in args.items() if name not in self.injected}

    def call(self, args: Mapping[str, Any], *, runtime: ToolRuntime[Any, Any] | None = None) -> Any:
        """Check the arguments, fill in the others, and call it.

        Args:
            args: The model's arguments; the code is given copies, as these are part of a message.
            runtime: Where the others come from; None outside of a graph.

        Returns:
            What the code returns, as it is.

        Raises:
            ToolArgumentsError: The arguments do not fit.
            ToolInjectionError: A parameter can't be filled.
            Exception: Whatever the code raises.
        """
        call = self.bound(args, runtime, awaited=self.function is None)
        if self.function is None:
            from pregel.drivers.bridge import run_async  # noqa: PLC0415 - only async tools in sync code need a loop

            return run_async(call)
        return call()

    async def acall(self, args: Mapping[str, Any], *, runtime: ToolRuntime[Any, Any] | None = None) -> Any:
        """Do the same, awaited; a sync tool runs in a worker thread. See `call`."""
        if self.coroutine is None:
            return await in_worker(self.bound(args, runtime, awaited=False))
        if self.needs_asyncio:
            from pregel.drivers.loops import trio_is_running  # noqa: PLC0415 - sync runs do not pay for anyio

            if trio_is_running():
                return await in_worker(partial(self.call, args, runtime=runtime))
        return await self.bound(args, runtime, awaited=True)()

    def bound(
        self, args: Mapping[str, Any], runtime: ToolRuntime[Any, Any] | None, *, awaited: bool
    ) -> Callable[[], Any]:
        """Return the call of one of the forms with checked arguments.

        Raises:
            ToolArgumentsError: They do not fit.
            ToolInjectionError: A parameter can't be filled.
        """
        mine = {
            name: value if name in self.injected else copied(value)
            for name, value in args.items()
            if name not in self.injected or self.injected[name].kind == Injected.BY_WRAPPERS
        }
        injected = injected_values(self.injected, runtime, self.name, mine)
        checked = mine if self.arguments is None else self.arguments.read(mine, self.name)
        values = {**checked, **injected}
        form: Any = self.coroutine if awaited else self.function
        return partial(form, runtime, **values) if self.takes_runtime else partial(form, **values)
