"""Any graph without loops: each node that is led to runs once, with what those gave that led to it."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pregel import InMemorySaver
from pregel.graph.workflow import Edge, Workflow, node
from pregel.graph.workflow.folding import fold_events
from tests.conftest import Door
from tests.workflow.kit import thread


@st.composite
def graphs(draw):
    """Sources and routes: for each node the nodes before it (-1 is START), and for each node whom it leads to."""
    size = draw(st.integers(1, 8))
    sources = [
        sorted(draw(st.sets(st.integers(-1, number - 1), min_size=1, max_size=3))) if number else [-1]
        for number in range(size)
    ]
    routed = [draw(st.booleans()) for _ in range(size)]
    targets = [[number for number in range(size) if source in sources[number]] for source in range(size)]
    taken = [
        sorted(draw(st.sets(st.sampled_from(leads), min_size=1))) if leads and routed[source] else leads
        for source, leads in enumerate(targets)
    ]
    is_async = [draw(st.booleans()) for _ in range(size)]
    return sources, taken, [bool(routed[source] and targets[source]) for source in range(size)], is_async


def made(name, taken, is_routed, is_async, ran):
    """A node that notes its input and gives its name."""

    def function(ctx, node_input):
        ran.setdefault(name, []).append(node_input)
        ctx.state[name] = len(ran[name])
        if is_routed:
            ctx.route = [f"n{target}" for target in taken]
        return name

    async def coroutine(ctx, node_input):
        return function(ctx, node_input)

    return node(coroutine if is_async else function, name=name)


def expected(sources, taken):
    """What each node gets that runs."""
    gets = {}
    for number, before in enumerate(sources):
        came = {}
        for source in before:
            if source == -1:
                came["START"] = "in"
            elif f"n{source}" in gets and number in taken[source]:
                came[f"n{source}"] = f"n{source}"
        if came:
            gets[f"n{number}"] = came if len(came) > 1 else next(iter(came.values()))
    return gets


@settings(max_examples=60)
@given(graphs(), st.sampled_from(["sync", "asyncio", "trio"]))
def test_each_node_runs_once_with_what_led_to_it(graph, way):
    sources, taken, routed, is_async = graph
    ran = {}
    nodes = [made(f"n{number}", taken[number], routed[number], is_async[number], ran) for number in range(len(sources))]
    edges = [
        Edge(
            "START" if source == -1 else nodes[source],
            nodes[number],
            route=f"n{number}" if source >= 0 and routed[source] else None,
        )
        for number, before in enumerate(sources)
        for source in before
    ]
    compiled = Workflow("w", edges).compile(InMemorySaver())
    for turn in (1, 2):
        ran.clear()
        result = Door(way).invoke(compiled, {"node_input": "in"}, thread())
        gets = expected(sources, taken)
        assert ran == {name: [value] for name, value in gets.items()}
        assert result["state"] == dict.fromkeys(gets, 1)
        last = [number for number in range(len(sources)) if not any(number in before for before in sources)]
        outputs = {f"n{number}": f"n{number}" for number in last if f"n{number}" in gets}
        assert result.get("output") == (outputs or None if len(last) > 1 else f"n{last[0]}" if outputs else None)
        values = compiled.get_state(thread()).values
        assert fold_events(values["@events"]) == values["state"]
        assert len(values["@events"]) == turn * (1 + len(gets))
