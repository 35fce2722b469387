"""How the fields of a compiled flow graph fold what tasks write: the data key by key, keys with a reducer by that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypedDict

from pregel.channels.aggregate import BinaryOperatorAggregate
from pregel.channels.base import MISSING, ConcurrentUpdateError, Overwrite
from pregel.channels.keyed import KeyedValue
from pregel.graph.flow.parts import key_field
from pregel.graph.schema import read_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pregel.graph.flow.keys import Key

__all__ = ["Folded", "KeyedData", "folded_keys"]


class KeyedData(KeyedValue):
    """The channel of the data: a `KeyedValue` whose conflicts are told in the words of flows."""

    __slots__ = ()

    def apply(self, value: Any, updates: Sequence[Any]) -> dict[Any, Any]:
        """Return the mapping with all updates made.

        Raises:
            ConcurrentUpdateError: Two updates touch one key; the message names it.
            InvalidUpdateError: An update that is no mapping.
        """
        try:
            return super().apply(value, updates)
        except ConcurrentUpdateError:
            counts = Counter(key for update in updates if isinstance(update, Mapping) for key in update)
            twice = [key for key, count in counts.items() if count > 1]
            if not twice:
                raise
            raise ConcurrentUpdateError(
                f"branches side by side write the key {twice[0]!r}, and neither counts more than the other: give each "
                f"a key of its own and read them after the join, or declare Key(type, {twice[0]!r}, reducer=...) and "
                f"let them ctx.add({twice[0]!r}, value)"
            ) from None


class Folded(NamedTuple):
    """A key with a reducer, and its field.

    Where the type has a neutral value the field holds the key's value, and begins with that one. Where it has none, as
    with `max`, the key may be absent, and a field that has had a value can't lose it: so it holds a tuple of one value
    or none.
    """

    key: str
    field: str
    annotation: Any
    #: Makes the neutral value, or None.
    neutral: Callable[[], Any] | None

    def given(self, data: Mapping[str, Any]) -> Overwrite:
        """Return the update that sets the field to what a mapping has under the key, or has not."""
        value = data.get(self.key, MISSING)
        if self.neutral is None:
            return Overwrite(() if value is MISSING else (value,))
        return Overwrite(self.neutral() if value is MISSING else value)

    def value(self, fields: Mapping[str, Any]) -> Any:
        """Return the key's value, or MISSING."""
        held = fields.get(self.field, MISSING)
        if held is MISSING or self.neutral is not None:
            return held
        return held[0] if held else MISSING


def folded_keys(keys: Iterable[Key[Any]]) -> list[Folded]:
    """Return those of some keys that have a reducer."""
    return [folded(key, key.reducer) for key in keys if key.reducer is not None]


def folded(key: Key[Any], reducer: Callable[[Any, Any], Any]) -> Folded:
    """Return a key with its field: named "@key/<name>"."""
    field = key_field(key)
    annotation: Any = Annotated[key.kind, BinaryOperatorAggregate(reducer)]
    fields = {"value": annotation}
    probe = TypedDict("probe", fields)  # type: ignore[misc]  # made at run time, to be read
    initial = read_schema(probe).fields["value"].initial
    if initial() is not MISSING:
        return Folded(str(key), field, annotation, initial)
    return Folded(
        str(key), field, Annotated[tuple[Any, ...], BinaryOperatorAggregate(boxed(reducer), initial=())], None
    )


def boxed(reducer: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a reducer of values in tuples of one or none; what is folded in is bare."""

    @wraps(reducer)
    def fold(held: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        return (reducer(held[0], value) if held else value,)

    return fold
