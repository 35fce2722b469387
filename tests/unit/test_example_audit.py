"""The audit example: its analyses by their values, its graph on a small tree, its command line."""

import ast
import os
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from examples.audit import analyses, discover, ranking, relations, sources
from examples.audit.__main__ import app
from examples.audit.progress import Progress, Row
from examples.audit.runs import run
from examples.audit.state import (
    Block,
    Cycle,
    Docs,
    Import,
    Imports,
    Mark,
    Marks,
    Note,
    Place,
    Planned,
    Shape,
    Totals,
    Tree,
    add_totals,
)
from examples.audit.tables import tables
from examples.audit.view import draw, follow, plain_lines
from examples.audit.words import counted, shown

REPEATED = "\n".join(f"    total += price_{number} * {number}" for number in range(14)) + "\n"


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """What the command line stores stays out of the user's cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def source(text, path="a.py"):
    return sources.parse(path, text.encode())


def write(base, files):
    for name, text in files.items():
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())


# -- one file --


def test_complexity_counts_forks_of_each_kind():
    shape = analyses.measure(
        source(
            "def f(a, b):\n"
            "    if a and b or a:\n"  # 1 + 2 operators
            "        return [x for x in a if x if b]\n"  # 1 + 2
            "    try:\n"
            "        pass\n"
            "    except OSError:\n"  # 1
            "        return 1 if a else 2\n"  # 1
            "    match a:\n"
            "        case 1: pass\n"  # 1
            "    while b: pass\n"  # 1
        )
    )
    assert shape == Shape("a.py", lines=10, functions=1, classes=0, worst="f", worst_line=1, complexity=11)


def test_nested_functions_and_methods_count_for_themselves():
    text = "class A:\n    def m(self):\n        def inner():\n            if self: pass\n        return inner\n"
    shape = analyses.measure(source(text))
    assert (shape.functions, shape.classes) == (2, 1)
    assert (shape.worst, shape.worst_line, shape.complexity) == ("A.m.inner", 3, 2)


def test_of_equally_complex_functions_the_first_is_named():
    assert analyses.measure(source("def a(): pass\ndef b(): pass\n")).worst == "a"


@pytest.mark.parametrize("text", ["", "x = 1\n", "x = 1"])
def test_a_file_without_functions_has_no_worst(text):
    assert analyses.measure(source(text)) == Shape("a.py", lines=1 if text else 0)


def test_docstrings_count_public_definitions_only():
    text = (
        '"""Module."""\n'
        "class A:\n"
        '    """A."""\n'
        "    def shown(self): pass\n"
        "    def _hidden(self): pass\n"
        "def f():\n"
        '    """F."""\n'
        "    def local(): pass\n"
        "class _B:\n"
        "    def method(self): pass\n"
    )
    assert analyses.read_docstrings(source(text)) == Docs("a.py", public=4, documented=3)
    assert analyses.read_docstrings(source("")) == Docs("a.py", public=0, documented=0)


@pytest.mark.parametrize("path", ["test_a.py", "a/b_test.py", "conftest.py", "tests/helpers/a.py", "a/test/b.py"])
def test_test_files_need_no_docstrings(path):
    assert analyses.read_docstrings(source("def f(): pass\n", path)) == Docs(path, public=0, documented=0)


def test_imports_know_whether_they_run_on_load():
    text = (
        "import a.b, c\n"
        "from . import d\n"
        "from ..e import f as g, h\n"
        "if TYPE_CHECKING:\n"
        "    import i\n"
        "else:\n"
        "    import j\n"
        "try:\n"
        "    import k\n"
        "except ImportError:\n"
        "    def l():\n"
        "        import m\n"
    )
    assert analyses.read_imports(source(text)).imports == (
        Import("a.b"),
        Import("c"),
        Import("", ("d",), 1),
        Import("e", ("f", "h"), 2),
        Import("i", lazy=True),
        Import("j"),
        Import("k"),
        Import("m", lazy=True),
    )


def test_a_copy_keeps_the_same_fingerprints_whatever_stands_around_it():
    first = analyses.fingerprint(source(f"def f():\n{REPEATED}"))
    second = analyses.fingerprint(source(f"# comment\nimport os\n\n\ndef g(a):\n    a = 1\n{REPEATED}    return a\n"))
    shared = {mark.digest for mark in first.marks} & {mark.digest for mark in second.marks}
    assert len(shared) >= 2
    assert first == analyses.fingerprint(source(f"def f():\n\n{REPEATED}".replace("\n\n", "\n")))


def test_short_files_and_tables_of_data_have_no_fingerprints():
    assert analyses.fingerprint(source("a = 1\nb = 2\n")).marks == ()
    assert analyses.fingerprint(source("x = [\n" + "    0,\n" * 50 + "]\n")).marks == ()


# -- what can be wrong with a file --


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"def f(:\n", "syntax error in line 1: invalid syntax"),
        (b"\0\1\2", "binary: contains null bytes"),
        (b"x = '\xff'\n", "not utf-8: byte 0xff at offset 5"),
        (b"# coding: latin-1\nx = '\xff'\n", ""),
        (b"# coding: no-such\n", "can't be decoded: unknown encoding"),
        (b"\xef\xbb\xbfx = 1\r\n", ""),
        (b"x = '\\d'\n", ""),
    ],
)
def test_parse_says_what_is_wrong(data, problem):
    assert sources.parse("a.py", data).problem.startswith(problem)
    assert bool(sources.parse("a.py", data).problem) == bool(problem)


def test_parse_survives_any_depth_of_nesting():
    problem = sources.parse("a.py", b"(" * 100_000 + b")" * 100_000).problem
    assert problem


def test_a_file_that_vanished_is_a_problem(tmp_path):
    assert (
        sources.read(sources.SourceFile(str(tmp_path), "gone.py")).problem == "can't be read: No such file or directory"
    )


def test_a_huge_file_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "MAX_BYTES", 3)
    write(tmp_path, {"big.py": "x = 1\n"})
    assert sources.read(sources.SourceFile(str(tmp_path), "big.py")).problem == "not read: 6 bytes are more than 3"


def test_a_changed_file_is_read_again(tmp_path):
    file = sources.SourceFile(str(tmp_path), "a.py")
    write(tmp_path, {"a.py": "x = 1\n"})
    assert ast.unparse(sources.read(file).tree) == "x = 1"
    write(tmp_path, {"a.py": "x = 1000\n"})
    assert ast.unparse(sources.read(file).tree) == "x = 1000"


# -- which files --


def test_discovery_skips_caches_environments_and_links(tmp_path):
    write(tmp_path, {"b.py": "", "a/x.py": "", "a/__init__.py": ""})
    for folder in (".git", "__pycache__", "node_modules", "env"):
        write(tmp_path / folder, {"hidden.py": ""})
    (tmp_path / "env" / "pyvenv.cfg").touch()
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to(tmp_path / "self")
    (tmp_path / "link.py").symlink_to(tmp_path / "b.py")
    (tmp_path / "again").symlink_to(tmp_path / "a")
    os.mkfifo(tmp_path / "pipe.py")
    tree, problems = discover.discover(tmp_path)
    assert tree == Tree(str(tmp_path.resolve()), ("a/__init__.py", "a/x.py", "b.py"), (), (("again", "a"),), 5)
    assert problems == {}


def test_a_folder_that_cannot_be_listed_is_a_problem(tmp_path, monkeypatch):
    (tmp_path / "shut").mkdir()
    scandir = os.scandir

    def refuse(path):
        if Path(path).name == "shut":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert discover.discover(tmp_path)[1] == {"shut": "folder can't be listed: Permission denied"}


def test_a_single_file_is_a_tree_and_knows_its_packages(tmp_path):
    write(tmp_path, {"top/__init__.py": "", "top/sub/__init__.py": "", "top/sub/a.py": ""})
    tree, _ = discover.discover(tmp_path / "top" / "sub" / "a.py")
    assert tree == Tree(str((tmp_path / "top" / "sub").resolve()), ("a.py",), ("top", "sub"))


# -- files together --


def test_module_names_follow_packages_folders_and_links():
    tree = Tree(
        "/t",
        ("core/base.py", "core/__init__.py", "lib/__init__.py", "src/app/__init__.py", "src/app/main.py", "x/y.py"),
        links=(("else", "core"), ("lib/core", "core")),
    )
    assert relations.module_names(tree) == {
        "core/base.py": ("lib.core.base", "core.base", "else.base"),
        "core/__init__.py": ("lib.core", "core", "else"),
        "lib/__init__.py": ("lib",),
        "src/app/__init__.py": ("app", "src.app"),
        "src/app/main.py": ("app.main", "src.app.main"),
        "x/y.py": ("y", "x.y"),
    }
    inside = Tree("/t/top", ("__init__.py", "a.py"), ("top",))
    assert relations.module_names(inside) == {"__init__.py": ("top",), "a.py": ("top.a",)}


def imported(files):
    collected = [Imports(path, tuple(imports)) for path, imports in files.items()]
    return relations.import_graph(Tree("/t", tuple(files)), collected)


def test_imports_resolve_to_files():
    graph = imported(
        {
            "p/__init__.py": [Import("a", ("x",), 1), Import("", ("x",), 9)],
            "p/a.py": [Import("p.q", ("b", "name")), Import("os")],
            "p/q/__init__.py": [],
            "p/q/b.py": [Import("", ("a",), 2), Import("", ("missing",), 1), Import("p.a")],
        }
    )
    assert sorted(graph.edges) == [
        ("p/__init__.py", "p/a.py"),
        ("p/a.py", "p/q/__init__.py"),
        ("p/a.py", "p/q/b.py"),
        ("p/q/b.py", "p/a.py"),
        ("p/q/b.py", "p/q/__init__.py"),
    ]


def test_an_ambiguous_name_is_the_nearest_file_or_none():
    graph = imported({"a/util.py": [], "a/x.py": [Import("util")], "b/util.py": [], "c.py": [Import("util")]})
    assert list(graph.edges) == [("a/x.py", "a/util.py")]


def test_a_script_named_like_a_library_module_hides_it_from_its_neighbours_only():
    graph = imported({"s/types.py": [], "s/x.py": [Import("types")], "t/y.py": [Import("types")]})
    assert list(graph.edges) == [("s/x.py", "s/types.py")]


def test_cycles_are_of_imports_that_run_on_load():
    graph = imported(
        {
            "a.py": [Import("b")],
            "b.py": [Import("c", lazy=True), Import("c")],
            "c.py": [Import("a"), Import("d")],
            "d.py": [Import("a", lazy=True)],
        }
    )
    cycle = ("a.py", "b.py", "c.py")
    assert relations.import_cycles(graph) == [Cycle(cycle, cycle)]
    assert relations.importer_counts(graph) == {"a.py": 2, "b.py": 1, "c.py": 1, "d.py": 1}


def test_the_example_of_a_cycle_is_a_shortest_round_trip():
    files = {"a.py": ["b", "d"], "b.py": ["c"], "c.py": ["a"], "d.py": ["a"]}
    graph = imported({path: [Import(name) for name in names] for path, names in files.items()})
    assert relations.import_cycles(graph) == [Cycle(("a.py", "b.py", "c.py", "d.py"), ("a.py", "d.py"))]


def test_a_repeated_block_is_found_once_with_all_its_places():
    texts = {
        "a.py": f"def f():\n{REPEATED}",
        "b.py": f"import os\n\ndef g(a):\n    a = 1\n{REPEATED}",
        "c.py": "x = 1\n",
    }
    marks = [analyses.fingerprint(source(text, path)) for path, text in texts.items()]
    (block,) = relations.duplicate_blocks(marks)
    assert [place.path for place in block.places] == ["a.py", "b.py"]
    # Winnowing may lose up to WINDOW - 1 lines at each end.
    assert 14 - 2 * (analyses.WINDOW - 1) <= block.lines <= 14
    assert block.places[1].first - block.places[0].first == 3


def test_separate_stretches_are_separate_blocks_and_overlaps_none():
    def marks(path, *indices):
        return Marks(path, tuple(Mark(digest, index, index + 1, index + 6) for digest, index in indices))

    found = relations.duplicate_blocks([marks("a", (1, 0), (2, 3), (3, 50)), marks("b", (1, 10), (2, 13), (3, 60))])
    assert [block.lines for block in found] == [9, 6]
    assert found[0].places == (Place("a", 1, 9), Place("b", 11, 19))
    assert relations.duplicate_blocks([marks("a", (1, 0), (1, 2))]) == []
    assert len(relations.duplicate_blocks([marks("a", (1, 0), (1, 6))])) == 1


# -- ranking --


def test_ranking_says_why_and_in_which_order():
    findings = ranking.rank(
        shapes=[Shape("a", 500, 1, 0, "f", 3, 30), Shape("b", 10), Shape("c", 10)],
        docs=[Docs("a", 4, 4), Docs("b", 2, 1), Docs("c", 1, 1)],
        blocks=[],
        cycles=[Cycle(("b", "d"), ("b", "d"))],
        importers={"b": 7},
        problems={"d": "syntax error"},
    )
    assert [(finding.path, finding.reasons) for finding in findings] == [
        ("d", ("syntax error", "import cycle of 2")),
        ("a", ("f (line 3) has complexity 30", "500 lines")),
        ("b", ("import cycle of 2", "1 of 2 public definitions without docstring", "imported by 7")),
    ]


def test_repeated_lines_count_once():
    blocks = [Block(6, (Place("a", 1, 10), Place("b", 1, 10))), Block(6, (Place("a", 5, 12), Place("a", 30, 31)))]
    assert ranking.repeated_lines(blocks) == {"a": 14, "b": 10}


def test_totals_have_a_neutral_value_and_any_order():
    one, two, three = Totals(files=1, lines=2), Totals(lines=5), Totals(public=7, documented=8)
    assert add_totals(one, Totals()) == one == add_totals(Totals(), one)
    assert add_totals(add_totals(one, two), three) == add_totals(one, add_totals(three, two))
    assert add_totals(one, two) == Totals(files=1, lines=7)


# -- following a run --


def test_progress_counts_tasks_and_closes_a_step_at_each_barrier():
    now = iter(range(100))
    progress = Progress(lambda: float(next(now)))
    parts = [
        ("values", {}),
        ("custom", Planned((("b", 2),))),
        ("updates", {"a": None}),
        ("values", {}),
        ("updates", {"b": None}),
        ("custom", Note("b", "well\x1b")),
    ]
    told = [progress.feed(*part) for part in parts]
    assert plain_lines(told[3]) == ["superstep 1: 1 task, 3.00 s", "  a                        1 task     2.00 s"]
    assert plain_lines(told[5]) == ["b: well\\x1b"]
    assert progress.steps[1].rows == {"b": Row(done=1, planned=2, seconds=1.0)}
    console = Console(file=StringIO(), width=100)
    console.print(draw(progress))
    assert "superstep 2  1 task, running" in console.file.getvalue()
    assert "1/2" in console.file.getvalue()


def test_numbers_have_their_plural():
    assert [counted(count, "file") for count in (0, 1, 2_000)] == ["0 files", "1 file", "2,000 files"]


def test_names_are_shown_without_what_a_terminal_would_obey():
    assert shown("a\n\x1b[1m\udcff é") == "a\\n\\x1b[1m\\udcff é"


# -- the whole graph --


def audited(root, top=10):
    *_, last = [payload for mode, payload in run(root, top).parts if mode == "values"]
    return last


@pytest.fixture
def broken_tree(tmp_path):
    files = {
        "app/__init__.py": "",
        "app/a.py": f"from app import b\n\n\ndef f(total):\n{REPEATED}    return total\n",
        "app/b.py": f"import app.a\n\n\ndef g(total, count):\n    count = 1\n{REPEATED}    return count\n",
        "app/wrong.py": "def f(:\n",
        "app/binary.py": b"\0\0",
    }
    write(tmp_path, files)
    return tmp_path


def test_the_graph_finds_a_syntax_error_a_repeated_block_and_a_cycle(broken_tree):
    report = audited(broken_tree)["report"]
    assert report.problems == (
        ("app/binary.py", "binary: contains null bytes"),
        ("app/wrong.py", "syntax error in line 1: invalid syntax"),
    )
    assert [cycle.paths for cycle in report.cycles] == [("app/a.py", "app/b.py")]
    assert [[place.path for place in block.places] for block in report.blocks] == [["app/a.py", "app/b.py"]]
    assert {finding.path for finding in report.findings} == {"app/a.py", "app/b.py", "app/binary.py", "app/wrong.py"}
    assert (report.totals.files, report.totals.functions, report.totals.public) == (5, 2, 4)
    assert report.imported == (("app.a", 1), ("app.b", 1))


def test_lists_are_cut_and_counted(broken_tree):
    report = audited(broken_tree, top=1)["report"]
    assert (len(report.findings), report.totals.findings) == (1, 4)


def test_private_and_input_fields_do_not_leave_the_graph(broken_tree):
    assert set(audited(broken_tree)) == {"problems", "totals", "report"}


def test_two_runs_give_the_same_report(broken_tree):
    assert audited(broken_tree)["report"] == audited(broken_tree)["report"]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_run_can_be_followed(broken_tree, terminal):
    console = Console(file=StringIO(), width=100, force_terminal=terminal)
    state = follow(run(broken_tree, 5).parts, console)
    for part in tables(state["report"]):
        console.print(part)
    text = console.file.getvalue()
    for expected in ("superstep 2", "20 tasks", "fingerprint", "superstep 5", "Import cycles", "app/wrong.py"):
        assert expected in text


# -- the command line --


def test_an_empty_tree_has_a_report(tmp_path):
    result = CliRunner().invoke(app, [str(tmp_path)])
    assert (result.exit_code, result.exception) == (0, None)
    assert "No Python files in" in result.stdout


def test_a_single_file_has_a_report(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")  # a long path wraps no line
    write(tmp_path, {"a.py": "x = 1\n"})
    result = CliRunner().invoke(app, [str(tmp_path / "a.py")])
    assert (result.exit_code, result.exception) == (0, None)
    assert "1 file, 1 line, 0 functions" in result.stdout.replace("\n", " ")


def test_a_tree_with_problems_has_a_report(broken_tree):
    result = CliRunner().invoke(app, [str(broken_tree), "--top", "3"])
    assert (result.exit_code, result.exception) == (0, None)
    assert "Could not be read or parsed: 2" in result.stdout


@pytest.mark.parametrize("kind", ["missing", "loop", "pipe"])
def test_a_path_that_cannot_be_audited_ends_with_2(tmp_path, kind):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    result = CliRunner().invoke(app, [str(tmp_path / kind)])
    assert result.exit_code == 2
    assert "Invalid value for PATH" in result.stderr
