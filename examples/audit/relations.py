"""What can only be said about the files together? Who imports whom, and what stands in several places."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from os.path import commonpath

import networkx as nx

from examples.audit.analyses import BLOCK, WINDOW
from examples.audit.state import Block, Cycle, Import, Imports, Mark, Marks, Place, Tree


def import_graph(tree: Tree, collected: Iterable[Imports]) -> nx.DiGraph[str]:
    """The graph whose nodes are paths and whose edges say "imports". An edge is `lazy` if no import of it runs on load.

    Imports of anything outside the tree are left out. A package's `__init__` counts only where it is named: that
    Python loads it before each of its modules would make a cycle of nearly every package.
    """
    names = module_names(tree)
    homes: dict[str, list[str]] = defaultdict(list)
    for path, own in names.items():
        for name in own:
            homes[name].append(path)
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(tree.files)
    for entry in sorted(collected, key=lambda entry: entry.path):
        home = partial(_home, homes, entry.path)
        for statement in entry.imports:
            for target in _targets(names[entry.path][0], entry.path, statement, home):
                if target != entry.path:
                    known = graph.edges[entry.path, target]["lazy"] if graph.has_edge(entry.path, target) else True
                    graph.add_edge(entry.path, target, lazy=statement.lazy and known)
    return graph


def import_cycles(graph: nx.DiGraph[str]) -> list[Cycle]:
    """The strongly connected components of more than one file, largest first, over imports that run on load.

    The example of each is a shortest round trip from its first file.
    """
    eager: nx.DiGraph[str] = nx.DiGraph()
    eager.add_nodes_from(graph)
    eager.add_edges_from(edge for edge in graph.edges if not graph.edges[edge]["lazy"])
    cycles = []
    for component in nx.strongly_connected_components(eager):
        if len(component) > 1:
            paths = tuple(sorted(component))
            ways = (nx.shortest_path(eager, target, paths[0]) for target in eager[paths[0]] if target in component)
            cycles.append(Cycle(paths, (paths[0], *min(ways, key=len)[:-1])))
    return sorted(cycles, key=lambda cycle: (-len(cycle.paths), cycle.paths))


def importer_counts(graph: nx.DiGraph[str]) -> dict[str, int]:
    """How many files import each file that is imported at all, most imported first."""
    counts = {path: degree for path, degree in graph.in_degree() if degree}
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def duplicate_blocks(collected: Iterable[Marks]) -> list[Block]:
    """Stretches of code that stand in several places, longest first, from the fingerprints alone."""
    places: dict[int, list[tuple[str, Mark]]] = defaultdict(list)
    for entry in sorted(collected, key=lambda entry: entry.path):
        for mark in entry.marks:
            here = places[mark.digest]
            # Overlapping repeats of one line pattern are not copies of each other.
            if not here or here[-1][0] != entry.path or here[-1][1].start + BLOCK <= mark.start:
                here.append((entry.path, mark))
    # Marks shared by the same files at the same distances belong to one block.
    families: dict[tuple[tuple[str, int], ...], list[list[Mark]]] = defaultdict(list)
    for here in places.values():
        if len(here) > 1:
            begin = here[0][1].start
            families[tuple((path, mark.start - begin) for path, mark in here)].append([mark for _, mark in here])
    blocks = []
    for family, rows in families.items():
        for run in _runs(sorted(rows, key=lambda row: row[0].start)):
            lines = run[-1][0].start - run[0][0].start + BLOCK
            spans = zip(family, run[0], run[-1], strict=True)
            blocks.append(Block(lines, tuple(Place(path, first.first, last.last) for (path, _), first, last in spans)))
    return sorted(blocks, key=lambda block: (-block.lines * (len(block.places) - 1), block.places))


def _runs(rows: list[list[Mark]]) -> Iterator[list[list[Mark]]]:
    """Cut rows where a stretch ends: inside one, neighbouring marks are at most WINDOW apart."""
    begin = 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or rows[end][0].start - rows[end - 1][0].start > WINDOW:
            yield rows[begin:end]
            begin = end


def module_names(tree: Tree) -> dict[str, tuple[str, ...]]:
    """The names under which each file can be imported; the first is its own.

    That is the path below the outermost folder with an `__init__`, then the path below the tree's base (packages
    without one), then those through links to the file's folder. A link inside a package comes first: whoever put it
    there wants the folder to be imported as a part of the package.
    """
    packages = {path.removesuffix("__init__.py").rstrip("/") for path in tree.files if _is_init(path)}
    names = {path: [_dotted(path, packages, tree.package)] for path in tree.files}
    for path, own in names.items():
        own.append(".".join((*tree.package, *_parts(path))))
    for link, target in tree.links:
        inside = target + "/"
        linked = packages | {link + folder[len(target) :] for folder in packages if f"{folder}/".startswith(inside)}
        for path, own in names.items():
            if path.startswith(inside):
                position = 0 if link.rpartition("/")[0] in packages else len(own)
                own.insert(position, _dotted(link + path[len(target) :], linked, tree.package))
    return {path: tuple(dict.fromkeys(own)) for path, own in names.items()}


def _dotted(path: str, packages: set[str], above: tuple[str, ...]) -> str:
    """A module's name as its folders' `__init__` files say."""
    parts = _parts(path)
    folders = path.split("/")[:-1]
    top = len(folders)
    while top and "/".join(folders[:top]) in packages:
        top -= 1
    return ".".join((*(above if top == 0 else ()), *parts[top:]))


def _parts(path: str) -> list[str]:
    parts = path.removesuffix(".py").split("/")
    return parts[:-1] if _is_init(path) else parts


def _is_init(path: str) -> bool:
    return path == "__init__.py" or path.endswith("/__init__.py")


def _targets(name: str, path: str, statement: Import, home: partial[str | None]) -> Iterator[str]:
    """The files that a statement names."""
    module = statement.module
    if statement.level:
        package = name.split(".")
        # One dot is the package itself, for a module as for the package's __init__; each further dot one up.
        up = statement.level - _is_init(path)
        if up >= len(package) + (not module):
            return
        module = ".".join((*package[: len(package) - up], *filter(None, [module])))
    whole = home(module)
    if not statement.names and whole:
        yield whole
    for imported in statement.names:
        target = home(f"{module}.{imported}") or whole
        if target:
            yield target


def _home(homes: dict[str, list[str]], importer: str, name: str) -> str | None:
    """The file a name means to its importer: of several the nearest, None if that does not decide."""
    candidates = homes.get(name, [])
    if name.partition(".")[0] in sys.stdlib_module_names:
        # scripts/types.py hides the library's `types` from its neighbours only.
        candidates = [path for path in candidates if _below(importer, path, name)]
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    distances = sorted((-len(commonpath([importer, path])), path) for path in candidates)
    return None if distances[0][0] == distances[1][0] else distances[0][1]


def _below(importer: str, path: str, name: str) -> bool:
    """Whether a file lies below the folder from which another has the given name."""
    levels = name.count(".") + 1 + _is_init(path)
    folders = path.split("/")[:-levels]
    return importer.split("/")[: len(folders)] == folders
