"""What nodes can be made of, and what becomes of those that fail."""

from typing import TypedDict

import pytest

from pregel import START, InMemorySaver, StateGraph
from pregel.errors import InvalidConcurrentUpdateError, MutatedStateError
from pregel.graph.workflow import (
    NO_OUTPUT,
    Context,
    Event,
    EventActions,
    RequestInput,
    StateSchemaError,
    Workflow,
    WorkflowDataError,
    node,
)
from pregel.types import Command, Overwrite, RetryPolicy, Send
from tests.workflow.kit import deltas, outputs, run, thread


def show(node_input):
    return [node_input]


async def coroutine(ctx, node_input):
    ctx.state["by"] = "coroutine"
    return node_input


def generator(ctx, node_input):
    ctx.state["by"] = "generator"
    yield node_input


async def async_generator(ctx, node_input):
    ctx.state["by"] = "async generator"
    yield node_input


def function(ctx, node_input):
    ctx.state["by"] = "function"
    return node_input


@pytest.mark.parametrize("made", [function, generator, coroutine, async_generator])
def test_every_form_of_function(door, made):
    by = made.__name__.replace("_", " ")
    assert run(door, Workflow("w", [("START", made, show)]), 5) == {"output": [5], "state": {"by": by}}


def test_forms_mix(door):
    workflow = Workflow("w", [("START", function, coroutine, generator, async_generator, show)])
    assert run(door, workflow, 1) == {"output": [1], "state": {"by": "async generator"}}


def test_what_a_generator_returns_is_an_output(door):
    def tells(node_input):
        yield Event(content="hello")
        return node_input

    assert run(door, Workflow("w", [("START", tells)]), 1)["output"] == 1


def test_a_function_may_return_a_generator(door):
    def made(node_input):
        return (each for each in [Event(state={"a": 1}), node_input])

    assert run(door, Workflow("w", [("START", made)]), 1) == {"output": 1, "state": {"a": 1}}


@pytest.mark.parametrize("value", [0, False, "", [], {}, 1.5, (1, 2), b"x"])
def test_what_is_false_is_an_output(door, value):
    result = run(door, Workflow("w", [("START", show)]), value)["output"]
    assert result == [value]
    assert type(result[0]) is type(value)


@pytest.mark.parametrize("way", ["yields", "returns", "context"])
def test_a_second_output_is_an_error(door, way):
    def yields():
        yield 1
        yield 2

    def returns():
        yield 1
        return 2

    def context(ctx):
        ctx.output = 1
        return 2

    made = {"yields": yields, "returns": returns, "context": context}[way]
    with pytest.raises(WorkflowDataError, match="the output is set already, to 1"):
        run(door, Workflow("w", [("START", made)]))


def test_an_output_by_the_context(door):
    def sets(ctx):
        assert ctx.output is NO_OUTPUT
        ctx.output = None

    def takes(node_input=5):
        return [node_input]

    assert run(door, Workflow("w", [("START", sets, takes)]))["output"] == [None]


def test_nothing_of_a_failed_attempt_counts(door):
    seen = []

    def fails_once(ctx: Context):
        seen.append((ctx.attempt_count, ctx.state.get("n", 0)))
        ctx.state["n"] = ctx.state.get("n", 0) + 1
        yield Event(state={"m": ctx.state.get("m", 0) + 1})
        if ctx.attempt_count < 3:
            raise ConnectionError("down")
        yield "done"

    retry = RetryPolicy(initial_interval=0, jitter=False)
    graph = Workflow("w", [("START", node(fails_once, retry=retry))]).compile(InMemorySaver())
    assert door.invoke(graph, {"node_input": 0}, thread()) == {"output": "done", "state": {"n": 1, "m": 1}}
    assert seen == [(1, 0), (2, 0), (3, 0)]
    assert deltas(graph) == [{"n": 1, "m": 1}, {}]


def test_each_failed_attempt_is_told_to_those_who_read_along(door):
    def fails(ctx):
        ctx.state["dirty"] = 1
        raise ConnectionError("down")

    retry = RetryPolicy(initial_interval=0, jitter=False, max_attempts=2)
    graph = Workflow("w", [("START", node(fails, retry=retry))]).compile(InMemorySaver())
    *parts, error = door.stream(graph, {"node_input": 0}, thread(), stream_mode="custom")
    assert isinstance(error, ConnectionError)
    assert [(part.error_code, part.error_message, part.actions.state_delta) for part in parts] == [
        ("ConnectionError", "down", {})
    ] * 2
    assert graph.get_state(thread()).values["state"] == {}


def test_a_failed_function_without_context_is_told_too(door):
    def fails():
        raise ValueError("bad")

    graph = Workflow("w", [("START", fails)]).compile()
    part, error = door.stream(graph, {"node_input": 0}, stream_mode="custom")
    assert (part.error_code, part.path) == ("ValueError", "w@1/fails@1")
    assert isinstance(error, ValueError)


def test_two_nodes_that_write_one_key_side_by_side_are_an_error(door):
    def left(ctx):
        ctx.state["k"] = 1

    def right(ctx):
        ctx.state["k"] = 2

    with pytest.raises(InvalidConcurrentUpdateError) as caught:
        run(door, Workflow("w", [("START", (left, right))]))
    message = str(caught.value)
    assert "two nodes that run side by side have set the key 'k' of the state" in message.casefold()
    assert "with a reducer in the state_schema" in message
    assert "'left'" in message
    assert "'right'" in message


class OneKey(TypedDict, total=False):
    k: int


def test_so_they_are_with_a_schema(door):
    def left(ctx):
        ctx.state["k"] = 1

    def right(ctx):
        ctx.state["k"] = 2

    with pytest.raises(InvalidConcurrentUpdateError, match=r"'k'.*with a reducer in the state_schema"):
        run(door, Workflow("w", [("START", (left, right))], state_schema=OneKey))


@node(name="decorated", parameter_binding="node_input")
def takes_fields(a):
    return a + 1


@node
def plainly(node_input):
    return node_input * 2


def test_node_is_a_decorator_too(door):
    graph = Workflow("w", [("START", takes_fields, plainly)])
    assert list(graph.edges.nodes) == ["decorated", "plainly"]
    assert run(door, graph, {"a": 1})["output"] == 4


def test_a_value_that_is_changed_in_place_is_found(door):
    def changes(ctx):
        ctx.state["list"].append(1)

    with pytest.raises(MutatedStateError, match=r"node 'changes' of workflow 'w' .* set ctx.state\['list'\] ="):
        run(door, Workflow("w", [("START", changes)]), state={"list": []}, debug=True)

    def changes_input(node_input):
        node_input.append(1)

    with pytest.raises(MutatedStateError, match="node 'changes_input'"):
        run(door, Workflow("w", [("START", changes_input)]), [], debug=True)

    def changes_by_event(ctx, node_input):
        node_input.append(1)
        yield 1

    with pytest.raises(MutatedStateError, match="node 'changes_by_event'"):
        run(door, Workflow("w", [("START", changes_by_event)]), [], debug=True)

    def makes():
        return []

    with pytest.raises(MutatedStateError, match="node 'changes_input'"):
        run(door, Workflow("w", [("START", makes, changes_input)]), debug=True)


class Numbers(TypedDict):
    n: int


def graph_that_doubles():
    builder = StateGraph(Numbers).add_node("double", lambda state: {"n": 2 * state["n"]}).add_edge(START, "double")
    return builder.compile(name="doubles")


def test_a_compiled_graph_is_a_node(door):
    def number(node_input):
        return {"n": node_input}

    graph = Workflow("w", [("START", number, graph_that_doubles(), show)]).compile(InMemorySaver())
    assert door.invoke(graph, {"node_input": 4}, thread())["output"] == [{"n": 8}]
    assert outputs(graph)[1] == ("doubles@1", {"n": 8})


def test_a_graph_of_async_nodes_is_a_node(door):
    async def double(state):
        return {"n": 2 * state["n"]}

    inner = StateGraph(Numbers).add_node(double).add_edge(START, "double").compile(name="inner")
    assert run(door, Workflow("w", [("START", inner)]), {"n": 1})["output"] == {"n": 2}


def test_what_is_for_functions_is_refused_for_graphs():
    from pregel.graph.workflow import WorkflowConfigurationError

    with pytest.raises(WorkflowConfigurationError, match="is a graph: parallel_worker"):
        node(graph_that_doubles(), parallel_worker=True)


def test_the_context_tells_where_it_is(door):
    def tells(ctx):
        return [ctx.node, ctx.workflow, ctx.path, ctx.step, ctx.attempt_count, dict(ctx.resume_inputs), repr(ctx)]

    assert run(door, Workflow("w", [("START", show, tells)]))["output"] == [
        "tells",
        "w",
        "w@1/tells@1",
        2,
        1,
        {},
        "Context('w@1/tells@1')",
    ]


def test_an_input_that_is_no_state_is_refused(door):
    from pregel.errors import InvalidInputError

    graph = Workflow("w", [("START", show)]).compile()
    with pytest.raises(InvalidInputError, match="state takes a mapping"):
        door.invoke(graph, {"node_input": 1, "state": 5})
    with pytest.raises(InvalidInputError, match="Did you mean 'node_input'"):
        door.invoke(graph, {"node_inptu": 1})
    with pytest.raises(InvalidInputError, match="private"):
        door.invoke(graph, {"node_input": 1, "@turn": 5})


def test_a_runnable_of_langchain_is_a_node_on_every_loop(door):
    from langchain_core.runnables import RunnableLambda

    runnable = RunnableLambda(lambda node_input: node_input + 1, name="adds")
    assert run(door, Workflow("w", [("START", node(runnable, name="adds"), show)]), 1)["output"] == [2]

    def calls(ctx, node_input):
        return ctx.run_node(runnable, node_input, name="adds").result()

    assert run(door, Workflow("w", [("START", calls)]), 1)["output"] == 2


@pytest.mark.parametrize("given", [Command(goto="x"), Send("x", 1)])
def test_what_steers_other_graphs_is_refused(door, given):
    with pytest.raises(WorkflowDataError, match="steers other graphs"):
        run(door, Workflow("w", [("START", lambda: given)]))


def test_overwrite_replaces_what_others_write(door):
    def left(ctx):
        ctx.state["k"] = Overwrite(1)
        return ctx.state["k"]

    def right(ctx):
        ctx.state["k"] = 2

    graph = Workflow("w", [("START", (left, right))]).compile(InMemorySaver())
    assert door.invoke(graph, {"node_input": 0}, thread()) == {"output": {"left": 1}, "state": {"k": 1}}


def test_a_method_is_called_again_and_again(door):
    class Service:
        def add(self, node_input):
            return node_input + 1

    service = Service()

    def calls(ctx, node_input):
        return ctx.run_node(service.add, ctx.run_node(service.add, node_input).result()).result()

    assert run(door, Workflow("w", [("START", calls)]), 1)["output"] == 3


def test_functions_that_are_made_anew_in_each_run(door):
    def calls(ctx, node_input):
        return [ctx.run_node(lambda node_input, n=n: node_input + n, 1, name="adds").result() for n in range(100)]

    workflow = Workflow("w", [("START", calls)])
    assert run(door, workflow)["output"] == [1 + n for n in range(100)]


def test_a_misspelt_argument_of_an_event_is_an_error():
    with pytest.raises(ValueError, match="sate"):
        Event(sate={"a": 1})
    with pytest.raises(ValueError, match="rout"):
        EventActions(rout="x")


def test_an_event_reads_its_own_json():
    event = Event(state={"a": 1}, output=[1], route="x", message="hello")
    again = Event.model_validate_json(event.model_dump_json(by_alias=True))
    assert again == event
    assert (again.content, again.actions.route) == ("hello", "x")
    assert not Event.model_validate_json(Event(content="c").model_dump_json()).has_output


def test_a_question_is_no_output_of_the_context(door):
    def ask(ctx):
        ctx.output = RequestInput("?")

    with pytest.raises(WorkflowDataError, match="return or yield it"):
        run(door, Workflow("w", [("START", ask)]))


def test_to_read_a_key_with_an_unknown_prefix_is_an_error(door):
    def read(ctx):
        return ctx.state.get("usr:visits", 0)

    with pytest.raises(StateSchemaError, match="Did you mean 'user'"):
        run(door, Workflow("w", [("START", read)]))


def test_what_is_no_schema_is_refused():
    with pytest.raises(StateSchemaError, match="is no state schema: give a TypedDict"):
        Workflow("w", [("START", show)], {"n": int})


def test_near_keys_are_looked_for_only_where_that_is_told(door, monkeypatch):
    looked = []
    monkeypatch.setattr("pregel.graph.buffered.nearest", lambda name, known: looked.append(name) or "")

    def read(ctx):
        state = ctx.state
        found = [state.get("nothing"), state.pop("none", 1), state.setdefault("new", 2), state.get("new")]
        with pytest.raises(KeyError):
            state.pop("missing")
        return found

    assert run(door, Workflow("w", [("START", read)]))["output"] == [None, 1, 2, 2]
    assert looked == ["missing"]
