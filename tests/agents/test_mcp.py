"""Tools of an MCP server: a real one, in a process of its own, on its standard input and output."""

import asyncio
import subprocess
import sys
from base64 import b64encode
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import anyio
import anyio.to_thread
import pytest
from mcp import Client, ClientSession, StdioServerParameters, stdio_client, types

from pregel import StateGraph
from pregel.graph.agent import mcp as agent_mcp
from pregel.graph.agent.injection import ToolRuntime
from pregel.graph.agent.mcp import McpConnectionError, McpToolError, mcp_tools
from pregel.graph.agent.toolnode import ToolNode
from pregel.graph.agent.tools import as_tool
from pregel.graph.messages import AIMessage, MessagesState, ToolMessage
from tests.conftest import Door

SERVER = Path(__file__).parents[1] / "mcp_server.py"
PARAMETERS = StdioServerParameters(command=sys.executable, args=[str(SERVER)])
PNG = b64encode(b"no real picture").decode()
#: What the tools are called with; the names of arguments may be those of parameters.
ASKED = {
    "add": {"a": 1, "b": 2},
    "names": {"runtime": 1, "self": 2, "args": 3, "name": 4},
    **{name: {} for name in ("media", "data_only", "refuse", "reject", "breaks", "lie", "asks")},
}
CALLS = AIMessage(
    tool_calls=[
        {"name": "add", "args": {"a": 20, "b": 22}, "id": "call-1"},
        {"name": "refuse", "args": {}, "id": "call-2"},
    ]
)


@cache
def talk(way):
    """Do with a session what the tests ask for, and return what came of it; a server takes a second to start."""
    found = {}

    async def main():
        async with stdio_client(PARAMETERS) as streams, ClientSession(*streams) as session:
            await session.initialize()
            tools = found["tools"] = {tool.name: tool for tool in await mcp_tools(session)}
            for name, args in ASKED.items():
                found[name, "model"] = await outcome(tools[name].acall(args, runtime=runtime("call-7")))
                found[name, "program"] = await outcome(tools[name].acall(args))
            found["renamed"] = await as_tool(tools["add"], name="plus").acall(ASKED["add"])
            found["elsewhere"] = await anyio.to_thread.run_sync(
                lambda: asyncio.run(outcome(tools["add"].acall(ASKED["add"])))
            )
            found["sync"] = await anyio.to_thread.run_sync(sync_outcome, tools["add"])
            found["graph"] = await graph_of([*tools.values()]).ainvoke({"messages": [CALLS]})
        found["left"] = await outcome(tools["add"].acall(ASKED["add"]))

    Door(way).run(main)
    return found


@pytest.fixture
def talked(loop):
    """What came of a session on each event loop."""
    return talk(loop.way)


def runtime(call_id="call-1"):
    """What a tool is given in a graph."""
    return ToolRuntime(
        state={}, context=None, config={}, stream_writer=lambda part: None, tool_call_id=call_id, tools=()
    )


async def outcome(awaitable):
    """Return a result, or what is raised."""
    try:
        return await awaitable
    except Exception as error:
        return error


def sync_outcome(tool):
    """Return the result of a sync call, or what is raised."""
    try:
        return tool.call(ASKED["add"])
    except Exception as error:
        return error


def graph_of(tools):
    """A graph that calls tools."""
    return StateGraph(MessagesState).add_node("tools", ToolNode(tools)).add_edge("__start__", "tools").compile()


# --- a session's tools ------------------------------------------------------------------------------------------------


def test_the_tools_are_those_of_all_pages_with_the_servers_schema(talked):
    tools = talked["tools"]
    expected = ["add", "names", "lie", "media", "data_only", "refuse", "reject", "breaks", "die", "asks"]
    assert [*tools] == expected
    assert tools["add"].describe() == {
        "name": "add",
        "description": "Add two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer", "description": "The first."}, "b": {"$ref": "#/$defs/number"}},
            "required": ["a", "b"],
            "additionalProperties": False,
            "$defs": {"number": {"type": "integer", "minimum": 0}},
        },
    }
    assert tools["add"].origin.output_schema["required"] == ["sum"]
    assert tools["media"].description == "To media"
    assert tools["names"].description == ""


def test_results_are_content_and_structured_content(talked):
    for by in ("model", "program"):
        assert talked["add", by] == ('{"sum": 3}', {"sum": 3})
        assert talked["names", by] == ("args,name,runtime,self", None)
        assert talked["data_only", by] == ('{"rows": [1, 2]}', {"rows": [1, 2]})
    assert talked["renamed"] == ('{"sum": 3}', {"sum": 3})


def test_errors_of_a_tool_are_told_to_the_model(talked):
    assert talked["refuse", "model"] == ToolMessage(
        "no such order", tool_call_id="call-7", name="refuse", status="error", artifact={"code": 7}
    )
    assert talked["reject", "model"] == ToolMessage(
        "the order must be a number", tool_call_id="call-7", name="reject", status="error"
    )
    for name, said in (("refuse", "no such order"), ("reject", "the order must be a number")):
        alone = talked[name, "program"]
        assert type(alone) is McpToolError
        assert str(alone) == f"the MCP tool {name!r} failed: {said}"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("breaks", "it answers with error -32603: the disk is full"),
        ("lie", "Invalid structured content returned by tool lie: 'many' is not of type 'integer'"),
        ("asks", "it answers with error -32603"),
    ],
)
def test_errors_of_a_server_are_raised(talked, name, said):
    for by in ("model", "program"):
        error = talked[name, by]
        assert type(error) is McpToolError
        assert str(error).startswith(f"asking an MCP server for the tool {name!r}: {said}")


def test_content_blocks_stay_blocks(talked):
    content, artifact = talked["media", "model"]
    assert content == [
        {"type": "text", "text": "look"},
        {"type": "image", "base64": PNG, "mime_type": "image/png"},
        {"type": "audio", "base64": PNG, "mime_type": "audio/wav"},
        {"type": "image", "url": "https://example.org/cat.png", "mime_type": "image/png"},
        {"type": "text", "text": "The report (application/pdf): file:///report.pdf"},
        {"type": "text", "text": "a note"},
        {"type": "image", "base64": PNG, "mime_type": "image/png"},
        {"type": "file", "base64": PNG, "mime_type": "application/octet-stream", "filename": "data.bin"},
    ]
    assert artifact is None


def test_an_empty_result_is_an_empty_text():
    assert agent_mcp.content_of(types.CallToolResult(content=[])) == ""


def test_a_graph_calls_them(talked):
    added, refused = talked["graph"]["messages"][1:]
    assert (added.content, added.artifact, added.status) == ('{"sum": 42}', {"sum": 42}, "success")
    assert (refused.content, refused.artifact, refused.status) == ("no such order", {"code": 7}, "error")
    assert (added.tool_call_id, refused.tool_call_id) == ("call-1", "call-2")


# --- what can go wrong with the session -------------------------------------------------------------------------------


END = (
    ": the connection is closed, because the server has ended or the session was left. Open a new session, and make "
    "the tools and the agent of it"
)


def test_a_server_that_dies_is_a_clear_error_then_and_later(loop):
    errors = []

    async def main():
        async with stdio_client(PARAMETERS) as streams, ClientSession(*streams) as session:
            await session.initialize()
            tools = {tool.name: tool for tool in await mcp_tools(session)}
            errors.append(await outcome(tools["die"].acall({}, runtime=runtime())))
            errors.append(await outcome(tools["add"].acall(ASKED["add"])))
            errors.append(await outcome(mcp_tools(session)))

    loop.run(main)
    assert [type(error) for error in errors] == [McpConnectionError] * 3
    assert list(map(str, errors)) == [
        f"asking an MCP server for {what}{END}" for what in ("the tool 'die'", "the tool 'add'", "the list of tools")
    ]


def test_a_session_that_was_left_is_a_clear_error(talked):
    assert type(talked["left"]) is McpConnectionError
    assert str(talked["left"]) == f"asking an MCP server for the tool 'add'{END}"


def test_a_session_of_another_loop_is_a_clear_error(talked):
    for error in (talked["elsewhere"], talked["sync"]):
        assert type(error) is McpToolError
        assert str(error) == (
            "the MCP tool 'add' was called on another event loop than its session lives on: run the graph by "
            "`ainvoke` or `astream` where the session was opened, not by `invoke`"
        )


def test_the_high_level_client_answers_the_servers_questions(loop):
    kept = []

    async def confirm(context, params):
        return types.ElicitResult(action="accept", content={})

    async def main():
        async with Client(PARAMETERS, elicitation_callback=confirm) as client:
            tools = {tool.name: tool for tool in await mcp_tools(client)}
            kept.extend([len(tools), await tools["add"].acall(ASKED["add"]), await tools["asks"].acall({})])

    loop.run(main)
    assert kept == [10, ('{"sum": 3}', {"sum": 3}), ("you said accept", None)]


@pytest.mark.parametrize("thing", [None, "http://localhost", SimpleNamespace(list_tools=None)])
def test_what_is_no_session_is_refused(loop, thing):
    async def main():
        with pytest.raises(TypeError, match=r"mcp_tools takes an open mcp\.ClientSession or mcp\.Client, not"):
            await mcp_tools(thing)

    loop.run(main)


def test_a_server_whose_list_never_ends_is_a_clear_error(loop):
    class Endless(ClientSession):
        def __init__(self):
            pass

        async def list_tools(self, *, params=None):
            return types.ListToolsResult(tools=[], next_cursor="again")

    async def main():
        with pytest.raises(McpToolError, match="sends the page 'again' of its list of tools again and again"):
            await mcp_tools(Endless())

    loop.run(main)


def test_where_the_sdk_is_missing_the_extra_is_named(loop, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)

    async def main():
        with pytest.raises(TypeError, match=r"not 5 \(int\): pip install 'pregel\[mcp\]'"):
            await mcp_tools(5)

    loop.run(main)


def test_the_sdk_is_not_imported_before_it_is_needed():
    code = "import sys, pregel.graph.agent.mcp; sys.exit('mcp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
