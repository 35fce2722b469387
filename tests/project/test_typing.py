"""The types of the public API, as a strict type checker sees them."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WRONG = """
from typing import TypedDict
from pregel import START, StateGraph

class State(TypedDict):
    n: int

builder = StateGraph(State).add_node("a", lambda state: {}).add_edge(START, "a", wait="some")
builder.compile(executor="gpu").stream({}, stream_mode="vlues")
"""


@pytest.mark.slow
def test_a_strict_type_checker_accepts_programs_and_knows_their_types():
    samples = sorted((ROOT / "tests" / "typing").glob("*sample.py"))
    shown = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", *samples],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert len(samples) > 1
    assert shown.stdout.endswith(f"no issues found in {len(samples)} source files\n"), shown.stdout


@pytest.mark.slow
def test_a_strict_type_checker_refuses_what_is_wrong(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    shown = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", wrong],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    for word in ("wait", "executor", "stream_mode"):
        assert f'Argument "{word}"' in shown.stdout, shown.stdout
