"""The model that answers from a script."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.messages import AIMessage as LangChainAIMessage

from pregel.errors import InvalidConfigError
from pregel.graph.agent.models import ModelAnswerError, ModelError, ScriptedModel, ScriptExhaustedError
from pregel.graph.agent.models.chunks import joined
from pregel.graph.messages import AIMessage, HumanMessage

CALLING = AIMessage(
    "two  words\n",
    tool_calls=[
        {"name": "f", "args": {"a": [1, {"b": "ü"}]}, "id": "c1", "type": "tool_call"},
        {"name": "g", "args": {}, "id": "c2", "type": "tool_call"},
    ],
    usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    id="m1",
    name="ann",
)


def texts(model, *questions):
    return [model.invoke([HumanMessage(question)]).text for question in questions]


def test_answers_are_given_in_their_order():
    model = ScriptedModel(["one", AIMessage("two"), lambda messages: f"to {messages[-1].text}"])
    assert texts(model, "a", "b", "c") == ["one", "two", "to c"]


def test_an_exception_in_the_script_is_raised_and_the_script_goes_on():
    model = ScriptedModel([ConnectionError("gone"), "one", lambda _: ValueError("bad")])
    with pytest.raises(ConnectionError, match="gone"):
        texts(model, "a")
    assert texts(model, "a") == ["one"]
    with pytest.raises(ValueError, match="bad"):
        texts(model, "a")


def test_a_script_that_is_over_says_so():
    model = ScriptedModel(["one"])
    texts(model, "a")
    with pytest.raises(ScriptExhaustedError, match=r"asked 2 times, and it has 1 answers.*The last message was 'b'"):
        texts(model, "b")


@pytest.mark.parametrize(("then", "expected"), [("repeat", "abbbb"), ("cycle", "ababa")])
def test_a_script_can_go_on(then, expected):
    assert "".join(texts(ScriptedModel(["a", "b"], on_exhausted=then), *"12345")) == expected


@pytest.mark.parametrize("then", ["repeat", "cycle", "raise"])
def test_an_empty_script_is_over_at_once(then):
    with pytest.raises(ScriptExhaustedError, match="asked 1 times, and it has 0"):
        texts(ScriptedModel([], on_exhausted=then), "a")


def test_one_callable_answers_every_call():
    assert texts(ScriptedModel(lambda messages: messages[-1].text.upper()), "a", "b") == ["A", "B"]


def test_each_question_may_have_a_script_of_its_own():
    model = ScriptedModel({"a": ["a1", "a2"], "b": ["b1"], "c": lambda _: "c"})
    assert texts(model, "b", "a", "c", "a") == ["b1", "a1", "c", "a2"]
    with pytest.raises(ScriptExhaustedError, match="2 answers to 'a'"):
        texts(model, "a")
    with pytest.raises(ModelError, match=r"no answers to 'aa'.* Did you mean 'a'\?"):
        texts(model, "aa")


def test_calls_on_many_threads_get_each_answer_once():
    model = ScriptedModel([str(number) for number in range(200)])
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: texts(model, "a")[0], range(200)))
    assert sorted(map(int, answers)) == list(range(200))
    assert len(model.calls) == 200


def test_the_model_keeps_what_it_was_asked():
    model = ScriptedModel(["one", "two"])
    model.invoke("hi")
    tool = {"name": "f", "description": "", "parameters": {}}
    form = {"name": "A", "schema": {}}
    model.invoke([HumanMessage("b")], tools=[tool], tool_choice="f", response_format=form, temperature=1)
    first, second = model.calls
    assert (first.messages, first.tools, first.settings) == ([HumanMessage("hi")], [], {})
    assert (second.tools, second.tool_choice, second.response_format) == ([tool], "f", form)
    assert second.settings == {"temperature": 1}


@pytest.mark.parametrize("answer", ["", "one", " one  two\n three ", CALLING, AIMessage(["a", {"type": "x"}], id="m")])
def test_the_pieces_of_a_stream_add_up_to_the_answer(answer):
    pieces = list(ScriptedModel([answer]).stream("hi"))
    assert joined(pieces).message() == ScriptedModel([answer]).invoke("hi")
    assert {piece.id for piece in pieces} == {getattr(answer, "id", None)}


def test_a_stream_has_a_piece_for_each_word():
    pieces = [piece.text for piece in ScriptedModel(["one two\nthree "]).stream("hi")]
    assert pieces == ["one", " two", "\nthree ", ""]


def test_the_async_forms_answer_alike(loop):
    model = ScriptedModel([CALLING, CALLING])

    async def main():
        return await model.ainvoke("hi"), joined([piece async for piece in model.astream("hi")]).message()

    assert loop.run(main) == (CALLING, CALLING)


def test_an_answer_of_langchain_is_taken():
    call = {"name": "f", "args": {}, "id": "c", "type": "tool_call"}
    assert ScriptedModel([LangChainAIMessage("x", tool_calls=[call])]).invoke("hi") == AIMessage("x", tool_calls=[call])


@pytest.mark.parametrize("answers", ["one", 3, None, [3], [HumanMessage("x")]])
def test_what_is_no_script_is_refused(answers):
    with pytest.raises(InvalidConfigError, match="ScriptedModel"):
        ScriptedModel(answers)


def test_an_unknown_way_to_go_on_is_refused():
    with pytest.raises(InvalidConfigError, match=r"raise, repeat, cycle\. Did you mean 'repeat'\?"):
        ScriptedModel(["a"], on_exhausted="repeats")


def test_a_callable_that_gives_no_answer_is_an_error():
    with pytest.raises(ModelAnswerError, match=r"returned 3 \(int\)"):
        ScriptedModel([lambda _: 3]).invoke("hi")
