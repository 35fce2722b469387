"""The keys of the tests of keys."""

import operator
from dataclasses import dataclass
from typing import Literal

from pregel.graph.flow import Key, KeySpace


@dataclass
class Order:
    id: str


class Keys(KeySpace):
    question = Key(str, "input.question", given=True)
    order = Key(Order, "order")
    risk = Key(str, "analysis.risk", writers=["risk"])
    level = Key(Literal["HIGH", "LOW"], "route.level")
    notes = Key(list[str], "notes", reducer=operator.add)
