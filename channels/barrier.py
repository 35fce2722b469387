"""A cell that is full once every expected name has been heard."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, ClassVar

from pregel.channels.base import MISSING, Channel, InvalidUpdateError, overwritten

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["NamedBarrierValue"]


class NamedBarrierValue(Channel):
    """Waits for a fixed set of names: the state of a join. Its value is the frozen set of names heard so far.

    Args:
        names: The names to wait for.
    """

    __slots__ = ("names",)
    clears: ClassVar[bool] = False

    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(names)

    def initial(self) -> frozenset[str]:
        """Return the empty set: nobody was heard."""
        return frozenset()

    def apply(self, value: Any, updates: Sequence[Any]) -> frozenset[str]:
        """Return the names heard including those of `updates`; hearing a name twice is hearing it once.

        An `Overwrite` of a set of names says who was heard.

        Raises:
            InvalidUpdateError: A name that is not waited for, an `Overwrite` whose value is no set, or two of them.
        """
        replaced = overwritten(updates)
        if replaced is MISSING:
            heard = self.known(updates)
            return heard if value is MISSING else value | heard
        if not isinstance(replaced, AbstractSet):
            raise InvalidUpdateError(f"Overwrite of a barrier takes a set of names, not {type(replaced).__name__}")
        return self.known(replaced)

    def known(self, names: Iterable[Any]) -> frozenset[str]:
        """Return the names as a set.

        Raises:
            InvalidUpdateError: There is one that is not waited for.
        """
        strangers = [repr(name) for name in names if not (isinstance(name, str) and name in self.names)]
        if strangers:
            raise InvalidUpdateError(
                f"this barrier waits for {sorted(self.names)} and does not know {', '.join(sorted(strangers))}"
            )
        return frozenset(names)

    def is_available(self, value: Any) -> bool:
        """Return whether every name was heard."""
        return bool(value == self.names)

    def consume(self, value: Any) -> frozenset[str]:
        """Return the empty set once the full barrier has fired; an unfinished one stays."""
        return frozenset() if self.is_available(value) else value

    def parameters(self) -> tuple[Any, ...]:
        """Return the names."""
        return (self.names,)
