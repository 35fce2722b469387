"""Content blocks: the parts of a message that is more than a text, in the form that langchain-core calls standard."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

__all__ = ["audio_block", "content_blocks", "file_block", "image_block", "text_block"]


def text_block(text: str) -> dict[str, Any]:
    """Return a block of text."""
    return {"type": "text", "text": text}


def image_block(
    *, url: str | None = None, data: bytes | str | None = None, mime_type: str | None = None
) -> dict[str, Any]:
    """Return a block with a picture.

    Args:
        url: Where it is.
        data: In place of that, what it is: bytes, or a text in base64.
        mime_type: Such as "image/png"; needed with `data`.

    Raises:
        ValueError: Not one of `url` and `data`, or no `mime_type` beside `data`.
    """
    return media("image", url, data, mime_type)


def audio_block(
    *, url: str | None = None, data: bytes | str | None = None, mime_type: str | None = None
) -> dict[str, Any]:
    """Return a block with sound; see `image_block`.

    Raises:
        ValueError: See `image_block`.
    """
    return media("audio", url, data, mime_type)


def file_block(
    *,
    url: str | None = None,
    data: bytes | str | None = None,
    mime_type: str | None = None,
    filename: str | None = None,
) -> dict[str, Any]:
    """Return a block with a document; see `image_block`.

    Raises:
        ValueError: See `image_block`.
    """
    block = media("file", url, data, mime_type)
    return block if filename is None else {**block, "filename": filename}


def media(kind: str, url: str | None, data: bytes | str | None, mime_type: str | None) -> dict[str, Any]:
    """Return a block that is no text.

    Raises:
        ValueError: See `image_block`.
    """
    if (url is None) is (data is None):
        raise ValueError(f"a block of type {kind!r} is given by one of url= and data=")
    if url is not None:
        return {"type": kind, "url": url} if mime_type is None else {"type": kind, "url": url, "mime_type": mime_type}
    if mime_type is None:
        raise ValueError(f"a block of type {kind!r} that is given by data= needs mime_type=, such as 'image/png'")
    text = b64encode(data).decode("ascii") if isinstance(data, bytes) else data
    return {"type": kind, "base64": text, "mime_type": mime_type}


def content_blocks(content: str | list[str | dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a message's content as blocks alone; an empty text is none."""
    parts = [content] if isinstance(content, str) else content
    return [text_block(part) if isinstance(part, str) else part for part in parts if part != ""]
