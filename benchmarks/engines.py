"""The engines that can be measured, and the few names of their API that the workloads use."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import Any, get_args

from benchmarks.model import EngineName

ENGINES: tuple[EngineName, ...] = get_args(EngineName)
#: The module that has to be there; the floor needs none.
_MODULES: dict[EngineName, str] = {
    "ours": "pregel",
    "langgraph": "langgraph",
    "burr": "burr",
    "pydantic_graph": "pydantic_graph",
    "agent_framework": "agent_framework",
    "llama_index": "workflows",
    "google_adk": "google.adk",
}
_API_MODULES = {"ours": ("pregel", "pregel"), "langgraph": ("langgraph.graph", "langgraph.types")}
_NOTABLE = (
    "pregel",
    "langgraph",
    "langgraph-checkpoint",
    "langgraph-checkpoint-sqlite",
    "apache-burr",
    "pydantic-graph",
    "agent-framework-core",
    "llama-index-workflows",
    "google-adk",
    "anyio",
    "trio",
    "pydantic",
)

# A reader's environment may ask LangChain to report every run to a server: that would be LangGraph's time, unfairly.
os.environ.update({"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false"})


@dataclass(frozen=True, slots=True)
class Api:
    """What ours and LangGraph call by the same name, so that a workload is written once."""

    StateGraph: Any
    Send: Any
    START: str
    END: str


def api(engine: EngineName) -> Api:
    """Import an engine only when it is measured: the others then need not be installed."""
    graph, types = (import_module(module) for module in _API_MODULES[engine])
    return Api(StateGraph=graph.StateGraph, Send=types.Send, START=graph.START, END=graph.END)


def installed(engine: EngineName) -> bool:
    """Whether an engine can be measured here."""
    return engine not in _MODULES or available(_MODULES[engine])


def available(module: str) -> bool:
    """Whether a module can be imported; the empty name always can."""
    try:
        return not module or find_spec(module) is not None
    except ModuleNotFoundError:  # the package that the module would be in
        return False


def versions() -> dict[str, str]:
    """Versions of the engines, and of the libraries that carry them, where installed."""
    found = {}
    for name in _NOTABLE:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
