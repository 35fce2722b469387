"""The engine against the reference interpreter, on random graphs."""

import ast
import operator
from collections import Counter
from itertools import pairwise
from pathlib import Path

import anyio
import pytest
from hypothesis import Phase, given, settings

from pregel import END, START, Command, Overwrite, Send
from pregel.channels import DELETE
from pregel.testing import reference
from tests.random_graphs import (
    COUNT,
    DEPTH,
    DOORS,
    KINDS,
    BranchPlan,
    FieldPlan,
    GraphPlan,
    NodePlan,
    Packet,
    act,
    answer,
    built,
    depth_of,
    digest,
    expected,
    kind_of,
    limited,
    plans,
    sizes,
    traced,
)

# Random graphs have every shape that the analysis warns of.
pytestmark = pytest.mark.filterwarnings("ignore::pregel.errors.PregelWarning")


# ------------------------------------------------------------------------------------------------------- agreement


def streamed(graph, plan):
    """Run a graph in this thread; return its last visible values, the kind of its error, and the error."""
    values = None
    try:
        for values in graph.stream(plan.given(), limited(plan), stream_mode="values"):  # noqa: B007 - the last counts
            pass
    except Exception as error:
        return values, kind_of(error), error
    return values, None, None


def agree(plan):
    """Check that engine and reference tell the same of a sync run."""
    want = expected(plan)
    log = []
    graph = built(plan, log)
    values, kind, error = streamed(graph, plan)
    assert kind == want.error
    assert traced(log) == want.trace
    assert values == want.values
    if kind in {"recursion", "starved"}:
        assert error.state == want.state
    if kind is None:  # the same graph again, and by the other way in
        assert graph.invoke(plan.given(), limited(plan)) == want.values


@sizes(2.5)
@given(plans())
def test_a_sync_run_is_what_the_reference_says(plan):
    agree(plan)


@sizes(0.5)
@given(plans())
def test_worker_threads_change_nothing(plan):
    want = expected(plan)
    log = []
    values, kind, _ = streamed(built(plan, log, executor="thread"), plan)
    assert (values, kind) == (want.values, want.error)
    assert [(step, sorted(names)) for step, names in traced(log)] == [(s, sorted(names)) for s, names in want.trace]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@sizes()
@given(plan=plans())
def test_an_event_loop_changes_nothing(backend, plan):
    want = expected(plan)
    graph = built(plan, [], executor="thread", awaited=True)

    async def run():
        try:
            return await graph.ainvoke(plan.given(), limited(plan)), None
        except Exception as error:
            return None, kind_of(error)

    assert anyio.run(run, backend=backend) == (None if want.error else want.values, want.error)


# ------------------------------------------------------------------------------------- what the drawn graphs hold


class Watch:
    """Runs the reference and notes which features of a plan really took part in the run."""

    def __init__(self, plan):
        self.plan = plan
        self.seen = Counter()
        #: For each run of a node, in order: whether it sent packets.
        self.sent = []
        self.outcome = expected(plan, self.act, self.answer)
        self.static()
        self.dynamic()

    def act(self, node, seen):
        bare, parts = node.moves[digest(seen) % len(node.moves)]
        self.sent.append(depth_of(seen) < DEPTH and any(isinstance(t, Packet) for part in parts for t in part.goto))
        self.note(
            {
                f"sees an argument: {type(seen).__name__}": depth_of(seen) > 0,
                "sees a part of the state": node.reads is not None,
                "returns one bare part": bare and len(parts) == 1 and not node.counts,
                "returns a list": len(parts) > 1,
                "changes nothing": not parts and not node.counts,
            }
        )
        for part in parts:
            for write in part.writes:
                self.seen[f"writes {write.field.kind}, {write.mode}"] += 1
            targets = list(part.goto)
            self.note(
                {
                    f"a command's update: {part.shape}": part.shape != "mapping",
                    "update and goto": bool(part.writes and targets and part.shape != "none"),
                    "one bare goto": part.bare and len(targets) == 1,
                    "a list of gotos": len(targets) > 1,
                    "goto END": END in targets,
                    "goto a node": any(isinstance(t, str) and t != END for t in targets),
                    "goto a Send": any(isinstance(t, Packet) for t in targets) and depth_of(seen) < DEPTH,
                }
            )
        return act(node, seen)

    def answer(self, branch, seen):
        given = answer(branch, seen)
        targets = reference.listed(given)
        self.note(
            {
                f"a path, declared {branch.declared}": True,
                "a path sees a part of the state": branch.reads is not None,
                "a path from START": branch.source == START,
                "a path's bare answer": not isinstance(given, list),
                "a path's empty list": not targets,
                "a path's list": len(targets) > 1,
                "a path's END": END in targets or "to __end__" in targets,
                "a path's Send": any(isinstance(t, Send) for t in targets),
                "a counted loop goes on": branch.rounds is not None and seen.get(COUNT, 0) < branch.rounds,
                "a counted loop ends": branch.rounds is not None and seen.get(COUNT, 0) >= branch.rounds,
            }
        )
        return given

    def static(self):
        plan = self.plan
        self.note({f"door {planned.door}": True for planned in plan.fields})
        self.note(
            {
                f"{len(plan.nodes)} nodes": True,
                "an own default": any(planned.default is not None for planned in plan.fields),
                "an input": bool(plan.input),
                "an input that overwrites": any(write.mode == "overwrite" for write in plan.input),
                "an input that is ignored": any(write.field.door == "omit-input" for write in plan.input),
            }
        )

    def dynamic(self):
        outcome, plan = self.outcome, self.plan
        deferred = {node.name for node in plan.nodes if node.defer}
        runs = Counter(name for _, names in outcome.trace for name in names)
        tasks = [step for step, names in outcome.trace[1:] for _ in names]
        fired, halves = self.firings()
        senders = Counter(step for step, sent in zip(tasks, self.sent, strict=False) if sent)
        self.note(
            {
                f"ends: {outcome.error}": True,
                "fan-out": any(len(set(names)) > 1 for _, names in outcome.trace),
                "two tasks of a node": any(len(set(names)) < len(names) for _, names in outcome.trace),
                "a loop": any(runs[name] > 1 for name in runs),
                "packets of several senders": max(senders.values(), default=0) > 1,
                "a join fires": any(count > 0 for count in fired),
                "a join fires again": any(count > 1 for count in fired),
                "a join waits": any(halves),
                "a deferred node": any(runs[name] for name in deferred),
                "several deferred nodes": sum(runs[name] > 0 for name in deferred) > 1,
                "a deferred node again": any(runs[name] > 1 for name in deferred),
            }
        )

    def firings(self):
        """Return how often each join of several sources fired, and of each firing whether it took several steps."""
        fired, halves = [], []
        steps = self.outcome.trace[: -1 if self.outcome.error == "conflict" else None]
        for sources in (set(sources) for sources, _ in self.plan.joins if len(sources) > 1):
            heard, count = set(), 0
            for _, names in steps:
                waited = bool(heard)
                heard |= sources & set(names)
                if heard == sources:
                    halves.append(waited)
                    heard, count = set(), count + 1
            fired.append(count)
        return fired, halves

    def note(self, features):
        self.seen.update(name for name, there in features.items() if there)


EVERY_FEATURE = {
    *(f"writes {name}, {mode}" for name, kind in KINDS.items() for mode in ("plain", *kind.modes)),
    *(f"door {door}" for door in DOORS),
    *(f"{count} nodes" for count in range(2, 9)),
    *(f"sees an argument: {name}" for name in ("dict", "int", "str", "NoneType", "list", "tuple")),
    *("sees a part of the state", "returns one bare part", "returns a list", "changes nothing"),
    *(f"a command's update: {shape}" for shape in ("none", "command", "pairs")),
    *("update and goto", "one bare goto", "a list of gotos", "goto END", "goto a node", "goto a Send"),
    *(f"a path, declared {how}" for how in ("open", "names", "mapping", "literal")),
    *("a path sees a part of the state", "a path from START", "a path's bare answer", "a path's empty list"),
    *("a path's list", "a path's END", "a path's Send", "a counted loop goes on", "a counted loop ends"),
    *("an own default", "an input", "an input that overwrites", "an input that is ignored"),
    *(f"ends: {how}" for how in (None, "conflict", "recursion", "starved")),
    *(
        "fan-out",
        "two tasks of a node",
        "packets of several senders",
        "a loop",
        "a join fires",
        "a join fires again",
        "a join waits",
    ),
    *("a deferred node", "several deferred nodes", "a deferred node again"),
}


def test_drawn_graphs_hold_every_feature():
    found = Counter()

    @settings(sizes(), max_examples=500, derandomize=True, database=None, phases=[Phase.generate])
    @given(plans())
    def look(plan):
        found.update(set(Watch(plan).seen))

    look()
    assert not EVERY_FEATURE - set(found)
    assert not set(found) - EVERY_FEATURE, "a feature that nobody asked for: add it to the list"


# ------------------------------------------------------------------------------------- the reference, by hand


def says(result):
    """Return a node that always returns the same."""
    return lambda seen: result


def ran(nodes, edges, *, joins=(), branches=(), limit=20, **rules):
    """Run a graph of the reference; a node that is a string of letters logs its name, upper case is deferred."""
    log = reference.Field("reduce", "", operator.add)
    made = {
        name: reference.Node(says({"log": name} if action is None else action), defer=name.isupper())
        for name, action in nodes.items()
    }
    graph = reference.Graph({"log": log, **rules}, made, edges, joins, branches, recursion_limit=limit)
    return reference.run(graph, {})


def chain(names):
    """Return the edges of a chain from START."""
    return tuple(pairwise((START, *names)))


def letters(names, **actions):
    return {**dict.fromkeys(names), **actions}


def steps(outcome):
    return " ".join("".join(names) for _, names in outcome.trace[1:])


def test_updates_are_applied_in_the_order_the_nodes_were_added():
    outcome = ran(letters("cab"), ((START, "b"), (START, "a"), (START, "c")))
    assert (outcome.values, steps(outcome)) == ({"log": "cab"}, "cab")


def test_packets_follow_the_nodes_in_the_order_of_their_senders():
    sends = {"a": Command(goto=[Send("c", 1), Send("d", 2)]), "b": Command(goto=[Send("d", 3), "d"])}
    outcome = ran(letters("dcba", **sends), ((START, "a"), (START, "b")))
    assert steps(outcome) == "ba ddcd"


def test_a_plain_field_takes_one_update_and_an_overwrite_voids_the_others():
    edges = ((START, "a"), (START, "b"))
    both = ran(letters("ab", a={"x": 1}, b={"x": 2}), edges, x=reference.Field())
    assert (both.error, both.state) == ("conflict", {"log": ""})
    assert ran(letters("ab", a={"x": 1}, b={"x": Overwrite(2)}), edges, x=reference.Field()).state["x"] == 2
    twice = ran(letters("ab", a={"x": Overwrite(1)}, b={"x": Overwrite(2)}), edges, x=reference.Field())
    assert twice.error == "conflict"


def test_what_a_step_does_not_write_is_kept_or_cleared():
    rules = {name: reference.Field(name) for name in ("last", "untracked", "ephemeral", "any", "topic", "keyed")}
    rules["all"] = reference.Field("topic-accumulate")
    written = {"last": 1, "untracked": 1, "ephemeral": 1, "any": 1, "topic": 1, "keyed": {"k": 1}, "all": [1, 2]}
    after_one = ran(letters("a", a=written), chain("a"), **rules).state
    assert after_one == {"log": "", **written, "topic": [1]}
    after_two = ran(letters("ab", a=written), chain("ab"), **rules).state
    assert after_two == {"log": "b", "last": 1, "untracked": 1, "topic": [], "keyed": {"k": 1}, "all": [1, 2]}


def test_keys_conflict_one_by_one():
    edges, rule = ((START, "a"), (START, "b")), reference.Field("keyed", {})
    apart = ran(letters("ab", a={"x": {"k": 1}}, b={"x": {"l": 2}}), edges, x=rule)
    assert apart.state["x"] == {"k": 1, "l": 2}
    assert ran(letters("ab", a={"x": {"k": 1}}, b={"x": {"k": 2}}), edges, x=rule).error == "conflict"
    assert ran(letters("ab", a={"x": {"k": 1}}), chain("a"), x=rule).state["x"] == {"k": 1}
    gone = ran(letters("ab", a={"x": {"k": 1, "l": 1}}, b={"x": {"k": DELETE}}), chain("ab"), x=rule)
    assert gone.state["x"] == {"l": 1}


def test_a_join_waits_for_all_its_sources_each_time():
    edges = ((START, "a"), (START, "b"), ("b", "c"))
    again = reference.Branch("d", lambda seen: END if len(seen["log"]) > 4 else ["a", "c"])
    outcome = ran(letters("abcd"), edges, joins=((("a", "c"), "d"),), branches=(again,))
    assert (steps(outcome), outcome.error) == ("ab c d ac d", None)
    starved = ran(letters("abcd"), edges[:2], joins=((("a", "c"), "d"),))
    assert (steps(starved), starved.error) == ("ab", "starved")


def test_a_limit_of_n_allows_n_steps():
    edges = (*chain("ab"), ("b", "a"))
    assert (steps(ran(letters("ab"), edges, limit=3)), ran(letters("ab"), edges, limit=3).error) == (
        "a b a",
        "recursion",
    )
    assert ran(letters("ab"), chain("ab"), limit=2).error is None
    assert ran(letters("ab"), chain("ab"), limit=1).error == "recursion"


def test_deferred_nodes_wait_for_all_others_and_for_those_that_lead_to_them():
    edges = ((START, "a"), ("a", "Z"), ("a", "Y"), ("a", "b"), ("b", "c"), ("Y", "d"), ("d", "Z"))
    assert steps(ran(letters("ZYabcd"), edges)) == "a b c Y d Z"
    assert steps(ran(letters("ZYab"), (*chain("a"), ("a", "Z"), ("a", "Y")))) == "a ZY"
    packet = ran(letters("Zab", a=Command(goto=[Send("Z", 1), "b"])), chain("a"))
    assert steps(packet) == "a b Z"


def test_in_a_cycle_of_deferred_nodes_the_one_added_first_goes_first():
    # Z is in no cycle and waits for both others: it is not the one, although it was added first of all.
    assert [names for _, names in expected(BEHIND_A_CYCLE).trace[2:]] == [["y"], ["x"], ["z"]]


def test_the_engine_lets_a_cycle_of_deferred_nodes_go_before_what_is_behind_it():
    agree(BEHIND_A_CYCLE)


STOPS = ((True, ()),)
BEHIND_A_CYCLE = GraphPlan(
    fields=(FieldPlan(COUNT, "sum"),),
    nodes=tuple(NodePlan(name, defer=name != "a", moves=STOPS) for name in "zyxa"),
    edges=((START, "a"), ("a", "z"), ("a", "y"), ("a", "x"), ("y", "z")),
    branches=tuple(
        BranchPlan(one, "names", answers=((END,), (other,)), rounds=99) for one, other in (("x", "y"), ("y", "x"))
    ),
)


def test_a_path_sees_its_own_writes_and_not_those_of_siblings():
    path = reference.Branch("b", lambda seen: "c" if seen["log"] == "b" else END)
    assert steps(ran(letters("abc"), ((START, "a"), (START, "b")), branches=(path,))) == "ab c"


def test_the_reference_is_short_and_shares_no_code_with_the_engine():
    text = Path(reference.__file__).read_text()
    assert sum(bool(line.strip()) for line in text.splitlines()) <= 200
    imported = {
        node.module: [name.name for name in node.names]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom)
    }
    ours = {module: names for module, names in imported.items() if module.startswith("pregel")}
    assert ours == {
        "pregel.channels.keyed": ["DELETE"],
        "pregel.types": ["END", "START", "Command", "Overwrite", "Send"],
    }
