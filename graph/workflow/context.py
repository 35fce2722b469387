"""`Context`: what a node's function knows of the run it is part of, and how it acts on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pregel.graph.workflow.errors import WorkflowDataError
from pregel.graph.workflow.event import NO_OUTPUT, RequestInput
from pregel.runtime import current_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pregel.graph.workflow.state import TaskState
    from pregel.graph.workflow.telling import Telling

__all__ = ["Context"]


class Context:
    """The run of one node: given to a parameter named `ctx`, or annotated with this class.

    Args:
        telling: Takes what is done here.
        resume_inputs: The replies to what the node has asked, by `interrupt_id`.
        run: Runs something inside the node; see `run_node`.
    """

    __slots__ = ("_run", "_telling", "resume_inputs")

    def __init__(
        self, telling: Telling, resume_inputs: Mapping[str, Any], run: Callable[[Telling, Any, Any, str | None], Any]
    ) -> None:
        self._telling = telling
        self._run = run
        #: The replies so far, by `RequestInput.interrupt_id`; empty when the node runs for the first time.
        self.resume_inputs = resume_inputs

    def __repr__(self) -> str:
        return f"Context({self.path!r})"

    @property
    def state(self) -> TaskState:
        """The state: a mapping over what was committed before this superstep, with the node's own writes."""
        return self._telling.state

    @property
    def route(self) -> Any:
        """Which of the routed edges are taken: a value, a list of values, or None. The last one that is set counts."""
        return self._telling.route

    @route.setter
    def route(self, route: Any) -> None:
        self._telling.choose(route)

    @property
    def output(self) -> Any:
        """What the node gives to those after it; `NO_OUTPUT` until it is set. To set it is as to return it."""
        return self._telling.output

    @output.setter
    def output(self, output: Any) -> None:
        if isinstance(output, RequestInput):
            raise WorkflowDataError(
                f"{self._telling.place.where} sets ctx.output to a RequestInput, which asks nothing: return or yield it"
            )
        if output is not NO_OUTPUT:
            self._telling.take(output)

    @property
    def attempt_count(self) -> int:
        """The number of this attempt, from 1; nothing of those before it counts."""
        return self._telling.place.attempt

    @property
    def node(self) -> str:
        """The name of the node."""
        return self._telling.place.node

    @property
    def workflow(self) -> str:
        """The name of the workflow."""
        return self._telling.place.author

    @property
    def user_id(self) -> str | None:
        """The user that the run is for: a `Runner`'s, or what `config["configurable"]` says; else None."""
        return configured("user_id")

    @property
    def session_id(self) -> str | None:
        """The session, likewise."""
        return configured("session_id")

    @property
    def path(self) -> str:
        """The run of the node: "workflow@1/node@2" is its second one in this turn."""
        return self._telling.place.path

    @property
    def step(self) -> int:
        """The superstep."""
        return self._telling.place.step

    def run_node(self, node: Any, node_input: Any = NO_OUTPUT, *, name: str | None = None) -> Any:
        """Run something as a part of this node: a function, or what `node(...)` made.

        It sees the state as it is now; what it writes is in this node's state when its result is taken. Its result is
        recorded by name, input and occurrence: when this node runs again it is not run again.

        Args:
            node: What to run.
            node_input: What it gets as `node_input`.
            name: How it is called; by default its own name.

        Returns:
            A future: `await` it, or ask its `result()`, for the output; None where there is none.
        """
        return self._run(self._telling, node, node_input, name)


def configured(name: str) -> str | None:
    """Return what the config of the run at hand has under a name of the user's own."""
    value: str | None = current_frame()[1].config["configurable"].get(name)
    return value
