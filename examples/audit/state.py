"""What the graph knows: its records, its one reducer of its own, and the schema that says who sees which field."""

from __future__ import annotations

import operator
from dataclasses import dataclass, fields
from typing import Annotated, NamedTuple, TypedDict

from pregel import OmitFromInput, OmitFromOutput, PrivateStateAttr
from pregel.codec import serializable


# Stored with the tasks that are due. It stands in no field, so nobody else makes it known; the records below are made
# known when the graph is compiled, because the fields of `State` name them.
@serializable
class SourceFile(NamedTuple):
    """A file to analyse: what each `Send` carries. `path` is relative to `base`, with forward slashes."""

    base: str
    path: str


@dataclass(frozen=True, slots=True)
class Tree:
    """What discovery found below a folder.

    Attributes:
        base: The folder every path is relative to.
        files: The Python files, sorted.
        package: The packages that `base` itself lies in, outermost first; empty if it is no package.
        links: Links to folders inside the tree and where they lead. They are not walked, but they name modules.
        skipped: How many links and special files were passed over.
    """

    base: str
    files: tuple[str, ...] = ()
    package: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Shape:
    """Size of one file and its most complex function."""

    path: str
    lines: int
    functions: int = 0
    classes: int = 0
    worst: str = ""
    worst_line: int = 0
    complexity: int = 0


@dataclass(frozen=True, slots=True)
class Docs:
    """How many of a file's public definitions say what they are."""

    path: str
    public: int
    documented: int


class Mark(NamedTuple):
    """A fingerprint of some consecutive code lines: `start` counts code lines, `first` and `last` real ones."""

    digest: int
    start: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Marks:
    """The fingerprints kept of one file."""

    path: str
    marks: tuple[Mark, ...]


class Import(NamedTuple):
    """One import statement, unresolved. `lazy`: it does not run while its module loads."""

    module: str
    names: tuple[str, ...] = ()
    level: int = 0
    lazy: bool = False


@dataclass(frozen=True, slots=True)
class Imports:
    """The import statements of one file."""

    path: str
    imports: tuple[Import, ...]


@dataclass(frozen=True, slots=True)
class Cycle:
    """Files that import each other while loading: a strongly connected component, and one round trip through it."""

    paths: tuple[str, ...]
    example: tuple[str, ...]


class Place(NamedTuple):
    """Lines `first` to `last`, both included, of a file."""

    path: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Block:
    """The same `lines` code lines in several places."""

    lines: int
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """A file with its claim to attention; `reasons` stand in the order of their weight."""

    path: str
    score: float
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Totals:
    """What was counted, each node its share. `Totals()` is the neutral value of `add_totals`."""

    skipped: int = 0
    files: int = 0
    lines: int = 0
    functions: int = 0
    classes: int = 0
    public: int = 0
    documented: int = 0
    imported: int = 0
    cycles: int = 0
    blocks: int = 0
    findings: int = 0


def add_totals(left: Totals, right: Totals) -> Totals:
    """Add two partial counts: associative and commutative, so that any number of tasks may count their share."""
    return Totals(*(getattr(left, field.name) + getattr(right, field.name) for field in fields(Totals)))


@dataclass(frozen=True, slots=True)
class Report:
    """What a reader gets. Each list holds the `top` of its kind, except the problems; `totals` counts them all."""

    base: str
    totals: Totals
    findings: tuple[Finding, ...]
    cycles: tuple[Cycle, ...]
    imported: tuple[tuple[str, int], ...]
    blocks: tuple[Block, ...]
    problems: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Planned:
    """Sent on the `custom` stream: so many tasks of each node are due in the next superstep."""

    tasks: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Note:
    """Sent on the `custom` stream: a line for whoever watches."""

    node: str
    text: str


class State(TypedDict, total=False):
    """The graph's fields. The markers decide what passes the graph's door; inside, every node sees them all."""

    # Input only: who asks knows them already.
    root: Annotated[str, OmitFromOutput]
    top: Annotated[int, OmitFromOutput]

    # Private: the nodes' notes to each other. Thousands of records that neither a caller nor a stream should carry.
    tree: Annotated[Tree, PrivateStateAttr]
    shapes: Annotated[list[Shape], PrivateStateAttr, operator.add]
    docs: Annotated[list[Docs], PrivateStateAttr, operator.add]
    marks: Annotated[list[Marks], PrivateStateAttr, operator.add]
    imports: Annotated[list[Imports], PrivateStateAttr, operator.add]
    cycles: Annotated[list[Cycle], PrivateStateAttr]
    importers: Annotated[dict[str, int], PrivateStateAttr]
    blocks: Annotated[list[Block], PrivateStateAttr]
    findings: Annotated[list[Finding], PrivateStateAttr]

    # Output only: a result can be fed back in and starts from nothing.
    # Union is idempotent: all analyses of a broken file report it, and it is listed once.
    problems: Annotated[dict[str, str], OmitFromInput, operator.or_]
    # Each superstep adds to it, so a `values` stream shows each barrier although the records stay inside.
    totals: Annotated[Totals, OmitFromInput, add_totals]
    report: Annotated[Report, OmitFromInput]
