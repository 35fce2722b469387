"""An MCP server with a tool for each kind of answer, on standard input and output: `python mcp_server.py`.

Its list of tools comes in pages of three.
"""

import os
from base64 import b64encode

import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

PNG = b64encode(b"no real picture").decode()
PAGE = 3
ANY = {"type": "object", "properties": {}}
ADD = {
    "type": "object",
    "properties": {"a": {"type": "integer", "description": "The first."}, "b": {"$ref": "#/$defs/number"}},
    "required": ["a", "b"],
    "additionalProperties": False,
    "$defs": {"number": {"type": "integer", "minimum": 0}},
}
SUM = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}


def text(said):
    return types.TextContent(text=said)


def add(args):
    total = args["a"] + args["b"]
    return types.CallToolResult(content=[text(f'{{"sum": {total}}}')], structured_content={"sum": total})


def names(args):
    """Answer with the names of the arguments, which may be those of parameters of whoever passes them on."""
    return types.CallToolResult(content=[text(",".join(sorted(args)))])


def media(args):
    linked = {"uri": "https://example.org/cat.png", "name": "cat", "mime_type": "image/png"}
    report = {"uri": "file:///report.pdf", "name": "report", "title": "The report", "mime_type": "application/pdf"}
    note = types.TextResourceContents(uri="note://1", text="a note")
    blobs = [
        types.BlobResourceContents(uri="file:///dog.png", mime_type="image/png", blob=PNG),
        types.BlobResourceContents(uri="file:///raw/data.bin", blob=PNG),
    ]
    return types.CallToolResult(
        content=[
            text("look"),
            types.ImageContent(data=PNG, mime_type="image/png"),
            types.AudioContent(data=PNG, mime_type="audio/wav"),
            types.ResourceLink(**linked),
            types.ResourceLink(**report),
            types.EmbeddedResource(resource=note),
            *(types.EmbeddedResource(resource=blob) for blob in blobs),
        ]
    )


def data_only(args):
    return types.CallToolResult(content=[], structured_content={"rows": [1, 2]})


def refuse(args):
    return types.CallToolResult(content=[text("no such order")], structured_content={"code": 7}, is_error=True)


def reject(args):
    raise MCPError(types.INVALID_PARAMS, "the order must be a number")


def breaks(args):
    raise MCPError(types.INTERNAL_ERROR, "the disk is full")


def lie(args):
    return types.CallToolResult(content=[text("done")], structured_content={"sum": "many"})


def die(args):
    os._exit(3)


def asks(args):
    request = types.ElicitRequest(
        params=types.ElicitRequestFormParams(message="sure?", requested_schema={"type": "object", "properties": {}})
    )
    return types.InputRequiredResult(input_requests={"sure": request})


TOOLS = {
    "add": (add, types.Tool(name="add", description="Add two numbers.", input_schema=ADD, output_schema=SUM)),
    "names": (names, types.Tool(name="names", input_schema=ANY)),
    "lie": (lie, types.Tool(name="lie", input_schema=ANY, output_schema=SUM)),
    **{
        each.__name__: (each, types.Tool(name=each.__name__, title=f"To {each.__name__}", input_schema=ANY))
        for each in (media, data_only, refuse, reject, breaks, die, asks)
    },
}


async def list_tools(context, params):
    start = int(params.cursor) if params is not None and params.cursor else 0
    found = [described for _, described in TOOLS.values()]
    end = start + PAGE
    return types.ListToolsResult(tools=found[start:end], next_cursor=str(end) if end < len(found) else None)


async def call_tool(context, params):
    if params.input_responses:
        return types.CallToolResult(content=[text(f"you said {params.input_responses['sure'].action}")])
    return TOOLS[params.name][0](params.arguments or {})


async def main():
    server = Server("numbers", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
