"""The node of an agent's tools: makes one call of a turn, and says what follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pregel.channels.base import MISSING
from pregel.errors import InvalidUpdateError
from pregel.graph.agent.results import answers_as_updates
from pregel.graph.agent.routing import ToolTurn, check_jump, goto_in, jump_in
from pregel.graph.agent.toolnode import ToolNode
from pregel.graph.agent.turns import last_turn, pending_calls
from pregel.types import Command

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from pregel.graph.agent.routing import Router
    from pregel.runtime import Runtime

__all__ = ["AgentTools"]

KEY = "messages"


@dataclass(frozen=True, slots=True)
class AgentTools:
    """Makes calls, and leads back to the model, or out of the loop.

    What a call's answer says itself takes the place of that: `Command(goto=...)`, or "jump_to" in what it updates. The
    other calls of the turn lead on as ever.
    """

    node: ToolNode
    router: Router

    @classmethod
    def of(cls, tools: Sequence[Any], wrappers: Sequence[Any], router: Router, handle_errors: Any) -> AgentTools:
        """Return the node of some tools.

        Args:
            tools: The tools.
            wrappers: The middlewares that wrap their calls, the outermost first.
            router: The agent's.
            handle_errors: As `ToolNode` takes it; `MISSING` for its default.
        """
        options = {} if handle_errors is MISSING else {"handle_tool_errors": handle_errors}
        return cls(ToolNode(tools, wrappers=wrappers, messages_key=KEY, **options), router)

    @property
    def forms(self) -> tuple[Callable[..., Any] | None, Callable[..., Awaitable[Any]] | None]:
        """The sync form and the async form, each if there is one."""
        return (None if self.node.needs_loop else self.call), (self.acall if self.node.uses_loop else None)

    def call(self, given: Any, runtime: Runtime[Any]) -> list[Any]:
        """Make a call; or all that wait, where the node was not started by a call of the model's."""
        if isinstance(given, ToolTurn):
            answer = self.node.run(given.call, runtime)
            return self.steered(answers_as_updates([answer], KEY), ends=given.ends)
        return self.steered(self.node.invoke(given, runtime), ends=self.ends(given))

    async def acall(self, given: Any, runtime: Runtime[Any]) -> list[Any]:
        """Do the same, awaited."""
        if isinstance(given, ToolTurn):
            answer = await self.node.arun(given.call, runtime)
            return self.steered(answers_as_updates([answer], KEY), ends=given.ends)
        return self.steered(await self.node.ainvoke(given, runtime), ends=self.ends(given))

    def follow(self, state: Mapping[str, Any]) -> list[str]:
        """Return what follows results that somebody else gave in the node's place."""
        message, _ = last_turn(state[KEY])
        calls = [] if message is None else message.tool_calls
        return [self.router.after_tools(ends=self.done(calls, state))]

    def ends(self, state: Mapping[str, Any]) -> bool:
        """Return whether the loop ends when the calls that wait are done."""
        return self.done(pending_calls(state[KEY]), state)

    def done(self, calls: Sequence[Any], state: Mapping[str, Any]) -> bool:
        """Return whether the loop ends with these calls."""
        direct = bool(calls) and all(call["name"] in self.router.direct for call in calls)
        return direct or state.get("structured_response") is not None

    def steered(self, results: list[Any], *, ends: bool) -> list[Any]:
        """Return results with what follows them.

        Raises:
            InvalidUpdateError: A tool names two ways to go on, or one that it can't.
        """
        jump, goto = jump_in(results), goto_in(results)
        if jump is None:
            return results if goto else [*results, Command(goto=self.router.after_tools(ends=ends))]
        where = "a tool's Command"
        check_jump(jump, where)
        if goto or jump == "tools":
            raise InvalidUpdateError(
                f"{where} has jump_to={jump!r}{f' and goto={goto!r}' if goto else ''}: a tool jumps to 'model' or "
                "'end', or has a goto, one of them"
            )
        return [*results, Command(goto=self.router.after_tools(ends=jump == "end"))]
