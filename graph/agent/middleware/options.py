"""Checks of the options that middleware is made with: each names the middleware, the option and what it takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

__all__ = ["check_amount", "check_count", "checked_names"]


def check_count(who: str, option: str, value: Any, *, least: int = 0, optional: bool = False) -> None:
    """Check that an option is a whole number.

    Args:
        who: The middleware, for messages.
        option: The option's name.
        value: What was given.
        least: The least that it can be.
        optional: Whether it may be None.

    Raises:
        ValueError: It is something else; a bool is, too.
    """
    if optional and value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(
            f"{who}({option}={value!r}): it must be a whole number, {least} or more{', or None' if optional else ''}"
        )


def check_amount(who: str, option: str, value: Any) -> None:
    """Check that an option is a number that is not negative; arguments are those of `check_count`.

    Raises:
        ValueError: It is something else; a bool is, too.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not value >= 0:  # NaN neither
        raise ValueError(f"{who}({option}={value!r}): it must be a number, 0 or more")


def checked_names(who: str, option: str, value: Any) -> tuple[str, ...]:
    """Return the names that an option lists; arguments are those of `check_count`.

    Raises:
        ValueError: It is no list of texts; a text by itself is none.
    """
    listed = isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)
    if not listed or not all(isinstance(name, str) for name in value):
        raise ValueError(f"{who}({option}={value!r}): give a list of the names of tools")
    return tuple(value)
