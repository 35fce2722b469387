"""llama-index-workflows: steps that take an event of a class and return one of another; async only.

An edge is a class here, so a graph whose size is known only now makes its classes and its steps' signatures by hand.
"""

import operator
from collections.abc import Callable
from functools import partial, reduce
from itertools import pairwise
from typing import Any

from workflows import Workflow, step
from workflows.events import Event, StartEvent, StopEvent

from benchmarks.model import Prepared, equals


class _Number(Event):
    n: int


class _Product(Event):
    n: int


def _add_step(workflow: type[Workflow], name: str, function: Callable[..., Any], takes: Any, gives: Any) -> None:
    function.__name__ = function.__qualname__ = name
    function.__annotations__ = {"event": takes, "return": gives}
    step(workflow=workflow)(function)


def chain(n: int) -> Prepared:
    class Chain(Workflow):
        pass

    events = [StartEvent, *(type(f"Number{i}", (_Number,), {}) for i in range(1, n)), StopEvent]

    def node(gives: type[Event]) -> Callable[..., Any]:
        async def add_one(event: Any) -> Event:
            return gives(result=event.n + 1) if gives is StopEvent else gives(n=event.n + 1)

        return add_one

    for index, (takes, gives) in enumerate(pairwise(events)):
        _add_step(Chain, f"n{index}", node(gives), takes, gives)
    return Prepared(call=_run(Chain, n=0), units=n, check=equals(n), loop="asyncio")


def loop(steps: int) -> Prepared:
    class Loop(Workflow):
        pass

    async def add_one(event: Any) -> Event:
        n = event.n + 1
        return _Number(n=n) if n < steps else StopEvent(result=n)

    _add_step(Loop, "step", add_one, StartEvent | _Number, _Number | StopEvent)
    return Prepared(call=_run(Loop, n=0), units=steps, check=equals(steps), loop="asyncio")


def fanout(width: int) -> Prepared:
    class Fan(Workflow):
        pass

    events = [type(f"Number{i}", (_Number,), {}) for i in range(width)]

    async def source(event: Any) -> list[Event]:
        return [each(n=event.n + 1) for each in events]

    def worker(index: int) -> Callable[..., Any]:
        async def work(event: Any) -> _Product:
            return _Product(n=event.n * index)

        return work

    async def join(event: Any) -> StopEvent:
        return StopEvent(result=sum(product.n for product in event))

    _add_step(Fan, "source", source, StartEvent, list[reduce(operator.or_, events)])
    for index, each in enumerate(events):
        _add_step(Fan, f"w{index}", worker(index), each, _Product)
    _add_step(Fan, "join", join, list[_Product], StopEvent)
    answer = sum(2 * i for i in range(width))
    return Prepared(call=_run(Fan, n=1), units=width, check=equals(answer), loop="asyncio")


def _run(workflow: type[Workflow], **given: int) -> Callable[[], Any]:
    made = workflow(timeout=None)

    # `run` gives a handle, which only a coroutine can await together with others.
    async def call(run: Callable[[], Any]) -> Any:
        return await run()

    return partial(call, partial(made.run, **given))
