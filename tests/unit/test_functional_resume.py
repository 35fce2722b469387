"""What a node that runs again finds of the tasks that it has called before."""

import gc
import weakref
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from threading import Event
from typing import Annotated, TypedDict

import pydantic
import pytest

from pregel import START, Command, InMemorySaver, Interrupt, SqliteSaver, StateGraph, interrupt
from pregel.errors import (
    EncodeError,
    GraphDefinitionError,
    InvalidResumeError,
    MissingCheckpointerError,
    OutsideTaskError,
)
from pregel.executors.process import ProcessExecutor
from pregel.graph.functional import arecorded, entrypoint, recorded, task
from pregel.testing import fake_clock
from pregel.testing.faults import FaultySaver, StorageFault
from pregel.types import RetryPolicy
from tests.waiting import PATIENCE

THREAD = {"configurable": {"thread_id": "1"}}
DURABILITIES = ["sync", "async", "exit"]

ran = Counter()


@pytest.fixture(autouse=True)
def _count():
    ran.clear()


@task
def double(number: int) -> int:
    ran["double", number] += 1
    return 2 * number


@task
async def adouble(number: int) -> int:
    ran["adouble", number] += 1
    return 2 * number


@task
def ask(question: str) -> str:
    ran["ask", question] += 1
    return f"{question} {interrupt(question)}"


@task
async def aask(question: str) -> str:
    ran["aask", question] += 1
    return f"{question} {interrupt(question)}"


@pytest.fixture(params=DURABILITIES)
def durability(request):
    return request.param


# -- interrupts --------------------------------------------------------------------------------------------------------


def test_a_node_that_runs_again_repeats_no_task(door, saver, durability):
    @entrypoint(checkpointer=saver)
    def main(number: int) -> list:
        first = interrupt("before")
        doubles = [double(number), double(number), adouble(number)]
        between = interrupt("between")
        results = [each.result() for each in doubles]
        last = adouble(number + 1).result()
        return [first, between, results, last, interrupt("after")]

    for given, question in ((5, "before"), (Command(resume="one"), "between"), (Command(resume="two"), "after")):
        paused = door.invoke(main, given, THREAD, durability=durability)
        assert [each.value for each in paused["__interrupt__"]] == [question]
    result = door.invoke(main, Command(resume="three"), THREAD, durability=durability)
    assert result == ["one", "two", [10, 10, 10], 12, "three"]
    assert ran == {("double", 5): 2, ("adouble", 5): 1, ("adouble", 6): 1}


@pytest.mark.parametrize("asked", [ask, aask], ids=["sync", "async"])
def test_tasks_ask_and_are_answered(door, saver, durability, asked):
    @entrypoint(checkpointer=saver)
    async def main(number: int) -> list:
        doubled = double(number)
        answer = await asked("sure?")
        return [await doubled, answer]

    paused = door.invoke(main, 5, THREAD, durability=durability)
    assert [each.value for each in paused["__interrupt__"]] == ["sure?"]
    assert door.invoke(main, None, THREAD, durability=durability) == paused
    assert door.invoke(main, Command(resume="yes"), THREAD, durability=durability) == [10, "sure? yes"]
    assert ran == {("double", 5): 1, (asked.name, "sure?"): 2}


@pytest.mark.parametrize("asked", [ask, aask], ids=["sync", "async"])
def test_tasks_that_ask_side_by_side_are_answered_by_id_in_any_order(door, saver, asked):
    @entrypoint(checkpointer=saver)
    def main(names: list[str]) -> list:
        futures = [asked(name) for name in names]
        return [future.result() for future in futures]

    names = [f"question {n}" for n in range(8)]
    questions = door.invoke(main, names, THREAD)["__interrupt__"]
    assert [each.value for each in questions] == names, "in the order of the calls, whichever came first"
    ids = {each.value: each.id for each in questions}
    with pytest.raises(InvalidResumeError, match="8 things"):
        door.invoke(main, Command(resume="yes"), THREAD)
    left = door.invoke(main, Command(resume={ids["question 6"]: "six", ids["question 0"]: "zero"}), THREAD)
    assert [each.value for each in left["__interrupt__"]] == [name for name in names if name[-1] not in "06"]
    assert main.get_state(THREAD).interrupts == tuple(left["__interrupt__"])
    rest = {each.id: f"{each.value}!" for each in left["__interrupt__"]}
    result = door.invoke(main, Command(resume=rest), THREAD)
    assert result[0] == "question 0 zero"
    assert result[6] == "question 6 six"
    assert result[3] == "question 3 question 3!"
    assert ran["ask", "question 6"] + ran["aask", "question 6"] == 2


def test_a_task_that_asks_pauses_the_node_that_does_not_await_it(door, saver):
    @entrypoint(checkpointer=saver)
    def main(number: int) -> int:
        ask("one?")
        ask("two?")
        return double(number).result()

    paused = door.invoke(main, 1, THREAD)["__interrupt__"]
    assert [each.value for each in paused] == ["one?", "two?"]
    assert door.invoke(main, Command(resume={each.id: "yes" for each in paused}), THREAD) == 2
    assert ran == {("double", 1): 1, ("ask", "one?"): 2, ("ask", "two?"): 2}


def test_questions_of_a_node_and_of_its_tasks_are_told_apart(door, saver):
    @entrypoint(checkpointer=saver)
    def main(_: int) -> list:
        asked = ask("task?")
        own = interrupt("node?")
        return [own, asked.result(), interrupt("last?")]

    questions = {each.value: each.id for each in door.invoke(main, 0, THREAD)["__interrupt__"]}
    assert questions.keys() == {"node?", "task?"}
    left = door.invoke(main, Command(resume={questions["node?"]: 1}), THREAD)["__interrupt__"]
    assert [each.value for each in left] == ["task?"]
    last = door.invoke(main, Command(resume=2), THREAD)["__interrupt__"]
    assert [each.value for each in last] == ["last?"]
    assert door.invoke(main, Command(resume=3), THREAD) == [1, "task? 2", 3]


def test_an_answer_that_does_not_fit_is_told_although_another_task_was_asked_for_first(door, saver):
    @task
    def number(name: str) -> int:
        return interrupt(name, int)

    @entrypoint(checkpointer=saver)
    def main(_: int) -> list[int]:
        return [future.result() for future in [number("a"), number("b")]]

    first, second = door.invoke(main, 0, THREAD)["__interrupt__"]
    with pytest.raises(InvalidResumeError, match="does not fit"):
        door.invoke(main, Command(resume={second.id: "no number"}), THREAD)
    assert door.invoke(main, Command(resume={first.id: 1, second.id: 2}), THREAD) == [1, 2]


def test_tasks_inside_tasks_ask_and_repeat_nothing(door, saver, durability):
    @task
    def outer(number: int) -> list:
        ran["outer"] += 1
        return [double(number).result(), ask("inside?").result(), adouble(number).result()]

    @entrypoint(checkpointer=saver)
    def main(number: int) -> list:
        return outer(number).result()

    door.invoke(main, 4, THREAD, durability=durability)
    assert door.invoke(main, Command(resume="yes"), THREAD, durability=durability) == [8, "inside? yes", 8]
    assert ran == {"outer": 2, ("double", 4): 1, ("ask", "inside?"): 2, ("adouble", 4): 1}


def test_a_task_that_asks_needs_a_checkpointer(door):
    @entrypoint()
    def main(_: int) -> str:
        return ask("?").result()

    with pytest.raises(MissingCheckpointerError):
        door.invoke(main, 0)


class Loop(TypedDict, total=False):
    n: int


class State(TypedDict, total=False):
    log: Annotated[list, list.__add__]


def test_nodes_of_any_graph_and_of_graphs_inside_it_repeat_nothing(door, saver, durability):
    def first(_: State):
        return {"log": [double(1).result(), interrupt("first?")]}

    async def second(_: State):
        return {"log": [await adouble(2), await aask("second?")]}

    builder = StateGraph(State).add_node(first).add_node(second).add_edge(START, "first").add_edge(START, "second")
    inner = builder.compile(name="inner")
    graph = StateGraph(State).add_node("inner", inner).add_edge(START, "inner").compile(saver)
    questions = door.invoke(graph, {}, THREAD, durability=durability)["__interrupt__"]
    answers = {each.id: f"{each.value} yes" for each in questions}
    result = door.invoke(graph, Command(resume=answers), THREAD, durability=durability)
    assert result["log"] == [2, "first? yes", 4, "second? second? yes"]
    assert ran == {("double", 1): 1, ("adouble", 2): 1, ("aask", "second?"): 2}


def test_an_entry_point_that_is_a_node_asks_and_repeats_nothing(door, saver):
    @entrypoint()
    def work(state: State) -> State:
        return {"log": [double(1).result(), interrupt("?")]}

    graph = StateGraph(State).add_node("work", work).add_edge(START, "work").compile(saver)
    door.invoke(graph, {}, THREAD)
    assert door.invoke(graph, Command(resume="yes"), THREAD)["log"] == [2, "yes"]
    assert ran == {("double", 1): 1}


# -- replay ------------------------------------------------------------------------------------------------------------


def test_results_are_found_by_arguments_although_the_order_of_the_calls_has_changed(door, saver):
    order = [3, 1, 2]

    @entrypoint(checkpointer=saver)
    def main(_: int) -> dict[int, int]:
        results = {number: double(number) for number in order}
        interrupt("?")
        return {number: future.result() for number, future in results.items()}

    door.invoke(main, 0, THREAD)
    order[:] = [2, 4, 3, 1]
    assert door.invoke(main, Command(resume=1), THREAD) == {2: 4, 4: 8, 3: 6, 1: 2}
    assert ran == {("double", n): 1 for n in (1, 2, 3, 4)}


def test_calls_with_equal_arguments_are_told_apart_by_their_order(door, saver):
    @task
    def count(name: str) -> int:
        ran[name] += 1
        return ran[name]

    @entrypoint(checkpointer=saver)
    def main(_: int) -> list[int]:
        counts = [count("a").result(), count("b").result(), count("a").result()]
        interrupt("?")
        return [*counts, count("a").result()]

    door.invoke(main, 0, THREAD)
    assert door.invoke(main, Command(resume=1), THREAD) == [1, 1, 2, 3]


def test_a_task_that_failed_is_tried_again_when_the_node_runs_again(door, saver, durability):
    broken = [True]

    @task
    def flaky(number: int) -> int:
        ran["flaky"] += 1
        if broken[0]:
            raise ValueError("broken")
        return number

    @entrypoint(checkpointer=saver)
    def main(number: int) -> int:
        first = double(number).result()
        return first + flaky(number).result()

    with pytest.raises(ValueError, match="broken"):
        door.invoke(main, 2, THREAD, durability=durability)
    broken[0] = False
    assert door.invoke(main, None, THREAD, durability=durability) == 6
    assert ran == {("double", 2): 1, "flaky": 2}


def test_an_attempt_after_one_that_failed_repeats_no_task(door, saver, durability):
    @task
    def outer(number: int) -> int:
        ran["outer"] += 1
        inside = double(number).result()
        if ran["outer"] == 1:
            raise ValueError("the task fails once")
        return inside

    @entrypoint(checkpointer=saver, retry_policy=RetryPolicy(max_attempts=3, initial_interval=0, retry_on=ValueError))
    def main(number: int) -> list:
        ran["main"] += 1
        results = [adouble(number).result(), outer(number).result()]
        if ran["main"] == 2:
            raise ValueError("the node fails as well")
        return [*results, interrupt("?")]

    door.invoke(main, 3, THREAD, durability=durability)
    assert ran == {("double", 3): 1, ("adouble", 3): 1, "outer": 2, "main": 3}
    assert door.invoke(main, Command(resume="yes"), THREAD, durability=durability) == [6, 6, "yes"]
    assert ran == {("double", 3): 1, ("adouble", 3): 1, "outer": 2, "main": 4}


def test_an_attempt_after_one_that_was_given_up_repeats_no_task_that_had_ended(door, saver, durability):
    go = Event()

    with fake_clock() as clock:

        @entrypoint(checkpointer=saver, timeout=1, retry_policy=RetryPolicy(max_attempts=2, initial_interval=0))
        def main(number: int) -> int:
            ran["main"] += 1
            result = double(number).result()
            if ran["main"] == 1:
                clock.advance(5)
                go.wait(PATIENCE)
            return result

        assert door.invoke(main, 3, THREAD, durability=durability) == 6
    go.set()
    assert ran == {("double", 3): 1, "main": 2}


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_run_that_dies_at_any_operation_of_the_store_repeats_only_what_had_not_ended(tmp_path, when):
    numbers = [1, 2, 3]

    def main_on(saver):
        @entrypoint(checkpointer=saver)
        def main(given: list[int]) -> int:
            total = 0
            for number in given:
                total += double(number).result()
                ended.add(number)
            return total

        return main

    ended = set()
    counted = FaultySaver(InMemorySaver())
    main_on(counted).invoke(numbers, THREAD)
    assert len(counted.operations) > len(numbers)
    for place in range(1, len(counted.operations) + 1):
        ran.clear()
        ended.clear()
        path = str(tmp_path / f"{place}.sqlite")
        with SqliteSaver(path) as first:
            with suppress(StorageFault):  # the last operation only gives the thread back
                main_on(FaultySaver(first, place, after=when == "after")).invoke(numbers, THREAD)
        known = set(ended)
        with SqliteSaver(path) as second:
            main = main_on(second)
            state = main.get_state(THREAD)
            if not state.values:  # not even the input was stored
                assert main.invoke(numbers, THREAD) == 12
                continue
            assert (main.invoke(None, THREAD) if state.next else state.values["value"]) == 12
        assert {number: ran["double", number] for number in known} == dict.fromkeys(known, 1), place


@dataclass(frozen=True)
class Order:
    number: int
    price: Decimal


class Receipt(pydantic.BaseModel):
    order: Order
    paid: Decimal


@task
def pay(order: Order, *, fee: Decimal) -> Receipt:
    ran["pay"] += 1
    return Receipt(order=order, paid=order.price + fee)


def test_arguments_and_results_of_ones_own_types_survive_in_a_file(door, tmp_path):
    def main_on(saver):
        @entrypoint(checkpointer=saver)
        def main(order: Order) -> Receipt:
            receipt = pay(order, fee=Decimal("0.5")).result()
            interrupt("ok?")
            return receipt

        return main

    order = Order(1, Decimal("9.5"))
    with SqliteSaver(str(tmp_path / "a.sqlite")) as first:
        door.invoke(main_on(first), order, THREAD)
    with SqliteSaver(str(tmp_path / "a.sqlite")) as second:
        result = door.invoke(main_on(second), Command(resume=True), THREAD)
    assert result == Receipt(order=order, paid=Decimal("10.0"))
    assert ran["pay"] == 1


def test_an_argument_that_can_not_be_stored_is_an_error_that_says_so(door, saver):
    class Connection:
        pass

    @task
    def use(connection) -> int:
        return 1

    @entrypoint(checkpointer=saver)
    def main(_: int) -> int:
        return use(Connection()).result()

    with pytest.raises(EncodeError) as caught:
        door.invoke(main, 0, THREAD)
    text = "\n".join([str(caught.value), *caught.value.__notes__])
    assert "task 'use'" in text
    assert "Connection" in text

    @entrypoint()
    def unstored(_: int) -> int:
        return use(Connection()).result()

    assert door.invoke(unstored, 0) == 1


def test_a_result_that_can_not_be_stored_is_an_error_that_names_the_task(door, saver):
    @task
    def connect(number: int):
        return object()

    @entrypoint(checkpointer=saver)
    def main(_: int) -> None:
        connect(1)

    with pytest.raises(EncodeError) as caught:
        door.invoke(main, 0, THREAD)
    assert any("'connect'" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("policy", [{}, {"timeout": 60}], ids=["plain", "with a policy"])
def test_a_graph_with_a_history_of_its_own_goes_on_from_its_end_where_a_run_writes_at_its_end(door, policy):
    inner = StateGraph(Loop).add_node("inner", lambda state: {"n": state.get("n", 0) + 1}).add_edge(START, "inner")
    remembers = inner.compile(True)

    def outer(_: State):
        return {"log": [remembers.invoke({})["n"]]}

    builder = StateGraph(State).add_node("outer", outer, **policy).add_edge(START, "outer")
    builder.add_conditional_edges("outer", lambda state: "outer" if len(state["log"]) < 3 else "__end__")
    graph = builder.compile(InMemorySaver(), durability="exit")
    assert door.invoke(graph, {}, THREAD)["log"] == [1, 2, 3]


# -- recorded ----------------------------------------------------------------------------------------------------------


def test_what_is_recorded_is_made_once(door, saver, durability):
    def make(value):
        ran[value] += 1
        return value

    async def amake():
        return make("c")

    @entrypoint(checkpointer=saver)
    async def main(_: int) -> list:
        made = [recorded("x", lambda: make("a")), recorded("x", lambda: make("b")), await arecorded("y", amake)]
        return [*made, interrupt("?")]

    door.invoke(main, 0, THREAD, durability=durability)
    assert door.invoke(main, Command(resume=1), THREAD, durability=durability) == ["a", "b", "c", 1]
    assert ran == {"a": 1, "b": 1, "c": 1}


def test_what_fails_to_be_made_fails_there_and_is_made_again(door, saver):
    def make():
        ran["made"] += 1
        if ran["made"] == 1:
            raise ValueError("once")
        return 5

    @entrypoint(checkpointer=saver)
    def main(_: int) -> int:
        return recorded("x", make)

    with pytest.raises(ValueError, match="once"):
        door.invoke(main, 0, THREAD)
    assert door.invoke(main, None, THREAD) == 5


def test_what_is_recorded_needs_a_task_and_a_name(door):
    with pytest.raises(OutsideTaskError):
        recorded("x", int)

    @entrypoint()
    def main(name: str) -> int:
        return recorded(name, int)

    assert door.invoke(main, "x") == 0
    for name in ("", "a:b", "__a"):
        with pytest.raises(GraphDefinitionError, match="recorded value"):
            door.invoke(main, name)


# -- previous, state and history ---------------------------------------------------------------------------------------


def test_the_next_run_finds_what_the_last_one_has_saved(door, saver, durability):
    @entrypoint(checkpointer=saver)
    def main(number: int, *, previous: int | None = None) -> list:
        return entrypoint.final(value=[number, previous], save=(previous or 0) + number)

    results = [door.invoke(main, number, THREAD, durability=durability) for number in (1, 2, 3)]
    assert results == [[1, None], [2, 1], [3, 3]]
    assert door.invoke(main, 4, {"configurable": {"thread_id": "2"}}) == [4, None]


def test_what_is_returned_is_saved_where_nothing_else_is(door, saver):
    @entrypoint(checkpointer=saver)
    async def main(number: int, previous: int = 100) -> int:
        return number + (0 if previous is None else previous)

    assert [door.invoke(main, number, THREAD) for number in (1, 2, 3)] == [1, 3, 6]


def test_a_paused_run_has_saved_nothing_yet(door, saver):
    @entrypoint(checkpointer=saver)
    def main(number: int, *, previous: int | None) -> list:
        return entrypoint.final(value=[previous, interrupt("?")], save=number)

    door.invoke(main, 1, THREAD)
    assert door.invoke(main, Command(resume="a"), THREAD) == [None, "a"]
    door.invoke(main, 2, THREAD)
    assert door.invoke(main, Command(resume="b"), THREAD) == [1, "b"]


def test_the_state_is_read_changed_and_gone_back_to(door, saver):
    @entrypoint(checkpointer=saver)
    def main(number: int, *, previous: int | None) -> int:
        return (previous or 0) + double(number).result()

    assert [door.invoke(main, number, THREAD) for number in (1, 2)] == [2, 6]
    state = main.get_state(THREAD)
    assert state.values["previous"] == 6
    assert state.next == ()
    main.update_state(THREAD, {"previous": 100})
    assert door.invoke(main, 1, THREAD) == 102
    history = [*main.get_state_history(THREAD)]
    old = next(each for each in history if each.values.get("previous") == 2 and not each.next)
    assert door.invoke(main, 5, old.config) == 12
    assert ran["double", 1] == 2


def test_a_fork_before_a_node_calls_its_tasks_again(door, saver):
    @entrypoint(checkpointer=saver)
    def main(number: int) -> int:
        return double(number).result()

    door.invoke(main, 1, THREAD)
    before = next(each for each in main.get_state_history(THREAD) if each.next)
    assert door.invoke(main, None, before.config) == 2
    assert ran["double", 1] == 2


def test_a_paused_node_shows_in_the_state(door, saver):
    @entrypoint(checkpointer=saver)
    def main(_: int) -> str:
        return ask("sure?").result()

    question = door.invoke(main, 0, THREAD)["__interrupt__"][0]
    state = main.get_state(THREAD, subgraphs=True)
    assert state.next == ("main",)
    assert state.interrupts == (question,)
    assert isinstance(question, Interrupt)


# -- what is kept ------------------------------------------------------------------------------------------------------


def looping(saver):
    def step(state: Loop):
        assert double(state["n"] % 3).result() == 2 * (state["n"] % 3)
        with pytest.raises(ValueError, match="caught"):
            fails(state["n"]).result()
        return {"n": state["n"] + 1}

    builder = StateGraph(Loop).add_node(step).add_edge(START, "step")
    builder.add_conditional_edges("step", lambda state: "step" if state["n"] < 40 else "__end__", ["step", "__end__"])
    return builder.compile(saver, durability="exit")


@task
def fails(number: int) -> None:
    raise ValueError("caught")


def test_a_run_that_writes_at_its_end_keeps_no_calls_of_supersteps_that_are_over(door):
    saver = InMemorySaver()
    graph = looping(saver)
    assert door.invoke(graph, {"n": 0}, THREAD) == {"n": 40}
    assert saver.namespaces("1", 0, ()) == [()]


def test_calls_of_an_open_superstep_stay_where_a_run_writes_at_its_end(door):
    saver = InMemorySaver()

    @entrypoint(checkpointer=saver)
    def main(_: int) -> int:
        double(1).result()
        return interrupt("?")

    door.invoke(main, 0, THREAD, durability="exit")
    assert len(saver.namespaces("1", 0, ())) == 2


def test_what_is_stored_grows_with_the_calls_only(tmp_path):
    def size(calls):
        path = tmp_path / f"{calls}.sqlite"
        with SqliteSaver(str(path)) as saver:

            @entrypoint(checkpointer=saver)
            def main(n: int) -> None:
                for number in range(n):
                    double(number)

            main.invoke(calls, THREAD)
        return path.stat().st_size

    empty, some, more = size(0), size(50), size(100)
    assert more - empty < 2.5 * (some - empty)


def test_deleting_a_thread_deletes_its_calls(saver):
    @entrypoint(checkpointer=saver)
    def main(_: int) -> int:
        return double(1).result()

    main.invoke(0, THREAD)
    assert len(saver.namespaces("1", 0, ())) == 2
    saver.delete_thread("1")
    assert saver.namespaces("1", 0, ()) == []


def test_calls_are_let_go_when_their_node_has_ended(door):
    class Big:
        pass

    made = []

    @task
    def make() -> object:
        big = Big()
        made.append(weakref.ref(big))
        return big

    @entrypoint()
    def main(_: int) -> None:
        make()
        make().result()

    gc.disable()
    try:
        door.invoke(main, 0)
        assert [each() for each in made] == [None, None]
    finally:
        gc.enable()


# -- other processes ---------------------------------------------------------------------------------------------------


@task
def here(number: int) -> int:
    return number + 1


def calls_tasks(state: State):
    futures = [here(number) for number in range(3)]
    return {"log": [future.result() for future in futures]}


def leaves_a_failure(state: State):
    fails(1)
    return {"log": []}


def leaves_a_question(state: State):
    ask("away?")
    return {"log": []}


@pytest.fixture(scope="module")
def processes():
    with ProcessExecutor(1) as executor:
        yield executor


def test_tasks_run_in_other_processes(door, processes):
    power = task(executor=processes, name="power")(pow)

    @entrypoint(checkpointer=InMemorySaver())
    def main(number: int) -> list[int]:
        return [future.result() for future in [power(2, number), power(3, number)]]

    assert door.invoke(main, 3, THREAD) == [8, 27]


def test_a_node_in_another_process_calls_tasks_there_and_waits_for_them(door, processes):
    def graph_of(node, saver=None):
        return StateGraph(State).add_node("node", node, executor=processes).add_edge(START, "node").compile(saver)

    assert door.invoke(graph_of(calls_tasks), {})["log"] == [1, 2, 3]
    with pytest.raises(ValueError, match="caught"):
        door.invoke(graph_of(leaves_a_failure), {})
    stored = graph_of(leaves_a_question, InMemorySaver())
    assert [each.value for each in door.invoke(stored, {}, THREAD)["__interrupt__"]] == ["away?"]
    assert door.invoke(stored, Command(resume="yes"), THREAD)["log"] == []


def test_a_node_in_a_thread_of_an_executor_calls_tasks(door):
    with ThreadPoolExecutor(1) as pool:
        graph = StateGraph(State).add_node("node", calls_tasks, executor=pool).add_edge(START, "node").compile()
        assert door.invoke(graph, {})["log"] == [1, 2, 3]
