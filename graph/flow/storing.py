"""What a context may hold: values that can be stored, so that a snapshot never fails for one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pregel.codec import Codec, register
from pregel.errors import EncodeError
from pregel.graph.storable import storable_types

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CODEC", "check_storable", "learn"]

#: What contexts, and their snapshots, are stored with: standard types and registered ones.
CODEC: Final = Codec()
#: Types whose values can always be stored.
PLAIN: Final = frozenset({str, int, float, bool, bytes, type(None)})
#: What the codec advises where a type is unknown. A context has keys and no fields, so it is told in other words.
ADVICE: Final = ". Register its type with pregel.codec.register, or annotate the field with UntrackedValue"


def check_storable(key: str, value: Any, where: str) -> None:
    """Check that a value can be stored. It costs O(value).

    Raises:
        EncodeError: It can't; the message names the key and the path.
    """
    if type(value) in PLAIN:
        return
    try:
        CODEC.encode(value, f"{where}: the value of key {str(key)!r}")
    except EncodeError as error:
        message = str(error)
        if not message.endswith(ADVICE):
            raise
        raise EncodeError(
            f"{message.removesuffix(ADVICE)}. If it is data, register its type with pregel.codec.register, or declare "
            f"Key(type, {str(key)!r}); if it is a connection or the like, let it be a Resource that each run is given"
        ) from error


def learn(annotations: Iterable[Any]) -> None:
    """Register the types that declared keys name: whoever declares a key says what is stored there.

    Raises:
        EncodeError: A type's tag stands for another class.
    """
    for kind in storable_types(annotations):
        if CODEC._type(kind) is None:  # noqa: SLF001 - the codec of this module
            register(kind)
