"""A workflow as a node of another one: it runs as a graph inside the node, on the same state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pregel.channels.base import MISSING, Overwrite
from pregel.graph.workflow.incoming import INPUT
from pregel.graph.workflow.running import EVENTS, OUTPUT, PREFIX
from pregel.graph.workflow.scopes import TEMP, TEMP_NAMES
from pregel.graph.workflow.state import STATE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pregel.graph.workflow.asking import Replies
    from pregel.graph.workflow.telling import Telling
    from pregel.main import Pregel

__all__ = ["WorkflowBody"]


class WorkflowBody:
    """The code of a node that is a workflow.

    Args:
        graph: The workflow, compiled to run inside another one.
        keys: The keys of its schema; None where it has none.
        code: What its name stands for where it is recorded: the same for two workflows that are made by the same code.
    """

    any_loop = True

    def __init__(self, graph: Pregel[Any], keys: Sequence[str] | None, code: Any) -> None:
        self.graph = graph
        self.code = code
        self.keys = keys
        self.needs_loop = graph.needs_loop
        self.uses_loop = graph.uses_loop

    def run(self, telling: Telling, node_input: Any, _: Replies) -> None:
        """Run it; its last output is the node's."""
        self.conclude(telling, self.graph.invoke(self.given(telling, node_input)))

    async def arun(self, telling: Telling, node_input: Any, _: Replies) -> None:
        """Do the same, awaited."""
        self.conclude(telling, await self.graph.ainvoke(self.given(telling, node_input)))

    def given(self, telling: Telling, node_input: Any) -> dict[str, Any]:
        """Return the input of the inner run: the node's input, and the state as the node sees it."""
        view = telling.view
        temp = {key: view[key] for key in view if key.startswith("temp:")}
        given: dict[str, Any] = {
            INPUT: node_input,
            PREFIX: telling.place.path,
            TEMP: temp,
            TEMP_NAMES: dict.fromkeys(temp),
        }
        if self.keys is None:
            given[STATE] = {key: view[key] for key in view if key not in temp}
        else:
            given.update({key: Overwrite(view[key]) for key in self.keys if key in view})
        return given

    def conclude(self, telling: Telling, result: Mapping[str, Any]) -> None:
        """Take what the inner run told: its events with the changes of the state, and its output."""
        place = telling.place
        for event in result.get(EVENTS, ()):
            telling.take_told(event._replace(step=place.step, turn=place.turn))
        temp = result.get(TEMP, {})
        for key, value in temp.items():
            if telling.view.get(key, MISSING) is not value:
                telling.state[key] = value
        for key in [key for key in telling.view if key.startswith("temp:") and key not in temp]:
            del telling.state[key]
        if OUTPUT in result:
            telling.give(result[OUTPUT])
