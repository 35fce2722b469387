"""The door of a graph: what of an input is let in, ignored or refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pregel.errors import InvalidInputError, nearest
from pregel.text import show
from pregel.types import Command
from pregel.writes import admit, fault, new_ids, prepared

if TYPE_CHECKING:
    from pregel.network import Network

__all__ = ["Door"]


@dataclass(frozen=True, slots=True)
class Door:
    """Turns the input of a run into updates."""

    network: Network
    #: Fields that an input may set.
    accepted: frozenset[str]
    #: Fields that are nobody's business outside: giving one is an error.
    private: frozenset[str]
    #: Builds the whole model from an input, where the schema validates as a whole; returns what was set.
    validate: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None

    def updates(self, given: Any, new_id: Callable[[str, int], str]) -> list[tuple[str, Any]]:
        """Return the updates that an input makes, in its order.

        Raises:
            InvalidInputError: The input is no mapping and no instance of a schema, names a field that is not
                declared or private, or gives a value of the wrong type. Nothing was run.
        """
        network = self.network
        where = f"the input of graph {network.name!r}"
        values = self.mapping(given, where)
        admitted: dict[str, Any] = {}
        for name, value in values.items():
            if name in self.accepted:
                admitted[name] = value
            elif name in self.private:
                fault(
                    network.allowed,
                    "private-input",
                    InvalidInputError,
                    f"{where} sets {name!r}, which is private: only nodes write it",
                )
            elif name in network.managed:
                raise InvalidInputError(f"{where} sets {name!r}, which the engine computes: leave it out")
            elif name not in network.fields:
                fault(
                    network.allowed,
                    "undeclared-input",
                    InvalidInputError,
                    f"{where} sets {name!r}, which no schema of the graph declares.{nearest(name, self.accepted)} "
                    f"It may set: {', '.join(sorted(self.accepted))}",
                )
        ids = new_ids(new_id, "input")
        fields = network.fields
        if self.validate is None:
            return [
                (name, admit(fields[name], value, network, where, InvalidInputError, ids))
                for name, value in admitted.items()
            ]
        try:
            admitted = dict(self.validate(admitted))
        except (TypeError, ValueError) as error:
            fault(network.allowed, "wrong-type", InvalidInputError, f"{where} does not fit its schema: {error}")
        # Checked as a whole: a validator that is asked twice could change a value twice.
        return [
            (name, prepared(fields[name], value, where, InvalidInputError, ids)) for name, value in admitted.items()
        ]

    def mapping(self, given: Any, where: str) -> Mapping[str, Any]:
        """Return an input as a mapping of what it sets.

        Raises:
            InvalidInputError: It is neither a mapping nor an instance of a schema.
        """
        if isinstance(given, Mapping):
            return given
        if given is None:
            raise InvalidInputError(
                f"{where} is None, which continues a stored run, and nothing is stored: give a mapping"
            )
        if isinstance(given, Command):
            raise InvalidInputError(
                f"{where} is a Command, which steers a stored run, and nothing is stored: give a mapping"
            )
        instance = self.network.updates_of(given)
        if instance is None:
            raise InvalidInputError(f"{where} is {show(given)}: give a mapping of fields, or an instance of its schema")
        return instance
