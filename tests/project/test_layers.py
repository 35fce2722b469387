"""The rules of the house that no linter knows: who may import whom, and what the pure core may not touch."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: Layer by module; a module imports only from its own layer and those before it.
LAYERS = (
    ("pregel.lazy", "pregel.channels"),
    (
        "pregel.types",
        "pregel.errors",
        "pregel.node",
        "pregel.network",
        "pregel.task",
        "pregel.runtime",
        "pregel.cancellation",
        "pregel.interrupting",
        "pregel.writes",
        "pregel.barrier",
        "pregel.plan",
        "pregel.superstep",
        "pregel.commands",
        "pregel.attempt",
        "pregel.routing",
        "pregel.managed",
        "pregel.text",
        "pregel.names",
        "pregel.callables",
        "pregel.mutation",
        "pregel.door",
        "pregel.lowlevel",
        "pregel.config",
        "pregel.control",
        "pregel.ids",
        "pregel.reporter",
        "pregel.fingerprint",
        "pregel.policy",
        "pregel.transient",
    ),
    ("pregel.clock", "pregel.codec", "pregel.checkpoint", "pregel.store", "pregel.cache"),
    (
        "pregel.drivers",
        "pregel.session",
        "pregel.holding",
        "pregel.placing",
        "pregel.newids",
        "pregel.opening",
        "pregel.editing",
        "pregel.snapshots",
        "pregel.stateful",
        "pregel.persistence",
        "pregel.child",
        "pregel.callbacks",
        "pregel.crossing",
        "pregel.remote",
        "pregel.remotecall",
        "pregel.remotework",
        "pregel.executors",
        "pregel.observe",
        "pregel.watch",
        "pregel.spans",
        "pregel.batch",
        "pregel.main",
    ),
    ("pregel.graph",),
    ("pregel.testing",),
)
#: Values in, values out.
PURE = ("pregel.channels", *LAYERS[1])
#: Clocks, randomness, ids, event loops, threads, sockets, databases, files, logs: none of them in the pure core.
IMPURE = {
    "anyio", "asyncio", "concurrent", "datetime", "io", "logging", "multiprocessing", "os", "pathlib", "queue",
    "random", "secrets", "select", "signal", "socket", "sqlite3", "subprocess", "sys", "tempfile", "threading", "time",
    "trio", "uuid",
}  # fmt: skip


def modules():
    """Yield (module name, path) of the package."""
    for folder, package in (("channels", "pregel.channels"), ("graph", "pregel.graph"), ("pregel", "pregel")):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if any((ROOT / part).is_symlink() for part in path.relative_to(ROOT).parents if part.name):
                continue
            inner = path.relative_to(ROOT / folder).with_suffix("").parts
            name = ".".join((package, *inner)).removesuffix(".__init__")
            yield name, path


MODULES = dict(modules())


def imports(path):
    """Yield the modules that a file imports, those for type checkers only left out."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for inner in node.body:
                for child in ast.walk(inner):
                    child.skip = True
        if getattr(node, "skip", False):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} imports relatively"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer(module):
    """Return the number of a module's layer."""
    found = [
        (len(prefix), number)
        for number, prefixes in enumerate(LAYERS)
        for prefix in prefixes
        if module == prefix or module.startswith(f"{prefix}.")
    ]
    return max(found)[1] if found else None


def test_the_walk_finds_every_folder():
    assert {"pregel.channels.base", "pregel.superstep", "pregel.graph.state", "pregel.drivers.sync"} <= set(MODULES)


@pytest.mark.parametrize("module", [name for name in MODULES if name != "pregel"])
def test_imports_point_left_only(module):
    own = layer(module)
    assert own is not None, f"{module} is in no layer: give it one"
    for imported in imports(MODULES[module]):
        assert imported.split(".")[0] not in {"channels", "graph", "tests"}, (
            f"{module} imports {imported} by its folder"
        )
        if imported in MODULES and imported != "pregel":
            assert layer(imported) <= own, f"{module} (layer {own}) imports {imported} (layer {layer(imported)})"


@pytest.mark.parametrize(
    "module", [name for name in MODULES if name != "pregel.lazy" and layer(name) is not None and layer(name) <= 1]
)
def test_the_pure_core_touches_nothing_outside(module):
    touched = {imported.split(".")[0] for imported in imports(MODULES[module])} & IMPURE
    assert not touched, f"{module} imports {touched}"


def test_the_purity_rule_can_fail(tmp_path):
    sample = tmp_path / "sample.py"
    sample.write_text("def f():\n    import time\n    from threading import Lock\n")
    assert {name.split(".")[0] for name in imports(sample)} & IMPURE == {"time", "threading"}


def test_the_core_dependencies_are_four():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {requirement.split(">")[0] for requirement in project["dependencies"]}
    assert names == {"networkx", "anyio", "pydantic", "msgpack"}


def test_the_coverage_gate_names_the_whole_pure_core():
    makefile = (ROOT / "Makefile").read_text()
    for module in PURE[1:]:
        assert module.replace(".", "/") + ".py" in makefile, f"{module} is not under the coverage gate"


def test_the_architecture_page_names_every_module():
    page = (ROOT / "docs" / "architecture.md").read_text()
    modules = {name for name, path in MODULES.items() if path.name != "__init__.py"}
    missing = {name for name in modules if not re.search(rf"\b{name.rsplit('.', 1)[1]}\.py", page)}
    assert missing <= {name for name in modules if name.startswith("pregel.channels.")}
