"""What tells two versions of a graph apart, where runs of one may go on in the other."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pregel.network import Network

__all__ = ["fingerprint"]


def fingerprint(network: Network) -> str:
    """Return 16 hexadecimal digits that change with a graph's nodes, edges and channels, and with nothing else.

    What nodes do is no part of it: code changes while runs are paused, and that is what they are paused for.
    """
    described = {
        "channels": {name: type(field.channel).__name__ for name, field in network.fields.items()},
        "nodes": {
            node.name: {
                "targets": node.targets,
                "branches": [[branch.code.name, branch.targets] for branch in node.branches],
                "joins": [join.name for join in node.joins],
                "defer": node.defer,
            }
            for node in (network.start, *network.nodes.values())
        },
        "triggers": network.triggers,
    }
    text = json.dumps(described, default=dict, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
