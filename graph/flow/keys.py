"""`Key` and `KeySpace`: which keys a flow's context has, of which types, and who writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar, overload

from pregel.errors import nearest
from pregel.graph.checker import checker
from pregel.graph.flow.errors import ContextKeyError, FlowDefinitionError, KeyTypeError
from pregel.graph.flow.home import check_key
from pregel.graph.flow.storing import learn
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["Key", "KeySpace", "declared_instead"]

T = TypeVar("T")

#: The attributes of a key space that are no keys.
OWN: Final = ("keys", "find")


class Key(str, Generic[T]):
    """A key with its contract. It is a text and stands wherever its name could: `ctx[Keys.risk]`.

    Args:
        type: What its values are; checked at each write, never converted.
        name: Its flat name, such as "analysis.risk".
        writers: The nodes that may write it; none for any node. They may belong to other graphs of the same context.
        given: Whether the caller sets it before the run; a run without it does not begin.
        once: Whether it is set once: where it has a value no node may change it, be it given or another node's.
        reducer: Folds what `ctx.add` is given into the value, so that nodes side by side may write it.

    Raises:
        ContextKeyError: The name is reserved.
        FlowDefinitionError: The options contradict each other.
    """

    __slots__ = ("check", "given", "kind", "once", "reducer", "writers")

    @overload
    def __new__(
        cls,
        type: type[T],
        name: str,
        *,
        writers: Iterable[str] = ...,
        given: bool = ...,
        once: bool = ...,
        reducer: Callable[[Any, Any], Any] | None = ...,
    ) -> Key[T]: ...
    @overload
    def __new__(
        cls,
        type: Any,
        name: str,
        *,
        writers: Iterable[str] = ...,
        given: bool = ...,
        once: bool = ...,
        reducer: Callable[[Any, Any], Any] | None = ...,
    ) -> Key[Any]: ...
    def __new__(
        cls,
        type: Any,  # noqa: A002 - the public name
        name: str,
        *,
        writers: Iterable[str] = (),
        given: bool = False,
        once: bool = False,
        reducer: Callable[[Any, Any], Any] | None = None,
    ) -> Key[Any]:
        """Make a text that knows more."""
        if isinstance(writers, str):
            raise FlowDefinitionError(f"writers of key {name!r} takes a list of nodes, not {writers!r}")
        if once and reducer is not None:
            raise FlowDefinitionError(f"key {name!r} is set once, and its reducer adds to it: it can't have both")
        key = super().__new__(cls, check_key(name))
        key.kind = type
        key.writers = frozenset(writers)
        key.given = given
        key.once = once
        key.reducer = reducer
        key.check = checker(type)
        return key

    kind: Any
    writers: frozenset[str]
    given: bool
    once: bool
    reducer: Callable[[Any, Any], Any] | None
    check: Callable[[Any], Any]

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)  # what is copied or sent is the name

    def accept(self, value: Any, where: str) -> Any:
        """Return the value if it is of the key's type.

        Raises:
            KeyTypeError: It is not.
        """
        try:
            return self.check(value)
        except TypeError as error:
            expected = self.check.expected  # type: ignore[attr-defined]  # a Check
            refused = KeyTypeError(f"{where}: key {str(self)!r} takes {expected}, not {show(value)}")
            refused.value = value
            raise refused from error


class KeySpace:
    """The keys of a context: a class whose attributes are `Key`s. A graph that has one refuses all other keys.

    Example:
        class Keys(KeySpace):
            question = Key(str, "input.question", given=True)
            risk = Key(str, "analysis.risk", writers=["risk_agent"])
    """

    #: The keys by name, those of base classes included.
    keys: ClassVar[Mapping[str, Key[Any]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for attribute in OWN:
            if attribute in vars(cls):
                raise FlowDefinitionError(
                    f"{cls.__name__}.{attribute}: {' and '.join(OWN)} are what a KeySpace itself has, so it needs "
                    "another attribute; the key's own name may stay"
                )
        found: dict[str, Key[Any]] = dict(cls.keys)
        for attribute, key in vars(cls).items():
            if not isinstance(key, Key):
                continue
            if str(key) in found:
                raise FlowDefinitionError(
                    f"{cls.__name__}.{attribute} is the key {str(key)!r}, which is declared twice"
                )
            found[str(key)] = key
        learn(key.kind for key in found.values())
        cls.keys = found

    @classmethod
    def find(cls, key: str, where: str) -> Key[Any]:
        """Return a key's contract.

        Raises:
            ContextKeyError: It is not declared.
        """
        found = cls.keys.get(key)
        if found is None:
            raise ContextKeyError(f"{where}: {cls.__name__} has no key {str(key)!r}.{declared_instead(cls, key)}")
        return found


def declared_instead(space: type[KeySpace], key: str) -> str:
    """Return which keys are declared, for messages about one that is not."""
    return f"{nearest(key, space.keys)} Declared: {', '.join(space.keys)}"
