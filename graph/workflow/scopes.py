"""Where a key of the state lives and for how long: its scope.

A key without prefix belongs to the session. `user:` is shared by all sessions of a user, `app:` by all users of an app;
both are kept in the store. `temp:` lives as long as the run, in the memory of its process. There are no other prefixes:
a misspelt one is an error, not a key of the session.

In a run all keys stand side by side under their whole names (`user:visits`). A schema declares a scoped key by a
marker, `visits: Annotated[int, Scope("user")]`; both `visits` and `user:visits` name it then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, TypeAlias, get_args

from pregel.channels.base import MISSING
from pregel.channels.keyed import DELETE, KeyedValue
from pregel.errors import nearest
from pregel.graph.buffered import Buffered
from pregel.graph.workflow.errors import NotPersistedError, StateSchemaError
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "TEMP_FIELDS",
    "Scope",
    "ScopeName",
    "ScopedState",
    "check_key",
    "scope_of",
    "temp_updates",
    "with_temp",
]

ScopeName: TypeAlias = Literal["session", "user", "app", "temp"]
SCOPES: Final[tuple[str, ...]] = get_args(ScopeName)
#: The scopes that have a prefix.
PREFIXES: Final = tuple(scope for scope in SCOPES if scope != "session")
#: The scopes whose keys are kept in the store, apart from the session.
SHARED: Final = ("user", "app")
#: The field that holds the values of `temp:` keys, and the one that remembers, in checkpoints too, which there were.
TEMP, TEMP_NAMES = "@temp", "@temp_names"


@dataclass(frozen=True, slots=True)
class Scope:
    """Says in a schema whose a key is: `visits: Annotated[int, Scope("user")]`.

    Args:
        name: "session" (as without a marker), "user", "app" or "temp".

    Raises:
        StateSchemaError: There is no such scope.
    """

    name: ScopeName

    def __post_init__(self) -> None:
        if self.name not in SCOPES:
            raise StateSchemaError(
                f"there is no scope {show(self.name)}.{nearest(self.name, SCOPES)} Scopes: {', '.join(SCOPES)}"
            )

    def key(self, name: str) -> str:
        """Return the whole name of a key of this scope."""
        return name if self.name == "session" else f"{self.name}:{name}"


class TempValue(KeyedValue):
    """The channel of the `temp:` keys: a `KeyedValue` that is in no checkpoint."""

    __slots__ = ()
    tracked: ClassVar[bool] = False


#: What a workflow's graph has for `temp:` keys, by the name of the field: see `temp_updates` and `with_temp`.
TEMP_FIELDS: Final[Mapping[str, Any]] = {
    TEMP: Annotated[dict[str, Any], TempValue()],
    TEMP_NAMES: Annotated[dict[str, Any], KeyedValue()],
}


def scope_of(key: str, where: str = "the state") -> ScopeName:
    """Return the scope of a key.

    Raises:
        StateSchemaError: Its prefix is none of those that there are.
    """
    prefix, colon, rest = key.partition(":")
    if not colon:
        return "session"
    if prefix in PREFIXES and rest:
        return prefix  # type: ignore[return-value]  # one of them
    if prefix in PREFIXES:
        raise StateSchemaError(f"{where}: the key {key!r} is a prefix and no name behind it")
    raise StateSchemaError(
        f"{where}: the key {key!r} has the prefix {prefix + ':'!r}, which is no scope.{nearest(prefix, PREFIXES)} "
        f"Prefixes: {', '.join(f'{known}:' for known in PREFIXES)}; a key of the session has no colon"
    )


def check_key(key: object, where: str) -> str:
    """Return a key that may be one.

    Raises:
        StateSchemaError: It is no text, is empty or begins with "@" or two underscores, which belong to the engine, or
            has a prefix that is no scope.
    """
    if not isinstance(key, str):
        raise StateSchemaError(f"{where}: a key of the state is a text, not {show(key)}")
    if ":" in key:
        scope_of(key, where)
    elif not key or key.startswith(("@", "__")):
        raise StateSchemaError(
            f"{where}: the key {key!r} can't be one: it has a character at least, and begins neither with '@' nor with "
            "two underscores"
        )
    return key


class ScopedState(Buffered):
    """What a node finds as its state: see `Buffered`. A scoped key that a schema declares answers to both its names.

    Args:
        snapshot: What all tasks of the superstep see, by whole names.
        check: See `pregel.graph.workflow.schema.checker`.
        names: The whole names of scoped keys by their declared ones: `keys_of` of the schema.
    """

    __slots__ = ("_names",)

    def __init__(
        self,
        snapshot: Mapping[str, Any],
        check: Callable[[str, Any], Any] | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(snapshot, check)
        self._names = names or {}

    def _find(self, key: str) -> Any:
        """Return a value, or `MISSING` where there is none.

        Raises:
            NotPersistedError: A `temp:` key whose value went with an earlier run.
            StateSchemaError: There is none, and the key has a prefix that is no scope.
        """
        value = super()._find(self._names.get(key, key))
        if value is MISSING and isinstance(key, str):
            scope_of(key)
        return value

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(self._names.get(key, key), value)

    def __delitem__(self, key: str) -> None:
        super().__delitem__(self._names.get(key, key))

    def __contains__(self, key: object) -> bool:
        return super().__contains__(self._names.get(key, key))  # type: ignore[call-overload]  # any object may be asked for

    def update(self, *others: Any, **values: Any) -> None:
        """Set several keys: all, or where one is refused, none."""
        given = dict(*others, **values)
        super().update({self._names.get(key, key): value for key, value in given.items()})


def temp_updates(delta: Mapping[str, Any]) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """Split what a task has changed into what is stored and what is not.

    Args:
        delta: Values by key; `DELETE` for a key that is gone.

    Returns:
        The delta without `temp:` keys, which events and checkpoints may hold; and the updates of `TEMP_FIELDS`.
    """
    temp = {key: value for key, value in delta.items() if key.startswith("temp:")}
    if not temp:
        return delta, {}
    names = {key: DELETE if value is DELETE else None for key, value in temp.items()}
    return {key: value for key, value in delta.items() if key not in temp}, {TEMP: temp, TEMP_NAMES: names}


def with_temp(state: Mapping[str, Any], values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a node sees of the state, with the `temp:` keys of this run.

    Args:
        state: The stored keys.
        values: The graph's values, of which those of `TEMP_FIELDS` are looked at.
    """
    names = values.get(TEMP_NAMES)
    return WithTemp(state, values.get(TEMP) or {}, names) if names else state


class WithTemp(Mapping[str, Any]):
    """A state and beside it the `temp:` keys. What went with an earlier run is not among them, and an error to read."""

    __slots__ = ("_names", "_state", "_temp")

    def __init__(self, state: Mapping[str, Any], temp: Mapping[str, Any], names: Mapping[str, Any]) -> None:
        self._state = state
        self._temp = temp
        self._names = names

    def __getitem__(self, key: str) -> Any:
        if key not in self._names:
            return self._state[key]
        value = self._temp.get(key, MISSING)
        if value is MISSING:
            raise NotPersistedError(
                f"the key {key!r} was set before the run was resumed, and is not persisted: `temp:` keys live in the "
                "memory of one run. Set it again, or keep the value under a key without that prefix"
            )
        return value

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value, or the default.

        Raises:
            NotPersistedError: See `__getitem__`.
        """
        return self[key] if key in self._names else self._state.get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._temp or key in self._state

    def __iter__(self) -> Iterator[str]:
        yield from self._state
        yield from self._temp

    def __len__(self) -> int:
        return len(self._state) + len(self._temp)
