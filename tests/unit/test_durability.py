"""When what a run commits is stored, in each durability, and what becomes of a value that can't be."""

import operator
import threading
from collections import Counter
from typing import Annotated, Any

import pytest
from typing_extensions import TypedDict

from pregel import START, Command, Send, StateGraph, interrupt
from pregel.checkpoint.base import Advance, DropTasks, OpenBranch, PutCheckpoint, PutTask, Release
from pregel.checkpoint.group import GroupWriter, merged
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.owner import new_lease
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import EncodeError, InvalidConcurrentUpdateError, InvalidConfigError, ReducerError
from pregel.types import GroupCommit, Migration

CONFIG = {"configurable": {"thread_id": "t"}}
DURABILITIES = ["sync", "async", "exit"]


class State(TypedDict, total=False):
    log: Annotated[list, operator.add]
    value: Any


class Unstorable:
    """Of no type that the codec knows."""


def chain(**nodes):
    """Return a builder of nodes that run one after the other."""
    return StateGraph(State).add_sequence(list(nodes.items())).add_edge(START, next(iter(nodes)))


def fan(**nodes):
    """Return a builder of nodes that run in one superstep."""
    builder = StateGraph(State)
    for name, node in nodes.items():
        builder.add_node(name, node).add_edge(START, name)
    return builder


def says(name):
    """Return a node that logs a name."""
    return lambda state: {"log": [name]}


def ask(state):
    return {"log": [interrupt("what?")]}


def boom(state):
    raise ValueError("boom")


@pytest.fixture(params=["memory", "sqlite"])
def saver(request, tmp_path):
    """An empty checkpointer that does not wait for a disk, and one that does."""
    if request.param == "memory":
        yield InMemorySaver()
    else:
        with SqliteSaver(tmp_path / "runs.db", synchronous="NORMAL") as made:
            yield made


# -- sync --------------------------------------------------------------------------------------------------------------


def test_sync_what_is_committed_is_stored_before_the_next_step_starts(saver, door):
    seen = []

    def look(state):
        seen.append((log_of(builder.compile(saver)), state["log"]))
        return {"log": [f"{len(seen)}"]}

    builder = chain(a=look, b=look, c=look)
    door.invoke(builder.compile(saver), {"log": ["0"]}, CONFIG)
    assert [stored for stored, _ in seen] == [live for _, live in seen] == [["0"], ["0", "1"], ["0", "1", "2"]]


def log_of(graph):
    """Return the log that is stored."""
    return graph.get_state(CONFIG).values.get("log")


def test_sync_a_task_that_ends_while_its_siblings_run_is_stored_at_once(saver):
    written = threading.Event()
    write = saver.write

    def noticed(thread_id, token, writes):
        write(thread_id, token, writes)
        if any(type(each) is PutTask for each in writes):
            written.set()

    saver.write = noticed

    def slow(state):
        assert written.wait(30)
        return {"log": ["slow"]}

    graph = fan(quick=says("quick"), slow=slow).compile(saver)
    assert graph.invoke({"log": []}, CONFIG) == {"log": ["quick", "slow"]}


def test_sync_a_superstep_of_one_task_is_one_transaction():
    calls = []

    class Counted(InMemorySaver):
        def write(self, thread_id, token, writes):
            calls.append([type(each).__name__ for each in writes])
            super().write(thread_id, token, writes)

    chain(a=says("a"), b=says("b")).compile(Counted()).invoke({"log": []}, CONFIG)
    superstep = ["Advance", "PutCheckpoint", "PutValue"]
    assert calls == [superstep, superstep, [*superstep, "Release"]]  # the last one lets the thread go


# -- async -------------------------------------------------------------------------------------------------------------


class Held(InMemorySaver):
    """Does not write before it is told to."""

    def __init__(self):
        super().__init__()
        self.go = threading.Event()
        self.calls = []

    def write(self, thread_id, token, writes):
        assert self.go.wait(30)
        super().write(thread_id, token, writes)
        self.calls.append(Counter(type(each).__name__ for each in writes))


def test_async_the_run_goes_on_while_the_store_writes_and_groups_what_came_meanwhile():
    saver = Held()

    def go(state):
        saver.go.set()
        return {"log": ["go"]}

    nodes = {f"n{number}": says(f"{number}") for number in range(5)}
    graph = chain(**nodes, go=go).compile(saver, durability=GroupCommit(steps=100, milliseconds=60_000.0))
    assert graph.invoke({"log": []}, CONFIG)["log"] == [*"01234", "go"]
    assert len(saver.calls) <= 3
    assert sum(calls["PutCheckpoint"] for calls in saver.calls) == 7
    assert [calls["Advance"] for calls in saver.calls] == [1] * len(saver.calls)
    assert len(list(graph.get_state_history(CONFIG))) == 7


@pytest.mark.parametrize("last", [says("end"), ask, boom])
def test_async_the_end_a_pause_and_an_error_wait_for_the_writer(saver, door, last):
    graph = chain(a=says("a"), b=says("b"), last=last).compile(saver, durability="async")
    *_, end = door.stream(graph, {"log": []}, CONFIG, stream_mode="values")
    assert log_of(graph)[:2] == ["a", "b"]
    state = graph.get_state(CONFIG)
    if last is ask:
        assert [each.value for each in state.interrupts] == ["what?"]
    elif last is boom:
        assert str(end) == "boom"
        assert "boom" in state.tasks[0].error


def test_async_the_run_waits_once_as_many_commits_wait_as_may_be_lost():
    started, go, written = threading.Event(), threading.Event(), []

    def write(writes):
        started.set()
        assert go.wait(30)
        written.extend(writes)

    writer = GroupWriter(write, GroupCommit(steps=2, milliseconds=60_000.0))
    puts = [[DropTasks(0, (), number)] for number in range(3)]
    writer.put(puts[0])
    assert started.wait(30)
    writer.put(puts[1])
    third = threading.Thread(target=writer.put, args=(puts[2],))
    third.start()
    assert written == []
    go.set()
    third.join()
    writer.close()
    assert [each.step for each in written] == [0, 1, 2]


def test_async_the_run_waits_once_the_oldest_commit_has_waited_long_enough(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("pregel.checkpoint.group.monotonic", lambda: now[0])
    writer = GroupWriter(lambda writes: None, GroupCommit(steps=100, milliseconds=50.0))
    writer.waiting, writer.oldest = 1, 0.0
    now[0] = 0.04
    assert not writer.is_behind()
    now[0] = 0.06
    assert writer.is_behind()
    writer.oldest, writer.writing = 0.05, 0.0
    assert writer.is_behind()
    writer.writing = 0.05
    assert not writer.is_behind()


def test_async_an_error_of_the_store_ends_the_run(door):
    class Failing(InMemorySaver):
        def write(self, thread_id, token, writes):
            if any(type(each) is PutCheckpoint and each.row.step >= 2 for each in writes):
                raise OSError("disk full")
            super().write(thread_id, token, writes)

    saver = Failing()
    ran = []

    def endless(state):
        ran.append(1)
        return Command(goto="endless")

    builder = StateGraph(State).add_node("endless", endless, destinations=("endless",)).add_edge(START, "endless")
    graph = builder.compile(saver, durability=GroupCommit(steps=5, milliseconds=60_000.0))
    *_, error = door.stream(graph, {"log": []}, CONFIG)
    assert repr(error) == "OSError('disk full')"
    assert len(ran) < 20
    assert all(state.metadata["step"] < 2 for state in graph.get_state_history(CONFIG))


def test_async_an_error_of_the_last_write_is_not_lost(door):
    class Failing(InMemorySaver):
        def write(self, thread_id, token, writes):
            raise OSError("disk full")

    graph = chain(a=says("a")).compile(Failing(), durability="async")
    with pytest.raises(OSError, match="disk full"):
        door.invoke(graph, {"log": []}, CONFIG)


def test_a_group_leaves_what_its_commits_leave():
    saver = InMemorySaver()
    written = []

    class Copying(InMemorySaver):
        def write(self, thread_id, token, writes):
            written.extend(writes)
            super().write(thread_id, token, writes)

    first = fan(a=says("a"), b=says("b")).add_node("c", says("c")).add_edge(["a", "b"], "c").compile(Copying())
    first.invoke({"log": []}, CONFIG)
    group = merged(written)
    kinds = Counter(type(each) for each in group)
    assert kinds[Advance] == 1
    assert kinds[PutTask] == 0  # they were dropped in the same group
    assert group.index(Release()) == len(group) - 1
    lease = new_lease()
    saver.claim("t", lease, 10.0, lambda other: False)
    saver.write("t", lease.token, group)
    assert [thread.leased for thread in saver.threads()] == [False]
    other = first.get_state(CONFIG)
    assert chain(a=says("a")).compile(saver).get_state(CONFIG).values == other.values
    assert saver.head("t", 0, ()) == 2


def test_a_branch_is_opened_before_its_head_is_moved():
    writes = [Advance(1, (), None, 3, 7), OpenBranch(None), DropTasks(1, (), 4)]
    assert merged(writes) == [writes[1], writes[0], writes[2]]


def test_a_thread_is_let_go_after_all_else_of_a_group():
    writes = [OpenBranch(None), Release(), Advance(1, (), None, 3, 7), DropTasks(1, (), 4)]
    assert merged(writes) == [writes[0], writes[2], writes[3], writes[1]]


def test_where_the_outermost_head_moves_in_the_group_heads_inside_are_not_checked_against_it():
    inner = Advance(0, ("a",), None, 1, 2, root_step=0, check_root=True)
    outer = Advance(0, (), 0, 1, 3)
    assert merged([inner, outer]) == [inner._replace(check_root=False), outer]
    assert merged([inner]) == [inner]


# -- exit --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("last", [says("end"), ask, boom])
def test_exit_one_checkpoint_is_written_at_the_end_whatever_it_is(saver, door, last):
    seen = []

    def look(state):
        seen.append(saver.latest("t"))
        return {"log": ["b"]}

    graph = chain(a=says("a"), look=look, last=last).compile(saver, durability="exit")
    door.stream(graph, {"log": ["0"]}, CONFIG)
    assert seen == [None]
    (state,) = graph.get_state_history(CONFIG)
    assert state.values["log"] == ["0", "a", "b", *(["end"] if last is not ask and last is not boom else [])]
    assert state.next == (() if last is not ask and last is not boom else ("last",))
    if last is ask:
        assert door.invoke(graph, Command(resume="yes"), CONFIG)["log"] == ["0", "a", "b", "yes"]


def test_exit_what_ended_in_the_open_step_is_not_run_again(saver, door):
    runs = Counter()

    def counted(name, fails):
        def node(state):
            runs[name] += 1
            if runs[name] <= fails:
                raise ValueError(name)
            return {"log": [name]}

        return node

    graph = fan(good=counted("good", 0), bad=counted("bad", 1)).compile(saver, durability="exit")
    *_, error = door.stream(graph, {"log": []}, CONFIG)
    assert str(error) == "bad"
    assert door.invoke(graph, None, CONFIG) == {"log": ["good", "bad"]}
    assert runs == {"good": 1, "bad": 2}


@pytest.mark.parametrize("bad", ["synk", 1, GroupCommit(steps=0), GroupCommit(milliseconds=0)])
def test_a_durability_that_is_none_is_refused(bad):
    with pytest.raises(InvalidConfigError):
        chain(a=says("a")).compile(InMemorySaver(), durability=bad)
    with pytest.raises(InvalidConfigError):
        chain(a=says("a")).compile(InMemorySaver()).invoke({"log": []}, CONFIG, durability=bad)


# -- what can't be stored ----------------------------------------------------------------------------------------------


def stays_as_it_was(graph, error, path, before):
    """Check that an error names the place, that nothing was stored by halves, and that the thread can go on."""
    assert type(error) is EncodeError
    assert path in str(error)
    assert any(note.startswith("In graph 'State', ") for note in error.__notes__)
    assert log_of(graph) == before
    state = graph.get_state(CONFIG)
    assert list(graph.get_state_history(CONFIG))[:1] == ([state] if state.created_at else [])


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize(
    ("update", "path"),
    [
        ({"value": {"deep": [1, Unstorable()]}}, "value['deep'][1]"),
        ({"log": [1, Unstorable()]}, "log["),
    ],
)
def test_a_result_that_can_not_be_stored(saver, door, durability, update, path):
    results = [update]
    graph = chain(a=says("a"), bad=lambda state: results[0], c=says("c")).compile(saver, durability=durability)
    *_, error = door.stream(graph, {"log": []}, CONFIG)
    stays_as_it_was(graph, error, path, ["a"] if durability != "exit" else None)
    results[0] = {"log": ["good"]}
    again = {"log": []} if durability == "exit" else None
    assert door.invoke(graph, again, CONFIG) == {"log": ["a", "good", "c"]}


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_result_of_one_of_several_tasks_that_can_not_be_stored(saver, door, durability):
    results = [{"value": Unstorable()}]
    graph = fan(a=says("a"), bad=lambda state: results[0]).compile(saver, durability=durability)
    *_, error = door.stream(graph, {"log": []}, CONFIG)
    stays_as_it_was(graph, error, "value", [] if durability != "exit" else None)
    results[0] = {"log": ["good"]}
    again = {"log": []} if durability == "exit" else None
    assert door.invoke(graph, again, CONFIG) == {"log": ["a", "good"]}


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_packet_that_can_not_be_stored(saver, door, durability):
    packets = [Send("work", {"x": Unstorable()})]
    builder = StateGraph(State).add_node("work", lambda arg: {"log": ["work"]}).add_node("a", says("a"))
    builder.add_edge(START, "a").add_conditional_edges("a", lambda state: packets, ["work"])
    graph = builder.compile(saver, durability=durability, interrupt_before=["work"])  # so that it is stored at the end
    *_, error = door.stream(graph, {"log": []}, CONFIG)
    stays_as_it_was(graph, error, "Send('work').arg['x']", [] if durability != "exit" else None)
    packets[0] = Send("work", {"x": 1})
    door.invoke(graph, {"log": []} if durability == "exit" else None, CONFIG)
    assert door.invoke(graph, None, CONFIG) == {"log": ["a", "work"]}


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_question_that_can_not_be_stored(saver, door, durability):
    questions = [Unstorable()]
    graph = chain(a=says("a"), ask=lambda state: {"log": [interrupt(questions[0])]}).compile(
        saver, durability=durability
    )
    *_, error = door.stream(graph, {"log": []}, CONFIG)
    stays_as_it_was(graph, error, "the value of interrupt 2:0:ask#0", ["a"] if durability != "exit" else None)
    questions[0] = "what?"
    door.invoke(graph, {"log": []} if durability == "exit" else None, CONFIG)
    assert door.invoke(graph, Command(resume="so"), CONFIG) == {"log": ["a", "so"]}


@pytest.mark.parametrize("durability", DURABILITIES)
def test_an_answer_that_can_not_be_stored(saver, door, durability):
    graph = chain(ask=ask).compile(saver, durability=durability)
    door.invoke(graph, {"log": []}, CONFIG)
    before = graph.get_state(CONFIG)
    with pytest.raises(EncodeError, match=r"the answer to 1:0:ask#0"):
        door.invoke(graph, Command(resume=Unstorable()), CONFIG)
    assert graph.get_state(CONFIG) == before
    assert door.invoke(graph, Command(resume="so"), CONFIG) == {"log": ["so"]}


@pytest.mark.parametrize("durability", DURABILITIES)
def test_metadata_that_can_not_be_stored(saver, door, durability):
    graph = chain(a=says("a")).compile(saver, durability=durability)
    with pytest.raises(EncodeError, match=r"config\['metadata'\]\['who'\]"):
        door.invoke(graph, {"log": []}, {**CONFIG, "metadata": {"who": Unstorable()}})
    assert saver.threads() == []
    assert door.invoke(graph, {"log": []}, CONFIG) == {"log": ["a"]}


# -- a barrier that fails ----------------------------------------------------------------------------------------------


def picky(old, new):
    """Add numbers, and refuse what is negative."""
    if new < 0:
        raise ValueError("negative")
    return old + new


class Fields(TypedDict, total=False):
    a: int
    b: Annotated[int, picky]
    c: Annotated[list, operator.add]


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("field", ["a", "b", "c"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_barrier_that_fails_changes_nothing_and_leaves_all_its_tasks_due(saver, door, durability, field, place):
    bad = {"a": 5, "b": -1, "c": ["x"]}[field]
    runs = Counter()
    broken = [True]

    def task(number):
        def node(state):
            runs[number] += 1
            if not broken[0]:
                return {"c": [number]}
            good = {"a": 1} if field != "a" and number == 0 else {"b": 1} if field != "b" else {"c": [number]}
            if number != place:
                return {**good, **({"a": 1} if field == "a" and number == (place + 1) % 3 else {})}
            return {**good, field: bad}

        return node

    def refuse(left, right):
        if right == ["x"]:
            raise RuntimeError("no x")
        return left + right

    class Torn(Fields, total=False):
        c: Annotated[list, refuse]

    builder = StateGraph(Torn)
    for number in range(3):
        builder.add_node(f"t{number}", task(number)).add_edge(START, f"t{number}")
    graph = builder.compile(saver, durability=durability)
    *_, error = door.stream(graph, {"b": 10, "c": []}, CONFIG)
    assert isinstance(error, InvalidConcurrentUpdateError if field == "a" else ReducerError)
    state = graph.get_state(CONFIG)
    assert state.values == {"b": 10, "c": []}
    assert state.next == ("t0", "t1", "t2")
    assert all(task.result is None and task.error is None for task in state.tasks)
    broken[0] = False
    assert door.invoke(graph, None, CONFIG) == {"b": 10, "c": [0, 1, 2]}
    assert runs == {0: 2, 1: 2, 2: 2}


# -- what a migration has converted ------------------------------------------------------------------------------------


@pytest.mark.parametrize("durability", DURABILITIES)
def test_what_a_migration_has_converted_is_stored_with_the_next_commit(saver, door, durability):
    door.invoke(chain(ask=ask).compile(saver), {"log": ["kept"], "value": 1}, CONFIG)
    conversions = []

    def convert(values):
        conversions.append(1)
        return {**values, "value": values["value"] * 10}

    later = chain(ask=ask, b=says("b")).compile(saver, durability=durability, migrations=Migration(state=convert))
    assert door.invoke(later, Command(resume="so"), CONFIG) == {"log": ["kept", "so", "b"], "value": 10}
    assert later.get_state(CONFIG).values == {"log": ["kept", "so", "b"], "value": 10}
    later.update_state(CONFIG, {"log": ["edit"]})
    assert later.get_state(CONFIG).values["value"] == 10
    assert len(conversions) == 1


def test_what_has_ended_when_a_reader_leaves_is_kept_whether_it_was_told_or_not():
    second_is_done = threading.Event()
    third_may_end = threading.Event()

    class State(TypedDict):
        log: Annotated[list, operator.add]

    def first(state):
        return {"log": ["first"]}

    def second(state):
        second_is_done.set()
        return {"log": ["second"]}

    def third(state):
        assert third_may_end.wait(30)
        return {"log": ["third"]}

    builder = StateGraph(State)
    for node in (first, second, third):
        builder.add_node(node).add_edge(START, node.__name__)
    graph = builder.compile(InMemorySaver())
    config = {"configurable": {"thread_id": "left"}}
    parts = graph.stream({"log": []}, config, stream_mode="updates")
    told = next(parts)
    assert second_is_done.wait(30)
    third_may_end.set()
    parts.close()
    kept = {task.name for task in graph.get_state(config).tasks if task.result is not None}
    assert kept >= told.keys()
    assert len(kept) == 2  # all but the one that ended last: with it the superstep is over, and nobody has committed it
    assert graph.invoke(None, config)["log"] == ["first", "second", "third"]
