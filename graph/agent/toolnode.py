"""The node that calls tools, for any graph and for agents."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal

from pregel.errors import GraphInterrupt, NodeInputError, nearest
from pregel.graph.agent.arguments import ToolArgumentsError
from pregel.graph.agent.handling import FAULTS_OF_THE_GRAPH, read_handling
from pregel.graph.agent.injection import ToolRuntime
from pregel.graph.agent.requests import ToolCallRequest
from pregel.graph.agent.results import answer, answers_as_updates
from pregel.graph.agent.tools import as_tool, tools_by_name
from pregel.graph.agent.turns import answer_to, last_turn, pending_calls, plain
from pregel.graph.agent.wrappers import acall_wrapped, call_wrapped, read_wrappers
from pregel.observe import TRACING
from pregel.runtime import FRAME, Runtime, current_frame, get_runtime
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pregel.graph.agent.handling import HandleToolErrors
    from pregel.graph.agent.results import Answer
    from pregel.graph.agent.tooltype import Tool
    from pregel.graph.agent.traced import TracedTool
    from pregel.graph.messages import ToolCall
    from pregel.runtime import Frame

__all__ = ["ToolNode", "tools_condition"]

#: Of these a tool gets copies: it may change its own.
CONTAINERS: Final = frozenset({dict, list, set})


class ToolNode:
    """Calls the tools that the last message of a model asks for, and adds their answers to the conversation.

    As a node of a graph it makes all calls of the message that have no answer yet, side by side; the answers come in
    the order of the calls. Started by `Send(name, call)` it makes that call; so each has a task, which pauses, fails
    and is stored by itself. In one task a pause of one call means that all of them are made again.

    Args:
        tools: Whatever `as_tool` takes.
        name: How messages name the node.
        handle_tool_errors: Which errors become a message to the model; others end the run. By default those about
            arguments that do not fit. Questions of `interrupt` always pass, and so do errors that tell of a fault in
            the graph, such as a missing store, and those of the wrappers' own. The wrappers see a tool's errors first,
            and the messages only where arguments do not fit.
        messages_key: The field of the state that holds the messages.
        wrappers: What stands around each call, the outermost first: functions of a `ToolCallRequest` and a handler,
            or middleware.

    Raises:
        ToolDefinitionError: Something is no tool, or two tools have one name.
    """

    #: Each tool knows on which loops its async form runs.
    any_loop = True
    #: Only there where no tool and no wrapper must be awaited.
    invoke: Callable[..., Any]
    #: Only there where some tool or wrapper can be awaited.
    ainvoke: Callable[..., Any]

    def __init__(
        self,
        tools: Iterable[Any],
        *,
        name: str = "tools",
        handle_tool_errors: HandleToolErrors = None,
        messages_key: str = "messages",
        wrappers: Iterable[Any] = (),
    ) -> None:
        self.name = name
        #: The tools by name.
        self.tools: Mapping[str, Tool] = tools_by_name(tools)
        self.messages_key = messages_key
        self.wrappers = read_wrappers(wrappers)
        self._handled, self._text = read_handling(handle_tool_errors)
        each = self.tools.values()
        #: Whether some code must be awaited, and whether some may be.
        self.needs_loop = any(one.needs_loop for one in each) or any(one.sync is None for one in self.wrappers)
        self.uses_loop = any(one.coroutine is not None for one in each) or any(one.awaited for one in self.wrappers)
        # What the engine looks for says how the node can be run: sync code only runs in a worker thread as a whole.
        if not self.needs_loop:
            self.invoke = self._invoke
        if self.uses_loop:
            self.ainvoke = self._ainvoke

    # -- one call ----------------------------------------------------------------------------------------------------

    def run(self, call: ToolCall, runtime: Runtime[Any]) -> Answer:
        """Make one call, through the wrappers.

        Returns:
            A `ToolMessage`, a `Command`, or a list of these, one of which answers the call.

        Raises:
            ToolResultError: A tool or a wrapper returned something else.
            GraphInterrupt: The tool asks something.
            Exception: Whatever the tool raises that is not handled.
        """
        request = self.request(call, runtime)
        raised: list[Exception] = []
        try:
            return call_wrapped(self.wrappers, request, partial(self._execute, raised), self.messages_key)
        except Exception as error:  # noqa: BLE001 - whatever a tool raises is handled as the user wants it
            return self._failed(error, request.tool_call, raised)
        finally:
            raised.clear()  # they hold this frame

    async def arun(self, call: ToolCall, runtime: Runtime[Any]) -> Answer:
        """Do the same, awaited; see `run`."""
        request = self.request(call, runtime)
        raised: list[Exception] = []
        try:
            return await acall_wrapped(self.wrappers, request, partial(self._aexecute, raised), self.messages_key)
        except Exception as error:  # noqa: BLE001 - see `run`
            return self._failed(error, request.tool_call, raised)
        finally:
            raised.clear()

    def request(self, call: ToolCall, runtime: Runtime[Any]) -> ToolCallRequest:
        """Return what goes through the wrappers; without arguments that are not the model's to give."""
        call = plain(call)
        found = self.tools.get(call["name"])
        # Their own, so that a tool which adds to a list in its state changes nobody else's.
        state = {name: copy(part) if type(part) in CONTAINERS else part for name, part in runtime.state.items()}
        return ToolCallRequest(
            tool_call=call if found is None else {**call, "args": found.without_injected(call["args"])},
            tool=found,
            state=state,
            runtime=ToolRuntime(
                state,
                runtime.context,
                runtime.config,
                runtime.stream_writer,
                call["id"],
                runtime.store,
                runtime.step,
                runtime.task_id,
                tuple(self.tools.values()),
            ),
        )

    def _execute(self, raised: list[Exception], request: ToolCallRequest) -> Answer:
        """Make a call, behind all wrappers; what the tool raises is added to a list."""
        call, called = request.tool_call, tool_of(request)
        if called is None:
            return self._unknown(call)
        try:
            result = called.call(call["args"], runtime=runtime_of(request))
        except Exception as error:
            raised.append(error)
            if isinstance(error, ToolArgumentsError) and self._tells(error):  # made again it would be as wrong
                return answer_to(call, self._text(error), error=True)
            raise
        return answer(result, call, called.response_format, self.messages_key)

    async def _aexecute(self, raised: list[Exception], request: ToolCallRequest) -> Answer:
        """Do the same, awaited."""
        call, called = request.tool_call, tool_of(request)
        if called is None:
            return self._unknown(call)
        try:
            result = await called.acall(call["args"], runtime=runtime_of(request))
        except Exception as error:
            raised.append(error)
            if isinstance(error, ToolArgumentsError) and self._tells(error):  # made again it would be as wrong
                return answer_to(call, self._text(error), error=True)
            raise
        return answer(result, call, called.response_format, self.messages_key)

    def _unknown(self, call: ToolCall) -> Answer:
        """Return the answer to a call of a tool that does not exist."""
        names = ", ".join(self.tools) or "none"
        text = f"There is no tool {call['name']!r}.{nearest(call['name'], self.tools)} Tools: {names}."
        return answer_to(call, text, error=True)

    def _tells(self, error: Exception) -> bool:
        """Return whether the model is told of an error of a tool."""
        return isinstance(error, self._handled) and not isinstance(error, FAULTS_OF_THE_GRAPH)

    def _failed(self, error: Exception, call: ToolCall, raised: Iterable[Exception]) -> Answer:
        """Return the answer to a call that failed, or raise what it failed with.

        Args:
            error: What came out of the wrappers.
            call: The call.
            raised: What the tool raised in its attempts: a wrapper's own error is no tool's.

        Raises:
            Exception: The error, with a note that names the tool, if it is not handled.
        """
        if self._tells(error) and any(error is each for each in raised):
            return answer_to(call, self._text(error), error=True)
        with suppress(Exception):  # one that takes no notes goes without
            error.add_note(f"In tool {call['name']!r}, call {call['id']!r}.")
        raise error

    # -- as a node ---------------------------------------------------------------------------------------------------

    def _invoke(self, given: Any, runtime: Runtime[Any] | None = None) -> Any:
        """Make the calls that a state, or a `Send`, asks for; in threads where there are several."""
        calls = self.calls(given)
        runtime = get_runtime() if runtime is None else runtime
        if len(calls) == 1:
            return answers_as_updates([self.run(calls[0], runtime)], self.messages_key)
        from pregel.batch import run_all  # noqa: PLC0415 - where there are several

        frames = [frame_of(place) for place in range(len(calls))]

        def one(frame: Frame, call: ToolCall) -> Any:
            FRAME.set(frame)
            try:
                return self.run(call, beside(runtime, frame))
            except (Exception, GraphInterrupt) as error:  # noqa: BLE001 - looked at when all have ended
                return Raised(error)

        ended = run_all(
            [partial(one, *pair) for pair in zip(frames, calls, strict=True)],
            current_frame()[1].max_concurrency,
            keep_errors=False,
        )
        return self._gathered(ended, frames)

    async def _ainvoke(self, given: Any, runtime: Runtime[Any] | None = None) -> Any:
        """Do the same on the event loop at hand, in a task group where there are several calls."""
        calls = self.calls(given)
        runtime = get_runtime() if runtime is None else runtime
        if len(calls) == 1:
            return answers_as_updates([await self.arun(calls[0], runtime)], self.messages_key)
        from pregel.batch import run_all_async  # noqa: PLC0415 - where there are several

        frames = [frame_of(place) for place in range(len(calls))]

        async def one(frame: Frame, call: ToolCall) -> Any:
            FRAME.set(frame)  # in the context of its own that each task of a group has
            try:
                return await self.arun(call, beside(runtime, frame))
            except (Exception, GraphInterrupt) as error:  # noqa: BLE001 - looked at when all have ended
                return Raised(error)

        ended = await run_all_async(
            [partial(one, *pair) for pair in zip(frames, calls, strict=True)],
            current_frame()[1].max_concurrency,
            keep_errors=False,
        )
        return self._gathered(ended, frames)

    def _gathered(self, ended: Sequence[Any], frames: Sequence[Frame]) -> Any:
        """Return the node's result, or raise what its calls raised: an error before a question.

        Raises:
            ExceptionGroup: Several calls failed.
            Exception: One did.
            GraphInterrupt: Calls ask something; the task has all their questions, in the order of the calls.
        """
        raised = [each.error for each in ended if isinstance(each, Raised)]
        errors = [error for error in raised if isinstance(error, Exception)]
        if len(errors) > 1:
            raise ExceptionGroup(f"{len(errors)} of {len(ended)} tool calls of node {self.name!r} failed", errors)
        if errors:
            raise errors[0]
        asked = current_frame()[3]
        for frame in frames:
            asked.extend(frame[3])
        pauses = [error for error in raised if isinstance(error, GraphInterrupt)]
        if pauses:
            raise next((pause for pause in pauses if pause.error is not None), pauses[0])
        return answers_as_updates(ended, self.messages_key)

    def calls(self, given: Any) -> list[ToolCall]:
        """Return the calls to make.

        Args:
            given: The state, a call, or a list of calls.

        Raises:
            NodeInputError: It is none of these, or no model has said anything yet.
        """
        if isinstance(given, Mapping) and "name" in given and "args" in given:
            return [plain(given)]
        if isinstance(given, list) and given and all(isinstance(each, Mapping) and "args" in each for each in given):
            return [plain(each) for each in given]
        messages = (
            given.get(self.messages_key) if isinstance(given, Mapping) else getattr(given, self.messages_key, None)
        )
        if messages is None:
            raise NodeInputError(
                f"node {self.name!r} finds no field {self.messages_key!r} in {show(given)}: it takes a state that has "
                "one (see messages_key=), a tool call, or a list of tool calls"
            )
        message, _ = last_turn(messages)
        if message is not None:
            return [plain(call) for call in pending_calls(messages)]
        raise NodeInputError(
            f"node {self.name!r} finds no message of a model among {len(messages)} messages, so there is no call to "
            "make: let it follow the model, by add_conditional_edges('model', tools_condition)"
        )


class Raised:
    """What a call raised, as a value."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


def tool_of(request: ToolCallRequest) -> Tool | TracedTool | None:
    """Return the tool of a request, to which a wrapper may have given another one."""
    tool = None if request.tool is None else as_tool(request.tool)
    if tool is None or TRACING.tracer is None:
        return tool
    from pregel.graph.agent.traced import TracedTool  # noqa: PLC0415 - nothing of OpenTelemetry is loaded before

    return TracedTool(tool, request.tool_call)


def runtime_of(request: ToolCallRequest) -> ToolRuntime[Any, Any]:
    """Return the runtime of a request, whose call and state a wrapper may have changed."""
    return replace(request.runtime, state=dict(request.state), tool_call_id=request.tool_call["id"])


def frame_of(place: int) -> Frame:
    """Return what one of the calls of a task runs in.

    It is a task of its own as far as its code sees: the names of what it asks, and of the graphs that it runs, do not
    depend on which call was first.
    """
    task, run, _, _, *rest = current_frame()
    return (task._replace(key=f"{task.id}.{place}"), run, count(), [], *rest)  # type: ignore[return-value]  # one of each


def beside(runtime: Runtime[Any], frame: Frame) -> Runtime[Any]:
    """Return the runtime for one of the calls of a task: no other call has its `task_id`."""
    return replace(runtime, task_id=f"{runtime.task_id}.{frame[0].id.rpartition('.')[2]}")


def tools_condition(state: Any, messages_key: str = "messages") -> Literal["tools", "__end__"]:
    """Return "tools" if the last message asks for tool calls, else END: a path for `add_conditional_edges`.

    Args:
        state: The state, or the messages alone.
        messages_key: The field of the state that holds the messages.

    Raises:
        NodeInputError: There are no messages.
    """
    messages = state if isinstance(state, list) else None
    if messages is None:
        messages = state.get(messages_key) if isinstance(state, Mapping) else getattr(state, messages_key, None)
    if not messages:
        raise NodeInputError(f"tools_condition finds no messages under {messages_key!r} in {show(state)}")
    return "tools" if getattr(messages[-1], "tool_calls", None) else "__end__"
