"""Texts that UTF-8 has no bytes for: JSON may hold half of a surrogate pair, which no request can be made of."""

from __future__ import annotations

import re
from typing import Any, Final

__all__ = ["without_surrogates"]

#: Half of a pair, or two halves that Python does not read as one.
HALF: Final = re.compile("[\ud800-\udfff]")


def without_surrogates(value: Any) -> Any:
    """Return JSON data in which U+FFFD stands for each lone surrogate, and a character for two that make one.

    Values that are no JSON are left as they are.
    """
    if isinstance(value, str):
        if value.isascii() or not HALF.search(value):
            return value
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {without_surrogates(name): without_surrogates(each) for name, each in value.items()}
    if isinstance(value, list):
        return [without_surrogates(each) for each in value]
    return value
