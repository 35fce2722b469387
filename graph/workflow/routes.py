"""Where a node leads by the route that it takes."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pregel.errors import nearest
from pregel.graph.workflow.errors import WorkflowDataError
from pregel.text import show
from pregel.types import END

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["DEFAULT_ROUTE", "ROUTES", "Chosen", "Link", "Routing", "plain", "typed"]

#: The route that is taken where no other one matches.
DEFAULT_ROUTE: Final = "__DEFAULT__"
#: What routes can be.
ROUTES: Final = (bool, int, str)


class Link(NamedTuple):
    """An edge between nodes by name; `route` is None where it is always taken."""

    source: str
    target: str
    route: Any


class Chosen(NamedTuple):
    """Where a node leads after one run."""

    #: The nodes, in order of declaration.
    to: tuple[str, ...]
    #: Those among them that are no joins which wait for all.
    goto: tuple[str, ...]
    #: Whether the path ends here.
    ends: bool


class Routing:
    """Where one node leads, by the route that it takes.

    Args:
        where: How messages name the node.
        links: Its edges.
        waiting: The joins that wait for all, which the engine makes due.
    """

    def __init__(self, where: str, links: Sequence[Link], waiting: frozenset[str]) -> None:
        self.where = where
        self.always = [link.target for link in links if link.route is None]
        self.routes: dict[tuple[type, Any], list[str]] = {}
        self.order = [link.target for link in links]
        self.waiting = waiting
        for link in links:
            if link.route is not None:
                self.routes.setdefault(typed(link.route), []).append(link.target)
        self.default = self.routes.pop(typed(DEFAULT_ROUTE), None)
        #: Whether it chooses at all.
        self.is_routed = bool(self.routes or self.default)
        self.plain = None if self.is_routed and self.default is None and not self.always else self.chosen([])
        if self.default is not None:
            self.plain = self.chosen(self.default)

    def chosen(self, taken: Iterable[str]) -> Chosen:
        """Return the targets that are always led to, with others, in order of declaration."""
        names = {*self.always, *taken}
        to = tuple(dict.fromkeys(name for name in self.order if name in names))
        nodes = tuple(name for name in to if name != END)
        return Chosen(nodes, tuple(name for name in nodes if name not in self.waiting), END in to or not self.order)

    def choose(self, route: Any) -> Chosen:
        """Return where a route leads.

        Args:
            route: A route, a list of routes, or None for none.

        Raises:
            WorkflowDataError: No edge has that route, and there is none for all others; or a route is needed.
        """
        routes = route if isinstance(route, (list, tuple)) else () if route is None else (route,)
        if not routes:
            if self.plain is None:
                raise WorkflowDataError(
                    f"{self.where} took no route, and all its edges have one: set ctx.route or give Event(route=...). "
                    f"Routes: {self.known()}. An edge for DEFAULT_ROUTE is taken where there is none"
                )
            return self.plain
        taken: list[str] = []
        for each in routes:
            found = self.routes.get(typed(each)) if isinstance(each, ROUTES) else None
            if found is None:
                if self.default is None:
                    raise WorkflowDataError(
                        f"{self.where} took the route {show(each)}, which no edge from it has."
                        f"{nearest(each, [str(value) for _, value in self.routes])} Routes: {self.known()}. An edge "
                        "for DEFAULT_ROUTE is taken by all others, and one to END ends the path"
                    )
                found = self.default if len(routes) == 1 else []
            taken.extend(found)
        return self.chosen(taken or self.default or [])

    def known(self) -> str:
        """Return the routes for a message."""
        return ", ".join(show(value) for _, value in self.routes) or "none"


def plain(route: Any) -> Any:
    """Return a route, or a list of some, as it is looked up and stored: a member of a `StrEnum` is its text."""
    if isinstance(route, (list, tuple)):
        return [plain(each) for each in route]
    if type(route) in ROUTES or not isinstance(route, ROUTES):
        return route
    if isinstance(route, Enum):
        return plain(route.value)
    return int(route) if isinstance(route, int) else str.__str__(route)


def typed(route: Any) -> tuple[type, Any]:
    """Return what tells routes apart: `True` is not 1."""
    return type(route), route
