"""Values as text for messages."""

from __future__ import annotations

__all__ = ["shortened", "show"]

TEXT_LIMIT = 80


def shortened(value: object, limit: int = TEXT_LIMIT) -> str:
    """Return a value as a text of at most so many characters, also one whose `repr` raises."""
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001 - a value that can't be shown must not hide what is said about it
        return f"<no text: its repr raised {type(error).__name__}>"
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def show(value: object) -> str:
    """Return a value and its type as a short text."""
    return f"{shortened(value)} ({type(value).__name__})"


def told(error: BaseException) -> str:
    """Return an error as a text, also one whose `str` raises."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - as above
        return type(error).__name__
