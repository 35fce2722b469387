"""The node of an agent's tools: makes one call of a turn, and says what follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pregel.channels.base import MISSING
from pregel.errors import InvalidUpdateError
from pregel.graph.agent.results import answers_as_updates
from pregel.graph.agent.routing import ToolTurn, check_jump, goto_in, jump_in, updated, updates_in
from pregel.graph.agent.runs import ANSWER
from pregel.graph.agent.toolnode import ToolNode
from pregel.graph.agent.turns import has_error, last_turn, pending_calls
from pregel.types import Command, Overwrite

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

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
            results = answers_as_updates([self.node.run(given.call, runtime)], KEY)
            return self.steered(results, runtime.state, ends=given.ends, alone=is_alone(runtime.state))
        return self.steered(self.node.invoke(given, runtime), given, ends=self.ends(given))

    async def acall(self, given: Any, runtime: Runtime[Any]) -> list[Any]:
        """Do the same, awaited."""
        if isinstance(given, ToolTurn):
            results = answers_as_updates([await self.node.arun(given.call, runtime)], KEY)
            return self.steered(results, runtime.state, ends=given.ends, alone=is_alone(runtime.state))
        return self.steered(await self.node.ainvoke(given, runtime), given, ends=self.ends(given))

    def join(self, state: Mapping[str, Any]) -> list[Any]:
        """Say what follows a turn whose calls are all of `return_direct` tools: the way out, if none has failed."""
        return [self.router.noted(state, ()), Command(goto=self.follow(state))]

    def follow(self, state: Mapping[str, Any]) -> list[str]:
        """Return what follows results that somebody else gave in the node's place."""
        message, _ = last_turn(state[KEY])
        calls = [] if message is None else message.tool_calls
        return [self.router.after_tools(ends=self.done(calls, state))]

    def ends(self, state: Mapping[str, Any]) -> bool:
        """Return whether the loop ends when the calls that wait are done."""
        return self.done(pending_calls(state[KEY]), state)

    def done(self, calls: Sequence[Any], state: Mapping[str, Any]) -> bool:
        """Return whether the loop ends with these calls: an error is for the model to see, whoever made it."""
        direct = bool(calls) and all(call["name"] in self.router.direct for call in calls)
        return (direct and not has_error(last_turn(state[KEY])[1])) or state.get(ANSWER) is not None

    def following(self, results: list[Any], state: Mapping[str, Any], *, ends: bool, alone: bool) -> str:
        """Return what follows the results of a task that do not say it themselves."""
        router = self.router
        if not ends or state.get(ANSWER) is not None:
            return router.after_tools(ends=ends)
        if router.join is not None and not alone:
            return router.join
        return router.loop if has_error(messages_in(results)) else router.exit

    def steered(self, results: list[Any], state: Mapping[str, Any], *, ends: bool, alone: bool = True) -> list[Any]:
        """Return results with what follows them.

        Args:
            results: What the calls of one task came to.
            state: The state of the last barrier.
            ends: Whether the loop ends with the turn, as far as was known when its calls were sent out.
            alone: Whether the turn has no other task.

        Raises:
            InvalidUpdateError: A tool names two ways to go on, or one that it can't.
            MissingStructuredOutputError: It ends the run, and the structured response has not been given.
        """
        jump, goto = jump_in(results), goto_in(results)
        where = "a tool's Command"
        updates = list(updates_in(results))
        if jump == "end" or self.router.leads_out(goto):
            self.router.check_end(where, updated(state, updates)[1], updates)
        noted = self.router.noted(state, {name for name, _ in updates})
        results = [*results, noted] if noted else results
        if jump is None:
            following = self.following(results, state, ends=ends, alone=alone)
            return results if goto else [*results, Command(goto=following)]
        check_jump(jump, where)
        if goto or jump == "tools":
            raise InvalidUpdateError(
                f"{where} has jump_to={jump!r}{f' and goto={goto!r}' if goto else ''}: a tool jumps to 'model' or "
                "'end', or has a goto, one of them"
            )
        # The command says it: several tools may jump in one turn, and the field takes one update.
        return [*map(without_jump, results), Command(goto=self.router.after_tools(ends=jump == "end"))]


def is_alone(state: Mapping[str, Any]) -> bool:
    """Return whether the turn that the tools are at has one call."""
    return len(pending_calls(state.get(KEY, ()))) == 1


def messages_in(results: Iterable[Any]) -> Iterator[Any]:
    """Yield the messages that results add."""
    for name, update in updates_in(results):
        if name == KEY:
            messages = update.value if isinstance(update, Overwrite) else update
            yield from (
                each for each in (messages if isinstance(messages, list) else [messages]) if hasattr(each, "type")
            )


def without_jump(result: Any) -> Any:
    """Return a result of a tool without its "jump_to"."""
    if isinstance(result, Command):
        return replace(result, update=without_jump(result.update))
    if isinstance(result, Mapping):
        return {name: value for name, value in result.items() if name != "jump_to"}
    if isinstance(result, (list, tuple)):
        return [pair for pair in result if pair[0] != "jump_to"]
    return result
