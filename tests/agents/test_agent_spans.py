"""The spans of agents, and of the models and tools that they call."""

from unittest.mock import MagicMock

import anyio
import pytest
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage as LangChainMessage
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.trace import SpanKind, StatusCode

from pregel import InMemorySaver, interrupt
from pregel.graph.agent import create_agent
from pregel.graph.agent.middleware import wrap_model_call
from pregel.graph.agent.models import ScriptedModel
from pregel.graph.agent.models.base import BaseChatModel, ChatGeneration, ChatResult
from pregel.graph.messages import AIMessage
from pregel.observe import uninstrument
from tests.spans import HOMES, calls_of, traced


@pytest.fixture
def spans():
    """What is traced, while it is."""
    with traced() as made:
        yield made


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def aadd(a: int, b: int) -> int:
    """Add two numbers, later."""
    await anyio.lowlevel.checkpoint()
    return a + b


class Known(BaseChatModel):
    """A model with a name, that tells what it cost."""

    model: str = "known-1"
    temperature: float = 0.5
    answers: list

    @property
    def _llm_type(self):
        return "known"

    def _generate(self, messages, stop=None, run_manager=None, **options):
        return ChatResult(generations=[ChatGeneration(message=self.answers.pop(0))])


def asks_for(*calls):
    """Return a model's message that asks for calls of a tool, with what it cost."""
    return AIMessage(
        "",
        tool_calls=[{"name": name, "args": args, "id": f"call-{place}"} for place, (name, args) in enumerate(calls)],
        usage_metadata={
            "input_tokens": 7,
            "output_tokens": 5,
            "total_tokens": 12,
            "input_token_details": {"cache_read": 3},
            "output_token_details": {"reasoning": 2},
        },
        response_metadata={"finish_reason": "tool_calls", "model_name": "known-1-0613"},
    )


@pytest.mark.parametrize("tool", [add, aadd], ids=["sync", "async"])
def test_agents_models_and_tools_have_the_spans_of_the_conventions(door, spans, tool):
    model = Known(answers=[asks_for((tool.__name__, {"a": 1, "b": 2})), AIMessage("3")])
    agent = create_agent(model, [tool], name="sums")

    given = {"messages": "what is 1 + 2?"}
    assert door.invoke(agent, given, {"configurable": {"thread_id": "t"}})["messages"][-1].content == "3"

    run = spans["invoke_agent sums"]
    assert run.kind is SpanKind.INTERNAL
    assert {name: value for name, value in run.attributes.items() if name.startswith("gen_ai.")} == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "sums",
        "gen_ai.conversation.id": "t",
    }
    first, second = spans.named("chat known-1")
    assert spans.path(first) == ["invoke_agent sums", "superstep", "task model", "chat known-1"]
    assert first.kind is SpanKind.CLIENT
    assert dict(first.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "known",
        "gen_ai.conversation.id": "t",
        "gen_ai.request.model": "known-1",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.response.model": "known-1-0613",
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 3,
        "gen_ai.usage.reasoning.output_tokens": 2,
    }
    assert "gen_ai.usage.input_tokens" not in second.attributes
    call = spans[f"execute_tool {tool.__name__}"]
    assert spans.path(call)[:3] == ["invoke_agent sums", "superstep", "task tools"]
    assert call.kind is SpanKind.INTERNAL
    assert dict(call.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.conversation.id": "t",
        "gen_ai.tool.name": tool.__name__,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": tool.__doc__,
        "gen_ai.tool.call.id": "call-0",
    }


def test_every_attribute_of_agents_is_one_of_the_conventions(spans):
    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
    agent = create_agent(Known(answers=[asks_for(("add", {"a": 1, "b": 2})), AIMessage("3")]), [add])

    list(agent.stream({"messages": "?"}, stream_mode="messages"))

    used = {name for span in spans.ended for name in span.attributes if name.startswith("gen_ai.")}
    assert "gen_ai.request.stream" in used
    assert used <= known


def test_what_is_said_is_in_no_span(spans):
    agent = create_agent(Known(answers=[asks_for(("add", {"a": 1111, "b": 2222})), AIMessage("secret")]), [add])

    agent.invoke({"messages": "private"})

    told = " ".join(span.to_json() for span in spans.ended)
    assert [text for text in ("1111", "3333", "secret", "private") if text in told] == []


def test_calls_of_one_turn_are_side_by_side_and_one_that_fails_says_so_though_the_model_is_told(door, spans):
    model = Known(answers=[asks_for(("add", {"a": 1, "b": 2}), ("add", {"a": 1})), AIMessage("3")])

    door.invoke(create_agent(model, [add]), {"messages": "?"})

    calls = {span.attributes["gen_ai.tool.call.id"]: span for span in spans.named("execute_tool add")}
    assert len({spans.above(call).context.span_id for call in calls.values()}) == 2
    assert calls["call-0"].status.status_code is StatusCode.UNSET
    assert calls["call-1"].status.status_code is StatusCode.ERROR
    assert calls["call-1"].attributes["error.type"].endswith(".ToolArgumentsError")
    assert [span.attributes["pregel.outcome"] for span in spans.named("task tools")] == ["done", "done"]


def test_a_tool_that_asks_something_has_not_failed(door, spans):
    def ask(a: int) -> str:
        """Ask somebody."""
        return str(interrupt(a))

    agent = create_agent(ScriptedModel([asks_for(("ask", {"a": 1}))]), [ask], checkpointer=InMemorySaver())

    door.invoke(agent, {"messages": "?"}, {"configurable": {"thread_id": "t"}})

    assert spans["execute_tool ask"].status.status_code is StatusCode.UNSET
    assert spans["invoke_agent agent"].attributes["pregel.outcome"] == "paused"


def test_a_model_that_fails_says_so(door, spans):
    with pytest.raises(TimeoutError):
        door.invoke(create_agent(ScriptedModel([TimeoutError("late")])), {"messages": "?"})

    assert spans["chat"].attributes["error.type"] == "TimeoutError"
    assert spans["chat"].attributes["gen_ai.provider.name"] == "scriptedmodel"


def test_an_agent_inside_an_agents_tool_is_below_the_call(door, spans):
    inner = create_agent(ScriptedModel(["inner answer"]), name="inner")

    def ask(a: int) -> str:
        """Ask the other agent."""
        return inner.invoke({"messages": str(a)})["messages"][-1].content

    door.invoke(create_agent(ScriptedModel([asks_for(("ask", {"a": 1})), "done"]), [ask]), {"messages": "?"})

    assert spans.path(spans["invoke_agent inner"]) == [
        *("invoke_agent agent", "superstep", "task tools", "execute_tool ask", "invoke_agent inner")
    ]


def test_code_after_the_call_of_a_model_is_below_its_task_again(door, spans):
    @wrap_model_call
    def after(request, handler):
        response = handler(request)
        with spans.tracer.start_as_current_span("own after"):
            return response

    door.invoke(create_agent(ScriptedModel(["hi"]), middleware=[after]), {"messages": "?"})

    assert spans.path(spans["own after"]) == ["invoke_agent agent", "superstep", "task model", "own after"]
    assert spans.path(spans["chat"]) == ["invoke_agent agent", "superstep", "task model", "chat"]


@pytest.mark.parametrize("kind", ["mock", "its own"])
def test_a_model_that_has_every_attribute_or_holds_itself_is_called_once(door, spans, kind):
    class Own:
        def invoke(self, messages, **options):
            return AIMessage("hi")

    model = Own() if kind == "its own" else MagicMock()
    if kind == "mock":
        model.invoke.return_value = AIMessage("hi")
    else:
        model.model = model

    door.invoke(create_agent(model), {"messages": "?"})

    assert [span.attributes["gen_ai.operation.name"] for span in spans.named("chat")] == ["chat"]


def test_a_call_that_was_prepared_before_uninstrument_is_made_all_the_same(spans):
    class Ends(ScriptedModel):
        def _get_ls_params(self):
            uninstrument()
            return {}

    answer = create_agent(Ends(["hi"])).invoke({"messages": "?"})

    assert answer["messages"][-1].content == "hi"
    assert not spans.named("chat")
    assert spans["invoke_agent agent"].attributes["pregel.outcome"] == "done"


class Foreign(FakeMessagesListChatModel):
    """A chat model of LangChain, that says of itself what theirs say."""

    def _get_ls_params(self, stop=None, **options):
        return {"ls_provider": "azure", "ls_model_name": "gpt", "ls_temperature": 0.5, "ls_stop": ["end"]}

    def bind_tools(self, tools, **options):
        return self.bind(tools=tools, **options)


def test_a_model_of_langchain_says_what_langchain_knows_of_it(door, spans):
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    about = {"stop_reason": "end_turn", "model": "gpt-6", "id": "chatcmpl-1"}
    model = Foreign(responses=[LangChainMessage("hi", usage_metadata=usage, response_metadata=about)])

    door.invoke(create_agent(model, [add]), {"messages": "?"})

    assert dict(spans["chat gpt"].attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "azure.ai.openai",
        "gen_ai.request.model": "gpt",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.stop_sequences": ("end",),
        "gen_ai.response.id": "chatcmpl-1",
        "gen_ai.response.model": "gpt-6",
        "gen_ai.response.finish_reasons": ("end_turn",),
        "gen_ai.usage.input_tokens": 1,
        "gen_ai.usage.output_tokens": 2,
    }


def test_an_agent_that_nobody_watches_calls_nothing_for_it():
    agent = create_agent(ScriptedModel([asks_for(("add", {"a": 1, "b": 2})), "3"], on_exhausted="cycle"), [add])
    calls = calls_of(agent, {"messages": "?"})
    assert ("pregel.graph.agent.toolnode", "tool_of") in calls
    assert {key for key in calls if key[0].startswith(HOMES)} == {
        ("pregel.observe", "watched"),
        ("logging", "isEnabledFor"),
    }
