"""How are numbers and names said, so that they read well and any terminal takes them?"""

from __future__ import annotations


def counted(count: int, noun: str, ending: str = "s") -> str:
    """A number with its noun, in the plural where it needs one."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}{ending}"


def shown(text: str) -> str:
    """Text without what a terminal would obey or refuse.

    File names may hold line breaks, escape codes or bytes that are no UTF-8; these are written as escapes.
    """
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
