"""LangChain's tools and compiled graphs as tools."""

from __future__ import annotations

import sys
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import ValidationError

from pregel.callables import annotations_of
from pregel.errors import InterruptSwallowedError
from pregel.graph.agent.arguments import ToolArgumentsError, ToolDefinitionError, faults, shown
from pregel.graph.agent.injection import injection_of
from pregel.graph.agent.tooltype import Tool
from pregel.graph.messages import HumanMessage, ToolMessage
from pregel.reporter import INTERRUPT
from pregel.types import Command

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pregel.graph.agent.injection import Injected, ToolRuntime
    from pregel.main import Pregel

__all__ = ["from_graph", "from_langchain"]

OWN_CODE: Final = "Raised by the tool's own code, and not by the check of its arguments."


def from_langchain(thing: Any) -> Tool:
    """Return a LangChain tool as one of ours: it is invoked with a tool call and the run's config, as LangChain does.

    Its callbacks, its checks and its error handling are its own. What is injected into it is found by its markers.
    """
    base = sys.modules["langchain_core.tools.base"].BaseTool
    structured = hasattr(thing, "func") and hasattr(thing, "coroutine")
    has_sync = not structured or thing.func is not None
    has_async = thing.coroutine is not None if structured else type(thing)._arun is not base._arun  # noqa: SLF001 - LangChain's way to define a tool
    injected = injected_of(thing)
    mine = carrying(thing)

    def call_of(runtime: ToolRuntime[Any, Any] | None, values: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        call_id = (runtime and runtime.tool_call_id) or ""
        call = {"type": "tool_call", "name": thing.name, "args": values, "id": call_id}
        return call, None if runtime is None else dict(runtime.config)

    def refused(error: ValidationError, values: Mapping[str, Any]) -> Exception:
        if OWN_CODE in getattr(error, "__notes__", ()):
            return error
        given = {name: value for name, value in values.items() if name not in injected}
        return ToolArgumentsError(faults(error, thing.name, given, set(thing.args) - set(injected), injected))

    def invoke(runtime: ToolRuntime[Any, Any] | None, /, **values: Any) -> Any:
        try:
            return carried(mine.invoke(*call_of(runtime, values)))
        except ValidationError as error:
            raise refused(error, values) from error.__cause__

    async def ainvoke(runtime: ToolRuntime[Any, Any] | None, /, **values: Any) -> Any:
        try:
            return carried(await mine.ainvoke(*call_of(runtime, values)))
        except ValidationError as error:
            raise refused(error, values) from error.__cause__

    return Tool(
        name=thing.name,
        description=thing.description,
        parameters=shown(schema_of(thing), injected),
        function=invoke if has_sync else None,
        coroutine=ainvoke if has_async else None,
        return_direct=thing.return_direct,
        injected=injected,
        origin=thing,
        needs_asyncio=True,
        takes_runtime=True,
    )


def schema_of(thing: Any) -> Mapping[str, Any]:
    """Return the JSON schema of a LangChain tool's arguments.

    Raises:
        ToolDefinitionError: It has none.
    """
    schema = thing.tool_call_schema
    try:
        return schema if isinstance(schema, dict) else schema.model_json_schema()
    except Exception as error:
        raise ToolDefinitionError(f"the arguments of tool {thing.name!r} have no JSON schema: {error}") from error


def injected_of(thing: Any) -> dict[str, Injected]:
    """Return how the parameters of a LangChain tool are filled that the model does not give."""
    found: dict[str, Injected] = {}
    for name, field in getattr(thing.args_schema, "model_fields", {}).items():
        annotation = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
        how = injection_of(name, annotation, optional=not field.is_required())
        if how is not None:
            found[name] = how
    function = getattr(thing, "func", None) or getattr(thing, "coroutine", None) or type(thing)._run  # noqa: SLF001 - as above
    defaults = getattr(function, "__defaults__", None) or ()
    code = getattr(function, "__code__", None)
    optional = set(code.co_varnames[: code.co_argcount][-len(defaults) :]) if code is not None and defaults else set()
    optional |= set(getattr(function, "__kwdefaults__", None) or ())
    for name, annotation in annotations_of(function, "", thing.name, None).items():
        if name == "return" or name in found:
            continue
        how = injection_of(name, annotation, optional=name in optional)
        if how is not None and how.kind != "config":  # LangChain gives the config itself
            found[name] = how
    return found


@lru_cache(maxsize=1)
def carrier() -> Any:
    """Return the class in which our commands and messages pass through a LangChain tool, which would print others."""
    from langchain_core.messages.tool import ToolOutputMixin  # noqa: PLC0415 - it is loaded: there is a tool of it

    class Carried(ToolOutputMixin):
        def __init__(self, result: Any) -> None:
            self.result = result

        def __repr__(self) -> str:
            return repr(self.result)

    return Carried


def carrying(thing: Any) -> Any:
    """Return a copy of a LangChain tool whose code may return our commands and messages."""
    mine = thing.model_copy()

    def carry(result: Any) -> Any:
        ours = result if isinstance(result, (list, tuple)) and result else [result]
        return carrier()(result) if all(isinstance(each, (Command, ToolMessage)) for each in ours) else result

    @wraps(thing._run)  # noqa: SLF001 - LangChain's way to define a tool
    def run(*args: Any, **given: Any) -> Any:
        try:
            return carry(thing._run(*args, **given))  # noqa: SLF001 - as above
        except ValidationError as error:
            error.add_note(OWN_CODE)
            raise

    @wraps(thing._arun)  # noqa: SLF001 - as above
    async def arun(*args: Any, **given: Any) -> Any:
        try:
            return carry(await thing._arun(*args, **given))  # noqa: SLF001 - as above
        except ValidationError as error:
            error.add_note(OWN_CODE)
            raise

    # Past pydantic, which takes no names that begin with an underscore; an attribute of the object comes before the
    # method of its class.
    object.__setattr__(mine, "_run", run)
    object.__setattr__(mine, "_arun", arun)
    return mine


def carried(result: Any) -> Any:
    """Return what a LangChain tool's code returned, if it was carried through."""
    return result.result if isinstance(result, carrier()) else result


def from_graph(graph: Pregel, name: str | None, description: str | None) -> Tool:
    """Return a graph as a tool; see `pregel.graph.agent.tools.as_tool`.

    It runs inside the task that calls the tool: what it asks is asked by the outermost graph, and where that is stored,
    so is this one, and goes on where it stood.

    Raises:
        ToolDefinitionError: It has no schema of its input.
    """
    called = name or graph.name
    talks = graph.takes("messages")
    if talks:
        parameters: dict[str, Any] = {
            "type": "object",
            "properties": {"request": {"type": "string", "description": "What is to be done, with all that it needs."}},
            "required": ["request"],
            "additionalProperties": False,
        }
    elif hasattr(graph, "get_input_jsonschema"):
        parameters = shown(graph.get_input_jsonschema(), {})
    else:
        raise ToolDefinitionError(f"graph {called!r} has no schema of its input, which a model must know to call it")

    def given(values: dict[str, Any]) -> dict[str, Any]:
        if not talks:
            return values
        request = values.get("request")
        if not isinstance(request, str) or len(values) > 1:
            raise ToolArgumentsError(
                f"Tool {called!r} takes one argument, 'request', a text. Given were {values!r}. Call it again with one."
            )
        return {"messages": [HumanMessage(request)]}

    def invoke(**values: Any) -> Any:
        return result_of(graph.invoke(given(values)), called)

    async def ainvoke(**values: Any) -> Any:
        return result_of(await graph.ainvoke(given(values)), called)

    return Tool(
        name=called,
        description=description or "",
        parameters=parameters,
        function=None if graph.needs_loop else invoke,
        coroutine=ainvoke if graph.uses_loop else None,
    )


def result_of(shown_state: Any, name: str) -> Any:
    """Return what a graph's run comes to: its structured response, the content of its last message, or its output.

    Raises:
        InterruptSwallowedError: The run is paused, and nothing around it is stored that could wait.
    """
    if isinstance(shown_state, dict) and INTERRUPT in shown_state:
        raise InterruptSwallowedError(
            f"graph {name!r} stopped inside the tool that runs it, for {shown_state[INTERRUPT]!r}, and nothing waits "
            "for it. Compile the outermost graph with a checkpointer, and this one without"
        )
    if isinstance(shown_state, dict) and shown_state.get("structured_response") is not None:
        return shown_state["structured_response"]
    messages = shown_state.get("messages") if isinstance(shown_state, dict) else None
    return messages[-1].content if messages else shown_state
