"""Random graphs: a generator of plans, and what is built from a plan.

A plan is plain data, from which both a `StateGraph` and the reference's description are built. What a node or a path
does is a function of the plan and of what it sees, so a difference in what one task sees shows up in all that follows.
"""

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass
from functools import partial, reduce
from typing import Annotated, Any, Literal
from zlib import crc32

import anyio
from hypothesis import HealthCheck, settings
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
    defer: bool | str
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


def built(plan, log, *, executor="inline", awaited=False, act=act):
    """Return a plan's compiled graph; its tasks are noted in `log`."""
    annotations = {field.name: field.annotation() for field in plan.fields}

    def schema(reads):
        names = annotations if reads is None else reads
        return TypedDict("Seen", {name: annotations[name] for name in names}, total=False)

    builder = StateGraph(state_schema(plan, annotations), strict=True)
    for node in plan.nodes:
        action = node_function(node, log, awaited and node.awaited, act)
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


def node_function(node, log, awaited, act):
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
        #: Whether nodes may be deferred "live"; then whatever leads somewhere says where.
        self.live = choices.chance(3)
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
            defer=choices.pick((False, "live", "live", True)) if self.live else choices.chance(3),
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
        packets = [name for name in names if name != END] if self.live else self.names
        for _ in range(choices.number(low, high)):
            if packets and choices.chance(2):
                arg = choices.pick(("packet", "packet", "number", "text", "none", "list", "tuple"))
                made.append(Packet(choices.pick(packets), arg, choices.number(0, 9)))
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
            declared=choices.pick(("names", "mapping", "literal", *(() if self.live else ("open",)))),
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


def sizes(share=1):
    """Return settings for a share of the profile's examples: each example compiles and runs whole graphs."""
    suppressed = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    return settings(max_examples=max(1, int(settings().max_examples * share)), suppress_health_check=suppressed)


def limited(plan):
    return {"recursion_limit": plan.recursion_limit}
