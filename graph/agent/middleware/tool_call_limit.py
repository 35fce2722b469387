"""Middleware that limits how often tools are called."""

from __future__ import annotations

from operator import gt
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, NotRequired

from pregel.errors import PregelError
from pregel.graph.agent.middleware.base import AgentMiddleware, hook_config
from pregel.graph.agent.middleware.limits import checked_limits, told_limits
from pregel.graph.agent.state import AgentState
from pregel.graph.agent.turns import answer_to, pending_calls
from pregel.graph.messages import AIMessage
from pregel.graph.schema import PrivateStateAttr

if TYPE_CHECKING:
    from collections.abc import Collection

    from pregel.runtime import Runtime

__all__ = ["ToolCallLimitExceededError", "ToolCallLimitMiddleware", "ToolCallLimitState"]

#: The key of a limit on all tools together: no tool can have this name.
ALL: Final = "*"


class ToolCallLimitState(AgentState[Any]):
    """How often tools were called: by the tool that is limited, or "*" for a limit on all."""

    tool_call_limit_thread_counts: NotRequired[Annotated[dict[str, int], PrivateStateAttr]]
    #: Kept in the state as well, so that a run which is resumed counts on.
    tool_call_limit_run_counts: NotRequired[Annotated[dict[str, int], PrivateStateAttr]]


class ToolCallLimitExceededError(PregelError, RuntimeError):
    """The model asked for more calls of a tool than there may be. None of its message was made."""

    def __init__(
        self,
        thread_count: int,
        run_count: int,
        thread_limit: int | None,
        run_limit: int | None,
        tool_name: str | None = None,
    ) -> None:
        exceeded = told_limits((thread_count, thread_limit), (run_count, run_limit), gt)
        super().__init__(f"The limit of {called(tool_name)} would be exceeded: {exceeded}.")
        #: What the counts would be with the calls that were asked for.
        self.thread_count = thread_count
        self.run_count = run_count
        self.thread_limit = thread_limit
        self.run_limit = run_limit
        self.tool_name = tool_name


class ToolCallLimitMiddleware(AgentMiddleware):
    """Limits how often a tool, or all tools together, may be called.

    Calls are counted after the model's message that asks for them, in their order, so that of several in one message
    exactly as many are made as there may be. Calls that are not made, because of a limit or a person's decision, do not
    count; list this one before `HumanInTheLoopMiddleware`, whose `after_model` then comes first. For the same reason
    list a limit that ends the run after the others: those after it have counted the message's calls when it says that
    none is made. A run that was interrupted and goes on is the same run.

    Args:
        tool_name: The tool; None for all tools together.
        thread_limit: How many calls a thread may have in all its runs; None for any number.
        run_limit: How many calls one run may have; None for any number.
        exit_behavior: What becomes of a message that asks for more. "continue": the calls that are too many are
            answered with an error for the model, the others are made. "end": no call of the message is made, and the
            run ends with a message of the model's that says why. "error": `ToolCallLimitExceededError` is raised.

    Raises:
        ValueError: No limit is given, or an option has a value that it can't have.
    """

    state_schema: ClassVar[Any] = ToolCallLimitState

    def __init__(
        self,
        *,
        tool_name: str | None = None,
        thread_limit: int | None = None,
        run_limit: int | None = None,
        exit_behavior: Literal["continue", "error", "end"] = "continue",
    ) -> None:
        who = "ToolCallLimitMiddleware"
        if not (tool_name is None or isinstance(tool_name, str)):
            raise ValueError(f"{who}(tool_name={tool_name!r}): give the name of a tool, or None for all together")
        checked_limits(who, thread_limit, run_limit, exit_behavior, ("continue", "error", "end"))
        self._tool = tool_name
        self._key = ALL if tool_name is None else tool_name
        self._thread_limit = thread_limit
        self._run_limit = run_limit
        self._behavior = exit_behavior

    @property
    def name(self) -> str:
        """Its name in the graph, with the tool's: there may be one for each tool and one for all."""
        return type(self).__name__ if self._tool is None else f"{type(self).__name__}[{self._tool}]"

    @property
    def tool_names(self) -> Collection[str]:
        """See `AgentMiddleware`."""
        return () if self._tool is None else (self._tool,)

    def overrides(self, method: str) -> bool:
        """Return whether it has a method: without a limit for a run nothing happens at the beginning of one."""
        return super().overrides(method) and (method != "before_agent" or self._run_limit is not None)

    def before_agent(self, state: Any, runtime: Runtime[Any]) -> Any:  # noqa: ARG002 - the form of a hook
        """Begin to count the calls of a run."""
        return {"tool_call_limit_run_counts": {**state.get("tool_call_limit_run_counts", {}), self._key: 0}}

    @hook_config(can_jump_to=["end"])
    def after_model(self, state: Any, runtime: Runtime[Any]) -> Any:  # noqa: ARG002 - the form of a hook
        """Count the calls that may be made, and deal with those that are too many.

        Raises:
            ToolCallLimitExceededError: There are such calls, and the user wants it raised.
        """
        pending = pending_calls(state["messages"])
        asked = [call for call in pending if self._tool is None or call["name"] == self._tool]
        if not asked:
            return None
        threads = state.get("tool_call_limit_thread_counts", {})
        runs = state.get("tool_call_limit_run_counts", {})
        thread_count, run_count = threads.get(self._key, 0), runs.get(self._key, 0)
        allowed = self._allowed(len(asked), thread_count, run_count)
        update: dict[str, Any] = {}
        if allowed < len(asked):
            error = ToolCallLimitExceededError(
                thread_count + len(asked), run_count + len(asked), self._thread_limit, self._run_limit, self._tool
            )
            if self._behavior == "error":
                raise error
            if self._behavior == "end":
                # No call stays without an answer: providers refuse such a conversation.
                answers = [answer_to(call, f"Not made: {error}", error=True) for call in pending]
                told = [*answers, AIMessage(str(error))]
                # Said outright if there is none: an agent with a `response_format` does not end without by accident.
                answer = state.get("structured_response")
                return {"jump_to": "end", "messages": told, "structured_response": answer}
            what = "tools" if self._tool is None else repr(self._tool)
            text = f"Not made: {error} Don't call {what} again."
            update["messages"] = [answer_to(call, text, error=True) for call in asked[allowed:]]
        if allowed:
            update["tool_call_limit_thread_counts"] = {**threads, self._key: thread_count + allowed}
            update["tool_call_limit_run_counts"] = {**runs, self._key: run_count + allowed}
        return update

    def _allowed(self, asked: int, thread_count: int, run_count: int) -> int:
        """Return how many of the calls that are asked for may be made."""
        limits = ((self._thread_limit, thread_count), (self._run_limit, run_count))
        return min(asked, *(max(0, limit - count) for limit, count in limits if limit is not None))


def called(tool_name: str | None) -> str:
    """Return what is limited, as words."""
    return "tool calls" if tool_name is None else f"calls of {tool_name!r}"
