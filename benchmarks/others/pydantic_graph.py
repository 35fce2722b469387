"""pydantic-graph: steps that hand their output to the next one; async only."""

from collections.abc import Callable
from functools import partial
from typing import Any

from pydantic_graph import GraphBuilder, StepContext, reduce_list_append

from benchmarks.model import Prepared, equals


def _builder() -> Any:
    return GraphBuilder(input_type=int, output_type=int, auto_instrument=False)


async def _add_one(ctx: StepContext[None, None, int]) -> int:
    return ctx.inputs + 1


def chain(n: int) -> Prepared:
    builder = _builder()
    last = builder.start_node
    for index in range(n):
        step = builder.step(_add_one, node_id=f"n{index}")
        builder.add_edge(last, step)
        last = step
    builder.add_edge(last, builder.end_node)
    return Prepared(call=partial(builder.build().run, inputs=0), units=n, check=equals(n), loop="asyncio")


def loop(steps: int) -> Prepared:
    builder = _builder()
    step = builder.step(_add_one, node_id="step")
    route = (
        builder.decision()
        .branch(builder.match(int, matches=lambda n: n < steps).to(step))
        .branch(builder.match(int).to(builder.end_node))
    )
    builder.add_edge(builder.start_node, step)
    builder.add_edge(step, route)
    return Prepared(call=partial(builder.build().run, inputs=0), units=steps, check=equals(steps), loop="asyncio")


def fanout(width: int) -> Prepared:
    def worker(index: int) -> Callable[..., Any]:
        async def work(ctx: StepContext[None, None, int]) -> int:
            return ctx.inputs * index

        return work

    async def source(ctx: StepContext[None, None, int]) -> int:
        return ctx.inputs + 1

    async def total(ctx: StepContext[None, None, list[int]]) -> int:
        return sum(ctx.inputs)

    builder = _builder()
    first, last = builder.step(source, node_id="source"), builder.step(total, node_id="join")
    workers = [builder.step(worker(index), node_id=f"w{index}") for index in range(width)]
    join = builder.join(reduce_list_append, initial_factory=list)
    builder.add_edge(builder.start_node, first)
    builder.add(builder.edge_from(first).to(*workers), builder.edge_from(*workers).to(join))
    builder.add_edge(join, last)
    builder.add_edge(last, builder.end_node)
    call = partial(builder.build().run, inputs=1)
    return Prepared(call=call, units=width, check=equals(sum(2 * i for i in range(width))), loop="asyncio")
