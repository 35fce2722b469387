"""What does a file say, as text and as a syntax tree?"""

from __future__ import annotations

import ast
import io
import os
import threading
import tokenize
import warnings
from dataclasses import dataclass
from functools import lru_cache

from examples.audit.state import SourceFile

#: Larger files are data or generated. A syntax tree takes some fifty times the memory of its text.
MAX_BYTES = 1_000_000
#: A file's analyses are sent side by side, so a short memory suffices to parse each file once.
REMEMBERED = 16

_parsing = threading.Lock()


@dataclass(frozen=True, slots=True)
class Source:
    """A file as read. A file that can't be read has no lines, one that can't be parsed no tree; `problem` says why."""

    path: str
    lines: tuple[str, ...] = ()
    tree: ast.Module | None = None
    problem: str = ""


def read(file: SourceFile) -> Source:
    """Read and parse a file. Whatever is wrong with it comes back as a value, never as an exception."""
    full = os.path.join(file.base, file.path)  # noqa: PTH118 (a Path per task would be a third of its cost)
    try:
        stat = os.stat(full)  # noqa: PTH116
    except (OSError, ValueError) as error:
        return Source(file.path, problem=f"can't be read: {getattr(error, 'strerror', None) or error}")
    if stat.st_size > MAX_BYTES:
        return Source(file.path, problem=f"not read: {stat.st_size:,} bytes are more than {MAX_BYTES:,}")
    # The parser holds the interpreter's lock anyway. Ours costs nothing, keeps sibling tasks from parsing the same
    # file at once, and guards the warning filters, which are global.
    with _parsing:
        return _read(full, file.path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=REMEMBERED)
def _read(full: str, path: str, _modified: int, _size: int) -> Source:
    try:
        with open(full, "rb") as stream:  # noqa: PTH123
            return parse(path, stream.read())
    except OSError as error:
        return Source(path, problem=f"can't be read: {error.strerror}")


def parse(path: str, data: bytes) -> Source:
    """Decode and parse what a file holds, by the encoding it declares."""
    if b"\0" in data:
        return Source(path, problem="binary: contains null bytes")
    try:
        text = _decode(data)
    except UnicodeDecodeError as error:
        found = f"byte {error.object[error.start]:#04x} at offset {error.start:,}"
        return Source(path, problem=f"not {error.encoding}: {found}")
    except (SyntaxError, LookupError, UnicodeError) as error:
        return Source(path, problem=f"can't be decoded: {error}")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = tuple(text.removesuffix("\n").split("\n")) if text else ()
    try:
        with warnings.catch_warnings():
            # Invalid escapes in the audited code are no business of ours, least of all where warnings are errors.
            warnings.simplefilter("ignore")
            return Source(path, lines, ast.parse(text))
    except SyntaxError as error:
        return Source(path, lines, problem=f"syntax error in line {error.lineno}: {error.msg}")
    except (RecursionError, MemoryError, ValueError) as error:
        return Source(path, lines, problem=f"can't be parsed: {str(error) or type(error).__name__}")


def _decode(data: bytes) -> str:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError:
        # An unknown encoding, or UTF-8 that fails in the first two lines: of the latter this error tells the place.
        data.decode("utf-8")
        raise
    return data.decode(encoding)
