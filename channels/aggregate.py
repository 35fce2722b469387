"""A channel that folds updates into its value with a reducer."""

from __future__ import annotations

import operator
from copy import deepcopy
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from pregel.channels.base import MISSING, Channel, InvalidUpdateError, Overwrite, overwritten

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["BinaryOperatorAggregate", "Overwrite", "has_neutral_start"]

# For these the empty value of the type is not neutral (min(0, 5) is 0, 0 * 5 is 0): their first update is stored as
# it is. Compared by identity or, for methods of builtins, by equality.
WITHOUT_NEUTRAL = (
    *(min, max, operator.mul, operator.imul, operator.and_, operator.iand),
    *(set.intersection, set.__and__, frozenset.intersection, frozenset.__and__),
)


class BinaryOperatorAggregate(Channel):
    """Folds updates into its value: `operator(value, update)`, update by update in task order.

    The operator is a pure function `(left, right) -> new`. It may carry three attributes that this channel uses:

    - `prepare(update, new_id) -> update` coerces an update once, when the task that made it ends. `new_id()` returns
      a fresh id of text, the same one when the same task runs again.
    - `fold(left, updates) -> new` folds all updates of a superstep at once; it must equal the operator applied in a
      row. Without it a superstep of n updates to a list costs n copies of the list.
    - `appends = True` says that the value is a log: it only grows at its end.

    `operator.add` on lists is treated as one that has `fold` and `appends`.

    Args:
        operator: The reducer.
        initial: The value a run starts with; `MISSING` (the default) means that the first update is stored as it is.
        initial_factory: In place of `initial`: makes a new value for each run, for values that can be changed.

    Raises:
        ValueError: Both `initial` and `initial_factory` are given.
    """

    clears: ClassVar[bool] = False
    __slots__ = ("appends", "fold", "initial_factory", "initial_value", "operator", "prepare")

    def __init__(
        self,
        operator: Callable[[Any, Any], Any],
        *,
        initial: Any = MISSING,
        initial_factory: Callable[[], Any] | None = None,
    ) -> None:
        if initial is not MISSING and initial_factory is not None:
            raise ValueError(f"initial={initial!r} and initial_factory={initial_factory!r}: give one of them")
        self.operator = operator
        self.initial_value = initial
        self.initial_factory = initial_factory
        adds = operator is ADD
        self.prepare: Callable[[Any, Callable[[], str]], Any] | None = getattr(operator, "prepare", None)
        fold = add_all if adds else getattr(operator, "fold", None)
        self.fold: Callable[[Any, Sequence[Any]], Any] = fold or partial(fold_pairwise, operator)
        #: Whether the value is a log. For `operator.add` that is so while it is a list.
        self.appends: bool = adds or bool(getattr(operator, "appends", False))

    def initial(self) -> Any:
        """Return the declared initial value, each time anew, or `MISSING`."""
        return deepcopy(self.initial_value) if self.initial_factory is None else self.initial_factory()

    def apply(self, value: Any, updates: Sequence[Any]) -> Any:
        """Return the value with all updates folded in, or what an `Overwrite` among them says.

        Raises:
            ConcurrentUpdateError: Two `Overwrite`s.
            InvalidUpdateError: The reducer returned a marker.
            Exception: Whatever the reducer raises.
        """
        replaced = overwritten(updates)
        if replaced is not MISSING:
            return replaced
        if value is MISSING:
            value, updates = updates[0], updates[1:]
        if not updates:
            return value
        result = self.operator(value, updates[0]) if len(updates) == 1 else self.fold(value, updates)
        if result is MISSING or type(result) is Overwrite:
            raise InvalidUpdateError(f"the reducer returned {result!r}, which is no value")
        return result

    def parameters(self) -> tuple[Any, ...]:
        """Return the reducer (by identity, but equal methods of builtins are equal) and the initial value."""
        return (self.operator, self.initial_value, self.initial_factory)


ADD = operator.add


def fold_pairwise(reducer: Callable[[Any, Any], Any], value: Any, updates: Sequence[Any]) -> Any:
    """Apply a reducer update by update: what `fold` means."""
    for update in updates:
        value = reducer(value, update)
    return value


def add_all(value: Any, updates: Sequence[Any]) -> Any:
    """Add all updates; lists are joined once instead of copied once an update."""
    if type(value) is list and all(type(update) is list for update in updates):
        return [*value, *chain.from_iterable(updates)]
    return fold_pairwise(operator.add, value, updates)


def has_neutral_start(reducer: Callable[[Any, Any], Any]) -> bool:
    """Return whether a field may start with the empty value of its type under this reducer."""
    return reducer not in WITHOUT_NEUTRAL
