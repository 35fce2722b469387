"""The envelope of every stored row: what it is, and a checksum over the row and the place it belongs to."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, TypeAlias
from zlib import crc32

from msgpack import Packer  # type: ignore[import-untyped]  # it has no stubs

from pregel.errors import DecodeError
from pregel.text import show

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["OVERHEAD", "KeyPart", "seal", "unseal"]

#: A part of the place a row belongs to.
KeyPart: TypeAlias = str | int | tuple[str, ...]

#: No msgpack value and no text begins with this byte.
MAGIC: Final = 0xC1
#: The version of the format of what is inside.
VERSION: Final = 1
#: Magic, version, half a CRC of the payload (to tell damage from a wrong place), the CRC of payload and place.
HEADER: Final = Struct("<BBHI")
#: Bytes that a seal adds.
OVERHEAD: Final = HEADER.size
#: A damaged checksum differs from the right one in few of its 32 bits; one of another place differs in many.
FEW_BITS: Final = 2

#: Packers that nobody is using, so that no two threads ever share one.
packers: list[Callable[[object], bytes]] = []


def checksum(inner: int, size: int, key: tuple[KeyPart, ...]) -> int:
    """Return the CRC of a payload and its place.

    The place follows the payload as msgpack, in which no two keys look the same, and begins with the payload's length:
    no other payload and place are the same bytes in a row.

    Args:
        inner: The CRC of the payload.
        size: The length of the payload.
        key: The place.
    """
    try:
        pack = packers.pop()
    except IndexError:
        pack = Packer(unicode_errors="surrogatepass").pack
    data = pack((size, key))
    packers.append(pack)
    return crc32(data, inner)


def seal(payload: bytes, *key: KeyPart) -> bytes:
    """Return a payload in its envelope.

    Args:
        payload: What to store.
        key: The place where it is stored: thread, branch, namespace, step, field and the like.
    """
    inner = crc32(payload)
    return HEADER.pack(MAGIC, VERSION, inner & 0xFFFF, checksum(inner, len(payload), key)) + payload


def unseal(blob: bytes, *key: KeyPart) -> bytes:
    """Return the payload of an envelope that was sealed for this place.

    Raises:
        DecodeError: It is none, is of another version, is damaged, or belongs to another place; the message says which.
    """
    try:
        magic, version, half, stored = HEADER.unpack_from(blob)
        payload = bytes(blob[OVERHEAD:])
    except Exception:  # noqa: BLE001 - whatever it is, it is no blob
        raise DecodeError(f"{show(blob)} at {key} is no row of pregel's: it is too short, or no bytes at all") from None
    if magic != MAGIC:
        raise DecodeError(f"the bytes at {key} begin with {magic:#04x}, not with {MAGIC:#04x}: they are damaged")
    if version != VERSION:
        raise DecodeError(
            f"the row at {key} has version {version} of the format, and this version of pregel reads {VERSION}: it is "
            "damaged, or a newer version wrote it"
        )
    inner = crc32(payload)
    right = checksum(inner, len(payload), key)
    same = inner & 0xFFFF == half
    if same and right == stored:
        return payload
    if same and (right ^ stored).bit_count() > FEW_BITS:
        raise DecodeError(f"the row at {key} belongs elsewhere: rows were swapped, or it was copied to another key")
    raise DecodeError(f"the row at {key} is damaged: its checksum does not fit")
