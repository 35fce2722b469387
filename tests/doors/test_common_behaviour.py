"""What every front door has because it compiles to the same graph: one body for all of them, on all drivers."""

import pytest

from pregel import Command, Pregel
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.testing import fake_clock, run_seeded
from tests.doors.front_doors import DOORS, Effects, FailedOnceError

CONFIG = {"configurable": {"thread_id": "t"}}
ALL = {"first": 1, "left": 1, "right": 1, "last": 1}


@pytest.fixture(params=DOORS, ids=lambda door: door.name)
def front(request):
    """A front door."""
    return request.param


@pytest.fixture
def effects():
    return Effects()


@pytest.fixture(params=["memory", "sqlite"])
def reopened(request, tmp_path):
    """Gives what is stored, as another process would find it."""
    if request.param == "memory":
        saver = InMemorySaver()
        return lambda: saver
    return lambda: SqliteSaver(tmp_path / "runs.sqlite")


def test_each_compiles_to_the_same_class(front, effects):
    assert isinstance(front.build(effects, None), Pregel)


def test_a_pause_is_answered_and_nothing_is_done_twice(front, effects, door, reopened):
    paused = door.invoke(front.build(effects, reopened()), front.given, CONFIG)

    assert len(paused["__interrupt__"]) == 1
    assert effects.counts == {"first": 1, "left": 1, "right": 1}
    result = door.invoke(front.build(effects, reopened()), Command(resume="yes"), CONFIG)
    assert front.answer(result) == "7 yes"
    assert effects.counts == ALL


@pytest.mark.parametrize("step", ["first", "left", "right", "last"])
def test_what_has_failed_goes_on_where_it_stood(front, effects, door, reopened, step):
    effects.fails.add(step)
    graph = front.build(effects, reopened())

    if step == "last":
        door.invoke(graph, front.given, CONFIG)
    with pytest.raises(FailedOnceError):
        door.invoke(graph, Command(resume="yes") if step == "last" else front.given, CONFIG)
    result = door.invoke(front.build(effects, reopened()), None, CONFIG)
    if step != "last":
        result = door.invoke(front.build(effects, reopened()), Command(resume="yes"), CONFIG)

    assert front.answer(result) == "7 yes"
    assert effects.counts == {**ALL, step: 2}


def test_another_answer_from_an_earlier_checkpoint_opens_a_branch(front, effects, door):
    graph = front.build(effects, InMemorySaver())
    door.invoke(graph, front.given, CONFIG)
    (paused,) = [each for each in graph.get_state_history(CONFIG) if each.interrupts]
    assert front.answer(door.invoke(graph, Command(resume="yes"), CONFIG)) == "7 yes"
    ended = graph.get_state(CONFIG)

    door.invoke(graph, None, paused.config)
    assert front.answer(door.invoke(graph, Command(resume="no"), CONFIG)) == "7 no"

    assert graph.get_state(ended.config).values == ended.values
    assert graph.get_state(CONFIG).values != ended.values
    if front.steps:
        assert effects.counts == {**ALL, "last": 2}


def test_what_is_told_and_what_comes_out_do_not_depend_on_who_ends_first(front):
    found = set()
    for seed in range(20):
        graph = front.build(Effects(), InMemorySaver())
        with fake_clock():  # a flow's trace tells how long each step took
            paused = run_seeded(graph, front.given, seed=seed, config=CONFIG, stream_mode="values")
            ended = run_seeded(graph, Command(resume="yes"), seed=seed, config=CONFIG, stream_mode="values")
        assert paused.error is None
        assert front.answer(ended.result) == "7 yes"
        found.add(repr((paused.parts, ended.parts)))
    assert len(found) == 1


def test_each_step_is_told_in_its_order(front, effects, door):
    graph = front.build(effects, InMemorySaver())
    told = door.stream(graph, front.given, CONFIG, stream_mode="updates")
    told += door.stream(graph, Command(resume="yes"), CONFIG, stream_mode="updates")
    names = [name for part in told for name in front.told(part) if name in ALL]
    assert names[0] == "first"
    assert set(names[1:3]) == {"left", "right"}
    assert names[3:] == ["last"]
