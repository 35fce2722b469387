"""How a compiled graph is stored, and how one run of it is: what `compile` and a run were told."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, get_args

from pregel.errors import InvalidConfigError, MissingCheckpointerError, nearest
from pregel.fingerprint import fingerprint
from pregel.ids import check_id, check_labels
from pregel.types import Durability, GroupCommit, Migration, OnBusy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pregel.checkpoint.base import Checkpointer, Namespace
    from pregel.codec import Codec
    from pregel.network import Network
    from pregel.store.base import BaseStore

__all__ = ["UNSTORED", "Address", "Persistence", "read_address", "read_persistence", "saver_of"]

# Characters of a label: it names a node twice, and a superstep.
LABEL_LIMIT: Final = 2_048
DURABILITIES: Final[tuple[str, ...]] = get_args(Durability)
ON_BUSY: Final[tuple[str, ...]] = get_args(OnBusy)
# At most 18 digits: what a database holds.
CHECKPOINT_ID: Final = re.compile(r"([0-9]{1,18})\.([0-9]{1,18})")
Breaks = tuple[frozenset[str], frozenset[str]]


class Format:
    """How a graph's values become bytes, worked out when something is stored for the first time.

    Args:
        network: The graph.
        types: Gives the types that the graph's schemas name.
    """

    def __init__(self, network: Network, types: Callable[[], Iterable[type]]) -> None:
        self.network = network
        self.types = types
        #: What tells the code of a node from that of others, by its name, once a cache has asked.
        self.identities: dict[str, bytes] = {}

    @cached_property
    def codec(self) -> Codec:
        """What encodes the values of the graph's fields."""
        from pregel.codec import Codec  # noqa: PLC0415 - graphs that store nothing do not load it

        return Codec(self.types())

    @cached_property
    def fingerprint(self) -> str:
        """What tells this version of the graph from others."""
        return fingerprint(self.network)


@dataclass(frozen=True, slots=True)
class Persistence:
    """What a graph's runs are stored with."""

    #: Where; True for a history of its own inside the graph around it, None for what that one does, False for nowhere.
    checkpointer: Checkpointer | bool | None = None
    #: How; None in a graph of which nobody asks.
    format: Format | None = None
    durability: Durability | GroupCommit = "sync"
    on_busy: OnBusy = "reject"
    #: The nodes before which, and after which, a run stops.
    breakpoints: Breaks | None = None
    migrations: tuple[Migration, ...] = ()
    #: Long-term memory.
    store: BaseStore | None = None
    #: Where results of nodes are kept for later runs.
    cache: Any = None
    #: The child graphs, by the node that runs them.
    children: Mapping[str, Any] = field(default_factory=dict)

    def stored_in(self, saver: Checkpointer) -> Persistence:
        """Return the same, stored there: for a graph that is stored by the one around it."""
        return replace(self, checkpointer=saver, durability="sync", breakpoints=None)

    def for_run(
        self,
        network: Network,
        durability: Any,
        on_busy: Any,
        before: Sequence[str] | str | None,
        after: Sequence[str] | str | None,
    ) -> Persistence:
        """Return the same with what one run was told.

        Raises:
            InvalidConfigError: An option is unknown.
        """
        told: dict[str, Any] = {}
        if durability is not None:
            told["durability"] = read_durability(durability)
        if on_busy is not None:
            told["on_busy"] = read_on_busy(on_busy)
        if before is not None or after is not None:
            told["breakpoints"] = read_breakpoints(network, before, after)
        return replace(self, **told) if told else self


#: What a graph has that was told nothing.
UNSTORED: Final = Persistence()


@dataclass(frozen=True, slots=True)
class Address:
    """What of a store a config names."""

    thread_id: str
    #: Branch and step; None for the newest.
    checkpoint: tuple[int, int] | None = None
    #: The path to a graph inside the outermost one.
    namespace: Namespace = ()

    def config(self, branch: int, step: int) -> dict[str, Any]:
        """Return the config that names a checkpoint of this thread and namespace."""
        configurable: dict[str, Any] = {"thread_id": self.thread_id, "checkpoint_id": f"{branch}.{step}"}
        if self.namespace:
            configurable["checkpoint_ns"] = self.namespace
        return {"configurable": configurable}


def read_address(config: Mapping[str, Any], graph: str) -> Address:
    """Return what of a store a checked config names.

    Raises:
        InvalidConfigError: It names no thread, or a checkpoint that can't be one.
        InvalidIdError: A name can't be one.
    """
    configurable = config["configurable"]
    thread_id = configurable.get("thread_id")
    if thread_id is None:
        raise InvalidConfigError(
            f"graph {graph!r} is stored, and the config does not say under which name: give config={{'configurable': "
            "{'thread_id': ...}}"
        )
    checkpoint = configurable.get("checkpoint_id")
    namespace = configurable.get("checkpoint_ns") or ()
    return Address(
        check_id(thread_id, "config['configurable']['thread_id']"),
        None if checkpoint is None else read_checkpoint_id(checkpoint),
        check_labels(namespace, "config['configurable']['checkpoint_ns']", LABEL_LIMIT),
    )


def read_checkpoint_id(value: Any) -> tuple[int, int]:
    """Return branch and step.

    Raises:
        InvalidConfigError: The text does not name them.
    """
    found = CHECKPOINT_ID.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise InvalidConfigError(
            "config['configurable']['checkpoint_id'] takes the id that a snapshot's config has, branch and step such "
            f"as '0.3', not {value!r}"
        )
    return int(found[1]), int(found[2])


def read_durability(value: Any) -> Durability | GroupCommit:
    """Check when commits shall be written.

    Raises:
        InvalidConfigError: There is no such durability.
    """
    if isinstance(value, GroupCommit):
        if type(value.steps) is not int or not isinstance(value.milliseconds, (int, float)):
            raise InvalidConfigError(f"{value!r}: steps is a whole number, and milliseconds a number")
        if value.steps < 1 or not 0 < value.milliseconds < math.inf:
            raise InvalidConfigError(f"{value!r} allows nothing to wait, or for ever: durability='sync' waits for each")
        return value
    if value not in DURABILITIES:
        raise InvalidConfigError(
            f"durability takes {', '.join(map(repr, DURABILITIES))} or a GroupCommit, not {value!r}."
            f"{nearest(value, DURABILITIES)}"
        )
    return value  # type: ignore[no-any-return]  # one of them


def read_on_busy(value: Any) -> OnBusy:
    """Check what a run shall do whose thread is taken.

    Raises:
        InvalidConfigError: It is neither "reject" nor "wait".
    """
    if value not in ON_BUSY:
        raise InvalidConfigError(
            f"on_busy takes {' or '.join(map(repr, ON_BUSY))}, not {value!r}.{nearest(value, ON_BUSY)}"
        )
    return value  # type: ignore[no-any-return]  # one of them


def read_breakpoints(
    network: Network, before: Sequence[str] | str | None, after: Sequence[str] | str | None
) -> Breaks | None:
    """Return the nodes at which a run stops; "*" stands for all.

    Raises:
        InvalidConfigError: One is no node.
    """
    found = []
    for option, given in (("interrupt_before", before), ("interrupt_after", after)):
        names = () if given is None else (given,) if isinstance(given, str) else tuple(given)
        for name in names:
            if name != "*" and name not in network.nodes:
                raise InvalidConfigError(
                    f"{option} of graph {network.name!r} names {name!r}, which is no node."
                    f"{nearest(name, network.nodes)} Nodes: {', '.join(network.nodes)}"
                )
        found.append(frozenset(names))
    return (found[0], found[1]) if any(found) else None


def read_persistence(
    network: Network,
    *,
    checkpointer: Any,
    types: Callable[[], Iterable[type]],
    durability: Any,
    on_busy: Any,
    interrupt_before: Sequence[str] | str | None,
    interrupt_after: Sequence[str] | str | None,
    migrations: Migration | Sequence[Migration],
    store: Any,
    children: Mapping[str, Any],
    cache: Any = None,
) -> Persistence:
    """Return what a graph's runs are stored with, checked.

    Raises:
        InvalidConfigError: An option is none.
    """
    from pregel.checkpoint.base import Checkpointer  # noqa: PLC0415 - graphs that store nothing do not load it

    if not (checkpointer is None or isinstance(checkpointer, (bool, Checkpointer))):
        raise InvalidConfigError(
            f"checkpointer of graph {network.name!r} takes a Checkpointer such as SqliteSaver('runs.sqlite'), True, "
            f"False or None, not {checkpointer!r}"
        )
    if store is not None:
        from pregel.store.base import BaseStore  # noqa: PLC0415 - as above

        if not isinstance(store, BaseStore):
            raise InvalidConfigError(
                f"store of graph {network.name!r} takes a BaseStore such as SqliteStore('memory.sqlite') or None, not "
                f"{store!r}"
            )
    if cache is not None:
        from pregel.cache.results import read_cache  # noqa: PLC0415 - as above

        read_cache(cache, network.name)
    several = (migrations,) if isinstance(migrations, Migration) else tuple(migrations)
    for each in several:
        if not isinstance(each, Migration):
            raise InvalidConfigError(f"migrations of graph {network.name!r} takes Migrations, not {each!r}")
        for name in each.nodes.values():
            if name not in network.nodes:
                raise InvalidConfigError(
                    f"a migration of graph {network.name!r} renames a node to {name!r}, which is no node."
                    f"{nearest(name, network.nodes)}"
                )
    return Persistence(
        checkpointer,
        Format(network, types),
        read_durability(durability),
        read_on_busy(on_busy),
        read_breakpoints(network, interrupt_before, interrupt_after),
        several,
        store,
        cache,
        children,
    )


def saver_of(persistence: Persistence, graph: str) -> Checkpointer:
    """Return where a graph is stored.

    Raises:
        MissingCheckpointerError: Nowhere that it knows of.
    """
    saver = persistence.checkpointer
    if saver is None or isinstance(saver, bool):
        raise MissingCheckpointerError(
            f"graph {graph!r} was compiled without a checkpointer, so it has no stored state: compile(checkpointer=...)"
        )
    return saver
