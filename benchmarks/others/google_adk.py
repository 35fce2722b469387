"""google-adk: a workflow of function nodes under the in-memory runner, a session a run; async only."""

from collections.abc import Callable
from typing import Any

from google.adk.events.event import Event
from google.adk.runners import InMemoryRunner
from google.adk.workflow import START, FunctionNode, JoinNode, Workflow
from google.genai import types

from benchmarks.model import Prepared, equals

_USER = "user"


async def _read(node_input: str) -> int:
    return int(node_input)


async def _read_and_add_one(node_input: str) -> int:
    return int(node_input) + 1


async def _add_one(node_input: int) -> int:
    return node_input + 1


async def _give(node_input: int) -> int:
    return node_input


async def _total(node_input: dict[str, int]) -> int:
    return sum(node_input.values())


def _prepared(edges: list[Any], given: int, units: int, answer: int) -> Prepared:
    runner = InMemoryRunner(node=Workflow(name="benchmark", edges=edges))
    sessions = runner.session_service
    # A run's input is what a user says.
    message = types.Content(role="user", parts=[types.Part(text=str(given))])

    async def call() -> Any:
        session = await sessions.create_session(app_name=runner.app_name, user_id=_USER)
        output = None
        async for event in runner.run_async(user_id=_USER, session_id=session.id, new_message=message):
            output = event.output if event.output is not None else output
        # The service keeps what every run did: without this, later runs would pay for earlier ones.
        await sessions.delete_session(app_name=runner.app_name, user_id=_USER, session_id=session.id)
        return output

    return Prepared(call=call, units=units, check=equals(answer), loop="asyncio")


def chain(n: int) -> Prepared:
    nodes = [FunctionNode(func=_add_one if i else _read_and_add_one, name=f"n{i}") for i in range(n)]
    return _prepared([(START, *nodes)], 0, n, n)


def loop(steps: int) -> Prepared:
    async def count(node_input: int) -> Event:
        n = node_input + 1
        return Event(output=n, route="again" if n < steps else "stop")

    read, step, stop = (
        FunctionNode(func=function, name=name) for function, name in ((_read, "read"), (count, "step"), (_give, "stop"))
    )
    return _prepared([(START, read, step), (step, {"again": step, "stop": stop})], 0, steps, steps)


def fanout(width: int) -> Prepared:
    def worker(index: int) -> Callable[..., Any]:
        async def work(node_input: int) -> int:
            return node_input * index

        return work

    source, total = FunctionNode(func=_read_and_add_one, name="source"), FunctionNode(func=_total, name="total")
    workers = tuple(FunctionNode(func=worker(index), name=f"w{index}") for index in range(width))
    edges = [(START, source, workers, JoinNode(name="join"), total)]
    return _prepared(edges, 1, width, sum(2 * i for i in range(width)))
