"""The channels of the state: what becomes of a key that is set, folded into or deleted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from pregel.channels.aggregate import BinaryOperatorAggregate
from pregel.channels.base import MISSING, ConcurrentUpdateError, Overwrite, overwritten
from pregel.channels.keyed import DELETE, KeyedValue
from pregel.channels.last_value import LastValue
from pregel.mutation import differs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Cell", "Folded", "Keys"]


class Keys(KeyedValue):
    """The channel of the state of a workflow without a schema."""

    __slots__ = ()

    def apply(self, value: Any, updates: Sequence[Any]) -> dict[Any, Any]:
        """Return the state with all changes made.

        Raises:
            ConcurrentUpdateError: Two nodes have changed one key.
        """
        try:
            return super().apply(value, updates)
        except ConcurrentUpdateError:
            for key in dict.fromkeys(key for update in updates if isinstance(update, Mapping) for key in update):
                self.check_one(key, [update for update in updates if isinstance(update, Mapping) and key in update])
            raise

    def check_one(self, key: Any, updates: Sequence[Mapping[Any, Any]]) -> None:
        """Check that updates of one key can be made.

        Raises:
            ConcurrentUpdateError: They can't.
        """
        try:
            super().apply(MISSING, [{key: update[key]} for update in updates])
        except ConcurrentUpdateError:
            raise ConcurrentUpdateError(side_by_side(f"the key {key!r}")) from None


def side_by_side(key: str) -> str:
    """Return what is said of a key that two nodes have changed."""
    return (
        f"two nodes that run side by side have set {key} of the state. Give each a key of its own, let one run behind "
        "the other, or declare the key with a reducer in the state_schema: Annotated[list, operator.add]"
    )


class Cell(LastValue):
    """The channel of a plain key: a `LastValue` that starts with the declared default, and that can be deleted.

    Args:
        start: Makes the value that a session starts with, or `MISSING`.
    """

    __slots__ = ("start",)
    clears: ClassVar[bool] = True

    def __init__(self, start: Callable[[], Any]) -> None:
        self.start = start

    def initial(self) -> Any:
        """Return the declared default, each time anew, or `MISSING`."""
        return self.start()

    def apply(self, value: Any, updates: Sequence[Any]) -> Any:
        """Return the one update, or `MISSING` where it deletes.

        Raises:
            ConcurrentUpdateError: Two nodes have changed the key.
        """
        try:
            new = super().apply(value, updates)
        except ConcurrentUpdateError:
            raise ConcurrentUpdateError(side_by_side("this key")) from None
        return MISSING if new is DELETE else new

    def parameters(self) -> tuple[Any, ...]:
        """Return what makes the default."""
        return (self.start,)


class Folded(BinaryOperatorAggregate):
    """The channel of a key with a reducer. To delete it is to let it start anew; what is written later is kept.

    So it is with an `Overwrite`: the updates of one superstep are taken in order, as the events tell them.
    """

    __slots__ = ()
    clears: ClassVar[bool] = True

    def __init__(
        self,
        operator: Callable[[Any, Any], Any],
        *,
        initial: Any = MISSING,
        initial_factory: Callable[[], Any] | None = None,
    ) -> None:
        super().__init__(operator, initial=initial, initial_factory=initial_factory)
        self.appends = self.appends and self.initial() is not MISSING  # see `StateAccess.folded`
        if self.prepare is not None:
            self.prepare = partial(prepare_unless_delete, self.prepare)

    def apply(self, value: Any, updates: Sequence[Any]) -> Any:
        """Return the value with all updates after the last delete or `Overwrite` folded in.

        Raises:
            ConcurrentUpdateError: Two `Overwrite`s with different values.
            Exception: See `BinaryOperatorAggregate.apply`.
        """
        replaced = [update for update in updates if type(update) is Overwrite]
        if any(differs(replaced[0].value, other.value) for other in replaced[1:]):
            overwritten(updates)
        for place in range(len(updates) - 1, -1, -1):
            update = updates[place]
            if update is DELETE or type(update) is Overwrite:
                value = update.value if isinstance(update, Overwrite) else self.initial()
                updates = updates[place + 1 :]
                break
        return super().apply(value, updates) if updates else value


def prepare_unless_delete(prepare: Callable[[Any, Any], Any], update: Any, ids: Callable[[], str]) -> Any:
    """Return an update as a reducer prepares it."""
    return update if update is DELETE else prepare(update, ids)
