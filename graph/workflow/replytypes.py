"""How the type that a reply must have is stored with the question."""

from __future__ import annotations

import types
from typing import Any, Final, Literal, Union, get_args, get_origin

from pregel.codec import register
from pregel.codec.registry import GLOBAL
from pregel.errors import EncodeError
from pregel.graph.annotations import describe
from pregel.graph.workflow.errors import WorkflowDataError
from pregel.text import show

__all__ = ["reference", "resolved"]

BUILTINS: Final[dict[str, Any]] = {
    "str": str, "int": int, "float": float, "bool": bool, "bytes": bytes, "list": list, "dict": dict, "tuple": tuple,
    "set": set, "None": type(None), "Any": Any,
}  # fmt: skip
NAMES: Final = {kind: name for name, kind in BUILTINS.items()}


def reference(schema: Any, where: str) -> Any:
    """Return a type as something that can be stored, so that the reply can be checked in another process.

    Raises:
        WorkflowDataError: It can't be found again there.
    """
    if schema is None:
        return None
    origin = get_origin(schema)
    if origin is Literal:
        return ["literal", list(get_args(schema))]
    if origin in {Union, types.UnionType}:
        return ["union", [reference(each, where) for each in get_args(schema)]]
    if origin in NAMES:
        return ["of", NAMES[origin], [reference(each, where) for each in get_args(schema)]]
    if schema in NAMES:
        return ["builtin", NAMES[schema]]
    if isinstance(schema, type):
        try:
            if schema not in GLOBAL.types:
                register(schema)
        except EncodeError as error:
            raise WorkflowDataError(
                f"{where}: the response_schema {describe(schema)} can't be stored with the question: {error}"
            ) from error
        return ["class", GLOBAL.types[schema].tag]
    raise WorkflowDataError(
        f"{where}: response_schema takes a builtin type, a Literal, a class that can be stored, or a list, dict or "
        f"union of these, not {show(schema)}"
    )


def resolved(stored: Any) -> Any:
    """Return the type that was stored.

    Raises:
        WorkflowDataError: It is a class that is not registered in this process.
    """
    if stored is None:
        return None
    kind, *rest = stored
    if kind == "literal":
        return Literal[tuple(rest[0])]
    if kind == "union":
        return Union[tuple(map(resolved, rest[0]))]  # noqa: UP007 - the members are in a tuple
    if kind == "of":
        return BUILTINS[rest[0]][tuple(map(resolved, rest[1]))]
    if kind == "builtin":
        return BUILTINS[rest[0]]
    entry = GLOBAL.tags.get(rest[0])
    if entry is None:
        raise WorkflowDataError(
            f"the reply to a question must be of the type {rest[0]!r}, which is not registered in this process: "
            "decorate the class with pregel.codec.serializable, or register it, before the run goes on"
        )
    return entry.cls
