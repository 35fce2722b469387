"""The threads that are kept: how each was made, and how it goes on."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pregel import Command
from pregel.errors import InvalidConfigError
from tests.golden.histories.graphs import ask, children, fail, loop, talk
from tests.golden.histories.rows import told

#: Gives the messages of an input their ids.
RUN = "0d3f3b62-5c0a-4c39-9a55-6a9f4a3f9b10"


@dataclass(frozen=True)
class Kept:
    """A thread."""

    #: Returns the graph that it goes on with.
    build: Callable[[], Any]
    #: Makes it: (saver, config).
    make: Callable[[Any, Any], Any]
    #: Goes on: (graph, config).
    go_on: Callable[[Any, Any], Any]


def config_of(name):
    """Return the config of a thread."""
    return {"configurable": {"thread_id": name}, "run_id": RUN}


def at(config, checkpoint):
    """Return the config of a checkpoint."""
    return {**config, "configurable": {**config["configurable"], "checkpoint_id": checkpoint}}


def make_finished(saver, config):
    graph = talk().compile(saver)
    for turn in range(1, 5):
        graph.invoke({"turn": turn, "messages": [("human", f"turn {turn}, {'and so on ' * 4}")]}, config)


def make_failed(saver, config):
    with suppress(ValueError):
        fail(works=False).compile(saver).invoke({"log": ["input"]}, config)


def make_forked(saver, config):
    graph = loop().compile(saver)
    graph.invoke({"log": ["input"], "total": 0}, config)
    graph.update_state(config, {"log": ["edited"]}, as_node="adds")
    graph.invoke(None, at(config, "0.2"))


def go_on_forked(graph, config):
    graph.invoke(None, at(config, "0.1"))  # a third branch


THREADS = {
    "finished": Kept(
        talk, make_finished, lambda graph, config: graph.invoke({"turn": 5, "messages": [("human", "again")]}, config)
    ),
    "paused": Kept(
        ask,
        lambda saver, config: ask().compile(saver).invoke({"log": ["input"]}, config),
        lambda graph, config: graph.invoke(Command(resume="yes"), config),
    ),
    "failed": Kept(fail, make_failed, lambda graph, config: graph.invoke(None, config)),
    "forked": Kept(loop, make_forked, go_on_forked),
    "children": Kept(
        children,
        lambda saver, config: children().compile(saver).invoke({"log": ["input"]}, config),
        lambda graph, config: graph.invoke(Command(resume="this"), config),
    ),
}


def read(graph, saver, name):
    """Return all that today's code says of a thread: its state, and its history with those of graphs inside it."""
    config = config_of(name)
    histories = {"": [told(shown) for shown in graph.get_state_history(config)]}
    for labels in saver.namespaces(name, 0, ()):
        inner = {"configurable": {"thread_id": name, "checkpoint_ns": labels}}
        with suppress(InvalidConfigError):  # a graph that a function calls is no node: one can't ask for it
            histories["/".join(labels)] = [told(shown) for shown in graph.get_state_history(inner)]
    return {"state": told(graph.get_state(config, subgraphs=True)), "histories": histories}
