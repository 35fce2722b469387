"""Tools that an MCP server offers, as tools of an agent. Needs the extra `pregel[mcp]`, the official SDK."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

from pregel.drivers.loops import trio_is_running
from pregel.errors import PregelError
from pregel.graph.agent.tooltype import Tool
from pregel.graph.blocks import audio_block, file_block, image_block, text_block
from pregel.graph.messages import ToolMessage
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pregel.graph.agent.injection import ToolRuntime

__all__ = ["McpConnectionError", "McpToolError", "mcp_tools"]

#: The type of what is not said to be of another.
BYTES: Final = "application/octet-stream"


class McpToolError(PregelError):
    """An MCP server, or the way to it, failed at listing or calling a tool; it is not the model's fault."""


class McpConnectionError(McpToolError):
    """The connection to an MCP server is closed, or the server has ended."""


class RefusedError(McpToolError):
    """The server refuses the parameters of a request; the message is the server's."""


async def mcp_tools(session: Any) -> list[Tool]:
    """Return the tools that an MCP server offers now, in its order.

    The tools are async: run the graph by `ainvoke` or `astream`, on asyncio or trio, inside the block in which the
    session is open. Arguments are not checked here but by the server, which gave the JSON schema. A result is told to
    the model as text or content blocks; its structured content is the `ToolMessage`'s artifact. What the server calls
    an error of the tool is told to the model as one. `as_tool(tool, name=...)` renames a tool where two servers use
    one name.

    Args:
        session: An open `mcp.ClientSession`, initialised, or an open `mcp.Client`, which also answers a server's
            questions by its callbacks.

    Raises:
        TypeError: It is neither.
        McpConnectionError: The connection is closed.
        McpToolError: The server can't list its tools.
    """
    try:
        from mcp import Client, ClientSession  # noqa: PLC0415 - an extra
        from mcp.types import PaginatedRequestParams  # noqa: PLC0415 - as above
    except ImportError:  # then nobody has a session
        raise TypeError(
            f"mcp_tools takes a session of the official MCP SDK, not {show(session)}: pip install 'pregel[mcp]'"
        ) from None
    if not isinstance(session, (Client, ClientSession)):
        raise TypeError(f"mcp_tools takes an open mcp.ClientSession or mcp.Client, not {show(session)}")

    async def page(cursor: str | None) -> Any:
        if isinstance(session, Client):
            return await session.list_tools(cursor=cursor)
        return await session.list_tools(params=PaginatedRequestParams(cursor=cursor))

    found: list[Any] = []
    seen: set[str | None] = set()
    cursor: str | None = None
    while cursor not in seen:
        seen.add(cursor)
        listed = await asked("the list of tools", lambda cursor=cursor: page(cursor))  # type: ignore[misc]  # mypy can't type a lambda's default
        found += listed.tools
        cursor = listed.next_cursor
        if cursor is None:
            return [from_mcp(session, described) for described in found]
    raise McpToolError(f"the MCP server sends the page {cursor!r} of its list of tools again and again")


def from_mcp(session: Any, described: Any) -> Tool:
    """Return one tool of a server."""
    name, home = described.name, running_loop()

    async def call(runtime: ToolRuntime[Any, Any] | None, /, **args: Any) -> Any:
        if running_loop() is not home:
            raise McpToolError(
                f"the MCP tool {name!r} was called on another event loop than its session lives on: run the graph by "
                "`ainvoke` or `astream` where the session was opened, not by `invoke`"
            )
        try:
            result = await asked(f"the tool {name!r}", lambda: session.call_tool(name, args))
        except RefusedError as error:
            return failed(name, str(error), None, runtime)
        content, data = content_of(result), result.structured_content
        return failed(name, content, data, runtime) if result.is_error else (content, data)

    return Tool(
        name=name,
        description=described.description or described.title or "",
        parameters=described.input_schema,
        coroutine=call,
        response_format="content_and_artifact",
        origin=described,
        takes_runtime=True,
    )


def running_loop() -> Any:
    """Return what tells the running event loop from others."""
    if trio_is_running():
        import trio  # noqa: PLC0415 - only where trio runs

        return trio.lowlevel.current_trio_token()
    return asyncio.get_running_loop()


async def asked(what: str, request: Callable[[], Awaitable[Any]]) -> Any:
    """Return a server's answer.

    Args:
        what: What is asked for, for error messages.
        request: Asks.

    Raises:
        McpConnectionError: The connection is closed.
        RefusedError: The parameters are wrong.
        McpToolError: Anything else that goes wrong.
    """
    from mcp import MCPError  # noqa: PLC0415 - an extra
    from mcp.types import CONNECTION_CLOSED, INVALID_PARAMS  # noqa: PLC0415 - as above
    from pydantic import ValidationError  # noqa: PLC0415 - only to name what goes wrong

    try:
        return await request()
    except MCPError as error:
        if error.code == CONNECTION_CLOSED:
            raise McpConnectionError(
                f"asking an MCP server for {what}: the connection is closed, because the server has ended or the "
                "session was left. Open a new session, and make the tools and the agent of it"
            ) from error
        if error.code == INVALID_PARAMS:
            raise RefusedError(error.message) from error
        raise McpToolError(f"asking an MCP server for {what}: it answers with error {error.code}: {error}") from error
    except (RuntimeError, TimeoutError, ValidationError) as error:
        raise McpToolError(f"asking an MCP server for {what}: {error}") from error


def failed(name: str, content: Any, artifact: Any, runtime: ToolRuntime[Any, Any] | None) -> ToolMessage:
    """Return what tells the model that its call failed.

    Raises:
        McpToolError: No model made the call.
    """
    if runtime is None or runtime.tool_call_id is None:
        raise McpToolError(f"the MCP tool {name!r} failed: {content}")
    return ToolMessage(content, tool_call_id=runtime.tool_call_id, name=name, status="error", artifact=artifact)


def content_of(result: Any) -> str | list[str | dict[str, Any]]:
    """Return the content of a `CallToolResult` as that of a message; where there is none, the structured one."""
    blocks = [block_of(block) for block in result.content]
    if not blocks:
        data = result.structured_content
        return "" if data is None else json.dumps(data, ensure_ascii=False)
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        text: str = blocks[0]["text"]
        return text
    return [*blocks]


def block_of(block: Any) -> dict[str, Any]:
    """Return a content block of MCP as one of ours."""
    match block.type:
        case "text":
            return text_block(block.text)
        case "image":
            return image_block(data=block.data, mime_type=block.mime_type)
        case "audio":
            return audio_block(data=block.data, mime_type=block.mime_type)
        case "resource_link":
            kind = block.mime_type or ""
            if kind.startswith("image/") and block.uri.startswith(("http://", "https://")):
                return image_block(url=block.uri, mime_type=kind)
            # No model opens links of other kinds: it is told of them.
            return text_block(f"{block.title or block.name}{kind and f' ({kind})'}: {block.uri}")
        case _:
            return resource_block(block.resource)


def resource_block(resource: Any) -> dict[str, Any]:
    """Return a resource that is part of a result as a content block."""
    if hasattr(resource, "text"):
        return text_block(resource.text)
    kind = resource.mime_type or BYTES
    for start, make in (("image/", image_block), ("audio/", audio_block)):
        if kind.startswith(start):
            return make(data=resource.blob, mime_type=kind)
    name = resource.uri.rstrip("/").rpartition("/")[2] or None
    return file_block(data=resource.blob, mime_type=kind, filename=name)
