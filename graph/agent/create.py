"""`create_agent`: a model, its tools and its middleware as one compiled graph."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pregel.channels.base import MISSING
from pregel.errors import GraphDefinitionError, nearest
from pregel.graph.agent.layout import Layout, check_names
from pregel.graph.agent.middleware.base import forms_of
from pregel.graph.agent.middleware.checking import check_middleware
from pregel.graph.agent.middleware.own_model import resolved
from pregel.graph.agent.modelnode import ModelNode
from pregel.graph.agent.schemas import Declaration, merge_schemas
from pregel.graph.agent.state import AgentState, RunState
from pregel.graph.agent.structured import ProviderStrategy, as_strategy
from pregel.graph.agent.tools import tools_by_name
from pregel.graph.messages import SystemMessage
from pregel.graph.state import StateGraph
from pregel.text import show

if TYPE_CHECKING:
    from pregel.checkpoint.base import Checkpointer
    from pregel.graph.agent.middleware.base import AgentMiddleware
    from pregel.graph.compile import CompiledStateGraph
    from pregel.store.base import BaseStore
    from pregel.types import Durability, GroupCommit, OnBusy

__all__ = ["create_agent"]


def create_agent(
    model: Any,
    tools: Sequence[Any] | None = (),
    *,
    system_prompt: str | SystemMessage | None = None,
    middleware: Sequence[AgentMiddleware] = (),
    response_format: Any = None,
    state_schema: Any = None,
    context_schema: Any = None,
    checkpointer: Checkpointer | bool | None = None,
    store: BaseStore | None = None,
    interrupt_before: Sequence[str] | str | None = None,
    interrupt_after: Sequence[str] | str | None = None,
    debug: bool = False,
    name: str | None = None,
    handle_tool_errors: Any = MISSING,
    durability: Durability | GroupCommit = "sync",
    on_busy: OnBusy = "reject",
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return an agent: a model that calls tools until it has an answer, as a compiled graph.

    Its nodes are `model`, `tools` where there is something to run, and one for each hook, named
    `<middleware>.<hook>`. Each call of a tool is a task of its own.

    Args:
        model: A `ChatModel`, a chat model of LangChain, or a name such as "openai:gpt-5".
        tools: Functions, what `@tool` made, tools of LangChain, compiled graphs; and dicts, which describe tools that
            the provider runs.
        system_prompt: What the model is told first; it is no part of the state.
        middleware: What else happens around the model and the tools; see `AgentMiddleware`.
        response_format: The type of the answer: a pydantic model, a dataclass, a `TypedDict`, a union of them or a JSON
            schema; or a `ToolStrategy` or `ProviderStrategy` of it. The answer is the state's `structured_response`.
        state_schema: The state, where it has fields of its own: a `TypedDict` that extends `AgentState`, or any other
            schema, to which the fields of `AgentState` are added.
        context_schema: What `context=` of a run must be.
        checkpointer: Where runs are stored; see `StateGraph.compile`.
        store: Long-term memory.
        interrupt_before: Nodes before which a run stops, to go on when it is run with None as input; "*" for all.
        interrupt_after: Nodes after which it does.
        debug: Find nodes that change their state in place; see `StateGraph.compile`.
        name: The agent's name, in messages, drawings and traces; the model's messages have it as theirs.
        handle_tool_errors: Which errors of tools the model is told of; see `ToolNode`. By default those of arguments.
        durability: When what a run commits is stored.
        on_busy: What a run does whose thread is taken by another one.

    Raises:
        SchemaError: The schemas can't be merged.
        GraphDefinitionError: An argument is not what it can be; two tools or two middlewares have one name; a hook is
            misspelt, or declares a jump that there is not; or middleware names a tool that the agent does not have.
        ModelError: The model's name means none.

    Warns:
        PregelWarning: Two schemas declare a field differently; the later one counts.
    """
    model = resolved(model, "create_agent")
    middleware = listed("middleware", middleware)
    check_middleware(middleware)
    check_names(middleware)
    check_texts(name, system_prompt)
    strategy = as_strategy(response_format)
    around_model = [each for each in middleware if forms_of(each, "wrap_model_call") != (None, None)]
    asks_forms = strategy is not None or bool(around_model)
    schemas = merge_schemas(
        name or "agent",
        [
            *([Declaration("every agent", RunState)] if asks_forms else []),
            *(Declaration(f"middleware {each.name!r}", each.state_schema) for each in middleware),
            Declaration("the agent", state_schema or AgentState),
        ],
        MISSING if strategy is None else strategy.annotation,
    )
    given = [*(tool for each in middleware for tool in each.tools), *listed("tools", () if tools is None else tools)]
    described = [tool for tool in given if isinstance(tool, Mapping)]
    local = tools_by_name(tool for tool in given if not isinstance(tool, Mapping))
    check_answers(strategy, local)
    check_named(middleware, [*local, *map(name_of, described)])
    around_tools = [each for each in middleware if forms_of(each, "wrap_tool_call") != (None, None)]
    layout = Layout(
        middleware,
        has_tools=bool(local or around_tools),
        direct=frozenset(tool.name for tool in local.values() if tool.return_direct),
        has_form=strategy is not None,
        asks_forms=asks_forms,
    )
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(
        schemas.state, context_schema, input_schema=schemas.door, output_schema=schemas.door
    )
    ask = ModelNode(
        model=model,
        tools=[*local.values(), *described],
        system_message=SystemMessage(system_prompt) if isinstance(system_prompt, str) else system_prompt,
        response_format=strategy,
        wrappers=around_model,
        name=name,
        local=None if around_tools else frozenset(local),
        folding=schemas.folding,
        router=layout.router if layout.after_model is None else None,
    )
    run = None
    if layout.has_tools:
        from pregel.graph.agent.agenttools import AgentTools  # noqa: PLC0415 - agents without tools do not load it

        run = AgentTools.of(list(local.values()), around_tools, layout.router, handle_tool_errors)
    layout.build(builder, ask, run, schemas.view)
    return builder.compile(
        checkpointer,
        name=name or "agent",
        debug=debug,
        store=store,
        durability=durability,
        on_busy=on_busy,
        interrupt_before=interrupt_before,
        interrupt_after=interrupt_after,
    )


def name_of(described: Mapping[str, Any]) -> str:
    """Return the name of a tool that a dict describes; empty where it has none, as tools of providers may.

    Raises:
        GraphDefinitionError: It describes a function, and these are called by name.
    """
    function = described.get("function")
    name = described.get("name") or (function.get("name") if isinstance(function, Mapping) else None)
    if not name and (function is not None or "parameters" in described or described.get("type") == "function"):
        raise GraphDefinitionError(
            f'the tool {show(described)} has no "name": give a dict with "name", "description" and "parameters"'
        )
    return str(name or "")


def listed(option: str, given: Any) -> list[Any]:
    """Return what an argument lists.

    Raises:
        GraphDefinitionError: It is no list; one thing by itself is none.
    """
    if isinstance(given, Collection | Iterator) and not isinstance(given, str | bytes | Mapping):
        return list(given)
    raise GraphDefinitionError(f"{option} takes a list, not {show(given)} itself: {option}=[...]")


def check_texts(name: Any, system_prompt: Any) -> None:
    """Check the agent's name and its prompt.

    Raises:
        GraphDefinitionError: One is neither a text nor left out.
    """
    if not (name is None or isinstance(name, str)):
        raise GraphDefinitionError(f"create_agent(name={show(name)}): a name is a text")
    if not (system_prompt is None or isinstance(system_prompt, str) or getattr(system_prompt, "type", "") == "system"):
        raise GraphDefinitionError(
            f"create_agent(system_prompt={show(system_prompt)}): a prompt is a text or a SystemMessage; one that "
            "depends on the run is made by @dynamic_prompt"
        )


def check_named(middleware: Sequence[AgentMiddleware], names: Sequence[str]) -> None:
    """Check that the agent has the tools that its middleware is told of: a misspelt one would be guarded by nobody.

    Raises:
        GraphDefinitionError: It lacks one.
    """
    for each in middleware:
        for name in each.tool_names:
            if name not in names:
                raise GraphDefinitionError(
                    f"middleware {each.name!r} names the tool {name!r}, which the agent does not have."
                    f"{nearest(name, names)} It has {', '.join(filter(None, names)) or 'none'}"
                )


def check_answers(strategy: Any, local: Mapping[str, Any]) -> None:
    """Check that no tool has the name of a form of answer.

    Raises:
        GraphDefinitionError: One has.
    """
    for schema in () if strategy is None else strategy.schemas:
        if schema.name in local and not isinstance(strategy, ProviderStrategy):
            raise GraphDefinitionError(
                f"the tool {schema.name!r} has the name of the response format, which the model calls as a tool: "
                "rename one of them"
            )
