"""Which node runs when? The nodes wrap the plain functions; the edges make the supersteps.

    discover -> one Send per file and analysis -> (import graph | duplicates) -> rank -> report

`measure` and `read_docstrings` are done a superstep before the other two branches: the join waits for all four.
"""

from __future__ import annotations

from pathlib import Path

from examples.audit import analyses, discover, ranking, relations
from examples.audit.sources import Source, read
from examples.audit.state import Note, Planned, Report, SourceFile, State, Totals
from examples.audit.words import counted
from pregel import END, START, Pregel, Send, StateGraph
from pregel.checkpoint.base import Checkpointer
from pregel.types import StreamWriter

#: The nodes that get one task per file.
ANALYSES = ("measure", "read_docstrings", "read_imports", "fingerprint")
#: How many tasks run at once: the analyses of two files.
CONCURRENCY = 8


def build(saver: Checkpointer | None = None) -> Pregel:
    """The compiled graph. Input: `root`, a path, and `top`, how many rows a list may have. Output: `report`.

    Args:
        saver: Where its runs are stored; None for nowhere.
    """
    graph = StateGraph(State)
    graph.add_node("discover", find_files)
    graph.add_node("measure", measure)
    graph.add_node("read_docstrings", read_docstrings)
    graph.add_node("read_imports", read_imports)
    graph.add_node("fingerprint", fingerprint)
    graph.add_node("relate_imports", relate_imports)
    graph.add_node("find_duplicates", find_duplicates)
    graph.add_node("rank", rank)
    graph.add_node("write_report", write_report)

    graph.add_edge(START, "discover")
    graph.add_conditional_edges("discover", fan_out, [*ANALYSES, "rank"])
    graph.add_edge("read_imports", "relate_imports")
    graph.add_edge("fingerprint", "find_duplicates")
    # Live, because a tree without files has no analyses to wait for.
    graph.add_edge(["measure", "read_docstrings", "relate_imports", "find_duplicates"], "rank", wait="live")
    graph.add_edge("rank", "write_report")
    graph.add_edge("write_report", END)
    return graph.compile(name="audit", checkpointer=saver)


def find_files(state: State, writer: StreamWriter) -> State:
    """List the files."""
    tree, problems = discover.discover(Path(state["root"]))
    writer(Note("discover", f"{counted(len(tree.files), 'Python file')} in {tree.base}"))
    writer(Planned(tuple((node, len(tree.files)) for node in ANALYSES)))
    return {"tree": tree, "problems": problems, "totals": Totals(skipped=tree.skipped)}


def fan_out(state: State) -> list[Send] | str:
    """One task per file and analysis. Those of a file are neighbours, so that it is parsed once for all of them."""
    tree = state["tree"]
    if not tree.files:
        return "rank"
    return [Send(node, SourceFile(tree.base, path)) for path in tree.files for node in ANALYSES]


def measure(file: SourceFile) -> State:
    """Measure one file, and count it."""
    source = read(file)
    shape = analyses.measure(source)
    totals = Totals(files=1, lines=shape.lines, functions=shape.functions, classes=shape.classes)
    return {"shapes": [shape], "totals": totals, **_problem(source)}


def read_docstrings(file: SourceFile) -> State:
    """Count one file's docstrings."""
    source = read(file)
    docs = analyses.read_docstrings(source)
    return {"docs": [docs], "totals": Totals(public=docs.public, documented=docs.documented), **_problem(source)}


def read_imports(file: SourceFile) -> State:
    """List one file's imports."""
    source = read(file)
    return {"imports": [analyses.read_imports(source)], **_problem(source)}


def fingerprint(file: SourceFile) -> State:
    """Fingerprint one file's lines."""
    source = read(file)
    return {"marks": [analyses.fingerprint(source)], **_problem(source)}


def _problem(source: Source) -> State:
    return {"problems": {source.path: source.problem}} if source.problem else {}


def relate_imports(state: State, writer: StreamWriter) -> State:
    """Resolve the imports of all files into a graph and look for its cycles."""
    graph = relations.import_graph(state["tree"], state["imports"])
    cycles = relations.import_cycles(graph)
    writer(
        Note(
            "relate_imports",
            f"{counted(graph.number_of_edges(), 'import')} inside the tree, {counted(len(cycles), 'cycle')}",
        )
    )
    importers = relations.importer_counts(graph)
    totals = Totals(imported=len(importers), cycles=len(cycles))
    return {"cycles": cycles, "importers": importers, "totals": totals}


def find_duplicates(state: State, writer: StreamWriter) -> State:
    """Compare the fingerprints of all files."""
    blocks = relations.duplicate_blocks(state["marks"])
    marks = counted(sum(len(entry.marks) for entry in state["marks"]), "fingerprint")
    writer(Note("find_duplicates", f"{marks} compared, {counted(len(blocks), 'repeated block')}"))
    return {"blocks": blocks, "totals": Totals(blocks=len(blocks))}


def rank(state: State) -> State:
    """Weigh what was found against each other."""
    findings = ranking.rank(
        shapes=state["shapes"],
        docs=state["docs"],
        blocks=state.get("blocks", []),
        cycles=state.get("cycles", []),
        importers=state.get("importers", {}),
        problems=state["problems"],
    )
    return {"findings": findings, "totals": Totals(findings=len(findings))}


def write_report(state: State) -> State:
    """Cut each list to its most important rows."""
    top = state["top"]
    tree, findings = state["tree"], state["findings"]
    cycles, blocks, importers = state.get("cycles", []), state.get("blocks", []), state.get("importers", {})
    names = relations.module_names(tree)
    report = Report(
        base=tree.base,
        totals=state["totals"],
        findings=tuple(findings[:top]),
        cycles=tuple(cycles[:top]),
        imported=tuple((names[path][0], count) for path, count in list(importers.items())[:top]),
        blocks=tuple(blocks[:top]),
        problems=tuple(sorted(state["problems"].items())),
    )
    return {"report": report}
