"""What a cache is: bytes by namespace and key, which may be gone at any time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

__all__ = ["BaseCache", "Namespace"]

#: Labels, outermost first: the names of a graph and of a node.
Namespace = tuple[str, ...]


class BaseCache(ABC):
    """Keeps bytes. Every method may be called from any thread.

    What is kept is of the library's codec: reading it runs nothing that the bytes say.
    """

    #: Whether its methods may wait for a disk or a network.
    blocking: ClassVar[bool] = True

    @abstractmethod
    def get(self, namespace: Namespace, key: str) -> bytes | None:
        """Return what is kept, or None if nothing is, or no longer."""

    @abstractmethod
    def put(self, namespace: Namespace, key: str, value: bytes, ttl: float | None = None) -> None:
        """Keep bytes, in place of those that were kept.

        Args:
            namespace: Where.
            key: Under which name there.
            value: What.
            ttl: For how many seconds; None for ever.
        """

    @abstractmethod
    def clear(self, namespace: Namespace = ()) -> None:
        """Forget what is kept under a namespace and those that begin with it; by default everything."""
