"""What is shipped: one import name, typed, complete, and quick to import."""

import os
import subprocess
import sys
import venv
from importlib import import_module
from pathlib import Path
from zipfile import ZipFile

import pytest

import pregel

ROOT = Path(__file__).parents[2]
SCRIPT = """
from typing import TypedDict
from pregel import START, StateGraph

class State(TypedDict):
    n: int

graph = StateGraph(State).add_node("a", lambda state: {"n": state["n"] + 1}).add_edge(START, "a").compile()
print(graph.invoke({"n": 1}), graph.get_input_jsonschema()["properties"], graph.get_graph().number_of_nodes())
"""


@pytest.mark.parametrize("module", ["pregel", "pregel.graph", "pregel.channels", "pregel.errors", "pregel.types"])
def test_every_public_name_is_there(module):
    loaded = import_module(module)
    assert len(set(loaded.__all__)) == len(loaded.__all__)
    for name in loaded.__all__:
        assert getattr(loaded, name) is not None
        assert name in dir(loaded)


def test_a_lazy_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'StateGrap'"):
        _ = pregel.StateGrap
    with pytest.raises(AttributeError, match="no attribute 'Edge'"):
        _ = import_module("pregel.graph").Edge


@pytest.mark.parametrize(
    ("statement", "unloaded"),
    [
        ("import pregel", {"networkx", "pydantic", "anyio", "asyncio", "pregel.main"}),
        ("from pregel import StateGraph", {"networkx", "pydantic", "anyio", "asyncio"}),
    ],
)
def test_importing_loads_only_what_is_used(statement, unloaded):
    listing = subprocess.run(
        [sys.executable, "-c", f"{statement}\nimport sys\nprint(*sys.modules)"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    ).stdout.split()  # fmt: skip
    assert unloaded.isdisjoint(listing)


@pytest.mark.slow
def test_a_wheel_in_a_clean_environment_has_one_top_level_and_works(tmp_path):
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COVERAGE"))}
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", tmp_path, ROOT], check=True, capture_output=True, env=clean
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"pregel"}
    assert {"pregel/py.typed", "pregel/channels/base.py", "pregel/graph/state.py", "pregel/testing/laws.py"} <= set(
        names
    )
    (sdist,) = tmp_path.glob("*.tar.gz")
    assert sdist.stat().st_size > 0
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", wheel], check=True, capture_output=True, env=clean)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    shown = subprocess.run([python, script], check=True, capture_output=True, text=True, env=clean, cwd=tmp_path).stdout
    assert shown == "{'n': 2} {'n': {'title': 'N', 'type': 'integer'}} 3\n"
