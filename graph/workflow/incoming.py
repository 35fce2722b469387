"""What a node gets as its input: what those that led to it gave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pregel.graph.workflow.event import NO_OUTPUT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pregel.graph.workflow.event import Output

__all__ = ["INPUT", "START", "incoming_of", "out_field"]

#: The field that holds the input of the run.
INPUT: Final = "node_input"
#: What the input of the run is called beside the outputs of nodes.
START: Final = "START"


def out_field(node: str) -> str:
    """Return the field that holds what is known of the last run of a node."""
    return f"@out/{node}"


def incoming_of(node: str, sources: Sequence[str], *, joins: bool) -> Callable[..., Any]:
    """Return what computes the input of a node.

    Args:
        node: It.
        sources: What leads to it, in order of declaration.
        joins: Whether it always gets a dict by source.

    Returns:
        A function of the values that the node is given, its own last `Output` or None, and the turn. It returns the
        output of the one source that has led to the node since it last ran, or a dict of those of several; a source
        without an output gives `NO_OUTPUT` alone, and None in a dict.
    """
    if len(sources) == 1 and not joins:
        source = sources[0]
        if source == START:
            return lambda given, _own, _turn: given.get(INPUT, NO_OUTPUT)
        field = out_field(source)

        def only(given: Mapping[str, Any], _own: Output | None, _turn: int) -> Any:
            found: Output | None = given.get(field)
            return NO_OUTPUT if found is None else found.value

        return only
    fields = [(source, out_field(source)) for source in sources]

    def several(given: Mapping[str, Any], own: Output | None, turn: int) -> Any:
        mine = own if own is not None and own.turn == turn else None
        found: dict[str, Any] = {}
        for source, field in fields:
            if source == START:
                if mine is None and INPUT in given:
                    found[source] = given[INPUT]
                continue
            output: Output | None = given.get(field)
            if (
                output is not None
                and output.turn == turn
                and (mine is None or output.step >= mine.step)
                and node in output.to
            ):
                found[source] = output.value
        if joins or len(found) > 1:
            return {source: None if value is NO_OUTPUT else value for source, value in found.items()}
        return next(iter(found.values()), NO_OUTPUT)

    return several
