"""The machine by values: events in, commands out, and everything else refused."""

import pytest

from pregel.channels import EphemeralValue, LastValue, NamedBarrierValue
from pregel.commands import Finish, RunTasks, TaskDone, TaskFailed, Warn, concluded
from pregel.errors import GraphRecursionError, IllegalEventError, InvalidConcurrentUpdateError, StarvedJoinError
from pregel.network import Network
from pregel.node import Code, Field, Join, Node, View
from pregel.reporter import Emit
from pregel.superstep import Superstep
from pregel.task import Task, Writes
from pregel.types import Send


def node(name, order, *targets, joins=(), defer=False):
    return Node(name, order, Code(name), View(), targets=targets, joins=joins, defer=defer)


def network(*nodes, entry="a", fields=("n",), allowed=()):
    named = {name: Field(name, LastValue()) for name in fields}
    return Network(
        "g", named, {n.name: n for n in nodes}, node("__start__", -1, entry), tuple(fields), allowed=frozenset(allowed)
    )


def started(net, *updates, limit=10, **options):
    """Return a machine whose input has been taken, and the commands that followed."""
    machine = Superstep(net, limit=limit, **options)
    (run,) = machine.start(updates)
    (task,) = run.tasks
    return machine, machine.handle(TaskDone(task, Writes(task.arg, task.node.targets)))


def test_the_input_is_superstep_zero_and_makes_the_entry_due():
    a = node("a", 0)
    machine = Superstep(network(a), limit=1)
    assert machine.start([("n", 1)]) == (RunTasks((Task(machine._network.start, 0, 0, (("n", 1),)),)),)
    assert machine.values == {}
    (run,) = machine.handle(TaskDone(Task(machine._network.start, 0, 0), Writes((("n", 1),), ("a",))))
    assert run == RunTasks((Task(a, 1, 0),))
    assert machine.values == {"n": 1}


def test_the_barrier_waits_for_every_task_and_tasks_are_in_the_order_nodes_were_added():
    z, a = node("z", 0), node("a", 1)
    machine, commands = started(network(z, a), limit=5)
    first, second = Task(z, 1, 0), Task(a, 1, 1)
    assert commands == (RunTasks((Task(a, 1, 0),)),)
    machine = Superstep(network(z, a), limit=5)
    (run,) = machine.start([])
    assert machine.handle(TaskDone(run.tasks[0], Writes((), ("a", "z", "a")))) == (RunTasks((first, second)),)
    assert machine.handle(TaskDone(second, Writes((("n", 2),)))) == ()
    assert machine.values == {}
    assert machine.handle(TaskDone(first, Writes())) == (Finish(),)
    assert machine.values == {"n": 2}


def test_packets_come_after_nodes_in_the_order_of_their_senders():
    a, b, c = node("a", 0, "b"), node("b", 1), node("c", 2)
    machine, (((task,),),) = started(network(a, b, c))
    sends = (Send("c", 1), Send("b", 2), Send("c", 3))
    (run,) = machine.handle(TaskDone(task, Writes((), ("b",), sends)))
    assert run == RunTasks((Task(b, 2, 0), Task(c, 2, 1, 1), Task(b, 2, 2, 2), Task(c, 2, 3, 3)))


@pytest.mark.parametrize(
    "when", ["before the start", "twice", "of another superstep", "of no place", "after a failure", "at the end"]
)
def test_an_illegal_event_names_the_event_and_the_state(when):
    a, b = node("a", 0), node("b", 1)
    machine = Superstep(network(a, b), limit=5)
    event = TaskDone(Task(a, 1, 0), Writes())
    if when != "before the start":
        (run,) = machine.start([])
        machine.handle(TaskDone(run.tasks[0], Writes((), ("a", "b"))))
    if when == "twice":
        machine.handle(event)
    elif when == "of another superstep":
        event = TaskDone(Task(a, 2, 0), Writes())
    elif when == "of no place":
        event = TaskDone(Task(a, 1, 2), Writes())
    elif when == "after a failure":
        machine.handle(TaskFailed(event.task, ValueError("x")))
    elif when == "at the end":
        machine.handle(event)
        machine.handle(TaskDone(Task(b, 1, 1), Writes()))
    with pytest.raises(
        IllegalEventError, match=r"TaskDone of task \d:\d:a is illegal in superstep \d of a run that is"
    ):
        machine.handle(event)


def test_a_run_starts_once():
    machine, _ = started(network(node("a", 0)))
    with pytest.raises(IllegalEventError, match="a run that is running can't be started"):
        machine.start([])


def test_a_failed_task_lets_its_siblings_end_and_changes_nothing():
    a, b = node("a", 0), node("b", 1)
    machine = Superstep(network(a, b), limit=5)
    (run,) = machine.start([])
    machine.handle(TaskDone(run.tasks[0], Writes((), ("a", "b"))))
    error = ValueError("x")
    assert machine.handle(TaskFailed(Task(b, 1, 1), error)) == ()
    assert machine.handle(TaskDone(Task(a, 1, 0), Writes((("n", 1),)))) == (Finish(error),)
    assert machine.values == {}


def test_a_failed_task_ends_the_run_at_once_where_siblings_are_cancelled():
    a, b = node("a", 0), node("b", 1)
    machine = Superstep(network(a, b), limit=5, on_failure="cancel")
    (run,) = machine.start([])
    machine.handle(TaskDone(run.tasks[0], Writes((), ("a", "b"))))
    error = ValueError("x")
    assert machine.handle(TaskFailed(Task(b, 1, 1), error)) == (Finish(error),)


def test_several_failures_are_a_group_in_task_order():
    a, b = node("a", 0), node("b", 1)
    machine = Superstep(network(a, b), limit=5)
    (run,) = machine.start([])
    machine.handle(TaskDone(run.tasks[0], Writes((), ("a", "b"))))
    first, second = ValueError("first"), KeyError("second")
    machine.handle(TaskFailed(Task(b, 1, 1), second))
    (finish,) = machine.handle(TaskFailed(Task(a, 1, 0), first))
    assert finish.error.exceptions == (first, second)
    assert finish.error.message == "2 tasks of superstep 1 of graph 'g' failed"


VALUES = Emit("values", {"n": 2}, (), 1)


def test_only_what_was_asked_for_is_emitted():
    a = node("a", 0)
    updates = Emit("updates", {"a": {"n": 2}}, (), 1, Task(a, 1, 0))
    for modes, emitted in (
        ((), ()),
        (("updates",), (updates,)),
        (("values",), (VALUES,)),
        (("values", "updates"), (updates, VALUES)),
    ):
        machine, _ = started(network(a), ("n", 1), modes=modes)
        assert machine.handle(TaskDone(Task(a, 1, 0), Writes((("n", 2),)))) == (*emitted, Finish())


def test_updates_of_one_field_twice_and_of_nothing_visible_have_their_shapes():
    a = node("a", 0)
    net = network(a, fields=("n", "m"))
    net = Network("g", {**net.fields, "secret": Field("secret", LastValue())}, net.nodes, net.start, ("n", "m"))
    for updates, seen in (
        ((("secret", 1),), None),
        ((), None),
        ((("n", 1), ("secret", 2), ("m", 3)), {"n": 1, "m": 3}),
        ((("n", 1), ("n", 2)), [{"n": 1}, {"n": 2}]),
    ):
        machine, _ = started(net, modes=("updates",))
        commands = machine.handle(TaskDone(Task(a, 1, 0), Writes(updates)))
        assert commands[0] == Emit("updates", {"a": seen}, (), 1, Task(a, 1, 0))


def test_a_conflict_finishes_the_run_and_leaves_the_last_barrier():
    a, b = node("a", 0), node("b", 1)
    machine = Superstep(network(a, b), limit=5)
    (run,) = machine.start([("n", 0)])
    machine.handle(TaskDone(run.tasks[0], Writes(run.tasks[0].arg, ("a", "b"))))
    machine.handle(TaskDone(Task(a, 1, 0), Writes((("n", 1),))))
    (finish,) = machine.handle(TaskDone(Task(b, 1, 1), Writes((("n", 2),))))
    assert type(finish.error) is InvalidConcurrentUpdateError
    assert machine.values == {"n": 0}


def test_the_limit_counts_supersteps_of_nodes():
    a = node("a", 0, "a")
    machine, (((task,),),) = started(network(a), limit=2)
    (run,) = machine.handle(TaskDone(task, Writes((("n", 1),), ("a",))))
    (finish,) = machine.handle(TaskDone(run.tasks[0], Writes((("n", 2),), ("a",))))
    assert type(finish.error) is GraphRecursionError
    assert finish.error.state == {"n": 2}
    machine, (((task,),),) = started(network(a), limit=1)
    assert machine.handle(TaskDone(task, Writes())) == (Finish(),)


def test_a_join_fires_once_all_were_heard_and_begins_anew():
    join = Join("a+b->c", "c", NamedBarrierValue(("a", "b")))
    a, b, c = node("a", 0, joins=(join,)), node("b", 1, joins=(join,)), node("c", 2)
    machine, (((task,),),) = started(network(a, b, c))
    (run,) = machine.handle(TaskDone(task, Writes((), ("b",))))
    assert run == RunTasks((Task(b, 2, 0),))
    (run,) = machine.handle(TaskDone(run.tasks[0], Writes((), ("a",))))
    assert run == RunTasks((Task(a, 3, 0), Task(c, 3, 1)))
    machine.handle(TaskDone(run.tasks[0], Writes()))
    (finish,) = machine.handle(TaskDone(run.tasks[1], Writes()))
    assert type(finish.error) is StarvedJoinError
    assert "the join into 'c' has heard from 'a' and not from 'b'" in str(finish.error)


def test_a_starved_join_warns_where_that_is_allowed():
    join = Join("a+b->c", "c", NamedBarrierValue(("a", "b")))
    a, b, c = node("a", 0, joins=(join,)), node("b", 1, joins=(join,)), node("c", 2)
    machine, (((task,),),) = started(network(a, b, c, allowed=("starved-join",)))
    warn, finish = machine.handle(TaskDone(task, Writes()))
    assert (type(warn), finish) == (Warn, Finish())


def test_an_ephemeral_value_lives_for_one_superstep():
    a = node("a", 0, "a")
    net = network(a, fields=())
    net = Network("g", {"e": Field("e", EphemeralValue())}, net.nodes, net.start, ("e",))
    machine, (_, ((task,),)) = started(net, ("e", 1), modes=("values",))
    assert machine.values == {"e": 1}
    emit, run = machine.handle(TaskDone(task, Writes((), ("a",))))
    assert emit == Emit("values", {}, (), 1)
    assert machine.values == {}
    emit, run = machine.handle(TaskDone(run.tasks[0], Writes((("e", 2),), ("a",))))
    assert emit == Emit("values", {"e": 2}, (), 2)


def test_an_ephemeral_value_that_a_run_starts_with_fades_too():
    a = node("a", 0)
    base = network(a, fields=())
    net = Network("g", {"e": Field("e", EphemeralValue())}, base.nodes, base.start, ("e",), seeds={"e": lambda: 7})
    machine = Superstep(net, limit=5)
    assert machine.values == {"e": 7}
    (run,) = machine.start([])
    machine.handle(TaskDone(run.tasks[0], Writes((), ("a",))))
    assert machine.values == {}


def test_deferred_nodes_run_when_nothing_else_is_due():
    a, b, d = node("a", 0, "b", "d"), node("b", 1), node("d", 2, defer=True)
    machine, (((task,),),) = started(network(a, b, d))
    (run,) = machine.handle(TaskDone(task, Writes((), ("d", "b"), (Send("d", 7),))))
    assert run == RunTasks((Task(b, 2, 0),))
    (run,) = machine.handle(TaskDone(run.tasks[0], Writes()))
    assert run == RunTasks((Task(d, 3, 0), Task(d, 3, 1, 7)))
    machine.handle(TaskDone(run.tasks[0], Writes()))
    assert machine.handle(TaskDone(run.tasks[1], Writes())) == (Finish(),)


def test_a_lone_deferred_node_runs_at_once():
    a, d = node("a", 0, "d"), node("d", 1, defer=True)
    machine, (((task,),),) = started(network(a, d))
    assert machine.handle(TaskDone(task, Writes((), ("d",)))) == (RunTasks((Task(d, 2, 0),)),)


def test_deferred_nodes_in_a_cycle_run_in_the_order_they_were_added():
    a = node("a", 0)
    d = Node("d", 1, Code("d"), View(), defer=True, defer_after=frozenset({"e"}))
    e = Node("e", 2, Code("e"), View(), defer=True, defer_after=frozenset({"d"}))
    machine, (((task,),),) = started(network(a, d, e))
    (run,) = machine.handle(TaskDone(task, Writes((), ("e", "d"))))
    assert run == RunTasks((Task(d, 2, 0),))
    assert machine.handle(TaskDone(run.tasks[0], Writes())) == (RunTasks((Task(e, 3, 0),)),)


def test_an_answer_concludes_a_superstep_or_holds_parts_only():
    assert concluded((Emit("values", {}), Finish()))
    assert concluded((RunTasks(()),))
    assert not concluded(())
    assert not concluded((Emit("updates", {}),))
