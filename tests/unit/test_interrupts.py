"""Human in the loop: a task asks, the run pauses, an answer comes, the run goes on."""

import asyncio
import operator
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import anyio
import anyio.to_thread
import pytest
import trio
from pydantic import BaseModel

from pregel import START, Command, Send, StateGraph
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import (
    GraphInterrupt,
    InterruptSwallowedError,
    InvalidConfigError,
    InvalidInputError,
    InvalidResumeError,
    InvalidUpdateError,
    MissingCheckpointerError,
    OutsideTaskError,
    PregelError,
)
from pregel.runtime import interrupt
from pregel.testing.faults import FaultySaver, StorageFault
from pregel.types import Breakpoint, Interrupt

CONFIG = {"configurable": {"thread_id": "t"}}


class State(TypedDict, total=False):
    log: Annotated[list, operator.add]
    n: int


@pytest.fixture
def saver():
    return InMemorySaver()


@pytest.fixture
def ran():
    """What the nodes of a test say they did, in order; it outlives the runs."""
    return []


def asking(ran, name, *questions):
    """Return a node that asks, notes its runs, and logs the answers."""

    def node(state):
        ran.append(name)
        return {"log": [interrupt(question) for question in questions]}

    node.__name__ = name
    return node


def noting(ran, name):
    """Return a node that notes its runs, and logs its name."""

    def node(state):
        ran.append(name)
        return {"log": [name]}

    node.__name__ = name
    return node


def counting(state):
    """Ask for a number."""
    return {"log": [interrupt("how many?", int)]}


def chain(saver, *nodes, **options):
    """Return a graph of nodes that follow each other."""
    return StateGraph(State).add_sequence(nodes).add_edge(START, nodes[0].__name__).compile(saver, **options)


def side_by_side(saver, *nodes, **options):
    """Return a graph whose nodes are all due at once, in this order."""
    builder = StateGraph(State)
    for node in nodes:
        builder.add_node(node).add_edge(START, node.__name__)
    return builder.compile(saver, **options)


def asked(result):
    """Return what a result asks: id and value, in order."""
    return [(each.id, each.value) for each in result["__interrupt__"]]


# -- to ask and to answer --------------------------------------------------------------------------------------------


def test_a_paused_run_says_what_is_asked_and_under_which_id_and_an_answer_goes_on(door, saver, ran):
    graph = chain(saver, noting(ran, "before"), asking(ran, "ask", {"what": "sure?"}), noting(ran, "after"))
    assert door.invoke(graph, {"log": []}, CONFIG) == {
        "log": ["before"],
        "__interrupt__": [Interrupt({"what": "sure?"}, "2:0:ask#0")],
    }
    assert door.invoke(graph, Command(resume="yes"), CONFIG) == {"log": ["before", "yes", "after"]}
    assert ran == ["before", "ask", "ask", "after"]  # the node from its top, and nothing else twice


def test_streams_say_what_is_asked_and_end(door, saver, ran):
    graph = chain(saver, asking(ran, "ask", "sure?"), noting(ran, "after"))
    question = Interrupt("sure?", "1:0:ask#0")
    parts = door.stream(graph, {"log": ["in"]}, CONFIG, stream_mode=["updates", "values", "tasks"])
    assert parts == [
        ("values", {"log": ["in"]}),
        ("tasks", {"id": "1:0:ask", "name": "ask", "input": {"log": ["in"]}, "triggers": ["__start__"]}),
        ("updates", {"__interrupt__": (question,)}),
        ("tasks", {"id": "1:0:ask", "name": "ask", "error": None, "result": None, "interrupts": [question]}),
        ("values", {"log": ["in"], "__interrupt__": (question,)}),
    ]
    assert door.stream(graph, Command(resume="yes"), CONFIG) == [
        {"ask": {"log": ["yes"]}},
        {"after": {"log": ["after"]}},
    ]


@pytest.mark.parametrize("answer", [None, False, 0, "", [], {}, {"a": 1}, {1: 2}, {"1:0": "x"}, ("a",)], ids=repr)
def test_an_answer_may_be_anything(answer, saver, ran):
    graph = chain(saver, asking(ran, "ask", "sure?"))
    graph.invoke({"log": []}, CONFIG)
    assert graph.invoke(Command(resume=answer), CONFIG) == {"log": [answer]}
    graph.invoke({"log": []}, CONFIG)
    assert graph.invoke(Command(resume={"3:0:ask#0": answer}), CONFIG)["log"][1:] == [answer]


def test_questions_of_one_node_come_one_after_the_other_and_answers_are_kept(door, saver, ran):
    graph = chain(saver, asking(ran, "ask", "first", "second", "third"))
    assert asked(door.invoke(graph, {"log": []}, CONFIG)) == [("1:0:ask#0", "first")]
    assert asked(door.invoke(graph, Command(resume=1), CONFIG)) == [("1:0:ask#1", "second")]
    assert asked(door.invoke(graph, Command(resume={"1:0:ask#1": 2}), CONFIG)) == [("1:0:ask#2", "third")]
    assert door.invoke(graph, Command(resume=3), CONFIG) == {"log": [1, 2, 3]}
    assert ran == ["ask"] * 4


def test_none_as_input_asks_the_same_again_without_running_anything(door, saver, ran):
    graph = chain(saver, asking(ran, "ask", "sure?"))
    first = door.invoke(graph, {"log": []}, CONFIG)
    assert door.invoke(graph, None, CONFIG) == first
    assert ran == ["ask"]


def test_parallel_questions_are_in_task_order_and_take_partial_answers(door, saver, ran):
    graph = side_by_side(
        saver, asking(ran, "z", "z?"), noting(ran, "free"), asking(ran, "a", "a?"), asking(ran, "m", "m?")
    )
    result = door.invoke(graph, {"log": []}, CONFIG)
    assert asked(result) == [("1:0:z#0", "z?"), ("1:2:a#0", "a?"), ("1:3:m#0", "m?")]
    assert result["log"] == []
    rest = door.invoke(graph, Command(resume={"1:2:a#0": "A"}), CONFIG)
    assert asked(rest) == [("1:0:z#0", "z?"), ("1:3:m#0", "m?")]
    assert door.invoke(graph, Command(resume={"1:3:m#0": "M", "1:0:z#0": "Z"}), CONFIG) == {
        "log": ["Z", "free", "A", "M"]
    }
    assert sorted(ran) == ["a", "a", "free", "m", "m", "z", "z"]


@pytest.mark.parametrize("first", ["a", "b"])
def test_questions_are_in_task_order_whichever_task_pauses_first(first, loop, saver):
    turn = {}

    def made(name):
        async def node(state):
            if name != first:
                await turn["over"].wait()
            try:
                return {"log": [interrupt(name)]}
            finally:
                turn["over"].set()

        node.__name__ = name
        return node

    graph = side_by_side(saver, made("a"), made("b"))

    async def main():
        turn["over"] = anyio.Event()
        parts = [part async for part in graph.astream({"log": []}, CONFIG, stream_mode=["updates", "values"])]
        return parts, await graph.ainvoke(Command(resume={"1:0:a#0": 1, "1:1:b#0": 2}), CONFIG)

    parts, result = loop.run(main)
    assert [part["__interrupt__"][0].value for mode, part in parts if mode == "updates"] == [first, "ab".strip(first)]
    assert [each.value for each in parts[-1][1]["__interrupt__"]] == ["a", "b"]
    assert result == {"log": [1, 2]}


def test_packets_ask_one_by_one_each_with_what_it_carries(door, saver, ran):
    def split(state):
        return Command(goto=[Send("ask", number) for number in range(3)])

    def ask(number):
        ran.append(number)
        return {"log": [number if number == 1 else (number, interrupt(f"{number}?"))]}

    builder = StateGraph(State).add_node(split, destinations=("ask",)).add_node(ask).add_edge(START, "split")
    graph = builder.compile(saver)
    assert asked(door.invoke(graph, {"log": []}, CONFIG)) == [("2:0:ask#0", "0?"), ("2:2:ask#0", "2?")]
    assert asked(door.invoke(graph, Command(resume={"2:2:ask#0": "two"}), CONFIG)) == [("2:0:ask#0", "0?")]
    assert door.invoke(graph, Command(resume="zero"), CONFIG) == {"log": [(0, "zero"), 1, (2, "two")]}
    assert sorted(ran) == [0, 0, 1, 2, 2]


def test_a_paused_thread_shows_its_questions_and_what_siblings_did(saver, ran):
    graph = side_by_side(saver, asking(ran, "ask", "sure?"), noting(ran, "free"))
    graph.invoke({"log": []}, CONFIG)
    state = graph.get_state(CONFIG)
    assert (state.values, state.next) == ({"log": []}, ("ask",))
    assert state.interrupts == (Interrupt("sure?", "1:0:ask#0"),)
    assert [(task.name, task.result, task.interrupts) for task in state.tasks] == [
        ("ask", None, (Interrupt("sure?", "1:0:ask#0"),)),
        ("free", {"log": ["free"]}, ()),
    ]


def test_a_join_gets_what_finished_siblings_did_before_the_answer(door, saver, ran):
    builder = StateGraph(State)
    for node in (asking(ran, "ask", "sure?"), noting(ran, "free"), noting(ran, "end")):
        builder.add_node(node)
    graph = builder.add_edge(START, "ask").add_edge(START, "free").add_edge(["ask", "free"], "end").compile(saver)
    door.invoke(graph, {"log": []}, CONFIG)
    assert door.invoke(graph, Command(resume="yes"), CONFIG) == {"log": ["yes", "free", "end"]}
    assert sorted(ran) == ["ask", "ask", "end", "free"]


def test_a_loop_of_review_and_revision_is_resumed_as_often_as_it_asks(door, saver, ran):
    def review(state) -> Command[Literal["revise", "publish"]]:
        verdict = interrupt({"draft": state["n"]})
        return Command(goto="publish" if verdict == "good" else "revise")

    def revise(state):
        ran.append("revise")
        return {"n": state["n"] + 1}

    builder = StateGraph(State).add_node(review).add_node(revise).add_node(noting(ran, "publish"))
    graph = builder.add_edge(START, "review").add_edge("revise", "review").compile(saver)
    asked_for = [asked(door.invoke(graph, {"n": 0, "log": []}, CONFIG))]
    for _ in range(3):
        asked_for.append(asked(door.invoke(graph, Command(resume="bad"), CONFIG)))
    assert asked_for == [[(f"{step}:0:review#0", {"draft": n})] for n, step in enumerate((1, 3, 5, 7))]
    assert door.invoke(graph, Command(resume="good"), CONFIG) == {"n": 3, "log": ["publish"]}
    assert ran == ["revise"] * 3 + ["publish"]


def test_a_new_input_leaves_the_question_behind(door, saver, ran):
    graph = chain(saver, noting(ran, "before"), asking(ran, "ask", "sure?"))
    door.invoke(graph, {"log": []}, CONFIG)
    assert asked(door.invoke(graph, {"log": ["again"]}, CONFIG)) == [("4:0:ask#0", "sure?")]
    with pytest.raises(InvalidResumeError, match=r"does not ask '2:0:ask#0'. It asks '4:0:ask#0'"):
        door.invoke(graph, Command(resume={"2:0:ask#0": "late"}), CONFIG)
    assert door.invoke(graph, Command(resume="yes"), CONFIG) == {"log": ["before", "again", "before", "yes"]}


def test_an_interrupt_in_the_path_of_a_conditional_edge(door, saver, ran):
    def way(state):
        return interrupt("where to?")

    builder = StateGraph(State).add_node(noting(ran, "a")).add_node(noting(ran, "left")).add_node(noting(ran, "right"))
    graph = builder.add_edge(START, "a").add_conditional_edges("a", way, ["left", "right"]).compile(saver)
    assert asked(door.invoke(graph, {"log": []}, CONFIG)) == [("1:0:a#0", "where to?")]
    assert door.invoke(graph, Command(resume="right"), CONFIG) == {"log": ["a", "right"]}
    assert ran == ["a", "a", "right"]


# -- answers of a type -----------------------------------------------------------------------------------------------


class Verdict(BaseModel):
    good: bool
    why: str = ""


@dataclass
class Mark:
    points: int


@pytest.mark.parametrize(
    ("schema", "answer", "gets", "misfit"),
    [
        (Verdict, {"good": True, "why": "x"}, Verdict(good=True, why="x"), {"good": "perhaps"}),
        (Mark, {"points": "3"}, Mark(3), {"point": 3}),
        (Literal["yes", "no"], "no", "no", "maybe"),
        (int, "12", 12, "twelve"),
        (list[int], [1], [1], None),
        (int | None, None, None, "x"),
    ],
    ids=["model", "dataclass", "literal", "int", "list", "optional"],
)
def test_an_answer_is_converted_to_the_type_asked_for_or_refused_and_asked_for_again(
    schema, answer, gets, misfit, door, saver
):
    got = []

    def ask(state):
        got.append(interrupt("what?", response_schema=schema))
        return {"log": ["done"]}

    graph = chain(saver, ask)
    (question,) = door.invoke(graph, {"log": []}, CONFIG)["__interrupt__"]
    assert question.response_schema
    for _ in range(2):
        with pytest.raises(InvalidResumeError, match=r"'1:0:ask#0' of node 'ask' does not fit.*answer again"):
            door.invoke(graph, Command(resume=misfit), CONFIG)
        assert graph.get_state(CONFIG).interrupts == (question,)
        assert door.invoke(graph, None, CONFIG)["__interrupt__"] == [question]
    assert door.invoke(graph, Command(resume=answer), CONFIG) == {"log": ["done"]}
    assert got == [gets]


def test_the_json_schema_of_an_answer_is_shown_whatever_form_reads_the_state(saver):
    def ask(state):
        return {"n": interrupt("how many?", int)}

    graph = chain(saver, ask)
    question = Interrupt("how many?", "1:0:ask#0", {"type": "integer"})
    assert graph.invoke({}, CONFIG)["__interrupt__"] == [question]
    assert graph.get_state(CONFIG).interrupts == (question,)


def test_a_misfit_answer_takes_nothing_of_the_others(door, saver, ran):
    def ask(state):
        ran.append("ask")
        return {"log": [interrupt("first", int), interrupt("second", int)]}

    graph = side_by_side(saver, ask, asking(ran, "other", "other?"))
    door.invoke(graph, {"log": []}, CONFIG)
    with pytest.raises(InvalidResumeError, match="1:0:ask#0"):
        door.invoke(graph, Command(resume={"1:0:ask#0": "x", "1:1:other#0": "fine"}), CONFIG)
    assert [each.id for each in graph.get_state(CONFIG).interrupts] == ["1:0:ask#0"]
    assert asked(door.invoke(graph, Command(resume=1), CONFIG)) == [("1:0:ask#1", "second")]
    with pytest.raises(InvalidResumeError, match="1:0:ask#1"):
        door.invoke(graph, Command(resume="y"), CONFIG)
    assert door.invoke(graph, Command(resume=2), CONFIG) == {"log": [1, 2, "fine"]}
    assert ran.count("other") == 2


# -- what can't be answered ------------------------------------------------------------------------------------------


def test_an_answer_to_nothing_says_so(door, saver, ran):
    graph = chain(saver, asking(ran, "ask", "sure?"))
    with pytest.raises(InvalidResumeError, match=r"nothing stored on thread 't', so there is nothing to answer"):
        door.invoke(graph, Command(resume="yes"), CONFIG)
    with pytest.raises(InvalidInputError, match=r"so None has nothing to go on with"):
        door.invoke(graph, None, CONFIG)
    with pytest.raises(InvalidInputError, match=r"so a Command has nothing to steer"):
        door.invoke(graph, Command(update={"n": 1}), CONFIG)
    assert saver.threads() == []
    door.invoke(graph, {"log": []}, CONFIG)
    door.invoke(graph, Command(resume="yes"), CONFIG)
    with pytest.raises(InvalidResumeError, match=r"thread 't' of graph 'State' asks nothing"):
        door.invoke(graph, Command(resume="again"), CONFIG)
    assert ran == ["ask", "ask"]


@pytest.mark.parametrize("answers", [{"1:0:ask#1": 1}, {"1:0:ask#0": 1, "9:9:gone#0": 2}, {"1:0:ask#0": 1, "b": 2}])
def test_an_unknown_id_is_refused_with_all_that_came_with_it(answers, door, saver, ran):
    graph = chain(saver, asking(ran, "ask", "sure?"))
    door.invoke(graph, {"log": []}, CONFIG)
    with pytest.raises(InvalidResumeError, match=r"does not ask '.*'\. It asks '1:0:ask#0'"):
        door.invoke(graph, Command(resume=answers), CONFIG)
    assert ran == ["ask"]
    assert asked(door.invoke(graph, None, CONFIG)) == [("1:0:ask#0", "sure?")]


@pytest.mark.parametrize("answer", ["yes", None, {}, {"a": "yes"}])
def test_a_bare_answer_to_several_questions_is_refused(answer, door, saver, ran):
    graph = side_by_side(saver, asking(ran, "a", "a?"), asking(ran, "b", "b?"))
    door.invoke(graph, {"log": []}, CONFIG)
    with pytest.raises(InvalidResumeError, match=r"asks 2 things.*'1:0:a#0', '1:1:b#0'"):
        door.invoke(graph, Command(resume=answer), CONFIG)
    assert len(ran) == 2


def test_an_answer_that_cannot_be_stored_is_refused_and_the_question_stays(door, saver, ran):
    graph = chain(saver, asking(ran, "ask", "sure?"))
    door.invoke(graph, {"log": []}, CONFIG)
    with pytest.raises(PregelError, match="object"):
        door.invoke(graph, Command(resume=object()), CONFIG)
    assert ran == ["ask"]
    assert door.invoke(graph, Command(resume="yes"), CONFIG) == {"log": ["yes"]}


def test_without_a_checkpointer_nothing_can_wait(door, ran):
    graph = chain(None, asking(ran, "ask", "sure?"))
    with pytest.raises(MissingCheckpointerError, match=r"node 'ask' calls interrupt.*compile\(checkpointer="):
        door.invoke(graph, {"log": []})
    with pytest.raises(InvalidInputError):
        door.invoke(graph, Command(resume="yes"))


def test_outside_of_a_task_nobody_can_be_asked():
    with pytest.raises(OutsideTaskError):
        interrupt("anybody?")


# -- what may stand around it ----------------------------------------------------------------------------------------


def test_except_exception_does_not_swallow_a_pause_and_finally_runs(door, saver, ran):
    def ask(state):
        try:
            answer = interrupt("sure?")
        except Exception:
            answer = "swallowed"
        finally:
            ran.append("finally")
        return {"log": [answer]}

    graph = chain(saver, ask)
    assert asked(door.invoke(graph, {"log": []}, CONFIG)) == [("1:0:ask#0", "sure?")]
    assert door.invoke(graph, Command(resume="yes"), CONFIG) == {"log": ["yes"]}
    assert ran == ["finally"] * 2


def test_a_pause_that_is_swallowed_all_the_same_is_an_error(door, saver):
    caught: list[Any] = [BaseException]

    def ask(state):
        try:
            return {"log": [interrupt("sure?")]}
        except tuple(caught):
            return {"log": ["went on"]}

    graph = chain(saver, ask)
    with pytest.raises(InterruptSwallowedError, match=r"node 'ask'.*'sure\?'.*bare `except:`") as caught_error:
        door.invoke(graph, {"log": []}, CONFIG)
    assert "task 1:0:ask" in caught_error.value.__notes__[0]
    assert graph.get_state(CONFIG).values == {"log": []}
    caught[:] = [Exception]  # mended
    assert asked(door.invoke(graph, None, CONFIG)) == [("1:0:ask#0", "sure?")]
    assert door.invoke(graph, Command(resume="yes"), CONFIG) == {"log": ["yes"]}


def test_questions_that_are_collected_before_the_pause_are_all_asked(door, saver):
    def ask(state):
        answers, pause = [], None
        for question in ("first", "second"):
            try:
                answers.append(interrupt(question))
            except GraphInterrupt as raised:
                pause = raised
        if pause is not None:
            raise pause
        return {"log": answers}

    graph = chain(saver, ask)
    assert asked(door.invoke(graph, {"log": []}, CONFIG)) == [("1:0:ask#0", "first"), ("1:0:ask#1", "second")]
    assert asked(door.invoke(graph, Command(resume={"1:0:ask#1": 2}), CONFIG)) == [("1:0:ask#0", "first")]
    assert door.invoke(graph, Command(resume=1), CONFIG) == {"log": [1, 2]}


def test_a_pause_that_asks_nothing_is_an_error(door, saver):
    def ask(state):
        raise GraphInterrupt

    with pytest.raises(PregelError, match=r"node 'ask' of graph 'State' raised GraphInterrupt.*interrupt\(value\)"):
        door.invoke(chain(saver, ask), {"log": []}, CONFIG)


async def in_asyncio_group(*calls):
    async with asyncio.TaskGroup() as group:
        for call in calls:
            group.create_task(call())


async def in_trio_nursery(*calls):
    async with trio.open_nursery() as nursery:
        for call in calls:
            nursery.start_soon(call)


async def in_anyio_group(*calls):
    async with anyio.create_task_group() as group:
        for call in calls:
            group.start_soon(call)


GROUPS = pytest.mark.parametrize(
    ("backend", "grouped"),
    [
        ("asyncio", in_anyio_group),
        ("trio", in_anyio_group),
        ("trio", in_trio_nursery),
        ("asyncio", in_asyncio_group),
    ],
)


@GROUPS
def test_a_task_group_of_nothing_but_pauses_is_a_pause(backend, grouped, saver):
    async def ask(state):
        answers = {}

        async def one():
            answers[1] = interrupt("one")

        async def deep():
            async def two():
                answers[2] = interrupt("two")

            await grouped(two)

        await grouped(one)
        await grouped(deep)
        return {"log": [answers[1], answers[2]]}

    graph = chain(saver, ask)
    results = [
        anyio.run(graph.ainvoke, given, CONFIG, backend=backend)
        for given in ({"log": []}, Command(resume=1), Command(resume=2))
    ]
    assert [asked(result) for result in results[:2]] == [[("1:0:ask#0", "one")], [("1:0:ask#1", "two")]]
    assert results[2] == {"log": [1, 2]}


@GROUPS
def test_a_task_group_that_fails_and_is_caught_does_not_end_the_run(request, backend, grouped, saver):
    if grouped is in_asyncio_group and sys.version_info < (3, 13):
        reason = (
            "before 3.13 such a group leaves its task cancelled, as if it had swallowed a cancellation from outside"
        )
        request.applymarker(pytest.mark.xfail(strict=True, raises=asyncio.CancelledError, reason=reason))

    async def node(state):
        async def fails():
            raise ValueError

        try:
            await grouped(fails)
        except ExceptionGroup:
            return {"log": ["caught"]}

    assert anyio.run(chain(saver, node).ainvoke, {"log": []}, CONFIG, backend=backend) == {"log": ["caught"]}


def test_what_tasks_of_a_group_ask_together_is_asked_together(saver):
    async def ask(state):
        answers = {}

        async def one():
            answers["one"] = interrupt("one")

        async def two():
            answers["two"] = interrupt("two")

        await in_anyio_group(one, two)
        return {"log": [answers["one"], answers["two"]]}

    graph = chain(saver, ask)
    assert asked(graph.invoke({"log": []}, CONFIG)) == [("1:0:ask#0", "one"), ("1:0:ask#1", "two")]
    assert asked(graph.invoke(Command(resume={"1:0:ask#1": 2}), CONFIG)) == [("1:0:ask#0", "one")]
    assert graph.invoke(Command(resume=1), CONFIG) == {"log": [1, 2]}


@GROUPS
def test_a_pause_beside_an_error_in_a_task_group_is_the_error(backend, grouped, saver):
    async def ask(state):
        async def one():
            try:
                interrupt("one")
            finally:
                started.set()

        async def two():
            try:
                await started.wait()
                await anyio.sleep_forever()
            finally:
                raise ValueError("two")

        started = anyio.Event()
        await grouped(two, one)
        return {}

    graph = chain(saver, ask)
    with pytest.raises(ExceptionGroup) as caught:
        anyio.run(graph.ainvoke, {"log": []}, CONFIG, backend=backend)
    assert [type(error) for error in caught.value.exceptions] == [ValueError]
    assert graph.get_state(CONFIG).interrupts == ()


def test_an_interrupt_in_a_thread_that_a_node_starts(loop, saver):
    async def ask(state):
        return {"log": [await anyio.to_thread.run_sync(interrupt, "sure?")]}

    graph = chain(saver, ask)
    assert asked(loop.invoke(graph, {"log": []}, CONFIG)) == [("1:0:ask#0", "sure?")]
    assert loop.invoke(graph, Command(resume="yes"), CONFIG) == {"log": ["yes"]}


# -- beside a failure ------------------------------------------------------------------------------------------------


def test_a_failing_sibling_raises_and_the_question_stays(door, saver, ran):
    broken = [True]

    def fails(state):
        ran.append("fails")
        if broken:
            raise ValueError("broken")
        return {"log": ["mended"]}

    graph = side_by_side(saver, asking(ran, "ask", "sure?"), fails, noting(ran, "free"))
    with pytest.raises(ValueError, match="broken"):
        door.invoke(graph, {"log": []}, CONFIG)
    state = graph.get_state(CONFIG)
    assert [(task.name, bool(task.error), len(task.interrupts), task.result) for task in state.tasks] == [
        ("ask", False, 1, None),
        ("fails", True, 0, None),
        ("free", False, 0, {"log": ["free"]}),
    ]
    broken.clear()
    assert door.invoke(graph, Command(resume="yes"), CONFIG) == {"log": ["yes", "mended", "free"]}
    assert sorted(ran) == ["ask", "ask", "fails", "fails", "free"]


def test_a_question_is_not_lost_where_a_failure_cancels_its_siblings(loop, saver, ran):
    broken = [True]
    events = {}

    async def ask(state):
        ran.append("ask")
        try:
            return {"log": [interrupt("sure?")]}
        finally:
            events["asked"].set()

    async def fails(state):
        ran.append("fails")
        if broken:
            await events["asked"].wait()
            raise ValueError("broken")
        return {"log": ["mended"]}

    async def slow(state):
        ran.append("slow")
        if broken:
            await anyio.sleep_forever()
        return {"log": ["slow"]}

    graph = side_by_side(saver, ask, fails, slow, on_failure="cancel")

    async def main():
        events["asked"] = anyio.Event()
        with pytest.raises(ValueError, match="broken"):
            await graph.ainvoke({"log": []}, CONFIG)
        assert graph.get_state(CONFIG).next == ("ask", "fails", "slow")
        broken.clear()
        return await graph.ainvoke(Command(resume="yes"), CONFIG)

    assert loop.run(main) == {"log": ["yes", "mended", "slow"]}
    assert sorted(ran) == ["ask", "ask", "fails", "fails", "slow", "slow"]


# -- graphs in graphs ------------------------------------------------------------------------------------------------


def outer_of(saver, *children, **options):
    """Return a graph whose nodes are graphs, due at once."""
    builder = StateGraph(State)
    for name, child in children:
        builder.add_node(name, child).add_edge(START, name)
    return builder.compile(saver, **options)


def inner_of(ran, name="ask", checkpointer=None, **options):
    return chain(checkpointer, noting(ran, "first"), asking(ran, name, f"{name}?"), noting(ran, "last"), **options)


@pytest.mark.parametrize("mode", [None, True], ids=["fresh", "remembers"])
def test_a_graph_inside_a_graph_asks_and_goes_on_where_it_stood(mode, door, saver, ran):
    graph = outer_of(saver, ("outer", inner_of(ran, checkpointer=mode)))
    assert asked(door.invoke(graph, {"log": []}, CONFIG)) == [("outer:1:0:outer|2:0:ask#0", "ask?")]
    assert door.invoke(graph, Command(resume="yes"), CONFIG) == {"log": ["first", "yes", "last"]}
    assert ran == ["first", "ask", "ask", "last"]


def test_a_graph_inside_a_graph_that_is_not_stored_begins_again_and_gets_the_answer(door, saver, ran):
    graph = outer_of(saver, ("outer", inner_of(ran, checkpointer=False)))
    assert asked(door.invoke(graph, {"log": []}, CONFIG)) == [("outer:1:0:outer|2:0:ask#0", "ask?")]
    assert door.invoke(graph, Command(resume="yes"), CONFIG) == {"log": ["first", "yes", "last"]}
    assert ran == ["first", "ask", "first", "ask", "last"]


def test_a_graph_that_remembers_asks_in_each_of_its_runs(door, saver, ran):
    def ask(state):
        return {"log": [(interrupt("sure?"), len(state["log"]))]}

    graph = outer_of(saver, ("outer", chain(True, ask)))
    for turn, answer in enumerate("ab"):
        (question,) = asked(door.invoke(graph, {"log": ["in"]}, CONFIG))
        assert question == (f"outer:{2 * turn + 1}:0:outer|{2 * turn + 1}:0:ask#0", "sure?")
        result = door.invoke(graph, Command(resume=answer), CONFIG)
    assert result == {"log": ["in", ("a", 1), "in", ("b", 3)]}


def test_a_graph_two_levels_deep_asks(door, saver, ran):
    graph = outer_of(saver, ("top", outer_of(None, ("middle", inner_of(ran)))))
    ident = "top:1:0:top|middle:1:0:middle|2:0:ask#0"
    assert asked(door.invoke(graph, {"log": []}, CONFIG)) == [(ident, "ask?")]
    assert asked(door.invoke(graph, None, CONFIG)) == [(ident, "ask?")]
    assert door.invoke(graph, Command(resume={ident: "yes"}), CONFIG) == {"log": ["first", "yes", "last"]}
    assert ran == ["first", "ask", "ask", "last"]


def test_two_graphs_ask_side_by_side_and_are_answered_one_by_one(door, saver, ran):
    graph = outer_of(saver, ("x", inner_of(ran, "left")), ("y", inner_of(ran, "right")))
    ids = ["x:1:0:x|2:0:left#0", "y:1:1:y|2:0:right#0"]
    assert [ident for ident, _ in asked(door.invoke(graph, {"log": []}, CONFIG))] == ids
    with pytest.raises(InvalidResumeError, match="asks 2 things"):
        door.invoke(graph, Command(resume="?"), CONFIG)
    assert [ident for ident, _ in asked(door.invoke(graph, Command(resume={ids[1]: "R"}), CONFIG))] == ids[:1]
    assert door.invoke(graph, Command(resume="L"), CONFIG) == {"log": ["first", "L", "last", "first", "R", "last"]}
    assert sorted(ran) == ["first", "first", "last", "last", "left", "left", "right", "right"]


def test_a_misfit_answer_to_a_graph_inside_a_graph_is_the_error_of_the_run(door, saver):
    graph = outer_of(saver, ("outer", chain(None, counting)))
    door.invoke(graph, {"log": []}, CONFIG)
    with pytest.raises(InvalidResumeError, match=r"'outer:1:0:outer\|1:0:counting#0' of node 'counting'"):
        door.invoke(graph, Command(resume="many"), CONFIG)


@pytest.mark.parametrize("mode", [None, True, False], ids=["fresh", "remembers", "not stored"])
def test_a_misfit_answer_to_a_graph_inside_a_graph_is_asked_for_again(mode, door, saver):
    def ask(state):
        return {"log": [interrupt("how many?", int)]}

    graph = outer_of(saver, ("outer", chain(mode, ask)))
    door.invoke(graph, {"log": []}, CONFIG)
    with suppress(InvalidResumeError):
        door.invoke(graph, Command(resume="many"), CONFIG)
    assert [each.id for each in graph.get_state(CONFIG).interrupts] == ["outer:1:0:outer|1:0:ask#0"]
    assert door.invoke(graph, Command(resume="3"), CONFIG) == {"log": [3]}


@pytest.mark.parametrize("mode", [None, True, False], ids=["fresh", "remembers", "not stored"])
def test_a_function_that_calls_a_graph_twice_is_asked_by_each_call(mode, door, saver, ran):
    child = chain(mode, asking(ran, "ask", "sure?"))

    def twice(state):
        ran.append("twice")
        first = child.invoke({"log": ["one"]})
        second = child.invoke({"log": ["two"]})
        return {"log": [first["log"], second["log"]]}

    graph = chain(saver, twice)
    assert asked(door.invoke(graph, {"log": []}, CONFIG)) == [("twice:1:0:twice|1:0:ask#0", "sure?")]
    second = asked(door.invoke(graph, Command(resume="a"), CONFIG))
    assert second == [("twice:1:0:twice:1|1:0:ask#0", "sure?")]
    assert door.invoke(graph, Command(resume="b"), CONFIG) == {"log": [["one", "a"], ["two", "b"]]}
    assert ran.count("twice") == 3
    assert ran.count("ask") == (6 - 1 if mode is False else 4)


def test_an_async_function_that_calls_a_graph_twice_is_asked_by_each_call(loop, saver, ran):
    child = chain(None, asking(ran, "ask", "sure?"))

    async def twice(state):
        first = await child.ainvoke({"log": ["one"]})
        second = await child.ainvoke({"log": ["two"]})
        return {"log": [first["log"], second["log"], interrupt("and I?")]}

    graph = chain(saver, twice)
    assert asked(loop.invoke(graph, {"log": []}, CONFIG)) == [("twice:1:0:twice|1:0:ask#0", "sure?")]
    assert asked(loop.invoke(graph, Command(resume="a"), CONFIG)) == [("twice:1:0:twice:1|1:0:ask#0", "sure?")]
    assert asked(loop.invoke(graph, Command(resume="b"), CONFIG)) == [("1:0:twice#0", "and I?")]
    assert loop.invoke(graph, Command(resume="c"), CONFIG) == {"log": [["one", "a"], ["two", "b"], "c"]}
    assert ran == ["ask"] * 4


def test_questions_of_graphs_that_a_function_runs_side_by_side_are_in_the_order_of_its_calls(door, saver):
    over = [threading.Event() for _ in range(4)]

    def ask(state):
        (number,) = state["log"]
        over[number + 1].wait(5)
        try:
            return {"log": [interrupt(number)]}
        finally:
            over[number].set()

    child = chain(None, ask)

    def calls(state):
        return {"log": [result["log"] for result in child.batch([{"log": [number]} for number in range(3)])]}

    graph = chain(saver, calls)
    over[3].set()  # the last one is the first to pause
    result = door.invoke(graph, {"log": []}, CONFIG)
    assert [value for _, value in asked(result)] == [0, 1, 2]
    answers = {ident: value * 10 for ident, value in asked(result)}
    assert door.invoke(graph, Command(resume=answers), CONFIG) == {"log": [[0, 0], [1, 10], [2, 20]]}


def test_graphs_that_an_async_function_runs_side_by_side_ask_together(loop, saver):
    paused = {}

    async def ask(state):
        (number,) = state["log"]
        if number:
            await paused["first"].wait()
            await anyio.wait_all_tasks_blocked()
        try:
            return {"log": [interrupt(number)]}
        finally:
            paused["first"].set()

    child = chain(None, ask)

    async def calls(state):
        paused["first"] = anyio.Event()
        return {"log": [result["log"] for result in await child.abatch([{"log": [0]}, {"log": [1]}, {"log": [2]}])]}

    result = loop.invoke(chain(saver, calls), {"log": []}, CONFIG)
    assert [value for _, value in asked(result)] == [0, 1, 2]


def test_graphs_that_a_function_runs_side_by_side_all_ask(loop, saver, ran):
    child = chain(None, asking(ran, "ask", "sure?"))

    async def both(state):
        results = await child.abatch([{"log": [1]}, {"log": [2]}], return_exceptions=False)
        return {"log": [result["log"] for result in results]}

    graph = chain(saver, both)
    first = asked(loop.invoke(graph, {"log": []}, CONFIG))
    answers = {}
    while first:
        answers |= {ident: ident for ident, _ in first}
        result = loop.invoke(graph, Command(resume={ident: ident for ident, _ in first}), CONFIG)
        first = asked(result) if "__interrupt__" in result else []
    assert result == {"log": [[1, "both:1:0:both|1:0:ask#0"], [2, "both:1:0:both:1|1:0:ask#0"]]}
    assert sorted(answers) == ["both:1:0:both:1|1:0:ask#0", "both:1:0:both|1:0:ask#0"]


def test_a_function_that_reads_the_stream_of_a_graph_waits_with_it(door, saver, ran):
    child = inner_of(ran)

    def reads(state):
        return {"log": [list(child.stream({"log": []}))]}

    graph = chain(saver, reads)
    assert asked(door.invoke(graph, {"log": []}, CONFIG)) == [("reads:1:0:reads|2:0:ask#0", "ask?")]
    rest = [{"ask": {"log": ["yes"]}}, {"last": {"log": ["last"]}}]
    assert door.invoke(graph, Command(resume="yes"), CONFIG) == {"log": [rest]}


def test_an_async_function_that_reads_the_stream_of_a_graph_waits_with_it(loop, saver, ran):
    child = inner_of(ran)

    async def reads(state):
        return {"log": [[part async for part in child.astream({"log": []})]]}

    graph = chain(saver, reads)
    assert asked(loop.invoke(graph, {"log": []}, CONFIG)) == [("reads:1:0:reads|2:0:ask#0", "ask?")]
    rest = [{"ask": {"log": ["yes"]}}, {"last": {"log": ["last"]}}]
    assert loop.invoke(graph, Command(resume="yes"), CONFIG) == {"log": [rest]}


def test_a_function_that_swallows_the_pause_of_a_graph_that_it_calls_is_an_error(door, saver, ran):
    child = chain(None, asking(ran, "ask", "sure?"))

    def calls(state):
        try:
            child.invoke({"log": []})
        except BaseException:
            return {"log": ["went on"]}
        return {}

    with pytest.raises(InterruptSwallowedError, match=r"node 'calls'"):
        door.invoke(chain(saver, calls), {"log": []}, CONFIG)


def test_a_graph_inside_a_graph_tells_its_pause_in_the_stream(door, saver, ran):
    graph = outer_of(saver, ("outer", inner_of(ran)))
    question = Interrupt("ask?", "outer:1:0:outer|2:0:ask#0")
    parts = door.stream(graph, {"log": []}, CONFIG, subgraphs=True)
    assert parts == [
        (("outer:1:0:outer",), {"first": {"log": ["first"]}}),
        (("outer:1:0:outer",), {"__interrupt__": (question,)}),
        ((), {"__interrupt__": (question,)}),
    ]


# -- breakpoints -----------------------------------------------------------------------------------------------------


def three(saver, ran, **options):
    return chain(saver, noting(ran, "a"), noting(ran, "b"), noting(ran, "c"), **options)


@pytest.mark.parametrize(
    ("options", "stops"),
    [
        ({"interrupt_before": ["b"]}, [("before", ("b",), "a")]),
        ({"interrupt_after": ["b"]}, [("after", ("b",), "ab")]),
        ({"interrupt_before": "b"}, [("before", ("b",), "a")]),
        ({"interrupt_before": ["b"], "interrupt_after": ["a"]}, [("after", ("a",), "a")]),
        ({"interrupt_before": "*"}, [("before", ("a",), ""), ("before", ("b",), "a"), ("before", ("c",), "ab")]),
        ({"interrupt_after": "*"}, [("after", ("a",), "a"), ("after", ("b",), "ab")]),
        ({"interrupt_after": ["c"]}, []),
    ],
)
@pytest.mark.parametrize("where", ["compile", "run"])
def test_a_run_stops_at_a_breakpoint_says_why_and_goes_on_once_past_it(where, options, stops, door, saver, ran):
    at_compile, at_run = (options, {}) if where == "compile" else ({}, options)
    graph = three(saver, ran, **at_compile)
    given = {"log": []}
    for when, nodes, done in stops:
        result = door.invoke(graph, given, CONFIG, **at_run)
        assert result == {"log": list(done), "__interrupt__": [Breakpoint(when, nodes)]}
        state = graph.get_state(CONFIG)
        assert state.next == tuple("abc"[len(done)])
        assert state.metadata["pause"] == Breakpoint(when, nodes)
        given = None
    assert door.invoke(graph, given, CONFIG, **at_run) == {"log": list("abc")}
    assert ran == list("abc")


def test_a_run_told_to_stop_nowhere_passes_the_breakpoints_of_the_graph(saver, ran):
    graph = three(saver, ran, interrupt_before="*")
    assert graph.invoke({"log": []}, CONFIG, interrupt_before=[]) == {"log": list("abc")}


def test_streams_say_that_a_run_stops_at_a_breakpoint(door, saver, ran):
    graph = three(saver, ran, interrupt_after=["a"])
    stop = Breakpoint("after", ("a",))
    assert door.stream(graph, {"log": []}, CONFIG, stream_mode=["updates", "values"]) == [
        ("values", {"log": []}),
        ("updates", {"a": {"log": ["a"]}}),
        ("values", {"log": ["a"]}),
        ("updates", {"__interrupt__": (stop,)}),
        ("values", {"log": ["a"], "__interrupt__": (stop,)}),
    ]


@pytest.mark.parametrize("option", ["interrupt_before", "interrupt_after"])
def test_a_breakpoint_at_no_node_is_refused(option, saver, ran):
    for make in (
        lambda: three(saver, ran, **{option: ["a", "bb"]}),
        lambda: three(saver, ran).invoke({"log": []}, CONFIG, **{option: "bb"}),
    ):
        with pytest.raises(InvalidConfigError, match=rf"{option} of graph 'State' names 'bb'.*Nodes: a, b, c"):
            make()
    assert ran == []


def test_an_answer_does_not_pass_a_breakpoint_and_a_command_may_change_the_state_there(door, saver, ran):
    graph = three(saver, ran, interrupt_before=["b"])
    door.invoke(graph, {"log": []}, CONFIG)
    with pytest.raises(InvalidResumeError, match="asks nothing"):
        door.invoke(graph, Command(resume="yes"), CONFIG)
    assert door.invoke(graph, Command(update={"log": ["by hand"]}), CONFIG) == {"log": ["a", "by hand", "b", "c"]}


def test_a_breakpoint_before_a_node_that_asks(door, saver, ran):
    graph = chain(saver, noting(ran, "a"), asking(ran, "ask", "sure?"), interrupt_before=["ask"])
    assert door.invoke(graph, {"log": []}, CONFIG)["__interrupt__"] == [Breakpoint("before", ("ask",))]
    assert asked(door.invoke(graph, None, CONFIG)) == [("2:0:ask#0", "sure?")]
    assert door.invoke(graph, Command(resume="yes"), CONFIG) == {"log": ["a", "yes"]}


@pytest.mark.parametrize("mode", [None, True], ids=["fresh", "remembers"])
def test_a_breakpoint_in_a_graph_inside_a_graph(mode, door, saver, ran):
    graph = outer_of(saver, ("outer", three(mode, ran, interrupt_before=["b"], interrupt_after=["b"])))
    for when in ("before", "after"):
        given = {"log": []} if when == "before" else None
        assert door.invoke(graph, given, CONFIG) == {"log": [], "__interrupt__": [Breakpoint(when, ("b",))]}
        assert graph.get_state(CONFIG).next == ("outer",)
    assert door.invoke(graph, None, CONFIG) == {"log": list("abc")}
    assert ran == list("abc")


def test_a_breakpoint_in_a_graph_that_is_not_stored_inside_one_that_is_says_that_it_cannot_go_on(saver, ran):
    graph = outer_of(saver, ("outer", three(False, ran, interrupt_before=["b"])))
    with pytest.raises(MissingCheckpointerError):
        graph.invoke({"log": []}, CONFIG)


def test_without_a_checkpointer_a_run_stops_at_a_breakpoint_and_that_is_its_end(door, ran):
    graph = three(None, ran, interrupt_before=["b"])
    assert door.invoke(graph, {"log": []}) == {"log": ["a"], "__interrupt__": [Breakpoint("before", ("b",))]}
    with pytest.raises(InvalidInputError):
        door.invoke(graph, None)


# -- an answer that comes with more ----------------------------------------------------------------------------------


def test_an_answer_may_come_with_an_update_that_the_node_sees(door, saver, ran):
    def ask(state):
        ran.append("ask")
        return {"log": [(interrupt("sure?"), state["n"])]}

    graph = chain(saver, ask)
    door.invoke(graph, {"log": [], "n": 1}, CONFIG)
    assert door.invoke(graph, Command(resume="yes", update={"n": 2}), CONFIG) == {"log": [("yes", 2)], "n": 2}


def test_an_answer_may_come_with_nodes_to_run_beside(door, saver, ran):
    builder = StateGraph(State).add_node(asking(ran, "ask", "sure?")).add_node(noting(ran, "aside"))
    graph = builder.add_edge(START, "ask").add_edge("ask", "aside").compile(saver)
    door.invoke(graph, {"log": []}, CONFIG)
    assert door.invoke(graph, Command(resume="yes", goto="aside"), CONFIG) == {"log": ["yes", "aside", "aside"]}


def test_where_the_update_is_refused_the_answer_is_not_taken(door, saver, ran):
    graph = chain(saver, asking(ran, "ask", "sure?"))
    door.invoke(graph, {"log": []}, CONFIG)
    for wrong in ({"update": {"nn": 1}}, {"update": [("n", 1), ("n", 2)]}, {"goto": "nowhere"}):
        with pytest.raises(InvalidUpdateError):
            door.invoke(graph, Command(resume="yes", **wrong), CONFIG)
    assert asked(door.invoke(graph, None, CONFIG)) == [("1:0:ask#0", "sure?")]
    assert ran == ["ask"]


# -- crashes ---------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "sqlite"])
def either(request, tmp_path):
    """A checkpointer in memory, and one on disk."""
    if request.param == "memory":
        yield InMemorySaver()
        return
    with SqliteSaver(str(tmp_path / "runs.db")) as opened:
        yield opened


class Crash(BaseException):
    """Ends a process in the middle of a node."""


def test_an_answer_that_was_taken_is_not_asked_for_again_after_a_crash(door, either, ran):
    crashing = [False]

    def ask(state):
        first, second = interrupt("first"), interrupt("second")
        if crashing[0]:
            raise Crash
        return {"log": [first, second]}

    def graph():
        return side_by_side(either, ask, noting(ran, "free"))

    door.invoke(graph(), {"log": []}, CONFIG)
    assert asked(door.invoke(graph(), Command(resume=1), CONFIG)) == [("1:0:ask#1", "second")]
    crashing[0] = True
    with pytest.raises((Crash, BaseExceptionGroup)):
        door.invoke(graph(), Command(resume=2), CONFIG)
    crashing[0] = False
    assert door.invoke(graph(), None, CONFIG) == {"log": [1, 2, "free"]}
    assert ran == ["free"]


def test_whichever_storage_operation_fails_an_answer_is_taken_or_asked_for(ran):
    def resumed(fail_at, after):
        plain = InMemorySaver()
        chain(plain, asking(ran, "ask", "sure?"), noting(ran, "end")).invoke({"log": []}, CONFIG)
        faulty = FaultySaver(plain, fail_at, after=after)
        graph = chain(faulty, asking(ran, "ask", "sure?"), noting(ran, "end"))
        try:
            result = graph.invoke(Command(resume="yes", update={"log": ["by hand"]}), CONFIG)
        except StorageFault:
            graph = chain(plain, asking(ran, "ask", "sure?"), noting(ran, "end"))
            state = graph.get_state(CONFIG)
            taken = state.values["log"] != []
            result = graph.invoke(None if taken else Command(resume="yes", update={"log": ["by hand"]}), CONFIG)
        assert result == {"log": ["by hand", "yes", "end"]}
        return faulty.operations

    operations = resumed(None, after=False)
    for number, operation in enumerate(operations, 1):
        for after in (False, True):
            if operation != "claim":  # then there is nothing to look at
                resumed(number, after)
    assert "release" not in operations  # the thread goes with the last commit, whose failure was looked at


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_pause_is_stored_in_every_durability(durability, door, either, ran):
    graph = side_by_side(either, asking(ran, "ask", "first", "second"), noting(ran, "free"), durability=durability)
    assert asked(door.invoke(graph, {"log": []}, CONFIG)) == [("1:0:ask#0", "first")]
    assert graph.get_state(CONFIG).interrupts == (Interrupt("first", "1:0:ask#0"),)
    assert asked(door.invoke(graph, Command(resume=1), CONFIG)) == [("1:0:ask#1", "second")]
    assert door.invoke(graph, Command(resume=2), CONFIG) == {"log": [1, 2, "free"]}
    assert ran.count("free") == 1


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_misfit_answer_is_forgotten_in_every_durability(durability, either):
    graph = chain(either, counting, durability=durability)
    graph.invoke({"log": []}, CONFIG)
    for _ in range(2):
        with pytest.raises(InvalidResumeError):
            graph.invoke(Command(resume="many"), CONFIG)
        assert [each.id for each in graph.get_state(CONFIG).interrupts] == ["1:0:counting#0"]
    assert graph.invoke(Command(resume="3"), CONFIG) == {"log": [3]}


def test_another_process_answers_what_a_graph_on_disk_asks(tmp_path, ran):
    path = str(tmp_path / "runs.db")
    with SqliteSaver(path) as first:
        outer_of(first, ("outer", inner_of(ran))).invoke({"log": []}, CONFIG)
    with SqliteSaver(path) as second:
        graph = outer_of(second, ("outer", inner_of(ran)))
        assert graph.invoke(Command(resume="yes"), CONFIG) == {"log": ["first", "yes", "last"]}
