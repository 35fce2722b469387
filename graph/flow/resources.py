"""What a run needs and no snapshot can hold: models, connections, clients. Declared by name, given to each run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pregel.graph.flow.errors import FlowDefinitionError, MissingResourceError
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Resource", "add_needs", "declared", "named", "resolved"]


class Resource(NamedTuple):
    """Stands for something that each run is given: `graph.run(ctx, resources={"chat_model": model})`.

    It may stand in the place of an agent's model, or be declared by an activity, `add_activity(resources=[...])`, which
    finds it by `ctx.resource(name)`. All that a graph needs and was not given is told at once, before anything runs.
    """

    name: str
    #: What it must be an instance of.
    type: type = object


def named(values: Iterable[Any]) -> dict[str, type]:
    """Return the resources among some values, by name, each with the type that it must be."""
    return {value.name: value.type for value in values if isinstance(value, Resource)}


def resolved(value: Any, given: Mapping[str, Any]) -> Any:
    """Return what a resource stands for in a run; anything else is returned as it is.

    Raises:
        MissingResourceError: The run was not given it, for it is one of the compiled graph by itself.
    """
    if not isinstance(value, Resource):
        return value
    if value.name not in given:
        raise MissingResourceError(
            f"the resource {value.name!r} was not given: FlowGraph.run(ctx, resources={{{value.name!r}: ...}}) has "
            "resources, and the compiled graph by itself has none"
        )
    return given[value.name]


def declared(resources: Iterable[Any], where: str) -> dict[str, type]:
    """Return the resources that a node declares, by name, each with the type that it must be.

    Raises:
        FlowDefinitionError: Something is no `Resource`.
    """
    found: dict[str, type] = {}
    for each in resources:
        if not isinstance(each, Resource):
            raise FlowDefinitionError(f"{where}: resources takes a list of Resource('name'), not {show(each)} in it")
        add_needs(found, {each.name: each.type}, where)
    return found


def add_needs(found: dict[str, type], more: Mapping[str, type], where: str) -> None:
    """Add what a node needs to what others do; where both say a type, the narrower one counts.

    Raises:
        FlowDefinitionError: They want one name to be of two types.
    """
    for name, kind in more.items():
        other = found.setdefault(name, kind)
        if issubclass(kind, other):
            found[name] = kind
        elif not issubclass(other, kind):
            raise FlowDefinitionError(
                f"{where} needs the resource {name!r} to be a {kind.__name__}, and another node needs it to be a "
                f"{other.__name__}: give them two names"
            )
