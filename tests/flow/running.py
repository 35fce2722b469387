"""Runs of flow graphs in the three ways, for the tests of this folder."""

from functools import wraps

from pregel.graph.flow import FlowGraph


def chain(*functions, name="g", **options):
    """Return a graph that calls functions one after the other, as the nodes n1, n2, and so on."""
    graph = FlowGraph(name, **options)
    for number, function in enumerate(functions, 1):
        graph.add_activity(f"n{number}", function, to=f"n{number + 1}" if number < len(functions) else None)
    return graph


def run(door, graph, ctx, **options):
    """Run a graph on a context."""
    if door.way == "sync":
        return graph.run(ctx, **options)

    async def main():
        return await graph.arun(ctx, **options)

    return door.run(main)


def resume(door, graph, ctx, *answer, **options):
    """Go on with an unfinished run."""
    if door.way == "sync":
        return graph.resume(ctx, *answer, **options)

    async def main():
        return await graph.aresume(ctx, *answer, **options)

    return door.run(main)


def nodes(ctx, status="done"):
    """Return the nodes that ran, in order."""
    return [visit.node for visit in ctx.trace if visit.status == status]


def both(function, *, awaits):
    """Return a function of a context as it is, or as an async one."""
    if not awaits:
        return function

    @wraps(function)
    async def wrapped(*arguments):
        return function(*arguments)

    return wrapped
