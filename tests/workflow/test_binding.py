"""How parameters get their values."""

from typing import TYPE_CHECKING, Annotated, Any, Optional, TypedDict

import pytest
from pydantic import BaseModel

from pregel.graph.workflow import (
    NO_OUTPUT,
    Context,
    Event,
    FromState,
    StateSchemaError,
    Workflow,
    WorkflowConfigurationError,
    WorkflowDataError,
    node,
)
from pregel.runtime import Runtime, get_runtime
from tests.workflow.kit import run

if TYPE_CHECKING:
    from nowhere import Unknown


class Point(BaseModel):
    x: int
    y: int = 0


def given(door, function, node_input=None, state=None, **options):
    """What a function makes of an input and a state."""
    workflow = Workflow("w", [("START", node(function, name="node", **options))])
    return run(door, workflow, node_input, state).get("output")


def test_the_context_comes_by_its_name_or_by_its_type(door):
    assert given(door, lambda ctx: ctx.node) == "node"

    def annotated(anything: Context):
        return anything.path

    assert given(door, annotated) == "w@1/node@1"


def test_a_parameter_named_ctx_is_a_key_where_another_one_takes_the_context(door):
    def both(where: Context, ctx: str):
        return where.node + ctx

    assert given(door, both, state={"ctx": "!"}) == "node!"


def test_two_parameters_cannot_both_take_the_context():
    def two(a: Context, b: Context):
        return 1

    with pytest.raises(
        WorkflowConfigurationError, match="'two' has the parameters 'a', 'b', which all take the Context"
    ):
        Workflow("w", [("START", two)])


def test_a_parameter_takes_the_runtime(door):
    def asks(node_input, about: Runtime, size):
        return [about.node, about.context, node_input, size]

    async def awaits(node_input, runtime: Runtime[str]):
        return [*node_input, runtime.node, runtime == get_runtime()]

    graph = Workflow("w", [("START", asks, awaits)]).compile()
    result = door.invoke(graph, {"node_input": 1, "state": {"size": 2}}, context="c")
    assert result["output"] == ["asks", "c", 1, 2, "awaits", True]

    def two(a: Runtime, b: Runtime):
        return 1

    with pytest.raises(WorkflowConfigurationError, match="which all take the Runtime"):
        Workflow("w", [("START", two)])


def test_a_parameter_named_runtime_is_a_key_like_others(door):
    def runs(runtime: float):
        return runtime

    assert given(door, runs, state={"runtime": 1.5}) == 1.5


def test_a_parameter_takes_the_key_of_its_name_or_its_default(door):
    def function(a, b=2, *, c, d=4):
        return [a, b, c, d]

    assert given(door, function, state={"a": 1, "c": 3}) == [1, 2, 3, 4]
    assert given(door, function, state={"a": 1, "b": "B", "c": 3, "d": None}) == [1, "B", 3, None]


def test_a_parameter_takes_a_key_by_another_name(door):
    def function(visits: Annotated[int, FromState("user:visits")], n: Annotated[int, FromState("number")] = 7):
        return visits + n

    assert given(door, function, state={"user:visits": "3"}) == 10


def test_star_parameters_get_nothing(door):
    def function(*args, **kwargs):
        return [args, kwargs]

    assert given(door, function, 1, {"args": 2, "kwargs": 3, "x": 4}) == [(), {}]


def test_parameters_by_position_only(door):
    def function(ctx, node_input, a, /):
        return [ctx.node, node_input, a]

    assert given(door, function, 1, {"a": 2}) == ["node", 1, 2]

    def wrong(a, ctx, /):
        return 1

    with pytest.raises(WorkflowConfigurationError, match="by position only"):
        Workflow("w", [("START", wrong)])


def test_an_optional_parameter_without_default_is_needed(door):
    def function(a: Optional[int]):  # noqa: UP045 - as people write it
        return a

    with pytest.raises(WorkflowDataError, match="missing value for parameter 'a' of function 'function'"):
        given(door, function)
    assert given(door, function, state={"a": None}) is None


def test_what_is_missing_is_told_with_what_there_is(door):
    def function(colour):
        return colour

    with pytest.raises(WorkflowDataError) as caught:
        given(door, function, state={"colours": 1, "size": 2})
    assert "node 'node' of workflow 'w'" in str(caught.value)
    assert "Did you mean 'colours'? There are: colours, size" in str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (int, "7", 7),
        (str, "x", "x"),
        (float, 1, 1),
        (list[int], ["1", 2], [1, 2]),
        (Point, {"x": "1"}, Point(x=1)),
        (list[Point], [{"x": 1}], [Point(x=1)]),
        (Optional[int], None, None),  # noqa: UP045 - as people write it
        (Any, {1, 2}, {1, 2}),
    ],
)
def test_values_are_converted_as_they_are_annotated(door, annotation, value, expected):
    def function(a):
        return [a]

    function.__annotations__["a"] = annotation
    assert given(door, function, state={"a": value}) == [expected]


def test_a_value_that_cannot_be_converted_is_an_error(door):
    def function(a: int):
        return a

    with pytest.raises(WorkflowDataError, match="parameter 'a' of function 'function' can't take 'seven'"):
        given(door, function, state={"a": "seven"})


def test_the_input_is_converted_too(door):
    def function(node_input: int):
        return node_input + 1

    assert given(door, function, "1") == 2
    with pytest.raises(WorkflowDataError, match="parameter 'node_input' of function 'function' can't take 'x'"):
        given(door, function, "x")


def test_what_fits_is_given_as_it_is_however_it_is_annotated(door):
    value = [1, 2]
    seen = []

    def bare(a):
        seen.append(a)

    def plain(a: list):
        seen.append(a)

    def precise(a: list[int]):
        seen.append(a)

    run(door, Workflow("w", [("START", bare, plain, precise)]), state={"a": value})
    assert all(each is value for each in seen)
    assert len(seen) == 3


def silent():
    return None


def test_a_node_without_output_gives_none_or_lets_the_default_stand(door):
    def takes(node_input):
        return [node_input]

    def has_default(node_input="default"):
        return [node_input]

    assert run(door, Workflow("w", [("START", silent, takes)]))["output"] == [None]
    assert run(door, Workflow("w", [("START", silent, has_default)]))["output"] == ["default"]


def test_none_as_an_output_is_given_on(door):
    def states_none():
        return Event(output=None)

    def has_default(node_input="default"):
        return [node_input]

    assert run(door, Workflow("w", [("START", states_none, has_default)]))["output"] == [None]


def test_an_error_says_that_the_node_before_gave_no_output(door):
    def takes(node_input: str):
        return node_input

    with pytest.raises(WorkflowDataError, match=r"can't take None.*the node before it gave no output"):
        run(door, Workflow("w", [("START", silent, takes)]))


def test_parameters_from_the_input(door):
    def function(a: int, b=2, **rest):
        return [a, b, rest]

    assert given(door, function, {"a": "1", "c": 3}, parameter_binding="node_input") == [1, 2, {"c": 3}]

    def all_of_it(node_input, **rest):
        return [node_input, rest]

    assert given(door, all_of_it, {"c": 3}, parameter_binding="node_input") == [{"c": 3}, {"c": 3}]

    def point(x, y):
        return [x, y]

    assert given(door, point, Point(x=1, y=2), parameter_binding="node_input") == [1, 2]
    with pytest.raises(WorkflowDataError, match="was not found in the node's input"):
        given(door, point, {"x": 1}, parameter_binding="node_input")
    with pytest.raises(WorkflowDataError, match="a mapping or a pydantic model is needed"):
        given(door, point, 5, parameter_binding="node_input")


def test_a_builtin_that_does_not_tell_its_parameters_is_refused():
    with pytest.raises(WorkflowConfigurationError, match="does not tell its parameters"):
        Workflow("w", [("START", node(max, name="max"))])


class Schema(TypedDict):
    name: str
    age: int


def test_with_a_schema_a_misspelt_parameter_fails_when_the_workflow_is_made():
    def function(nmae):
        return nmae

    with pytest.raises(StateSchemaError) as caught:
        Workflow("w", [("START", function)], state_schema=Schema)
    assert "node 'function' of workflow 'w' has the parameter 'nmae'" in str(caught.value)
    assert "Did you mean 'name'?" in str(caught.value)


def test_with_a_schema_a_parameter_with_a_default_may_be_anything(door):
    def function(name, more=3):
        return [name, more]

    workflow = Workflow("w", [("START", function)], state_schema=Schema)
    assert run(door, workflow, state={"name": "Ada"}) == {"output": ["Ada", 3], "name": "Ada"}


def test_the_context_may_have_any_name_with_a_schema(door):
    def function(anything: Context, name):
        return f"{name} at {anything.node}"

    workflow = Workflow("w", [("START", function)], state_schema=Schema)
    assert run(door, workflow, state={"name": "Ada"})["output"] == "Ada at function"


def test_a_schema_cannot_declare_what_every_workflow_has():
    class Bad(TypedDict):
        output: str

    with pytest.raises(StateSchemaError, match="declares the key 'output'"):
        Workflow("w", [("START", silent)], state_schema=Bad)


def test_an_annotation_that_cannot_be_resolved_counts_as_none(door):
    def function(a: "Unknown", b: int):
        return [a, b]

    assert given(door, function, state={"a": "x", "b": "1"}) == ["x", 1]


def test_methods_and_partials_and_callable_objects(door):
    from functools import partial

    class Adder:
        def __init__(self, n):
            self.n = n

        def add(self, node_input: int):
            return self.n + node_input

        def __call__(self, node_input: int):
            return -self.n - node_input

    assert given(door, Adder(1).add, "2") == 3
    assert given(door, Adder(1), "2") == -3

    def two(a, b):
        return [a, b]

    assert given(door, partial(two, 5), state={"b": 1}) == [5, 1]


def test_a_context_may_be_optional(door):
    def optional(where: Context | None = None):
        return where.node

    assert given(door, optional) == "node"


def test_what_a_partial_has_bound_is_not_taken_from_the_state(door):
    from functools import partial

    def three(ctx, a, b):
        return [ctx, a, b]

    assert given(door, partial(three, ctx="mine", a=5), state={"a": 1, "b": 2}) == ["mine", 5, 2]


def test_a_key_that_can_not_be_one_is_refused_before_anything_runs():
    def misspelt(n: Annotated[int, FromState("usr:n")] = 0):
        return n

    with pytest.raises(
        StateSchemaError, match=r"node 'misspelt' .* parameter 'n': the key 'usr:n'.*Did you mean 'user'"
    ):
        Workflow("w", [("START", misspelt)])


def test_a_key_that_a_parameter_names_must_be_declared_even_with_a_default():
    class State(TypedDict, total=False):
        size: int

    def misspelt(n: Annotated[int, FromState("sise")] = 0):
        return n

    with pytest.raises(StateSchemaError, match="Did you mean 'size'"):
        Workflow("w", [("START", misspelt)], State)


def test_there_is_no_output_in_the_result_where_none_was_given(door):
    assert run(door, Workflow("w", [("START", silent)])) == {"state": {}}
    assert not NO_OUTPUT
    assert repr(NO_OUTPUT) == "NO_OUTPUT"
