"""What the nodes of one graph have returned, in a cache: under which keys, and as which bytes."""

from __future__ import annotations

import warnings
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, Protocol

from pregel.cache.base import BaseCache
from pregel.cache.identity import identity
from pregel.checkpoint.record import pack_task, unpack_task
from pregel.codec import seal, unseal
from pregel.errors import DecodeError, EncodeError, InvalidConfigError, PregelWarning, nearest
from pregel.task import Writes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pregel.codec import Codec
    from pregel.network import Network
    from pregel.node import Node
    from pregel.types import Command

__all__ = ["Results", "read_cache"]

SIZE: Final = 32


class Form(Protocol):
    """How a graph's values become bytes."""

    network: Network
    #: A digest of each node's code, by its name, once it was asked for.
    identities: dict[str, bytes]

    @property
    def codec(self) -> Codec:
        """What encodes what nodes are given and return."""


class Results:
    """The results of a graph's nodes. The namespace of a node is the graph's name and its own.

    Args:
        cache: Keeps the bytes.
        form: How they are made.
    """

    def __init__(self, cache: BaseCache, form: Form) -> None:
        self.cache = cache
        self.network = form.network
        self.form = form

    @property
    def blocking(self) -> bool:
        """Whether `get` and `put` may wait for a disk or a network."""
        return self.cache.blocking

    def key(self, node: Node, given: Any) -> str:
        """Return the key of a result: two nodes never have the same, nor one node for two things that it is given.

        Args:
            node: The node.
            given: What tells what it is given from other things; the order of a mapping's keys does not.

        Raises:
            EncodeError: It can't be stored, so that nothing can be told by it; names the node.
        """
        codec, identities = self.form.codec, self.form.identities
        known = identities.get(node.name)
        if known is None:
            known = identities.setdefault(node.name, identity(node.code, codec))
        if type(given) is dict and all(type(name) is str for name in given):
            given = ("state", sorted(given.items(), key=first))
        try:
            data = codec.encode(given, "input")
        except EncodeError as error:
            raise EncodeError(
                f"node {node.name!r} of graph {self.network.name!r} has a cache policy, and what it is given makes no "
                f"key: {error}. Let `key_func` of the policy return what its result depends on, or let the node read "
                "less, by input_schema="
            ) from error
        digest = blake2b(digest_size=SIZE)
        for part in (self.network.name.encode("utf-8", "surrogatepass"), node.name.encode(), known, data):
            digest.update(len(part).to_bytes(8))
            digest.update(part)
        return digest.hexdigest()

    def get(self, node: Node, key: str) -> list[Command[Any]] | None:
        """Return the commands that make the same as an earlier result, or None if there is none.

        What can't be read, because a class is no longer registered or bytes are damaged, is told as a warning and
        counts as absent: the node runs again, and its result takes that place.
        """
        place = (self.network.name, node.name)
        blob = self.cache.get(place, key)
        if blob is None:
            return None
        try:
            commands: Any = unpack_task(unseal(blob, *place, key), self.form.codec).outcome
        except DecodeError as error:
            message = (
                f"a cached result of node {node.name!r} of graph {self.network.name!r} can't be read, so the node runs "
                f"again: {error}"
            )
            warnings.warn(message, PregelWarning, stacklevel=2)
            return None
        return list(commands.escapes)

    def put(self, node: Node, key: str, commands: Iterable[Command[Any]], ttl: float | None) -> None:
        """Keep a result, as commands that make the same.

        Raises:
            EncodeError: A value in it can't be stored; names the node and the path.
        """
        place = (self.network.name, node.name)
        try:
            data = pack_task(Writes(escapes=tuple(commands)), {}, self.form.codec)
        except EncodeError as error:
            raise EncodeError(
                f"node {node.name!r} of graph {self.network.name!r} has a cache policy, and its result can't be kept: "
                f"{error}"
            ) from error
        self.cache.put(place, key, seal(data, *place, key), ttl)

    def clear(self, nodes: Iterable[str] | None = None) -> None:
        """Forget results of these nodes, or of all.

        Raises:
            InvalidConfigError: One is no node.
        """
        name = self.network.name
        if nodes is None:
            self.cache.clear((name,))
            return
        names = [nodes] if isinstance(nodes, str) else list(nodes)
        for node in names:
            if node not in self.network.nodes:
                raise InvalidConfigError(
                    f"clear_cache of graph {name!r} names {node!r}, which is no node."
                    f"{nearest(node, self.network.nodes)} Nodes: {', '.join(self.network.nodes)}"
                )
        for node in names:
            self.cache.clear((name, node))


def first(pair: tuple[str, Any]) -> str:
    """Return the key of a mapping's item."""
    return pair[0]


def read_cache(cache: Any, graph: str) -> BaseCache | None:
    """Check where results are to be kept.

    Raises:
        InvalidConfigError: It is no cache.
    """
    if cache is not None and not isinstance(cache, BaseCache):
        raise InvalidConfigError(
            f"cache of graph {graph!r} takes a BaseCache such as InMemoryCache() or SqliteCache('cache.sqlite'), or "
            f"None, not {cache!r}"
        )
    return cache
