"""What a graph means, in code: an interpreter to read, and to hold an engine against.

It runs a graph given as plain data, one task after the other, and scans everything in every step: no concurrency, no
storage, no index, no code of the engine. So it is a second reading of the rules, which are:

- All tasks of a step see the state of the last barrier. Their updates are applied in the order of the tasks: nodes in
  the order they were added, each once; then `Send`s in the order of their senders.
- A step whose updates can't be applied together changes nothing and ends the run.
- A task leads to what its edges and commands name, and is heard by the joins that wait for its node. A join fires once
  all its sources were heard, and then listens anew.
- Deferred nodes run when nothing else is due, "live" ones when nothing that is due or waits can lead to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, Literal

from pregel.channels.keyed import DELETE
from pregel.types import END, START, Command, Overwrite, Send

__all__ = ["ABSENT", "Branch", "Field", "Graph", "Node", "Outcome", "run"]

ABSENT: Final = object()  #: What a field without a value holds.
State = dict[str, Any]
Task = str | Send  #: A node that reads the state, or the packet that carries its input.


class ConflictError(Exception):
    """Updates of one step that can't be applied together."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the state: how updates change it, and what it holds before the input."""

    kind: Literal["last", "untracked", "ephemeral", "any", "reduce", "topic", "topic-accumulate", "keyed"] = "last"
    initial: Any = ABSENT
    reducer: Callable[[Any, Any], Any] | None = None  #: Of "reduce": folds an update into the value.
    guard: bool = True  #: Of "untracked" and "ephemeral": whether two updates in one step conflict.


@dataclass(frozen=True, slots=True)
class Node:
    """A function from what it sees to a mapping of updates, a `Command`, or a list of these."""

    function: Callable[[Any], Any]
    defer: bool | Literal["live"] = False
    destinations: tuple[str, ...] = ()  #: Where its commands may lead, as far as it says.
    reads: tuple[str, ...] | None = None  #: The fields it sees; None for all.


@dataclass(frozen=True, slots=True)
class Branch:
    """A conditional edge: its path answers with targets, or with keys of `path_map`."""

    source: str
    path: Callable[[State], Any]
    path_map: Mapping[Any, str] | None = None
    reads: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph as plain data. The order of the nodes is the order of application."""

    fields: Mapping[str, Field]
    nodes: Mapping[str, Node]
    edges: tuple[tuple[str, str], ...]
    joins: tuple[tuple[tuple[str, ...], str], ...] = ()
    branches: tuple[Branch, ...] = ()
    outputs: tuple[str, ...] | None = None  #: The fields in the result; None for all.
    recursion_limit: int = 10_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: what is visible of the state of the last barrier, and all of it."""

    values: State
    state: State
    trace: list[tuple[int, list[str]]]  #: (step, names of its tasks) of each step begun; step 0 is the input.
    error: Literal["conflict", "recursion", "starved"] | None


def run(graph: Graph, given: Mapping[str, Any]) -> Outcome:
    """Run a graph from an input, the update of step 0, to its end. What a function raises is not caught."""
    empty: State = {"topic": [], "topic-accumulate": [], "keyed": {}}
    start = ((name, empty.get(rule.kind, rule.initial)) for name, rule in graph.fields.items())
    state = {name: value for name, value in start if value is not ABSENT}
    heard: dict[tuple[tuple[str, ...], str], set[str]] = {join: set() for join in graph.joins}
    trace: list[tuple[int, list[str]]] = []
    due: list[Task] = [START]
    waiting: list[Task] = []
    while due:
        trace.append((len(trace), [name_of(task) for task in due]))
        try:
            results = [perform(graph, state, task, given) for task in due]
            state = applied(graph, state, [update for updates, _ in results for update in updates], graph.fields)
        except ConflictError:
            return Outcome(view(state, graph.outputs), state, trace, "conflict")
        asked = [*waiting, *(target for _, targets in results for target in targets)]
        for (sources, target), names in heard.items():
            names.update({name_of(task) for task in due} & set(sources))
            if names == set(sources):
                asked.append(target)
                names.clear()
        due, waiting = plan(graph, asked)
        if due and len(trace) > graph.recursion_limit:
            return Outcome(view(state, graph.outputs), state, trace, "recursion")
    return Outcome(view(state, graph.outputs), state, trace, "starved" if any(heard.values()) else None)


def perform(graph: Graph, state: State, task: Task, given: Any) -> tuple[list[tuple[str, Any]], list[Task]]:
    """Return the updates that a task makes, and the targets it leads to."""
    name, result = name_of(task), given
    if name != START:
        node = graph.nodes[name]
        result = node.function(task.arg if isinstance(task, Send) else view(state, node.reads))
    updates: list[tuple[str, Any]] = []
    targets: list[Task] = [target for source, target in graph.edges if source == name]
    for part in listed(result):
        update = (part.update or {}) if isinstance(part, Command) else part
        updates += update.items() if isinstance(update, Mapping) else update
        targets += listed(part.goto) if isinstance(part, Command) else ()
    plain = [field for field, new in updates if graph.fields[field].kind == "last" and not isinstance(new, Overwrite)]
    for branch in (branch for branch in graph.branches if branch.source == name):
        # Nothing of siblings, nothing cleared; of several plain values the last, for a sibling may overwrite them all.
        latest = [(key, new) for n, (key, new) in enumerate(updates) if key not in plain or is_latest(updates, n)]
        own = applied(graph, state, latest, {field for field, _ in updates})
        for answer in listed(branch.path(view(own, branch.reads))):
            targets.append(branch.path_map[answer] if branch.path_map and not isinstance(answer, Send) else answer)
    return updates, [target for target in targets if target != END]


def is_latest(updates: list[tuple[str, Any]], number: int) -> bool:
    """Return whether an update is an `Overwrite`, or the last one to its field that is none."""
    key, new = updates[number]
    return isinstance(new, Overwrite) or all(
        key != other or isinstance(later, Overwrite) for other, later in updates[number + 1 :]
    )


def applied(graph: Graph, state: State, updates: list[tuple[str, Any]], names: Iterable[str]) -> State:
    """Return the state after a barrier of the fields in `names`."""
    result = dict(state)
    for name in names:
        result[name] = after(graph.fields[name], state.get(name, ABSENT), [new for key, new in updates if key == name])
    return {name: value for name, value in result.items() if value is not ABSENT}


def after(rule: Field, old: Any, updates: list[Any]) -> Any:
    """Return the value of a field after the updates of a step; an `Overwrite` makes all others void."""
    replaced = [update.value for update in updates if isinstance(update, Overwrite)]
    if len(replaced) > 1:
        raise ConflictError
    if rule.kind == "keyed":  # every key is a cell of its own
        old, updates = ({}, replaced) if replaced else (old, updates)
        keys = [*old, *(key for update in updates for key in update)]
        cells = {k: after(Field(), old.get(k, ABSENT), [u[k] for u in updates if k in u]) for k in keys}
        return {key: value for key, value in cells.items() if value is not DELETE}
    if replaced:
        return replaced[0]
    if rule.reducer is not None:
        operands = updates if old is ABSENT else [old, *updates]
        return reduce(rule.reducer, operands) if operands else ABSENT
    if rule.kind in {"topic", "topic-accumulate"}:
        items = [item for update in updates for item in (update if isinstance(update, list) else [update])]
        return [*old, *items] if rule.kind == "topic-accumulate" else items
    if len(updates) > 1 and rule.guard and rule.kind != "any":
        raise ConflictError
    return updates[-1] if updates else old if rule.kind in {"last", "untracked"} else ABSENT


def plan(graph: Graph, asked: list[Task]) -> tuple[list[Task], list[Task]]:
    """Return the tasks of the next step in order, and those that go on waiting."""
    tasks: list[Task] = [*(each for each in graph.nodes if each in asked), *(t for t in asked if isinstance(t, Send))]
    names = [name for name in graph.nodes if name in map(name_of, tasks)]
    before = {name: {o for o in names if o != name and leads_to(graph, o, name)} for name in names}
    kinds, passed = [False, "live", True], pass_order(graph, graph.nodes)
    late = {name: (kinds.index(graph.nodes[name].defer), place) for place, name in enumerate(passed)}
    held = {name: {o for o in before[name] if name not in before[o] or late[o] < late[name]} for name in names}
    ready = [n for n in names if not (defer := graph.nodes[n].defer) or (defer == "live" and not held[n])]
    if not ready:  # else those that wait for nobody; else the first of a cycle that waits for nobody outside of it
        ready = [n for n in names if not before[n]] or [n for n in names if all(n in before[o] for o in before[n])][:1]
    return [task for task in tasks if name_of(task) in ready], [task for task in tasks if name_of(task) not in ready]


def pass_order(graph: Graph, names: Iterable[str]) -> list[str]:
    """Return nodes in the order in which a pass comes by: of a cycle, where it is entered, and then the rest of it."""
    rest, ranked = list(names), list[str]()
    while rest:
        leads = {(a, b) for a in rest for b in rest if leads_to(graph, a, b, rest)}
        cycles = [[other for other in rest if {(name, other), (other, name)} <= leads] for name in rest]
        cycle = next(c for c in cycles if not any((other, c[0]) in leads for other in rest if other not in c))
        entries = [name for name in cycle if any(t == name and s not in cycle for s, t in edges_of(graph))]
        head = (entries or cycle)[0]
        ranked += [head, *pass_order(graph, [name for name in cycle if name != head])]
        rest = [name for name in rest if name not in cycle]
    return ranked


def leads_to(graph: Graph, start: str, goal: str, through: Iterable[str] | None = None) -> bool:
    """Return whether declared edges lead from one node to another, through these nodes or any."""
    edges = [edge for edge in edges_of(graph) if through is None or {*edge} <= {*through}]
    reached = {start}
    for _ in edges:  # no path is longer
        reached |= {target for source, target in edges if source in reached}
    return goal in reached


def edges_of(graph: Graph) -> list[tuple[str, str]]:
    edges = [*graph.edges, *((source, target) for sources, target in graph.joins for source in sources)]
    edges += [(name, target) for name, node in graph.nodes.items() for target in node.destinations]
    return edges + [(branch.source, t) for branch in graph.branches for t in (branch.path_map or {}).values()]


def listed(answer: Any) -> list[Any]:
    """Return one or several things as a list."""
    return list(answer) if isinstance(answer, list | tuple) else [answer]


def view(state: State, reads: tuple[str, ...] | None) -> State:
    return {name: value for name, value in state.items() if reads is None or name in reads}


def name_of(task: Task) -> str:
    return task.node if isinstance(task, Send) else task
