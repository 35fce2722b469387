"""What every channel is: an immutable rule from a value and a superstep's updates to the next value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final, final

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "MISSING",
    "Channel",
    "ConcurrentUpdateError",
    "InvalidUpdateError",
    "Missing",
    "Overwrite",
    "PregelError",
    "PregelWarning",
]


class PregelError(Exception):
    """The base of every error this library raises."""


class PregelWarning(UserWarning):
    """The category of every warning this library gives."""


class InvalidUpdateError(PregelError):
    """An update that a channel, or the schema it comes from, does not accept. Nothing was changed."""


class ConcurrentUpdateError(InvalidUpdateError):
    """Several updates of one superstep compete for a cell that holds one value."""


@final
class Missing:
    """The type of `MISSING`, the marker of a channel that holds no value (`None` is a value)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "MISSING"  # pickles and copies as the one module-level object


MISSING: Final = Missing()


@final
class Overwrite:
    """An update that replaces a field's value instead of being folded into it.

    Every other update of the field in the same superstep is replaced as well; two `Overwrite`s are an error.
    The wrapper is recognised by its type alone and is never stored.

    Args:
        value: The new value, as the field holds it.

    Raises:
        InvalidUpdateError: `value` is `MISSING` or an `Overwrite`, neither of which a field can hold.
    """

    __slots__ = ("value",)
    __match_args__ = ("value",)
    value: Any

    def __init__(self, value: Any) -> None:
        if value is MISSING or type(value) is Overwrite:
            raise InvalidUpdateError(f"Overwrite takes the field's new value, and {value!r} is none")
        self.value = value

    def __repr__(self) -> str:
        return f"Overwrite({self.value!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Overwrite) and bool(self.value == other.value)

    __hash__ = None  # type: ignore[assignment]


class Channel(ABC):
    """An update rule. Instances hold parameters only and never a run's value, so one serves all runs at once.

    A value is `MISSING` or what `apply` returned before; `apply` never changes its arguments, so a superstep that
    fails half-way has changed nothing.
    """

    __slots__ = ()

    #: Whether the value is forgotten at a barrier that brings no update: such channels are asked with `()`.
    resets: ClassVar[bool] = False
    #: Whether `apply` or `consume` may return `MISSING` where there was a value.
    clears: ClassVar[bool] = True
    #: Whether the value belongs into checkpoints.
    tracked: ClassVar[bool] = True

    @property
    def guards(self) -> bool:
        """Whether a value that is there may not be seen yet."""
        return type(self).is_available is not Channel.is_available

    def initial(self) -> Any:
        """Return the value a run starts with, or `MISSING`."""
        return MISSING

    @abstractmethod
    def apply(self, value: Any, updates: Sequence[Any]) -> Any:
        """Return the value after one barrier.

        Args:
            value: The current value, or `MISSING`.
            updates: All updates of the superstep, in task order; empty only for channels that reset.

        Raises:
            InvalidUpdateError: The updates can't be applied together.
        """

    def is_available(self, value: Any) -> bool:
        """Return whether readers see a value."""
        return value is not MISSING

    def consume(self, value: Any) -> Any:
        """Return the value after a node that was triggered by this channel has run."""
        return value

    def parameters(self) -> tuple[Any, ...]:
        """Return what tells two channels of one kind apart; functions count by identity."""
        return ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.parameters() == other.parameters()

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.parameters()))})"


def overwritten(updates: Sequence[Any]) -> Any:
    """Return the value of the one `Overwrite` among `updates`, or `MISSING` when there is none.

    Raises:
        ConcurrentUpdateError: There are two; neither has a better claim than the other.
    """
    found: Any = MISSING
    for update in updates:
        if type(update) is Overwrite:
            if found is not MISSING:
                raise ConcurrentUpdateError(
                    "two Overwrite updates in one superstep: which of them should stay? "
                    "Let one node overwrite the field, or put the nodes in different supersteps."
                )
            found = update.value
    return found
