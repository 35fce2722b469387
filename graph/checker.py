"""Whether an update has its field's type: one check per field, made once and asked for each update.

The tests are our own where an annotation is made of classes and of what `typing` offers: a check must not convert, copy
or consume what it looks at, and `int` must stand for its subclasses at every depth. pydantic is asked where a class
means something to it alone, and where a pydantic schema wants conversion; until then it is not imported.
"""

from __future__ import annotations

import inspect
import operator
import types
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pregel.errors import PregelWarning
from pregel.graph.annotations import describe
from pregel.graph.compare import mismatch
from pregel.graph.typeforms import build_test

if TYPE_CHECKING:
    from collections.abc import Callable

    from pregel.graph.typetests import Find

__all__ = ["Check", "checker", "field_checker", "mismatch", "reducer_update_annotation"]

#: Types whose instances pydantic hands back as they are.
SETTLED: Final = (str, int, float, bool, bytes, types.NoneType)
#: Reducers that take updates of the field's own type.
ENDOMORPHIC: Final = (operator.add, operator.iadd, operator.or_, operator.ior)


class Check:
    """Returns the update to store, or raises `TypeError` that says what is wrong with it.

    Args:
        exact: Values of exactly this type pass as they are and need no call; None if there is no such type.
        expected: The type, as text for messages.
        accept: What a call does.
    """

    __slots__ = ("accept", "exact", "expected")

    def __init__(self, exact: type | None, expected: str, accept: Callable[[Any], Any]) -> None:
        self.exact = exact
        self.expected = expected
        self.accept = accept

    def __call__(self, value: Any) -> Any:
        """Return the update to store.

        Raises:
            TypeError: It has the wrong type.
        """
        return self.accept(value)

    def __repr__(self) -> str:
        return f"Check({self.expected})"


def checker(annotation: Any, *, coerce: bool = False) -> Check:
    """Return the check for values of a type.

    Without `coerce` a value passes as the object that it is, or not at all: what fits only when converted (a dict for a
    model, a string for an enum) does not fit. Subclasses fit, and `int` fits `float`. A type that can't be tested, such
    as a plain `Protocol`, lets everything pass, with one `PregelWarning` now.

    Args:
        annotation: The type, with or without metadata.
        coerce: Convert as pydantic does and return the result.
    """
    if coerce:
        from pregel.graph.coercion import converter  # noqa: PLC0415 - imports pydantic

        convert = converter(annotation)
        if convert is not None:
            return Check(annotation if annotation in SETTLED else None, describe(annotation), convert)
    test, untestable = build_test(annotation)
    if untestable:
        warnings.warn(
            f"values can't be tested for {', '.join(untestable)}, and all are accepted: "
            "decorate a Protocol with @runtime_checkable, or annotate the field with Unchecked",
            PregelWarning,
            stacklevel=2,
        )
    return Check(next(iter(test.passes), None), describe(annotation), partial(looked_at, test.find))


def field_checker(schema: Any, field: str) -> Check:
    """Return the check for updates of one field of a pydantic model.

    It runs the field's own constraints and validators, those of the model as a whole not, and returns the result.

    Args:
        schema: The model's class.
        field: The field's name.
    """
    from pregel.graph.coercion import field_converter  # noqa: PLC0415 - imports pydantic

    return Check(None, describe(schema.model_fields[field].annotation), field_converter(schema, field))


def reducer_update_annotation(reducer: Callable[..., Any], field_annotation: Any) -> Any:
    """Return the type that updates of a reducer field have.

    That is the annotation of the reducer's second parameter; for `operator.add`, `operator.or_` and reducers that say
    `checks_as_field = True` the field's own type; and Any where nothing is said.
    """
    if reducer in ENDOMORPHIC or getattr(reducer, "checks_as_field", False):
        return field_annotation
    try:
        parameters = list(inspect.signature(reducer, eval_str=True).parameters.values())
    except Exception:  # noqa: BLE001 - no signature, or an annotation that means nothing: nothing is said
        return Any
    several = parameters[:1] if parameters[0].kind is inspect.Parameter.VAR_POSITIONAL else parameters[1:2]
    annotation = several[0].annotation
    return Any if annotation is inspect.Parameter.empty else annotation


def looked_at(find: Find, value: Any) -> Any:
    """Return the very value if nothing is wrong with it.

    Raises:
        TypeError: Something is.
    """
    fault = find(value)
    if fault is None:
        return value
    where, what = fault
    raise TypeError(f"at {where}: {what}" if where else what)
