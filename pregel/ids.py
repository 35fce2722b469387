"""What the names of threads, namespaces and keys may be: checked at the door, and never spliced into anything."""

from __future__ import annotations

from typing import Final

from pregel.errors import InvalidIdError
from pregel.text import show

__all__ = ["ID_LIMIT", "check_id", "check_labels"]

#: Characters of one name.
ID_LIMIT: Final = 512


def check_id(value: object, what: str, limit: int = ID_LIMIT) -> str:
    """Return a name that may be one: a text of some characters, without NUL, that UTF-8 can encode.

    Args:
        value: The name.
        what: What it names, for the message.
        limit: How many characters it may have.

    Raises:
        InvalidIdError: It can't be one.
    """
    if not isinstance(value, str):
        raise InvalidIdError(f"{what} is a text, not {show(value)}")
    if not 0 < len(value) <= limit:
        raise InvalidIdError(f"{what} has 1 to {limit} characters, and {show(value)} has {len(value)}")
    if "\0" in value:
        raise InvalidIdError(f"{what} has no NUL character, and {show(value)} has one: databases end a text there")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidIdError(f"{what} is Unicode text, and {show(value)} holds half a character: {error}") from None
    return str(value)


def check_labels(labels: object, what: str, limit: int = ID_LIMIT) -> tuple[str, ...]:
    """Return a namespace that may be one: a tuple (or list) of names.

    Raises:
        InvalidIdError: It is no sequence of names.
    """
    if not isinstance(labels, (tuple, list)):
        raise InvalidIdError(f"{what} is a tuple of texts, not {show(labels)}")
    return tuple(check_id(label, f"a label of {what}", limit) for label in labels)
