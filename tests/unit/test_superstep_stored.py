"""The machine by values where runs are stored: what it says to store and when, how it pauses, and how it goes on."""

import pytest

from pregel.channels import BinaryOperatorAggregate, EphemeralValue, LastValue, NamedBarrierValue
from pregel.channels.base import MISSING, Overwrite
from pregel.commands import (
    CommitBarrier,
    CommitTask,
    DropTasks,
    Finish,
    RunTasks,
    Standing,
    TaskDone,
    TaskFailed,
    TaskPaused,
    concluded,
)
from pregel.errors import IllegalEventError, InvalidConcurrentUpdateError, InvalidUpdateError, StarvedJoinError
from pregel.network import Network
from pregel.node import EDITOR, Code, Field, Join, Node, View
from pregel.plan import Due
from pregel.reporter import Emit
from pregel.superstep import Superstep
from pregel.task import Task, Writes
from pregel.types import Breakpoint, Command, Interrupt, Send

NOWHERE = Standing()
QUESTION = Interrupt("sure?", "1:0:a#0")


def node(name, order, *targets, joins=(), defer=False, once=False):
    return Node(name, order, Code(name), View(), targets=targets, joins=joins, defer=defer, once=once)


def network(*nodes, entry="a", channel=None):
    fields = {"n": Field("n", LastValue() if channel is None else channel)}
    return Network("g", fields, {n.name: n for n in nodes}, node("__start__", -1, entry), ("n",))


def config_of(step):
    return {"step": step}


def machine_of(net, limit=10, **options):
    return Superstep(net, limit=limit, config_of=config_of, **options)


def begun(net, *updates, goto=("a",), **options):
    """Return a machine that has taken its input, and what it asked for then."""
    machine = machine_of(net, **options)
    (run,) = machine.start(updates)
    return machine, machine.handle(TaskDone(run.tasks[0], Writes(updates, goto)))


def barrier(step, source="loop", changed=(), before=(), standing=NOWHERE, **more):
    """Return the commit of a superstep whose updates are its changes, with everything else that is not said empty."""
    given = {"overwritten": frozenset(), "updates": tuple(dict(changed).items()), **more}
    return CommitBarrier(step, source, dict(changed), dict(before), standing=standing, **given)


# -- what is stored --------------------------------------------------------------------------------------------------


def test_a_barrier_is_stored_before_what_follows_with_what_it_replaces_and_what_is_due():
    a, b = node("a", 0, "b"), node("b", 1)
    machine, commands = begun(network(a, b), ("n", 1))
    first = Task(a, 1, 0)
    assert commands == (
        barrier(0, "input", {"n": 1}, {"n": MISSING}, Standing((first,))),
        RunTasks((first,)),
    )
    second, updates = Task(b, 2, 0), (("n", Overwrite(2)),)
    assert machine.handle(TaskDone(first, Writes(updates, ("b",)))) == (
        barrier(1, "loop", {"n": 2}, {"n": 1}, Standing((second,)), overwritten=frozenset({"n"}), updates=updates),
        RunTasks((second,)),
    )
    assert machine.handle(TaskDone(second, Writes())) == (barrier(2), Finish())
    assert machine.ended_well
    assert machine.standing == Standing()


def test_a_task_that_ends_before_its_siblings_is_stored_and_the_last_one_with_its_barrier():
    a, b = node("a", 0), node("b", 1)
    machine, _ = begun(network(a, b), goto=("a", "b"))
    first, second = Task(a, 1, 0), Task(b, 1, 1)
    writes = Writes((("n", 1),))
    commands = machine.handle(TaskDone(first, writes))
    assert commands == (CommitTask(first, writes, replaces=False),)
    assert not concluded(commands)
    assert machine.handle(TaskDone(second, Writes())) == (barrier(1, "loop", {"n": 1}, {"n": MISSING}), Finish())


def test_what_joins_have_heard_and_what_waits_is_stored():
    join = Join("a+b", "c", NamedBarrierValue({"a", "b"}))
    a, b, c = node("a", 0, joins=(join,)), node("b", 1, joins=(join,)), node("c", 2)
    late = node("late", 3, defer=True)
    machine, _ = begun(network(a, b, c, late))
    commit, *_ = machine.handle(TaskDone(Task(a, 1, 0), Writes((), ("b", "late"))))
    held = Due(["late"])
    assert commit.standing == Standing((Task(b, 2, 0),), held, {join: frozenset({"a"})})
    again = machine_of(network(a, b, c, late))
    again.load({}, 1, commit.standing)
    assert again.resume({}) == (RunTasks((Task(b, 2, 0),)),)
    commit, run = again.handle(TaskDone(Task(b, 2, 0), Writes()))
    assert commit.standing == Standing((Task(c, 3, 0),), held)
    assert run == RunTasks((Task(c, 3, 0),))


@pytest.mark.parametrize(
    ("standing", "ends"),
    [
        (Standing(), True),
        (Standing(heard={Join("a+b", "c", NamedBarrierValue({"a", "b"})): frozenset({"a"})}), True),
        (Standing((Task(node("b", 1), 2, 0),)), False),
        (Standing(held=Due(["late"])), False),
        (Standing(pause=Breakpoint("before", ("b",))), False),
    ],
    ids=["nothing", "a join that starves", "a task", "a deferred node", "a breakpoint"],
)
def test_no_commit_follows_the_barrier_after_which_nothing_is_due(standing, ends):
    assert barrier(1, standing=standing).ends is ends


def test_what_a_graph_inside_another_one_gives_back_is_stored_with_its_barrier():
    a = node("a", 0)
    machine, _ = begun(network(a), ("n", 1), journal=("n",))
    escape = Command(goto="x", graph=Command.PARENT)
    commit, end = machine.handle(TaskDone(Task(a, 1, 0), Writes((("n", 2),), ("a",), (), (escape,))))
    assert (commit.journal, commit.escapes, commit.standing) == ((("n", 2),), (escape,), Standing())
    assert end == Finish()
    assert machine.journal == [("n", 2)]
    assert machine.successor().start([]) == (RunTasks((Task(machine._network.start, 0, 0, ()),)),)


def test_a_barrier_that_fails_drops_the_rows_of_its_superstep_if_there_are_any():
    a, b = node("a", 0), node("b", 1)
    machine, _ = begun(network(a, b), goto=("a", "b"))
    machine.handle(TaskDone(Task(a, 1, 0), Writes((("n", 1),))))
    drop, finish = machine.handle(TaskDone(Task(b, 1, 1), Writes((("n", 2),))))
    assert drop == DropTasks(1)
    assert isinstance(finish.error, InvalidConcurrentUpdateError)
    machine, _ = begun(network(a, b))
    (finish,) = machine.handle(TaskDone(Task(a, 1, 0), Writes((("n", 1), ("n", 2)))))
    assert isinstance(finish.error, InvalidConcurrentUpdateError | InvalidUpdateError)


def test_a_graph_with_a_history_of_its_own_is_not_due_twice():
    a, b = node("a", 0), node("b", 1, once=True)
    machine, _ = begun(network(a, b))
    sends = (Send("b", 1), Send("b", 2))
    (finish,) = machine.handle(TaskDone(Task(a, 1, 0), Writes((), (), sends)))
    assert isinstance(finish.error, InvalidUpdateError)
    assert "would run twice in superstep 2" in str(finish.error)
    machine, _ = begun(network(a, b))
    *_, run = machine.handle(TaskDone(Task(a, 1, 0), Writes((), ("a",), sends[:1])))
    assert len(run.tasks) == 2


def test_parts_about_checkpoints_follow_the_commit():
    a = node("a", 0)
    machine, (commit, *parts, run) = begun(network(a), ("n", 1), modes=("checkpoints", "debug", "values"))
    payload = {
        "config": {"step": 0},
        "parent_config": None,
        "values": {"n": 1},
        "metadata": {"source": "input", "step": 0},
        "next": ["a"],
        "tasks": [{"id": "1:0:a", "name": "a"}],
    }
    assert type(commit) is CommitBarrier
    assert parts[:2] == [
        Emit("checkpoints", payload),
        Emit("debug", {"step": 0, "type": "checkpoint", "payload": payload}),
    ]
    assert parts[2] == Emit("values", {"n": 1})
    assert type(run) is RunTasks
    commands = machine.handle(TaskDone(Task(a, 1, 0), Writes((("n", 2),))))
    assert [getattr(each, "mode", type(each)) for each in commands] == [
        CommitBarrier, "debug", "checkpoints", "debug", "values", Finish,
    ]  # fmt: skip
    assert commands[1].payload["type"] == "task_result"
    assert commands[2].payload["parent_config"] == {"step": 0}


# -- pauses ----------------------------------------------------------------------------------------------------------


def test_a_paused_task_is_stored_and_ends_the_run_without_a_barrier():
    a = node("a", 0)
    machine, _ = begun(network(a), ("n", 1), modes=("values", "updates", "tasks"))
    task = Task(a, 1, 0)
    shown = {
        "id": "1:0:a", "name": "a", "error": None, "result": None, "interrupts": [QUESTION],
    }  # fmt: skip
    assert machine.handle(TaskPaused(task, (QUESTION,))) == (
        CommitTask(task, (QUESTION,), replaces=False),
        Emit("updates", {"__interrupt__": (QUESTION,)}, (), 1, task),
        Emit("tasks", shown, (), 1, task),
        Emit("values", {"n": 1, "__interrupt__": (QUESTION,)}, (), 1),
        Finish(),
    )
    assert machine.pauses == (QUESTION,)
    assert not machine.ended_well
    assert machine.values == {"n": 1}


def test_a_pause_waits_for_the_siblings_and_reasons_are_in_task_order():
    a, b, c = node("a", 0), node("b", 1), node("c", 2)
    machine, _ = begun(network(a, b, c), goto=("a", "b", "c"))
    one, two = Interrupt(1, "1:0:a#0"), Interrupt(2, "1:2:c#0")
    tasks = Task(a, 1, 0), Task(b, 1, 1), Task(c, 1, 2)
    assert machine.handle(TaskPaused(tasks[2], (two,))) == (CommitTask(tasks[2], (two,), replaces=False),)
    assert machine.handle(TaskPaused(tasks[0], (one,))) == (CommitTask(tasks[0], (one,), replaces=False),)
    assert machine.handle(TaskDone(tasks[1], Writes())) == (CommitTask(tasks[1], Writes(), replaces=False), Finish())
    assert machine.pauses == (one, two)


def test_a_paused_task_has_ended():
    a, b = node("a", 0), node("b", 1)
    machine, _ = begun(network(a, b), goto=("a", "b"))
    machine.handle(TaskPaused(Task(a, 1, 0), (QUESTION,)))
    with pytest.raises(IllegalEventError, match="TaskDone of task 1:0:a is illegal in superstep 1"):
        machine.handle(TaskDone(Task(a, 1, 0), Writes()))


@pytest.mark.parametrize("last", ["pause", "failure"])
def test_an_error_beside_a_pause_ends_the_run_and_both_are_stored(last):
    a, b = node("a", 0), node("b", 1)
    machine, _ = begun(network(a, b), goto=("a", "b"))
    error = ValueError("x")
    events = [TaskPaused(Task(a, 1, 0), (QUESTION,)), TaskFailed(Task(b, 1, 1), error)]
    first, second = events if last == "failure" else reversed(events)
    assert machine.handle(first) == (CommitTask(first.task, first[1], replaces=False),)
    assert machine.handle(second) == (CommitTask(second.task, second[1], replaces=False), Finish(error))
    assert machine.pauses == ()


def test_where_a_failure_cancels_its_siblings_what_has_paused_stays_stored():
    a, b, c = node("a", 0), node("b", 1), node("c", 2)
    machine, _ = begun(network(a, b, c), goto=("a", "b", "c"), on_failure="cancel")
    machine.handle(TaskPaused(Task(a, 1, 0), (QUESTION,)))
    error = ValueError("x")
    failed = Task(b, 1, 1)
    assert machine.handle(TaskFailed(failed, error)) == (CommitTask(failed, error, replaces=False), Finish(error))


def test_an_answer_that_does_not_fit_ends_the_run_with_its_error_and_the_task_stays_paused():
    a = node("a", 0)
    machine, _ = begun(network(a))
    error = InvalidUpdateError("does not fit")
    task = Task(a, 1, 0)
    commands = machine.handle(TaskPaused(task, (QUESTION,), error))
    assert commands == (CommitTask(task, (QUESTION,), replaces=False), Finish(error))


def test_an_answer_that_does_not_fit_inside_another_graph_is_that_graph_s_to_tell():
    a, b = node("a", 0), node("b", 1)
    first, second = InvalidUpdateError("first"), InvalidUpdateError("second")
    for kept in (True, False):
        machine = Superstep(network(a, b), limit=5, config_of=config_of if kept else None)
        machine.inside = machine.inside or kept
        (run,) = machine.start([])
        machine.handle(TaskDone(run.tasks[0], Writes((), ("a", "b"))))
        assert machine.misfit is None
        machine.handle(TaskPaused(Task(b, 1, 1), (QUESTION,), second))
        *_, end = machine.handle(TaskPaused(Task(a, 1, 0), (QUESTION,), first))
        assert end == Finish()
        assert machine.pauses == (QUESTION, QUESTION)
        assert machine.misfit is first


# -- to go on --------------------------------------------------------------------------------------------------------


def test_a_run_that_goes_on_runs_what_has_not_ended_and_keeps_the_rest():
    a, b, c = node("a", 0), node("b", 1), node("c", 2)
    net = network(a, b, c, channel=BinaryOperatorAggregate(list.__add__, initial=[]))
    tasks = Task(a, 1, 0), Task(b, 1, 1), Task(c, 1, 2)
    machine = machine_of(net, modes=("values", "tasks"))
    machine.load({"n": [0]}, 0, Standing(tasks))
    done, failed = Writes((("n", [1]),)), ValueError("before")
    assert machine.resume({0: done, 2: failed}) == (
        Emit("values", {"n": [0]}),
        Emit("tasks", {"id": "1:1:b", "name": "b", "input": {"n": [0]}, "triggers": []}, (), 1, tasks[1]),
        Emit("tasks", {"id": "1:2:c", "name": "c", "input": {"n": [0]}, "triggers": []}, (), 1, tasks[2]),
        RunTasks(tasks[1:]),
    )
    commit, *_ = machine.handle(TaskDone(tasks[2], Writes((("n", [3]),))))
    assert commit == CommitTask(tasks[2], Writes((("n", [3]),)), replaces=True)
    commit, _, _, end = machine.handle(TaskDone(tasks[1], Writes((("n", [2]),))))
    updates = (("n", [1]), ("n", [2]), ("n", [3]))
    assert commit == barrier(1, "loop", {"n": [0, 1, 2, 3]}, {"n": [0]}, updates=updates)
    assert end == Finish()


def test_a_run_whose_questions_are_all_open_asks_them_again_and_runs_nothing():
    a, b = node("a", 0), node("b", 1)
    machine = machine_of(network(a, b), modes=("values",))
    machine.load({}, 0, Standing((Task(a, 1, 0), Task(b, 1, 1))))
    assert machine.resume({0: (QUESTION,), 1: Writes()}) == (
        Emit("values", {}),
        Emit("values", {"__interrupt__": (QUESTION,)}, (), 1),
        Finish(),
    )
    assert machine.pauses == (QUESTION,)


def test_a_run_whose_tasks_have_all_ended_comes_to_its_barrier():
    a = node("a", 0)
    machine = machine_of(network(a))
    machine.load({}, 3, Standing((Task(a, 4, 0),)))
    assert machine.resume({0: Writes((("n", 1),))}) == (barrier(4, "loop", {"n": 1}, {"n": MISSING}), Finish())


def test_a_run_in_which_nothing_is_due_ends_as_it_did():
    join = Join("a+b", "c", NamedBarrierValue({"a", "b"}))
    a, b, c = node("a", 0, joins=(join,)), node("b", 1, joins=(join,)), node("c", 2)
    machine = machine_of(network(a, b, c))
    machine.load({}, 1, Standing())
    assert machine.resume({}) == (Finish(),)
    machine = machine_of(network(a, b, c))
    machine.load({}, 1, Standing(heard={join: frozenset({"a"})}))
    (finish,) = machine.resume({})
    assert isinstance(finish.error, StarvedJoinError)


def test_steps_count_on_and_the_limit_is_of_the_run():
    a = node("a", 0, "a")
    machine = machine_of(network(a), limit=2)
    machine.load({"n": 1}, 7)
    assert (machine.step, machine.last_step) == (8, 9)
    (run,) = machine.start([("n", 2)])
    assert run.tasks[0].step == 8
    assert machine.last_step == 10
    commit, run = machine.handle(TaskDone(run.tasks[0], Writes((("n", 2),), ("a",))))
    assert (commit.step, commit.source, commit.before) == (8, "input", {"n": 1})
    assert run.tasks == (Task(a, 9, 0),)


def test_fields_that_a_barrier_clears_are_cleared_by_the_one_after_a_load():
    a = node("a", 0)
    machine = machine_of(network(a, channel=EphemeralValue()))
    machine.load({"n": 1}, 0, Standing((Task(a, 1, 0),)))
    machine.resume({})
    commit, _ = machine.handle(TaskDone(Task(a, 1, 0), Writes()))
    assert (commit.changed, commit.before) == ({"n": MISSING}, {"n": 1})
    assert machine.values == {}


@pytest.mark.parametrize("begin", ["load", "start", "resume", "edit"])
def test_a_run_begins_once(begin):
    machine, _ = begun(network(node("a", 0)))
    calls = {
        "load": lambda: machine.load({}, 0),
        "start": lambda: machine.start([]),
        "resume": lambda: machine.resume({}),
        "edit": lambda: machine.edit((), keeps=True),
    }
    with pytest.raises(IllegalEventError, match="a run that is running can't be started"):
        calls[begin]()


# -- breakpoints -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "pause"),
    [
        (("b",), (), Breakpoint("before", ("b",))),
        (("*",), (), Breakpoint("before", ("b", "c"))),
        ((), ("a",), Breakpoint("after", ("a",))),
        ((), ("*",), Breakpoint("after", ("a",))),
        (("b",), ("a",), Breakpoint("after", ("a",))),
    ],
)
def test_a_run_stops_between_supersteps_and_the_stop_is_stored(before, after, pause):
    a, b, c = node("a", 0), node("b", 1), node("c", 2)
    net = network(a, b, c)
    machine = machine_of(net, modes=("values", "updates"), breakpoints=(frozenset(before), frozenset(after)))
    machine.load({"n": 1}, 0, Standing((Task(a, 1, 0),)))
    machine.resume({})
    due = (Task(b, 2, 0), Task(c, 2, 1), Task(b, 2, 2, "carried"))
    commands = machine.handle(TaskDone(Task(a, 1, 0), Writes((), ("b", "c"), (Send("b", "carried"),))))
    standing = Standing(due, pause=pause)
    assert commands == (
        barrier(1, standing=standing),
        Emit("updates", {"a": None}, (), 1, Task(a, 1, 0)),
        Emit("updates", {"__interrupt__": (pause,)}, (), 1),
        Emit("values", {"n": 1, "__interrupt__": (pause,)}, (), 1),
        Finish(),
    )
    assert machine.pauses == (pause,)
    assert not machine.ended_well
    again = machine_of(net, breakpoints=(frozenset(before), frozenset(after)))
    again.load({"n": 1}, 1, standing)
    assert again.resume({}) == (RunTasks(due),)


def test_a_run_does_not_stop_at_other_nodes_nor_after_the_last():
    a, b = node("a", 0), node("b", 1)
    machine, (_, run) = begun(network(a, b), breakpoints=(frozenset({"c"}), frozenset({"b"})))
    assert run == RunTasks((Task(a, 1, 0),))
    commit, run = machine.handle(TaskDone(Task(a, 1, 0), Writes((), ("b",))))
    assert (commit.standing.pause, run) == (None, RunTasks((Task(b, 2, 0),)))
    commit, end = machine.handle(TaskDone(Task(b, 2, 0), Writes()))
    assert (commit.standing.pause, end) == (None, Finish())


# -- edits -----------------------------------------------------------------------------------------------------------


def test_an_edit_that_keeps_what_is_due_carries_tasks_with_their_ids_and_adds_others():
    a, b, c = node("a", 0), node("b", 1), node("c", 2)
    machine = machine_of(network(a, b, c))
    machine.load({"n": 1}, 3, Standing((Task(a, 4, 0), Task(b, 4, 1, "arg")), Due(["c"])))
    editor = Task(EDITOR, 4, 0)
    assert machine.edit((editor,), keeps=True) == (RunTasks((editor,)),)
    kept = Task(a, 5, 0, MISSING, "4:0:a"), Task(b, 5, 1, "arg", "4:1:b")
    added = Task(c, 5, 2), Task(b, 5, 3, "new")
    assert machine.handle(TaskDone(editor, Writes((("n", 2),), ("c",), (Send("b", "new"),)))) == (
        barrier(4, "update", {"n": 2}, {"n": 1}, Standing((*kept, *added), Due(["c"])), carried=("4:0:a", "4:1:b")),
        Finish(),
    )
    again = machine_of(network(a, b, c))
    again.load({"n": 2}, 4, Standing((*kept, *added)))
    again.edit((Task(EDITOR, 5, 0),), keeps=True)
    commit, _ = again.handle(TaskDone(Task(EDITOR, 5, 0), Writes()))
    assert [task.id for task in commit.standing.tasks] == ["4:0:a", "4:1:b", "5:2:c", "5:3:b"]


def test_an_edit_as_a_node_takes_the_place_of_what_is_due_and_names_it():
    a, b = node("a", 0, "b"), node("b", 1)
    machine = machine_of(network(a, b), breakpoints=(frozenset({"*"}), frozenset()))
    machine.load({}, 3, Standing((Task(b, 4, 0), Task(b, 4, 1, 1)), Due(["a"])))
    edit = Task(a, 4, 0)
    machine.edit((edit,), keeps=False)
    commit, end = machine.handle(TaskDone(edit, Writes((("n", 2),), ("b",))))
    assert (commit.source, commit.dropped, commit.standing) == ("update", ("b", "a"), Standing((Task(b, 5, 0),)))
    assert end == Finish()
    assert machine.pauses == ()


def test_several_edits_are_one_barrier_and_their_tasks_are_not_stored():
    a, b = node("a", 0), node("b", 1)
    machine = machine_of(network(a, b))
    machine.load({}, 0, Standing())
    tasks = Task(a, 1, 0), Task(b, 1, 1)
    machine.edit(tasks, keeps=False)
    assert machine.handle(TaskDone(tasks[0], Writes((("n", 1),)))) == ()
    commit, end = machine.handle(TaskDone(tasks[1], Writes()))
    assert (commit.changed, end) == ({"n": 1}, Finish())


def test_an_input_that_is_an_edit_ends_at_its_barrier():
    a = node("a", 0)
    machine = machine_of(network(a))
    (run,) = machine.start([("n", 1)], edits=True)
    commit, end = machine.handle(TaskDone(run.tasks[0], Writes((("n", 1),), ("a",))))
    assert (commit.source, commit.standing.tasks, end) == ("input", (Task(a, 1, 0),), Finish())


def test_an_edit_that_conflicts_changes_nothing():
    a, b = node("a", 0), node("b", 1)
    machine = machine_of(network(a, b))
    machine.load({}, 0, Standing((Task(a, 1, 0),)))
    machine.edit((Task(a, 1, 0), Task(b, 1, 1)), keeps=False)
    machine.handle(TaskDone(Task(a, 1, 0), Writes((("n", 1),))))
    (finish,) = machine.handle(TaskDone(Task(b, 1, 1), Writes((("n", 2),))))
    assert isinstance(finish.error, InvalidConcurrentUpdateError)
    assert machine.values == {}


def test_what_waits_is_compared_by_what_it_holds():
    assert Due(["a", "b"], [Send("c", 1)]) == Due(["a", "b", "a"], [Send("c", 1)])
    assert Due(["a", "b"]) != Due(["b", "a"])  # the order is the order of release
    assert Due() != "nothing"
