"""Which nodes an agent has, and what leads from one to the next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from pregel.errors import GraphDefinitionError
from pregel.graph.agent.hooknode import hook_node
from pregel.graph.agent.middleware.base import HOOKS, forms_of
from pregel.graph.agent.routing import Router
from pregel.runtime import current_frame
from pregel.types import END, START

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pregel.graph.agent.hooknode import HookNode
    from pregel.graph.agent.middleware.base import AgentMiddleware
    from pregel.graph.state import StateGraph

__all__ = ["AFTER_TOOLS", "MODEL", "TOOLS", "Forms", "Layout", "check_names"]

MODEL = "model"
TOOLS = "tools"
AFTER_TOOLS = "after_tools"


class Forms(NamedTuple):
    """A node's code in its forms, as a `StateGraph` takes them; None for a form that there is not."""

    invoke: Callable[..., Any] | None
    ainvoke: Callable[..., Any] | None
    #: Whether the async form runs on every event loop.
    any_loop: bool = True


class Place(NamedTuple):
    """A hook in the order in which hooks run."""

    middleware: AgentMiddleware
    hook: str

    @property
    def node(self) -> str:
        """The name of its node."""
        return f"{self.middleware.name}.{self.hook}"


@dataclass(frozen=True, slots=True)
class Layout:
    """The order of an agent's nodes.

    `before_*` hooks run in the order of the list, `after_*` in reverse. The loop begins with the first `before_model`
    and ends with the last `after_model`; what leads out of it leads to the first `after_agent`, or to the end.

    Args:
        middleware: In order.
        has_tools: Whether there is a node that runs tools.
        direct: The tools whose result is the agent's answer.
        has_form: Whether there is a `response_format`.
        asks_forms: Whether there is one, or a wrapper that may ask for one.
    """

    middleware: Sequence[AgentMiddleware]
    has_tools: bool
    direct: frozenset[str] = frozenset()
    has_form: bool = False
    asks_forms: bool = False
    places: dict[str, list[Place]] = field(init=False)
    router: Router = field(init=False)

    def __post_init__(self) -> None:
        places = {
            hook: [Place(each, hook) for each in self.middleware if forms_of(each, hook) != (None, None)]
            for hook in HOOKS
        }
        for hook in ("after_model", "after_agent"):
            places[hook].reverse()
        object.__setattr__(self, "places", places)
        loop = first(places["before_model"], MODEL)
        exit_ = first(places["after_agent"], END)
        # Two ways out of one superstep do no harm where one is the end of the graph: it runs nothing.
        join = AFTER_TOOLS if self.direct and exit_ != END else None
        tools = TOOLS if self.has_tools else None
        router = Router(loop, exit_, tools, self.direct, self.has_form, self.asks_forms, join)
        object.__setattr__(self, "router", router)

    @property
    def entry(self) -> str:
        """The first node of a run."""
        return first(self.places["before_agent"], self.router.loop)

    @property
    def after_model(self) -> str | None:
        """What follows the model; None where that depends on the conversation."""
        hooks = self.places["after_model"]
        return hooks[0].node if hooks else None

    def hooks(self) -> dict[str, HookNode]:
        """Return the nodes of the hooks by name, in the order in which they run.

        Raises:
            GraphDefinitionError: A hook can't be called, or declares a jump that there is not.
        """
        router = self.router
        #: What follows the last hook of a kind.
        last: dict[str, str | None] = {
            "before_agent": router.loop,
            "before_model": MODEL,
            "after_model": None,
            "after_agent": END,
        }
        found = {}
        for hook in HOOKS:
            places = self.places[hook]
            for place, following in zip(places, [*(each.node for each in places[1:]), last[hook]], strict=False):
                end = router.exit if hook != "after_agent" else str(following)  # never to itself again
                found[place.node] = hook_node(place.middleware, hook, router, following=following, end=end)
        return found

    def build(self, builder: StateGraph[Any, Any, Any, Any], model: Any, tools: Any, view: Any) -> None:
        """Add the nodes and edges.

        Args:
            builder: Where to.
            model: The model's node: a `ModelNode`.
            tools: The tools' node, or None.
            view: What nodes read.
        """
        router = self.router
        builder.add_edge(START, self.entry)
        leads: tuple[str, ...] = ()
        if self.after_model is None:
            leads = (*((TOOLS,) if self.has_tools else ()), router.loop, router.exit)
        builder.add_node(MODEL, Forms(*model.forms), input_schema=view)
        if self.after_model is None:
            builder.add_conditional_edges(MODEL, standing_in(model.follow, view), leads)
        else:
            builder.add_edge(MODEL, self.after_model)
        if tools is not None:
            may_end = self.direct or model.response_format is not None
            leads = (router.loop, router.exit) if may_end else (router.loop,)
            if router.join is not None:
                builder.add_node(router.join, Forms(tools.join, None), input_schema=view)
                builder.add_conditional_edges(router.join, standing_in(tools.follow, view), leads)
                leads = (*leads, router.join)
            builder.add_node(TOOLS, Forms(*tools.forms), input_schema=view)
            builder.add_conditional_edges(TOOLS, standing_in(tools.follow, view), leads)
        for name, hook in self.hooks().items():
            builder.add_node(name, Forms(*hook.forms, any_loop=hook.any_loop), input_schema=hook.reads or view)
            builder.add_conditional_edges(name, standing_in(hook.follow, view), hook.destinations)


def standing_in(follow: Callable[[Mapping[str, Any]], Sequence[Any]], view: Any) -> Callable[[Any], Sequence[Any]]:
    """Return the path of a conditional edge for a node whose result says itself what follows.

    It declares where the node leads. It has a say only where `update_state(..., as_node=...)` gives a result in the
    node's place, which says nothing.

    Args:
        follow: From the state, the result included, to what follows.
        view: What it reads.
    """

    def route(state: Any) -> Sequence[Any]:
        task, *_ = current_frame()
        return () if task.node.code.name == task.node.name else follow(state)

    route.__annotations__ = {"state": view}
    return route


def first(places: Sequence[Place], otherwise: str) -> str:
    """Return the name of the first node of some, or what there is in place of them."""
    return places[0].node if places else otherwise


def check_names(middleware: Sequence[AgentMiddleware]) -> None:
    """Check that each middleware has a name of its own.

    Raises:
        GraphDefinitionError: Two have one name.
    """
    seen: set[str] = set()
    for each in middleware:
        if each.name in seen:
            raise GraphDefinitionError(
                f"two middlewares are named {each.name!r}: give one of them another `name`, or list it once"
            )
        seen.add(each.name)
