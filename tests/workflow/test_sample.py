"""The sample with four functions: the same deltas, state and result in every way to run it."""

import pytest

from examples.workflow_state import root_agent
from pregel import InMemorySaver
from pregel.graph.workflow import Event, Workflow, WorkflowDataError
from tests.workflow.kit import deltas, events, run, thread

TEXT = "GO (Original was: go)"
RESULT = f"Final Result: {TEXT}!"
STATE = {"original_text": "go", "uppercased_text": "GO", "appended_text": TEXT}


def test_the_sample_gives_the_deltas_the_keys_and_the_output(door):
    graph = root_agent.compile(InMemorySaver())
    assert door.invoke(graph, {"node_input": "go"}, thread()) == {"output": RESULT, "state": STATE}
    assert deltas(graph) == [{"original_text": "go"}, {"uppercased_text": "GO"}, {"appended_text": TEXT}, {}]
    assert [event.has_output and event.output for event in events(graph)] == ["go", False, TEXT, RESULT]


def test_events_have_author_path_step_and_sequence(door):
    graph = root_agent.compile(InMemorySaver())
    door.invoke(graph, {"node_input": "go"}, thread())
    assert [(event.author, event.path, event.step, event.sequence) for event in events(graph)] == [
        ("state_sample", "state_sample@1/process_initial_input@1", 1, 2),
        ("state_sample", "state_sample@1/update_state_via_event@1", 2, 3),
        ("state_sample", "state_sample@1/read_state_via_ctx@1", 3, 4),
        ("state_sample", "state_sample@1/read_state_via_param@1", 4, 5),
    ]


def test_the_first_event_is_the_input_with_the_state_that_it_sets(door):
    graph = root_agent.compile(InMemorySaver())
    door.invoke(graph, {"node_input": "go", "state": {"more": 1}}, thread())
    first = graph.get_state(thread()).values["@events"][0]
    assert (first.author, first.content, dict(first.delta), first.step) == ("user", "go", {"more": 1}, 0)


def test_json_is_camel_case():
    text = Event(state={"a": 1}).model_dump_json(by_alias=True)
    assert '"stateDelta":{"a":1}' in text
    assert '"output"' not in text
    assert '"output":null' in Event(output=None).model_dump_json(by_alias=True)


def test_a_misspelt_parameter_fails_and_names_function_parameter_and_the_nearest_key(door):
    def fill(ctx, node_input: str):
        ctx.state["appended_text"] = node_input

    def read_state_via_param(appened_text: str):
        return appened_text

    with pytest.raises(WorkflowDataError) as caught:
        run(door, Workflow("misspelt", [("START", fill, read_state_via_param)]), "go")
    message = str(caught.value)
    assert "missing value for parameter 'appened_text' of function 'read_state_via_param'" in message
    assert "Did you mean 'appended_text'?" in message


def test_the_state_outlives_a_turn(door):
    def count(ctx):
        ctx.state["n"] = ctx.state.get("n", 0) + 1
        return ctx.state["n"]

    graph = Workflow("counting", [("START", count)]).compile(InMemorySaver())
    results = [door.invoke(graph, {"node_input": None}, thread())["output"] for _ in range(3)]
    assert results == [1, 2, 3]
    assert [event.path for event in events(graph)] == ["counting@1/count@1"] * 3


def test_the_example_prints_the_result(capsys):
    from examples.workflow_state import main

    main("go")
    assert RESULT in capsys.readouterr().out
