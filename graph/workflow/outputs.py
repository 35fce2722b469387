"""The channel of what a workflow gives in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pregel.channels.base import MISSING, Channel, InvalidUpdateError, overwritten
from pregel.graph.workflow.event import NO_OUTPUT
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["TerminalOutput"]


class TerminalOutput(Channel):
    """What the nodes gave that nothing follows: one value, or a dict by node where there can be several.

    An update is an output, or a dict of one by its node; or `NO_OUTPUT`, which begins anew: the input of a run is one.

    Args:
        single: Whether there is one such node, whose output is the value.
    """

    __slots__ = ("single",)
    clears: ClassVar[bool] = True

    def __init__(self, single: bool) -> None:  # noqa: FBT001 - shown in the repr as its one parameter
        self.single = single

    def apply(self, value: Any, updates: Sequence[Any]) -> Any:
        """Return the value after this superstep; of a node that ran again the last output stays.

        Raises:
            InvalidUpdateError: An update that is no dict, where there are several such nodes.
        """
        replaced = overwritten(updates)
        if replaced is not MISSING:
            return replaced
        for update in updates:
            if update is NO_OUTPUT:
                value = MISSING
            elif self.single:
                value = update
            elif isinstance(update, dict):
                value = {**({} if value is MISSING else value), **update}
            else:
                raise InvalidUpdateError(f"the output of a workflow is a dict by node here, and not {show(update)}")
        return value

    def parameters(self) -> tuple[Any, ...]:
        """Return the mode."""
        return (self.single,)
