"""agent-framework: executors that send messages in supersteps; async only, and a workflow runs once at a time."""

from logging import ERROR, getLogger
from typing import Any, Never

from agent_framework import Case, Default, FunctionExecutor, Workflow, WorkflowBuilder, WorkflowContext

from benchmarks.model import Prepared, equals

#: Supersteps beyond the nodes themselves.
_SPARE = 10
# It warns of every loop in a graph.
getLogger("agent_framework").setLevel(ERROR)


async def _add_one(n: int, ctx: WorkflowContext[int]) -> None:
    await ctx.send_message(n + 1)


async def _add_last(n: int, ctx: WorkflowContext[Never, int]) -> None:
    await ctx.yield_output(n + 1)


async def _give(n: int, ctx: WorkflowContext[Never, int]) -> None:
    await ctx.yield_output(n)


async def _total(products: list[int], ctx: WorkflowContext[Never, int]) -> None:
    await ctx.yield_output(sum(products))


def _prepared(workflow: Workflow, given: int, units: int, answer: int) -> Prepared:
    async def call() -> list[Any]:
        return (await workflow.run(given)).get_outputs()

    return Prepared(call=call, units=units, check=equals([answer]), loop="asyncio")


def chain(n: int) -> Prepared:
    nodes = [FunctionExecutor(_add_one if i < n - 1 else _add_last, id=f"n{i}") for i in range(n)]
    builder = WorkflowBuilder(max_iterations=n + _SPARE, start_executor=nodes[0])
    return _prepared(builder.add_chain(nodes).build(), 0, n, n)


def loop(steps: int) -> Prepared:
    step, stop = FunctionExecutor(_add_one, id="step"), FunctionExecutor(_give, id="stop")
    routes = [Case(condition=lambda n: n < steps, target=step), Default(target=stop)]
    builder = WorkflowBuilder(max_iterations=steps + _SPARE, start_executor=step)
    return _prepared(builder.add_switch_case_edge_group(step, routes).build(), 0, steps, steps)


def fanout(width: int) -> Prepared:
    def worker(index: int) -> FunctionExecutor:
        async def work(x: int, ctx: WorkflowContext[int]) -> None:
            await ctx.send_message(x * index)

        return FunctionExecutor(work, id=f"w{index}")

    source, join = FunctionExecutor(_add_one, id="source"), FunctionExecutor(_total, id="join")
    workers = [worker(index) for index in range(width)]
    builder = WorkflowBuilder(start_executor=source)
    workflow = builder.add_fan_out_edges(source, workers).add_fan_in_edges(workers, join).build()
    return _prepared(workflow, 1, width, sum(2 * i for i in range(width)))
