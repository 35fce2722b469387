"""What the nodes of a workflow can be made of: functions, generators, joins, graphs and other workflows."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from pregel.channels.base import MISSING
from pregel.errors import GraphDefinitionError, nearest
from pregel.graph.code import callable_name
from pregel.graph.workflow.binding import BINDINGS
from pregel.graph.workflow.errors import WorkflowConfigurationError
from pregel.names import check_concurrency, check_name
from pregel.policy import read_retries, read_timeout
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from pregel.graph.workflow.binding import ParameterBinding
    from pregel.types import ExecutorLike, RetryPolicy, TimeoutPolicy

__all__ = ["JoinNode", "Kind", "NodeSpec", "as_node", "is_function", "kind_of", "node", "plain_name"]

#: How a node's code is run.
Kind = Literal["function", "coroutine", "generator", "async generator", "graph", "workflow"]
#: Names that mean something else where nodes are named.
RESERVED: Final = frozenset({"START", "END", "user"})
#: What separates the parts of a path, beside what separates names in streams.
SEPARATORS: Final = "|:/@"
WAITS: Final = ("live", "all")


@dataclass(frozen=True, slots=True, eq=False)
class NodeSpec:
    """A node as `node` was told; compared by identity."""

    action: Any
    name: str | None = None
    retry: RetryPolicy | Sequence[RetryPolicy] | None = None
    timeout: float | timedelta | TimeoutPolicy | None = None
    executor: ExecutorLike | None = None
    parallel_worker: bool = False
    max_parallel_workers: int | None = None
    parameter_binding: ParameterBinding = "state"
    rerun_on_resume: bool = False

    def named(self, name: str, where: str) -> NodeSpec:
        """Return the same with a name.

        Raises:
            WorkflowConfigurationError: It can't be one.
        """
        check_node_name(name, f"a node of {where}")
        return replace(self, name=name)


@dataclass(frozen=True, slots=True, eq=False)
class JoinNode:
    """A node that waits for those before it, and gives a dict of what they gave, by name.

    Args:
        name: Its name.
        wait: "live" to run once nothing that is due can lead to it any more; those that were routed elsewhere are not
            in the dict. "all" to run when all have run, and to fail the run that ends before.

    Raises:
        WorkflowConfigurationError: The name or `wait` can't be one.
    """

    name: str
    wait: Literal["live", "all"] = "live"

    def __post_init__(self) -> None:
        if self.wait not in WAITS:
            raise WorkflowConfigurationError(
                f"JoinNode({self.name!r}): wait takes 'live' or 'all', not {self.wait!r}.{nearest(self.wait, WAITS)}"
            )
        check_node_name(self.name, "a join")


@overload
def node(
    action: Any,
    *,
    name: str | None = ...,
    retry: RetryPolicy | Sequence[RetryPolicy] | None = ...,
    timeout: float | timedelta | TimeoutPolicy | None = ...,
    executor: ExecutorLike | None = ...,
    parallel_worker: bool = ...,
    max_parallel_workers: int | None = ...,
    parameter_binding: ParameterBinding = ...,
    rerun_on_resume: bool = ...,
) -> NodeSpec: ...


@overload
def node(
    *,
    name: str | None = ...,
    retry: RetryPolicy | Sequence[RetryPolicy] | None = ...,
    timeout: float | timedelta | TimeoutPolicy | None = ...,
    executor: ExecutorLike | None = ...,
    parallel_worker: bool = ...,
    max_parallel_workers: int | None = ...,
    parameter_binding: ParameterBinding = ...,
    rerun_on_resume: bool = ...,
) -> Callable[[Any], NodeSpec]: ...


def node(
    action: Any = MISSING,
    *,
    name: str | None = None,
    retry: RetryPolicy | Sequence[RetryPolicy] | None = None,
    timeout: float | timedelta | TimeoutPolicy | None = None,
    executor: ExecutorLike | None = None,
    parallel_worker: bool = False,
    max_parallel_workers: int | None = None,
    parameter_binding: ParameterBinding = "state",
    rerun_on_resume: bool = False,
) -> Any:
    """Return a node that is more than its function; without an action what decorates one, `@node(timeout=5)`.

    The same object is the same node wherever it stands in the edges.

    Args:
        action: A function or generator, sync or async; a workflow; or a compiled graph or another object with `invoke`
            or `ainvoke`, which is called with the node's input.
        name: Its name; by default that of the action.
        retry: When it is tried again, `retry_policy` in other graphs; nothing of a failed attempt counts.
        timeout: How long an attempt may take, in seconds.
        executor: Where it runs; see `StateGraph.add_node`.
        parallel_worker: Run it once for each item of its input, side by side; the output is the list of outputs, in
            the order of the items. An input that is no list is one item.
        max_parallel_workers: How many items may run at once.
        parameter_binding: Where its parameters come from: keys of the "state", or of the "node_input".
        rerun_on_resume: What becomes of a function when a `RequestInput` is replied to: False takes the reply as its
            output and does not run it again; True runs it again with `ctx.resume_inputs`. A generator runs again in
            any case; with True its last reply is not its output.

    Raises:
        WorkflowConfigurationError: An option has no such value, or does not go with another.
    """
    if action is MISSING:
        return partial(
            node,
            name=name,
            retry=retry,
            timeout=timeout,
            executor=executor,
            parallel_worker=parallel_worker,
            max_parallel_workers=max_parallel_workers,
            parameter_binding=parameter_binding,
            rerun_on_resume=rerun_on_resume,
        )
    if isinstance(action, JoinNode) or action is None:
        raise WorkflowConfigurationError(f"node takes a function, a graph or a workflow, not {show(action)}")
    spec = action if isinstance(action, NodeSpec) else None
    action = action if spec is None else spec.action
    name = name or (None if spec is None else spec.name)
    where = f"node {name or plain_name(action) or show(action)!r}"
    if name is not None:
        check_node_name(name, "a node")
    if parameter_binding not in BINDINGS:
        raise WorkflowConfigurationError(
            f"parameter_binding of {where} takes 'state' or 'node_input', not {parameter_binding!r}."
            f"{nearest(parameter_binding, BINDINGS)}"
        )
    if parallel_worker and rerun_on_resume:
        raise WorkflowConfigurationError(
            f"{where} is a parallel_worker and has rerun_on_resume: its items ask by pregel.interrupt(), and each that "
            "asks runs again by itself"
        )
    if parallel_worker and not isinstance(executor, str | None):
        raise WorkflowConfigurationError(
            f"{where} is a parallel_worker and has the executor {show(executor)}: its items run in the process of the "
            "node. Let the function submit its work to the executor"
        )
    if max_parallel_workers is not None:
        if not parallel_worker:
            raise WorkflowConfigurationError(f"{where} has max_parallel_workers and is no parallel_worker")
        checked(check_concurrency, max_parallel_workers, where)
    checked(read_retries, retry, where)
    checked(read_timeout, timeout, where)
    kind = kind_of(action, where)
    if kind in {"graph", "workflow"} and (parallel_worker or rerun_on_resume or parameter_binding != "state"):
        raise WorkflowConfigurationError(
            f"{where} is a {kind}: parallel_worker, rerun_on_resume and parameter_binding are for functions. Call the "
            f"{kind} in a function"
        )
    return NodeSpec(
        action,
        name,
        retry,
        timeout,
        executor,
        parallel_worker,
        max_parallel_workers,
        parameter_binding,
        rerun_on_resume,
    )


def checked(check: Any, value: Any, where: str) -> None:
    """Check an option as every graph does.

    Raises:
        WorkflowConfigurationError: It has no such value.
    """
    try:
        check(value, where)
    except WorkflowConfigurationError:
        raise
    except GraphDefinitionError as error:
        raise WorkflowConfigurationError(str(error)) from error


def check_node_name(name: Any, what: str) -> None:
    """Check the name of a node or a workflow.

    Raises:
        WorkflowConfigurationError: It is no text, is empty, means something else, or has a character that separates.
    """
    checked(lambda given, where: check_name(given, where, SEPARATORS), name, what)
    if name in RESERVED:
        raise WorkflowConfigurationError(f"{what} can't be named {name!r}, which means something else")


def as_node(given: Any, where: str) -> NodeSpec | JoinNode:
    """Return the node that something makes.

    Raises:
        WorkflowConfigurationError: It makes none.
    """
    if isinstance(given, JoinNode):
        return given
    if isinstance(given, NodeSpec):
        if given.name is not None:
            return given
        name = plain_name(given.action)
        return given if name in {None, "<lambda>"} else replace(given, name=name)
    kind_of(given, where)
    name = plain_name(given)
    return NodeSpec(given, None if name == "<lambda>" else name)


def plain_name(action: Any) -> str | None:
    """Return the name that something brings; "<lambda>" for a lambda."""
    action = action.action if isinstance(action, NodeSpec) else action
    return callable_name(action)


def is_function(given: Any) -> bool:
    """Return whether something is a function, which can stand for several nodes."""
    inner = given
    while isinstance(inner, partial):
        inner = inner.func
    return inspect.isroutine(inner)


def kind_of(action: Any, where: str) -> Kind:
    """Return how something is run.

    Raises:
        WorkflowConfigurationError: It can't be.
    """
    from pregel.graph.workflow.workflow import Workflow  # noqa: PLC0415 - which is made of nodes

    if isinstance(action, Workflow):
        return "workflow"
    if hasattr(action, "invoke") or hasattr(action, "ainvoke"):
        return "graph"
    if not callable(action) or isinstance(action, type):
        raise WorkflowConfigurationError(
            f"{where}: {show(action)} is nothing to run: give a function, a workflow, node(...), JoinNode(...), or an "
            "object with invoke or ainvoke"
        )
    inner = action
    while isinstance(inner, partial):
        inner = inner.func
    if not inspect.isroutine(inner):
        inner = inner.__call__
    if inspect.isasyncgenfunction(inner):
        return "async generator"
    if inspect.isgeneratorfunction(inner):
        return "generator"
    return "coroutine" if inspect.iscoroutinefunction(inner) else "function"
