"""A flow as a user writes it: `mypy --strict` accepts it and knows the types of keys."""

from typing import Any, Literal, assert_type

from pregel.graph.flow import FlowContext, FlowGraph, FlowNode, Key, KeySpace, Outcome


class Keys(KeySpace):
    risk = Key(str, "analysis.risk", writers=["rate"])
    level: Key[Literal["HIGH", "LOW"]] = Key(Literal["HIGH", "LOW"], "route.level")
    votes = Key(list[int], "votes", reducer=lambda left, right: [*left, *right])


def rate(ctx: FlowContext, node: FlowNode) -> None:
    ctx[Keys.risk] = node.name
    ctx["flat.key"] = 2
    ctx.add(Keys.votes, [1])


async def tell(ctx: FlowContext) -> None:
    ctx.stop(ctx[Keys.risk])


ctx = FlowContext("job", a=1)
assert_type(ctx[Keys.risk], str)
assert_type(ctx[Keys.level], Literal["HIGH", "LOW"])
assert_type(ctx[Keys.votes], list[int])
assert_type(ctx["a"], Any)
assert_type(ctx.get(Keys.risk), str | None)
assert_type(ctx.get(Keys.risk, 0), str | int)
assert_type(ctx.get("a"), Any)
graph = FlowGraph("g", keys=Keys).add_activity("rate", rate, to="gate", writes=[Keys.risk])
graph.add_exclusive("gate", [(lambda c: c[Keys.risk] == "x", "tell")], default="tell").add_activity("tell", tell)
assert_type(graph.run(ctx), Outcome)
