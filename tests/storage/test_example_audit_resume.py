"""The audit example is stopped, by a kill, by Ctrl-C, by its reader, and goes on."""

import re
import signal
import subprocess
import sys
from contextlib import closing
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from examples.audit import analyses, runs
from examples.audit.__main__ import app
from examples.audit.database import default_path
from examples.audit.graph import ANALYSES, build
from examples.audit.progress import Progress, Resumed, Row
from examples.audit.runs import forget, run, thread_of
from examples.audit.state import SourceFile
from examples.audit.view import draw, follow, going_on, plain_lines
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.sqlite import SqliteSaver

REPOSITORY = Path(__file__).parents[2]
FILES = 20
TASKS = FILES * len(ANALYSES)

# What a test runs in a process that is stopped: the command line, with each analysis written down before it begins.
# Arguments: the list, what stops the process and when, and those of the command.
HARNESS = """
import os, signal, sys, threading
from itertools import count
from examples.audit import analyses, runs
from examples.audit.__main__ import app
from examples.audit.graph import ANALYSES
from pregel.drivers import sync
from pregel.testing.faults import crash_at

ledger, how, number, *arguments = sys.argv[1:]
calls = count(1)
stopped = threading.Event()

def interrupted(*_):
    stopped.set()
    raise KeyboardInterrupt

signal.signal(signal.SIGINT, interrupted)

def counted(name):
    analyse = getattr(analyses, name)
    def analysis(source):
        with open(ledger, "a") as file:
            file.write(f"{name} {source.path}\\n")
        if next(calls) == int(number) and how.startswith("SIG"):
            os.kill(os.getpid(), getattr(signal, how))
            stopped.wait(60)  # the superstep can't end before the signal arrives
        return analyse(source)
    setattr(analyses, name, analysis)

for name in ANALYSES:
    counted(name)
if how == "commit":
    runs.DURABILITY = "sync"  # a transaction for each task, so that their number says where the run stands,
    sync.MOST_WAITING = 1  # also of those that end while one is stored
    crash_at("write.after", int(number))
app(arguments, prog_name="audit")
"""


@pytest.fixture(autouse=True)
def width(monkeypatch):
    """Every run prints lines of one length, wherever it runs."""
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "tree"
    root.mkdir()
    for number in range(1, FILES):
        (root / f"m{number}.py").write_text(f"import m{number % 9 + 1}\n\n\ndef f(a):\n    return a or {number}\n")
    (root / "wrong.py").write_text("def f(:\n")
    return root


@pytest.fixture
def stop(tmp_path, tree):
    """Run the command in a process that is stopped; give back the process and the analyses that it began, in order."""

    def start(how, number):
        ledger = tmp_path / "ledger"
        ledger.touch()
        arguments = [ledger, how, number, tree, "--db", tmp_path / "runs.sqlite"]
        ended = python("-c", HARNESS, *arguments)
        return ended, [tuple(line.split()) for line in ledger.read_text().splitlines()]

    return start


def python(*arguments):
    return subprocess.run(
        [sys.executable, "-W", "error", *map(str, arguments)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def audit(tmp_path, tree, monkeypatch):
    """Run the command here, to its end; give back what it printed and the analyses that it began, in any order."""
    began = []

    def counted(name, analyse):
        def analysis(source):
            began.append((name, source.path))
            return analyse(source)

        monkeypatch.setattr(analyses, name, analysis)

    for name in ANALYSES:
        counted(name, getattr(analyses, name))

    def start():
        began.clear()
        result = CliRunner().invoke(app, [str(tree), "--db", str(tmp_path / "runs.sqlite")])
        assert (result.exit_code, result.exception) == (0, None)
        return result.stdout, sorted(began)

    return start


def stored(tmp_path, tree):
    """Return the analyses whose results are in the file."""
    with SqliteSaver(tmp_path / "runs.sqlite") as saver:
        state = build(saver).get_state({"configurable": {"thread_id": thread_of(tree, 10)}})
    if {task.name for task in state.tasks} != {*ANALYSES}:
        return set()
    files = sorted(path.name for path in tree.iterdir())
    names = [(name, path) for path in files for name in ANALYSES]
    assert [task.name for task in state.tasks] == [name for name, _ in names]
    return {name for name, task in zip(names, state.tasks, strict=True) if task.result is not None}


def everything(tree):
    return {(name, path.name) for path in tree.iterdir() for name in ANALYSES}


def report_of(text):
    """Return what a run printed below its progress, without the time that it took."""
    return re.sub(r"\d+\.\d s (in all|since it went on)", "", text[text.index("\n\n") :])


# -- stopped --


@pytest.mark.parametrize("done", [0, TASKS // 2, TASKS - 1])
def test_a_killed_run_goes_on_without_repeating_what_was_stored(stop, audit, tmp_path, tree, done):
    before = 2  # transactions: the input, and the list of the files
    killed, _ = stop("commit", before + done)
    assert killed.returncode == -signal.SIGKILL
    kept = stored(tmp_path, tree)
    assert len(kept) == done
    text, began = audit()
    said = f"going on with the run of {tree}: {done} of {TASKS} tasks of superstep 2 were done already"
    assert text.splitlines()[0] == said
    assert began == sorted(everything(tree) - kept)
    undisturbed, began = audit()
    assert "going on" not in undisturbed
    assert began == sorted(everything(tree))
    assert report_of(text) == report_of(undisturbed)


def test_a_run_that_stores_in_groups_loses_only_what_it_had_not_written(stop, audit, tmp_path, tree):
    killed, began_before = stop("SIGKILL", TASKS // 2)
    assert killed.returncode == -signal.SIGKILL
    assert len(began_before) >= TASKS // 2
    kept = stored(tmp_path, tree)
    assert kept <= set(began_before)
    text, began = audit()
    assert began == sorted(everything(tree) - kept)
    assert report_of(text) == report_of(audit()[0])


def test_ctrl_c_stores_what_has_ended_and_the_command_goes_on_in_another_process(stop, audit, tmp_path, tree):
    stopped, began_before = stop("SIGINT", TASKS // 2)
    assert (stopped.returncode, stopped.stdout.splitlines()[-1]) == (130, "stopped. The same command goes on from here")
    kept = stored(tmp_path, tree)
    assert 0 < len(kept) < TASKS
    assert kept <= set(began_before)
    resumed = python("-m", "examples.audit", tree, "--db", tmp_path / "runs.sqlite")
    assert resumed.returncode == 0, resumed.stderr
    assert f"{len(kept)} of {TASKS} tasks of superstep 2 were done already" in resumed.stdout
    assert report_of(resumed.stdout) == report_of(audit()[0])


# -- in one process --


def part_way(tree, saver, mode="updates", count=11):
    """Run until there were so many parts of a mode."""
    with closing(run(tree, 10, saver).parts) as parts:
        for _ in range(count):
            next(part for part in parts if part[0] == mode)


def listed(tree, saver):
    """Run until the files are listed: the state is told after the input and after each superstep."""
    part_way(tree, saver, "values", 2)


def ended(tree, saver, **options):
    """Run to the end; return how it went on, and its report."""
    begun = run(tree, 10, saver, **options)
    *_, last = [payload for mode, payload in begun.parts if mode == "values"]
    return begun, last["report"]


@pytest.fixture(autouse=True)
def each_by_itself(monkeypatch):
    """Let each task be stored and told before the next one is heard of, so that a small run can be left half-way."""
    monkeypatch.setattr("pregel.drivers.sync.MOST_WAITING", 1)


def test_a_run_whose_reader_left_goes_on_with_what_was_done(tree):
    saver = InMemorySaver()
    part_way(tree, saver)
    begun, report = ended(tree, saver)
    assert begun.resumed.step == 2
    assert begun.resumed.planned == dict.fromkeys(ANALYSES, FILES)
    # The eleventh part was the list of the files. What had ended and was not told yet is kept as well.
    assert 10 <= sum(begun.resumed.done.values()) < TASKS
    assert report == ended(tree, None)[1]


def test_another_tree_and_another_length_of_lists_are_other_runs(tree):
    saver = InMemorySaver()
    part_way(tree, saver)
    assert run(tree.parent, 10, saver).resumed is None
    assert run(tree, 9, saver).resumed is None
    assert run(tree / ".." / tree.name, 10, saver).resumed is not None


def test_a_path_of_any_length_and_any_bytes_names_a_thread(tmp_path):
    assert len(thread_of(tmp_path / ("\udcff" * 200) / ("a" * 200) / ("b" * 200), 10)) <= 512


def test_fresh_begins_anew(tree):
    saver = InMemorySaver()
    part_way(tree, saver)
    begun, report = ended(tree, saver, fresh=True)
    assert begun.resumed is None
    assert report == ended(tree, None)[1]


def test_a_run_goes_on_with_the_files_that_it_had_listed(tree):
    saver = InMemorySaver()
    listed(tree, saver)
    (tree / "m1.py").unlink()
    (tree / "new.py").write_text("x = 1\n")
    report = ended(tree, saver)[1]
    assert report.totals.files == FILES
    assert ("m1.py", "can't be read: No such file or directory") in report.problems


def test_a_report_that_nobody_saw_is_still_there_and_a_seen_one_is_forgotten(tree, monkeypatch):
    saver = InMemorySaver()
    report = ended(tree, saver)[1]
    monkeypatch.setattr(analyses, "measure", None)  # nothing is analysed again
    begun, again = ended(tree, saver)
    assert (begun.resumed.planned, again) == ({}, report)
    forget(tree, 10, saver)
    assert saver.threads() == []


def test_what_another_version_of_the_audit_has_stored_is_left_with_a_word(tree, monkeypatch):
    saver = InMemorySaver()
    monkeypatch.setattr(runs, "build", other_version)
    listed(tree, saver)
    monkeypatch.undo()
    begun, report = ended(tree, saver)
    assert begun.resumed is None
    assert "Migration" in begun.lost
    assert report == ended(tree, None)[1]


def other_version(saver):
    from examples.audit import graph
    from pregel import START, StateGraph

    older = StateGraph(graph.State).add_node("discover", graph.find_files).add_node("after", graph.measure)
    older.add_edge(START, "discover").add_conditional_edges(
        "discover", lambda state: graph.Send("after", SourceFile(state["tree"].base, "m1.py")), ["after"]
    )
    return older.compile(name="audit", checkpointer=saver)


# -- how it looks --


def test_progress_counts_what_was_done_before():
    resumed = Resumed(2, {"a": 3, "b": 2}, {"a": 2})
    now = iter(range(100))
    progress = Progress(lambda: float(next(now)), resumed)
    assert progress.feed("values", {}) is None
    console = Console(file=StringIO(), width=100)
    console.print(draw(progress))
    assert "superstep 2  2 tasks, 2 of them before, running" in console.file.getvalue()
    assert "2/3" in console.file.getvalue()
    for node in ("a", "b", "b"):
        progress.feed("updates", {node: None})
    assert progress.steps[0].rows == {"a": Row(3, 3, 1.0), "b": Row(2, 2, 3.0)}
    assert plain_lines(progress.feed("values", {}))[0] == "superstep 2: 5 tasks, 2 of them before, 4.00 s"
    assert progress.steps[1].number == 3
    assert progress.steps[1].before == 0


def test_what_goes_on_is_said():
    assert going_on("/t\n", Resumed(2, {"a": 1_200, "b": 34}, {"a": 1_000})) == (
        "going on with the run of /t\\n: 1,000 of 1,234 tasks of superstep 2 were done already"
    )
    assert going_on("/t", Resumed(6, {}, {})) == "going on with the run of /t: only its report is left"


@pytest.mark.parametrize("terminal", [True, False])
def test_a_run_that_goes_on_can_be_followed(tree, terminal):
    saver = InMemorySaver()
    part_way(tree, saver)
    begun = run(tree, 10, saver)
    console = Console(file=StringIO(), width=100, force_terminal=terminal)
    assert follow(begun.parts, console, begun.resumed)["report"].totals.files == FILES
    text = console.file.getvalue()
    assert f"{TASKS} tasks, {sum(begun.resumed.done.values())} of them before" in text
    assert "superstep 5" in text


# -- the command line --


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_runs_are_stored_in_the_cache_folder_until_their_report_is_printed(tree, cache, monkeypatch):
    def full(_report):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("examples.audit.__main__.tables", full)
    assert isinstance(CliRunner().invoke(app, [str(tree)]).exception, OSError)
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    assert "only its report is left" in CliRunner().invoke(app, [str(tree)]).stdout
    assert default_path() == cache / "pregel" / "audit.sqlite"
    with SqliteSaver(default_path()) as saver:
        assert saver.threads() == []


def test_a_cache_folder_that_the_system_does_not_know_is_in_the_home(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_path() == tmp_path / ".cache" / "pregel" / "audit.sqlite"


def test_without_a_usable_cache_folder_it_runs_and_says_that_nothing_is_stored(tree, cache):
    cache.write_text("no folder")
    result = CliRunner().invoke(app, [str(tree)])
    assert result.exit_code == 0
    assert "this run is not stored" in result.stdout
    assert f"{FILES} files" in result.stdout


def test_a_file_that_was_named_and_is_no_database_ends_with_2(tree, tmp_path):
    (tmp_path / "text").write_text("no database, " * 100)
    result = CliRunner().invoke(app, [str(tree), "--db", str(tmp_path / "text")])
    assert result.exit_code == 2
    assert "Invalid value for --db" in result.stderr


def test_a_tree_that_is_being_audited_elsewhere_ends_with_1(tree, tmp_path):
    file = tmp_path / "runs.sqlite"
    with SqliteSaver(file) as saver, closing(run(tree, 10, saver).parts) as parts:
        next(parts)
        result = CliRunner().invoke(app, [str(tree), "--db", str(file)])
        assert result.exit_code == 1
        assert "is being audited elsewhere" in result.stderr


def test_an_ignored_ctrl_c_stays_ignored(tree, cache):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert CliRunner().invoke(app, [str(tree)]).exit_code == 0
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert cache.is_dir()
