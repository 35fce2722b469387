"""Which test an annotation calls for."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Annotated, Any, Literal, LiteralString, NewType, TypeVar, Unpack, get_args, get_origin

from pregel.errors import SchemaError
from pregel.graph.annotations import (
    ITEMS,
    MAPPINGS,
    QUALIFIERS,
    UNIONS,
    alias_value,
    describe,
    field_hints,
    is_alias,
    is_hook,
    is_typeddict,
    required_keys,
)
from pregel.graph.fields import Unchecked, stands_for
from pregel.graph.typetests import (
    ANYTHING,
    TypeTest,
    any_of,
    each_of,
    entries,
    instance,
    items,
    keyed,
    literal,
    subclass,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pregel.graph.typetests import Fault, Find

__all__ = ["build_test"]


#: Annotations that are no classes and mean one.
NAMES: dict[Any, type] = {None: types.NoneType, LiteralString: str}


def build_test(annotation: Any) -> tuple[TypeTest, list[str]]:
    """Return the test for an annotation, and the types in it that can't be tested and let everything pass."""
    builder = Builder()
    return builder.build(annotation), list(dict.fromkeys(builder.untestable))


class Builder:
    """Makes the test of one annotation, from the inside out."""

    def __init__(self) -> None:
        self.untestable: list[str] = []
        #: The tests of types that may contain themselves, once they were met.
        self.met: dict[Any, TypeTest] = {}
        self.forms: dict[Any, Callable[[Any], TypeTest]] = {
            **dict.fromkeys(UNIONS, self.union),
            **dict.fromkeys(ITEMS, self.items),
            **dict.fromkeys(MAPPINGS, self.entries),
            Literal: lambda bare: literal(get_args(bare), describe(bare)),
            tuple: self.tuple,
            type: self.subclass,
            Annotated: self.annotated,
            **dict.fromkeys(QUALIFIERS, lambda bare: self.build(get_args(bare)[0])),
        }

    def build(self, annotation: Any) -> TypeTest:
        """Return the test for an annotation."""
        if annotation is Any or annotation is object or isinstance(annotation, TypeVar):
            return ANYTHING
        if is_alias(annotation):
            return self.once(annotation, lambda: self.build(alias_value(annotation)))
        kind = get_origin(annotation) or annotation
        if is_typeddict(kind):
            return self.once(annotation, lambda: self.typeddict(annotation, kind))
        if kind in self.forms and get_args(annotation):
            return self.forms[kind](annotation)
        return self.whole(annotation, kind)

    def once(self, annotation: Any, build: Callable[[], TypeTest]) -> TypeTest:
        """Return the test for a type that may contain itself: within it stands a reference to it."""
        if annotation not in self.met:
            made: list[TypeTest] = []
            self.met[annotation] = TypeTest(lambda value: made[0].find(value))  # noqa: PLW0108 - made later
            made.append(build())
            self.met[annotation] = made[0]
        return self.met[annotation]

    def annotated(self, bare: Any) -> TypeTest:
        """Return the test for a type with metadata."""
        inner, *metadata = get_args(bare)
        if any(stands_for(item, Unchecked) for item in metadata):
            return ANYTHING
        return asking_pydantic(bare) if any(map(is_hook, metadata)) else self.build(inner)

    def union(self, bare: Any) -> TypeTest:
        """Return the test for `X | Y`."""
        return any_of([self.build(member) for member in get_args(bare)], describe(bare))

    def items(self, bare: Any) -> TypeTest:
        """Return the test for `list[X]` and its like."""
        return items(get_origin(bare), self.build(get_args(bare)[0]), describe(bare))

    def entries(self, bare: Any) -> TypeTest:
        """Return the test for `dict[K, V]` and its like."""
        key, value = (*get_args(bare), int)[:2]  # a Counter names its keys only
        return entries(get_origin(bare), self.build(key), self.build(value), describe(bare))

    def tuple(self, bare: Any) -> TypeTest:
        """Return the test for a tuple: of one type and any length, or item by item."""
        arguments = get_args(bare)
        if arguments[-1] is ...:
            return items(tuple, self.build(arguments[0]), describe(bare))
        if any(getattr(each, "__unpacked__", False) or get_origin(each) is Unpack for each in arguments):
            return instance(tuple)
        return each_of([self.build(argument) for argument in arguments], describe(bare))

    def subclass(self, bare: Any) -> TypeTest:
        """Return the test for `type[X]`."""
        bound = get_args(bare)[0]
        kind = get_origin(bound) or bound
        return subclass(kind, describe(bare)) if isinstance(kind, type) and kind is not Any else instance(type)

    def typeddict(self, bare: Any, kind: type) -> TypeTest:
        """Return the test for a nested TypedDict."""
        try:
            hints = field_hints(kind, get_args(bare))
        except SchemaError:  # it may be another library's, and what that hides from us can't be mended here
            self.untestable.append(describe(bare))
            return instance(dict)
        tests = {name: self.build(hint) for name, hint in hints.items()}
        return keyed(tests, required_keys(kind, hints), describe(bare))

    def whole(self, bare: Any, kind: Any) -> TypeTest:
        """Return the test for what is looked at as a whole: a class, or a name for one."""
        if isinstance(kind, NewType):
            return self.build(kind.__supertype__)
        kind = NAMES.get(kind, kind)
        try:
            isinstance(None, kind)  # a plain Protocol refuses
        except TypeError:
            self.untestable.append(describe(bare))
            return ANYTHING
        test = instance(kind)
        if not hasattr(kind, "__get_pydantic_core_schema__") or hasattr(kind, "__pydantic_validator__"):
            return test
        # No model, whose values are its instances, but a class that may stand for others: EmailStr takes str.
        asking = asking_pydantic(bare)
        return TypeTest(lambda value: test.find(value) and asking.find(value), test.passes)


def asking_pydantic(annotation: Any) -> TypeTest:
    """Return the test for a type of which pydantic knows more than we do; it is imported once it is asked."""
    finders: list[Find] = []

    def find(value: Any) -> Fault | None:
        if not finders:
            from pregel.graph.coercion import strict_finder  # noqa: PLC0415 - imports pydantic

            finders.append(strict_finder(annotation))
        return finders[0](value)

    return TypeTest(find)
