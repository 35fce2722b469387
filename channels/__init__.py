"""Channels: a cell of state and its update rule.

A channel is an immutable rule that all runs share; a run's state is a mapping from a field's name to its value.
"""

from pregel.channels.aggregate import BinaryOperatorAggregate, Overwrite
from pregel.channels.barrier import NamedBarrierValue
from pregel.channels.base import MISSING, Channel
from pregel.channels.ephemeral import EphemeralValue
from pregel.channels.keyed import DELETE, KeyedValue
from pregel.channels.last_value import AnyValue, LastValue, UntrackedValue
from pregel.channels.topic import Topic

__all__ = [
    "DELETE",
    "MISSING",
    "AnyValue",
    "BinaryOperatorAggregate",
    "Channel",
    "EphemeralValue",
    "KeyedValue",
    "LastValue",
    "NamedBarrierValue",
    "Overwrite",
    "Topic",
    "UntrackedValue",
]
