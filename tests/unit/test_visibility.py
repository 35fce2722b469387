"""Who sees a field: the marker table, row by row."""

import operator
from dataclasses import dataclass
from typing import Annotated, NotRequired, Optional, TypedDict

import pytest
from pydantic import BaseModel

from pregel import (
    START,
    OmitFromInput,
    OmitFromOutput,
    OmitFromSchema,
    Overwrite,
    PrivateStateAttr,
    StateGraph,
)
from pregel.errors import InvalidInputError, PregelError, PregelWarning


class State(TypedDict, total=False):
    open: int
    made: Annotated[int, OmitFromInput]
    taken: Annotated[int, OmitFromOutput]
    private: Annotated[int, PrivateStateAttr]


class Own(TypedDict, total=False):
    open: int
    own: int


@dataclass
class Data:
    open: int = 0
    made: Annotated[int, OmitFromInput] = 0
    taken: Annotated[int, OmitFromOutput] = 0
    private: Annotated[int, PrivateStateAttr] = 0


class Model(BaseModel):
    open: int = 0
    made: Annotated[int, OmitFromInput] = 0
    taken: Annotated[int, OmitFromOutput] = 0
    private: Annotated[int, PrivateStateAttr] = 0


EVERYTHING = {"open": 1, "made": 2, "taken": 3, "private": 4, "own": 5}


class Watched:
    """`write` sets what it is told to; then `reader`, `owner` and `other` note what they see."""

    def __init__(self, schema=State, writes=None, **options):
        self.seen = {}
        self.writes = {} if writes is None else writes
        builder = StateGraph(schema, **options)
        builder.add_node("write", self.write)
        builder.add_node("reader", self.note("reader"))
        builder.add_node("owner", self.note("owner"), input_schema=Own)
        builder.add_node("other", self.note("other"), input_schema=Own)
        builder.add_edge(START, "write")
        for name in ("reader", "owner", "other"):
            builder.add_edge("write", name)
        self.graph = builder.compile(name="demo")

    def write(self, state):
        self.seen["write"] = state
        return self.writes

    def note(self, name):
        def node(state):
            self.seen[name] = state
            return {}

        return node

    def refuse(self, given, *words):
        with pytest.raises(InvalidInputError) as caught:
            self.graph.invoke(given)
        for word in ("'demo'", "input", *words):
            assert word in str(caught.value), str(caught.value)
        assert isinstance(caught.value, PregelError)
        assert isinstance(caught.value, ValueError)
        assert self.seen == {}

    def warned(self, given, *words):
        with pytest.warns(PregelWarning) as caught:
            result = self.graph.invoke(given)
        assert len(caught) == 1
        for word in ("'demo'", *words):
            assert word in str(caught[0].message)
        return result


# --- As input ---------------------------------------------------------------------------------------------------------


def test_a_field_without_marker_is_accepted_as_input(door):
    watched = Watched()

    assert door.invoke(watched.graph, {"open": 1}) == {"open": 1}
    assert watched.seen["write"] == {"open": 1}


def test_omit_from_input_is_ignored_if_given(door):
    watched = Watched()

    assert door.invoke(watched.graph, {"open": 1, "made": 2}) == {"open": 1}
    assert watched.seen["write"] == {"open": 1}


def test_omit_from_output_is_accepted_as_input(door):
    watched = Watched()

    assert door.invoke(watched.graph, {"taken": 3}) == {}
    assert watched.seen["write"] == watched.seen["reader"] == {"taken": 3}


def test_a_private_field_given_as_input_is_an_error():
    Watched().refuse({"open": 1, "private": 4}, "'private'", "[private-input]")


def test_a_field_of_a_nodes_own_schema_given_as_input_is_an_error():
    Watched().refuse({"open": 1, "own": 5}, "'own'", "[private-input]")


def test_a_field_that_nothing_declares_is_an_error_with_the_nearest_match():
    Watched().refuse({"opne": 1}, "'opne'", "Did you mean 'open'?", "open, taken", "[undeclared-input]")


@pytest.mark.parametrize("options", [{"allow": {"private-input"}}, {"strict": False}])
@pytest.mark.parametrize("name", ["private", "own"])
def test_a_private_input_allowed_is_a_warning_and_ignored(options, name):
    watched = Watched(**options)

    assert watched.warned({"open": 1, name: 4}, repr(name), "[private-input]") == {"open": 1}
    assert watched.seen["write"] == watched.seen["owner"] == {"open": 1}


@pytest.mark.parametrize("options", [{"allow": {"undeclared-input"}}, {"strict": False}])
def test_an_undeclared_input_allowed_is_a_warning_and_ignored(options):
    watched = Watched(**options)

    assert watched.warned({"open": 1, "opne": 4}, "'opne'", "'open'", "[undeclared-input]") == {"open": 1}
    assert watched.seen["write"] == {"open": 1}


@pytest.mark.parametrize("schema", [Data, Model])
def test_a_private_field_set_in_an_instance_is_an_error(schema):
    Watched(schema).refuse(schema(open=1, private=4), "'private'", "[private-input]")


@pytest.mark.parametrize("schema", [Data, Model])
def test_the_private_default_of_an_instance_was_not_given(schema):
    assert Watched(schema).graph.invoke(schema(open=1, made=7)) == {"open": 1, "made": 0}


@pytest.mark.parametrize("given", [{"made": "wrong"}, {"made": Overwrite("wrong")}])
def test_an_input_that_is_ignored_is_not_looked_at(given):
    assert Watched().graph.invoke({"open": 1, **given}) == {"open": 1}


# --- In the result and the streams ------------------------------------------------------------------------------------


def test_the_result_holds_what_is_not_omitted_from_the_output(door):
    assert door.invoke(Watched(writes=EVERYTHING).graph, {"taken": 0}) == {"open": 1, "made": 2}


def test_the_values_stream_holds_what_is_not_omitted_from_the_output(door):
    watched = Watched(writes=EVERYTHING)

    assert door.stream(watched.graph, {"taken": 0, "open": 0}, stream_mode="values") == [
        {"open": 0},
        {"open": 1, "made": 2},
    ]


def test_the_updates_stream_holds_what_is_not_omitted_from_the_output(door):
    first, *others = door.stream(Watched(writes=EVERYTHING).graph, {}, stream_mode="updates")

    assert first == {"write": {"open": 1, "made": 2}}
    assert sorted(name for part in others for name in part) == ["other", "owner", "reader"]


@pytest.mark.parametrize("name", ["taken", "private", "own"])
def test_a_task_that_wrote_nothing_visible_gives_none_in_updates(door, name):
    first, *_ = door.stream(Watched(writes={name: 1}).graph, {}, stream_mode="updates")

    assert first == {"write": None}


@pytest.mark.parametrize("name", ["taken", "private", "own"])
def test_a_superstep_that_changed_nothing_visible_gives_no_values(door, name):
    assert door.stream(Watched(writes={name: 1}).graph, {"open": 0}, stream_mode="values") == [{"open": 0}]


def test_an_empty_result_is_a_dict():
    assert Watched().graph.invoke({}) == {}


# --- In the JSON schemas ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", [State, Data, Model])
def test_the_output_json_schema_holds_what_the_result_may_hold(schema):
    assert set(Watched(schema).graph.get_output_jsonschema()["properties"]) == {"open", "made"}


@pytest.mark.parametrize("schema", [State, Data, Model])
def test_the_input_json_schema_names_nothing_private(schema):
    properties = set(Watched(schema).graph.get_input_jsonschema()["properties"])

    assert "open" in properties
    assert properties.isdisjoint({"private", "own"})


# --- Seen by nodes ----------------------------------------------------------------------------------------------------


def test_nodes_see_every_field_of_the_state_whatever_its_marker(door):
    watched = Watched(writes=EVERYTHING)
    door.invoke(watched.graph, {})

    assert watched.seen["reader"] == {"open": 1, "made": 2, "taken": 3, "private": 4}


def test_a_nodes_own_field_is_seen_by_the_nodes_that_declare_it(door):
    watched = Watched(writes=EVERYTHING)
    door.invoke(watched.graph, {})

    assert watched.seen["owner"] == watched.seen["other"] == {"open": 1, "own": 5}


@pytest.mark.parametrize("schema", [Data, Model])
def test_instances_hold_the_private_fields(schema):
    watched = Watched(schema, writes={"private": 4})
    watched.graph.invoke({})

    assert watched.seen["reader"] == schema(private=4)


def test_a_field_of_an_annotated_parameter_is_private_too():
    class Scratch(TypedDict, total=False):
        draft: str

    def write(state):
        return {"open": 1, "draft": "text"}

    def read(state: Scratch):
        seen.append(state)
        return {}

    seen = []
    builder = StateGraph(State)
    builder.add_sequence([write, read])
    builder.add_edge(START, "write")
    graph = builder.compile(name="demo")

    assert list(graph.stream({}, stream_mode="values")) == [{}, {"open": 1}]
    assert seen == [{"draft": "text"}]
    with pytest.raises(InvalidInputError, match="private-input"):
        graph.invoke({"draft": "x"})


# --- Where markers stand ----------------------------------------------------------------------------------------------

PRIVATE_FORMS = {
    "constant": Annotated[int, PrivateStateAttr],
    "instance": Annotated[int, OmitFromSchema(input=True, output=True)],
    "class": Annotated[int, OmitFromSchema],
    "two that add up": Annotated[int, OmitFromInput, OmitFromOutput],
    "two at two levels": Annotated[NotRequired[Annotated[int, OmitFromOutput]], OmitFromInput],
    "before a tag": Annotated[int, PrivateStateAttr, "a tag"],
    "after a tag": Annotated[int, "a tag", PrivateStateAttr],
    "inside a union": Optional[Annotated[int, PrivateStateAttr]],  # noqa: UP045 - `Annotated[...] | None` is the same
    "inside NotRequired": NotRequired[Annotated[int, PrivateStateAttr]],
    "with a reducer": Annotated[int, PrivateStateAttr, operator.add],
    "after a reducer": Annotated[int, operator.add, PrivateStateAttr],
}


@pytest.mark.parametrize("annotation", [pytest.param(form, id=name) for name, form in PRIVATE_FORMS.items()])
def test_a_marker_counts_wherever_it_stands(annotation):
    schema = TypedDict("schema", {"open": int, "hidden": annotation}, total=False)  # noqa: UP013 - of a parameter
    watched = Watched(schema, writes={"open": 1, "hidden": 2})

    assert watched.graph.invoke({}) == {"open": 1}
    assert watched.seen["reader"] == {"open": 1, "hidden": 2}
    watched.seen.clear()
    watched.refuse({"hidden": 1}, "'hidden'", "[private-input]")


@pytest.mark.parametrize("marker", [OmitFromSchema(input=True, output=False), OmitFromInput])
def test_omit_input_alone_keeps_a_field_in_the_result(marker):
    schema = TypedDict("schema", {"x": Annotated[int, marker]}, total=False)  # noqa: UP013 - of a parameter
    watched = Watched(schema, writes={"x": 2})

    assert watched.graph.invoke({"x": 1}) == {"x": 2}
    assert watched.seen["write"] == {}


@pytest.mark.parametrize("marker", [OmitFromSchema(input=False, output=True), OmitFromOutput])
def test_omit_output_alone_keeps_a_field_in_the_input(marker):
    schema = TypedDict("schema", {"x": Annotated[int, marker]}, total=False)  # noqa: UP013 - of a parameter
    watched = Watched(schema)

    assert watched.graph.invoke({"x": 1}) == {}
    assert watched.seen["write"] == {"x": 1}


# --- Feeding a result back in -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", [State, Data, Model])
def test_a_result_can_be_fed_back_in(schema):
    graph = Watched(schema, writes=EVERYTHING).graph
    result = graph.invoke({})

    assert graph.invoke(result) == result == {"open": 1, "made": 2}


class Question(TypedDict):
    question: str


class Answer(TypedDict, total=False):
    answer: str
    notes: list


class Talk(TypedDict, total=False):
    question: str
    answer: str
    notes: list
    secret: Annotated[str, PrivateStateAttr]


def talk(seen):
    builder = StateGraph(Talk, input_schema=Question, output_schema=Answer)

    def reply(state):
        seen.append(state)
        return {"answer": f"{state['question']}!", "secret": "s", "notes": [1]}

    builder.add_node("reply", reply)
    builder.add_edge(START, "reply")
    return builder.compile(name="demo")


def test_an_explicit_input_schema_narrows_the_input(door):
    seen = []
    door.invoke(talk(seen), {"question": "a", "answer": "given", "notes": [9]})

    assert seen == [{"question": "a"}]


def test_an_explicit_output_schema_narrows_the_result_and_the_streams(door):
    graph = talk([])
    result = {"answer": "a!", "notes": [1]}

    assert door.invoke(graph, {"question": "a"}) == result
    assert door.stream(graph, {"question": "a"}, stream_mode="values") == [{}, result]
    assert door.stream(graph, {"question": "a"}, stream_mode="updates") == [{"reply": result}]


def test_explicit_schemas_are_the_json_schemas():
    graph = talk([])

    assert set(graph.get_input_jsonschema()["properties"]) == {"question"}
    assert set(graph.get_output_jsonschema()["properties"]) == {"answer", "notes"}


def test_the_result_of_a_narrowed_graph_can_be_fed_back_in():
    graph = talk([])
    result = graph.invoke({"question": "a"})

    assert graph.invoke({**result, "question": "b"}) == {"answer": "b!", "notes": [1]}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"question": "a", "secret": "x"}, ["'secret'", "[private-input]"]),
        ({"questoin": "a"}, ["'questoin'", "Did you mean 'question'?", "[undeclared-input]"]),
    ],
)
def test_a_narrowed_input_still_refuses_what_is_private_or_undeclared(given, words):
    seen = []

    with pytest.raises(InvalidInputError) as caught:
        talk(seen).invoke(given)

    for word in ("'demo'", *words):
        assert word in str(caught.value)
    assert seen == []


def test_a_marker_of_the_state_holds_in_an_explicit_schema_that_names_the_field_without_it():
    class Wide(TypedDict, total=False):
        question: str
        secret: str

    builder = StateGraph(Talk, input_schema=Wide, output_schema=Wide)
    builder.add_node("reply", lambda state: {"secret": "s"})
    builder.add_edge(START, "reply")
    graph = builder.compile(name="demo")

    assert graph.invoke({"question": "a"}) == {"question": "a"}
    with pytest.raises(InvalidInputError, match="private-input"):
        graph.invoke({"secret": "x"})


def test_fields_of_input_and_output_schemas_need_not_be_in_the_state():
    class Inner(TypedDict, total=False):
        work: int

    class Given(TypedDict):
        number: int

    class Made(TypedDict, total=False):
        double: int

    def begin(state: Given):
        return {"work": state["number"]}

    def end(state):
        seen.append(state)
        return {"double": state["work"] * 2}

    seen = []
    builder = StateGraph(Inner, input_schema=Given, output_schema=Made)
    builder.add_sequence([begin, end])
    builder.add_edge(START, "begin")

    assert builder.compile().invoke({"number": 4}) == {"double": 8}
    assert seen == [{"work": 4}]


def test_an_instance_of_an_explicit_input_schema_is_an_input():
    @dataclass
    class Given:
        open: int = 0

    watched = Watched(State, input_schema=Given)

    assert watched.graph.invoke(Given(open=3)) == {"open": 3}


# --- compiled.channels ------------------------------------------------------------------------------------------------


def test_channels_are_those_of_the_fields_and_no_others():
    assert set(Watched().graph.channels) == {"open", "made", "taken", "private", "own"}
