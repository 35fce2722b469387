"""Tools: what the model is told, what its arguments become, and what else can be a tool."""

import functools
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langchain_core.tools import InjectedToolArg as LangChainArg
from langchain_core.tools import InjectedToolCallId as LangChainCallId
from langchain_core.tools import tool as langchain_tool
from pydantic import BaseModel, Field

from pregel import START, InMemorySaver, MessagesState, StateGraph, interrupt
from pregel.channels.last_value import LastValue
from pregel.config import RunConfig
from pregel.errors import InterruptSwallowedError
from pregel.graph.agent.injection import InjectedState, InjectedToolCallId, ToolRuntime
from pregel.graph.agent.toolnode import ToolNode
from pregel.graph.agent.tools import (
    Tool,
    ToolArgumentsError,
    ToolDefinitionError,
    as_tool,
    tool,
    tools_by_name,
)
from pregel.graph.messages import AIMessage, ToolMessage
from pregel.lowlevel import NodeBuilder
from pregel.main import Pregel
from pregel.types import Command


def asking(*calls):
    return AIMessage(
        "", tool_calls=[{"name": name, "args": args, "id": f"c{n}"} for n, (name, args) in enumerate(calls)]
    )


def answers(door, tools, *calls, **options):
    """Make calls in a graph of nothing but a tool node, and return the messages that answer."""
    graph = StateGraph(MessagesState).add_node("tools", ToolNode(tools, **options)).add_edge(START, "tools").compile()
    return door.invoke(graph, {"messages": [asking(*calls)]})["messages"][1:]


# -- what the model is told --------------------------------------------------------------------------------------------


def test_a_model_is_told_name_docstring_types_and_the_description_of_each_argument():
    @tool
    def book(city: str, nights: int = 1, *, kind: Literal["room", "suite"] = "room"):
        """Book a room.

        It costs money.

        Args:
            city: Where,
                by its name in English.
            nights (int): How long.

        Returns:
            The price.
        """

    assert book.describe() == {
        "name": "book",
        "description": "Book a room.\n\nIt costs money.\n\nReturns:\n    The price.",
        "parameters": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "city": {"type": "string", "description": "Where, by its name in English."},
                "nights": {"type": "integer", "default": 1, "description": "How long."},
                "kind": {"type": "string", "enum": ["room", "suite"], "default": "room"},
            },
            "required": ["city"],
        },
    }


def test_a_description_in_the_annotation_comes_before_the_docstrings():
    def look(place: Annotated[str, Field(description="the annotation", min_length=2)]):
        """Look.

        Args:
            place: the docstring
        """

    assert as_tool(look).parameters["properties"]["place"] == {
        "type": "string",
        "description": "the annotation",
        "minLength": 2,
    }


def test_a_field_as_a_default_describes_the_argument_and_gives_its_default():
    def look(place: str = Field("here", description="where")):
        """Look."""
        return place

    made = as_tool(look)
    assert made.parameters["properties"]["place"] == {"type": "string", "default": "here", "description": "where"}
    assert made.call({}) == "here"


def test_arguments_may_have_names_that_a_pydantic_field_can_not():
    def odd(schema: str, _private: int, model_config: str, copy: bool, json: str = "j"):
        return schema, _private, model_config, copy, json

    made = as_tool(odd)
    assert list(made.parameters["properties"]) == ["schema", "_private", "model_config", "copy", "json"]
    given = {"schema": "s", "_private": "1", "model_config": "m", "copy": True}
    assert made.call(given) == ("s", 1, "m", True, "j")


def test_what_is_injected_is_not_in_the_schema():
    def f(
        shown: str,
        runtime,
        state: Annotated[dict, InjectedState],
        call: Annotated[str, InjectedToolCallId()],
        whole: ToolRuntime[Any, Any],
        config: RunConfig,
        maybe: Annotated[int, InjectedState("n")] | None = None,
    ): ...

    made = as_tool(f)
    assert list(made.parameters["properties"]) == ["shown"]
    assert made.parameters["required"] == ["shown"]
    assert set(made.injected) == {"runtime", "state", "call", "whole", "config", "maybe"}


def test_a_parameter_named_runtime_that_says_it_is_something_else_is_the_models():
    def film(runtime: int):
        return runtime + 1

    assert as_tool(film).call({"runtime": "90"}) == 91


def test_names_and_descriptions_can_be_given():
    @tool("search", description="Finds things.", return_direct=True)
    def first(q: str): ...

    @tool(name="other")
    def second(q: str):
        """Said."""

    assert (first.name, first.description, first.return_direct) == ("search", "Finds things.", True)
    assert (second.name, second.description, second.return_direct) == ("other", "Said.", False)
    assert as_tool(first, name="renamed").name == "renamed"
    assert as_tool(first, description="").description == ""
    assert as_tool(first) is first


def test_a_partial_and_an_object_can_be_tools():
    def power(base: int, exponent: int):
        """Raise."""
        return base**exponent

    class Doubler:
        """About the class."""

        async def __call__(self, n: int):
            """Double it."""
            return 2 * n

    square = as_tool(functools.partial(power, exponent=2))
    assert (square.name, square.description, square.call({"base": "3"})) == ("power", "Raise.", 9)
    assert list(square.parameters["properties"]) == ["base"]  # the model can't give what the program has given
    double = as_tool(Doubler())
    assert (double.name, double.description, double.needs_loop, double.call({"n": 4})) == (
        "Doubler",
        "Double it.",
        True,
        8,
    )


class Where(BaseModel):
    city: str = Field(alias="town", description="Its name.")
    day: date = date(2026, 1, 1)


def test_a_schema_of_its_own_takes_the_place_of_the_signature():
    @tool(args_schema=Where)
    def weather(city, day):
        """Tell."""
        return city, day

    assert list(weather.parameters["properties"]) == ["town", "day"]
    assert weather.call({"town": "Oslo", "day": "2026-02-03"}) == ("Oslo", date(2026, 2, 3))
    assert weather.call({"town": "Oslo"}) == ("Oslo", date(2026, 1, 1))
    with pytest.raises(ToolArgumentsError, match="town: Field required"):
        weather.call({})

    raw = tool(args_schema={"type": "object", "properties": {"x": {"type": "number"}}})(lambda **given: given)
    assert raw.call({"x": "unchecked"}) == {"x": "unchecked"}
    assert raw.parameters == {"type": "object", "properties": {"x": {"type": "number"}}}
    with pytest.raises(ToolDefinitionError, match="a pydantic model or a JSON schema"):
        tool(args_schema=3)(lambda x: x)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: as_tool(lambda *args: args), "by position"),
        (lambda: as_tool(3), "is no tool"),
        (lambda: tool("a", name="b"), "two names"),
        (lambda: tool(response_format="both")(len), "response_format"),
        (lambda: Tool(name="x"), "nothing to call"),
        (lambda: Tool(name="", function=len), "can't be named"),
        (lambda: ToolNode([lambda x: x], handle_tool_errors=3), "handle_tool_errors takes"),
        (lambda: ToolNode([], wrappers=[3]), "wraps no tool calls"),
    ],
)
def test_what_can_be_no_tool_is_refused_with_a_reason(make, says):
    with pytest.raises(ToolDefinitionError, match=says):
        make()


def test_an_annotation_that_can_not_be_resolved_names_tool_and_parameter():
    def f(x: "Missing"): ...  # noqa: F821 - that is the point

    with pytest.raises(ToolDefinitionError, match=r"tool 'f' annotates 'x' with 'Missing'"):
        as_tool(f)

    def g(x: int) -> "Missing":  # noqa: F821 - as above
        return x

    assert as_tool(g).call({"x": 1}) == 1


def test_a_type_that_json_does_not_know_is_refused():
    def f(x: object, y: type(pytest)): ...

    with pytest.raises(ToolDefinitionError, match="InjectedToolArg"):
        as_tool(f)


def test_two_tools_of_one_name_are_an_error_that_names_both():
    def search(q: str): ...

    first, second = as_tool(search), tool("search")(lambda q: q)
    with pytest.raises(ToolDefinitionError, match=r"two tools are named 'search'.*search.*<lambda>"):
        tools_by_name([first, second])
    with pytest.raises(ToolDefinitionError, match="two tools are named"):
        ToolNode([search, lambda x: x, tool("search")(lambda x: x)])
    assert list(tools_by_name([search, search])) == ["search"]
    assert list(tools_by_name([first, first])) == ["search"]


# -- arguments ---------------------------------------------------------------------------------------------------------


@dataclass
class Point:
    x: int
    y: int = 0


def test_arguments_become_what_the_annotations_say():
    def f(p: Point, day: date, n: int):
        return p, day, n

    assert as_tool(f).call({"p": {"x": "1"}, "day": "2026-05-04", "n": "3"}) == (Point(1), date(2026, 5, 4), 3)


def test_arguments_that_do_not_fit_are_all_named_and_nothing_else_is(door):
    ran = []

    def f(a: int, bee: str, state: Annotated[dict, InjectedState]):
        ran.append(a)

    (message,) = answers(door, [f], ("f", {"a": "x", "be": "y"}))
    assert message.status == "error"
    assert message.content == (
        "The arguments of tool 'f' do not fit:\n"
        "- a: Input should be a valid integer, unable to parse string as an integer\n"
        "- bee: Field required\n"
        "- be: there is no such argument. Did you mean 'bee'?\n"
        "Given were {'a': 'x', 'be': 'y'}. Call it again with arguments that fit."
    )
    assert ran == []


def test_open_ended_keywords_are_passed_on():
    def f(a: int, **rest):
        return a, rest

    assert as_tool(f).call({"a": 1, "b": [2]}) == (1, {"b": [2]})


def test_a_default_is_the_functions_own():
    marker = object()

    def f(a: Any = marker):
        return a is marker

    assert as_tool(f).call({})


# -- LangChain's tools -------------------------------------------------------------------------------------------------


@langchain_tool
def multiply(a: int, b: int) -> int:
    """Multiply."""
    return a * b


@langchain_tool
async def amultiply(a: int, b: int) -> int:
    """Multiply, awaited."""
    return a * b


@langchain_tool(response_format="content_and_artifact")
def report(n: int, call_id: Annotated[str, LangChainCallId]):
    """Report."""
    return f"{n} for {call_id}", {"raw": n}


class Adder(BaseTool):
    name: str = "adder"
    description: str = "Add."

    def _run(self, a: int, b: int) -> int:
        return a + b


def test_langchain_tools_work_as_they_are(door):
    tools = [multiply, amultiply, report, Adder()]
    calls = [
        ("multiply", {"a": 3, "b": 4}),
        ("amultiply", {"a": 5, "b": 6}),
        ("report", {"n": 7, "call_id": "forged"}),
        ("adder", {"a": 1, "b": 2}),
    ]
    first, second, third, fourth = answers(door, tools, *calls)
    assert [first.content, second.content, third.content, fourth.content] == ["12", "30", "7 for c2", "3"]
    assert third.artifact == {"raw": 7}
    assert type(first).__module__.startswith("langchain_core")


def test_a_langchain_tool_with_both_forms_is_awaited_on_asyncio_only(door):
    async def awaited(a: int):
        return "async"

    made = StructuredTool.from_function(func=lambda a: "sync", coroutine=awaited, name="both", description="Both.")
    (message,) = answers(door, [made], ("both", {"a": 1}))
    assert message.content == ("async" if door.way == "asyncio" else "sync")


def test_a_langchain_tool_shows_what_it_shows():
    made = as_tool(report)
    assert made.describe() == {
        "name": "report",
        "description": "Report.",
        "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    }
    assert made.origin is report
    assert as_tool(multiply).coroutine is None
    assert as_tool(amultiply).needs_loop


def test_a_langchain_tool_with_another_name_is_told_of_and_called_by_that(door):
    made = as_tool(multiply, name="times")
    assert made.origin is None  # or a model of LangChain would be told of the original
    (message,) = answers(door, [made], ("times", {"a": 2, "b": 3}))
    assert message.content == "6"


def test_a_langchain_tool_may_return_our_commands_and_messages(door):
    @langchain_tool
    def note(text: str, call_id: Annotated[str, LangChainCallId], state: Annotated[dict, InjectedState]) -> Any:
        """Note."""
        return Command(update={"messages": [ToolMessage(f"{text} of {len(state['messages'])}", tool_call_id=call_id)]})

    @langchain_tool
    def message(call_id: Annotated[str, LangChainCallId]) -> Any:
        """Answer."""
        return [ToolMessage("mine", tool_call_id=call_id, name="me")]

    assert list(as_tool(note).parameters["properties"]) == ["text"]
    first, second = answers(door, [note, message], ("note", {"text": "t", "state": {"messages": []}}), ("message", {}))
    assert (first.content, second.content, second.name) == ("t of 1", "mine", "me")


@pytest.mark.parametrize("native", [False, True], ids=["sync", "async"])
def test_arguments_of_a_langchain_tool_are_told_from_what_its_code_raises(door, native):
    class Inner(BaseModel):
        n: int

    def parse(text: str, state: Annotated[dict, LangChainArg, InjectedState]) -> str:
        """Parse."""
        return str(Inner.model_validate_json(text))

    async def aparse(text: str, state: Annotated[dict, LangChainArg, InjectedState]) -> str:
        """Parse."""
        return parse(text, state)

    made = langchain_tool("parse")(aparse if native else parse)
    (message,) = answers(door, [made], ("parse", {"text": 3}))
    assert message.status == "error"
    assert "text: Input should be a valid string" in message.content
    assert "state" not in message.content
    with pytest.raises(ValueError, match="Invalid JSON") as caught:
        answers(door, [made], ("parse", {"text": "{"}))
    assert "In tool 'parse', call 'c0'." in caught.value.__notes__


def test_a_langchain_tool_handles_its_own_errors(door):
    @langchain_tool
    def fails() -> str:
        """Fail."""
        raise ToolException("try later")

    fails.handle_tool_error = True
    (message,) = answers(door, [fails], ("fails", {}))
    assert (message.content, message.status) == ("try later", "error")


def test_callbacks_of_the_run_hear_of_langchain_tools(door):
    from langchain_core.callbacks import BaseCallbackHandler

    heard = []

    class Listener(BaseCallbackHandler):
        def on_tool_start(self, serialized, input_str, **kwargs):
            heard.append(("start", serialized["name"]))

        def on_tool_end(self, output, **kwargs):
            heard.append(("end", output.content))

    graph = StateGraph(MessagesState).add_node("tools", ToolNode([multiply])).add_edge(START, "tools").compile()
    state = {"messages": [asking(("multiply", {"a": 2, "b": 2}))]}
    door.invoke(graph, state, {"callbacks": [Listener()]})
    assert heard == [("start", "multiply"), ("end", "4")]


# -- graphs as tools ---------------------------------------------------------------------------------------------------


class Numbers(BaseModel):
    a: int
    b: int = 1


def adding(state: Numbers):
    return {"b": state.a + state.b}


async def shouting(state):
    return {"messages": [AIMessage(state["messages"][-1].content.upper())]}


def test_a_graph_with_messages_answers_a_request_with_its_last_message(door):
    shout = StateGraph(MessagesState).add_node(shouting).add_edge(START, "shouting").compile(name="shout")
    made = as_tool(shout, description="Says it louder.")
    assert made.describe()["description"] == "Says it louder."
    assert list(made.parameters["properties"]) == ["request"]
    first, second = answers(door, [made], ("shout", {"request": "hi"}), ("shout", {"text": "hi"}))
    assert first.content == "HI"
    assert second.status == "error"
    assert "takes one argument, 'request'" in second.content


def test_a_graph_without_messages_takes_its_input_and_answers_with_its_output(door):
    add = StateGraph(Numbers).add_node(adding).add_edge(START, "adding").compile(name="add")
    (message,) = answers(door, [as_tool(add)], ("add", {"a": 2}))
    assert message.content == '{"a":2,"b":3}'


def test_a_graph_that_does_not_say_what_it_takes_is_no_tool():
    nodes = {"n": NodeBuilder().subscribe_only("a").do(lambda a: a).write_to("b")}
    graph = Pregel(nodes=nodes, channels={"a": LastValue, "b": LastValue}, input_channels="a", output_channels="b")
    with pytest.raises(ToolDefinitionError, match="has no schema of its input"):
        as_tool(graph)


def confirm(state):
    return {"messages": [AIMessage(f"{state['messages'][-1].content}: {interrupt('sure?')}")]}


def test_a_graph_that_asks_where_nobody_around_could_wait_is_an_error(door):
    builder = StateGraph(MessagesState).add_node(confirm).add_edge(START, "confirm")
    node = ToolNode([as_tool(builder.compile(InMemorySaver(), name="confirm"))], handle_tool_errors=True)
    graph = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile()
    state = {"messages": [asking(("confirm", {"request": "r"}))]}
    with pytest.raises(InterruptSwallowedError, match="Compile the outermost graph with a checkpointer"):
        door.invoke(graph, state, {"configurable": {"thread_id": "t"}})


@pytest.mark.parametrize("count", [1, 3])
def test_what_graphs_inside_tools_ask_is_answered_from_outside(door, count):
    inner = StateGraph(MessagesState).add_node(confirm).add_edge(START, "confirm").compile(name="confirm")
    node = ToolNode([as_tool(inner)])
    graph = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile(InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}
    calls = [("confirm", {"request": f"r{n}"}) for n in range(count)]
    paused = door.invoke(graph, {"messages": [asking(*calls)]}, config)["__interrupt__"]
    assert len({question.id for question in paused}) == count
    replies = {question.id: f"answer {n}" for n, question in enumerate(paused)}
    done = door.invoke(graph, Command(resume=replies), config)
    assert [message.content for message in done["messages"][1:]] == [f"r{n}: answer {n}" for n in range(count)]
