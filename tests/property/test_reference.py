"""The engine against the reference interpreter, on random graphs.

A graph is drawn as a plan: plain data, from which both a `StateGraph` and the reference's description are built. What
a node or a path does is a function of the plan and of what it sees, so a difference in what one task sees shows up in
all that follows.
"""

import ast
import operator
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass
from functools import partial, reduce
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal
from zlib import crc32

import anyio
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from typing_extensions import TypedDict

from pregel import END, START, Command, Overwrite, Send, StateGraph
from pregel.channels import (
    DELETE,
    AnyValue,
    BinaryOperatorAggregate,
    EphemeralValue,
    KeyedValue,
    Topic,
    UntrackedValue,
)
from pregel.errors import ConcurrentUpdateError, GraphRecursionError, StarvedJoinError
from pregel.graph import OmitFromInput, OmitFromOutput, PrivateStateAttr
from pregel.testing import reference

# ---------------------------------------------------------------------------------------------- reducers and fields

# Random graphs have every shape that the analysis warns of.
pytestmark = pytest.mark.filterwarnings("ignore::pregel.errors.PregelWarning")


def tangled(left: int, right: int) -> int:
    """Neither commutative nor associative: any other order gives another number."""
    return (left * 31 + right) % 10_007


def folding(left: int, right: int) -> int:
    return (left * 17 + right) % 10_007


folding.fold = lambda left, updates: reduce(folding, updates, left)


@dataclass(frozen=True)
class Kind:
    """What a field can be: the annotation, what the reference calls it, and what an update looks like."""

    annotation: Any
    rule: reference.Field
    make: Any = int
    #: How updates may be written, beside plainly.
    modes: tuple[str, ...] = ("overwrite",)
    #: Whether two plain updates in one step are an error.
    exclusive: bool = False


KINDS = {
    "last": Kind(int, reference.Field(), exclusive=True),
    "untracked": Kind(Annotated[int, UntrackedValue], reference.Field("untracked"), exclusive=True),
    "untracked-free": Kind(Annotated[int, UntrackedValue(guard=False)], reference.Field("untracked", guard=False)),
    "ephemeral": Kind(Annotated[int, EphemeralValue], reference.Field("ephemeral"), exclusive=True),
    "ephemeral-free": Kind(Annotated[int, EphemeralValue(guard=False)], reference.Field("ephemeral", guard=False)),
    "any": Kind(Annotated[int, AnyValue], reference.Field("any")),
    "topic": Kind(Annotated[list, Topic(int)], reference.Field("topic"), lambda n: [n], ("overwrite", "item", "many")),
    "topic-accumulate": Kind(
        Annotated[list, Topic(int, accumulate=True)],
        reference.Field("topic-accumulate"),
        lambda n: [n],
        ("overwrite", "item", "many"),
    ),
    "keyed": Kind(
        Annotated[dict, KeyedValue],
        reference.Field("keyed"),
        lambda n: {f"k{n % 3}": n},
        ("overwrite", "many", "delete", "overwrite-key"),
    ),
    "sum": Kind(Annotated[int, operator.add], reference.Field("reduce", 0, operator.add)),
    "list": Kind(Annotated[list[int], operator.add], reference.Field("reduce", [], operator.add), lambda n: [n]),
    "text": Kind(Annotated[str, operator.add], reference.Field("reduce", "", operator.add), lambda n: f"{n % 10}"),
    "merge": Kind(
        Annotated[dict[str, int], operator.or_], reference.Field("reduce", {}, operator.or_), lambda n: {f"k{n % 3}": n}
    ),
    "max": Kind(Annotated[int, max], reference.Field("reduce", reducer=max)),
    "tangled": Kind(Annotated[int, BinaryOperatorAggregate(tangled, initial=5)], reference.Field("reduce", 5, tangled)),
    "folding": Kind(Annotated[int, folding], reference.Field("reduce", 0, folding)),
}
DOORS = {"open": None, "omit-input": OmitFromInput, "omit-output": OmitFromOutput, "private": PrivateStateAttr}
#: A field that is always there, by which loops count their rounds.
COUNT = "count"
#: How many `Send`s in a row may send again.
DEPTH = 2


@dataclass(frozen=True)
class FieldPlan:
    name: str
    kind: str
    door: str = "open"
    #: The default that the schema declares.
    default: int | None = None

    def annotation(self):
        marker, annotation = DOORS[self.door], KINDS[self.kind].annotation
        return annotation if marker is None else Annotated[annotation, marker]

    def rule(self):
        rule = KINDS[self.kind].rule
        if self.default is None:
            return rule
        return reference.Field(rule.kind, KINDS[self.kind].make(self.default), rule.reducer, rule.guard)


#: A field that is always there and written often, so that the order of updates shows.
LOG = FieldPlan("log", "tangled")


@dataclass(frozen=True)
class Write:
    field: FieldPlan
    mode: str
    salt: int

    def update(self, seen):
        """Return the field's name and its update: a new object that depends on all that was seen."""
        make, number = KINDS[self.field.kind].make, digest(self.salt, seen)
        if self.mode == "overwrite":
            made = Overwrite(make(number))
        elif self.mode == "item":
            made = number
        elif self.mode == "many":
            more = make(number + 1)
            made = {**make(number), **more} if isinstance(more, dict) else make(number) + more
        elif self.mode == "delete":
            made = dict.fromkeys(make(number), DELETE)
        elif self.mode == "overwrite-key":
            made = {key: Overwrite(value) for key, value in make(number).items()}
        else:
            made = make(number)
        return self.field.name, made


@dataclass(frozen=True)
class Packet:
    """A `Send` to make."""

    node: str
    #: Of which type its argument is.
    arg: str
    salt: int

    def send(self, seen, depth):
        number = digest(self.salt, seen)
        args = {"number": number, "text": str(number), "none": None, "list": [number], "tuple": (number, "x")}
        return Send(self.node, args.get(self.arg, {"depth": depth + 1, "number": number}))


@dataclass(frozen=True)
class Part:
    """A part of a node's result: updates, in a mapping or a command."""

    writes: tuple[Write, ...] = ()
    #: "mapping", or the shape of a command's update: "none", "command" (a mapping), "pairs".
    shape: str = "mapping"
    goto: tuple[str | Packet, ...] = ()
    #: Whether a single target stands alone, without a list around it.
    bare: bool = False


@dataclass(frozen=True)
class NodePlan:
    name: str
    defer: bool
    #: The results it may return; what it sees decides which. One part alone may stand without a list.
    moves: tuple[tuple[bool, tuple[Part, ...]], ...]
    counts: bool = False
    reads: tuple[str, ...] | None = None
    destinations: tuple[str, ...] = ()
    awaited: bool = False


@dataclass(frozen=True)
class BranchPlan:
    source: str
    #: How its targets are declared: "open" (not at all), "names", "mapping" or "literal".
    declared: str
    #: The answers it may give, each a tuple of targets; what it sees decides which.
    answers: tuple[tuple[str | Packet, ...], ...]
    #: The first answer is given in the first so many rounds.
    rounds: int | None = None
    bare: bool = False
    reads: tuple[str, ...] | None = None
    awaited: bool = False

    def targets(self):
        return tuple(dict.fromkeys(t for answer in self.answers for t in answer if isinstance(t, str)))

    def path_map(self):
        if self.declared == "open":
            return None
        return {f"to {t}" if self.declared == "mapping" else t: t for t in self.targets()} or None


@dataclass(frozen=True)
class GraphPlan:
    fields: tuple[FieldPlan, ...]
    nodes: tuple[NodePlan, ...]
    edges: tuple[tuple[str, str], ...]
    joins: tuple[tuple[tuple[str, ...], str], ...] = ()
    branches: tuple[BranchPlan, ...] = ()
    input: tuple[Write, ...] = ()
    recursion_limit: int = 8

    def given(self):
        return dict(write.update({}) for write in self.input)


# ----------------------------------------------------------------------------------------- what nodes and paths do


def ordered(value):
    """Return a value without the order of mappings, which means nothing."""
    if isinstance(value, Mapping):
        return sorted((key, ordered(inner)) for key, inner in value.items())
    return [ordered(inner) for inner in value] if isinstance(value, list | tuple) else value


def digest(*things):
    return crc32(repr([ordered(thing) for thing in things]).encode()) % 1_000


def depth_of(seen):
    """Return how many `Send`s in a row led here: 0 for a task that reads the state."""
    return seen.get("depth", 0) if isinstance(seen, dict) else DEPTH


def act(node, seen):
    """Return a node's result."""
    bare, parts = node.moves[digest(seen) % len(node.moves)]
    made = [part_of(part, seen) for part in parts]
    if node.counts or not made:
        made.append({COUNT: 1} if node.counts else {})
    return made[0] if bare and len(made) == 1 else made


def part_of(part, seen):
    updates = [write.update(seen) for write in part.writes]
    if part.shape == "mapping":
        return dict(updates)
    depth = depth_of(seen)
    packets = [target.send(seen, depth) for target in part.goto if isinstance(target, Packet) and depth < DEPTH]
    goto = [target for target in part.goto if isinstance(target, str)] + packets
    update = {"none": None, "command": dict(updates), "pairs": updates}[part.shape]
    return Command(update=update, goto=goto[0] if part.bare and len(goto) == 1 else goto)


def answer(branch, seen):
    """Return a path's answer."""
    if branch.rounds is not None:
        chosen = branch.answers[0 if seen.get(COUNT, 0) < branch.rounds else -1]
    else:
        chosen = branch.answers[digest(seen) % len(branch.answers)]
    names = {target: name for name, target in (branch.path_map() or {}).items()}
    made = [t.send(seen, DEPTH) if isinstance(t, Packet) else names.get(t, t) for t in chosen]
    return made[0] if branch.bare and len(made) == 1 else made


# --------------------------------------------------------------------------------------------- the two descriptions


def described(plan, act=act, answer=answer):
    """Return the reference's description of a plan."""
    return reference.Graph(
        fields={field.name: field.rule() for field in plan.fields},
        nodes={
            node.name: reference.Node(partial(act, node), node.defer, node.destinations, node.reads)
            for node in plan.nodes
        },
        edges=plan.edges,
        joins=plan.joins,
        branches=tuple(
            reference.Branch(branch.source, partial(answer, branch), branch.path_map(), branch.reads)
            for branch in plan.branches
        ),
        outputs=tuple(field.name for field in plan.fields if field.door not in {"omit-output", "private"}),
        recursion_limit=plan.recursion_limit,
    )


def expected(plan, act=act, answer=answer):
    """Return what the reference says."""
    hidden = {field.name for field in plan.fields if field.door == "omit-input"}
    given = {name: update for name, update in plan.given().items() if name not in hidden}
    return reference.run(described(plan, act, answer), given)


def built(plan, log, *, executor="inline", awaited=False):
    """Return a plan's compiled graph; its tasks are noted in `log`."""
    annotations = {field.name: field.annotation() for field in plan.fields}

    def schema(reads):
        names = annotations if reads is None else reads
        return TypedDict("Seen", {name: annotations[name] for name in names}, total=False)

    builder = StateGraph(state_schema(plan, annotations), strict=True)
    for node in plan.nodes:
        action = node_function(node, log, awaited and node.awaited)
        builder.add_node(
            node.name, action, defer=node.defer, input_schema=schema(node.reads), destinations=node.destinations
        )
    for source, target in plan.edges:
        builder.add_edge(source, target)
    for sources, target in plan.joins:
        builder.add_edge(list(sources), target)
    for branch in plan.branches:
        path = path_function(branch, awaited and branch.awaited)
        path.__annotations__ = {"seen": schema(branch.reads)}
        path_map = branch.path_map()
        if branch.declared == "literal" and path_map:
            path.__annotations__["return"] = Literal[tuple(path_map)]
        builder.add_conditional_edges(
            branch.source,
            path,
            {"names": None if path_map is None else list(path_map), "mapping": path_map}.get(branch.declared),
        )
    return builder.compile(name="random", executor=executor)


def state_schema(plan, annotations):
    """Return a TypedDict, or a dataclass where fields have declared defaults."""
    if all(field.default is None for field in plan.fields):
        return TypedDict("State", annotations)
    columns = []
    for planned in plan.fields:
        make, default = KINDS[planned.kind].make, planned.default
        column = field() if default is None else field(default_factory=partial(make, default))
        columns.append((planned.name, annotations[planned.name], column))
    return make_dataclass("State", columns, kw_only=True)


def node_function(node, log, awaited):
    def sync(seen, runtime):
        log.append((runtime.step, node.name))
        return act(node, seen)

    async def turned(seen, runtime):
        await anyio.lowlevel.checkpoint()
        return sync(seen, runtime)

    return turned if awaited else sync


def path_function(branch, awaited):
    def sync(seen):
        return answer(branch, seen)

    async def turned(seen):
        await anyio.lowlevel.checkpoint()
        return sync(seen)

    return turned if awaited else sync


def kind_of(error):
    """Return what the reference calls an error of the engine; another error is raised."""
    parts = error.exceptions if isinstance(error, ExceptionGroup) else [error]
    if all(isinstance(part, ConcurrentUpdateError) for part in parts):
        return "conflict"
    if isinstance(error, GraphRecursionError):
        return "recursion"
    if isinstance(error, StarvedJoinError):
        return "starved"
    raise error


def traced(log):
    """Return a log as the reference writes a trace."""
    steps = {}
    for step, name in log:
        steps.setdefault(step, []).append(name)
    return [(0, [START]), *steps.items()]


# ---------------------------------------------------------------------------------------------------- random plans


class Choices:
    """What a plan is drawn with. Every choice is a small number, so that hypothesis can shrink a plan."""

    def __init__(self, draw):
        self.draw = draw

    def number(self, low, high):
        return self.draw(st.integers(low, high))

    def pick(self, options):
        return options[self.number(0, len(options) - 1)]

    def some(self, options, low, high):
        """Return distinct options, in any order."""
        left, count = list(options), self.number(low, high)
        return tuple(left.pop(self.number(0, len(left) - 1)) for _ in range(min(count, len(left))))

    def chance(self, one_in):
        return self.number(1, one_in) == one_in


@st.composite
def plans(draw):
    """Draw a graph in which every node can be reached."""
    choices = Choices(draw)
    # The order of the names is not the order of the nodes.
    return Links(choices, choices.some("abcdefgh", 2, 8), field_plans(choices)).plan()


def field_plans(choices):
    may_default = choices.chance(2)
    made = [FieldPlan(COUNT, "sum"), LOG]
    for number in range(choices.number(4, 9)):
        kind = choices.pick(("last", "keyed", *KINDS))
        # A start of its own is for fields that keep their value, and whose channel does not say one.
        defaults = may_default and kind in {"last", "untracked", "sum", "list", "max", "merge"} and choices.chance(2)
        door = choices.pick(("open", "open", "open", "open", *DOORS))
        made.append(FieldPlan(f"f{number}", kind, door, choices.number(0, 9) if defaults else None))
    return tuple(made)


class Links:
    """A graph while it is drawn."""

    def __init__(self, choices, names, state):
        self.choices = choices
        self.names = names
        self.state = state
        # In a tidy graph a field that conflicts is written by one node only.
        tidy = not choices.chance(4)
        self.writable = {
            name: [
                planned
                for number, planned in enumerate(state)
                if not (tidy and KINDS[planned.kind].exclusive) or names[number % len(names)] == name
            ]
            for name in names
        }
        self.edges = []
        self.joins = []
        self.gotos = {name: [] for name in names}
        #: By source: the targets that its conditional edge has to have.
        self.branches = {}
        #: By source: how many times its conditional edge goes where.
        self.loops = {}

    def plan(self):
        choices, names = self.choices, self.names
        for number, name in enumerate(names):
            self.lead_to(name, [START, *names[:number]])
        for _ in range(choices.number(0, 3)):
            self.extra()
        accepted = [planned for planned in self.state if planned.door != "private"]
        return GraphPlan(
            self.state,
            tuple(self.node(name) for name in names),
            tuple(dict.fromkeys(self.edges)),
            tuple(dict.fromkeys(self.joins)),
            tuple(self.branch(source) for source in self.branches),
            tuple(self.write(planned) for planned in choices.some(accepted, 0, 3)),
            choices.pick((12, 12, 12, 8, 8, 5, 2, 1)),
        )

    def lead_to(self, name, earlier):
        """Let something lead to a node from START or from nodes drawn before."""
        choices, sources = self.choices, earlier[1:]
        how = choices.pick(("edge", "edge", "branch", "join", "goto") if sources else ("edge", "edge", "branch"))
        if how == "join":
            self.joins.append((choices.some(sources, 1, 3), name))
        elif how == "goto":
            self.gotos[choices.pick(sources)].append(name)
        elif how == "branch":
            self.branches.setdefault(choices.pick(earlier), []).append(name)
        else:  # from the latest ones and from START more often: chains as well as fans
            self.edges.append((choices.pick([START, *earlier, *earlier[-2:]]), name))

    def extra(self):
        """Add an edge of any kind from anywhere to anywhere: loops, self-loops, second edges."""
        choices, names = self.choices, self.names
        how = choices.pick(("forward", "forward", "loop", "rejoin", "join", "goto", "end", "edge"))
        source, target = choices.pick(names), choices.pick(names)
        if how == "forward" and names.index(source) < names.index(target):
            self.edges.append((source, target))
        elif how == "loop":
            self.loop(source, (target,))
        elif how == "rejoin" and self.joins:
            sources, joined = choices.pick(self.joins)
            self.loop(joined, sources)
        elif how == "join":
            self.joins.append((choices.some(names, 1, 3), target))
        elif how == "goto":
            self.gotos[source].append(target)
        elif how == "end":
            self.edges.append((source, END))
        elif how == "edge":
            self.edges.append((source, target))

    def loop(self, source, targets):
        self.branches.setdefault(source, [])
        self.loops[source] = self.choices.number(1, 4), targets

    def node(self, name):
        choices = self.choices
        moves = [
            (choices.chance(2), tuple(self.part(name) for _ in range(choices.pick((1, 1, 1, 2, 2, 0)))))
            for _ in range(choices.number(1, 3))
        ]
        return NodePlan(
            name,
            defer=choices.chance(3),
            moves=tuple(moves),
            counts=name in self.loops,
            reads=self.reads(),
            destinations=tuple(dict.fromkeys(self.gotos[name])),
            awaited=choices.chance(2),
        )

    def part(self, name):
        choices = self.choices
        shape = choices.pick(("mapping", "mapping", "command", "command", "pairs", "none"))
        chosen = choices.some(self.writable[name], 0 if shape == "none" else 1, 3)
        if shape != "none" and LOG not in chosen and choices.chance(2):
            chosen = (*chosen, LOG)
        if shape == "pairs" and choices.chance(2):  # these may name a field twice
            chosen = [*chosen, choices.pick(chosen or self.writable[name])]
        targets = () if shape == "mapping" else self.targets((*self.gotos[name], *self.gotos[name], END), 0, 3)
        return Part(tuple(map(self.write, chosen)), shape, targets, choices.chance(2))

    def write(self, planned):
        choices = self.choices
        mode = choices.pick(("plain", "plain", *KINDS[planned.kind].modes))
        return Write(planned, mode, choices.number(0, 9))

    def targets(self, names, low, high):
        choices, made = self.choices, []
        for _ in range(choices.number(low, high)):
            if choices.chance(2):
                arg = choices.pick(("packet", "packet", "number", "text", "none", "list", "tuple"))
                made.append(Packet(choices.pick(self.names), arg, choices.number(0, 9)))
            else:
                made.append(choices.pick(names))
        return tuple(made)

    def branch(self, source):
        choices, wanted = self.choices, self.branches[source]
        rounds, first = self.loops.get(source, (None, tuple(wanted[:1])))
        answers = [first, *(self.targets((*wanted, END), 0, 2) for _ in range(choices.number(0, 2)))]
        missing = [name for name in wanted if not any(name in chosen for chosen in answers)]
        answers.append((*missing, *self.targets((END,), 0, 1)))
        return BranchPlan(
            source,
            declared=choices.pick(("names", "mapping", "literal", "open")),
            answers=tuple(answers),
            rounds=rounds,
            bare=choices.chance(2),
            reads=self.reads(),
            awaited=choices.chance(2),
        )

    def reads(self):
        """Return what a node or a path sees: mostly everything."""
        if not self.choices.chance(4):
            return None
        return self.choices.some([planned.name for planned in self.state], 1, len(self.state))


# ------------------------------------------------------------------------------------------------------- agreement


def sizes(share=1):
    """Return settings for a share of the profile's examples: each example compiles and runs whole graphs."""
    suppressed = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    return settings(max_examples=max(1, int(settings().max_examples * share)), suppress_health_check=suppressed)


def streamed(graph, plan):
    """Run a graph in this thread; return its last visible values, the kind of its error, and the error."""
    values = None
    try:
        for values in graph.stream(plan.given(), limited(plan), stream_mode="values"):  # noqa: B007 - the last counts
            pass
    except Exception as error:
        return values, kind_of(error), error
    return values, None, None


def limited(plan):
    return {"recursion_limit": plan.recursion_limit}


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
    assert len(text.splitlines()) <= 200
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
