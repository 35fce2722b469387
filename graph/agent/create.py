"""`create_agent`: a model, its tools and its middleware as one compiled graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pregel.channels.base import MISSING
from pregel.errors import GraphDefinitionError, nearest
from pregel.graph.agent.layout import Layout, check_names
from pregel.graph.agent.middleware.base import AgentMiddleware, forms_of
from pregel.graph.agent.modelnode import ModelNode
from pregel.graph.agent.schemas import Declaration, merge_schemas
from pregel.graph.agent.state import AgentState
from pregel.graph.agent.structured import as_strategy
from pregel.graph.agent.tools import tools_by_name
from pregel.graph.messages import SystemMessage
from pregel.graph.state import StateGraph

if TYPE_CHECKING:
    from pregel.checkpoint.base import Checkpointer
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
        GraphDefinitionError: Two tools or two middlewares have one name, a hook declares a jump that there is not, or
            `response_format` is no schema; or middleware names a tool that the agent does not have.

    Warns:
        PregelWarning: Two schemas declare a field differently; the later one counts.
    """
    if isinstance(model, str):
        from pregel.graph.agent.models.named import named_model  # noqa: PLC0415 - only where a model is named

        model = named_model(model)
    if isinstance(middleware, AgentMiddleware):
        raise GraphDefinitionError(f"middleware takes a list, not {middleware.name!r} itself: middleware=[...]")
    check_names(middleware)
    strategy = as_strategy(response_format)
    schemas = merge_schemas(
        name or "agent",
        [
            *(Declaration(f"middleware {each.name!r}", each.state_schema) for each in middleware),
            Declaration("the agent", state_schema or AgentState),
        ],
        MISSING if strategy is None else strategy.annotation,
    )
    listed = [*(tool for each in middleware for tool in each.tools), *(tools or ())]
    described = [tool for tool in listed if isinstance(tool, Mapping)]
    local = tools_by_name(tool for tool in listed if not isinstance(tool, Mapping))
    check_answers(strategy, local)
    check_named(middleware, [*local, *map(name_of, described)])
    around_tools = [each for each in middleware if forms_of(each, "wrap_tool_call") != (None, None)]
    layout = Layout(
        middleware,
        has_tools=bool(local or around_tools),
        direct=frozenset(tool.name for tool in local.values() if tool.return_direct),
    )
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(
        schemas.state, context_schema, input_schema=schemas.door, output_schema=schemas.door
    )
    ask = ModelNode(
        model=model,
        tools=[*local.values(), *described],
        system_message=SystemMessage(system_prompt) if isinstance(system_prompt, str) else system_prompt,
        response_format=strategy,
        wrappers=[each for each in middleware if forms_of(each, "wrap_model_call") != (None, None)],
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
    """Return the name of a tool that a dict describes; empty where it has none, as tools of providers may."""
    return str(described.get("name") or (described.get("function") or {}).get("name") or "")


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
        if schema.name in local and not hasattr(strategy, "response_format"):
            raise GraphDefinitionError(
                f"the tool {schema.name!r} has the name of the response format, which the model calls as a tool: "
                "rename one of them"
            )
