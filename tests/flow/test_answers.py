"""Answers that go to a key with a type: one that does not fit is refused, and the question is asked again."""

import pytest

from pregel import interrupt
from pregel.errors import InvalidResumeError
from pregel.graph.flow import FlowContext, FlowGraph, Key, KeySpace, KeyTypeError
from pregel.types import Command
from tests.flow.running import both, nodes, resume, run


class Keys(KeySpace):
    risk = Key(str, "analysis.risk")
    amount = Key(int, "amount")
    other = Key(int, "other")


def test_an_answer_that_its_key_would_not_take_is_refused_where_the_question_says_so(door):
    def ask(ctx):
        ctx[Keys.risk] = interrupt("which?", response_schema=str)

    graph, ctx = FlowGraph("g", Keys).add_activity("risk", ask), FlowContext()
    run(door, graph, ctx)
    with pytest.raises(InvalidResumeError):
        resume(door, graph, ctx, 5)
    assert ctx.cursor(graph).pending
    assert resume(door, graph, ctx, "high").status == "finished"
    assert ctx[Keys.risk] == "high"


@pytest.mark.parametrize("awaits", [False, True])
@pytest.mark.parametrize("carried", [False, True])
def test_an_answer_that_its_key_refuses_is_asked_for_again(awaits, carried, door):
    def ask(ctx):
        ctx["amount"] = interrupt("how much?")

    graph = FlowGraph("g", Keys).add_activity("ask", both(ask, awaits=awaits), to="then").add_activity("then", print)
    ctx = FlowContext()
    run(door, graph, ctx)
    if carried:
        ctx = FlowContext.from_json(ctx.to_json())
    for wrong in ("much", None):
        with pytest.raises(InvalidResumeError, match=r"key 'amount' takes int, not .*It is asked again"):
            resume(door, graph, ctx, wrong)
        assert [each.value for each in ctx.cursor(graph).pending] == ["how much?"]
        assert nodes(ctx) == []
    assert resume(door, graph, ctx, 5).status == "finished"
    assert dict(ctx) == {"amount": 5}


def test_of_several_answers_the_one_that_does_not_fit_is_asked_for_again(door):
    asks = []

    def ask(ctx):
        asks.append(1)
        amount, other = interrupt("how much?"), interrupt("how many?")
        ctx.update({"amount": amount, "other": other})

    graph, ctx = FlowGraph("g", Keys).add_activity("ask", ask), FlowContext()
    run(door, graph, ctx)
    resume(door, graph, ctx, "much")
    run(door, FlowGraph("another").add_activity("a", lambda _: None), ctx)  # which does not make this one forget
    with pytest.raises(InvalidResumeError, match=r"key 'amount' takes int"):
        resume(door, graph, ctx, 7)
    assert [each.value for each in ctx.cursor(graph).pending] == ["how much?"]
    assert resume(door, graph, ctx, 5).status == "finished"
    assert dict(ctx) == {"amount": 5, "other": 7}


def test_a_part_of_an_answer_counts_as_the_answer(door):
    graph = FlowGraph("g", Keys).add_activity("ask", lambda ctx: ctx.update(amount=interrupt("?")["amount"]))
    ctx = FlowContext()
    run(door, graph, ctx)
    with pytest.raises(InvalidResumeError):
        resume(door, graph, ctx, {"amount": "much"})
    assert resume(door, graph, ctx, {"amount": 5}).status == "finished"


def test_a_value_that_the_activity_made_is_its_own_error_and_the_answer_is_kept(door):
    def ask(ctx):
        interrupt("go on?")
        ctx["amount"] = made[0]

    made = ["wrong"]
    graph, ctx = FlowGraph("g", Keys).add_activity("ask", ask), FlowContext()
    run(door, graph, ctx)
    with pytest.raises(KeyTypeError, match=r"key 'amount' takes int"):
        resume(door, graph, ctx, "yes")
    assert ctx.cursor(graph).pending == ()
    made[0] = 5
    assert resume(door, graph, ctx).status == "finished"


def test_a_question_of_another_process_is_asked_again_in_words_of_the_key(door):
    """It was answered there, and that process died before the key refused the answer."""
    graph = FlowGraph("g", Keys).add_activity("ask", lambda ctx: ctx.update(amount=interrupt("how much?")))
    ctx = FlowContext()
    compiled = graph.stored_in(ctx.home.storage())
    run(door, graph, ctx)
    config = {"configurable": {"thread_id": ctx.home.thread("g")}}
    (question,) = ctx.cursor(graph).pending
    with pytest.raises(InvalidResumeError):
        door.invoke(compiled, Command(resume="much"), config, context=ctx.home)
    assert ctx.cursor(graph).pending[0].id == question.id
    assert "key 'amount' takes int" in ctx.cursor(graph).pending[0].value
    assert resume(door, graph, ctx, 5).status == "finished"
