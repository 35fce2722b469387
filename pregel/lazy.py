"""Public names that are loaded from their home when they are first used (PEP 562), so that importing costs little."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["lazily"]


def lazily(module: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a module whose public names live elsewhere.

    Args:
        module: The module's name.
        homes: The home of each name.
    """
    namespace = vars(sys.modules[module])

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = namespace[name] = getattr(import_module(homes[name]), name)
        return value

    def names() -> list[str]:
        return sorted({*namespace, *homes})

    return load, names
