"""A process that opens a stored context, runs a graph on it, and dies in the middle of it, or holds it open.

Its arguments are the file of the store and what to do.
"""

import os
import sys

from pregel import SqliteSaver
from pregel.graph.flow.context import FlowContext
from pregel.graph.flow.flowgraph import FlowGraph
from pregel.graph.flow.keys import Key, KeySpace


class Keys(KeySpace):
    """The keys of the graph."""

    given = Key(int, "given", given=True)
    first = Key(int, "first")
    total = Key(int, "total", reducer=lambda left, right: left + right)
    highest = Key(int, "highest", reducer=max)
    last = Key(int, "last")


def graph(at_second):
    """Three activities, the second of which does this."""

    def first(ctx):
        ctx["first"] = ctx["given"] + 1
        ctx.add("total", 10)
        ctx.add("highest", 5)

    return (
        FlowGraph("g", Keys)
        .add_activity("first", first, to="second")
        .add_activity("second", at_second, to="third")
        .add_activity("third", lambda ctx: ctx.update(last=ctx["total"] + ctx["highest"]))
    )


def main(path, what):
    """Do what is asked."""
    ctx = FlowContext.open("job", SqliteSaver(path))
    ctx["given"] = 1
    if what == "die":
        graph(lambda _: os._exit(9)).run(ctx)
    sys.stdout.write("open\n")
    sys.stdout.flush()
    sys.stdin.read()  # until whoever started this lets go
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
