"""What the nodes of one graph have returned, in a cache: under which keys, and as which bytes."""

from __future__ import annotations

import warnings
from hashlib import blake2b
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Protocol

from pregel.cache.base import BaseCache
from pregel.cache.identity import identity
from pregel.checkpoint.record import pack_task, unpack_task
from pregel.codec import seal, unseal
from pregel.errors import DecodeError, EncodeError, InvalidConfigError, PregelWarning, nearest
from pregel.task import Writes
from pregel.text import told

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
    #: A digest of each node's code and of its policy's, by its name, once it was asked for.
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

    def key(self, node: Node, given: Any, *, built: bool = False) -> str:
        """Return the key of a result: two nodes never have the same, nor one node for two things that it is given.

        Args:
            node: The node.
            given: What tells what it is given from other things; the order of a mapping's keys does not.
            built: Whether the node is given an instance of its schema that is built from that.

        Raises:
            EncodeError: It can't be stored, so that nothing can be told by it; names the node.
        """
        named = type(given) is dict and all(type(name) is str for name in given)
        if named:
            given = sorted(given.items(), key=itemgetter(0))
        try:
            data = self.form.codec.encode(given, "input")
        except EncodeError as error:
            raise EncodeError(
                f"node {node.name!r} of graph {self.network.name!r} has a cache policy, and what it is given makes no "
                f"key: {error}. Let `key_func` of the policy return what its result depends on, or let the node read "
                "less, by input_schema="
            ) from error
        digest = blake2b(digest_size=SIZE)
        names = (name.encode("utf-8", "surrogatepass") for name in (self.network.name, node.name))
        for part in (*names, self.identity_of(node), b"built" if built else b"named" if named else b"value", data):
            digest.update(len(part).to_bytes(8))
            digest.update(part)
        return digest.hexdigest()

    def identity_of(self, node: Node) -> bytes:
        """Return what tells a node's code from that of others: found out once for each compiled graph."""
        identities = self.form.identities
        known = identities.get(node.name)
        if known is None:
            cache = None if node.policy is None else node.policy.cache
            asks = None if cache is None else cache.key_func
            digest = identity((node.code.call, node.code.acall, asks), self.form.codec)
            known = identities.setdefault(node.name, digest)
        return known

    def get(self, node: Node, key: str) -> list[Command[Any]] | None:
        """Return the commands that make the same as an earlier result, or None if there is none.

        What can't be read, because a class is no longer registered, bytes are damaged or the cache is out of reach, is
        told as a warning and counts as absent: the node runs again, and its result takes that place.
        """
        place = (self.network.name, node.name)
        try:
            blob = self.cache.get(place, key)
        except Exception as error:  # noqa: BLE001 - whatever stands behind a cache, runs go on without it
            self._warn(node, "can't be looked up, so the node runs", error)
            return None
        if blob is None:
            return None
        try:
            return commands_of(unseal(blob, *place, key), self.form.codec)
        except DecodeError as error:
            self._warn(node, "can't be read, so the node runs again", error)
            return None

    def put(self, node: Node, key: str, commands: Iterable[Command[Any]], ttl: float | None) -> None:
        """Keep a result, as commands that make the same. A cache that does not take it is told as a warning.

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
        try:
            self.cache.put(place, key, seal(data, *place, key), ttl)
        except Exception as error:  # noqa: BLE001 - as above: what the node has done is not lost for that
            self._warn(node, "can't be kept, so the node runs again next time", error)

    def _warn(self, node: Node, what: str, error: Exception) -> None:
        """Tell that the cache is of no use for a result."""
        message = f"a cached result of node {node.name!r} of graph {self.network.name!r} {what}: {told(error)}"
        warnings.warn(message, PregelWarning, stacklevel=3)

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


def commands_of(data: bytes, codec: Codec) -> list[Command[Any]]:
    """Return the commands that `Results.put` has stored.

    Raises:
        DecodeError: These bytes are something else.
    """
    outcome = unpack_task(data, codec).outcome
    if not isinstance(outcome, Writes):
        raise DecodeError("its bytes tell of a task without a result")
    return list(outcome.escapes)


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
