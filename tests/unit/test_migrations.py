"""A thread outlives its graph's versions: it goes on where the new one knows what is due, else an error says why."""

import operator
from itertools import pairwise
from typing import Annotated, Any, TypedDict

import pytest

from pregel import START, Command, Overwrite, Send, StateGraph
from pregel.channels import LastValue, Topic
from pregel.errors import GraphChangedError, InvalidConfigError
from pregel.runtime import interrupt
from pregel.types import Interrupt, Migration
from tests.state_api import THREAD, call, ids


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    n: int


@pytest.fixture(params=["invoke", "update", "fork"])
def go_on(request, door):
    """Each way by which a thread goes on after its graph has changed; gives the result of the run that follows."""

    def go(graph, command=None):
        if request.param == "update":
            call(door, graph, "update_state", THREAD, None)
        elif request.param == "fork":
            config = call(door, graph, "get_state", THREAD).config
            call(door, graph, "update_state", THREAD, None)
            result = door.invoke(graph, None, config)
            if command is None or "__interrupt__" not in result:
                return result
            (question,) = result["__interrupt__"]
            return door.invoke(graph, Command(resume={question.id: command.resume}), THREAD)
        return door.invoke(graph, command, THREAD)

    return go


def note(text):
    return lambda state: {"log": [text]}


def chain(names, saver, state=State, migrations=(), **nodes):
    """Return a graph whose nodes, one after the other, log their names."""
    builder = StateGraph(state)
    for name in names:
        builder.add_node(name, nodes.get(name, note(name)))
    builder.add_edge(START, names[0])
    for source, target in pairwise(names):
        builder.add_edge(source, target)
    return builder.compile(saver, migrations=migrations)


def stop(graph, door, before, given=None):
    """Run a graph until a node is due."""
    door.invoke(graph, {} if given is None else given, THREAD, interrupt_before=[before])


# -- nodes -----------------------------------------------------------------------------------------------------------


def test_a_due_node_that_is_gone_is_an_error_that_names_the_nearest(door, saver):
    stop(chain("ab", saver), door, "b")
    changed = chain(["a", "b2"], saver)
    for method, args in (("get_state", ()), ("get_state_history", ()), ("update_state", ({},))):
        with pytest.raises(GraphChangedError, match=r"node 'b' is due .* Did you mean 'b2'\? .*Migration\(nodes="):
            call(door, changed, method, THREAD, *args)
    with pytest.raises(GraphChangedError, match="node 'b' is due"):
        door.invoke(changed, None, THREAD)
    assert door.invoke(chain("ab", saver), None, THREAD) == {"log": ["a", "b"]}  # nothing was lost by trying


def test_a_due_node_is_renamed(door, saver, go_on):
    stop(chain("ab", saver), door, "b")
    renamed = chain(["a", "b2"], saver, migrations=Migration(nodes={"b": "b2"}))
    shown = call(door, renamed, "get_state", THREAD)
    assert (shown.next, shown.metadata["pause"].nodes) == (("b2",), ("b",))
    assert go_on(renamed) == {"log": ["a", "b2"]}


def test_what_was_stored_after_a_migration_needs_it_no_more_and_what_was_before_does(door, saver):
    stop(chain("ab", saver), door, "b")
    door.invoke(chain(["a", "b2"], saver, migrations=Migration(nodes={"b": "b2"})), None, THREAD)
    bare = chain(["a", "b2"], saver)
    assert call(door, bare, "get_state", THREAD).values == {"log": ["a", "b2"]}
    assert door.invoke(bare, {}, THREAD) == {"log": ["a", "b2", "a", "b2"]}
    with pytest.raises(GraphChangedError, match="node 'b' is due"):
        call(door, bare, "get_state", {"configurable": {"thread_id": "t", "checkpoint_id": "0.1"}})


def test_a_node_that_is_not_due_may_go(door, saver):
    stop(chain("abc", saver), door, "c")
    assert door.invoke(chain("c", saver), None, THREAD) == {"log": ["a", "b", "c"]}


def test_new_input_on_a_thread_whose_due_node_is_gone_is_no_way_round(door, saver):
    stop(chain("ab", saver), door, "b")
    with pytest.raises(GraphChangedError):
        door.invoke(chain("ac", saver), {}, THREAD)


def ask(state: State):
    return {"log": [interrupt("what?")]}


def test_a_paused_node_that_is_renamed_keeps_its_question_and_takes_its_answer(door, saver, go_on):
    door.invoke(chain(["a", "ask", "z"], saver, ask=ask), {}, THREAD)
    renamed = chain(["a", "question", "z"], saver, migrations=[Migration(nodes={"ask": "question"})], question=ask)
    shown = call(door, renamed, "get_state", THREAD)
    assert (shown.next, shown.interrupts) == (("question",), (Interrupt("what?", "2:0:ask#0"),))
    assert go_on(renamed, Command(resume="yes"))["log"] == ["a", "yes", "z"]


def test_answers_by_id_fit_after_a_rename(door, saver):
    def twice(state: State):
        return {"log": [interrupt("one"), interrupt("two")]}

    door.invoke(chain(["ask"], saver, ask=twice), {}, THREAD)
    door.invoke(chain(["ask"], saver, ask=twice), Command(resume="1"), THREAD)
    renamed = chain(["twice"], saver, migrations=Migration(nodes={"ask": "twice"}), twice=twice)
    assert door.invoke(renamed, Command(resume={"1:0:ask#1": "2"}), THREAD)["log"] == ["1", "2"]


def fan(names, saver, migrations=(), **nodes):
    """Return a graph whose first nodes run beside each other, before the last one."""
    *sources, target = names
    builder = StateGraph(State)
    for name in names:
        builder.add_node(name, nodes.get(name, note(name)))
    for name in sources:
        builder.add_edge(START, name)
    return builder.add_edge(sources, target).compile(saver, migrations=migrations)


def test_a_join_knows_a_source_that_is_renamed_and_so_does_one_whose_target_is(door, saver, go_on):
    def graph(names, migrations=()):
        builder = StateGraph(State)
        for name in names:
            builder.add_node(name, note(name))
        a, b, late, target = names
        builder.add_edge(START, a).add_edge(START, b).add_edge(b, late).add_edge([a, late], target)
        return builder.compile(saver, migrations=migrations)

    stop(graph(["a", "b", "late", "c"]), door, "late")
    renames = {"a": "a2", "late": "later", "c": "c2"}
    assert go_on(graph(["a2", "b", "later", "c2"], Migration(nodes=renames)))["log"] == ["a", "b", "later", "c2"]


def test_a_join_that_is_gone_is_an_error(door, saver):
    builder = StateGraph(State).add_node("a", note("a")).add_node("b", note("b")).add_node("c", note("c"))
    builder.add_edge(START, "a").add_edge("a", "b").add_edge(["a", "b"], "c")
    stop(builder.compile(saver), door, "b")
    with pytest.raises(GraphChangedError, match=r"join 'a\+b->c' has heard from 'a'"):
        call(door, chain("abc", saver), "get_state", THREAD)


def test_a_deferred_node_that_waits_is_renamed(door, saver, go_on):
    def graph(last, migrations=()):
        builder = StateGraph(State).add_node("a", note("a")).add_node("b", note("b")).add_node("c", note("c"))
        builder.add_node(last, note(last), defer=True)
        builder.add_edge(START, "a").add_edge("a", last).add_edge("a", "b").add_edge("b", "c").add_edge("c", last)
        return builder.compile(saver, migrations=migrations)

    stop(graph("end"), door, "b")
    assert go_on(graph("final", Migration(nodes={"end": "final"})))["log"] == ["a", "b", "c", "final"]


def test_a_packet_goes_to_the_renamed_node(door, saver, go_on):
    def graph(name, migrations=()):
        builder = StateGraph(State).add_node(
            "a", lambda _: Command(goto=[Send(name, "x"), Send(name, "y")]), destinations=[name]
        )
        builder.add_node(name, lambda item: {"log": [item]}).add_edge(START, "a")
        return builder.compile(saver, migrations=migrations)

    stop(graph("work"), door, "work")
    assert go_on(graph("toil", Migration(nodes={"work": "toil"})))["log"] == ["x", "y"]


def half(next_name, saver, migrations=(), failures=()):
    """Return a graph of which one node says what is next while the other one fails."""
    failing = list(failures)

    def bad(state: State):
        if failing:
            raise failing.pop()
        return {"log": ["bad"]}

    builder = StateGraph(State)
    builder.add_node(
        "good",
        lambda _: Command(update={"log": ["good"]}, goto=[next_name, Send(next_name, {})]),
        destinations=[next_name],
    )
    builder.add_node("bad", bad).add_node(next_name, note(next_name)).add_edge(START, "good").add_edge(START, "bad")
    return builder.compile(saver, migrations=migrations)


@pytest.mark.parametrize("edits", [False, True])
def test_what_a_finished_sibling_leads_to_is_renamed(door, saver, edits):
    with pytest.raises(LookupError):
        door.invoke(half("next", saver, failures=[LookupError()]), {}, THREAD)
    renamed = half("following", saver, Migration(nodes={"next": "following"}))
    assert call(door, renamed, "get_state", THREAD).tasks[0].result == {"log": ["good"]}
    if edits:
        call(door, renamed, "update_state", THREAD, None)
        renamed = half("following", saver)  # what was carried over needs the migration no more
    assert door.invoke(renamed, None, THREAD)["log"] == ["good", "bad", "following", "following"]


def test_what_a_finished_sibling_leads_to_is_gone(door, saver):
    with pytest.raises(LookupError):
        door.invoke(half("next", saver, failures=[LookupError()]), {}, THREAD)
    changed = half("nest", saver)
    with pytest.raises(GraphChangedError, match="Did you mean 'nest'"):
        call(door, changed, "get_state", THREAD)
    with pytest.raises(GraphChangedError, match="Did you mean 'nest'"):
        door.invoke(changed, None, THREAD)


def test_a_child_keeps_its_place_when_its_node_is_renamed(door, saver):
    def graph(name, migrations=()):
        inner = chain(["a", "ask", "z"], None, ask=ask)
        return StateGraph(State).add_node(name, inner).add_edge(START, name).compile(saver, migrations=migrations)

    door.invoke(graph("inner"), {}, THREAD)
    renamed = graph("within", Migration(nodes={"inner": "within"}))
    state = call(door, renamed, "get_state", THREAD, subgraphs=True).tasks[0].state
    assert (state.next, state.values) == (("ask",), {"log": ["a"]})
    assert call(door, renamed, "get_state", state.config) == state
    call(door, renamed, "update_state", state.config, {"log": ["by hand"]})
    assert door.invoke(renamed, Command(resume="yes"), THREAD)["log"] == ["a", "by hand", "yes", "z"]


def test_a_child_has_migrations_of_its_own(door, saver):
    def graph(name, migrations=()):
        inner = chain(["a", name, "z"], None, migrations=migrations, **{name: ask})
        return StateGraph(State).add_node("inner", inner).add_edge(START, "inner").compile(saver)

    door.invoke(graph("ask"), {}, THREAD)
    with pytest.raises(GraphChangedError, match="node 'ask' is due"):
        call(door, graph("question"), "get_state", THREAD, subgraphs=True)
    renamed = graph("question", Migration(nodes={"ask": "question"}))
    assert call(door, renamed, "get_state", THREAD, subgraphs=True).tasks[0].state.next == ("question",)
    assert door.invoke(renamed, Command(resume="yes"), THREAD)["log"] == ["a", "yes", "z"]


# -- the state -------------------------------------------------------------------------------------------------------


class Counted(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    n: int
    untouched: list[int]


class Worded(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    word: str
    untouched: list[str]
    new: Annotated[list[int], operator.add]


def worded(values: dict[str, Any]) -> dict[str, Any]:
    """Return the state of the old version as one of the new one."""
    return {
        "log": [f"<{item}>" for item in values["log"]],
        "word": str(values["n"]),
        "untouched": [str(item) for item in values["untouched"]],
    }


GIVEN = {"log": ["in"], "n": 7, "untouched": [*range(20)]}
TEXTS = [str(item) for item in range(20)]


def test_a_state_is_converted_and_the_run_goes_on(door, saver, go_on):
    stop(chain("ab", saver, Counted), door, "b", GIVEN)
    changed = chain("ab", saver, Worded, Migration(state=worded))
    shown = call(door, changed, "get_state", THREAD)
    assert shown.values == {"log": ["<in>", "<a>"], "word": "7", "untouched": TEXTS, "new": []}
    result = {"log": ["<in>", "<a>", "b"], "word": "7", "untouched": TEXTS, "new": []}
    assert go_on(changed) == result
    # It is stored as a whole: nothing of it is converted again, and nothing old shows through.
    for graph in (changed, chain("ab", saver, Worded)):
        assert call(door, graph, "get_state", THREAD).values == result
    assert door.invoke(chain("ab", saver, Worded), {"word": "new", "new": [1]}, THREAD) == {
        "log": ["<in>", "<a>", "b", "a", "b"],
        "word": "new",
        "untouched": TEXTS,
        "new": [1],
    }


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_converted_state_is_stored_as_a_whole_with_every_durability(door, saver, durability):
    stop(chain("abc", saver, Counted), door, "b", GIVEN)
    changed = chain("abc", saver, Worded, Migration(state=worded))
    result = door.invoke(changed, None, THREAD, durability=durability)
    assert call(door, chain("abc", saver, Worded), "get_state", THREAD).values == result
    assert result["untouched"] == TEXTS


def test_reading_converts_and_stores_nothing(door, saver):
    stop(chain("ab", saver, Counted), door, "b", GIVEN)
    old = chain("ab", saver, Counted)
    before = call(door, old, "get_state", THREAD)
    changed = chain("ab", saver, Worded, Migration(state=worded))
    assert call(door, changed, "get_state", THREAD).values["word"] == "7"
    assert call(door, old, "get_state", THREAD) == before
    assert door.invoke(old, None, THREAD)["n"] == 7


def test_history_before_a_conversion_is_read_with_it_and_is_not_altered(door, saver):
    old = chain("ab", saver, Counted)
    stop(old, door, "b", GIVEN)
    before = call(door, old, "get_state_history", THREAD)
    changed = chain("ab", saver, Worded, Migration(state=worded))
    door.invoke(changed, None, THREAD)
    told = call(door, changed, "get_state_history", THREAD)
    assert [shown.values["log"] for shown in told] == [["<in>", "<a>", "b"], ["<in>", "<a>"], ["<in>"]]
    assert [call(door, old, "get_state", shown.config) for shown in before] == before
    with pytest.raises(GraphChangedError):
        call(door, chain("ab", saver, Worded), "get_state", before[0].config)


def test_a_migration_is_chosen_by_the_version_that_it_is_for(door, saver):
    first = chain("ab", saver, Counted)
    stop(first, door, "b", GIVEN)
    second = chain("abc", saver, Counted)
    tried = []

    def convert(name):
        def apply(values):
            tried.append(name)
            return worded(values)

        return apply

    migrations = [
        Migration(state=convert("second"), of=second.fingerprint),
        Migration(state=convert("first"), of=first.fingerprint),
        Migration(state=convert("any")),
    ]
    call(door, chain("ab", saver, Worded, migrations), "get_state", THREAD)
    call(door, chain("ab", saver, Worded, migrations[:1] + migrations[2:]), "get_state", THREAD)
    assert tried == ["first", "any"]
    with pytest.raises(GraphChangedError):
        call(door, chain("ab", saver, Worded, migrations[:1]), "get_state", THREAD)


def test_a_version_that_is_current_is_not_converted(door, saver):
    graph = chain("ab", saver, Counted, Migration(state=lambda values: 1 / 0))
    stop(graph, door, "b", GIVEN)
    assert door.invoke(graph, None, THREAD)["n"] == 7


def test_a_field_that_is_gone_is_an_error_and_a_new_one_is_not(door, saver):
    class Fewer(TypedDict, total=False):
        log: Annotated[list[str], operator.add]
        number: int

    class More(Counted, total=False):
        more: Annotated[list[int], operator.add]

    stop(chain("ab", saver, Counted), door, "b", GIVEN)
    with pytest.raises(GraphChangedError, match=r"field 'n', which graph .* does not have"):
        door.invoke(chain("ab", saver, Fewer), None, THREAD)
    assert door.invoke(chain("ab", saver, More), None, THREAD) == {**GIVEN, "log": ["in", "a", "b"], "more": []}


def test_a_field_of_another_kind_is_an_error(door, saver):
    class Kept(TypedDict, total=False):
        log: Annotated[list[str], LastValue]
        n: int

    stop(chain("ab", saver), door, "b", {"n": 1})
    with pytest.raises(GraphChangedError, match="stored by a BinaryOperatorAggregate and is a LastValue now"):
        door.invoke(chain("ab", saver, Kept), None, THREAD)
    same = chain("ab", saver, Kept, Migration(state=lambda values: values))
    assert door.invoke(same, None, THREAD) == {"log": ["b"], "n": 1}


def test_a_migration_that_returns_no_dict_or_an_unknown_field_is_an_error(door, saver):
    stop(chain("ab", saver, Counted), door, "b", GIVEN)
    for state, message in (
        (lambda values: None, "returned NoneType, not the dict"),
        (lambda values: {"words": ""}, "the migration has made a value of the field 'words'.*Did you mean 'word'"),
    ):
        with pytest.raises(GraphChangedError, match=message):
            call(door, chain("ab", saver, Worded, Migration(state=state)), "get_state", THREAD)


def test_a_migration_that_raises_is_the_error_of_the_call_and_leaves_the_thread_free(door, saver):
    stop(chain("ab", saver, Counted), door, "b", GIVEN)
    broken = chain("ab", saver, Worded, Migration(state=lambda values: {"word": values["nn"]}))
    with pytest.raises(KeyError, match="nn"):
        door.invoke(broken, None, THREAD)
    assert door.invoke(chain("ab", saver, Worded, Migration(state=worded)), None, THREAD)["word"] == "7"


@pytest.mark.parametrize("update", [5, Overwrite(5)])
def test_the_update_of_a_finished_sibling_is_never_converted(door, saver, update):
    def graph(state, update, migrations=(), failures=()):
        failing = list(failures)

        def bad(_):
            if failing:
                raise failing.pop()
            return {}

        builder = StateGraph(state).add_node("good", lambda _: update).add_node("bad", bad)
        return builder.add_edge(START, "good").add_edge(START, "bad").compile(saver, migrations=migrations)

    class Retyped(TypedDict, total=False):
        log: Annotated[list[str], operator.add]
        n: str

    class Renamed(TypedDict, total=False):
        log: Annotated[list[str], operator.add]
        number: int

    with pytest.raises(LookupError):
        door.invoke(graph(State, {"n": update}, failures=[LookupError()]), {"n": 1}, THREAD)
    for state, message in ((Retyped, "updated the field 'n' with 5"), (Renamed, "updated the field 'n', which")):
        changed = graph(state, {}, Migration(state=lambda values: {"log": values.get("log", [])}))
        with pytest.raises(GraphChangedError, match=message):
            call(door, changed, "get_state", THREAD)
        with pytest.raises(GraphChangedError, match=message):
            door.invoke(changed, None, THREAD)
    assert door.invoke(graph(State, {"n": 5}), None, THREAD) == {"log": [], "n": 5}


def test_migrations_are_checked_when_a_graph_is_compiled(saver):
    with pytest.raises(InvalidConfigError, match=r"renames a node to 'bb', which is no node"):
        chain("ab", saver, migrations=Migration(nodes={"x": "bb"}))
    with pytest.raises(InvalidConfigError, match="takes Migrations"):
        chain("ab", saver, migrations=[{"a": "b"}])


def test_two_nodes_may_become_one(door, saver):
    stop(fan("abz", saver), door, "a")
    merged = chain(["c", "z"], saver, migrations=Migration(nodes={"a": "c", "b": "c"}))
    assert call(door, merged, "get_state", THREAD).next == ("c", "c")
    assert door.invoke(merged, None, THREAD)["log"] == ["c", "c", "z"]
    assert ids(call(door, merged, "get_state_history", THREAD)) == ["0.2", "0.1", "0.0"]


def test_what_a_topic_holds_is_kept(door, saver):
    class Published(TypedDict, total=False):
        topic: Annotated[list[str], Topic(str, accumulate=True)]

    def graph(name, migrations=()):
        builder = (
            StateGraph(Published).add_node("a", lambda _: {"topic": ["x"]}).add_node(name, lambda _: {"topic": "y"})
        )
        return builder.add_edge(START, "a").add_edge("a", name).compile(saver, migrations=migrations)

    stop(graph("b"), door, "b")
    assert door.invoke(graph("c", Migration(nodes={"b": "c"})), None, THREAD) == {"topic": ["x", "y"]}
