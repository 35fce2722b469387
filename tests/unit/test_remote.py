"""What crosses to a worker and back, by value: the bytes are made and read in this process."""

import asyncio
import operator
import pickle
import sys
from contextvars import Context
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import Annotated, Any, TypedDict
from uuid import UUID

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from pregel.channels.base import MISSING, Overwrite
from pregel.config import get_config, get_store, get_stream_writer
from pregel.errors import (
    GraphInterrupt,
    MissingCheckpointerError,
    MissingStoreError,
    NodeCancelledError,
    NotSendableError,
    OutsideTaskError,
)
from pregel.graph import START, StateGraph
from pregel.remote import returned, sent
from pregel.remotecall import FORMAT
from pregel.remotework import work
from pregel.reporter import Emit, Speech, Told
from pregel.runtime import FRAME, Run, Runtime, get_runtime, interrupt, message_writer
from pregel.store.memory import InMemoryStore
from pregel.task import Task
from pregel.types import Command, Interrupt, Send


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    n: int
    thing: Any


def network_of(node):
    return StateGraph(State).add_node("a", node).add_edge(START, "a").compile(name="g")._network


class Crossing:
    """Makes one call of a node, to a worker that is this process, and keeps what happened at home."""

    def __init__(self, node, given=None, *, values=None, task=MISSING, **run):
        self.network = network_of(node)
        self.said = []
        self.asked = []
        self.given = {} if given is None else given
        options = {"config": {"tags": [], "metadata": {}, "callbacks": None, "configurable": {}}, "context": None}
        options |= {"new_id": lambda task, number: str(UUID(int=number % 7)), "limit": 10, "last_step": 10, **run}
        self.run = Run(**options)
        node = self.network.nodes["a"]
        self.frame = (Task(node, 2, 1, task), self.run, count(), self.asked, values or {})

    def send(self):
        return sent(self.network.nodes["a"].code, self.given, self.frame, self.network)

    def __call__(self):
        return returned(work(self.send()), self.given, self.frame)


def call(node, given=None, **options):
    return Crossing(node, given, **options)()


# --- results ----------------------------------------------------------------------------------------------------------


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    "result",
    [
        {"n": 1},
        {},
        None,
        Command(update={"n": 1}, goto=["a", Send("a", {"n": 3})]),
        Command(graph=Command.PARENT, update={"n": 2}),
        [Command(update={"n": 1}), {"log": ["x"]}],
        {"thing": Point(3)},
        {"log": Overwrite(["x"])},
        {"thing": MISSING},
    ],
)
def test_a_result_comes_back_as_it_was(result):
    assert call(lambda state: result) == result


def test_no_answer_of_a_command_is_still_no_answer():
    assert call(lambda state: Command(update={})).resume is MISSING


def test_code_is_given_a_copy():
    given = {"log": ["x"]}

    def node(state):
        state["log"].append("y")
        return {"thing": state["log"]}

    assert call(node, given) == {"thing": ["x", "y"]}
    assert given == {"log": ["x"]}


def test_async_code_runs_on_a_loop_of_the_worker():
    async def node(state):
        await asyncio.sleep(0)
        return {"n": state["n"] + 1}

    assert call(node, {"n": 1}) == {"n": 2}


def test_classes_of_the_main_program_keep_their_identity():
    class Local:
        """As if defined in a script: its code is sent along."""

    result = call(lambda state: {"thing": type(state["thing"])}, {"thing": Local()})
    assert result["thing"] is Local


# --- the very object that was given -----------------------------------------------------------------------------------


def test_a_folding_field_that_is_given_back_is_still_the_object_that_was_given():
    given = {"log": ["x"], "n": 1}
    for node in (
        lambda state: {**state},
        lambda state: [{"n": 2}, {"log": state["log"]}],
        lambda state: Command(update={"log": state["log"]}),
        lambda state: Command(update=[("log", state["log"])]),
    ):
        result = call(node, given)
        found = [part for part in walk(result) if part == ["x"]]
        assert found
        assert all(part is given["log"] for part in found)


def walk(value):
    yield value
    if isinstance(value, Command):
        yield from walk(value.update)
    elif isinstance(value, dict):
        for part in value.values():
            yield from walk(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from walk(part)


def test_what_is_equal_to_what_was_given_is_not_it():
    given = {"log": ["x"]}
    assert call(lambda state: {"log": [*state["log"]]}, given)["log"] is not given["log"]


def test_a_field_that_does_not_fold_may_be_changed_and_given_back():
    def node(state):
        state["thing"].append("y")
        return {"thing": state["thing"]}

    assert call(node, {"thing": ["x"]}) == {"thing": ["x", "y"]}


# --- errors -----------------------------------------------------------------------------------------------------------


class PickyError(Exception):
    """Can't be made from its args alone."""

    def __init__(self, code, *, detail):
        super().__init__(f"{code}: {detail}")
        self.code = code


class ResponseError(Exception):
    def __init__(self, message, *, response):
        super().__init__(message)
        self.response = response


class HeldError(Exception):
    def __init__(self):
        super().__init__("held")
        self.lock = Lock()


def raising(kind, *args, **named):
    def node(state):
        raise kind(*args, **named)

    return node


@pytest.mark.parametrize(
    ("kind", "args", "named"),
    [
        (ValueError, ("no",), {}),
        (OSError, (2, "gone"), {}),
        (KeyError, ("k",), {}),
        (PickyError, (3,), {"detail": "x"}),
    ],
)
def test_an_error_comes_back_with_the_traceback_of_the_worker(kind, args, named):
    error = kind(*args, **named)
    with pytest.raises(kind) as caught:
        call(raising(kind, *args, **named))
    assert str(caught.value) == str(error)
    assert caught.value.args == error.args
    (note,) = vars(caught.value).pop("__notes__")
    assert vars(caught.value) == vars(error)
    assert note.startswith("Traceback in process")
    assert "in node\n" in note


def test_what_decides_about_a_retry_comes_back_with_an_error():
    with pytest.raises(ResponseError) as caught:
        call(raising(ResponseError, "busy", response=Point(503)))
    assert caught.value.response == Point(503)


def test_an_error_that_cannot_be_sent_is_named():
    with pytest.raises(NotSendableError, match=r"node 'a' of graph 'g' raised an error .*: HeldError: held"):
        call(raising(HeldError))


def test_an_exit_comes_back():
    with pytest.raises(SystemExit) as caught:
        call(raising(SystemExit, 3))
    assert caught.value.code == 3


def test_a_group_comes_back_with_what_is_in_it():
    async def node(state):
        async with asyncio.TaskGroup() as group:
            group.create_task(fails())

    async def fails():
        raise LookupError("lost")

    with pytest.raises(ExceptionGroup) as caught:
        call(node)
    assert [repr(error) for error in caught.value.exceptions] == ["LookupError('lost')"]


def test_code_that_cancels_itself_is_an_error():
    async def node(state):
        raise asyncio.CancelledError

    with pytest.raises(NodeCancelledError, match="node 'a' of graph 'g' ended as cancelled"):
        call(node)


# --- what can't be sent -----------------------------------------------------------------------------------------------

LOCK = Lock()


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"thing": Lock()}, "given['thing'] is <unlocked _thread.lock"),
        ({"thing": [1, {"deep": Lock()}]}, "given['thing'][1]['deep'] is"),
        ({"thing": Point(Lock())}, "given['thing'].x is"),
        ({"thing": (n for n in range(3))}, "given['thing'] is <generator"),
    ],
)
def test_a_value_that_cannot_be_sent_is_named(given, path):
    with pytest.raises(NotSendableError) as caught:
        call(lambda state: {}, given)
    for word in ("node 'a' of graph 'g' can't go to a worker", path, "executor='thread'"):
        assert word in str(caught.value)


def test_a_variable_of_the_code_that_cannot_be_sent_is_named():
    lock = Lock()

    def closes(state):
        return {"thing": lock}

    def defaults(state, held=LOCK):
        return {"thing": held}

    for node, name in ((closes, "call, whose variable 'lock' is"), (defaults, "call, whose default 'held' is")):
        with pytest.raises(NotSendableError) as caught:
            call(node)
        assert name in str(caught.value)


def test_a_context_that_cannot_be_sent_is_named():
    with pytest.raises(NotSendableError, match=r"context\.x is <unlocked"):
        call(lambda state: {}, context=Point(Lock()))


@pytest.mark.parametrize(
    ("node", "path"),
    [
        (lambda state: {"thing": Lock()}, "can't give back from its worker: ['thing'] is <unlocked"),
        (lambda state: Command(update={"thing": Lock()}), "can't give back from its worker: update['thing'] is"),
        (lambda state: get_stream_writer()([Lock()]) or {}, "can't tell what it did in its worker: said[0].payload[0]"),
    ],
)
def test_a_result_that_cannot_come_back_is_named(node, path):
    with pytest.raises(NotSendableError) as caught:
        call(node, writer=print)
    assert path in str(caught.value)


def test_without_cloudpickle_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'pregel\[process\]'"):
        call(lambda state: {})


def test_a_worker_of_another_version_says_so():
    crossing = Crossing(lambda state: {})
    form, *rest = pickle.loads(crossing.send())  # noqa: S301 - our own bytes
    assert form == FORMAT
    reply = work(pickle.dumps(("pregel call 1, Python 2.7", *rest)))
    with pytest.raises(NotSendableError, match=r"node 'a' of graph 'g' was sent as 'pregel call 1, Python 2.7'"):
        returned(reply, {}, crossing.frame)


class Unknown:
    """Of a module that the worker does not have."""

    def __reduce__(self):
        return (lost_module, ())


def lost_module():
    raise ModuleNotFoundError("No module named 'acme'")


def test_a_call_that_the_worker_cannot_read_says_so():
    with pytest.raises(NotSendableError, match=r"node 'a' of graph 'g' can't be read in process .*named 'acme'"):
        call(lambda state: {}, {"thing": Unknown()})


def test_a_result_that_cannot_be_read_at_home_says_so():
    crossing = Crossing(lambda state: {"thing": Unknown()})
    reply = work(crossing.send())
    with pytest.raises(NotSendableError, match=r"node 'a' returned, raised or wrote in a worker can't be read here"):
        returned(reply, {}, crossing.frame)


def test_no_two_calls_have_the_same_bytes():
    crossing = Crossing(lambda state: {})
    assert crossing.send() != crossing.send()


# --- the task -------------------------------------------------------------------------------------------------------


def test_code_finds_its_config_and_runtime():
    def node(state, config, runtime: Runtime, writer):
        found = get_runtime()
        return {
            "thing": {
                "configs": [config, get_config(), dict(runtime.config)],
                "context": [runtime.context, found.context],
                "task": [(each.node, each.step, each.task_id) for each in (runtime, found)],
                "state": [dict(each.state) for each in (runtime, found)],
            }
        }

    config = {"tags": ["t"], "metadata": {"m": 1}, "callbacks": None, "configurable": {"thread_id": "7", "k": "v"}}
    found = call(node, {"n": 1}, config=config, context=Point(4), thread="7", path=("p:1:0:p",), values={"n": 1})
    about = ("a", 2, "7|p:1:0:p|2:1:a")
    assert found["thing"] == {
        "configs": [config] * 3,
        "context": [Point(4)] * 2,
        "task": [about] * 2,
        "state": [{"n": 1}] * 2,
    }


def test_callbacks_stay_at_home():
    config = {"tags": [], "metadata": {}, "callbacks": [Lock()], "configurable": {}}
    assert call(lambda state: {"thing": get_config()}, config=config)["thing"] == {**config, "callbacks": None}


def test_the_state_is_sent_to_nodes_that_have_a_parameter_for_it():
    def node(state):
        return {"thing": get_runtime().state["n"]}

    with pytest.raises(OutsideTaskError, match="is sent only to nodes that have a parameter `runtime`"):
        call(node, values={"n": 1})


def test_the_state_of_others_need_not_be_sendable():
    assert call(lambda state: {"n": 1}, values={"thing": Lock()}) == {"n": 1}


class Box:
    """A store that can be sent: all of it is where it was opened."""

    def __init__(self, address):
        self.address = address


def test_a_store_that_can_be_sent_goes_to_code_that_takes_it():
    def required(state, store):
        return {"thing": (store.address, get_store().address)}

    def optional(state, store=None):
        return {"thing": (store.address, get_store().address)}

    for node in (required, optional):
        assert call(node, store=Box("db"))["thing"] == ("db", "db")


def test_a_store_that_cannot_be_sent_is_named_where_it_is_taken():
    with pytest.raises(NotSendableError, match=r"can't go to a worker: store\."):
        call(lambda state, store: {}, store=InMemoryStore())


def test_a_store_that_was_not_sent_says_so():
    def node(state):
        return {"thing": get_store().get(("a",), "k")}

    with pytest.raises(MissingStoreError, match="node 'a' of graph 'g' runs in a worker and uses the store"):
        call(node, store=InMemoryStore())
    assert call(lambda state: {"n": 1}, store=InMemoryStore()) == {"n": 1}


def test_a_graph_without_store_has_none_in_the_worker_either():
    assert call(lambda state, store=None: {"thing": store})["thing"] is None
    with pytest.raises(MissingStoreError, match="compiled without one"):
        call(lambda state, store: {})


# --- traces -----------------------------------------------------------------------------------------------------------


def below(state):
    found = trace.get_current_span().get_span_context()
    return {"thing": (found.trace_id, found.span_id, found.is_remote)}


@pytest.fixture
def span():
    """A span that is current."""
    with TracerProvider().get_tracer("program").start_as_current_span("around") as made:
        yield made.get_span_context()


def test_the_current_span_crosses(span):
    crossing = Crossing(below)
    for node in (below, as_async(below)):
        data = Crossing(node).send()
        reply = Context().run(work, data)  # as in a process of its own
        assert returned(reply, {}, crossing.frame) == {"thing": (span.trace_id, span.span_id, True)}
    assert trace.get_current_span().get_span_context() == span


def as_async(node):
    async def anode(state):
        return node(state)

    return anode


def test_a_program_that_does_not_trace_sends_no_span(span, monkeypatch):
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")  # as if it had not been loaded
    monkeypatch.setitem(sys.modules, "pregel.spans", None)  # it must not be asked
    data = Crossing(below).send()
    assert b"traceparent" not in data


def test_a_worker_without_opentelemetry_runs_the_node_all_the_same(span, monkeypatch):
    crossing = Crossing(lambda state: {"n": 1})
    data = crossing.send()
    assert b"traceparent" in data
    monkeypatch.setitem(sys.modules, "pregel.spans", None)
    assert returned(work(data), {}, crossing.frame) == {"n": 1}


# --- questions --------------------------------------------------------------------------------------------------------


def asks(state):
    first = interrupt("first?")
    second = interrupt({"second": "?"}, int)
    return {"thing": [first, second]}


def test_questions_come_back_and_answers_cross():
    crossing = Crossing(asks, answers={})
    with pytest.raises(GraphInterrupt) as caught:
        crossing()
    question = Interrupt("first?", "2:1:a#0")
    assert caught.value.interrupts == (question,)
    assert crossing.asked == [question]
    crossing = Crossing(asks, answers={"2:1:a#0": None})
    with pytest.raises(GraphInterrupt):
        crossing()
    assert crossing.asked == [None, Interrupt({"second": "?"}, "2:1:a#1", {"type": "integer"})]
    crossing = Crossing(asks, answers={"2:1:a#0": None, "2:1:a#1": "3", "2:0:b#0": Lock()})
    assert crossing() == {"thing": [None, 3]}
    assert crossing.asked == [None, None]


def test_an_answer_that_does_not_fit_comes_back_with_the_pause():
    crossing = Crossing(asks, answers={"2:1:a#0": "x", "2:1:a#1": "no number"})
    with pytest.raises(GraphInterrupt) as caught:
        crossing()
    assert "does not fit what was asked for" in str(caught.value.error)


def test_a_pause_in_a_group_is_still_one():
    async def node(state):
        async with asyncio.TaskGroup() as group:
            group.create_task(ask())

    async def ask():
        interrupt("?")

    with pytest.raises(BaseExceptionGroup) as caught:
        call(node, answers={})
    pauses, rest = caught.value.split(GraphInterrupt)
    assert rest is None
    assert pauses.exceptions[0].interrupts == (Interrupt("?", "2:1:a#0"),)


def test_nothing_can_be_asked_where_nothing_is_stored():
    with pytest.raises(MissingCheckpointerError, match="node 'a' calls interrupt"):
        call(asks)


def test_a_graph_inside_asks_too():
    inner = StateGraph(State).add_node("ask", asks).add_edge(START, "ask").compile(name="inner")

    def node(state):
        return {"thing": inner.invoke({"n": 1})["thing"]}

    crossing = Crossing(node, answers={})
    with pytest.raises(GraphInterrupt):
        crossing()
    (question,) = crossing.asked[0]
    assert question.id == "a:2:1:a|1:0:ask#0"
    assert call(node, answers={question.id: 1, question.id[:-1] + "1": 2}) == {"thing": [1, 2]}


# --- streams ----------------------------------------------------------------------------------------------------------


def test_what_was_written_is_told_at_home_in_order():
    def node(state, writer):
        writer({"part": 1})
        message_writer()("piece")
        get_stream_writer()(2)
        raise LookupError("after all")

    said = []
    speech = Speech({"run": 1}, ("t",), ("ns",), bool)
    crossing = Crossing(node, writer=said.append, publish=said.append, speech=speech)
    with pytest.raises(LookupError):
        crossing()
    first, piece, last = said
    assert (first, last) == ({"part": 1}, 2)
    assert piece == speech.part(Told, "piece", crossing.frame[0])


def test_nobody_reads_so_nothing_comes_back():
    def node(state):
        get_stream_writer()(Lock())
        return {"thing": message_writer()}

    assert call(node) == {"thing": None}


def test_parts_of_graphs_inside_come_back():
    def inner_node(state, writer):
        writer("inside")
        return {"n": 5}

    inner = StateGraph(State).add_node("b", inner_node).add_edge(START, "b").compile(name="inner")

    def node(state):
        return inner.invoke({})

    said = []
    crossing = Crossing(node, writer=said.append, publish=said.append, nested_modes=("updates",), namespace=("o:1",))
    assert crossing()["n"] == 5
    shown = [(part.mode, part.payload, part.namespace, part.task.id) for part in said if isinstance(part, Emit)]
    assert shown == [
        ("custom", "inside", ("o:1", "a:2:1:a"), "1:0:b"),
        ("updates", {"b": {"n": 5}}, ("o:1", "a:2:1:a"), "1:0:b"),
    ]


# --- the worker -------------------------------------------------------------------------------------------------------


def test_a_worker_is_left_as_it_was():
    call(lambda state: {"n": 1})
    assert FRAME.get(None) is None


def test_a_search_for_what_cannot_be_sent_ends():
    loop = []
    loop.append(loop)
    loop.append(Lock())
    with pytest.raises(NotSendableError, match=r"given\['thing'\](\[0\])+ is "):
        call(lambda state: {}, {"thing": loop})
